"""What can happen in a run, one frozen type per kind of event; the journal is a list of these.

The names and keys are a contract (docs/reference/run-folder.md); ``event_schema`` publishes them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fleet.runs.outcome import MemberState, Phase, RunState, TurnResult

__all__ = [
    "DecisionMade",
    "DigestRead",
    "Event",
    "MemberAttempt",
    "MemberEnded",
    "MemberFinal",
    "MemberSeated",
    "MemberStalled",
    "MemberTurn",
    "NoticeGiven",
    "Pinged",
    "ReturnRead",
    "RunEnded",
    "RunStarted",
    "TeamEnded",
    "TeamStarted",
    "event_schema",
]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every event has; the journal fills both when it appends."""

    ts: str = ""  #: ISO-8601 UTC with milliseconds
    seq: int = 0  #: 1, 2, … in this journal


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    """The run's folder stands and nothing else yet."""

    run: str
    fleet: str
    task: str
    blueprint: str
    pid: int
    rehearsal: bool
    deadline_seconds: float | None


class TeamStarted(Event, frozen=True, kw_only=True, tag="team.started"):
    """The team begins; if it meets, its room is open and its names are reserved."""

    team: str
    mode: str
    room: str | None  #: ``None`` for a team whose members do not meet
    seats: tuple[str, ...]
    deadline_seconds: float | None


class TeamEnded(Event, frozen=True, kw_only=True, tag="team.ended"):
    """Every member of the team is over; what it concluded is told by the ``decision`` that follows."""

    team: str
    finished: int
    total: int
    absent: tuple[str, ...]
    failed: tuple[str, ...]
    line: str


class MemberSeated(Event, frozen=True, kw_only=True, tag="member.seated"):
    """The seat has joined the room; always before its first turn."""

    team: str
    seat: str
    runtime: str
    reason: str  #: why this runtime fills it


class MemberAttempt(Event, frozen=True, kw_only=True, tag="member.attempt"):
    """A turn is about to start."""

    team: str
    seat: str
    turn: int
    phase: Phase
    attempt: int


class MemberTurn(Event, frozen=True, kw_only=True, tag="member.turn"):
    """A turn ended. It was given what others posted after ``read_from`` up to ``read_to``."""

    team: str
    seat: str
    turn: int
    phase: Phase
    outcome: TurnResult
    seconds: float
    chars: int  #: of the answer, in code points
    read_from: int
    read_to: int
    post_seq: int | None  #: where the answer stands in the room; ``None`` if nothing was posted
    reason: str | None


class MemberStalled(Event, frozen=True, kw_only=True, tag="member.stalled"):
    """Nothing has come from a member for a while. A notice: nothing is done about it."""

    team: str
    seat: str
    turn: int
    seconds: float  #: since its last output, or since the turn began


class MemberFinal(Event, frozen=True, kw_only=True, tag="member.final"):
    """What the seat concluded, from its own answer; ``None`` for no FINAL."""

    team: str
    seat: str
    final: str | None


class MemberEnded(Event, frozen=True, kw_only=True, tag="member.ended"):
    """The member is over."""

    team: str
    seat: str
    state: MemberState
    reason: str | None


class Pinged(Event, frozen=True, kw_only=True, tag="ping"):
    """A one-line sign of life woke the conductor."""

    line: str


class NoticeGiven(Event, frozen=True, kw_only=True, tag="notice"):
    """The completion notice, exactly one per run."""

    run: str
    finished: int
    total: int
    absent: tuple[str, ...]
    failed: tuple[str, ...]
    line: str


class DigestRead(Event, frozen=True, kw_only=True, tag="digest"):
    """The conductor read a team's room, once."""

    team: str
    room: str
    total: int
    verbatim: int
    headlines: int
    collapsed: int
    chars: int


class ReturnRead(Event, frozen=True, kw_only=True, tag="return"):
    """The conductor read what a dispatched team gave, once."""

    team: str
    total: int
    verbatim: int
    headlines: int
    collapsed: int
    chars: int


class DecisionMade(Event, frozen=True, kw_only=True, tag="decision"):
    """The decision of record stands."""

    team: str
    outcome: str
    dissent: tuple[str, ...]  #: seats
    absent: tuple[str, ...]


class RunEnded(Event, frozen=True, kw_only=True, tag="run.ended"):
    """The last line of every journal."""

    state: RunState
    exit_code: int
    error: str | None


_ALL = (
    RunStarted
    | TeamStarted
    | TeamEnded
    | MemberSeated
    | MemberAttempt
    | MemberTurn
    | MemberFinal
    | MemberStalled
    | MemberEnded
    | Pinged
    | NoticeGiven
    | DigestRead
    | ReturnRead
    | DecisionMade
    | RunEnded
)


def event_schema() -> dict[str, Any]:
    """The JSON Schema of one line of ``events.jsonl``."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(_ALL)}
