"""Full-text search: an SQLite FTS5 database beside the files, made from them and brought up to date by itself.

The only module that knows SQLite. ``index.db`` holds nothing that the files do not: when it is missing, damaged, of
another version or behind the files, it is made again or brought up to date before it answers. Writers of the index
hold a lock, so that two do not work on one file; who only asks an index that is up to date takes none.

A question never reaches FTS5 as it is: each word is quoted, so no operator, column filter or quote in it means
anything. Blocking.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from ..errors import MemoryFailed
from .files import Searched, passages_of
from .folder import FileStamp, Folder
from .passages import Passage
from .place import WIKI
from .words import indexed

__all__ = ["INDEX", "Found", "Index", "IndexState", "IndexUnavailable", "has_fts5"]

#: The database's name in the memory folder.
INDEX = "index.db"

#: Changed whenever the same files would give other rows.
_VERSION = 1

#: How long another process that is making the index is waited for.
_LOCK_SECONDS = 20.0

#: How long SQLite waits for somebody who is writing.
_BUSY_SECONDS = 10.0

#: A file changed this shortly before it was read may change again without its stamp changing: clocks of file
#: systems tick every few milliseconds. Such a file counts as changed the next time.
_UNSETTLED_NS = 50_000_000

#: What a page's passage counts for more than one of a raw file that matches as well.
_WIKI_WEIGHT = 1.5

#: FTS5 gathers this many bytes before it writes; with its own 1 MiB a large file takes twice as long.
_GATHERED_BYTES = 16 * 1024 * 1024

#: More passages than this are not taken out one by one when they are most of the index: it is made anew.
_MAX_FORGOTTEN = 2000

_SCHEMA = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER, modified_ns INTEGER, inode INTEGER
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, title TEXT, kind TEXT, who TEXT, at TEXT, source TEXT,
    more_sources INTEGER, text TEXT
);
CREATE INDEX passages_of_file ON passages (file);
CREATE VIRTUAL TABLE words USING fts5 (
    title, terms, text, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('hashsize', GATHERED);
""".replace("GATHERED", str(_GATHERED_BYTES))

_COLUMNS = "f.path, p.title, p.kind, p.who, p.at, p.source, p.more_sources, p.text"

_FIND = f"""
SELECT {_COLUMNS} FROM words
JOIN passages AS p ON p.id = words.rowid JOIN files AS f ON f.id = p.file
WHERE words MATCH ?
ORDER BY bm25(words, 1.0, 2.0, 1.0) * CASE WHEN f.path GLOB '{WIKI}/*' THEN {_WIKI_WEIGHT} ELSE 1.0 END,
    f.path GLOB '{WIKI}/*' DESC, p.at DESC, p.id
LIMIT ?
"""  # noqa: S608 - made of constants

_T = TypeVar("_T")


class IndexUnavailable(Exception):
    """There is no index and none can be made; ``str`` says why. The files can still be read through."""


@dataclass(frozen=True, slots=True)
class Found:
    """What matches."""

    total: int
    passages: tuple[Passage, ...]  #: the best first, at most as many as were asked for
    is_partial: bool  #: no passage has all the words; these have some


@dataclass(frozen=True, slots=True)
class IndexState:
    """What doctor tells about the index."""

    is_current: bool
    passages: int
    problem: str | None  #: why it will be made again, if it will


class Index:
    """The index of one folder. Each call opens and closes the database."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def find(self, words: Sequence[str], limit: int, now: Searched) -> Found:
        """The passages with all ``words``, else those with any; brings the index up to date with ``now`` first.

        Raises:
            IndexUnavailable: there is no index and none can be made.
        """

        def ask(database: sqlite3.Connection) -> Found:
            quoted = [f'"{indexed(word)}"' for word in words]
            found = _find(database, " AND ".join(quoted), limit, is_partial=False)
            if found.total == 0 and len(quoted) > 1:
                found = _find(database, " OR ".join(quoted), limit, is_partial=True)
            return found

        return self._with_current(now, ask)

    def update(self, now: Searched) -> int:
        """Bring the index up to date; how many passages it holds.

        Raises:
            IndexUnavailable: as ``find``.
        """
        return self._with_current(now, _count)

    def state(self, now: Searched) -> IndexState:
        """Look, and change nothing."""
        try:
            if not self._folder.exists(INDEX):
                return IndexState(is_current=False, passages=0, problem="missing")
            with _opened(self._folder, is_made=False) as database:
                if _version(database) != _VERSION:
                    return IndexState(is_current=False, passages=0, problem="of another version")
                if (damage := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                    return IndexState(is_current=False, passages=0, problem=f"damaged: {damage}")
                return IndexState(not _stale(database, now), _count(database), None)
        except IndexUnavailable as problem:
            return IndexState(is_current=False, passages=0, problem=str(problem))
        except (sqlite3.Error, UnicodeError) as problem:
            return IndexState(is_current=False, passages=0, problem=f"damaged: {problem}")

    def _with_current(self, now: Searched, ask: Callable[[sqlite3.Connection], _T]) -> _T:
        if not has_fts5():
            raise IndexUnavailable("this Python's SQLite has no FTS5")
        with suppress(sqlite3.Error, UnicodeError, IndexUnavailable):
            # Nothing to do is what is usual, and needs no lock.
            if self._folder.exists(INDEX):
                with _opened(self._folder, is_made=False) as database:
                    if _version(database) == _VERSION and not _stale(database, now):
                        return ask(database)
        try:
            with self._folder.locked("index.lock", seconds=_LOCK_SECONDS):
                try:
                    return self._update_and_ask(now, ask)
                except (sqlite3.DatabaseError, UnicodeError):
                    # Damaged, of another version, not a database at all: it holds nothing that the files do not.
                    _remove(self._folder)
                    return self._update_and_ask(now, ask)
        except (sqlite3.Error, MemoryFailed, UnicodeError, OSError) as problem:
            raise IndexUnavailable(str(problem)) from problem

    def _update_and_ask(self, now: Searched, ask: Callable[[sqlite3.Connection], _T]) -> _T:
        if not _is_file(self._folder):
            _remove(self._folder)
        with _opened(self._folder, is_made=True) as database:
            if _version(database) not in {0, _VERSION}:
                raise sqlite3.DatabaseError("of another version")
            with database:  # one transaction: killed in the middle, the index is as it was
                database.execute("BEGIN IMMEDIATE")
                if _version(database) == 0:
                    for statement in _SCHEMA.split(";\n"):
                        database.execute(statement)
                    database.execute(f"PRAGMA user_version = {_VERSION}")
                stale = _stale(database, now)
                if _is_mostly_stale(database, stale):
                    raise sqlite3.DatabaseError("mostly behind the files")
                for path, file in stale.items():
                    if file is not None:
                        _forget(database, file)
                    if path in now.files:
                        _learn(database, self._folder, path, now.files[path])
            return ask(database)


def has_fts5() -> bool:
    """Whether this Python's SQLite can search texts."""
    with closing(sqlite3.connect(":memory:")) as database, suppress(sqlite3.Error):
        database.execute("CREATE VIRTUAL TABLE probe USING fts5 (text)")
        return True
    return False


@contextmanager
def _opened(folder: Folder, *, is_made: bool) -> Iterator[sqlite3.Connection]:
    """The database, which must be a regular file: SQLite would follow a link.

    Raises:
        IndexUnavailable: something else has its name.
        sqlite3.Error: it cannot be opened.
    """
    if is_made:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        os.close(os.open(INDEX, flags, 0o600, dir_fd=folder.handle))
    if not _is_file(folder):
        raise IndexUnavailable(f"{INDEX} is no regular file")
    with closing(
        sqlite3.connect(folder.path / INDEX, timeout=_BUSY_SECONDS, isolation_level=None)
    ) as database:
        yield database


def _is_file(folder: Folder) -> bool:
    """Whether the database is a regular file, or not there."""
    try:
        status = os.stat(INDEX, dir_fd=folder.handle, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return stat.S_ISREG(status.st_mode)


def _remove(folder: Folder) -> None:
    """Take the database away; a journal first, which must never be played back into another."""
    for name in (f"{INDEX}-journal", f"{INDEX}-wal", f"{INDEX}-shm", INDEX):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder.handle)


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _count(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT count(*) FROM passages").fetchone()[0])


def _stale(database: sqlite3.Connection, now: Searched) -> dict[str, int | None]:
    """Paths that are new, changed or gone, and the number of their file in the index if they have one."""
    stale: dict[str, int | None] = dict.fromkeys(now.files)
    for number, path, *stamp in database.execute("SELECT id, path, size, modified_ns, inode FROM files"):
        if now.files.get(path) == FileStamp(*stamp):
            del stale[path]
        else:
            stale[path] = number
    return stale


def _is_mostly_stale(database: sqlite3.Connection, stale: dict[str, int | None]) -> bool:
    """Whether making the index anew is less work than bringing it up to date."""
    forgotten = sum(
        int(database.execute("SELECT count(*) FROM passages WHERE file = ?", (file,)).fetchone()[0])
        for file in stale.values()
        if file is not None
    )
    return forgotten > _MAX_FORGOTTEN and forgotten > _count(database) / 2


def _forget(database: sqlite3.Connection, file: int) -> None:
    rows = database.execute("SELECT id, title, kind, text FROM passages WHERE file = ?", (file,))
    for number, title, kind, text in rows:
        terms = Passage("", "", kind, "", "", "", 0, "").terms
        # An index without content is told what it is to forget.
        database.execute(
            "INSERT INTO words (words, rowid, title, terms, text) VALUES ('delete', ?, ?, ?, ?)",
            (number, indexed(title), terms, indexed(text)),
        )
    database.execute("DELETE FROM passages WHERE file = ?", (file,))
    database.execute("DELETE FROM files WHERE id = ?", (file,))


def _learn(database: sqlite3.Connection, folder: Folder, path: str, stamp: FileStamp) -> None:
    is_settled = abs(time.time_ns() - stamp.modified_ns) > _UNSETTLED_NS
    file = database.execute(
        "INSERT INTO files (path, size, modified_ns, inode) VALUES (?, ?, ?, ?)",
        (path, stamp.size, stamp.modified_ns if is_settled else -1, stamp.inode),
    ).lastrowid
    try:
        for passage in passages_of(folder, path):
            title, text = _storable(passage.title), _storable(passage.text)
            number = database.execute(
                "INSERT INTO passages (file, title, kind, who, at, source, more_sources, text) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    file,
                    title,
                    passage.kind,
                    passage.who,
                    passage.at,
                    passage.source,
                    passage.more_sources,
                    text,
                ),
            ).lastrowid
            database.execute(
                "INSERT INTO words (rowid, title, terms, text) VALUES (?, ?, ?, ?)",
                (number, indexed(title), passage.terms, indexed(text)),
            )
    except (FileNotFoundError, MemoryFailed):
        # Gone or closed to us since it was listed. What was read of it is found; the next look sees the rest.
        database.execute("UPDATE files SET modified_ns = -1 WHERE id = ?", (file,))


def _storable(text: str) -> str:
    """``text`` without lone surrogates, which JSON can carry and UTF-8 cannot."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _find(database: sqlite3.Connection, expression: str, limit: int, *, is_partial: bool) -> Found:
    (total,) = database.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression,)).fetchone()
    rows = database.execute(_FIND, (expression, limit)).fetchall() if total else []
    return Found(int(total), tuple(Passage(*row) for row in rows), is_partial)
