"""Standard output and error as a command needs them: always there, in any encoding, and each with its own loss.

Whoever reads standard error only watches: when it cannot be written, the command goes on untold. Standard output is
what the command is for: the first write that fails raises ``OutputLost``, and what comes after goes nowhere, so that
the last flush of the interpreter is quiet.
"""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from .errors import OutputLost

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["settle_streams"]


def settle_streams(*, is_utf8: bool) -> None:
    """Replace ``sys.stdout`` and ``sys.stderr``, unless somebody else has already.

    What the locale's encoding does not have is written as ``\\xe9``; with ``is_utf8`` standard output is UTF-8
    whatever the locale says. A stream that was closed when the program began leads to the null device.
    """
    _fill_closed()
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Output, sys.stdout, 1, encoding="utf-8" if is_utf8 else None)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Telling, sys.stderr, 2, encoding=None)


class _Output(io.FileIO):
    """Bytes to standard output."""

    _is_lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        written: int | None = None
        while written is None and not self._is_lost:
            try:
                written = super().write(data)
                if written is None:  # whoever shares the descriptor has made it non-blocking
                    select.select((), (self.fileno(),), ())
            except OSError as problem:
                self._is_lost = True
                raise OutputLost(problem.errno, problem.strerror or str(problem)) from problem
        return memoryview(data).nbytes if written is None else written


class _Telling(io.FileIO):
    """Bytes to standard error; what cannot be written at once is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        written: int | None = None
        with suppress(OSError):
            written = super().write(data)
        return memoryview(data).nbytes if written is None else written


def _text(
    kind: type[io.FileIO], stream: TextIO | None, number: int, *, encoding: str | None
) -> io.TextIOWrapper:
    """A text stream over bytes of ``kind`` that buffers as ``stream`` does."""
    if isinstance(stream, io.TextIOWrapper):
        stream.flush()
        encoding = encoding or stream.encoding
        is_line_buffered, is_unbuffered = stream.line_buffering, stream.write_through
    else:
        # The number may be another file's by now.
        number, is_line_buffered, is_unbuffered = os.open(os.devnull, os.O_WRONLY), False, False
    raw = kind(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding or "utf-8",
        errors="backslashreplace",
        newline="\n",
        line_buffering=is_line_buffered,
        write_through=is_unbuffered,
    )


def _fill_closed() -> None:
    """Leave none of the first three descriptors free: a file or socket opened next would be written to as a stream."""
    while True:
        number = os.open(os.devnull, os.O_RDWR)
        if number > 2:
            os.close(number)
            return
        os.set_inheritable(number, True)
