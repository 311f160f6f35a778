"""The help page of a program with commands, made from a table and without importing a parser.

Loading a parser is most of what ``--help`` costs, and people and completions call it often.
"""

from __future__ import annotations

__all__ = ["CommandTable", "is_overview_wanted", "overview"]

#: A command's name, and the module and attribute where it lives, and its line in the page.
CommandTable = dict[str, tuple[str, str, str]]


def is_overview_wanted(arguments: list[str]) -> bool:
    """Whether the command line asks for this page and nothing else."""
    return arguments in (["--help"], ["-h"])


def overview(program: str, summary: str, table: CommandTable, example: str) -> str:
    """The page, ending in a newline."""
    width = max(len(name) for name in (*table, "-h, --help"))
    options = {"--version": "Show the version and exit.", "-h, --help": "Show this page and exit."}
    lines = [f"Usage: {program} COMMAND [ARGS]...", "", f"  {summary}", "", "Commands:"]
    lines += [f"  {name:<{width}}  {entry[2]}" for name, entry in table.items()]
    lines += ["", "Options:", *(f"  {name:<{width}}  {line}" for name, line in options.items())]
    lines += ["", f"{program} COMMAND --help tells the rest.", f"Example: {example}"]
    return "\n".join(lines) + "\n"
