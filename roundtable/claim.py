"""Take the socket of a home for this process, so that nobody else does.

The socket decides who serves. An ``flock`` on ``broker.lock`` is held only while somebody looks whether the
socket is served and takes it (or removes it); the kernel lets go of it when its holder dies, so there is no
stale lock.

Only what a broker's process needs, because its start is waited for. Not here: finding or starting a broker (``spawn``).
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import BrokerUnavailable, SocketPathTooLong, UnsafeFolder
from .home import MAX_SOCKET_PATH_BYTES, Home, check_folder, private_folder

__all__ = [
    "MAX_TOLD_BYTES",
    "NOBODY",
    "PROBE_SECONDS",
    "READY",
    "STORE_VARIABLE",
    "Claim",
    "claim",
    "is_served",
    "tell_starter",
]

#: What a broker writes to its readiness descriptor once somebody serves the socket, be it another broker. One that
#: cannot serve writes why and what to do instead, a line each.
READY = b"ready\n"

#: Names the store of a broker that is not told one.
STORE_VARIABLE = "ROUNDTABLE_STORE"

#: A pipe takes this much in one piece (POSIX says 512 at least); a reason and a hint are cut to fit.
MAX_TOLD_BYTES = 2048

#: How long a probe waits. Connecting to a Unix socket is answered by the kernel.
PROBE_SECONDS = 1.0

#: How long the lock is waited for. It is held for a probe and a bind, a few milliseconds.
_LOCK_SECONDS = 5.0

#: Between two looks at a held lock; the kernel offers no bounded wait for one.
_LOCK_STEP_SECONDS = 0.01

#: Connections the kernel holds for a broker that is busy.
_BACKLOG = 1024

#: A connect that fails with one of these has found nobody.
NOBODY = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK, errno.ENOTDIR})


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
        with suppress(OSError, BrokerUnavailable), _locked(self.home.lock, seconds=PROBE_SECONDS):
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
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(os.fspath(path))
        except OSError as problem:
            # A full backlog, a missing right: somebody may be there, and the socket is not ours to take.
            return problem.errno not in NOBODY
        return True


def tell_starter(descriptor: int | None, *lines: str) -> None:
    """Let who started this broker know that somebody serves, or with ``lines`` why not and what to do."""
    if descriptor is None:
        return
    told = b"".join(
        " ".join(line.split()).encode(errors="replace")[: MAX_TOLD_BYTES // 2 - 1] + b"\n" for line in lines
    )
    with suppress(OSError):  # the starter has left
        os.write(descriptor, told or READY)
        os.close(descriptor)


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
