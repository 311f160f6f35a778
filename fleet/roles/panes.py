"""The tmux commands that make the windows and panes of a fan-out, as words.

Pure: equal launches give equal words. What they rely on in tmux 3.2 and later:

- Targets are ``=name:``, since a bare name is a prefix match and a number is a window.
- ``new-window`` makes its window the current one, so the options that follow in the same invocation or file are its
  own; no process can end before ``remain-on-exit`` stands, for the server handles one of these at a time.
- A command of two words or more is executed as it is; no shell of the user's is involved and nothing is typed.

Every pane has its seat's name in the option ``@seat``, which no program in it can change, and in its title.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from fleet.roles.seats import SEATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.roles.launch import Launch, Window

__all__ = ["TOLD", "InFolder", "color_of", "commands", "safe_session_name", "screen_size"]

#: Names that tmux does not know on every version; the others it has always known.
_COLORS = {
    "gray": "#8a8a8a",
    "grey": "#8a8a8a",
    "orange": "#ff8700",
    "pink": "#ff87d7",
    "purple": "#af5fff",
}
#: What is printed of a new session: its id, its server's pid, when it was made, and whether the server is set to end
#: as soon as nobody is attached.
TOLD = "#{session_id} #{pid} #{session_created} #{exit-unattached}"
#: The line above a pane: its seat, in the seat's colour if it has one.
_BORDER = " #{?@color,#[fg=#{@color}],}#{@seat} "


class InFolder(NamedTuple):
    """A word that is the path of a file in the folder of `fleet.roles.seats`."""

    name: str


Word = str | InFolder
Command = tuple[Word, ...]


def commands(windows: tuple[Window, ...], *, session: str) -> Iterator[tuple[Command, ...]]:
    """Per launch the commands that seat it, which belong into one invocation; at last those that go back to the first.

    The first command makes the session, which must not exist yet, and prints `TOLD`.
    """
    here = f"={session}:"
    columns, rows = screen_size(windows)
    number = 0
    for window in windows:
        for index, launch in enumerate(window.launches):
            number += 1
            start: Command = ("sh", InFolder(SEATS), str(number))
            own: list[Command] = []
            if number == 1:
                told = ("-P", "-F", TOLD)
                size = ("-x", str(columns), "-y", str(rows))
                own.append(("new-session", "-d", *told, "-s", session, "-n", window.name, *size, *start))
                own.append(("set-option", "-t", here, "destroy-unattached", "off"))
            elif index == 0:
                own.append(("new-window", "-t", here, "-n", window.name, *start))
            else:
                own.append(("split-window", "-t", here, *start))
            own += _options(window, launch, here, is_first=index == 0)
            yield tuple(own)
    if number > 1:
        yield (("select-window", "-t", f"{here}^"), ("select-pane", "-t", f"{here}^.{{top-left}}"))


def safe_session_name(name: str) -> str:
    """The name with everything replaced by ``_`` that tmux or a shell reads as more than a name; may be ``""``."""
    return re.sub(r"[^\w-]", "_", name.strip())[:64]


def screen_size(windows: tuple[Window, ...]) -> tuple[int, int]:
    """Columns and rows of the detached session: large enough that no split runs out of space."""
    columns, rows = 250, 60
    for window in windows:
        seats = len(window.launches)
        if window.layout in ("even-horizontal", "main-horizontal"):
            columns = max(columns, 20 * seats)
        elif window.layout in ("even-vertical", "main-vertical"):
            rows = max(rows, 6 * seats)
        elif window.layout == "tiled":
            rows = max(rows, 2 * seats)
    return columns, rows


def color_of(launch: Launch) -> str | None:
    """The colour of a seat as tmux takes it."""
    return _COLORS.get(launch.color, launch.color) if launch.color else None


def _options(window: Window, launch: Launch, here: str, *, is_first: bool) -> Iterator[Command]:
    """What follows the command that makes a pane, while that is the current one."""
    color = color_of(launch)
    if is_first:
        yield ("set-option", "-w", "-t", here, "remain-on-exit", "on")
    yield ("set-option", "-p", "-t", here, "@seat", launch.name)
    yield ("select-pane", "-t", here, "-T", launch.name)
    if window.layout is None:
        if color:
            yield ("set-option", "-w", "-t", here, "window-status-style", f"fg={color}")
        return
    if color:
        yield ("set-option", "-p", "-t", here, "@color", color)
    if is_first:
        yield ("set-option", "-w", "-t", here, "pane-border-status", "top")
        yield ("set-option", "-w", "-t", here, "pane-border-format", _BORDER)
    else:
        yield ("select-layout", "-t", here, window.layout)
