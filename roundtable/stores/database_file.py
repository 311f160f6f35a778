"""A SQLite file of ours: made whole or not at all, left as it is when it cannot be used, held by one process.

A file that is not ours, not whole or not free is not changed by a byte: it is recognised by its header before SQLite
opens it, and read through a connection that cannot write before the one that writes is opened. A new file is made
beside its place and linked into it, so that nobody ever sees half of one and none is overwritten.

It is written with a write-ahead log and ``synchronous`` FULL: what was committed is on disk. The lock is SQLite's own,
so that other programs heed it too; it is taken at the start and held until the end.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ..errors import StoreUnavailable

__all__ = ["Damaged", "DatabaseFile", "told_of"]

#: What every SQLite file begins with, and where two 4-byte big-endian numbers lie in its header
#: (https://www.sqlite.org/fileformat.html).
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_USER_VERSION_AT = 60
_APPLICATION_ID_AT = 68

#: Marks a file as one of ours.
_APPLICATION_ID = int.from_bytes(b"FLRT", "big")

#: How long a start waits for the lock. A broker that was just stopped or killed lets go of it in a moment.
_LOCK_SECONDS = 2.0

#: A log that one large turn has made longer is cut to this when it begins anew.
_MAX_LOG_BYTES = 16 * 1024 * 1024

_ELSEWHERE = "name another file with --store sqlite:PATH"

#: Left beside a file, they would be taken for those of the next one there.
_BESIDE = "the -wal and -shm beside it"


class Damaged(Exception):
    """The file is ours, and what it holds cannot be."""


class DatabaseFile:
    """The file at ``path``, which is there and looks like one of ours; made with ``tables`` if nothing was there.

    Everything here raises what ``told_of`` turns into one error.
    """

    def __init__(self, path: Path, *, tables: str, version: int) -> None:
        self.path = path
        # A link may lead to another disk; SQLite keeps its log beside the file itself.
        self._place = Path(os.path.realpath(path))
        self._version = version
        if not self._place.parent.is_dir():
            raise StoreUnavailable(path, "its folder does not exist", hint="make the folder first")
        if not os.access(self._place.parent, os.W_OK | os.X_OK):
            raise StoreUnavailable(
                path,
                "its folder cannot be written, and a log must lie beside it",
                hint=f"mend that, or {_ELSEWHERE}",
            )
        if not self._place.exists():
            self._check_alone()
            self._make(tables)
        self._check_owner()
        self._check_header()
        self._state = self._look()

    def open_to_read(self) -> sqlite3.Connection:
        """A connection that cannot write, to a file that is whole as far as SQLite can tell."""
        # With a log there, somebody may be using the file, or has died over it: the log belongs to what is read, and
        # so do the locks. Without one nobody has it open, and SQLite is told so; else it would make an empty log.
        is_at_rest = not any(self._beside(end).exists() for end in ("-wal", "-journal"))
        database = self._connect("mode=ro&immutable=1" if is_at_rest else "mode=ro")
        try:
            self._check_whole(database)
        except BaseException:
            database.close()
            raise
        return database

    def open_to_write(self) -> sqlite3.Connection:
        """The one connection that writes; holds the lock for as long as it lives. The one that reads is closed before.

        Transactions are begun and ended by whoever writes.
        """
        database = self._connect("mode=rw")
        try:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(f"PRAGMA journal_size_limit = {_MAX_LOG_BYTES}")
            database.execute("BEGIN EXCLUSIVE")
            database.execute("ROLLBACK")
            self._check_unchanged()
            self._write_ahead(database)
            # Left by whoever read the log beside a dead broker; who has the file alone keeps no index of it there.
            self._beside("-shm").unlink(missing_ok=True)
            for end in ("", "-wal"):  # it may have stood wider
                with suppress(FileNotFoundError):
                    self._beside(end).chmod(0o600)
        except BaseException:
            database.close()
            raise
        return database

    def _connect(self, options: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._place.as_uri()}?{options}", uri=True, timeout=_LOCK_SECONDS, isolation_level=None
        )

    def _write_ahead(self, database: sqlite3.Connection) -> None:
        (mode,) = database.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreUnavailable(self.path, "no write-ahead log can be kept beside it", hint=_ELSEWHERE)

    def _make(self, tables: str) -> None:
        """Put a new file into its place in one step; one that somebody else has put there meanwhile stays."""
        descriptor, name = tempfile.mkstemp(
            prefix=f".{self._place.name}.", dir=self._place.parent
        )  # mode 0600
        os.close(descriptor)
        try:
            with closing(sqlite3.connect(name, isolation_level=None)) as database:
                database.executescript(
                    f"PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {self._version};"
                    f"PRAGMA journal_mode = WAL; BEGIN; {tables} COMMIT;"
                )
            with suppress(FileExistsError):
                self._place.hardlink_to(name)
        finally:
            for end in ("", "-wal", "-shm", "-journal"):
                Path(name + end).unlink(missing_ok=True)
        # The name must be on disk as well before anything in the file is promised.
        folder = os.open(self._place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _check_alone(self) -> None:
        """Look that no log of a file that is gone lies here: SQLite would write it into whatever file comes next."""
        for end in ("-wal", "-journal"):
            beside = self._beside(end)
            if beside.exists() and beside.stat().st_size:
                raise StoreUnavailable(
                    self.path,
                    f"it is not there, but {beside.name}, which holds its last changes, is",
                    hint="put the file back, or move that away with the -shm beside it and a new one is made",
                )

    def _check_owner(self) -> None:
        for end in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                owner = self._beside(end).stat().st_uid
                if owner != os.geteuid():
                    raise StoreUnavailable(
                        self._beside(end), f"it belongs to user {owner}", hint="name a file of your own"
                    )

    def _check_header(self) -> None:
        """Look that it is one of ours, without SQLite, which might change it."""
        if self._place.is_dir():
            raise StoreUnavailable(self.path, "it is a folder", hint="name a file in it")
        # Opened for writing to learn whether it may be written; SQLite would make do without and fail later. A pipe
        # must not be waited for. And all of this comes before SQLite has it: closing any descriptor of a file lets go
        # of the locks that this process holds on it.
        descriptor = os.open(self._place, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            header = os.read(descriptor, _HEADER_BYTES) if stat.S_ISREG(mode) else b""
        finally:
            os.close(descriptor)
        if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
            raise StoreUnavailable(
                self.path,
                "it is empty" if stat.S_ISREG(mode) and not header else "it is no SQLite database",
                hint=f"{_ELSEWHERE}, or move this one away with {_BESIDE} and a new one is made",
            )
        if _number(header, _APPLICATION_ID_AT) != _APPLICATION_ID:
            raise StoreUnavailable(self.path, "it is the database of another program", hint=_ELSEWHERE)
        self._check_version(_number(header, _USER_VERSION_AT))

    def _check_whole(self, database: sqlite3.Connection) -> None:
        (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise Damaged(" ".join(str(found).split()))
        (version,) = database.execute("PRAGMA user_version").fetchone()  # the log may know a later one
        self._check_version(version)

    def _check_unchanged(self) -> None:
        """Look that nobody wrote between our reading it and our having it."""
        if self._look() != self._state:
            raise _taken(self.path)

    def _check_version(self, version: int) -> None:
        if version > self._version:
            raise StoreUnavailable(
                self.path,
                f"it is of version {version}, and this program knows {self._version}",
                hint=f"use the newer program that made it, or {_ELSEWHERE}",
            )
        if version != self._version:
            raise Damaged(f"version {version} was never made")

    def _look(self) -> list[tuple[int, int, int, int]]:
        """Something that changes whenever the file or its log is written; a log without content counts as none."""
        states = []
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                status = self._beside(end).stat()
                if status.st_size:
                    states.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
        return states

    def _beside(self, end: str) -> Path:
        return Path(f"{self._place}{end}")


@contextmanager
def told_of(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with the file at ``path`` into one error that says what to do.

    Raises:
        StoreUnavailable: the file cannot be used; it was left as it is.
    """
    try:
        yield
    except Damaged as problem:
        raise _damaged(path, str(problem)) from problem
    except sqlite3.Error as problem:
        kind = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if kind in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise _taken(path) from problem
        # Text that is not UTF-8 has no code of SQLite's, a missing table has SQLITE_ERROR.
        if kind in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}:
            raise _damaged(path, str(problem)) from problem
        raise StoreUnavailable(path, str(problem), hint=f"mend that, or {_ELSEWHERE}") from problem
    except OSError as problem:
        raise StoreUnavailable(
            path, problem.strerror or str(problem), hint=f"mend that, or {_ELSEWHERE}"
        ) from problem


def _damaged(path: Path, reason: str) -> StoreUnavailable:
    return StoreUnavailable(
        path,
        f"it is damaged and was left as it is ({reason})",
        hint=f"move it away with {_BESIDE}; then put a copy in its place, or a new one is made",
    )


def _taken(path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        path, "another broker or program has it open", hint=f"stop that one, or {_ELSEWHERE}"
    )


def _number(header: bytes, at: int) -> int:
    return int.from_bytes(header[at : at + 4], "big")
