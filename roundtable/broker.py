"""What the rooms of one user do for whoever is connected: one process, one store, one method per request.

Speed comes from four things: one shared read buffer, one write per connection and turn, all activity of a room in a
turn put together once for all who get it, and messages kept encoded.

With a durable store nobody learns of a change before it is stored: the replies to all changes of one turn wait for one
commit, which comes at the end of the turn or before anything that reads a room is answered.

Not here: what a connection has not read (``connection``), what a room does (``room``), how bytes become messages
(``wire``), who may serve a socket (``spawn``), the process around it (``serve``).
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import wire
from .activity import Told, heard, heard_by
from .connection import READ_BYTES, Connection, error_body
from .errors import NotStored, Refused
from .limits import Limits
from .message import Activity, Author
from .names import is_member_name, is_room_name, is_topic
from .room import Room
from .store import MemoryStore, RoomStore
from .turns import Deadlines, Turns

__all__ = ["Broker"]

_log = logging.getLogger("roundtable.broker")

#: Before anyone has connected a broker waits at least this long, whatever its grace.
_FIRST_SECONDS = 5.0

#: A coming or going wakes everybody in the room. With more members than this those of a moment are told together:
#: 1,000 who come one after the other cost a tenth.
_FEW_MEMBERS = 64

#: How long the first of them waits for the others, unless somebody posts.
_PRESENCE_SECONDS = 0.05

#: A connection that is being closed may take this long to read what it was told.
_CLOSING_SECONDS = 2.0

#: Connections taken in one turn; those that have come before are not kept waiting.
_ACCEPTED_PER_TURN = 64

#: Without a free descriptor nobody is let in for this long.
_FULL_SECONDS = 1.0

#: A request larger than this leaves its reply no room for the frame around the same text.
_MAX_REQUEST_BYTES = wire.MAX_FRAME_BYTES - 2048

#: Requests that change what a store keeps. Those of one turn are made durable together.
_KEPT_TOGETHER = frozenset({wire.PostRequest, wire.SetCursorRequest, wire.DigestRequest})


class Broker:
    """Rooms for whoever connects to one listening socket.

    One thread calls ``start``, ``run`` and ``run_out``; ``stop`` may be called from anywhere. ``grace_seconds`` is how
    long it serves without a connection; ``None`` is for ever.
    """

    def __init__(
        self,
        *,
        store: RoomStore | None = None,
        limits: Limits | None = None,
        grace_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.id = _new_id()
        self.turns = Turns()
        self._store: RoomStore = store or MemoryStore(wire.encode_message)
        self._is_durable = self._store.is_durable
        self._limits = limits or Limits()
        self._grace_seconds = grace_seconds
        self._clock = clock
        self._now_ms = 0  # the time of this turn
        self._connections: set[Connection] = set()
        self._by_session: dict[str, Connection] = {}
        self._reservations: dict[str, dict[str, _Reservation]] = {}
        self._message_ids = itertools.count(1)
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._untold: dict[Room, list[Told]] = {}
        self._due: dict[Room, None] = {}  # of these, what this turn ends with
        self._presence: Deadlines[Room] = Deadlines(_PRESENCE_SECONDS)  # and these can wait for company
        self._unwritten: list[Connection] = []
        self._lost: list[Connection] = []
        self._unsettled: list[_Unsettled] = []  # always empty with a store that is not durable
        self._is_store_failing = False
        self._listener: socket.socket | None = None
        self._unregistered: Deadlines[Connection] = Deadlines(self._limits.register_seconds)
        self._closing: Deadlines[Connection] = Deadlines(_CLOSING_SECONDS)
        self._full: Deadlines[socket.socket] = Deadlines(_FULL_SECONDS)
        self._idle_end: float | None = None
        self._is_stop_wanted = False
        self._is_closed = False
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

    def start(self, listener: socket.socket) -> None:
        """Serve ``listener``, which stays the caller's to remove from the file system."""
        listener.setblocking(False)
        self._listener = listener
        self.turns.watch(listener, self._accept)
        self._begin_idle(_FIRST_SECONDS)

    def run(self) -> None:
        """Serve until asked to stop, or idle for the grace. Then the store is closed and nobody is served."""
        while not self._is_closed:
            self._turn()

    def run_out(self) -> None:
        """Let every connection read what it was told, for a moment. Then nothing is left of this broker."""
        while self._connections:
            self._turn()
        self.turns.close()

    def stop(self) -> None:
        """Let ``run`` return soon. Safe in a signal handler and in another thread."""
        self._is_stop_wanted = True
        self.turns.wake()

    def _turn(self) -> None:
        """Wait, do what can be done, end what is over, and only then let everybody know of it."""
        end = self._next_end()
        found = self.turns.wait(end)
        self._now_ms = int(self._clock() * 1000)
        for ready, events in found:
            ready(events)
        if end is not None and end <= time.monotonic():
            self._end_what_is_over()
        if self._is_stop_wanted and not self._is_closed:
            self._close()
        self.settle()
        while self._lost or self._due or self._unwritten:
            lost, self._lost = self._lost, []
            for connection in lost:
                self._forget(connection)
            due, self._due = self._due, {}
            for room in due:
                self._deliver(room)
            waiting, self._unwritten = self._unwritten, []
            for connection in waiting:
                connection.write()

    def _next_end(self) -> float | None:
        """When something is over, on the monotonic clock."""
        end = self._idle_end
        for clock in (self._unregistered, self._closing, self._full, self._presence):
            first = clock.first()
            if first is not None and (end is None or first < end):
                end = first
        return end

    def _end_what_is_over(self) -> None:
        for connection in self._unregistered.over():
            _log.info("closed a connection that did not register")
            connection.finish()
        for connection in self._closing.over():
            connection.close()
        for listener in self._full.over():
            if not self._is_closed:
                self.turns.watch(listener, self._accept)
        for room in self._presence.over():
            self._due[room] = None
        if self._idle_end is not None and self._idle_end <= time.monotonic():
            _log.info("nobody has been connected for the grace time; stopping")
            self._is_stop_wanted = True

    def _begin_idle(self, at_least_seconds: float = 0.0) -> None:
        """Stop after the grace unless somebody connects."""
        if self._grace_seconds is not None and not self._is_closed:
            self._idle_end = time.monotonic() + max(self._grace_seconds, at_least_seconds)

    def _close(self) -> None:
        """Stop serving and drop every connection."""
        self._is_closed, self._idle_end = True, None
        if self._listener is not None:
            self.turns.forget(self._listener)
        self.settle()
        for connection in list(self._connections):
            connection.finish()
        self._store.close()

    def _accept(self, events: int) -> None:
        """Let in who has come."""
        listener = self._listener
        if listener is None or self._is_closed:
            return
        for _ in range(_ACCEPTED_PER_TURN):
            try:
                end, _address = listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:  # who made it has gone already
                continue
            except OSError as problem:  # no free descriptor, no memory: asking at once again would only spin
                _log.warning("cannot take a connection: %s", problem.strerror)
                self.turns.forget(listener)
                self._full.add(listener)
                return
            try:
                self._let_in(Connection(self, end))
            except OSError as problem:
                _log.warning("lost a connection as it came: %s", problem.strerror)
                end.close()

    def _let_in(self, connection: Connection) -> None:
        is_ours = connection.is_of_this_user
        self._idle_end = None
        self._connections.add(connection)
        connection.watch()
        if not is_ours:
            _log.warning("closed a connection of another user")
            connection.close()
        elif len(self._connections) > self._limits.connections:
            connection.send(
                error_body(Refused("connection-limit", "too many connections to this broker"), None)
            )
            connection.finish()
        else:
            self._unregistered.add(connection)

    def _forget(self, connection: Connection) -> None:
        """End the memberships and reservations of a connection that is gone."""
        self.settle()
        self._connections.discard(connection)
        self._unregistered.discard(connection)
        self._closing.discard(connection)
        author = connection.author
        if author is not None:
            for room in connection.rooms.values():
                self._depart(room, author.session_id)
            connection.rooms.clear()
            del self._by_session[author.session_id]
            for name in connection.reserved_rooms:
                self._end_reservations(name, author.session_id)
        if not self._connections:
            self._begin_idle()

    # What a connection calls.

    def answer(self, connection: Connection, body: memoryview) -> None:
        """Do what one frame asks and queue the reply.

        Raises:
            MalformedFrame: the frame is no JSON object; the connection is finished.
        """
        request_id: str | None = None
        try:
            request = wire.decode_request(body)
            request_id = request.request_id
            if connection.author is None or len(body) > _MAX_REQUEST_BYTES:
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
            if one.seq and len(one.room.members) > 1:
                author = one.connection.registered_author
                self._tell(one.room, author.name, one.seq, but=author.session_id)

    @property
    def buffer(self) -> memoryview:
        """Where reads go. One for all: what was read is taken out before the next read."""
        return self._buffer

    @property
    def limits(self) -> Limits:
        """What this broker bears."""
        return self._limits

    def write_later(self, connection: Connection) -> None:
        """Write what ``connection`` has queued at the end of this turn."""
        self._unwritten.append(connection)

    def finishing(self, connection: Connection) -> None:
        """Close ``connection`` when it has read what it was told, or after a moment."""
        self._closing.add(connection)

    def disconnected(self, connection: Connection) -> None:
        """Forget ``connection`` at the end of this turn."""
        self._lost.append(connection)

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
        author = Author(_new_id(), request.name)
        connection.author, connection.secret = author, request.secret
        self._unregistered.discard(connection)
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
            room = self._store.create(request.room, epoch=_new_id())
        else:
            _check_epoch(room, request.epoch)
        if self._is_durable and topic is not None and room.topic is None and room.last_seq:
            self._keep_topic(room, topic)
        is_new = author.session_id not in room.members
        activity = room.join(author, joined_at=self._now_ms, topic=topic, is_quiet=bool(request.quiet))
        connection.rooms[room.name] = room
        connection.send(
            wire.encode_joined(
                request.request_id,
                room.info(author.name),
                cursor=room.cursor(author.name),
                shared_with=room.shared_with(author),
            )
        )
        if is_new:
            self._came(room, activity, author.session_id)

    def _leave(self, connection: Connection, request: wire.LeaveRequest) -> None:
        _check_room_name(request.room)
        room = connection.rooms.pop(request.room, None)
        session_id = connection.registered_author.session_id
        if room in self._untold and (before := heard_by(session_id, request.room, self._untold[room])):
            connection.tell(before)
        connection.send(wire.encode(wire.LeftReply(request_id=request.request_id, room=request.room)))
        if room is not None:
            self._depart(room, session_id)

    def _post(self, connection: Connection, request: wire.PostRequest) -> None:
        text = request.text
        size = len(text) if text.isascii() else len(text.encode())
        if size > wire.MAX_TEXT_BYTES:
            raise _too_large()
        author = connection.author or connection.registered_author
        room = connection.rooms.get(request.room)
        if room is None or request.epoch is not None:
            room = self._room(request.room, request.epoch)
        if self._reservations:
            self._check_reserved(connection, room.name)
        if self._is_durable:
            self._store.before_change(room)
        posted = room.post(
            author,
            text,
            # Not an f-string, which takes twice as long here.
            id=request.id or "%s-%x" % (self.id, next(self._message_ids)),  # noqa: UP031
            timestamp=self._now_ms,
            size=size,
            reply_to=request.reply_to,
        )
        body = wire.encode_posted(request.request_id, posted.encoded, posted.unread_before)
        if self._is_durable:
            if posted.is_new:
                self._store.posted(room, posted.message)
            self._wait_for_commit(
                _Unsettled(
                    connection,
                    request.request_id,
                    body,
                    "Nothing was posted",
                    room,
                    posted.message.seq if posted.is_new else 0,
                )
            )
            return
        connection.send(body)
        if posted.is_new and len(room.members) > 1:
            self._tell(room, author.name, posted.message.seq, but=author.session_id)

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
                _Unsettled(connection, request_id, body, "The cursor was not moved", room, 0)
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

    def _depart(self, room: Room, session_id: str) -> None:
        """End a membership, tell who stays, and forget a room in which nothing was ever said."""
        activity = room.leave(session_id)
        if activity is not None:
            self._tell(room, activity.author, 0, but=session_id)
        if room.is_disposable and self._store.find(room.name) is room:
            self._store.drop(room.name)

    def _tell(self, room: Room, author: str, seq: int, *, but: str) -> None:
        """Let every member but one know, at the end of this turn or, of a coming or going among many, soon."""
        told = self._untold.get(room)
        if told is None:
            told = self._untold[room] = []
        if told and told[-1].but == but and told[-1].author == author:
            told[-1].seqs.append(seq)
        else:
            told.append(Told(but, author, [seq]))
        if seq or len(room.members) <= _FEW_MEMBERS:
            self._due[room] = None
        elif room not in self._presence:
            self._presence.add(room)

    def _came(self, room: Room, activity: Activity | None, session_id: str) -> None:
        """Tell of a coming, if anybody is to be told. Who comes hears nothing of what was before."""
        if told := self._untold.get(room):
            told.append(Told(session_id, "", [], is_coming=True))
        if activity is not None:
            self._tell(room, activity.author, 0, but=session_id)

    def _deliver(self, room: Room) -> None:
        """Queue what this turn has told in ``room``."""
        told = self._untold.pop(room, None)
        self._presence.discard(room)
        if told is None:
            return
        by_session = self._by_session
        for_most, for_causes = heard(room.name, told)
        for session_id in room.members:
            activity = for_causes.get(session_id, for_most)
            if activity is not None:
                by_session[session_id].tell(activity)

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
    seq: int  #: of what the others are told; 0 if it is nothing


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
    # Here, because few need it and a start pays for it.
    from hmac import compare_digest

    return given is not None and compare_digest(secret.encode(), given.encode())


def _new_id() -> str:
    return os.urandom(8).hex()
