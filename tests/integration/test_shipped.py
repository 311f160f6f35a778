"""Every blueprint that comes with Fleet runs by its name, on the rehearsal, to a decision."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from fleet.blueprint.find import bundled
from fleet.blueprint.load import load_blueprint
from fleet.cli.schema import schema_text
from fleet.runs.results import result_schema
from fleet.yaml import read
from tests.integration.running import fleet

SHIPPED = sorted(bundled())


def test_the_ones_people_are_told_of_are_there() -> None:
    assert {"coding", "design", "release", "research", "review"} <= set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_it_runs_by_its_name_to_a_decision(name: str, environ: dict[str, str], place: Path) -> None:
    task = "Should the importer read the old format?"
    done = fleet("run", name, task, "--runtime", "rehearsal", "--json", environ=environ, folder=place)
    assert done.code == 0, done.stderr
    result = json.loads(done.stdout)
    jsonschema.validate(result, result_schema())
    blueprint = load_blueprint(bundled()[name]).blueprint
    assert (result["fleet"], result["task"], result["rehearsal"]) == (name, task, True)
    (team,) = result["teams"]
    assert len(team["members"]) == next(iter(blueprint.teams.values())).size
    assert all(member["final"] for member in team["members"])
    assert result["decision"]["outcome"] not in ("split", "none")
    assert "warning: " not in done.stderr


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_a_good_example(name: str) -> None:
    path = bundled()[name]
    lines = path.read_text().splitlines()
    # An editor checks it as you type, from wherever it is opened.
    schema = lines[0].removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / schema).read_text() == schema_text("blueprint")
    assert f"#   fleet run {name}" in "\n".join(
        lines
    ) or f"#   fleet run blueprints/{name}.yaml" in "\n".join(lines)
    assert max(map(len, lines)) <= 125
    jsonschema.Draft202012Validator(json.loads(schema_text("blueprint"))).validate(
        read(path, what="file").data
    )
    blueprint = load_blueprint(path).blueprint
    assert (blueprint.name, blueprint.task is not None) == (name, True)
    for team in blueprint.teams.values():
        assert team.topic is not None
        assert all(member.brief is not None and len(member.brief) > 150 for member in team.members)
