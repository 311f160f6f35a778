"""What a role can do in rooms, as text an agent reads.

One seat is one name and at most one connection, made by the first call that needs it: a seat that is never used
starts no broker. Calls never raise for what can go wrong with rooms; they answer with a text that says what to do.

A broker that went away is reached again by the next call. Memberships are not replayed: what was known of a room
is handed in as its epoch, so a room created anew is noticed and the agent is told to join it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import anyio

from .client import Client, Digested, Page, Posted, reach
from .errors import ConnectionLost, RoundtableError, UsageProblem
from .harmless import harmless_line, indented
from .home import Home
from .message import Message, RoomInfo, is_member_name, is_room_name, is_topic
from .said import Said

__all__ = [
    "DEFAULT_FETCH_CHARS",
    "DEFAULT_FETCH_MESSAGES",
    "MAX_FETCH_CHARS",

    "Seat",
    "digested_text",
    "fetched_text",
    "posted_text",
    "room_line",
    "rooms_text",
]

#: Messages of a fetch that does not say how many.
DEFAULT_FETCH_MESSAGES = 20

#: Most messages of one fetch; a room keeps no more.
MAX_FETCH_MESSAGES = 500

#: Characters of a fetch that does not say how many.
DEFAULT_FETCH_CHARS = 20_000

#: A larger number counts as this one: a whole fetch goes into one context.
MAX_FETCH_CHARS = 200_000

#: A smaller number counts as this one; it must hold the head of a message and some of its text.
MIN_FETCH_CHARS = 200

#: One line of the list of rooms.
MAX_ROOM_LINE_CHARS = 300

#: The whole list of rooms.
MAX_ROOMS_CHARS = 20_000


class Seat:
    """A named place at the rooms of ``home``. Close it, or use it as a context manager.

    Raises:
        UsageProblem: ``name`` is no member's name.
    """

    def __init__(
        self, home: Home, name: str, *, secret: str | None = None, grace_seconds: float = 5.0
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
        self._epochs: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave all rooms. A later call connects again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

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
            return self._client

    async def call(self, action: str, arguments: Mapping[str, Any]) -> Said:
        """Do ``action`` with arguments named as on the wire (``perMessage``); the door for tools.

        Unknown actions and arguments, missing ones and wrong types are answered, without a connection.
        """
        entry = _ACTIONS.get(action)
        if entry is None:
            return _wrong(f"Unknown action: {harmless_line(action)[:64]}. Use one of {', '.join(_ACTIONS)}.")
        required, optional, method = entry
        missing = [name for name in required if arguments.get(name) in (None, "")]
        if missing:
            return _wrong(f"Missing {' and '.join(repr(name) for name in missing)} parameter")
        given = {name: value for name, value in arguments.items() if value is not None}
        for name, value in given.items():
            if name not in required and name not in optional:
                return _wrong(
                    f"Unknown parameter {harmless_line(name)[:64]!r}. {action} takes {', '.join(required + optional)}."
                )
            kind = _KINDS[name]
            if not isinstance(value, kind) or isinstance(value, bool):
                return _wrong(f"'{name}' must be {'text' if kind is str else 'a whole number'}")
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
            self._epochs[room] = joined.epoch
            about = f" — {harmless_line(joined.topic)}" if joined.topic else ""
            text = (
                f"Joined #{room}{about}. {_count(len(joined.members), 'member')}, "
                f"{_count(joined.unread, 'unread message')}."
            )
            if joined.unread:
                text += " Use digest to catch up."
            if joined.shared_with:
                text += (
                    f" {_count(joined.shared_with, 'other session')} here under your name too: "
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

    async def _digest(self, action: str, room: str, budget: int | None, per_message: int | None) -> Said:
        if problem := _room_problem(room):
            return _wrong(problem)
        is_peek = action == "peek"

        async def ask(client: Client) -> str:
            found = await client.digest(
                room, budget=budget, per_message=per_message, peek=is_peek, epoch=self._epochs.get(room)
            )
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


def posted_text(posted: Posted, *, is_alone: bool) -> str:
    """What was posted, what the post has left unread, and whether anybody is there to read it."""
    message, unread = posted.message, posted.unread_before
    text = f"Posted to #{message.room} as {message.author.name}#{message.seq}."
    if unread:
        text += (
            f" {unread} older unread {'is' if unread == 1 else 'are'} now behind your cursor; "
            f"fetch with afterSeq {message.seq - 1 - unread} to read {'it' if unread == 1 else 'them'}."
        )
    if is_alone:
        text += f" Nobody else is in #{message.room} now."
    return text


def digested_text(room: str, found: Digested, *, is_peek: bool) -> str:
    """A digest under one line that says what it covers."""
    head = (
        f"#{room} · {found.total} unread · showing {found.verbatim} verbatim, "
        f"{_count(found.headlines, 'headline')}, {found.collapsed} collapsed · {len(found.text)} chars"
    )
    return f"{head}{' · peek (cursor unchanged)' if is_peek else ''}\n{found.text}"


def rooms_text(rooms: Sequence[RoomInfo]) -> str:
    """A line per room, at most 20,000 characters together."""
    if not rooms:
        return "No active rooms. Use join to create one."
    lines: list[str] = []
    left = MAX_ROOMS_CHARS
    for index, info in enumerate(rooms):
        line = room_line(info)
        if len(line) >= left:
            lines.append(f"({len(rooms) - index} more rooms — `roundtable rooms --json` lists all)")
            break
        lines.append(line)
        left -= len(line) + 1
    return "\n".join(lines)


def room_line(info: RoomInfo) -> str:
    """One line of at most 300 characters: topic, unread, size and members, as many as fit."""
    topic = f" — {harmless_line(info.topic)}" if info.topic else ""
    # A topic of full length would leave too little for the rest.
    room_for_topic = MAX_ROOM_LINE_CHARS - 160
    if len(topic) > room_for_topic:
        topic = topic[: room_for_topic - 1] + "…"
    head = f"#{info.name}{topic} · {info.unread} unread · {info.message_count} msgs · members: "
    names = list(dict.fromkeys(member.name for member in info.members))
    if not names:
        return f"{head}none"
    return head + _names(names, MAX_ROOM_LINE_CHARS - len(head))


def fetched_text(
    room: str,
    page: Page,
    *,
    after_seq: int,
    max_chars: int | None = None,
    seq: int | None = None,
    offset: int = 0,
) -> str:
    """The messages of ``page`` whole, as far as ``max_chars`` go, and how to go on.

    The first is cut into slices if it alone is longer. With ``seq`` only that one is shown, from ``offset``.
    """
    room_chars = min(max(max_chars or DEFAULT_FETCH_CHARS, MIN_FETCH_CHARS), MAX_FETCH_CHARS)
    lost = max(0, page.first_seq - 1 - after_seq) if seq is None else 0
    if seq is not None and (not page.messages or page.messages[0].seq != seq):
        return f"#{room} · message {seq} is not retained (oldest is {page.first_seq}, latest is {page.last_seq})."
    if not page.messages:
        return f"#{room} · nothing after seq {after_seq} (latest is {page.last_seq})."

    lines: list[str] = []
    left = room_chars
    onward = ""
    for message in page.messages:
        if seq is None:
            line = _whole(message)
            if len(line) < left:
                lines.append(line)
                left -= len(line) + 1
                continue
            if lines:
                break
        line, onward = _slice(message, offset, room_chars)
        lines.append(line)
        break
    last = page.messages[len(lines) - 1].seq
    if not onward and last < page.last_seq:
        onward = f"({page.last_seq - last} more — fetch with afterSeq {last} to go on)"
    shown = sum(map(len, lines)) + len(lines) - 1
    what = (
        f"message {seq} from character {offset} (latest is {page.last_seq})"
        if seq is not None
        else f"{_count(len(lines), 'message')} after seq {after_seq} (latest is {page.last_seq})"
    )
    head = f"#{room} · {what} · {shown} chars · cursor unchanged"
    if lost:
        head += f" · {lost} no longer retained"
    return "\n".join([head, *lines, *([onward] if onward else [])])


def _whole(message: Message) -> str:
    return f"{_head(message)}{indented(message.text)}"


def _head(message: Message) -> str:
    reply = f" (reply to {message.reply_to})" if message.reply_to else ""
    return f"[{message.author.name}#{message.seq}]{reply} "


def _slice(message: Message, offset: int, room_chars: int) -> tuple[str, str]:
    """As much of one body from ``offset`` as fits, and the line that says how to go on (``""`` at the end)."""
    text = message.text
    head = _head(message)
    left = room_chars - len(head)
    end = min(len(text), offset + left)
    if len(indented(text[offset:end])) > left:
        # Line breaks take more room shown than stored; the longest slice that fits is found by halving.
        low, high = offset + 1, end
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if len(indented(text[offset:middle])) <= left else (low, middle)
        end = low
    onward = ""
    if end < len(text):
        onward = (
            f"(characters {offset} to {end} of {len(text)} of {message.author.name}#{message.seq} — "
            f"fetch with seq {message.seq}, offset {end} to go on)"
        )
    elif message.seq and offset >= len(text):
        onward = f"(the body has {len(text)} characters)"
    return f"{head}{indented(text[offset:end])}", onward


def _names(names: Sequence[str], room_chars: int) -> str:
    """Names within ``room_chars``, those beyond as ``+N``."""
    whole = ", ".join(names)
    if len(whole) <= room_chars:
        return whole
    shown: list[str] = []
    left = room_chars - len(f"+{len(names)}")
    for name in names:
        if len(name) + 2 > left:
            break
        shown.append(name)
        left -= len(name) + 2
    return ", ".join([*shown, f"+{len(names) - len(shown)}"])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _room_problem(room: str) -> str:
    if not room:
        return "Missing 'room' parameter"
    if not is_room_name(room):
        return "'room' must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or digit"
    return ""


def _told(problem: RoundtableError) -> str:
    return f"{harmless_line(problem.message)}{f' — {problem.hint}' if problem.hint else ''}"


def _wrong(text: str) -> Said:
    return Said(text, is_error=True)


_Method = Callable[..., Awaitable[Said]]

#: Action -> required parameters, optional ones, method.
_ACTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], _Method]] = {
    "rooms": ((), (), Seat.rooms),
    "join": (("room",), ("topic",), Seat.join),
    "leave": (("room",), (), Seat.leave),
    "post": (("room", "message"), ("replyTo",), Seat.post),
    "digest": (("room",), ("budget", "perMessage"), Seat.digest),
    "peek": (("room",), ("budget", "perMessage"), Seat.peek),
    "fetch": (("room",), ("afterSeq", "limit", "maxChars", "seq", "offset"), Seat.fetch),
}

_KINDS: dict[str, type] = {
    "room": str,
    "message": str,
    "replyTo": str,
    "topic": str,
    "budget": int,
    "perMessage": int,
    "afterSeq": int,
    "limit": int,
    "maxChars": int,
    "seq": int,
    "offset": int,
}

_PYTHON_NAMES = {
    "replyTo": "reply_to",
    "perMessage": "per_message",
    "afterSeq": "after_seq",
    "maxChars": "max_chars",
}
