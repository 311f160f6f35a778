"""`fleet validate`: every finding at once, in every form, and what --strict makes of it."""

from __future__ import annotations

import json
from pathlib import Path

from fleet.blueprint.find import bundled
from tests.fleet.cli.calling import Call

WARNED = """\
name: n
description: d
defaults: {concurrency: 5}
teams: {t: {mode: dispatch, rounds: 2, members: [{agent: a}]}}
"""
BROKEN = "name: two words\ndescription: d\nteams: {t: {mode: chat, members: [{agent: a, cont: 2}]}}\n"


def test_strict_says_that_it_is_strict(call: Call, place: Path) -> None:
    (place / "w.yaml").write_text(WARNED)
    said = call("validate", "w.yaml")
    assert (said.code, said.out) == (0, "w.yaml: valid, 2 warnings\n")
    strict = call("validate", "--strict", "w.yaml")
    assert (strict.code, strict.out) == (2, "")
    assert strict.err == said.err + "w.yaml: valid, but --strict takes 2 warnings for errors\n"
    report = call("validate", "--strict", "--json", "w.yaml").data
    assert (report["valid"], report["ok"], report["strict"], len(report["warnings"])) == (
        True,
        False,
        True,
        2,
    )


def test_every_finding_at_once(call: Call, place: Path) -> None:
    (place / "b.yaml").write_text(BROKEN)
    (place / "w.yaml").write_text(WARNED)
    said = call("validate", "--json", "b.yaml", "w.yaml", "gone.yaml")
    broken, warned, gone = map(json.loads, said.out.splitlines())
    assert said.code == 2
    assert [(e["line"], e["column"], e["key"]) for e in broken["errors"]] == [
        (1, 1, "name"),
        (3, 13, "teams.t.mode"),
        (3, 46, "teams.t.members[0].cont"),
    ]
    assert (warned["ok"], gone["ok"]) == (True, False)


def test_names_are_taken_too(call: Call, place: Path) -> None:
    said = call("validate", *sorted(bundled()))
    assert said.code == 0
    assert said.err == ""
    assert call("validate", "no-such-name").code == 2


def test_agent_files_are_taken_too(call: Call, place: Path) -> None:
    (place / "good.md").write_text("---\nname: x\n---\nprompt\n")
    (place / "odd.md").write_text("---\nname: Two Words\nmaxTurns: many\n---\nprompt\n")
    (place / "bad.md").write_text("---\ntools: 5\n---\n")
    (place / "none.md").write_text("# just text\n")
    assert call("validate", "good.md").out == "good.md: valid\n"
    odd = call("validate", "odd.md")
    assert (odd.code, odd.out) == (0, "odd.md: valid, 2 warnings\n")
    assert "odd.md:2:1: name — blueprints call it two-words (warning)" in odd.err
    assert "bad.md:2:1: tools — expected a list, got 5" in call("validate", "bad.md").err
    assert "none.md:1:1: no agent file" in call("validate", "none.md").err
    assert call("validate", "bad.md", "none.md").code == 2


def test_what_is_installed_here_does_not_matter(call: Call, place: Path) -> None:
    (place / "x.yaml").write_text(
        "name: n\ndescription: d\n"
        "teams: {t: {mode: deliberate, skills: [nowhere], members: [{agent: a, runtime: pi}]}}\n"
    )
    assert call("validate", "--strict", "x.yaml").code == 0
