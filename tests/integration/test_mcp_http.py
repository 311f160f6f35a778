"""Roles over streamable HTTP: who a token is and is not, how long a role sits, and what strangers are told."""

# ruff: noqa: ASYNC110 - a test looks again and again

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio
import pytest

from roundtable.client import connect
from roundtable.home import Home
from roundtable.tokens import tokens_path
from tests.integration.mcp_peers import (
    ALONE,
    ROUNDTABLE,
    SECONDS,
    SESSION,
    HttpServer,
    Peer,
    http_peer,
    http_server,
    stdio_peer,
    until,
)
from tests.integration.running import end_broker

# Where tests are grouped, one process starts the server of this module for all of them.
pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("mcp-http")]

#: What a client of the SDK sends with each request.
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest) -> Iterator[HttpServer]:
    """One server for all tests of this module; they keep apart by rooms."""
    path = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    environ = {**os.environ, "FLEET_HOME": str(path / "home")}
    roles = [word for role in ("ann", "bob", "cat", "dan", "librarian") for word in ("--as", role)]
    with http_server(environ, *roles) as server:
        yield server
    end_broker(environ)
    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class Answer:
    """What a server answers to one request."""

    status: int
    headers: dict[str, str]
    text: str


def request(
    server: HttpServer,
    method: str = "POST",
    token: str | None = None,
    body: Any = HELLO,
    *,
    path: str = "/mcp",
    **headers: str,
) -> Answer:
    """One request by hand, on a connection of its own."""
    given = {"Authorization": f"Bearer {token}"} if token else {}
    connection = HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    try:
        connection.request(method, path, json.dumps(body), {**HEADERS, **given, **headers})
        response = connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, told, response.read().decode())
    finally:
        connection.close()


async def test_peers_of_both_ages_and_one_on_stdio_talk(served: HttpServer) -> None:
    async with (
        http_peer(served.url, served.token("ann"), mode=SESSION) as ann,
        http_peer(served.url, served.token("bob"), mode=ALONE) as bob,
        stdio_peer(served.home, "--as", "eve") as eve,
    ):
        peers: tuple[Peer, ...] = (ann, bob, eve)
        for peer in peers:
            assert "Joined #talk" in await peer.says("join", room="talk")
        async with await connect(Home(served.home).socket(), name="fay") as fay:
            await fay.join("talk")
            assert await bob.says("post", room="talk", message="hi") == "Posted to #talk as bob#1."
            with anyio.fail_after(SECONDS):
                assert (await fay.next_activity()).author == "bob"
        for peer in (ann, eve):
            assert "#talk: 1 new (bob)" in await peer.pinged("#talk")
            assert (await peer.says("digest", room="talk")).endswith("bob#1: hi")
        assert await eve.says("post", room="talk", message="hello") == "Posted to #talk as eve#2."
        assert "#talk: 1 new (eve)" in await bob.says("wait", rooms=["talk"])
        assert await ann.says("post", room="talk", message="x" * 100_000)


async def test_the_tools_are_those_of_the_role(served: HttpServer) -> None:
    for role, own in (("ann", []), ("librarian", ["memory_ingest", "memory_gardener"])):
        async with http_peer(served.url, served.token(role), mode=ALONE) as peer:
            tools = [tool.name for tool in (await peer.client.list_tools()).tools]
            assert len(tools) == 10 + len(own)
            assert tools[9:] == ["memory_query", *own]
            assert f"You are {role}" in (peer.client.instructions or "")


@pytest.fixture
async def ann(served: HttpServer) -> AsyncIterator[Peer]:
    async with http_peer(served.url, served.token("ann")) as peer:
        yield peer


@pytest.fixture
async def librarian(served: HttpServer) -> AsyncIterator[Peer]:
    """The role that writes memory."""
    async with http_peer(served.url, served.token("librarian"), mode=ALONE) as peer:
        yield peer


async def test_only_the_writer_exports(served: HttpServer, ann: Peer, librarian: Peer) -> None:
    await ann.says("join", room="minutes")
    await ann.says("post", room="minutes", message="we agreed on blue")
    refusal = await ann.refuses("export", room="minutes", path="raw/minutes.txt")
    assert refusal.startswith('Only the "librarian" role may export rooms for memory; this session is "ann".')
    assert not (served.home / "memory").exists()

    told = await librarian.says("export", room="minutes", path="raw/minutes.txt")
    assert told.startswith("Exported 1 retained message from #minutes to ")
    assert "blue" not in told
    written = (served.home / "memory" / "raw" / "minutes.txt").read_text()
    assert written.endswith("Z] ann#1: we agreed on blue\n")


async def test_memory_is_asked_by_all_and_written_by_one(ann: Peer, librarian: Peer) -> None:
    assert 'Only the "librarian" role may' in await ann.refuses("memory_ingest", source="raw/colours.txt")
    assert 'Only the "librarian" role may' in await ann.refuses("memory_gardener")
    assert "Unknown parameter" in await ann.refuses("memory_query", question="what?", role="librarian")

    await ann.says("join", room="colours")
    await ann.says("post", room="colours", message="DECISION: the doors are painted vermilion")
    await librarian.says("export", room="colours", path="raw/colours.txt")
    assert "colours" in await librarian.says("memory_ingest", source="raw/colours.txt")
    assert await librarian.says("memory_gardener")
    assert "vermilion" in await ann.says("memory_query", question="how are the doors painted?")


async def test_a_message_that_is_too_long_is_refused_with_advice(ann: Peer) -> None:
    await ann.says("join", room="long")
    assert "6 MiB" in await ann.refuses("post", room="long", message="x" * (6 * 1024 * 1024 + 1))


@pytest.mark.parametrize("mode", [SESSION, ALONE])
async def test_a_membership_lasts_over_requests_and_over_another_client_of_the_role(
    served: HttpServer, mode: str
) -> None:
    room = f"lasting-{mode}"
    async with http_peer(served.url, served.token("bob"), mode=ALONE) as first:
        await first.says("join", room=room)
    async with http_peer(served.url, served.token("bob"), mode=mode) as second:
        assert "Posted to" in await second.says("post", room=room, message="hi")


async def test_a_role_leaves_with_the_goodbye_of_its_last_session(served: HttpServer) -> None:
    async def members() -> set[str]:
        async with await connect(Home(served.home).socket(), name="look") as look:
            (info,) = [info for info in await look.rooms() if info.name == "party"]
            return {member.name for member in info.members}

    async with http_peer(served.url, served.token("cat"), mode=SESSION) as peer:
        await peer.says("join", room="party")
        await peer.says("post", room="party", message="hi")
        assert await members() == {"cat"}
    # The stream of events the client had open ends a moment later.
    with anyio.fail_after(SECONDS):
        while await members():
            await anyio.sleep(0.02)


def test_a_role_stays_with_the_goodbye_of_a_session_that_is_not_its_last(served: HttpServer) -> None:
    token = served.token("dan")

    def call(session: str, tool: str, **arguments: str) -> str:
        params = {"name": f"roundtable_{tool}", "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return request(served, token=token, body=body, **{"Mcp-Session-Id": session}).text

    one, two = (request(served, token=token).headers["mcp-session-id"] for _ in range(2))
    assert "Joined #pair" in call(one, "join", room="pair")
    assert "Posted to #pair" in call(two, "post", room="pair", message="hi")
    goodbyes = [one, "unknown", one]
    answers = [request(served, "DELETE", token, None, **{"Mcp-Session-Id": name}) for name in goodbyes]
    assert [answer.status for answer in answers] == [200, 404, 404]
    assert "Posted to #pair" in call(two, "post", room="pair", message="still here")
    assert request(served, "DELETE", token, None, **{"Mcp-Session-Id": two}).status == 200
    three = request(served, token=token).headers["mcp-session-id"]
    assert "join it first" in call(three, "post", room="pair", message="back")
    request(served, "DELETE", token, None, **{"Mcp-Session-Id": three})


async def test_a_client_that_gives_a_wait_up_breaks_nothing(served: HttpServer) -> None:
    for mode in (SESSION, ALONE):
        async with http_peer(served.url, served.token("ann"), mode=mode) as ann:
            await ann.says("join", room="hurry")
            with pytest.raises(Exception, match="timed out"):
                await ann.client.call_tool(
                    "roundtable_wait", {"rooms": ["hurry"], "timeoutSeconds": 300}, read_timeout_seconds=0.2
                )
            assert await ann.says("wait", rooms=["hurry"], timeoutSeconds=0.1) == "Nothing new."


def test_a_wait_whose_client_has_gone_leaves_the_news_to_the_next(served: HttpServer) -> None:
    cat, bob = served.token("cat"), served.token("bob")
    sessions = {token: request(served, token=token).headers["mcp-session-id"] for token in (cat, bob)}

    def call(token: str, tool: str, **arguments: Any) -> str:
        params = {"name": f"roundtable_{tool}", "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return request(served, token=token, body=body, **{"Mcp-Session-Id": sessions[token]}).text

    for token in (cat, bob):
        assert "Joined #gone" in call(token, "join", room="gone")
    params = {"name": "roundtable_wait", "arguments": {"rooms": ["gone"], "timeoutSeconds": 60}}
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    given = {**HEADERS, "Authorization": f"Bearer {cat}", "Mcp-Session-Id": sessions[cat]}
    dropped = HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
    dropped.request("POST", "/mcp", json.dumps(body), given)
    dropped.close()
    assert "Posted to #gone" in call(bob, "post", room="gone", message="news")
    # Whether the wait that nobody hears was given up by then, or has taken the news with it.
    assert "#gone: 1 new (bob)" in call(cat, "wait", rooms=["gone"], timeoutSeconds=20)
    for token, session in sessions.items():
        request(served, "DELETE", token, None, **{"Mcp-Session-Id": session})


def test_who_has_no_token_or_a_wrong_one_is_told_how_to_get_one(served: HttpServer) -> None:
    token = served.token("ann")
    for given in (None, "x", token[:-1], token + "x", token.swapcase()):
        for method in ("POST", "GET", "DELETE"):
            refused = request(served, method, given)
            assert refused.status == 401
            assert refused.headers["www-authenticate"].startswith('Bearer realm="roundtable"')
            assert "roundtable token ROLE" in refused.text
    assert request(served, Authorization=f"Basic {token}").status == 401
    assert request(served, Authorization=token).status == 401
    assert request(served, Authorization=f"bearer  {token}").status == 200


def test_a_token_opens_no_session_of_another_role(served: HttpServer) -> None:
    opened = request(served, token=served.token("ann"))
    assert opened.status == 200
    session = opened.headers["mcp-session-id"]
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for method in ("POST", "GET", "DELETE"):
        headers = {"Mcp-Session-Id": session}
        assert request(served, method, served.token("bob"), call, **headers).status == 404
    assert request(served, "POST", served.token("ann"), call, **{"Mcp-Session-Id": session}).status == 200
    assert request(served, "DELETE", served.token("ann"), None, **{"Mcp-Session-Id": session}).status == 200
    assert request(served, "POST", served.token("ann"), call, **{"Mcp-Session-Id": session}).status == 404


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example", 421),
        ("Host", "127.0.0.1.evil.example:80", 421),
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://localhost:1", 403),
    ],
)
def test_a_page_of_another_site_is_not_listened_to(
    served: HttpServer, header: str, value: str, status: int
) -> None:
    for token in (None, served.token("ann")):
        assert request(served, token=token, **{header: value}).status == status


def test_nothing_else_is_served_and_only_this_machine_is_answered(served: HttpServer) -> None:
    for path in ("/", "/mcp/", "/.well-known/oauth-protected-resource"):
        assert request(served, "GET", path=path).status == 404
    with socket.socket() as other:
        other.settimeout(SECONDS)
        assert other.connect_ex(("127.0.0.2", served.port)) != 0


def test_no_token_is_told_to_anybody_but_its_owner(served: HttpServer) -> None:
    path = tokens_path(Home(served.home))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    argv = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(served.process.pid)], capture_output=True, text=True
    ).stdout
    assert "--http" in argv
    for role in ("ann", "bob"):
        assert served.token(role) not in argv


@pytest.fixture
def own(environ: dict[str, str]) -> Iterator[HttpServer]:
    """A server that soon tires of a role nobody uses."""
    with http_server(environ, "--as", "ann", "--as", "ghost", "--idle", "1") as server:
        yield server


async def test_the_life_of_a_server(own: HttpServer, environ: dict[str, str]) -> None:
    assert not (own.home / "roundtable" / "broker.sock").exists()
    _a_port_that_is_taken_is_told(own, environ)
    async with http_peer(own.url, own.token("ann")) as ann:
        await ann.says("join", room="a")
        await ann.says("post", room="a", message="hi")
        async with await connect(Home(own.home).socket(), name="look") as look:

            async def members() -> set[str]:
                (info,) = await look.rooms()
                return {member.name for member in info.members}

            # Who vanishes without a word leaves a while later; who is only silent stays.
            async with http_peer(own.url, own.token("ghost"), says_goodbye=False) as ghost:
                await ghost.says("join", room="a")
                assert await members() == {"ann", "ghost"}
            with anyio.fail_after(SECONDS):
                while await members() != {"ann"}:
                    await anyio.sleep(0.02)

        # Sessions that nobody closes do not pile up, and are nobody's matter but their own role's.
        opened = [request(own, token=own.token("ghost")) for _ in range(64)]
        assert [answer.status for answer in opened] == [200] * 63 + [503]
        assert "Too many open sessions" in opened[-1].text
        assert "ann" in await ann.says("rooms")

        # Told to stop it does, although somebody waits.
        async with (
            http_peer(own.url, own.token("ann"), mode=ALONE) as alone,
            anyio.create_task_group() as group,
        ):
            group.start_soon(_wait_for_ever, ann)
            group.start_soon(_wait_for_ever, alone)
            await alone.says("rooms")
            own.process.send_signal(signal.SIGTERM)
            await until(lambda: own.process.poll() is not None, "its end")
            group.cancel_scope.cancel()
    assert own.process.returncode == 0
    assert own.process.stderr is not None
    told = own.process.stderr.read()
    assert str(tokens_path(Home(own.home))) in told
    assert own.token("ann") not in told
    assert "Traceback" not in told


def _a_port_that_is_taken_is_told(own: HttpServer, environ: dict[str, str]) -> None:
    second = subprocess.run(
        [*ROUNDTABLE, "mcp", "--http", "--port", str(own.port), "--as", "ann"],
        capture_output=True,
        text=True,
        env=environ,
        timeout=SECONDS,
    )
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.splitlines() == [
        f"roundtable: cannot listen on 127.0.0.1:{own.port}: Address already in use",
        "hint: choose another with --port, or 0 for any that is free",
    ]


async def _wait_for_ever(peer: Peer) -> None:
    try:
        await peer.call("roundtable_wait", rooms=["a"], timeoutSeconds=300)
    except Exception:  # however a client tells that its server has gone
        return
