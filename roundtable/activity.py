"""The activity of one turn in one room, put together once for all who hear the same.

Who has caused nothing hears everything, and that is mostly everybody but one. Pure: bytes out, nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def heard(room: str, told: Sequence[Told]) -> tuple[Heard | None, dict[str, Heard | None]]:
    """What everybody hears, and by session what those hear who caused some of it; ``None`` is nothing."""
    if len(told) == 1 and told[0].seqs:
        (one,) = told
        return Heard(Activity(room, one.author, max(one.seqs)), _frames(room, one)), {one.but: None}
    frames = [_frames(room, one) for one in told]
    for_causes = {
        cause: _together(room, [pair for pair in _after_coming(told, frames, cause) if pair[0].but != cause])
        for cause in {one.but for one in told}
    }
    return _together(room, zip(told, frames, strict=True)), for_causes


def heard_by(session_id: str, room: str, told: Sequence[Told]) -> Heard | None:
    """What one session hears."""
    _, for_causes = heard(room, [*told, Told(session_id, "", [])])
    return for_causes[session_id]


def _frames(room: str, one: Told) -> bytes:
    return b"".join(wire.activity_frames(room, one.author, one.seqs))


def _after_coming(
    told: Sequence[Told], frames: Sequence[bytes], session_id: str
) -> Iterable[tuple[Told, bytes]]:
    start = 0
    for number, one in enumerate(told):
        if one.is_coming and one.but == session_id:
            start = number + 1
    return zip(told[start:], frames[start:], strict=True)


def _together(room: str, pairs: Iterable[tuple[Told, bytes]]) -> Heard | None:
    frames = []
    # The highest number, or the last of several that are no posts.
    author, newest = "", -1
    for one, some in pairs:
        if not one.seqs:
            continue
        frames.append(some)
        highest = max(one.seqs)
        if highest >= newest:
            author, newest = one.author, highest
    return Heard(Activity(room, author, newest), b"".join(frames)) if frames else None
