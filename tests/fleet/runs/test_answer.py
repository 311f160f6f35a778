"""An answer is read as it streams: its head, its size and its FINAL line, whatever way it is split."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.runs.answer import FINAL_CHARS, HEAD_CHARS, Answer, AnswerReader, Final


def read(data: bytes, size: int = 7) -> Answer:
    reader = AnswerReader()
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    return reader.finish()


def final_of(text: str) -> str | None:
    final = read(text.encode()).final
    return final.text if final else None


@pytest.mark.parametrize(
    ("text", "final"),
    [
        ("FINAL: shard it", "shard it"),
        ("thoughts\nFINAL: shard it\n", "shard it"),
        ("FINAL: one\nFINAL: two\n", "two"),
        ("FINAL: one\nand then more", "one"),
        ("  FINAL:   spaced  \n", "spaced"),
        ("the FINAL: in the middle", None),
        ("final: lower case", None),
        ("FINAL:\n", None),
        ("```\nFINAL: in a fence\n```\n", None),
        ("```python\nFINAL: in a fence\n```\nFINAL: outside\n", "outside"),
        ("~~~\n```\nFINAL: still inside\n~~~\n", None),
        ("````\n```\nFINAL: still inside\n````\nFINAL: out", "out"),
        ("FINAL: kept\n```\nFINAL: not this\n", "kept"),
        ("said\u2028FINAL: after a line separator", "after a line separator"),
        ("said\rFINAL: after a return", "after a return"),
        ("FINAL: red \x1b[31mtext", "red \ufffd[31mtext"),
        ("", None),
    ],
)
def test_final_is_the_last_such_line_outside_fences(text: str, final: str | None) -> None:
    assert final_of(text) == final


def test_a_final_line_is_cut_and_keeps_its_length() -> None:
    final = read(b"FINAL: " + b"x" * 3000).final
    assert final is not None
    assert (final.text, final.chars) == ("x" * FINAL_CHARS, 3000)


def test_conclusions_are_equal_but_for_case_blanks_and_end_punctuation() -> None:
    assert Final("Shard  the queue.", 17).key == Final("shard the queue", 15).key
    assert Final("shard the queue", 15).key != Final("shard the queues", 16).key


@pytest.mark.parametrize("shared", [0, 900, 1_000, 3_000, 5_000, 70_000])
def test_long_conclusions_are_equal_only_to_their_end(shared: int) -> None:
    one, two, again = (
        read(f"FINAL: {'b' * shared}{end}".encode(), size=61).final for end in ("one", "two", "one")
    )
    assert one is not None
    assert two is not None
    assert one.key != two.key
    assert one == again


def test_conclusions_of_nothing_but_punctuation_are_not_equal() -> None:
    assert Final("!!!", 3).key != Final("...", 3).key


def test_a_long_answer_is_posted_by_its_head_and_points_to_the_rest() -> None:
    answer = read(b"y" * (HEAD_CHARS + 5), size=4096)
    assert answer.chars == HEAD_CHARS + 5
    assert (
        answer.text("artifacts/01-a.md") == "y" * HEAD_CHARS + "\n…(+5 chars) full output: artifacts/01-a.md"
    )
    assert read(b"y" * HEAD_CHARS, size=4096).text("unused") == "y" * HEAD_CHARS


@pytest.mark.parametrize(("text", "is_pass"), [("PASS", True), (" pass.\n", True), ("PASS on that", False)])
def test_pass_is_the_whole_answer(text: str, is_pass: bool) -> None:
    assert read(text.encode()).is_pass is is_pass


@pytest.mark.parametrize(("text", "is_empty"), [("", True), (" \n\t\n", True), (".", False)])
def test_blanks_are_no_answer(text: str, is_empty: bool) -> None:
    assert read(text.encode()).is_empty is is_empty


@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_split_of_any_bytes_reads_the_same(data: bytes, size: int) -> None:
    whole = read(data, size=len(data) or 1)
    assert read(data, size=size) == whole
    assert whole.chars == len(data.decode(errors="replace"))


def test_memory_does_not_grow_with_the_answer() -> None:
    chunk = b"z" * 65536  # one line of 16 MiB
    reader = AnswerReader()
    reader.feed(chunk)
    tracemalloc.start()
    for _ in range(256):
        reader.feed(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert reader.finish().chars == 257 * 65536


pieces = st.sampled_from(
    [
        "x",
        "FINAL: a",
        "FINAL:",
        "FI",
        "NAL: b",
        "```",
        "~~~~",
        "\n",
        "\n\n",
        "\r\n",
        "\u2028",
        "  ",
        "y" * 5000,
        "é\n",
    ]
)


@given(st.lists(pieces, max_size=60).map("".join), st.integers(1, 9000))
def test_passing_over_plain_lines_changes_nothing(text: str, size: int) -> None:
    data = text.encode()
    slow = AnswerReader()
    slow._skip_plain = lambda _text: 0  # type: ignore[method-assign]
    slow.feed(data)
    assert read(data, size) == slow.finish()
    assert read(data, size).trimmed_chars == len(text.rstrip())


def test_a_million_lines_take_no_time_of_their_own() -> None:
    reader = AnswerReader()
    chunk = b"y\n" * 32_768
    for _ in range(100):
        reader.feed(chunk)
    assert reader.last_line == "y"
    assert reader.finish().chars == 100 * 65_536
