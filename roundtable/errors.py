"""What can go wrong in rooms, as values that carry a stable code.

::

    RoundtableError                exit  code
    ├── UsageProblem               2    usage             a call or command line asks for what cannot be
    ├── WireProblem                1    wire              bytes that are not the protocol
    │   ├── FrameTooLarge               frame-too-large   a header over the cap; nothing was buffered
    │   └── MalformedFrame              malformed-frame   a frame that is not one JSON object
    ├── Refused                    1    (the wire's code) the broker answered with an error
    ├── ConnectionLost             1    connection-lost   the broker went away
    ├── RequestTimedOut            1    request-timed-out no answer in time
    ├── OutputLost                 1    output-lost       standard output takes no more
    ├── PortUnavailable            1    port-unavailable  an address that cannot be listened on
    ├── TokensUnusable             1    tokens-unusable   the file of tokens is not what it must be
    ├── MemoryFailed               1    memory-failed     the memory folder or its program cannot do it
    ├── NotStored                  1    not-stored        a change could not be made durable and was taken back
    ├── StoreUnavailable           1    store-unavailable the file of the rooms cannot be used; it was left as it is
    └── BrokerUnavailable          1    broker-unavailable no broker answers and none could be started
        ├── SocketPathTooLong           path-too-long     no socket path short enough could be found
        └── UnsafeFolder                unsafe-folder     rights or ownership that cannot be set right

Errors carry data and write their own sentence: one line, then a hint that says what to do.
"""

from __future__ import annotations

import errno
from pathlib import Path

__all__ = [
    "BrokerUnavailable",
    "ConnectionLost",
    "FrameTooLarge",
    "MalformedFrame",
    "MemoryFailed",
    "NotStored",
    "OutputLost",
    "PortUnavailable",
    "Refused",
    "RequestTimedOut",
    "RoundtableError",
    "SocketPathTooLong",
    "StoreUnavailable",
    "UnsafeFolder",
    "UsageProblem",
    "WireProblem",
]


class RoundtableError(Exception):
    """Base of all of them. ``str(error)`` is one line; ``hint`` says what to do, or is ``None``."""

    exit_code: int = 1
    code: str = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageProblem(RoundtableError):
    """A call or a command line asks for something that cannot be."""

    exit_code = 2
    code = "usage"


class WireProblem(RoundtableError):
    """Bytes that are not the protocol; the connection they came on is finished."""

    code = "wire"


class FrameTooLarge(WireProblem):
    """A frame header announced more than the cap."""

    code = "frame-too-large"

    def __init__(self, announced_bytes: int, max_bytes: int) -> None:
        super().__init__(f"frame of {announced_bytes} bytes announced; the limit is {max_bytes}")
        self.announced_bytes = announced_bytes
        self.max_bytes = max_bytes


class MalformedFrame(WireProblem):
    """A complete frame that is not one JSON object of the protocol."""

    code = "malformed-frame"

    def __init__(self, reason: str) -> None:
        super().__init__(f"failed to parse roundtable message: {reason}")
        self.reason = reason


class Refused(RoundtableError):
    """The broker answered a request with an error; ``code`` is the wire's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(RoundtableError):
    """The broker closed the connection or went away; memberships of this connection are gone."""

    code = "connection-lost"

    def __init__(self) -> None:
        super().__init__(
            "roundtable broker connection closed",
            hint="call again: a new connection is made; join the room again first",
        )


class RequestTimedOut(RoundtableError):
    """The broker did not answer in time."""

    code = "request-timed-out"

    def __init__(self, request: str, seconds: float) -> None:
        super().__init__(
            f"roundtable {request} request timed out after {round(seconds, 1):g} s",
            hint="the broker does not answer; its pid is in broker.pid beside the socket: stop it and call again",
        )
        self.request = request
        self.seconds = seconds


class OutputLost(RoundtableError):
    """Standard output takes no more: who read it has gone, or the disk it goes to is full.

    Not an ``OSError``, so that nobody between the writing and the border takes it for one of a file or a socket.
    """

    code = "output-lost"

    def __init__(self, number: int | None, reason: str) -> None:
        super().__init__(f"cannot write to standard output: {reason}")
        self.is_reader_gone = number == errno.EPIPE
        self.reason = reason


class NotStored(RoundtableError):
    """What was changed could not be written to ``path``; rooms are as they were before."""

    code = "not-stored"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}", hint="try again once that is mended")
        self.path = path
        self.reason = reason


class StoreUnavailable(RoundtableError):
    """Rooms cannot be kept in the file at ``path``, which was left as it is."""

    code = "store-unavailable"

    def __init__(self, path: Path, reason: str, *, hint: str) -> None:
        super().__init__(f"cannot keep rooms in {path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class MemoryFailed(RoundtableError):
    """The memory folder cannot be read or written, or the program that keeps it failed; what was there stays."""

    code = "memory-failed"


class PortUnavailable(RoundtableError):
    """A port of 127.0.0.1 cannot be listened on, usually because another program does."""

    code = "port-unavailable"

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(
            f"cannot listen on 127.0.0.1:{port}: {reason}",
            hint="choose another with --port, or 0 for any that is free",
        )
        self.port = port
        self.reason = reason


class TokensUnusable(RoundtableError):
    """The file of tokens cannot be read or written, or others can read it; it is left as it is."""

    code = "tokens-unusable"

    def __init__(self, path: Path, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot use the tokens in {path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason


class BrokerUnavailable(RoundtableError):
    """No broker answers at the socket and none could be started; ``socket`` is where."""

    code = "broker-unavailable"

    def __init__(self, socket: Path, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"no room broker at {socket}: {reason}", hint=hint or "see broker.log beside it")
        self.socket = socket
        self.reason = reason


class SocketPathTooLong(BrokerUnavailable):
    """Neither the home nor any fallback gives a socket path within the system's limit."""

    code = "path-too-long"


class UnsafeFolder(BrokerUnavailable):
    """A folder or socket belongs to somebody else, or its rights cannot be narrowed."""

    code = "unsafe-folder"
