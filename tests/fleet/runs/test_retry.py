"""Pauses grow, end, and are never the same for everybody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.runs.retry import pause_seconds


def test_they_double_and_end() -> None:
    assert [pause_seconds(attempt, chance=1) for attempt in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert pause_seconds(3, chance=0) == 2


@given(st.integers(1, 500))
def test_chance_is_half_of_it(attempt: int) -> None:
    most = pause_seconds(attempt, chance=1)
    assert most / 2 <= pause_seconds(attempt) <= most <= 30
