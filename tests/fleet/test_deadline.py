"""Deadlines: points on a clock that only ever come earlier."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.deadline import NEVER, Deadline, parse_duration

_MOMENTS = st.floats(min_value=-1e9, max_value=1e12)
_SECONDS = st.floats(min_value=0, max_value=1e9)
_FRACTIONS = st.floats(min_value=0, max_value=1)
_DEADLINES = st.builds(Deadline, _MOMENTS) | st.just(NEVER)


def test_a_deadline_is_fixed_once() -> None:
    deadline = Deadline.after(90, now=10)
    assert deadline == Deadline(100)
    assert deadline.remaining(40) == 60
    assert deadline.remaining(100) == 0
    assert deadline.remaining(170) == 0
    assert not deadline.has_passed(99.9)
    assert deadline.has_passed(100)
    assert deadline.has_passed(101)


def test_no_seconds_are_no_deadline() -> None:
    assert Deadline.after(None, now=5) is NEVER
    assert NEVER.at == math.inf
    assert NEVER.remaining(1e300) == math.inf
    assert not NEVER.has_passed(1e300)
    assert Deadline.after(0, now=5).has_passed(5)


def test_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="number"):
        Deadline(math.nan)


def test_a_part_of_what_is_left() -> None:
    assert Deadline(110).part(0.8, now=10) == Deadline(90)
    assert Deadline(110).part(0.8, now=60) == Deadline(100)
    assert NEVER.part(0.8, now=10) is NEVER
    assert NEVER.part(0, now=10) is NEVER
    assert Deadline(-math.inf).part(0.5, now=10) == Deadline(-math.inf)


def test_a_part_of_what_has_passed_has_passed() -> None:
    assert Deadline(100).part(0.8, now=170) == Deadline(100)


@given(_DEADLINES, _FRACTIONS, _MOMENTS)
def test_a_part_never_outlives_the_whole(whole: Deadline, fraction: float, now: float) -> None:
    part = whole.part(fraction, now=now)
    assert part <= whole
    if not whole.has_passed(now):
        assert part.at >= now


@given(_DEADLINES, _DEADLINES)
def test_the_earlier_of_two(one: Deadline, other: Deadline) -> None:
    earlier = one.earlier(other)
    assert earlier in (one, other)
    assert earlier == other.earlier(one)
    assert earlier.at == min(one.at, other.at)


@given(_DEADLINES)
def test_nothing_comes_after_never(deadline: Deadline) -> None:
    assert NEVER.earlier(deadline) == deadline
    assert deadline <= NEVER


@given(_SECONDS, _MOMENTS, _SECONDS)
def test_remaining_and_passed_agree(seconds: float, now: float, later: float) -> None:
    deadline = Deadline.after(seconds, now=now)
    assert (deadline.remaining(now + later) == 0) == deadline.has_passed(now + later)
    assert deadline.remaining(now + later) <= deadline.remaining(now)
    assert deadline.remaining(now + later) >= 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1h1s", 3601), ("1h2m3s", 3723), (" 5s ", 5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert isinstance(parse_duration(text), float)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "0s", "0h0m0s", "5", "s", "1.5s", "-5s", "+5s", "5 s", "5S", "1s1m", "1m1m", "5s!", "x5s", "5ms",
        "٣s", "３s", "1000000000s", "1h\n30m",
    ],
)  # fmt: skip
def test_what_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@given(*[st.integers(min_value=0, max_value=999_999_999)] * 3)
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int) -> None:
    total = hours * 3600 + minutes * 60 + seconds
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == (total or None)


@given(st.text(alphabet="0123456789hms. ", max_size=12))
def test_any_text_is_a_positive_duration_or_none(text: str) -> None:
    seconds = parse_duration(text)
    assert seconds is None or seconds > 0
