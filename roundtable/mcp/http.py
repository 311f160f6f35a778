"""Roles as MCP servers over streamable HTTP: one address for all, and the bearer token says who acts.

A token is a seat. Requests that stand alone and sessions of one token share it, since from 2026-07-28 on the protocol
has no sessions that could have seats of their own; memberships last over requests and over a client that comes
again. A role leaves its rooms when its last session says goodbye, or when nobody has used it for a while.

Each role has a protocol server and a table of sessions to itself, so no mistake about who is asking can give a request
another role. Only this machine can reach the address, and no page of another site (DNS rebinding) is listened to.
"""

from __future__ import annotations

import hmac
import logging
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from ..home import Home
from ..memory.place import Place
from ..seat import Seat
from .server import SeatServer

__all__ = ["PATH", "serve"]

#: Where the protocol is spoken.
PATH = "/mcp"

#: Sessions of one role that may be open at once; a client needs one, and one that starts over and over leaves many.
_MAX_SESSIONS = 64

#: Seconds after which a session without a request or an open stream is closed; its client has to open another.
_SESSION_IDLE_SECONDS = 1800.0

#: One message of 6 MiB may take more as JSON; what is longer is refused unread.
_MAX_BODY_BYTES = 16 * 1024 * 1024

#: Connections at once; the limit on open files is usually 1024.
_MAX_CONNECTIONS = 512

#: How long an idle connection is kept: longer than clients do, so that they do not write to one just closed.
_KEEP_ALIVE_SECONDS = 75

#: Between two looks for roles that nobody uses.
_SWEEP_SECONDS = 1.0


async def serve(
    home: Home,
    tokens: Mapping[str, str],
    place: Place,
    listener: socket.socket,
    *,
    room: str | None,
    idle_seconds: float,
) -> None:
    """Serve the roles of ``tokens`` on ``listener`` until SIGTERM or SIGINT, which end it at once.

    A role sits in ``room`` from its first call on, and leaves all rooms once unused for ``idle_seconds``.
    """
    port = listener.getsockname()[1]
    async with AsyncExitStack() as stack:
        doors = []
        for role, token in tokens.items():
            seat = await stack.enter_async_context(Seat(home, role, memory=place))
            door = _Door(token, SeatServer(home, seat, place, room=room), idle_seconds)
            await stack.enter_async_context(door.sessions.run())
            doors.append(door)
        config = uvicorn.Config(
            _Front(doors, port),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=0,
        )
        server = _Listening(config)
        async with anyio.create_task_group() as group:
            for door in doors:
                group.start_soon(door.server.tell_pings)
            group.start_soon(_sweep, doors)
            group.start_soon(_stop_on_signal, server)
            await server.serve(sockets=[listener])
            group.cancel_scope.cancel()


class _Listening(uvicorn.Server):
    """Leaves signals to us: uvicorn would end the process by them before the seats are given back."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class _Door:
    """One role behind its token: who is inside, and since when nobody is."""

    def __init__(self, token: str, server: SeatServer, idle_seconds: float) -> None:
        self.token = token.encode()
        self.server = server
        self.sessions = StreamableHTTPSessionManager(
            server.protocol,
            session_idle_timeout=_SESSION_IDLE_SECONDS,
            max_request_body_size=_MAX_BODY_BYTES,
            max_sessions=_MAX_SESSIONS,
        )
        self._idle_seconds = idle_seconds
        self._inside = 0
        self._used_at = anyio.current_time()
        self._used_alone_at = float("-inf")  # by a request of no session
        self._is_left = True
        self._is_over = False  # the last session has said goodbye

    async def enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of this role; an open stream of events is one too."""
        headers = Request(scope).headers
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self._is_left = False
        self._is_over = self._is_over and scope["method"] == "DELETE"
        self._inside += 1
        if headers.get("mcp-protocol-version") in MODERN_PROTOCOL_VERSIONS:
            self._used_alone_at = anyio.current_time()
        try:
            await self.sessions.handle_request(scope, receive, watch)
        finally:
            self._inside -= 1
            self._used_at = anyio.current_time()
        if scope["method"] == "DELETE" and status == 200:
            is_last = self.server.forget(headers.get("mcp-session-id", ""))
            self._is_over = is_last and self._used_alone_at + self._idle_seconds < anyio.current_time()
        # The stream of events of a session ends a moment after its goodbye.
        if self._is_over:
            await self._leave()

    async def leave_if_idle(self) -> None:
        """Leave the rooms if nobody has used the role for long enough."""
        if self._used_at + self._idle_seconds < anyio.current_time():
            await self._leave()

    async def _leave(self) -> None:
        if not self._is_left and not self._inside:
            self._is_left = True
            await self.server.leave()


class _Front:
    """The address all roles share: looks where a request comes from and who it is, then lets it in."""

    def __init__(self, doors: Sequence[_Door], port: int) -> None:
        self._doors = doors
        names = [f"127.0.0.1:{port}", f"localhost:{port}"]
        self._origin = TransportSecurityMiddleware(
            TransportSecuritySettings(
                allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
            )
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an ASGI application for HTTP alone."""
        request = Request(scope)
        refusal = await self._origin.validate_request(request)
        if refusal is None and scope["path"] != PATH:
            refusal = Response(f"There is only {PATH} here.\n", status_code=404)
        if refusal is None:
            given = request.headers.get("authorization")
            door = self._door(given)
            if door is not None:
                await door.enter(scope, receive, send)
                return
            refusal = _unauthorized(given)
        await refusal(scope, receive, send)

    def _door(self, given: str | None) -> _Door | None:
        scheme, _, token = (given or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        presented = token.strip().encode("utf-8", "surrogatepass")
        # All are compared, each in constant time: how long it takes tells nothing of a token.
        found = [door for door in self._doors if hmac.compare_digest(door.token, presented)]
        return found[0] if found else None


def _unauthorized(given: str | None) -> Response:
    challenge = 'Bearer realm="roundtable"' + (', error="invalid_token"' if given else "")
    body: dict[str, Any] = {
        "error": "invalid_token" if given else "missing_token",
        "error_description": "send `Authorization: Bearer TOKEN`; `roundtable token ROLE` prints the token",
    }
    return JSONResponse(body, status_code=401, headers={"WWW-Authenticate": challenge})


async def _sweep(doors: Sequence[_Door]) -> None:
    while True:
        await anyio.sleep(_SWEEP_SECONDS)
        for door in doors:
            await door.leave_if_idle()


async def _stop_on_signal(server: uvicorn.Server) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            # What being told to stop cuts off is no error.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            server.should_exit = True
