"""``fleet run``: a blueprint to a decision of record, in the foreground."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

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
    runtime: str | None,
    deadline: str | None,
    output: str | None,
    is_json: bool,
    json_file: str | None,
    dry_run: bool,
    is_agreed: bool,
) -> int:
    """Run the team in FILE on TASK and end in a decision of record.

    FILE is a path or the name of a bundled blueprint. TASK may be left out if the blueprint has one; - reads it
    from stdin. Progress goes to stderr, the decision to stdout. Exit codes: 0 decided, 1 failed, 2 usage or file,
    3 deadline, 6 runtime missing, 130 interrupted, 143 terminated.
    """
    from fleet.cli.opening import open_blueprint
    from fleet.plan import make_plan
    from fleet.report.plan import plan_text
    from fleet.runs.folder import new_run_id
    from fleet.settings import resolve
    from roundtable.ci import for_ci_log

    settings = resolve(os.environ, folder=Path.cwd())
    run_folder, result_file = _folder(output), _result_file(json_file)
    options = _options(task, runtime, deadline, is_agreed)
    opened = open_blueprint(blueprint, settings)
    plan = make_plan(
        opened.loaded, settings, options, briefs=opened.briefs, skills=opened.skills, run=new_run_id()
    )
    show = for_ci_log if settings.is_ci else _as_it_is
    tell = _teller(show)
    for warning in (*opened.warnings, *plan.warnings):
        tell(f"warning: {warning}")
    if dry_run:
        text = json.dumps(plan.as_data(), indent=2, ensure_ascii=False) if is_json else show(plan_text(plan))
        click.echo(text)
        return 0
    result, record = _run(plan, settings, run_folder, tell)
    said = show(result.decision.text) if result.decision else ""
    text = result.as_json() if is_json else said
    code = _print(text, result.exit_code, record, tell)
    if result_file and not _write(result_file, result.as_json(), record, tell):
        code = 1
    if result.error:
        tell(f"fleet run: {result.error.message}")
        if result.error.hint:
            tell(f"hint: {result.error.hint}")
    return code


def _folder(output: str | None) -> Path | None:
    from fleet.errors import UsageProblem

    if output == "":
        raise UsageProblem("--output needs the path of a folder")
    return None if output is None else Path(output)


def _result_file(json_file: str | None) -> Path | None:
    """Where the result is to be written as well; looked at now, because a run may take an hour."""
    from fleet.errors import UsageProblem

    if json_file is None:
        return None
    if json_file == "":
        raise UsageProblem("--json-file needs the path of a file")
    path = Path(json_file)
    if path.is_dir():
        raise UsageProblem(f"--json-file: {path} is a folder", hint="name a file in it")
    if not path.parent.is_dir():
        raise UsageProblem(f"--json-file: there is no folder {path.parent}", hint="make it first")
    return path


def _options(task: str | None, runtime: str | None, deadline: str | None, is_agreed: bool) -> PlanOptions:
    from fleet.cli.opening import known_runtime
    from fleet.deadline import parse_duration
    from fleet.errors import UsageProblem
    from fleet.plan import PlanOptions

    seconds = None
    if deadline is not None and deadline != "none":
        seconds = parse_duration(deadline)
        if seconds is None:
            raise UsageProblem(
                f'--deadline: "{deadline}" is not a span', hint="write 90s, 10m, 1h30m or none"
            )
    return PlanOptions(
        task=None if task is None else _task(task),
        runtime=known_runtime(runtime),
        deadline_seconds=seconds,
        has_no_deadline=deadline == "none",
        is_agreed=is_agreed,
    )


def _task(word: str) -> str:
    """The task of the command line, or from standard input for ``-``: UTF-8 without NUL, whatever the locale says."""
    from fleet.errors import UsageProblem

    where = "the task"
    try:
        if word == "-":
            where = "the task on standard input"
            stream: TextIO | None = sys.stdin
            text = stream.buffer.read().decode() if stream else ""
        else:
            # Bytes that the locale's encoding does not have arrive as surrogates; they may be UTF-8 all the same.
            text = word if _is_unicode(word) else os.fsencode(word).decode()
    except UnicodeError as problem:
        raise UsageProblem(f"{where} is not UTF-8 text", hint="convert it first: iconv -t UTF-8") from problem
    if "\x00" in text:
        raise UsageProblem(f"{where} holds a NUL character", hint="give plain text")
    return text


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _run(
    plan: Plan, settings: Settings, output: Path | None, tell: Callable[[str], None]
) -> tuple[RunResult, Path]:
    """The result of the run, and where it is on record."""
    import anyio

    from fleet.conductor import conduct

    folders: list[Path] = []
    with ExitStack() as stack:
        watcher = _watcher(plan, stack, tell, folders)

        async def main() -> RunResult:
            return await conduct(plan, settings, output=output, watcher=watcher)

        result = anyio.run(main)
    return result, folders[0] / "result.json"


def _watcher(plan: Plan, stack: ExitStack, tell: Callable[[str], None], folders: list[Path]) -> Watcher:
    """Live rows where stderr is a terminal, plain lines elsewhere; the run's id and folder always come first."""
    from fleet.conductor import Watcher
    from fleet.report.lines import write_lines
    from fleet.runs.folder import RunFolder
    from roundtable.harmless import harmless_line

    def announce(folder: RunFolder) -> None:
        folders.append(folder.path)
        tell(f"run {folder.run} {folder.path}")
        if plan.is_rehearsal:
            tell("rehearsal: no model is used; members argue by rule from their briefs")

    if not sys.stderr.isatty():
        return Watcher(on_folder=announce, on_event=write_lines(lambda line: tell(harmless_line(line))))
    from fleet.report.terminal import Board

    board = Board(plan)

    def begin(folder: RunFolder) -> None:
        announce(folder)
        stack.enter_context(board)

    return Watcher(on_folder=begin, on_event=board.on_event, on_line=board.on_line)


def _print(text: str, code: int, record: Path, tell: Callable[[str], None]) -> int:
    """Write the result to standard output; returns the exit code, which a reader that has gone does not change."""
    from roundtable.errors import OutputLost

    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OutputLost as problem:
        what = "nobody reads standard output" if problem.is_reader_gone else problem.message
        tell(f"fleet run: {what}{_still_at(record)}")
        return code if problem.is_reader_gone else 1
    return code


def _write(path: Path, text: str, record: Path, tell: Callable[[str], None]) -> bool:
    """Write the result to a file of the user's; returns whether it could be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        tell(f"fleet run: cannot write {path}: {problem.strerror or problem}{_still_at(record)}")
        return False
    return True


def _still_at(record: Path) -> str:
    return f"; the result is in {record}" if record.exists() else ""


def _teller(show: Callable[[str], str]) -> Callable[[str], None]:
    def tell(line: str) -> None:
        click.echo(show(line), err=True)

    return tell


def _as_it_is(text: str) -> str:
    return text
