"""The end of a command that is told to stop before it has arranged anything: at once, quietly, with the usual code.

A ``KeyboardInterrupt`` in the middle of an import would show as a traceback, and as nothing that a program can read.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import NoReturn

__all__ = ["leave_early", "leave_on_signals"]

#: What a program that asked for JSON reads instead of a result.
_INTERRUPTED = (
    b'{"error": {"code": "interrupted", "message": "told to stop before the run began", "hint": null}}\n'
)


def leave_on_signals(words: list[str]) -> None:
    """From now on SIGINT and SIGTERM end this process with 130 and 143; ``words`` is its command line.

    Holds until somebody receives these signals otherwise. One that is ignored stays ignored.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        leave_early(words, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def leave_early(words: list[str], number: int = signal.SIGINT) -> NoReturn:
    """End this process as by signal ``number``; with ``--json`` standard output says that it was interrupted."""
    options = words[: words.index("--")] if "--" in words else words
    if "--json" in options:
        with suppress(OSError):
            os.write(1, _INTERRUPTED)
    # Not an exception: those can be held up, or shown, by whatever is being executed.
    os._exit(128 + number)
