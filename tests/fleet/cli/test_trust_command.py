"""The question is asked once, on a terminal; elsewhere it is exit 6 with the way out."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.cli.calling import Call

ACTING = """\
name: acting
description: d
task: t
agents: {prog: {command: [sh, -c, "cat >/dev/null; echo FINAL: done"], env: {MY_TOKEN: canary}}}
teams: {t: {mode: deliberate, rounds: 1, deadline: 1m, members: [{agent: prog}]}}
"""


@pytest.fixture
def acting(place: Path) -> Path:
    path = place / ".fleet/blueprints/acting.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(ACTING)
    return path


def test_without_a_terminal_it_is_refused_with_the_way_out(call: Call, acting: Path) -> None:
    for words in (("run", "acting"), ("roles", "acting"), ("trust", "acting")):
        said = call(*words)
        assert (said.code, said.out) == (6, "")
        assert "not trusted yet, and it came with this project: .fleet/blueprints/acting.yaml (" in said.err
        assert "hint: look at it; then: fleet trust acting --yes" in said.err
        assert "canary" not in said.err


def test_looking_at_it_needs_no_trust(call: Call, acting: Path) -> None:
    for words in (
        ("run", "acting", "--dry-run"),
        ("show", "acting"),
        ("list",),
        ("agents", "--blueprint", "acting"),
        ("validate", str(acting)),
    ):
        said = call(*words)
        assert said.code == 0, said.err
        assert "canary" not in said.out + said.err


def test_a_yes_holds_until_the_file_changes(call: Call, acting: Path) -> None:
    assert call("trust", "acting", "--yes").code == 0
    assert call("roles", "acting").code == 0
    assert call("trust", "acting").err == ".fleet/blueprints/acting.yaml: trusted already\n"
    (row,) = call("trust", "--json").data
    assert (row["path"], row["current"]) == (str(acting), True)
    acting.write_text(ACTING + "# changed\n")
    assert call("roles", "acting").code == 6
    assert "(changed or gone since)" in call("trust").out
    assert call("trust", "acting", "--forget").err == "1 forgotten\n"
    assert call("trust").out == ""


def test_a_path_on_the_command_line_is_trusted(call: Call, acting: Path) -> None:
    assert call("roles", str(acting)).code == 0
    assert call("roles", ".fleet/blueprints/acting.yaml").code == 0


def test_an_agent_of_the_project_is_asked_about_whoever_names_it(call: Call, place: Path) -> None:
    agent = place / ".claude/agents/helper.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("---\nname: helper\nmcpServers: {s: {command: x}}\n---\nI help.\n")
    (place / "team.yaml").write_text(
        "name: n\ndescription: d\ntask: t\nteams: {t: {mode: deliberate, members: [{agent: helper}]}}\n"
    )
    said = call("run", "team.yaml")
    assert said.code == 6
    assert ".claude/agents/helper.md (starts MCP servers: s" in said.err
    assert "fleet trust team.yaml --yes" in said.err
    assert call("trust", "helper", "--yes").code == 0
    assert call("roles", "team.yaml").code == 0
    assert call("trust", "nobody").code == 2


def test_nothing_to_trust(call: Call, place: Path) -> None:
    said = call("trust", "design")
    assert (said.code, said.err) == (0, "nothing to trust: nothing there could act\n")


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 6), (b"\x04", 6)])
def test_on_a_terminal_it_is_asked_once(acting: Path, place: Path, answer: bytes, code: int) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "dumb"}
    for count in (1, 2):
        with subprocess.Popen(
            [sys.executable, "-m", "fleet", "roles", "acting"],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=environ,
            cwd=place,
        ) as process:
            if count == 1 or code:
                shown = b""
                while b"[y/N]" not in shown:
                    shown += os.read(ours, 4096)
                assert b"acting.yaml came with this project and could act:" in shown
                assert b"agent prog: runs sh -c" in shown
                assert b"canary" not in shown
                os.write(ours, answer)
            out, _ = process.communicate(timeout=60)
            assert process.returncode == code
            assert bool(out) == (code == 0)
    os.close(ours)
    os.close(theirs)
