"""The commands of ``fleet``: a table, each in a file of its own that is imported only when it runs.

Next to nothing is imported before ``main`` and ``roles`` begin: only from there on an interruption is quiet.
"""

from __future__ import annotations

import os
import sys

__all__ = ["COMMANDS", "EXAMPLE", "SUMMARY", "main", "roles"]

#: Command, where it lives, and its line in ``--help``.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "run": ("fleet.cli.run", "command", "Run a blueprint to a decision of record."),
    "task": ("fleet.cli.task", "command", "Give one task to one agent."),
    "chain": ("fleet.cli.chain", "command", "Run steps one after the other, each with what the last gave."),
    "parallel": ("fleet.cli.parallel", "command", "Give many tasks out at the same time."),
    "up": ("fleet.cli.up", "command", "Start a team live in tmux, each seat in its own pane."),
    "ps": ("fleet.cli.ps", "command", "List live teams and what each seat is doing."),
    "attach": ("fleet.cli.attach", "command", "Show a live team on this terminal."),
    "send": ("fleet.cli.send", "command", "Bring a message to a seat of a live team."),
    "down": ("fleet.cli.down", "command", "End a live team with all it runs."),
    "list": ("fleet.cli.list", "command", "List the blueprints that can be run by name."),
    "show": (
        "fleet.cli.show",
        "command",
        "Print a blueprint with every default, and where each value is from.",
    ),
    "agents": ("fleet.cli.agents", "command", "List the agents, or what fills each seat of a blueprint."),
    "init": ("fleet.cli.init", "command", "Write a first blueprint, from questions or from flags."),
    "trust": ("fleet.cli.trust", "command", "Trust a blueprint or an agent that came with a project."),
    "doctor": ("fleet.cli.doctor", "command", "Say what is missing here, with the line that mends it."),
    "validate": ("fleet.cli.validate", "command", "Check blueprints and roles manifests."),
    "completion": ("fleet.cli.completion", "command", "Print the script with which a shell completes."),
    "schema": ("fleet.cli.schema", "command", "Print a JSON Schema."),
    "roles": ("fleet.cli.roles", "command", "Print what would fan a team out, as a plan or a script."),
}

SUMMARY = "Run teams of AI coding agents that talk outside every context window."
EXAMPLE = "fleet run blueprints/design.yaml 'Should we shard the queue?'"


def main() -> None:
    """The ``fleet`` command."""
    words = sys.argv[1:]
    try:
        from roundtable.overview import is_overview_wanted, overview, show_page

        if is_overview_wanted(words):
            _exit(show_page(overview("fleet", SUMMARY, COMMANDS, EXAMPLE)))
            return
        _heed_signals(words)
        from fleet.cli.parser import group
        from roundtable.commandline import invoke

        sys.exit(invoke(group, program="fleet"))
    except KeyboardInterrupt:
        _leave(words)


def roles() -> None:
    """The ``roles`` command."""
    words = sys.argv[1:]
    try:
        from roundtable.overview import is_overview_wanted, show_page

        if is_overview_wanted(words):
            from fleet.cli.roles_page import PAGE

            _exit(show_page(PAGE))
            return
        _heed_signals(words)
        from fleet.cli.roles_quick import run_quickly

        # A shell that completes a line asks the parser; the words are not in `words` then.
        code = None if "_ROLES_COMPLETE" in os.environ else run_quickly(words)
        if code is not None:
            _exit(code)
            return
        from fleet.cli.roles import main as parse

        parse()
    except KeyboardInterrupt:
        _leave(words)


def _exit(code: int) -> None:
    if code:
        sys.exit(code)


def _heed_signals(words: list[str]) -> None:
    # Before the imports that take most of the start; for a page they would cost as much as the page.
    from roundtable.early_signals import leave_on_signals

    leave_on_signals(words)


def _leave(words: list[str]) -> None:
    from roundtable.early_signals import leave_early

    leave_early(words)
