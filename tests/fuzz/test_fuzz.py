"""The two targets of ``make fuzz`` for some seconds; a failure there is repeated with the seed it names."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from . import frames, rooms


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_every_bound_holds_for_rooms_of_hostile_messages(seed: int) -> None:
    rooms.check(Random(seed))  # noqa: S311 - it is to be repeated


def test_a_broker_stays_and_serves_whatever_it_is_sent() -> None:
    found = frames.run(seed=20, count=1500)
    assert found.frames >= 1500
    assert found.ended > 50


def test_a_talk_is_the_same_for_the_same_seed() -> None:
    first, second = (frames.talk(Random(7)) for _ in range(2))  # noqa: S311 - it is to be repeated
    assert first == second
