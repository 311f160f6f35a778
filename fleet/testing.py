"""For tests, yours and ours: agents that play a script and a room in memory, both at home under any clock.

With these a team deliberates in one process; under a clock that is moved by hand (``trio.testing.MockClock``) an hour
passes in milliseconds. Not here: fake processes, files or brokers. Those are real in tests too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import anyio

from fleet.agents.base import Answered, Failed, Opening, Stopped, Turn, TurnOutcome
from roundtable.message import Author
from roundtable.room import Room
from roundtable.wire import encode_message

__all__ = ["MemoryRoom", "Reply", "ScriptedAgent"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a scripted agent does in one turn: wait, then answer with ``text``, or fail for ``failure``."""

    text: str = ""
    after_seconds: float = 0.0
    failure: str | None = None


@dataclass
class ScriptedAgent:
    """Plays ``replies`` in order, the last one again and again; ``prompts`` keeps what it was asked."""

    replies: Sequence[Reply | str]
    has_memory: bool = False
    is_deterministic: bool = False
    prompts: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  #: what it was told in the middle of a turn
    is_closed: bool = False

    async def start(self, opening: Opening) -> None:
        """Nothing to start."""

    async def turn(self, turn: Turn, emit: Callable[[bytes], None]) -> TurnOutcome:
        """Play the next reply; stopped at the turn's deadline like a process."""
        reply = self.replies[min(len(self.prompts), len(self.replies) - 1)]
        reply = Reply(reply) if isinstance(reply, str) else reply
        self.prompts.append(turn.prompt)
        self.turns.append(turn)
        with anyio.move_on_at(turn.deadline.at) as scope:
            await anyio.sleep(reply.after_seconds)
        if scope.cancelled_caught:
            return Stopped()
        emit(reply.text.encode())
        return Failed(reply.failure) if reply.failure is not None else Answered()

    async def tell(self, line: str) -> None:
        """Keep what it was told; a script is not moved by it."""
        self.told.append(line)

    async def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True


class MemoryRoom:
    """A team's room without a broker: the same rules, sequence and digest, in this process."""

    def __init__(self, room: str = "room") -> None:
        self.room = room
        self.posts: list[tuple[str, str]] = []  #: (name, text) in order
        self._inner = Room(room, epoch="memory", encode=encode_message)
        self._ids = count(1)
        self._read: dict[str, int] = {}

    async def post(self, name: str, text: str) -> int:
        """Say ``text`` as ``name``, who is joined if need be."""
        author = Author(name, name)
        self._inner.join(author, joined_at=0)
        posted = self._inner.post(author, text, id=str(next(self._ids)), timestamp=0, size=len(text.encode()))
        self.posts.append((name, text))
        return posted.message.seq

    async def read_others(self, name: str, *, budget: int, per_message: int) -> tuple[str, int, int]:
        """A digest of what others posted since ``name`` last read, and the numbers it covers: after, up to."""
        after, upto = self._read.get(name, 0), self._inner.last_seq
        digest = self._inner.digest(
            name, after_seq=after, is_others_only=True, budget=budget, per_message=per_message
        )
        self._read[name] = upto
        return digest.text, after, upto
