"""A room during a run: seats joined, every post in the run's folder, a broker that dies replaced and refilled.

One connection per seat, one more for the conductor. Whatever is asked of the room survives the broker: the call waits
until a new broker holds what the folder holds, then goes on. Not here: what is said, and who reads what when.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from fleet.deadline import Deadline
from fleet.errors import RoomUnavailable
from fleet.runs.folder import writing
from roundtable import wire
from roundtable.client import Client, Digested, connect
from roundtable.errors import BrokerUnavailable, ConnectionLost, Refused, RequestTimedOut, RoundtableError
from roundtable.home import Home
from roundtable.message import Activity, Message
from roundtable.spawn import ensure_broker

__all__ = ["CONDUCTOR", "RunRoom"]

#: The name the orchestrating loop has in every room of a run.
CONDUCTOR = "conductor"

#: How long one request to the broker may take, seconds: the client's own default, and far above what 10,000 posts need.
_REQUEST_SECONDS = 10.0

#: How often a call is tried on a new broker. A broker that dies this often is not going to live.
_TRIES = 5

#: Grace of a broker that a run starts, seconds: enough to look into the room after the run.
_BROKER_GRACE_SECONDS = 60.0

#: How many messages one fetch asks for: all that a room keeps.
_FETCH_LIMIT = 500

T = TypeVar("T")


class RunRoom:
    """One open room of a run. Make it with ``open_room``; ``aclose`` leaves it."""

    def __init__(
        self, home: Home, room: str, topic: str | None, seats: tuple[str, ...], record: Path
    ) -> None:
        self.room = room
        self.seats = seats
        self._home = home
        self._topic = topic
        self._record_path = record
        self._secret = secrets.token_hex(16)
        self._clients: dict[str, Client] = {}
        self._epoch = ""
        self._recorded_seq = 0
        self._ids: dict[str, int] = {}  #: every recorded message and its number in the room as it now stands
        self._read: dict[str, int] = dict.fromkeys(seats, 0)
        self._generation = 0
        self._reviving = anyio.Lock()
        self._recording = anyio.Lock()
        self.began_after_seq = 0  #: what the room held before this run
        self._settled_seq = (
            0  #: up to here an activity tells of what is no news: it was there, or was said again
        )
        self._shift = 0  #: from the room's numbers to numbers that go on when a new room begins at 1

    async def open(self) -> None:
        """Find or start a broker, reserve the names and join every one of them.

        Raises:
            RoomUnavailable: no broker, or the names are held by somebody else.
        """
        with writing(self._record_path):
            self._record_path.touch(mode=0o600)
        try:
            await self._connect_again()
        except Refused as error:
            hint = error.hint
            if error.code == "reserved":
                hint = "another run holds this room; wait for it, or give the team another room"
            raise RoomUnavailable(str(error), hint=hint) from error
        except RoundtableError as error:
            raise RoomUnavailable(str(error), hint=error.hint) from error
        conductor = self._clients[CONDUCTOR]
        # A room that was there before belongs to others too; what they said before is not this run's discussion.
        joined = await conductor.join(self.room)
        self.began_after_seq = self._recorded_seq = self._settled_seq = joined.last_seq
        self._read = dict.fromkeys(self.seats, joined.last_seq)
        if joined.last_seq:
            await conductor.set_cursor(self.room, joined.last_seq)

    async def post(self, name: str, text: str) -> int:
        """Say ``text`` as ``name``; when this returns it is in the folder. Returns its sequence number."""
        post_id = uuid.uuid4().hex

        async def say() -> int:
            posted = await self._clients[name].post(self.room, text, id=post_id)
            await self._record_new()
            return self._ids.get(post_id, posted.message.seq)

        return await self._surviving(say)

    async def read_others(self, name: str, *, budget: int, per_message: int) -> tuple[str, int, int]:
        """A digest of what others posted since ``name`` last read here, and the numbers it covers: after, up to.

        The mark is kept here and not by the broker: posting moves a cursor, and must not hide what arrived meanwhile.
        """

        async def read() -> tuple[str, int, int]:
            after = self._read[name]
            digest = await self._clients[name].digest(
                self.room, budget=budget, per_message=per_message, after_seq=after, others=True
            )
            self._read[name] = max(after, digest.last_seq)
            return digest.text, after, digest.last_seq

        return await self._surviving(read)

    async def digest(self, *, budget: int, per_message: int) -> Digested:
        """The conductor's one reading of everything it has not read."""

        async def read() -> Digested:
            await self._record_new()
            return await self._clients[CONDUCTOR].digest(self.room, budget=budget, per_message=per_message)

        return await self._surviving(read)

    async def follow(self, on_news: Callable[[Activity], None]) -> None:
        """Record what anyone posts and tell ``on_news`` of it, until cancelled.

        What is said again after a lost broker is no news, and the numbers told go on as if the room were the same.
        """
        while True:

            async def listen() -> None:
                activity = await self._clients[CONDUCTOR].next_activity()
                if activity.seq:
                    await self._record_new()
                    if activity.seq > self._settled_seq:
                        on_news(Activity(activity.room, activity.author, activity.seq + self._shift))

            await self._surviving(listen)

    async def aclose(self) -> None:
        """Leave the room; the record stays."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def _surviving(self, call: Callable[[], Awaitable[T]]) -> T:
        for _ in range(_TRIES):
            async with self._reviving:  # nobody speaks in a room that is just being filled again
                generation = self._generation
            try:
                return await call()
            except ConnectionLost:
                await self._revive(generation)
            except Refused as error:
                # Ours was the membership: a refusal for want of it means that the room is another one now.
                if error.code not in {"not-a-member", "no-such-room"}:
                    raise RoomUnavailable(f"#{self.room}: {error}") from error
                await self._revive(generation)
            except (RequestTimedOut, BrokerUnavailable) as error:
                raise RoomUnavailable(str(error), hint=error.hint) from error
        raise RoomUnavailable(f"#{self.room}: the room broker died {_TRIES} times", hint="see broker.log")

    async def _revive(self, generation: int) -> None:
        """Bring the room back after a lost broker, unless somebody else just did."""
        async with self._reviving:
            if self._generation != generation:
                return
            for client in self._clients.values():
                await client.aclose()
            epoch = self._epoch
            try:
                await self._connect_again(than=epoch)
            except RoundtableError as error:
                raise RoomUnavailable(str(error), hint=error.hint) from error
            self._generation += 1

    async def _connect_again(self, *, than: str = "") -> None:
        """Connect, as often as a broker dies while that goes on; fill a room that is another ``than`` before."""
        for attempt in range(_TRIES):
            try:
                await self._connect()
                if than and self._epoch != than:
                    await self._refill()
                return
            except ConnectionLost:
                if attempt == _TRIES - 1:
                    raise

    async def _connect(self) -> None:
        deadline = Deadline.after(_REQUEST_SECONDS, now=anyio.current_time()).at
        path = await ensure_broker(self._home, grace_seconds=_BROKER_GRACE_SECONDS, deadline=deadline)
        names = (CONDUCTOR, *self.seats)
        for name in names:
            try:
                self._clients[name] = await connect(path, name=name, secret=self._secret, deadline=deadline)
            except BrokerUnavailable as error:
                # It answered a moment ago, so it has just died; that is worth another try.
                raise ConnectionLost from error
        conductor = self._clients[CONDUCTOR]
        await conductor.reserve(self.room, names, self._secret)
        for name in names:
            joined = await self._clients[name].join(self.room, topic=self._topic)
            self._epoch = joined.epoch

    async def _refill(self) -> None:
        """Say again, in order and under the same ids, what the folder holds."""
        async with self._recording:
            seen = {
                name: {id_ for id_, seq in self._ids.items() if seq <= mark}
                for name, mark in self._read.items()
            }
            ids: dict[str, int] = {}  # a broker that dies again half-way leaves what was known as it is
            others: dict[str, Client] = {}
            try:
                for message in self._recorded():
                    author = message.author.name
                    if author not in self._clients and author not in others:
                        others[author] = await self._connect_guest(author)
                    client = self._clients.get(author) or others[author]
                    again = await client.post(self.room, message.text, id=message.id)
                    ids[message.id] = again.message.seq
            finally:
                for client in others.values():
                    await client.aclose()
            self._ids = ids
            # Somebody may have spoken in the new room before us: read it from its beginning.
            newest_told = self._recorded_seq + self._shift
            self._recorded_seq = 0
            await self._fetch_new()
            self._settled_seq = self._recorded_seq
            self._shift = newest_told - self._recorded_seq
            for name, known in seen.items():
                unseen = [seq for id_, seq in self._ids.items() if id_ not in known]
                self._read[name] = min(unseen) - 1 if unseen else self._recorded_seq

    async def _connect_guest(self, name: str) -> Client:
        deadline = Deadline.after(_REQUEST_SECONDS, now=anyio.current_time()).at
        path = await ensure_broker(self._home, grace_seconds=_BROKER_GRACE_SECONDS, deadline=deadline)
        client = await connect(path, name=name, deadline=deadline)
        await client.join(self.room, is_quiet=True)
        return client

    async def _record_new(self) -> None:
        """Append to the folder whatever the room holds beyond it."""
        async with self._recording:
            await self._fetch_new()

    async def _fetch_new(self) -> None:
        while True:
            batch = await self._clients[CONDUCTOR].fetch(self.room, self._recorded_seq, limit=_FETCH_LIMIT)
            if not batch.messages:
                return
            self._append([message for message in batch.messages if message.id not in self._ids])
            for message in batch.messages:
                self._ids[message.id] = message.seq
            self._recorded_seq = batch.messages[-1].seq
            if self._recorded_seq >= batch.last_seq:
                return

    def _append(self, messages: list[Message]) -> None:
        lines = b"".join(wire.encode_message(message) + b"\n" for message in messages)
        with writing(self._record_path), open(self._record_path, "ab") as file:
            file.write(lines)

    def _recorded(self) -> list[Message]:
        with open(self._record_path, "rb") as file:
            return [msgspec.json.decode(line, type=Message) for line in file]
