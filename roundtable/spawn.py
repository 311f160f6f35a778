"""Find the broker that serves a home, or start one.

The socket decides who serves (``claim``): of several starters one becomes the broker and the others find it.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio

from .claim import MAX_TOLD_BYTES, NOBODY, PROBE_SECONDS, READY, STORE_VARIABLE
from .errors import BrokerUnavailable
from .home import Home
from .store import absolute_store

__all__ = ["ensure_broker"]

#: How long a starter is waited for when the caller names no deadline. A start takes about 0.1 s.
_START_SECONDS = 10.0

#: A log over this size is begun anew.
_MAX_LOG_BYTES = 1024 * 1024

#: What a broker needs of its starter's environment. The rest stays with the starter: it may hold secrets.
_ENVIRONMENT = frozenset({"HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", STORE_VARIABLE})


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
        told = os.read(ready, MAX_TOLD_BYTES)
        if told != READY:
            raise _not_started(path, told, home.log, log_start)
    except OSError as problem:
        raise BrokerUnavailable(path, f"cannot start a broker: {problem.strerror}") from problem
    finally:
        os.close(ready)
    return home.socket()


async def _answers(path: Path) -> bool:
    with anyio.move_on_after(PROBE_SECONDS):
        try:
            stream = await anyio.connect_unix(path)
        except OSError as problem:
            return problem.errno not in NOBODY
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
