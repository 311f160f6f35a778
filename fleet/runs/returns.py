"""What comes back from work that was given out, within a bound: one task, many, or a value. The one bound for returns.

Pure. A bound moves text and never deletes it: what is cut lies at a path that stands beside it, and what is only
counted is listed in the index that the last line names. Paths are relative to the run folder, whose own path stands
once in the head and takes nothing from the budget. Sizes are characters (code points).

No text of a member can pass for a line of ours: every line of it begins with four blanks or stands behind our own
words, and none of ours begins with a blank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from roundtable.bounded import (
    DEFAULT_BUDGET_CHARS,
    HEADLINE_CHARS,
    floored_budget,
    floored_per_item,
    marker_line,
    spend,
)
from roundtable.harmless import CONTINUATION, first_line_end, harmless_line, indented

__all__ = [
    "SPLICE_CHARS",
    "Output",
    "Returned",
    "ReturnedText",
    "Standing",
    "return_many",
    "return_one",
    "shape",
    "splice",
    "splice_value",
]

#: What of one output is put into a text that somebody reads unasked.
SPLICE_CHARS = DEFAULT_BUDGET_CHARS

#: What is told of the reason why a task failed.
_REASON_CHARS = 200

#: How many keys or entries of a value its shape names; the others are counted.
_SHAPE_ENTRIES = 20


class Standing(StrEnum):
    """How a task ended. Failures come first in every return."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Output:
    """The beginning of what a task gave, how long the whole is, and where that lies."""

    head: str  #: at least the first ``SPLICE_CHARS`` characters, or all there is
    chars: int  #: of the whole, trailing blanks left out
    path: str  #: of the file that holds it

    def first(self, chars: int) -> str:
        """The first characters, never more than there are without trailing blanks."""
        return self.head[: min(chars, self.chars)]


@dataclass(frozen=True, slots=True)
class Returned:
    """One task as it is returned."""

    number: int  #: 1, 2, … in the order the tasks were given
    seat: str
    standing: Standing
    output: Output
    reason: str | None = None  #: why it is not ok, or what is to be said of it if it is
    whole: str | None = None  #: all of it, for who asked not to be bounded
    reference: str | None = None  #: a line that stands for all of it, for who asked for no text


@dataclass(frozen=True, slots=True)
class ReturnedText:
    """A return. ``verbatim + headlines + collapsed`` is ``total``."""

    text: str
    total: int
    verbatim: int
    headlines: int
    collapsed: int


def return_many(
    results: Sequence[Returned],
    *,
    place: str,
    index: str,
    budget: int | None = None,
    per_item: int | None = None,
) -> ReturnedText:
    """Failures first, then in the order of the tasks, within ``budget`` below the head.

    As many as possible are whole (cut at ``per_item``) while all others still have a line; where not all can have
    one, failures go before the rest. ``place`` is the run folder, ``index`` the file that lists everything.
    ``None`` is 2000 and 600. What was asked for whole is not bounded and stands behind.
    """
    bounded = [result for result in results if result.whole is None]
    ordered = sorted(bounded, key=lambda result: result.standing is not Standing.FAILED)
    budget, per_item = floored_budget(budget), floored_per_item(per_item)
    good = sum(result.standing is Standing.OK for result in results)
    lines = [f"{good}/{len(results)} succeeded · paths are below {harmless_line(place)}"]
    whole = _how_many_whole(ordered, budget, per_item)
    verbatim = [_verbatim(result, per_item) for result in ordered[:whole]]
    left = budget - sum(len(text) + 1 for text in verbatim)
    rest = ordered[whole:]
    spent = spend(map(_Line, rest), total=len(rest), budget=left)
    lines += [*verbatim, *spent.verbatim]
    shown = whole + len(spent.verbatim)
    if shown < len(ordered):
        lines.append(_marker(ordered[shown:], index))
    lines += [
        f"{_head(result)}\n{CONTINUATION}{indented(result.whole or '')}"
        for result in results
        if result.whole is not None
    ]
    unbounded = len(results) - len(bounded)
    return ReturnedText(
        "\n".join(lines), len(results), whole + unbounded, len(spent.verbatim), len(ordered) - shown
    )


def return_one(result: Returned, *, place: str) -> str:
    """One task's return: what it gave, cut like any splice; a failure says first what is the matter."""
    if result.reference is not None:
        text = result.reference
    elif result.whole is not None:
        text = result.whole
    else:
        text = splice(result.output, place=place)
    if result.standing is Standing.OK and result.reason is None:
        return text
    head = f"{result.standing}{f': {_reason(result)}' if result.reason else ''}"
    return f"{head}\n{text}" if text else head


def splice(output: Output, *, place: str = "") -> str:
    """The first 2,000 characters, and then where the rest lies; the length of the path takes nothing from them."""
    shown = output.first(SPLICE_CHARS)
    if output.chars <= SPLICE_CHARS:
        return shown
    path = f"{place}/{output.path}" if place else output.path
    return f"{shown}\n…(+{output.chars - SPLICE_CHARS} chars) full output: {path}"


def splice_value(value: Any, path: str) -> str:
    """A structured value as compact JSON; one that is too long as its shape and its path, never as broken JSON."""
    text = compact(value)
    return (
        text
        if len(text) <= SPLICE_CHARS
        else f"{shape(value)}\n…({len(text)} chars of JSON) full value: {path}"
    )


def compact(value: Any) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shape(value: Any) -> str:
    """What a value is made of: keys, types and lengths, one level deep; at most 2,000 characters."""
    match value:
        case Mapping():
            entries = (
                f"{json.dumps(str(key)[:60], ensure_ascii=False)}: {_kind(of)}" for key, of in value.items()
            )
            return _listed("{", entries, len(value), "}", "keys")
        case list():
            return _listed("[", (_kind(entry) for entry in value), len(value), "]", "entries")
        case _:
            return _kind(value)


@dataclass(frozen=True, slots=True)
class _Line:
    """A result that is shown as a line or not at all."""

    result: Returned

    def verbatim(self) -> str:
        return _headline(self.result)

    headline = verbatim


def _how_many_whole(ordered: Sequence[Returned], budget: int, per_item: int) -> int:
    """How many of the first can be whole: as many as leave a line to all others, or else to all failures.

    Where not even that can be, none is if there are failures, and otherwise as many as fit.
    """
    failures = sum(result.standing is Standing.FAILED for result in ordered)
    for needed in dict.fromkeys((len(ordered), failures)):
        lines = _lengths_within((_headline(result) for result in ordered[:needed]), budget)
        if lines is None:
            continue
        left, whole = budget - sum(lines), 0
        for result in ordered:
            own = lines[whole] if whole < needed else 0
            left += own - len(_verbatim(result, per_item)) - 1
            if left < 0:
                break
            whole += 1
        return whole
    return 0


def _lengths_within(texts: Iterator[str], budget: int) -> list[int] | None:
    """The length of each with its newline; ``None`` as soon as together they are over the budget."""
    lengths: list[int] = []
    left = budget
    for text in texts:
        left -= len(text) + 1
        if left < 0:
            return None
        lengths.append(len(text) + 1)
    return lengths


def _verbatim(result: Returned, per_item: int) -> str:
    if result.reference is not None:
        return f"{_head(result)} {harmless_line(result.reference)}"
    output = result.output
    if not output.chars:
        mute = "" if result.standing is Standing.SKIPPED else " (no output)"
        return f"{_head(result)}{mute} → {output.path}"
    more = f" …(+{output.chars - per_item} chars)" if output.chars > per_item else ""
    return f"{_head(result)} → {output.path}\n{CONTINUATION}{indented(output.first(per_item))}{more}"


def _headline(result: Returned) -> str:
    lead = f"· {result.number} {result.seat}{_matter(result)}"
    if result.reference is not None:
        return f"{lead}: {harmless_line(result.reference)}"
    output = result.output
    window = output.first(HEADLINE_CHARS + 1)
    end = min(first_line_end(window), HEADLINE_CHARS)
    more = " …" if output.chars > end else ""
    said = f": {harmless_line(window[:end])}{more}" if output.chars else ""
    return f"{lead}{said} → {output.path}"


def _head(result: Returned) -> str:
    return f"[{result.number} {result.seat}{_matter(result)}]"


def _matter(result: Returned) -> str:
    if result.standing is Standing.OK:
        return f" ({_reason(result)})" if result.reason else ""
    return f" {result.standing.upper()}{f': {_reason(result)}' if result.reason else ''}"


def _reason(result: Returned) -> str:
    reason = harmless_line(result.reason or "")
    return reason if len(reason) <= _REASON_CHARS else f"{reason[: _REASON_CHARS - 1]}…"


def _marker(hidden: Sequence[Returned], index: str) -> str:
    counts = {
        standing: sum(result.standing is standing for result in hidden)
        for standing in (Standing.FAILED, Standing.SKIPPED, Standing.OK)
    }
    told = ", ".join(f"{count} more {standing}" for standing, count in counts.items() if count)
    return marker_line(f"({told} — {index} lists all)")


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return f"string of {len(value)}"
        case list():
            return f"array of {len(value)}"
        case _:
            return f"object of {len(value)}"


def _listed(opening: str, entries: Iterator[str], total: int, closing: str, noun: str) -> str:
    shown = [*islice(entries, _SHAPE_ENTRIES)]
    more = f", and {total - len(shown)} more {noun}" if total > len(shown) else ""
    return f"{opening}{', '.join(shown)}{more}{closing}"
