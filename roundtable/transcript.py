"""A room's messages as text that can be read back, exactly.

Pure. A message is one line ``[2026-03-01T09:05:00.000Z] ann#12: text``, with `` (reply to bob#11)`` before the colon
if it answers one. Every line break of its body, of whatever kind, is kept and followed by four blanks, so a reader
that breaks lines anywhere sees no line of a body that could be another message; ``parse`` takes the blanks out again.
Nothing else of a body is changed. The same messages as JSON, one object per line as on the wire: ``json_line``.

Line ends of a transcript are ``\\n``. Whoever reads it from a file must not translate others to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from .message import Message
from .names import is_member_name

__all__ = [
    "MAX_BODY_CHARS",
    "Entry",
    "json_line",
    "parse",
    "parse_json",
    "read",
    "read_json",
    "text_line",
    "timestamp_text",
]

#: No message has more (6 MiB of UTF-8). A longer body in a file is given in parts, so that reading stays bounded.
MAX_BODY_CHARS = 8 * 1024 * 1024

#: What follows every line break of a body.
_CONTINUATION = "    "

#: The breaks that ``harmless`` shows as a newline.
_BREAKS = "\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]"
_BREAK = re.compile(_BREAKS)
_CONTINUED = re.compile(f"({_BREAKS}){_CONTINUATION}")

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_HEAD = re.compile(
    rf"\[(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z)\] ({_NAME})#([1-9][0-9]{{0,18}})"
    rf"(?: \(reply to ({_NAME}#[1-9][0-9]{{0,18}})\))?: ",
    re.ASCII,
)
_REPLY = re.compile(rf"{_NAME}#[1-9][0-9]{{0,18}}", re.ASCII)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a transcript."""

    timestamp: int  #: milliseconds since the epoch
    name: str
    seq: int
    reply_to: str | None  #: ``name#seq``
    text: str  #: as it was posted
    room: str | None = None  #: known from JSON only


def text_line(message: Message) -> str:
    """``message`` as text, with the newline at its end.

    Raises:
        ValueError: a name, number or time that no room has; only a broker that is none could send it.
    """
    name, reply_to = message.author.name, message.reply_to
    if not is_member_name(name) or not 1 <= message.seq < 10**19:
        raise ValueError(f"not the author and number of a message: {name[:80]!r}, {message.seq}")
    if reply_to is not None and not _REPLY.fullmatch(reply_to):
        raise ValueError(f"not a message to reply to: {reply_to[:80]!r}")
    reply = "" if reply_to is None else f" (reply to {reply_to})"
    body = _BREAK.sub(lambda found: found[0] + _CONTINUATION, message.text)
    return f"[{timestamp_text(message.timestamp)}] {name}#{message.seq}{reply}: {body}\n"


def json_line(message: Message) -> str:
    """``message`` as one line of JSON with the wire's keys, all but ASCII escaped, and the newline at its end."""
    body: dict[str, Any] = {
        "id": message.id,
        "seq": message.seq,
        "timestamp": message.timestamp,
        "room": message.room,
        "from": {"sessionId": message.author.session_id, "name": message.author.name},
        "text": message.text,
    }
    if message.reply_to is not None:
        body["replyTo"] = message.reply_to
    return json.dumps(body) + "\n"


def timestamp_text(milliseconds: int) -> str:
    """``2026-03-01T09:05:00.000Z``.

    Raises:
        ValueError: the year would not have four digits.
    """
    try:
        time = _EPOCH + milliseconds * _MILLISECOND
    except OverflowError:
        raise ValueError(f"no time between the years 1 and 9999: {milliseconds}") from None
    return f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def parse(text: str) -> tuple[Entry, ...]:
    """The messages of a whole text transcript.

    Raises:
        ValueError: a line belongs to no message; names its number.
    """
    return _whole(read(_lines(text)))


def parse_json(text: str) -> tuple[Entry, ...]:
    """The messages of a whole JSON transcript.

    Raises:
        ValueError: a line is no message; names its number.
    """
    return _whole(read_json(_lines(text)))


def read(lines: Iterable[str]) -> Iterator[Entry | str]:
    """The messages in ``lines`` (without their ``\\n``), and as it is each line that belongs to none.

    A body over ``MAX_BODY_CHARS`` comes as several entries with the same head.
    """
    head: Entry | None = None
    body: list[str] = []
    size = 0
    for line in lines:
        if head is not None and line.startswith(_CONTINUATION):
            if size > MAX_BODY_CHARS:
                yield _entry(head, body)
                body, size = [""], 0  # so that the parts put together are the whole
            body.append(line)
            size += len(line)
            continue
        if head is not None:
            yield _entry(head, body)
        head, size = None, 0
        started = _started(line)
        if started is None:
            yield line
            continue
        head, first = started
        body, size = [first], len(first)
    if head is not None:
        yield _entry(head, body)


def read_json(lines: Iterable[str]) -> Iterator[Entry | str]:
    """The messages in ``lines`` of JSON, and as it is each line that is none."""
    for line in lines:
        yield _from_json(line) or line


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _whole(found: Iterable[Entry | str]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for entry in found:
        if isinstance(entry, str):
            after = f"after {entries[-1].name}#{entries[-1].seq}" if entries else "at the beginning"
            raise ValueError(f"a line {after} belongs to no message: {entry[:80]!r}")  # noqa: TRY004
        entries.append(entry)
    return tuple(entries)


def _started(line: str) -> tuple[Entry, str] | None:
    """The message that ``line`` begins, without its text, and the first line of that."""
    found = _HEAD.match(line)
    if found is None:
        return None
    try:
        time = datetime.fromisoformat(found[1])
    except ValueError:  # the thirteenth month
        return None
    timestamp = (time - _EPOCH) // _MILLISECOND
    return Entry(timestamp, found[2], int(found[3]), found[4], ""), line[found.end() :]


def _entry(head: Entry, body: list[str]) -> Entry:
    text = _CONTINUED.sub(r"\1", "\n".join(body))
    return Entry(head.timestamp, head.name, head.seq, head.reply_to, text)


def _from_json(line: str) -> Entry | None:
    try:
        body = json.loads(line)
        name, seq, timestamp, text = body["from"]["name"], body["seq"], body["timestamp"], body["text"]
        room, reply_to = body.get("room"), body.get("replyTo")
        timestamp_text(timestamp)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_message = (
        isinstance(name, str)
        and is_member_name(name)
        and isinstance(text, str)
        and type(seq) is int
        and type(timestamp) is int
        and seq >= 1
        and isinstance(room, str | None)
        and isinstance(reply_to, str | None)
    )
    return Entry(timestamp, name, seq, reply_to, text, room) if is_message else None
