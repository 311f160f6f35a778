"""One registered connection to the broker: requests, deadlines, and the stream of activity.

Safe to use from several tasks at once, and without a task of its own: whoever waits for something reads for
all. One waiter at a time holds the reading; it hands out what arrives and passes the reading on when it has what it
wants, or is cancelled. Nothing is lost by a cancellation: a reply nobody waits for is dropped, activity stays queued.

Memberships belong to the connection. When the broker goes away they are gone; nothing is replayed.
"""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import anyio

from . import wire
from .errors import BrokerUnavailable, ConnectionLost, MalformedFrame, Refused, RequestTimedOut, WireProblem
from .home import Home
from .message import Activity, Member, Message, RoomInfo
from .spawn import ensure_broker
from .stream import UnixStream, connect_unix

__all__ = ["REQUEST_SECONDS", "Client", "Digested", "Joined", "Page", "Posted", "connect", "reach"]

#: How long an answer is waited for when the caller names no deadline.
REQUEST_SECONDS = 10.0

#: How long a write may take before the connection counts as lost. The broker always reads.
_SEND_SECONDS = 10.0

#: Bytes per read; above 128 KiB each read would cost page faults.
_READ_BYTES = 64 * 1024

#: Activity that is kept apart by author while nobody takes it; beyond it only the newest of a room is kept.
_MAX_QUEUED_ACTIVITY = 1024

#: A broker that ends just when we come is looked for again this often.
_REACH_ATTEMPTS = 3

_ReplyT = TypeVar("_ReplyT")


@dataclass(frozen=True, slots=True)
class Joined:
    """The room a session is now a member of."""

    room: str
    topic: str | None
    epoch: str
    cursor: int
    last_seq: int
    unread: int
    shared_with: int  #: other live sessions here under the same name; they share one cursor
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Posted:
    """The message as it was posted."""

    message: Message
    unread_before: int  #: messages of others that are now behind the author's cursor, unread


@dataclass(frozen=True, slots=True)
class Page:
    """Whole messages, oldest first."""

    messages: tuple[Message, ...]
    first_seq: int  #: oldest retained
    last_seq: int
    cursor: int


@dataclass(frozen=True, slots=True)
class Digested:
    """A digest made by the broker, and where the asking name stands after it."""

    text: str
    total: int
    verbatim: int
    headlines: int
    collapsed: int
    consumed_seq: int  #: the newest message it covers; 0 when there is none
    cursor: int
    first_seq: int
    last_seq: int


async def connect(
    path: Path, *, name: str, secret: str | None = None, deadline: float | None = None
) -> Client:
    """Connect to the broker at ``path`` and register as ``name``.

    ``deadline`` is a point on ``anyio.current_time()``; ``None`` is 10 s from now.

    Raises:
        BrokerUnavailable: nobody answers there.
        Refused: the broker does not take the name, or has too many connections.
        RequestTimedOut, ConnectionLost: it took the connection and did not answer, or closed it.
    """
    start = anyio.current_time()
    deadline = start + REQUEST_SECONDS if deadline is None else deadline
    stream: UnixStream | None = None
    with anyio.CancelScope(deadline=deadline):
        try:
            stream = await connect_unix(path)
        except OSError as problem:
            raise BrokerUnavailable(path, problem.strerror or str(problem)) from problem
    if stream is None:
        raise RequestTimedOut("connect", deadline - start)
    client = Client(stream, name)
    try:
        await client.register(secret, deadline=deadline)
    except BaseException:  # also when cancelled: nobody else knows of this socket yet
        with anyio.CancelScope(shield=True):  # closing a socket waits for nobody
            await client.aclose()
        raise
    return client


async def reach(
    home: Home,
    *,
    name: str,
    secret: str | None = None,
    grace_seconds: float = 5.0,
    deadline: float | None = None,
) -> Client:
    """Connect to the broker of ``home``, starting one if there is none.

    Raises:
        BrokerUnavailable: nobody answers and none could be started.
        Refused, RequestTimedOut, ConnectionLost: as from ``connect``.
    """
    deadline = anyio.current_time() + REQUEST_SECONDS if deadline is None else deadline
    for attempt in range(_REACH_ATTEMPTS):
        path = (
            home.socket()
            if attempt == 0
            else await ensure_broker(home, grace_seconds=grace_seconds, deadline=deadline)
        )
        try:
            return await connect(path, name=name, secret=secret, deadline=deadline)
        except (BrokerUnavailable, ConnectionLost):
            # Nobody there, or a broker that has been idle and ended while we came.
            if attempt == _REACH_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


class Client:
    """A registered connection. Made by ``connect`` or ``reach``; close it, or use it as a context manager.

    Every request takes ``deadline``, a point on ``anyio.current_time()``, ``None`` for 10 s from now, and raises:

    * ``Refused`` with the broker's code,
    * ``RequestTimedOut``,
    * ``ConnectionLost`` when the broker has gone or this client was closed.
    """

    def __init__(self, stream: UnixStream, name: str) -> None:
        self.name = name
        self.session_id = ""
        self.broker_id = ""
        self._stream = stream
        self._frames = wire.FrameDecoder()
        self._request_ids = itertools.count(1)
        self._replies: dict[str, wire.Reply | None] = {}
        self._activity: OrderedDict[tuple[str, str], Activity] = OrderedDict()
        self._send_lock = anyio.Lock()
        self._is_read = False
        self._has_changed = anyio.Event()
        self._end: ConnectionLost | Refused | None = None

    @property
    def is_closed(self) -> bool:
        """Whether this connection can do nothing any more."""
        return self._end is not None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave all rooms and close. Whoever waits gets ``ConnectionLost``. Can be called again."""
        self._lose(None)
        await self._stream.aclose()

    async def register(self, secret: str | None, *, deadline: float | None = None) -> None:
        """Say who this is; ``connect`` has done it."""
        request = wire.RegisterRequest(
            request_id=self._next_id(),
            name=self.name,
            pid=os.getpid(),
            protocol=wire.PROTOCOL,
            secret=secret,
        )
        reply = await self._ask(request, wire.RegisteredReply, deadline)
        self.session_id, self.broker_id = reply.session_id, reply.broker

    async def rooms(self, *, deadline: float | None = None) -> tuple[RoomInfo, ...]:
        """All rooms, oldest first, with what is unread under this name."""
        reply = await self._ask(wire.RoomsRequest(request_id=self._next_id()), wire.RoomsReply, deadline)
        return tuple(wire.to_room_info(body) for body in reply.rooms)

    async def join(
        self,
        room: str,
        topic: str | None = None,
        epoch: str | None = None,
        *,
        is_quiet: bool = False,
        deadline: float | None = None,
    ) -> Joined:
        """Become a member; creates the room. With ``is_quiet`` nobody is told of the coming and going."""
        request = wire.JoinRequest(
            request_id=self._next_id(), room=room, topic=topic, epoch=epoch, quiet=is_quiet or None
        )
        reply = await self._ask(request, wire.JoinedReply, deadline)
        return Joined(
            room=reply.room,
            topic=reply.topic,
            epoch=reply.epoch,
            cursor=reply.cursor,
            last_seq=reply.last_seq,
            unread=reply.unread,
            shared_with=reply.shared_with,
            members=tuple(reply.members),
        )

    async def leave(self, room: str, *, deadline: float | None = None) -> None:
        """End the membership; the cursor stays."""
        await self._ask(wire.LeaveRequest(request_id=self._next_id(), room=room), wire.LeftReply, deadline)

    async def post(
        self,
        room: str,
        text: str,
        *,
        reply_to: str | int | None = None,
        id: str | None = None,  # noqa: A002 - the word of the wire
        epoch: str | None = None,
        deadline: float | None = None,
    ) -> Posted:
        """Say ``text``. With ``id`` a repetition answers with the first message and posts nothing."""
        request = wire.PostRequest(
            request_id=self._next_id(), room=room, text=text, reply_to=reply_to, id=id, epoch=epoch
        )
        reply = await self._ask(request, wire.PostedReply, deadline)
        return Posted(reply.message, reply.unread_before)

    async def fetch(
        self,
        room: str,
        after_seq: int,
        limit: int | None = None,
        *,
        epoch: str | None = None,
        deadline: float | None = None,
    ) -> Page:
        """Whole messages after ``after_seq``, oldest first, at most ``limit`` (1 to 500, else 200) and 7 MiB."""
        request = wire.FetchRequest(
            request_id=self._next_id(), room=room, after_seq=after_seq, limit=limit, epoch=epoch
        )
        reply = await self._ask(request, wire.MessagesReply, deadline)
        return Page(tuple(reply.messages), reply.first_seq, reply.last_seq, reply.cursor)

    async def set_cursor(
        self, room: str, seq: int, *, epoch: str | None = None, deadline: float | None = None
    ) -> int:
        """Move this name's cursor forward, never back and never past the end; returns where it is."""
        request = wire.SetCursorRequest(request_id=self._next_id(), room=room, seq=seq, epoch=epoch)
        return (await self._ask(request, wire.CursorSetReply, deadline)).seq

    async def digest(
        self,
        room: str,
        *,
        budget: int | None = None,
        per_message: int | None = None,
        peek: bool = False,
        after_seq: int | None = None,
        others: bool = False,
        epoch: str | None = None,
        deadline: float | None = None,
    ) -> Digested:
        """What is unread, bounded. Moves the cursor unless ``peek`` or ``after_seq`` is given.

        ``budget`` and ``per_message`` are characters, 2000 and 600 if ``None``. ``after_seq`` starts there
        instead of at the cursor. ``others`` leaves this name's own messages out.
        """
        request = wire.DigestRequest(
            request_id=self._next_id(),
            room=room,
            budget=budget,
            per_message=per_message,
            peek=peek or None,
            after_seq=after_seq,
            others=others or None,
            epoch=epoch,
        )
        reply = await self._ask(request, wire.DigestedReply, deadline)
        return Digested(
            text=reply.text,
            total=reply.total,
            verbatim=reply.verbatim,
            headlines=reply.headlines,
            collapsed=reply.collapsed,
            consumed_seq=reply.consumed_seq,
            cursor=reply.cursor,
            first_seq=reply.first_seq,
            last_seq=reply.last_seq,
        )

    async def reserve(
        self, room: str, names: Sequence[str], secret: str, *, deadline: float | None = None
    ) -> None:
        """Keep ``names`` in ``room`` for who registered with ``secret``, as long as this connection lives."""
        request = wire.ReserveRequest(request_id=self._next_id(), room=room, names=list(names), secret=secret)
        await self._ask(request, wire.ReservedReply, deadline)

    async def next_activity(self) -> Activity:
        """Wait, without bound, until something is new in a room joined here.

        Activity nobody took is merged: one entry per room and author with the newest ``seq``.

        Raises:
            ConnectionLost: the broker has gone and everything it sent was taken.
        """
        await self._until(lambda: bool(self._activity))
        _, activity = self._activity.popitem(last=False)
        return activity

    def take_activity(self) -> list[Activity]:
        """What ``next_activity`` would give without waiting; nothing of it is given again."""
        taken = list(self._activity.values())
        self._activity.clear()
        return taken

    def _next_id(self) -> str:
        return str(next(self._request_ids))

    async def _ask(
        self,
        request: wire.Request,
        kind: type[_ReplyT],
        deadline: float | None,
    ) -> _ReplyT:
        """Send one request and wait for its reply."""
        request_id = str(request.request_id)
        try:
            body = wire.encode(request)
        except UnicodeEncodeError:
            raise Refused("bad-request", "text that is not valid Unicode") from None
        if len(body) > wire.MAX_FRAME_BYTES:
            # A frame may pass its cap although the text does not: quotes and controls take more in JSON.
            raise Refused(
                "too-large",
                "a message has at most 6 MiB of text and 8 MiB as JSON; write it to a file and post the path",
            )
        start = anyio.current_time()
        deadline = start + REQUEST_SECONDS if deadline is None else deadline
        self._replies[request_id] = None
        try:
            with anyio.CancelScope(deadline=deadline):
                await self._send(wire.frame(body))
                await self._until(lambda: self._replies[request_id] is not None)
            reply = self._replies[request_id]
        finally:
            del self._replies[request_id]
        if reply is None:
            raise RequestTimedOut(str(type(request).__struct_config__.tag), max(0.0, deadline - start))
        if isinstance(reply, wire.ErrorReply):
            raise Refused(reply.code, reply.error)
        if not isinstance(reply, kind):
            raise MalformedFrame(f"unexpected reply to request {request_id}")
        return reply

    async def _send(self, data: bytes) -> None:
        async with self._send_lock:
            if self._end is not None:
                raise self._end
            # Half a frame would spoil the connection for everybody, so a write is not cancelled, only bounded.
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _SEND_SECONDS) as scope:
                try:
                    await self._stream.send(data)
                except (anyio.ClosedResourceError, OSError):
                    # What the broker said before it closed is still to be read; reading finds the end.
                    return
            if scope.cancelled_caught:
                self._lose(None)
                await self._stream.aclose()
                raise ConnectionLost

    async def _until(self, is_there: Callable[[], bool]) -> None:
        """Return once ``is_there``; read for everybody while nobody else does.

        Raises:
            ConnectionLost, Refused: it cannot come any more.
        """
        while not is_there():
            if self._end is not None:
                raise self._end
            if self._is_read:
                await self._has_changed.wait()
                continue
            self._is_read = True
            try:
                self._take(await self._stream.receive(_READ_BYTES))
            except (anyio.EndOfStream, anyio.ClosedResourceError, OSError, WireProblem):
                self._lose(None)
            finally:
                self._is_read = False
                self._wake()

    def _take(self, data: bytes) -> None:
        """Hand out what has arrived."""
        for body in self._frames.feed(data):
            reply = wire.decode_reply(body)
            if isinstance(reply, Activity):
                self._queue(reply)
            elif reply.request_id is None:
                if isinstance(reply, wire.ErrorReply):
                    self._lose(Refused(reply.code, reply.error))
            elif reply.request_id in self._replies:
                self._replies[reply.request_id] = reply

    def _queue(self, activity: Activity) -> None:
        """Keep the newest of each room and author; under a flood the newest of each room."""
        key = (activity.room, activity.author)
        if len(self._activity) >= _MAX_QUEUED_ACTIVITY and key not in self._activity:
            key = (activity.room, "")
        known = self._activity.get(key)
        if known is None or activity.seq >= known.seq:
            self._activity[key] = activity
            self._activity.move_to_end(key)

    def _lose(self, reason: Refused | None) -> None:
        """Nothing more comes; the first reason stays."""
        if self._end is None:
            self._end = reason or ConnectionLost()
        self._wake()

    def _wake(self) -> None:
        """Let every waiter look again."""
        self._has_changed.set()
        self._has_changed = anyio.Event()
