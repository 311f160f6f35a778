"""Whether the steps of a chain fit together: every name, reference, source and file, before anything starts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fleet.blueprint.wording import did_you_mean, in_order
from fleet.chain.load import Chain, tasks_of
from fleet.chain.schema import Step, Task
from fleet.chain.template import Template
from fleet.errors import Problem
from fleet.yaml import KeyPath

__all__ = ["DEFAULT_FIRST", "DEFAULT_LATER", "check_chain", "step_output", "step_title", "template_of"]

#: What a step is asked that says nothing.
DEFAULT_FIRST = "{task}"
DEFAULT_LATER = "{previous}"

_ONLY_AFTER = "named outputs are only available after the step that produces them"


def check_chain(chain: Chain, *, has_task: bool, max_tasks: int) -> tuple[Problem, ...]:
    """Everything that is wrong between steps, in the file's order. ``has_task``: whether the chain was given one."""
    return in_order([chain.problem(key, text) for key, text in _found(chain, has_task, max_tasks)])


def template_of(task: Task, number: int, *, item: str | None = None) -> Template:
    """What a task of step ``number`` (from 0) is asked; later ones that look at nothing get the previous output."""
    text = task.task or (DEFAULT_FIRST if number == 0 else DEFAULT_LATER)
    template = Template.parse(text, item=item)
    heads = ("previous", "outputs") if item is None else ("previous", "outputs", item)
    if number == 0 or template.uses(*heads):
        return template
    return Template.parse(f"{text}\n\n## Previous step output\n{DEFAULT_LATER}", item=item)


def step_title(step: Step) -> str:
    """How a step is called in one line: its label, or its agents."""
    names = [task.agent or "" for task in tasks_of(step)]
    return step.label or (names[0] if step.parallel is None else f"[{', '.join(names)}]")


def step_output(task: Task, *, folder: Path, step: int, index: int | None) -> Path | None:
    """Where a task's output goes: in the chain's folder, below one of its own where a group works at the same time.

    ``step`` and ``index`` (in the group, else ``None``) count from 1; the folder is absolute.
    """
    if not isinstance(task.output, str):
        return None
    if index is None:
        return folder / task.output
    return folder / f"parallel-{step}" / f"{index}-{task.agent}" / task.output


def _found(chain: Chain, has_task: bool, max_tasks: int) -> Iterator[tuple[KeyPath, str]]:
    known: dict[str, bool] = {}  # output name -> whether it is structured
    for number, step in enumerate(chain.file.chain):
        at: KeyPath = ("chain", number)
        if step.expand is not None:
            yield from _of_expand(step, number, at, known, max_tasks)
        tasks = tasks_of(step)
        size = sum(task.count for task in tasks)
        if size > max_tasks:
            yield at, f"{size} tasks; max {max_tasks} tasks (--max-tasks allows more)"
        named: list[tuple[KeyPath, str, bool]] = []
        outputs: dict[Path, int] = {}
        for index, task in enumerate(tasks):
            below = _below(step, index)
            yield from _of_task(chain, step, task, number, (*at, *below), known, has_task=has_task)
            if task.as_ is not None:
                named.append(((*at, *below, "as"), task.as_, task.output_schema is not None))
            path = step_output(
                task, folder=Path("/"), step=number + 1, index=index + 1 if len(tasks) > 1 else None
            )
            if path is not None and (task.count > 1 or step.expand is not None or path in outputs):
                yield (*at, *below, "output"), f"several tasks resolve output to the same path: {task.output}"
            if path is not None:
                outputs[path] = index
        if step.collect is not None:
            named.append(((*at, "collect", "as"), step.collect.as_, True))
        for key, name, is_structured in named:
            if name in known:
                yield key, f'duplicate chain output name "{name}"'
            known[name] = is_structured


def _of_task(
    chain: Chain,
    step: Step,
    task: Task,
    number: int,
    at: KeyPath,
    known: dict[str, bool],
    *,
    has_task: bool,
) -> Iterator[tuple[KeyPath, str]]:
    item = step.expand.item if step.expand else None
    key: KeyPath = (*at, "task")
    template = template_of(task, number, item=item)
    if number == 0 and task.task is None and not has_task:
        yield key, "the first step in a chain must have a task, and none was given to the chain"
    elif template.uses("task") and not has_task:
        yield key, "{task} is used, and the chain was given no task"
    for reference in template.references:
        if reference.problem:
            yield key, reference.problem
        elif reference.output is not None and reference.output not in known:
            near = did_you_mean(reference.output, known)
            yield key, f"unknown chain output reference {reference} at step {number + 1}: {_ONLY_AFTER}{near}"
        elif reference.head == "previous" and number == 0:
            yield key, "the first step has no previous output"
    for reference in template.unknown(item=item) if item else ():
        yield (
            key,
            f"unsupported template reference {reference}: known here is {{{item}}}, and what every step knows",
        )
    if task.output_mode == "file-only" and not isinstance(task.output, str):
        yield (
            (*at, "outputMode"),
            'sets outputMode: "file-only" but does not configure an output file; set output to a path or use inline',
        )


def _of_expand(
    step: Step, number: int, at: KeyPath, known: dict[str, bool], max_tasks: int
) -> Iterator[tuple[KeyPath, str]]:
    expand = step.expand
    if expand is None:
        return
    source = expand.from_.output
    key: KeyPath = (*at, "expand", "from", "output")
    if number == 0:
        yield (
            (*at, "expand"),
            "the first step in a chain cannot be a fan-out: there is nothing to fan out over",
        )
    elif source not in known:
        yield key, f'unknown chain output "{source}" at step {number + 1}{did_you_mean(source, known)}'
    elif not known[source]:
        yield key, f'requires structured output "{source}": the task that produces it needs an outputSchema'
    if expand.max_items > max_tasks:
        yield (*at, "expand", "maxItems"), f"{expand.max_items} is more than {max_tasks} tasks (--max-tasks)"
    if expand.item in ("task", "previous", "chain_dir", "outputs"):
        yield (*at, "expand", "item"), f'"{expand.item}" has a meaning of its own'


def _below(step: Step, index: int) -> KeyPath:
    if step.parallel is None:
        return ()
    return ("parallel",) if step.expand else ("parallel", index)
