# ruff: noqa: ASYNC220, ASYNC221, ASYNC240 - a test may block its own loop for a moment
"""The supervisor that forks wardens: what becomes of children when it is killed, stopped, or cannot fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from fleet import wardens
from fleet.deadline import Deadline
from fleet.errors import ChildNotStarted
from fleet.process import Cause, ChildSpec, Exit, run_child
from fleet.wardens import supervised

pytestmark = pytest.mark.anyio

PATIENCE = 30.0


def spec(text: str) -> ChildSpec:
    return ChildSpec(("sh", "-c", text), Path("/"), {"PATH": os.environ["PATH"]}, None, grace_seconds=0.3)


async def run(
    text: str, *, seconds: float = PATIENCE, started: Callable[[int], None] = lambda _pid: None
) -> tuple[Exit, bytes]:
    chunks: list[bytes] = []
    deadline = Deadline.after(seconds, now=anyio.current_time())
    ended = await run_child(spec(text), deadline=deadline, on_stdout=chunks.append, on_started=started)
    return ended, b"".join(chunks)


def supervisor() -> wardens._Supervisor:
    current = wardens._supervisor.get()
    assert current is not None
    return current


def supervisor_pid() -> int:
    process = supervisor()._process
    assert process is not None
    return process.pid


async def wait_until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await anyio.sleep(0.01)


def parent_of(pid: int) -> int:
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True).stdout)


async def test_a_child_stands_under_a_fork_of_the_supervisor() -> None:
    grandparents: list[int] = []
    async with supervised():
        ended, said = await run("ps -o ppid= -p $PPID")
        grandparents.append(supervisor_pid())
    assert (ended.code, int(said)) == (0, grandparents[0])


async def test_the_supervisor_is_gone_with_its_run() -> None:
    async with supervised():
        pid = supervisor_pid()
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert wardens._supervisor.get() is None


async def test_a_killed_supervisor_is_replaced_and_its_children_go_on() -> None:
    pids: list[int] = []
    results: list[tuple[Exit, bytes]] = []
    async with supervised():

        async def first() -> None:
            results.append(await run("echo up; sleep 0.5; echo done", started=pids.append))

        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await wait_until(lambda: bool(pids))
            old = supervisor_pid()
            os.kill(old, signal.SIGKILL)
            await wait_until(
                lambda: supervisor()._process is not None and supervisor()._process.poll() is not None
            )
            assert (await run("echo next"))[1] == b"next\n"
            assert supervisor_pid() != old
    assert results[0][1] == b"up\ndone\n"
    assert results[0][0].cause is Cause.ENDED


async def test_a_stopped_supervisor_holds_up_no_deadline() -> None:
    async with supervised():
        await run("true")
        os.kill(supervisor_pid(), signal.SIGSTOP)
        try:
            begun = anyio.current_time()
            ended, _ = await run("echo never", seconds=0.2)
            assert ended.cause is Cause.STOPPED
            assert anyio.current_time() - begun < 4
        finally:
            os.kill(supervisor_pid(), signal.SIGCONT)
        assert (await run("echo next"))[1] == b"next\n"


async def test_a_stopped_warden_is_killed() -> None:
    async with supervised():
        ended, _ = await run("kill -STOP $PPID; sleep 60", seconds=0.5)
    assert ended.cause is Cause.STOPPED


async def test_a_fork_that_fails_is_a_child_that_did_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No process to be had is told like a program that is not there."""
    broken = tmp_path / "supervisor.py"
    text = Path(wardens._SUPERVISOR).read_text()
    broken.write_text(text.replace("pid = os.fork()", "raise OSError(11, 'no process')"))
    (tmp_path / "warden.py").write_text(Path(wardens._WARDEN).read_text())
    monkeypatch.setattr(wardens, "_SUPERVISOR", str(broken))
    async with supervised():
        with pytest.raises(ChildNotStarted, match=f"cannot start sh: {os.strerror(11)}"):
            await run("true")


async def test_without_a_supervisor_wardens_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wardens, "_SUPERVISOR", "/nowhere/supervisor.py")
    async with supervised():
        process = supervisor()._process
        assert process is not None
        process.wait()
        await run("true")


async def test_many_children_leave_no_zombie_and_no_descriptor() -> None:
    async with supervised():
        await run("true")
        pid = supervisor_pid()
        before = len(list(Path(f"/proc/{pid}/fd").iterdir())) if sys.platform.startswith("linux") else 0
        async with anyio.create_task_group() as group:
            for _ in range(16):
                group.start_soon(run, "echo x")
        listing = subprocess.run(["ps", "-A", "-o", "ppid=,pid="], capture_output=True, text=True).stdout
        children = [line for line in listing.splitlines() if line.split()[0] == str(pid)]
        assert len(children) <= 16
        if sys.platform.startswith("linux"):
            await wait_until(lambda: len(list(Path(f"/proc/{pid}/fd").iterdir())) == before)
            await wait_until(lambda: not Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


async def test_a_killed_runner_takes_supervisor_and_children_with_it(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import os
        from pathlib import Path
        import anyio
        from fleet.deadline import NEVER
        from fleet.process import ChildSpec, run_child
        from fleet import wardens

        async def main():
            async with wardens.supervised():
                print(wardens._supervisor.get()._process.pid, flush=True)
                spec = ChildSpec(("sh", "-c", "trap '' TERM; sleep 60"), Path("/"), dict(os.environ), None, 0.2)
                await run_child(spec, deadline=NEVER, on_stdout=print, on_started=lambda pid: print(pid, flush=True))

        anyio.run(main)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        pids = [int(runner.stdout.readline()) for _ in range(2)]
        runner.kill()

    def is_alive(pid: int) -> bool:
        state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True).stdout.strip()
        return bool(state) and not state.startswith(b"Z")

    await wait_until(lambda: not any(map(is_alive, pids)))
