"""A chain and settings -> what will be run: every step with its seats, checked as far as it can be before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fleet.blueprint.places import Scope
from fleet.blueprint.schema import Member
from fleet.chain.check import check_chain, step_title, template_of
from fleet.chain.load import Chain, tasks_of
from fleet.chain.run import Planned, StepPlan, carry_out
from fleet.chain.schema import Task
from fleet.dispatch.assignment import OutputMode
from fleet.dispatch.seating import Seating, seat_teams
from fleet.dispatch.shapes import MAX_TASKS, Work
from fleet.errors import InvalidFile
from fleet.plan import PlanOptions, SeatPlan
from fleet.settings import Settings

__all__ = ["plan_chain"]


def plan_chain(
    chain: Chain,
    settings: Settings,
    options: PlanOptions,
    *,
    run: str,
    task: str | None = None,
    scope: Scope = Scope.PATH,
    max_tasks: int = MAX_TASKS,
) -> Work:
    """Plan a chain: one team per step, one seat per task; a fan-out has one seat until its items are known.

    ``task`` is what ``{task}`` stands for, by default the chain's own. ``scope`` is whose file it is.

    Raises:
        InvalidFile: the steps do not fit together; every problem at once.
        UsageProblem: an agent is neither defined nor found.
        RuntimeMissing, AgreementNeeded: as for any plan.
    """
    file = chain.file
    task = task or file.task
    problems = check_chain(chain, has_task=bool(task), max_tasks=max_tasks)
    if problems:
        raise InvalidFile(problems, hint="nothing was started")
    teams = [
        Seating(
            f"step-{number}",
            [_member(part) for part in tasks_of(step)],
            step.concurrency or file.concurrency,
            step.fail_fast,
        )
        for number, step in enumerate(file.chain, start=1)
    ]
    deadline = options.deadline_seconds
    if deadline is None and not options.has_no_deadline:
        deadline = file.deadline
    seated = seat_teams(
        teams,
        settings,
        replace(options, task=task or file.name, deadline_seconds=deadline),
        fleet=file.name,
        run=run,
        file=chain.path,
        agents=file.agents,
        document=chain.positions,
        scope=scope,
    )
    steps = [_step(chain, number, team.seats) for number, team in enumerate(seated.plan.teams)]
    return Work(seated.plan, seated, partial(carry_out, steps=steps, task=task or "", title=file.name))


def _member(task: Task) -> Member:
    return Member.model_construct(
        agent=task.agent,
        name=task.name,
        count=task.count,
        model=task.model,
        runtime=task.runtime,
        skills=task.skills,
        cwd=task.cwd,
        env=task.env,
        args=task.args,
        timeout=task.timeout,
        retries=task.retries,
    )


def _step(chain: Chain, number: int, seats: tuple[SeatPlan, ...]) -> StepPlan:
    step = chain.file.chain[number]
    item = step.expand.item if step.expand else None
    tasks = tasks_of(step)
    planned: list[Planned] = []
    left = list(seats)
    for index, task in enumerate(tasks, start=1):
        own, left = left[: task.count], left[task.count :]
        planned += [
            Planned(
                seat=seat,
                template=template_of(task, number, item=item),
                name=task.as_,
                index=index if len(tasks) > 1 else None,
                output=task.output if isinstance(task.output, str) else None,
                output_mode=OutputMode(task.output_mode),
                reads=() if isinstance(task.reads, bool) or task.reads is None else task.reads,
                schema=chain.schema(task.output_schema),
            )
            for seat in own
        ]
    collect: tuple[str, Mapping[str, Any] | bool | None] | None = None
    if step.collect is not None:
        collect = step.collect.as_, chain.schema(step.collect.output_schema)
    return StepPlan(
        number=number + 1,
        title=step_title(step),
        tasks=tuple(planned),
        is_group=step.parallel is not None,
        expand=step.expand,
        collect=collect,
    )
