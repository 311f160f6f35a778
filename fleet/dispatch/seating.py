"""Seats for work that no blueprint declares: the agents that a command line or a chain names, as a plan.

They are planned as a blueprint's are, by the same code: which runtime fills a seat, what its argv is, how seats are
numbered. Not here: what they are asked (``assignment``), and whether files of a project are trusted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fleet.agents.find import AgentCatalogue, read_agents, with_agents
from fleet.agents.skills import find_skills
from fleet.blueprint.find import Found
from fleet.blueprint.load import Loaded
from fleet.blueprint.places import Places, Scope
from fleet.blueprint.schema import AgentDefinition, Blueprint, Budgets, Defaults, Member, Team
from fleet.errors import UsageProblem
from fleet.plan import Plan, PlanOptions, make_plan
from fleet.settings import Settings
from fleet.yaml import Document

__all__ = ["Seated", "Seating", "seat_teams"]


@dataclass(frozen=True, slots=True)
class Seating:
    """One team to be: its members, and what bounds it."""

    name: str
    members: Sequence[Member]
    concurrency: int = 4
    is_fail_fast: bool = False


@dataclass(frozen=True, slots=True)
class Seated:
    """The plan of all seats, and the files it was made from, whose trust is still to be asked for."""

    plan: Plan
    found: Found
    loaded: Loaded
    agents: AgentCatalogue


def seat_teams(
    teams: Sequence[Seating],
    settings: Settings,
    options: PlanOptions,
    *,
    fleet: str,
    run: str,
    file: Path | None = None,
    agents: Mapping[str, AgentDefinition] | None = None,
    document: Document | None = None,
    scope: Scope = Scope.PATH,
) -> Seated:
    """Plan the seats of ``teams``. ``agents`` are defined beside them; any other name is an agent file's.

    ``file`` is where all this is written, if it is, and ``scope`` whose file that is; paths in ``agents`` are relative
    to its folder, else to where the command was started. A turn has no ceiling but what its member says: who gives
    work out gives it its time.

    Raises:
        UsageProblem: an agent is neither defined nor found.
        InvalidFile: an agent's file is broken.
        RuntimeMissing, AgreementNeeded: as for any plan.
    """
    agents = dict(agents or {})
    blueprint = Blueprint.model_construct(
        name=fleet,
        description=fleet,
        agents=agents,
        defaults=Defaults.model_construct(budgets=Budgets.model_construct()),
        # Not validated: a team that nobody declared may have any number of seats.
        teams={
            team.name: Team.model_construct(
                mode="dispatch", members=tuple(team.members), turn_timeout=math.inf
            )
            for team in teams
        },
    )
    path = file or Path()
    positions = document or Document(str(path), {}, {}, {})
    folder = settings.folder if file is None else file.parent.absolute()
    loaded = Loaded(path, blueprint, (), folder, positions)
    places = Places.around(settings.folder, home=settings.home.root)
    named = {member.agent for team in teams for member in team.members}
    catalogue = read_agents(places) if named - set(agents) else AgentCatalogue((), ())
    loaded = with_agents(loaded, catalogue)
    unknown = sorted(named - set(loaded.blueprint.agents))
    if unknown:
        raise UsageProblem(
            f"unknown agent: {', '.join(unknown[:5])}",
            hint="fleet agents lists them; a program needs no agent: --command 'PROGRAM WORDS'",
        )
    skills, _ = find_skills(loaded, places)
    plan = make_plan(loaded, settings, options, briefs={}, run=run, skills=skills)
    shaped = tuple(
        replace(planned, concurrency=team.concurrency, is_fail_fast=team.is_fail_fast)
        for planned, team in zip(plan.teams, teams, strict=True)
    )
    return Seated(replace(plan, teams=shaped), Found(fleet, scope, path), loaded, catalogue)
