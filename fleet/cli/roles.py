"""``roles`` and ``fleet roles``: print what would fan a team out. Nothing is started; stdout is the script alone."""

from __future__ import annotations

import sys

import click

from fleet.cli.roles_output import FORMATS, LAYOUTS, Request, output
from roundtable.commandline import invoke

__all__ = ["command", "main"]


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: roles --format tmux | sh",
)
@click.argument("file", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="plan",
    show_default=True,
    help="A listing for people or programs, or a shell script: a line per role, or one that starts all of them.",
)
@click.option(
    "--binary", metavar="NAME", help="Start this program for every role, with --name, --provider, …"
)
@click.option("--session-name", metavar="NAME", help="The tmux session; default fleet-<task>.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Windows, or panes of one window.")
@click.option("--replace", is_flag=True, help="The script ends a session of the same name first.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a roles manifest and stop.")
def command(
    file: str | None,
    form: str,
    binary: str | None,
    session_name: str | None,
    layout: str | None,
    *,
    replace: bool,
    schema: bool,
) -> None:
    """Print a roles manifest or a blueprint as a plan or as a script.

    Without FILE: roles.yaml, fleet.roles.yaml, orphus.roles.yaml, the only *.roles.yaml here, or
    blueprints/roles.yaml.
    """
    if schema:
        from fleet.cli.schema import schema_text

        _write(schema_text("roles"))
        return
    text, said = output(Request(file, form, binary, session_name, layout, is_replacing=replace, may_ask=True))
    for line in said:
        click.echo(line, err=True)
    _write(text)


def main() -> None:
    """The ``roles`` command."""
    sys.exit(invoke(command, program="roles"))


def _write(text: str) -> None:
    """Write UTF-8 whatever the locale says; a path keeps the bytes it has on disk."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()
