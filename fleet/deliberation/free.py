"""The free protocol: an opening turn, then rounds of replies, everybody at the same time, ending in FINAL lines.

A round begins when all have answered the one before or run into their turn's ceiling, so everybody meets everybody's
last word. A member is joined to the room before its first turn. What a member concluded is read from its own answer;
text in the room that looks like a conclusion is only text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from fleet.agents.base import Answered, Failed, Opening, Stopped
from fleet.deadline import Deadline
from fleet.deliberation.prompts import Question, turn_prompt
from fleet.errors import ChildNotStarted
from fleet.plan import SeatPlan, TeamPlan, show_seconds
from fleet.runs.events import MemberAttempt, MemberEnded, MemberFinal, MemberSeated, MemberTurn
from fleet.runs.journal import Journal
from fleet.runs.member import Member, TurnRecord
from fleet.runs.outcome import MemberState, Phase, TurnResult
from fleet.runs.rooms import RunRoom

__all__ = ["Table", "deliberate"]


@dataclass(frozen=True, slots=True)
class Table:
    """One team at work: its plan, its members in the plan's order, its room, and when time is up."""

    plan: TeamPlan
    task: str
    members: tuple[Member, ...]
    room: RunRoom
    journal: Journal
    artifact_path: Callable[[Member], str]
    deadline: Deadline
    seconds_given: float  #: the whole span, for the words in a reason; ``math.inf`` without a deadline
    on_line: Callable[[str, str], None] | None = None  #: told (seat, line) of what a member is writing


async def deliberate(table: Table, openings: Sequence[Opening]) -> None:
    """Run the team to its end; afterwards every member is over.

    Raises:
        StorageFailed, RoomUnavailable: the run cannot go on; the agents have been stopped.
    """
    seats = list(zip(table.plan.seats, table.members, openings, strict=True))
    for seat, member, opening in seats:
        await _seat(table, seat, member, opening)
    for phase in (Phase.OPEN, *[Phase.REPLY] * (table.plan.rounds - 1), Phase.FINAL):
        queue = _PostingOrder()
        async with anyio.create_task_group() as round_:
            for seat, member, _ in seats:
                if not member.is_over:
                    round_.start_soon(_turn, table, seat, member, phase, queue.place(member))
        if table.deadline.has_passed(anyio.current_time()):
            break
    for member in table.members:
        if not member.is_over:
            _end(table, member, MemberState.ABSENT, _absence(table, member))


async def _seat(table: Table, seat: SeatPlan, member: Member, opening: Opening) -> None:
    member.state = MemberState.JOINED  # the room was opened with every seat joined
    table.journal.append(
        MemberSeated(team=table.plan.name, seat=seat.name, runtime=seat.runtime, reason=seat.runtime_reason)
    )
    try:
        await member.start(opening)
    except ChildNotStarted as error:
        _end(table, member, MemberState.FAILED, str(error))


class _PostingOrder:
    """In which order the answers of one round are posted: as they come, but seats that answer by rule in seat order."""

    def __init__(self) -> None:
        self._last: anyio.Event | None = None

    def place(self, member: Member) -> _Place:
        """The next place for ``member``; places are given in seat order."""
        if not member.agent.is_deterministic:
            return _Place(None, anyio.Event())
        place = _Place(self._last, anyio.Event())
        self._last = place.is_done
        return place


@dataclass(frozen=True, slots=True)
class _Place:
    after: anyio.Event | None  #: waited for before posting
    is_done: anyio.Event

    async def wait(self) -> None:
        if self.after is not None:
            await self.after.wait()


async def _turn(table: Table, seat: SeatPlan, member: Member, phase: Phase, place: _Place) -> None:
    try:
        record = await _ask(table, seat, member, phase, place)
        has_time = not table.deadline.has_passed(anyio.current_time())
        is_last_word = phase is Phase.FINAL and isinstance(record.outcome, Answered)
        if is_last_word and record.answer.final is None and has_time:
            record = await _ask(table, seat, member, phase, place, is_asked_again=True)
    finally:
        place.is_done.set()
    if phase is not Phase.FINAL or not isinstance(record.outcome, Answered):
        return
    member.final = record.answer.final
    final = member.final.text if member.final else None
    table.journal.append(MemberFinal(team=table.plan.name, seat=member.seat, final=final))
    _end(table, member, MemberState.FINAL, None if final else "no FINAL")


async def _ask(
    table: Table,
    seat: SeatPlan,
    member: Member,
    phase: Phase,
    place: _Place,
    *,
    is_asked_again: bool = False,
) -> TurnRecord:
    """One turn from prompt to post, in the journal when it has ended."""
    plan = table.plan
    news, read_from, read_to = await table.room.read_others(
        member.seat, budget=plan.digest_budget, per_message=plan.per_message
    )
    prompt = turn_prompt(
        Question(
            team=plan.name,
            room=table.room.room,
            seat=member.seat,
            others=tuple(other.name for other in plan.seats if other.name != member.seat),
            task=table.task,
            topic=plan.topic,
            persona=seat.persona,
            brief=seat.brief,
            phase=phase,
            rounds=plan.rounds,
            per_message=plan.per_message,
            digest=news.text,
            last_words="" if member.agent.has_memory else member.last_words[: plan.digest_budget],
            is_asked_again=is_asked_again,
        )
    )
    table.journal.append(
        MemberAttempt(team=plan.name, seat=member.seat, turn=member.turns + 1, phase=phase, attempt=1)
    )
    ceiling = Deadline.after(seat.turn_timeout_seconds, now=anyio.current_time())
    record = await member.take_turn(
        phase, prompt, deadline=table.deadline.earlier(ceiling), on_line=table.on_line
    )
    await place.wait()
    post_seq = None
    if isinstance(record.outcome, Answered) and not record.answer.is_pass:
        post_seq = await table.room.post(member.seat, record.answer.text(table.artifact_path(member)))
    result, reason = _judge(table, seat, member, record)
    table.journal.append(
        MemberTurn(
            team=plan.name,
            seat=member.seat,
            turn=record.number,
            phase=phase,
            outcome=result,
            seconds=round(record.seconds, 3),
            chars=record.answer.chars,
            read_from=read_from,
            read_to=read_to,
            post_seq=post_seq,
            reason=reason,
        )
    )
    if result is TurnResult.FAILED:
        _end(table, member, MemberState.FAILED, reason)
    elif result is TurnResult.TIMED_OUT and phase is Phase.FINAL:
        _end(table, member, MemberState.TIMED_OUT, reason)
    return record


def _judge(table: Table, seat: SeatPlan, member: Member, record: TurnRecord) -> tuple[TurnResult, str | None]:
    match record.outcome:
        case Answered():
            return (TurnResult.PASSED if record.answer.is_pass else TurnResult.ANSWERED), None
        case Failed(reason=reason):
            return TurnResult.FAILED, reason
        case Stopped():
            if table.deadline.has_passed(anyio.current_time()):
                return TurnResult.STOPPED, _absence(table, member)
            return TurnResult.TIMED_OUT, f"turn over {show_seconds(seat.turn_timeout_seconds)}"


def _absence(table: Table, member: Member) -> str:
    given = "" if math.isinf(table.seconds_given) else f" after {show_seconds(table.seconds_given)}"
    return f"still talking{given}" if member.answers else "never answered"


def _end(table: Table, member: Member, state: MemberState, reason: str | None) -> None:
    member.end(state, reason)
    table.journal.append(MemberEnded(team=table.plan.name, seat=member.seat, state=state, reason=reason))
