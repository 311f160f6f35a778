"""The models themselves: what they keep, and the JSON Schema they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from fleet.blueprint.schema import AgentDefinition, Blueprint, Member, Team, default_room
from fleet.cli.schema import schema_text
from fleet.yaml import read

ROOT = Path(__file__).parents[3]


def team(**keys: Any) -> Team:
    return Team.model_validate({"mode": "deliberate", "members": [{"agent": "a"}], **keys})


def test_values_are_frozen() -> None:
    with pytest.raises(ValidationError):
        team().rounds = 3  # type: ignore[misc]


def test_text_is_trimmed_but_arguments_and_variables_are_not() -> None:
    member = Member.model_validate(
        {"agent": " a ", "brief": " b \n", "args": [" x "], "env": {"A": " y ", "B": ""}}
    )
    assert (member.agent, member.brief, member.args) == ("a", "b", (" x ",))
    assert member.env == {"A": " y ", "B": ""}


@pytest.mark.parametrize(
    ("written", "seconds"), [("90s", 90.0), ("10m", 600.0), ("1h30m", 5400.0), (" 2m ", 120.0)]
)
def test_durations(written: str, seconds: float) -> None:
    value = team(deadline=written, turnTimeout=written)
    assert (value.deadline_seconds, value.turn_timeout_seconds) == (seconds, seconds)


def test_deadline_ms() -> None:
    assert team(deadlineMs=1500).deadline_seconds == 1.5
    with pytest.raises(ValidationError):
        team(deadline="90s", deadlineMs=90000)


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        (["Read", "Grep"], ("Read", "Grep")),
        ("Read, Grep", ("Read", "Grep")),
        ({"write": False, "read": True}, ("-write", "read")),
        ([], ()),
    ],
)
def test_agents_write_tools_in_three_ways(written: object, tools: tuple[str, ...]) -> None:
    assert AgentDefinition.model_validate({"tools": written}).tools == tools


def test_subagent_fields_of_other_tools_are_known() -> None:
    AgentDefinition.model_validate(
        {
            "description": "reviews",
            "prompt": "You review.",
            "tools": "Read, Grep",
            "disallowedTools": "Write",
            "permissionMode": "plan",
            "maxTurns": 5,
            "mcpServers": {"x": {"command": "y"}},
            "hooks": {},
            "memory": "user",
            "background": True,
            "effort": "high",
            "isolation": "worktree",
            "color": "purple",
            "mode": "subagent",
            "temperature": 0,
            "top_p": 0.5,
            "steps": 3,
            "permission": {"bash": "ask"},
            "disable": False,
            "hidden": True,
            "thinking": "high",
            "fallbackModels": ["x/y"],
            "systemPromptMode": "append",
            "maxSubagentDepth": 0,
        }
    )


names = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789_-", min_size=1, max_size=64).filter(
    lambda name: name[0] not in "_-"
)


@given(names, names, st.sampled_from(["", "-r1234abcd"]))
def test_a_default_room_is_a_legal_name(fleet: str, team_name: str, suffix: str) -> None:
    room = default_room(fleet, team_name, suffix=suffix)
    assert len(room) <= 64
    assert room.endswith(suffix)
    if len(fleet) + len(team_name) + len("fleet--") + len(suffix) <= 64:
        assert room == f"fleet-{fleet}-{team_name}{suffix}"


def test_two_long_names_give_two_rooms() -> None:
    one, other = (default_room("x" * 60, "y" * 60 + end) for end in "ab")
    assert one != other


@pytest.mark.parametrize("what", ["blueprint", "roles"])
def test_the_published_schema_is_the_models(what: str) -> None:
    text = schema_text(what)
    assert (ROOT / "docs" / "reference" / f"{what}.schema.json").read_text() == text
    Draft202012Validator.check_schema(json.loads(text))


def test_the_schema_takes_what_the_model_takes() -> None:
    schema = Draft202012Validator(json.loads(schema_text("blueprint")))
    published = Path(__file__).parent / "published"
    for path in [*published.glob("*.fleet.yaml"), ROOT / "blueprints" / "design.yaml"]:
        assert list(schema.iter_errors(read(path, what="file").data)) == []
    roles = Draft202012Validator(json.loads(schema_text("roles")))
    for path in [published / "orphus.roles.yaml", ROOT / "blueprints" / "roles.yaml"]:
        assert list(roles.iter_errors(read(path, what="file").data)) == []


def test_the_schema_refuses_what_the_model_refuses() -> None:
    schema = Draft202012Validator(json.loads(schema_text("blueprint")))
    fine = {
        "name": "n",
        "description": "d",
        "teams": {"t": {"mode": "deliberate", "members": [{"agent": "a"}]}},
    }
    assert schema.is_valid(fine)
    for change in (
        {"name": "two words"},
        {"version": 2},
        {"descripton": "x"},
        {"task": None},
        {"teams": {}},
        {"teams": {"t": {"mode": "chat", "members": [{"agent": "a"}]}}},
        {"teams": {"t": {"mode": "dispatch", "members": []}}},
        {"teams": {"t": {"mode": "dispatch", "members": [{"agent": "a", "count": 51}]}}},
        {"teams": {"t": {"mode": "dispatch", "members": [{"agent": "a", "color": "gren"}]}}},
        {"teams": {"t": {"mode": "dispatch", "members": [{"agent": "a"}], "deadline": "soon"}}},
    ):
        broken = {**fine, **change}
        assert not schema.is_valid(broken)
        with pytest.raises(ValidationError):
            Blueprint.model_validate(broken)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
known = st.sampled_from(
    [field.alias or name for model in (Blueprint, Team, Member) for name, field in model.model_fields.items()]
)


@given(st.dictionaries(known, anything, max_size=6), st.dictionaries(known, anything, max_size=8))
def test_whatever_is_written_is_valid_or_a_validation_error(
    top: dict[str, Any], inner: dict[str, Any]
) -> None:
    for value in (
        top,
        {**top, "teams": {"t": inner}},
        {**top, "teams": {"t": {**inner, "members": [inner]}}},
    ):
        try:
            Blueprint.model_validate(value)
        except ValidationError as error:
            assert error.errors()  # noqa: PT017 - nothing else may be raised; that is what is tested
