"""Whole files: what loads, what is warned about, and every problem of a broken one at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from fleet.blueprint.find import bundled
from fleet.blueprint.load import Loaded, load_blueprint
from fleet.errors import InvalidFile
from fleet.roles.manifest import is_manifest, load_manifest
from fleet.yaml import read

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BROKEN = sorted((HERE / "broken").glob("*.yaml"))
SHARED = ROOT.parent / "shared" / "examples" / "blueprints"


def load(folder: Path, text: str) -> Loaded:
    path = folder / "x.yaml"
    path.write_text(text)
    return load_blueprint(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidFile) as caught:
        load(folder, text)
    assert caught.value.exit_code == 2
    return [f"{problem.key} — {problem.text}" for problem in caught.value.problems]


def with_team(team: str) -> str:
    lines = "".join(f"    {line}\n" for line in team.splitlines())
    return f"name: n\ndescription: d\nteams:\n  t:\n{lines}"


def with_member(member: str) -> str:
    return with_team(f"mode: deliberate\nmembers:\n  - {{agent: a, {member}}}")


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.name)
def test_every_problem_of_a_broken_file_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    given = Path(path.name)
    with pytest.raises(InvalidFile) as caught:
        (load_manifest if ".roles." in path.name else load_blueprint)(given)
    expected = path.with_name(path.name + ".expected").read_text().replace("HERE", str(HERE))
    assert f"{caught.value}\n" == expected


@pytest.mark.parametrize("name", ["coding.fleet.yaml", "panel.fleet.yaml"])
def test_the_published_dialect_loads_unchanged(name: str) -> None:
    path = HERE / "published" / name
    loaded = load_blueprint(path)
    assert loaded.path == path
    assert loaded.folder == HERE / "published"
    assert loaded.warnings == ()


def test_the_published_manifest_loads_unchanged() -> None:
    loaded = load_manifest(HERE / "published" / "orphus.roles.yaml")
    assert list(loaded.manifest.roles) == ["planner", "critic"]
    assert (loaded.manifest.budgets.digest, loaded.manifest.budgets.per_message) == (1500, 600)
    assert loaded.manifest.roles["planner"].worktree == "active"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no folder of published examples beside the repository")
def test_the_published_examples_themselves_load() -> None:
    paths = sorted(SHARED.glob("*.yaml"))
    assert paths
    for path in paths:
        if is_manifest(read(path, what="file")):
            load_manifest(path)
        else:
            load_blueprint(path)


@pytest.mark.parametrize("name", sorted(bundled()))
def test_what_comes_with_fleet_loads_without_a_warning(name: str) -> None:
    path = bundled()[name]
    assert load_blueprint(path).warnings == ()
    assert path.read_text().startswith("# yaml-language-server: $schema=")


def test_the_manifest_that_comes_with_fleet_loads() -> None:
    assert len(load_manifest(ROOT / "blueprints" / "roles.yaml").manifest.roles) == 4


def test_every_reference_key_arrives(tmp_path: Path) -> None:
    blueprint = load_blueprint(HERE / "published" / "coding.fleet.yaml").blueprint
    design, build, review = (blueprint.teams[name] for name in ("design", "build", "review"))
    assert blueprint.orchestrator is not None
    assert blueprint.orchestrator.model == "anthropic/claude-opus"
    assert (blueprint.defaults.concurrency, blueprint.defaults.budgets.per_message) == (3, 500)
    assert (design.room, design.rounds, design.deadline_seconds) == ("the-design", 3, 600.0)
    assert design.members[1].skills == ("review",)
    assert design.members[1].brief == "Argue for the smallest change."
    assert (build.mode, build.skills, build.group, build.concurrency) == ("dispatch", ("tdd",), "builders", 2)
    assert (review.blocking, review.group) == (True, True)
    assert blueprint.order == ("design", "build", "review")
    assert blueprint.gate is not None
    assert blueprint.gate.reviewers == ("alice", "bob")


def test_defaults(tmp_path: Path) -> None:
    blueprint = load(tmp_path, with_team("mode: deliberate\nmembers: [{agent: a}]")).blueprint
    team = blueprint.teams["t"]
    assert (blueprint.version, blueprint.defaults.concurrency) == (1, 4)
    assert (blueprint.defaults.budgets.digest, blueprint.defaults.budgets.per_message) == (2000, 600)
    assert (team.rounds, team.blocking, team.protocol, team.drive) == (2, False, "free", "runtime")
    assert (team.deadline_seconds, team.turn_timeout_seconds, team.quorum_size) == (None, 300.0, 1)
    assert (team.members[0].count, team.layout) == (1, "windows")
    assert blueprint.order == ("t",)
    assert blueprint.room("t") == "fleet-n-t"


def test_at_the_limits(tmp_path: Path) -> None:
    team = """\
mode: deliberate
rounds: 10
concurrency: 50
deadlineMs: 2147483647
quorum: 50
members: [{agent: a, count: 50}]"""
    loaded = load(tmp_path, with_team(team))
    assert loaded.blueprint.teams["t"].size == 50
    assert any("50 is above 4" in str(warning) for warning in loaded.warnings)


@pytest.mark.parametrize(
    ("team", "said"),
    [
        ("mode: chat\nmembers: [{agent: a}]", 'teams.t.mode — "chat" is not a mode; allowed: dispatch, '),
        ("mode: dispatch", "teams.t.members — a required key is missing; at least one member is required"),
        ("mode: dispatch\nmembers: []", "teams.t.members — at least one member is required"),
        ("mode: dispatch\nmembers: x", 'teams.t.members — expected a list of members, got "x"'),
        ("mode: dispatch\nmembers: [{agent: a, count: 51}]", "51 exceeds the limit of 50"),
        ("mode: dispatch\nmembers: [{agent: a, count: 26}, {agent: b, count: 25}]", "expands to 51 members"),
        ("mode: dispatch\nmembers: [{agent: a}]\nrounds: 11", "11 exceeds the sane ceiling of 10"),
        ("mode: dispatch\nmembers: [{agent: a}]\nrounds: 0", "expected a positive integer, got 0"),
        ("mode: dispatch\nmembers: [{agent: a}]\nconcurrency: 51", "the parallel-task ceiling of 50"),
        ("mode: dispatch\nmembers: [{agent: a}]\ndeadlineMs: 2147483648", "timer delay of 2147483647 ms"),
        ("mode: dispatch\nmembers: [{agent: a}]\nblocking: 'yes'", 'expected true or false, got "yes"'),
        ("mode: dispatch\nmembers: [{agent: a}]\nblocking: yes", 'expected true or false, got "yes"'),
        ("mode: dispatch\nmembers: [{agent: a}]\nquorum: 2", "quorum — 2 is more than the 1 members"),
        ("mode: dispatch\nmembers: [{agent: a}]\ndeadline: 25d", "expected a duration such as 90s"),
        ("mode: dispatch\nmembers: [{agent: a}]\ndeadline: 0s", "expected a duration such as 90s"),
        ("mode: dispatch\nmembers: [{agent: a}]\ndeadline: 999999999h", "at most 24 days"),
        ("mode: dispatch\nmembers: [{agent: a}]\ngroup: false", "expected true or the name of a group"),
        ("mode: dispatch\nmembers: [{agent: a}]\nskills: x", 'skills — expected a list, got "x"'),
        ("mode: dispatch\nmembers: [{agent: a}]\ntopic:", "topic — expected a value, got nothing"),
    ],
)  # fmt: skip
def test_a_team_that_cannot_be(tmp_path: Path, team: str, said: str) -> None:
    found = problems(tmp_path, with_team(team))
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("count: true", "expected a positive integer, got true"),
        ("count: '2'", 'expected a positive integer, got "2"'),
        ("count: 2.0", "expected a positive integer, got 2.0"),
        ("count: [1]", "expected a positive integer, got a list"),
        ("skills: x", 'expected a list, got "x"'),
        ("tools: read", 'expected a list, got "read"'),
        ("brief: ' '", 'expected a non-empty string, got " "'),
        ('brief: "a\\0b"', "contains a NUL character"),
        ("brief: x, briefPath: y", "brief and briefPath are mutually exclusive"),
        ("color: '#12345'", "is not a color; allowed: #rrggbb"),
        ("color: ' red'", ""),
        ("env: {A: true}", "expected text, got true (quotes make it text)"),
        ("env: [A]", "expected a map of variable name to text, got a list"),
        ("name: 'a b'", "must be alphanumeric"),
        ('name: "a\\n"', ""),
        ('name: "a\\nb"', 'name — "a\\nb" must be alphanumeric'),
        ("name: " + "x" * 65, "at most 64 characters"),
        ("timeout: 10", "expected a duration such as 90s"),
        ("colour: red", ', did you mean "color"?'),
    ],
)
def test_a_member_that_cannot_be(tmp_path: Path, member: str, said: str) -> None:
    if not said:  # trimmed, and fine
        load(tmp_path, with_member(member))
        return
    found = problems(tmp_path, with_member(member))
    if "briefPath: y" in member:
        assert "file not found" in found.pop()
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 2", "version — this loader understands version 1, got 2"),
        ("version: 1.0", "version — expected a positive integer, got 1.0"),
        ("version: true", "version — expected a positive integer, got true"),
        ("pipeline: []", "pipeline — must name every declared team exactly once; missing: t"),
        ("pipeline: [t, t]", 'pipeline[1] — "t" appears more than once'),
        ("gate: {}", "gate — an empty gate gates nothing"),
        ("gate: {reviewers: []}", "gate.reviewers — at least one reviewer, or omit the key"),
        ("vars: {a: [1]}", "vars.a — expected text, a number, true or false"),
        ("vars: {a-b: 1}", 'vars.a-b — "a-b" must be a variable name'),
        ("budget: {usd: .inf}", "budget.usd — expected a positive number"),
        ("agents: {a: {mode: x}}", 'agents.a.mode — "x" is not a mode; allowed: primary, subagent, all'),
        ("agents: {a: {command: python3 x.py}}", "agents.a.command — expected a list"),
        ("agents: [a]", "agents — expected a map of agent name to settings, got a list"),
    ],
)
def test_a_blueprint_that_cannot_be(tmp_path: Path, text: str, said: str) -> None:
    found = problems(tmp_path, with_team("mode: deliberate\nmembers: [{agent: a}]") + text + "\n")
    assert len(found) == 1
    assert said in found[0]


def test_a_scalar_is_echoed_at_most_80_characters(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, with_member(f"count: {'s' * 5000}"))
    assert "[5002 chars]" in found
    assert "s" * 79 in found
    assert "s" * 81 not in found


def test_what_a_terminal_could_obey_is_written_out(tmp_path: Path) -> None:
    text = with_member(r'count: "\e[2J\u202e", "\e[31mkey\n": 1')
    (*found,) = problems(tmp_path, text)
    assert len(found) == 2
    assert all(line.isprintable() for line in found)


def test_briefs_are_looked_for_beside_the_blueprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "brief.md").write_text("x")
    monkeypatch.chdir(tmp_path)
    Path("sub/x.yaml").write_text(with_member("briefPath: brief.md"))
    loaded = load_blueprint(Path("sub/x.yaml"))
    assert loaded.folder == tmp_path / "sub"


def test_three_kinds_of_briefs_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked.md").write_text("x")
    (tmp_path / "locked.md").chmod(0)
    os.mkfifo(tmp_path / "pipe")
    for written, said in (
        ("missing.md", f"file not found: {tmp_path}/missing.md"),
        ("folder", f"not a regular file: {tmp_path}/folder"),
        ("pipe", f"not a regular file: {tmp_path}/pipe"),
        ("~nobody-of-that-name/x.md", "file not found: "),
        ("x" * 300, "not readable: "),
    ):
        (found,) = problems(tmp_path, with_member(f"briefPath: {written}"))
        assert said in found
    if os.geteuid() != 0:
        (found,) = problems(tmp_path, with_member("briefPath: locked.md"))
        assert f"not readable: {tmp_path}/locked.md" in found


WARNED = """\
name: w
description: every warning in one file
defaults: {concurrency: 5}
teams:
  talk:
    mode: deliberate
    deadlineMs: 1000
    blocking: true
    concurrency: 6
    members:
      - {agent: a, tools: []}
      - {agent: b, tools: [read]}
      - {agent: c, tools: [roundtable]}
  work:
    mode: dispatch
    rounds: 3
    blocking: false
    concurrency: 5
    members: [{agent: d, tools: []}]
  more:
    mode: deliberate
    room: fleet-w-talk
    members: [{agent: e}]
"""


SEATED = "concurrency bounds dispatch only: all members of a deliberating team are seated at once"
MUTE = "tools lacks roundtable: this member of a deliberating team could not speak in the room"


def test_warnings_are_all_told_and_none_is_fatal(tmp_path: Path) -> None:
    warnings = [f"{w.line} {w.key} — {w.text}" for w in load(tmp_path, WARNED).warnings]
    assert warnings == [
        "3 defaults.concurrency — 5 is above 4: every slot is a live model session",
        f"9 teams.talk.concurrency — {SEATED}",
        "9 teams.talk.concurrency — 6 is above 4: every slot is a live model session",
        f"11 teams.talk.members[0].tools — {MUTE}",
        f"12 teams.talk.members[1].tools — {MUTE}",
        "16 teams.work.rounds — rounds has no effect: dispatch teams do not deliberate",
        "17 teams.work.blocking — blocking has no effect: dispatch is always awaited",
        "18 teams.work.concurrency — 5 is above 4: every slot is a live model session",
        '22 teams.more.room — teams talk and more share room "fleet-w-talk" — their deliberations will merge',
    ]


def test_problems_point_into_the_file(tmp_path: Path) -> None:
    loaded = load(tmp_path, WARNED)
    said = str(loaded.problem(("teams", "talk", "members", 1, "tools"), "x"))
    assert said == f"{tmp_path}/x.yaml:12:20: teams.talk.members[1].tools — x"


def test_the_model_and_its_schema_agree_on_layouts() -> None:
    from fleet.blueprint.schema import Layout
    from fleet.cli.roles_output import LAYOUTS

    assert Layout.__args__ == LAYOUTS  # type: ignore[attr-defined]


def test_our_yaml_reader_and_the_plain_one_agree_on_what_comes_with_fleet() -> None:
    path = bundled()["design"]
    assert read(path, what="file").data == yaml.safe_load(path.read_text())


def test_a_numbered_name_leaves_room_for_its_number(tmp_path: Path) -> None:
    text = (
        "name: f\ndescription: d\nteams: {t: {mode: deliberate, members: [{agent: a, name: %s, count: 2}]}}\n"
    )
    load(tmp_path, text % ("n" * 60))
    (problem,) = problems(tmp_path, text % ("n" * 61))
    assert "teams.t.members[0].name — at most 60 characters where count is above 1" in problem
