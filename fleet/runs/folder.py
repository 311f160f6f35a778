"""The folder of one run: where its files lie, and the one border where a failing disk becomes an error of ours.

See docs/reference/run-folder.md for what each file is.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.errors import StorageFailed, UsageProblem

__all__ = ["RunFolder", "add_to_index", "new_run_id", "writing"]

#: RFC 4648 base 32 in lower case: no two of its characters look alike in most fonts, and it is safe in any path.
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_run_id() -> str:
    """``r`` and 8 random base-32 characters (40 bits)."""
    return "r" + "".join(secrets.choice(_ALPHABET) for _ in range(8))


@contextmanager
def writing(path: Path, *, hint: str | None = None) -> Iterator[None]:
    """Turn an ``OSError`` of the body into ``StorageFailed`` naming ``path``."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(path, error.strerror or str(error), hint=hint) from error


@dataclass(frozen=True, slots=True)
class RunFolder:
    """An existing run folder, open for its one runner; ``lock`` is the descriptor that holds ``run.lock``."""

    run: str
    path: Path
    lock: int

    @classmethod
    def create(cls, run: str, *, below: Path, output: Path | None) -> RunFolder:
        """Make ``below/.fleet/runs/<run>/``, or use ``output``, and take its lock.

        Raises:
            UsageProblem: ``output`` is something else than a new or empty folder.
            StorageFailed: the folder cannot be made.
        """
        path = (below / ".fleet" / "runs" / run if output is None else output).absolute()
        with writing(path):
            if output is not None:
                _refuse_taken(path)
            path.mkdir(parents=True, exist_ok=output is not None, mode=0o700)
            path.chmod(0o700)
            (path / ".gitignore").write_text("*\n")
            (path / "artifacts").mkdir(exist_ok=True)
            (path / "rooms").mkdir(exist_ok=True)
            lock = os.open(path / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(run, path, lock)

    def close(self) -> None:
        """Let go of the lock: from now on the run is seen as over."""
        os.close(self.lock)

    def room_file(self, room: str) -> Path:
        """Where a room's discussion is recorded."""
        return self.path / "rooms" / f"{room}.jsonl"

    def relative(self, path: Path) -> str:
        """``path`` as it is written in the folder's own files."""
        return path.relative_to(self.path).as_posix()

    def write(self, name: str, text: str) -> Path:
        """Replace a file whole: readers see the old text or the new one, never a part."""
        path = self.path / name
        with writing(path):
            if "/" in name:
                path.parent.mkdir(mode=0o700, exist_ok=True)
            temporary = path.with_name(path.name + ".new")
            with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        return path

    def make(self, name: str) -> Path:
        """Make a folder in it."""
        path = self.path / name
        with writing(path):
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def append(self, name: str, text: str) -> Path:
        """Add to the end of a file."""
        path = self.path / name
        with writing(path), open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path

    def write_json(self, name: str, value: Mapping[str, Any]) -> Path:
        """Replace a JSON file whole."""
        return self.write(name, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _refuse_taken(path: Path) -> None:
    """A run makes its folder its own (mode, .gitignore), so it takes none that holds anything."""
    if path.exists() and not path.is_dir():
        raise UsageProblem(f"--output: {path} is not a folder", hint="give --output a new folder")
    if path.is_dir() and any(path.iterdir()):
        what = "already holds a run" if (path / "run.json").exists() else "is not empty"
        raise UsageProblem(f"--output: {path} {what}", hint="give --output a new folder")


def add_to_index(index: Path, entry: Mapping[str, Any]) -> None:
    """Append one line to ``$FLEET_HOME/runs/index.jsonl``, which finds runs from any folder."""
    with writing(index, hint="it is below FLEET_HOME, which must be a folder of yours"):
        index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(index, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
