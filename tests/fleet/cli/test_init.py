"""`fleet init`: what it writes is valid, says what was asked for, and replaces nothing unasked."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.load import load_blueprint, validate_blueprint
from fleet.cli.init import Wish, blueprint_text
from fleet.yaml import parse
from tests.fleet.cli.calling import Call


def program(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_by_flags(call: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(place / "bin", "codex")
    monkeypatch.setenv("PATH", str(place / "bin"))
    said = call(
        *("init", "queue", "--description", "About the queue.", "--task", "Shard it?", "--topic", "one line"),
        *("--member", "analyst", "--member", "critic=Find: the worst.", "--runtime", "codex"),
        *("--rounds", "3", "--deadline", "90s"),
    )
    assert (said.code, said.out) == (0, ".fleet/blueprints/queue.yaml\n")
    path = place / ".fleet/blueprints/queue.yaml"
    loaded = load_blueprint(path)
    assert loaded.warnings == ()
    team = loaded.blueprint.teams["panel"]
    assert (loaded.blueprint.name, loaded.blueprint.task) == ("queue", "Shard it?")
    assert (team.rounds, team.deadline_seconds, team.topic) == (3, 90.0, "one line")
    assert [(m.agent, m.brief, m.runtime) for m in team.members] == [
        ("analyst", None, "codex"),
        ("critic", "Find: the worst.", "codex"),
    ]
    first = path.read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../blueprint.schema.json"
    assert (place / ".fleet/blueprint.schema.json").read_text().startswith("{")


def test_what_it_wrote_runs_by_name(call: Call, place: Path) -> None:
    assert call("init", "queue").code == 0
    said = call("run", "queue", "x", "--dry-run", "--json", "--runtime", "rehearsal")
    assert [seat["seat"] for seat in said.data["teams"][0]["seats"]] == [
        "analyst",
        "pattern-finder",
        "critic",
    ]
    assert call("validate", "--strict", "queue").code == 0


def test_nothing_is_replaced_unasked(call: Call, place: Path) -> None:
    assert call("init", "queue").code == 0
    path, schema = place / ".fleet/blueprints/queue.yaml", place / ".fleet/blueprint.schema.json"
    path.write_text("mine")
    schema.write_text("mine too")
    said = call("init", "queue")
    assert (said.code, said.out) == (2, "")
    assert ".fleet/blueprints/queue.yaml is there already" in said.err
    assert path.read_text() == "mine"
    assert call("init", "queue", "--force").code == 0
    assert path.read_text() != "mine"
    assert schema.read_text() == "mine too"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a NAME is needed where nobody can be asked"),
        (("two words",), 'name: "two words" must be alphanumeric'),
        (("q", "--member", "a/b"), 'teams.panel.members[0].agent: "a/b" must be an agent runtime name'),
        (("q", "--member", "="), 'teams.panel.members[0].agent: "" must be an agent runtime name'),
        (("q", "--deadline", "soon"), "teams.panel.deadline: expected a duration"),
        (("q", "--topic", "x" * 201), "teams.panel.topic: expected one line"),
        (("q", "--rounds", "11"), "11 is not in the range"),
        (("q", "--runtime", "gemini"), "there is: rehearsal"),
        (("q", "--output", "/proc/nowhere/q.yaml"), "cannot write /proc/nowhere/q.yaml"),
    ],
)
def test_what_cannot_be(
    call: Call, place: Path, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    done = call("init", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not (place / ".fleet/blueprints").exists() or not any((place / ".fleet/blueprints").iterdir())


def interview(place: Path, answers: list[str], path: str = "/nonexistent") -> tuple[int, str, str]:
    """Run it on a terminal of its own; the exit code, what it printed, what was on the screen."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fleet", "init"],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        cwd=place,
        env={**os.environ, "PATH": path},
    ) as process:
        os.close(theirs)
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        out, _ = process.communicate(timeout=60)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # how Linux says that nobody has the other end any more
        pass
    os.close(ours)
    return process.returncode, out, shown.decode()


def test_an_interview_with_nothing_but_enter(place: Path) -> None:
    code, out, shown = interview(place, [""] * 12)
    assert (code, out) == (0, ".fleet/blueprints/project.yaml\n"), shown
    blueprint = load_blueprint(place / ".fleet/blueprints/project.yaml").blueprint
    assert [member.agent for member in blueprint.teams["panel"].members] == [
        "analyst",
        "pattern-finder",
        "critic",
    ]
    assert "critic: Finds the failure in a proposal" in shown


def test_an_interview_that_offers_what_is_here_and_asks_again(place: Path) -> None:
    program(place / "bin", "claude")
    answers = [
        *("two words", "queue", "About it.", "Shard it?"),
        *("bad/name", "worker, critic", "Do it small.", ""),
        *("codex", "claude", "99", "4", "soon", "5m"),
    ]
    code, out, shown = interview(place, answers, str(place / "bin"))
    assert (code, out) == (0, ".fleet/blueprints/queue.yaml\n"), shown
    team = load_blueprint(place / ".fleet/blueprints/queue.yaml").blueprint.teams["panel"]
    assert [(m.agent, m.brief, m.runtime) for m in team.members] == [
        ("worker", "Do it small.", "claude"),
        ("critic", None, "claude"),
    ]
    assert (team.rounds, team.deadline_seconds) == (4, 300.0)
    assert "one of: claude, rehearsal, none" in shown
    assert "codex  " not in shown


def test_an_interview_that_is_left(place: Path) -> None:
    code, out, _ = interview(place, ["queue", "\x04"])
    assert (code, out) == (130, "")
    assert not (place / ".fleet").exists()


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60).filter(
    lambda text: text.strip() and "{{" not in text and "{%" not in text
)
lines = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=60).filter(
    lambda text: text.strip().isprintable() and text.strip() and "{{" not in text and "{%" not in text
)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
members = st.lists(
    st.tuples(names.filter(lambda n: n != "conductor"), st.none() | texts), min_size=1, max_size=6
)


@given(names, texts, members, st.none() | texts, st.none() | lines, st.integers(1, 10))
def test_whatever_is_wished_reads_back(
    name: str,
    description: str,
    seats: list[tuple[str, str | None]],
    task: str | None,
    topic: str | None,
    rounds: int,
) -> None:
    wish = Wish(name, description, tuple(seats), task, topic, "rehearsal", rounds, "1h30m")
    text = blueprint_text(wish, schema="x.json")
    blueprint = validate_blueprint(parse(text.encode(), name="x"), Path("x")).blueprint
    team = blueprint.teams["panel"]
    assert (blueprint.name, blueprint.description) == (name, description.strip())
    assert (blueprint.task, team.topic) == (task and task.strip(), topic and topic.strip())
    assert [(m.agent, m.brief) for m in team.members] == [
        (agent, brief and brief.strip()) for agent, brief in seats
    ]
    assert (team.rounds, team.deadline_seconds) == (rounds, 5400.0)
