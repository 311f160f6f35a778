"""Where rooms are kept: the contract, and the store that keeps them in memory.

A store owns the rooms and is told of every change that must outlive the broker, before anyone else is told.
What a room does is decided in ``room`` and is the same for every store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from .errors import Refused
from .message import Message
from .room import Room

__all__ = ["MAX_ROOMS", "MemoryStore", "RoomStore"]

#: Rooms one broker holds.
MAX_ROOMS = 10_000


class RoomStore(Protocol):
    """Rooms by name."""

    def find(self, name: str) -> Room | None:
        """The room, or ``None``."""

    def rooms(self) -> Iterable[Room]:
        """All rooms, in the order they were created."""

    def create(self, name: str, *, epoch: str) -> Room:
        """A new, empty room.

        Raises:
            Refused: ``room-limit``.
        """

    def drop(self, name: str) -> None:
        """Forget a room in which nothing was said."""

    def posted(self, room: Room, message: Message) -> None:
        """``message`` was appended to ``room``; called before anybody is told."""

    def cursor_moved(self, room: Room, name: str) -> None:
        """The cursor of ``name`` moved without a post."""

    def topic_set(self, room: Room) -> None:
        """The room got its topic."""

    def close(self) -> None:
        """The broker ends."""


class MemoryStore:
    """Rooms that live as long as the broker."""

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

    def posted(self, room: Room, message: Message) -> None:
        """Nothing outlives the broker."""

    def cursor_moved(self, room: Room, name: str) -> None:
        """Nothing outlives the broker."""

    def topic_set(self, room: Room) -> None:
        """Nothing outlives the broker."""

    def close(self) -> None:
        """Nothing to close."""
