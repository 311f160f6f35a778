"""The contract of whatever fills a seat; nothing above asks which runtime it is.

An agent hands its output to ``emit`` as it comes and ends each turn in one outcome. The answer itself is not
part of the outcome: it may be of any size, so whoever called streams it to where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from fleet.deadline import Deadline

__all__ = ["Agent", "Answered", "Failed", "Listening", "Opening", "Stopped", "Turn", "TurnOutcome", "Usage"]


@dataclass(frozen=True, slots=True)
class Opening:
    """What an agent is started with, once per run."""

    cwd: Path
    env: Mapping[str, str] = field(
        repr=False
    )  #: the whole environment; it may hold secrets, so it is never shown


@dataclass(frozen=True, slots=True)
class Turn:
    """One question to an agent."""

    number: int  #: 1, 2, … per seat
    prompt: str
    env: Mapping[str, str]  #: what is told about this turn, beside the opening's environment
    deadline: Deadline  #: when the whole process tree of this turn is gone


@dataclass(frozen=True, slots=True)
class Usage:
    """What a turn cost, where it is known; ``None`` is not known and never 0."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn ended by itself and well."""

    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn ended badly."""

    reason: str  #: one line, made harmless
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The turn was stopped at its deadline."""


TurnOutcome = Answered | Failed | Stopped


@runtime_checkable
class Listening(Protocol):
    """An agent whose input is still open while it works, so that it can be told something in the middle of a turn."""

    async def tell(self, line: str) -> None:
        """Say one line to it; it does not answer. Nothing happens if no turn is going on."""
        ...


class Agent(Protocol):
    """One seat's agent. Cancelling a turn stops its whole process tree before the cancellation goes on."""

    #: Whether it remembers its earlier turns; one that does not is told its own last words.
    has_memory: bool
    #: Whether equal prompts give equal answers; such seats post in seat order, so that equal runs are equal.
    is_deterministic: bool

    async def start(self, opening: Opening) -> None:
        """Take the seat. Raises ``ChildNotStarted`` if that cannot be."""
        ...

    async def turn(self, turn: Turn, emit: Callable[[bytes], None]) -> TurnOutcome:
        """Answer one prompt; every piece of the answer goes to ``emit``, UTF-8, split anywhere."""
        ...

    async def close(self) -> None:
        """Leave the seat; nothing of the agent is alive afterwards."""
        ...
