"""What a text states, found by rules: decisions, dissent, questions, actions, findings, and last words.

Pure, no model: the same text gives the same facts. What is found:

* A line that begins with a label and a colon (``FINAL:``, ``**Decision:**``, ``- open question:``), with the lines
  after it up to a blank line or the next label.
* A sentence in which people decide: ``we agreed …``, ``let's go with …``, without a negation before it.
* A sentence of three words or more that ends in a question mark.
* For a conversation without any decision: the last message of each speaker.

What none of this finds is not lost: the text itself stays searchable where it lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..harmless import harmless
from ..transcript import Entry, timestamp_text

__all__ = ["KIND_TERMS", "MAX_FACT_CHARS", "Fact", "Source", "facts_of_conversation", "facts_of_text"]

#: A longer statement is cut here, with a mark; the whole is in its source.
MAX_FACT_CHARS = 2000

#: Facts of one message or paragraph; what is beyond stays in the source only.
MAX_FACTS_PER_TEXT = 50

#: What one rule looks at: a longer line is no statement.
_MAX_SENTENCE_CHARS = 400

_LABELS = {
    "decision": (
        "final",
        "final answer",
        "final decision",
        "decision",
        "decision of record",
        "decisions",
        "decided",
        "outcome",
        "conclusion",
        "conclusions",
        "consensus",
        "verdict",
        "resolution",
        "resolved",
        "agreed",
        "agreement",
    ),
    "proposal": ("proposal", "proposed", "position", "support", "recommendation", "suggestion"),
    "dissent": ("dissent", "dissenting", "objection", "disagree", "concern", "concerns", "risk", "risks"),
    "question": ("question", "questions", "open question", "open questions", "unresolved"),
    "action": ("action", "action item", "actions", "todo", "next step", "next steps", "follow-up"),
    "finding": ("finding", "findings", "fact", "result", "results", "evidence", "lesson", "note", "summary"),
}

#: Words that find facts of a kind although their text need not have them.
KIND_TERMS = {
    "decision": "decision decisions decide decided final outcome conclusion concluded consensus agreed resolved",
    "proposal": "proposal proposed position recommendation recommended suggestion suggested",
    "dissent": "dissent dissented disagreed objection objected concern risk risks",
    "question": "question questions asked open unresolved unanswered",
    "action": "action actions todo next step steps task tasks follow",
    "finding": "finding findings fact result results evidence lesson note summary",
    "last word": "last conclusion closing position opinion",
    "fact": "fact",
}

_KIND_OF = {label: kind for kind, labels in _LABELS.items() for label in labels}

_LABEL = re.compile(
    r"[ \t]{0,12}(?:[-*+>#]{1,6}[ \t]+|\d{1,3}[.)][ \t]+)?(?:\*\*|__)?("
    + "|".join(sorted(map(re.escape, _KIND_OF), key=len, reverse=True))
    + r")(?:\*\*|__)?[ \t]?:(?:\*\*|__)?(?=\s|$)[ \t]*",
    re.IGNORECASE,
)

_DECIDING = re.compile(
    r"\b(?:(?:we|i|they|all|everyone|everybody|team)(?:'ve| have| all| both| now| therefore){0,2} "
    r"(?:decided|agreed|settled|concluded|chose|agree)|(?:let's|let us|we'll|we will|we should) go with|"
    r"(?:the|our) (?:decision|conclusion|consensus|outcome) is)\b",
    re.IGNORECASE,
)
#: What every match of the expression above has in it; looking for these first is ten times as fast.
_DECIDING_PARTS = (
    "decid",
    "decision",
    "agree",
    "settled",
    "conclu",
    "chose",
    "go with",
    "consensus",
    "outcome",
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|nobody|none|cannot|if|unless|until|whether)\b|n't\b", re.IGNORECASE
)

#: A longer line is data rather than prose; only labels are looked for in it.
_MAX_LINE_CHARS = 20_000

#: Speakers whose last words are kept in mind.
_MAX_SPEAKERS = 200

#: A sentence: up to a mark that a blank or the end follows, so that `3.14` and `a.py` stay whole.
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?]+(?=\s|$)|(?=\n|$))")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from."""

    path: str  #: relative to the memory folder
    who: str  #: ``ann#12``, or ``line 12`` of a text that is no conversation
    at: str  #: ``2026-03-01T09:05:00.000Z``, ``2026-03-01``, or ``undated``

    @property
    def day(self) -> str:
        """``2026-03-01`` or ``undated``."""
        return self.at[:10] if self.at[:1].isdigit() else self.at


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement."""

    kind: str  #: a key of ``KIND_TERMS``
    text: str  #: harmless, without blank ends, at most ``MAX_FACT_CHARS`` and a mark
    sources: tuple[Source, ...]  #: at least one, the first found first


def facts_of_conversation(entries: Iterable[Entry], path: str) -> Iterator[Fact]:
    """The facts of a transcript, in order; last words only if nobody decided anything."""
    last: dict[str, Entry] = {}
    has_decision = False
    for entry in entries:
        source = Source(path, f"{entry.name}#{entry.seq}", timestamp_text(entry.timestamp))
        is_silent = True
        for fact in _facts(entry.text, (source,)):
            is_silent = False
            has_decision = has_decision or fact.kind == "decision"
            yield fact
        if is_silent and not has_decision and entry.text.strip():
            if len(last) >= _MAX_SPEAKERS and entry.name not in last:
                continue
            # Kept short: of a speaker's messages only the last is of use, and then only its beginning.
            last[entry.name] = Entry(
                entry.timestamp, entry.name, entry.seq, None, entry.text[:MAX_FACT_CHARS]
            )
        elif not is_silent:
            last.pop(entry.name, None)
    if not has_decision:
        for entry in sorted(last.values(), key=lambda entry: entry.seq):
            source = Source(path, f"{entry.name}#{entry.seq}", timestamp_text(entry.timestamp))
            if text := _tidy(entry.text):
                yield Fact("last word", text, (source,))


def facts_of_text(paragraphs: Iterable[tuple[int, str]], path: str, day: str) -> Iterator[Fact]:
    """The facts of paragraphs, each with the number of its first line; ``day`` is their date, or ``undated``."""
    for line, text in paragraphs:
        yield from _facts(text, (Source(path, f"line {line}", day),))


def _facts(text: str, sources: tuple[Source, ...]) -> Iterator[Fact]:
    """The facts of one message or paragraph."""
    found = 0
    for kind, statement in _statements(harmless(text).split("\n")):
        tidy = _tidy(statement)
        if tidy:
            yield Fact(kind, tidy, sources)
            found += 1
            if found >= MAX_FACTS_PER_TEXT:
                return


def _statements(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Kind and text, in order."""
    at = 0
    while at < len(lines):
        label = _LABEL.match(lines[at])
        if label is None:
            yield from _sentences(lines[at])
            at += 1
            continue
        part = [lines[at][label.end() :]]
        at += 1
        if not part[0].strip():
            while at < len(lines) and not lines[at].strip():
                at += 1
        while at < len(lines) and lines[at].strip() and not _LABEL.match(lines[at]):
            part.append(lines[at])
            at += 1
        yield _KIND_OF[label[1].lower()], "\n".join(part)


def _sentences(line: str) -> Iterator[tuple[str, str]]:
    """Decisions and questions in running text."""
    if len(line) > _MAX_LINE_CHARS:
        return
    low = line.lower()
    if "?" not in line and not any(part in low for part in _DECIDING_PARTS):
        return
    for found in _SENTENCE.finditer(line):
        sentence = found[0].strip()
        if len(sentence) > _MAX_SENTENCE_CHARS:
            continue
        if sentence.endswith("?"):
            if len(sentence.split()) >= 3:
                yield "question", sentence
            continue
        deciding = _DECIDING.search(sentence)
        if deciding and not _NEGATION.search(sentence[: deciding.end()]):
            yield "decision", sentence


def _tidy(text: str) -> str:
    """``text`` without blank ends, blank lines and trailing blanks, cut if it is too long."""
    tidy = "\n".join(line.rstrip() for line in harmless(text).strip().split("\n") if line.strip())
    if len(tidy) <= MAX_FACT_CHARS:
        return tidy
    return f"{tidy[:MAX_FACT_CHARS].rstrip()} …(+{len(tidy) - MAX_FACT_CHARS} chars)"
