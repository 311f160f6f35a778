"""The least a Python server can do with a room's frames. What the broker is measured against.

It sends each frame back and, for each, one short frame of fixed bytes to every other connection; one write per
connection and turn of the loop. It reads nothing of what it is sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from typing import ClassVar

HEADER = struct.Struct(">I")
BUFFER = memoryview(bytearray(64 * 1024))
WORD = HEADER.pack(60) + b"." * 60


class Echo(asyncio.BufferedProtocol):
    """Cuts frames and does nothing with them."""

    everybody: ClassVar[list[Echo]] = []
    is_written_soon: ClassVar[bool] = False

    def __init__(self) -> None:
        self.pending = b""
        self.queue: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        end = transport.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024 * 1024)
        self.everybody.append(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        data, at = self.pending + BUFFER[:nbytes], 0
        while len(data) - at >= HEADER.size:
            end = at + HEADER.size + HEADER.unpack_from(data, at)[0]
            if end > len(data):
                break
            self.queue.append(data[at:end])
            for other in self.everybody:
                if other is not self:
                    other.queue.append(WORD)
            at = end
        self.pending = data[at:]
        if not Echo.is_written_soon:
            Echo.is_written_soon = True
            asyncio.get_running_loop().call_soon(write, self)


def write(first: Echo) -> None:
    """Write what everybody has waiting, the asker's answer first."""
    Echo.is_written_soon = False
    for one in [first, *Echo.everybody]:
        if one.queue:
            one.transport.write(b"".join(one.queue))  # type: ignore[attr-defined]
            one.queue = []


async def serve(path: str, ready: int) -> None:
    server = await asyncio.get_running_loop().create_unix_server(Echo, path)
    os.write(ready, b"ready\n")
    os.close(ready)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
