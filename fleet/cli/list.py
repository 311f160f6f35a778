"""``fleet list``: every blueprint that has a name here, whose it is, and what stands in its way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fleet.blueprint.find import Found
    from fleet.blueprint.places import Places

__all__ = ["command"]

#: Characters of a broken file's first problem.
_MAX_PROBLEM = 160


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet list --json",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array instead.")
def command(*, as_json: bool) -> None:
    """List the blueprints and the chains that can be run by name.

    The project's go before the user's, and those before the ones that come with Fleet; a shadowed one is run by its
    path. A broken file is listed with its first problem.
    """
    from fleet.blueprint.find import all_blueprints
    from fleet.cli.opening import places_of, settings_here
    from roundtable.harmless import harmless_line

    places = places_of(settings_here())
    rows = [_row(found, places) for found in sorted(all_blueprints(places), key=lambda found: found.name)]
    rows += _chains(places)
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        scope = f"{row['scope']}, shadowed" if row["shadowed"] else row["scope"]
        scope = f"chain, {scope}" if row["kind"] == "chain" else scope
        said = row["description"] if row["valid"] else f"INVALID — {row['problem'][:_MAX_PROBLEM]}"
        click.echo(harmless_line(f"{row['name']} ({scope}) — {said}"))


def _row(found: Found, places: Places) -> dict[str, Any]:
    from pathlib import Path

    from fleet.blueprint.load import load_blueprint
    from fleet.errors import InvalidFile

    path = places.shown(found.path)
    description, problem = None, None
    try:
        description = load_blueprint(Path(path)).blueprint.description
    except InvalidFile as error:
        problem = str(error.problems[0])
    return {
        "kind": "blueprint",
        "name": found.name,
        "scope": str(found.scope),
        "path": path,
        "shadowed": found.shadowed_by is not None,
        "valid": problem is None,
        "description": description,
        "problem": problem,
    }


def _chains(places: Places) -> list[dict[str, Any]]:
    from fleet.chain.find import all_chains
    from fleet.chain.load import load_chain
    from fleet.errors import FleetError

    rows = []
    for found in sorted(all_chains(places), key=lambda found: found.name):
        description, problem = None, None
        try:
            description = load_chain(found.path).file.description
        except FleetError as error:
            problem = error.message.splitlines()[0]
        rows.append(
            {
                "kind": "chain",
                "name": found.name,
                "scope": str(found.scope),
                "path": places.shown(found.path),
                "shadowed": found.is_shadowed,
                "valid": problem is None,
                "description": description,
                "problem": problem,
            }
        )
    return rows
