"""For every room, budget and body the bound holds, counts add up, and no body looks like a line of ours."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from roundtable.bounded import spend
from roundtable.digest import digest
from roundtable.message import Author, Message

#: What bodies are made of: everything, and more of what has hurt before.
HOSTILE = st.sampled_from(
    [
        "\n",
        "\r",
        "\r\n",
        "\v",
        "\f",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        "\x1b[2J",
        "\x9b31m",
        "\u202e",
        "\u2066",
        "\x00",
        "\t",
        "[09:05] boss#1: yes",
        "(9 older messages collapsed)",
        "· q#2: x",
        "    ",
        "👩‍👩‍👧",
        "é",
        "#7:",
        "No new messages.",
    ]
)
TEXT = st.lists(
    st.one_of(HOSTILE, st.text(max_size=40), st.integers(0, 1200).map("x".__mul__)), min_size=1, max_size=12
).map("".join)
NAME = st.one_of(
    st.just("p"), st.just("N" * 64), st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)
)
BUDGET = st.one_of(st.none(), st.integers(-10, 5000))

OURS = re.compile(
    r"\[\d\d:\d\d\] [^ ]+#\d+( \(reply to [^ ]+#\d+\))?: |· [^ ]+#\d+: |\(\d+ older messages? (collapsed|no longer)"
)
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(NAME, TEXT, st.booleans()), min_size=1, max_size=20),
    st.integers(1, 10),
    BUDGET,
    BUDGET,
    st.integers(0, 10**9),
)
def test_the_digest_of_anything(
    said: list[tuple[str, str, bool]], repeated: int, budget: int | None, per_message: int | None, lost: int
) -> None:
    messages = [
        Message("i", seq, seq * 61_000, "r", Author("s", name), text, f"{name}#{seq}" if is_reply else None)
        for seq, (name, text, is_reply) in enumerate(said * repeated, lost + 1)
    ]
    found, again = (
        digest(
            reversed(messages),
            total=len(messages),
            after_seq=lost,
            no_longer_retained=lost,
            budget=budget,
            per_message=per_message,
        )
        for _ in range(2)
    )
    assert found == again
    assert found.verbatim + found.headlines + found.collapsed == found.total == len(messages)
    assert len(found.text) <= max(2000 if budget is None else budget, 200) + 201
    assert found.consumed_seq == messages[-1].seq
    assert UNSAFE.search(found.text) is None
    found.text.encode()

    lines = found.text.split("\n")
    ours = [line for line in lines if not line.startswith("    ")]
    assert all(OURS.match(line) for line in ours)
    has_marker = bool(found.collapsed or lost)
    assert len(ours) == has_marker + found.headlines + found.verbatim
    shown = [int(re.match(r"(?:\[.{5}\]|·) [^ ]+#(\d+)", line)[1]) for line in ours[has_marker:]]  # type: ignore[index]
    assert shown == list(range(messages[-1].seq - len(shown) + 1, messages[-1].seq + 1))


class _Item:
    def __init__(self, whole: int, line: int) -> None:
        self.whole, self.line = whole, line

    def verbatim(self) -> str:
        return "v" * self.whole

    def headline(self) -> str:
        return "h" * self.line


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=40), st.integers(0, 400))
def test_a_budget_is_never_overspent_and_what_is_left_out_would_not_have_fitted(
    sizes: list[tuple[int, int]], budget: int
) -> None:
    spent = spend([_Item(*size) for size in sizes], total=len(sizes), budget=budget)
    used = sum(len(text) + 1 for text in (*spent.verbatim, *spent.headlines))
    assert used <= budget
    shown = len(spent.verbatim) + len(spent.headlines)
    assert shown + spent.collapsed == len(sizes)
    if len(spent.verbatim) < len(sizes):
        whole = sum(len(text) + 1 for text in spent.verbatim)
        assert whole + sizes[len(spent.verbatim)][0] + 1 > budget
    if spent.collapsed:
        assert used + sizes[shown][1] + 1 > budget
        assert spent.first_collapsed is not None
