"""``make fuzz``: many hostile frames at a real broker, many rooms of hostile messages.

    python -m tests.fuzz [frames|rooms] [--count N] [--seed N]

A failure names the seed that repeats it.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from . import frames, rooms

_COUNTS = {"frames": 200_000, "rooms": 20_000}


def main() -> int:
    """Run what is named, or both."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("target", choices=_COUNTS, nargs="?")
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, help="the first; each room, each run of frames has its own")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else time.time_ns() % 10**9
    for target in [options.target] if options.target else _COUNTS:
        count = options.count or _COUNTS[target]
        print(f"# {target}: {count}, first seed {first}", flush=True)
        started = time.monotonic()
        if target == "rooms":
            for seed in range(first, first + count):
                try:
                    rooms.check(Random(seed))  # noqa: S311 - it is to be repeated
                except BaseException:
                    print(f"\nfailed; repeat with: python -m tests.fuzz rooms --count 1 --seed {seed}")
                    raise
            print(f"{count} rooms in {time.monotonic() - started:.0f} s: every bound held")
        else:
            try:
                print(frames.run(first, count))
            except BaseException:
                print(f"\nfailed; repeat with: python -m tests.fuzz frames --count {count} --seed {first}")
                raise
            print(f"in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
