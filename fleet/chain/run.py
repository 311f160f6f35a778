"""A chain at work: its steps one after the other, each given what the earlier ones gave, until one fails.

What goes from step to step is bounded: 2,000 characters and the path of the whole, a structured value as JSON or as
its shape and path, a group as one return. ``.full`` is the opt-out, and reads the whole back from its file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fleet.chain.items import Item, ItemProblem, items_of
from fleet.chain.schema import Expand
from fleet.chain.template import MissingPart, Reference, Template, item_text
from fleet.deadline import show_span
from fleet.dispatch.assignment import Assignment, OutputMode
from fleet.dispatch.structured import Mismatch, value_of
from fleet.dispatch.team import begin_dispatch, decision_of, give_back
from fleet.dispatch.work import TaskResult, dispatch
from fleet.plan import SeatPlan
from fleet.runs.outcome import MemberState
from fleet.runs.returns import Standing, compact, return_one, splice, splice_value
from fleet.runs.run import Run, TeamRun

__all__ = ["Planned", "StepPlan", "carry_out"]


@dataclass(frozen=True, slots=True)
class Planned:
    """One task of a step before what comes before it is known."""

    seat: SeatPlan
    template: Template
    name: str | None  #: what later steps call its output
    index: int | None  #: in its group, from 1; ``None`` for the only one
    output: str | None
    output_mode: OutputMode
    reads: tuple[str, ...]
    schema: Mapping[str, Any] | bool | None


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step."""

    number: int  #: 1, 2, …
    title: str
    tasks: tuple[Planned, ...]
    is_group: bool
    expand: Expand | None
    collect: tuple[str, Mapping[str, Any] | bool | None] | None  #: name and schema of what a fan-out gives


@dataclass(frozen=True, slots=True)
class Given:
    """What a step or a task gave, as later ones see it."""

    bounded: str
    whole: Callable[[], str]
    value: Any = None  #: of a structured one


@dataclass(slots=True)
class _Memory:
    """What the steps so far gave."""

    task: str
    folder: Path
    previous: Given = field(default_factory=lambda: Given("", lambda: ""))
    outputs: dict[str, Given] = field(default_factory=dict)

    def value_of(self, reference: Reference, item: Any = None, item_name: str | None = None) -> str:
        """What stands for a reference; the chain was checked, so there is something.

        Raises:
            MissingPart: the item does not have it.
        """
        if reference.head == item_name:
            return item_text(item, reference)
        match reference.head:
            case "task":
                return self.task
            case "chain_dir":
                return str(self.folder)
            case "previous":
                given = self.previous
            case _:
                given = self.outputs[reference.output or ""]
        return given.whole() if reference.is_full else given.bounded


class _StepFailed(Exception):
    """A step cannot begin, or what it gave is not what it should be."""


async def carry_out(run: Run, *, steps: Sequence[StepPlan], task: str, title: str) -> None:
    """Let the steps work in order.

    Raises:
        StorageFailed: the run cannot go on; the agents have been stopped.
    """
    folder = run.folder.make("chain")
    memory = _Memory(task, folder)
    for team, step in zip(list(run.teams), steps, strict=True):
        team.is_started = True
        try:
            text = await _work(run, team, step, memory)
        except _StepFailed as failure:
            text = _refuse(run, team, str(failure))
        run.note_time()
        if not team.count.has_quorum:
            closing = f"chain failed at step {step.number} ({step.title}) of {len(steps)}\n{text}\n"
            break
        seconds = show_span(run.seconds)
        titles = " → ".join(step.title for step in steps)
        closing = f"chain completed: {titles} ({len(steps)} steps, {seconds})\n\n{text}\n"
    run.close(closing)


async def _work(run: Run, team: TeamRun, step: StepPlan, memory: _Memory) -> str:
    """One step; the text of what it gave."""
    items: Sequence[Item] | None = None
    if step.expand is not None:
        items = _items(step.expand, memory)
        seats = _seats(step.tasks[0].seat, len(items))
        run.reseat(team, seats)
        assignments = [
            _assignment(replace(step.tasks[0], seat=seat), step, memory, item.value)
            for seat, item in zip(seats, items, strict=True)
        ]
    else:
        assignments = [_assignment(planned, step, memory) for planned in step.tasks]
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
    givens = [_given(result, str(run.folder.path)) for result in results]
    collected: list[dict[str, Any]] | None = None
    if items is not None and step.collect is not None and team.count.has_quorum:
        collected = [_entry(*entry, run) for entry in zip(items, results, givens, strict=True)]
        team.problem = _mismatch(collected, step.collect[1])
    run.end_team(team)
    if step.is_group and results:
        text = give_back(run, team, results).text
    else:
        text = _single(run, results[0]) if results else "Dynamic fanout produced 0 results."
        run.read_text(team, text)
    if team.problem is not None:
        text = f"{team.problem}\n{text}"
    run.conclude(team, decision_of(team, results, f"{text}\n"))
    if team.count.has_quorum:
        _remember(run, step, results, givens, items, collected, text, memory)
    return text


def _refuse(run: Run, team: TeamRun, problem: str) -> str:
    """End a step that cannot begin: its members are skipped, and it counts as one that failed."""
    team.problem = problem
    begin_dispatch(run, team)
    for member in team.members:
        run.end_member(team, member, MemberState.SKIPPED, problem)
    run.end_team(team)
    run.conclude(team, decision_of(team, (), f"{problem}\n"))
    return problem


def _items(expand: Expand, memory: _Memory) -> Sequence[Item]:
    try:
        items = items_of(memory.outputs[expand.from_.output].value, expand)
    except ItemProblem as problem:
        raise _StepFailed(str(problem)) from problem
    if not items and expand.on_empty == "fail":
        raise _StepFailed(f"{expand.from_.output}{expand.from_.path} is empty")
    return items


def _seats(template: SeatPlan, count: int) -> tuple[SeatPlan, ...]:
    if count == 1:
        return (template,)
    return tuple(replace(template, name=f"{template.agent}-{number}") for number in range(1, count + 1))


def _assignment(planned: Planned, step: StepPlan, memory: _Memory, item: Any = None) -> Assignment:
    item_name = step.expand.item if step.expand else None
    try:
        text = planned.template.fill(lambda reference: memory.value_of(reference, item, item_name))
    except MissingPart as problem:
        raise _StepFailed(str(problem)) from problem
    folder = memory.folder
    if planned.index is not None:
        folder = folder / f"parallel-{step.number}" / f"{planned.index}-{planned.seat.agent}"
    return Assignment(
        seat=planned.seat,
        text=text,
        output=None if planned.output is None else folder / planned.output,
        output_mode=planned.output_mode,
        reads=tuple(memory.folder / path for path in planned.reads),
        schema=planned.schema,
    )


def _single(run: Run, result: TaskResult) -> str:
    if result.standing is Standing.OK and result.has_value:
        return splice_value(result.value, str(result.file))
    return return_one(result.returned(), place=str(run.folder.path))


def _remember(
    run: Run,
    step: StepPlan,
    results: Sequence[TaskResult],
    givens: Sequence[Given],
    items: Sequence[Item] | None,
    collected: list[dict[str, Any]] | None,
    text: str,
    memory: _Memory,
) -> None:
    """Keep what the step gave under the names it has."""
    if items is None:
        for planned, given in zip(step.tasks, givens, strict=True):
            if planned.name is not None:
                memory.outputs[planned.name] = given
    if step.collect is not None and collected is not None:
        name = step.collect[0]
        path = run.folder.write(
            f"chain/{name}.json", json.dumps(collected, ensure_ascii=False, indent=2) + "\n"
        )
        memory.outputs[name] = Given(
            splice_value(collected, str(path)), lambda: compact(collected), collected
        )
    if not step.is_group:
        memory.previous = givens[0]
        return
    heads = [_block_head(result, items) for result in results]
    memory.previous = Given(
        text,
        lambda: "\n\n".join(f"{head}\n{given.whole()}" for head, given in zip(heads, givens, strict=True)),
    )


def _block_head(result: TaskResult, items: Sequence[Item] | None) -> str:
    agent = result.member.agent_name
    if items is None:
        return f"=== Parallel Task {result.number} ({agent}) ==="
    return f"=== Dynamic Item {result.number} ({agent}, key {items[result.number - 1].key}) ==="


def _mismatch(collected: list[dict[str, Any]], schema: Mapping[str, Any] | bool | None) -> str | None:
    if schema is None:
        return None
    matched = value_of(json.dumps(collected), schema)
    return (
        f"collected output does not match its schema: {matched.text}"
        if isinstance(matched, Mismatch)
        else None
    )


def _given(result: TaskResult, place: str) -> Given:
    if result.has_value:
        return Given(
            splice_value(result.value, str(result.file)), lambda: compact(result.value), result.value
        )
    returned = result.returned()
    if returned.reference is not None:
        return Given(returned.reference, result.whole)
    return Given(
        splice(result.output, place=place if result.output.path.startswith("artifacts/") else ""),
        result.whole,
    )


def _entry(item: Item, result: TaskResult, given: Given, run: Run) -> dict[str, Any]:
    """One entry of what a fan-out gives."""
    entry: dict[str, Any] = {
        "key": item.key,
        "index": item.index,
        "item": item.value,
        "agent": result.member.agent_name,
        "status": str(result.standing),
        "text": given.bounded,
        "artifact": run.artifact_path(result.member),
    }
    if result.has_value:
        entry["structured"] = result.value
    if result.member.reason:
        entry["error"] = result.member.reason
    if result.assignment.output is not None:
        entry["outputPath"] = str(result.assignment.output)
    return entry
