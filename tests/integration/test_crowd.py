"""Many members in one room of whom some never read: nobody waits for them, and they cost next to nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench.load import Crew
from tests.bench.servers import Server, broker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the broker's accounts from /proc")

#: Whatever else runs on the machine: beyond this a reader is not served, it is forgotten.
PATIENCE_SECONDS = 20.0


def post(server: Server, *, readers: int, silent: int, posts: int) -> tuple[float, float]:
    """CPU seconds and the longest wait of a reader."""
    with Crew(server.path, room=f"crowd-{silent}", members=readers + silent, silent=silent) as crew:
        cpu = server.cpu_seconds()
        longest = crew.crowded(posts)
        return server.cpu_seconds() - cpu, longest


def test_who_never_reads_costs_no_memory_and_nobody_waits(short_path: Path) -> None:
    with broker(short_path) as server:
        # Long enough for what the kernel holds to be full: the rest is the broker's to bear.
        post(server, readers=20, silent=0, posts=1024)
        before = server.resident_mb()
        _, longest = post(server, readers=195, silent=5, posts=24 * 1024)
        assert server.peak_mb() - before < 8
        assert longest < PATIENCE_SECONDS


def test_members_who_do_nothing_take_some_kilobytes(short_path: Path) -> None:
    with broker(short_path) as server:
        before = server.resident_mb()
        with Crew(server.path, room="idle", members=300):
            assert (server.resident_mb() - before) * 1024 / 300 < 8


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_ten_of_a_thousand_who_never_read(short_path: Path) -> None:
    with broker(short_path / "without") as server:
        without, _ = post(server, readers=990, silent=0, posts=10_000)
    with broker(short_path / "with") as server:
        with_silent, longest = post(server, readers=990, silent=10, posts=10_000)
        assert server.peak_mb() < 64
    assert with_silent < 1.3 * without
    assert longest < 1
