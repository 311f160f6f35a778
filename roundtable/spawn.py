"""Find the broker that serves a home, or start one.

The socket decides who serves. An ``flock`` on ``broker.lock`` is held only while somebody looks whether the
socket is served and takes it (or removes it); the kernel lets go of it when its holder dies, so there is no
stale lock. Of several starters one becomes the broker and the others find it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from .errors import BrokerUnavailable, SocketPathTooLong, UnsafeFolder
from .home import MAX_SOCKET_PATH_BYTES, Home, check_folder, private_folder
from .store import absolute_store

__all__ = ["READY", "STORE_VARIABLE", "Claim", "claim", "ensure_broker", "is_served", "tell_starter"]

#: What a broker writes to its readiness descriptor once somebody serves the socket, be it another broker. One that
#: cannot serve writes why and what to do instead, a line each.
READY = b"ready\n"

#: Names the store of a broker that is not told one.
STORE_VARIABLE = "ROUNDTABLE_STORE"

#: A pipe takes this much in one piece (POSIX says 512 at least); a reason and a hint are cut to fit.
_MAX_TOLD_BYTES = 2048

#: How long a starter is waited for when the caller names no deadline. A start takes about 0.1 s.
_START_SECONDS = 10.0

#: How long a probe waits. Connecting to a Unix socket is answered by the kernel.
_PROBE_SECONDS = 1.0

#: How long the lock is waited for. It is held for a probe and a bind, a few milliseconds.
_LOCK_SECONDS = 5.0

#: Between two looks at a held lock; the kernel offers no bounded wait for one.
_LOCK_STEP_SECONDS = 0.01

#: Connections the kernel holds for a broker that is busy.
_BACKLOG = 1024

#: A log over this size is begun anew.
_MAX_LOG_BYTES = 1024 * 1024

#: A connect that fails with one of these has found nobody.
_NOBODY = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK, errno.ENOTDIR})

#: What a broker needs of its starter's environment. The rest stays with the starter: it may hold secrets.
_ENVIRONMENT = frozenset({"HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", STORE_VARIABLE})


@dataclass(frozen=True, slots=True)
class Claim:
    """A socket this process serves, and nobody else."""

    home: Home
    path: Path
    listener: socket.socket
    inode: tuple[int, int]  #: device and number of the socket file we made

    def release(self) -> None:
        """Stop listening; remove the socket and the files beside it if they are still ours."""
        self._remove()
        self.listener.close()

    def refuse(self, frame: bytes) -> None:
        """Stop listening like ``release``, and send ``frame`` to whoever has connected already."""
        self._remove()
        self.listener.setblocking(False)
        with suppress(OSError):  # the last one is that nobody is left
            while True:
                end, _ = self.listener.accept()
                with end, suppress(OSError):
                    end.setblocking(False)
                    end.sendall(frame)
        self.listener.close()

    def _remove(self) -> None:
        with suppress(OSError, BrokerUnavailable), _locked(self.home.lock, seconds=_PROBE_SECONDS):
            if _inode(self.path) == self.inode:
                self.path.unlink()
            if self.home.pid.read_text(encoding="utf-8").strip() == str(os.getpid()):
                for file in (self.home.pid, self.home.path_file):
                    file.unlink(missing_ok=True)


def claim(home: Home, *, path: Path | None = None) -> Claim | None:
    """Take the socket of ``home`` for this process, or give ``None`` if a broker serves it already.

    Blocks for at most some seconds. ``path`` puts the socket elsewhere than ``home`` would.

    Raises:
        BrokerUnavailable: the lock is held for too long, or the socket cannot be made.
        UnsafeFolder: rights that cannot be set, or another user's folder.
    """
    home.prepare()
    if path is None:
        path = home.default_socket()
        private_folder(path.parent)
    else:
        # A folder somebody has named is theirs to open or close, and so is what lies in it.
        check_folder(path.parent)
        if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
            raise SocketPathTooLong(
                path, f"a socket path may have {MAX_SOCKET_PATH_BYTES} bytes", hint="choose a shorter one"
            )
        if path.exists() and not path.is_socket():
            raise BrokerUnavailable(path, "something that is no socket is there", hint="choose another path")
    with _locked(home.lock, seconds=_LOCK_SECONDS):
        if any(is_served(place) for place in {home.socket(), path}):
            return None
        try:
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as problem:
            raise BrokerUnavailable(path, f"cannot replace it: {problem.strerror}") from problem
        try:
            listener.bind(os.fspath(path))
            # Nobody can have come in between: the folder is closed to others.
            path.chmod(0o600)
            _check_mode(path)
            listener.listen(_BACKLOG)
            status = path.lstat()
            _write(home.pid, f"{os.getpid()}\n")
            _write(home.path_file, f"{path}\n")
        except (OSError, BrokerUnavailable) as problem:
            listener.close()
            with suppress(OSError):
                path.unlink(missing_ok=True)
            if isinstance(problem, BrokerUnavailable):
                raise
            raise BrokerUnavailable(path, f"cannot make the socket: {problem.strerror}") from problem
        return Claim(home, path, listener, (status.st_dev, status.st_ino))


def is_served(path: Path) -> bool:
    """Whether something accepts connections at ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(os.fspath(path))
        except OSError as problem:
            # A full backlog, a missing right: somebody may be there, and the socket is not ours to take.
            return problem.errno not in _NOBODY
        return True


async def ensure_broker(home: Home, *, grace_seconds: float, deadline: float | None = None) -> Path:
    """The socket of a live broker; starts one, detached, if there is none.

    Args:
        home: whose rooms.
        grace_seconds: how long a broker started here outlives its last connection.
        deadline: a point on ``anyio.current_time()``; ``None`` is 10 s from now.

    Raises:
        BrokerUnavailable: none could be started; says what the broker's log says.
    """
    path = home.socket()
    if await _answers(path):
        return path
    if deadline is None:
        deadline = anyio.current_time() + _START_SECONDS
    home.prepare()
    log_start = _start_broker_size(home.log)
    ready, writable = os.pipe()
    try:
        try:
            await anyio.to_thread.run_sync(_start_broker, home, grace_seconds, writable)
        finally:
            os.close(writable)
        with anyio.CancelScope(deadline=deadline) as scope:
            await anyio.wait_readable(ready)
        if scope.cancelled_caught:
            raise BrokerUnavailable(path, "the broker did not start in time")
        told = os.read(ready, _MAX_TOLD_BYTES)
        if told != READY:
            raise _not_started(path, told, home.log, log_start)
    except OSError as problem:
        raise BrokerUnavailable(path, f"cannot start a broker: {problem.strerror}") from problem
    finally:
        os.close(ready)
    return home.socket()


def tell_starter(descriptor: int | None, *lines: str) -> None:
    """Let who started this broker know that somebody serves, or with ``lines`` why not and what to do."""
    if descriptor is None:
        return
    told = b"".join(
        " ".join(line.split()).encode(errors="replace")[: _MAX_TOLD_BYTES // 2 - 1] + b"\n" for line in lines
    )
    with suppress(OSError):  # the starter has left
        os.write(descriptor, told or READY)
        os.close(descriptor)


async def _answers(path: Path) -> bool:
    with anyio.move_on_after(_PROBE_SECONDS):
        try:
            stream = await anyio.connect_unix(path)
        except OSError as problem:
            return problem.errno not in _NOBODY
        await stream.aclose()
    return True


def _start_broker(home: Home, grace_seconds: float, ready: int) -> None:
    """Start a broker that belongs to nobody: own process session, no parent that must reap it."""
    command = [sys.executable, "-P", "-m", "roundtable.serve"]
    command += ["--home", os.fspath(home.root), "--grace", f"{grace_seconds:g}", "--ready-fd", str(ready)]
    log = os.open(home.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # The shell leaves at once and hands its child to init: a long-lived host keeps no dead child.
        subprocess.run(  # noqa: S603 - our own interpreter, an argument list
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(ready,),
            start_new_session=True,
            cwd="/",
            env=_environment(os.environ, home),
            check=True,
        )
    except subprocess.CalledProcessError as problem:
        raise OSError(errno.ENOEXEC, f"sh ended with status {problem.returncode}") from problem
    finally:
        os.close(log)


def _environment(environment: Mapping[str, str], home: Home) -> dict[str, str]:
    """What the broker is started with: enough to find itself, nothing else of the starter's."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in _ENVIRONMENT or name.startswith("PYTHON")
    }
    if STORE_VARIABLE in kept:
        kept[STORE_VARIABLE] = absolute_store(kept[STORE_VARIABLE])
    if home.runtime is not None:
        kept["XDG_RUNTIME_DIR"] = os.fspath(home.runtime)
    # The broker runs in another folder, and is the one this code belongs to.
    places = [str(Path(place).absolute()) for place in kept.get("PYTHONPATH", "").split(os.pathsep) if place]
    package = Path(__file__).absolute().parent.parent
    if package.name != "site-packages" and str(package) not in places:
        places.append(str(package))
    if places:
        kept["PYTHONPATH"] = os.pathsep.join(places)
    return kept


def _start_broker_size(log: Path) -> int:
    """Where the next line of the log will begin; begins it anew when it has grown large."""
    try:
        size = log.stat().st_size
        if size > _MAX_LOG_BYTES:
            os.truncate(log, 0)
            size = 0
    except OSError:
        return 0
    return size


def _not_started(path: Path, told: bytes, log: Path, log_start: int) -> BrokerUnavailable:
    reason, _, hint = told.decode(errors="replace").strip().partition("\n")
    return BrokerUnavailable(path, reason or _why(log, log_start), hint=hint or None)


def _why(log: Path, start: int) -> str:
    """What a broker that ended at once wrote, on one line."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            lines = file.read(65_536).decode(errors="replace").split("\n")
    except OSError:
        lines = []
    said = [line.strip() for line in lines if line.strip()]
    return "the broker ended at once" + (": " + " | ".join(said[-3:])[:500] if said else "")


@contextmanager
def _locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock file ``path``; wait at most ``seconds`` for it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        raise BrokerUnavailable(path, f"cannot open the lock: {problem.strerror}") from problem
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise BrokerUnavailable(
                        path, f"another process has held the lock for {seconds:g} s"
                    ) from None
                time.sleep(_LOCK_STEP_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _check_mode(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode != 0o600:
        raise UnsafeFolder(path, f"the socket's mode stays {mode:04o}")


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _write(path: Path, text: str) -> None:
    """Replace a small file as a whole."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.chmod(0o600)
    beside.replace(path)
