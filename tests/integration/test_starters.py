"""Six processes that find a dead socket at the same instant: one starts the broker, and all are served by it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundtable.home import Home
from tests.integration.raw import until

STARTERS = 6

#: For every home it is told, says who served it and what number its post got.
STARTER = """\
import sys
from pathlib import Path
import anyio
from roundtable.client import reach
from roundtable.home import Home

async def serve_me(home):
    async with await reach(home, name="starter", grace_seconds=60) as client:
        await client.join("a")
        posted = await client.post("a", "here")
        return f"{client.broker_id} {posted.message.seq}"

for line in sys.stdin:
    try:
        print(anyio.run(serve_me, Home(Path(line.strip()))), flush=True)
    except Exception as problem:
        print(f"failed: {problem!r}", flush=True)
"""


@pytest.fixture
def starters() -> Iterator[list[subprocess.Popen[str]]]:
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(STARTERS):
            process = subprocess.Popen(
                [sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            found.append(stack.enter_context(process))
            stack.callback(process.kill)
        yield found


def start_at_once(starters: list[subprocess.Popen[str]], root: Path) -> None:
    """One round over a socket that a broker has left; its broker is gone afterwards."""
    home = Home(root)
    home.prepare()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home.default_socket()))
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write(f"{root}\n")
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.flush()
    try:
        answers = [starter.stdout.readline().split() for starter in starters if starter.stdout is not None]
        assert len({broker for broker, _ in answers}) == 1, answers
        # The same room of the same broker: every post has a number of its own.
        assert sorted(int(seq) for _, seq in answers) == list(range(1, STARTERS + 1))
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(home.pid.read_text()), signal.SIGTERM)
        until(lambda: not home.pid.exists())


def test_six_at_once_over_a_dead_socket_share_one_broker(
    starters: list[subprocess.Popen[str]], short_path: Path
) -> None:
    for number in range(5):
        start_at_once(starters, short_path / f"h{number}")


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_fifty_times_six_at_once(starters: list[subprocess.Popen[str]], short_path: Path) -> None:
    for number in range(50):
        start_at_once(starters, short_path / f"h{number}")
