"""The items of a fan-out: an array in an earlier output, each item with a key of its own. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from fleet.chain.pointer import NotThere, resolve
from fleet.chain.schema import Expand

__all__ = ["Item", "ItemProblem", "items_of", "slug"]

_MAX_KEY_CHARS = 200
_MAX_ID_CHARS = 80


class ItemProblem(Exception):
    """An output cannot be fanned out over."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item."""

    index: int  #: 0, 1, …
    key: str  #: what its key pointer gives, else its index
    value: Any


def items_of(value: Any, expand: Expand) -> list[Item]:
    """The items, in order.

    Raises:
        ItemProblem: there is no array, it has too many items, or their keys are not what they should be.
    """
    source = f"{expand.from_.output}{expand.from_.path}"
    try:
        found = resolve(value, expand.from_.path)
    except NotThere as problem:
        raise ItemProblem(f"{source}: {problem}") from problem
    if not isinstance(found, list):
        raise ItemProblem(f"{source} must resolve to an array")
    if len(found) > expand.max_items:
        raise ItemProblem(f"{source} resolved {len(found)} items, exceeding maxItems {expand.max_items}")
    items = [Item(index, _key(item, index, expand), item) for index, item in enumerate(found)]
    if expand.key is not None:
        _refuse_alike(items)
    return items


def slug(key: str) -> str:
    """A key as an id: lower case, at most 80 characters, ``item`` if nothing is left of it."""
    return re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")[:_MAX_ID_CHARS] or "item"


def _key(item: Any, index: int, expand: Expand) -> str:
    if expand.key is None:
        return str(index)
    try:
        key = resolve(item, expand.key)
    except NotThere as problem:
        raise ItemProblem(f"item {index}: {problem}") from problem
    if not isinstance(key, str | int | float | bool):
        raise ItemProblem(f"item {index}: its key must be text, a number or a boolean")
    text = str(key).lower() if isinstance(key, bool) else str(key)
    if not text.strip():
        raise ItemProblem(f"item {index}: its key is empty")
    if len(text) > _MAX_KEY_CHARS:
        raise ItemProblem(f"item {index}: its key has {len(text)} characters, more than {_MAX_KEY_CHARS}")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ItemProblem(f"item {index}: its key has control characters")
    return text


def _refuse_alike(items: list[Item]) -> None:
    keys: set[str] = set()
    ids: dict[str, str] = {}
    for item in items:
        if item.key in keys:
            raise ItemProblem(f"duplicate item key {item.key!r}")
        keys.add(item.key)
        other = ids.setdefault(slug(item.key), item.key)
        if other != item.key:
            raise ItemProblem(f"colliding item id {slug(item.key)!r} of the keys {other!r} and {item.key!r}")
