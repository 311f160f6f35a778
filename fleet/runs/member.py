"""One member of a run: its agent, its artifact, and how it stands.

A turn streams to the artifact while it is read once for what matters; memory does not grow with the answer.
Not here: what is asked and what follows from the answer (``fleet/deliberation``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from fleet.agents.base import Agent, Answered, Failed, Opening, Turn, TurnOutcome, Usage
from fleet.deadline import Deadline
from fleet.runs.answer import Answer, AnswerReader, Final
from fleet.runs.artifacts import Artifact
from fleet.runs.outcome import MemberState, Phase

__all__ = ["Member", "TurnRecord"]


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One finished turn."""

    number: int
    phase: Phase
    outcome: TurnOutcome
    answer: Answer
    seconds: float


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
        self.state = MemberState.SEATED
        self.reason: str | None = None
        self.final: Final | None = None
        self.last_words = ""
        self.turns = 0
        self.has_spoken = False  #: whether anything ever came from it, answered or not
        self.seconds = 0.0
        self.usage = Usage()

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

    async def start(self, opening: Opening) -> None:
        """Start the agent in its seat. Raises ``ChildNotStarted``, ``StorageFailed``."""
        self.artifact.open()
        await self.agent.start(opening)

    async def take_turn(
        self,
        phase: Phase,
        prompt: str,
        *,
        deadline: Deadline,
        on_line: Callable[[str, str], None] | None = None,
    ) -> TurnRecord:
        """Ask once; the answer goes to the artifact as it comes.

        Raises:
            StorageFailed: the artifact cannot be written; the agent has been stopped.
        """
        self.turns += 1
        self.artifact.heading(self.turns, phase)
        reader = AnswerReader()

        def take(data: bytes) -> None:
            self.has_spoken = True
            self.artifact.write(data)
            reader.feed(data)
            if on_line and reader.last_line != shown[-1]:
                shown[:] = [reader.last_line]
                on_line(self.seat, reader.last_line)

        shown = [""]
        told = {"FLEET_TURN": str(self.turns), "FLEET_PHASE": phase.value}
        remaining = deadline.remaining(anyio.current_time())
        if remaining != float("inf"):
            told["FLEET_DEADLINE"] = f"{time.time() + remaining:.3f}"
        began = anyio.current_time()
        try:
            outcome = await self.agent.turn(Turn(self.turns, prompt, told, deadline), take)
        finally:
            self.seconds += anyio.current_time() - began
        answer = reader.finish()
        if isinstance(outcome, Answered):
            self.usage = _sum(self.usage, outcome.usage)
            if answer.is_empty:
                outcome = Failed("empty answer")
            else:
                self.last_words = answer.head
        return TurnRecord(self.turns, phase, outcome, answer, anyio.current_time() - began)

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
