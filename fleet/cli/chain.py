"""``fleet chain``: steps one after the other, each with what the earlier ones gave."""

from __future__ import annotations

from pathlib import Path

import click

from fleet.cli.work_options import work_options

__all__ = ["command"]


@click.command("chain", epilog="Example: fleet chain review.chain.yaml 'Look at the last commit'")
@click.argument("file")
@click.argument("task", required=False)
@click.option(
    "--max-tasks", type=click.IntRange(1), default=50, show_default=True, help="Refuse steps of more."
)
@click.option(
    "--save",
    "saved",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the chain there, as .yaml, .json or .md, and run nothing.",
)
@work_options
def command(
    file: str,
    task: str | None,
    max_tasks: int,
    saved: Path | None,
    runtime: str | None,
    deadline: str | None,
    output: str | None,
    is_json: bool,
    json_file: str | None,
    dry_run: bool,
    is_agreed: bool,
) -> int:
    """Run the steps in FILE, for TASK if they use {task}.

    FILE is a path (.chain.yaml, .chain.json, .chain.md) or the name of a chain in .fleet/chains or the user's chains.
    Everything that can be checked is checked before anything starts. Exit codes: 0 all steps done, 1 a step failed,
    2 usage or file, 3 deadline, 6 runtime missing, 130 interrupted, 143 terminated.
    """
    from fleet.chain.find import find_chain
    from fleet.chain.load import load_chain
    from fleet.chain.plan import plan_chain
    from fleet.chain.write import save_chain
    from fleet.cli.foreground import Foreground, result_file, run_folder, task_text
    from fleet.cli.opening import places_of
    from fleet.cli.work_options import carry_out, plan_options, settings_of
    from fleet.runs.folder import new_run_id

    settings = settings_of()
    folder, result = run_folder(output), result_file(json_file)
    found = find_chain(file, places_of(settings))
    chain = load_chain(found.path)
    if saved is not None:
        save_chain(chain.file, saved)
        return 0
    options = plan_options(runtime=runtime, deadline=deadline, is_agreed=is_agreed)
    text = None if task is None else task_text(task).strip() or None
    work = plan_chain(
        chain, settings, options, task=text, run=new_run_id(), scope=found.scope, max_tasks=max_tasks
    )
    return carry_out(
        Foreground("fleet chain", settings),
        work,
        output=folder,
        is_json=is_json,
        json_file=result,
        dry_run=dry_run,
    )
