"""Many members at once: `fleet parallel` against `xargs -P` and GNU parallel doing the same work, and its memory.

200 members of 100 KB each, 16 at a time; each is a shell with two programs, so 600 processes and their wardens.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["run"]

_ROUNDS = 5
_TASKS, _WIDTH = 200, 16
_MEMBER = "yes | head -c 100000"

#: Runs 32 members of 32 MB and prints by how many KiB the runner's peak memory grew over what it had at its start.
_MEMORY = textwrap.dedent("""
    import os, resource, sys
    from pathlib import Path
    import anyio
    from fleet.conductor import conduct
    from fleet.dispatch.shapes import plan_tasks
    from fleet.plan import PlanOptions
    from fleet.settings import resolve

    def peak():
        unit = 1024 if sys.platform == "darwin" else 1
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit

    settings = resolve(os.environ, folder=Path.cwd())
    task = f"head -c {32 * 2**20} /dev/zero | tr '\\\\0' 'x' | fold -w 120"
    work = plan_tasks([task] * 32, settings, PlanOptions(), run="rbench234", command=("sh",), concurrency=16)
    before = peak()
    result = anyio.run(lambda: conduct(work.plan, settings, work=work.carry_out))
    assert result.exit_code == 0, result
    print(peak() - before)
""")


def run() -> list[tuple[str, float, float | None]]:
    """Rows of label, ratio and goal; rounds are interleaved, ratios are of medians."""
    programs: dict[str, Callable[[Path], list[str]]] = {
        "fleet": lambda folder: [
            *(sys.executable, "-m", "fleet", "parallel", "--command", "sh", "--max-tasks", str(_TASKS)),
            *("--concurrency", str(_WIDTH), "--output", str(folder / "run"), *[_MEMBER] * _TASKS),
        ],
        "xargs": lambda folder: [
            *("sh", "-c", f"seq {_TASKS} | xargs -P {_WIDTH} -I{{}} sh -c '{_MEMBER} > {folder}/{{}}'"),
        ],
    }
    if shutil.which("parallel"):
        programs["parallel"] = lambda folder: [
            *(
                "sh",
                "-c",
                f"seq {_TASKS} | parallel -j {_WIDTH} --results {folder}/out '{_MEMBER} # {{}}' >/dev/null",
            ),
        ]
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(_ROUNDS):
        for name, words in programs.items():
            with tempfile.TemporaryDirectory(prefix="fl-", dir="/tmp") as place:
                environ = {**os.environ, "FLEET_HOME": f"{place}/home"}
                started = time.perf_counter()
                subprocess.run(words(Path(place)), cwd=place, env=environ, capture_output=True, check=True)
                seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    label = f"{_TASKS} members x 100 KB, {_WIDTH} at a time, wardens and journal on, times "
    rows: list[tuple[str, float, float | None]] = [
        (f"{label}xargs -P to files", medians["fleet"] / medians["xargs"], 2.5)
    ]
    if "parallel" in medians:
        rows.append((f"{label}GNU parallel --results", medians["fleet"] / medians["parallel"], 0.8))
    rows.append(("32 members x 32 MB: memory of the runner over its start, MB", _grown_mb(), 40))
    return rows


def _grown_mb() -> float:
    with tempfile.TemporaryDirectory(prefix="fl-", dir="/tmp") as place:
        environ = {**os.environ, "FLEET_HOME": f"{place}/home"}
        done = subprocess.run(
            [sys.executable, "-c", _MEMORY],
            cwd=place,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout) / 1024
