"""What a shell is offered for a word of a command line; asked at every press of a key, so no file is read."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import CompletionItem

__all__ = ["agent_or_blueprint_names", "blueprint_names", "runtime_names"]


def blueprint_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Blueprints by name, and files where no name fits."""
    from fleet.blueprint.find import all_blueprints
    from fleet.blueprint.places import Places
    from fleet.errors import FleetError
    from roundtable.home import Home

    try:
        places = Places.around(Path.cwd(), home=Home.from_environment(os.environ).root)
        names = sorted({found.name for found in all_blueprints(places) if found.shadowed_by is None})
    except (FleetError, OSError):
        names = []
    # The shells take the first as "files too"; in bash that has to come before any name.
    return [CompletionItem(incomplete, type="file"), *_starting(names, incomplete)]


def agent_or_blueprint_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What can be trusted: blueprints, and agents by the names of their files."""
    from fleet.agents.find import agent_file_names
    from fleet.blueprint.places import Places
    from roundtable.home import Home

    found = blueprint_names(context, parameter, incomplete)
    try:
        places = Places.around(Path.cwd(), home=Home.from_environment(os.environ).root)
        return [*found, *_starting(agent_file_names(places), incomplete)]
    except OSError:
        return found


def runtime_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Every runtime."""
    from fleet.agents.choose import RUNTIMES

    return _starting(list(RUNTIMES), incomplete)


def _starting(names: list[str], incomplete: str) -> list[CompletionItem]:
    # One completion is one line of the answer.
    return [CompletionItem(name) for name in names if name.startswith(incomplete) and name.isprintable()]
