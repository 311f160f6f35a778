"""Where wardens come from: forked by the run's supervisor, or else each started as a process of its own.

``async with supervised():`` starts the supervisor; every child that is started within it is forked there. A
supervisor that was killed is replaced at the next child; its wardens go on without it. Where it cannot be used, a
warden is started by itself, which is slower and does the same.

Not here: what is said to a warden and what it tells (``process.py``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio

from .warden import processes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Warden", "start_warden", "supervised"]

_WARDEN = str(Path(__file__).with_name("warden.py"))
_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))

#: How long a supervisor whose socket has ended may take to end itself, seconds; it has nothing else to do.
_FAREWELL_SECONDS = 1.0

#: Between two looks whether it has.
_ROUND_SECONDS = 0.002


class Warden(Protocol):
    """One warden as the runner knows it."""

    #: Whether somebody else forks it, who may have died before that.
    is_forked: bool

    def know(self, pid: int, start: str) -> None:
        """It told who it is; together the two name one process for good."""
        ...

    def kill(self) -> None:
        """Kill it, if it is still there."""
        ...

    def has_ended(self) -> bool:
        """Whether nothing is left to be reaped here."""
        ...


def start_warden(
    stdio: tuple[int, int, int], lifeline_fd: int, status_fd: int, *, may_fork: bool = True
) -> Warden:
    """A warden that reads its launch from ``lifeline_fd``. The descriptors stay open here.

    A supervisor that dies before it has forked is seen by the end of the status, without a word on it; then ask
    again with ``may_fork`` off.

    Raises:
        OSError: no process can be started.
    """
    supervisor = _supervisor.get()
    if may_fork and supervisor is not None:
        with contextlib.suppress(OSError):
            return supervisor.fork([*stdio, lifeline_fd, status_fd])
    return _Started(stdio, lifeline_fd, status_fd)


@asynccontextmanager
async def supervised() -> AsyncIterator[None]:
    """Have wardens forked by one process for as long as this lasts; it is gone afterwards."""
    supervisor = _Supervisor()
    token = _supervisor.set(supervisor)
    try:
        yield
    finally:
        _supervisor.reset(token)
        with anyio.CancelScope(shield=True):
            await supervisor.aclose()


class _Supervisor:
    """The runner's end of the supervisor's socket. It is started at once: it boots while the run prepares."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        with contextlib.suppress(OSError):
            self._start()

    def fork(self, descriptors: list[int]) -> Warden:
        """Ask for a warden; a supervisor that is gone is replaced once.

        Raises:
            OSError: it cannot be asked.
        """
        try:
            self._ask(descriptors)
        except (BrokenPipeError, ConnectionResetError):
            self._start()
            self._ask(descriptors)
        return _Forked()

    async def aclose(self) -> None:
        """Let it end, and see it off; bounded."""
        if self._socket is not None:
            self._socket.close()
        if self._process is None:
            return
        with anyio.move_on_after(_FAREWELL_SECONDS):
            while self._process.poll() is None:  # noqa: ASYNC110 - nothing announces it
                await anyio.sleep(_ROUND_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _ask(self, descriptors: list[int]) -> None:
        if self._socket is None:
            raise BrokenPipeError
        # A supervisor that does not keep up (stopped, say) must not hold up the runner: the socket does not block.
        socket.send_fds(self._socket, [b"w"], descriptors)

    def _start(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.poll()
        ours, theirs = socket.socketpair()
        with theirs:
            ours.setblocking(False)
            self._socket = ours
            self._process = subprocess.Popen(  # noqa: S603 - no shell; the words are ours
                [sys.executable, "-I", "-S", _SUPERVISOR, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )


class _Forked:
    """A warden of the supervisor's, which reaps it. Its number may be another's once it has ended."""

    is_forked = True

    def __init__(self) -> None:
        self._pid: int | None = None
        self._start = ""

    def know(self, pid: int, start: str) -> None:
        self._pid, self._start = pid, start

    def kill(self) -> None:
        if any(process.pid == self._pid and process.start == self._start for process in processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid or 0, signal.SIGKILL)

    def has_ended(self) -> bool:
        return True


class _Started:
    """A warden that is a child of the runner."""

    is_forked = False

    def __init__(self, stdio: tuple[int, int, int], lifeline_fd: int, status_fd: int) -> None:
        stdin, stdout, stderr = stdio
        self._process = subprocess.Popen(  # noqa: S603 - no shell; the words are ours
            [sys.executable, "-I", "-S", _WARDEN, str(lifeline_fd), str(status_fd)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(lifeline_fd, status_fd),
            start_new_session=True,
        )

    def know(self, pid: int, start: str) -> None:
        """It is known since it was started."""

    def kill(self) -> None:
        self._process.kill()

    def has_ended(self) -> bool:
        return self._process.poll() is not None


#: The supervisor of the run that the current task belongs to. A variable of the context and no argument: between a
#: run and a child stand agents of every kind, which have no other business with processes.
_supervisor: ContextVar[_Supervisor | None] = ContextVar("supervisor", default=None)
