"""Signals that come while a command has something half done."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["raising_on_signals"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def raising_on_signals() -> Iterator[None]:
    """Within the block the first signal raises ``SystemExit`` with 128 and its number: what was begun is undone.

    Later ones are ignored until the block ends: the undoing is bounded. One that is ignored already stays ignored.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {
        number: handler for number in _NUMBERS if (handler := signal.getsignal(number)) is not signal.SIG_IGN
    }
    try:
        for number in before:
            signal.signal(number, leave)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
