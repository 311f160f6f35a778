"""Every agent file that a project, a user and Fleet itself bring, by name.

Looked through in this order, each with its folders below: the project's ``.fleet/agents``, ``.claude/agents`` and
``.opencode/agent(s)``, the user's ``agents``, what comes with Fleet. The first file of a name is meant by it. An agent
that a blueprint defines itself goes before all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fleet.agents.definition import AgentFile, read_agent
from fleet.blueprint.load import Loaded
from fleet.blueprint.places import Places, Scope
from fleet.errors import InvalidFile, Problem
from fleet.yaml import printable

__all__ = ["AgentCatalogue", "FoundAgent", "agent_file_names", "read_agents", "with_agents"]

#: Files looked at below one folder, and how deep: a folder of agents is not a whole disk.
_MAX_FILES, _MAX_DEPTH = 500, 5

#: A project's folders, in the order in which they are looked through.
_PROJECT = ((".fleet", "agents"), (".claude", "agents"), (".opencode", "agent"), (".opencode", "agents"))


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """One file, readable or not."""

    name: str  #: the file's own for one that cannot be read
    scope: Scope
    path: Path
    shown: str  #: the path as problems call it
    file: AgentFile | None  #: ``None`` if it is broken
    problems: tuple[Problem, ...] = ()  #: why it is broken; of a readable one what is to be said of it
    shadowed_by: Path | None = None

    @property
    def is_disabled(self) -> bool:
        """Whether the file itself takes the agent out of use."""
        return self.file is not None and self.file.definition.disable is True


@dataclass(frozen=True, slots=True)
class AgentCatalogue:
    """All of them, in the order in which they go before each other."""

    found: tuple[FoundAgent, ...]
    looked_in: tuple[str, ...]  #: for people
    _first: Mapping[str, FoundAgent] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        first: dict[str, FoundAgent] = {}
        for agent in self.found:
            if agent.shadowed_by is None and not agent.is_disabled:
                first.setdefault(agent.name, agent)
        object.__setattr__(self, "_first", first)

    def get(self, name: str) -> FoundAgent | None:
        """The one that the name means; it may be broken."""
        return self._first.get(name)


def read_agents(places: Places) -> AgentCatalogue:
    """Read every file of every folder; a broken one is among them with its problems."""
    found: list[FoundAgent] = []
    first: dict[str, Path] = {}
    looked_in = []
    for scope, folder in _folders(places):
        looked_in.append("(bundled)" if scope is Scope.BUNDLED else places.shown(folder))
        for path in _files(folder):
            agent = _read(scope, path, places)
            if agent is not None:
                shadowed_by = (
                    first.get(agent.name) if agent.is_disabled else first.setdefault(agent.name, path)
                )
                found.append(replace(agent, shadowed_by=shadowed_by if shadowed_by != path else None))
    return AgentCatalogue(tuple(found), tuple(looked_in))


def agent_file_names(places: Places) -> list[str]:
    """The names of all agent files without their ending, sorted; nothing is read."""
    return sorted({path.stem for _, folder in _folders(places) for path in _files(folder)})


def with_agents(loaded: Loaded, catalogue: AgentCatalogue) -> Loaded:
    """The blueprint with the agents from files that its members name and it does not define itself.

    Raises:
        InvalidFile: the file that such a name means is broken; all of them at once.
    """
    blueprint = loaded.blueprint
    named = [member.agent for team in blueprint.teams.values() for member in team.members]
    files: dict[str, AgentFile] = {}
    problems: list[Problem] = []
    for name in dict.fromkeys(named):
        agent = None if name in blueprint.agents else catalogue.get(name)
        if agent is None:
            continue
        if agent.file is None:
            problems += agent.problems
        else:
            files[name] = agent.file
    if problems:
        raise InvalidFile(tuple(problems), hint="the members of this blueprint name these agents")
    if not files:
        return loaded
    agents = {**blueprint.agents, **{name: file.definition for name, file in files.items()}}
    return replace(
        loaded,
        blueprint=blueprint.model_copy(update={"agents": agents}),
        agent_documents={**loaded.agent_documents, **{name: file.document for name, file in files.items()}},
    )


def _folders(places: Places) -> Iterator[tuple[Scope, Path]]:
    for parts in _PROJECT:
        for folder in places.of_project(*parts):
            yield Scope.PROJECT, folder
    yield Scope.USER, places.of_user("agents")
    yield Scope.BUNDLED, Path(__file__).with_name("bundled")


def _files(folder: Path) -> list[Path]:
    """The markdown files below a folder, sorted; links to folders are not followed."""
    found: list[Path] = []
    depth = len(folder.parts)
    for parent, folders, files in os.walk(folder):
        if len(Path(parent).parts) - depth >= _MAX_DEPTH:
            folders.clear()
        folders.sort()
        found += [Path(parent, name) for name in sorted(files) if name.endswith(".md")]
        if len(found) >= _MAX_FILES:
            break
    return found[:_MAX_FILES]


def _read(scope: Scope, path: Path, places: Places) -> FoundAgent | None:
    shown = printable(places.shown(path))
    try:
        file = read_agent(path, shown=shown)
    except InvalidFile as error:
        return FoundAgent(path.stem, scope, path, shown, None, error.problems)
    return (
        None
        if file is None
        else FoundAgent(file.name, scope, path, shown, file, (*file.notes, *file.warnings))
    )
