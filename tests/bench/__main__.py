"""``make bench``: every benchmark as ratios measured in one run, with its goal where there is one."""

from __future__ import annotations

import sys
from importlib import import_module

#: Each has ``run()`` that returns rows of label, ratio and goal (an upper limit, or None).
BENCHES = ("startup", "digest", "broker", "fanout", "fanout_runs", "memory")


def main() -> int:
    """Run those named on the command line, or all."""
    missed = 0
    for name in sys.argv[1:] or BENCHES:
        print(f"# {name}", flush=True)
        for label, value, goal in import_module(f"tests.bench.{name}").run():
            is_missed = goal is not None and value > goal
            missed += is_missed
            verdict = "" if goal is None else f"   goal <= {goal:g}{'   MISSED' if is_missed else ''}"
            print(f"{label:<72} {value:8.2f}{verdict}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
