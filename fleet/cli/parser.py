"""The parser of ``fleet``: finds the command and hands it the rest of the line."""

from __future__ import annotations

import click

from fleet import __version__
from fleet.cli import COMMANDS, EXAMPLE, SUMMARY
from roundtable.commandline import LazyGroup

__all__ = ["group"]


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    help=SUMMARY,
    example=EXAMPLE,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="fleet")
def group() -> None:
    """Hold the commands."""
