"""One seat behind the protocol, without a transport: who is told of a ping, and what a fault looks like."""

# ruff: noqa: ASYNC110, ASYNC240 - a test looks again and again, and nothing else runs in its loop while it looks

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from roundtable.home import Home
from roundtable.mcp import server as module
from roundtable.mcp.server import SeatServer
from roundtable.memory.place import Place
from roundtable.said import Said
from roundtable.seat import Seat
from tests.integration.mcp_peers import ALONE, SESSION, Peer, text_of, until
from tests.integration.raw import embedded_broker

pytestmark = pytest.mark.anyio

each_age = pytest.mark.parametrize("mode", [SESSION, ALONE])


class Bell(Seat):
    """A seat whose pings a test rings."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, "ann")
        self.ring, self._rung = anyio.create_memory_object_stream[str](10)

    async def pings(self) -> AsyncIterator[str]:
        async for line in self._rung:
            yield line

    async def aclose(self) -> None:
        await super().aclose()
        self.ring.close()
        self._rung.close()


@pytest.fixture
async def bell(home: Path) -> AsyncIterator[Bell]:
    async with Bell(Home(home)) as seat:
        yield seat


@pytest.fixture
async def server(home: Path, bell: Bell) -> AsyncIterator[SeatServer]:
    server = SeatServer(Home(home), bell, Place(home / "memory", "librarian", None))
    async with anyio.create_task_group() as group:
        group.start_soon(server.tell_pings)
        yield server
        group.cancel_scope.cancel()


@asynccontextmanager
async def connected(
    server: SeatServer, mode: str, level: types.LoggingLevel | None = "info"
) -> AsyncIterator[Peer]:
    pings: list[str] = []

    async def take(told: types.LoggingMessageNotificationParams) -> None:
        assert (told.level, told.logger) == ("info", "roundtable")
        pings.append(told.data)

    async with Client(server.protocol, mode=mode, logging_callback=take, log_level=level) as client:
        yield Peer(client, pings)


async def settled() -> None:
    """Let everything that is ready to run do so."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def test_every_open_session_is_told_as_soon_as_it_rings(server: SeatServer, bell: Bell) -> None:
    async with connected(server, SESSION) as one:
        await one.client.list_tools()
        await bell.ring.send("ding")
        await until(lambda: one.pings == ["ding"], "the first")
        await bell.ring.send("dong")
        await until(lambda: one.pings == ["ding", "dong"], "the second")


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
async def test_a_session_that_asked_for_less_is_left_alone(server: SeatServer, bell: Bell) -> None:
    async with connected(server, SESSION) as peer:
        await peer.client.set_logging_level("warning")
        await bell.ring.send("ding")
        await settled()
        assert peer.pings == []
        await peer.client.set_logging_level("debug")
        await bell.ring.send("dong")
        await until(lambda: peer.pings == ["dong"], "what rang after it asked for all")


async def test_where_requests_stand_alone_the_newest_comes_with_the_next_answer(
    server: SeatServer, bell: Bell
) -> None:
    async with connected(server, ALONE) as peer:
        for line in ("ding", "dong"):
            await bell.ring.send(line)
        await settled()
        assert peer.pings == []
        await peer.refuses("dance")
        assert peer.pings == ["dong"]
        await peer.refuses("dance")
        assert peer.pings == ["dong"]


async def test_it_comes_at_once_while_a_request_is_answered(
    server: SeatServer, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call(action: str, arguments: Any) -> Said:
        await bell.ring.send("ding")
        await until(lambda: peer.pings == ["ding"], "a ping during the call")
        return Said("done")

    monkeypatch.setattr(bell, "call", call)
    async with connected(server, ALONE) as peer:
        assert await peer.says("rooms") == "done"


@pytest.mark.parametrize("level", [None, "warning"])
async def test_a_request_that_did_not_ask_for_it_is_told_nothing(
    server: SeatServer, bell: Bell, level: types.LoggingLevel | None
) -> None:
    async with connected(server, ALONE, level) as peer:
        await bell.ring.send("ding")
        await settled()
        await peer.refuses("dance")
        assert peer.pings == []


@each_age
async def test_who_asks_for_progress_hears_that_a_wait_goes_on(
    server: SeatServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PROGRESS_SECONDS", 0.01)
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def wait(action: str, arguments: Any) -> Said:
        await until(lambda: len(heard) >= 3, "three notices")
        return Said("Nothing new.")

    monkeypatch.setattr(Bell, "call", lambda self, action, arguments: wait(action, arguments))
    async with connected(server, mode) as peer:
        result = await peer.client.call_tool("roundtable_wait", {}, progress_callback=hear)
        assert isinstance(result, types.CallToolResult)
        assert text_of(result) == "Nothing new."
    assert heard == sorted(heard)


@each_age
async def test_a_fault_of_ours_is_told_without_its_trace(
    server: SeatServer, mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Seat, action: str, arguments: Any) -> Said:
        raise KeyError("/a/secret/place")

    monkeypatch.setattr(Bell, "call", fail)
    async with connected(server, mode) as peer:
        assert await peer.refuses("rooms") == "roundtable_rooms failed: internal error (KeyError)"
        assert "Unknown tool" in await peer.refuses("dance")
    assert "/a/secret/place" in caplog.text


@pytest.fixture
def broker(home: Path) -> Iterator[None]:
    with embedded_broker(home):
        yield


async def test_who_was_led_out_comes_back_to_the_named_room(home: Path, broker: None) -> None:
    async with Seat(Home(home), "ann") as seat, Seat(Home(home), "look") as look:
        server = SeatServer(Home(home), seat, Place(home / "memory", "librarian", None), room="desk")
        async with connected(server, SESSION) as peer:
            await peer.says("post", room="desk", message="hi")
            assert "members: ann" in await peer.says("rooms")
            await server.leave()
            await until_text(look, "members: none")
            assert "members: ann" in await peer.says("rooms")


async def until_text(seat: Seat, text: str) -> None:
    """The broker sees the end of a connection a moment later."""
    with anyio.fail_after(10):
        while text not in (await seat.rooms()).text:
            await anyio.sleep(0.01)


async def test_a_named_room_is_joined_as_soon_as_it_can_be(home: Path) -> None:
    home.mkdir()
    obstacle = home / "roundtable"
    obstacle.write_text("no folder")
    async with Seat(Home(home), "ann") as seat:
        server = SeatServer(Home(home), seat, Place(home / "memory", "librarian", None), room="desk")
        async with connected(server, ALONE) as peer:
            for _ in range(2):
                refusal = await peer.refuses("rooms")
                assert "not connected" in refusal
                assert str(home / "roundtable" / "broker.sock") in refusal
            obstacle.unlink()
            with embedded_broker(home):
                assert "#desk" in await peer.says("rooms")
                await seat.aclose()
