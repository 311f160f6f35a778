"""A seat as an MCP server on standard input and output, for as long as its client keeps them open.

Standard output carries frames of the protocol and nothing else: while it serves, whatever else is written to
descriptor 1 goes to standard error.
"""

from __future__ import annotations

import os
import signal

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from ..home import Home
from ..memory.place import Place
from ..seat import Seat
from .server import SeatServer
from .unreadable import pass_readable

__all__ = ["serve"]

#: Exit code of a program whose reader has gone, as a shell gives it.
_READER_GONE = 128 + signal.SIGPIPE


async def serve(home: Home, role: str, place: Place, *, room: str | None = None) -> None:
    """Serve ``role`` until standard input ends; sit in ``room`` from the first call of a room tool on.

    Ends the process if standard output takes no more. Signals keep what they do by default: they end it at once, and
    the kernel closes the connection to the broker, which is all there is to give back.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with Seat(home, role, memory=place) as seat, anyio.create_task_group() as group:
        server = SeatServer(home, seat, place, room=room)
        group.start_soon(server.tell_pings)
        protocol = server.protocol
        send, readable = anyio.create_memory_object_stream[SessionMessage | Exception]()
        async with stdio_server() as (frames_in, frames_out), readable:
            group.start_soon(pass_readable, frames_in, send, frames_out.send)
            try:
                await protocol.run(readable, frames_out, protocol.create_initialization_options())
            except anyio.get_cancelled_exc_class():
                # Writing has failed. Reading holds a thread that nothing can wake but the end of the input.
                os._exit(_READER_GONE)
        group.cancel_scope.cancel()
