"""What can be found: a file of the memory as passages of at most 2,000 characters, each with its place and date.

Pure; takes lines and gives passages one by one, so a file of any size goes through. A page gives its facts and its
paragraphs, a transcript its messages, any other text its paragraphs. Long ones are cut at blanks; nothing is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..transcript import Entry, read, read_json, timestamp_text
from .facts import KIND_TERMS, Fact
from .pages import Page, day_of, topic_of
from .place import WIKI

__all__ = [
    "MAX_PASSAGE_CHARS",
    "Conversation",
    "Passage",
    "conversation",
    "page_passages",
    "paragraphs",
    "raw_passages",
]

#: A longer message or paragraph is several passages.
MAX_PASSAGE_CHARS = 2000

#: Blank ends of a passage are looked for this far back from where it must be cut.
_CUT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that can be an answer, and where it stands."""

    path: str  #: of the file, relative to the memory folder
    title: str  #: topic of the file, or the heading it stands below
    kind: str  #: of a fact; ``""`` for anything else
    who: str  #: ``ann#12``, ``line 12``; may be empty
    at: str  #: time or day; ``undated``
    source: str  #: the raw file a fact comes from; ``""`` for anything else
    more_sources: int  #: how many more a fact has
    text: str  #: as it stands in the file

    @property
    def is_wiki(self) -> bool:
        """Whether it stands in a page rather than in a raw file."""
        return self.path.startswith(f"{WIKI}/")

    @property
    def terms(self) -> str:
        """Words it is found by although its text need not have them."""
        return KIND_TERMS.get(self.kind, "")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A raw file that is a transcript; what belongs to no message comes as a line of text."""

    entries: Iterator[Entry | str]


def conversation(lines: Iterable[str], path: str) -> Conversation | Iterator[str]:
    """``lines`` as a transcript if they are one by their name or first line, else as they are."""
    rest = iter(lines)
    if path.endswith(".jsonl"):
        return Conversation(read_json(rest))
    begin: list[str] = []
    for line in rest:
        begin.append(line)
        if line.strip() or len(begin) > 100:
            break
    whole = itertools.chain(begin, rest)
    is_transcript = bool(begin) and isinstance(next(read(begin[-1:])), Entry)
    return Conversation(read(whole)) if is_transcript else whole


def raw_passages(lines: Iterable[str], path: str) -> Iterator[Passage]:
    """The passages of a raw file."""
    found = conversation(lines, path)
    topic, day = topic_of(path), day_of(path)
    if not isinstance(found, Conversation):
        for number, heading, text in paragraphs(found):
            yield Passage(path, f"{topic} {heading}".strip(), "", f"line {number}", day, "", 0, text)
        return
    for entry in found.entries:
        if isinstance(entry, str):
            for text in _cut(entry):
                yield Passage(path, topic, "", "", day, "", 0, text)
            continue
        at, who = timestamp_text(entry.timestamp), f"{entry.name}#{entry.seq}"
        title = f"{topic} {entry.room}" if entry.room and entry.room != topic else topic
        for text in _cut(entry.text):
            yield Passage(path, title, "", who, at, "", 0, text)


def page_passages(page: Page, path: str) -> Iterator[Passage]:
    """The passages of a page: its facts, and its prose by paragraphs."""
    title = page.title or path.rsplit("/", 1)[-1].removesuffix(".md")
    day = day_of(path)
    prose: list[str] = []

    def spoken() -> Iterator[Passage]:
        # Headings alone, as of a day, say nothing: they are what facts stand below.
        if any(line.strip() and not line.startswith("#") for line in prose):
            for _, heading, text in paragraphs(prose):
                yield Passage(
                    path,
                    f"{title} {heading}".strip(),
                    "",
                    "",
                    day_of(heading) if heading else day,
                    "",
                    0,
                    text,
                )
        prose.clear()

    for block in page.blocks:
        if isinstance(block, Fact):
            yield from spoken()
            first = block.sources[0]
            for text in _cut(block.text):
                yield Passage(
                    path, title, block.kind, first.who, first.at, first.path, len(block.sources) - 1, text
                )
        elif not block.startswith("Related: ["):
            prose.append(block)
    yield from spoken()


def paragraphs(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Number of the first line, the heading above, and the text of each paragraph, cut where it is too long.

    A heading (``# …``) is no paragraph of its own, unless nothing follows it.
    """
    heading = ""
    is_heading_told = True
    part: list[str] = []
    start = size = number = 0

    def told() -> Iterator[tuple[int, str, str]]:
        for text in _cut("\n".join(part)):
            yield start, heading, text
        part.clear()

    for number, line in enumerate(lines, 1):
        mark, _, rest = line.partition(" ")
        is_heading = 0 < len(mark) <= 6 and not mark.strip("#") and rest.strip() and len(line) <= 200
        if is_heading or not line.strip():
            if part:
                yield from told()
                is_heading_told = True
            if is_heading:
                if not is_heading_told:
                    yield start, "", heading
                heading, is_heading_told, start = rest.strip(), False, number
            continue
        if not part:
            start, size = number, 0
        part.append(line)
        size += len(line) + 1
        if size > MAX_PASSAGE_CHARS:
            yield from told()
            is_heading_told = True
    if part:
        yield from told()
    elif not is_heading_told:
        yield start, "", heading


def _cut(text: str) -> Iterator[str]:
    """``text`` in pieces, cut at a blank if there is one near; nothing for blank text."""
    at = 0
    while at < len(text):
        end = at + MAX_PASSAGE_CHARS
        if end < len(text):
            blank = max(text.rfind(" ", end - _CUT_CHARS, end), text.rfind("\n", end - _CUT_CHARS, end))
            end = blank + 1 if blank > at else end
        piece = text[at:end]
        if piece.strip():
            yield piece
        at = end
