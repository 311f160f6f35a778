"""The help page of a program with commands, made from a table and without importing a parser.

Loading a parser is most of what ``--help`` costs, and people and completions call it often.
"""

from __future__ import annotations

import errno
import os
import sys

__all__ = ["CommandTable", "is_overview_wanted", "overview", "show_page"]

#: A command's name, and the module and attribute where it lives, and its line in the page.
CommandTable = dict[str, tuple[str, str, str]]


def is_overview_wanted(arguments: list[str]) -> bool:
    """Whether the command line asks for this page and nothing else."""
    return arguments in (["--help"], ["-h"])


def overview(program: str, summary: str, table: CommandTable, example: str) -> str:
    """The page, ending in a newline."""
    width = max(len(name) for name in (*table, "-h, --help"))
    options = {
        "--version": "Show the version and exit.",
        "--debug": "Show an internal error with its traceback.",
        "-h, --help": "Show this page and exit.",
    }
    lines = [f"Usage: {program} COMMAND [ARGS]...", "", f"  {summary}", "", "Commands:"]
    lines += [f"  {name:<{width}}  {entry[2]}" for name, entry in table.items()]
    lines += ["", "Options:", *(f"  {name:<{width}}  {line}" for name, line in options.items())]
    lines += ["", f"{program} COMMAND --help tells the rest.", f"Example: {example}"]
    return "\n".join(lines) + "\n"


def show_page(page: str) -> int:
    """Write ``page`` to standard output and return the exit code: 0, 141 if its reader has gone, 1 if it is full.

    Does by hand what ``standard_streams`` does for commands, whose imports cost more than the page.
    """
    output, errors = getattr(sys, "stdout", None), getattr(sys, "stderr", None)  # None: closed
    if output is None:
        return 0
    try:
        output.buffer.write(page.encode())
        output.flush()
    except OSError as problem:
        # What is still in the buffer goes nowhere, so that the interpreter's last flush is quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        if problem.errno == errno.EPIPE:
            return 141
        if errors is not None:
            # Line by line nothing is left in its buffer, and whether anybody reads it is not our matter.
            try:
                errors.write(f"cannot write to standard output: {problem.strerror}\n")
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), errors.fileno())
        return 1
    return 0
