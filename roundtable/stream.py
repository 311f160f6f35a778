"""A connection to a Unix socket as a stream of bytes, for asyncio and trio: what a client needs of one.

Waiting can be cancelled at any moment and loses nothing. The stream of anyio is not used, because on asyncio it hands
``Future.set_result`` itself to the loop: data that arrive in the turn in which the reading is cancelled then show as a
traceback. The callbacks of ``anyio.wait_readable`` and ``wait_writable`` bear that.

Not here: frames (``wire``), requests and deadlines (``client``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel

__all__ = ["UnixStream", "connect_unix"]

#: Between two attempts to connect while the listener's backlog is full; the kernel tells nobody when it no longer is.
_RETRY_SECONDS = 0.01


async def connect_unix(path: Path) -> UnixStream:
    """Connect to the listener at ``path``; wait, without bound, as long as its backlog is full.

    Raises:
        OSError: nobody listens there, or this user may not connect.
    """
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        end.setblocking(False)
        while True:
            try:
                end.connect(os.fspath(path))
            except BlockingIOError:
                await anyio.sleep(_RETRY_SECONDS)
            else:
                return UnixStream(end)
    except BaseException:  # also when cancelled: nobody else knows of this socket yet
        end.close()
        raise


class UnixStream:
    """One end of a connection. At most one task may receive and one may send at a time."""

    def __init__(self, end: socket.socket) -> None:
        """Take over ``end``, which is connected and does not block."""
        self._end = end
        self._is_closing = False
        self._waiting = 0

    async def receive(self, max_bytes: int) -> bytes:
        """Wait for bytes; at least one and at most ``max_bytes``.

        Raises:
            anyio.EndOfStream: the other end has closed.
            anyio.ClosedResourceError: this end was closed, before or while waiting.
            OSError: the connection is broken.
        """
        await anyio.lowlevel.checkpoint()
        while True:
            self._check_open()
            try:
                data = self._end.recv(max_bytes)
            except BlockingIOError:
                await self._wait(anyio.wait_readable)
                continue
            if not data:
                raise anyio.EndOfStream
            return data

    async def send(self, data: bytes) -> None:
        """Write all of ``data``. A part of it may have gone when this is cancelled.

        Raises:
            anyio.ClosedResourceError: this end was closed, before or while waiting.
            OSError: the connection is broken.
        """
        await anyio.lowlevel.checkpoint()
        rest = memoryview(data)
        while rest:
            self._check_open()
            try:
                rest = rest[self._end.send(rest) :]
            except BlockingIOError:
                await self._wait(anyio.wait_writable)

    async def aclose(self) -> None:
        """Close; whoever waits gets ``ClosedResourceError``. Can be called again."""
        if self._is_closing:
            return
        self._is_closing = True
        with suppress(OSError):  # the other end may have gone first
            self._end.shutdown(socket.SHUT_RDWR)
        anyio.notify_closing(self._end)
        self._close_unless_waited_for()
        await anyio.lowlevel.checkpoint()

    def _check_open(self) -> None:
        # The closing may have come after the wait was over and before its task went on.
        if self._is_closing:
            raise anyio.ClosedResourceError

    async def _wait(self, wait: Callable[[socket.socket], Awaitable[None]]) -> None:
        self._waiting += 1
        try:
            await wait(self._end)
        finally:
            self._waiting -= 1
            if self._is_closing:
                self._close_unless_waited_for()

    def _close_unless_waited_for(self) -> None:
        # The number of a closed socket goes to the next that is opened. Who still waits would take that one's
        # registration with the loop away when it goes on, so the last to leave closes.
        if not self._waiting:
            self._end.close()
