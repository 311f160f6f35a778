"""A client written from the wire's description alone, and brokers to try it on."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import anyio

from roundtable.broker import Broker
from roundtable.claim import claim
from roundtable.home import Home
from roundtable.limits import Limits
from roundtable.store import RoomStore

#: How long anything here is waited for.
SECONDS = 15.0


def until(is_so: Callable[[], object], *, seconds: float = SECONDS) -> None:
    """Wait for a condition, bounded."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


async def eventually(is_so: Callable[[], object], *, seconds: float = SECONDS) -> None:
    """Wait for a condition while the loop goes on, bounded."""
    with anyio.fail_after(seconds):
        while not is_so():  # noqa: ASYNC110 - any condition, not only those that an event tells
            await anyio.sleep(0.005)


class Raw:
    """One connection, frames by hand."""

    def __init__(self, path: Path, name: str | None = None, **extra: Any) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self._read = b""
        self._count = 0
        self.activity: list[dict[str, Any]] = []
        if name is not None:
            try:
                self.registered = self.ask("register", name=name, **extra)
            except (OSError, EOFError):
                self.socket.close()
                raise
            assert self.registered["type"] == "registered", self.registered

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send_body(self, body: bytes) -> None:
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def send(self, kind: str, **keys: Any) -> str:
        self._count += 1
        request_id = f"r{self._count}"
        self.send_body(json.dumps({"type": kind, "requestId": request_id, **keys}).encode())
        return request_id

    def receive(self) -> dict[str, Any]:
        """The next frame; raises EOFError at the end."""
        head = self._exactly(4)
        data: dict[str, Any] = json.loads(self._exactly(struct.unpack(">I", head)[0]))
        return data

    def reply(self, request_id: str | None) -> dict[str, Any]:
        """The next frame that answers; activity on the way is kept."""
        while True:
            data = self.receive()
            if data["type"] == "activity":
                self.activity.append(data)
            elif data.get("requestId") == request_id:
                return data
            else:
                raise AssertionError(f"unexpected {data}")

    def ask(self, kind: str, **keys: Any) -> dict[str, Any]:
        return self.reply(self.send(kind, **keys))

    def next_activity(self) -> dict[str, Any]:
        if self.activity:
            return self.activity.pop(0)
        data = self.receive()
        assert data["type"] == "activity", data
        return data

    def is_closed(self) -> bool:
        """Whether the broker ends this connection, within the bound."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        return True

    def _exactly(self, size: int) -> bytes:
        while len(self._read) < size:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError
            self._read += data
        found, self._read = self._read[:size], self._read[size:]
        return found


@contextmanager
def broker_process(
    home: Path, *options: str, grace: float = 30.0, umask: int = -1
) -> Iterator[subprocess.Popen[bytes]]:
    """A real broker in its own process, ready when this gives it; gone afterwards."""
    ready, writable = os.pipe()
    command = [sys.executable, "-m", "roundtable.serve", "--home", str(home), "--grace", str(grace), *options]
    with subprocess.Popen(
        [*command, "--ready-fd", str(writable)], pass_fds=(writable,), stderr=subprocess.PIPE, umask=umask
    ) as process:
        os.close(writable)
        try:
            with os.fdopen(ready, "rb") as pipe:
                pipe.read()
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)


@contextmanager
def embedded_broker(
    home: Path,
    *,
    limits: Limits | None = None,
    grace: float | None = None,
    store: RoomStore | None = None,
) -> Iterator[Path]:
    """A broker in a thread of the test, with limits small enough to reach."""
    taken = claim(Home(home))
    assert taken is not None
    started = threading.Event()
    broker = Broker(store=store, limits=limits, grace_seconds=grace)

    def serve() -> None:
        broker.start(taken.listener)
        started.set()
        broker.run()
        broker.run_out()

    # A daemon, so that a broker that does not end fails its test and no more.
    thread = threading.Thread(target=serve, name=f"broker of {home}", daemon=True)
    thread.start()
    try:
        assert started.wait(SECONDS)
        yield taken.path
    finally:
        if thread.is_alive():
            broker.stop()
        thread.join(SECONDS)
        taken.release()
        assert not thread.is_alive()
