"""One client's connection: what it has sent so far, who it is, and what it has not read.

Nothing here waits for a reader. What a connection has not read is kept up to a bound: activity as one entry per room,
replies up to 16 MiB, then that connection is told and dropped, and no other.

One read buffer serves all connections (a large one per read costs page faults), and a connection is written once per
turn of the loop. Not here: what a request does (``broker``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

from . import wire
from .errors import Refused, WireProblem
from .limits import Limits
from .message import Author
from .room import Room

__all__ = ["READ_BYTES", "Connection", "Desk", "Told", "error_body", "newest"]

#: Read buffer, one for all connections. Above 128 KiB the allocator would map and unmap pages for each read.
READ_BYTES = 64 * 1024

_HEADER = struct.Struct(">I")

#: Asked of the kernel for each connection, so that a fetch of a full room is mostly one write.
_SEND_BUFFER_BYTES = 1024 * 1024

#: Pieces up to this size are joined into one write; larger ones are written as they are.
_JOIN_BYTES = 64 * 1024

#: A connection that is being closed may take this long to read what it was told.
_CLOSING_SECONDS = 2.0

_log = logging.getLogger("roundtable.broker")


class Desk(Protocol):
    """What a connection asks of the broker it belongs to."""

    @property
    def buffer(self) -> memoryview:
        """Where reads go."""

    @property
    def limits(self) -> Limits:
        """What this broker bears."""

    def connected(self, connection: Connection) -> bool:
        """Take a new connection; ``False`` if there are too many."""

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection with its memberships and reservations."""

    def answer(self, connection: Connection, body: memoryview) -> None:
        """Do what one frame asks and queue the reply.

        Raises:
            MalformedFrame: the frame is no JSON object; the connection is finished.
        """

    def settle(self) -> None:
        """Queue the replies to what was done so far."""

    def write_later(self, connection: Connection) -> None:
        """Write what ``connection`` has queued at the end of this turn of the loop."""


class Told(NamedTuple):
    """One activity on its way to everybody in a room but one."""

    but: str  #: the session that caused it
    seq: int
    body: bytes  #: a whole frame


class Connection(asyncio.BufferedProtocol):
    """One client: what it has sent so far, who it is, and what it has not read."""

    def __init__(self, broker: Desk) -> None:
        self.author: Author | None = None
        self.secret: str | None = None
        self.rooms: dict[str, Room] = {}
        self.reserved_rooms: set[str] = set()
        self._broker = broker
        self._frames = wire.FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._register_timer: asyncio.TimerHandle | None = None
        self._closing_timer: asyncio.TimerHandle | None = None
        self._queue: list[bytes] = []  # whole frames, in pieces
        self._queued_bytes = 0
        self._pending_activity: dict[str, Told] = {}
        self._is_waiting_to_write = False
        self._is_paused = False
        self._is_finished = False

    @property
    def registered_author(self) -> Author:
        """Who this is; only asked once it has registered."""
        if self.author is None:
            raise Refused("not-registered", "Register before sending requests")
        return self.author

    @property
    def name(self) -> str:
        """The registered name."""
        return self.registered_author.name

    def registered(self, author: Author, secret: str | None) -> None:
        """From now on this connection is ``author``."""
        self.author, self.secret = author, secret
        if self._register_timer is not None:
            self._register_timer.cancel()
            self._register_timer = None

    # Called by the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        is_welcome = self._broker.connected(self)
        end: socket.socket = transport.get_extra_info("socket")
        if not _is_same_user(end):
            _log.warning("closed a connection of another user")
            self._is_finished = True
            self._transport.abort()
            return
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        if not is_welcome:
            self.send(error_body(Refused("connection-limit", "too many connections to this broker"), None))
            self.finish()
            return
        loop = asyncio.get_running_loop()
        self._register_timer = loop.call_later(self._broker.limits.register_seconds, self._not_registered)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_finished = True
        for timer in (self._register_timer, self._closing_timer):
            if timer is not None:
                timer.cancel()
        self._drop_unwritten()
        self._broker.disconnected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._broker.buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for body in self._frames.feed(self._broker.buffer[:nbytes]):
                if self._is_finished:
                    return
                self._broker.answer(self, body)
        except WireProblem as problem:
            _log.warning("closed a connection: %s", problem)
            self._broker.settle()
            self.finish()
        except Exception:  # one request must not end the service of the others
            _log.exception("Failed to handle roundtable message; closed its connection")
            self._broker.settle()
            self.finish()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        pending, self._pending_activity = self._pending_activity, {}
        for told in pending.values():
            self._enqueue(told.body)
        if self._queue:
            self._write_soon()

    # Called by the broker.

    def send(self, *parts: bytes) -> None:
        """Queue one frame whose body is ``parts`` put together."""
        if self._is_finished:
            return
        size = sum(map(len, parts))
        self._enqueue(_HEADER.pack(size), *parts)
        if self._unread_bytes() > self._broker.limits.unread_reply_bytes:
            self._drop_slow_reader()

    def tell(self, room: str, newest: Told, frames: bytes) -> None:
        """Queue activity of a room; while nothing is read, only the newest of each room is kept."""
        if self._is_paused:
            pending = self._pending_activity.get(room)
            if pending is None or newest.seq >= pending.seq:
                self._pending_activity[room] = newest
        elif not self._is_finished:
            self._queue.append(frames)
            self._queued_bytes += len(frames)
            if not self._is_waiting_to_write:
                self._write_soon()

    def write(self) -> None:
        """Hand what is queued to the transport, unless it still has what the client did not read."""
        self._is_waiting_to_write = False
        transport = self._transport
        if transport is None or not self._queue or (self._is_paused and not self._is_finished):
            return
        pieces, self._queue, self._queued_bytes = self._queue, [], 0
        if len(pieces) == 1:
            transport.write(pieces[0])
            return
        small: list[bytes] = []
        for piece in pieces:
            if len(piece) < _JOIN_BYTES:
                small.append(piece)
                continue
            if small:
                transport.write(b"".join(small))
                small = []
            transport.write(piece)
        if small:
            transport.write(b"".join(small))

    def finish(self) -> None:
        """Close after what is queued has been written, or after a moment if it is not read."""
        if self._is_finished or self._transport is None:
            return
        self._is_finished = True
        self.write()
        self._transport.close()
        self._closing_timer = asyncio.get_running_loop().call_later(_CLOSING_SECONDS, self._transport.abort)

    def _enqueue(self, *pieces: bytes) -> None:
        self._queue.extend(pieces)
        self._queued_bytes += sum(map(len, pieces))
        if not self._is_paused:
            self._write_soon()

    def _write_soon(self) -> None:
        if not self._is_waiting_to_write:
            self._is_waiting_to_write = True
            self._broker.write_later(self)

    def _unread_bytes(self) -> int:
        held = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return self._queued_bytes + held

    def _drop_unwritten(self) -> None:
        self._queue, self._queued_bytes = [], 0
        self._pending_activity.clear()

    def _drop_slow_reader(self) -> None:
        _log.warning("dropped a connection that does not read: %d bytes", self._unread_bytes())
        # What the transport holds ends with a whole frame, so the error can follow it.
        self._drop_unwritten()
        body = error_body(Refused("slow-reader", "over 16 MiB of replies were not read"), None)
        self._enqueue(_HEADER.pack(len(body)), body)
        self.finish()

    def _not_registered(self) -> None:
        _log.info("closed a connection that did not register")
        self.finish()


def newest(told: Sequence[Told]) -> Told:
    """The one to keep when only one can be kept; the last of several that are no posts."""
    return max(reversed(told), key=lambda one: one.seq)


def error_body(problem: Refused, request_id: str | None) -> bytes:
    """A refusal as the body of a frame."""
    return wire.encode(wire.ErrorReply(request_id=request_id, code=problem.code, error=problem.message))


def _is_same_user(end: socket.socket) -> bool:
    """Whether the other end is this user's, where the system tells (Linux)."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    layout = struct.Struct("iII")
    _, uid, _ = layout.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size))
    return bool(uid == os.geteuid())
