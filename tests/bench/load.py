"""Members of one room, as many as asked for, in one process: what a server of the wire is loaded with.

They look for marks in what they read and decode nothing, so that the load is never the slower side for long. CPU is
the server's own; wall times hold the load's share as well.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

__all__ = ["TEXT", "Crew", "framed"]

#: What is posted.
TEXT = "x" * 600

#: How long a server may leave a member waiting before the measurement has failed.
_SECONDS = 60.0

_POSTED = b'"type":"posted"'
_ACTIVITY = b'"type":"activity"'
_LAST_SEQ = re.compile(rb'.*"seq":([0-9]+)[,}]', re.DOTALL)

#: Looked at of what a listener reads; holds a whole activity.
_TAIL_BYTES = 512

_READ_BYTES = 1 << 16
_FETCHED = memoryview(bytearray(1 << 20))


def framed(**keys: object) -> bytes:
    """One frame, as compact as clients write it."""
    body = json.dumps(keys, separators=(",", ":")).encode()
    return struct.pack(">I", len(body)) + body


class Crew:
    """Members of a room that was not there before. The first of them post, the others read."""

    def __init__(self, path: Path, *, room: str, members: int, posters: int = 8, silent: int = 0) -> None:
        self.room = room
        self.post = framed(type="post", requestId="1", room=room, text=TEXT)
        self.ends: list[socket.socket] = []
        self.selector = selectors.DefaultSelector()
        for number in range(members):
            self._join(path, number)
        self.posters = self.ends[:posters]
        self.readers = self.ends[: members - silent]
        silent_ends = self.ends[members - silent :]
        self.posted = 0
        self.drain()
        for end in silent_ends:
            self.selector.unregister(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.selector.close()
        for end in self.ends:
            end.close()

    def _join(self, path: Path, number: int) -> None:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.settimeout(_SECONDS)
        end.connect(str(path))
        self.ends.append(end)
        end.sendall(framed(type="register", name=f"m{number}", pid=1, cwd="/", requestId="r"))
        _await(end, b'"type":"registered"')
        end.sendall(framed(type="join", room=self.room, requestId="j"))
        _await(end, b'"type":"joined"')
        end.setblocking(False)
        self.selector.register(end, selectors.EVENT_READ)
        # Who is in the room already reads what it is told, as members do.
        if number % 50 == 0:
            self.drain()

    def drain(self) -> None:
        """Read what has arrived until nothing more does for a moment."""
        while ready := self.selector.select(0.02):
            for key, _ in ready:
                _read(_end(key))

    def pipelined(self, posts: int, *, window: int = 32) -> None:
        """Every poster sends a window at once, when all are answered the next; all others read."""
        left = dict.fromkeys(self.posters, 0)
        tails = dict.fromkeys(self.posters, b"")
        for _ in range(posts // (window * len(self.posters))):
            self._send_windows(left, window)
            self._until(lambda: not any(left.values()), lambda end: _count(end, left, tails))

    def flood(self, posts: int) -> None:
        """All posts on their way at once, answers and activity read as they come."""
        share = posts // len(self.posters)
        left = dict.fromkeys(self.posters, share)
        tails = dict.fromkeys(self.posters, b"")
        unsent = {end: memoryview(self.post * share) for end in self.posters}
        while any(left.values()):
            for end, data in unsent.items():
                with suppress(BlockingIOError):
                    unsent[end] = data[end.send(data[: 1 << 18]) :] if data else data
            for key, _ in self.selector.select(0 if any(unsent.values()) else _SECONDS):
                _count(_end(key), left, tails)

    def closed(self, posts: int) -> list[float]:
        """Every poster sends one post and, answered, the next. The seconds each took."""
        took: list[float] = []
        left = dict.fromkeys(self.posters, posts // len(self.posters))
        tails = dict.fromkeys(self.posters, b"")
        sent: dict[socket.socket, float] = {}

        def next_post(end: socket.socket) -> None:
            before = left.get(end)
            _count(end, left, tails)
            if before is not None and left[end] < before:
                took.append(time.perf_counter() - sent[end])
                if left[end]:
                    sent[end] = time.perf_counter()
                    end.sendall(self.post)

        for end in self.posters:
            sent[end] = time.perf_counter()
            end.sendall(self.post)
        self._until(lambda: not any(left.values()), next_post)
        return took

    def alone(self, posts: int) -> tuple[list[float], list[float]]:
        """One poster, one listener: the seconds to the answer, and to the other's activity, of each post."""
        poster, listener = self.ends[0], self.ends[1]
        answered: list[float] = []
        told: list[float] = []
        with selectors.DefaultSelector() as both:
            both.register(poster, selectors.EVENT_READ)
            both.register(listener, selectors.EVENT_READ)
            for number in range(posts):
                is_answered = is_told = False
                start = time.perf_counter()
                poster.sendall(self.post)
                while not (is_answered and is_told):
                    for key, _ in both.select(_SECONDS):
                        data = _read(_end(key))
                        seconds = time.perf_counter() - start
                        if key.fileobj is poster and _POSTED in data:
                            is_answered = True
                            answered.append(seconds)
                        elif key.fileobj is listener and _ACTIVITY in data:
                            is_told = True
                            told.append(seconds)
                if number % 100 == 99:
                    self.drain()
        return answered, told

    def fetches(self, count: int) -> list[float]:
        """The seconds each fetch of all that is retained took."""
        end, took = self.ends[0], []
        request = framed(type="fetch", requestId="f", room=self.room, afterSeq=0, limit=500)
        self.drain()
        end.settimeout(_SECONDS)
        for _ in range(count):
            start = time.perf_counter()
            end.sendall(request)
            _one_frame(end)
            took.append(time.perf_counter() - start)
        end.setblocking(False)
        return took

    def crowded(self, posts: int, *, window: int = 32) -> float:
        """Post as ``pipelined`` does, waiting for no reader; the longest that any waited to hear of a window's last
        post, in seconds from when the window was sent.
        """
        size = window * len(self.posters)
        left = dict.fromkeys(self.posters, 0)
        tails = dict.fromkeys(self.readers, b"")
        listeners = dict.fromkeys(self.readers[len(self.posters) :], 0)  # windows of which each has heard
        starts: list[float] = []
        first, longest = self.posted, 0.0

        def look(end: socket.socket) -> None:
            nonlocal longest
            data = _count(end, left, tails)
            heard = listeners.get(end)
            if heard is None:
                return
            found = _LAST_SEQ.search(data, max(0, len(data) - _TAIL_BYTES))
            windows = (int(found[1]) - first) // size if found else 0
            if windows > heard:
                longest = max(longest, time.perf_counter() - starts[heard])
                listeners[end] = windows

        for _ in range(posts // size):
            starts.append(time.perf_counter())
            self._send_windows(left, window)
            self._until(lambda: not any(left.values()), look)
        self._until(lambda: min(listeners.values(), default=len(starts)) == len(starts), look)
        return longest

    def _send_windows(self, left: dict[socket.socket, int], window: int) -> None:
        for end in self.posters:
            left[end] = window
            end.sendall(self.post * window)
        self.posted += window * len(self.posters)

    def _until(self, is_done: Callable[[], bool], look: Callable[[socket.socket], object]) -> None:
        while not is_done():
            ready = self.selector.select(_SECONDS)
            assert ready, "the server is silent"
            for key, _ in ready:
                look(_end(key))


def _count(end: socket.socket, left: dict[socket.socket, int], tails: dict[socket.socket, bytes]) -> bytes:
    """Read, and take the answers among it from what is ``left``. What was read, behind the end of what was before."""
    data = _read(end)
    tail = tails.get(end)
    if tail is None:
        return data
    data = tail + data
    if end in left:
        left[end] -= data.count(_POSTED)
        # Short enough to hold no whole mark, long enough for the beginning of one.
        tails[end] = data[1 - len(_POSTED) :]
    else:
        tails[end] = data[-_TAIL_BYTES:]
    return data


def _read(end: socket.socket) -> bytes:
    data = end.recv(_READ_BYTES)
    assert data, "the server has closed a connection"
    return data


def _end(key: selectors.SelectorKey) -> socket.socket:
    assert isinstance(key.fileobj, socket.socket)
    return key.fileobj


def _await(end: socket.socket, mark: bytes) -> None:
    data = b""
    while mark not in data:
        data += _read(end)


def _one_frame(end: socket.socket) -> memoryview:
    """The next frame, in a buffer that the next call uses again."""
    size = wanted = 4
    at = 0
    while at < wanted:
        at += end.recv_into(_FETCHED[at:])
        if at >= size:
            wanted = size + struct.unpack_from(">I", _FETCHED)[0]
    return _FETCHED[size:wanted]
