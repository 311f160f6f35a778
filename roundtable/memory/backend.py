"""An external program that keeps the memory instead: it gets the action as words and answers on standard output.

``query QUESTION``, ``ingest SOURCE``, ``gardener`` and ``doctor`` are added to the configured argument vector. No shell
runs it; its working directory is the memory folder. What it writes is decoded once, at the end, and shown within a
bound; a longer answer lies whole in a file below ``answers/``, of which the newest are kept.
"""

from __future__ import annotations

import os
import stat
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from secrets import token_hex

import anyio

from ..errors import MemoryFailed, UsageProblem
from ..harmless import harmless, harmless_line
from .folder import Folder
from .place import Place
from .program import Cause, Ended, NotStarted, run_program

__all__ = ["ANSWERS", "MAX_OUTPUT_BYTES", "ask_program", "program_seconds"]

#: Where whole answers lie that were too long to show.
ANSWERS = "answers"

#: A program that writes more is stopped.
MAX_OUTPUT_BYTES = 64 * 1024 * 1024

#: Whole answers that are kept; an older one is removed when one is added.
_KEPT_ANSWERS = 20

#: What an action may take. A question is waited for, and clients of tools give up after a minute.
_SECONDS = {"query": 50.0, "doctor": 50.0, "ingest": 600.0, "gardener": 600.0}

#: Most of one word of an argument vector; systems end a little above it.
_MAX_WORD_BYTES = 100_000

#: What is told of a failed program's last words.
_TOLD_CHARS = 1000


def program_seconds(action: str) -> float:
    """How long the program may take for ``action``."""
    return _SECONDS[action]


async def ask_program(
    place: Place, folder: Folder, action: str, word: str | None, *, max_chars: int, seconds: float
) -> str:
    """Run the program for ``action`` and give what it answers, at most ``max_chars`` of it and a line of ours.

    Raises:
        UsageProblem: ``word`` cannot be an argument.
        MemoryFailed: it is not there, failed, or did not end within ``seconds``; it is gone with all it started.
    """
    command = place.command
    if command is None:
        raise ValueError("no program is configured")
    if word is not None:
        _check_word(action, word)
    output = _Output(folder, action, max_chars)
    try:
        ended = await run_program(
            (*command, action, *([] if word is None else [word])),
            cwd=folder.path,
            deadline=anyio.current_time() + seconds,
            environment=os.environ,
            on_stdout=output.take,
        )
    except NotStarted as problem:
        raise MemoryFailed(
            f"Memory backend not reachable ({harmless_line(command[0])}: {problem})",
            hint="Configure it with ROUNDTABLE_MEMORY_COMMAND / ROUNDTABLE_MEMORY_DIR, or unset the former "
            "to use what is built in",
        ) from problem
    finally:
        output.close()
    if not ended.is_success:
        output.discard()
        raise MemoryFailed(f"memory {action} failed: {_why(ended, output, seconds)}")
    return output.text() or f"memory {action} completed."


class _Output:
    """What a program has written: its beginning here, and all of it in a file if it is long."""

    def __init__(self, folder: Folder, action: str, max_chars: int) -> None:
        self._folder = folder
        self._max_chars = max_chars
        # No character has more than four bytes.
        self._max_bytes = 4 * max_chars
        self._begin = bytearray()
        self._size = 0
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self._name = f"{action}-{time}-{token_hex(4)}.txt"
        self._descriptor: int | None = None
        self._problem: str | None = None

    def take(self, data: bytes) -> bool:
        """Keep ``data``; whether more is wanted."""
        self._size += len(data)
        if self._descriptor is None and self._problem is None and self._size > self._max_bytes:
            self._open()
            self._write(bytes(self._begin))
        if self._descriptor is not None:
            self._write(data)
        self._begin += data[: max(0, self._max_bytes - len(self._begin))]
        return self._size <= MAX_OUTPUT_BYTES

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def discard(self) -> None:
        """Remove the file."""
        with suppress(OSError), _answers(self._folder) as handle:
            os.unlink(self._name, dir_fd=handle)

    def told(self) -> str:
        """The end of what is kept, on one line."""
        return harmless_line(self._begin.decode(errors="replace").strip())[-_TOLD_CHARS:]

    def text(self) -> str:
        """What was written, decoded; cut with a first line that says where the whole is."""
        is_whole = self._size <= len(self._begin)
        # A character that was cut at the end of what is kept is left out.
        decoded = getincrementaldecoder("utf-8")(errors="replace").decode(bytes(self._begin), is_whole)
        text = harmless(decoded).strip()
        if is_whole and len(text) <= self._max_chars:
            return text
        if is_whole:
            # Few enough bytes to be kept here, yet too many characters to be shown.
            self._open()
            self._write(bytes(self._begin))
            self.close()
        where = f"the whole is in {self._folder.path / ANSWERS / self._name}"
        if self._problem is not None:
            where = f"the rest could not be kept: {self._problem}"
        return (
            f"(first {self._max_chars} characters of {self._size} bytes; {where})\n{text[: self._max_chars]}"
        )

    def _open(self) -> None:
        try:
            with suppress(FileExistsError):
                os.mkdir(ANSWERS, 0o700, dir_fd=self._folder.handle)
            with _answers(self._folder) as handle:
                _prune(handle)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
                self._descriptor = os.open(self._name, flags, 0o600, dir_fd=handle)
        except OSError as problem:
            self._problem = problem.strerror or str(problem)

    def _write(self, data: bytes) -> None:
        try:
            while data and self._descriptor is not None:
                data = data[os.write(self._descriptor, data) :]
        except OSError as problem:
            self._problem = problem.strerror or str(problem)
            self.close()


@contextmanager
def _answers(folder: Folder) -> Iterator[int]:
    """A handle of the folder of whole answers."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(ANSWERS, flags, dir_fd=folder.handle)
    try:
        yield handle
    finally:
        os.close(handle)


def _prune(handle: int) -> None:
    """Make room for one more answer."""
    found: list[tuple[int, str]] = []
    for name in os.listdir(handle):
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and name.endswith(".txt"):
            found.append((status.st_mtime_ns, name))
    for _, name in sorted(found, reverse=True)[_KEPT_ANSWERS - 1 :]:
        os.unlink(name, dir_fd=handle)


def _check_word(action: str, word: str) -> None:
    what = "question" if action == "query" else "source"
    if "\0" in word:
        raise UsageProblem(f"the {what} has a null character in it", hint="leave it out")
    if word.startswith("-"):
        raise UsageProblem(
            f"the {what} begins with a dash, which a program takes for an option", hint="reword it"
        )
    try:
        size = len(word.encode())
    except UnicodeEncodeError:
        raise UsageProblem(f"the {what} is not valid Unicode", hint="reword it") from None
    if size > _MAX_WORD_BYTES:
        raise UsageProblem(f"the {what} is over {_MAX_WORD_BYTES} bytes", hint="shorten it")


def _why(ended: Ended, output: _Output, seconds: float) -> str:
    if ended.cause is Cause.DEADLINE:
        return f"no end within {seconds:g} s; the program was stopped"
    if ended.cause is Cause.OUTPUT:
        return f"it wrote more than {MAX_OUTPUT_BYTES // 2**20} MiB and was stopped"
    told = harmless_line(ended.stderr.strip())[-_TOLD_CHARS:] or output.told()
    if ended.signal is not None:
        return f"killed by {_signal_name(ended.signal)}{f': {told}' if told else ''}"
    return told or f"exited {ended.code}"


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
