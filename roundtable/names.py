"""What may name a member or a room, and what may be a topic. Pure, and light enough for a command line."""

from __future__ import annotations

import re

from .harmless import is_plain_line

__all__ = ["MAX_TOPIC_CHARS", "is_member_name", "is_room_name", "is_topic"]

#: Characters of a topic, which is one line and shown in lists.
MAX_TOPIC_CHARS = 200

_MEMBER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ROOM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def is_member_name(text: str) -> bool:
    """Whether ``text`` as a whole may name a member."""
    return _MEMBER_NAME.fullmatch(text) is not None


def is_room_name(text: str) -> bool:
    """Whether ``text`` as a whole may name a room."""
    return _ROOM_NAME.fullmatch(text) is not None


def is_topic(text: str) -> bool:
    """Whether ``text`` is one line of 1 to 200 characters, none of them a control."""
    return 0 < len(text) <= MAX_TOPIC_CHARS and is_plain_line(text)
