"""What runs first in every pane: one file for a POSIX shell, and the files that go beside it into one folder.

Pure. ``sh FOLDER/seats NUMBER`` enters the working directory of that launch, sets its variables and becomes its agent.
When it cannot, it says why and ends with 127, for whoever holds the pane to keep it open. Nothing is typed anywhere
and no shell of the user's is involved.

Beside `folder_files` the folder holds `START`, and may hold `PATH` and `HOME`: what is only known where the panes are
made. Each has a slash behind it, so that a shell keeps newlines at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.roles.shell import quote, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.roles.launch import Launch

__all__ = ["HOME", "PATH", "SEATS", "START", "folder_files"]

#: Name of the file that is run.
SEATS = "seats"
#: Where launches without a working directory start.
START = "start"
#: ``PATH`` of who asks for the fan-out: the server of the panes may have been started with another.
PATH = "path"
#: ``FLEET_HOME`` of who asks, empty if unset: where the rooms are.
HOME = "home"

#: A shell reads the file one `if` at a time and is gone at its own.
_HEAD = """\
# The empty line first: tmux scrolls a dead pane up by one.
stay() { printf '%s\\n' '' "$@"; sleep 1; exit 127; }
has() { command -v "$1" >/dev/null 2>&1; }
here=${0%/*} path= home=
# Read by the shell itself: with many panes at once every process more is felt.
[ ! -r "$here/path" ] || IFS= read -r path <"$here/path"
[ ! -r "$here/home" ] || IFS= read -r home <"$here/home"
[ -z "$path" ] || PATH=${path%/}:$PATH
[ -z "$home" ] || export FLEET_HOME="${home%/}"
"""


def folder_files(launches: Iterable[Launch], *, is_default_entered: bool = True) -> dict[str, str]:
    """Return name and text of every file. Launches are numbered from 1 in the order given.

    With ``is_default_entered`` false a launch stays where it is started unless the file says its working directory.
    """
    seats = [
        _seat(number, launch, is_default_entered=is_default_entered)
        for number, launch in enumerate(launches, start=1)
    ]
    return {SEATS: _HEAD + "\n".join(seats)}


def _seat(number: int, launch: Launch, *, is_default_entered: bool) -> str:
    lines = [f'if [ "$1" = {number} ]; then']
    if launch.is_cwd_explicit or is_default_entered:
        folder = quote(str(launch.cwd)) if launch.cwd else '"$(cat "$here/start")"'
        lost = quote(f"{launch.name}: cannot enter its working directory")
        lines.append(f"cd -- {folder} 2>/dev/null || stay {lost} {folder}")
    lines.append(f"export FLEET_SEAT={quote(launch.name)}")
    lines += [f"export {name}={quote(value)}" for name, value in launch.settings.items()]
    lines += [f"export {name}={quote(value)}" for name, value in launch.env.items()]
    if launch.argv:
        lines += _agent(launch)
    else:
        lines += _follower(launch)
    return "\n".join([*lines, "fi"])


def _agent(launch: Launch) -> list[str]:
    """Lines that become the agent, or say what is missing."""
    words = launch.words
    again = "Then start this pane again with the tmux command: respawn-pane"
    missing = (
        f"{launch.name}: {words[0]} is not on PATH, so this seat is empty.",
        f"Install it, or give the role another provider or runtime; the others go on in #{launch.room}.",
        again,
    )
    lines = [f"has {quote(words[0])} || stay {quoted(missing)}"]
    if launch.is_native:
        mute = (
            f"{launch.name}: roundtable is not on PATH, so this seat could not speak in #{launch.room}.",
            again,
        )
        lines.append(f"has roundtable || stay {quoted(mute)}")
    return [*lines, f"exec {quoted(words)}"]


def _follower(launch: Launch) -> list[str]:
    """Lines that say what a run would seat here, and follow the room."""
    follow = " ".join(launch.following)
    missing = quote(f"To follow the room, roundtable must be on PATH: {follow}")
    return [
        f"printf '%s\\n' '' {quoted(launch.notes)} ''",
        f"has roundtable || stay {missing}",
        f"exec {follow}",
    ]
