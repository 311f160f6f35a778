"""``fleet parallel``: many tasks at the same time, and one bounded return of all."""

from __future__ import annotations

import click

from fleet.cli.work_options import work_options

__all__ = ["command"]


@click.command(
    "parallel",
    epilog="Example: fleet parallel --command './review.sh' 'Look at a.py' 'Look at b.py' --concurrency 2",
)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@click.option("--agent", metavar="NAME", help="The agent that does every task.")
@click.option(
    "--command", "argv", metavar="'ARGV'", help="A program that does every task; the task is its stdin."
)
@click.option(
    "--concurrency", type=click.IntRange(1, 50), default=4, show_default=True, help="How many at a time."
)
@click.option("--fail-fast", is_flag=True, help="The first failure stops the others.")
@click.option(
    "--retries", type=click.IntRange(0, 10), default=0, help="Further attempts at a task that failed."
)
@click.option("--timeout", metavar="SPAN", help="Stop a task after 90s, 10m, 1h30m.")
@click.option(
    "--output-mode",
    type=click.Choice(["digest", "inline"]),
    default="digest",
    show_default=True,
    help="Return the beginning of every output, or all of it.",
)
@click.option(
    "--max-tasks", type=click.IntRange(1), default=50, show_default=True, help="Refuse more than this."
)
@work_options
def command(
    tasks: tuple[str, ...],
    agent: str | None,
    argv: str | None,
    concurrency: int,
    fail_fast: bool,
    retries: int,
    timeout: str | None,
    output_mode: str,
    max_tasks: int,
    runtime: str | None,
    deadline: str | None,
    output: str | None,
    is_json: bool,
    json_file: str | None,
    dry_run: bool,
    is_agreed: bool,
) -> int:
    """Give every TASK to a member of its own and return what they gave, failures first.

    A single - reads one task per line from stdin. Every output lies whole in the run folder. Exit codes: 0 all done,
    1 some failed, 2 usage, 3 deadline, 6 runtime missing, 130 interrupted, 143 terminated.
    """
    from fleet.cli.foreground import Foreground, deadline_span, result_file, run_folder, task_text
    from fleet.cli.work_options import argv_of, carry_out, plan_options, settings_of
    from fleet.dispatch.assignment import OutputMode
    from fleet.dispatch.shapes import plan_tasks
    from fleet.runs.folder import new_run_id

    settings = settings_of()
    folder, file = run_folder(output), result_file(json_file)
    if tasks == ("-",):
        texts = [line for line in task_text("-").splitlines() if line.strip()]
    else:
        texts = [task if task == "-" else task_text(task) for task in tasks]
    work = plan_tasks(
        texts,
        settings,
        plan_options(runtime=runtime, deadline=deadline, is_agreed=is_agreed),
        run=new_run_id(),
        agent=agent,
        command=argv_of(argv),
        concurrency=concurrency,
        is_fail_fast=fail_fast,
        retries=retries,
        timeout_seconds=deadline_span(timeout, option="--timeout"),
        output_mode=OutputMode(output_mode),
        max_tasks=max_tasks,
    )
    return carry_out(
        Foreground("fleet parallel", settings),
        work,
        output=folder,
        is_json=is_json,
        json_file=file,
        dry_run=dry_run,
    )
