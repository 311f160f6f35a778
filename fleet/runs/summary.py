"""What a run came to: its members, counts and decision as the value behind ``result.json``, with the exit code.

Pure. Not here: writing it, and the decision itself (``fleet/deliberation/synthesis.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fleet.plan import Plan, SeatPlan
from fleet.runs.folder import RunFolder
from fleet.runs.member import Member
from fleet.runs.notice import attendance
from fleet.runs.outcome import RunState, TeamCount, exit_code, run_state
from fleet.runs.results import (
    Conducted,
    Decision,
    ErrorResult,
    MemberResult,
    RunResult,
    TeamResult,
    Tokens,
    UsageResult,
)

__all__ = ["summarize"]


def summarize(
    plan: Plan,
    members: Sequence[Member],
    *,
    folder: RunFolder,
    times: tuple[str, str, float],
    decision: Decision | None,
    conducted: Conducted,
    interrupted_by: int | None,
    error: ErrorResult | None,
    error_exit_code: int,
) -> RunResult:
    """The result of a run of one team.

    ``times`` are the start and the end in ISO-8601 and the seconds between. ``members`` is empty for a run that
    ended before its team was made. An ``error`` makes the run failed, a signal interrupted.
    """
    (team,) = plan.teams
    finished, absent, failed = attendance(members)
    if interrupted_by is None and error is not None:
        state, code = RunState.FAILED, error_exit_code
    else:
        count = TeamCount(sum(m.final is not None for m in members), team.quorum, len(absent))
        state = run_state(count, interrupted_by=interrupted_by)
        code = exit_code(count, interrupted_by=interrupted_by)
    started, ended, seconds = times
    return RunResult(
        run=plan.run,
        fleet=plan.fleet,
        task=plan.task,
        state=state,
        exit_code=code,
        rehearsal=plan.is_rehearsal,
        started=started,
        ended=ended,
        seconds=seconds,
        teams=(
            TeamResult(
                team=team.name,
                mode=team.mode,
                room=team.room,
                state=state,
                of=len(team.seats),
                finished=finished,
                absent=tuple(member.seat for member in absent),
                failed=tuple(member.seat for member in failed),
                members=tuple(
                    _member(member, seat, folder) for member, seat in zip(members, team.seats, strict=False)
                ),
            ),
        ),
        decision=decision,
        conductor=conducted,
        usage=UsageResult(
            tokens=Tokens(
                _total(member.usage.tokens_in for member in members),
                _total(member.usage.tokens_out for member in members),
            ),
            cost_usd=_total_cost(member.usage.cost_usd for member in members),
        ),
        error=error or msgspec.UNSET,
    )


def _member(member: Member, seat: SeatPlan, folder: RunFolder) -> MemberResult:
    return MemberResult(
        seat=member.seat,
        agent=member.agent_name,
        runtime=member.runtime,
        model=seat.model,
        state=member.state,
        reason=member.reason,
        attempts=member.turns,
        seconds=round(member.seconds, 3),
        tokens=Tokens(member.usage.tokens_in, member.usage.tokens_out),
        cost_usd=member.usage.cost_usd,
        artifact=folder.relative(member.artifact.path),
        final=member.final.text if member.final else None,
    )


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _total_cost(costs: Iterable[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None
