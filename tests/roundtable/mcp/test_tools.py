"""The tools as data: closed schemas without an identity, and the same parameters and limits as the seat they reach."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from roundtable import bounded, seat, texts
from roundtable.mcp.tools import TOOLS, Tool, offered
from roundtable.names import MAX_TOPIC_CHARS, is_room_name

NAMES = (
    "roundtable_rooms",
    "roundtable_join",
    "roundtable_leave",
    "roundtable_post",
    "roundtable_digest",
    "roundtable_peek",
    "roundtable_fetch",
    "roundtable_export",
    "roundtable_wait",
)

BY_NAME = {tool.name: tool for tool in TOOLS}

each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def test_what_a_role_is_offered() -> None:
    assert tuple(tool.name for tool in offered(is_writer=False)) == (*NAMES, "memory_query")
    assert tuple(tool.name for tool in offered(is_writer=True)) == (
        *NAMES,
        "memory_query",
        "memory_ingest",
        "memory_gardener",
    )


@each_tool
def test_a_schema_is_closed_and_names_nobody(tool: Tool) -> None:
    Draft202012Validator.check_schema(tool.schema)
    assert tool.schema["additionalProperties"] is False
    assert not {"role", "as", "name"} & set(tool.parameters)
    assert set(tool.required) <= set(tool.parameters)
    for parameter in tool.parameters.values():
        assert parameter["type"] in {"string", "integer", "number", "array"}
        assert parameter["description"].endswith(".")


@each_tool
def test_a_description_is_short(tool: Tool) -> None:
    assert tool.description.endswith(".")
    assert len(tool.description) <= 320


@pytest.mark.parametrize("action", seat.ACTIONS)
def test_the_parameters_are_those_of_the_seat(action: str) -> None:
    required, optional, _ = seat.ACTIONS[action]
    tool = BY_NAME[f"roundtable_{action}"]
    assert (tool.of, tool.action) == ("seat", action)
    assert tool.required == required
    assert tuple(tool.parameters) == (*required, *optional)


def parameter(tool: str, name: str) -> dict[str, Any]:
    return dict(BY_NAME[tool].parameters[name])


def test_the_limits_are_those_of_the_code() -> None:
    for tool in ("roundtable_digest", "roundtable_peek"):
        budget, share = parameter(tool, "budget"), parameter(tool, "perMessage")
        assert budget["default"] == bounded.DEFAULT_BUDGET_CHARS
        assert f"{bounded.MIN_BUDGET_CHARS} to {bounded.MAX_BUDGET_CHARS:,}" in budget["description"]
        assert share["default"] == bounded.DEFAULT_PER_ITEM_CHARS
        assert f"{bounded.MIN_PER_ITEM_CHARS} or more" in share["description"]
    limit, most = parameter("roundtable_fetch", "limit"), parameter("roundtable_fetch", "maxChars")
    assert (limit["minimum"], limit["maximum"]) == (1, seat.MAX_FETCH_MESSAGES)
    assert limit["default"] == seat.DEFAULT_FETCH_MESSAGES
    assert most["default"] == texts.DEFAULT_FETCH_CHARS
    assert f"{texts.MIN_FETCH_CHARS} to {texts.MAX_FETCH_CHARS:,}" in most["description"]
    wait = parameter("roundtable_wait", "timeoutSeconds")
    assert (wait["minimum"], wait["maximum"]) == (0, seat.MAX_WAIT_SECONDS)
    assert wait["default"] == seat.DEFAULT_WAIT_SECONDS
    assert parameter("roundtable_join", "topic")["maxLength"] == MAX_TOPIC_CHARS


@pytest.mark.parametrize("name", ["a", "A-b_9", "9", "x" * 64, "", "-a", "a b", "a.b", "x" * 65, "#a", "é"])
def test_the_pattern_of_a_room_is_that_of_the_code(name: str) -> None:
    schema = BY_NAME["roundtable_leave"].schema
    assert Draft202012Validator(schema).is_valid({"room": name}) == is_room_name(name)
