"""A stream over a Unix socket: all bytes arrive, and cancelling or closing in any order is quiet."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from roundtable.stream import UnixStream, connect_unix

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both, as for clients."""
    return str(request.param)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def test_data_that_arrive_with_the_cancellation_are_neither_lost_nor_an_error(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    """On asyncio an error in a callback of the loop fails the test by itself."""
    stream, peer = UnixStream(ends[0]), ends[1]
    for _ in range(20):
        got: list[bytes] = []
        async with anyio.create_task_group() as group:
            scope = anyio.CancelScope()

            async def wait(scope: anyio.CancelScope = scope, got: list[bytes] = got) -> None:
                with scope:
                    got.append(await stream.receive(1))

            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            peer.send(b"x")
            # In the loop's next turn this task goes on first, and then the loop finds the data.
            await anyio.lowlevel.cancel_shielded_checkpoint()
            scope.cancel()
        # Trio may have let the reader go on first.
        assert (got or [await stream.receive(1)]) == [b"x"]
    await stream.aclose()


async def test_everything_sent_arrives_in_bounded_parts(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.setblocking(False)
    one, two = UnixStream(ours), UnixStream(theirs)
    data = bytes(range(256)) * 20_000
    parts: list[bytes] = []

    async def send() -> None:
        await one.send(data)
        await one.aclose()

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        while sum(map(len, parts)) < len(data):
            parts.append(await two.receive(65_536))
    assert b"".join(parts) == data
    assert max(map(len, parts)) <= 65_536
    with pytest.raises(anyio.EndOfStream):
        await two.receive(1)
    with pytest.raises(OSError, match="pipe"):
        await two.send(b"x")
    await two.aclose()


@pytest.mark.parametrize("is_sending", [False, True])
async def test_closing_ends_a_wait_and_only_then_lets_the_descriptor_go(
    is_sending: bool, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    stream = UnixStream(ours)

    async def wait() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await (stream.send(b"x" * 5_000_000) if is_sending else stream.receive(1))
        assert ours.fileno() == -1

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await stream.aclose()
    if not is_sending:
        assert theirs.recv(1) == b""
    await stream.aclose()
    for call in (stream.send(b"x"), stream.receive(1)):
        with pytest.raises(anyio.ClosedResourceError):
            await call


@pytest.mark.parametrize("turns", range(4))
async def test_a_closing_between_the_wait_and_what_follows_it(
    turns: int, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    stream = UnixStream(ours)

    async def wait() -> None:
        with suppress(anyio.ClosedResourceError):
            assert await stream.receive(1) == b"x"

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        theirs.send(b"x")
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        await stream.aclose()


async def test_the_number_of_a_closed_socket_is_not_taken_while_somebody_waits(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    """Who waits would, on going on, cancel the wait of whoever has got the same number."""
    stream, number = UnixStream(ends[0]), ends[0].fileno()
    with socket.socket() as spare:

        async def wait() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await stream.receive(1)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            closing = stream.aclose().__await__()
            next(closing)  # up to its checkpoint; the waiter has not run yet
            with spare.dup() as taken:
                assert taken.fileno() != number
            closing.close()
    assert ends[0].fileno() == -1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full backlog refuses")
async def test_a_full_backlog_is_waited_for_and_the_wait_can_be_cancelled(short_path: Path) -> None:
    path = short_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        first = await connect_unix(path)
        with anyio.move_on_after(0.05) as scope:
            await connect_unix(path)
        assert scope.cancelled_caught

        async def accept() -> None:
            await anyio.wait_all_tasks_blocked()
            listener.accept()[0].close()

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(accept)
                second = await connect_unix(path)
        await first.aclose()
        await second.aclose()


async def test_nobody_listens(short_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await connect_unix(short_path / "none")
