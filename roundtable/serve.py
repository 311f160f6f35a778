"""The broker's process: take the socket of a home, serve it, and end when idle or told to.

``python -m roundtable.serve``; ``spawn`` starts it, ``roundtable broker`` runs it in the foreground. Signals end it
at once and in order: a socket it made is removed, and only that one. A store that cannot be used ends it before it
serves, and everybody who waits for it is told why.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from . import wire
from .broker import Broker
from .claim import STORE_VARIABLE, Claim, claim, tell_starter
from .connection import error_body
from .errors import BrokerUnavailable, Refused, StoreUnavailable, UsageProblem
from .home import Home
from .limits import Limits
from .store import MemoryStore, RoomStore, database_path

__all__ = ["main"]

#: Signals that end a broker that owns its process.
_STOP = (signal.SIGTERM, signal.SIGINT)

#: File descriptors that are not connections.
_SPARE_DESCRIPTORS = 64

_USAGE = {
    "--home": "FOLDER",
    "--socket": "PATH",
    "--grace": "SECONDS",
    "--store": "memory|sqlite[:PATH]",
    "--ready-fd": "DESCRIPTOR",
}

_log = logging.getLogger("roundtable.broker")


def _serve(taken: Claim, store: RoomStore, limits: Limits, grace_seconds: float, ready: int | None) -> None:
    broker = Broker(store=store, limits=limits, grace_seconds=grace_seconds)
    for number in _STOP:
        signal.signal(number, lambda *_: broker.stop())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
    broker.start(taken.listener)
    _log.info("serving %s", taken.path)
    tell_starter(ready)
    broker.run()
    # While somebody may still connect the file must not name us.
    taken.release()
    broker.run_out()


def _open_store(database: Path | None) -> RoomStore:
    """The store in the file ``database``, or in memory."""
    if database is None:
        return MemoryStore(wire.encode_message)
    from .stores.sqlite import SqliteStore

    return SqliteStore(database, wire.encode_message)


def _raise_descriptor_limit(limits: Limits) -> Limits:
    """Ask for as many descriptors as connections may need; bear fewer if that is refused."""
    wanted = limits.connections + _SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        except (OSError, ValueError):
            _log.warning("only %d open files are allowed", soft)
        return replace(limits, connections=max(1, min(limits.connections, soft - _SPARE_DESCRIPTORS)))
    return limits


class _Options(NamedTuple):
    """What a broker is told as it starts."""

    home: Path | None = None  #: absolute; ``None`` is what the environment says
    socket: Path | None = None  #: absolute; ``None`` is below the home
    grace: float = 5.0  #: seconds to outlive the last connection
    store: str | None = None
    ready: int | None = None  #: a descriptor, written to once the socket is served, or why it is not


def _options(words: Sequence[str]) -> _Options:
    """Read the words of the command, pairs of an option and its value.

    Not argparse: importing it is a tenth of a start that somebody waits for, and people use ``roundtable broker``.

    Raises:
        UsageProblem: words that are none.
    """
    options = _Options()
    pairs = iter(words)
    for name in pairs:
        value = next(pairs, None)
        if name not in _USAGE or value is None:
            raise UsageProblem(f"{name} is no option or has no value")
        try:
            if name == "--home":
                options = options._replace(home=Path(value).absolute())
            elif name == "--socket":
                options = options._replace(socket=Path(value).absolute())
            elif name == "--grace":
                options = options._replace(grace=float(value))
            elif name == "--store":
                options = options._replace(store=value)
            else:
                options = options._replace(ready=int(value))
        except ValueError:
            raise UsageProblem(f"{name} takes a number, not {value!r}") from None
    if not 0 <= options.grace < float("inf"):
        raise UsageProblem("--grace is a number of seconds, 0 or more")
    return options


def _usage(problem: str) -> int:
    places = " ".join(f"[{name} {value}]" for name, value in _USAGE.items())
    print(f"usage: python -m roundtable.serve {places}\nerror: {problem}", file=sys.stderr)  # noqa: T201 - a command
    return UsageProblem.exit_code


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until idle or told to stop; 0 also when another broker serves already."""
    try:
        options = _options(sys.argv[1:] if arguments is None else arguments)
    except UsageProblem as problem:
        return _usage(str(problem))
    logging.basicConfig(format="%(asctime)s %(process)d %(message)s", level=logging.INFO, stream=sys.stderr)
    home = Home.from_environment()
    if options.home is not None:
        home = replace(home, root=options.home)
    named = (
        options.store if options.store is not None else os.environ.get(STORE_VARIABLE, "").strip() or "memory"
    )
    try:
        database = database_path(named, default=home.database)
    except UsageProblem as problem:
        source = "--store" if options.store is not None else STORE_VARIABLE
        reason = f"{source}: {problem}"
        tell_starter(options.ready, reason, str(problem.hint))
        return _usage(f"{reason}; {problem.hint}")
    # A signal waits until we can take what we made away again.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        taken = claim(home, path=options.socket)
    except BrokerUnavailable as problem:
        _log.error("%s (%s)", problem, problem.hint)
        tell_starter(options.ready, problem.reason, str(problem.hint))
        return problem.exit_code
    if taken is None:
        _log.info("Another roundtable broker is already listening on %s", home.socket())
        tell_starter(options.ready)
        return 0
    try:
        store = _open_store(database)
    except StoreUnavailable as problem:
        _log.error("%s (%s)", problem, problem.hint)
        # Others may have found the socket meanwhile; nobody else can tell them.
        taken.refuse(wire.frame(error_body(Refused(problem.code, f"{problem}; {problem.hint}"), None)))
        tell_starter(options.ready, str(problem), str(problem.hint))
        return problem.exit_code
    limits = _raise_descriptor_limit(Limits())
    # What is loaded now stays; the collector need not look at it again.
    gc.freeze()
    _serve(taken, store, limits, options.grace, options.ready)
    return 0


if __name__ == "__main__":
    sys.exit(main())
