"""One program run to its end, or to a deadline, and ended with all it has started.

For git and for an external program that keeps the memory. A program gets a process group and a session of its own
and a mark in its environment, which whatever it starts inherits. When it ends, or is given up, the group and every
process that carries the mark is killed. Only Linux lets others' environments be read; elsewhere what has left the group
stays.

Not here: what is run and what its output means (``backend``, ``history``).
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from secrets import token_hex

import anyio
from anyio.abc import ByteReceiveStream, Process

__all__ = ["Cause", "Ended", "NotStarted", "run_program"]

#: What is kept of stderr, from its end.
_STDERR_BYTES = 4096

#: Between SIGTERM and SIGKILL.
_GRACE_SECONDS = 1.0

#: How long killed processes may take to be gone; one that the kernel holds is not waited for longer.
_KILL_SECONDS = 2.0

#: How long what a program has written may take to be read once it and all it started have ended.
_DRAIN_SECONDS = 1.0

#: Between two looks for processes that are left.
_LOOK_SECONDS = 0.02

#: The name of the mark.
_MARK = "ROUNDTABLE_MEMORY_CALL"

_PROCESSES = Path("/proc")

_SEQUENCE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")


class NotStarted(Exception):
    """A program could not be executed; ``str`` is the system's reason."""


class Cause(Enum):
    """Who ended a program."""

    ITSELF = "itself"
    DEADLINE = "deadline"
    OUTPUT = "output"  #: it wrote more than was wanted


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    cause: Cause
    code: int | None  #: ``None`` unless it ended by itself and no signal did
    signal: int | None
    stderr: str  #: its end, at most 4 KiB

    @property
    def is_success(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.cause is Cause.ITSELF and self.code == 0


async def run_program(
    words: tuple[str, ...],
    *,
    cwd: Path,
    deadline: float,
    environment: Mapping[str, str],
    given: bytes = b"",
    on_stdout: Callable[[bytes], bool],
) -> Ended:
    """Run ``words`` without a shell, at most until ``deadline`` (on ``anyio.current_time()``).

    ``on_stdout`` gets what it writes, in order, and says whether more is wanted; it must not raise. A cancelled call
    ends the program first.

    Raises:
        NotStarted: there is no such program, or it cannot be executed in ``cwd``.
    """
    mark = token_hex(16)
    try:
        process = await anyio.open_process(
            words, cwd=cwd, env={**environment, _MARK: mark}, start_new_session=True
        )
    except (OSError, ValueError) as problem:
        raise NotStarted(getattr(problem, "strerror", None) or str(problem)) from problem
    errors = bytearray()

    scope = anyio.CancelScope(deadline=deadline)
    is_over = False

    def keep(data: bytes) -> None:
        errors.extend(data)
        del errors[:-_STDERR_BYTES]

    def take(data: bytes) -> None:
        nonlocal is_over
        if not is_over and not on_stdout(data):
            is_over = True
            scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, process, given)
            tasks.start_soon(_pump, process.stdout, take)
            tasks.start_soon(_pump, process.stderr, keep)
            with scope:
                await process.wait()
            await _end(process, mark)
            # A process outside the tree may hold a pipe: the end of file is waited for, but not for long.
            tasks.cancel_scope.deadline = anyio.current_time() + _DRAIN_SECONDS
    finally:
        with anyio.CancelScope(shield=True):  # every wait in here is bounded
            await _end(process, mark)
            if process.returncode is not None:
                await process.aclose()
    code = process.returncode
    stderr = _SEQUENCE.sub(b"", bytes(errors)).decode(errors="replace")
    if is_over:
        return Ended(Cause.OUTPUT, None, None, stderr)
    if scope.cancelled_caught or code is None:
        return Ended(Cause.DEADLINE, None, None, stderr)
    return Ended(Cause.ITSELF, code if code >= 0 else None, -code if code < 0 else None, stderr)


async def _feed(process: Process, given: bytes) -> None:
    if process.stdin is not None:
        # A program may end, or close its input, without having read all of it.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            if given:
                await process.stdin.send(given)
            await process.stdin.aclose()


async def _pump(stream: ByteReceiveStream | None, take: Callable[[bytes], None]) -> None:
    if stream is not None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for data in stream:
                take(data)


async def _end(process: Process, mark: str) -> None:
    """End what is left of the program and of what it has started."""
    pid = process.pid
    if process.returncode is None:
        _signal(pid, mark, signal.SIGTERM)
        with anyio.move_on_after(_GRACE_SECONDS):
            await process.wait()
    end = time.monotonic() + _KILL_SECONDS
    while _signal(pid, mark, signal.SIGKILL) and time.monotonic() < end:  # noqa: ASYNC110 - no event tells of it
        await anyio.sleep(_LOOK_SECONDS)
    with anyio.move_on_after(_KILL_SECONDS):
        await process.wait()


def _signal(leader: int, mark: str, number: signal.Signals) -> bool:
    """Send ``number`` to the group and to all who carry the mark; whether there was anybody."""
    found = False
    for pid in _living(leader, mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            found = True
    with suppress(ProcessLookupError, PermissionError):  # macOS denies it for a group of zombies
        os.killpg(leader, number)
        # Where the table of processes can be read it knows better: a zombie takes signals, too.
        found = found or not _PROCESSES.is_dir()
    return found


def _living(leader: int, mark: str) -> list[int]:
    """The processes of the group and those whose environment has the mark; none where the system hides them."""
    entry = f"{_MARK}={mark}".encode()
    found: list[int] = []
    with suppress(OSError):
        for name in os.listdir(_PROCESSES):  # noqa: PTH208 - names are all that is needed, of every process
            if not name.isdigit():
                continue
            with suppress(OSError):  # another user's, or ended meanwhile
                # Fields as in proc(5), counted after the name, which may hold anything.
                state, _, group, *_ = (_PROCESSES / name / "stat").read_bytes().rpartition(b")")[2].split()
                if state == b"Z":
                    continue
                if int(group) == leader or entry in (_PROCESSES / name / "environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found
