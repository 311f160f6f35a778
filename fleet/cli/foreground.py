"""What every command does that follows a run in the foreground: read its options, tell, and print the result.

The first line of stderr is the run's id and folder; stdout carries the result and nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from fleet.conductor import Watcher
    from fleet.plan import Plan
    from fleet.runs.folder import RunFolder
    from fleet.runs.results import RunResult
    from fleet.runs.run import Run
    from fleet.settings import Settings

__all__ = ["Foreground", "deadline_span", "result_file", "run_folder", "task_text"]


def run_folder(output: str | None) -> Path | None:
    """The value of ``--output``.

    Raises:
        UsageProblem: it is empty.
    """
    from fleet.errors import UsageProblem

    if output == "":
        raise UsageProblem("--output needs the path of a folder")
    return None if output is None else Path(output)


def result_file(json_file: str | None) -> Path | None:
    """The value of ``--json-file``; looked at now, because a run may take an hour.

    Raises:
        UsageProblem: no file can be written there.
    """
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


def deadline_span(deadline: str | None, *, option: str = "--deadline") -> float | None:
    """Seconds of the value of a span option; ``None`` if it is not given or ``none``.

    Raises:
        UsageProblem: it is not a span.
    """
    from fleet.deadline import parse_duration
    from fleet.errors import UsageProblem

    if deadline is None or deadline == "none":
        return None
    seconds = parse_duration(deadline)
    if seconds is None:
        raise UsageProblem(f'{option}: "{deadline}" is not a span', hint="write 90s, 10m, 1h30m or none")
    return seconds


def task_text(word: str) -> str:
    """The task of the command line, or from standard input for ``-``: UTF-8 without NUL, whatever the locale says.

    Raises:
        UsageProblem: it is not.
    """
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


@dataclass(frozen=True, slots=True)
class Foreground:
    """One command while its run goes on."""

    program: str  #: ``fleet run``: what errors begin with
    settings: Settings
    _folders: list[RunFolder] = field(default_factory=list)

    def show(self, text: str) -> str:
        """``text`` as it may stand in this place: in CI without workflow commands."""
        from roundtable.ci import for_ci_log

        return for_ci_log(text) if self.settings.is_ci else text

    def tell(self, line: str) -> None:
        """Write one line to stderr."""
        click.echo(self.show(line), err=True)

    def carry_out(
        self,
        plan: Plan,
        *,
        output: Path | None = None,
        work: Callable[[Run], Awaitable[None]] | None = None,
    ) -> RunResult:
        """Run ``plan`` to its end; ``output`` and ``work`` as for ``conduct``."""
        import anyio

        from fleet.conductor import conduct

        with ExitStack() as stack:
            watcher = self._watcher(plan, stack)

            async def main() -> RunResult:
                return await conduct(plan, self.settings, output=output, watcher=watcher, work=work)

            return anyio.run(main)

    def finish(self, result: RunResult, *, is_json: bool, json_file: Path | None) -> int:
        """Print the result and write it where else it is wanted; the exit code."""
        said = self.show(result.decision.text) if result.decision else ""
        code = self._print(result.as_json() if is_json else said, result.exit_code)
        if json_file and not self._write(json_file, result.as_json()):
            code = 1
        if result.error:
            self.tell(f"{self.program}: {result.error.message}")
            if result.error.hint:
                self.tell(f"hint: {result.error.hint}")
        return code

    def _watcher(self, plan: Plan, stack: ExitStack) -> Watcher:
        """Live rows where stderr is a terminal, plain lines elsewhere; the run's id and folder always come first."""
        from fleet.conductor import Watcher
        from fleet.report.lines import write_lines
        from roundtable.harmless import harmless_line

        def announce(folder: RunFolder) -> None:
            self._folders.append(folder)
            self.tell(f"run {folder.run} {folder.path}")
            if plan.is_rehearsal:
                self.tell("rehearsal: no model is used; members argue by rule from their briefs")

        if not sys.stderr.isatty():
            return Watcher(
                on_folder=announce, on_event=write_lines(lambda line: self.tell(harmless_line(line)))
            )
        from fleet.report.terminal import Board

        board = Board(plan)

        def begin(folder: RunFolder) -> None:
            announce(folder)
            stack.enter_context(board)

        return Watcher(on_folder=begin, on_event=board.on_event, on_line=board.on_line)

    def _print(self, text: str, code: int) -> int:
        """Write to standard output; returns the exit code, which a reader that has gone does not change."""
        from roundtable.errors import OutputLost

        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OutputLost as problem:
            what = "nobody reads standard output" if problem.is_reader_gone else problem.message
            self.tell(f"{self.program}: {what}{self._still_at()}")
            return code if problem.is_reader_gone else 1
        return code

    def _write(self, path: Path, text: str) -> bool:
        """Write to a file of the user's; returns whether it could be."""
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as problem:
            self.tell(f"{self.program}: cannot write {path}: {problem.strerror or problem}{self._still_at()}")
            return False
        return True

    def _still_at(self) -> str:
        record = self._folders[0].path / "result.json"
        return f"; the result is in {record}" if record.exists() else ""


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
