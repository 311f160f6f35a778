"""The orchestrating loop of a run: a pipeline of teams, one after the other, and the one record of how it ended.

Each team works until it has concluded; the next one is told what was decided. Whatever ends the run (its teams, a
deadline, a signal, a full disk), every process of it is gone and its last record is written before ``conduct``
returns. Not here: how a team works (``fleet/deliberation/team.py`` and its like).
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio

from fleet.check import check_seats
from fleet.deadline import Deadline
from fleet.errors import FleetError, InternalFault
from fleet.plan import Plan
from fleet.runs.events import RunEnded, RunStarted
from fleet.runs.folder import RunFolder, add_to_index
from fleet.runs.journal import timestamp
from fleet.runs.outcome import MemberState, RunState
from fleet.runs.results import ErrorResult, RunResult
from fleet.runs.run import Run, Watcher
from fleet.runs.summary import summarize
from fleet.settings import Settings
from fleet.wardens import supervised
from roundtable.errors import RoundtableError

__all__ = ["Watcher", "begin", "conduct", "pipeline"]

#: Signals that end a run: from the keyboard, from another process, from a terminal that closes.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def conduct(
    plan: Plan,
    settings: Settings,
    *,
    output: Path | None = None,
    watcher: Watcher | None = None,
    folder: RunFolder | None = None,
    work: Callable[[Run], Awaitable[None]] | None = None,
) -> RunResult:
    """Run ``plan`` to its end and return what ``result.json`` holds.

    A run that fails, is interrupted or runs out of time returns its result like any other, with its exit code.
    ``folder`` is an open run folder to work in instead of a new one; it is closed here. ``work`` is what is done
    within the run, by default ``pipeline``: the teams of the plan in order.

    Raises:
        UsageProblem, StorageFailed: the run folder cannot be made; nothing was started.
        RuntimeMissing: a program or a working directory is not there; nothing was started.
    """
    watcher = watcher or Watcher()
    try:
        check_seats(plan, settings)
        folder = folder or RunFolder.create(plan.run, below=settings.folder, output=output)
        interruption = _Interruption()
        async with anyio.create_task_group() as listening:
            await listening.start(interruption.heed)
            watcher.on_folder(folder)
            run = Run.begin(plan, settings, folder, watcher)
            result = await _Conductor(run, work or pipeline, interruption).run()
            listening.cancel_scope.cancel()
    finally:
        if folder is not None:
            folder.close()
    return result


async def pipeline(run: Run) -> None:
    """Let the plan's teams work in order, each until it has concluded.

    A team that missed its quorum ends the pipeline; those after it are skipped.
    """
    begin(run)
    for team in run.teams:
        team.is_started, team.began = True, anyio.current_time()
        deadline = run.deadline.earlier(Deadline.after(team.plan.deadline_seconds, now=team.began))
        await _work_of(team.plan.mode)(run, team, deadline=deadline)
        run.note_time()
        if not team.count.has_quorum:
            break


def begin(run: Run) -> None:
    """The first records of a run."""
    plan = run.plan
    run.write_state(RunState.RUNNING)
    add_to_index(
        run.settings.home.root / "runs" / "index.jsonl",
        {"run": plan.run, "folder": str(run.folder.path), "started": run.started_at},
    )
    run.journal.append(
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


def _work_of(mode: str) -> Callable[..., Awaitable[None]]:
    """How a team of that mode works; imported only then, as many runs have no room and many no tasks."""
    if mode == "deliberate":
        from fleet.deliberation import team as deliberating

        return deliberating.work
    from fleet.dispatch import team as dispatching

    return dispatching.work if mode == "dispatch" else dispatching.work_after_deliberation


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

    def __init__(self, run: Run, work: Callable[[Run], Awaitable[None]], interruption: _Interruption) -> None:
        self._run = run
        self._work = work
        self._interruption = interruption
        self._error: FleetError | RoundtableError | None = None
        self._ended_at, self._seconds = "", 0.0

    async def run(self) -> RunResult:
        """The whole run; see ``conduct``."""
        with self._interruption.work:
            try:
                async with supervised():
                    await self._work(self._run)
            except* (FleetError, RoundtableError) as group:
                self._error = _first(group)
            except* Exception as group:  # a fault of ours, too, leaves a run with a record of its end
                self._error = self._error or self._fault(group)
        return self._finish()

    def _fault(self, group: BaseExceptionGroup[Exception]) -> InternalFault:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        folder = self._run.folder
        self._try(lambda: folder.write("crash.txt", "".join(traceback.format_exception(group))))
        return InternalFault(type(error).__name__, str(error), folder.path / "crash.txt")

    def _finish(self) -> RunResult:
        """Write the last records. A disk that fails now cannot hide what ended the run."""
        run = self._run
        self._ended_at, self._seconds = timestamp(), round(anyio.current_time() - run.began, 3)
        over = "interrupted" if self._interruption.number is not None else "the run failed"
        for team in run.teams:
            for member in team.members:
                if not member.is_over:
                    member.end(MemberState.INTERRUPTED, over)
                    self._try(partial(run.end_member, team, member, MemberState.INTERRUPTED, over))
        if not run.notices:
            self._try(run.give_notice)
        self._try(run.write_artifact_index)
        self._try(lambda: run.folder.write("result.json", self._result().as_json()))
        result = self._result()
        message = str(self._error) if self._error else None
        self._try(
            lambda: run.journal.append(
                RunEnded(state=result.state, exit_code=result.exit_code, error=message)
            )
        )
        self._try(lambda: run.write_state(result.state, result))
        run.journal.close()
        return result if self._error is None else self._result()

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except FleetError as error:
            self._error = self._error or error

    def _result(self) -> RunResult:
        error = self._error
        return summarize(
            self._run,
            ended=self._ended_at,
            seconds=self._seconds,
            interrupted_by=self._interruption.number,
            error=ErrorResult(code=error.code, message=str(error), hint=error.hint) if error else None,
            error_exit_code=error.exit_code if error else 1,
        )


def _first(group: BaseExceptionGroup[FleetError | RoundtableError]) -> FleetError | RoundtableError:
    """The first error of a group that may be nested; the others followed from it."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, FleetError | RoundtableError):
        raise TypeError(f"not an error of ours: {error!r}")
    return error
