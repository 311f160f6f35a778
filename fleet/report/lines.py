"""A run as plain lines, one per change of state: for pipes, logs and CI."""

from __future__ import annotations

from collections.abc import Callable

from fleet.runs.events import (
    DecisionMade,
    DigestRead,
    Event,
    MemberAttempt,
    MemberEnded,
    MemberFinal,
    MemberSeated,
    MemberStalled,
    MemberTurn,
    NoticeGiven,
    Pinged,
    ReturnRead,
    TeamStarted,
)
from fleet.runs.outcome import TurnResult

__all__ = ["line_of", "write_lines"]


def write_lines(write: Callable[[str], None]) -> Callable[[Event], None]:
    """What hands each event that is worth a line to ``write``, without a newline."""

    def on_event(event: Event) -> None:
        line = line_of(event)
        if line:
            write(line)

    return on_event


def line_of(event: Event) -> str | None:
    """One line for an event, or ``None`` if it is not worth one. Begins with a name, never with ``::``."""
    match event:
        case TeamStarted(team=team, room=room, seats=seats):
            return f"team {team}: {len(seats)} seats{f' in #{room}' if room else ''}"
        case MemberSeated(seat=seat, runtime=runtime, reason=reason):
            return f"{seat}: seated ({runtime}: {reason})"
        case MemberAttempt(seat=seat, turn=turn, phase=phase):
            return f"{seat}: turn {turn} ({phase}) started"
        case MemberTurn(seat=seat, turn=turn, outcome=outcome, seconds=seconds, chars=chars, reason=reason):
            what = f"{chars} chars" if outcome is TurnResult.ANSWERED else reason or ""
            return f"{seat}: turn {turn} {outcome} in {seconds:.1f}s{f' ({what})' if what else ''}"
        case MemberFinal(seat=seat, final=final):
            return f"{seat}: FINAL {final}" if final else f"{seat}: no FINAL"
        case MemberEnded(seat=seat, state=state, reason=reason):
            return f"{seat}: {state}{f' ({reason})' if reason else ''}"
        case Pinged(line=line) | NoticeGiven(line=line):
            return f"conductor: {line}"
        case MemberStalled(seat=seat, turn=turn, seconds=seconds):
            return f"{seat}: turn {turn}: nothing for {seconds:.0f}s"
        case ReturnRead(chars=chars, total=total):
            return f"conductor: read one return, {chars} chars of {total} tasks"
        case DigestRead(chars=chars, total=total):
            return f"conductor: read one digest, {chars} chars of {total} messages"
        case DecisionMade(outcome=outcome):
            return f"conductor: decided: {outcome}"
        case _:
            return None
