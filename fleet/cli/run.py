"""``fleet run``: a blueprint to a decision of record, in the foreground."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from fleet.cli.completing import blueprint_names, runtime_names

__all__ = ["command"]


@click.command(
    "run",
    epilog="Example: fleet run blueprints/design.yaml 'Should we shard the queue?' --deadline 10m --json",
)
@click.argument("blueprint", metavar="FILE", shell_complete=blueprint_names)
@click.argument("task", required=False)
@click.option(
    "--var",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="Fill in a variable of the blueprint's texts.",
)
@click.option(
    "--runtime",
    metavar="NAME",
    shell_complete=runtime_names,
    help="Fill every seat with this runtime: command or rehearsal.",
)
@click.option("--deadline", metavar="SPAN", help="Stop after 90s, 10m, 1h30m; none lifts the default of 30m.")
@click.option("--output", metavar="DIR", help="Run folder instead of .fleet/runs/ID.")
@click.option("--json", "is_json", is_flag=True, help="Print result.json on stdout instead of the decision.")
@click.option("--json-file", metavar="FILE", help="Also write result.json there.")
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@click.option(
    "--yes", "is_agreed", is_flag=True, help="Agree to what nobody named, such as a rehearsal in CI."
)
# The border takes it from the command line, wherever it stands; it is declared to be found.
@click.option("--debug", is_flag=True, expose_value=False, help="Show an internal error with its traceback.")
def command(
    blueprint: str,
    task: str | None,
    variables: tuple[str, ...],
    runtime: str | None,
    deadline: str | None,
    output: str | None,
    is_json: bool,
    json_file: str | None,
    dry_run: bool,
    is_agreed: bool,
) -> int:
    """Run the team in FILE on TASK and end in a decision of record.

    FILE is a path or the name of a blueprint. TASK may be left out if the blueprint has one; - reads it
    from stdin. Progress goes to stderr, the decision to stdout. Exit codes: 0 decided, 1 failed, 2 usage or file,
    3 deadline, 6 runtime missing, 130 interrupted, 143 terminated.
    """
    from fleet.cli.foreground import Foreground, deadline_span, result_file, run_folder, task_text
    from fleet.cli.opening import known_runtime, open_blueprint
    from fleet.cli.trust import require_trust
    from fleet.plan import PlanOptions, make_plan
    from fleet.report.plan import plan_text
    from fleet.runs.folder import new_run_id
    from fleet.settings import resolve

    settings = resolve(os.environ, folder=Path.cwd())
    folder, file = run_folder(output), result_file(json_file)
    options = PlanOptions(
        task=None if task is None else task_text(task),
        runtime=known_runtime(runtime),
        deadline_seconds=deadline_span(deadline),
        has_no_deadline=deadline == "none",
        is_agreed=is_agreed,
    )
    opened = open_blueprint(blueprint, settings, variables=variables, is_task_needed=options.task is None)
    plan = make_plan(
        opened.loaded, settings, options, briefs=opened.briefs, skills=opened.skills, run=new_run_id()
    )
    foreground = Foreground("fleet run", settings)
    for warning in (*opened.warnings, *plan.warnings):
        foreground.tell(f"warning: {warning}")
    if dry_run:
        data = plan.as_data()
        click.echo(
            json.dumps(data, indent=2, ensure_ascii=False) if is_json else foreground.show(plan_text(plan))
        )
        return 0
    require_trust(opened, settings)
    result = foreground.carry_out(plan, output=folder)
    return foreground.finish(result, is_json=is_json, json_file=file)
