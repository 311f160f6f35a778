"""Everything in a chain that can be checked is checked before anything starts, with its place in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.chain.check import check_chain, template_of
from fleet.chain.load import load_chain, tasks_of
from fleet.errors import InvalidFile

HEAD = "name: c\ndescription: d\nchain:\n"
TEXT = "  - {agent: a, task: x, as: t}\n"
FACTS = "  - {agent: a, task: x, as: facts, outputSchema: {type: object}}\n"


def problems(folder: Path, steps: str, *, has_task: bool = True, max_tasks: int = 50) -> list[str]:
    path = folder / "c.chain.yaml"
    path.write_text(HEAD + steps)
    try:
        found = check_chain(load_chain(path), has_task=has_task, max_tasks=max_tasks)
    except InvalidFile as error:
        found = error.problems
    return [f"{problem.line}:{problem.key} — {problem.text}" for problem in found]


def test_a_good_chain(tmp_path: Path) -> None:
    assert not problems(
        tmp_path,
        FACTS
        + "  - {agent: b, task: 'see {outputs.facts} {previous.full} {chain_dir} {task}', as: b}\n"
        + "  - {parallel: [{agent: a, as: p, output: o.md}, {agent: b, count: 2, output: false}], failFast: true}\n"
        + "  - {expand: {from: {output: facts, path: /items}, maxItems: 3, key: /id, item: row},"
        + " parallel: {agent: w, task: 'do {row.name} {outputs.b.full}'}, collect: {as: all}}\n"
        + "  - {agent: z, task: '{outputs.all} {outputs.p}', outputMode: file-only, output: end.md}\n",
    )


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (
            "  - {agent: b, task: '{outputs.nope}'}\n",
            "unknown chain output reference {outputs.nope} at step 1",
        ),
        ("  - {agent: b, task: '{outputs.later}'}\n  - {agent: c, as: later}\n", "{outputs.later} at step 1"),
        (
            "  - {parallel: [{agent: a, task: x, as: one}, {agent: b, task: '{outputs.one}'}]}\n",
            "unknown chain output reference {outputs.one} at step 1",
        ),
        (
            FACTS + "  - {agent: b, task: '{outputs.facts.raw}'}\n",
            "invalid chain output reference {outputs.facts.raw}",
        ),
        (FACTS + "  - {agent: b, task: '{outputs.fact}'}\n", 'did you mean "facts"?'),
        ("  - {agent: b, task: x, as: 1x}\n", "must be an output name"),
        ('  - {agent: b, task: x, as: "a\\n"}\n', "must be an output name"),
        (FACTS + "  - {agent: b, as: facts}\n", 'duplicate chain output name "facts"'),
        ("  - {agent: b, task: '{previous}'}\n", "the first step has no previous output"),
        ("  - {agent: b, task: x, outputMode: file-only}\n", "does not configure an output file"),
        (
            "  - {parallel: [{agent: a, task: x, output: /o.md}, {agent: a, task: y, output: /o.md}]}\n",
            "resolve output to the same path: /o.md",
        ),
        ("  - {agent: b, task: x, outputSchema: {type: nothing}}\n", "not a JSON Schema: /type"),
        ("  - {agent: b, task: x, outputSchema: no.json}\n", "file not found"),
        (
            "  - {expand: {from: {output: x, path: /y}, maxItems: 2}, parallel: {agent: a}, collect: {as: r}}\n",
            "the first step in a chain cannot be a fan-out",
        ),
        (
            TEXT
            + "  - {expand: {from: {output: t, path: /y}, maxItems: 2}, parallel: {agent: a}, collect: {as: r}}\n",
            'requires structured output "t"',
        ),
        (
            FACTS
            + "  - {expand: {from: {output: facts, path: y}, maxItems: 2}, parallel: {agent: a}, collect: {as: r}}\n",
            "must be a JSON Pointer starting with '/'",
        ),
        (
            FACTS
            + "  - {expand: {from: {output: facts, path: /y}}, parallel: {agent: a}, collect: {as: r}}\n",
            "maxItems — a required key is missing",
        ),
        (
            FACTS
            + "  - {expand: {from: {output: facts}, maxItems: 2}, parallel: {agent: a, task: '{foo}'},"
            + " collect: {as: r}}\n",
            "unsupported template reference {foo}",
        ),
        ("  - {parallel: [{agent: a, task: x, count: 50}, {agent: b, task: y}]}\n", "51 tasks; max 50 tasks"),
        ("  - {parallel: []}\n", "at least one task is required"),
        ("  - {task: x}\n", "a step needs an agent"),
        ("  - {agent: a, task: x, concurrency: 2}\n", "concurrency belongs to a step with parallel"),
        ("  - {agent: a, taks: x}\n", 'did you mean "task"?'),
    ],
)
def test_what_is_refused(steps: str, told: str, tmp_path: Path) -> None:
    found = problems(tmp_path, steps)
    assert any(told in line for line in found), found


def test_the_first_step_needs_a_task(tmp_path: Path) -> None:
    assert problems(tmp_path, "  - {agent: a}\n", has_task=False)
    assert problems(tmp_path, "  - {agent: a, task: x}\n  - {agent: b, task: 'of {task}'}\n", has_task=False)
    assert not problems(tmp_path, "  - {agent: a, task: x}\n  - {agent: b}\n", has_task=False)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, "  - {agent: a, task: '{outputs.x}'}\n  - {agent: b, task: '{outputs.y}'}\n")
    assert [line.split(" ")[0] for line in found] == ["4:chain[0].task", "5:chain[1].task"]


def test_a_later_step_that_looks_at_nothing_is_given_the_previous_output(tmp_path: Path) -> None:
    path = tmp_path / "c.chain.yaml"
    path.write_text(
        HEAD
        + FACTS
        + "  - {agent: b, task: go on}\n  - {agent: c}\n  - {agent: d, task: '{outputs.facts}'}\n"
    )
    tasks = [tasks_of(step)[0] for step in load_chain(path).file.chain]
    texts = [template_of(task, number).fill(str) for number, task in enumerate(tasks)]
    assert texts == ["x", "go on\n\n## Previous step output\n{previous}", "{previous}", "{outputs.facts}"]
