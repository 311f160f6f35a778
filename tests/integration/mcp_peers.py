"""Peers that reach the rooms by the official MCP client, over standard input and output or over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client._transport import Transport
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, LoggingMessageNotificationParams, TextContent

from roundtable.home import Home
from roundtable.tokens import tokens

ROUNDTABLE = (sys.executable, "-m", "roundtable")

#: How long anything here is waited for; a server that starts on a busy machine takes most of it.
SECONDS = 45.0

#: The two ages of the protocol: requests that stand alone (asked for first), and sessions opened by a handshake.
ALONE, SESSION = "auto", "legacy"

#: From which on requests stand alone.
SINCE = "2026-07-28"


@dataclass
class Peer:
    """One connected client and the pings it was told."""

    client: Client
    pings: list[str] = field(default_factory=list)

    async def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    async def says(self, tool: str, /, **arguments: Any) -> str:
        """The text of a call that went well; rooms' tools go without their prefix."""
        result = await self.call(_full(tool), **arguments)
        assert not result.is_error, text_of(result)
        return text_of(result)

    async def refuses(self, tool: str, /, **arguments: Any) -> str:
        """The text of a call that did not."""
        result = await self.call(_full(tool), **arguments)
        assert result.is_error, text_of(result)
        return text_of(result)

    async def pinged(self, word: str) -> str:
        """The first ping with ``word`` in it."""
        await until(lambda: any(word in line for line in self.pings), f"a ping about {word}")
        return next(line for line in self.pings if word in line)


def text_of(result: CallToolResult) -> str:
    """The one text block a call answers with, and nothing besides."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert result.structured_content is None
    return block.text


@asynccontextmanager
async def stdio_peer(
    home: Path, *words: str, mode: str = SESSION, level: str | None = "info"
) -> AsyncIterator[Peer]:
    """A client with a server of its own: ``roundtable mcp`` with ``words``."""
    parameters = StdioServerParameters(
        command=ROUNDTABLE[0], args=[*ROUNDTABLE[1:], "mcp", *words], env={"FLEET_HOME": str(home)}
    )
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230 - the null device keeps nobody waiting
        async with _peer(stdio_client(parameters, errlog=nowhere), mode, level) as peer:
            yield peer


@asynccontextmanager
async def http_peer(
    url: str, token: str, *, mode: str = SESSION, level: str | None = "info", says_goodbye: bool = True
) -> AsyncIterator[Peer]:
    """A client of a server that runs."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS) as http,
        _peer(
            streamable_http_client(url, http_client=http, terminate_on_close=says_goodbye), mode, level
        ) as peer,
    ):
        yield peer


@asynccontextmanager
async def _peer(transport: Transport, mode: str, level: str | None) -> AsyncIterator[Peer]:
    pings: list[str] = []

    async def take(told: LoggingMessageNotificationParams) -> None:
        assert (told.level, told.logger) == ("info", "roundtable")
        pings.append(told.data)

    client = Client(
        transport,
        mode=mode,
        logging_callback=take,
        log_level=level,  # type: ignore[arg-type] # a level by name
        read_timeout_seconds=SECONDS,
    )
    async with client:
        yield Peer(client, pings)


@dataclass(frozen=True)
class HttpServer:
    """``roundtable mcp --http`` in a process of its own."""

    home: Path
    url: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/mcp").rpartition(":")[2])

    def token(self, role: str) -> str:
        return tokens(Home(self.home), [role])[role]


@contextmanager
def http_server(environ: dict[str, str], *words: str) -> Iterator[HttpServer]:
    """Serve until the block ends; what it writes to stderr after its first line stays to be read."""
    process = subprocess.Popen(
        [*ROUNDTABLE, "mcp", "--http", "--port", "0", *words],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        url = process.stderr.readline().split()[-1]
        assert url.startswith("http://127.0.0.1:"), url
        yield HttpServer(Path(environ["FLEET_HOME"]), url, process)
    finally:
        try:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
        finally:
            process.kill()
            process.stderr.close()


async def until(is_so: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Wait for a condition, bounded, and let others run."""
    end = anyio.current_time() + seconds
    while not is_so():
        assert anyio.current_time() < end, f"waited {seconds} s for {what}"
        await anyio.sleep(0.02)


def _full(tool: str) -> str:
    return tool if tool.startswith("memory_") else f"roundtable_{tool}"
