"""``fleet agents``: the agents there are, or what would fill each seat of a blueprint and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.completing import blueprint_names, runtime_names

if TYPE_CHECKING:
    from fleet.agents.find import AgentCatalogue, FoundAgent
    from fleet.cli.opening import Opened
    from fleet.plan import SeatPlan
    from fleet.settings import Settings

__all__ = ["command"]

#: Characters of a description; published ones run to a page.
_MAX_DESCRIPTION = 160


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet agents --blueprint design",
)
@click.option(
    "--blueprint", metavar="FILE|NAME", shell_complete=blueprint_names, help="Tell what would fill its seats."
)
@click.option(
    "--runtime", metavar="NAME", shell_complete=runtime_names, help="As for fleet run; with --blueprint."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def command(blueprint: str | None, runtime: str | None, *, as_json: bool) -> None:
    """List the agents that blueprints may name.

    With --blueprint: for every seat the agent and where it is defined, the runtime and why it is that one, the model,
    the skills, and what is missing. Nothing is started.
    """
    from fleet.agents.find import read_agents
    from fleet.cli.opening import known_runtime, open_blueprint, places_of, settings_here
    from fleet.errors import UsageProblem

    settings = settings_here()
    if blueprint is None:
        if runtime is not None:
            raise UsageProblem(
                "--runtime goes with --blueprint", hint="fleet agents --blueprint FILE --runtime NAME"
            )
        _list(read_agents(places_of(settings)), as_json=as_json)
        return
    opened = open_blueprint(blueprint, settings, is_lenient=True)
    _explain(opened, settings, known_runtime(runtime), as_json=as_json)


def _list(catalogue: AgentCatalogue, *, as_json: bool) -> None:
    from roundtable.harmless import harmless_line

    rows = [_agent(found) for found in sorted(catalogue.found, key=lambda found: found.name)]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row, found in zip(rows, sorted(catalogue.found, key=lambda found: found.name), strict=True):
        where = str(found.scope) if row["scope"] == "bundled" else f"{row['scope']}: {found.shown}"
        state = ", shadowed" if row["shadowed"] else ", disabled" if row["disabled"] else ""
        said = _short(row["description"] or "(no description)") if row["valid"] else "INVALID"
        click.echo(harmless_line(f"{row['name']} ({where}{state}) — {said}"))
        for problem in row["problems"]:
            click.echo(harmless_line(f"  {problem}"))


def _agent(found: FoundAgent) -> dict[str, Any]:
    definition = found.file.definition if found.file is not None else None
    return {
        "name": found.name,
        "scope": str(found.scope),
        "path": str(found.path),
        "shadowed": found.shadowed_by is not None,
        "disabled": found.is_disabled,
        "valid": found.file is not None,
        "description": definition.description if definition is not None else None,
        "runtime": definition.runtime if definition is not None else None,
        "model": definition.model if definition is not None else None,
        "problems": [str(problem) for problem in found.problems],
        "unused": list(found.file.unused) if found.file is not None else [],
    }


def _explain(opened: Opened, settings: Settings, runtime: str | None, *, as_json: bool) -> None:
    from fleet.agents.find import read_agents
    from fleet.blueprint.not_built import not_built
    from fleet.cli.opening import places_of
    from fleet.plan import PlanOptions, plan_seats
    from roundtable.harmless import harmless_line

    seated = plan_seats(
        opened.loaded, settings, PlanOptions(runtime=runtime), briefs=opened.briefs, skills=opened.skills
    )
    catalogue = read_agents(places_of(settings))
    seats = [
        _seat(opened, catalogue, settings, team, seat) for team, of_team in seated.items() for seat in of_team
    ]
    refused = [str(problem) for problem in not_built(opened.loaded)]
    if as_json:
        report = {
            "blueprint": str(opened.found.path),
            "seats": seats,
            "refused": refused,
            "warnings": list(opened.warnings),
        }
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
        return
    for warning in opened.warnings:
        click.echo(f"warning: {warning}", err=True)
    team = None
    for seat in seats:
        if seat["team"] != team:
            team = seat["team"]
            click.echo(f"team {team}")
        for line in _lines(seat):
            click.echo(harmless_line(line))
    for problem in refused:
        click.echo(harmless_line(f"fleet run refuses {problem}"))


def _seat(
    opened: Opened, catalogue: AgentCatalogue, settings: Settings, team: str, seat: SeatPlan
) -> dict[str, Any]:
    found = catalogue.get(seat.agent)
    is_file = seat.agent in opened.loaded.agent_documents
    return {
        "team": team,
        "seat": seat.name,
        "agent": seat.agent,
        "definition": seat.definition,
        "scope": str(found.scope) if is_file and found else "inline" if seat.definition else None,
        # A file of that name that the blueprint's own definition goes before.
        "instead_of": found.shown if found and seat.definition and not is_file else None,
        "runtime": seat.runtime,
        "reason": seat.runtime_reason,
        "named": seat.is_named,
        "program": _program(seat, settings),
        "model": seat.model,
        "skills": {skill.name: str(skill.path) for skill in seat.skills},
        "missing": _missing(seat, settings),
    }


def _program(seat: SeatPlan, settings: Settings) -> str | None:
    """Where the program is that would run, if it is there."""
    from fleet.agents.choose import CLIS
    from fleet.agents.present import where_is

    name = CLIS.get(seat.runtime) or (seat.command[0] if seat.command else None)
    return where_is(name, settings.environ) if name else None


def _missing(seat: SeatPlan, settings: Settings) -> list[str]:
    """What keeps the seat from being filled, as clauses."""
    from fleet.agents.choose import CLIS
    from fleet.check import seat_problem
    from fleet.plan import runtime_problem

    found = [problem for problem in (runtime_problem(seat), seat_problem(seat, settings)) if problem]
    if seat.runtime in CLIS and _program(seat, settings) is None:
        found.append(f"{CLIS[seat.runtime]} is not on PATH")
    if seat.runtime == "rehearsal" and not seat.is_named and settings.is_ci:
        found.append("nobody named a runtime, and in CI nobody can be asked: --runtime rehearsal or --yes")
    return found


def _lines(seat: dict[str, Any]) -> list[str]:
    lines = [f"  seat {seat['seat']}: {seat['runtime']} ({seat['reason']})"]
    if seat["definition"] is None:
        lines.append(f"    agent {seat['agent']}: defined nowhere; it has its brief and nothing else")
    else:
        lines.append(f"    agent {seat['agent']}: {seat['scope']}, {seat['definition']}")
    if seat["instead_of"]:
        lines.append(f"    not used, the blueprint's own goes first: {seat['instead_of']}")
    if seat["program"]:
        lines.append(f"    program: {seat['program']}")
    lines.append(f"    model: {seat['model'] or 'none named'}")
    lines += [f"    skill {name}: {path}" for name, path in seat["skills"].items()]
    lines += [f"    missing: {problem}" for problem in seat["missing"]]
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_DESCRIPTION else line[: _MAX_DESCRIPTION - 1] + "…"
