"""What a room costs, against the least that must be done for it (``servers.bound``) and, where one is named, against
another broker of the same messages.

Every round measures every server in turn, and a ratio is the median of the rounds' own. CPU is the server's, from the
kernel's accounting (Linux), and the figure least hurt by other load. Wall times hold the share of the load, which is
one Python process: above some 100,000 posts a second it is the slower side.

Goals are those of the project, not what was once measured: limits against C where there is a compiler, against another
broker where ``BENCH_BROKER`` names one, and in megabytes and milliseconds.
"""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import anyio

from roundtable.client import reach
from roundtable.home import Home

from .load import Crew
from .servers import Server, bound, bound_command, broker, other

__all__ = ["run"]

ROUNDS = 9
CROWD_ROUNDS = 3

#: What is measured, and the most it may be of the bound in C and of another broker.
_GOALS: dict[str, tuple[float | None, float | None]] = {
    "pipelined: CPU per post": (4.0, 0.30),
    "pipelined: time per post": (None, 1 / 3),
    "8 posters in turn: CPU per post": (None, 0.5),
    "8 posters in turn: round trip p99": (None, 0.35),
    "one poster: CPU per post": (None, None),
    "one poster: round trip p50": (None, 1.0),
    "one poster: round trip p99": (None, 0.35),
    "one poster: activity p50": (None, 0.9),
    "one poster: activity p99": (None, 0.35),
    "fetch of 500: p50": (1.7, 0.4),
    "256 members, pipelined: CPU per post": (None, 0.1),
    "1,000 members, pipelined: CPU per post": (None, 0.1),
}

_rooms = itertools.count()

Row = tuple[str, float, float | None]
ResultT = TypeVar("ResultT")


def run() -> Iterator[Row]:
    """Rows of label, value and goal."""
    _raise_descriptor_limit()
    with _folder() as folder:
        yield from _against_others(folder)
    with _folder() as folder:
        yield from _memory(folder)
    yield from _crowd()
    yield from _cold_start()


def _against_others(folder: Path) -> Iterator[Row]:
    """Our broker and the others under the same load."""
    with ExitStack() as stack:
        ours = stack.enter_context(broker(folder))
        least = stack.enter_context(bound(folder, *bound_command(folder)))
        another = stack.enter_context(other())
        servers = [ours, least, *([another] if another else [])]
        crews = {
            server.label: [
                stack.enter_context(Crew(server.path, room=f"bench-{next(_rooms)}", members=members))
                for members in (8, 256, 1000)
            ]
            for server in servers
        }
        rounds: list[dict[str, dict[str, float]]] = []
        for turn in range(ROUNDS):
            # Each has its turn at each place.
            order = servers[turn % len(servers) :] + servers[: turn % len(servers)]
            rounds.append({server.label: _measure(server, *crews[server.label]) for server in order})
    for name, (to_least, to_another) in _GOALS.items():
        told = statistics.median(found[ours.label][name] for found in rounds)
        yield f"{name}, microseconds (told)", told * 1e6, None
        goal = to_least if least.label == "C" else None
        yield f"{name}, times {least.label}", _ratio(rounds, ours, least, name), goal
        if another is not None:
            yield f"{name}, times the other broker", _ratio(rounds, ours, another, name), to_another


def _ratio(rounds: list[dict[str, dict[str, float]]], one: Server, to: Server, name: str) -> float:
    return statistics.median(
        found[one.label][name] / found[to.label][name] if found[to.label][name] else float("nan")
        for found in rounds
    )


def _measure(server: Server, few: Crew, many: Crew, most: Crew) -> dict[str, float]:
    found: dict[str, float] = {}
    posts = 4096
    cpu, seconds, _ = _spent(server, lambda: few.pipelined(posts))
    found["pipelined: CPU per post"], found["pipelined: time per post"] = cpu / posts, seconds / posts

    posts = 2400
    cpu, _, took = _spent(server, lambda: few.closed(posts))
    found["8 posters in turn: CPU per post"] = cpu / posts
    found["8 posters in turn: round trip p99"] = statistics.quantiles(took, n=100)[98]

    posts = 600
    cpu, _, (answered, told) = _spent(server, lambda: few.alone(posts))
    found["one poster: CPU per post"] = cpu / posts
    for name, times in (("round trip", answered), ("activity", told)):
        found[f"one poster: {name} p50"] = statistics.median(times)
        found[f"one poster: {name} p99"] = statistics.quantiles(times, n=100)[98]

    found["fetch of 500: p50"] = statistics.median(few.fetches(60))
    for crew, members, posts in ((many, "256", 2048), (most, "1,000", 1024)):
        cpu, _, _ = _spent(server, lambda crew=crew, posts=posts: crew.pipelined(posts))  # type: ignore[misc]
        found[f"{members} members, pipelined: CPU per post"] = cpu / posts
        crew.drain()
    return found


def _spent(server: Server, work: Callable[[], ResultT]) -> tuple[float, float, ResultT]:
    """CPU of the server, time on the wall, and what ``work`` gives."""
    cpu, start = server.cpu_seconds(), time.perf_counter()
    result = work()
    return server.cpu_seconds() - cpu, time.perf_counter() - start, result


def _memory(folder: Path) -> Iterator[Row]:
    """What a broker holds at its start, for members who do nothing, and at the most."""
    with broker(folder) as server:
        start = server.resident_mb()
        with Crew(server.path, room="idle", members=1000):
            idle = server.resident_mb()
    with broker(folder) as server, Crew(server.path, room="flood", members=8) as crew:
        crew.flood(10_000)
        peak = server.peak_mb()
    yield "memory at start, MB", start, 28
    yield "memory of one of 1,000 idle members, KB", (idle - start) * 1024 / 1000, 8
    yield "memory at the most, 10,000 posts on their way at once, MB", peak, 40


def _crowd() -> Iterator[Row]:
    """1,000 members of whom ten never read, against the same without the ten."""
    posts = 10_000
    ratios, peaks, waits = [], [], []
    for _ in range(CROWD_ROUNDS):
        cpu = {}
        for silent in (0, 10):
            with (
                _folder() as folder,
                broker(folder) as server,
                Crew(server.path, room="crowd", members=990 + silent, silent=silent) as crew,
            ):
                cpu[silent], _, longest = _spent(server, lambda crew=crew: crew.crowded(posts))  # type: ignore[misc]
                if silent:
                    waits.append(longest)
                    peaks.append(server.peak_mb())
        ratios.append(cpu[10] / cpu[0] if cpu[0] else float("nan"))
    yield "1,000 members, ten never read: memory at the most, MB", max(peaks), 64
    yield "1,000 members, ten never read: CPU per post, times without the ten", statistics.median(ratios), 1.3
    yield "1,000 members, ten never read: longest wait of a reader, seconds", max(waits), 1


def _cold_start() -> Iterator[Row]:
    """From a client that finds no broker to its first post answered."""
    cold, interpreter = [], []
    for _ in range(ROUNDS):
        cold.append(_seconds_to_first_post())
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
        interpreter.append(time.perf_counter() - start)
    ratios = [one / to for one, to in zip(cold, interpreter, strict=True)]
    yield "cold start to the first answered post, milliseconds", statistics.median(cold) * 1000, 100
    yield "cold start, times `python -c 'import asyncio'` (told)", statistics.median(ratios), None


def _seconds_to_first_post() -> float:
    async def post(home: Home) -> float:
        start = time.perf_counter()
        async with await reach(home, name="ann", grace_seconds=0.5) as client:
            await client.join("cold")
            await client.post("cold", "x")
            return time.perf_counter() - start

    with _folder() as folder:
        home = Home(folder / "home")
        seconds = anyio.run(post, home)
        with suppress(OSError, ValueError):
            os.kill(int(home.pid.read_text()), signal.SIGTERM)
        while home.pid.exists():
            time.sleep(0.01)
    return seconds


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
