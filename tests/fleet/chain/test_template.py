"""References are taken from a text once and filled in once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.chain.template import MissingPart, Reference, Template, item_text


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    template = Template.parse("{task} then {previous}, {outputs.a} and {outputs.a.full}; {chain_dir}")
    values = {"task": "{previous}", "previous": "{task}", "chain_dir": "/d", "outputs": "{outputs.a.full}"}
    assert template.fill(lambda reference: values[reference.head]) == (
        "{previous} then {task}, {outputs.a.full} and {outputs.a.full}; /d"
    )


def test_other_braces_are_text() -> None:
    text = 'print({"a": 1}) {} { task } {foo} {item.x} ${HOME}'
    assert Template.parse(text).parts == (text,)


@pytest.mark.parametrize(
    "text", ["{task.x}", "{previous.raw}", "{outputs}", "{outputs.a.raw}", "{outputs.1x}", "{chain_dir.x}"]
)
def test_some_can_mean_nothing(text: str) -> None:
    (reference,) = Template.parse(text).references
    assert reference.problem


def test_in_a_fan_out_every_name_counts() -> None:
    template = Template.parse("{row.a} {foo} {task}", item="row")
    assert [str(reference) for reference in template.unknown(item="row")] == ["{foo}"]


ITEM = {"name": "One", "n": 1.5, "ok": True, "none": None, "list": [{"x": "y"}]}


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("name", "One"),
        ("n", "1.5"),
        ("ok", "true"),
        ("none", "null"),
        ("list", '[{"x":"y"}]'),
        ("list.0.x", "y"),
        ("", json.dumps(ITEM, separators=(",", ":"))),
    ],
)
def test_parts_of_an_item(rest: str, text: str) -> None:
    assert item_text(ITEM, Reference("item", rest)) == text


@pytest.mark.parametrize("rest", ["nope", "name.x", "list.1", "list.-1", "n.0"])
def test_a_part_that_is_not_there(rest: str) -> None:
    with pytest.raises(MissingPart):
        item_text(ITEM, Reference("item", rest))


@given(st.text(alphabet="{}abtask.previous outputs_1\n", max_size=80))
def test_a_text_is_its_parts(text: str) -> None:
    for item in (None, "item"):
        assert Template.parse(text, item=item).fill(str) == text
