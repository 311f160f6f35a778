"""Passages as one text of bounded size, best first, each below a line that says where it stands and from when it is.

Pure. Every line of a passage begins with four blanks and no line of ours does, so nothing that was once said can look
like a line of the answer. What does not fit whole is a headline; what does not fit as that is counted in the
first line, with how to get more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..bounded import DEFAULT_PER_ITEM_CHARS, MIN_BUDGET_CHARS, spend
from ..harmless import CONTINUATION, harmless_line, indented
from .passages import Passage
from .words import folded

__all__ = [
    "DEFAULT_ANSWER_CHARS",
    "MAX_ANSWER_CHARS",
    "Answer",
    "answer",
    "floored_answer_chars",
    "shown_path",
]

#: An answer that does not say how long.
DEFAULT_ANSWER_CHARS = 2000

#: A larger number counts as this one: an answer goes into one context.
MAX_ANSWER_CHARS = 20_000

#: What the first line may take; it is there in every answer.
_HEAD_CHARS = 100

#: A headline, unless the answer is shorter.
_HEADLINE_CHARS = 160

#: The line above a passage.
_PLACE_CHARS = 300

#: Less of a passage is worth no more than a headline; what has this much and does not fit becomes one.
_MIN_EXCERPT_CHARS = 60

#: How much of a long passage stands before the first word that matched.
_LEAD_CHARS = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered: the text, and the passages it shows in its order."""

    text: str
    total: int  #: passages that match
    shown: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    passage: Passage
    words: Sequence[str]
    whole_chars: int
    headline_chars: int

    def verbatim(self) -> str:
        """The passage below its place, cut around the first word that matched."""
        place = _place(self.passage)
        room = max(_MIN_EXCERPT_CHARS, self.whole_chars - len(place) - 1)
        return f"{place}\n{_excerpt(self.passage.text, self.words, room)}"

    def headline(self) -> str:
        """Day, page and the line with the first word that matched."""
        passage = self.passage
        at = _first_match(passage.text, self.words)
        begin = passage.text.rfind("\n", 0, at) + 1
        line = harmless_line(passage.text[max(begin, at - 40) : at + _HEADLINE_CHARS].split("\n")[0]).strip()
        text = f"· [{passage.at[:10]}] {shown_path(passage.path, 60)}: {line}"
        return text if len(text) <= self.headline_chars else text[: self.headline_chars - 1] + "…"


def answer(
    passages: Sequence[Passage],
    total: int,
    words: Sequence[str],
    max_chars: int | None,
    *,
    is_partial: bool,
) -> Answer:
    """What fits of ``passages``, of which there are ``total`` with those not handed in.

    At most ``floored_answer_chars(max_chars)`` characters, everything included.
    """
    chars = floored_answer_chars(max_chars)
    budget = chars - _HEAD_CHARS
    items = [
        _Item(passage, words, min(DEFAULT_PER_ITEM_CHARS, budget - 1), min(_HEADLINE_CHARS, budget - 1))
        for passage in passages
    ]
    spent = spend(items, total=total, budget=budget)
    shown = len(spent.verbatim) + len(spent.headlines)
    head = f"{shown} of {total} passages" if shown < total else f"{total} passage{'' if total == 1 else 's'}"
    if is_partial:
        head += " with some of the words"
    if shown < total:
        more = f"maxChars up to {MAX_ANSWER_CHARS}, or " if chars < MAX_ANSWER_CHARS else ""
        head += f"; for more: {more}narrower words"
    text = "\n".join([head, *spent.verbatim, *spent.headlines])
    return Answer(text, total, tuple(passages[:shown]))


def floored_answer_chars(max_chars: int | None) -> int:
    """The size that counts: 2000 for ``None``, raised to 200, lowered to 20,000."""
    if max_chars is None:
        return DEFAULT_ANSWER_CHARS
    return min(max(max_chars, MIN_BUDGET_CHARS), MAX_ANSWER_CHARS)


def shown_path(path: str, max_chars: int = 120) -> str:
    """``path`` on one line; the beginning of a very long one is left out."""
    line = harmless_line(path)
    return line if len(line) <= max_chars else "…" + line[1 - max_chars :]


def _place(passage: Passage) -> str:
    """Where and when, on one line of at most 300 characters that does not begin with a blank."""
    time = passage.at[:16].replace("T", " ")
    parts = [f"[{time}] {shown_path(passage.path)}"]
    if passage.kind:
        parts.append(passage.kind)
    if passage.who:
        parts.append(f"{passage.who} in {shown_path(passage.source)}" if passage.source else passage.who)
    if passage.more_sources:
        parts.append(f"+{passage.more_sources} more source{'' if passage.more_sources == 1 else 's'}")
    return harmless_line(" · ".join(parts))[:_PLACE_CHARS]


def _excerpt(text: str, words: Sequence[str], max_chars: int) -> str:
    """``text`` behind four blanks, at most ``max_chars``, with the first match in it and a mark where it is cut."""
    whole = CONTINUATION + indented(text.strip())
    if len(whole) <= max_chars:
        return whole
    start = max(0, _first_match(text, words) - _LEAD_CHARS)
    lead = CONTINUATION + ("…" if start else "")
    rest = indented(text[start:].strip())
    room = max(0, max_chars - len(lead))
    if len(rest) <= room:
        # The end fits with room to spare, so more of what is before it is shown.
        begin = len(whole) - (max_chars - len(CONTINUATION) - 1)
        return f"{CONTINUATION}…{whole[begin:]}"
    # A cut within the blanks of a line would leave it with fewer of them.
    return f"{lead}{rest[: max(0, room - 2)].rstrip()} …"


def _first_match(text: str, words: Sequence[str]) -> int:
    """Where the first of ``words`` is, as nearly as folding leaves it; 0 if none is there as it is asked for."""
    low = folded(text)
    if len(low) != len(text):
        low = text.lower()
        if len(low) != len(text):
            return 0
    found = [at for word in words if (at := low.find(word[:5])) >= 0]
    return min(found, default=0)
