"""The border between a command line and its exit code: every error becomes one line, a hint and a number.

Works for any error that carries ``message``, ``hint``, ``code`` and ``exit_code``; the launcher uses it too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from .ci import for_ci_log
from .errors import OutputLost
from .overview import CommandTable, overview
from .standard_streams import settle_streams

__all__ = ["LazyGroup", "invoke"]


class LazyGroup(click.Group):
    """A click group that imports a command's module only when that command runs.

    ``table`` maps a command's name to where it lives and its line of help; ``--help`` imports none of them. With an
    ``example`` the help is the page of ``overview``, the same as without a parser.
    """

    def __init__(self, *args: Any, table: CommandTable, example: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table
        self._example = example

    def get_help(self, ctx: click.Context) -> str:
        """The whole page, without its last newline."""
        if self._example is None:
            return super().get_help(ctx)
        return overview(ctx.command_path, self.help or "", self._table, self._example).rstrip()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; ``None`` if there is none of that name."""
        if cmd_name not in self._table:
            return None
        module, attribute, _ = self._table[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table's one-line helps."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in self._table.items()])


def invoke(command: click.Command, arguments: Sequence[str] | None = None, *, program: str) -> int:
    """Run ``command`` and return its exit code; errors are written to stderr, never as a traceback.

    With ``--debug`` among the arguments errors are raised as they are. With ``--json`` standard output is UTF-8,
    and an error is also written there as ``{"error": {"code", "message", "hint"}}``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = words[: words.index("--")] if "--" in words else words
    is_json = "--json" in options
    is_debug = "--debug" in options
    if is_debug:
        words.remove("--debug")
    settle_streams(is_utf8=is_json)
    try:
        outcome = command.main(args=words, prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message(), err=True)
        return 2
    except click.UsageError as problem:
        path = problem.ctx.command_path if problem.ctx else program
        _tell(path, problem.format_message(), f"{path} --help", "usage", as_json=is_json)
        return 2
    except click.ClickException as problem:
        _tell(program, problem.format_message(), None, "usage", as_json=is_json)
        return problem.exit_code
    except Exception as problem:  # the one border: errors of ours are told, anything else is a fault of ours
        if isinstance(problem, OutputLost) and problem.is_reader_gone:
            return 141
        if is_debug:
            raise
        code = getattr(problem, "code", "internal")
        if code == "internal" or not hasattr(problem, "exit_code"):
            message = f"internal error: {type(problem).__name__}: {problem}".replace("\n", " ")
            _tell(program, message, "run again with --debug to see where", "internal", as_json=is_json)
            return 1
        message, hint = str(problem), getattr(problem, "hint", None)
        _tell(program, message, hint, str(code), as_json=is_json)
        return int(problem.exit_code)
    return outcome if isinstance(outcome, int) else 0


def _tell(program: str, message: str, hint: str | None, code: str, *, as_json: bool) -> None:
    # Lines of a file's problems begin with their path, so that editors and CI find them.
    lead = "" if code in {"invalid-file", "not-built"} else f"{program}: "
    # Messages quote files and command lines; no line of an error begins with `::` for a reason.
    click.echo(for_ci_log(f"{lead}{message}"), err=True)
    if hint:
        click.echo(for_ci_log(f"hint: {hint}"), err=True)
    if as_json:
        import json

        # It was told; that a program could not be told as well does not change the exit code.
        with suppress(OutputLost):
            click.echo(
                json.dumps({"error": {"code": code, "message": message, "hint": hint}}, ensure_ascii=False)
            )
