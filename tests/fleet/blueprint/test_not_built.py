"""A blueprint that asks for more than this version has is told so key by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.blueprint.find import bundled
from fleet.blueprint.load import load_blueprint
from fleet.blueprint.not_built import not_built

AVAILABLE = """\
name: n
description: d
task: about {{ subject }}
vars: {subject: x}
defaults: {concurrency: 2, budgets: {digest: 1000, perMessage: 300}}
agents:
  a: {runtime: command, command: [x], prompt: p, description: q, env: {A: b}, cwd: ., model: m/n, color: red}
teams:
  t:
    mode: deliberate
    protocol: free
    drive: runtime
    rounds: 3
    topic: x
    room: r
    quorum: 1
    deadline: 10m
    turnTimeout: 1m
    blocking: true
    layout: tiled
    concurrency: 2
    worktree: false
    approvals: deny
    approve: false
    members:
      - {agent: a, count: 2, brief: b, runtime: claude, model: x/y, tools: [read], cwd: ., env: {C: d}, args: [e]}
      - {agent: b, name: q, timeout: 1m, color: blue, retries: 0, worktree: false, approvals: allow-read}
"""

BEYOND = """\
name: n
description: d
orchestrator: {agent: o, prompt: p, model: m}
agents:
  a: {runtime: command, command: [x], session: true, fallbackModels: [x], output: y, skills: [z], approvals: allow}
teams:
  t:
    mode: deliberate-then-dispatch
    protocol: round-robin
    drive: agent
    observer: o
    worktree: true
    approvals: allow
    approve: true
    skills: [s]
    group: true
    members:
      - {agent: a, worktree: true, approvals: allow, skills: [s], retries: 1, fallbackModels: [m], output: f}
  u: {mode: dispatch, members: [{agent: a}]}
pipeline: [t, u]
gate: {model: m}
budget: {usd: 1}
digest: {summarizer: a}
"""


def found(folder: Path, text: str) -> list[str]:
    path = folder / "x.yaml"
    path.write_text(text)
    return [f"{problem.key} — {problem.text}" for problem in not_built(load_blueprint(path))]


def test_what_is_available_is_not_complained_about(tmp_path: Path) -> None:
    assert found(tmp_path, AVAILABLE) == []


@pytest.mark.parametrize("name", sorted(bundled()))
def test_what_comes_with_fleet_can_run(name: str) -> None:
    assert not_built(load_blueprint(bundled()[name])) == ()


def test_everything_beyond_is_named(tmp_path: Path) -> None:
    lines = found(tmp_path, BEYOND)
    assert [line.split(" — ")[0] for line in lines] == [
        *("orchestrator.agent", "orchestrator.prompt", "orchestrator.model"),
        *(
            "agents.a.session",
            "agents.a.fallbackModels",
            "agents.a.output",
            "agents.a.approvals",
        ),
        *(f"teams.t.{key}" for key in ("protocol", "drive", "observer", "worktree", "approvals")),
        *("teams.t.approve", "teams.t.group"),
        *(f"teams.t.members[0].{key}" for key in ("worktree", "approvals")),
        "teams.t.members[0].fallbackModels",
        *("gate", "digest.summarizer"),
    ]
    assert all("is not available in this version" in line for line in lines)
    assert "teams.t.protocol — round-robin is not available in this version (available: free)" in lines


def test_each_has_its_position(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(BEYOND)
    loaded = load_blueprint(path)
    for problem in not_built(loaded):
        line = path.read_text().splitlines()[problem.line - 1]
        assert line[problem.column - 1 :].startswith(problem.key.rpartition(".")[2])
