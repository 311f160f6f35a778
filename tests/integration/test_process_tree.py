# ruff: noqa: ASYNC220, ASYNC240 - a test may block its own loop for a moment
"""Whole trees of a hostile member, and what is left of them when time runs out or the runner is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from fleet.deadline import NEVER, Deadline
from fleet.process import Cause, ChildSpec, Exit, run_child
from tests.supervision import warden_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="weaker without a subreaper, and said to be"
    ),
]

STUBBORN = str(Path(__file__).with_name("stubborn.py"))

#: Long enough for a busy machine; no test waits for it.
PATIENCE = 30.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["started", "forked"], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every promise holds for a warden of its own and for one that a supervisor has forked."""
    with warden_kind(request.param, monkeypatch):
        yield request.param


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name is in the argv of every process of one test; they are killed after it, if it failed."""
    path = Path(tempfile.mkdtemp(prefix="fleet-tree-"))
    yield path
    for pid in alive(path):
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(path)


def alive(marker: Path) -> list[int]:
    """Every process with the marker among its words, wherever in the system it is."""
    table = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,state=,args="], capture_output=True, text=True
    ).stdout
    rows = (line.split(None, 2) for line in table.splitlines() if str(marker) in line)
    return [int(pid) for pid, state, _ in rows if not state.startswith("Z")]


async def wait_until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await anyio.sleep(0.01)


def spec(folder: Path, parts: str, **limits: float) -> ChildSpec:
    argv = (sys.executable, "-I", "-S", STUBBORN, str(folder), parts)
    return ChildSpec(argv, folder, {"PATH": os.environ["PATH"]}, None, **limits)  # type: ignore[arg-type]


def are_ready(folder: Path, parts: str) -> bool:
    return all(
        (folder / part).exists() for part in ["member", *parts.split(",")] if part not in ("flood", "exit")
    )


async def stop_one(folder: Path, parts: str) -> None:
    """Run the member to a deadline that comes when all of it is there, and look for what is left."""
    folder.mkdir()
    for seconds in (1.0, 4.0, 10.0):
        for file in folder.iterdir():
            file.unlink()
        taken = 0

        def take(chunk: bytes) -> None:
            nonlocal taken
            taken += len(chunk)

        deadline = Deadline.after(seconds, now=anyio.current_time())
        ended = await run_child(spec(folder, parts, grace_seconds=0.3), deadline=deadline, on_stdout=take)
        late = anyio.current_time() - deadline.at
        assert alive(folder) == []
        assert (ended.cause, ended.signal, ended.survivors) == (Cause.STOPPED, signal.SIGKILL, ())
        assert 0.3 <= late < 3
        assert ended.stdout_bytes == taken
        if are_ready(folder, parts):
            return
    pytest.fail("the machine is too slow for this member to get ready")


async def test_twenty_of_twenty_are_gone_soon_after_the_deadline(folder: Path) -> None:
    for batch in range(5):
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(stop_one, folder / f"{batch}-{number}", "daemon,group,stopped,flood")


async def test_a_member_that_goes_on_by_forking(folder: Path) -> None:
    await stop_one(folder / "1", "restless,daemon")


async def test_what_a_member_leaves_behind_is_gone_when_it_returns(folder: Path) -> None:
    begun = anyio.current_time()
    ended = await run_child(
        spec(folder, "daemon,group,stopped,exit"), deadline=NEVER, on_stdout=lambda _chunk: None
    )
    assert alive(folder) == []
    assert (ended.code, ended.cause, ended.survivors) == (0, Cause.ENDED, ())
    assert anyio.current_time() - begun < 5


async def test_a_cancelled_member_is_gone_when_it_returns(folder: Path) -> None:
    parts = "daemon,group,stopped,flood"
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def run() -> None:
                await run_child(
                    spec(folder, parts, grace_seconds=0.3), deadline=NEVER, on_stdout=lambda _chunk: None
                )

            group.start_soon(run)
            await wait_until(lambda: are_ready(folder, parts))
            assert len(alive(folder)) >= 4
            begun = anyio.current_time()
            scope.cancel()
    assert alive(folder) == []
    assert scope.cancelled_caught
    assert anyio.current_time() - begun < 3


async def test_a_full_disk_ends_the_whole_tree(folder: Path) -> None:
    parts = "daemon,group,stopped,flood"

    def take(_chunk: bytes) -> None:
        if are_ready(folder, parts):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await run_child(spec(folder, parts, grace_seconds=0.3), deadline=NEVER, on_stdout=take)
    assert alive(folder) == []


RUNNER = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    import anyio
    from fleet.deadline import NEVER
    from fleet.process import ChildSpec, run_child

    async def main():
        argv = (sys.executable, "-I", "-S", *sys.argv[1:])
        spec = ChildSpec(argv, Path("/"), dict(os.environ), None)
        await run_child(spec, deadline=NEVER, on_stdout=lambda chunk: None)

    anyio.run(main)
""")


async def test_a_killed_runner_takes_everything_with_it(folder: Path) -> None:
    parts = "daemon,group,stopped,flood"
    with subprocess.Popen([sys.executable, "-c", RUNNER, STUBBORN, str(folder), parts]) as runner:
        try:
            await wait_until(lambda: are_ready(folder, parts))
            assert len(alive(folder)) >= 5
        finally:
            runner.kill()
    begun = anyio.current_time()
    await wait_until(lambda: not alive(folder))
    assert anyio.current_time() - begun < 3


async def test_a_runner_killed_at_any_moment_leaves_nothing(folder: Path) -> None:
    for milliseconds in (150, 250, 300, 350):
        below = folder / str(milliseconds)
        below.mkdir()
        with subprocess.Popen([sys.executable, "-c", RUNNER, STUBBORN, str(below), "daemon"]) as runner:
            await anyio.sleep(milliseconds / 1000)
            runner.kill()
    await wait_until(lambda: not alive(folder))


async def test_a_member_that_kills_its_warden_ends_with_its_session(folder: Path) -> None:
    ended: list[Exit] = []
    pids: list[int] = []
    async with anyio.create_task_group() as group:

        async def run() -> None:
            quiet = spec(folder, "group,stopped")
            ended.append(
                await run_child(quiet, deadline=NEVER, on_stdout=lambda _chunk: None, on_started=pids.append)
            )

        group.start_soon(run)
        await wait_until(lambda: are_ready(folder, "group,stopped"))
        warden = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
        begun = anyio.current_time()
        os.kill(warden, signal.SIGKILL)
    assert anyio.current_time() - begun < 3
    assert alive(folder) == []
    assert (ended[0].signal, ended[0].cause, ended[0].survivors) == (signal.SIGKILL, Cause.ENDED, ())


async def test_an_innocent_process_is_left_alone(folder: Path) -> None:
    """The same program, its marker below the same folder, in a session and in a group beside the runner's."""
    aside = folder / "aside"
    aside.mkdir()
    words = [sys.executable, "-I", "-S", STUBBORN, str(aside), "group"]
    with subprocess.Popen(words, start_new_session=True) as stranger, subprocess.Popen(words) as sibling:
        try:
            await wait_until(lambda: len(alive(aside)) == 4)
            await stop_one(folder / "1", "daemon,group,stopped")
            assert len(alive(aside)) == 4
            assert stranger.poll() is None
            assert sibling.poll() is None
        finally:
            for pid in alive(aside):
                os.kill(pid, signal.SIGKILL)


def test_memory_stays_flat_and_a_start_is_cheap() -> None:
    """In an interpreter of its own: 32 MB of output, 1 MB of it in one line, and the time of ten starts."""
    script = textwrap.dedent("""
        import os, resource, sys, time
        from pathlib import Path
        import anyio
        from fleet.deadline import NEVER
        from fleet.process import ChildSpec, run_child

        async def run(*argv):
            spec = ChildSpec(argv, Path("/"), dict(os.environ), None)
            return await run_child(spec, deadline=NEVER, on_stdout=lambda chunk: None)

        async def main():
            await run("head", "-c", "200000", "/dev/zero")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            ended = await run("head", "-c", str(2**25), "/dev/zero")
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert ended.stdout_bytes == 2**25, ended
            starts = []
            for _ in range(10):
                begun = time.perf_counter()
                await run("true")
                starts.append(time.perf_counter() - begun)
            print(after - before, min(starts))

        anyio.run(main)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    kibibytes, seconds = done.stdout.split()
    assert int(kibibytes) < 2048
    assert float(seconds) < 0.1
