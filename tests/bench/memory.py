"""The runner's memory against the size of what members print: small outputs, and a thousand times larger ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["run"]

_BLUEPRINT = """\
name: sizes
description: Members that print much.
agents:
  printer:
    runtime: command
    command: [{python}, -c, "{code}", "{kib}"]
teams:
  t:
    mode: deliberate
    rounds: 1
    members: [{{agent: printer, count: 4}}]
"""

_PRINTER = "import sys; [sys.stdout.write('x' * 1023 + chr(10)) for _ in range(int(sys.argv[1]))]; print('FINAL: done')"

_PROGRAM = """\
import json, resource, sys
from fleet.cli.parser import group
from roundtable.commandline import invoke
code = invoke(group, sys.argv[1:], program="fleet")
print(json.dumps({"code": code, "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), file=sys.stderr)
"""


def run() -> list[tuple[str, float, float | None]]:
    """Peak memory of the runner with 32 MiB per answer over that with 32 KiB per answer."""
    small, large = _peak(32), _peak(32 * 1024)
    return [("runner memory, 8 answers of 32 MiB against 8 of 32 KiB", large / small, 1.1)]


def _peak(kib: int) -> int:
    with tempfile.TemporaryDirectory(prefix="fl-", dir="/tmp") as folder:
        blueprint = Path(folder) / "sizes.yaml"
        blueprint.write_text(_BLUEPRINT.format(python=sys.executable, code=_PRINTER, kib=kib))
        environ = {**os.environ, "FLEET_HOME": f"{folder}/home"}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, "run", str(blueprint), "print", "--output", f"{folder}/run"],
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return int(json.loads(done.stderr.splitlines()[-1])["kib"])
