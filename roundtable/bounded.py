"""Spend a budget over items in tiers: verbatim, then one headline each, then a count. The one bound.

Pure, deterministic, no model. Sizes are characters (code points). Items come in order of priority and are
looked at only while there is budget, so the cost follows the budget and not the number of items.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

__all__ = [
    "DEFAULT_BUDGET_CHARS",
    "DEFAULT_PER_ITEM_CHARS",
    "HEADLINE_CHARS",
    "MAX_BUDGET_CHARS",
    "MAX_MARKER_CHARS",
    "MIN_BUDGET_CHARS",
    "MIN_PER_ITEM_CHARS",
    "Item",
    "Spent",
    "floored_budget",
    "floored_per_item",
    "marker_line",
    "spend",
]

#: What an agent reads of a room or of a parallel run unless it asks for more.
DEFAULT_BUDGET_CHARS = 2000

#: Below this nothing useful fits; a smaller budget counts as this one.
MIN_BUDGET_CHARS = 200

#: Beyond this a digest would not fit a frame of the wire; a larger budget counts as this one.
MAX_BUDGET_CHARS = 1_000_000

#: What one item may take of the budget in the verbatim tier.
DEFAULT_PER_ITEM_CHARS = 600

#: A smaller share per item counts as this one.
MIN_PER_ITEM_CHARS = 80

#: What the headline tier shows of an item.
HEADLINE_CHARS = 100

#: The one line that says what was left out and where it lies.
MAX_MARKER_CHARS = 200


class Item(Protocol):
    """Something that can be shown whole or as one line."""

    def verbatim(self) -> str:
        """The text of the verbatim tier, already cut to its share."""

    def headline(self) -> str:
        """The one line of the headline tier."""


ItemT = TypeVar("ItemT", bound=Item)


class Spent(NamedTuple, Generic[ItemT]):
    """How a budget was spent. ``len(verbatim) + len(headlines) + collapsed`` is the total."""

    verbatim: tuple[str, ...]  #: in order of priority
    headlines: tuple[str, ...]  #: in order of priority, all after the verbatim ones
    collapsed: int
    first_collapsed: ItemT | None  #: the most important item that is only counted


def spend(items: Iterable[ItemT], *, total: int, budget: int) -> Spent[ItemT]:
    """Show what fits of ``total`` items, most important first, in at most ``budget`` characters.

    A text takes its length and one newline. The first that does not fit turns to headlines for good, itself
    included; the first headline that does not fit is collapsed with everything after it, so nothing less
    important ever takes a place that something more important could not have.
    """
    verbatim: list[str] = []
    headlines: list[str] = []
    left = budget
    stopped: ItemT | None = None
    is_verbatim = True
    for item in items:
        if is_verbatim:
            text = item.verbatim()
            if len(text) < left:
                verbatim.append(text)
                left -= len(text) + 1
                continue
            is_verbatim = False
        line = item.headline()
        if len(line) >= left:
            stopped = item
            break
        headlines.append(line)
        left -= len(line) + 1
    return Spent(tuple(verbatim), tuple(headlines), total - len(verbatim) - len(headlines), stopped)


def marker_line(text: str) -> str:
    """``text`` as one line of at most 200 characters, so that what was left out costs a known amount."""
    line = text.replace("\n", " ").rstrip()
    return line if len(line) <= MAX_MARKER_CHARS else line[: MAX_MARKER_CHARS - 1] + "…"


def floored_budget(budget: int | None) -> int:
    """The budget that counts: 2000 for ``None``, raised to 200, lowered to 1,000,000."""
    return DEFAULT_BUDGET_CHARS if budget is None else min(max(budget, MIN_BUDGET_CHARS), MAX_BUDGET_CHARS)


def floored_per_item(per_item: int | None) -> int:
    """The share that counts: 600 for ``None``, raised to 80."""
    return DEFAULT_PER_ITEM_CHARS if per_item is None else max(per_item, MIN_PER_ITEM_CHARS)
