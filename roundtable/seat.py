"""What a role can do in rooms, as text an agent reads.

One seat is one name and at most one connection, made by the first call that needs it: a seat that is never used
starts no broker. Calls never raise for what can go wrong with rooms; they answer with a text that says what to do.

A broker that went away is reached again by the next call. Memberships are not replayed: what was known of a room
is handed in as its epoch, so a room created anew is noticed and the agent is told to join it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import anyio

from .client import Client, reach
from .errors import ConnectionLost, RoundtableError, UsageProblem
from .export import check_path, export, exported_text
from .harmless import harmless_line
from .home import Home
from .memory.place import Place
from .names import is_member_name, is_room_name, is_topic
from .ping import Ping
from .said import Said
from .texts import count, digested_text, fetched_text, posted_text, rooms_text

__all__ = ["ACTIONS", "DEFAULT_WAIT_SECONDS", "MAX_WAIT_SECONDS", "NOTHING_NEW", "Seat"]

#: Messages of a fetch that does not say how many.
DEFAULT_FETCH_MESSAGES = 20

#: Most messages of one fetch; a room keeps no more.
MAX_FETCH_MESSAGES = 500

#: Seconds of a wait that does not say how long: below the minute after which many clients give a tool up.
DEFAULT_WAIT_SECONDS = 55

#: Longest wait.
MAX_WAIT_SECONDS = 300

#: What a wait answers whose time is over.
NOTHING_NEW = "Nothing new."


class Seat:
    """A named place at the rooms of ``home``. Close it, or use it as a context manager.

    Raises:
        UsageProblem: ``name`` is no member's name.
    """

    def __init__(
        self,
        home: Home,
        name: str,
        *,
        secret: str | None = None,
        grace_seconds: float = 5.0,
        memory: Place | None = None,
    ) -> None:
        if not is_member_name(name):
            raise UsageProblem(
                f"not a member's name: {name!r}",
                hint="use 1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit",
            )
        self.name = name
        self._home = home
        self._secret = secret
        self._grace_seconds = grace_seconds
        self._client: Client | None = None
        self._connecting = anyio.Lock()
        self._memory = memory
        self._epochs: dict[str, str] = {}
        self._joined: set[str] = set()  # on the connection there is now
        self._untold = Ping()  # what `wait` has not said yet
        self._unheard = ""  # what it has said to somebody who had gone
        self._ears = [self._untold]
        self._is_listening = False
        self._has_changed = anyio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave all rooms. A later call connects again."""
        client, self._client = self._client, None
        self._joined.clear()
        if client is not None:
            await client.aclose()
            self._wake()

    async def client(self) -> Client:
        """The one connection of this seat, made now if need be.

        Raises:
            RoundtableError: there is none and none can be made.
        """
        async with self._connecting:
            if self._client is None or self._client.is_closed:
                await self.aclose()
                self._client = await reach(
                    self._home, name=self.name, secret=self._secret, grace_seconds=self._grace_seconds
                )
                self._wake()
            return self._client

    async def pings(self) -> AsyncIterator[str]:
        """For each burst of activity in rooms joined here, one line of at most 300 characters; endless.

        Makes no connection: it hears on whichever there is, over lost ones too.
        """
        ear = Ping()
        self._ears.append(ear)
        try:
            while True:
                with anyio.CancelScope(deadline=ear.due_at if ear.due_at is not None else float("inf")):
                    await self._hear()
                if ear.due_at is not None and ear.due_at <= anyio.current_time():
                    yield ear.take()
        finally:
            self._ears.remove(ear)

    async def call(self, action: str, arguments: Mapping[str, Any]) -> Said:
        """Do ``action`` with arguments named as on the wire (``perMessage``); the door for tools.

        Unknown actions and arguments, missing ones and wrong types are answered, without a connection.
        """
        entry = ACTIONS.get(action)
        if entry is None:
            return _wrong(f"Unknown action: {harmless_line(action)[:64]}. Use one of {', '.join(ACTIONS)}.")
        required, optional, method = entry
        missing = [name for name in required if arguments.get(name) in (None, "")]
        if missing:
            return _wrong(f"Missing {' and '.join(repr(name) for name in missing)} parameter")
        given = {name: value for name, value in arguments.items() if value is not None}
        for name, value in given.items():
            if name not in required and name not in optional:
                takes = ", ".join(required + optional) or "none"
                return _wrong(f"Unknown parameter {harmless_line(name)[:64]!r}. {action} takes {takes}.")
            kind, called = _KINDS.get(name, _WHOLE_NUMBER)
            if not isinstance(value, kind) or isinstance(value, bool):
                return _wrong(f"'{name}' must be {called}")
        return await method(self, **{_PYTHON_NAMES.get(name, name): value for name, value in given.items()})

    async def rooms(self) -> Said:
        """One line of at most 300 characters per room."""

        async def ask(client: Client) -> str:
            rooms = sorted(
                await client.rooms(),
                key=lambda info: (
                    all(member.session_id != client.session_id for member in info.members),
                    info.name,
                ),
            )
            return rooms_text(rooms)

        return await self._do("rooms", ask)

    async def join(self, room: str, topic: str | None = None) -> Said:
        """Become a member; creates the room."""
        if problem := _room_problem(room):
            return _wrong(problem)
        if topic and not is_topic(topic):
            return _wrong("'topic' must be one line of at most 200 characters")

        async def ask(client: Client) -> str:
            joined = await client.join(room, topic or None)
            for ear in self._ears:
                if self._epochs.get(room) != joined.epoch:
                    ear.forget(room)
                if room not in self._joined:
                    # The answer tells of what was there before.
                    ear.know(room, joined.last_seq)
            self._epochs[room] = joined.epoch
            self._joined.add(room)
            self._wake()
            about = f" — {harmless_line(joined.topic)}" if joined.topic else ""
            text = (
                f"Joined #{room}{about}. {count(len(joined.members), 'member')}, "
                f"{count(joined.unread, 'unread message')}."
            )
            if joined.unread:
                text += " Use digest to catch up."
            if joined.shared_with:
                text += (
                    f" {count(joined.shared_with, 'other session')} here under your name too: "
                    "you share one cursor, so each sees as read what the other has read."
                )
            return text

        return await self._do("join", ask)

    async def leave(self, room: str) -> Said:
        """End the membership; the cursor stays."""
        if problem := _room_problem(room):
            return _wrong(problem)

        async def ask(client: Client) -> str:
            await client.leave(room)
            self._epochs.pop(room, None)
            self._joined.discard(room)
            for ear in self._ears:
                ear.forget(room)
            return f"Left #{room}."

        return await self._do("leave", ask)

    async def post(self, room: str, message: str, reply_to: str | None = None) -> Said:
        """Say something to everybody in the room."""
        if problem := _room_problem(room):
            return _wrong(problem)
        if not message:
            return _wrong("Missing 'message' parameter")
        # Made here, so that a repetition after a lost connection cannot say it twice.
        id_ = uuid4().hex

        async def ask(client: Client) -> str:
            posted = await client.post(room, message, reply_to=reply_to, id=id_, epoch=self._epochs.get(room))
            for ear in self._ears:
                ear.own(room, posted.message.seq)
            # Joining again changes nothing and tells who is there.
            joined = await client.join(room)
            is_alone = all(member.session_id == client.session_id for member in joined.members)
            return posted_text(posted, is_alone=is_alone)

        return await self._do("post", ask)

    async def digest(self, room: str, budget: int | None = None, per_message: int | None = None) -> Said:
        """What is unread, bounded, and the cursor moved past it."""
        return await self._digest("digest", room, budget, per_message)

    async def peek(self, room: str, budget: int | None = None, per_message: int | None = None) -> Said:
        """What a digest would show; the cursor stays."""
        return await self._digest("peek", room, budget, per_message)

    async def fetch(
        self,
        room: str,
        after_seq: int | None = None,
        limit: int | None = None,
        max_chars: int | None = None,
        seq: int | None = None,
        offset: int | None = None,
    ) -> Said:
        """Whole messages after ``after_seq`` (else the cursor), or one body from ``offset`` on; the cursor stays."""
        if problem := _room_problem(room):
            return _wrong(problem)
        if limit is not None and not 1 <= limit <= MAX_FETCH_MESSAGES:
            return _wrong(f"'limit' must be 1 to {MAX_FETCH_MESSAGES}")
        if (seq is not None and seq < 1) or (offset is not None and offset < 0):
            return _wrong("'seq' counts from 1 and 'offset' from 0")
        if offset and seq is None:
            return _wrong("'offset' needs 'seq', the message whose body is to be read on")
        if seq is not None and after_seq is not None:
            return _wrong("give 'seq' for one message or 'afterSeq' for those after it, not both")

        async def ask(client: Client) -> str:
            epoch = self._epochs.get(room)
            if seq is not None:
                page = await client.fetch(room, seq - 1, 1, epoch=epoch)
                return fetched_text(
                    room, page, after_seq=seq - 1, max_chars=max_chars, seq=seq, offset=offset or 0
                )
            start = after_seq
            if start is None:
                # Asking for the beginning moves nothing and answers with where the cursor is.
                start = await client.set_cursor(room, 0, epoch=epoch)
            page = await client.fetch(room, start, limit or DEFAULT_FETCH_MESSAGES, epoch=epoch)
            return fetched_text(room, page, after_seq=max(0, start), max_chars=max_chars)

        return await self._do("fetch", ask)

    async def export(self, room: str, path: str) -> Said:
        """Write all the room retains to a file under the memory's ``raw/``; for the writer role, and nothing moves."""
        if self._memory is None:
            return _wrong("This seat has no memory folder to export to.")
        place = self._memory
        if refusal := place.refusal(self.name, "export rooms for memory"):
            return _wrong(refusal)
        if problem := _room_problem(room):
            return _wrong(problem)
        try:
            check_path(place, path)
        except RoundtableError as rule:
            return _wrong(_told(rule))

        async def ask(client: Client) -> str:
            exported = await export(client, room, path, place=place, epoch=self._epochs.get(room))
            return exported_text(exported, room)

        return await self._do("export", ask)

    async def wait(
        self, rooms: Sequence[str] | None = None, timeout_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> Said:
        """The ping line as soon as others have posted in ``rooms`` (else in all joined here), or ``Nothing new.``.

        What was posted since it was last said, and has not been digested, is said at once. Makes no connection and
        moves no cursor.
        """
        if not 0 <= timeout_seconds <= MAX_WAIT_SECONDS:
            return _wrong(f"'timeoutSeconds' must be 0 to {MAX_WAIT_SECONDS}")
        for room in rooms or ():
            if problem := _room_problem(room):
                return _wrong(problem)
        # A point in time: what is done meanwhile does not make it later.
        with anyio.CancelScope(deadline=anyio.current_time() + timeout_seconds):
            while True:
                if problem := self._deaf(rooms):
                    return _wrong(problem)
                if line := self._unheard or self._untold.take(rooms or None):
                    self._unheard = ""
                    return Said(line)
                await self._hear()
        return Said(NOTHING_NEW)

    def say_again(self, said: Said) -> None:
        """What a wait answered reached nobody: the next one says it, unless a digest comes before."""
        if not said.is_error and said.text != NOTHING_NEW:
            self._unheard = said.text
            self._wake()

    def _deaf(self, rooms: Sequence[str] | None) -> str:
        """Why nothing can be heard of ``rooms``."""
        if self._client is not None and self._client.is_closed:
            return "Roundtable wait failed: roundtable broker connection closed — join the room again first"
        if not rooms and not self._joined:
            return "Not a member of any room; join one first"
        missing = [room for room in rooms or () if room not in self._joined]
        return f'Not a member of room "{missing[0]}"; join it first' if missing else ""

    async def _hear(self) -> None:
        """Let every ear hear what comes next. One waits at the connection, the others for what it hears.

        Returns also when the connection came, went, or somebody joined.
        """
        client = self._client
        if self._is_listening or client is None or client.is_closed:
            await self._has_changed.wait()
            return
        self._is_listening = True
        try:
            heard = [await client.next_activity(), *client.take_activity()]
            now = anyio.current_time()
            for activity in heard:
                for ear in self._ears:
                    ear.feed(activity, now)
        except RoundtableError:
            # Gone; whoever waits looks again.
            pass
        finally:
            self._is_listening = False
            self._wake()

    def _wake(self) -> None:
        self._has_changed.set()
        self._has_changed = anyio.Event()

    async def _digest(self, action: str, room: str, budget: int | None, per_message: int | None) -> Said:
        if problem := _room_problem(room):
            return _wrong(problem)
        is_peek = action == "peek"

        async def ask(client: Client) -> str:
            found = await client.digest(
                room, budget=budget, per_message=per_message, peek=is_peek, epoch=self._epochs.get(room)
            )
            if not is_peek:
                self._unheard = ""
                for ear in self._ears:
                    ear.know(room, found.consumed_seq)
            return digested_text(room, found, is_peek=is_peek)

        return await self._do(action, ask)

    async def _do(self, action: str, ask: Callable[[Client], Awaitable[str]]) -> Said:
        """Ask with a connection; once more if the one there was turned out to be lost."""
        for is_last in (False, True):
            try:
                client = await self.client()
            except RoundtableError as problem:
                return _wrong(f"Roundtable not connected: {_told(problem)}")
            try:
                return Said(await ask(client))
            except ConnectionLost as problem:
                if is_last:
                    return _wrong(f"Roundtable {action} failed: {_told(problem)}")
            except RoundtableError as problem:
                return _wrong(f"Roundtable {action} failed: {_told(problem)}")
        raise AssertionError("unreachable: the second round returns")


def _room_problem(room: object) -> str:
    if not room:
        return "Missing 'room' parameter"
    if not isinstance(room, str) or not is_room_name(room):
        return "'room' must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or digit"
    return ""


def _told(problem: RoundtableError) -> str:
    return f"{harmless_line(problem.message)}{f' — {problem.hint}' if problem.hint else ''}"


def _wrong(text: str) -> Said:
    return Said(text, is_error=True)


_Method = Callable[..., Awaitable[Said]]

#: Action -> required parameters, optional ones, method.
ACTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], _Method]] = {
    "rooms": ((), (), Seat.rooms),
    "join": (("room",), ("topic",), Seat.join),
    "leave": (("room",), (), Seat.leave),
    "post": (("room", "message"), ("replyTo",), Seat.post),
    "digest": (("room",), ("budget", "perMessage"), Seat.digest),
    "peek": (("room",), ("budget", "perMessage"), Seat.peek),
    "fetch": (("room",), ("afterSeq", "limit", "maxChars", "seq", "offset"), Seat.fetch),
    "export": (("room", "path"), (), Seat.export),
    "wait": ((), ("rooms", "timeoutSeconds"), Seat.wait),
}

_Kind = tuple[type | tuple[type, ...], str]

_TEXT: _Kind = (str, "text")
_WHOLE_NUMBER: _Kind = (int, "a whole number")

#: Parameters that are no whole number.
_KINDS: dict[str, _Kind] = {
    "room": _TEXT,
    "message": _TEXT,
    "replyTo": _TEXT,
    "topic": _TEXT,
    "path": _TEXT,
    "rooms": (list, "a list of room names"),
    "timeoutSeconds": ((int, float), "a number of seconds"),
}

_PYTHON_NAMES = {
    "replyTo": "reply_to",
    "perMessage": "per_message",
    "afterSeq": "after_seq",
    "maxChars": "max_chars",
    "timeoutSeconds": "timeout_seconds",
}
