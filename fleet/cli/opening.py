"""What every command does with a blueprint before its own work: find it, read it and all that it points to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.blueprint.find import Found, all_blueprints, look_up
from fleet.blueprint.places import Places, Scope
from fleet.errors import InvalidFile
from fleet.yaml import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.agents.find import AgentCatalogue
    from fleet.agents.skills import Skill
    from fleet.blueprint.load import Loaded
    from fleet.settings import Settings
    from fleet.yaml import Document

__all__ = [
    "Opened",
    "folder_here",
    "known_runtime",
    "open_blueprint",
    "open_document",
    "places_of",
    "settings_here",
]


@dataclass(frozen=True, slots=True)
class Opened:
    """A blueprint with all that it points to, ready to become a plan."""

    found: Found
    loaded: Loaded  #: its texts filled in, with the agents from files that its members name
    briefs: Mapping[str, str]
    skills: Mapping[str, Skill]
    agents: AgentCatalogue  #: the agent files; none where the blueprint defines all its agents itself
    warnings: tuple[str, ...]


def open_blueprint(
    word: str,
    settings: Settings,
    *,
    variables: Sequence[str] = (),
    is_task_needed: bool = True,
    is_lenient: bool = False,
) -> Opened:
    """Open the blueprint at a path or of a name, its texts filled in (`with_variables` says how).

    Raises:
        UsageProblem: there is none, or a variable is not one of its own.
        InvalidFile: with every problem at once.
    """
    places = places_of(settings)
    found = look_up(word, places)
    try:
        return open_document(
            read(found.path, what="blueprint"),
            found,
            settings,
            variables=variables,
            is_task_needed=is_task_needed,
            is_lenient=is_lenient,
        )
    except InvalidFile as error:
        # A broken file is never passed over for another team's; but there may be one.
        error.hint = error.hint or _another(found, places)
        raise


def _another(found: Found, places: Places) -> str | None:
    """Where the next file of the same name lies, if a name was meant and there is one."""
    if found.scope is Scope.PATH:
        return None
    others = [
        other for other in all_blueprints(places) if other.name == found.name and other.path != found.path
    ]
    return (
        f"another {found.name} ({others[0].scope}) can be named by its path: {others[0].path}"
        if others
        else None
    )


def open_document(
    document: Document,
    found: Found,
    settings: Settings,
    *,
    variables: Sequence[str] = (),
    is_task_needed: bool = True,
    is_lenient: bool = False,
) -> Opened:
    """Do what `open_blueprint` does with a file that was found and read already."""
    from fleet.agents.find import AgentCatalogue, read_agents, with_agents
    from fleet.agents.skills import find_skills
    from fleet.blueprint.briefs import read_briefs
    from fleet.blueprint.load import validate_blueprint
    from fleet.blueprint.variables import with_variables
    from fleet.blueprint.wording import in_order

    places = places_of(settings)
    loaded, lacking = with_variables(
        validate_blueprint(document, found.path),
        variables,
        is_task_needed=is_task_needed,
        is_lenient=is_lenient,
    )
    blueprint = loaded.blueprint
    named = {member.agent for team in blueprint.teams.values() for member in team.members}
    agents = read_agents(places) if named - set(blueprint.agents) else AgentCatalogue((), ())
    loaded = with_agents(loaded, agents)
    skills, missing = find_skills(loaded, places)
    slips = [
        problem
        for name in loaded.agent_documents
        if (agent := agents.get(name)) is not None and agent.file is not None
        for problem in agent.file.warnings
    ]
    warnings = tuple(map(str, (*loaded.warnings, *lacking, *in_order(missing), *slips)))
    return Opened(found, loaded, read_briefs(loaded), skills, agents, warnings)


def known_runtime(name: str | None) -> str | None:
    """The value of ``--runtime`` as it was given.

    Raises:
        UsageProblem: no version of Fleet has a runtime of that name.
    """
    from fleet.agents.choose import RUNTIMES
    from fleet.errors import UsageProblem

    if name is not None and name not in RUNTIMES:
        raise UsageProblem(f'--runtime: unknown runtime "{name}"', hint=f"known: {', '.join(RUNTIMES)}")
    return name


def settings_here() -> Settings:
    """The settings of this call.

    Raises:
        InvalidFile: the user's settings file is not what it should be.
    """
    from fleet.settings import resolve

    return resolve(os.environ, folder=folder_here())


def folder_here() -> Path:
    """The folder this call was made in.

    Raises:
        UsageProblem: it was removed meanwhile.
    """
    from fleet.errors import UsageProblem

    try:
        return Path.cwd()
    except OSError as error:
        raise UsageProblem("the folder you are in is gone", hint="go to one that exists: cd") from error


def places_of(settings: Settings) -> Places:
    """Where this call looks for what has a name."""
    return Places.around(settings.folder, home=settings.home.root)
