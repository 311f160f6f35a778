"""Blueprint and settings -> Plan: every seat, runtime, argv, room and limit. What a dry run prints.

Pure. A plan can be run as it stands; making one starts nothing. Values of ``env`` are kept out of every rendering.
Times are spans in seconds here; they become deadlines when the run begins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fleet.agents.choose import BUILT, Choice, choose
from fleet.agents.skills import Skill, skill_names
from fleet.blueprint.beside import argv_beside
from fleet.blueprint.load import Loaded
from fleet.blueprint.not_built import not_built
from fleet.blueprint.schema import AgentDefinition, Blueprint, default_room
from fleet.blueprint.seats import Seat, seats_of
from fleet.blueprint.starred import starred_variables, starred_words
from fleet.errors import AgreementNeeded, NotBuilt, RuntimeMissing, UsageProblem
from fleet.settings import Settings

__all__ = [
    "DEFAULT_DEADLINE_SECONDS",
    "BudgetPlan",
    "Plan",
    "PlanOptions",
    "SeatPlan",
    "TeamPlan",
    "make_plan",
    "plan_seats",
    "runtime_problem",
]

#: A run in which nothing names a deadline has half an hour, like most of its kind.
DEFAULT_DEADLINE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a command line may say beside the file."""

    task: str | None = None
    runtime: str | None = None  #: fills every seat, whatever the file says
    deadline_seconds: float | None = None  #: for the whole run
    has_no_deadline: bool = False  #: lifts the default, not what the file says
    is_agreed: bool = False  #: a yes to what nobody named


@dataclass(frozen=True, slots=True)
class SeatPlan:
    """One seat: who fills it, where, with what in mind."""

    name: str
    agent: str
    runtime: str
    runtime_reason: str
    is_named: bool  #: whether anybody asked for this runtime
    command: tuple[str, ...] | None  #: argv of the ``command`` runtime, the program made absolute
    model: str | None
    persona: str | None
    brief: str | None
    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    turn_timeout_seconds: float  #: ``math.inf`` where nobody named a ceiling
    color: str | None
    definition: str | None = (
        None  #: where the agent is defined: a file, or the blueprint; ``None`` for nowhere
    )
    skills: tuple[Skill, ...] = ()
    retries: int = 0  #: further attempts at a turn that failed
    output: Path | None = None  #: absolute; the file its work goes to


@dataclass(frozen=True, slots=True)
class TeamPlan:
    """One team: its room, its limits and its seats in order."""

    name: str
    mode: str
    room: str  #: empty for a team that only dispatches: its members do not meet
    topic: str | None
    rounds: int
    quorum: int
    deadline_seconds: float | None
    digest_budget: int
    per_message: int
    is_blocking: bool
    seats: tuple[SeatPlan, ...]
    concurrency: int = 4  #: how many dispatched members work at the same time
    is_fail_fast: bool = False  #: whether the first failure of a dispatched member stops the others


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """What a run may spend, as far as it is known what it spends; ``None`` is no limit."""

    usd: float | None = None
    tokens: int | None = None
    minutes: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run before it begins."""

    run: str
    fleet: str
    task: str
    blueprint: Path
    deadline_seconds: float | None
    is_rehearsal: bool  #: no model stands behind any seat of the built-in kind
    teams: tuple[TeamPlan, ...]
    warnings: tuple[str, ...]
    budget: BudgetPlan | None = None

    def as_data(self) -> dict[str, Any]:
        """Plain data for a dry run; values of ``env`` that look like secrets are ``***``."""
        return {
            "run": self.run,
            "fleet": self.fleet,
            "task": self.task,
            "blueprint": str(self.blueprint),
            "deadline_seconds": self.deadline_seconds,
            "budget": None if self.budget is None else asdict(self.budget),
            "rehearsal": self.is_rehearsal,
            "teams": [_team_data(team) for team in self.teams],
            "warnings": list(self.warnings),
        }


def make_plan(
    loaded: Loaded,
    settings: Settings,
    options: PlanOptions,
    *,
    briefs: Mapping[str, str],
    run: str,
    skills: Mapping[str, Skill] = MappingProxyType({}),
) -> Plan:
    """The plan for ``run``; ``briefs`` holds the text of every ``briefPath``, ``skills`` those that were found.

    Raises:
        NotBuilt: the file asks for what this version does not have.
        UsageProblem: there is no task, or a seat has a name that is taken.
        RuntimeMissing: a runtime that was named is not there; all of them in one message.
        AgreementNeeded: nobody named what would fill the seats and there is nobody to ask.
    """
    blueprint = loaded.blueprint
    missing = not_built(loaded)
    if missing:
        raise NotBuilt(missing, hint="fleet validate accepts it; remove the key to run it now")
    task = (options.task if options.task is not None else blueprint.task or "").strip()
    if not task:
        raise UsageProblem(
            "no task: neither the command line nor the blueprint has one", hint="fleet run FILE 'TASK'"
        )

    seated = plan_seats(loaded, settings, options, briefs=briefs, skills=skills)
    teams = tuple(_team(blueprint, name, seated[name], run) for name in blueprint.order)
    seats = [seat for team in teams for seat in team.seats]
    _check_runtimes(seats)
    is_rehearsal = any(seat.runtime == "rehearsal" for seat in seats)
    unnamed = [seat.name for seat in seats if seat.runtime == "rehearsal" and not seat.is_named]
    if unnamed and settings.is_ci and not options.is_agreed:
        raise AgreementNeeded(
            f"nothing fills {_listed(unnamed)}: the rehearsal runtime would, and it uses no model",
            hint="name it with --runtime rehearsal, or agree with --yes",
        )
    return Plan(
        run=run,
        fleet=blueprint.name,
        task=task,
        blueprint=loaded.path,
        deadline_seconds=_deadline(blueprint, options),
        is_rehearsal=is_rehearsal,
        teams=teams,
        warnings=_warnings(loaded, teams),
        budget=_budget(blueprint),
    )


def plan_seats(
    loaded: Loaded,
    settings: Settings,
    options: PlanOptions,
    *,
    briefs: Mapping[str, str],
    skills: Mapping[str, Skill] = MappingProxyType({}),
) -> dict[str, tuple[SeatPlan, ...]]:
    """The seats of every team in the order the teams run; whether a runtime is there is not looked at."""
    return {
        name: tuple(
            _seat(loaded, name, seat, settings, options, briefs, skills)
            for seat in seats_of(loaded.blueprint.teams[name])
        )
        for name in loaded.blueprint.order
    }


def runtime_problem(seat: SeatPlan) -> str | None:
    """Why this version cannot fill the seat, as a clause, or ``None``."""
    if seat.runtime not in BUILT:
        return f"this version has no such runtime (wanted by {seat.name}: {seat.runtime_reason})"
    if seat.runtime == "command" and seat.command is None:
        return f"agent {seat.agent} of seat {seat.name} has no `command`"
    return None


def _team(blueprint: Blueprint, name: str, seats: tuple[SeatPlan, ...], run: str) -> TeamPlan:
    team = blueprint.teams[name]
    budgets = blueprint.defaults.budgets
    return TeamPlan(
        name=name,
        mode=team.mode,
        # A default room gets the run's id, so that two runs of one blueprint never meet by accident.
        room=(team.room or default_room(blueprint.name, name, suffix=f"-{run}")) if team.deliberates else "",
        topic=team.topic,
        rounds=team.rounds,
        quorum=team.quorum_size,
        deadline_seconds=team.deadline_seconds,
        digest_budget=budgets.digest,
        per_message=budgets.per_message,
        is_blocking=team.blocking,
        seats=seats,
        concurrency=team.concurrency or blueprint.defaults.concurrency,
        is_fail_fast=team.fail_fast,
    )


def _seat(
    loaded: Loaded,
    team_name: str,
    seat: Seat,
    settings: Settings,
    options: PlanOptions,
    briefs: Mapping[str, str],
    skills: Mapping[str, Skill],
) -> SeatPlan:
    team, member = loaded.blueprint.teams[team_name], seat.member
    defined = loaded.blueprint.agents.get(member.agent)
    document = loaded.agent_documents.get(member.agent, loaded.positions)
    agent = defined or AgentDefinition()
    model = member.model or agent.model
    choice: Choice = choose(
        override=options.runtime,
        member=member.runtime,
        agent=agent.runtime or ("command" if agent.command else None),
        model=model,
        default=settings.default_runtime,
    )
    cwd = member.cwd or agent.cwd
    # A folder written in the file is relative to the file; without one a member works where the run was started.
    folder = settings.folder if cwd is None else (loaded.folder / Path(cwd).expanduser()).absolute()
    return SeatPlan(
        name=seat.name,
        agent=member.agent,
        runtime=choice.runtime,
        runtime_reason=choice.reason,
        is_named=choice.is_named,
        command=_argv(agent, member.args, loaded.folder) if choice.runtime == "command" else None,
        model=model,
        definition=document.name if defined else None,
        persona=agent.prompt,
        brief=member.brief if member.brief_path is None else briefs[member.brief_path],
        skills=tuple(skills[name] for name in skill_names(team, member, defined) if name in skills),
        cwd=folder,
        env={**agent.env, **member.env},
        turn_timeout_seconds=min(team.turn_timeout_seconds, member.timeout or team.turn_timeout_seconds),
        color=member.color or agent.color,
        retries=member.retries,
        output=None if member.output is None else folder / member.output,
    )


def _argv(agent: AgentDefinition, args: tuple[str, ...], folder: Path) -> tuple[str, ...] | None:
    return (*argv_beside(agent.command, folder), *agent.args, *args) if agent.command else None


def _check_runtimes(seats: list[SeatPlan]) -> None:
    missing: dict[str, str] = {}
    for seat in seats:
        problem = runtime_problem(seat)
        if problem is None:
            continue
        names = [other.name for other in seats if other.runtime == seat.runtime and runtime_problem(other)]
        problem = problem.replace(f"wanted by {seat.name}:", f"wanted by {_listed(names)}:")
        missing.setdefault(seat.runtime, problem)
    if missing:
        raise RuntimeMissing(
            missing, hint=f"available: {', '.join(sorted(BUILT))}; --runtime NAME overrides all seats"
        )


def _budget(blueprint: Blueprint) -> BudgetPlan | None:
    written = blueprint.budget
    if written is None or not written.model_fields_set:
        return None
    return BudgetPlan(written.usd, written.tokens, written.minutes)


def _deadline(blueprint: Blueprint, options: PlanOptions) -> float | None:
    if options.deadline_seconds is not None:
        return options.deadline_seconds
    if options.has_no_deadline or any(team.deadline_seconds is not None for team in blueprint.teams.values()):
        return None
    return DEFAULT_DEADLINE_SECONDS


def _warnings(loaded: Loaded, teams: tuple[TeamPlan, ...]) -> tuple[str, ...]:
    blueprint, warnings = loaded.blueprint, []
    undefined = sorted({seat.agent for team in teams for seat in team.seats if seat.definition is None})
    if undefined:
        warnings.append(
            f"no definition of {_listed(undefined)}, neither under agents nor in an agent file: "
            "such a seat has its brief and nothing else"
        )
    # Agent files are written for many programs; only what this blueprint says itself is a promise to be kept.
    own = [agent for name, agent in blueprint.agents.items() if name not in loaded.agent_documents]
    members = [member for team in blueprint.teams.values() for member in team.members]
    if any(agent.tools is not None for agent in own) or any(member.tools is not None for member in members):
        warnings.append("tools has no effect on the runtimes command and rehearsal")
    return tuple(warnings)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _team_data(team: TeamPlan) -> dict[str, Any]:
    return {
        "team": team.name,
        "mode": team.mode,
        "room": team.room or None,
        "topic": team.topic,
        "rounds": team.rounds if team.room else None,
        "concurrency": team.concurrency,
        "quorum": team.quorum,
        "deadline_seconds": team.deadline_seconds,
        "budgets": {"digest": team.digest_budget, "perMessage": team.per_message},
        "seats": [
            {
                "seat": seat.name,
                "agent": seat.agent,
                "runtime": seat.runtime,
                "reason": seat.runtime_reason,
                "definition": seat.definition,
                "command": starred_words(seat.command) if seat.command else None,
                "model": seat.model,
                "skills": {skill.name: str(skill.path) for skill in seat.skills},
                "cwd": str(seat.cwd),
                "env": starred_variables(seat.env),
                "turn_timeout_seconds": (
                    None if math.isinf(seat.turn_timeout_seconds) else seat.turn_timeout_seconds
                ),
            }
            for seat in team.seats
        ],
    }
