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
    """At most ``most`` lines, as shown, without colours; of several empty ones only one is left.

    Raises:
        TmuxFailed: the pane is gone.
    """
    lines = tmux.run("capture-pane", "-p", "-J", "-S", f"-{most}", "-t", pane.id)
    shown: list[str] = []
    for line in (line.rstrip() for line in lines):
        if line or (shown and shown[-1]):
            shown.append(line)
    return shown[-most:]
