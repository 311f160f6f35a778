"""A seat over MCP on standard input and output: the tools, two peers of both ages of the protocol, and every end."""

# ruff: noqa: ASYNC240 - nothing else runs in the loop of a test while it looks

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from roundtable.client import connect
from roundtable.home import Home
from tests.integration.mcp_peers import ALONE, ROUNDTABLE, SECONDS, SINCE, Peer, stdio_peer, until
from tests.integration.running import alive_with, broker_pid, end_broker
from tests.integration.running import until as eventually

# Where tests are grouped, one process starts the servers of this module for all of them.
pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("mcp")]

ROOM_TOOLS = [
    f"roundtable_{name}"
    for name in ("rooms", "join", "leave", "post", "digest", "peek", "fetch", "export", "wait")
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """As everywhere, but of this scope: the peers outlive a test."""
    return "asyncio"


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Path]:
    """One home for all peers of this module; tests keep apart by rooms."""
    path = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    yield path / "home"
    end_broker({"FLEET_HOME": str(path / "home")})
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
async def ann(shared_home: Path, anyio_backend: str) -> AsyncIterator[Peer]:
    """Her client opens a session."""
    async with stdio_peer(shared_home, "--as", "ann") as peer:
        yield peer


@pytest.fixture(scope="module")
async def bob(shared_home: Path, anyio_backend: str) -> AsyncIterator[Peer]:
    """The requests of his client stand alone."""
    async with stdio_peer(shared_home, "--as", "bob", mode=ALONE) as peer:
        yield peer


@pytest.mark.parametrize(
    "words", [(), ("--as", ""), ("--as", "a b"), ("--as", "../x"), ("--as", "a", "--room", "b c")]
)
def test_a_command_line_without_a_role_ends_with_two_and_a_clean_stdout(
    clean_environ: dict[str, str], words: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [*ROUNDTABLE, "mcp", *words], capture_output=True, text=True, env=clean_environ, timeout=30
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: roundtable mcp --as ROLE" in done.stderr
    assert not Path(clean_environ["FLEET_HOME"]).exists()


async def test_the_tools_are_listed_whole_and_closed(ann: Peer, bob: Peer) -> None:
    for peer in (ann, bob):
        tools = (await peer.client.list_tools()).tools
        assert [tool.name for tool in tools] == [*ROOM_TOOLS, "memory_query"]
        for tool in tools:
            assert tool.input_schema["additionalProperties"] is False
            assert not {"role", "as", "name"} & set(tool.input_schema["properties"])
    assert bob.client.protocol_version >= SINCE
    assert ann.client.protocol_version < SINCE
    assert "You are ann" in (ann.client.instructions or "")
    assert "You are bob" in (bob.client.instructions or "")


async def test_two_peers_talk(ann: Peer, bob: Peer) -> None:
    assert await ann.says("join", room="talk", topic="Talking") == (
        "Joined #talk — Talking. 1 member, 0 unread messages."
    )
    assert await ann.says("post", room="talk", message="hi") == (
        "Posted to #talk as ann#1. Nobody else is in #talk now."
    )
    assert await bob.says("join", room="talk") == (
        "Joined #talk — Talking. 2 members, 1 unread message. Use digest to catch up."
    )
    assert (await bob.says("peek", room="talk")).startswith("#talk · 1 unread · showing 1 verbatim")
    assert (await bob.says("digest", room="talk")).endswith("ann#1: hi")
    assert (await bob.says("digest", room="talk")).endswith("No new messages.")
    assert (
        await bob.says("post", room="talk", message="hello", replyTo="ann#1") == "Posted to #talk as bob#2."
    )
    assert (await ann.says("fetch", room="talk")).endswith("[bob#2] (reply to ann#1) hello")
    assert "#talk — Talking · 1 unread · 2 msgs · members: ann, bob" in await ann.says("rooms")
    assert await bob.says("leave", room="talk") == "Left #talk."
    assert "join it first" in await bob.refuses("post", room="talk", message="again")


async def test_an_ordinary_member_is_pinged_by_a_post_of_a_peer(shared_home: Path, ann: Peer) -> None:
    await ann.says("join", room="mixed")
    async with await connect(Home(shared_home).socket(), name="cat") as cat:
        await cat.join("mixed")
        await ann.says("post", room="mixed", message="psst")
        with anyio.fail_after(SECONDS):
            activity = await cat.next_activity()
        assert (activity.room, activity.author, activity.seq) == ("mixed", "ann", 1)


async def test_a_ping_comes_by_itself_in_a_session(ann: Peer, bob: Peer) -> None:
    for peer in (ann, bob):
        await peer.says("join", room="bell")
    for text in ("one", "two"):
        await bob.says("post", room="bell", message=f"secret {text}")
    line = await ann.pinged("#bell")
    assert "#bell: 2 new (bob)" in line
    assert "secret" not in line
    assert len(line) <= 300


async def test_a_ping_comes_with_the_next_answer_where_requests_stand_alone(ann: Peer, bob: Peer) -> None:
    for peer in (ann, bob):
        await peer.says("join", room="gong")
    await ann.says("post", room="gong", message="psst")

    # It is known to the server once a burst is over; each answer until then brings nothing.
    end = anyio.current_time() + SECONDS
    while not any("#gong: 1 new (ann)" in line for line in bob.pings):
        assert anyio.current_time() < end, bob.pings
        await bob.says("rooms")
        await anyio.sleep(0.1)
    assert sum("#gong" in line for line in bob.pings) == 1


async def test_a_wait_ends_with_a_post_and_holds_nobody_up(ann: Peer, bob: Peer) -> None:
    for peer in (ann, bob):
        await peer.says("join", room="patience")
    heard: list[str] = []

    async def wait() -> None:
        heard.append(await ann.says("wait", rooms=["patience"], timeoutSeconds=SECONDS))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        # Her other calls are answered meanwhile.
        assert "patience" in await ann.says("rooms")
        assert heard == []
        await bob.says("post", room="patience", message="now")
    (line,) = heard
    assert "#patience: 1 new (bob)" in line
    assert "now" not in line
    assert (await ann.says("peek", room="patience")).startswith("#patience · 1 unread")
    assert await ann.says("wait", rooms=["patience"], timeoutSeconds=0) == "Nothing new."


@pytest.mark.parametrize("name", ["ann", "bob"])
async def test_a_client_that_gives_a_wait_up_breaks_nothing(name: str, ann: Peer, bob: Peer) -> None:
    peer = {"ann": ann, "bob": bob}[name]
    await peer.says("join", room="hurry")
    with pytest.raises(MCPError, match="timed out"):
        await peer.client.call_tool(
            "roundtable_wait", {"rooms": ["hurry"], "timeoutSeconds": 300}, read_timeout_seconds=0.2
        )
    assert "Posted to #hurry" in await peer.says("post", room="hurry", message="still here")
    assert (await peer.says("wait", rooms=["hurry"], timeoutSeconds=0.1)) == "Nothing new."


async def test_what_is_asked_wrongly_is_answered_in_words(ann: Peer, bob: Peer) -> None:
    for peer in (ann, bob):
        assert "Missing 'room'" in await peer.refuses("digest")
        assert "Missing 'message'" in await peer.refuses("post", room="a")
        assert "Unknown parameter 'as'" in await peer.refuses("digest", room="a", **{"as": "eve"})
        assert "'budget' must be a whole number" in await peer.refuses("digest", room="a", budget="much")
        assert "'room' must be 1 to 64" in await peer.refuses("join", room="a b")
        assert "'timeoutSeconds' must be 0 to 300" in await peer.refuses("wait", timeoutSeconds=301)
        assert 'Room "nowhere" does not exist' in await peer.refuses("digest", room="nowhere")
        assert "roundtable_rooms" in await peer.refuses("dance")


async def test_a_message_that_is_too_long_is_refused_with_advice(ann: Peer) -> None:
    await ann.says("join", room="long")
    refusal = await ann.refuses("post", room="long", message="x" * (6 * 1024 * 1024 + 1))
    assert "6 MiB" in refusal
    assert "post the path" in refusal
    assert "Posted to #long as ann#1" in await ann.says("post", room="long", message="x" * 100_000)


async def test_a_broker_that_is_killed_between_two_calls(shared_home: Path, ann: Peer, bob: Peer) -> None:
    for peer in (ann, bob):
        await peer.says("join", room="phoenix")
    pid = broker_pid({"FLEET_HOME": str(shared_home)})
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not _is_alive(pid), "its end")
    for peer in (ann, bob):
        # Memberships are not made again behind the back of who is asked to join.
        assert "join it first" in await peer.refuses("post", room="phoenix", message="hi")
        assert "Joined #phoenix." in await peer.says("join", room="phoenix")
        assert "Posted to #phoenix" in await peer.says("post", room="phoenix", message="hi")
    assert "#phoenix: 1 new (bob)" in await ann.pinged("#phoenix")


async def test_a_room_named_at_the_start_is_joined_once_by_ten_first_calls(home: Path) -> None:
    async with stdio_peer(home, "--as", "carl", "--room", "#desk") as carl:
        assert "You sit in #desk" in (carl.client.instructions or "")
        await carl.client.list_tools()
        await carl.refuses("memory_ingest", source="x")
        assert not home.exists(), "a session that calls no room tool starts no broker and makes no socket"
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(carl.says, "rooms")
        assert await carl.says("rooms") == "#desk · 0 unread · 0 msgs · members: carl"
        async with await connect(Home(home).socket(), name="look") as look:
            (info,) = await look.rooms()
            assert [member.name for member in info.members] == ["carl"]
        assert "empty" in await carl.says("memory_query", question="what did we agree on?")
        # What was left stays left.
        await carl.says("leave", room="desk")
        assert "join it first" in await carl.refuses("post", room="desk", message="hi")
    end_broker({"FLEET_HOME": str(home)})


@dataclass
class Raw:
    """A server without a client of the SDK: what it writes is looked at as it is."""

    process: subprocess.Popen[bytes]

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        frame = {"jsonrpc": "2.0", "method": method, "params": params}
        line = json.dumps(frame if number is None else {**frame, "id": number})
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        frame = json.loads(self.process.stdout.readline())
        assert frame["jsonrpc"] == "2.0"
        return dict(frame)

    def open(self) -> None:
        self.send(
            "initialize",
            0,
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "raw", "version": "1"},
        )
        assert self.receive()["result"]["serverInfo"]["name"] == "roundtable"
        self.send("notifications/initialized")

    def call(self, number: int, tool: str, **arguments: Any) -> None:
        self.send("tools/call", number, name=f"roundtable_{tool}", arguments=arguments)


@pytest.fixture
def raw(clean_environ: dict[str, str]) -> Iterator[Raw]:
    with subprocess.Popen(
        [*ROUNDTABLE, "mcp", "--as", "ann"],
        env=clean_environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Raw(process)
        finally:
            process.kill()
            end_broker(clean_environ)


def test_stdout_stays_clean_although_no_broker_can_start_and_the_input_is_garbage(
    home: Path, raw: Raw
) -> None:
    home.mkdir()
    (home / "roundtable").write_text("a file where the folder of the rooms must be")
    raw.open()
    raw.call(1, "rooms")
    result = raw.receive()["result"]
    assert result["isError"] is True
    assert "not connected" in result["content"][0]["text"]
    assert str(home / "roundtable" / "broker.sock") in result["content"][0]["text"]
    # Bytes that are no frame are no reason to end, nor to write anything but frames.
    assert raw.process.stdin is not None
    raw.process.stdin.write(b"\xff\x00 garbage\n[]\n\n")
    raw.call(2, "rooms")
    assert raw.receive()["id"] == 2

    # An interrupt ends it at once, and without a word.
    raw.process.send_signal(signal.SIGINT)
    out, err = raw.process.communicate(timeout=SECONDS)
    assert (raw.process.returncode, out, err) == (-signal.SIGINT, b"", b"")


def test_a_request_that_cannot_be_read_is_answered(raw: Raw) -> None:
    raw.open()
    assert raw.process.stdin is not None
    deep = "[" * 50_000 + "]" * 50_000
    for number, value in enumerate(('"cut \\ud83d"', "9" * 5000, deep), start=10):
        for request_id in (str(number), f'"r{number}"'):
            call = f'"method":"tools/call","params":{{"name":"x","arguments":{{"a":{value}}}}}'
            line = f'{{"jsonrpc":"2.0","id":{request_id},{call}}}'
            raw.process.stdin.write(line.encode() + b"\n")
            raw.process.stdin.flush()
            answer = raw.receive()
            assert answer["id"] == json.loads(request_id)
            assert answer["error"]["code"] == -32700
            assert "cut in the middle of a character" in answer["error"]["message"]
    raw.call(2, "join", room="a")
    assert raw.receive()["id"] == 2


def test_the_end_of_its_input_is_its_end_also_during_a_wait(raw: Raw, clean_environ: dict[str, str]) -> None:
    raw.open()
    raw.call(1, "join", room="a")
    assert "Joined #a" in raw.receive()["result"]["content"][0]["text"]
    raw.call(2, "wait", timeoutSeconds=300)
    _, err = raw.process.communicate(timeout=SECONDS)
    assert (raw.process.returncode, err) == (0, b"")
    # Nobody is left in the room, so the broker has nobody to wait for.
    eventually(lambda: broker_pid(clean_environ) is None, "the end of its broker")


def test_a_reader_that_has_gone_is_its_end_although_its_input_stays_open(raw: Raw) -> None:
    raw.open()
    assert raw.process.stdout is not None
    raw.process.stdout.close()
    raw.call(1, "rooms")
    assert raw.process.wait(SECONDS) == 128 + signal.SIGPIPE


def test_a_client_that_is_killed_leaves_no_server(clean_environ: dict[str, str]) -> None:
    role = f"orphan-{os.getpid()}"
    client = (
        "import subprocess, sys\n"
        "server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        'server.stdin.write(b\'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\\n\'); server.stdin.flush()\n'
        "server.stdout.readline(); print(flush=True)\n"
        "server.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", client, *ROUNDTABLE, "mcp", "--as", role],
        env=clean_environ,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            assert len(alive_with(role)) == 2
        finally:
            process.kill()
    eventually(lambda: not alive_with(role), "the server's end")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
