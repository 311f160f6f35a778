"""Rooms of hostile messages: for every text that is shown the bound holds, nothing is lost and nothing forged.

``check`` makes one room from a source of randomness and looks at everything that is shown of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

import msgspec

from roundtable import wire
from roundtable.bounded import MAX_BUDGET_CHARS
from roundtable.client import Digested, Page, Posted
from roundtable.digest import NOTHING_NEW, Digest
from roundtable.harmless import harmless, indented
from roundtable.message import Activity, Author, Message
from roundtable.ping import MAX_PING_CHARS, Ping
from roundtable.room import Room
from roundtable.texts import (
    MAX_FETCH_CHARS,
    MAX_ROOM_LINE_CHARS,
    MIN_FETCH_CHARS,
    digested_text,
    fetched_text,
    message_line,
    posted_text,
    room_line,
    rooms_text,
)
from roundtable.transcript import parse, text_line

from . import hostile

__all__ = ["check"]

#: What no text that is shown may hold: controls, other line breaks than the newline, bidirectional marks.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_VERBATIM = re.compile(r"\[(\d\d:\d\d)\] ([^ #]+)#(\d+)(?: \(reply to ([^ #]+#\d+)\))?: ")
_HEADLINE = re.compile(r"· ([^ #]+)#(\d+): ")
_MARKER = re.compile(
    r"\((?:(\d+) older messages? collapsed — fetch with afterSeq (\d+), limit (\d+) to read them)?"
    r"(?:; )?(?:(\d+)(?: older messages?)? no longer retained)?\)"
)
_ONWARD = re.compile(r"\((\d+) more — fetch with afterSeq (\d+) to go on\)")
_SLICED = re.compile(
    r"\(characters (\d+) to (\d+) of (\d+) of ([^ #]+)#(\d+) — fetch with seq \d+, offset (\d+) to go on\)"
)

_BUDGETS = (None, -5, 0, 1, 80, 199, 200, 201, 800, 2000, 5000, 10**7)
_SHARES = (None, 0, 79, 80, 81, 600, 5000, 10**9)


@dataclass
class _Case:
    """A room and all that was ever said in it."""

    room: Room
    said: list[Message]

    @property
    def kept(self) -> list[Message]:
        return self.said[self.room.first_seq - 1 :]


def check(random: Random) -> None:
    """Make one room and look at all that is shown of it. Raises AssertionError at what must not be."""
    case = _make(random)
    for reader in [*{message.author.name for message in case.said[-3:]}, "late"]:
        for _ in range(2):
            _check_digest(random, case, reader)
    _check_texts(random, case)
    _check_fetch(random, case)
    if case.said:
        page = case.kept[-20:]
        entries = parse("".join(map(text_line, page)))
        assert [entry.text for entry in entries] == [message.text for message in page]


def _make(random: Random) -> _Case:
    room = Room(
        hostile.room_name(random),
        epoch="e",
        encode=wire.encode_message,
        max_messages=random.choice((1, 3, 20, 500)),
        max_bytes=random.choice((200, 5000, 64 * 1024 * 1024)),
    )
    authors = [Author(f"s{number}", hostile.name(random)) for number in range(random.randint(1, 5))]
    for author in authors:
        room.join(author, joined_at=0, topic=random.choice((None, "T" * 200, "a topic")))
    said: list[Message] = []
    clock = random.choice((0, 1_700_000_000_000))
    for _ in range(random.choice((0, 1, 3, 4, 10, 40)) if random.random() < 0.97 else 520):
        author = random.choice(authors)
        kept = said[room.first_seq - 1 :]
        answered = random.choice(kept) if kept and random.random() < 0.3 else None
        reply_to: str | int | None = None
        if answered is not None:
            reply_to = random.choice((answered.id, answered.seq, f"{answered.author.name}#{answered.seq}"))
        clock += random.randint(0, 10**7)
        text = hostile.text(random)
        posted = room.post(
            author,
            text,
            id=f"i{len(said)}",
            timestamp=clock,
            size=len(text.encode()),
            reply_to=reply_to,
        )
        said.append(posted.message)
        if random.random() < 0.1:
            room.set_cursor(random.choice(authors).name, random.randint(-3, len(said) + 3))
    return _Case(room, said)


def _check_digest(random: Random, case: _Case, reader: str) -> None:
    room = case.room
    budget, share = random.choice(_BUDGETS), random.choice(_SHARES)
    after = random.choice((None, None, -1, 0, room.last_seq // 2, room.last_seq + 1))
    is_others_only = random.random() < 0.3
    found, again = (
        room.digest(reader, after_seq=after, is_others_only=is_others_only, budget=budget, per_message=share)
        for _ in range(2)
    )
    assert found == again, "not the same twice"
    start = room.cursor(reader) if after is None else max(0, after)
    unread = [
        message
        for message in case.kept
        if message.seq > start and not (is_others_only and message.author.name == reader)
    ]
    assert found.total == len(unread)
    assert found.verbatim + found.headlines + found.collapsed == found.total
    assert found.consumed_seq == (unread[-1].seq if unread else 0)
    counted = min(max(2000 if budget is None else budget, 200), MAX_BUDGET_CHARS)
    _check_harmless(found.text)
    lost = max(0, min(room.first_seq - 1, room.last_seq) - start)
    lines = found.text.split("\n")
    if not unread:
        assert found.text == NOTHING_NEW or _MARKER.fullmatch(found.text), found.text
        return
    if found.collapsed or lost:
        marker = _MARKER.fullmatch(lines.pop(0))
        assert marker is not None, "no marker"
        assert len(marker[0]) <= 200
        assert int(marker[1] or 0) == found.collapsed
        assert int(marker[4] or 0) == lost
        if found.collapsed:
            # Followed word for word it yields every collapsed body, whole.
            page = room.after(int(marker[2]), limit=int(marker[3]), max_bytes=wire.MAX_FETCH_BYTES)
            bodies = {
                body.seq: body.text for body in (msgspec.json.decode(one, type=Message) for one in page)
            }
            for message in unread[: found.collapsed]:
                assert bodies[message.seq] == message.text, f"the marker does not lead to {message.seq}"
    assert len("\n".join(lines)) < counted, "over the budget"
    _check_shown(found, unread, lines, min(600 if share is None else max(share, 80), counted))


def _check_shown(found: Digest, unread: list[Message], lines: list[str], share: int) -> None:
    """Headlines, then whole messages, oldest first, each as its author wrote it and nobody else."""
    ours = [number for number, line in enumerate(lines) if not line.startswith("    ")]
    shown = unread[found.collapsed :]
    assert len(ours) == len(shown), "a line of a body passes for one of ours"
    for number, message in zip(ours, shown, strict=True):
        line = lines[number]
        if message in shown[: found.headlines]:
            head = _HEADLINE.match(line)
            assert head is not None, line
            assert (head[1], int(head[2])) == (message.author.name, message.seq)
            assert len(line) - head.end() <= 102
            continue
        head = _VERBATIM.match(line)
        assert head is not None, line
        assert (head[2], int(head[3]), head[4]) == (message.author.name, message.seq, message.reply_to)
        end = ours[ours.index(number) + 1] if number != ours[-1] else len(lines)
        body = "\n".join([line[head.end() :], *lines[number + 1 : end]])
        cut = re.fullmatch(r"(.*) …\(\+(\d+) chars\)", body, re.DOTALL)
        if cut and len(message.text.rstrip()) > share:
            assert cut[1] == indented(message.text[:share])
        else:
            assert body.rstrip() == indented(message.text).rstrip()


def _check_texts(random: Random, case: _Case) -> None:
    room = case.room
    for message in case.kept[-3:]:
        line = message_line(message)
        _check_harmless(line)
        assert all(rest.startswith("    ") for rest in line.split("\n")[1:])
        said = posted_text(Posted(message, random.randint(0, 500)), is_alone=random.random() < 0.5)
        assert "\n" not in said
        assert len(said) < 400
    info = room.info("late")
    line = room_line(info)
    _check_harmless(line)
    assert "\n" not in line
    assert len(line) <= MAX_ROOM_LINE_CHARS
    assert len(rooms_text([info] * random.choice((0, 1, 100)))) <= 20_000 + 100
    found = room.digest("late", budget=random.choice(_BUDGETS))
    digested = Digested(
        found.text, found.total, found.verbatim, found.headlines, found.collapsed, found.consumed_seq, 0,
        room.first_seq, room.last_seq,
    )  # fmt: skip
    head, _, rest = digested_text(room.name, digested, is_peek=True).partition("\n")
    assert rest == found.text
    assert len(head) < 250
    ping = Ping()
    for message in case.said[-50:]:
        ping.feed(Activity(room.name, message.author.name, message.seq), now=0)
    said = ping.take()
    assert len(said) <= MAX_PING_CHARS
    assert "\n" not in said


def _check_fetch(random: Random, case: _Case) -> None:
    """Reading on as the text says shows every body, whole, each time within what was asked for."""
    room, kept = case.room, case.kept
    if not kept:
        return
    asked = random.choice((None, 1, 200, 333, 5000, 10**9))
    bound = min(max(asked or 20_000, MIN_FETCH_CHARS), MAX_FETCH_CHARS)
    after, seen = room.first_seq - 1, {message.seq: "" for message in kept}
    seq: int | None = None
    offset = 0
    # Of 200 characters a head with two names takes 150, and a line break shows as five.
    for _ in range(5 * len(kept) + sum(len(message.text) for message in kept) // 5 + 5):
        start = after if seq is None else seq - 1
        page = _page(room, start, 20 if seq is None else 1)
        text = fetched_text(room.name, page, after_seq=start, max_chars=asked, seq=seq, offset=offset)
        _check_harmless(text)
        head, *lines = text.split("\n")
        sliced = _SLICED.fullmatch(lines[-1])
        onward = _ONWARD.fullmatch(lines[-1])
        if sliced or onward:
            lines.pop()
        assert len("\n".join(lines)) <= bound, "more than was asked for"
        assert len(head) < 250
        ours = [number for number, line in enumerate(lines) if not line.startswith("    ")]
        for index, number in enumerate(ours):
            end = ours[index + 1] if index + 1 < len(ours) else len(lines)
            message = page.messages[index]
            before = f"[{message.author.name}#{message.seq}]"
            before += f" (reply to {message.reply_to}) " if message.reply_to else " "
            assert lines[number].startswith(before), lines[number]
            shown = "\n".join([lines[number][len(before) :], *lines[number + 1 : end]])
            seen[message.seq] += shown
            last = message.seq
        if sliced:
            assert int(sliced[2]) > offset, "no progress"
            seq, offset = int(sliced[5]), int(sliced[6])
        elif onward or (seq is not None and last < room.last_seq):
            after, seq, offset = last, None, 0
        else:
            break
    else:
        raise AssertionError("reading on never ends")
    for message in kept:
        # A slice may part a "\r\n", which then shows as two breaks.
        wanted = indented(message.text).replace("\n    ", "")
        assert seen[message.seq].replace("\n    ", "") == wanted, f"the body of {message.seq} is not whole"


def _page(room: Room, after_seq: int, limit: int) -> Page:
    found = room.after(after_seq, limit=limit, max_bytes=wire.MAX_FETCH_BYTES)
    messages = tuple(msgspec.json.decode(one, type=Message) for one in found)
    return Page(messages, room.first_seq, room.last_seq, 0)


def _check_harmless(text: str) -> None:
    assert _UNSAFE.search(text) is None, "a control is shown"
    assert harmless(text) == text
    assert text.splitlines() == text.split("\n") or text.endswith("\n"), "a line break that is none"
    text.encode()
