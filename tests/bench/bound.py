"""The least that must be done for a room, in Python: what the broker is measured against without a C compiler.

The same work as ``bound.c``: session, members, id, sequence, a ring of 500, the whole message back, one activity to
each other member, one write per connection and turn of the loop. Nothing is checked and nothing has a limit.

    python bound.py SOCKET READY_FD
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import struct
import sys
import time
from collections import deque
from typing import Any, ClassVar

HEADER = struct.Struct(">I")
BUFFER = memoryview(bytearray(64 * 1024))
RING = 500


class Room:
    """Members, the newest messages in their wire form, and a cursor per name."""

    all: ClassVar[dict[str, Room]] = {}

    def __init__(self) -> None:
        self.epoch = f"{next(Connection.numbers):016x}"
        self.last_seq = 0
        self.ring: deque[tuple[str, str]] = deque(maxlen=RING)
        self.members: dict[Connection, int] = {}
        self.cursors: dict[str, int] = {}

    @property
    def first_seq(self) -> int:
        return self.last_seq - len(self.ring) + 1


class Connection(asyncio.BufferedProtocol):
    """One client: a name, a session, what has not come as a whole and what is not written yet."""

    numbers: ClassVar[itertools.count[int]] = itertools.count(1)
    queued: ClassVar[dict[Connection, None]] = {}

    def __init__(self) -> None:
        self.pending = b""
        self.out: list[bytes] = []
        self.name = self.session = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        end = transport.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024 * 1024)

    def connection_lost(self, exc: Exception | None) -> None:
        self.queued.pop(self, None)
        for name, room in Room.all.items():
            if room.members.pop(self, None) is not None:
                self.tell(name, room, "(left)", 0)

    def get_buffer(self, sizehint: int) -> memoryview:
        return BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        data, at = self.pending + bytes(BUFFER[:nbytes]), 0
        while len(data) - at >= HEADER.size:
            end = at + HEADER.size + HEADER.unpack_from(data, at)[0]
            if end > len(data):
                break
            self.answer(json.loads(data[at + HEADER.size : end]))
            at = end
        self.pending = data[at:]

    def answer(self, request: dict[str, Any]) -> None:
        kind, id_ = request["type"], request["requestId"]
        if kind == "register":
            self.name, self.session = request["name"], f"{next(self.numbers):016x}"
            self.reply("registered", requestId=id_, sessionId=self.session, broker="bound", protocol=1)
            return
        name = request["room"]
        room = Room.all.get(name) or Room.all.setdefault(name, Room())
        if kind == "join":
            self.join(id_, name, room)
        elif kind == "post":
            self.post(id_, name, room, request["text"])
        elif kind == "fetch":
            after, limit = request["afterSeq"], request.get("limit", 200)
            skip = max(0, after - room.first_seq + 1)
            found = ",".join(encoded for _, encoded in itertools.islice(room.ring, skip, skip + limit))
            self.send(
                f'{{"type":"messages","requestId":"{id_}","room":"{name}","firstSeq":{room.first_seq},'
                f'"lastSeq":{room.last_seq},"cursor":{room.cursors.get(self.name, 0)},"messages":[{found}]}}'
            )

    def join(self, id_: str, name: str, room: Room) -> None:
        is_new = self not in room.members
        if is_new:
            room.members[self] = time.time_ns() // 1_000_000
        cursor = room.cursors.get(self.name, 0)
        self.reply(
            "joined",
            requestId=id_,
            room=name,
            epoch=room.epoch,
            cursor=cursor,
            lastSeq=room.last_seq,
            unread=room.last_seq - max(cursor, room.first_seq - 1),
            sharedWith=sum(member.name == self.name for member in room.members) - 1,
            members=[
                {"sessionId": member.session, "name": member.name, "joinedAt": at}
                for member, at in room.members.items()
            ],
        )
        if is_new:
            self.tell(name, room, self.name, 0)

    def post(self, id_: str, name: str, room: Room, text: str) -> None:
        start = max(room.cursors.get(self.name, 0), room.first_seq - 1)
        unread = 0
        for (author, _), _ in zip(reversed(room.ring), range(room.last_seq - start), strict=False):
            unread += author != self.name
        room.last_seq += 1
        room.cursors[self.name] = room.last_seq
        message = json.dumps(
            {
                "id": f"bound-{room.last_seq:x}",
                "seq": room.last_seq,
                "timestamp": time.time_ns() // 1_000_000,
                "room": name,
                "from": {"sessionId": self.session, "name": self.name},
                "text": text,
            }
        )
        room.ring.append((self.name, message))
        self.send(f'{{"type":"posted","requestId":"{id_}","unreadBefore":{unread},"message":{message}}}')
        self.tell(name, room, self.name, room.last_seq)

    def tell(self, name: str, room: Room, author: str, seq: int) -> None:
        frame = framed(f'{{"type":"activity","room":"{name}","from":"{author}","seq":{seq}}}')
        for member in room.members:
            if member is not self:
                member.queue(frame)

    def reply(self, kind: str, **keys: object) -> None:
        self.send(json.dumps({"type": kind, **keys}))

    def send(self, body: str) -> None:
        self.queue(framed(body))

    def queue(self, frame: bytes) -> None:
        if not self.queued:
            asyncio.get_running_loop().call_soon(write)
        self.queued[self] = None
        self.out.append(frame)


def framed(body: str) -> bytes:
    data = body.encode()
    return HEADER.pack(len(data)) + data


def write() -> None:
    """Write what everybody has waiting, in the order in which it was queued."""
    for one in Connection.queued:
        one.transport.write(b"".join(one.out))
        one.out = []
    Connection.queued.clear()


async def serve(path: str, ready: int) -> None:
    server = await asyncio.get_running_loop().create_unix_server(Connection, path, backlog=1024)
    os.write(ready, b"ready\n")
    os.close(ready)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
