"""A CI log that obeys its lines obeys none of ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtable.ci import for_ci_log


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", ": :error::x"),
        ("a\n \t::add-mask::b\r::stop", "a\n \t: :add-mask::b\r: :stop"),
        (":::x", ": ::x"),
        ("\u00a0\u2003::x", "\u00a0\u2003: :x"),
        ("a ##[group]b", "a ## [group]b"),
        ("###[x", "### [x"),
        ("std::vector a::b", "std::vector a::b"),
        ("# [x] ## y", "# [x] ## y"),
        ("", ""),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert for_ci_log(text) == shown


@given(st.text(alphabet=" \t\n\r\v\f\u2028:#[ax"))
def test_no_line_is_a_command_and_only_blanks_are_added(text: str) -> None:
    shown = for_ci_log(text)
    assert not [line for line in shown.replace("\r", "\n").split("\n") if line.lstrip().startswith("::")]
    assert "##[" not in shown
    assert for_ci_log(shown) == shown
    assert shown.replace(" ", "") == text.replace(" ", "")


def test_many_empty_lines_take_no_long() -> None:
    text = "\n" * 300_000
    assert for_ci_log(text) == text
