"""A room written to a file of the memory folder: lossless, whole or not at all, and never outside ``raw/``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .client import Client
from .memory.place import Place

__all__ = ["Exported", "check_path", "export", "exported_text"]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    path: Path  #: absolute
    messages: int
    chars: int  #: of the file
    first_seq: int  #: 0 when there was no message
    last_seq: int  #: 0 when there was no message
    dropped_before: int  #: older messages that the room no longer retained
    notice: str | None = None  #: what else the caller should be told, one sentence


def check_path(place: Place, path: str) -> None:
    """Look whether ``path`` may be written; asks no broker and makes nothing.

    Raises:
        UsageProblem: it may not; the message says which rule.
    """
    raise NotImplementedError


async def export(client: Client, room: str, path: str, *, place: Place, epoch: str | None = None) -> Exported:
    """Write all that ``room`` retains to ``path`` below the memory folder; no cursor moves.

    Raises:
        UsageProblem: ``path`` may not be written.
        RoundtableError: the broker refused or went away, or the file cannot be written; what was there stays.
    """
    raise NotImplementedError


def exported_text(exported: Exported, room: str) -> str:
    """What was exported, in counts; never a word of the transcript."""
    raise NotImplementedError
