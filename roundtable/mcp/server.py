"""One seat behind the Model Context Protocol: calls become calls of the seat, pings become log notifications.

Stands over any transport, and serves both ages of the protocol. Until 2025-11-25 a client opens a session, over
which a log notification can come at any time. From 2026-07-28 on each request stands alone: what is pushed rides on
the answer to a request that asked for log messages, so a line that nobody could take is kept for the next of those.

What goes wrong in a call is a result that says so, for the model to read. Nothing here raises over the wire.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import anyio
import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..errors import SocketPathTooLong
from ..home import Home
from ..memory.actions import Memory
from ..memory.place import Place
from ..said import Said
from ..seat import NOTHING_NEW, Seat
from .tools import TOOLS, Tool, offered

__all__ = ["SeatServer"]

#: Name of the logger that a client sees on a ping.
_LOGGER = "roundtable"

#: Between two notices that a wait goes on; clients that count silence against a call do so in tens of seconds.
_PROGRESS_SECONDS = 5.0

#: Between two looks whether the client of a wait is still there.
_GONE_SECONDS = 0.5

#: How long a ping may take to be handed to one client, so that no other waits for it longer.
_TELL_SECONDS = 1.0

#: Sessions that are remembered to be pinged; more are never open at once over HTTP, and one is over stdio.
_MAX_PEERS = 128

#: Levels of log messages at which a client takes pings.
_TAKING = frozenset({"debug", "info"})

_log = logging.getLogger(__name__)

_Context = ServerRequestContext[Any, Any]


@dataclass(slots=True)
class _Peer:
    """A client that opened a session."""

    session: ServerSession
    is_quiet: bool = False  #: it asked for no log message as slight as a ping


class SeatServer:
    """Serves ``seat`` and the memory of ``place`` as its name; sits in ``room`` from the first call on.

    Hand ``protocol`` to a transport and run ``tell_pings`` beside it.
    """

    def __init__(self, home: Home, seat: Seat, place: Place, *, room: str | None = None) -> None:
        self._home = home
        self._seat = seat
        self._memory = Memory(place, seat.name)
        self._room = room
        self._is_seated = room is None
        self._seating = anyio.Lock()
        self._peers: dict[str, _Peer] = {}
        self._streams: list[_Context] = []
        self._held = ""
        self._tools = {tool.name: tool for tool in TOOLS}
        self._offered = [_listed(tool) for tool in offered(is_writer=seat.name == place.writer)]
        self.protocol: Server[Any] = Server(
            "roundtable",
            version=_version(),
            instructions=_instructions(seat.name, room),
            get_tool_input_schema=lambda name: self._tools[name].schema if name in self._tools else None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        # Not among the constructor's, which says at run time that the protocol of 2026 has no such request.
        self.protocol.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.protocol.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._begin
        )

    async def tell_pings(self) -> None:
        """Push each ping to whoever takes it; endless."""
        async for line in self._seat.pings():
            await self._tell(line)

    async def leave(self) -> None:
        """Leave all rooms; the next call comes back, and to the room of this server by itself."""
        self._is_seated = self._room is None
        await self._seat.aclose()

    def forget(self, session_id: str) -> bool:
        """That session has ended; whether it was the last one known."""
        self._peers.pop(session_id, None)
        return not self._peers

    async def _list_tools(
        self, context: _Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self._meet(context)
        return types.ListToolsResult(tools=self._offered)

    async def _call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self._meet(context)
        is_stream = context.protocol_version in MODERN_PROTOCOL_VERSIONS and "info" in allowed_log_levels(
            context.protocol_version, context.meta
        )
        if is_stream:
            self._streams.append(context)
            if self._held:
                await self._tell(self._held)
        try:
            said = await self._answer(context, params.name, params.arguments or {})
        except Exception as problem:  # a fault of ours; the model is told, its trace is not for it
            _log.exception("%s", params.name)
            said = Said(f"{params.name} failed: internal error ({type(problem).__name__})", is_error=True)
        finally:
            if is_stream:
                self._streams.remove(context)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=said.text)], is_error=said.is_error
        )

    async def _answer(self, context: _Context, name: str, arguments: dict[str, Any]) -> Said:
        tool = self._tools.get(name)
        if tool is None:
            names = ", ".join(tool.name for tool in self._offered)
            return Said(f"Unknown tool. There are {names}.", is_error=True)
        if tool.of == "memory":
            return await self._memory.call(tool.action, arguments)
        return await self._sit() or self._located(await self._act(context, tool, arguments))

    async def _act(self, context: _Context, tool: Tool, arguments: dict[str, Any]) -> Said:
        if tool.action != "wait":
            return await self._seat.call(tool.action, arguments)
        said: Said | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(_report_waiting, context)
            group.start_soon(_end_when_gone, context, group.cancel_scope)
            said = await self._seat.call(tool.action, arguments)
            group.cancel_scope.cancel()
        if said is None:
            return Said(NOTHING_NEW)  # to nobody
        if await _is_gone(context):
            self._seat.say_again(said)
        return said

    async def _sit(self) -> Said | None:
        """Join the room of this server if that is still to be done; what went wrong, or ``None``."""
        async with self._seating:
            if self._is_seated or self._room is None:
                return None
            said = await self._seat.join(self._room)
            self._is_seated = not said.is_error
            return self._located(said) if said.is_error else None

    def _located(self, said: Said) -> Said:
        """``said`` with the socket's path, where it tells that no broker was reached and does not name it."""
        if not said.is_error or not said.text.startswith("Roundtable not connected"):
            return said
        try:
            path = self._home.default_socket()
        except SocketPathTooLong as problem:
            path = problem.socket
        return said if str(path) in said.text else Said(f"{said.text} (socket: {path})", is_error=True)

    async def _begin(self, context: _Context, _: types.NotificationParams | None) -> None:
        self._meet(context)

    async def _set_level(self, context: _Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        peer = self._meet(context)
        if peer is not None:
            peer.is_quiet = params.level not in _TAKING
        return types.EmptyResult()

    def _meet(self, context: _Context) -> _Peer | None:
        """The session this request came in, remembered to be pinged; ``None`` if requests stand alone."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None
        key = context.request.headers.get("mcp-session-id", "") if context.request is not None else ""
        known = self._peers.pop(key, None)
        peer = self._peers[key] = known or _Peer(context.session)
        if len(self._peers) > _MAX_PEERS:
            # Sessions that ended without a word; one that is still open comes back with its next request.
            del self._peers[next(iter(self._peers))]
        return peer

    async def _tell(self, line: str) -> None:
        taking = [peer.session for peer in self._peers.values() if not peer.is_quiet]
        ping = types.LoggingMessageNotification(
            params=types.LoggingMessageNotificationParams(level="info", logger=_LOGGER, data=line)
        )
        for session in taking:
            with anyio.move_on_after(_TELL_SECONDS):
                await session.send_notification(ping)
        if self._streams:
            stream = self._streams[-1]
            with anyio.move_on_after(_TELL_SECONDS):
                await stream.session.send_notification(ping, related_request_id=stream.request_id)
        self._held = "" if taking or self._streams else line


async def _report_waiting(context: _Context) -> None:
    """Tell a client that asked for progress that the call goes on, until cancelled."""
    start = anyio.current_time()
    while True:
        await anyio.sleep(_PROGRESS_SECONDS)
        await context.session.report_progress(round(anyio.current_time() - start, 1), message="waiting")


async def _end_when_gone(context: _Context, scope: anyio.CancelScope) -> None:
    """Give a wait up whose client has: what it would have said is for the next."""
    while not await _is_gone(context):  # noqa: ASYNC110 - nothing tells of it but asking
        await anyio.sleep(_GONE_SECONDS)
    scope.cancel()


async def _is_gone(context: _Context) -> bool:
    """Whether the HTTP request of a call was dropped; never over stdio."""
    return context.request is not None and await context.request.is_disconnected()


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only, destructive_hint=False, open_world_hint=False
        ),
    )


def _instructions(name: str, room: str | None) -> str:
    seated = f" You sit in #{room} from your first call on." if room else ""
    return (
        f"You are {name} in the rooms of this team.{seated} Post conclusions, not transcripts. "
        "Digest a room before you decide or answer. Call roundtable_wait instead of polling."
    )


def _version() -> str:
    try:
        return version("fleet-roundtable")
    except PackageNotFoundError:  # run from a folder that was not installed
        return ""
