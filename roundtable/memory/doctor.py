"""What is where in a memory, in what state, and what to do about each thing that is wrong. Changes nothing.

Blocking, but for git, whose state is handed in.
"""

from __future__ import annotations

import codecs
import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MemoryFailed
from ..harmless import harmless_line
from .files import MAX_READ_PAGE_BYTES, SOURCES_PAGE, Searched, is_page, searched
from .folder import Folder
from .history import GitState
from .index import INDEX, Index, has_fts5
from .pages import Page
from .place import RAW, WIKI, Place
from .sources import ingested_hashes
from .wording import count, some

__all__ = ["Report", "examine", "nothing_there", "standing"]

#: Names and problems shown; the others are counted.
_SHOWN = 10

_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """Lines for people, problems with what to do, and the numbers for programs."""

    lines: tuple[str, ...]
    problems: tuple[tuple[str, str], ...] = ()  #: what is wrong, what to do
    numbers: dict[str, Any] | None = None

    def text(self) -> str:
        """Everything as one text."""
        lines = list(self.lines)
        if self.problems:
            lines.append(f"{count(len(self.problems), 'problem')}:")
            lines.extend(f"- {problem} — {remedy}" for problem, remedy in self.problems[:_SHOWN])
            if len(self.problems) > _SHOWN:
                lines.append(f"- and {len(self.problems) - _SHOWN} more; --json lists them all")
        elif self.numbers is not None:
            lines.append("No problems.")
        return "\n".join(lines)


def standing(place: Place, role: str | None) -> tuple[str, ...]:
    """Where the memory is, what keeps it, and what ``role`` may do."""
    folder = harmless_line(str(place.folder))
    real = os.path.realpath(place.folder)
    led = f" (leads to {harmless_line(real)})" if real != str(place.folder) else ""
    kept = "built in" if place.command is None else f"kept by `{harmless_line(shlex.join(place.command))}`"
    if role == place.writer:
        may = "this session is the writer"
    else:
        who = f'this session is "{harmless_line(role)[:64]}"' if role else "this session has no role name"
        may = f"{who} and may ask"
    return (f"Memory at {folder}{led}, {kept}.", f'Only "{place.writer}" writes; {may}.')


def nothing_there(place: Place, role: str | None) -> Report:
    """The report of a folder that is not there yet."""
    lines = (*standing(place, role), "The folder is not there yet: the first export or ingest makes it.")
    return Report(lines, (), {"pages": 0, "facts": 0, "raw": 0})


def examine(place: Place, role: str | None, folder: Folder, git: GitState) -> Report:
    """Look at everything.

    Raises:
        MemoryFailed: ``wiki`` or ``raw`` cannot be looked at.
    """
    problems: list[tuple[str, str]] = []
    now = searched(folder)
    facts = sum(_facts(folder, path, problems) for path in now.pages)
    waiting = _not_ingested(folder, now, problems)
    for path in now.raw:
        if not _is_utf8(folder, path, problems):
            problems.append((f"{harmless_line(path)} is not UTF-8", "it is read with U+FFFD; convert it"))
    for path, reason in now.skipped:
        problems.append((f"{harmless_line(path)} is not read: {reason}", "replace it with a regular file"))
    problems.extend(
        (f"{harmless_line(path)} was left by a writer that was stopped", "delete it")
        for path in now.leftovers
    )
    _check_folder(folder, problems)
    if git.problem is not None:
        problems.append((git.problem, f"look with `git -C {shlex.quote(str(folder.path))} status`"))

    index = Index(folder).state(now)
    if not has_fts5():
        state = "none: this Python's SQLite has no FTS5; every query reads all files through"
        problems.append(("searches are slow without FTS5", "use a Python whose SQLite has it"))
    elif index.problem is not None:
        state = f"{INDEX} is {index.problem}; the next query makes it"
    else:
        behind = "" if index.is_current else "; behind the files, the next query brings it up to date"
        state = f"{INDEX}, {count(index.passages, 'passage')}{behind}"

    wiki_bytes = sum(now.files[path].size for path in now.pages)
    raw_bytes = sum(now.files[path].size for path in now.raw)
    lines = [
        *standing(place, role),
        f"{WIKI}/: {count(len(now.pages), 'page')}, {count(facts, 'fact')}, {_size(wiki_bytes)}.",
        f"{RAW}/: {count(len(now.raw), 'file')}, {_size(raw_bytes)}{_waiting(waiting)}.",
        f"Index: {state}.",
        f"Git: {git.text}.",
    ]
    numbers = {
        "pages": len(now.pages),
        "facts": facts,
        "pageBytes": wiki_bytes,
        "raw": len(now.raw),
        "rawBytes": raw_bytes,
        "notIngested": waiting,
        "passages": index.passages,
        "isIndexCurrent": index.is_current,
        "hasFts5": has_fts5(),
    }
    return Report(tuple(lines), tuple(problems), numbers)


def _facts(folder: Folder, path: str, problems: list[tuple[str, str]]) -> int:
    try:
        text = folder.text(path, MAX_READ_PAGE_BYTES)
    except (FileNotFoundError, MemoryFailed) as problem:
        problems.append((f"{harmless_line(path)} cannot be read: {problem}", "look at its rights"))
        return 0
    if text is None:
        told = f"{harmless_line(path)} is over {MAX_READ_PAGE_BYTES // 2**20} MiB or not UTF-8"
        problems.append((told, "it is searched as text, its facts are not tended; split or convert it"))
        return 0
    return len(Page.parse(text).facts) if is_page(path) else 0


def _not_ingested(folder: Folder, now: Searched, problems: list[tuple[str, str]]) -> list[str]:
    try:
        ledger = folder.text(SOURCES_PAGE, MAX_READ_PAGE_BYTES)
    except FileNotFoundError:
        return now.raw
    except MemoryFailed as problem:
        problems.append((str(problem), "look at its rights"))
        return now.raw
    if ledger is None:
        problems.append(
            (f"{SOURCES_PAGE} is too large or not UTF-8", "mend it, or delete it: it is made anew")
        )
        return now.raw
    known = ingested_hashes(ledger)
    return [path for path in now.raw if path not in known]


def _is_utf8(folder: Folder, path: str, problems: list[tuple[str, str]]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with folder.reading(path) as file:
            while data := file.read(_CHUNK_BYTES):
                decoder.decode(data)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except (FileNotFoundError, MemoryFailed) as problem:
        problems.append((f"{harmless_line(path)} cannot be read: {problem}", "look at its rights"))
    return True


def _check_folder(folder: Folder, problems: list[tuple[str, str]]) -> None:
    status = os.fstat(folder.handle)
    where = shlex.quote(str(folder.path))
    if status.st_uid != os.geteuid():
        problems.append((f"the folder belongs to user {status.st_uid}", "use a folder of your own"))
    elif stat.S_IMODE(status.st_mode) & 0o022:
        problems.append(("others may write to the folder", f"chmod go-w {where}"))
    if not os.access(Path(folder.path), os.W_OK):
        problems.append(("the folder cannot be written", f"chmod u+w {where}"))


def _waiting(paths: list[str]) -> str:
    if not paths:
        return ""
    return f"; not ingested: {some(paths, _SHOWN)}"


def _size(number: int) -> str:
    return f"{number} bytes" if number < 10_000 else f"{number / 1024:.0f} KiB"
