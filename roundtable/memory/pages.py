"""A page of the wiki: markdown that people may edit, in which facts are found again and everything else stays.

Pure. A page is lines. A fact is a list item with its kind, its text and one line per source::

    - **decision** Use a token bucket per key.
        Refill it lazily.
      - ann#12 · 2026-03-01T09:05:00.000Z · [raw/design.txt](../raw/design.txt)

Facts stand below a heading of their day. Lines that are not exactly such a fact are prose and are never changed, so
``Page.parse(text).render() == text`` for every text. No line of a fact's text but its first begins with less than four
blanks, so no text can pass for another fact or source.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from urllib.parse import unquote

from .facts import Fact, Source
from .words import folded, same_fact_key

__all__ = ["MAX_PAGE_BYTES", "UNDATED", "Page", "day_of", "escaped", "page_name", "topic_of"]

#: A page that would grow beyond this is continued in another; a larger one, made by hand, is left alone.
MAX_PAGE_BYTES = 1024 * 1024

#: The day of facts without one.
UNDATED = "undated"

_CONTINUATION = "    "
_FACT = re.compile(r"- \*\*([a-z ]{1,20})\*\* (.+)")
_SOURCE = re.compile(r"  - (\S{1,90}(?: \d{1,12})?) · (\S{1,30}) · \[(raw/[^\[\]()\s]+)\]\(\.\./\3\)")
_DAY = re.compile(r"## (\d{4}-\d\d-\d\d|undated)[ \t\r]*")
_HEADING = re.compile(r"#{1,2} ")
_RELATED = "Related: "

_ESCAPED = re.compile(r"[%\s()\[\]<>\\`|]")
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)")
_DATED_END = re.compile(rf"[-_. ]*{_DATE.pattern}.*$")
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(slots=True)
class Page:
    """The blocks of one page: a line of prose without its newline, or a fact."""

    blocks: list[str | Fact] = field(default_factory=list)

    @classmethod
    def new(cls, title: str) -> Page:
        """A page with nothing but its title."""
        return cls([f"# {title}", ""])

    @classmethod
    def parse(cls, text: str) -> Page:
        """The page that ``text`` is."""
        lines = text.split("\n")
        blocks: list[str | Fact] = []
        at = 0
        while at < len(lines):
            fact, length = _fact_at(lines, at)
            blocks.append(lines[at] if fact is None else fact)
            at += length
        return cls(blocks)

    def render(self) -> str:
        """The text of the page."""
        return "\n".join(
            block if isinstance(block, str) else "\n".join(_lines(block)) for block in self.blocks
        )

    @property
    def title(self) -> str:
        """The first heading, or nothing."""
        for block in self.blocks:
            if isinstance(block, str) and block.startswith("# "):
                return block[2:].strip()
        return ""

    @property
    def facts(self) -> list[Fact]:
        """All facts, in order."""
        return [block for block in self.blocks if isinstance(block, Fact)]

    def add(self, facts: Iterable[Fact]) -> None:
        """Put facts at the end of their day, and days in their order; what is there stays where it is."""
        for day, added in groupby(facts, key=lambda fact: fact.sources[0].day):
            at = self._end_of_day(day)
            self.blocks[at:at] = added

    def merge(self) -> int:
        """Make one fact of those of one kind that say the same (``same_fact_key``); how many are gone.

        The first stays as it is worded and takes over the sources of the others.
        """
        first: dict[tuple[str, tuple[str, ...]], int] = {}
        kept: list[str | Fact] = []
        gone = 0
        for block in self.blocks:
            if isinstance(block, str):
                kept.append(block)
                continue
            key = (block.kind, same_fact_key(block.text))
            at = first.setdefault(key, len(kept))
            if at == len(kept):
                kept.append(block)
                continue
            known = kept[at]
            assert isinstance(known, Fact)  # noqa: S101 - only facts are numbered
            sources = tuple(dict.fromkeys((*known.sources, *block.sources)))
            kept[at] = Fact(known.kind, known.text, sources)
            gone += 1
        if gone:
            self.blocks = _without_empty_days(kept)
        return gone

    def relate(self, own: str, others: Sequence[str]) -> bool:
        """End the page with a line of links to ``others``, or with none; whether that changed it.

        Paths are relative to the memory folder; ``own`` is the page's.
        """
        here = posixpath.dirname(own)
        links = [(posixpath.basename(other), posixpath.relpath(other, here)) for other in others]
        texts = [f"[{escaped(name.removesuffix('.md'))}]({escaped(link)})" for name, link in links]
        wanted = f"{_RELATED}{', '.join(texts)}" if texts else None
        if self.related == wanted:
            return False
        rest = Page(self.blocks)
        while (at := rest._related_at()) is not None:
            rest = Page(rest.blocks[:at])
        blocks = list(rest.blocks)
        while blocks and blocks[-1] == "":
            blocks.pop()
        self.blocks = [*blocks, ""] if wanted is None else [*blocks, "", wanted, ""]
        return True

    @property
    def related(self) -> str | None:
        """The line of links, if there is one."""
        at = self._related_at()
        return None if at is None else str(self.blocks[at])

    def _related_at(self) -> int | None:
        """Where the line of links is. Nothing but blank lines follows it."""
        at = len(self.blocks)
        while at and self.blocks[at - 1] == "":
            at -= 1
        line = self.blocks[at - 1] if at else ""
        return at - 1 if isinstance(line, str) and line.startswith(f"{_RELATED}[") else None

    def _end_of_day(self, day: str) -> int:
        """Where the next fact of ``day`` goes; makes its heading if there is none."""
        related = self._related_at()
        end = len(self.blocks) if related is None else related
        days = [
            (found[1], at)
            for at, block in enumerate(self.blocks[:end])
            if isinstance(block, str) and (found := _DAY.fullmatch(block))
        ]
        for known, at in days:
            if known == day:
                return self._end_of_section(at + 1, end)
        later = next((at for known, at in days if known > day), None)
        at = end if later is None else later
        while at and self.blocks[at - 1] == "":
            at -= 1
        gap = [""] if at else []
        # The blank lines that were before what follows stay there.
        self.blocks[at:at] = [*gap, f"## {day}", ""]
        if at + len(gap) + 2 == len(self.blocks):
            self.blocks.append("")
        return at + len(gap) + 2

    def _end_of_section(self, start: int, end: int) -> int:
        at = start
        while at < end:
            block = self.blocks[at]
            if isinstance(block, str) and _HEADING.match(block):
                break
            at += 1
        while at > start and self.blocks[at - 1] == "":
            at -= 1
        return at


def topic_of(path: str) -> str:
    """The topic a raw file is about by its name: the name without suffix and date, else its folder's."""
    *folders, name = path.split("/")[1:]
    stem = name.rsplit(".", 1)[0] if "." in name else name
    for part in (stem, *reversed(folders)):
        if topic := page_name(_DATE.sub("", part) if _DATE.match(part) else _DATED_END.sub("", part)):
            return topic
    return page_name(stem) or "memory"


def page_name(topic: str) -> str:
    """``topic`` as the name of a page without suffix: words joined by dashes, at most 60 characters."""
    return _NO_WORD.sub("-", folded(topic)).strip("-")[:60].strip("-")


def day_of(path: str) -> str:
    """The date in a path, or ``undated``."""
    found = _DATE.search(path)
    return "-".join(found.groups()) if found else UNDATED


def escaped(path: str) -> str:
    """``path`` fit for a link in markdown; only what would break one is escaped."""
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), path)


def _lines(fact: Fact) -> list[str]:
    first, *rest = fact.text.split("\n")
    return [
        f"- **{fact.kind}** {first}",
        *(f"{_CONTINUATION}{line}" for line in rest),
        *(
            f"  - {source.who} · {source.at} · [{escaped(source.path)}](../{escaped(source.path)})"
            for source in fact.sources
        ),
    ]


def _fact_at(lines: Sequence[str], start: int) -> tuple[Fact | None, int]:
    """The fact that begins at ``start`` and how many lines it has; ``None`` and 1 if none does."""
    head = _FACT.fullmatch(lines[start])
    if head is None:
        return None, 1
    text = [head[2]]
    at = start + 1
    while at < len(lines) and lines[at].startswith(_CONTINUATION):
        text.append(lines[at].removeprefix(_CONTINUATION))
        at += 1
    sources: list[Source] = []
    while at < len(lines) and (found := _SOURCE.fullmatch(lines[at])):
        sources.append(Source(unquote(found[3]), found[1], found[2]))
        at += 1
    fact = Fact(head[1], "\n".join(text), tuple(sources))
    # What would not be written the same way again is somebody's own text.
    return (fact, at - start) if sources and _lines(fact) == list(lines[start:at]) else (None, 1)


def _without_empty_days(blocks: list[str | Fact]) -> list[str | Fact]:
    """``blocks`` without headings of days below which nothing is left."""
    kept: list[str | Fact] = []
    for at, block in enumerate(blocks):
        if isinstance(block, str) and _DAY.fullmatch(block):
            after = next((later for later in blocks[at + 1 :] if later != ""), None)
            is_empty = after is None or (
                isinstance(after, str) and (_DAY.fullmatch(after) or after.startswith(f"{_RELATED}["))
            )
            if is_empty:
                while kept and kept[-1] == "":
                    kept.pop()
                continue
        kept.append(block)
    return kept
