"""Which file an agent's name means, and what a blueprint gets of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fleet.agents.find import read_agents, with_agents
from fleet.blueprint.load import Loaded, load_blueprint
from fleet.blueprint.not_built import not_built
from fleet.blueprint.places import Places
from fleet.errors import InvalidFile

PUBLISHED = Path(__file__).with_name("published")
BUNDLED = ("analyst", "critic", "debugger", "librarian", "pattern-finder", "researcher", "reviewer", "worker")


def agent(path: Path, **settings: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{key}: {value}\n" for key, value in settings.items())
    path.write_text(f"---\n{lines}---\nI am {path}.\n")
    return path


def blueprint(folder: Path, *members: str, agents: str = "{}") -> Loaded:
    path = folder / "team.yaml"
    listed = ", ".join(f"{{agent: {name}}}" for name in members)
    path.write_text(
        f"name: n\ndescription: d\nagents: {agents}\nteams: {{t: {{mode: deliberate, members: [{listed}]}}}}\n"
    )
    return load_blueprint(path)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "project/.git").mkdir(parents=True)
    return Places.around(tmp_path / "project", home=tmp_path / "home")


def test_the_bundled_agents_are_there_and_say_something(places: Places) -> None:
    catalogue = read_agents(places)
    assert tuple(found.name for found in catalogue.found) == BUNDLED
    for found in catalogue.found:
        assert found.problems == ()
        assert found.file is not None
        definition = found.file.definition
        assert 40 < len(definition.description or "") < 120
        assert 300 < len(definition.prompt or "") < 1200
        assert "roundtable" in (definition.tools or ())


def test_nearer_files_go_first(places: Places, tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    order = [
        agent(project / ".fleet/agents/deep/critic.md"),
        agent(project / ".claude/agents/x.md", name="critic"),
        agent(project / ".opencode/agent/critic.md"),
        agent(project / ".opencode/agents/critic.md"),
        agent(home / "agents/critic.md"),
    ]
    for path in order:
        catalogue = read_agents(places)
        found = catalogue.get("critic")
        assert found is not None
        assert found.path == path
        assert {
            other.shadowed_by for other in catalogue.found if other.name == "critic" and other != found
        } == {path}
        path.unlink()
    last = read_agents(places).get("critic")
    assert last is not None
    assert last.scope == "bundled"


def test_a_disabled_agent_is_not_there(places: Places, tmp_path: Path) -> None:
    agent(tmp_path / "project/.fleet/agents/critic.md", disable="true")
    found = read_agents(places).get("critic")
    assert found is not None
    assert found.scope == "bundled"


def test_a_blueprint_gets_the_agents_it_names_and_no_others(places: Places, tmp_path: Path) -> None:
    shutil.copytree(PUBLISHED / "claude", tmp_path / "project/.claude/agents")
    shutil.copytree(PUBLISHED / "opencode", tmp_path / "project/.opencode/agent")
    loaded = blueprint(tmp_path, "code-reviewer", "docs-writer", "stranger", "critic", "release-manager")
    filled = with_agents(loaded, read_agents(places))
    assert list(filled.blueprint.agents) == ["code-reviewer", "docs-writer", "critic", "release-manager"]
    assert (filled.blueprint.agents["docs-writer"].prompt or "").startswith("You are a technical writer.")
    assert filled.agent_documents["code-reviewer"].name == ".claude/agents/code-reviewer.md"
    assert not_built(filled) == ()


def test_the_blueprints_own_definition_wins(places: Places, tmp_path: Path) -> None:
    loaded = blueprint(tmp_path, "critic", agents="{critic: {prompt: Mine.}}")
    filled = with_agents(loaded, read_agents(places))
    assert filled.blueprint.agents["critic"].prompt == "Mine."
    assert filled.agent_documents == {}


def test_a_broken_file_that_a_name_means_is_told_and_not_passed_over(places: Places, tmp_path: Path) -> None:
    agent(tmp_path / "project/.fleet/agents/critic.md", tools="5")
    agent(tmp_path / "project/.fleet/agents/worker.md", approvals="maybe")
    agent(tmp_path / "project/.fleet/agents/unrelated.md", tools="5")
    with pytest.raises(InvalidFile) as caught:
        with_agents(blueprint(tmp_path, "critic", "worker"), read_agents(places))
    assert [problem.path for problem in caught.value.problems] == [
        ".fleet/agents/critic.md",
        ".fleet/agents/worker.md",
    ]


def test_what_is_not_available_is_told_at_its_place_in_the_agents_file(
    places: Places, tmp_path: Path
) -> None:
    agent(tmp_path / "project/.fleet/agents/critic.md", name="critic", output="x.md")
    filled = with_agents(blueprint(tmp_path, "critic"), read_agents(places))
    (problem,) = not_built(filled)
    assert str(problem).startswith(".fleet/agents/critic.md:3:1: output — output is not available")


def test_a_folder_of_agents_is_not_a_whole_disk(places: Places, tmp_path: Path) -> None:
    deep = tmp_path / "project/.fleet/agents"
    agent(deep.joinpath(*"abcde") / "just.md")
    agent(deep.joinpath(*"abcdef") / "too-deep.md")
    (deep / "loop").symlink_to(deep)
    names = [found.name for found in read_agents(places).found]
    assert names.count("just") == 1
    assert "too-deep" not in names
