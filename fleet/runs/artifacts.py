"""Files with a member's full output, written as it comes: what a bound leaves out lies here.

Memory does not grow with an artifact: it is read back only by who asked for all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from fleet.runs.folder import RunFolder, writing
from fleet.runs.outcome import Phase

__all__ = ["Artifact", "IndexRow", "artifact_name", "write_index"]


def artifact_name(number: int, seat: str) -> str:
    """``01-planner.md`` for the first seat; seats count from 1."""
    return f"{number:02d}-{seat}.md"


class IndexRow(NamedTuple):
    """One line of the index."""

    team: str
    seat: str
    state: str
    size_bytes: int
    path: str  #: relative to the run folder


class Artifact:
    """One member's file, open from its first to its last write: a roster of thousands holds no descriptors.

    ``write`` goes straight to it; nothing is buffered here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size_bytes = 0  #: what has been written
        self._ends_in_newline = True
        self._descriptor: int | None = None

    def open(self) -> None:
        """Make the file if it is not there.

        Raises:
            StorageFailed: it cannot be made.
        """
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            with writing(self.path):
                self._descriptor = os.open(self.path, flags, 0o600)

    def heading(self, turn: int, phase: Phase) -> None:
        """Begin a turn."""
        lead = "" if self._ends_in_newline else "\n"
        self.write(f"{lead}## Turn {turn} ({phase})\n\n".encode())

    def write(self, data: bytes) -> None:
        """Append bytes as they are.

        Raises:
            StorageFailed: they could not be written.
        """
        self.open()
        descriptor = self._descriptor
        assert descriptor is not None  # noqa: S101 - for the type checker: it has just been opened
        with writing(self.path):
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        self.size_bytes += len(data)
        self._ends_in_newline = data.endswith(b"\n") if data else self._ends_in_newline

    def read(self, start: int, end: int, *, limit: int | None = None) -> str:
        """The text between two byte offsets without trailing blanks; no more than ``limit`` bytes of it.

        Raises:
            StorageFailed: the file cannot be read.
        """
        count = end - start if limit is None else min(limit, end - start)
        with writing(self.path), open(self.path, "rb") as file:
            file.seek(start)
            return file.read(count).decode(errors="replace").rstrip()

    def close(self) -> None:
        """Close the file; the path stays, and a later write opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def write_index(folder: RunFolder, rows: Iterable[IndexRow]) -> None:
    """Write ``artifacts/index.md`` from rows in team order; teams have headings where there are several."""
    tables = [(team, list(of_team)) for team, of_team in groupby(rows, key=lambda row: row.team)]
    lines = ["# Artifacts"]
    for team, of_team in tables:
        lines += ["", f"## {team}"] if len(tables) > 1 else []
        lines += ["", "| seat | state | bytes | path |", "|---|---|---:|---|"]
        lines += [f"| {row.seat} | {row.state} | {row.size_bytes} | {row.path} |" for row in of_team]
    folder.write("artifacts/index.md", "\n".join(lines) + "\n")
