"""What the rooms answer as text an agent reads: bounded, harmless, and saying how to go on.

Pure. A line of the list of rooms has at most 300 characters, a fetch at most what it was asked for, and nothing
is shortened without saying where the rest is.
"""

from __future__ import annotations

from collections.abc import Sequence

from .client import Digested, Page, Posted
from .harmless import harmless_line, indented
from .message import Message, RoomInfo

__all__ = [
    "DEFAULT_FETCH_CHARS",
    "MAX_FETCH_CHARS",
    "MAX_ROOM_LINE_CHARS",
    "MIN_FETCH_CHARS",
    "count",
    "digested_text",
    "fetched_text",
    "message_line",
    "posted_text",
    "room_line",
    "rooms_text",
]

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
        f"{count(found.headlines, 'headline')}, {found.collapsed} collapsed · {len(found.text)} chars"
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
        else f"{count(len(lines), 'message')} after seq {after_seq} (latest is {page.last_seq})"
    )
    head = f"#{room} · {what} · {shown} chars · cursor unchanged"
    if lost:
        head += f" · {lost} no longer retained"
    return "\n".join([head, *lines, *([onward] if onward else [])])


def message_line(message: Message) -> str:
    """One message as it is shown when a room is followed: whole, with its time of day in UTC."""
    minutes = message.timestamp // 60_000
    reply = f" (reply to {message.reply_to})" if message.reply_to else ""
    clock = f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
    return f"[{clock}] {message.author.name}#{message.seq}{reply}: {indented(message.text)}"


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


def count(number: int, what: str) -> str:
    """``1 message``, ``2 messages``."""
    return f"{number} {what}{'' if number == 1 else 's'}"
