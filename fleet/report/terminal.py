"""A run on a terminal: one live row per member, the deadline as a bar, the last ping below; the only user of rich.

Whatever a member wrote is plain text here: rich renders none of it as markup and control characters are replaced.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fleet.deadline import show_duration
from fleet.plan import Plan
from fleet.runs.events import (
    Event,
    MemberAttempt,
    MemberEnded,
    MemberFinal,
    MemberSeated,
    MemberTurn,
    NoticeGiven,
    Pinged,
)
from fleet.runs.outcome import MemberState
from roundtable.harmless import harmless_line

__all__ = ["Board"]

#: Frames per second: fast enough to look alive, at 0.05 of a core.
_FRAMES_PER_SECOND = 8

_STYLES = {
    MemberState.FINAL: "green",
    MemberState.FAILED: "red",
    MemberState.TIMED_OUT: "red",
    MemberState.ABSENT: "yellow",
    MemberState.INTERRUPTED: "yellow",
    MemberState.TALKING: "cyan",
}


@dataclass
class _Row:
    state: MemberState = MemberState.SEATED
    turn: int = 0
    began: float | None = None
    seconds: float = 0.0
    line: str = ""
    color: str | None = None


@dataclass
class Board:
    """The live rows of one run. Use as a context manager; feed it ``on_event`` and ``on_line``."""

    plan: Plan
    console: Console = field(default_factory=lambda: Console(stderr=True))
    _rows: dict[str, _Row] = field(init=False)
    _below: str = ""
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._rows = {seat.name: _Row(color=seat.color) for team in self.plan.teams for seat in team.seats}
        spans = [self.plan.deadline_seconds, *(team.deadline_seconds for team in self.plan.teams)]
        self._span = min((span for span in spans if span is not None), default=None)
        self._live = Live(
            get_renderable=self._render,
            console=self.console,
            refresh_per_second=_FRAMES_PER_SECOND,
            transient=False,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.__exit__(None, None, None)

    def on_line(self, seat: str, line: str) -> None:
        """Show what a member is writing."""
        self._row(seat).line = harmless_line(line)

    def _row(self, seat: str) -> _Row:
        """The row of a seat; a step of a chain may have seats that no plan knew."""
        return self._rows.setdefault(seat, _Row())

    def on_event(self, event: Event) -> None:
        """Show a change of state."""
        match event:
            case MemberSeated(seat=seat):
                self._row(seat).state = MemberState.JOINED
            case MemberAttempt(seat=seat, turn=turn):
                row = self._row(seat)
                row.state, row.turn, row.began = MemberState.TALKING, turn, time.monotonic()
            case MemberTurn(seat=seat, seconds=seconds):
                row = self._row(seat)
                row.seconds += seconds
                row.began = None
            case MemberFinal(seat=seat, final=final):
                self._row(seat).line = harmless_line(f"FINAL: {final}" if final else "no FINAL")
            case MemberEnded(seat=seat, state=state, reason=reason):
                row = self._row(seat)
                row.state, row.began = state, None
                if reason:
                    row.line = harmless_line(reason)
            case Pinged(line=line) | NoticeGiven(line=line):
                self._below = harmless_line(line)
            case _:
                pass

    def _render(self) -> RenderableType:
        now = time.monotonic()
        table = Table.grid(padding=(0, 1), expand=True)
        for _ in range(4):
            table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for seat, row in self._rows.items():
            seconds = row.seconds + (now - row.began if row.began is not None else 0.0)
            table.add_row(
                Text(seat, style=_color(row.color)),
                Text(row.state.value, style=_STYLES.get(row.state, "")),
                Text(f"turn {row.turn}" if row.turn else ""),
                Text(f"{seconds:.0f}s", justify="right"),
                Text(row.line),
            )
        parts: list[RenderableType] = [table]
        if self._span:
            gone = min(now - self._began, self._span)
            clock = Table.grid(padding=(0, 1))
            clock.add_row(
                ProgressBar(total=self._span, completed=gone, width=30),
                Text(f"{gone:.0f}s of {show_duration(self._span)}"),
            )
            parts.append(clock)
        if self._below:
            parts.append(Text(self._below, style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*parts)


def _color(name: str | None) -> str:
    """A style rich knows; blueprint colours that it calls otherwise become bold."""
    known = {
        "gray": "bright_black",
        "grey": "bright_black",
        "orange": "dark_orange",
        "pink": "hot_pink",
        "purple": "purple",
    }
    return f"bold {known.get(name, name)}" if name else "bold"
