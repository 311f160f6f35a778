"""One question to a member, asked again after a failure as often as its seat allows.

Every attempt that was followed by another one is kept in the member's result. Nothing is tried again after the
deadline, or once a turn was stopped: that was no failure of the agent's.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from fleet.agents.base import Failed
from fleet.deadline import Deadline
from fleet.plan import SeatPlan
from fleet.runs.events import Event, MemberAttempt, MemberStalled, MemberTurn
from fleet.runs.journal import Journal
from fleet.runs.member import Member, TurnRecord
from fleet.runs.outcome import Phase
from fleet.runs.results import FailedAttempt
from fleet.runs.retry import pause_seconds

__all__ = ["ask"]


async def ask(
    journal: Journal,
    team: str,
    member: Member,
    seat: SeatPlan,
    *,
    phase: Phase,
    prompt: str,
    deadline: Deadline,
    told: Callable[[TurnRecord], MemberTurn],
    judged: Callable[[TurnRecord], TurnRecord] = lambda record: record,
    may_be_empty: bool = False,
    on_line: Callable[[str, str], None] | None = None,
    on_turn: Callable[[], None] | None = None,
    before: tuple[Event, ...] = (),
) -> TurnRecord:
    """The turn that counts: the first that did not fail, or the last one.

    ``told`` makes the event of a turn that is tried again; the event of the turn that counts is the caller's.
    ``judged`` may turn an answer into a failure; ``on_turn`` is called after every attempt, when what it cost is
    known. Each attempt has the seat's ceiling for itself. ``before`` are events that go to the journal with the first.

    Raises:
        StorageFailed: the run cannot go on; the agent has been stopped.
    """

    def note_stall(seconds: float) -> None:
        journal.append(
            MemberStalled(team=team, seat=member.seat, turn=member.turns, seconds=round(seconds, 3))
        )

    attempt = 1
    while True:
        begun = MemberAttempt(
            team=team, seat=member.seat, turn=member.turns + 1, phase=phase, attempt=attempt
        )
        journal.append(*(before if attempt == 1 else ()), begun)
        ceiling = Deadline.after(seat.turn_timeout_seconds, now=anyio.current_time())
        record = judged(
            await member.take_turn(
                phase,
                prompt,
                deadline=deadline.earlier(ceiling),
                on_line=on_line,
                on_stall=note_stall,
                may_be_empty=may_be_empty,
            )
        )
        if on_turn:
            on_turn()
        if not isinstance(record.outcome, Failed) or attempt > seat.retries:
            return record
        pause = pause_seconds(attempt)
        if deadline.remaining(anyio.current_time()) <= pause:
            return record
        member.retried.append(
            FailedAttempt(
                turn=record.number,
                attempt=attempt,
                model=seat.model,
                reason=record.outcome.reason,
                seconds=round(record.seconds, 3),
            )
        )
        journal.append(told(record))
        await anyio.sleep(pause)
        attempt += 1
