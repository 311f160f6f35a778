"""`--var` on the command line, and that nothing but the blueprint's own texts is a template."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.cli.calling import Call

TEXT = """\
name: n
description: d
task: Decide on {{ subject }}.
vars: {subject: queues, depth: 1}
teams: {t: {mode: deliberate, members: [{agent: a, brief: "Go {{ depth }} deep in {{ where }}."}]}}
"""


@pytest.fixture
def team(place: Path) -> str:
    (place / "x.yaml").write_text(TEXT)
    return "x.yaml"


def plan(call: Call, *words: str) -> str:
    said = call("run", *words, "--dry-run", "--json", "--runtime", "rehearsal")
    assert said.code == 0, said.err
    return str(said.data["task"])


def test_values_from_the_command_line(call: Call, team: str) -> None:
    assert plan(call, team, "--var", "where=src") == "Decide on queues."
    assert plan(call, team, "--var", "where=src", "--var", "subject={{ depth }}") == "Decide on {{ depth }}."


def test_a_task_from_the_command_line_is_no_template(call: Call, team: str) -> None:
    assert (
        plan(call, team, "About {{ subject }} {% nothing %}", "--var", "where=src")
        == "About {{ subject }} {% nothing %}"
    )


def test_what_is_missing_or_too_much(call: Call, team: str) -> None:
    missing = call("run", team, "--dry-run")
    assert (missing.code, missing.out) == (2, "")
    assert (
        'x.yaml:5:52: teams.t.members[0].brief — "where" has no value; give it one with --var where=…'
        in missing.err
    )
    wrong = call("run", team, "--dry-run", "--var", "wher=src")
    assert (wrong.code, 'asks for "wher", did you mean "where"?' in wrong.err) == (2, True)
    assert "hint: its variables: depth, subject, where" in wrong.err


def test_looking_needs_no_values(call: Call, team: str) -> None:
    said = call("show", team)
    assert said.code == 0
    assert "Go {{ depth }} deep in {{ where }}." in said.out
    assert '"where" has no value' in said.err
    assert "Go 2 deep in src." in call("show", team, "--var", "where=src", "--var", "depth=2").out
    assert call("agents", "--blueprint", team).code == 0
