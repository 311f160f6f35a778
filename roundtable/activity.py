"""The activity of one turn in one room, put together once for all who hear the same.

Who has caused nothing hears everything, and that is mostly everybody but one. Pure: bytes out, nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from . import wire
from .message import Activity

__all__ = ["Heard", "Told", "heard", "heard_by"]


class Told(Struct, gc=False):
    """What one session has caused under one name, without anything else in between."""

    but: str  #: the session, which is not told itself
    author: str
    seqs: list[int]  #: 0 for a coming or going; empty for a coming that nobody is told of
    is_coming: bool = False  #: the session became a member with this, and hears nothing of what was before


class Heard(Struct, frozen=True, gc=False):
    """What somebody is told of a room after a turn."""

    newest: Activity  #: what stands for all of it where only one can be kept
    frames: bytes  #: all of it, in order


class _Part(Struct, frozen=True, gc=False):
    """The frames of one ``Told``, and what is newest of it."""

    but: str
    author: str
    newest: int
    frames: bytes


def heard(room: str, told: Sequence[Told]) -> tuple[Heard | None, dict[str, Heard | None]]:
    """What everybody hears, and by session what those hear who caused some of it; ``None`` is nothing."""
    parts: list[_Part] = []
    hears_from: dict[str, int] = {}  # of whoever caused some of it, where in parts
    for one in told:
        if one.seqs:
            frames = b"".join(wire.activity_frames(room, one.author, one.seqs))
            parts.append(_Part(one.but, one.author, max(one.seqs), frames))
        if one.is_coming:
            hears_from[one.but] = len(parts)
        else:
            hears_from.setdefault(one.but, 0)
    if len(hears_from) == 1 and len(parts) == len(told):
        return _together(room, parts), dict.fromkeys(hears_from)
    return _together(room, parts), {
        session_id: _together(room, [part for part in parts[start:] if part.but != session_id])
        for session_id, start in hears_from.items()
    }


def heard_by(session_id: str, room: str, told: Sequence[Told]) -> Heard | None:
    """What one session hears."""
    _, for_causes = heard(room, [*told, Told(session_id, "", [])])
    return for_causes[session_id]


def _together(room: str, parts: Sequence[_Part]) -> Heard | None:
    if not parts:
        return None
    # The highest number, or the last of several that are no posts.
    newest = parts[0]
    for part in parts:
        if part.newest >= newest.newest:
            newest = part
    return Heard(Activity(room, newest.author, newest.newest), b"".join([part.frames for part in parts]))
