"""What a run came to: its members, counts and decision as the value behind ``result.json``, with the exit code.

Pure. Not here: writing it, and the decision itself (``fleet/deliberation/synthesis.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fleet.plan import SeatPlan
from fleet.runs.member import Member
from fleet.runs.notice import attendance
from fleet.runs.outcome import RunState, TeamCount, exit_code, run_state
from fleet.runs.results import (
    Decision,
    ErrorResult,
    MemberResult,
    RunResult,
    TeamResult,
    Tokens,
    UsageResult,
)
from fleet.runs.run import Run, TeamRun

__all__ = ["summarize"]


def summarize(
    run: Run,
    *,
    ended: str,
    seconds: float,
    interrupted_by: int | None,
    error: ErrorResult | None,
    error_exit_code: int,
) -> RunResult:
    """The result of ``run``, which ended at ``ended`` (ISO-8601) after ``seconds``.

    An ``error`` makes the run failed, a signal interrupted. Otherwise the first team that missed its quorum decides.
    """
    plan = run.plan
    if interrupted_by is None and error is not None:
        state, code = RunState.FAILED, error_exit_code
    else:
        count = next((team.count for team in run.teams if not team.count.has_quorum), TeamCount(0, 0, 0))
        is_spent = run.budget_spent is not None
        state = run_state(count, interrupted_by=interrupted_by, is_budget_spent=is_spent)
        code = exit_code(count, interrupted_by=interrupted_by, is_budget_spent=is_spent)
    members = run.members
    return RunResult(
        run=plan.run,
        fleet=plan.fleet,
        task=plan.task,
        state=state,
        exit_code=code,
        rehearsal=plan.is_rehearsal,
        started=run.started_at,
        ended=ended,
        seconds=seconds,
        teams=tuple(_team(run, team, state) for team in run.teams),
        decision=_decision(run),
        conductor=run.conducted(),
        usage=UsageResult(
            tokens=Tokens(
                _total(member.usage.tokens_in for member in members),
                _total(member.usage.tokens_out for member in members),
            ),
            cost_usd=_total_cost(member.usage.cost_usd for member in members),
        ),
        error=error or msgspec.UNSET,
    )


def _team(run: Run, team: TeamRun, state: RunState) -> TeamResult:
    plan = team.plan
    finished, absent, failed = attendance(team.members)
    is_first = team is run.teams[0]
    if team.decision and team is not run.teams[-1]:
        state = run_state(team.count, interrupted_by=None)
    elif not (team.is_started or is_first):
        state = RunState.PENDING
    return TeamResult(
        team=plan.name,
        mode=plan.mode,
        room=plan.room or None,
        state=state,
        of=len(plan.seats),
        finished=finished,
        absent=tuple(member.seat for member in absent),
        failed=tuple(member.seat for member in failed),
        members=tuple(
            _member(run, member, seat) for member, seat in zip(team.members, plan.seats, strict=True)
        ),
        outcome=team.decision.outcome if team.decision else None,
        record=team.record,
    )


def _decision(run: Run) -> Decision | None:
    """The decision of the last team that has one, with the text of all."""
    decisions = [team.decision for team in run.teams if team.decision]
    return msgspec.structs.replace(decisions[-1], text=run.decision_text()) if decisions else None


def _member(run: Run, member: Member, seat: SeatPlan) -> MemberResult:
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
        artifact=run.artifact_path(member),
        final=member.final.text if member.final else None,
        retried=tuple(member.retried),
    )


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _total_cost(costs: Iterable[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None
