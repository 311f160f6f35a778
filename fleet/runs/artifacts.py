"""Files with a member's full output, written as it comes: what a bound leaves out lies here.

An artifact is never read back by the run; memory does not grow with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fleet.runs.folder import RunFolder, writing
from fleet.runs.outcome import Phase

__all__ = ["Artifact", "artifact_name", "write_index"]


def artifact_name(number: int, seat: str) -> str:
    """``01-planner.md`` for the first seat; seats count from 1."""
    return f"{number:02d}-{seat}.md"


class Artifact:
    """One member's file. ``write`` goes straight to it; nothing is buffered here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size_bytes = 0  #: what has been written
        self._ends_in_newline = True
        with writing(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def heading(self, turn: int, phase: Phase) -> None:
        """Begin a turn."""
        lead = "" if self._ends_in_newline else "\n"
        self.write(f"{lead}## Turn {turn} ({phase})\n\n".encode())

    def write(self, data: bytes) -> None:
        """Append bytes as they are.

        Raises:
            StorageFailed: they could not be written.
        """
        with writing(self.path):
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]
        self.size_bytes += len(data)
        self._ends_in_newline = data.endswith(b"\n") if data else self._ends_in_newline

    def close(self) -> None:
        """Close the file; the path stays."""
        os.close(self._descriptor)


def write_index(folder: RunFolder, rows: Iterable[tuple[str, str, int, str]]) -> None:
    """Write ``artifacts/index.md`` from rows of seat, state, size in bytes and path relative to the folder."""
    lines = ["# Artifacts", "", "| seat | state | bytes | path |", "|---|---|---:|---|"]
    lines += [f"| {seat} | {state} | {size} | {path} |" for seat, state, size, path in rows]
    folder.write("artifacts/index.md", "\n".join(lines) + "\n")
