"""What the rooms of one user do for whoever is connected: one process, one store, one method per request.

Speed comes from four things: one shared read buffer, one write per connection and turn of the loop, all activity
of a room in that turn put together once for all who get it, and messages kept encoded.

With a durable store nobody learns of a change before it is stored: the replies to all changes of one turn wait for one
commit, which comes at the end of the turn or before anything that reads a room is answered.

Not here: what a connection has not read (``connection``), what a room does (``room``), how bytes become messages
(``wire``), who may serve a socket (``spawn``), the process around it (``serve``).
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import wire
from .connection import READ_BYTES, Connection, Told, error_body, newest
from .errors import NotStored, Refused
from .limits import Limits
from .message import Activity, Author, is_member_name, is_room_name, is_topic
from .room import Room
from .store import MemoryStore, RoomStore

__all__ = ["Broker"]

_log = logging.getLogger("roundtable.broker")

#: Before anyone has connected a broker waits at least this long, whatever its grace.
_FIRST_SECONDS = 5.0

#: A request larger than this leaves its reply no room for the frame around the same text.
_MAX_REQUEST_BYTES = wire.MAX_FRAME_BYTES - 2048

#: Requests that change what a store keeps. Those of one turn are made durable together.
_KEPT_TOGETHER = frozenset({wire.PostRequest, wire.SetCursorRequest, wire.DigestRequest})


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
        self._is_durable = self._store.is_durable
        self._limits = limits or Limits()
        self._grace_seconds = grace_seconds
        self._clock = clock
        self._connections: set[Connection] = set()
        self._by_session: dict[str, Connection] = {}
        self._reservations: dict[str, dict[str, _Reservation]] = {}
        self._message_ids = itertools.count(1)
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._untold: dict[Room, list[Told]] = {}
        self._unwritten: list[Connection] = []
        self._unsettled: list[_Unsettled] = []  # always empty with a store that is not durable
        self._is_store_failing = False
        self._is_write_due = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None
        self._done = asyncio.Event()
        self._gone = asyncio.Event()
        self._answers: dict[type, Callable[[Connection, Any], None]] = {
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
        self._server = await loop.create_unix_server(lambda: Connection(self), sock=listener)
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
        self.settle()
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

    def connected(self, connection: Connection) -> bool:
        """Take a new connection; ``False`` if there are too many."""
        self._connections.add(connection)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        return len(self._connections) <= self._limits.connections

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection with its memberships and reservations."""
        self.settle()
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

    def answer(self, connection: Connection, body: memoryview) -> None:
        """Do what one frame asks and queue the reply.

        Raises:
            MalformedFrame: the frame is no JSON object; the connection is finished.
        """
        request_id: str | None = None
        try:
            request = wire.decode_request(body)
            request_id = request.request_id
            _check_allowed(connection, request, len(body))
            if self._unsettled and type(request) not in _KEPT_TOGETHER:
                self.settle()
            self._answers[type(request)](connection, request)
        except wire.RefusedRequest as problem:
            self.settle()
            connection.send(error_body(problem, problem.request_id))
        except Refused as problem:
            self.settle()
            connection.send(error_body(problem, request_id))

    def settle(self) -> None:
        """Make durable what was changed since the last time; then answer who changed it and tell the others."""
        if not self._unsettled:
            return
        unsettled, self._unsettled = self._unsettled, []
        try:
            self._store.commit()
        except NotStored as problem:
            if not self._is_store_failing:
                _log.error("%s", problem)
            self._is_store_failing = True
            for one in unsettled:
                one.connection.send(error_body(_not_stored(one.refusal, problem), one.request_id))
            return
        self._is_store_failing = False
        for one in unsettled:
            one.connection.send(one.body)
            if one.activity is not None and len(one.room.members) > 1:
                self._tell(one.room, one.activity, but=one.connection.registered_author.session_id)

    @property
    def buffer(self) -> memoryview:
        """Where reads go. One for all: what was read is taken out before the next read."""
        return self._buffer

    @property
    def limits(self) -> Limits:
        """What this broker bears."""
        return self._limits

    def write_later(self, connection: Connection) -> None:
        """Write what ``connection`` has queued at the end of this turn of the loop."""
        self._unwritten.append(connection)
        self._write_soon()

    def _write_soon(self) -> None:
        if not self._is_write_due:
            self._is_write_due = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        self.settle()
        self._is_write_due = False
        for room in list(self._untold):
            self._deliver(room)
        waiting, self._unwritten = self._unwritten, []
        for connection in waiting:
            connection.write()

    # Requests, one method each. The reply is queued before others are told, so the asker is served first.

    def _register(self, connection: Connection, request: wire.RegisterRequest) -> None:
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

    def _rooms(self, connection: Connection, request: wire.RoomsRequest) -> None:
        name = connection.name
        body = wire.encode_rooms(request.request_id, [room.info(name) for room in self._store.rooms()])
        if len(body) > wire.MAX_FRAME_BYTES:
            raise Refused("too-large", "the list of rooms and members does not fit one frame")
        connection.send(body)

    def _join(self, connection: Connection, request: wire.JoinRequest) -> None:
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
        if self._is_durable and topic is not None and room.topic is None and room.last_seq:
            self._keep_topic(room, topic)
        # Who comes now is not told of what was before.
        self._deliver(room)
        activity = room.join(author, joined_at=self._now(), topic=topic, is_quiet=bool(request.quiet))
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

    def _leave(self, connection: Connection, request: wire.LeaveRequest) -> None:
        _check_room_name(request.room)
        room = connection.rooms.pop(request.room, None)
        connection.send(wire.encode(wire.LeftReply(request_id=request.request_id, room=request.room)))
        if room is not None:
            self._depart(room, connection.registered_author.session_id)

    def _post(self, connection: Connection, request: wire.PostRequest) -> None:
        text = request.text
        size = len(text) if text.isascii() else len(text.encode())
        if size > wire.MAX_TEXT_BYTES:
            raise _too_large()
        room = self._room(request.room, request.epoch)
        self._check_reserved(connection, room.name)
        if self._is_durable:
            self._store.before_change(room)
        posted = room.post(
            connection.registered_author,
            text,
            id=request.id or f"{self.id}-{next(self._message_ids):x}",
            timestamp=self._now(),
            size=size,
            reply_to=request.reply_to,
        )
        body = wire.encode_posted(request.request_id, posted.encoded, posted.unread_before)
        if self._is_durable:
            if posted.activity is not None:
                self._store.posted(room, posted.message)
            self._wait_for_commit(
                _Unsettled(connection, request.request_id, body, "Nothing was posted", room, posted.activity)
            )
            return
        connection.send(body)
        if posted.activity is not None and len(room.members) > 1:
            self._tell(room, posted.activity, but=connection.registered_author.session_id)

    def _fetch(self, connection: Connection, request: wire.FetchRequest) -> None:
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

    def _set_cursor(self, connection: Connection, request: wire.SetCursorRequest) -> None:
        room = self._room(request.room, request.epoch)
        seq = self._move_cursor(room, connection.name, request.seq)
        body = wire.encode(wire.CursorSetReply(request_id=request.request_id, room=room.name, seq=seq))
        self._moved(connection, request.request_id, body, room)

    def _digest(self, connection: Connection, request: wire.DigestRequest) -> None:
        room = self._room(request.room, request.epoch)
        name = connection.name
        is_moving = not request.peek and request.after_seq is None
        if not is_moving:
            self.settle()
        found = room.digest(
            name,
            after_seq=request.after_seq,
            is_others_only=bool(request.others),
            budget=request.budget,
            per_message=request.per_message,
        )
        if is_moving and found.consumed_seq:
            self._move_cursor(room, name, found.consumed_seq)
        body = wire.encode_digested(
            request.request_id,
            room.name,
            found,
            cursor=room.cursor(name),
            first_seq=room.first_seq,
            last_seq=room.last_seq,
        )
        if is_moving:
            self._moved(connection, request.request_id, body, room)
        else:
            connection.send(body)

    def _reserve(self, connection: Connection, request: wire.ReserveRequest) -> None:
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
        if not self._is_durable:
            return room.set_cursor(name, seq)
        self._store.before_change(room)
        before = room.cursor(name)
        cursor = room.set_cursor(name, seq)
        if cursor != before:
            self._store.cursor_moved(room, name)
        return cursor

    def _moved(self, connection: Connection, request_id: str, body: bytes, room: Room) -> None:
        """Answer who may have moved a cursor."""
        if self._is_durable:
            self._wait_for_commit(
                _Unsettled(connection, request_id, body, "The cursor was not moved", room, None)
            )
        else:
            connection.send(body)

    def _keep_topic(self, room: Room, topic: str) -> None:
        """Store the first topic of a room in which something was said, before anybody sees it."""
        self._store.before_change(room)
        room.topic = topic
        self._store.topic_set(room)
        try:
            self._store.commit()
        except NotStored as problem:
            raise _not_stored("Not joined", problem) from problem

    def _wait_for_commit(self, reply: _Unsettled) -> None:
        """Answer when this turn's changes are stored."""
        self._unsettled.append(reply)
        self._write_soon()

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
        told = Told(but, activity.seq, wire.activity_frame(activity))
        self._untold.setdefault(room, []).append(told)
        self._write_soon()

    def _deliver(self, room: Room) -> None:
        """Queue what this turn has told in ``room``: the same bytes for all who caused none of it."""
        told = self._untold.pop(room, None)
        if told is None:
            return
        by_session = self._by_session
        causes = {one.but for one in told}
        latest, whole = newest(told), b"".join(one.body for one in told)
        for session_id in room.members:
            if session_id not in causes:
                by_session[session_id].tell(room.name, latest, whole)
            elif others := [one for one in told if one.but != session_id]:
                by_session[session_id].tell(room.name, newest(others), b"".join(one.body for one in others))

    def _check_reserved(self, connection: Connection, room: str) -> None:
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


class _Unsettled(NamedTuple):
    """A reply that must not be given before what it tells of is stored."""

    connection: Connection
    request_id: str
    body: bytes
    refusal: str  #: what did not happen if that fails
    room: Room
    activity: Activity | None  #: what the others are told


@dataclass(frozen=True, slots=True)
class _Reservation:
    """A name in a room that is kept for those who know a secret."""

    secret: str
    sessions: set[str]  #: who made it; it ends with the last of them


def _check_allowed(connection: Connection, request: wire.Request, size: int) -> None:
    if connection.author is None and not isinstance(request, wire.RegisterRequest):
        raise Refused("not-registered", "Register before sending requests")
    if size > _MAX_REQUEST_BYTES:
        raise _too_large()


def _too_large() -> Refused:
    return Refused("too-large", "a message has at most 6 MiB of text; write it to a file and post the path")


def _not_stored(refusal: str, problem: NotStored) -> Refused:
    return Refused(problem.code, f"{refusal}: {problem}; {problem.hint}")


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
