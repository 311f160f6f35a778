"""One connection used by several tasks: replies, deadlines, activity, and the end of a broker."""

# ruff: noqa: S106 - the secrets here guard nothing

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from roundtable.client import REQUEST_SECONDS, Client, connect
from roundtable.errors import BrokerUnavailable, ConnectionLost, Refused, RequestTimedOut
from roundtable.limits import Limits
from roundtable.message import Activity
from roundtable.ping import Ping
from tests.integration.raw import broker_process, embedded_broker

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """A client is no task of its own and bound to no loop, so it works on both."""
    return str(request.param)


@pytest.fixture
def path(home: Path) -> Iterator[Path]:
    with embedded_broker(home) as path:
        yield path


@asynccontextmanager
async def pair(path: Path) -> AsyncIterator[tuple[Client, Client]]:
    async with await connect(path, name="ann") as ann, await connect(path, name="bob") as bob:
        await ann.join("a")
        await bob.join("a")
        assert await ann.next_activity() == Activity("a", "bob", 0)
        yield ann, bob


async def test_every_request_gives_its_value(path: Path) -> None:
    async with await connect(path, name="ann", secret="s") as ann:
        joined = await ann.join("a", "Topic")
        assert (joined.topic, joined.cursor, joined.last_seq, joined.unread, joined.shared_with) == (
            "Topic",
            0,
            0,
            0,
            0,
        )
        assert [member.session_id for member in joined.members] == [ann.session_id]
        posted = await ann.post("a", "hi", id="mine", epoch=joined.epoch)
        assert (posted.message.id, posted.message.seq, posted.message.author.name) == ("mine", 1, "ann")
        assert (await ann.post("a", "re", reply_to="mine")).message.reply_to == "ann#1"
        page = await ann.fetch("a", 0, 1)
        assert page.messages == (posted.message,)
        assert (page.first_seq, page.last_seq, page.cursor) == (1, 2, 2)
        assert await ann.set_cursor("a", 1) == 2
        found = await ann.digest("a", after_seq=0)
        assert (found.total, found.verbatim, found.consumed_seq, found.cursor) == (2, 2, 2, 2)
        assert (await ann.digest("a", after_seq=0, others=True)).total == 0
        await ann.reserve("a", ["ann"], "s")
        (info,) = await ann.rooms()
        assert (info.name, info.topic, info.message_count, info.unread, info.epoch) == (
            "a",
            "Topic",
            2,
            0,
            joined.epoch,
        )
        await ann.leave("a")
        with pytest.raises(Refused, match="join it first") as caught:
            await ann.post("a", "x")
        assert caught.value.code == "not-a-member"


async def test_a_name_the_broker_does_not_take(path: Path) -> None:
    with pytest.raises(Refused) as caught:
        await connect(path, name="a b")
    assert caught.value.code == "bad-request"


async def test_too_many_connections_is_told(home: Path) -> None:
    with embedded_broker(home, limits=Limits(connections=1)) as path:
        async with await connect(path, name="ann"):
            with pytest.raises(Refused) as caught:
                await connect(path, name="bob")
            assert caught.value.code == "connection-limit"


async def test_many_tasks_share_one_connection(path: Path) -> None:
    async with pair(path) as (ann, bob):
        seqs: list[int] = []

        async def post(number: int) -> None:
            posted = await ann.post("a", f"{number}")
            assert posted.message.text == f"{number}"
            seqs.append(posted.message.seq)

        # Less than a request may take: nobody was woken only by running out of time.
        with anyio.fail_after(REQUEST_SECONDS / 2):
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(post, number)
                    group.start_soon(ann.rooms)
        assert sorted(seqs) == list(range(1, 51))
        newest = 0
        while newest < 50:
            newest = (await bob.next_activity()).seq


async def test_who_waits_for_activity_reads_for_the_others(path: Path) -> None:
    async with pair(path) as (ann, bob), anyio.create_task_group() as group:
        found: list[Activity] = []

        async def watch() -> None:
            found.append(await ann.next_activity())

        group.start_soon(watch)
        await anyio.wait_all_tasks_blocked()
        for _ in range(3):
            await ann.rooms()
        assert found == []
        await bob.post("a", "x")
        with anyio.fail_after(10):
            while not found:
                await anyio.wait_all_tasks_blocked()
                await ann.rooms()
        assert found == [Activity("a", "bob", 1)]


async def test_a_cancelled_reader_loses_nothing_and_the_next_takes_over(path: Path) -> None:
    async with pair(path) as (ann, bob):
        for seq in range(1, 30):
            async with anyio.create_task_group() as group:
                watcher = anyio.CancelScope()

                async def watch(scope: anyio.CancelScope = watcher) -> None:
                    with scope:
                        await ann.next_activity()
                        raise AssertionError("nothing is there yet")

                async def ask() -> None:
                    with anyio.fail_after(10):
                        await ann.rooms()

                group.start_soon(watch)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(ask)
                watcher.cancel()
            await bob.post("a", "x")
            with anyio.fail_after(10):
                assert await ann.next_activity() == Activity("a", "bob", seq)


async def test_a_request_given_up_does_not_disturb_the_next(path: Path) -> None:
    async with pair(path) as (ann, _):
        for _ in range(20):
            with anyio.move_on_after(0):
                await ann.post("a", "given up")
            page = await ann.fetch("a", 0)
            assert page.last_seq == len(page.messages)
        # Given up in the middle of a frame that takes several writes: the rest of it is still sent.
        for number in range(10):
            with anyio.move_on_after(number / 2000):
                await ann.post("a", "x" * 3_000_000)
            assert (await ann.rooms())[0].name == "a"


async def test_activity_that_piles_up_is_merged_by_author_and_bounded(path: Path) -> None:
    async with pair(path) as (ann, bob):
        for _ in range(100):
            await bob.post("a", "x")
        while (await ann.rooms())[0].last_seq < 100:
            pass
        assert await ann.next_activity() == Activity("a", "bob", 100)
        with anyio.move_on_after(0.05):
            raise AssertionError(await ann.next_activity())


async def test_large_texts_go_both_ways(path: Path) -> None:
    text = "é\u2028\x00" * 500_000
    async with pair(path) as (ann, bob):
        await ann.post("a", text)
        assert (await bob.fetch("a", 0)).messages[0].text == text
        for wrong in ("x" * (6 * 1024 * 1024 + 1), "\x01" * (6 * 1024 * 1024)):
            with pytest.raises(Refused) as caught:
                await ann.post("a", wrong)
            assert caught.value.code == "too-large"
        with pytest.raises(Refused) as caught:
            await ann.post("a", "\ud800")
        assert caught.value.code == "bad-request"
        assert not ann.is_closed


async def test_a_broker_that_ends_is_told_to_everybody_waiting(home: Path) -> None:
    with broker_process(home) as process:
        async with await connect(home / "roundtable" / "broker.sock", name="ann") as ann:
            await ann.join("a")
            lost: list[str] = []

            async def watch() -> None:
                with pytest.raises(ConnectionLost):
                    await ann.next_activity()
                lost.append("watch")

            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                group.start_soon(watch)
                await anyio.wait_all_tasks_blocked()
                process.kill()
            assert lost == ["watch", "watch"]
            assert ann.is_closed
            with pytest.raises(ConnectionLost):
                await ann.rooms()


async def test_closing_ends_every_wait_and_can_be_repeated(path: Path) -> None:
    client = await connect(path, name="ann")

    async def watch() -> None:
        with pytest.raises(ConnectionLost):
            await client.next_activity()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await anyio.wait_all_tasks_blocked()
        await client.aclose()
        await client.aclose()
    with pytest.raises(ConnectionLost):
        await client.post("a", "x")


async def test_nobody_at_the_socket(short_path: Path) -> None:
    with pytest.raises(BrokerUnavailable) as caught:
        await connect(short_path / "none.sock", name="ann")
    assert str(short_path) in str(caught.value)


async def test_a_broker_that_never_answers_is_waited_for_no_longer_than_said(short_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(short_path / "s"))
        silent.listen()
        start = anyio.current_time()
        with pytest.raises(RequestTimedOut, match="timed out"):
            await connect(short_path / "s", name="ann", deadline=start + 0.1)
        assert anyio.current_time() - start < 5


@pytest.mark.parametrize(
    "answer", [b"\xff\xff\xff\xff", struct.pack(">I", 4) + b"nope", struct.pack(">I", 2) + b"[]", b""]
)
async def test_what_is_no_reply_ends_the_connection(short_path: Path, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as strange:
        strange.bind(str(short_path / "s"))
        strange.listen()

        async def answer_wrongly() -> None:
            end, _ = await anyio.to_thread.run_sync(strange.accept)
            with end:
                await anyio.to_thread.run_sync(end.recv, 100)
                end.sendall(answer)

        async with anyio.create_task_group() as group:
            group.start_soon(answer_wrongly)
            with pytest.raises(ConnectionLost):
                await connect(short_path / "s", name="ann")


async def test_a_burst_in_two_rooms_is_one_line(path: Path) -> None:
    async with (
        await connect(path, name="me") as me,
        await connect(path, name="x") as one,
        await connect(path, name="y") as two,
    ):
        for room in ("a", "b"):
            for client in (me, one, two):
                await client.join(room)
        ping, newest = Ping(), {"a": 0, "b": 0}
        for room in newest:
            ping.know(room, 0)
        for _ in range(5):
            await one.post("a", "body")
            await two.post("b", "body")
        await one.leave("a")
        await two.post("a", "body")
        await one.join("a")
        with anyio.fail_after(10):
            while newest != {"a": 6, "b": 5}:
                activity = await me.next_activity()
                newest[activity.room] = max(newest[activity.room], activity.seq)
                # The clock is the test's, so that a slow machine changes nothing.
                ping.feed(activity, now=0.0)
        assert ping.due_at == 1.5
        line = ping.take()
        assert line in {
            f"Roundtable activity — {rooms}. Use digest to catch up when relevant."
            for rooms in ("#a: 6 new (x, y) · #b: 5 new (y)", "#b: 5 new (y) · #a: 6 new (x, y)")
        }
        assert ping.take() == ""
