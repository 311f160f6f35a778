"""What a run concluded, as the values behind ``result.json``.

The keys are a contract (docs/reference/run-folder.md); ``result_schema`` publishes them. Unknown numbers are ``None``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fleet.runs.outcome import MemberState, RunState

__all__ = [
    "Conducted",
    "Decision",
    "ErrorResult",
    "FailedAttempt",
    "MemberResult",
    "Position",
    "RunResult",
    "TeamResult",
    "Tokens",
    "UsageResult",
    "result_schema",
]


class _Value(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Tokens(msgspec.Struct, frozen=True, rename={"input": "in", "output": "out"}):
    """Token counts, ``None`` where unknown."""

    input: int | None = None
    output: int | None = None


class FailedAttempt(_Value, frozen=True, kw_only=True):
    """An attempt at a turn that was followed by another one."""

    turn: int
    attempt: int
    model: str | None
    reason: str
    seconds: float


class MemberResult(_Value, frozen=True, kw_only=True):
    """One seat's part."""

    seat: str
    agent: str
    runtime: str
    model: str | None
    state: MemberState
    reason: str | None
    attempts: int  #: turns started
    seconds: float
    tokens: Tokens
    cost_usd: float | None
    artifact: str  #: relative to the run folder
    final: str | None
    retried: tuple[FailedAttempt, ...]


class TeamResult(_Value, frozen=True, kw_only=True):
    """One team's part. ``of`` counts its members; ``finished`` those that ended by themselves, well or badly."""

    team: str
    mode: str
    room: str | None  #: ``None`` for a team whose members do not meet
    state: RunState
    of: int
    finished: int
    absent: tuple[str, ...]
    failed: tuple[str, ...]
    members: tuple[MemberResult, ...]
    outcome: str | None = None  #: of its decision; ``None`` before there is one
    record: str | None = None  #: path of its decision of record, relative to the run folder


class Position(_Value, frozen=True, kw_only=True):
    """A conclusion and the seats that reached it."""

    final: str
    seats: tuple[str, ...]


class Decision(_Value, frozen=True, kw_only=True):
    """The decision of record.

    ``outcome`` is the majority's conclusion, ``split``, or ``none`` without any FINAL; ``agreed`` are the seats of
    that majority and empty for the other two, whatever words a conclusion has.
    """

    outcome: str
    agreed: tuple[str, ...]
    positions: tuple[Position, ...]
    dissent: tuple[Position, ...]
    open_questions: tuple[str, ...]
    absent: tuple[str, ...]
    text: str


class Conducted(_Value, frozen=True, kw_only=True):
    """What reached the conductor, in characters and counts."""

    chars_read: int
    pings: int
    notices: int
    digests: int
    returns: int = 0


class UsageResult(_Value, frozen=True, kw_only=True):
    """What the run cost, where known."""

    tokens: Tokens
    cost_usd: float | None


class ErrorResult(_Value, frozen=True, kw_only=True):
    """Why a run failed."""

    code: str
    message: str
    hint: str | None


class RunResult(_Value, frozen=True, kw_only=True):
    """The whole of ``result.json``. ``decision`` is ``None`` only for a run that ended before there could be one."""

    run: str
    fleet: str
    task: str
    state: RunState
    exit_code: int
    rehearsal: bool
    started: str
    ended: str
    seconds: float
    teams: tuple[TeamResult, ...]
    decision: Decision | None
    conductor: Conducted
    usage: UsageResult
    error: ErrorResult | msgspec.UnsetType = msgspec.UNSET

    def as_json(self) -> str:
        """Indented JSON, ending in a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"


def result_schema() -> dict[str, Any]:
    """The JSON Schema of ``result.json``."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(RunResult)}
