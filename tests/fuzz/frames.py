"""Hostile frames at a real broker: it stays, serves everybody else, answers by the contract and does not grow.

What each connection sends is a *talk*: frames good and bad, in any pieces. What must come back follows from the
contract alone: a frame that is no JSON object ends the connection and nothing after it is answered; every other frame
is answered in order, and with its own ``requestId`` if it has a usable one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Self

from roundtable.home import Home

from . import hostile

__all__ = ["Found", "run", "talk"]

#: How long anything is waited for before it counts as a hang.
_SECONDS = 30.0

#: Connections that are open at a time; each has sent something and may have left in the middle of it.
_CROWD = 40

#: Frames of one talk.
_MOST_FRAMES = 25

#: What a broker may hold more at the end than after its rooms were full once.
_MAX_GROWTH_MB = 8.0

#: Rooms and names that talks use, few, so that rooms are full early. No talk can make more than it should.
_ROOMS = ("fuzz", "R" * 64, "7", "a-b_c")
_NAMES = ("ann", "N" * 64, "0", "a.b-c_d")

_TYPES = (
    "register", "rooms", "join", "leave", "post", "fetch", "set_cursor", "digest", "reserve", "posted", "activity", "",
    "Post",
)  # fmt: skip
_KEYS = (
    "type", "requestId", "room", "text", "name", "names", "secret", "topic", "afterSeq", "limit", "seq", "budget",
    "perMessage", "peek", "others", "quiet", "replyTo", "id", "epoch", "pid", "cwd", "protocol", "x", "",
)  # fmt: skip

#: JSON that is unusual, or is none, for the place of a value.
_ODD_VALUES = (
    b"NaN", b"-Infinity", b"1e999", b"-0", b"1.0", b"01", b"+1", b"9" * 5000, b"1e5", b"9223372036854775808", b"tru",
    b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\x00"', b'"\n"',
    b"''", b'"', b"//", b"", b"\xef\xbb\xbf1",
    b"[" * 50 + b"]" * 50, b'{"a":' * 50 + b"1" + b"}" * 50, b"[" * 100_000, b"[" * 5000 + b"]" * 5000,
)  # fmt: skip

#: Deeper than this a frame may be answered or end the connection: no decoder takes any depth.
_SURE_DEPTH = 200


@dataclass(frozen=True)
class Found:
    """What a run has seen."""

    frames: int
    connections: int
    ended: int  #: connections that the broker ended, as it had to
    longest_answer_seconds: float  #: to the one who behaves well
    resident_mb: tuple[float, float]  #: after a tenth of the run, and at its end

    def __str__(self) -> str:
        before, after = self.resident_mb
        return (
            f"{self.frames} frames over {self.connections} connections, {self.ended} ended by the broker; the longest "
            f"answer to another took {self.longest_answer_seconds * 1000:.0f} ms; memory {before:.1f} -> {after:.1f} MB"
        )


@dataclass(frozen=True)
class Talk:
    """What one connection sends, and what the contract says to it."""

    stream: bytes
    frames: int  #: that are looked at
    answers: list[str | None]  #: the ids that come back, in order; ``None`` for an answer without one
    is_ended: bool  #: whether the broker must end it
    is_ended_maybe: bool = False  #: whether it may do so before it has answered all


def run(seed: int, count: int) -> Found:
    """Send at least ``count`` frames to a broker of its own.

    Raises:
        AssertionError: what must not be, with the talk that showed it.
    """
    random = Random(seed)  # noqa: S311 - it is to be repeated
    frames = connections = ended = 0
    longest = 0.0
    warm: float | None = None
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fl-", dir="/tmp"))) / "home"
        broker = stack.enter_context(_broker(home))
        crowd: list[socket.socket] = []
        stack.callback(_close, crowd)
        good = stack.enter_context(_Good(broker.path))
        while frames < count:
            one = talk(random)
            frames += one.frames
            connections += 1
            end = _connect(broker.path)
            try:
                _converse(random, end, one)
            except AssertionError as problem:
                raise AssertionError(f"{problem}\nsent: {one.stream[:2000]!r}") from None
            ended += one.is_ended
            crowd.append(end)
            if len(crowd) > _CROWD:
                crowd.pop(random.randrange(len(crowd))).close()
            if connections % 20 == 0:
                longest = max(longest, good.ask())
                assert longest < _SECONDS / 3, f"another one waited {longest:.1f} s"
            if warm is None and frames > count // 10:
                warm = broker.resident_mb()
        longest = max(longest, good.ask())
        after = broker.resident_mb()
        log = broker.log()
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:5000]
    warm = after if warm is None else warm
    assert after - warm < _MAX_GROWTH_MB, f"memory grew from {warm:.1f} to {after:.1f} MB"
    return Found(frames, connections, ended, longest, (warm, after))


def talk(random: Random) -> Talk:
    """One that begins well nine times of ten, and goes on as it likes."""
    bodies: list[bytes] = []
    if random.random() < 0.9:
        bodies.append(
            json.dumps({"type": "register", "name": random.choice(_NAMES), "requestId": "start"}).encode()
        )
    bodies += [_body(random, number) for number in range(random.randint(1, _MOST_FRAMES))]
    answers: list[str | None] = []
    stream = b""
    for number, body in enumerate(bodies):
        stream += struct.pack(">I", len(body)) + body
        data, is_sure = _read(body)
        if data is None:
            # What follows must not be answered.
            rest = b"".join(struct.pack(">I", len(later)) + later for later in bodies[number + 1 :])
            return Talk(stream + rest, number + 1, answers, is_sure, not is_sure)
        answers.append(_usable_id(data))
    kind = random.random()
    if kind < 0.1:
        header = random.choice((8 * 1024 * 1024 + 1, 2**31, 4_000_000_000, 2**32 - 1))
        return Talk(
            stream + struct.pack(">I", header) + b"x" * random.randint(0, 100), len(bodies) + 1, answers, True
        )
    if kind < 0.2:
        # Left in the middle of a header or a body, which need not be small.
        part = struct.pack(">I", random.choice((5, 1000, 8 * 1024 * 1024)))[: random.randint(1, 4)]
        part += b"x" * random.randint(0, 4) if len(part) == 4 else b""
        return Talk(stream + part, len(bodies) + 1, answers, False)
    return Talk(stream, len(bodies), answers, False)


def _body(random: Random, number: int) -> bytes:
    kind = random.random()
    if kind < 0.4:
        return json.dumps(_request(random, f"r{number}"), ensure_ascii=random.random() < 0.5).encode()
    if kind < 0.8:
        return json.dumps(_shapeless(random, f"r{number}")).encode()
    if kind < 0.93:
        return _odd(random, f"r{number}")
    if kind < 0.985:
        return _mutated(random, json.dumps(_request(random, f"r{number}")).encode())
    return random.choice(
        (
            b"",
            b"null",
            b"[]",
            b"1",
            b'"x"',
            b"{",
            b"{}",
            b" {} ",
            b"{}{}",
            random.randbytes(random.randint(0, 300)),
        )
    )


def _request(random: Random, request_id: str) -> dict[str, Any]:
    """One that makes sense, or nearly."""
    room = random.choice(_ROOMS)
    kind = random.choice(_TYPES[:9])
    keys: dict[str, dict[str, Any]] = {
        "register": {"name": random.choice(_NAMES), "protocol": random.choice((1, 2))},
        "join": {"topic": random.choice(("t", "T" * 201, "\x1b[2J")), "quiet": random.random() < 0.5},
        "post": {
            "text": hostile.text(random),
            "replyTo": random.choice((1, "1", "ann#1", "nobody#99", "x" * 100)),
            "id": random.choice(("same", f"i{random.random()}")),
        },
        "fetch": {
            "afterSeq": random.choice((0, -1, 10**9, 480)),
            "limit": random.choice((1, 5, 500, 0, 501)),
        },
        "set_cursor": {"seq": random.choice((0, -5, 3, 10**12))},
        "digest": {
            "budget": random.choice((-1, 0, 200, 2000, 10**12)),
            "perMessage": random.choice((0, 600, 10**12)),
            "peek": random.random() < 0.5,
            "afterSeq": random.choice((0, -1, 10**9)),
        },
        "reserve": {
            "names": random.choice((["x"], ["a b"], [], ["y"] * 501)),
            "secret": random.choice(("s", "")),
        },
    }
    kept = {key: value for key, value in keys.get(kind, {}).items() if random.random() < 0.8}
    return {"type": kind, "requestId": request_id, "room": room, **kept}


def _shapeless(random: Random, request_id: str) -> dict[str, Any]:
    """An object of our keys with values of any type."""
    made = {random.choice(_KEYS): _value(random, 3) for _ in range(random.randint(0, 8))}
    made |= {"type": random.choice((*_TYPES, 5, None))}
    # Wrong shapes must not make rooms that nobody asked for.
    made["room"] = random.choice((*_ROOMS, 5, None, "a/b", "x" * 65))
    made["requestId"] = random.choice(
        (request_id, request_id, request_id, "", "x" * 128, "x" * 129, 7, None, [request_id])
    )
    return made


def _value(random: Random, depth: int) -> Any:
    kind = random.randrange(9 if depth else 7)
    if kind == 7:
        return [_value(random, depth - 1) for _ in range(random.randint(0, 4))]
    if kind == 8:
        return {random.choice(_KEYS): _value(random, depth - 1) for _ in range(random.randint(0, 4))}
    scalars: tuple[Any, ...] = (
        None, random.random() < 0.5, random.randint(-(2**70), 2**70), random.random() * 1e300,
        hostile.text(random)[:50], random.randint(-2, 600), random.choice((*_NAMES, *_ROOMS)),
    )  # fmt: skip
    return scalars[kind]


def _odd(random: Random, request_id: str) -> bytes:
    """An object with something in it that JSON has rarely, or not at all."""
    value = random.choice(_ODD_VALUES)
    key = random.choice(_KEYS)
    pairs = [
        b'"type":"%b"' % random.choice(_TYPES).encode(),
        b'"requestId":"%b"' % request_id.encode(),
        b'"room":"fuzz"',
    ]
    pairs.insert(random.randint(0, 3), b'"%b":%b' % (key.encode(), value))
    if random.random() < 0.2:
        pairs.append(random.choice(pairs))
    return b"{" + b",".join(pairs) + b"}"


def _mutated(random: Random, body: bytes) -> bytes:
    data = bytearray(body)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) + 1)
        kind = random.randrange(4)
        if kind == 0:
            data[at : at + random.randint(1, 10)] = b""
        elif kind == 1:
            data[at:at] = random.randbytes(random.randint(1, 4))
        elif kind == 2:
            data[at:at] = data[random.randrange(len(data) + 1) :][:20]
        elif data:
            data[at % len(data)] ^= 1 << random.randrange(8)
    return bytes(data)


def _read(body: bytes) -> tuple[dict[str, Any] | None, bool]:
    """The object in a frame or ``None``, and whether every decoder must think so."""

    def no_constant(name: str) -> None:
        raise ValueError(name)

    depth = max(body.count(b"["), body.count(b"{"))
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=no_constant, parse_int=_integer)
    except RecursionError:
        return None, False
    except ValueError:
        return None, True
    if not isinstance(data, dict):
        return None, True
    return (data, True) if depth <= _SURE_DEPTH else (None, False)


def _integer(digits: str) -> int:
    return int(digits[:300])


def _usable_id(data: dict[str, Any]) -> str | None:
    value = data.get("requestId")
    if not isinstance(value, str) or not 1 <= len(value) <= 128 or re.search("[\ud800-\udfff]", value):
        return None
    return value


def _converse(random: Random, end: socket.socket, one: Talk) -> None:
    """Send it in pieces and look at everything that comes back."""
    at = 0
    pieces = random.choice((1, 1, 1, 3, 30))
    ends = sorted(random.randrange(len(one.stream) + 1) for _ in range(pieces - 1))
    with suppress(BrokenPipeError, ConnectionResetError):  # it may be ended before all of it is sent
        for stop in [*ends, len(one.stream)]:
            end.sendall(one.stream[at:stop])
            at = stop
    received = _frames(end)
    for number, expected in enumerate(one.answers):
        reply = next(received, None)
        if reply is None:
            assert one.is_ended_maybe, f"ended before answer {number + 1} of {len(one.answers)}"
            return
        assert reply.get("requestId") == expected, f"answer {number + 1} is {reply}, not to {expected!r}"
        if reply["type"] == "error":
            assert reply["code"], reply
            assert reply["error"], reply
    if one.is_ended:
        extra = next(received, None)
        assert extra is None, f"answered what must not run: {extra}"


def _frames(end: socket.socket) -> Iterator[dict[str, Any]]:
    """Every frame but activity, until the broker ends the connection."""
    data = b""
    while True:
        while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack_from(">I", data)[0]):
            frame = json.loads(data[4 : 4 + size])
            data = data[4 + size :]
            if frame["type"] != "activity":
                yield frame
        try:
            more = end.recv(1 << 18)
        except ConnectionResetError:
            more = b""
        except TimeoutError:
            raise AssertionError(f"no answer within {_SECONDS:g} s") from None
        if not more:
            assert not data, "ended in the middle of a frame"
            return
        data += more


def _close(ends: list[socket.socket]) -> None:
    for end in ends:
        end.close()


def _connect(path: Path) -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.settimeout(_SECONDS)
    end.connect(str(path))
    return end


class _Good:
    """Somebody who behaves, and is to be served whatever the others do."""

    def __init__(self, path: Path) -> None:
        self._end = _connect(path)
        self._replies = _frames(self._end)
        for request in ({"type": "register", "name": "good"}, {"type": "join", "room": "good"}):
            self._send(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def ask(self) -> float:
        """Post and read; how long that took."""
        started = time.monotonic()
        posted = self._send({"type": "post", "room": "good", "text": "still here"})
        found = self._send({"type": "fetch", "room": "good", "afterSeq": posted["message"]["seq"] - 1})
        assert [message["text"] for message in found["messages"]] == ["still here"], found
        return time.monotonic() - started

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps({**request, "requestId": "g"}).encode()
        self._end.sendall(struct.pack(">I", len(body)) + body)
        reply = next(self._replies, None)
        assert reply is not None, "the broker has ended the connection of one who behaves"
        assert reply["type"] != "error", reply
        return reply


@dataclass(frozen=True)
class _Broker:
    path: Path
    pid: int
    log_path: Path

    def resident_mb(self) -> float:
        if sys.platform != "linux":
            return 0.0
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 2**20

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")


@contextmanager
def _broker(home: Path) -> Iterator[_Broker]:
    """A broker in a process of its own; it must still run at the end, and end when it is told to."""
    home.mkdir(mode=0o700)
    ready, writable = os.pipe()
    command = [
        sys.executable,
        "-m",
        "roundtable.serve",
        "--home",
        str(home),
        "--grace",
        "60",
        "--ready-fd",
        str(writable),
    ]
    log = home / "log"
    with log.open("wb") as file, subprocess.Popen(command, pass_fds=(writable,), stderr=file) as process:
        os.close(writable)
        try:
            with os.fdopen(ready, "rb") as pipe:
                assert pipe.readline() == b"ready\n", log.read_text()
            yield _Broker(Home(home).socket(), process.pid, log)
            assert process.poll() is None, f"the broker ended: {log.read_text()[-2000:]}"
        finally:
            process.terminate()
            assert process.wait(_SECONDS) == 0
