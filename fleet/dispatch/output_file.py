"""The file a task's output goes to: what the member wrote there counts, or else its answer is written there.

Copied in pieces, so that memory does not grow with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleet.runs.folder import writing

__all__ = ["OutputFile", "Stamp", "reference_line"]

_PIECE_BYTES = 2**16

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Stamp:
    """How a file was at one moment; another one afterwards means that it was written."""

    modified_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One output file, looked at before its task begins."""

    path: Path
    before: Stamp | None  #: ``None``: it was not there

    @classmethod
    def at(cls, path: Path) -> OutputFile:
        """Remember how the file is now."""
        return cls(path, _stamp(path))

    @property
    def was_written(self) -> bool:
        """Whether the file was made or changed since."""
        now = _stamp(self.path)
        return now is not None and now != self.before

    def take(self, source: Path, start: int, end: int) -> None:
        """Write the bytes of ``source`` from ``start`` to ``end`` to the file.

        Raises:
            StorageFailed: it cannot be written.
        """
        with writing(self.path, hint="the whole output is in the artifact of the run folder"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(source, "rb") as reader, open(self.path, "wb") as writer:
                reader.seek(start)
                left = end - start
                while left > 0 and (piece := reader.read(min(left, _PIECE_BYTES))):
                    writer.write(piece)
                    left -= len(piece)


def reference_line(path: Path) -> str:
    """``Output saved to: /a/b.md (48.2 KB, 2847 lines). Read this file if needed.``"""
    size, lines, ends_in_newline = 0, 0, True
    with writing(path), open(path, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            size += len(piece)
            lines += piece.count(b"\n")
            ends_in_newline = piece.endswith(b"\n")
    lines += not ends_in_newline
    told = (
        f"{size} B"
        if size < _KIB
        else f"{size / _KIB:.1f} KB"
        if size < _KIB**2
        else f"{size / _KIB**2:.1f} MB"
    )
    return f"Output saved to: {path} ({told}, {lines} line{'' if lines == 1 else 's'}). Read this file if needed."


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return Stamp(found.st_mtime_ns, found.st_size)
