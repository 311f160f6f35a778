"""Finding or starting the one broker of a home, from several places at once and over what others have left."""

# ruff: noqa: ASYNC220, ASYNC221, ASYNC222, ASYNC240 - nothing else runs in the loop of a test while it looks

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

from roundtable.claim import claim, is_served
from roundtable.client import connect, reach
from roundtable.errors import BrokerUnavailable, ConnectionLost, SocketPathTooLong, UnsafeFolder
from roundtable.home import Home
from roundtable.spawn import ensure_broker
from tests.integration.raw import Raw, broker_process, until


@pytest.fixture
def fleet_home(home: Path) -> Iterator[Home]:
    """A home whose broker, if a test starts one, is gone afterwards."""
    there = Home(home)
    yield there
    for pid in pids(there):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until(lambda: not there.pid.exists())


def pids(home: Home) -> list[int]:
    """The broker of ``home``, if one serves that is not in this very process."""
    with contextlib.suppress(OSError):
        return [pid for pid in [int(home.pid.read_text())] if pid != os.getpid()]
    return []


@pytest.mark.anyio
async def test_a_broker_is_started_once_and_then_found(fleet_home: Home) -> None:
    path = await ensure_broker(fleet_home, grace_seconds=30)
    first = pids(fleet_home)
    assert await ensure_broker(fleet_home, grace_seconds=30) == path
    assert pids(fleet_home) == first
    # It belongs to nobody: own session, and none of our children.
    assert os.getsid(first[0]) != os.getsid(0)
    with pytest.raises(ChildProcessError):
        os.waitpid(first[0], os.WNOHANG)


@pytest.mark.anyio
@pytest.mark.parametrize("left_behind", ["nothing", "a socket", "a file", "a lock and a pid"])
async def test_several_starters_over_what_was_left_end_with_one_broker(
    fleet_home: Home, left_behind: str
) -> None:
    fleet_home.folder.mkdir(parents=True, mode=0o700)
    path = fleet_home.default_socket()
    if left_behind == "a socket":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    elif left_behind == "a file":
        path.write_text("x")
    elif left_behind == "a lock and a pid":
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        fleet_home.lock.write_text(f"{ended.pid}")
        fleet_home.pid.write_text(f"{ended.pid}\n")
        fleet_home.path_file.write_text(f"{path}\n")
    ids: set[str] = set()

    async def start() -> None:
        async with await reach(fleet_home, name="ann", grace_seconds=30) as client:
            ids.add(client.broker_id)

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(start)
    assert len(ids) == 1


def test_of_many_who_claim_one_socket_one_gets_it(fleet_home: Home) -> None:
    fleet_home.folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(fleet_home.default_socket()))
    gate = threading.Barrier(6)

    def take() -> object:
        gate.wait()
        return claim(fleet_home)

    with ThreadPoolExecutor(6) as pool:
        taken = [found for found in pool.map(lambda _: take(), range(6)) if found is not None]
    assert len(taken) == 1
    assert is_served(fleet_home.socket())
    taken[0].release()  # type: ignore[attr-defined]
    assert not fleet_home.socket().exists()


def test_a_broker_too_busy_to_accept_still_serves(short_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(socket.socket(socket.AF_UNIX))
        busy.bind(str(short_path / "s"))
        busy.listen(0)
        is_full = False
        while not is_full:
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            is_full = waiting.connect_ex(str(short_path / "s")) != 0
        assert is_served(short_path / "s")


@pytest.mark.anyio
async def test_a_killed_broker_is_followed_by_another(fleet_home: Home) -> None:
    with broker_process(fleet_home.root) as first:
        client = await reach(fleet_home, name="ann")
        await client.join("a")
        first.send_signal(signal.SIGKILL)
        first.wait(5)
        with pytest.raises(ConnectionLost):
            await client.rooms()
        await client.aclose()
        assert fleet_home.socket().exists()
    async with await reach(fleet_home, name="ann", grace_seconds=30) as again:
        assert await again.rooms() == ()
        assert again.broker_id != client.broker_id


@pytest.mark.anyio
async def test_the_last_words_of_a_broker_that_cannot_start_are_told(fleet_home: Home) -> None:
    fleet_home.folder.mkdir(parents=True, mode=0o700)
    fleet_home.default_socket().mkdir()
    with pytest.raises(BrokerUnavailable, match=r"cannot replace it") as caught:
        await ensure_broker(fleet_home, grace_seconds=5)
    assert "\n" not in str(caught.value)
    assert str(fleet_home.default_socket()) in str(caught.value)
    fleet_home.default_socket().rmdir()


@pytest.mark.anyio
async def test_a_home_that_is_a_file_is_told(fleet_home: Home) -> None:
    fleet_home.root.write_text("")
    with pytest.raises(UnsafeFolder):
        await ensure_broker(fleet_home, grace_seconds=5)


def test_a_lock_that_is_held_is_named(fleet_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundtable.claim._LOCK_SECONDS", 0.1)
    fleet_home.folder.mkdir(parents=True, mode=0o700)
    with fleet_home.lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BrokerUnavailable, match=r"broker\.lock"):
            claim(fleet_home)
    taken = claim(fleet_home)
    assert taken is not None
    taken.release()


def test_what_cannot_be_made_is_said_and_nothing_of_others_is_touched(
    fleet_home: Home, short_path: Path
) -> None:
    mine = short_path / "notes.txt"
    mine.write_text("mine")
    with pytest.raises(BrokerUnavailable, match="no socket"):
        claim(fleet_home, path=mine)
    assert mine.read_text() == "mine"
    with pytest.raises(SocketPathTooLong, match="100 bytes"):
        claim(fleet_home, path=short_path / ("s" * 100))
    fleet_home.lock.mkdir()
    with pytest.raises(BrokerUnavailable, match="cannot open the lock"):
        claim(fleet_home)


@pytest.mark.anyio
async def test_a_deep_home_gets_a_short_socket_that_everybody_finds(short_path: Path) -> None:
    deep = Home(short_path / ("d" * 150), runtime=short_path)
    with broker_process_in(deep) as path:
        assert len(os.fsencode(path)) <= 100
        assert path.parent.parent == short_path
        # Somebody without a runtime folder comes to the same socket, by the file that records it.
        assert Home(deep.root).socket() == path
        async with await reach(Home(deep.root), name="ann") as client:
            assert (await client.join("a")).room == "a"


@contextlib.contextmanager
def broker_process_in(home: Home) -> Iterator[Path]:
    taken = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(home.runtime)
    try:
        with broker_process(home.root):
            yield home.socket()
    finally:
        if taken is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = taken


@pytest.mark.anyio
async def test_a_starter_that_ends_leaves_its_broker(fleet_home: Home) -> None:
    code = """
import anyio, sys
from roundtable.client import reach
from roundtable.home import Home
async def main():
    async with await reach(Home.from_environment(), name="ann", grace_seconds=30) as client:
        await client.join("a")
        await client.post("a", "still here")
anyio.run(main)
"""
    environment = {**os.environ, "FLEET_HOME": str(fleet_home.root), "SOME_API_KEY": "hush"}
    subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, timeout=30, start_new_session=True
    )
    with Raw(fleet_home.socket(), "bob") as bob:
        assert bob.ask("fetch", room="a", afterSeq=0)["messages"][0]["text"] == "still here"
    if sys.platform == "linux":
        told = Path(f"/proc/{pids(fleet_home)[0]}/environ").read_bytes()
        assert b"hush" not in told


@pytest.mark.anyio
async def test_nobody_there_is_told_without_a_start(fleet_home: Home) -> None:
    with pytest.raises(BrokerUnavailable):
        await connect(fleet_home.default_socket(), name="ann")
    assert not fleet_home.root.exists()
