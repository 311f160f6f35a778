"""One deliberating team from its room to its decision: start it, sleep, wake, read one digest, write the decision.

The conductor is woken by pings, on which it does nothing but take note, and by the team's end, on which alone it
decides. What reaches it does not grow with what the members write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from fleet.deadline import Deadline
from fleet.deliberation.free import Table, deliberate
from fleet.deliberation.synthesis import decide
from fleet.runs.events import DigestRead, Pinged, TeamStarted
from fleet.runs.notice import attendance, notice_line
from fleet.runs.outcome import MemberState
from fleet.runs.rooms import CONDUCTOR, RunRoom
from fleet.runs.run import Run, TeamRun
from roundtable.message import Activity
from roundtable.ping import Ping

__all__ = ["conclude", "discuss", "seated", "work"]

#: What of a decision is posted to the room, in characters: its head, its outcome and its dissent, not its digest.
_POSTED_CHARS = 4_000

#: The part of a team's time after which those who wait for slower members take their last turn.
_LAST_CALL = 0.8


async def work(run: Run, team: TeamRun, *, deadline: Deadline) -> None:
    """Let the team deliberate and conclude; afterwards its members are over and closed, and the room is left.

    Raises:
        StorageFailed, RoomUnavailable: the run cannot go on; the agents have been stopped.
    """
    async with seated(run, team) as room:
        await discuss(run, team, room, deadline=deadline)
        run.end_team(team)
        await conclude(run, team, room)


@asynccontextmanager
async def seated(run: Run, team: TeamRun) -> AsyncIterator[RunRoom]:
    """The team's room, open, with its names reserved; afterwards its members are closed and the room is left.

    Raises:
        StorageFailed, RoomUnavailable: the room cannot be had.
    """
    plan = team.plan
    names = tuple(seat.name for seat in plan.seats)
    room = RunRoom(run.settings.home, plan.room, plan.topic, names, run.folder.room_file(plan.room))
    try:
        await room.open()
        run.journal.append(
            TeamStarted(
                team=plan.name,
                mode=plan.mode,
                room=plan.room,
                seats=names,
                deadline_seconds=plan.deadline_seconds,
            )
        )
        yield room
    finally:
        with anyio.CancelScope(shield=True):
            for member in team.members:
                await member.close()
            await room.aclose()


async def discuss(
    run: Run, team: TeamRun, room: RunRoom, *, deadline: Deadline, goes_on: bool = False
) -> None:
    """Let the team talk and wake on pings until it is over; with ``goes_on`` its members are set aside for work."""
    plan = team.plan
    began = anyio.current_time()
    table = Table(
        plan=plan,
        task=run.plan.task,
        members=team.members,
        room=room,
        journal=run.journal,
        artifact_path=run.artifact_path,
        record=str(run.folder.room_file(plan.room)),
        deadline=deadline,
        last_call=deadline.part(_LAST_CALL, now=began),
        # As somebody wrote it: the run's counts from the beginning of the run.
        seconds_given=deadline.at - (run.began if deadline.at >= run.deadline.at else team.began),
        on_line=run.watcher.on_line,
        on_turn=run.note_usage,
        decided=run.decided_before(team),
        goes_on=goes_on,
    )
    send, receive = anyio.create_memory_object_stream[_Ping | _Over](max_buffer_size=16)
    async with send, receive, anyio.create_task_group() as tasks:
        tasks.start_soon(_follow, run, team, room, send)
        tasks.start_soon(_deliberate, run, team, table, send)
        await _wake(run, receive)
        tasks.cancel_scope.cancel()
    run.note_time()


async def conclude(run: Run, team: TeamRun, room: RunRoom) -> None:
    """Read the one digest and write the decision of record."""
    plan = team.plan
    digest = await room.digest(budget=plan.digest_budget, per_message=plan.per_message)
    run.digests += 1
    run.chars_read += len(digest.text)
    head = (
        f"#{plan.room} · {digest.total} messages · {digest.verbatim} verbatim, {digest.headlines} headlines, "
        f"{digest.collapsed} collapsed · {len(digest.text)} chars"
    )
    run.folder.append("digest.txt", f"{head}\n{digest.text}\n")
    run.journal.append(
        DigestRead(
            team=plan.name,
            room=plan.room,
            total=digest.total,
            verbatim=digest.verbatim,
            headlines=digest.headlines,
            collapsed=digest.collapsed,
            chars=len(digest.text),
        )
    )
    _, absent, _ = attendance(team.members)
    decision = decide(
        [(member.seat, member.final) for member in team.members],
        absent=[member.seat for member in absent],
        quorum=plan.quorum,
        head=run.decision_head(team),
        attendance=notice_line(team.members, limit=None),
        digest=digest.text,
        artifact_of={member.seat: run.artifact_path(member) for member in team.members},
    )
    run.conclude(team, decision)
    said = decision.text.partition("\nWhat it rests on:")[0].strip()
    rest = len(said) - _POSTED_CHARS
    more = f"\n…(+{rest} chars) whole text: {team.record}" if rest > 0 else ""
    await room.post(CONDUCTOR, f"DECISION: {said[:_POSTED_CHARS]}{more}")


@dataclass(frozen=True, slots=True)
class _Ping:
    line: str


@dataclass(frozen=True, slots=True)
class _Over:
    """Every member of the team is over."""


async def _wake(run: Run, wakes: ObjectReceiveStream[_Ping | _Over]) -> None:
    async for wake in wakes:
        match wake:
            case _Ping(line=line):
                run.pings += 1
                run.chars_read += len(line)
                run.journal.append(Pinged(line=line))
            case _Over():
                return


async def _deliberate(run: Run, team: TeamRun, table: Table, wakes: ObjectSendStream[_Ping | _Over]) -> None:
    with anyio.CancelScope() as run.work:
        await deliberate(table, run.openings(table.plan))
    if run.budget_spent is not None:  # it ends a team as its deadline does
        for member in team.members:
            if not (member.is_over or member.is_set_aside):
                run.end_member(team, member, MemberState.ABSENT, f"budget spent: {run.budget_spent}")
    await wakes.send(_Over())


async def _follow(run: Run, team: TeamRun, room: RunRoom, wakes: ObjectSendStream[_Ping | _Over]) -> None:
    """Follow the room and turn each burst of posts into one line."""
    ping = Ping()
    ping.know(room.room, room.began_after_seq)
    news = anyio.Event()

    def note(activity: Activity) -> None:
        # A blocking team is awaited inline: its posts are recorded and wake nobody.
        if activity.author != CONDUCTOR and not team.plan.is_blocking:
            ping.feed(activity, anyio.current_time())
            news.set()

    async with anyio.create_task_group() as following:
        following.start_soon(room.follow, note)
        while True:
            await news.wait()
            news = anyio.Event()
            if ping.due_at is not None:
                await anyio.sleep_until(ping.due_at)
                await wakes.send(_Ping(ping.take()))
