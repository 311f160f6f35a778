"""``fleet task``: one task for one agent, and its answer within a bound."""

from __future__ import annotations

from pathlib import Path

import click

from fleet.cli.work_options import work_options

__all__ = ["command"]


@click.command("task", epilog="Example: fleet task --agent reviewer 'Look at a.py' --file review.md")
@click.argument("task")
@click.option("--agent", metavar="NAME", help="The agent that does it.")
@click.option("--command", "argv", metavar="'ARGV'", help="A program that does it; the task is its stdin.")
@click.option("--retries", type=click.IntRange(0, 10), default=0, help="Further attempts if it fails.")
@click.option("--cwd", metavar="DIR", type=click.Path(path_type=Path), help="Where it works.")
@click.option(
    "--file", "file", metavar="FILE", type=click.Path(path_type=Path), help="Its output goes there too."
)
@click.option(
    "--output-mode",
    type=click.Choice(["digest", "inline", "file-only"]),
    default="digest",
    show_default=True,
    help="Print the beginning of the output, all of it, or only where it lies.",
)
@work_options
def command(
    task: str,
    agent: str | None,
    argv: str | None,
    retries: int,
    cwd: Path | None,
    file: Path | None,
    output_mode: str,
    runtime: str | None,
    deadline: str | None,
    output: str | None,
    is_json: bool,
    json_file: str | None,
    dry_run: bool,
    is_agreed: bool,
) -> int:
    """Have one agent, or one program, do TASK and print its answer; of a long one the first 2,000 characters.

    - reads the task from stdin. The whole output lies in the run folder. Exit codes: 0 done, 1 failed, 2 usage,
    3 deadline, 6 runtime missing, 130 interrupted, 143 terminated.
    """
    from fleet.cli.foreground import Foreground, result_file, run_folder, task_text
    from fleet.cli.work_options import argv_of, carry_out, plan_options, settings_of
    from fleet.dispatch.assignment import OutputMode
    from fleet.dispatch.shapes import plan_tasks
    from fleet.runs.folder import new_run_id

    settings = settings_of()
    folder, result = run_folder(output), result_file(json_file)
    work = plan_tasks(
        [task_text(task)],
        settings,
        plan_options(runtime=runtime, deadline=deadline, is_agreed=is_agreed),
        run=new_run_id(),
        agent=agent,
        command=argv_of(argv),
        retries=retries,
        cwd=cwd,
        output=file,
        output_mode=OutputMode(output_mode),
        is_single=True,
    )
    return carry_out(
        Foreground("fleet task", settings),
        work,
        output=folder,
        is_json=is_json,
        json_file=result,
        dry_run=dry_run,
    )
