"""Teams in tmux: the script of `roles` and `fleet up`, against other ways to the same windows."""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fleet.roles.launch import from_manifest
from fleet.roles.manifest import load_manifest
from fleet.roles.tmux import render

__all__ = ["run"]

_ROUNDS = 11

#: Sizes, and how much of the time of a script with a tmux per window ours may take.
_SCRIPT_GOALS = {8: 0.85, 32: 0.75}
#: Sizes, and how much of the time of `tmuxp load` for the same windows `fleet up` may take.
_TMUXP_GOALS = {8: 1.0, 32: 0.5}
#: How much of the time of one tmux invocation that makes the same windows, and of our start-up, `fleet up` may take.
_JOINED_GOAL = 1.3

#: What `fleet up` of a manifest imports, libtmux included, and no more: its start-up.
_IMPORTS = (
    "from fleet.cli.parser import group; import fleet.cli.up, fleet.cli.interruption, fleet.live.creation;"
    "import fleet.roles.launch, fleet.roles.manifest, fleet.yaml, fleet.cli.attach, fleet.deadline;"
    "import libtmux"
)


@dataclass(frozen=True, slots=True)
class _Bench:
    """A folder with an agent on PATH and a tmux server of its own."""

    folder: Path
    env: Mapping[str, str]

    def seconds(self, words: list[str], *, script: str | None = None) -> float:
        """Run to the end; what it made in tmux is removed outside the time."""
        started = time.perf_counter()
        subprocess.run(
            words, input=script, env=self.env, cwd=self.folder, text=True, capture_output=True, check=True
        )
        return time.perf_counter() - started

    def clear(self) -> None:
        """End every session but the one that keeps the server; wait until what ran there is gone."""
        subprocess.run(["tmux", "kill-session", "-a", "-t", "=other"], env=self.env, check=True)
        time.sleep(0.3)  # panes that end would take their time from the next


def run() -> list[tuple[str, float, float | None]]:
    """Rows of label, ratio of medians and goal; rounds are interleaved."""
    if shutil.which("tmux") is None:
        return []
    folder = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    env = {
        **os.environ,
        "TMUX_TMPDIR": str(folder),
        "TMPDIR": str(folder),
        "FLEET_HOME": str(folder / "home"),
        "HOME": str(folder),  # no settings of the user's
        "SHELL": "/bin/sh",
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    env.pop("TMUX", None)
    for name in ("claude", "roundtable"):  # a role starts only where it can speak
        (folder / name).write_text("#!/bin/sh\nexec sleep 1000\n")
        (folder / name).chmod(0o755)
    bench = _Bench(folder, env)
    try:
        # All find a server that runs.
        subprocess.run(["tmux", "new-session", "-d", "-s", "other", "sleep 1000"], env=env, check=True)
        rows = [row for roles, goal in _SCRIPT_GOALS.items() for row in _script_rows(bench, roles, goal)]
        tmuxp = _tmuxp(folder)
        for roles, goal in _TMUXP_GOALS.items():
            rows += _up_rows(bench, roles, goal, tmuxp)
        return rows
    finally:
        subprocess.run(["tmux", "kill-server"], env=env, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _script_rows(bench: _Bench, roles: int, goal: float) -> list[tuple[str, float, float | None]]:
    ours = render(
        from_manifest(load_manifest(_manifest(bench, roles)), binary=None, layout=None), session="ours"
    )
    plain = ["set -e", "tmux new-session -d -s plain -n r0 -c / 'claude --name r0'"]
    plain += [
        f"tmux new-window -t plain -n r{number} -c / 'claude --name r{number}'" for number in range(1, roles)
    ]
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(_ROUNDS):
        for name, script in (("ours", ours), ("plain", "\n".join(plain))):
            seconds[name].append(bench.seconds(["sh"], script=script))
            bench.clear()
    ratio = statistics.median(seconds["ours"]) / statistics.median(seconds["plain"])
    return [(f"script of {roles} windows, times one tmux per window", ratio, goal)]


def _up_rows(
    bench: _Bench, roles: int, goal: float, tmuxp: str | None
) -> list[tuple[str, float, float | None]]:
    """`fleet up` makes a window more, which follows the room; the others make it too."""
    names = ["room", *(f"r{number}" for number in range(roles))]
    joined = ["tmux", "new-session", "-d", "-s", "joined", "-n", "room", "claude"]
    for name in names[1:]:
        joined += [";", "new-window", "-t", "=joined:", "-n", name, "claude", "--name", name]
    workspace = bench.folder / f"{roles}.tmuxp.yaml"
    windows = "".join(f"- window_name: {name}\n  panes:\n  - claude --name {name}\n" for name in names)
    workspace.write_text(f"session_name: tmuxp\nwindows:\n{windows}")
    up = [sys.executable, "-c", "from fleet.cli import main; main()", "up", str(_manifest(bench, roles))]
    programs = {
        "up": [*up, "--detach", "--wait", "0"],
        "joined": joined,
        "start": [sys.executable, "-c", _IMPORTS],
        **({"tmuxp": [tmuxp, "load", "-d", "-y", str(workspace)]} if tmuxp else {}),
    }
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(_ROUNDS):
        for name, words in programs.items():
            seconds[name].append(bench.seconds(words))
            bench.clear()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ours = f"fleet up of {roles} seats"
    rows: list[tuple[str, float, float | None]] = [
        (
            f"{ours}, times one tmux invocation and our start-up",
            medians["up"] / (medians["joined"] + medians["start"]),
            _JOINED_GOAL,
        )
    ]
    if tmuxp is None:
        return [*rows, (f"{ours}, times tmuxp load: skipped, tmuxp is not here", math.nan, None)]
    return [*rows, (f"{ours}, times tmuxp load", medians["up"] / medians["tmuxp"], goal)]


def _manifest(bench: _Bench, roles: int) -> Path:
    path = bench.folder / f"{roles}.roles.yaml"
    lines = "".join(f"  r{number}: {{provider: anthropic, model: m}}\n" for number in range(roles))
    path.write_text(f"task: t{roles}\nroom: r\nroles:\n{lines}")
    return path


def _tmuxp(folder: Path) -> str | None:
    """The program to compare with: on PATH, or installed for the moment; ``None`` where that is not possible."""
    if found := shutil.which("tmuxp"):
        return found
    place = folder / "tmuxp"
    made = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True)
    if made.returncode == 0:
        words = [str(place / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", "tmuxp"]
        made = subprocess.run(words, capture_output=True, timeout=300)
    return str(place / "bin" / "tmuxp") if made.returncode == 0 else None
