"""The tools a seat offers over MCP, as an agent reads them: names, parameters, limits and the manners of a room.

Pure data. A parameter is named as on the wire. Who acts is no parameter: a server serves one name. What a schema
states as a bound is refused beyond it; what a description states counts as the nearest bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["TOOLS", "Tool", "offered"]

_Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, and the call it is translated to."""

    name: str
    of: Literal["seat", "memory"]
    action: str  #: of ``Seat.call`` or ``Memory.call``
    description: str
    parameters: Mapping[str, _Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    is_read_only: bool = False  #: nothing moves that another call could see
    is_for_writer: bool = False  #: only offered to the role that writes memory

    @property
    def schema(self) -> _Schema:
        """The JSON Schema of its arguments; anything else is forbidden."""
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": list(self.required),
            "additionalProperties": False,
        }


def offered(*, is_writer: bool) -> tuple[Tool, ...]:
    """The tools of a role, in the order they are listed."""
    return tuple(tool for tool in TOOLS if is_writer or not tool.is_for_writer)


def _text(description: str, **bounds: Any) -> _Schema:
    return {"type": "string", "description": description, **bounds}


def _number(description: str, **bounds: Any) -> _Schema:
    return {"type": "integer", "description": description, **bounds}


_ROOM = _text(
    "Name of the room, without #: 1 to 64 of A-Z a-z 0-9 _ -, beginning with a letter or digit.",
    pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
)

_BUDGETS = {
    "budget": _number(
        "Most characters of the digest, 200 to 1,000,000. Raise it deliberately: it all goes into your context.",
        default=2000,
    ),
    "perMessage": _number("Most characters of one message, 80 or more.", default=600),
}

#: All tools: nine of rooms, then those of memory.
TOOLS = (
    Tool(
        name="roundtable_rooms",
        of="seat",
        action="rooms",
        description="List the rooms, one line each: topic, how much is unread for you, size, members.",
        is_read_only=True,
    ),
    Tool(
        name="roundtable_join",
        of="seat",
        action="join",
        description=(
            "Join a room, and create it if there is none. Join before you post. "
            "Keep one room per concern; digest after joining if there is something unread."
        ),
        parameters={
            "room": _ROOM,
            "topic": _text(
                "What a new room is about, one line. A room that has a topic keeps it.", maxLength=200
            ),
        },
        required=("room",),
    ),
    Tool(
        name="roundtable_leave",
        of="seat",
        action="leave",
        description="Leave a room. What you have read stays known, so you can come back to what is unread.",
        parameters={"room": _ROOM},
        required=("room",),
    ),
    Tool(
        name="roundtable_post",
        of="seat",
        action="post",
        description=(
            "Say something to everybody in a room you have joined. Post conclusions, not transcripts: what you "
            "found, decided or need; put anything long into a file and post its path. Digest first, because a "
            "post moves your cursor past what is unread. Address people by their role."
        ),
        parameters={
            "room": _ROOM,
            "message": _text("At most 6 MiB; a few sentences serve best.", minLength=1),
            "replyTo": _text('The message this answers: "name#seq" as shown, its seq, or its id.'),
        },
        required=("room", "message"),
    ),
    Tool(
        name="roundtable_digest",
        of="seat",
        action="digest",
        description=(
            "Read what is unread in a room, within a budget, and move your cursor past all of it: the newest "
            "messages in full, older ones as one line each, the oldest as a count. Digest before you decide or "
            "answer. Nothing is lost: the text says which fetch reads what was collapsed."
        ),
        parameters={"room": _ROOM, **_BUDGETS},
        required=("room",),
    ),
    Tool(
        name="roundtable_peek",
        of="seat",
        action="peek",
        description="Read what a digest would show. Your cursor stays, so that it all remains unread.",
        parameters={"room": _ROOM, **_BUDGETS},
        required=("room",),
        is_read_only=True,
    ),
    Tool(
        name="roundtable_fetch",
        of="seat",
        action="fetch",
        description=(
            "Read whole messages, oldest first, after afterSeq or else after your cursor, which stays. For what a "
            "digest has collapsed; to catch up, digest. The answer says how to go on."
        ),
        parameters={
            "room": _ROOM,
            "afterSeq": _number("Begin after this message. Default: your cursor."),
            "limit": _number("Most messages.", minimum=1, maximum=500, default=20),
            "maxChars": _number(
                "Most characters, 200 to 200,000; a longer message comes in slices.", default=20_000
            ),
            "seq": _number("Only this message. Not together with afterSeq.", minimum=1),
            "offset": _number("With seq: begin at this character of it.", minimum=0, default=0),
        },
        required=("room",),
        is_read_only=True,
    ),
    Tool(
        name="roundtable_export",
        of="seat",
        action="export",
        description=(
            "Write all that a room retains to a file, whole, without showing it and without moving a cursor. "
            "Only for the role that writes memory; others ask it to."
        ),
        parameters={
            "room": _ROOM,
            "path": _text(
                "Where, relative to the memory folder and under raw/. "
                "A name ending in .jsonl gets one JSON object per message."
            ),
        },
        required=("room", "path"),
    ),
    Tool(
        name="roundtable_wait",
        of="seat",
        action="wait",
        description=(
            "Wait until others post, and answer with one line that says where and who, never with what they said; "
            "or with `Nothing new.` when the time is over. Wait instead of polling, then digest. Moves no cursor."
        ),
        parameters={
            "rooms": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Rooms to listen to. Default: all you have joined.",
            },
            "timeoutSeconds": {
                "type": "number",
                "description": "How long at most; stay below the time after which your client gives a tool up.",
                "minimum": 0,
                "maximum": 300,
                "default": 55,
            },
        },
        is_read_only=True,
    ),
    Tool(
        name="memory_query",
        of="memory",
        action="query",
        description=(
            "Ask what the team has kept from earlier work: the passages that match, with their pages and dates. "
            "Ask before you work out again what may be known."
        ),
        parameters={
            "question": _text("What you want to know, in a few plain words.", minLength=1),
            "maxChars": _number("Most characters of the answer, at most 20,000.", default=2000),
        },
        required=("question",),
        is_read_only=True,
    ),
    Tool(
        name="memory_ingest",
        of="memory",
        action="ingest",
        description="Put what a file under the memory's raw/ says, such as an exported room, into its pages.",
        parameters={"source": _text("Path of the file, as the export was given it.", minLength=1)},
        required=("source",),
        is_for_writer=True,
    ),
    Tool(
        name="memory_gardener",
        of="memory",
        action="gardener",
        description="Tidy memory: merge duplicate facts, link pages of one topic, and report what changed.",
        is_for_writer=True,
    ),
)
