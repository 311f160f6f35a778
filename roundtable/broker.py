"""Connections around a store: one process serves all rooms of one user.

Nothing here waits for a reader. What a connection has not read is kept up to a bound: activity as one entry
per room, replies up to 16 MiB, then that connection is told and dropped, and no other.

Speed comes from four things: one shared read buffer (a large one per read costs page faults), one write per
connection and turn of the loop, all activity of a room in that turn put together once for all who get it, and
messages kept encoded.

Runs on asyncio protocols, the only place that does. Not here: what a room does (``room``), how bytes become
messages (``wire``), who may serve a socket (``spawn``).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hmac
import itertools
import logging
import os
import resource
import secrets
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from . import wire
from .errors import BrokerUnavailable, Refused, WireProblem
from .home import Home
from .message import Activity, Author, is_member_name, is_room_name, is_topic
from .room import Room
from .spawn import READY, Claim, claim
from .store import MAX_ROOMS, MemoryStore, RoomStore

__all__ = ["Broker", "Limits", "main"]

_HEADER = struct.Struct(">I")

_log = logging.getLogger("roundtable.broker")

#: Read buffer, one for all connections. Above 128 KiB the allocator would map and unmap pages for each read.
_READ_BYTES = 64 * 1024

#: Asked of the kernel for each connection, so that a fetch of a full room is mostly one write.
_SEND_BUFFER_BYTES = 1024 * 1024

#: Pieces up to this size are joined into one write; larger ones are written as they are.
_JOIN_BYTES = 64 * 1024

#: A connection that is being closed may take this long to read what it was told.
_CLOSING_SECONDS = 2.0

#: Before anyone has connected a broker waits at least this long, whatever its grace.
_FIRST_SECONDS = 5.0

#: Signals that end a broker that owns its process.
_STOP = (signal.SIGTERM, signal.SIGINT)

#: File descriptors that are not connections.
_SPARE_DESCRIPTORS = 64

#: A request larger than this leaves its reply no room for the frame around the same text.
_MAX_REQUEST_BYTES = wire.MAX_FRAME_BYTES - 2048


@dataclass(frozen=True, slots=True)
class Limits:
    """What one broker bears."""

    connections: int = 4096
    reserved_rooms: int = MAX_ROOMS
    register_seconds: float = 10.0  #: a connection that has not said who it is by then is closed
    unread_reply_bytes: int = 16 * 1024 * 1024  #: per connection


class Broker:
    """Rooms for whoever connects to one listening socket.

    An embedded broker never ends its host: it only stops serving. ``grace_seconds`` is how long it serves
    without a connection; ``None`` is for ever.
    """

    def __init__(
        self,
        *,
        store: RoomStore | None = None,
        limits: Limits | None = None,
        grace_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.id = secrets.token_hex(8)
        self._store: RoomStore = store or MemoryStore(wire.encode_message)
        self._limits = limits or Limits()
        self._grace_seconds = grace_seconds
        self._clock = clock
        self._connections: set[_Connection] = set()
        self._by_session: dict[str, _Connection] = {}
        self._reservations: dict[str, dict[str, _Reservation]] = {}
        self._message_ids = itertools.count(1)
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._untold: dict[Room, list[_Told]] = {}
        self._unwritten: list[_Connection] = []
        self._is_write_due = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None
        self._done = asyncio.Event()
        self._gone = asyncio.Event()
        self._answers: dict[type, Callable[[_Connection, Any], None]] = {
            wire.RegisterRequest: self._register,
            wire.RoomsRequest: self._rooms,
            wire.JoinRequest: self._join,
            wire.LeaveRequest: self._leave,
            wire.PostRequest: self._post,
            wire.FetchRequest: self._fetch,
            wire.SetCursorRequest: self._set_cursor,
            wire.DigestRequest: self._digest,
            wire.ReserveRequest: self._reserve,
        }

    async def start(self, listener: socket.socket) -> None:
        """Serve ``listener``, which stays the caller's to remove from the file system."""
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        self._server = await loop.create_unix_server(lambda: _Connection(self), sock=listener)
        self._arm(_FIRST_SECONDS)

    async def wait_closed(self) -> None:
        """Return when the broker has stopped: asked to, or idle for its grace."""
        await self._done.wait()

    async def wait_disconnected(self) -> None:
        """Return when the last connection has read what it was told, within a moment."""
        await self._gone.wait()

    def close(self) -> None:
        """Stop serving and drop every connection. Can be called again."""
        if self._done.is_set():
            return
        self._done.set()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.finish()
        self._store.close()
        if not self._connections:
            self._gone.set()

    def _arm(self, at_least_seconds: float = 0.0) -> None:
        """Stop after the grace unless somebody connects."""
        if self._grace_seconds is None or self._done.is_set():
            return
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        seconds = max(self._grace_seconds, at_least_seconds)
        self._idle_timer = asyncio.get_running_loop().call_later(seconds, self._close_idle)

    def _close_idle(self) -> None:
        if not self._connections:
            _log.info("nobody has been connected for the grace time; stopping")
            self.close()

    # What a connection calls.

    def connected(self, connection: _Connection) -> bool:
        """Take a new connection; ``False`` if there are too many."""
        self._connections.add(connection)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        return len(self._connections) <= self._limits.connections

    def disconnected(self, connection: _Connection) -> None:
        """Forget a connection with its memberships and reservations."""
        self._connections.discard(connection)
        author = connection.author
        if author is not None:
            for room in connection.rooms.values():
                self._depart(room, author.session_id)
            connection.rooms.clear()
            del self._by_session[author.session_id]
            for name in connection.reserved_rooms:
                self._end_reservations(name, author.session_id)
        if not self._connections:
            self._arm()
            if self._done.is_set():
                self._gone.set()

    def answer(self, connection: _Connection, body: memoryview) -> None:
        """Do what one frame asks and queue the reply.

        Raises:
            MalformedFrame: the frame is no JSON object; the connection is finished.
        """
        request_id: str | None = None
        try:
            request = wire.decode_request(body)
            request_id = request.request_id
            _check_allowed(connection, request, len(body))
            self._answers[type(request)](connection, request)
        except wire.RefusedRequest as problem:
            connection.send(_error(problem, problem.request_id))
        except Refused as problem:
            connection.send(_error(problem, request_id))

    @property
    def buffer(self) -> memoryview:
        """Where reads go. One for all: what was read is taken out before the next read."""
        return self._buffer

    @property
    def limits(self) -> Limits:
        """What this broker bears."""
        return self._limits

    def write_later(self, connection: _Connection) -> None:
        """Write what ``connection`` has queued at the end of this turn of the loop."""
        self._unwritten.append(connection)
        self._write_soon()

    def _write_soon(self) -> None:
        if not self._is_write_due:
            self._is_write_due = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        self._is_write_due = False
        for room in list(self._untold):
            self._deliver(room)
        waiting, self._unwritten = self._unwritten, []
        for connection in waiting:
            connection.write()

    # Requests, one method each. The reply is queued before others are told, so the asker is served first.

    def _register(self, connection: _Connection, request: wire.RegisterRequest) -> None:
        if connection.author is not None:
            raise Refused("already-registered", "This connection is already registered")
        if not is_member_name(request.name):
            raise Refused(
                "bad-request",
                "a member's name is 1 to 64 of A-Z a-z 0-9 . _ - and begins with a letter or digit",
            )
        if request.protocol not in (None, wire.PROTOCOL):
            raise Refused("bad-request", f"this broker speaks protocol {wire.PROTOCOL}")
        author = Author(secrets.token_hex(8), request.name)
        connection.registered(author, request.secret)
        self._by_session[author.session_id] = connection
        connection.send(
            wire.encode(
                wire.RegisteredReply(
                    request_id=request.request_id,
                    session_id=author.session_id,
                    broker=self.id,
                    protocol=wire.PROTOCOL,
                )
            )
        )

    def _rooms(self, connection: _Connection, request: wire.RoomsRequest) -> None:
        name = connection.name
        body = wire.encode_rooms(request.request_id, [room.info(name) for room in self._store.rooms()])
        if len(body) > wire.MAX_FRAME_BYTES:
            raise Refused("too-large", "the list of rooms and members does not fit one frame")
        connection.send(body)

    def _join(self, connection: _Connection, request: wire.JoinRequest) -> None:
        author = connection.registered_author
        topic = request.topic or None
        if topic is not None and not is_topic(topic):
            raise Refused("bad-request", "a topic is one line of at most 200 characters without controls")
        _check_room_name(request.room)
        self._check_reserved(connection, request.room)
        room = self._store.find(request.room)
        if room is None:
            if request.epoch is not None:
                raise _stale(request.room)
            room = self._store.create(request.room, epoch=secrets.token_hex(8))
        else:
            _check_epoch(room, request.epoch)
        # Who comes now is not told of what was before.
        self._deliver(room)
        had_topic = room.topic is not None
        activity = room.join(author, joined_at=self._now(), topic=topic, is_quiet=bool(request.quiet))
        if room.topic is not None and not had_topic:
            self._store.topic_set(room)
        connection.rooms[room.name] = room
        connection.send(
            wire.encode_joined(
                request.request_id,
                room.info(author.name),
                cursor=room.cursor(author.name),
                shared_with=room.shared_with(author),
            )
        )
        if activity is not None:
            self._tell(room, activity, but=author.session_id)

    def _leave(self, connection: _Connection, request: wire.LeaveRequest) -> None:
        _check_room_name(request.room)
        room = connection.rooms.pop(request.room, None)
        connection.send(wire.encode(wire.LeftReply(request_id=request.request_id, room=request.room)))
        if room is not None:
            self._depart(room, connection.registered_author.session_id)

    def _post(self, connection: _Connection, request: wire.PostRequest) -> None:
        text = request.text
        size = len(text) if text.isascii() else len(text.encode())
        if size > wire.MAX_TEXT_BYTES:
            raise _too_large()
        room = self._room(request.room, request.epoch)
        self._check_reserved(connection, room.name)
        posted = room.post(
            connection.registered_author,
            text,
            id=request.id or f"{self.id}-{next(self._message_ids):x}",
            timestamp=self._now(),
            size=size,
            reply_to=request.reply_to,
        )
        if posted.activity is not None:
            self._store.posted(room, posted.message)
        connection.send(wire.encode_posted(request.request_id, posted.encoded, posted.unread_before))
        if posted.activity is not None and len(room.members) > 1:
            self._tell(room, posted.activity, but=connection.registered_author.session_id)

    def _fetch(self, connection: _Connection, request: wire.FetchRequest) -> None:
        room = self._room(request.room, request.epoch)
        connection.send(
            *wire.encode_messages(
                request.request_id,
                room.name,
                first_seq=room.first_seq,
                last_seq=room.last_seq,
                cursor=room.cursor(connection.name),
                encoded=room.after(
                    request.after_seq,
                    limit=wire.DEFAULT_FETCH_LIMIT if request.limit is None else request.limit,
                    max_bytes=wire.MAX_FETCH_BYTES,
                ),
            )
        )

    def _set_cursor(self, connection: _Connection, request: wire.SetCursorRequest) -> None:
        room = self._room(request.room, request.epoch)
        seq = self._move_cursor(room, connection.name, request.seq)
        connection.send(
            wire.encode(wire.CursorSetReply(request_id=request.request_id, room=room.name, seq=seq))
        )

    def _digest(self, connection: _Connection, request: wire.DigestRequest) -> None:
        room = self._room(request.room, request.epoch)
        name = connection.name
        found = room.digest(
            name,
            after_seq=request.after_seq,
            is_others_only=bool(request.others),
            budget=request.budget,
            per_message=request.per_message,
        )
        if not request.peek and request.after_seq is None and found.consumed_seq:
            self._move_cursor(room, name, found.consumed_seq)
        connection.send(
            wire.encode_digested(
                request.request_id,
                room.name,
                found,
                cursor=room.cursor(name),
                first_seq=room.first_seq,
                last_seq=room.last_seq,
            )
        )

    def _reserve(self, connection: _Connection, request: wire.ReserveRequest) -> None:
        _check_room_name(request.room)
        if not all(is_member_name(name) for name in request.names):
            raise Refused("bad-request", "names holds something that is no member's name")
        held = self._reservations.get(request.room, {})
        for name in request.names:
            if name in held and not _is_same(held[name].secret, request.secret):
                raise _reserved(name, request.room)
        if not held and len(self._reservations) >= self._limits.reserved_rooms:
            raise Refused(
                "room-limit", f"names are reserved in {self._limits.reserved_rooms} rooms; no more can be"
            )
        held = self._reservations.setdefault(request.room, held)
        session_id = connection.registered_author.session_id
        for name in request.names:
            held.setdefault(name, _Reservation(request.secret, set())).sessions.add(session_id)
        connection.reserved_rooms.add(request.room)
        connection.send(
            wire.encode(
                wire.ReservedReply(
                    request_id=request.request_id, room=request.room, names=list(request.names)
                )
            )
        )

    # What requests share.

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _room(self, name: str, epoch: str | None) -> Room:
        room = self._store.find(name)
        if room is None:
            _check_room_name(name)
            raise Refused("no-such-room", f'Room "{name}" does not exist; join it first')
        _check_epoch(room, epoch)
        return room

    def _move_cursor(self, room: Room, name: str, seq: int) -> int:
        before = room.cursor(name)
        cursor = room.set_cursor(name, seq)
        if cursor != before:
            self._store.cursor_moved(room, name)
        return cursor

    def _depart(self, room: Room, session_id: str) -> None:
        """End a membership, tell who stays, and forget a room in which nothing was ever said."""
        self._deliver(room)
        activity = room.leave(session_id)
        if activity is not None:
            self._tell(room, activity, but=session_id)
        if room.is_disposable and self._store.find(room.name) is room:
            self._store.drop(room.name)

    def _tell(self, room: Room, activity: Activity, *, but: str) -> None:
        """Let every member but one know, at the end of this turn of the loop."""
        told = _Told(but, activity.seq, wire.frame(wire.encode_activity(activity)))
        self._untold.setdefault(room, []).append(told)
        self._write_soon()

    def _deliver(self, room: Room) -> None:
        """Queue what this turn has told in ``room``: the same bytes for all who caused none of it."""
        told = self._untold.pop(room, None)
        if told is None:
            return
        by_session = self._by_session
        causes = {one.but for one in told}
        newest, whole = _newest(told), b"".join(one.body for one in told)
        for session_id in room.members:
            if session_id not in causes:
                by_session[session_id].tell(room.name, newest, whole)
            elif others := [one for one in told if one.but != session_id]:
                by_session[session_id].tell(room.name, _newest(others), b"".join(one.body for one in others))

    def _check_reserved(self, connection: _Connection, room: str) -> None:
        held = self._reservations.get(room)
        if held is None:
            return
        reservation = held.get(connection.name)
        if reservation is not None and not _is_same(reservation.secret, connection.secret):
            raise _reserved(connection.name, room)

    def _end_reservations(self, room: str, session_id: str) -> None:
        held = self._reservations.get(room, {})
        for name in list(held):
            held[name].sessions.discard(session_id)
            if not held[name].sessions:
                del held[name]
        if not held:
            self._reservations.pop(room, None)


class _Told(NamedTuple):
    """One activity on its way to everybody in a room but one."""

    but: str  #: the session that caused it
    seq: int
    body: bytes  #: a whole frame


@dataclass(frozen=True, slots=True)
class _Reservation:
    """A name in a room that is kept for those who know a secret."""

    secret: str
    sessions: set[str]  #: who made it; it ends with the last of them


class _Connection(asyncio.BufferedProtocol):
    """One client: what it has sent so far, who it is, and what it has not read."""

    def __init__(self, broker: Broker) -> None:
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
        self._pending_activity: dict[str, _Told] = {}
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
            self.send(_error(Refused("connection-limit", "too many connections to this broker"), None))
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
            self.finish()
        except Exception:  # one request must not end the service of the others
            _log.exception("Failed to handle roundtable message; closed its connection")
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

    def tell(self, room: str, newest: _Told, frames: bytes) -> None:
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
        body = _error(Refused("slow-reader", "over 16 MiB of replies were not read"), None)
        self._enqueue(_HEADER.pack(len(body)), body)
        self.finish()

    def _not_registered(self) -> None:
        _log.info("closed a connection that did not register")
        self.finish()


def _newest(told: Sequence[_Told]) -> _Told:
    """The one to keep when only one can be kept; the last of several that are no posts."""
    return max(reversed(told), key=lambda one: one.seq)


def _error(problem: Refused, request_id: str | None) -> bytes:
    return wire.encode(wire.ErrorReply(request_id=request_id, code=problem.code, error=problem.message))


def _check_allowed(connection: _Connection, request: wire.Request, size: int) -> None:
    if connection.author is None and not isinstance(request, wire.RegisterRequest):
        raise Refused("not-registered", "Register before sending requests")
    if size > _MAX_REQUEST_BYTES:
        raise _too_large()


def _too_large() -> Refused:
    return Refused("too-large", "a message has at most 6 MiB of text; write it to a file and post the path")


def _stale(room: str) -> Refused:
    return Refused(
        "stale-epoch", f'Room "{room}" is not the one you knew, it was created anew; join it first'
    )


def _reserved(name: str, room: str) -> Refused:
    return Refused("reserved", f'The name "{name}" is reserved in room "{room}"')


def _check_room_name(name: str) -> None:
    if not is_room_name(name):
        raise Refused(
            "bad-request", "a room's name is 1 to 64 of A-Z a-z 0-9 _ - and begins with a letter or digit"
        )


def _check_epoch(room: Room, epoch: str | None) -> None:
    if epoch is not None and epoch != room.epoch:
        raise _stale(room.name)


def _is_same(secret: str, given: str | None) -> bool:
    return given is not None and hmac.compare_digest(secret.encode(), given.encode())


def _is_same_user(end: socket.socket) -> bool:
    """Whether the other end is this user's, where the system tells (Linux)."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    layout = struct.Struct("iII")
    _, uid, _ = layout.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size))
    return bool(uid == os.geteuid())


async def _serve(taken: Claim, limits: Limits, grace_seconds: float, ready: int | None) -> None:
    broker = Broker(limits=limits, grace_seconds=grace_seconds)
    loop = asyncio.get_running_loop()
    for number in _STOP:
        loop.add_signal_handler(number, broker.close)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
    await broker.start(taken.listener)
    _log.info("serving %s", taken.path)
    _tell_ready(ready)
    await broker.wait_closed()
    # While somebody may still connect the file must not name us.
    taken.release()
    await broker.wait_disconnected()


def _tell_ready(descriptor: int | None) -> None:
    if descriptor is None:
        return
    try:
        os.write(descriptor, READY)
        os.close(descriptor)
    except OSError:
        _log.info("the starter has left")


def _raise_descriptor_limit(limits: Limits) -> Limits:
    """Ask for as many descriptors as connections may need; bear fewer if that is refused."""
    wanted = limits.connections + _SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        except (OSError, ValueError):
            _log.warning("only %d open files are allowed", soft)
        return replace(limits, connections=max(1, min(limits.connections, soft - _SPARE_DESCRIPTORS)))
    return limits


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until idle or told to stop; 0 also when another broker serves already."""
    parser = argparse.ArgumentParser(
        prog="python -m roundtable.broker", description="Serve this user's rooms."
    )
    parser.add_argument("--home", type=Path, help="the user's folder (default: FLEET_HOME, else ~/.fleet)")
    parser.add_argument("--socket", type=Path, help="where to listen (default: below the home)")
    parser.add_argument("--grace", type=float, default=5.0, help="seconds to outlive the last connection")
    parser.add_argument(
        "--ready-fd", type=int, help="descriptor that is written to once the socket is served"
    )
    options = parser.parse_args(arguments)
    if not 0 <= options.grace < float("inf"):
        parser.error("--grace is a number of seconds, 0 or more")

    logging.basicConfig(format="%(asctime)s %(process)d %(message)s", level=logging.INFO, stream=sys.stderr)
    home = Home.from_environment()
    if options.home is not None:
        home = replace(home, root=options.home.absolute())
    # A signal waits until we can take what we made away again.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        taken = claim(home, path=options.socket.absolute() if options.socket else None)
    except BrokerUnavailable as problem:
        _log.error("%s (%s)", problem, problem.hint)
        return problem.exit_code
    if taken is None:
        _log.info("Another roundtable broker is already listening on %s", home.socket())
        _tell_ready(options.ready_fd)
        return 0
    limits = _raise_descriptor_limit(Limits())
    # What is loaded now stays; the collector need not look at it again.
    gc.freeze()
    asyncio.run(_serve(taken, limits, options.grace, options.ready_fd))
    return 0


if __name__ == "__main__":
    sys.exit(main())
