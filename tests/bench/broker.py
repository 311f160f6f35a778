"""What a post costs the broker, against the least that must be done: the same frames sent back and as many words
to the other members, over the same kind of socket (``echo.py``).

CPU is the server's own, from the kernel's accounting (Linux), and the figure least hurt by other load.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: Rounds, broker and echo in turn.
ROUNDS = 9

#: Members of the room, who all post.
MEMBERS = 8

#: Posts one member has on the way.
WINDOW = 32

PIPELINED_WINDOWS = 12
CLOSED_POSTS = 1500

TEXT = "x" * 600


def run() -> list[tuple[str, float, float | None]]:
    """Rows of label, ratio and goal; medians over interleaved rounds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fl-", dir="/tmp")))
        home = folder / "home"
        broker = stack.enter_context(
            _server("-m", "roundtable.serve", "--home", str(home), "--grace", "60", "--ready-fd", "{}")
        )
        echo = stack.enter_context(
            _server(str(Path(__file__).with_name("echo.py")), str(folder / "echo"), "{}")
        )
        sides = [
            _Side(broker.pid, home / "roundtable" / "broker.sock", b'"type":"posted"'),
            _Side(echo.pid, folder / "echo", b'"type": "post"'),
        ]
        for side in sides:
            side.connect(is_room=side is sides[0])
        rows: dict[str, list[float]] = {}
        for turn in range(ROUNDS):
            measured = [side.measure() for side in (sides if turn % 2 else reversed(sides))]
            ours, bare = measured if turn % 2 else reversed(measured)
            for name in ours:
                rows.setdefault(name, []).append(ours[name] / bare[name] if bare[name] else float("nan"))
        for side in sides:
            side.close()
    # No goals: a limit that was read off the measurement it judges would only ever agree with it.
    return [(f"broker / echo: {name}", statistics.median(values), None) for name, values in rows.items()]


@dataclass
class _Side:
    """One server under the same load as the other."""

    pid: int
    path: Path
    mark: bytes  #: in every answer, once
    ends: list[socket.socket] = field(default_factory=list)

    def connect(self, *, is_room: bool) -> None:
        for number in range(MEMBERS):
            end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            end.connect(str(self.path))
            self.ends.append(end)
            if is_room:
                end.sendall(_frame(type="register", name=f"m{number}", requestId="r"))
                end.sendall(_frame(type="join", room="bench", requestId="j"))
                _await(end, b'"type":"joined"', 1)
        self.post = _frame(type="post", requestId="1", room="bench", text=TEXT)

    def close(self) -> None:
        for end in self.ends:
            end.close()

    def measure(self) -> dict[str, float]:
        found = {}
        count = MEMBERS * WINDOW * PIPELINED_WINDOWS
        cpu, start = _cpu_seconds(self.pid), time.perf_counter()
        for _ in range(PIPELINED_WINDOWS):
            self._windows()
        found["pipelined, wall per post"] = (time.perf_counter() - start) / count
        found["pipelined, CPU per post"] = (_cpu_seconds(self.pid) - cpu) / count

        # Alone in the loop; what the others are told stays in their sockets and is read afterwards.
        cpu, times = _cpu_seconds(self.pid), []
        for _ in range(CLOSED_POSTS):
            start = time.perf_counter()
            self.ends[0].sendall(self.post)
            _await(self.ends[0], self.mark, 1)
            times.append(time.perf_counter() - start)
        found["one poster, CPU per post"] = (_cpu_seconds(self.pid) - cpu) / CLOSED_POSTS
        found["one poster, round trip p50"] = statistics.median(times)
        found["one poster, round trip p99"] = statistics.quantiles(times, n=100)[98]
        for end in self.ends:
            _drain(end)
        return found

    def _windows(self) -> None:
        """Every member sends a window at once; return when all answers are there."""
        left = dict.fromkeys(self.ends, WINDOW)
        tails = dict.fromkeys(self.ends, b"")
        with selectors.DefaultSelector() as selector:
            for end in self.ends:
                selector.register(end, selectors.EVENT_READ)
                end.sendall(self.post * WINDOW)
            while any(left.values()):
                for key, _ in selector.select():
                    end = key.fileobj
                    assert isinstance(end, socket.socket)
                    data = tails[end] + end.recv(1 << 16)
                    left[end] -= data.count(self.mark)
                    # Short enough to hold no whole mark, long enough for the beginning of one.
                    tails[end] = data[-(len(self.mark) - 1) :]


def _frame(**keys: object) -> bytes:
    body = json.dumps(keys).encode()
    return struct.pack(">I", len(body)) + body


def _await(end: socket.socket, mark: bytes, count: int) -> None:
    tail = b""
    while count > 0:
        data = tail + end.recv(1 << 16)
        count -= data.count(mark)
        tail = data[-(len(mark) - 1) :]


def _drain(end: socket.socket) -> None:
    end.setblocking(False)
    try:
        while end.recv(1 << 16):
            pass
    except BlockingIOError:
        pass
    end.setblocking(True)


def _cpu_seconds(pid: int) -> float:
    """Time the server has computed; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0.0
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def _server(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program that says on a descriptor, put in place of ``{}``, when it serves."""
    ready, writable = os.pipe()
    command = [sys.executable, *(word.format(writable) for word in words)]
    with subprocess.Popen(command, pass_fds=(writable,), stderr=subprocess.DEVNULL) as process:
        os.close(writable)
        try:
            with os.fdopen(ready, "rb") as pipe:
                assert pipe.readline() == b"ready\n"
            yield process
        finally:
            process.terminate()
