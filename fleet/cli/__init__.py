"""The parser of ``fleet``: a table of commands, each in a file of its own and imported only when it runs."""

from __future__ import annotations

import sys

import click

from fleet import __version__
from roundtable.commandline import LazyGroup, invoke

__all__ = ["group", "main"]

#: Command, where it lives, and its line in ``--help``.
_COMMANDS = {
    "run": ("fleet.cli.run", "command", "Run a blueprint to a decision of record."),
    "validate": ("fleet.cli.validate", "command", "Check a blueprint or a roles manifest."),
    "schema": ("fleet.cli.schema", "command", "Print a JSON Schema."),
    "roles": ("fleet.cli.roles", "command", "Print what would fan a team out, as a plan or a tmux script."),
}


@click.group(
    cls=LazyGroup,
    table=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet run blueprints/design.yaml 'Should we shard the queue?'",
)
@click.version_option(__version__, prog_name="fleet")
def group() -> None:
    """Run teams of AI coding agents that talk outside every context window."""


def main() -> None:
    """The ``fleet`` command."""
    sys.exit(invoke(group, program="fleet"))
