"""Stand over one program: start it, and when it is to end, end everything it has started.

A process of its own, ``python -I -S warden.py LIFELINE STATUS`` with two descriptors, so that the tree ends
even when the runner was killed. Single-threaded and standard library only, because a supervisor also forks it
and calls ``stand``. Why it is built this way: docs/decisions/0002-warden.md.

The *lifeline* is a pipe whose other end only the runner holds. The launch comes in on it; after that its end
of file says "stop", whether the runner closed it or died. On the *status* pipe go lines of JSON::

    {"warden": PID, "start": "TIME"}    who stands here; only from a forked one, its runner knows the other kind
    {"forked": PID}                     the process exists, the program does not yet run in it
    {"failed": ERRNO, "at": "cwd"}      it never will; "at" is "cwd", "exec" or "fork"
    {"started": PID}                    the program runs
    {"ended": CODE, "signal": NUMBER}   the program itself has ended; one of the two is null
    {"gone": true, "stopped": false, "survivors": []}   so has all it started; always the last line

Times are seconds on the monotonic clock. Not here: deadlines, output, any import of this package.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing, or dataclasses, would double the time of a start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

__all__ = ["KILL_SECONDS", "LEFTOVER_SECONDS", "Launch", "Process", "processes", "stand", "watch"]

#: How long SIGKILL is repeated before what is left is reported as survivors: a process that cannot die
#: (in the kernel, or another user's) must not hold up the run.
KILL_SECONDS = 1.0

#: Between SIGTERM and SIGKILL for what a program leaves running when it ends by itself: its answer is
#: complete, so nobody should wait long.
LEFTOVER_SECONDS = 0.5

#: Between two looks for processes that were born while their parents were being killed.
_ROUND_SECONDS = 0.02

#: From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_IS_LINUX = sys.platform.startswith("linux")


class Launch:
    """What to start, in bytes as the system takes them. No field holds a null byte.

    ``argv`` is the program and its words; the program is found through the ``PATH`` of ``env`` if it has no
    slash. ``cwd`` is absolute, ``env`` the whole environment, ``grace_seconds`` the time between SIGTERM and
    SIGKILL when the tree is stopped.
    """

    __slots__ = ("argv", "cwd", "env", "grace_seconds")

    def __init__(
        self, argv: tuple[bytes, ...], cwd: bytes, env: Mapping[bytes, bytes], grace_seconds: float
    ) -> None:
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.grace_seconds = grace_seconds

    def encode(self) -> bytes:
        """The form on the lifeline: four bytes of length, then fields parted by null bytes."""
        pairs = [name + b"=" + value for name, value in self.env.items()]
        fields = [repr(self.grace_seconds).encode(), self.cwd, b"%d" % len(self.argv), *self.argv, *pairs]
        body = b"\0".join(fields)
        return len(body).to_bytes(4, "big") + body

    @classmethod
    def decode(cls, body: bytes) -> Launch:
        """The launch in the bytes after the length."""
        grace, cwd, count, *rest = body.split(b"\0")
        argv, pairs = rest[: int(count)], rest[int(count) :]
        env = dict(pair.split(b"=", 1) for pair in pairs)
        return cls(tuple(argv), cwd, env, float(grace))


class Process:
    """One line of the process table.

    ``start`` is when it was started, in the system's own form; with ``pid`` it names one process for good.
    ``session`` is 0 where the system does not tell.
    """

    __slots__ = ("group", "is_zombie", "parent", "pid", "session", "start")

    def __init__(
        self, pid: int, parent: int, group: int, session: int, start: str, *, is_zombie: bool
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.start = start
        self.is_zombie = is_zombie


def processes() -> list[Process]:
    """Every process that can be seen."""
    return _from_proc() if _IS_LINUX else _from_ps()


def stand(lifeline_fd: int, status_fd: int, stdio: tuple[int, int, int]) -> int:
    """Do all a warden does in a process that was forked for it: tell who it is, read its launch and ``watch``."""
    os.setsid()  # before anything is told: from here on no signal for the runner's terminal reaches it
    pid = os.getpid()
    start = _read_process(str(pid)).start if _IS_LINUX else ""
    _tell(status_fd, f'{{"warden": {pid}, "start": "{start}"}}')
    launch = _read_launch(lifeline_fd)
    return watch(launch, lifeline_fd=lifeline_fd, status_fd=status_fd, stdio=stdio) if launch else 0


def watch(
    launch: Launch, *, lifeline_fd: int, status_fd: int, stdio: tuple[int, int, int] = (0, 1, 2)
) -> int:
    """Start the program, wait for its end or the lifeline's, end what is left, and return 0.

    For the main thread of a process that has no children and does nothing else afterwards: it reaps whatever
    there is, moves into its own session and changes its signal handling. ``stdio`` is handed to the program
    and closed here, so that the other ends see when the program closes them.
    """
    _become_reaper()
    for fd in (lifeline_fd, status_fd):
        os.set_inheritable(fd, False)
    wakeup_fd = _listen_for_signals()

    tree = _Tree(wakeup_fd)
    if not tree.start(launch, stdio, status_fd):
        return 0
    is_stopped = tree.wait_for_end(lifeline_fd)
    if is_stopped:
        survivors = tree.end(launch.grace_seconds)
        tree.tell_end(status_fd)
    else:
        tree.tell_end(status_fd)
        survivors = tree.end(LEFTOVER_SECONDS)
    pids = ", ".join(str(pid) for pid in survivors)
    _tell(
        status_fd, f'{{"gone": true, "stopped": {"true" if is_stopped else "false"}, "survivors": [{pids}]}}'
    )
    return 0


class _Tree:
    """The program and everything it has started, as far as it can be found."""

    def __init__(self, wakeup_fd: int) -> None:
        self._status: int | None = None  #: as ``waitpid`` gives it; None while the program runs
        self._wakeup_fd = wakeup_fd
        self._leader = 0
        #: What was found once stays ours although its parents die; needed where there is no subreaper.
        self._known: dict[int, str] = {}

    def start(self, launch: Launch, stdio: tuple[int, int, int], status_fd: int) -> bool:
        """Fork and execute; whether the program runs. Tells either way."""
        failure_r, failure_w = os.pipe()
        warden = os.getpid()
        self._leader = os.fork()
        if self._leader == 0:
            _become_program(launch, stdio, status_fd, failure_w, warden)
        os.close(failure_w)
        for target, fd in enumerate(stdio):
            _let_go(fd, target)
        failure = os.read(failure_r, 64)  # end of file once the program runs: the descriptor closes itself
        os.close(failure_r)
        if failure:
            number, at = failure.decode().split()
            _tell(status_fd, f'{{"failed": {number}, "at": "{at}"}}')
            return False
        os.chdir("/")  # so that no folder is kept busy
        _tell(status_fd, f'{{"started": {self._leader}}}')
        return True

    def wait_for_end(self, lifeline_fd: int) -> bool:
        """Wait until the program ends (False) or is to be stopped (True). Sleeps; nothing is polled."""
        poller = select.poll()
        poller.register(lifeline_fd, select.POLLIN)
        poller.register(self._wakeup_fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poller.poll()}
            is_terminated = self._wakeup_fd in ready and signal.SIGTERM in os.read(self._wakeup_fd, 4096)
            self._reap()
            if self._status is not None:
                return False
            if is_terminated or lifeline_fd in ready:
                return True

    def end(self, grace_seconds: float) -> tuple[int, ...]:
        """SIGTERM, at most ``grace_seconds``, SIGKILL until nothing is left; pids that cannot be killed."""
        if self._is_gone():
            return ()
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process would not get the other one
        self._wait(time.monotonic() + grace_seconds)
        until = time.monotonic() + KILL_SECONDS
        while not self._is_gone():
            if time.monotonic() >= until:
                return tuple(process.pid for process in self._living() if not process.is_zombie)
            self._signal(signal.SIGKILL)
            self._wait(time.monotonic() + _ROUND_SECONDS)
        return ()

    def tell_end(self, status_fd: int) -> None:
        """Tell how the program has ended, if it has."""
        if self._status is None:
            return
        code = os.waitstatus_to_exitcode(self._status)
        told = f'"ended": {code}, "signal": null' if code >= 0 else f'"ended": null, "signal": {-code}'
        _tell(status_fd, f"{{{told}}}")

    def _wait(self, until: float) -> None:
        """Wait for the tree to be gone, at most until then."""
        poller = select.poll()
        poller.register(self._wakeup_fd, select.POLLIN)
        while not self._is_gone() and (left := until - time.monotonic()) > 0:
            # Without a subreaper the end of an orphan is not announced.
            seconds = left if _IS_LINUX else min(left, 0.05)
            if poller.poll(seconds * 1000):
                os.read(self._wakeup_fd, 4096)

    def _is_gone(self) -> bool:
        """Whether nothing is left. With a subreaper: when there is no child, as every orphan becomes one."""
        has_children = self._reap()
        if _IS_LINUX or has_children:
            return not has_children
        try:
            os.killpg(self._leader, 0)
        except ProcessLookupError:
            return not (self._known and self._living())
        except PermissionError:  # macOS says so of a group of zombies
            pass
        return not self._living()

    def _reap(self) -> bool:
        """Take the status of every child that has ended; whether there are children left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._leader:
                self._status = status

    def _signal(self, number: signal.Signals) -> None:
        """Send to every process of the tree, whole groups first: that leaves no gap for one that forks.

        A group lies within one session, and every session but the warden's own below it was made by the tree,
        so no stranger can be in one of these groups.
        """
        living = self._living()
        own = os.getpgrp()
        for group in {process.group for process in living} - {own, 0, 1}:
            _kill(os.killpg, group, number)
        for process in living:
            if process.group == own:
                _kill(os.kill, process.pid, number)

    def _living(self) -> list[Process]:
        """The processes of the tree, in no order."""
        table = processes()
        children: dict[int, list[Process]] = {}
        for process in table:
            children.setdefault(process.parent, []).append(process)
        found: dict[int, Process] = {}
        roots = [process for process in table if process.group == self._leader]
        roots += [process for process in table if self._known.get(process.pid) == process.start]
        unseen = roots + children.get(os.getpid(), [])
        while unseen:
            process = unseen.pop()
            if process.pid not in found:
                found[process.pid] = process
                unseen += children.get(process.pid, [])
        self._known = {process.pid: process.start for process in found.values()}
        return [process for process in found.values() if not process.is_zombie or _IS_LINUX]


def _become_program(
    launch: Launch, stdio: tuple[int, int, int], status_fd: int, failure_fd: int, warden: int
) -> NoReturn:
    """In the forked process: put everything as a program expects it, and execute it."""
    at = "exec"
    try:
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.setsid()
        if _IS_LINUX:
            # If the warden is killed, the program at least does not outlive it. The second look is for a
            # warden that died before the first line.
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != warden:
                os._exit(127)
        # Told from here, before a line of the program has run: it may kill the warden with its first.
        _tell(status_fd, f'{{"forked": {os.getpid()}}}')
        for target, fd in enumerate(stdio):
            os.dup2(fd, target)
        at = "cwd"
        os.chdir(launch.cwd)
        at = "exec"
        os.execvpe(launch.argv[0], launch.argv, launch.env)  # noqa: S606 - no shell: the point of it
    except OSError as problem:
        os.write(failure_fd, f"{problem.errno} {at}".encode())
    except BaseException:  # whatever it is, it must not run on as a second warden
        os.write(failure_fd, f"{errno.EINVAL} {at}".encode())
    finally:
        os._exit(127)


def _become_reaper() -> None:
    """Make every orphan below this process its child, and leave the terminal's session."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    if _IS_LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


#: The C library, loaded once: a supervisor's wardens share it.
_LIBC = ctypes.CDLL(None, use_errno=True) if _IS_LINUX else None


def _prctl(option: int, value: int) -> None:
    unused = ctypes.c_ulong(0)
    libc = _LIBC
    if libc is None:
        return
    if libc.prctl(option, ctypes.c_ulong(value), unused, unused, unused) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _listen_for_signals() -> int:
    """Have SIGCHLD and SIGTERM written to a pipe and the terminal's signals ignored; the end to read."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    return reader


def _let_go(fd: int, target: int) -> None:
    """Close one of the program's descriptors; 0 to 2 stay open on nothing, so that no pipe becomes one."""
    if fd == target:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, fd)
        os.close(null)
    else:
        os.close(fd)


def _tell(status_fd: int, line: str) -> None:
    """Write one line; short enough for a pipe to take it whole. Nobody may be there to read it."""
    with contextlib.suppress(BrokenPipeError):
        os.write(status_fd, line.encode() + b"\n")


def _kill(send: Callable[[int, int], None], target: int, number: int) -> None:
    """Send a signal to what may have ended meanwhile, or may be another user's."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(target, number)


def _from_proc() -> list[Process]:
    """The process table of Linux. Fields as in proc(5), counted after the name, which may hold anything."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the time of a start
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):  # ended meanwhile
            found.append(_read_process(name))
    return found


def _read_process(name: str) -> Process:
    """One line of the table of Linux."""
    with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
        text = file.read()
    state, parent, group, session, *rest = text[text.rindex(b")") + 2 :].split()
    start = rest[15].decode()
    return Process(int(name), int(parent), int(group), int(session), start, is_zombie=state == b"Z")


def _from_ps() -> list[Process]:
    """The process table elsewhere: slower, start times in whole seconds, no session."""
    reader, writer = os.pipe()
    pid = os.posix_spawnp(
        "ps",
        ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="],
        {"PATH": "/bin:/usr/bin", "LC_ALL": "C"},
        file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
    )
    os.close(writer)
    with open(reader, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    found = []
    for line in text.decode(errors="replace").splitlines():
        number, parent, group, state, start = line.split(None, 4)
        if int(number) != pid:
            is_zombie = state.startswith("Z")
            found.append(Process(int(number), int(parent), int(group), 0, start, is_zombie=is_zombie))
    return found


def _read_launch(lifeline_fd: int) -> Launch | None:
    """The launch; None if the runner is gone, or has changed its mind, before it was whole."""
    length = _read_exactly(lifeline_fd, 4)
    body = _read_exactly(lifeline_fd, int.from_bytes(length, "big")) if length else None
    return Launch.decode(body) if body else None


def _read_exactly(fd: int, count: int) -> bytes | None:
    parts = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _main() -> int:
    lifeline_fd, status_fd = (int(word) for word in sys.argv[1:3])
    launch = _read_launch(lifeline_fd)
    return watch(launch, lifeline_fd=lifeline_fd, status_fd=status_fd) if launch else 0


if __name__ == "__main__":
    # Without the interpreter's farewell, which would only take time: nothing is buffered here.
    os._exit(_main())
