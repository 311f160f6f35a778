"""Every seat has a name of its own, and the one people expect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.blueprint.schema import Team
from fleet.blueprint.seats import seats_of


def team(*members: dict[str, Any]) -> Team:
    return Team.model_validate({"mode": "deliberate", "members": list(members)})


def of(agent: str, count: int = 1, name: str | None = None) -> dict[str, Any]:
    return {"agent": agent, "count": count, **({"name": name} if name else {})}


@pytest.mark.parametrize(
    ("members", "names"),
    [
        ([of("critic"), of("worker", 2)], ["critic", "worker-1", "worker-2"]),
        ([of("worker", 2), of("worker-1")], ["worker-2", "worker-3", "worker-1"]),
        ([of("worker-1"), of("worker", 2)], ["worker-1", "worker-2", "worker-3"]),
        ([of("a"), of("a")], ["a-1", "a-2"]),
        ([of("a", 2), of("b"), of("a")], ["a-1", "a-2", "b", "a-3"]),
        ([of("a", 3, "c")], ["c-1", "c-2", "c-3"]),
        ([of("a", 1, "c")], ["c"]),
        ([of("a", 1, "c"), of("a")], ["c", "a"]),
        ([of("a"), of("b", 1, "a")], ["a-1", "a"]),
        ([of("a", 2), of("b", 1, "a-2")], ["a-1", "a-3", "a-2"]),
        ([of("a", 2, "x"), of("x")], ["x-1", "x-2", "x"]),
        ([of("a", 2, "x"), of("b", 2, "y")], ["x-1", "x-2", "y-1", "y-2"]),
    ],
)
def test_names(members: list[dict[str, Any]], names: list[str]) -> None:
    assert [seat.name for seat in seats_of(team(*members))] == names


def test_a_seat_knows_where_it_comes_from() -> None:
    seats = seats_of(team(of("critic"), of("worker", 2, "w")))
    assert [(seat.agent, seat.index, seat.number) for seat in seats] == [
        ("critic", 0, 1),
        ("worker", 1, 1),
        ("worker", 1, 2),
    ]
    assert seats[2].member.name == "w"


agents = st.sampled_from(["a", "a-1", "a-2", "a-1-1", "b", "b-1"])
members = st.builds(of, agents, st.integers(1, 5), st.none())
teams = st.lists(members, min_size=1, max_size=9)
named = st.lists(st.builds(of, agents, st.integers(1, 5), st.none() | agents), min_size=1, max_size=9)


@settings(max_examples=400)
@given(teams)
def test_names_are_unique(entries: list[dict[str, Any]]) -> None:
    value = team(*entries)
    names = [seat.name for seat in seats_of(value)]
    assert len(names) == value.size
    assert len(set(names)) == len(names)


@settings(max_examples=400)
@given(named)
def test_names_are_unique_and_written_ones_kept(entries: list[dict[str, Any]]) -> None:
    written = [entry["name"] for entry in entries if entry.get("name")]
    if len(set(written)) < len(written):  # refused by the schema
        return
    seats = seats_of(team(*entries))
    names = [seat.name for seat in seats]
    assert len(set(names)) == len(names)
    assert all(seat.name == seat.member.name for seat in seats if seat.member.name and seat.member.count == 1)
