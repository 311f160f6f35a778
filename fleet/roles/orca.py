"""A shell script that opens one Orca terminal per launch, each in its worktree.

Pure: equal launches give equal bytes. A command of more than 4 KiB, and one with variables of the member's own, which
may be secrets, lies in a folder of the script's own; the terminal is given its path. Nobody tells the script when a
terminal ends, so the folder stays; what a script that fails has made of it goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.roles.seats import SEATS, folder_files
from fleet.roles.sh import MAX_INLINE_BYTES, variables
from fleet.roles.shell import MAKE_FOLDER, quote, quoted
from fleet.roles.tmux import folder_lines

if TYPE_CHECKING:
    from fleet.roles.launch import FanOut, Launch

__all__ = ["render"]

_HEAD = """\
#!/bin/sh
# Opens {count} in Orca.
set -e
"""

_UNDO = """\
trap 'rm -rf "$dir"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
"""


def render(fan_out: FanOut) -> str:
    """Return the script."""
    count = "1 role" if len(fan_out.launches) == 1 else f"{len(fan_out.launches)} roles"
    commands = [_command(launch) for launch in fan_out.launches]
    parts = [_HEAD.format(count=count)]
    is_filed = any(command is None for command in commands)
    if is_filed:
        files = folder_files(fan_out.launches, is_default_entered=False)
        parts += [MAKE_FOLDER, _UNDO, folder_lines(files)]
    for number, (launch, command) in enumerate(zip(fan_out.launches, commands, strict=True), start=1):
        # The folder's path has no character that needs quotes.
        word = f'"sh $dir/{SEATS} {number}"' if command is None else quote(command)
        titles = f"--worktree {quote(launch.worktree)} --title {quote(launch.name)}"
        parts.append(f"orca terminal create {titles} --command {word}\n")
    if is_filed:
        parts.append("trap - EXIT\n")
    return "".join(parts)


def _command(launch: Launch) -> str | None:
    """What a terminal runs, or ``None`` if it does not stand in a command line."""
    if not launch.argv:
        return " ".join(launch.following)
    if launch.env:
        return None
    settings = [f"{name}={quote(value)}" for name, value in variables(launch).items()]
    enter = f"cd {quote(str(launch.cwd))} && " if launch.is_cwd_explicit else ""
    command = enter + " ".join([*settings, quoted(launch.words)])
    return command if len(command.encode("utf-8", "surrogateescape")) <= MAX_INLINE_BYTES else None
