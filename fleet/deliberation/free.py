"""The free protocol: an opening turn, then rounds of replies, everybody at the same time, ending in FINAL lines.

A round begins when all have answered the one before or run into their turn's ceiling, so everybody meets everybody's
last word. At last call, with a fifth of the time left, those who wait for slower ones take their last turn, so that a
deadline finds conclusions and not only opinions. A member is joined to the room before its first turn. What a member
concluded is read from its own answer; text in the room that looks like a conclusion is only text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from fleet.agents.base import Answered, Failed, Opening, Stopped
from fleet.deadline import Deadline, show_duration, show_span
from fleet.deliberation.prompts import Question, turn_prompt
from fleet.errors import ChildNotStarted
from fleet.plan import SeatPlan, TeamPlan
from fleet.runs.attempts import ask
from fleet.runs.events import MemberEnded, MemberFinal, MemberSeated, MemberTurn
from fleet.runs.journal import Journal
from fleet.runs.member import Member, TurnRecord
from fleet.runs.outcome import MemberState, Phase, TurnResult

__all__ = ["Table", "TeamRoom", "deliberate"]


class TeamRoom(Protocol):
    """What a team needs of its room; ``fleet.runs.rooms`` has the real one, ``fleet.testing`` one in memory."""

    room: str

    async def post(self, name: str, text: str) -> int:
        """Say ``text`` as ``name`` and return its sequence number."""
        ...

    async def read_others(self, name: str, *, budget: int, per_message: int) -> tuple[str, int, int]:
        """A bounded digest of what others posted since ``name`` last read, and the numbers it covers: after, up to."""
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """One team at work: its plan, its members in the plan's order, its room, and when time is up."""

    plan: TeamPlan
    task: str
    members: tuple[Member, ...]
    room: TeamRoom
    journal: Journal
    artifact_path: Callable[[Member], str]
    record: str  #: path of the file with the whole discussion
    deadline: Deadline
    last_call: Deadline  #: from here on nobody waits for a slower member: who is ready takes the last turn
    seconds_given: float  #: the whole span, for the words in a reason; ``math.inf`` without a deadline
    on_line: Callable[[str, str], None] | None = None  #: told (seat, line) of what a member is writing
    on_turn: Callable[[], None] | None = None  #: called after every attempt at a turn
    decided: str = ""  #: what was decided before this team, bounded
    goes_on: bool = False  #: whether members that have concluded are set aside for work instead of being over


async def deliberate(table: Table, openings: Sequence[Opening]) -> None:
    """Run the team to its end; afterwards every member is over, or set aside if the team goes on.

    Raises:
        StorageFailed, RoomUnavailable: the run cannot go on; the agents have been stopped.
    """
    for seat, member, opening in zip(table.plan.seats, table.members, openings, strict=True):
        await _seat(table, seat, member, opening)
    async with anyio.create_task_group() as turns:
        for phase in (Phase.OPEN, *[Phase.REPLY] * (table.plan.rounds - 1), Phase.FINAL):
            places = await _start_round(table, phase, turns)
            with anyio.move_on_at(table.last_call.at):
                for place in places:
                    await place.is_done.wait()
            if table.last_call.has_passed(anyio.current_time()):
                await _start_round(table, Phase.FINAL, turns)
                break
    for member in table.members:
        if not member.is_over and not member.is_set_aside:
            _end(table, member, MemberState.ABSENT, _absence(table, member))


async def _start_round(table: Table, phase: Phase, turns: TaskGroup) -> list[_Place]:
    """Let everybody who waits take a turn at the same time; all are given the room as it stands now."""
    queue = _PostingOrder()
    waiting = [
        (seat, member)
        for seat, member in zip(table.plan.seats, table.members, strict=True)
        if not (member.is_over or member.is_set_aside or member.is_in_turn)
    ]
    # Read for all before any begins, so that a quick answer of this round is read by all in the next one.
    news = [await _read(table, member) for _, member in waiting]
    places = [queue.place(member) for _, member in waiting]
    for (seat, member), told, place in zip(waiting, news, places, strict=True):
        turns.start_soon(_turn, table, seat, member, phase, told, place)
    return places


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


@dataclass(frozen=True, slots=True)
class _News:
    """What others posted after ``after`` up to ``upto``, bounded."""

    text: str
    after: int
    upto: int


async def _read(table: Table, member: Member) -> _News:
    plan = table.plan
    text, after, upto = await table.room.read_others(
        member.seat, budget=plan.digest_budget, per_message=plan.per_message
    )
    return _News(text, after, upto)


async def _turn(
    table: Table, seat: SeatPlan, member: Member, phase: Phase, news: _News, place: _Place
) -> None:
    """One turn and what follows from it: a second question for a missing FINAL, or at last call the last turn."""
    member.state = MemberState.TALKING
    try:
        record = await _ask(table, seat, member, phase, news, place)
        is_last_call = table.last_call.has_passed(anyio.current_time())
        if is_last_call and phase is not Phase.FINAL and _may_go_on(table, member):
            phase = Phase.FINAL
            record = await _ask(table, seat, member, phase, await _read(table, member), place)
        has_final = record.answer.final is not None or not isinstance(record.outcome, Answered)
        if phase is Phase.FINAL and not has_final and _may_go_on(table, member):
            news = await _read(table, member)
            record = await _ask(table, seat, member, phase, news, place, is_asked_again=True)
    finally:
        if not member.is_over:
            member.state = MemberState.JOINED
        place.is_done.set()
    if phase is Phase.FINAL and isinstance(record.outcome, Answered):
        member.final = record.answer.final
        final = member.final.text if member.final else None
        table.journal.append(MemberFinal(team=table.plan.name, seat=member.seat, final=final))
        if table.goes_on:
            member.is_set_aside = True
        else:
            _end(table, member, MemberState.FINAL, None if final else "no FINAL")


def _may_go_on(table: Table, member: Member) -> bool:
    return not member.is_over and not table.deadline.has_passed(anyio.current_time())


async def _ask(
    table: Table,
    seat: SeatPlan,
    member: Member,
    phase: Phase,
    news: _News,
    place: _Place,
    *,
    is_asked_again: bool = False,
) -> TurnRecord:
    """One question from prompt to post, in the journal when it has ended."""
    plan = table.plan
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
            skills=seat.skills,
            phase=phase,
            rounds=plan.rounds,
            per_message=plan.per_message,
            record=table.record,
            digest=news.text,
            last_words="" if member.agent.has_memory else member.last_words[: plan.digest_budget],
            is_asked_again=is_asked_again,
            decided=table.decided,
        )
    )
    record = await ask(
        table.journal,
        plan.name,
        member,
        seat,
        phase=phase,
        prompt=prompt,
        deadline=table.deadline,
        told=lambda failed: _told(table, seat, member, failed, news),
        on_line=table.on_line,
        on_turn=table.on_turn,
    )
    await place.wait()
    post_seq = None
    if isinstance(record.outcome, Answered) and not record.answer.is_pass:
        post_seq = await table.room.post(member.seat, record.answer.text(table.artifact_path(member)))
    turn = _told(table, seat, member, record, news, post_seq)
    table.journal.append(turn)
    result, reason = turn.outcome, turn.reason
    if result is TurnResult.FAILED:
        _end(table, member, MemberState.FAILED, reason)
    elif result is TurnResult.TIMED_OUT and phase is Phase.FINAL:
        _end(table, member, MemberState.TIMED_OUT, reason)
    return record


def _told(
    table: Table, seat: SeatPlan, member: Member, record: TurnRecord, news: _News, post_seq: int | None = None
) -> MemberTurn:
    result, reason = _judge(table, seat, member, record)
    return MemberTurn(
        team=table.plan.name,
        seat=member.seat,
        turn=record.number,
        phase=record.phase,
        outcome=result,
        seconds=round(record.seconds, 3),
        chars=record.answer.chars,
        read_from=news.after,
        read_to=news.upto,
        post_seq=post_seq,
        reason=reason,
    )


def _judge(table: Table, seat: SeatPlan, member: Member, record: TurnRecord) -> tuple[TurnResult, str | None]:
    match record.outcome:
        case Answered():
            return (TurnResult.PASSED if record.answer.is_pass else TurnResult.ANSWERED), None
        case Failed(reason=reason):
            return TurnResult.FAILED, reason
        case Stopped():
            if table.deadline.has_passed(anyio.current_time()):
                return TurnResult.STOPPED, _absence(table, member)
            return TurnResult.TIMED_OUT, f"turn over {show_duration(seat.turn_timeout_seconds)}"


def _absence(table: Table, member: Member) -> str:
    given = "" if math.isinf(table.seconds_given) else f" after {show_span(table.seconds_given)}"
    return f"still talking{given}" if member.has_spoken else "never answered"


def _end(table: Table, member: Member, state: MemberState, reason: str | None) -> None:
    member.end(state, reason)
    table.journal.append(MemberEnded(team=table.plan.name, seat=member.seat, state=state, reason=reason))
