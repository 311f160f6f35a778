"""What a command costs before it does anything, against an interpreter that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["run"]

_ROUNDS = 15
_MANIFEST = "task: t\nroom: r\nroles: {critic: {provider: anthropic, model: opus}}\n"
_NOTHING = "pass"


def run() -> list[tuple[str, float, float | None]]:
    """Rows of label, ratio of medians to ``python -c pass``, and goal; rounds are interleaved."""
    programs = {
        _NOTHING: (["-c", "pass"], None),
        "fleet --help": (["-c", "from fleet.cli import main; main()", "--help"], 5.0),
        "roles --help": (["-c", "from fleet.cli import roles; roles()", "--help"], 5.0),
        "roles --format tmux": (["-c", "from fleet.cli import roles; roles()", "--format", "tmux"], None),
    }
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "roles.yaml").write_text(_MANIFEST)
        for _ in range(_ROUNDS):
            for name, (words, _goal) in programs.items():
                started = time.perf_counter()
                subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=True)
                seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return [
        (f"{name}, times `python -c pass`", medians[name] / medians[_NOTHING], goal)
        for name, (_words, goal) in programs.items()
        if name != _NOTHING
    ]
