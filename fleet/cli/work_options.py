"""The options that ``task``, ``parallel`` and ``chain`` share, and what each does once its work is planned."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fleet.cli.foreground import Foreground
    from fleet.dispatch.shapes import Work
    from fleet.plan import PlanOptions
    from fleet.settings import Settings

__all__ = ["argv_of", "carry_out", "plan_options", "settings_of", "work_options"]

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--runtime", metavar="NAME", help="Fill every seat with this runtime."),
    click.option(
        "--deadline", metavar="SPAN", help="Stop after 90s, 10m, 1h30m; none lifts the default of 30m."
    ),
    click.option("--output", metavar="DIR", help="Run folder instead of .fleet/runs/ID."),
    click.option(
        "--json", "is_json", is_flag=True, help="Print result.json on stdout instead of the return."
    ),
    click.option("--json-file", metavar="FILE", help="Also write result.json there."),
    click.option("--dry-run", is_flag=True, help="Print the plan and start nothing."),
    click.option(
        "--yes", "is_agreed", is_flag=True, help="Agree to what nobody named, such as a rehearsal in CI."
    ),
    # The border takes it from the command line, wherever it stands; it is declared to be found.
    click.option(
        "--debug", is_flag=True, expose_value=False, help="Show an internal error with its traceback."
    ),
)


def work_options(function: F) -> F:
    """Add the options to a command, in the order above."""
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), function)


def settings_of() -> Settings:
    """The settings of this call."""
    from fleet.settings import resolve

    return resolve(os.environ, folder=Path.cwd())


def plan_options(*, runtime: str | None, deadline: str | None, is_agreed: bool) -> PlanOptions:
    """What the command line says beside the work.

    Raises:
        UsageProblem: the runtime is unknown, or the deadline no span.
    """
    from fleet.cli.foreground import deadline_span
    from fleet.cli.opening import known_runtime
    from fleet.plan import PlanOptions

    return PlanOptions(
        runtime=known_runtime(runtime),
        deadline_seconds=deadline_span(deadline),
        has_no_deadline=deadline == "none",
        is_agreed=is_agreed,
    )


def argv_of(command: str | None) -> tuple[str, ...] | None:
    """The value of ``--command``, split as a shell does, and run without one.

    Raises:
        UsageProblem: it cannot be split, or is empty.
    """
    from fleet.errors import UsageProblem

    if command is None:
        return None
    try:
        words = tuple(shlex.split(command))
    except ValueError as problem:
        raise UsageProblem(f"--command: {problem}", hint="quote it like a line of a shell") from problem
    if not words or not words[0]:
        raise UsageProblem("--command names no program")
    return words


def carry_out(
    foreground: Foreground,
    work: Work,
    *,
    output: Path | None,
    is_json: bool,
    json_file: Path | None,
    dry_run: bool,
) -> int:
    """Tell the plan's warnings, ask for trust, run the work to its end and print what came back; the exit code."""
    from fleet.blueprint.places import Places
    from fleet.cli.trust import agree_to
    from fleet.report.plan import plan_text
    from fleet.trust import claims

    plan = work.plan
    for warning in plan.warnings:
        foreground.tell(f"warning: {warning}")
    if dry_run:
        data = plan.as_data()
        click.echo(
            json.dumps(data, indent=2, ensure_ascii=False) if is_json else foreground.show(plan_text(plan))
        )
        return 0
    seated, settings = work.seated, foreground.settings
    shown = Places.around(settings.folder, home=settings.home.root).shown(seated.found.path)
    needed = claims(seated.found, seated.loaded, seated.agents, shown=shown)
    agree_to(needed, settings, names=sorted(seated.loaded.agent_documents))
    result = foreground.carry_out(plan, output=output, work=work.carry_out)
    return foreground.finish(result, is_json=is_json, json_file=json_file)
