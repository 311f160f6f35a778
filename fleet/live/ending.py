"""End a team: every process of every pane and all they have started, then the session, and nothing else.

Who belongs to it: what descends from a pane's first process, what is in that process's session or group, and, on
Linux, what has left all of these but carries the team's mark in its environment, or has a pane's terminal as one of its
three streams. What has put off all five cannot be found. Who does not belong to it: the broker that
serves this user's rooms (any of them may have started it), the tmux server, and whoever asks, with its ancestors.

Blocking and bounded. Numbers of processes are given again, so each is known together with the time of its start.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.errors import TmuxFailed
from fleet.live.command_file import MARK
from fleet.live.teams import panes
from fleet.warden import processes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.live.teams import Pane, Team
    from fleet.warden import Process

__all__ = ["GRACE_SECONDS", "Ended", "end_team"]

#: Between SIGTERM and SIGKILL.
GRACE_SECONDS = 3.0

#: How long SIGKILL is repeated before what is left is reported.
_KILL_SECONDS = 2.0

#: Between two looks at the processes; nothing announces the end of what is no child of ours.
_ROUND_SECONDS = 0.05

#: A word in the command line of a broker, and of the shell that lets go of it.
_BROKER = b"roundtable.serve"

_IS_LINUX = sys.platform.startswith("linux")


@dataclass(frozen=True, slots=True)
class Ended:
    """How the ending of a team went."""

    processes: int  #: how many were found, ended by now or not
    survivors: tuple[int, ...]  #: pids


def end_team(team: Team, *, grace_seconds: float = GRACE_SECONDS) -> Ended:
    """End ``team``, its session and its folder. A session or server that is gone already is no error.

    Raises:
        TmuxFailed: the session stands and tmux does not end it.
    """
    tree = _Tree(team, _panes(team))
    _ask_to_end(tree, time.monotonic() + grace_seconds)
    end = time.monotonic() + _KILL_SECONDS
    while (living := tree.living()) and time.monotonic() < end:
        _signal(living, signal.SIGKILL)
        time.sleep(_ROUND_SECONDS)
    _kill_session(team)
    shutil.rmtree(team.folder, ignore_errors=True)
    return Ended(len(tree.known), tuple(sorted(process.pid for process in tree.living())))


def _panes(team: Team) -> list[Pane]:
    """The panes whose processes are the team's; a window of the user's that is shown elsewhere too is not."""
    try:
        return [pane for pane in panes(team) if pane.kind or not pane.is_linked]
    except TmuxFailed:
        return []


def _kill_session(team: Team) -> None:
    try:
        team.tmux.run("kill-session", "-t", f"{team.session_id}:")
    except TmuxFailed as problem:
        gone = ("can't find", "no server", "No such file", "server exited", "lost server", "no current")
        if not any(part in problem.message for part in gone):
            raise


class _Tree:
    """The team's processes, as far as they can be found. What was found once stays ours although its parents end."""

    def __init__(self, team: Team, panes: list[Pane]) -> None:
        self.known: dict[int, str] = {}  #: pid -> when it was started
        self._mark = f"{MARK}={team.id}".encode()
        self._unmarked: set[tuple[int, str]] = set()
        self._server = team.server_pid
        self._broker_file = team.folder.parent.parent / "roundtable" / "broker.pid"
        table = {process.pid: process for process in processes()}
        # A dead pane's number may be a stranger's by now; while any of its session lives, it is nobody else's.
        self._roots = {
            pane.pid: table[pane.pid].start if pane.pid in table else ""
            for pane in panes
            if pane.pid and not (pane.is_dead and pane.pid in table)
        }
        self._note_terminals(team, panes, table)

    def living(self) -> list[Process]:
        """Those that have not ended, zombies left out."""
        table = processes()
        by_pid = {process.pid: process for process in table}
        spared = self._spared(by_pid)
        for pid, start in tuple(self._roots.items()):
            if pid in by_pid and by_pid[pid].start != start:  # the number has been given again
                del self._roots[pid]
        children: dict[int, list[Process]] = {}
        for process in table:
            children.setdefault(process.parent, []).append(process)
        unseen = [process for process in table if self._is_ours(process)]
        found: dict[int, Process] = {}
        while unseen:
            process = unseen.pop()
            if process.pid not in found and process.pid not in spared and not _is_broker(process):
                found[process.pid] = process
                unseen += children.get(process.pid, [])
        self.known.update({process.pid: process.start for process in found.values()})
        return [process for process in found.values() if not process.is_zombie]

    def _is_ours(self, process: Process) -> bool:
        return (
            self.known.get(process.pid) == process.start
            or bool({process.pid, process.group, process.session} & self._roots.keys())
            or (_IS_LINUX and self._is_marked(process))
        )

    def _is_marked(self, process: Process) -> bool:
        if (process.pid, process.start) in self._unmarked:
            return False
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:  # ended, or another user's
            return False
        if self._mark in environment.split(b"\0"):
            return True
        self._unmarked.add((process.pid, process.start))
        return False

    def _note_terminals(self, team: Team, panes: list[Pane], table: dict[int, Process]) -> None:
        """Take in who has a pane's terminal as a stream. Only now: a terminal's name is given again at once."""
        wanted = {pane.tty for pane in panes if pane.tty and not pane.is_dead}
        holders = [(pid, tty) for pid in table if (tty := _terminal_of(pid)) in wanted] if _IS_LINUX else []
        still = {pane.tty for pane in _panes(team) if not pane.is_dead} if holders else set()
        self.known.update({pid: table[pid].start for pid, tty in holders if tty in still})

    def _spared(self, by_pid: dict[int, Process]) -> set[int]:
        spared = {self._server, 0, 1}
        with suppress(OSError, ValueError):
            spared.add(int(self._broker_file.read_text(encoding="utf-8").split()[0]))
        pid = os.getpid()
        while pid in by_pid and pid not in spared:
            spared.add(pid)
            pid = by_pid[pid].parent
        return spared


def _terminal_of(pid: int) -> str | None:
    """The first of a process's three streams that is a pseudo terminal."""
    for stream in range(3):
        with suppress(OSError):
            path = str(Path(f"/proc/{pid}/fd/{stream}").readlink())
            if path.startswith("/dev/pts/"):
                return path
    return None


def _is_broker(process: Process) -> bool:
    """Whether it is one that has only just been started: it carries its starter's marks and has told no number yet."""
    with suppress(OSError):
        return _BROKER in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    return False


def _ask_to_end(tree: _Tree, end: float) -> None:
    """Send SIGTERM once to each, also to who is born meanwhile, until all have ended or the time is over."""
    asked: set[tuple[int, str]] = set()
    while living := tree.living():
        new = [process for process in living if (process.pid, process.start) not in asked]
        _signal(new, signal.SIGTERM)
        _signal(new, signal.SIGCONT)  # a stopped process would not get the other one
        asked |= {(process.pid, process.start) for process in new}
        if time.monotonic() >= end:
            return
        time.sleep(_ROUND_SECONDS)


def _signal(living: Iterable[Process], number: signal.Signals) -> None:
    for process in living:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
