"""The commands of ``fleet``: a table, each in a file of its own that is imported only when it runs."""

from __future__ import annotations

import sys

from roundtable.overview import CommandTable, is_overview_wanted, overview

__all__ = ["COMMANDS", "EXAMPLE", "SUMMARY", "main", "roles"]

#: Command, where it lives, and its line in ``--help``.
COMMANDS: CommandTable = {
    "run": ("fleet.cli.run", "command", "Run a blueprint to a decision of record."),
    "validate": ("fleet.cli.validate", "command", "Check blueprints and roles manifests."),
    "schema": ("fleet.cli.schema", "command", "Print a JSON Schema."),
    "roles": ("fleet.cli.roles", "command", "Print what would fan a team out, as a plan or a tmux script."),
}

SUMMARY = "Run teams of AI coding agents that talk outside every context window."
EXAMPLE = "fleet run blueprints/design.yaml 'Should we shard the queue?'"


def main() -> None:
    """The ``fleet`` command."""
    if is_overview_wanted(sys.argv[1:]):
        sys.stdout.write(overview("fleet", SUMMARY, COMMANDS, EXAMPLE))
        return
    from fleet.cli.parser import group
    from roundtable.commandline import invoke

    sys.exit(invoke(group, program="fleet"))


def roles() -> None:
    """The ``roles`` command."""
    if is_overview_wanted(sys.argv[1:]):
        from fleet.cli.roles_page import PAGE

        sys.stdout.write(PAGE)
        return
    from fleet.cli.roles import main as parse

    parse()
