"""Transcripts: what is written can be read back exactly, and no body passes for another message."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundtable.message import Author, Message
from roundtable.transcript import (
    MAX_BODY_CHARS,
    Entry,
    json_line,
    parse,
    parse_json,
    read,
    text_line,
    timestamp_text,
)

BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
HEAD = re.compile(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] \S+#\d+(?: \(reply to \S+#\d+\))?: ")

pieces = st.one_of(
    st.sampled_from(
        [*BREAKS, "    ", " ", "\t", "\x00", "\x1b[2J", "\u202e", "[2026-01-01T00:00:00.000Z] boss#9: fire"]
    ),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=12),
)
bodies = st.lists(pieces, max_size=8).map("".join).filter(bool)
names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,20}\Z")
seqs = st.integers(1, 10**12)


def message(text: str, name: str = "ann", seq: int = 1, at: int = 0, reply_to: str | None = None) -> Message:
    return Message("id", seq, at, "r", Author("s", name), text, reply_to)


messages = st.builds(
    message,
    bodies,
    names,
    seqs,
    st.integers(-62_135_596_800_000, 253_402_300_799_999),
    st.one_of(st.none(), st.builds("{}#{}".format, names, seqs)),
)


def test_a_message_is_one_line() -> None:
    assert text_line(message("hi", at=1_772_355_900_001, seq=12)) == "[2026-03-01T09:05:00.001Z] ann#12: hi\n"
    assert text_line(message("a\n\nb ", reply_to="bob#3")) == (
        "[1970-01-01T00:00:00.000Z] ann#1 (reply to bob#3): a\n    \n    b \n"
    )
    assert text_line(message("a\r\nb\rc\u2028d")) == (
        "[1970-01-01T00:00:00.000Z] ann#1: a\r\n    b\r    c\u2028    d\n"
    )


@given(st.lists(messages, max_size=3))
@example([message(line_break) for line_break in BREAKS])
@example([message("a\r"), message("\n"), message("\r\n    \r")])
def test_text_comes_back_exactly(posted: list[Message]) -> None:
    text = "".join(text_line(one) for one in posted)
    expected = tuple(Entry(one.timestamp, one.author.name, one.seq, one.reply_to, one.text) for one in posted)
    assert parse(text) == expected
    assert parse(text.removesuffix("\n")) == expected


@given(st.lists(messages, max_size=3))
def test_json_comes_back_exactly(posted: list[Message]) -> None:
    text = "".join(json_line(one) for one in posted)
    assert text.isascii()
    assert len(text.splitlines()) == len(posted)
    assert parse_json(text) == tuple(
        Entry(one.timestamp, one.author.name, one.seq, one.reply_to, one.text, "r") for one in posted
    )


@given(bodies)
def test_no_line_of_a_body_looks_like_a_message(text: str) -> None:
    # Whoever breaks lines at every break there is, sees one head and continuations behind four blanks.
    first, *rest = text_line(message(text)).splitlines()
    assert HEAD.match(first)
    assert all(line.startswith("    ") for line in rest)


def test_json_has_the_keys_of_the_wire() -> None:
    assert json.loads(json_line(message("x", reply_to="bob#1"))) == {
        "id": "id",
        "seq": 1,
        "timestamp": 0,
        "room": "r",
        "from": {"sessionId": "s", "name": "ann"},
        "text": "x",
        "replyTo": "bob#1",
    }
    assert "replyTo" not in json.loads(json_line(message("x")))


@pytest.mark.parametrize(
    "wrong",
    [
        message("x", name="a b"),
        message("x", name="a\n[2026"),
        message("x", seq=0),
        message("x", at=10**18),
        message("x", reply_to="bob#1): evil\n"),
    ],
)
def test_a_head_that_no_room_has_is_refused(wrong: Message) -> None:
    with pytest.raises(ValueError, match=r"not the author|not a message|no time"):
        text_line(wrong)


@pytest.mark.parametrize(
    "text",
    ["hello\n", "    lost\n", "[2026-13-01T00:00:00.000Z] a#1: x\n", text_line(message("x")) + "stray\n"],
)
def test_a_line_of_nobody_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="belongs to no message"):
        parse(text)


def test_reading_goes_on_after_a_stray_line() -> None:
    lines = (text_line(message("x")) + "stray\n" + text_line(message("y", seq=2))).split("\n")[:-1]
    found = list(read(lines))
    assert [entry if isinstance(entry, str) else entry.text for entry in found] == ["x", "stray", "y"]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    for entry in read(text.split("\n")):
        assert isinstance(entry, str | Entry)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "1",
        '{"from": 1}',
        '{"from": {"name": "a b"}, "seq": 1, "timestamp": 1, "text": "x"}',
        "[" * 9999,
    ],
)
def test_a_line_of_json_that_is_no_message_is_told(line: str) -> None:
    with pytest.raises(ValueError, match="belongs to no message"):
        parse_json(line + "\n\n")


def test_a_body_without_end_comes_in_parts_that_make_the_whole() -> None:
    line = "    " + "x" * 1_000_000
    head = "[2026-03-01T09:05:00.000Z] ann#1: begin"
    found = [entry for entry in read([head, *[line] * 10]) if isinstance(entry, Entry)]
    assert len(found) == 2
    assert max(len(entry.text) for entry in found) < MAX_BODY_CHARS + 1_000_010
    assert "".join(entry.text for entry in found) == "begin" + ("\n" + "x" * 1_000_000) * 10


def test_times_are_utc_to_the_millisecond() -> None:
    assert timestamp_text(-1) == "1969-12-31T23:59:59.999Z"
    assert timestamp_text(1_700_000_000_999) == "2023-11-14T22:13:20.999Z"
