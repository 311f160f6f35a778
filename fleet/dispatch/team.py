"""One dispatching team: every member is given its work, and the conductor reads one bounded return of all.

There is no room and no broker in it, but for ``deliberate-then-dispatch``: there the team deliberates first, for half
of its time at most, and its decision of record goes to every member with its work.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import msgspec

from fleet.deadline import Deadline
from fleet.dispatch.assignment import Assignment
from fleet.dispatch.work import TaskResult, dispatch
from fleet.runs.events import TeamStarted
from fleet.runs.member import Member
from fleet.runs.notice import attendance, notice_line
from fleet.runs.outcome import MemberState
from fleet.runs.results import Decision
from fleet.runs.returns import Output, ReturnedText, Standing, return_many, splice
from fleet.runs.run import Run, TeamRun

__all__ = ["begin_dispatch", "decision_of", "give_back", "outcome_of", "work", "work_after_deliberation"]

#: The part of a team's time that its deliberation may take, if it is to work afterwards.
_TALKING_PART = 0.5

#: Lists every task, status, size and path, relative to the run folder.
_INDEX = "artifacts/index.md"


async def work(run: Run, team: TeamRun, *, deadline: Deadline) -> None:
    """Let the team do its work and read what it gave; afterwards its members are over and closed.

    Raises:
        StorageFailed: the run cannot go on; the agents have been stopped.
    """
    begin_dispatch(run, team)
    assignments = _assignments(run, team, team.members, run.decided_before(team))
    results = await _give_out(run, team, team.members, assignments, deadline)
    run.end_team(team)
    returned = give_back(run, team, results)
    head = [*run.decision_head(team), "", notice_line(team.members, limit=None), ""]
    run.conclude(team, decision_of(team, results, "\n".join([*head, returned.text, ""])))


async def work_after_deliberation(run: Run, team: TeamRun, *, deadline: Deadline) -> None:
    """Let the team deliberate, conclude, and then work on what it decided.

    A deliberation that missed the quorum is the end: there is nothing decided to work on.

    Raises:
        StorageFailed, RoomUnavailable: the run cannot go on; the agents have been stopped.
    """
    # Most teams that dispatch never meet, and what a room needs takes its time to import.
    from fleet.deliberation import team as deliberating

    async with deliberating.seated(run, team) as room:
        talking = deadline.part(_TALKING_PART, now=anyio.current_time())
        await deliberating.discuss(run, team, room, deadline=talking, goes_on=True)
        await deliberating.conclude(run, team, room)
        ready = [member for member in team.members if member.is_set_aside]
        concluded = sum(member.final is not None for member in ready)
        if concluded < team.plan.quorum or run.budget_spent is not None:
            for member in ready:
                run.end_member(team, member, MemberState.FINAL, None if member.final else "no FINAL")
            run.end_team(team)
            return
        assignments = _assignments(run, team, ready, _decided(run, team))
        results = await _give_out(run, team, ready, assignments, deadline)
        run.end_team(team)
        returned = give_back(run, team, results)
        if team.decision is not None:
            text = f"{team.decision.text}\nWhat was done:\n\n{returned.text}\n"
            run.write_decision(team, msgspec.structs.replace(team.decision, text=text))


def begin_dispatch(run: Run, team: TeamRun) -> None:
    """The first record of a team that does not meet."""
    plan = team.plan
    run.journal.append(
        TeamStarted(
            team=plan.name,
            mode=plan.mode,
            room=None,
            seats=tuple(seat.name for seat in plan.seats),
            deadline_seconds=plan.deadline_seconds,
        )
    )


def give_back(run: Run, team: TeamRun, results: Sequence[TaskResult]) -> ReturnedText:
    """The one bounded return of a team's work, as the conductor reads it."""
    run.write_artifact_index()
    returned = return_many(
        [result.returned() for result in results],
        place=str(run.folder.path),
        index=_INDEX,
        budget=team.plan.digest_budget,
        per_item=team.plan.per_message,
    )
    run.read_return(team, returned)
    return returned


def outcome_of(results: Sequence[TaskResult]) -> str:
    """``3/4 succeeded``."""
    return f"{sum(result.standing is Standing.OK for result in results)}/{len(results)} succeeded"


def decision_of(team: TeamRun, results: Sequence[TaskResult], text: str) -> Decision:
    """A team's work as the decision of record whose words are ``text``."""
    _, absent, _ = attendance(team.members)
    return Decision(
        outcome=outcome_of(results),
        agreed=(),
        positions=(),
        dissent=(),
        open_questions=(),
        absent=tuple(member.seat for member in absent),
        text=text,
    )


async def _give_out(
    run: Run, team: TeamRun, members: Sequence[Member], assignments: Sequence[Assignment], deadline: Deadline
) -> list[TaskResult]:
    return await dispatch(
        run,
        team,
        members,
        assignments,
        deadline=deadline,
        concurrency=team.plan.concurrency,
        is_fail_fast=team.plan.is_fail_fast,
    )


def _assignments(run: Run, team: TeamRun, members: Sequence[Member], decided: str) -> list[Assignment]:
    at_work = {member.seat for member in members}
    names = tuple(seat.name for seat in team.plan.seats)
    return [
        Assignment(
            seat=seat,
            text=run.plan.task,
            output=seat.output,
            decided=decided,
            team=team.plan.name,
            mates=tuple(name for name in names if name != seat.name),
        )
        for seat in team.plan.seats
        if seat.name in at_work
    ]


def _decided(run: Run, team: TeamRun) -> str:
    """What the team itself and those before it decided, each bounded."""
    before = run.decided_before(team)
    if team.decision is None or team.record is None:
        return before
    text = team.decision.text.partition("\nWhat it rests on:")[0].strip()
    own = splice(Output(text, len(text), team.record), place=str(run.folder.path))
    return f"{before}\n\n{own}" if before else own
