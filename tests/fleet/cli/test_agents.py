"""`fleet agents`: what there is, and what fills each seat and why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fleet.blueprint.load import load_blueprint
from fleet.blueprint.not_built import not_built
from tests.fleet.cli.calling import Call

PUBLISHED = Path(__file__).parents[1] / "agents" / "published"


def test_the_list(call: Call, place: Path) -> None:
    shutil.copytree(PUBLISHED / "claude", place / ".claude/agents")
    (place / ".claude/agents/broken.md").write_text("---\ntools: 5\n---\n")
    (place / ".claude/agents/notes.md").write_text("Not an agent.\n")
    said = call("agents")
    lines = said.out.splitlines()
    assert said.code == 0
    assert (
        "critic (bundled) — Finds the failure in a proposal, and says what would settle the matter." in lines
    )
    at = lines.index("broken (project: .claude/agents/broken.md) — INVALID")
    assert lines[at + 1].startswith("  .claude/agents/broken.md:2:1: tools — expected a list")
    assert any(line.startswith("release-manager (project: ") for line in lines)
    assert not any("notes" in line for line in lines)
    rows = {row["name"]: row for row in call("agents", "--json").data}
    assert rows["broken"]["valid"] is False
    assert rows["release-manager"]["unused"] == ["emoji", "vibe", "version"]


def test_what_fills_each_seat_and_why(call: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place / "bin"))
    shutil.copytree(PUBLISHED / "claude", place / ".claude/agents")
    (place / "team.yaml").write_text(
        "name: n\ndescription: d\ntask: t\n"
        "agents: {critic: {prompt: Mine.}, prog: {command: [./gone.py]}}\n"
        "teams:\n  panel:\n    mode: deliberate\n    members:\n"
        "      - {agent: critic}\n      - {agent: code-reviewer}\n      - {agent: stranger, runtime: pi}\n"
        "      - {agent: prog}\n      - {agent: release-manager, runtime: rehearsal}\n"
    )
    said = call("agents", "--blueprint", "team.yaml", "--json")
    assert said.code == 0, said.err
    seats = {seat["seat"]: seat for seat in said.data["seats"]}
    assert (seats["critic"]["scope"], seats["critic"]["named"]) == ("inline", False)
    assert seats["critic"]["instead_of"].endswith("bundled/critic.md")
    reviewer = seats["code-reviewer"]
    assert (reviewer["runtime"], reviewer["reason"]) == ("claude", "provider anthropic of the model")
    assert reviewer["definition"] == ".claude/agents/code-reviewer.md"
    assert reviewer["missing"][0].startswith("this version has no such runtime")
    assert reviewer["missing"][1] == "claude is not on PATH"
    assert (seats["stranger"]["definition"], seats["stranger"]["reason"]) == (None, "runtime of the member")
    assert seats["prog"]["missing"] == [f"{place}/gone.py is not there"]
    assert seats["release-manager"]["missing"] == []
    assert ["no skill 'changelog'" in warning for warning in said.data["warnings"]] == [True]

    text = call("agents", "--blueprint", "team.yaml").out
    assert "  seat stranger: pi (runtime of the member)" in text
    assert "    agent stranger: defined nowhere; it has its brief and nothing else" in text


def test_a_runtime_for_all(call: Call, place: Path) -> None:
    said = call("agents", "--blueprint", "design", "--runtime", "rehearsal", "--json")
    assert {seat["reason"] for seat in said.data["seats"]} == {"--runtime on the command line"}
    assert said.data["refused"] == []
    assert call("agents", "--blueprint", "design", "--runtime", "reharsal").code == 2
    assert call("agents", "--runtime", "rehearsal").code == 2


def test_what_a_run_would_refuse_is_told(call: Call, place: Path) -> None:
    (place / "team.yaml").write_text(
        "name: n\ndescription: d\ngate: {model: m}\ndigest: {summarizer: a}\norchestrator: {agent: a}\n"
        "teams: {t: {mode: deliberate, protocol: moderated, members: [{agent: worker, worktree: true}]}}\n"
    )
    refused = not_built(load_blueprint(Path("team.yaml")))
    assert refused
    said = call("agents", "--blueprint", "team.yaml")
    assert [line for line in said.out.splitlines() if line.startswith("fleet run refuses ")] == [
        f"fleet run refuses {problem}" for problem in refused
    ]
    assert call("agents", "--blueprint", "team.yaml", "--json").data["refused"] == list(map(str, refused))
