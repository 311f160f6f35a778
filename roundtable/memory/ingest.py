"""A raw file put into pages: its facts under its topic, each once, however often it is ingested.

The topic is the room if the file says it (JSON transcripts), else what the file is called without suffix and date. A
fact counts as known when its message, or for other texts the same words, stand in a page with this file as source, or
the same message from another file does. So a file that has grown adds what is new, and one that has not adds nothing;
the latter is seen by its hash, without reading a page.

Blocking; whoever calls holds the lock. Each page is replaced as a whole, the list of sources last: a call that is
killed in between is made good by the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from ..errors import MemoryFailed, UsageProblem
from ..harmless import harmless_line
from ..transcript import Entry
from .facts import Fact, facts_of_conversation, facts_of_text
from .files import MAX_READ_PAGE_BYTES, SOURCES_PAGE, is_page, searched
from .folder import MAX_FILE_BYTES, Folder
from .pages import MAX_PAGE_BYTES, Page, day_of, page_name, topic_of
from .passages import Conversation, conversation, paragraphs
from .place import RAW, WIKI
from .sources import EMPTY_SOURCES, ingested_hashes, with_source
from .wording import count, some
from .words import same_fact_key

__all__ = ["MAX_NEW_FACTS", "Ingested", "ingest"]

#: New facts of one call; what is beyond stays in the raw file, where it is found as text.
MAX_NEW_FACTS = 5000

#: Read at a time for the hash.
_CHUNK_BYTES = 1024 * 1024

#: Names of raw files that are shown when the wanted one is not there.
_SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True)
class Ingested:
    """What was done: what to tell, and which files were written."""

    text: str
    written: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    """What turns out while a file is read."""

    messages: int = 0
    strays: int = 0  #: lines of a transcript that belong to no message
    room: str | None = None
    is_conversation: bool = False
    is_utf8: bool = True


class _Known:
    """What stands in pages already."""

    def __init__(self, folder: Folder) -> None:
        self._messages: set[tuple[str, str, str]] = set()
        self._statements: set[tuple[Hashable, ...]] = set()
        for path in filter(is_page, searched(folder).pages):
            text = folder.text(path, MAX_READ_PAGE_BYTES)
            for fact in Page.parse(text).facts if text is not None else ():
                for source in fact.sources:
                    self._messages.add((source.path, source.who, source.at))
                    self._statements.add(_statement(fact, source.who, source.at))
                    self._statements.add(_statement(fact, source.path, ""))

    def is_new(self, fact: Fact, *, is_conversation: bool) -> bool:
        """Whether ``fact`` stands nowhere yet; from now on it counts as known."""
        source = fact.sources[0]
        if is_conversation:
            if (source.path, source.who, source.at) in self._messages:
                return False
            statement = _statement(fact, source.who, source.at)
        else:
            statement = _statement(fact, source.path, "")
        if statement in self._statements:
            return False
        self._statements.add(statement)
        return True


def ingest(folder: Folder, path: str) -> Ingested:
    """Put the facts of the raw file ``path`` into pages.

    Raises:
        UsageProblem: it is not there, or too large.
        MemoryFailed: it cannot be read, or a page cannot be written.
    """
    digest = _hash(folder, path)
    try:
        ledger = folder.text(SOURCES_PAGE, MAX_READ_PAGE_BYTES)
    except FileNotFoundError:
        ledger = EMPTY_SOURCES
    if ledger is None:
        raise MemoryFailed(
            f"cannot use {SOURCES_PAGE}: it is over {MAX_READ_PAGE_BYTES // 2**20} MiB or no UTF-8",
            hint="mend it, or move it away: it is made anew",
        )
    hashes = ingested_hashes(ledger)
    if hashes.get(path) == digest:
        return Ingested(f"{harmless_line(path)} was ingested before and has not changed; nothing added.", ())
    twin = next((other for other, known in sorted(hashes.items()) if known == digest), None)

    reading = _Reading()
    known = _Known(folder)
    new: list[Fact] = []
    repeated = beyond = 0
    for fact in _facts(folder, path, reading):
        if not known.is_new(fact, is_conversation=reading.is_conversation):
            repeated += 1
        elif len(new) < MAX_NEW_FACTS:
            new.append(fact)
        else:
            beyond += 1
    topic = (page_name(reading.room) if reading.room else "") or topic_of(path)
    pages = _write(folder, topic, new)

    kinds = Counter(fact.kind for fact in new)
    told = ", ".join(count(number, kind) for kind, number in sorted(kinds.items()))
    found = f"{count(len(new), 'new fact')}{f' ({told})' if told else ''}"
    places = some(pages, _SHOWN_NAMES)
    read = count(reading.messages, "message") if reading.is_conversation else "text"
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with folder.replacing(SOURCES_PAGE) as file:
        file.write(with_source(ledger, path, digest=digest, at=at, found=f"{read}, {found}").encode())

    text = f"Ingested {harmless_line(path)}: {read}, {found}{f' in {places}' if places else ''}."
    if repeated:
        text += f" {count(repeated, 'fact')} stood there already."
    if twin is not None:
        text += f" It has the same content as {harmless_line(twin)}."
    if beyond:
        text += (
            f" {beyond} more were not taken over ({MAX_NEW_FACTS} at a time); they are found in the raw file."
        )
    if reading.strays:
        text += f" {count(reading.strays, 'line')} belonged to no message; found as text."
    if not reading.is_utf8:
        text += " It is not UTF-8 throughout: bytes that are none were read as U+FFFD."
    return Ingested(text, (*pages, SOURCES_PAGE))


def _hash(folder: Folder, path: str) -> str:
    try:
        with folder.reading(path) as file:
            digest, size = sha256(), 0
            while data := file.read(_CHUNK_BYTES):
                digest.update(data)
                size += len(data)
                if size > MAX_FILE_BYTES:
                    raise UsageProblem(
                        f"{harmless_line(path)} is over {MAX_FILE_BYTES // 2**20} MiB",
                        hint="split it into smaller files",
                    )
            return digest.hexdigest()
    except FileNotFoundError:
        names = searched(folder).raw
        there = f"{RAW}/ has {some(names, _SHOWN_NAMES)}" if names else f"{RAW}/ is empty"
        raise UsageProblem(
            f"there is no {harmless_line(path)} in {folder.path}", hint=f"{there}; export a room first"
        ) from None


def _facts(folder: Folder, path: str, reading: _Reading) -> Iterator[Fact]:
    """The facts of a file; fills ``reading``."""
    with folder.lines(path) as lines:
        found = conversation(lines, path)
        if isinstance(found, Conversation):
            reading.is_conversation = True
            yield from facts_of_conversation(_entries(found, reading), path)
        else:
            texts = ((number, text) for number, _, text in paragraphs(found))
            yield from facts_of_text(texts, path, day_of(path))
        reading.is_utf8 = lines.is_utf8


def _entries(found: Conversation, reading: _Reading) -> Iterator[Entry]:
    for entry in found.entries:
        if isinstance(entry, str):
            reading.strays += bool(entry.strip())
            continue
        reading.messages += 1
        reading.room = reading.room or entry.room
        yield entry


def _statement(fact: Fact, who: str, at: str) -> tuple[Hashable, ...]:
    # As the gardener compares: what it has merged must be known again.
    return fact.kind, same_fact_key(fact.text), who, at


def _write(folder: Folder, topic: str, facts: list[Fact]) -> tuple[str, ...]:
    """Add ``facts`` to the last page of ``topic`` that has room, and to as many more as they take."""
    written: list[str] = []
    number, at = 1, 0
    while at < len(facts):
        path = _page_path(topic, number)
        number += 1
        try:
            text = folder.text(path, MAX_PAGE_BYTES)
        except FileNotFoundError:
            text = ""
        if text is None:
            continue  # full, or somebody's own
        page = Page.parse(text) if text else Page.new(topic if number == 2 else f"{topic} {number - 1}")
        size, begin = len(text.encode()), at
        while at < len(facts) and (size < MAX_PAGE_BYTES or begin == at):
            size += len(facts[at].text.encode()) + 200  # and its source
            at += 1
        page.add(facts[begin:at])
        with folder.replacing(path) as file:
            file.write(page.render().encode())
        written.append(path)
    return tuple(written)


def _page_path(topic: str, number: int) -> str:
    # Names of topics have no dot, so a page that continues one is no topic's own. The list of sources has its name.
    name = f"{topic}-topic" if f"{WIKI}/{topic}.md" == SOURCES_PAGE else topic
    return f"{WIKI}/{name}.md" if number == 1 else f"{WIKI}/{name}.{number}.md"
