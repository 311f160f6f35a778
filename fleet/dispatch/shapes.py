"""One task or many, given out without a blueprint: the plan, and what is done within the run.

A plan is made, and refused, before anything starts. What comes back is bounded like every return: one task's as its
own text, many as one list with failures first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fleet.blueprint.schema import AgentDefinition, Member
from fleet.dispatch.assignment import Assignment, OutputMode, refuse_shared_outputs
from fleet.dispatch.seating import Seated, Seating, seat_teams
from fleet.dispatch.team import begin_dispatch, decision_of, give_back
from fleet.dispatch.work import dispatch
from fleet.errors import UsageProblem
from fleet.plan import Plan, PlanOptions
from fleet.runs.returns import return_one
from fleet.runs.run import Run
from fleet.settings import Settings

__all__ = ["MAX_TASKS", "Work", "plan_tasks"]

#: More tasks in one call have to be asked for: each may be a live model session.
MAX_TASKS = 50

#: The name of the only agent where a command line gives a program instead of an agent.
_PROGRAM = "worker"


@dataclass(frozen=True, slots=True)
class Work:
    """What a run does that no blueprint declares."""

    plan: Plan
    seated: Seated
    carry_out: Callable[[Run], Awaitable[None]]


def plan_tasks(
    tasks: Sequence[str],
    settings: Settings,
    options: PlanOptions,
    *,
    run: str,
    agent: str | None = None,
    command: tuple[str, ...] | None = None,
    concurrency: int = 4,
    is_fail_fast: bool = False,
    retries: int = 0,
    timeout_seconds: float | None = None,
    cwd: Path | None = None,
    output: Path | None = None,
    output_mode: OutputMode = OutputMode.DIGEST,
    max_tasks: int = MAX_TASKS,
    is_single: bool = False,
) -> Work:
    """Plan one member per task, all of one agent, or of the program ``command``; ``is_single``: return it as text.

    ``output`` is a file relative to the member's folder; it is for a single task.

    Raises:
        UsageProblem: there is no task, or an empty one, or more than ``max_tasks``; both an agent and a command;
            the agent is unknown; the outputs are not what they should be.
        InvalidFile, RuntimeMissing, AgreementNeeded: as for any plan.
    """
    if not tasks:
        raise UsageProblem("there is no task")
    if len(tasks) > max_tasks:
        raise UsageProblem(f"{len(tasks)} tasks; max {max_tasks} tasks", hint="--max-tasks allows more")
    empty = [number for number, task in enumerate(tasks, start=1) if not task.strip()]
    if empty:
        raise UsageProblem(f"task {empty[0]} is empty")
    if agent is not None and command is not None:
        raise UsageProblem("both an agent and a command", hint="give --agent or --command, not both")
    name = agent or _PROGRAM
    definition = AgentDefinition.model_construct(command=command)
    agents = {_PROGRAM: definition} if agent is None else {}
    # What is put together here needs no validation, which would have the models built at every start.
    member = Member.model_construct(agent=name, retries=retries, cwd=str(cwd.absolute()) if cwd else None)
    fleet = "task" if is_single else "parallel"
    seated = seat_teams(
        [Seating(fleet, [member] * len(tasks), concurrency, is_fail_fast)],
        settings,
        replace(options, task=tasks[0] if is_single else f"{len(tasks)} tasks"),
        fleet=fleet,
        run=run,
        agents=agents,
    )
    (team,) = seated.plan.teams
    seats = team.seats
    if timeout_seconds is not None:
        seats = tuple(replace(seat, turn_timeout_seconds=timeout_seconds) for seat in seats)
    plan = replace(seated.plan, teams=(replace(team, seats=seats),))
    assignments = [
        Assignment(
            seat=seat,
            text=task,
            output=None if output is None else seat.cwd / output,
            output_mode=output_mode,
        )
        for seat, task in zip(seats, tasks, strict=True)
    ]
    refuse_shared_outputs(assignments)
    return Work(plan, seated, partial(_carry_out, assignments=assignments, is_single=is_single))


async def _carry_out(run: Run, *, assignments: Sequence[Assignment], is_single: bool) -> None:
    (team,) = run.teams
    team.is_started = True
    begin_dispatch(run, team)
    results = await dispatch(
        run,
        team,
        team.members,
        assignments,
        deadline=run.deadline,
        concurrency=team.plan.concurrency,
        is_fail_fast=team.plan.is_fail_fast,
    )
    run.note_time()
    run.end_team(team)
    if is_single:
        text = return_one(results[0].returned(), place=str(run.folder.path))
        run.read_text(team, text)
    else:
        text = give_back(run, team, results).text
    run.conclude(team, decision_of(team, results, f"{text}\n" if text else ""))
