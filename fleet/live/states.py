"""What a seat is doing, told from facts that tmux has and not from what its screen means.

- ``dead``: the pane's first process has ended; tmux knows its exit status.
- ``starting``: it runs and has written nothing to its terminal yet.
- ``working``: it has written, or its screen has changed, within the last `QUIET_SECONDS`.
- ``idle``: it has been quiet for longer.

A program that draws a spinner while it thinks is working; one that waits in silence for an answer from far away looks
idle, and so does one that asks its user something. tmux notes when a window last changed, to the second and for all
its panes together, so a pane that shares a window is looked at several times.
"""

from __future__ import annotations

import os
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

#: Between looks at panes that share a window: uneven, or a spinner could stand as it stood each time.
_BETWEEN_SECONDS = (0.23, 0.41, 0.59)

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
    mark = f"fleet-{os.urandom(8).hex()}"
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


def state_of(seen: Look, *, has_changed: bool | None, shares_window: bool, now: float) -> State:
    """Decide. ``has_changed`` is whether other looks differed, ``None`` without any; ``now`` is wall time."""
    if seen.is_dead:
        return State.DEAD
    if seen.is_untouched:
        return State.STARTING
    has_window_been_quiet = now - seen.window_activity > QUIET_SECONDS
    if has_window_been_quiet:
        return State.IDLE
    return State.IDLE if shares_window and has_changed is False else State.WORKING


def states(tmux: Tmux, panes: Iterable[Pane]) -> dict[str, State]:
    """The state of every pane by its id; takes 1.2 s if panes share a window that is busy.

    Raises:
        TmuxFailed: a pane, or the server, is gone.
    """
    shared = {pane.id: pane.window_panes > 1 for pane in panes}
    seen = look(tmux, list(shared))

    def decide(pane_id: str, *, has_changed: bool | None) -> State:
        return state_of(
            seen[pane_id], has_changed=has_changed, shares_window=shared[pane_id], now=time.time()
        )

    found = {pane_id: decide(pane_id, has_changed=None) for pane_id in shared}
    unclear = [pane_id for pane_id, state in found.items() if state is State.WORKING and shared[pane_id]]
    changed: set[str] = set()
    for seconds in _BETWEEN_SECONDS if unclear else ():
        time.sleep(seconds)
        again = look(tmux, unclear)
        changed |= {pane_id for pane_id in unclear if again[pane_id].content != seen[pane_id].content}
        seen.update(again)
    return found | {pane_id: decide(pane_id, has_changed=pane_id in changed) for pane_id in unclear}


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
        content="\n".join((column, row, history, *lines)),
    )
