"""One member of a run: its agent, its artifact, and how it stands.

A turn streams to the artifact while it is read once for what matters; memory does not grow with the answer.
Not here: what is asked and what follows from the answer (``fleet/deliberation``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import anyio

from fleet.agents.base import Agent, Answered, Failed, Listening, Opening, Stopped, Turn, TurnOutcome, Usage
from fleet.deadline import NEVER, Deadline
from fleet.runs.answer import Answer, AnswerReader, Final
from fleet.runs.artifacts import Artifact
from fleet.runs.outcome import MemberState, Phase
from fleet.runs.results import FailedAttempt

__all__ = ["STALL_SECONDS", "Member", "TurnRecord"]


#: How long nothing comes from a member before somebody is told, seconds: the reference's.
STALL_SECONDS = 60.0

#: The part of a turn's time after which an agent that can still be told something is told to come to an end.
_SOFT_PART = 0.8

_SOFT_LINE = "Your time is nearly up: answer now with what you have."


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One finished turn."""

    number: int
    phase: Phase
    outcome: TurnOutcome
    answer: Answer
    seconds: float
    start: int  #: where the answer begins in the artifact, in bytes
    end: int

    def failed(self, reason: str) -> TurnRecord:
        """The same turn, judged to have failed."""
        return replace(self, outcome=Failed(reason))


class Member:
    """A seat while the run lasts. ``state`` only moves forward; ``is_over`` says that no turn will follow."""

    def __init__(
        self,
        *,
        seat: str,
        agent_name: str,
        runtime: str,
        agent: Agent,
        artifact: Artifact,
        is_to_conclude: bool = True,
    ) -> None:
        self.seat = seat
        self.agent_name = agent_name
        self.runtime = runtime
        self.agent = agent
        self.artifact = artifact
        self.is_to_conclude = is_to_conclude  #: whether it owes a FINAL line; who is dispatched owes its work
        self.is_set_aside = False  #: whether it has concluded and waits for work that follows from it
        self.is_started = False
        self.state = MemberState.SEATED
        self.reason: str | None = None
        self.final: Final | None = None
        self.last_words = ""
        self.turns = 0
        self.has_spoken = False  #: whether anything ever came from it, answered or not
        self.seconds = 0.0
        self.usage = Usage()
        self.retried: list[FailedAttempt] = []  #: attempts that were followed by another one

    @property
    def is_in_turn(self) -> bool:
        """Whether it has been asked and what it said is not yet posted."""
        return self.state is MemberState.TALKING

    @property
    def is_over(self) -> bool:
        """Whether the member has ended, well or badly."""
        return self.state not in {MemberState.SEATED, MemberState.JOINED, MemberState.TALKING}

    @property
    def has_concluded(self) -> bool:
        """Whether it ended well and gave what it owed."""
        return self.state is MemberState.FINAL and (self.final is not None or not self.is_to_conclude)

    @property
    def standing(self) -> str:
        """The state, and what is the matter with it if anything is."""
        return f"{self.state} ({self.reason})" if self.reason else self.state.value

    def end(self, state: MemberState, reason: str | None = None) -> None:
        """Put the member into its last state; the first one stands."""
        if not self.is_over:
            self.state, self.reason = state, reason

    def begin_work(self) -> None:
        """From now on it owes its work and no conclusion."""
        self.state = MemberState.TALKING
        self.is_to_conclude = self.is_set_aside = False

    async def start(self, opening: Opening) -> None:
        """Start the agent in its seat. Raises ``ChildNotStarted``, ``StorageFailed``."""
        self.artifact.open()
        await self.agent.start(opening)
        self.is_started = True

    async def take_turn(
        self,
        phase: Phase,
        prompt: str,
        *,
        deadline: Deadline,
        on_line: Callable[[str, str], None] | None = None,
        on_stall: Callable[[float], None] | None = None,
        may_be_empty: bool = False,
    ) -> TurnRecord:
        """Ask once; the answer goes to the artifact as it comes.

        ``on_stall`` is told, once per silence, how many seconds nothing has come. With a fifth of the time left an
        agent that listens is told to come to an end. ``may_be_empty``: an empty answer is no failure.

        Raises:
            StorageFailed: the artifact cannot be written; the agent has been stopped.
        """
        self.turns += 1
        self.artifact.heading(self.turns, phase)
        start = self.artifact.size_bytes
        reader = AnswerReader()
        heard = anyio.current_time()

        def take(data: bytes) -> None:
            nonlocal heard
            heard = anyio.current_time()
            self.has_spoken = True
            self.artifact.write(data)
            reader.feed(data)
            if on_line and reader.last_line != shown[-1]:
                shown[:] = [reader.last_line]
                on_line(self.seat, reader.last_line)

        async def listen() -> None:
            told_after = -1.0  # the output whose silence has been told of
            while True:
                if heard == told_after:
                    await anyio.sleep(STALL_SECONDS)
                    continue
                await anyio.sleep_until(heard + STALL_SECONDS)
                silent = anyio.current_time() - heard
                if silent >= STALL_SECONDS:
                    told_after = heard
                    if on_stall:
                        on_stall(silent)

        async def soften(agent: Listening) -> None:
            await anyio.sleep_until(deadline.part(_SOFT_PART, now=began).at)
            await agent.tell(_SOFT_LINE)

        shown = [""]
        told = {"FLEET_TURN": str(self.turns), "FLEET_PHASE": phase.value}
        remaining = deadline.remaining(anyio.current_time())
        if remaining != float("inf"):
            told["FLEET_DEADLINE"] = f"{time.time() + remaining:.3f}"
        began = anyio.current_time()
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(listen)
                if isinstance(self.agent, Listening) and deadline != NEVER:
                    beside.start_soon(soften, self.agent)
                outcome = await self.agent.turn(Turn(self.turns, prompt, told, deadline), take)
                beside.cancel_scope.cancel()
        finally:
            self.seconds += anyio.current_time() - began
        answer = reader.finish()
        if not isinstance(outcome, Stopped):
            self.usage = _sum(self.usage, outcome.usage)
        if isinstance(outcome, Answered):
            if answer.is_empty and not may_be_empty:
                outcome = Failed("empty answer", outcome.usage)
            else:
                self.last_words = answer.head
        seconds = anyio.current_time() - began
        return TurnRecord(self.turns, phase, outcome, answer, seconds, start, self.artifact.size_bytes)

    async def close(self) -> None:
        """End the agent and close the artifact."""
        await self.agent.close()
        self.artifact.close()


def _sum(one: Usage, other: Usage) -> Usage:
    def add(a: float | None, b: float | None) -> float | None:
        return b if a is None else a if b is None else a + b

    tokens_in, tokens_out = add(one.tokens_in, other.tokens_in), add(one.tokens_out, other.tokens_out)
    return Usage(
        None if tokens_in is None else int(tokens_in),
        None if tokens_out is None else int(tokens_out),
        add(one.cost_usd, other.cost_usd),
    )
