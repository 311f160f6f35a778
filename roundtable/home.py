"""Where the files of this user's rooms live, and that nobody else can reach them.

``Home.from_environment`` is the only place here that reads the environment.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import SocketPathTooLong, UnsafeFolder

__all__ = ["MAX_SOCKET_PATH_BYTES", "Home", "check_folder", "private_folder"]

#: Systems end socket paths between 104 (macOS) and 108 (Linux) bytes, the final zero included.
MAX_SOCKET_PATH_BYTES = 100

#: Permission bits of group and others.
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Home:
    """One user's folder; two processes with the same one share rooms."""

    root: Path  #: absolute
    runtime: Path | None = None  #: where short-lived files of this user go, if the system has such a place

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Home:
        """``FLEET_HOME`` or ``~/.fleet``; empty counts as unset, ``~`` is expanded."""
        environment = os.environ if environment is None else environment
        root = Path(environment.get("FLEET_HOME") or "~/.fleet").expanduser()
        runtime = Path(environment.get("XDG_RUNTIME_DIR") or "")
        return cls(root.absolute(), runtime if runtime.is_absolute() else None)

    @property
    def folder(self) -> Path:
        """Everything about rooms."""
        return self.root / "roundtable"

    @property
    def lock(self) -> Path:
        """Held while somebody looks whether the socket is served, and takes it."""
        return self.folder / "broker.lock"

    @property
    def log(self) -> Path:
        """What the broker has to say."""
        return self.folder / "broker.log"

    @property
    def pid(self) -> Path:
        """Who serves; for people to look at, nothing decides by it."""
        return self.folder / "broker.pid"

    @property
    def path_file(self) -> Path:
        """The socket in use; decides for everybody but the broker that writes it."""
        return self.folder / "broker.path"

    @property
    def database(self) -> Path:
        """Where rooms that outlive their broker are kept, unless somebody names another file."""
        return self.folder / "rooms.db"

    def default_socket(self) -> Path:
        """Where a broker started now puts its socket: here, or somewhere shorter.

        Raises:
            SocketPathTooLong: no place gives a path short enough.
        """
        # Here, because it is rarely needed and costs a start 5 ms.
        from hashlib import sha256

        mark = sha256(os.fsencode(self.root)).hexdigest()[:12]
        places = [self.folder]
        if self.runtime is not None and self.runtime.is_dir():
            places.append(self.runtime / f"fleet-{mark}")
        # Not the configured temporary folder: everybody must come to the same one, and it must be short.
        places.append(Path("/tmp") / f"fleet-{os.geteuid()}-{mark}")  # noqa: S108 - owner and mode are checked
        for place in places:
            path = place / "broker.sock"
            if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
                return path
        raise SocketPathTooLong(
            path,
            f"a socket path may have {MAX_SOCKET_PATH_BYTES} bytes",
            hint="set FLEET_HOME to a shorter path",
        )

    def socket(self) -> Path:
        """The socket in use, or the one a broker would make; its folder belongs to this user alone.

        Raises:
            SocketPathTooLong: no place gives a path short enough.
            UnsafeFolder: the folder of the socket is another user's or open to others.
        """
        path = self._recorded_socket() or self.default_socket()
        if path.parent.exists():
            # Our own folder may stand wider than it should: whoever serves next narrows it.
            check_folder(path.parent, is_mode_checked=path.parent != self.folder)
        return path

    def prepare(self) -> None:
        """Make the folder for rooms, closed to others even if it stood wider; the home itself only if it is missing.

        Raises:
            UnsafeFolder: it is another user's, no folder, or its rights stay wider.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as problem:
            raise UnsafeFolder(self.root, f"cannot make the folder: {problem.strerror}") from problem
        private_folder(self.folder)

    def _recorded_socket(self) -> Path | None:
        try:
            text = self.path_file.read_text(encoding="utf-8").strip()
            path = Path(text)
            is_usable = path.is_absolute() and path.parent.is_dir()
        except (OSError, ValueError):
            return None
        return path if is_usable and len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES else None


def private_folder(path: Path) -> None:
    """Make ``path`` a folder of mode 0700 that belongs to this user, even if it stood wider.

    Raises:
        UnsafeFolder: it is another user's, no folder, or its rights stay wider.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.lstat().st_uid == os.geteuid() and not path.is_symlink():
            path.chmod(0o700)
    except OSError as problem:
        raise UnsafeFolder(path, f"cannot prepare the folder: {problem.strerror or problem}") from problem
    check_folder(path)


def check_folder(path: Path, *, is_mode_checked: bool = True) -> None:
    """Look that ``path`` is a folder of this user and closed to others, if the mode is to be checked.

    Raises:
        UnsafeFolder: it is not.
    """
    try:
        # A link in a folder that everybody may write could be anybody's; below the home it is the user's own.
        status = path.stat() if _is_own(path.parent) else path.lstat()
    except OSError as problem:
        raise UnsafeFolder(path, f"cannot look at the folder: {problem.strerror or problem}") from problem
    hint = "use a folder of your own with mode 0700"
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeFolder(path, "not a folder", hint=hint)
    if status.st_uid != os.geteuid():
        raise UnsafeFolder(path, f"the folder belongs to user {status.st_uid}", hint=hint)
    if is_mode_checked and status.st_mode & _OTHERS:
        raise UnsafeFolder(
            path, f"the folder is open to others (mode {stat.S_IMODE(status.st_mode):04o})", hint=hint
        )


def _is_own(folder: Path) -> bool:
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
