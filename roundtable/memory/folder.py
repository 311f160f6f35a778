"""The memory folder through handles: everything in it is reached without following a single symbolic link.

The configured folder itself may be a link; it is followed once, when it is opened. From there each part of a path
is opened relative to the handle of the part before it, with ``O_NOFOLLOW``: whatever is swapped meanwhile, nothing is
read or written outside. A file is written under a temporary name in the same handle, synced, and renamed, so a
reader never sees half of one, and a full disk leaves the old.

Names that begin with a dot belong to others (``.git``) and are neither read nor written. Blocking; sizes are bytes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import MemoryFailed, UsageProblem
from ..harmless import harmless_line, is_plain_line
from .place import RAW

__all__ = [
    "MAX_FILE_BYTES",
    "WRITE_LOCK",
    "WRITE_SECONDS",
    "FileStamp",
    "Folder",
    "Lines",
    "Listing",
    "raw_parts",
]

#: A larger file is kept and named, but not searched: reading it would take minutes.
MAX_FILE_BYTES = 256 * 1024 * 1024

#: Bytes of one line that are held at once; a longer one comes in pieces. A message of 6 MiB fits with its head.
MAX_LINE_BYTES = 8 * 1024 * 1024

#: The same for JSON, where a character may take six times its size.
MAX_JSON_LINE_BYTES = 40 * 1024 * 1024

#: Files and folders looked at in one listing, and how deep; more than any memory has, so that a listing ends.
_MAX_ENTRIES = 100_000
_MAX_DEPTH = 16

#: What writers hold, so that there is one at a time: around each ingest, each gardener, and an export's commit.
WRITE_LOCK = "write.lock"

#: How long another writer is waited for.
WRITE_SECONDS = 10.0

#: Between two looks at a held lock; the kernel offers no bounded wait for one.
_LOCK_STEP_SECONDS = 0.02

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW

#: Without O_NONBLOCK, opening a pipe that somebody put there would wait for ever.
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_TEMPORARY = ".writing-"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells one content of a file from another without reading it."""

    size: int
    modified_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The files below one top folder."""

    files: dict[str, FileStamp]  #: path relative to the memory folder, sorted
    skipped: tuple[tuple[str, str], ...]  #: path and why it is not read
    leftovers: tuple[str, ...]  #: temporary files of writers that were killed


class Lines:
    """The lines of one file without their ``\\n``, decoded; iterate once. Bytes that are no UTF-8 become U+FFFD."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self.is_utf8 = True  #: so far
        self._file = file
        self._max_bytes = max_bytes

    def __iter__(self) -> Iterator[str]:
        is_first = True
        held = b""
        while data := self._file.readline(self._max_bytes):
            line = held + data.removesuffix(b"\n")
            if is_first:
                line = line.removeprefix(b"\xef\xbb\xbf")
                is_first = False
            # A piece of a long line must not end within a character.
            held = b"" if data.endswith(b"\n") else _begun_character(line)
            yield self._decoded(line.removesuffix(held))
        if held:
            yield self._decoded(held)

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.is_utf8 = False
            return line.decode(errors="replace")


class Folder:
    """An open memory folder. ``path`` is where it really is, for people; nothing is opened by it but the database."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self.handle = handle

    @classmethod
    @contextmanager
    def opened(cls, path: Path, *, is_made: bool) -> Iterator[Folder]:
        """Open the folder ``path``; make it, for this user alone, if ``is_made``.

        Raises:
            FileNotFoundError: it is not there, and not to be made.
            MemoryFailed: it cannot be made or opened.
        """
        try:
            if is_made:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            real = Path(os.path.realpath(path))
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            if not is_made:
                raise
            raise MemoryFailed(f"cannot make {harmless_line(str(path))}", hint=_HINT) from None
        except OSError as problem:
            raise _failed("open", str(path), problem) from problem
        try:
            yield cls(real, handle)
        finally:
            os.close(handle)

    def exists(self, name: str) -> bool:
        """Whether something called ``name`` lies in the folder itself, be it a link to nowhere."""
        try:
            os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except OSError:
            return False
        return True

    def listing(self, top: str) -> Listing:
        """Everything below ``top`` that may be read, in order. A ``top`` that is not there has no files.

        Raises:
            MemoryFailed: ``top`` is there and is no folder, or cannot be read.
        """
        files: dict[str, FileStamp] = {}
        skipped: list[tuple[str, str]] = []
        leftovers: list[str] = []
        try:
            handle = self._folder(self.handle, top)
        except FileNotFoundError:
            return Listing({}, (), ())
        except OSError as problem:
            raise MemoryFailed(
                f"{self.path / top} is no folder of its own ({problem.strerror}); nothing below it is read",
                hint="replace it with a real folder",
            ) from problem
        try:
            self._walk(handle, top, 1, files, skipped, leftovers)
        finally:
            os.close(handle)
        return Listing(dict(sorted(files.items())), tuple(sorted(skipped)), tuple(sorted(leftovers)))

    @contextmanager
    def reading(self, path: str) -> Iterator[BinaryIO]:
        """Open the regular file ``path`` (relative, with ``/``) for reading.

        Raises:
            FileNotFoundError: it is not there.
            MemoryFailed: something else is there, a link on the way is, or it cannot be read.
        """
        *parents, name = path.split("/")
        try:
            with self._parent(parents, is_made=False) as parent:
                descriptor = os.open(name, _READ_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise _failed("read", path, problem) from problem
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise MemoryFailed(f"cannot read {harmless_line(path)}: not a regular file")
            yield file

    @contextmanager
    def lines(self, path: str) -> Iterator[Lines]:
        """Open the text file ``path`` and give its lines. Raises as ``reading``."""
        with self.reading(path) as file:
            yield Lines(file, MAX_JSON_LINE_BYTES if path.endswith(".jsonl") else MAX_LINE_BYTES)

    def text(self, path: str, max_bytes: int) -> str | None:
        """The whole of a small file as it is, or ``None`` if it is larger than ``max_bytes`` or no UTF-8.

        Raises: as ``reading``.
        """
        with self.reading(path) as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None

    @contextmanager
    def replacing(self, path: str, what: str = "Path") -> Iterator[BinaryIO]:
        """Write ``path`` anew: what was written stands there, synced, once the block ends without an error.

        Folders on the way are made. What was there before stays as it was until then. ``what`` begins the message of
        a ``UsageProblem``.

        Raises:
            UsageProblem: a link on the way or at the end, or a folder at the end.
            MemoryFailed: it cannot be written, or the folder was moved away meanwhile.
        """
        *parents, name = path.split("/")
        try:
            with self._parent(parents, is_made=True, what=what) as parent:
                self._check_target(parent, name, path, what)
                temporary = f"{_TEMPORARY}{secrets.token_hex(8)}"
                try:
                    yield from self._written(parent, temporary, name, path)
                except BaseException:
                    with suppress(OSError):
                        os.unlink(temporary, dir_fd=parent)
                    raise
        except OSError as problem:
            raise _failed("write", path, problem) from problem

    def check(self, parts: tuple[str, ...], what: str) -> None:
        """Look that no link lies on the way to ``parts`` and none, nor a folder, at its end; makes nothing.

        Raises:
            UsageProblem: one does; ``what`` begins its message (``Export``).
        """
        handle = os.dup(self.handle)
        try:
            for depth, part in enumerate(parts[:-1]):
                try:
                    inner = self._folder(handle, part)
                except FileNotFoundError:
                    return
                except OSError as problem:
                    raise _way_problem(handle, parts, depth, what, problem) from problem
                os.close(handle)
                handle = inner
            self._check_target(handle, parts[-1], "/".join(parts), what)
        finally:
            os.close(handle)

    @contextmanager
    def locked(self, name: str, *, seconds: float) -> Iterator[None]:
        """Hold the lock file ``name`` in the folder; the kernel lets go of it when its holder dies.

        Raises:
            MemoryFailed: another process has held it for ``seconds``, or it cannot be made.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(name, flags, 0o600, dir_fd=self.handle)
        except OSError as problem:
            raise _failed("lock", name, problem) from problem
        try:
            end = time.monotonic() + seconds
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise MemoryFailed(
                            f"another process has been writing to {self.path} for {seconds:g} s",
                            hint="call again when it is done",
                        ) from None
                    time.sleep(_LOCK_STEP_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def _written(self, parent: int, temporary: str, name: str, path: str) -> Iterator[BinaryIO]:
        """Make the temporary file, let it be filled, and put it in its place."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600, dir_fd=parent)
        with open(descriptor, "wb") as file:
            with suppress(OSError):
                # A page that its owner has opened to others stays open.
                mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
                os.fchmod(descriptor, stat.S_IMODE(mode) & 0o666 | 0o600)
            yield file
            file.flush()
            os.fsync(descriptor)
            written = os.fstat(descriptor)
        # Renaming replaces a link that was put there meanwhile; it does not follow it.
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
        if self._inode(path) != (written.st_dev, written.st_ino):
            raise MemoryFailed(
                f"{harmless_line(path)} was moved or replaced while it was written",
                hint="look who else writes below this folder, and call again",
            )

    def _inode(self, path: str) -> tuple[int, int] | None:
        *parents, name = path.split("/")
        try:
            with self._parent(parents, is_made=False) as parent:
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (OSError, UsageProblem):
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _parent(self, parents: list[str], *, is_made: bool, what: str = "Path") -> Iterator[int]:
        """A handle of the folder ``parents``.

        Raises:
            OSError: it is not there, or cannot be opened or made.
            UsageProblem: a link or a file is on the way.
        """
        handle = os.dup(self.handle)
        try:
            for depth, part in enumerate(parents):
                if is_made:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=handle)
                try:
                    inner = self._folder(handle, part)
                except OSError as problem:
                    if problem.errno in {errno.ELOOP, errno.ENOTDIR}:
                        raise _way_problem(handle, (*parents, ""), depth, what, problem) from problem
                    raise
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def _folder(self, handle: int, name: str) -> int:
        return os.open(name, _FOLDER_FLAGS, dir_fd=handle)

    def _check_target(self, parent: int, name: str, path: str, what: str) -> None:
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise _failed("write", path, problem) from problem
        if stat.S_ISLNK(found.st_mode):
            raise UsageProblem(
                f"{what} target must not be a symbolic link: {harmless_line(path)}", hint="name another file"
            )
        if not stat.S_ISREG(found.st_mode):
            raise UsageProblem(
                f"{what} target must be a file: {harmless_line(path)} is something else",
                hint="name another file",
            )

    def _walk(
        self,
        handle: int,
        path: str,
        depth: int,
        files: dict[str, FileStamp],
        skipped: list[tuple[str, str]],
        leftovers: list[str],
    ) -> None:
        with os.scandir(handle) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            where = f"{path}/{entry.name}"
            if len(files) + len(skipped) >= _MAX_ENTRIES:
                skipped.append((path, f"more than {_MAX_ENTRIES} files"))
                return
            if entry.name.startswith("."):
                if entry.name.startswith(_TEMPORARY):
                    leftovers.append(where)
                continue
            try:
                where.encode()
                status = os.stat(entry.name, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    skipped.append((where, "a symbolic link"))
                elif stat.S_ISDIR(status.st_mode):
                    if depth >= _MAX_DEPTH:
                        skipped.append((where, "too deep"))
                        continue
                    inner = self._folder(handle, entry.name)
                    try:
                        self._walk(inner, where, depth + 1, files, skipped, leftovers)
                    finally:
                        os.close(inner)
                elif not stat.S_ISREG(status.st_mode):
                    skipped.append((where, "not a regular file"))
                elif status.st_size > MAX_FILE_BYTES:
                    skipped.append((where, f"over {MAX_FILE_BYTES // 2**20} MiB"))
                else:
                    files[where] = FileStamp(status.st_size, status.st_mtime_ns, status.st_ino)
            except UnicodeEncodeError:
                skipped.append((where.encode(errors="replace").decode(), "a name that is not UTF-8"))
            except FileNotFoundError:
                continue  # gone since it was listed
            except OSError as problem:
                skipped.append((where, problem.strerror or "unreadable"))


def raw_parts(path: str, what: str) -> tuple[str, ...]:
    """The parts of a path to a file under ``raw/``, by its letters alone; ``what`` begins the message (``Export``).

    Raises:
        UsageProblem: it is not relative, not under ``raw/``, climbs, is hidden, or is not one plain line.
    """
    hint = f"a path like {RAW}/design.txt"
    if path.startswith(("/", "~")):
        raise UsageProblem(f"{what} path must be relative to the memory directory", hint=hint)
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    is_within = len(parts) > 1 and parts[0] == RAW and ".." not in parts
    if not is_within or path.endswith(("/", "/.")):
        raise UsageProblem(f"{what} path must name a file under the memory {RAW}/ directory", hint=hint)
    if any(part.startswith(".") for part in parts):
        raise UsageProblem(f"{what} path must not name a hidden file or folder", hint=hint)
    if not is_plain_line(path):
        raise UsageProblem(f"{what} path must be one line without control characters", hint=hint)
    if (
        any(len(part.encode()) > 255 for part in parts)
        or len(path.encode()) > 1024
        or len(parts) > _MAX_DEPTH
    ):
        raise UsageProblem(f"{what} path is too long", hint=hint)
    return parts


def _begun_character(data: bytes) -> bytes:
    """The bytes at the end of ``data`` that begin a character of UTF-8 without completing it."""
    for length in range(1, min(3, len(data)) + 1):
        first = data[-length]
        if first >= 0xC0:
            whole = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return data[-length:] if whole > length else b""
        if first < 0x80:
            return b""
    return b""


_HINT = "check that the folder above it exists, or set ROUNDTABLE_MEMORY_DIR"


def _failed(verb: str, path: str, problem: OSError) -> MemoryFailed:
    reason = problem.strerror or str(problem)
    hint = "free some space; what was there before stays" if problem.errno == errno.ENOSPC else None
    return MemoryFailed(f"cannot {verb} {harmless_line(path)}: {reason}", hint=hint)


def _way_problem(
    handle: int, parts: tuple[str, ...], depth: int, what: str, problem: OSError
) -> UsageProblem | MemoryFailed:
    """Why one part of a path cannot be gone through."""
    where = harmless_line("/".join(parts[: depth + 1]))
    try:
        is_link = stat.S_ISLNK(os.stat(parts[depth], dir_fd=handle, follow_symlinks=False).st_mode)
    except OSError:
        is_link = False
    if not is_link:
        if problem.errno == errno.ENOTDIR:
            return UsageProblem(f"{what} path leads through a file: {where}", hint="name another path")
        return _failed("open", where, problem)
    if depth == 0:
        return UsageProblem(
            f"Memory {where} directory must not resolve outside the memory directory: it is a symlink",
            hint="replace it with a real folder, or set ROUNDTABLE_MEMORY_DIR to where it should be",
        )
    return UsageProblem(
        f"{what} path must not traverse a symlink outside the memory {RAW}/ directory: {where} is one",
        hint="replace it with a real folder, or name another path",
    )
