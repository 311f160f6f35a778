"""Every limit of a blueprint: what lies on it is taken, what lies beyond is refused and told at its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.blueprint.explain import check
from fleet.blueprint.schema import Blueprint
from fleet.deadline import parse_duration, show_duration
from fleet.yaml import parse

Path = tuple[str | int, ...]

MEMBER: Path = ("teams", "t", "members", 0)
TEAM: Path = ("teams", "t")

#: Where a whole number stands, and its least and greatest value; ``None`` for no greatest.
WHOLE: list[tuple[Path, int, int | None]] = [
    ((*TEAM, "rounds"), 1, 10),
    ((*TEAM, "concurrency"), 1, 50),
    ((*TEAM, "deadlineMs"), 1, 2_147_483_647),
    ((*MEMBER, "count"), 1, 50),
    ((*MEMBER, "retries"), 0, 10),
    (("defaults", "concurrency"), 1, 50),
    (("defaults", "budgets", "digest"), 1, None),
    (("defaults", "budgets", "perMessage"), 1, None),
    (("budget", "tokens"), 1, None),
    (("agents", "a", "maxTurns"), 1, None),
    (("agents", "a", "steps"), 1, None),
    (("agents", "a", "maxSubagentDepth"), 0, None),
]
#: Where a name stands, and how long it may be.
NAMES: list[tuple[Path, int]] = [
    (("name",), 64),
    ((*TEAM, "room"), 64),
    ((*TEAM, "group"), 64),
    ((*MEMBER, "agent"), 60),
    ((*MEMBER, "name"), 64),
]


def blueprint(path: Path = (), value: object = None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": "n",
        "description": "d",
        "defaults": {"budgets": {}},
        "budget": {"usd": 1},
        "agents": {"a": {}},
        "teams": {"t": {"mode": "deliberate", "members": [{"agent": "a"}]}},
    }
    inner: Any = data
    for part in path[:-1]:
        inner = inner[part]
    if path:
        inner[path[-1]] = value
    return data


def problems(path: Path = (), value: object = None) -> list[str]:
    """The keys that something is wrong with."""
    import json

    document = parse(json.dumps(blueprint(path, value)).encode(), name="x")
    found, said = check(document, Blueprint)
    assert (found is None) == bool(said)
    assert all(str(problem).isprintable() for problem in said)
    return [problem.key for problem in said]


def dotted(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


@pytest.mark.parametrize(
    ("path", "least", "most"), WHOLE, ids=lambda value: dotted(value) if isinstance(value, tuple) else ""
)
@settings(max_examples=40)  # half of them lie on an edge
@given(data=st.data())
def test_whole_numbers(path: Path, least: int, most: int | None, data: st.DataObject) -> None:
    edges = [least - 1, least, *([most, most + 1] if most is not None else [10**12])]
    value = data.draw(st.sampled_from(edges) | st.integers(-(10**12), 10**12))
    is_fine = least <= value and (most is None or value <= most)
    assert problems(path, value) == ([] if is_fine else [dotted(path)])


@pytest.mark.parametrize(
    ("path", "least", "most"), WHOLE, ids=lambda value: dotted(value) if isinstance(value, tuple) else ""
)
@pytest.mark.parametrize("value", [True, False, 1.0, 1.5, "1", "", [1], {"a": 1}])
def test_what_is_no_whole_number(path: Path, least: int, most: int | None, value: object) -> None:
    found = problems(path, value)
    assert found
    assert all(key.startswith(dotted(path)) for key in found)


@pytest.mark.parametrize(
    ("path", "longest"), NAMES, ids=lambda value: dotted(value) if isinstance(value, tuple) else ""
)
@settings(max_examples=40)  # half of them lie on an edge
@given(data=st.data())
def test_names(path: Path, longest: int, data: st.DataObject) -> None:
    first = "nabcXYZ019"
    plain = st.text(first + "-_", min_size=1, max_size=longest + 6)
    edge = st.integers(longest - 1, longest + 2).map(lambda size: "n" * size)
    value = data.draw(plain | edge)
    is_fine = value[0] in first and len(value) <= longest
    assert problems(path, value) == ([] if is_fine else [dotted(path)])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_a_team_has_at_most_fifty_seats(counts: list[int]) -> None:
    members = [{"agent": "a", "count": count} for count in counts]
    assert problems((*TEAM, "members"), members) == ([] if sum(counts) <= 50 else ["teams.t.members"])


@given(st.integers(1, 60), st.integers(1, 50))
def test_a_quorum_is_at_most_the_team(quorum: int, count: int) -> None:
    members = [{"agent": "a", "count": count}]
    data = blueprint((*TEAM, "members"), members)
    data["teams"]["t"]["quorum"] = quorum
    import json

    _, said = check(parse(json.dumps(data).encode(), name="x"), Blueprint)
    assert bool(said) == (quorum > count)


@given(st.integers(0, 210), st.sampled_from("ab é"))
def test_topics(size: int, letter: str) -> None:
    topic = f"x{letter * (size - 2)}y"[:size] if size > 1 else "x" * size
    assert problems((*TEAM, "topic"), topic) == ([] if 1 <= size <= 200 else ["teams.t.topic"])


@given(st.integers(0, 3_000_000))
def test_durations(seconds: int) -> None:
    shown = show_duration(float(seconds))
    assert parse_duration(shown) == (float(seconds) or None)
    is_fine = 1 <= seconds * 1000 <= 2_147_483_647
    for key in ("deadline", "turnTimeout"):
        assert problems((*TEAM, key), shown) == ([] if is_fine else [f"teams.t.{key}"])


@given(st.integers(0, 120))
def test_an_echo_is_bounded(size: int) -> None:
    import json

    document = parse(json.dumps(blueprint((*MEMBER, "count"), "s" * size)).encode(), name="x")
    _, (problem,) = check(document, Blueprint)
    assert problem.text.count("s") - "expected a positive integer, got".count("s") <= 80 + len("chars")
    assert ("chars]" in problem.text) == (size > 78)
