"""Bearer tokens, one per role, in a file that only this user can read: ``<home>/roundtable/tokens.json``.

A token is made once and stays; take its line out of the file, or the file away, and another is made. The file is
replaced as a whole under a lock, so that two processes that make tokens at once keep each other's. One that others
could have read, that somebody else owns or that is no such file is refused and left as it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import TokensUnusable
from .home import Home
from .names import is_member_name

__all__ = ["tokens", "tokens_path"]

#: Random bytes of a token; 128 bits cannot be guessed (RFC 6750 5.2 asks for that much), and twice costs nothing.
_TOKEN_BYTES = 32

#: A token that a person has put there is no shorter.
_MIN_TOKEN_CHARS = 22

#: A file of this size holds thousands of tokens; a larger one is something else.
_MAX_FILE_BYTES = 1024 * 1024

#: How long the lock is waited for. It is held for one small read and write.
_LOCK_SECONDS = 5.0

#: Between two looks at a held lock; the kernel offers no bounded wait for one.
_LOCK_STEP_SECONDS = 0.01

_REMAKE = "make it right, or remove it: new tokens are made then, and clients must be given them"


def tokens_path(home: Home) -> Path:
    """Where they are."""
    return home.folder / "tokens.json"


def tokens(home: Home, roles: Sequence[str]) -> dict[str, str]:
    """The token of each of ``roles``, in this order; those that have none get one.

    Raises:
        TokensUnusable: the file is not what it must be.
        UnsafeFolder: the folder is another user's, or cannot be closed to others.
    """
    home.prepare()
    path = tokens_path(home)
    with _locked(path.with_suffix(".lock")):
        known = _read(path)
        missing = [role for role in roles if role not in known]
        if missing:
            known |= {role: secrets.token_urlsafe(_TOKEN_BYTES) for role in missing}
            _replace(path, known)
    return {role: known[role] for role in roles}


def _read(path: Path) -> dict[str, str]:
    """What the file says; nothing if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise TokensUnusable(path, problem.strerror or str(problem), hint=_REMAKE) from problem
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise TokensUnusable(path, "it is no regular file", hint=_REMAKE)
        if status.st_uid != os.geteuid():
            raise TokensUnusable(path, "it belongs to another user", hint=_REMAKE)
        if status.st_mode & 0o077:
            mode = stat.S_IMODE(status.st_mode)
            raise TokensUnusable(
                path,
                f"others may read or write it (mode {mode:04o})",
                hint="remove it, so that new tokens are made; chmod 600 is enough if nobody can have read it",
            )
        data = file.read(_MAX_FILE_BYTES + 1)
    return _parsed(path, data)


def _parsed(path: Path, data: bytes) -> dict[str, str]:
    try:
        body = json.loads(data) if len(data) <= _MAX_FILE_BYTES else None
    except (ValueError, RecursionError):
        body = None
    known = body.get("tokens") if isinstance(body, dict) else None
    if not isinstance(known, dict) or not all(is_member_name(role) for role in known):
        raise TokensUnusable(path, 'it is not {"tokens": {ROLE: TOKEN}} as JSON', hint=_REMAKE)
    for role, token in known.items():
        if not isinstance(token, str) or len(token) < _MIN_TOKEN_CHARS or not _is_sendable(token):
            # The token itself is not told, not even a wrong one.
            raise TokensUnusable(
                path,
                f"the token of {role} is not {_MIN_TOKEN_CHARS} or more of A-Z a-z 0-9 - . _ ~ + / =",
                hint=_REMAKE,
            )
    if len(set(known.values())) < len(known):
        raise TokensUnusable(path, "two roles have one token", hint=_REMAKE)
    return known


def _is_sendable(token: str) -> bool:
    """Whether it is a ``b64token`` of RFC 6750."""
    return token.isascii() and all(char.isalnum() or char in "-._~+/=" for char in token)


def _replace(path: Path, known: dict[str, str]) -> None:
    """Write the file as a whole; a crash leaves the old one or the new one."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    text = json.dumps({"tokens": known}, indent=2) + "\n"
    try:
        descriptor = os.open(
            beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, 0o600)
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    except OSError as problem:
        raise TokensUnusable(path, f"cannot write it: {problem.strerror or problem}") from problem


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        raise TokensUnusable(path, problem.strerror or str(problem)) from problem
    try:
        end = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    reason = f"another process has held the lock for {_LOCK_SECONDS:g} s"
                    raise TokensUnusable(path, reason) from None
                time.sleep(_LOCK_STEP_SECONDS)
        yield
    finally:
        os.close(descriptor)
