"""One tmux server: its commands run and answered within a bound. The only place that knows libtmux.

Blocking; from an event loop call it in a thread. What tmux says comes back as lines, so whoever asks writes a format
of his own (``-F``) and parts fields with what cannot stand in them. libtmux's own listings are not used: they break
when a pane's title or folder holds their separator or a newline, and then for the whole server.

Words are handed over as they are, none through a shell. A word that ends in ``;`` would end a tmux command, so texts
of people go through files (``source-file``, ``load-buffer``), never through words.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.errors import TmuxFailed, TmuxUnusable
from fleet.warden import processes

if TYPE_CHECKING:
    from libtmux import Server

__all__ = ["ANSWER_SECONDS", "OLDEST", "Tmux", "version_of"]

#: How long a server may take to answer. It is one thread and may be busy drawing; a second would do on a quiet machine.
ANSWER_SECONDS = 15.0

#: The oldest tmux that has what is used here: ``new-session -e`` came with it.
OLDEST = (3, 2)

#: How long the end of a killed tmux client is waited for.
_REAP_SECONDS = 2.0

#: Read by libtmux when it is imported. Its own separator turns into ``_`` without a UTF-8 locale.
_SEPARATOR_VARIABLE = "LIBTMUX_TMUX_FORMAT_SEPARATOR"


class Tmux:
    """A tmux server, running or not: the one tmux itself would choose, or the one named."""

    def __init__(self, *, socket_name: str | None = None, socket_path: str | None = None) -> None:
        self.socket_name = socket_name
        self.socket_path = socket_path
        self._server: Server | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """How a command line reaches this server: ``("tmux", "-L", "work")``."""
        if self.socket_path is not None:
            return ("tmux", "-S", self.socket_path)
        return ("tmux", "-L", self.socket_name) if self.socket_name is not None else ("tmux",)

    def run(self, *words: str, seconds: float = ANSWER_SECONDS) -> list[str]:
        """Run commands, parted by ``";"``, and return the lines they print; empty ones at the end are left out.

        Raises:
            TmuxUnusable: tmux is not installed, or too old for what was asked.
            TmuxFailed: it refused, there is no server, or it did not answer in time.
        """
        server = self._reach()
        done: list[tuple[int, list[str], list[str]]] = []
        problems: list[Exception] = []

        def ask() -> None:
            try:
                # -u: without it a client without a UTF-8 locale is told `_` for everything beyond ASCII.
                answer = server.cmd("-u", *words)
                done.append((answer.returncode or 0, answer.stdout, answer.stderr))
            except Exception as problem:  # raised again by whoever waits for this thread
                problems.append(problem)

        # libtmux waits for its child without a bound. A thread that is not waited for keeps no process alive.
        asking = threading.Thread(target=ask, name="tmux", daemon=True)
        asking.start()
        try:
            asking.join(seconds)
        except BaseException:  # told to stop: what was asked shall not be done later
            _kill_clients()
            raise
        if asking.is_alive():
            _kill_clients()
            asking.join(_REAP_SECONDS)
            raise TmuxFailed(
                f"tmux did not answer {words[0]} within {seconds:g} s", hint="is its server stopped?"
            )
        if problems:
            raise _translated(problems[0]) from problems[0]
        code, out, err = done[0]
        # A client that cannot make its server says so, and ends with 0.
        if code or (err and not out):
            # What is wrong in a file of commands is printed.
            said = err or out or [f"tmux ended with exit status {code}"]
            raise TmuxFailed("; ".join(said), printed=tuple(out))
        return out

    def version(self) -> str:
        """What ``tmux -V`` says, ``3.3a``.

        Raises:
            TmuxUnusable: tmux is not installed.
            TmuxFailed: it says nothing.
        """
        lines = self.run("-V")
        return lines[0].removeprefix("tmux ").strip() if lines else ""

    def check_version(self) -> None:
        """Look that this tmux is new enough.

        Raises:
            TmuxUnusable: it is not installed or too old.
        """
        version = self.version()
        if version_of(version) < OLDEST:
            raise TmuxUnusable(
                f"tmux {version} is too old: {OLDEST[0]}.{OLDEST[1]} or later is needed",
                hint="install a newer tmux, or print a plan to start by hand: fleet roles FILE --format sh",
            )

    def _reach(self) -> Server:
        if self._server is None:
            os.environ[_SEPARATOR_VARIABLE] = f"fleet-{os.urandom(8).hex()}"
            try:
                from libtmux import Server
            finally:
                # A server started from here would hand it down to every pane.
                del os.environ[_SEPARATOR_VARIABLE]
            self._server = Server(socket_name=self.socket_name, socket_path=self.socket_path)
        return self._server


def version_of(text: str) -> tuple[int, int]:
    """``3.3a`` as ``(3, 3)``; what has no number, a build from the repository, counts as newest."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (99, 0)


def _translated(problem: Exception) -> Exception:
    """An error of libtmux or of the system as one of ours."""
    from libtmux.exc import LibTmuxException, TmuxCommandNotFound

    if isinstance(problem, TmuxCommandNotFound):
        return TmuxUnusable(
            "tmux is not installed, or not on PATH",
            hint="install tmux 3.2 or later, or run the team without a terminal: fleet run FILE",
        )
    if isinstance(problem, OSError):
        return TmuxFailed(f"cannot run tmux: {problem.strerror or problem}")
    if isinstance(problem, LibTmuxException):
        return TmuxFailed(f"cannot run tmux: {' '.join(str(problem).split())}")
    return problem


def _kill_clients() -> None:
    """Kill the children of this process in its own group, which are tmux alone: servers and brokers leave it."""
    for process in processes():
        if process.parent == os.getpid() and process.group == os.getpgrp() and not process.is_zombie:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
