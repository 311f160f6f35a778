"""One client's connection: what it has sent so far, who it is, and what it has not read.

Nothing here waits for a reader. What a connection has not read is kept up to a bound: activity as one entry per room,
replies up to 16 MiB, then that connection is told and dropped, and no other. Activity is kept once for all who have not
read it.

One read buffer serves all connections (a large one per read costs page faults), and a connection is written once per
turn, to its socket directly. Not here: what a request does (``broker``), when something can be read (``turns``).
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Sequence
from typing import Protocol

from . import wire
from .activity import Heard
from .errors import Refused, WireProblem
from .limits import Limits
from .message import Activity, Author
from .room import Room
from .turns import EVENT_READ, EVENT_WRITE, Turns

__all__ = ["READ_BYTES", "Connection", "Desk", "error_body"]

#: Read buffer, one for all connections. Above 128 KiB the allocator would map and unmap pages for each read.
READ_BYTES = 64 * 1024

_HEADER = struct.Struct(">I")

#: Asked of the kernel for each connection, so that a fetch of a full room is mostly one write.
_SEND_BUFFER_BYTES = 1024 * 1024

#: Up to here pieces are joined before they are written. Copying more costs more than the system call for pieces.
_JOIN_BYTES = 64 * 1024

#: Pieces of one write; systems take 1024 at most.
_MAX_PIECES = 1000

_log = logging.getLogger("roundtable.broker")


class Desk(Protocol):
    """What a connection asks of the broker it belongs to."""

    @property
    def buffer(self) -> memoryview:
        """Where reads go."""

    @property
    def limits(self) -> Limits:
        """What this broker bears."""

    @property
    def turns(self) -> Turns:
        """Where sockets are watched."""

    def answer(self, connection: Connection, body: memoryview) -> None:
        """Do what one frame asks and queue the reply.

        Raises:
            MalformedFrame: the frame is no JSON object; the connection is finished.
        """

    def settle(self) -> None:
        """Queue the replies to what was done so far."""

    def write_later(self, connection: Connection) -> None:
        """Write what ``connection`` has queued at the end of this turn."""

    def finishing(self, connection: Connection) -> None:
        """``connection`` is to be closed and still has something to read: give it a moment."""

    def disconnected(self, connection: Connection) -> None:
        """Forget ``connection`` at the end of this turn."""


class Connection:
    """One client: what it has sent so far, who it is, and what it has not read."""

    __slots__ = (
        "_desk",
        "_end",
        "_frames",
        "_is_finished",
        "_is_gone",
        "_is_waiting_to_write",
        "_max_unread_bytes",
        "_merged",
        "_queue",
        "_queued_bytes",
        "_unsent",
        "_unsent_bytes",
        "author",
        "reserved_rooms",
        "rooms",
        "secret",
    )

    def __init__(self, desk: Desk, end: socket.socket) -> None:
        self.author: Author | None = None
        self.secret: str | None = None
        self.rooms: dict[str, Room] = {}
        self.reserved_rooms: set[str] = set()
        self._desk = desk
        self._end = end
        self._frames = wire.FrameDecoder()
        self._queue: list[bytes] = []  # whole frames, in pieces
        self._queued_bytes = 0
        self._unsent: list[
            bytes | memoryview
        ] = []  # what the kernel did not take; it ends with a whole frame
        self._unsent_bytes = 0
        self._merged: dict[str, Activity] = {}  # by room, while the socket is full
        self._max_unread_bytes = desk.limits.unread_reply_bytes
        self._is_waiting_to_write = False
        self._is_finished = False
        self._is_gone = False
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)

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

    @property
    def is_of_this_user(self) -> bool:
        """Whether the other end is this user's, where the system tells (Linux)."""
        if not hasattr(socket, "SO_PEERCRED"):
            return True
        layout = struct.Struct("iII")
        _, uid, _ = layout.unpack(self._end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size))
        return bool(uid == os.geteuid())

    def watch(self) -> None:
        """Take requests from now on."""
        self._desk.turns.watch(self._end, self._ready)

    def send(self, body: bytes, *more: bytes) -> None:
        """Queue one frame whose body is the parts put together."""
        if self._is_finished:
            return
        queue, size = self._queue, len(body)
        if more:
            size += sum(map(len, more))
        queue.append(_HEADER.pack(size))
        queue.append(body)
        queue.extend(more)
        self._queued_bytes += size + wire.HEADER_BYTES
        if self._queued_bytes + self._unsent_bytes > self._max_unread_bytes:
            self._drop_slow_reader()
        elif not self._is_waiting_to_write:
            self._write_soon()

    def tell(self, activity: Heard) -> None:
        """Queue activity of a room; while the socket is full, only the newest of each room is kept."""
        if self._is_finished:
            return
        if self._unsent:
            # Without the frames, which would be kept for as long as this one does not read.
            newest = activity.newest
            kept = self._merged.get(newest.room)
            if kept is None or newest.seq >= kept.seq:
                self._merged[newest.room] = newest
            return
        self._queue.append(activity.frames)
        self._queued_bytes += len(activity.frames)
        if not self._is_waiting_to_write:
            self._write_soon()

    def write(self) -> None:
        """Write what is queued, unless the socket is full."""
        self._is_waiting_to_write = False
        if self._unsent or not self._queue:
            return
        pieces, size = self._queue, self._queued_bytes
        self._queue, self._queued_bytes = [], 0
        if size <= _JOIN_BYTES:
            pieces = [b"".join(pieces)] if len(pieces) > 1 else pieces
        self._send_pieces(pieces, size)

    def finish(self) -> None:
        """Close after what is queued has been written, or after a moment if it is not read."""
        if self._is_finished:
            return
        self._is_finished = True
        self.write()
        if self._is_gone:
            return
        if self._unsent:
            self._desk.turns.change(self._end, EVENT_WRITE)
            self._desk.finishing(self)
        else:
            self.close()

    def close(self) -> None:
        """Close at once. Can be called again."""
        if self._is_gone:
            return
        self._is_finished = self._is_gone = True
        self._desk.turns.forget(self._end)
        self._end.close()
        self._queue, self._queued_bytes = [], 0
        self._unsent, self._unsent_bytes = [], 0
        self._merged.clear()
        self._desk.disconnected(self)

    def _ready(self, events: int) -> None:
        try:
            if events & EVENT_WRITE and not self._is_gone:
                self._go_on_writing()
            if events & EVENT_READ and not self._is_finished:
                self._read()
        except WireProblem as problem:
            _log.warning("closed a connection: %s", problem)
            self._desk.settle()
            self.finish()
        except Exception:  # one request must not end the service of the others
            _log.exception("Failed to handle roundtable message; closed its connection")
            self._desk.settle()
            self.finish()

    def _read(self) -> None:
        buffer = self._desk.buffer
        try:
            size = self._end.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        if not size:
            self.finish()
            return
        answer = self._desk.answer
        for body in self._frames.feed(buffer[:size]):
            answer(self, body)
            if self._is_finished:
                return

    def _go_on_writing(self) -> None:
        pieces, size = self._unsent, self._unsent_bytes
        self._unsent, self._unsent_bytes = [], 0
        self._send_pieces(pieces, size)
        if self._unsent or self._is_gone:
            return
        for newest in self._merged.values():
            (frame,) = wire.activity_frames(newest.room, newest.author, [newest.seq])
            self._queue.append(frame)
            self._queued_bytes += len(frame)
        self._merged.clear()
        self.write()
        if self._is_finished and not self._unsent:
            self.close()
        elif not self._unsent:
            self._desk.turns.change(self._end, EVENT_READ)

    def _send_pieces(self, pieces: Sequence[bytes | memoryview], size: int) -> None:
        """Give the kernel what it takes; the rest is unsent, and the socket is watched."""
        end, sent = self._end, 0
        try:
            sent = end.send(pieces[0]) if len(pieces) == 1 else end.sendmsg(pieces[:_MAX_PIECES])
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if sent == size:
            return
        self._unsent, self._unsent_bytes = _rest(pieces, sent), size - sent
        if not self._is_finished:
            self._desk.turns.change(self._end, EVENT_READ | EVENT_WRITE)

    def _write_soon(self) -> None:
        self._is_waiting_to_write = True
        self._desk.write_later(self)

    def _drop_slow_reader(self) -> None:
        unread = self._queued_bytes + self._unsent_bytes
        _log.warning("dropped a connection that does not read: %d bytes", unread)
        # What is unsent ends with a whole frame, so the error can follow it.
        body = error_body(Refused("slow-reader", "over 16 MiB of replies were not read"), None)
        self._queue = [wire.frame(body)]
        self._queued_bytes = len(self._queue[0])
        self._merged.clear()
        self.finish()


def error_body(problem: Refused, request_id: str | None) -> bytes:
    """A refusal as the body of a frame."""
    return wire.encode(wire.ErrorReply(request_id=request_id, code=problem.code, error=problem.message))


def _rest(pieces: Sequence[bytes | memoryview], sent: int) -> list[bytes | memoryview]:
    """What is left of ``pieces`` after ``sent`` bytes of them; nothing is copied."""
    for number, piece in enumerate(pieces):
        if sent < len(piece):
            return [memoryview(piece)[sent:], *pieces[number + 1 :]]
        sent -= len(piece)
    return []
