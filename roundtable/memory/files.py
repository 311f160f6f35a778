"""The files of a memory as passages: which are searched, and how each is read.

Every search goes through here, with a database or without one, so both find the same passages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .folder import FileStamp, Folder
from .pages import MAX_PAGE_BYTES, Page
from .passages import Passage, page_passages, raw_passages
from .place import RAW, WIKI

__all__ = ["MAX_READ_PAGE_BYTES", "SOURCES_PAGE", "Searched", "is_page", "passages_of", "searched"]

#: What has been ingested; for people, and for ingest itself. It is no answer to any question.
SOURCES_PAGE = f"{WIKI}/sources.md"

#: A page up to this size is read as one, facts and all; a larger one, made by hand, as a text like any other.
MAX_READ_PAGE_BYTES = 4 * MAX_PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Searched:
    """What can be searched now."""

    files: dict[str, FileStamp]  #: pages first
    skipped: tuple[tuple[str, str], ...]  #: what is there and not read, and why
    leftovers: tuple[str, ...]  #: temporary files of writers that were killed

    @property
    def pages(self) -> list[str]:
        """The pages, without the list of sources."""
        return [path for path in self.files if path.startswith(f"{WIKI}/")]

    @property
    def raw(self) -> list[str]:
        """The raw files."""
        return [path for path in self.files if path.startswith(f"{RAW}/")]


def searched(folder: Folder) -> Searched:
    """Look what there is.

    Raises:
        MemoryFailed: ``wiki`` or ``raw`` is no folder of its own.
    """
    wiki, raw = folder.listing(WIKI), folder.listing(RAW)
    files = {path: stamp for path, stamp in {**wiki.files, **raw.files}.items() if path != SOURCES_PAGE}
    return Searched(files, wiki.skipped + raw.skipped, wiki.leftovers + raw.leftovers)


def is_page(path: str) -> bool:
    """Whether ``path`` is one whose facts are kept apart."""
    return path.startswith(f"{WIKI}/") and path.endswith(".md") and path != SOURCES_PAGE


def passages_of(folder: Folder, path: str) -> Iterator[Passage]:
    """The passages of one file, as long as it is there.

    Raises:
        FileNotFoundError, MemoryFailed: it is gone, or cannot be read.
    """
    if is_page(path):
        text = folder.text(path, MAX_READ_PAGE_BYTES)
        if text is not None:
            yield from page_passages(Page.parse(text), path)
            return
    with folder.lines(path) as lines:
        yield from raw_passages(lines, path)
