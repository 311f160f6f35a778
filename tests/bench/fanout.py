"""The tmux script of `roles` against a script that calls tmux once per window, on a server of its own."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from fleet.roles.launch import from_manifest
from fleet.roles.manifest import load_manifest
from fleet.roles.tmux import render

__all__ = ["run"]

_ROUNDS = 11
#: Sizes and how much of the plain script's time ours may take.
_GOALS = {8: 0.85, 32: 0.7}


def run() -> list[tuple[str, float, float | None]]:
    """Rows of label, ratio of medians and goal; rounds are interleaved."""
    if shutil.which("tmux") is None:
        return []
    return [
        (f"{roles} windows, times one tmux per window", _ratio(roles), goal) for roles, goal in _GOALS.items()
    ]


def _ratio(roles: int) -> float:
    folder = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    (folder / "claude").write_text("#!/bin/sh\nexec sleep 1000\n")
    (folder / "claude").chmod(0o755)
    path = folder / "x.roles.yaml"
    lines = "".join(f"  r{number}: {{provider: anthropic, model: m}}\n" for number in range(roles))
    path.write_text(f"task: t\nroom: r\nroles:\n{lines}")
    ours = render(from_manifest(load_manifest(path), binary=None, layout=None), session="ours")
    plain = ["set -e", "tmux new-session -d -s plain -n r0 -c / 'claude --name r0'"]
    plain += [
        f"tmux new-window -t plain -n r{number} -c / 'claude --name r{number}'" for number in range(1, roles)
    ]
    env = {
        **os.environ,
        "TMUX_TMPDIR": str(folder),
        "TMPDIR": str(folder),
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    env.pop("TMUX", None)
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    try:
        # Both find a server that runs.
        subprocess.run(["tmux", "new-session", "-d", "-s", "other", "sleep 1000"], env=env, check=True)
        for _ in range(_ROUNDS):
            for name, script in (("ours", ours), ("plain", "\n".join(plain))):
                started = time.perf_counter()
                subprocess.run(["sh"], input=script, env=env, text=True, capture_output=True, check=True)
                seconds[name].append(time.perf_counter() - started)
                subprocess.run(["tmux", "kill-session", "-t", f"={name}"], env=env, check=True)
    finally:
        subprocess.run(["tmux", "kill-server"], env=env, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
    return statistics.median(seconds["ours"]) / statistics.median(seconds["plain"])
