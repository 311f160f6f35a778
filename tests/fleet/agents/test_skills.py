"""Skills are found, told by path and description, and missed with where they were looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.agents.skills import find_skills
from fleet.blueprint.load import Loaded, load_blueprint
from fleet.blueprint.places import Places
from fleet.plan import PlanOptions, plan_seats
from fleet.roles.launch import from_blueprint
from fleet.settings import resolve

FOLDERS = ("project/.fleet/skills", "project/.agents/skills", "project/.claude/skills", "home/skills")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "project/.git").mkdir(parents=True)
    return Places.around(tmp_path / "project", home=tmp_path / "home")


def skill(folder: Path, name: str, description: str = "Tests first.") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n")
    return path


def blueprint(folder: Path, text: str) -> Loaded:
    path = folder / "team.yaml"
    path.write_text(f"name: n\ndescription: d\n{text}")
    return load_blueprint(path)


def test_the_nearest_of_a_name_is_meant(places: Places, tmp_path: Path) -> None:
    loaded = blueprint(tmp_path, "teams: {t: {mode: deliberate, skills: [tdd], members: [{agent: a}]}}")
    paths = [skill(tmp_path / folder, "tdd", folder) for folder in FOLDERS]
    for path, folder in zip(paths, FOLDERS, strict=True):
        found, missing = find_skills(loaded, places)
        assert (found["tdd"].path, found["tdd"].description, missing) == (path, folder, ())
        path.unlink()
    assert find_skills(loaded, places)[0] == {}


def test_a_missing_one_says_where_it_was_looked_for(places: Places, tmp_path: Path) -> None:
    loaded = blueprint(
        tmp_path,
        "agents: {a: {skills: [own]}, b: {skill: old}, c: {skills: [unused]}}\n"
        "teams:\n  t:\n    mode: deliberate\n    members:\n"
        "      - {agent: a}\n      - {agent: b}\n      - {agent: c, skills: [tdd, ../x]}\n",
    )
    skill(tmp_path / "project/.fleet", "x")  # there, and no skill of that name
    _, missing = find_skills(loaded, places)
    assert [(problem.key, problem.text.split(":")[0]) for problem in missing] == [
        ("agents.a.skills", "no skill 'own'"),
        ("agents.b.skill", "no skill 'old'"),
        ("teams.t.members[2].skills[0]", "no skill 'tdd'"),
        ("teams.t.members[2].skills[1]", "no skill '../x'"),
    ]
    assert missing[0].text.endswith(
        f"in .fleet/skills/, .agents/skills/, .claude/skills/, {tmp_path / 'home/skills'}/"
    )


def test_what_each_seat_may_use(places: Places, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        skill(tmp_path / "project/.claude/skills", name)
    loaded = blueprint(
        tmp_path,
        "agents: {a: {skills: [three]}}\n"
        "teams:\n  t: {mode: deliberate, skills: [two], members: [{agent: a, skills: [one, two]}, {agent: a}]}\n"
        "  u: {mode: deliberate, members: [{agent: a}, {agent: b}]}\n",
    )
    found, _ = find_skills(loaded, places)
    settings = resolve({"FLEET_HOME": str(tmp_path / "home")}, folder=tmp_path)
    seated = plan_seats(loaded, settings, PlanOptions(), briefs={}, skills=found)
    names = [[skill.name for skill in seat.skills] for team in seated.values() for seat in team]
    assert names == [["two", "one"], ["two"], ["three"], []]


def test_a_seat_on_a_screen_is_told_of_its_skills_too(places: Places, tmp_path: Path) -> None:
    path = skill(tmp_path / "project/.fleet/skills", "tdd")
    loaded = blueprint(
        tmp_path,
        "teams: {t: {mode: deliberate, members: [{agent: a, brief: Mine., skills: [tdd]}, {agent: b}]}}",
    )
    found, _ = find_skills(loaded, places)
    one, other = from_blueprint(loaded, binary=None, layout=None, skills=found).launches
    read = "Read the file of a skill before you do what it is for:"
    assert one.brief == f"Mine.\n\n{read}\n- tdd: {path} (Tests first.)"
    assert other.brief == ""


def test_a_skill_that_says_nothing_of_itself_is_named_all_the_same(places: Places, tmp_path: Path) -> None:
    loaded = blueprint(tmp_path, "teams: {t: {mode: deliberate, skills: [s, t, u], members: [{agent: a}]}}")
    folder = tmp_path / "project/.fleet/skills"
    skill(folder, "s").write_text("no settings")
    skill(folder, "t").write_bytes(b"---\n\xff\n---\n")
    skill(folder, "u", "x" * 300)
    found, missing = find_skills(loaded, places)
    assert [len(found[name].description) for name in "stu"] == [0, 0, 200]
    assert missing == ()
