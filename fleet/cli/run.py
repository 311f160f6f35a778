"""``fleet run``: a blueprint to a decision of record, in the foreground."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fleet.conductor import Watcher
    from fleet.plan import Plan, PlanOptions
    from fleet.runs.results import RunResult
    from fleet.settings import Settings

__all__ = ["command"]


@click.command(
    "run",
    epilog="Example: fleet run blueprints/design.yaml 'Should we shard the queue?' --deadline 10m --json",
)
@click.argument("blueprint", metavar="FILE")
@click.argument("task", required=False)
@click.option("--runtime", metavar="NAME", help="Fill every seat with this runtime: command or rehearsal.")
@click.option("--deadline", metavar="SPAN", help="Stop after 90s, 10m, 1h30m; none lifts the default of 30m.")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="DIR", help="Run folder instead of .fleet/runs/ID."
)
@click.option("--json", "is_json", is_flag=True, help="Print result.json on stdout instead of the decision.")
@click.option(
    "--json-file", type=click.Path(path_type=Path), metavar="FILE", help="Also write result.json there."
)
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@click.option(
    "--yes", "is_agreed", is_flag=True, help="Agree to what nobody named, such as a rehearsal in CI."
)
def command(
    blueprint: str,
    task: str | None,
    runtime: str | None,
    deadline: str | None,
    output: Path | None,
    is_json: bool,
    json_file: Path | None,
    dry_run: bool,
    is_agreed: bool,
) -> int:
    """Run the team in FILE on TASK and end in a decision of record.

    FILE is a path or the name of a bundled blueprint. TASK may be left out if the blueprint has one; - reads it
    from stdin. Progress goes to stderr, the decision to stdout. Exit codes: 0 decided, 1 failed, 2 usage or file,
    3 deadline, 6 runtime missing, 130 interrupted, 143 terminated.
    """
    from fleet.blueprint.briefs import read_briefs
    from fleet.blueprint.find import find_blueprint
    from fleet.blueprint.load import load_blueprint
    from fleet.plan import make_plan
    from fleet.runs.folder import new_run_id, writing
    from fleet.settings import resolve

    settings = resolve(os.environ, folder=Path.cwd())
    loaded = load_blueprint(find_blueprint(blueprint))
    options = _options(task, runtime, deadline, is_agreed)
    plan = make_plan(loaded, settings, options, briefs=read_briefs(loaded), run=new_run_id())
    for warning in (*map(str, loaded.warnings), *plan.warnings):
        click.echo(f"warning: {warning}", err=True)
    if dry_run:
        click.echo(json.dumps(plan.as_data(), indent=2, ensure_ascii=False) if is_json else _shown(plan))
        return 0
    result = _run(plan, settings, output)
    if json_file:
        with writing(json_file):
            json_file.write_text(result.as_json(), encoding="utf-8")
    if is_json:
        sys.stdout.write(result.as_json())
    elif result.decision:
        sys.stdout.write(result.decision.text)
    if result.error:
        click.echo(f"fleet run: {result.error.message}", err=True)
        if result.error.hint:
            click.echo(f"hint: {result.error.hint}", err=True)
    return result.exit_code


def _options(task: str | None, runtime: str | None, deadline: str | None, is_agreed: bool) -> PlanOptions:
    from fleet.agents.choose import RUNTIMES
    from fleet.deadline import parse_duration
    from fleet.errors import UsageProblem
    from fleet.plan import PlanOptions

    if runtime is not None and runtime not in RUNTIMES:
        raise UsageProblem(f'--runtime: unknown runtime "{runtime}"', hint=f"known: {', '.join(RUNTIMES)}")
    seconds = None
    if deadline is not None and deadline != "none":
        seconds = parse_duration(deadline)
        if seconds is None:
            raise UsageProblem(
                f'--deadline: "{deadline}" is not a span', hint="write 90s, 10m, 1h30m or none"
            )
    if task == "-":
        task = sys.stdin.read()
    return PlanOptions(
        task=task,
        runtime=runtime,
        deadline_seconds=seconds,
        has_no_deadline=deadline == "none",
        is_agreed=is_agreed,
    )


def _run(plan: Plan, settings: Settings, output: Path | None) -> RunResult:
    import anyio

    from fleet.conductor import conduct

    with ExitStack() as stack:
        watcher = _watcher(plan, stack)

        async def main() -> RunResult:
            return await conduct(plan, settings, output=output, watcher=watcher)

        return anyio.run(main)


def _watcher(plan: Plan, stack: ExitStack) -> Watcher:
    """Live rows where stderr is a terminal, plain lines elsewhere; the run's id and folder always come first."""
    from fleet.conductor import Watcher
    from fleet.report.lines import write_lines
    from fleet.runs.folder import RunFolder
    from roundtable.harmless import harmless_line

    def tell(line: str) -> None:
        click.echo(harmless_line(line), err=True)

    def announce(folder: RunFolder) -> None:
        click.echo(f"run {folder.run} {folder.path}", err=True)
        if plan.is_rehearsal:
            click.echo("rehearsal: no model is used; members argue by rule from their briefs", err=True)

    if not sys.stderr.isatty():
        return Watcher(on_folder=announce, on_event=write_lines(tell))
    from fleet.report.terminal import Board

    board = Board(plan)

    def begin(folder: RunFolder) -> None:
        announce(folder)
        stack.enter_context(board)

    return Watcher(on_folder=begin, on_event=board.on_event, on_line=board.on_line)


def _shown(plan: Plan) -> str:
    lines = [f"run {plan.run} of {plan.fleet}", f"task: {plan.task}"]
    for team in plan.teams:
        size = len(team.seats)
        lines.append(
            f"team {team.name}: {team.mode} in #{team.room}, {team.rounds} rounds, quorum {team.quorum} of {size}"
        )
        lines += [f"  {seat.name}: {seat.runtime} ({seat.runtime_reason})" for seat in team.seats]
    return "\n".join(lines)
