"""The last lines a pane has shown, for people who look from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.live.teams import Pane
    from fleet.tmux import Tmux

__all__ = ["MOST", "last_lines"]

#: What fits on a screen or two, and holds a stack trace.
MOST = 80


def last_lines(tmux: Tmux, pane: Pane, most: int = MOST) -> list[str]:
    """At most ``most`` lines, as shown, without colours; empty ones at the beginning and the end are left out.

    Raises:
        TmuxFailed: the pane is gone.
    """
    lines = tmux.run("capture-pane", "-p", "-J", "-S", f"-{most}", "-t", pane.id)
    shown = [line.rstrip() for line in lines]
    while shown and not shown[-1]:
        shown.pop()
    shown = shown[-most:]
    while shown and not shown[0]:
        shown.pop(0)
    return shown
