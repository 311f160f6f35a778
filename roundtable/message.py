"""Frozen values on the wire and in the store: messages, members, rooms.

Pure. What is made for every post is a ``Struct``: a frozen dataclass of seven fields takes ten times as long to make
(2.1 against 0.2 microseconds), and a ``Struct`` is encoded as it is. Without
``gc``, because none of them can be part of a cycle.

Not here: what a name may be (``names``), the messages around them and their bytes (``wire``), and how text of others
is shown (``harmless``).
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct, field

__all__ = [
    "Activity",
    "Author",
    "Member",
    "Message",
    "RoomInfo",
]


class Author(Struct, frozen=True, rename="camel", gc=False):
    """Who posted: one connection under one name."""

    session_id: str
    name: str


class Message(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One post, as it was posted."""

    id: str
    seq: int  #: from 1 in its room, never reused while the room lives
    timestamp: int  #: milliseconds since the epoch
    room: str
    author: Author = field(name="from")
    text: str = field()  #: any characters, at most 6 MiB of UTF-8
    reply_to: str | None = None  #: ``name#seq`` of the message it answers


class Member(Struct, frozen=True, rename="camel", gc=False):
    """One connection's place in a room."""

    session_id: str
    name: str
    joined_at: int  #: milliseconds since the epoch


@dataclass(frozen=True, slots=True)
class RoomInfo:
    """A room as one name sees it."""

    name: str
    topic: str | None
    epoch: str  #: new each time a room of this name is created
    members: tuple[Member, ...]
    message_count: int  #: retained messages
    first_seq: int  #: oldest retained; ``last_seq + 1`` when there is none
    last_seq: int
    last_activity: int | None  #: milliseconds since the epoch; ``None`` before the first post
    unread: int  #: retained messages behind which the asking name's cursor lies


class Activity(Struct, frozen=True, tag_field="type", tag="activity", gc=False):
    """Something is new in a room: no bodies, and not how much."""

    room: str
    author: str = field(name="from")  #: the poster or joiner; ``(left)`` for who left
    seq: int = field()  #: the newest message, 0 for a join or a leave
