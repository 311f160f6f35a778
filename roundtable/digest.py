"""Unread messages -> one bounded text, newest first, oldest on top.

Pure: equal messages give equal bytes on every machine (time is UTC). Cost follows the budget: of the messages
only those that fit are looked at, of a body only the part that is shown.

A body cannot pass for anything else: every line a digest writes itself begins with a character that is not
a blank, every line of a body but its first begins with four.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from .bounded import HEADLINE_CHARS, floored_budget, floored_per_item, marker_line, spend
from .harmless import first_line_end, harmless_line, indented
from .message import Message

__all__ = ["NOTHING_NEW", "Digest", "digest"]

#: The text of a digest of nothing.
NOTHING_NEW = "No new messages."

#: How far back trailing blanks are looked for. Past this they count as text: a body of megabytes of blanks
#: costs no more than another one.
_TRIM_CHARS = 65_536

_DAY_MINUTES = 24 * 60


class Digest(Struct, frozen=True, gc=False):
    """A bounded rendering of what is unread. ``verbatim + headlines + collapsed`` is ``total``."""

    text: str  #: at most the budget, one marker line of at most 200 characters, and its newline
    total: int
    verbatim: int
    headlines: int
    collapsed: int
    consumed_seq: int  #: the newest message it covers, collapsed ones included; 0 when there is none


class _Entry(Struct, frozen=True, gc=False):
    """One message as an item to spend a budget on."""

    message: Message
    per_message: int

    def verbatim(self) -> str:
        message, text, cap = self.message, self.message.text, self.per_message
        reply = f" (reply to {harmless_line(message.reply_to)})" if message.reply_to else ""
        end = _trimmed_length(text)
        more = f" …(+{end - cap} chars)" if end > cap else ""
        clock = _clock(message.timestamp // 60_000 % _DAY_MINUTES)
        head = f"[{clock}] {message.author.name}#{message.seq}{reply}: "
        return f"{head}{indented(text[: min(end, cap)])}{more}"

    def headline(self) -> str:
        message = self.message
        end = _trimmed_length(message.text)
        # One character more than is shown, to tell a line that just fits from one that was cut.
        window = message.text[: min(end, HEADLINE_CHARS + 1)]
        shown = min(first_line_end(window), HEADLINE_CHARS)
        more = " …" if end > shown else ""
        return f"· {message.author.name}#{message.seq}: {harmless_line(window[:shown])}{more}"


def digest(
    newest_first: Iterable[Message],
    *,
    total: int,
    after_seq: int,
    no_longer_retained: int = 0,
    budget: int | None = None,
    per_message: int | None = None,
) -> Digest:
    """Render ``total`` unread messages within ``budget`` characters.

    Args:
        newest_first: the messages; consumed only as far as there is budget.
        total: how many there are.
        after_seq: a fetch from here reads the oldest of them.
        no_longer_retained: unread messages the room has let go, to be said.
        budget: ``None`` is 2000; below 200 counts as 200, above 1,000,000 as that.
        per_message: characters of one body in full; ``None`` is 600, below 80 counts as 80.
    """
    budget = floored_budget(budget)
    # A body as long as the budget never fits, so no more of it needs to be looked at.
    per_message = min(floored_per_item(per_message), budget)
    consumed = 0

    def entries() -> Iterable[_Entry]:
        nonlocal consumed
        for message in newest_first:
            consumed = consumed or message.seq
            yield _Entry(message, per_message)

    spent = spend(entries(), total=total, budget=budget)
    lines = [*reversed(spent.headlines), *reversed(spent.verbatim)]
    marker = _marker(
        spent.collapsed,
        after_seq=after_seq,
        newest_collapsed=spent.first_collapsed.message.seq if spent.first_collapsed else after_seq,
        no_longer_retained=no_longer_retained,
    )
    if marker:
        lines.insert(0, marker)
    return Digest(
        text="\n".join(lines) or NOTHING_NEW,
        total=total,
        verbatim=len(spent.verbatim),
        headlines=len(spent.headlines),
        collapsed=spent.collapsed,
        consumed_seq=consumed,
    )


def _marker(collapsed: int, *, after_seq: int, newest_collapsed: int, no_longer_retained: int) -> str:
    """What is missing above the first line and how to read it, or ``""``."""
    if not collapsed:
        if not no_longer_retained:
            return ""
        return marker_line(f"({_older(no_longer_retained)} no longer retained)")
    # The span, not the count: messages that are left out of a digest still take a place in a fetch.
    limit = newest_collapsed - after_seq
    lost = f"; {no_longer_retained} no longer retained" if no_longer_retained else ""
    return marker_line(
        f"({_older(collapsed)} collapsed — fetch with afterSeq {after_seq}, limit {limit} to read them{lost})"
    )


@lru_cache(maxsize=_DAY_MINUTES)  # formatting it anew would be a tenth of what a digest costs
def _clock(minute: int) -> str:
    """``HH:MM`` of a minute of the day."""
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _older(count: int) -> str:
    return f"{count} older message{'' if count == 1 else 's'}"


def _trimmed_length(text: str) -> int:
    """The length of ``text`` without its trailing blanks, looking at no more than ``_TRIM_CHARS`` of them."""
    end = len(text)
    if text and not text[-1].isspace():
        return end
    stop = max(0, end - _TRIM_CHARS)
    while end > stop and text[end - 1].isspace():
        piece = text[max(stop, end - 1024) : end]
        kept = len(piece.rstrip())
        end -= len(piece) - kept
        if kept:
            break
    return end
