"""One child as a tree: started, fed, read and, at the deadline at the latest, ended with all it has started.

``run_child`` returns when the whole tree is gone. The child stands under a warden (``warden.py``), a small
process of its own, which ends the tree also when this one was killed. Where it comes from: ``wardens.py``.

Five pipes lead to a child: stdin, stdout, stderr, the warden's lifeline and its status. All are read and
written here as they become ready, in chunks, so that memory stays flat however much comes out. ``on_stdout``
is called between two awaits; it may block for as long as one write to a disk.

Sizes are bytes, times seconds on the clock of ``anyio.current_time()``.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal as signals
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.lowlevel

from .errors import ChildNotStarted
from .warden import KILL_SECONDS, Launch, processes
from .wardens import start_warden

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .deadline import Deadline

__all__ = ["Cause", "ChildSpec", "Exit", "run_child"]

#: Most that is read at once and handed to ``on_stdout``; also what a pipe of Linux holds.
_CHUNK_BYTES = 64 * 2**10

#: How much of stderr is kept: enough for the last lines of a stack trace, little enough for a message.
_TAIL_BYTES = 4 * 2**10

#: Most that a pipe can still hold when its writers are gone (/proc/sys/fs/pipe-max-size for a plain user).
#: Only a process outside the tree that was handed the descriptor can write more, and is not waited for.
_PIPE_BYTES = 2**20

#: Above grace and kill, how late the warden may be with its last word before it is itself killed.
_WARDEN_SLACK_SECONDS = 0.4

#: How long a killed warden, and what it has left, may take to be gone.
_REAP_SECONDS = 0.3

#: How long a warden that has said its last word may take to end; only a very busy machine needs more than moments.
_FAREWELL_SECONDS = 1.0

#: Between two looks for what a killed warden has left.
_ROUND_SECONDS = 0.02

#: Between two looks whether the warden, which has nothing left to do, has been reaped.
_REAP_ROUND_SECONDS = 0.002

_T = TypeVar("_T")

#: Terminal sequences (CSI, OSC), taken out whole, and what else could move a cursor or reorder a line.
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)")
_LINE_END = re.compile(r"\r\n?")
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]+"
)


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run, and within what limits.

    Raises:
        ValueError: there is no program, or a limit is not a positive number (grace may be 0).
    """

    argv: tuple[str, ...]  #: the program is found through the ``PATH`` of ``env`` if it has no slash
    cwd: Path
    env: Mapping[str, str]  #: the whole environment of the child
    stdin: bytes | None  #: written whole, then closed; ``None``: closed at once
    grace_seconds: float = 1.0  #: between SIGTERM and SIGKILL
    max_output_bytes: int = 256 * 2**20  #: of stdout; over it the child is stopped

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("argv names no program")
        if not (math.isfinite(self.grace_seconds) and self.grace_seconds >= 0):
            raise ValueError(f"grace_seconds is {self.grace_seconds}")
        if self.max_output_bytes < 1:
            raise ValueError(f"max_output_bytes is {self.max_output_bytes}")


class Cause(Enum):
    """Who ended the child."""

    ENDED = "ended"  #: it ended by itself, well or badly
    STOPPED = "stopped"  #: it was stopped: the deadline, or somebody told the warden
    OVER_CAP = "over-cap"  #: it was stopped because its output went over ``max_output_bytes``


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended. ``code`` and ``signal`` are both ``None`` if it never ran or could not be ended."""

    code: int | None
    signal: int | None
    cause: Cause
    stderr_tail: str  #: the last 4 KiB; lines and tabs, but nothing else that a terminal would act on
    stdout_bytes: int  #: how many ``on_stdout`` was given
    survivors: tuple[int, ...]  #: pids that could not be killed, normally empty

    def sentence(self) -> str:
        """What to tell about it, as a clause without a full stop: ``exit 1``, ``killed by SIGSEGV``."""
        if self.cause is Cause.OVER_CAP:
            text = f"output over cap ({_size(self.stdout_bytes)})"
        elif self.cause is Cause.STOPPED:
            text = "stopped"
        elif self.signal is not None:
            text = f"killed by {_signal_name(self.signal)}"
        else:
            text = f"exit {self.code}"
        if self.survivors:
            text += f"; could not be killed: {', '.join(str(pid) for pid in self.survivors)}"
        return text


async def run_child(
    spec: ChildSpec,
    *,
    deadline: Deadline,
    on_stdout: Callable[[bytes], None],
    on_started: Callable[[int], None] | None = None,
) -> Exit:
    """Run a program to its end, or to the deadline, and leave nothing of it behind.

    ``on_stdout`` gets every byte of stdout in order, at most 64 KiB at a time. ``on_started`` gets the pid,
    once, when the program runs. What either raises stops the tree and is raised from here. What the program
    leaves running when it ends by itself is stopped too.

    At the deadline, or over the cap, the tree gets SIGTERM and after the grace SIGKILL; that is a result and
    no error. A deadline that has already passed starts nothing. A cancelled call stops the tree the same way
    before it returns. From the deadline to the return: the grace and at most 2 s.

    Raises:
        ChildNotStarted: the program cannot be executed; carries the program and the system's reason.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    if deadline.has_passed(anyio.current_time()):
        return Exit(None, None, Cause.STOPPED, "", 0, ())
    try:
        return await _run(_Child(spec, on_stdout, on_started), deadline)
    except _NoWarden:  # the supervisor died before it forked one; nothing has been started
        return await _run(_Child(spec, on_stdout, on_started, may_fork=False), deadline)


async def _run(child: _Child, deadline: Deadline) -> Exit:
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(child.attend)
            try:
                with anyio.move_on_at(deadline.at):
                    await child.gone.wait()
            finally:
                await child.finish()
    finally:
        child.close()
    return child.outcome()


class _NoWarden(ChildNotStarted):
    """There never was a warden to start the child."""


class _Child:
    """The runner's ends of the five pipes, and what has come through them so far."""

    def __init__(
        self,
        spec: ChildSpec,
        on_stdout: Callable[[bytes], None],
        on_started: Callable[[int], None] | None,
        *,
        may_fork: bool = True,
    ) -> None:
        self.gone = anyio.Event()  #: nothing more will happen
        self._spec = spec
        self._on_stdout = on_stdout
        self._on_started = on_started
        self._attending = anyio.CancelScope(shield=True)
        self._status_text = b""

        self._is_warden_known = False
        self._pid: int | None = None  # of the program; its group and its session have the same number
        self._code: int | None = None
        self._signal: int | None = None
        self._cause: Cause | None = None
        self._survivors: tuple[int, ...] = ()

        self._stdout_bytes = 0
        self._tail = b""
        self._is_stopping = False
        self._is_over_cap = False
        self._problem: Exception | None = None

        self._launch = _launch(spec)
        self._open: set[int] = set()
        theirs: list[int] = []
        try:
            stdin_r, self._stdin = self._pipe(theirs, ours=1)
            lifeline_r, self._lifeline = self._pipe(theirs, ours=1)
            self._stdout, stdout_w = self._pipe(theirs, ours=0)
            self._stderr, stderr_w = self._pipe(theirs, ours=0)
            self._status, status_w = self._pipe(theirs, ours=0)
            self._warden = start_warden(
                (stdin_r, stdout_w, stderr_w), lifeline_r, status_w, may_fork=may_fork
            )
        except OSError as problem:
            self.close()
            raise ChildNotStarted(spec.argv[0], problem.strerror or str(problem)) from problem
        finally:
            for fd in theirs:
                os.close(fd)

    async def attend(self) -> None:
        """Feed and read the child until its warden has said its last word, cancelled from outside or not."""
        with self._attending:
            async with anyio.create_task_group() as tasks:
                # What an empty pipe takes at once needs no task; most launches and prompts are that short.
                launch = self._write_now(self._lifeline, self._launch)
                if launch:
                    tasks.start_soon(self._write, self._lifeline, launch)
                stdin = self._write_now(self._stdin, self._spec.stdin or b"")
                if stdin:
                    tasks.start_soon(self._feed, stdin)
                else:
                    self._shut(self._stdin)
                tasks.start_soon(self._pump, self._stdout, self._take_stdout)
                tasks.start_soon(self._pump, self._stderr, self._take_stderr)
                await self._pump(self._status, self._take_status)
                if self._cause is None and self._problem is None:
                    await self._make_up_for_warden()
                tasks.cancel_scope.cancel()
            # The writers are gone and what they wrote is in the pipes. The end of file is not waited for: a
            # process outside the tree may have been handed a descriptor.
            _read_rest(self._stdout, self._take_stdout)
            _read_rest(self._stderr, self._take_stderr)
            self.gone.set()

    async def finish(self) -> None:
        """Have the tree stopped if it is not gone, and see the warden off; bounded, cancelled or not."""
        self._stop()
        bound = self._spec.grace_seconds + KILL_SECONDS + _WARDEN_SLACK_SECONDS
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(bound):
                await self.gone.wait()
            if not self.gone.is_set():
                # Something keeps the warden from its work, a SIGSTOP for instance. Its end ends attend.
                self._warden.kill()
                with anyio.move_on_after(_REAP_SECONDS):
                    await self.gone.wait()
            if not self.gone.is_set():
                # Somebody else holds the status pipe: its end will not come.
                self._attending.cancel()
                await self._make_up_for_warden()
            with anyio.move_on_after(_FAREWELL_SECONDS):
                while not self._warden.has_ended():  # noqa: ASYNC110 - nothing announces it
                    await anyio.sleep(_REAP_ROUND_SECONDS)

    def close(self) -> None:
        """Close every descriptor."""
        for fd in tuple(self._open):
            self._shut(fd)

    def outcome(self) -> Exit:
        """How it ended; raises what kept it from being run or read."""
        if self._problem is not None:
            raise self._problem
        cause = Cause.OVER_CAP if self._is_over_cap else self._cause or Cause.STOPPED
        return Exit(
            self._code, self._signal, cause, _harmless(self._tail), self._stdout_bytes, self._survivors
        )

    def _stop(self) -> None:
        """Tell the warden, which sees the lifeline end."""
        self._is_stopping = True
        self._shut(self._lifeline)

    async def _feed(self, left: memoryview) -> None:
        await self._write(self._stdin, left)
        self._shut(self._stdin)

    def _write_now(self, fd: int, content: bytes) -> memoryview:
        """Write what is taken without waiting; what is left."""
        left = memoryview(content)
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while left and fd in self._open:
                left = left[os.write(fd, left[:_CHUNK_BYTES]) :]
        return left

    async def _write(self, fd: int, left: memoryview) -> None:
        """Write all of it, or as much as is wanted: the other end may close, and so may this one."""
        try:
            while left and fd in self._open:
                await anyio.wait_writable(fd)
                if fd in self._open:  # it may have been closed between the wait and now
                    left = left[os.write(fd, left[:_CHUNK_BYTES]) :]
        except (BrokenPipeError, anyio.ClosedResourceError):
            pass

    async def _pump(self, fd: int, take: Callable[[bytes], bool]) -> None:
        """Hand over what comes until the end of file, or until ``take`` wants no more."""
        while True:
            await anyio.wait_readable(fd)
            chunk = os.read(fd, _CHUNK_BYTES)
            if not chunk or not take(chunk):
                return

    def _take_stdout(self, chunk: bytes) -> bool:
        if self._problem is not None:
            return False
        kept = chunk[: self._spec.max_output_bytes - self._stdout_bytes]
        if kept and not self._call(self._on_stdout, kept):
            return False
        self._stdout_bytes += len(kept)
        self._is_over_cap = len(kept) < len(chunk)
        if self._is_over_cap:
            self._stop()
        return not self._is_over_cap

    def _take_stderr(self, chunk: bytes) -> bool:
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        return True

    def _take_status(self, chunk: bytes) -> bool:
        *lines, self._status_text = (self._status_text + chunk).split(b"\n")
        for line in lines:
            match json.loads(line):
                case {"warden": int(pid), "start": str(start)}:
                    self._is_warden_known = True
                    self._warden.know(pid, start)
                case {"forked": int(pid)}:
                    self._pid = pid
                case {"started": int(pid)}:
                    if self._on_started is not None:
                        self._call(self._on_started, pid)
                case {"failed": int(number), "at": at}:
                    where = f"working directory {self._spec.cwd}: " if at == "cwd" else ""
                    self._problem = ChildNotStarted(self._spec.argv[0], where + os.strerror(number))
                case {"ended": code, "signal": number}:
                    self._code, self._signal = code, number
                case {"gone": True, "stopped": is_stopped, "survivors": pids}:
                    self._cause = Cause.STOPPED if is_stopped else Cause.ENDED
                    self._survivors = tuple(pids)
        return True

    def _call(self, listener: Callable[[_T], None], value: _T) -> bool:
        """Whether the listener took it; otherwise its error is kept to be raised when the tree is gone."""
        try:
            listener(value)
        except Exception as problem:  # whatever a listener raises is raised again once the tree is gone
            self._problem = self._problem or problem
            self._stop()
            return False
        return True

    async def _make_up_for_warden(self) -> None:
        """The warden was killed: end what still has the program's group or session, and say how that was."""
        self._cause = Cause.STOPPED if self._is_stopping else Cause.ENDED
        if self._pid is None:
            if not self._is_stopping:
                is_lost = self._warden.is_forked and not self._is_warden_known
                problem = _NoWarden if is_lost else ChildNotStarted
                self._problem = problem(self._spec.argv[0], "its warden ended first")
            return
        if self._code is None and self._signal is None:
            self._signal = int(signals.SIGKILL)  # it dies with its warden, and here
        with anyio.move_on_after(_REAP_SECONDS):
            while self._kill_orphans():  # noqa: ASYNC110 - nothing announces their end
                await anyio.sleep(_ROUND_SECONDS)
        self._survivors = self._kill_orphans()

    def _kill_orphans(self) -> tuple[int, ...]:
        """Kill what has the program's group or session; their pids.

        While a process has them, the system gives the number to no other, so these are no strangers.
        """
        orphans = [
            process.pid
            for process in processes()
            if self._pid in (process.group, process.session) and not process.is_zombie
        ]
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signals.SIGKILL)
        return tuple(orphans)

    def _pipe(self, theirs: list[int], *, ours: int) -> tuple[int, int]:
        """A pipe, read end first; end number ``ours`` does not block and is closed with the rest of ours."""
        ends = os.pipe()
        self._open.add(ends[ours])
        theirs.append(ends[1 - ours])
        os.set_blocking(ends[ours], False)
        return ends

    def _shut(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            anyio.notify_closing(fd)
            os.close(fd)


def _read_rest(fd: int, take: Callable[[bytes], bool]) -> None:
    """Hand over what a pipe holds, without waiting."""
    left = _PIPE_BYTES
    with contextlib.suppress(BlockingIOError):
        while left > 0 and (chunk := os.read(fd, _CHUNK_BYTES)) and take(chunk):
            left -= len(chunk)


def _launch(spec: ChildSpec) -> bytes:
    """What the warden is to start, as it goes through the lifeline."""
    program = spec.argv[0]
    for name in spec.env:
        if not name or "=" in name:
            raise ChildNotStarted(program, f"{name!r} cannot name a variable of the environment")
    argv = tuple(_encoded(word) for word in spec.argv)
    env = {_encoded(name): _encoded(value) for name, value in spec.env.items()}
    cwd = _encoded(str(spec.cwd.absolute()))
    if any(b"\0" in text for text in (*argv, cwd, *env, *env.values())):
        raise ChildNotStarted(program, "a null byte in its arguments, folder or environment")
    return Launch(argv, cwd, env, spec.grace_seconds).encode()


@lru_cache(maxsize=2048)
def _encoded(text: str) -> bytes:
    """As the system got it from us; what the locale does not have is from a file of ours, and so UTF-8."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")


def _harmless(tail: bytes) -> str:
    """The end of stderr as text that may be printed anywhere."""
    if len(tail) == _TAIL_BYTES:  # may begin within a character
        tail = tail.lstrip(bytes(range(0x80, 0xC0)))
    text = _SEQUENCE.sub("", tail.decode(errors="replace"))
    return _UNSAFE.sub("\ufffd", _LINE_END.sub("\n", text))


def _size(count: int) -> str:
    """A number of bytes in the largest binary unit that divides it."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} bytes"


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:  # a real-time signal, or another system's
        return f"signal {number}"
