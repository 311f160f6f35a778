"""A value is found where agents put it, and judged by its schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.dispatch.structured import Mismatch, check_schema, value_of
from fleet.errors import UsageProblem

ITEMS = {"type": "object", "required": ["items"], "properties": {"items": {"type": "array"}}}


@pytest.mark.parametrize(
    "answer",
    [
        '{"items": [1]}',
        'Here it is:\n```json\n{"items": [1]}\n```\n',
        'First\n```json\n{"items": 3}\n```\nbetter:\n```\n{"items": [1]}\n```\nDone.',
        'I looked at {all} of [it].\n{"items": [1]}\n',
        'text\n{\n  "items": [\n    1\n  ]\n}\n',
    ],
)
def test_it_is_found(answer: str) -> None:
    assert value_of(answer, ITEMS) == {"items": [1]}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("nothing", "there is no JSON value in the answer"),
        ("", "there is no JSON value in the answer"),
        ('{"items": 3}', "/items: 3 is not of type 'array'"),
        ("[" * 100_000, "there is no JSON value in the answer"),
    ],
)
def test_or_it_is_told_why_not(answer: str, told: str) -> None:
    assert value_of(answer, ITEMS) == Mismatch(told)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "strnig"}, "not a JSON Schema: /type"),
        ({"$ref": "https://example.org/x.json"}, "leaves the schema"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "leaves the schema"),
    ],
)
def test_what_is_no_schema_is_refused(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageProblem, match=told):
        check_schema(schema, where="step 1")


def test_a_reference_within_the_schema_works_and_one_to_nowhere_is_a_mismatch() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}
    check_schema(schema, where="x")
    assert value_of("7", schema) == 7
    assert isinstance(value_of("7", {"$ref": "#/$defs/none"}), Mismatch)


def test_nothing_is_fetched() -> None:
    """Without a registry of its own jsonschema would ask the address, and warn."""
    assert isinstance(value_of("7", {"$ref": "http://127.0.0.1:9/x.json"}), Mismatch)


@given(st.text(max_size=300))
def test_no_answer_breaks_it(answer: str) -> None:
    value_of(answer, ITEMS)
    value_of(f"```json\n{answer}\n```", ITEMS)
