"""The states of a run and of a member, what a turn came to, and the exit code that follows from them.

Pure. Where several exit codes apply, the first of ``130/143, 2, 6, 5, 3, 1, 4`` (docs/reference/run-folder.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["MemberState", "Phase", "RunState", "TeamCount", "TurnResult", "exit_code", "run_state"]


class RunState(StrEnum):
    """How a run stands. The last four are final."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING_APPROVAL = "waiting-approval"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    DEADLINE = "deadline"


class MemberState(StrEnum):
    """How a member stands. From ``final`` on it is over."""

    SEATED = "seated"
    JOINED = "joined"
    TALKING = "talking"
    FINAL = "final"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    ABSENT = "absent"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"


class Phase(StrEnum):
    """What a turn is for; ``FLEET_PHASE`` in a member's environment."""

    OPEN = "open"
    REPLY = "reply"
    FINAL = "final"
    DISPATCH = "dispatch"


class TurnResult(StrEnum):
    """What a turn came to."""

    ANSWERED = "answered"
    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class TeamCount:
    """What a team's end is judged by."""

    positions: int  #: members that reached a FINAL line, or did the work they were given
    quorum: int  #: how many had to
    absent: int  #: members that had not finished when time ran out

    @property
    def has_quorum(self) -> bool:
        """Whether enough members gave what they owed; counted against the declared roster."""
        return self.positions >= self.quorum


def exit_code(count: TeamCount, *, interrupted_by: int | None, is_budget_spent: bool = False) -> int:
    """The exit code of a run that got as far as seating its team.

    ``interrupted_by`` is the number of the signal that ended it, or ``None``.
    """
    if interrupted_by is not None:
        return 128 + interrupted_by
    if count.has_quorum:
        return 0
    if is_budget_spent:
        return 5
    return 3 if count.absent else 1


def run_state(count: TeamCount, *, interrupted_by: int | None, is_budget_spent: bool = False) -> RunState:
    """The final state that goes with ``exit_code``; a budget that is spent ends a run as a deadline does."""
    if interrupted_by is not None:
        return RunState.INTERRUPTED
    code = exit_code(count, interrupted_by=None, is_budget_spent=is_budget_spent)
    return {0: RunState.DONE, 1: RunState.FAILED, 3: RunState.DEADLINE, 5: RunState.DEADLINE}[code]
