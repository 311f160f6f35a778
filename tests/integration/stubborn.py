# ruff: noqa: PTH110, PTH118, S606 - it starts fast, and so without pathlib; it executes itself
"""A hostile member: whatever a program can do to outlive its time, short of another user's rights.

``python -I -S stubborn.py FOLDER [PARTS]``. Every process of it has FOLDER in its argv, which is how a test finds
it, and writes ``FOLDER/<part>`` once it is what it wants to be. All ignore SIGTERM, SIGHUP and SIGINT and hold
stdout. PARTS is a list with commas, by default all of them:

- ``daemon``: forks twice, in a session of its own, executed anew with an empty environment
- ``group``: in a process group of its own
- ``stopped``: has stopped itself
- ``restless``: goes on by forking and ending, so that no process of it lives for long
- ``flood``: the member itself writes to stdout without end; without it, it waits
- ``exit``: the member itself ends at once with status 0
"""

from __future__ import annotations

import os
import signal
import sys
import time

ALL = "daemon,group,stopped,flood"


def main() -> None:
    """Be the member, or with a third word the daemon."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    folder = sys.argv[1]
    if sys.argv[3:] == ["as-daemon"]:
        ready(folder, "daemon")
        flood()
    parts = (sys.argv[2] if len(sys.argv) > 2 else ALL).split(",")
    if "daemon" in parts and os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            words = [sys.executable, "-I", "-S", __file__, folder, "-", "as-daemon"]
            os.execve(sys.executable, words, {})
        os._exit(0)
    if "group" in parts and os.fork() == 0:
        os.setpgid(0, 0)
        ready(folder, "group")
        wait()
    if "stopped" in parts and os.fork() == 0:
        ready(folder, "stopped")
        os.kill(os.getpid(), signal.SIGSTOP)
        wait()
    if "restless" in parts and os.fork() == 0:
        ready(folder, "restless")
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if os.fork() != 0:
                os._exit(0)
            os.setsid()
    ready(folder, "member")
    if "exit" in parts:
        while not all(os.path.exists(os.path.join(folder, part)) for part in parts if part != "exit"):
            time.sleep(0.005)
        os._exit(0)
    flood() if "flood" in parts else wait()


def ready(folder: str, part: str) -> None:
    """Say that this part is there."""
    with open(os.path.join(folder, part), "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def flood() -> None:
    """Write for a minute, 8 MB at full speed and then enough to keep a pipe full."""
    block = b"x" * 65_536
    until = time.monotonic() + 60
    count = 0
    while time.monotonic() < until:
        count += 1
        try:
            os.write(1, block)
        except OSError:
            time.sleep(0.05)
        if count > 128:
            time.sleep(0.005)
    os._exit(0)


def wait() -> None:
    """Do nothing, for as long as a test may last; a member that is forgotten ends by itself."""
    time.sleep(60)
    os._exit(0)


if __name__ == "__main__":
    main()
