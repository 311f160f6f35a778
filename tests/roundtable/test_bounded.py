"""The one bound: what is shown whole, what as a line, what is only counted."""

from __future__ import annotations

from dataclasses import dataclass

from roundtable.bounded import floored_budget, floored_per_item, marker_line, spend


@dataclass(frozen=True)
class Thing:
    whole: str
    line: str = "-"

    def verbatim(self) -> str:
        return self.whole

    def headline(self) -> str:
        return self.line


def test_what_fits_is_whole() -> None:
    spent = spend([Thing("aaaa"), Thing("bbb")], total=2, budget=9)
    assert (spent.verbatim, spent.headlines, spent.collapsed) == (("aaaa", "bbb"), (), 0)


def test_the_first_that_does_not_fit_turns_to_headlines_for_good() -> None:
    spent = spend([Thing("aaaa"), Thing("b" * 50, "B"), Thing("c", "C")], total=3, budget=20)
    assert (spent.verbatim, spent.headlines) == (("aaaa",), ("B", "C"))


def test_nothing_takes_a_place_that_something_before_could_not_have() -> None:
    large = Thing("b" * 50, "B" * 50)
    spent = spend([Thing("aaaa"), large, Thing("c", "C")], total=3, budget=20)
    assert (spent.verbatim, spent.headlines, spent.collapsed) == (("aaaa",), (), 2)
    assert spent.first_collapsed is large


def test_a_marker_is_one_line_of_bounded_length() -> None:
    assert marker_line("a\nb  ") == "a b"
    assert len(marker_line("x" * 280_224)) == 200
    assert marker_line("x" * 200) == "x" * 200


def test_floors_and_ceiling() -> None:
    assert [floored_budget(value) for value in (None, -5, 199, 201, 10**15)] == [
        2000,
        200,
        200,
        201,
        1_000_000,
    ]
    assert [floored_per_item(value) for value in (None, 5, 81)] == [600, 80, 81]
