"""What can go wrong in the launcher and the runner, as values that know their exit code.

::

    FleetError                       exit  code
    ├── UsageProblem                  2    usage            the command line asks for what cannot be
    ├── InvalidFile                   2    invalid-file     a file people write; every problem with its position
    │   └── NotBuilt                  2    not-built        a declared feature this version does not have
    ├── RuntimeMissing                6    runtime-missing  a seat cannot be filled; nothing was started
    ├── AgreementNeeded               6    agreement-needed something unnamed would be used and nobody said yes
    ├── RunFailed                     1    run-failed       the run itself broke, not one of its members
    │   ├── StorageFailed             1    storage-failed   the run folder cannot be written
    │   └── RoomUnavailable           1    room-unavailable no broker answers and none could be started
    │   └── InternalFault             1    internal         a fault of Fleet itself; the run's record tells where
    ├── ChildNotStarted               1    not-started      a program could not be executed
    ├── TmuxUnusable                  6    tmux-unusable    tmux is missing or too old
    ├── TmuxFailed                    1    tmux-failed      tmux refused, or its server is gone or does not answer
    ├── NameTaken                     1    name-taken       a tmux session has the name already; nothing was started
    ├── NoSuchTeam                    1    no-such-team     no live team, or no seat in it, has that name
    ├── NotDelivered                  1    not-delivered    a text has not, or not for certain, reached a seat
    └── Survivors                     1    survivors        processes of a team could not be ended

Errors carry data and write their own sentence: one line, then a hint that says what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "AgreementNeeded",
    "ChildNotStarted",
    "FleetError",
    "InternalFault",
    "InvalidFile",
    "NameTaken",
    "NoSuchTeam",
    "NotBuilt",
    "NotDelivered",
    "Problem",
    "RoomUnavailable",
    "RunFailed",
    "RuntimeMissing",
    "StorageFailed",
    "Survivors",
    "TmuxFailed",
    "TmuxUnusable",
    "UsageProblem",
]


class FleetError(Exception):
    """Base of all of them. ``str(error)`` is one line; ``hint`` says what to do, or is ``None``."""

    exit_code: int = 1
    code: str = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageProblem(FleetError):
    """The command line, or a call, asks for something that cannot be."""

    exit_code = 2
    code = "usage"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in one file: ``path:line:column: key — problem``. Lines and columns count from 1."""

    path: str
    line: int
    column: int
    key: str  #: dotted key path, ``""`` for the document itself
    text: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}:{self.column}: "
        return f"{where}{self.key} — {self.text}" if self.key else f"{where}{self.text}"


class InvalidFile(FleetError):
    """A blueprint, manifest or settings file with everything that is wrong in it, one line each."""

    exit_code = 2
    code = "invalid-file"

    def __init__(self, problems: tuple[Problem, ...], *, hint: str | None = None) -> None:
        super().__init__("\n".join(str(problem) for problem in problems), hint=hint)
        self.problems = problems


class NotBuilt(InvalidFile):
    """The file is valid and asks for something that this version cannot do; refused before anything starts."""

    code = "not-built"


class RuntimeMissing(FleetError):
    """One or more seats cannot be filled. ``missing`` maps a runtime's name to what is wrong with it."""

    exit_code = 6
    code = "runtime-missing"

    def __init__(self, missing: dict[str, str], *, hint: str | None = None) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in missing.items()), hint=hint)
        self.missing = missing


class AgreementNeeded(FleetError):
    """Something nobody named would be used, and there is no terminal to ask on."""

    exit_code = 6
    code = "agreement-needed"


class RunFailed(FleetError):
    """The run could not go on."""

    code = "run-failed"


class StorageFailed(RunFailed):
    """The run folder cannot be written: full, read-only or gone."""

    code = "storage-failed"

    def __init__(self, path: Path, reason: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"cannot write {path}: {reason}",
            hint=hint
            or "free some space or choose another folder with --output; what was written before stays readable",
        )
        self.path = path
        self.reason = reason


class RoomUnavailable(RunFailed):
    """No broker serves this user's rooms and none could be started."""

    code = "room-unavailable"


class InternalFault(RunFailed):
    """Something went wrong that is no error of ours to tell of; ``crash`` is the file with the traceback."""

    code = "internal"

    def __init__(self, kind: str, text: str, crash: Path) -> None:
        line = " ".join(text.split())[:200]
        super().__init__(f"internal error: {kind}: {line}", hint=f"please report it with {crash}")
        self.crash = crash


class ChildNotStarted(FleetError):
    """A program could not be executed at all."""

    code = "not-started"

    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f"cannot start {program}: {reason}", hint="check the command and its path")
        self.program = program
        self.reason = reason


class TmuxUnusable(FleetError):
    """tmux is missing, or too old for what is asked of it."""

    exit_code = 6
    code = "tmux-unusable"


class TmuxFailed(FleetError):
    """tmux refused; ``message`` is what it said itself, ``printed`` the lines of what it had done before."""

    code = "tmux-failed"

    def __init__(self, message: str, *, printed: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.printed = printed


class NameTaken(FleetError):
    """A session of that name runs already."""

    code = "name-taken"

    def __init__(self, session: str, *, hint: str) -> None:
        super().__init__(f"the tmux session {session} exists already; nothing was started", hint=hint)
        self.session = session


class NoSuchTeam(FleetError):
    """No live team has that name, or none of its seats."""

    code = "no-such-team"


class NotDelivered(FleetError):
    """A text has not reached a seat for certain; ``message`` says how far it came."""

    code = "not-delivered"

    def __init__(self, seat: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{seat}: {reason}", hint=hint)
        self.seat = seat
        self.reason = reason


class Survivors(FleetError):
    """Processes that did not end although they were killed."""

    code = "survivors"

    def __init__(self, team: str, pids: tuple[int, ...]) -> None:
        super().__init__(
            f"{team}: could not be ended: {', '.join(map(str, pids))}",
            hint="they are another user's, or the system waits for a device on their behalf; look with ps -fp",
        )
        self.team = team
        self.pids = pids
