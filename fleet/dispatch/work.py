"""Assignments -> results: each member is asked once, so many at a time, and settles by itself.

A result is on record as soon as it is there and is never thrown away, whatever becomes of the others. What is kept of
it in memory is its first 2,000 characters and where the rest lies, so that 10,000 tasks are as good as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from fleet.agents.base import Answered, Failed, Stopped
from fleet.deadline import Deadline, show_duration, show_span
from fleet.dispatch.assignment import Assignment, OutputMode
from fleet.dispatch.output_file import OutputFile, reference_line
from fleet.dispatch.prompt import again_prompt, dispatch_prompt
from fleet.dispatch.structured import CORRECTIVE_ATTEMPTS, MAX_ANSWER_BYTES, Mismatch, value_of
from fleet.errors import ChildNotStarted
from fleet.runs.answer import AnswerReader
from fleet.runs.attempts import ask
from fleet.runs.events import MemberEnded, MemberSeated, MemberTurn
from fleet.runs.folder import writing
from fleet.runs.member import Member, TurnRecord
from fleet.runs.outcome import MemberState, Phase, TurnResult
from fleet.runs.returns import SPLICE_CHARS, Output, Returned, Standing
from fleet.runs.run import Run, TeamRun

__all__ = ["NOT_STRUCTURED", "TaskResult", "dispatch"]

#: How much of an output file is read for the beginning of a result: all of its first 2,000 characters.
_HEAD_BYTES = 4 * (SPLICE_CHARS + 1)

_PIECE_BYTES = 2**16


class _NotStructured:
    """The value of a result that was not asked for one."""


#: Not ``None``, which is a value of JSON.
NOT_STRUCTURED = _NotStructured()


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How one assignment ended."""

    number: int  #: 1, 2, … in the order they were given
    assignment: Assignment
    member: Member
    standing: Standing
    output: Output
    file: Path  #: where the whole output lies: the artifact, or the output file that the member wrote
    start: int = 0  #: where in that file it begins, in bytes
    end: int = 0
    value: Any = field(default=NOT_STRUCTURED)  #: what matched the schema, if there was one

    @property
    def has_value(self) -> bool:
        """Whether the answer was asked for as a value and is one."""
        return self.value is not NOT_STRUCTURED

    def whole(self) -> str:
        """All of the output without trailing blanks, read back from its file.

        Raises:
            StorageFailed: it cannot be read.
        """
        with writing(self.file), open(self.file, "rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start).decode(errors="replace").rstrip()

    def returned(self) -> Returned:
        """The result as it goes into a return, with the text or the line that its output mode asks for."""
        whole = reference = None
        is_ok = self.standing is Standing.OK
        if is_ok and self.assignment.output_mode is OutputMode.INLINE:
            whole = self.whole()
        elif is_ok and self.assignment.output_mode is OutputMode.FILE_ONLY and self.assignment.output:
            reference = reference_line(self.assignment.output)
        reason = self.member.reason
        return Returned(self.number, self.member.seat, self.standing, self.output, reason, whole, reference)


async def dispatch(
    run: Run,
    team: TeamRun,
    members: Sequence[Member],
    assignments: Sequence[Assignment],
    *,
    deadline: Deadline,
    concurrency: int,
    is_fail_fast: bool = False,
) -> list[TaskResult]:
    """Give each of ``members`` its assignment, ``concurrency`` at a time; the results in the same order.

    Afterwards every member is over and closed. With ``is_fail_fast`` the first failure stops those who work and
    skips those who wait.

    Raises:
        StorageFailed: the run cannot go on; the agents have been stopped.
    """
    desk = _Desk(run, team, members, assignments, deadline, is_fail_fast, anyio.current_time())
    try:
        async with anyio.create_task_group() as workers:
            desk.workers = run.work = workers.cancel_scope
            for _ in range(min(concurrency, len(assignments))):
                workers.start_soon(desk.work)
    finally:
        with anyio.CancelScope(shield=True):
            for member in members:
                await member.close()
    return desk.settle()


@dataclass
class _Desk:
    """Where the workers take assignments from and put results."""

    run: Run
    team: TeamRun
    members: Sequence[Member]
    assignments: Sequence[Assignment]
    deadline: Deadline
    is_fail_fast: bool
    began: float
    results: dict[int, TaskResult] = field(default_factory=dict)
    next: int = 0
    failed: Member | None = None  #: who failed first, where that stops the others
    workers: anyio.CancelScope = field(default_factory=anyio.CancelScope)  #: of all who work

    async def work(self) -> None:
        """Do one assignment after the other until there is none."""
        while self._goes_on() and self.next < len(self.assignments):
            number, self.next = self.next, self.next + 1
            result = await self._do(number)
            self.results[number] = result
            if self.is_fail_fast and result.standing is Standing.FAILED and self.failed is None:
                self.failed = result.member
                self.workers.cancel()
            await result.member.close()

    def _goes_on(self) -> bool:
        is_late = self.deadline.has_passed(anyio.current_time())
        return not is_late and self.failed is None and self.run.budget_spent is None

    def settle(self) -> list[TaskResult]:
        """A result for every assignment; those that were never begun or were stopped get theirs now."""
        ended: list[MemberEnded] = []
        for number, member in enumerate(self.members):
            if number in self.results:
                continue
            if self.failed is not None:
                how = "stopped" if member.turns else "skipped"
                member.end(MemberState.SKIPPED, f"{how} due to fail-fast: {self.failed.seat} failed")
            elif self.run.budget_spent is not None:
                member.end(MemberState.ABSENT, f"budget spent: {self.run.budget_spent}")
            else:
                member.end(MemberState.ABSENT, f"not started{self._after()}")
            ended.append(self._ended_event(member))
            self.results[number] = TaskResult(
                number + 1,
                self.assignments[number],
                member,
                Standing.SKIPPED,
                Output("", 0, self.run.artifact_path(member)),
                member.artifact.path,
            )
        if ended:
            self.run.journal.append(*ended)
        return [self.results[number] for number in range(len(self.assignments))]

    async def _do(self, number: int) -> TaskResult:
        """One assignment from the seating of its member to its end."""
        run, member, assignment = self.run, self.members[number], self.assignments[number]
        seat = assignment.seat
        member.begin_work()
        file = None if assignment.output is None else OutputFile.at(assignment.output)
        seated: tuple[MemberSeated, ...] = ()
        if not member.is_started:
            seated = (
                MemberSeated(
                    team=self.team.plan.name, seat=seat.name, runtime=seat.runtime, reason=seat.runtime_reason
                ),
            )
            try:
                await member.start(run.opening(self.team.plan, seat))
            except ChildNotStarted as error:
                run.journal.append(*seated)
                await self._end(member, MemberState.FAILED, str(error))
                return self._failed(number)
        value: Any = NOT_STRUCTURED
        prompt = asked = dispatch_prompt(assignment)
        for correction in range(1, CORRECTIVE_ATTEMPTS + 2):
            record, turn = await self._turn(member, assignment, asked, file, seated)
            if not isinstance(record.outcome, Answered):
                state = _STATES[type(record.outcome)]
                if isinstance(record.outcome, Stopped) and not self.deadline.has_passed(anyio.current_time()):
                    state = MemberState.TIMED_OUT
                await self._end(member, state, turn.reason, turn)
                return self._failed(number, record)
            if assignment.schema is None:
                break
            value = self._value(member, assignment, record, file)
            if not isinstance(value, Mismatch):
                break
            if correction > CORRECTIVE_ATTEMPTS or self.deadline.has_passed(anyio.current_time()):
                reason = f"structured output validation failed: {value.text}"
                await self._end(member, MemberState.FAILED, reason, turn)
                return self._failed(number, record)
            run.journal.append(turn)
            seated = ()
            asked = again_prompt(
                prompt,
                value.text,
                attempt=correction,
                attempts=CORRECTIVE_ATTEMPTS,
                has_memory=member.agent.has_memory,
            )
        result = self._answered(number, record, file, value)
        await self._end(member, MemberState.FINAL, None, turn)
        return result

    async def _turn(
        self,
        member: Member,
        assignment: Assignment,
        prompt: str,
        file: OutputFile | None,
        seated: tuple[MemberSeated, ...],
    ) -> tuple[TurnRecord, MemberTurn]:
        """One turn with its retries; the event of its end is not in the journal yet."""

        def judged(record: TurnRecord) -> TurnRecord:
            is_mute = record.answer.is_empty and not (file and file.was_written)
            return (
                record.failed("empty answer") if is_mute and isinstance(record.outcome, Answered) else record
            )

        record = await ask(
            self.run.journal,
            self.team.plan.name,
            member,
            assignment.seat,
            phase=Phase.DISPATCH,
            prompt=prompt,
            deadline=self.deadline,
            told=lambda failed: self._ended(member, assignment, failed),
            judged=judged,
            may_be_empty=file is not None,
            on_line=self.run.watcher.on_line,
            on_turn=self.run.note_usage,
            before=seated,
        )
        return record, self._ended(member, assignment, record)

    def _ended(self, member: Member, assignment: Assignment, record: TurnRecord) -> MemberTurn:
        match record.outcome:
            case Answered():
                result, reason = TurnResult.ANSWERED, None
            case Failed(reason=why):
                result, reason = TurnResult.FAILED, why
            case Stopped() if self.deadline.has_passed(anyio.current_time()):
                said = f"still working{self._after()}" if member.has_spoken else "never answered"
                result, reason = TurnResult.STOPPED, said
            case _:
                result = TurnResult.TIMED_OUT
                reason = f"turn over {show_duration(assignment.seat.turn_timeout_seconds)}"
        return MemberTurn(
            team=self.team.plan.name,
            seat=member.seat,
            turn=record.number,
            phase=Phase.DISPATCH,
            outcome=result,
            seconds=round(record.seconds, 3),
            chars=record.answer.chars,
            read_from=0,
            read_to=0,
            post_seq=None,
            reason=reason,
        )

    def _value(
        self, member: Member, assignment: Assignment, record: TurnRecord, file: OutputFile | None
    ) -> Any | Mismatch:
        if assignment.schema is None:
            return NOT_STRUCTURED
        if file is not None and file.was_written:
            path, start, end = file.path, 0, file.path.stat().st_size
        else:
            path, start, end = member.artifact.path, record.start, record.end
        if end - start > MAX_ANSWER_BYTES:
            return Mismatch(f"/: an answer of {end - start} bytes is not read for its value")
        with writing(path), open(path, "rb") as reader:
            reader.seek(start)
            return value_of(reader.read(end - start).decode(errors="replace"), assignment.schema)

    def _answered(self, number: int, record: TurnRecord, file: OutputFile | None, value: Any) -> TaskResult:
        """The result, with its output file written if the member did not do so."""
        member, assignment = self.members[number], self.assignments[number]
        if file is not None and file.was_written:
            output, end = _output_of(file.path)
            return TaskResult(number + 1, assignment, member, Standing.OK, output, file.path, 0, end, value)
        if file is not None:
            file.take(member.artifact.path, record.start, record.end)
        return TaskResult(
            number + 1,
            assignment,
            member,
            Standing.OK,
            self._output(member, record),
            member.artifact.path,
            record.start,
            record.end,
            value,
        )

    def _failed(self, number: int, record: TurnRecord | None = None) -> TaskResult:
        member = self.members[number]
        output = self._output(member, record) if record else Output("", 0, self.run.artifact_path(member))
        start, end = (record.start, record.end) if record else (0, 0)
        return TaskResult(
            number + 1,
            self.assignments[number],
            member,
            Standing.FAILED,
            output,
            member.artifact.path,
            start,
            end,
        )

    def _output(self, member: Member, record: TurnRecord) -> Output:
        answer = record.answer
        return Output(answer.head[: SPLICE_CHARS + 1], answer.trimmed_chars, self.run.artifact_path(member))

    async def _end(
        self, member: Member, state: MemberState, reason: str | None, turn: MemberTurn | None = None
    ) -> None:
        """Put the member into its last state; its last turn and its end are one record."""
        member.end(state, reason)
        # Who has settled is not thrown away because another one failed meanwhile.
        with anyio.CancelScope(shield=True):
            await self.run.journal.commit(*([turn] if turn else []), self._ended_event(member))

    def _ended_event(self, member: Member) -> MemberEnded:
        return MemberEnded(
            team=self.team.plan.name, seat=member.seat, state=member.state, reason=member.reason
        )

    def _after(self) -> str:
        seconds = self.deadline.at - self.began
        return "" if math.isinf(seconds) else f" after {show_span(seconds)}"


_STATES = {Failed: MemberState.FAILED, Stopped: MemberState.ABSENT}


def _output_of(path: Path) -> tuple[Output, int]:
    """The beginning, the length and the size in bytes of a file that a member wrote."""
    reader = AnswerReader()
    size = 0
    with writing(path), open(path, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            size += len(piece)
            reader.feed(piece)
    answer = reader.finish()
    return Output(answer.head[: SPLICE_CHARS + 1], answer.trimmed_chars, str(path)), size
