"""What a seat is doing, told from facts that tmux has and not from what its screen means.

- ``dead``: the pane's first process has ended; tmux knows its exit status.
- ``starting``: it runs and has written nothing to its terminal yet.
- ``working``: it has written, or its screen has changed, within the last `QUIET_SECONDS`.
- ``idle``: it has been quiet for longer.

A program that draws a spinner while it thinks is working; one that waits in silence for an answer from far away looks
idle, and so does one that asks its user something. tmux notes when a window last changed, to the second and for all
its panes together, so a pane that shares a window is looked at twice.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.live.teams import Pane
    from fleet.tmux import Tmux

__all__ = ["QUIET_SECONDS", "Look", "State", "look", "state_of", "states"]

#: Longer than the pauses of a screen that is being drawn: spinners turn ten times a second, clocks once.
QUIET_SECONDS = 3.0

#: Between the two looks at panes that share a window.
_BETWEEN_SECONDS = 1.2

#: Panes asked of in one invocation: a tmux client takes no more than 16 KB.
_PANES_AT_ONCE = 40

_FIELDS = (
    "#{pane_id}:#{pane_dead}:#{cursor_x}:#{cursor_y}:#{history_size}:#{alternate_on}:#{window_activity}:"
    "#{pane_in_mode}"
)


class State(Enum):
    """What a seat is doing."""

    STARTING = "starting"
    WORKING = "working"
    IDLE = "idle"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Look:
    """What could be seen of one pane at one moment."""

    is_dead: bool
    is_untouched: bool  #: an empty screen, the cursor where it begins
    is_in_mode: bool  #: somebody reads back in it
    window_activity: int  #: seconds since the epoch
    content: str  #: changes with whatever is shown, the cursor included


def look(tmux: Tmux, pane_ids: Sequence[str]) -> dict[str, Look]:
    """Look at every pane once.

    Raises:
        TmuxFailed: one of them, or the server, is gone.
    """
    found: dict[str, Look] = {}
    mark = f"fleet-{secrets.token_hex(8)}"
    for first in range(0, len(pane_ids), _PANES_AT_ONCE):
        words: list[str] = []
        for pane_id in pane_ids[first : first + _PANES_AT_ONCE]:
            words += ["display-message", "-p", "-t", pane_id, f"{mark}:{_FIELDS}", ";"]
            words += ["capture-pane", "-p", "-t", pane_id, ";"]
        screens: dict[str, tuple[list[str], list[str]]] = {}
        shown: list[str] = []
        for line in tmux.run(*words[:-1]):
            if line.startswith(mark):
                _, pane_id, *fields = line.split(":")
                shown = []
                screens[pane_id] = (fields, shown)
            else:
                shown.append(line)
        found.update({pane_id: _seen(fields, lines) for pane_id, (fields, lines) in screens.items()})
    return found


def state_of(seen: Look, earlier: Look | None, *, shares_window: bool, now: float) -> State:
    """Decide; ``earlier`` is a look at least a second before, ``None`` if one was enough. ``now`` is wall time."""
    if seen.is_dead:
        return State.DEAD
    if seen.is_untouched:
        return State.STARTING
    has_window_been_quiet = now - seen.window_activity > QUIET_SECONDS
    if has_window_been_quiet:
        return State.IDLE
    if not shares_window:
        return State.WORKING
    return State.WORKING if earlier is None or earlier.content != seen.content else State.IDLE


def states(tmux: Tmux, panes: Iterable[Pane]) -> dict[str, State]:
    """The state of every pane by its id; takes 1.2 s if panes share a window that is busy.

    Raises:
        TmuxFailed: a pane, or the server, is gone.
    """
    panes = list(panes)
    seen = look(tmux, [pane.id for pane in panes])
    unclear = [
        pane.id
        for pane in panes
        if state_of(seen[pane.id], None, shares_window=pane.window_panes > 1, now=time.time())
        is State.WORKING
        and pane.window_panes > 1
    ]
    earlier: dict[str, Look] = {}
    if unclear:
        earlier = {pane_id: seen[pane_id] for pane_id in unclear}
        time.sleep(_BETWEEN_SECONDS)
        seen.update(look(tmux, unclear))
    now = time.time()
    return {
        pane.id: state_of(seen[pane.id], earlier.get(pane.id), shares_window=pane.window_panes > 1, now=now)
        for pane in panes
    }


def _seen(fields: list[str], lines: list[str]) -> Look:
    dead, column, row, history, alternate, activity, in_mode = fields
    while lines and not lines[-1]:  # some of the empty ones at the end may be missing
        lines.pop()
    is_blank = not any(line.strip() for line in lines)
    return Look(
        is_dead=dead == "1",
        is_untouched=is_blank and (column, row, history, alternate) == ("0", "0", "0", "0"),
        is_in_mode=in_mode != "0" and in_mode != "",
        window_activity=int(activity or 0),
        content=hashlib.sha256(repr((column, row, history, lines)).encode()).hexdigest(),
    )
