"""Where rooms are kept: the contract, and the store that keeps them in memory.

A store owns the rooms. What a room does is decided in ``room`` and is the same for every store. Which store is meant
is one word, ``memory`` or ``sqlite[:PATH]``. Not here: the store that outlives the broker (``stores.sqlite``), which
is imported only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Protocol

from .errors import Refused, UsageProblem
from .message import Message
from .room import Room

__all__ = ["MAX_ROOMS", "MemoryStore", "RoomStore", "absolute_store", "database_path"]

#: Rooms one broker holds.
MAX_ROOMS = 10_000

_SQLITE = "sqlite"


class RoomStore(Protocol):
    """Rooms by name, and what of them outlives the broker.

    With a store that ``is_durable`` a change goes this way: ``before_change``, the change in the room, the method that
    tells of it, and ``commit`` for all changes of one turn. Nobody may learn of a change before ``commit`` has
    returned. With any other store none of these need be called.
    """

    is_durable: ClassVar[bool]

    def find(self, name: str) -> Room | None:
        """The room, or ``None``."""

    def rooms(self) -> Iterable[Room]:
        """All rooms, in the order they were created."""

    def create(self, name: str, *, epoch: str) -> Room:
        """A new, empty room. It outlives the broker from its first post on.

        Raises:
            Refused: ``room-limit``.
        """

    def drop(self, name: str) -> None:
        """Forget a room in which nothing was said."""

    def before_change(self, room: Room) -> None:
        """``room`` is about to change; what it holds now is what it goes back to if that cannot be stored."""

    def posted(self, room: Room, message: Message) -> None:
        """``message`` was appended to ``room``, and its author's cursor moved to it."""

    def cursor_moved(self, room: Room, name: str) -> None:
        """The cursor of ``name`` moved without a post."""

    def topic_set(self, room: Room) -> None:
        """The room got its topic."""

    def commit(self) -> None:
        """Make all changes since the last time durable, together.

        Raises:
            NotStored: they could not be; the rooms hold what they held before them.
        """

    def close(self) -> None:
        """The broker ends. What was not committed is forgotten."""


class MemoryStore:
    """Rooms that live as long as the broker."""

    is_durable: ClassVar[bool] = False

    def __init__(self, encode: Callable[[Message], bytes], *, max_rooms: int = MAX_ROOMS) -> None:
        self._encode = encode
        self._max_rooms = max_rooms
        self._rooms: dict[str, Room] = {}

    def find(self, name: str) -> Room | None:
        """The room, or ``None``."""
        return self._rooms.get(name)

    def rooms(self) -> Iterable[Room]:
        """All rooms, in the order they were created."""
        return self._rooms.values()

    def create(self, name: str, *, epoch: str) -> Room:
        """A new, empty room."""
        if len(self._rooms) >= self._max_rooms:
            raise Refused("room-limit", f"{self._max_rooms} rooms exist; no more can be created")
        room = self._rooms[name] = Room(name, epoch=epoch, encode=self._encode)
        return room

    def drop(self, name: str) -> None:
        """Forget a room."""
        self._rooms.pop(name, None)

    def before_change(self, room: Room) -> None:
        """Nothing can fail."""

    def posted(self, room: Room, message: Message) -> None:
        """Nothing outlives the broker."""

    def cursor_moved(self, room: Room, name: str) -> None:
        """Nothing outlives the broker."""

    def topic_set(self, room: Room) -> None:
        """Nothing outlives the broker."""

    def commit(self) -> None:
        """Nothing outlives the broker."""

    def close(self) -> None:
        """Nothing to close."""


def database_path(store: str, *, default: Path) -> Path | None:
    """The file that ``store`` names, absolute; ``None`` for ``memory``.

    A path is relative to the working folder; ``~`` is expanded. ``sqlite`` alone is ``default``.

    Raises:
        UsageProblem: it names no store.
    """
    if store == "memory":
        return None
    if store == _SQLITE:
        return default
    kind, _, path = store.partition(":")
    # SQLite's own name for a database in memory would be a file here.
    if kind != _SQLITE or path.strip() in {"", ":memory:"} or "\0" in path:
        raise UsageProblem(f"no store is called {store!r}", hint="say memory, sqlite or sqlite:PATH")
    return _absolute(path)


def absolute_store(store: str) -> str:
    """``store`` for a process that runs in another folder; what names no store stays as it is."""
    kind, _, path = store.partition(":")
    return f"{kind}:{_absolute(path)}" if kind == _SQLITE and path else store


def _absolute(path: str) -> Path:
    with suppress(RuntimeError):  # nobody of that name has a home
        return Path(path).expanduser().absolute()
    return Path(path).absolute()
