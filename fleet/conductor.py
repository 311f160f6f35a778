"""The orchestrating loop of a run: start the team, sleep, wake, read one digest, write the decision of record.

It is woken by pings, on which it does nothing but take note, and by the completion notice, on which alone it decides.
What reaches it is counted, and does not grow with what the members write. Whatever ends the run (the team, a deadline,
a signal, a full disk), every process of it is gone and its last record is written before ``conduct`` returns.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from fleet.agents.base import Opening
from fleet.agents.fill import make_agent
from fleet.check import check_seats
from fleet.deadline import Deadline
from fleet.deliberation.free import Table, deliberate
from fleet.deliberation.synthesis import decide
from fleet.errors import FleetError, InternalFault
from fleet.plan import Plan, TeamPlan
from fleet.runs.artifacts import Artifact, artifact_name, write_index
from fleet.runs.events import (
    DecisionMade,
    DigestRead,
    Event,
    MemberEnded,
    NoticeGiven,
    Pinged,
    RunEnded,
    RunStarted,
    TeamStarted,
)
from fleet.runs.folder import RunFolder, add_to_index
from fleet.runs.journal import Journal, timestamp
from fleet.runs.member import Member
from fleet.runs.notice import attendance, notice_line
from fleet.runs.outcome import MemberState, RunState
from fleet.runs.results import Conducted, Decision, ErrorResult, RunResult
from fleet.runs.rooms import CONDUCTOR, RunRoom
from fleet.runs.summary import summarize
from fleet.settings import Settings, without_secrets
from roundtable.errors import RoundtableError
from roundtable.harmless import indented
from roundtable.message import Activity
from roundtable.ping import Ping

__all__ = ["Watcher", "conduct"]

#: What of a decision is posted to the room, in characters: its head, its outcome and its dissent, not its digest.
_POSTED_CHARS = 4_000


#: Signals that end a run: from the keyboard, from another process, from a terminal that closes.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: The part of a team's time after which those who wait for slower members take their last turn.
_LAST_CALL = 0.8


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told while the run goes on; each is called in the run's own thread and must return at once."""

    on_folder: Callable[[RunFolder], None] = lambda _: None
    on_event: Callable[[Event], None] = lambda _: None
    on_line: Callable[[str, str], None] = lambda _seat, _line: (
        None
    )  #: (seat, line) of what a member is writing


@dataclass(frozen=True, slots=True)
class _Ping:
    line: str


@dataclass(frozen=True, slots=True)
class _Notice:
    line: str


async def conduct(
    plan: Plan, settings: Settings, *, output: Path | None = None, watcher: Watcher | None = None
) -> RunResult:
    """Run ``plan`` to its end and return what ``result.json`` holds.

    A run that fails, is interrupted or runs out of time returns its result like any other, with its exit code.

    Raises:
        UsageProblem, StorageFailed: the run folder cannot be made; nothing was started.
        RuntimeMissing: a program or a working directory is not there; nothing was started.
    """
    watcher = watcher or Watcher()
    check_seats(plan, settings)
    folder = RunFolder.create(plan.run, below=settings.folder, output=output)
    interruption = _Interruption()
    try:
        async with anyio.create_task_group() as listening:
            await listening.start(interruption.heed)
            watcher.on_folder(folder)
            result = await _Conductor(plan, settings, folder, watcher, interruption).run()
            listening.cancel_scope.cancel()
    finally:
        folder.close()
    return result


class _Interruption:
    """The signal that ended a run, if one did."""

    def __init__(self) -> None:
        self.work = anyio.CancelScope()  #: what it ends
        self.number: int | None = None

    async def heed(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Once ends the run cleanly; twice ends this process, and every member's warden ends its tree."""
        # Who started us so that a closed terminal does not matter (nohup) has SIGHUP ignored, and it stays so.
        numbers = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*numbers) as signals:
            task_status.started()
            async for number in signals:
                if self.number is not None:
                    os._exit(128 + number)
                self.number = int(number)
                self.work.cancel()


class _Conductor:
    """One run from its first event to its last."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        folder: RunFolder,
        watcher: Watcher,
        interruption: _Interruption,
    ) -> None:
        self._interruption = interruption
        self._plan = plan
        self._settings = settings
        self._folder = folder
        self._watcher = watcher
        self._journal = Journal(folder.path / "events.jsonl", (watcher.on_event,))
        self._started_at = timestamp()
        self._began = anyio.current_time()
        self._ended_at, self._seconds = "", 0.0
        self._team = plan.teams[0]  # the plan refuses more than one
        self._members: tuple[Member, ...] = ()
        self._error: FleetError | RoundtableError | None = None
        self._decision: Decision | None = None
        self._pings = self._notices = self._digests = self._chars_read = 0

    async def run(self) -> RunResult:
        """The whole run; see ``conduct``."""
        with self._interruption.work:
            try:
                await self._work()
            except* (FleetError, RoundtableError) as group:
                self._error = _first(group)
            except* Exception as group:  # a fault of ours, too, leaves a run with a record of its end
                self._error = self._error or self._fault(group)
        return self._finish()

    async def _work(self) -> None:
        plan, team = self._plan, self._team
        # Before anything that may fail: whoever tells how the run ended counts the whole roster.
        self._members = tuple(self._make_members(team))
        self._write_state(RunState.RUNNING)
        add_to_index(
            self._settings.home.root / "runs" / "index.jsonl",
            {"run": plan.run, "folder": str(self._folder.path), "started": self._started_at},
        )
        self._journal.append(
            RunStarted(
                run=plan.run,
                fleet=plan.fleet,
                task=plan.task,
                blueprint=str(plan.blueprint),
                pid=os.getpid(),
                rehearsal=plan.is_rehearsal,
                deadline_seconds=plan.deadline_seconds,
            )
        )
        deadline = Deadline.after(plan.deadline_seconds, now=self._began)
        deadline = deadline.earlier(Deadline.after(team.deadline_seconds, now=self._began))
        names = tuple(seat.name for seat in team.seats)
        room = RunRoom(self._settings.home, team.room, team.topic, names, self._folder.room_file(team.room))
        try:
            await room.open()
            self._journal.append(
                TeamStarted(
                    team=team.name,
                    mode=team.mode,
                    room=team.room,
                    seats=names,
                    deadline_seconds=team.deadline_seconds,
                )
            )
            table = Table(
                plan=team,
                task=plan.task,
                members=self._members,
                room=room,
                journal=self._journal,
                artifact_path=lambda member: self._folder.relative(member.artifact.path),
                record=str(self._folder.room_file(team.room)),
                deadline=deadline,
                last_call=deadline.part(_LAST_CALL, now=self._began),
                seconds_given=deadline.at - self._began,
                on_line=self._watcher.on_line,
            )
            await self._sleep_until_notice(table, room)
            await self._conclude(room)
        finally:
            with anyio.CancelScope(shield=True):
                for member in self._members:
                    await member.close()
                await room.aclose()

    def _make_members(self, team: TeamPlan) -> Sequence[Member]:
        return [
            Member(
                seat=seat.name,
                agent_name=seat.agent,
                runtime=seat.runtime,
                agent=make_agent(seat.runtime, command=seat.command, prompts=self._folder.path),
                artifact=Artifact(self._folder.path / "artifacts" / artifact_name(number, seat.name)),
            )
            for number, seat in enumerate(team.seats, start=1)
        ]

    def _openings(self, room: str) -> list[Opening]:
        told = {
            "FLEET_RUN": self._plan.run,
            "FLEET_RUN_DIR": str(self._folder.path),
            "FLEET_TEAM": self._team.name,
            "FLEET_ROOM": room,
            "FLEET_HOME": str(self._settings.home.root),
        }
        inherited = without_secrets(self._settings.environ)
        return [
            Opening(seat.cwd, {**inherited, **told, "FLEET_SEAT": seat.name, **seat.env})
            for seat in self._team.seats
        ]

    async def _sleep_until_notice(self, table: Table, room: RunRoom) -> None:
        """Let the team work; wake on pings and go on at the completion notice."""
        send, receive = anyio.create_memory_object_stream[_Ping | _Notice](max_buffer_size=16)
        async with send, receive, anyio.create_task_group() as team:
            team.start_soon(self._ping, room, send)
            team.start_soon(self._run_team, table, send)
            await self._wake(receive)
            team.cancel_scope.cancel()

    async def _wake(self, wakes: ObjectReceiveStream[_Ping | _Notice]) -> None:
        async for wake in wakes:
            self._chars_read += len(wake.line)
            match wake:
                case _Ping(line=line):
                    self._pings += 1
                    self._journal.append(Pinged(line=line))
                case _Notice(line=line):
                    self._give_notice(line)
                    return

    async def _run_team(self, table: Table, wakes: ObjectSendStream[_Ping | _Notice]) -> None:
        await deliberate(table, self._openings(table.room.room))
        await wakes.send(_Notice(notice_line(self._members, run=self._plan.run)))

    async def _ping(self, room: RunRoom, wakes: ObjectSendStream[_Ping | _Notice]) -> None:
        """Follow the room and turn each burst of posts into one line."""
        ping = Ping()
        ping.know(room.room, room.began_after_seq)
        news = anyio.Event()

        def note(activity: Activity) -> None:
            # A blocking team is awaited inline: its posts are recorded and wake nobody.
            if activity.author != CONDUCTOR and not self._team.is_blocking:
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

    def _give_notice(self, line: str) -> None:
        finished, absent, failed = attendance(self._members)
        self._notices += 1
        self._journal.append(
            NoticeGiven(
                run=self._plan.run,
                finished=finished,
                total=len(self._members),
                absent=tuple(member.seat for member in absent),
                failed=tuple(member.seat for member in failed),
                line=line,
            )
        )

    async def _conclude(self, room: RunRoom) -> None:
        """Read the one digest and write the decision of record."""
        team = self._team
        digest = await room.digest(budget=team.digest_budget, per_message=team.per_message)
        self._digests += 1
        self._chars_read += len(digest.text)
        head = (
            f"#{team.room} · {digest.total} messages · {digest.verbatim} verbatim, {digest.headlines} headlines, "
            f"{digest.collapsed} collapsed · {len(digest.text)} chars"
        )
        self._folder.append("digest.txt", f"{head}\n{digest.text}\n")
        self._journal.append(
            DigestRead(
                team=team.name,
                room=team.room,
                total=digest.total,
                verbatim=digest.verbatim,
                headlines=digest.headlines,
                collapsed=digest.collapsed,
                chars=len(digest.text),
            )
        )
        _, absent, _ = attendance(self._members)
        decision = decide(
            [(member.seat, member.final) for member in self._members],
            absent=[member.seat for member in absent],
            quorum=team.quorum,
            head=self._decision_head(),
            attendance=notice_line(self._members, limit=None),
            digest=digest.text,
            artifact_of={m.seat: self._folder.relative(m.artifact.path) for m in self._members},
        )
        self._folder.write("decision.md", decision.text)
        self._decision = decision
        self._journal.append(
            DecisionMade(
                team=team.name,
                outcome=decision.outcome,
                dissent=tuple(seat for position in decision.dissent for seat in position.seats),
                absent=decision.absent,
            )
        )
        said = decision.text.partition("\nWhat it rests on:")[0].strip()
        more = (
            ""
            if len(said) <= _POSTED_CHARS
            else f"\n…(+{len(said) - _POSTED_CHARS} chars) whole text: decision.md"
        )
        await room.post(CONDUCTOR, f"DECISION: {said[:_POSTED_CHARS]}{more}")

    def _decision_head(self) -> list[str]:
        lines = [
            f"Decision of record · {self._plan.fleet} · run {self._plan.run}",
            f"Task: {indented(self._plan.task)}",
        ]
        if self._plan.is_rehearsal:
            lines.append("Rehearsal: no model was used; the members argued by rule from their briefs.")
        return lines

    def _fault(self, group: BaseExceptionGroup[Exception]) -> InternalFault:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        crash = self._folder.path / "crash.txt"
        self._try(lambda: self._folder.write("crash.txt", "".join(traceback.format_exception(group))))
        return InternalFault(type(error).__name__, str(error), crash)

    def _finish(self) -> RunResult:
        """Write the last records. A disk that fails now cannot hide what ended the run."""
        self._ended_at, self._seconds = timestamp(), round(anyio.current_time() - self._began, 3)
        over = "interrupted" if self._interruption.number is not None else "the run failed"
        for member in self._members:
            if not member.is_over:
                member.end(MemberState.INTERRUPTED, over)
                ended = MemberEnded(
                    team=self._team.name, seat=member.seat, state=member.state, reason=member.reason
                )
                self._try(partial(self._journal.append, ended))
        if not self._notices:
            self._try(lambda: self._give_notice(notice_line(self._members, run=self._plan.run)))
        self._try(
            lambda: write_index(
                self._folder,
                [
                    (m.seat, m.standing, m.artifact.size_bytes, self._folder.relative(m.artifact.path))
                    for m in self._members
                ],
            )
        )
        self._try(lambda: self._folder.write("result.json", self._result().as_json()))
        result = self._result()
        message = str(self._error) if self._error else None
        self._try(
            lambda: self._journal.append(
                RunEnded(state=result.state, exit_code=result.exit_code, error=message)
            )
        )
        self._try(lambda: self._write_state(result.state, result))
        self._journal.close()
        return result if self._error is None else self._result()

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except FleetError as error:
            self._error = self._error or error

    def _result(self) -> RunResult:
        error = self._error
        return summarize(
            self._plan,
            self._members,
            folder=self._folder,
            times=(self._started_at, self._ended_at, self._seconds),
            decision=self._decision,
            conducted=Conducted(
                chars_read=self._chars_read, pings=self._pings, notices=self._notices, digests=self._digests
            ),
            interrupted_by=self._interruption.number,
            error=ErrorResult(code=error.code, message=str(error), hint=error.hint) if error else None,
            error_exit_code=error.exit_code if error else 1,
        )

    def _write_state(self, state: RunState, result: RunResult | None = None) -> None:
        self._folder.write_json(
            "run.json",
            {
                "run": self._plan.run,
                "fleet": self._plan.fleet,
                "task": self._plan.task,
                "state": state.value,
                "pid": os.getpid(),
                "started": self._started_at,
                "rehearsal": self._plan.is_rehearsal,
                "folder": str(self._folder.path),
                "blueprint": str(self._plan.blueprint),
                **({"ended": result.ended, "exit_code": result.exit_code} if result else {}),
            },
        )


def _first(group: BaseExceptionGroup[FleetError | RoundtableError]) -> FleetError | RoundtableError:
    """The first error of a group that may be nested; the others followed from it."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, FleetError | RoundtableError):
        raise TypeError(f"not an error of ours: {error!r}")
    return error
