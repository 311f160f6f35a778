"""One thing that was looked at, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Level", "broken", "fine", "note", "warning"]


class Level(StrEnum):
    """How much it matters."""

    OK = "ok"
    NOTE = "note"  #: worth knowing; nothing has to be done
    WARNING = "warning"  #: something will not work, or will surprise
    BROKEN = "broken"  #: something that every run needs does not work


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a report. Holds no value of a variable."""

    area: str  #: ``tmux``, ``git``, the name of an agent CLI, …
    level: Level
    text: str
    mend: str | None = None  #: the line that mends it: a command where there is one


def fine(area: str, text: str) -> Finding:
    """It is as it should be."""
    return Finding(area, Level.OK, text)


def note(area: str, text: str, mend: str | None = None) -> Finding:
    """Worth knowing."""
    return Finding(area, Level.NOTE, text, mend)


def warning(area: str, text: str, mend: str | None = None) -> Finding:
    """It will not work, or will surprise."""
    return Finding(area, Level.WARNING, text, mend)


def broken(area: str, text: str, mend: str | None = None) -> Finding:
    """Every run needs it, and it does not work."""
    return Finding(area, Level.BROKEN, text, mend)
