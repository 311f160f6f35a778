"""JSON Pointers and the items of a fan-out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.chain.items import ItemProblem, items_of, slug
from fleet.chain.pointer import NotThere, pointer_problem, resolve
from fleet.chain.schema import Expand

# The examples of RFC 6901, section 5.
RFC = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/m~0n", 8),
        ("/ ", 7),
    ],
)
def test_pointers_lead_where_the_rfc_says(pointer: str, value: Any) -> None:
    assert pointer_problem(pointer) is None
    assert resolve(RFC, pointer) == value


@pytest.mark.parametrize("pointer", ["/nope", "/foo/2", "/foo/-", "/foo/01", "/foo/0/x"])
def test_or_nowhere(pointer: str) -> None:
    with pytest.raises(NotThere):
        resolve(RFC, pointer)


def test_what_is_no_pointer() -> None:
    assert pointer_problem("foo") == "must be a JSON Pointer starting with '/'"
    assert pointer_problem("/a~2") is not None
    assert pointer_problem("/a~") is not None


def expand(**rest: Any) -> Expand:
    return Expand.model_validate({"from": {"output": "src", "path": "/items"}, "maxItems": 3, **rest})


def test_items_in_order_with_their_keys() -> None:
    items = items_of({"items": [{"id": "A"}, {"id": 7}, {"id": True}]}, expand(key="/id"))
    assert [(item.index, item.key) for item in items] == [(0, "A"), (1, "7"), (2, "true")]
    assert [item.key for item in items_of({"items": ["x", "y"]}, expand())] == ["0", "1"]


@pytest.mark.parametrize(
    ("items", "rest", "told"),
    [
        ([1, 2, 3, 4], {}, "resolved 4 items, exceeding maxItems 3"),
        ({"a": 1}, {}, "must resolve to an array"),
        ([{"id": "x"}, {"id": "x"}], {"key": "/id"}, "duplicate item key 'x'"),
        ([{"id": "A b"}, {"id": "a-b"}], {"key": "/id"}, "colliding item id 'a-b'"),
        ([{}], {"key": "/id"}, "there is nothing at /id"),
        ([{"id": " "}], {"key": "/id"}, "its key is empty"),
        ([{"id": "a\nb"}], {"key": "/id"}, "control characters"),
        ([{"id": "x" * 201}], {"key": "/id"}, "201 characters"),
        ([{"id": [1]}], {"key": "/id"}, "must be text, a number or a boolean"),
    ],
)
def test_what_cannot_be_fanned_out_over(items: Any, rest: dict[str, Any], told: str) -> None:
    with pytest.raises(ItemProblem, match=told):
        items_of({"items": items}, expand(**rest))


@given(st.text(max_size=300))
def test_a_slug_is_an_id(key: str) -> None:
    made = slug(key)
    assert 1 <= len(made) <= 80
    assert made == made.lower()
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
