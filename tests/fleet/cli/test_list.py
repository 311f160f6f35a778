"""`fleet list` and `fleet show`: names, scopes, shadows, broken files, defaults and stars."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.blueprint.find import bundled
from fleet.blueprint.load import load_blueprint
from tests.fleet.cli.calling import Call

TEAM = "teams: {t: {mode: deliberate, members: [{agent: a}]}}\n"


def write(path: Path, description: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"name: n\ndescription: {description}\n{TEAM}")
    return path


def test_what_shadows_what(call: Call, place: Path, tmp_path: Path) -> None:
    write(place / ".fleet/blueprints/design.fleet.yaml", "of the project")
    write(place / ".fleet/blueprints/design.yml", "of the project too")
    write(tmp_path / "home/blueprints/design.yaml", "of the user")
    write(place / ".orphus/fleets/design.fleet.yaml", "of the other dialect")
    write(place / ".orphus/fleets/other.fleet.yaml", "only there")
    lines = [line for line in call("list").out.splitlines() if line.startswith(("design ", "other "))]
    assert lines == [
        "design (project) — of the project",
        "design (project, shadowed) — of the project too",
        "design (user, shadowed) — of the user",
        f"design (bundled, shadowed) — {load_blueprint(bundled()['design']).blueprint.description}",
        "design (orphus, shadowed) — of the other dialect",
        "other (orphus) — only there",
    ]


def test_a_broken_file_is_told_and_hides_nothing(call: Call, place: Path) -> None:
    broken = place / ".fleet/blueprints/design.yaml"
    broken.parent.mkdir(parents=True)
    broken.write_text("name: x\n" + TEAM)
    said = call("list", "--json")
    rows = [row for row in said.data if row["name"] == "design"]
    assert [(row["scope"], row["valid"]) for row in rows] == [("project", False), ("bundled", True)]
    assert rows[0]["problem"].startswith(".fleet/blueprints/design.yaml:1:1: description — a required key")
    assert said.code == 0
    assert "design (project) — INVALID — .fleet/blueprints/design.yaml:1:1: " in call("list").out
    # A run of that name is never silently another team's.
    run = call("run", "design", "x", "--dry-run")
    assert (run.code, "description — a required key is missing" in run.err) == (2, True)
    hint = f"hint: another design (bundled) can be named by its path: {bundled()['design']}\n"
    assert run.err.endswith(hint)


def test_what_is_listed_cannot_act_on_a_terminal(call: Call, place: Path) -> None:
    write(place / ".fleet/blueprints/a\x1b[2J.yaml", '"b\\e[31m\\n:: c"')
    assert "\x1b" not in call("list").out
    assert all("(" in line for line in call("list").out.splitlines())


def test_something_else_where_a_folder_should_be(call: Call, place: Path) -> None:
    (place / ".fleet").mkdir()
    (place / ".fleet/blueprints").write_text("")
    said = call("list")
    assert (said.code, said.out) == (2, "")
    assert "cannot list the blueprints in" in said.err


def test_a_name_runs_from_below_the_root_of_the_project(
    call: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / ".fleet/blueprints/mine.yaml", "of the project")
    (place / "src/deep").mkdir(parents=True)
    monkeypatch.chdir(place / "src/deep")
    said = call("run", "mine", "x", "--dry-run", "--json", "--runtime", "rehearsal")
    assert said.code == 0, said.err
    assert said.data["blueprint"] == str(place / ".fleet/blueprints/mine.yaml")


def test_show_tells_defaults_and_hides_secrets(call: Call, place: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "name: n\ndescription: d\nvars: {api_token: canary-1, depth: 2}\nagents:\n"
        "  a:\n    command: [x, --api-key, canary-2, --token=canary-3, sk-canary-4-4444]\n"
        "    mcpServers: {s: {command: y, env: {MY_SECRET: canary-5}, headers: {Authorization: canary-6}}}\n"
        "teams: {t: {mode: deliberate, rounds: 2, members: [{agent: a, env: {GH_PAT: canary-7, LEVEL: b},"
        ' args: ["https://u:canary-8@h/"]}]}}\n'
    )
    for words in (("show", str(path)), ("show", str(path), "--json")):
        said = call(*words)
        assert said.code == 0, said.err
        assert "canary" not in said.out + said.err
    text = call("show", str(path)).out
    assert "    rounds: 2\n" in text
    assert "    turnTimeout: 5m  # default\n" in text
    assert "    quorum: 1  # default: all seats\n" in text
    assert "# room: fleet-n-t by default; a run adds its id to that" in text
    data = call("show", str(path), "--json").data
    assert data["origins"]["teams.t.turnTimeout"] == "default"
    assert "teams.t.rounds" not in data["origins"]
    assert data["blueprint"]["teams"]["t"]["members"][0]["env"] == {"GH_PAT": "***", "LEVEL": "b"}


@pytest.mark.parametrize("name", ["coding-team", "design-team", "research-team", "orphus-like"])
def test_what_show_prints_is_a_blueprint_again(call: Call, place: Path, name: str) -> None:
    published = Path(__file__).parents[1] / "blueprint" / "published" / "coding.fleet.yaml"
    text = published.read_text().replace("name: coding", f"name: {name}", 1)
    copy = published.parent / "unused"
    given = place / "given.yaml"
    given.write_text(text.replace("briefPath: debugger.md", f"briefPath: {copy.parent}/debugger.md"))
    again = place / "again.yaml"
    again.write_text(call("show", str(given)).out)
    apart = {"agents", "pipeline", "teams"}
    first, second = load_blueprint(given).blueprint, load_blueprint(again).blueprint
    assert first.model_dump(exclude=apart) == second.model_dump(exclude=apart)
    # What had to be looked for elsewhere now stands in the file.
    assert "worker" in second.agents
    for team in first.teams:
        assert first.teams[team].members == second.teams[team].members
        assert first.teams[team].quorum_size == second.teams[team].quorum_size
