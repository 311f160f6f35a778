"""The activity of one turn in one room, put together once for all who hear the same.

Who has caused nothing hears everything, and that is mostly everybody but one. Pure: bytes out, nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from . import wire
from .message import Activity

__all__ = ["Told", "TurnsActivity", "put_together"]


class Told(Struct, gc=False):
    """What one session has caused under one name, without anything else in between."""

    but: str  #: the session, which is not told itself
    author: str
    seqs: list[int]  #: at least one; 0 for a coming or going


class TurnsActivity(Struct, frozen=True, gc=False):
    """What somebody is told of a room after a turn."""

    room: str
    seq: int  #: of the newest
    author: str  #: of the newest
    frames: bytes  #: all of it, in order

    @property
    def newest(self) -> Activity:
        """What stands for all of it where only one can be kept."""
        return Activity(self.room, self.author, self.seq)


def put_together(room: str, told: Sequence[Told]) -> tuple[TurnsActivity, dict[str, TurnsActivity | None]]:
    """What everybody hears, and by session what those hear who caused some of it; ``None`` is nothing."""
    frames = [b"".join(wire.activity_frames(room, one.author, one.seqs)) for one in told]
    causes = {one.but for one in told}
    if len(causes) == 1:
        return _join(room, told, frames), dict.fromkeys(causes)
    for_causes: dict[str, TurnsActivity | None] = {}
    for cause in causes:
        others = [number for number, one in enumerate(told) if one.but != cause]
        for_causes[cause] = _join(
            room, [told[number] for number in others], [frames[number] for number in others]
        )
    return _join(room, told, frames), for_causes


def _join(room: str, told: Sequence[Told], frames: Sequence[bytes]) -> TurnsActivity:
    # The highest number, or the last of several that are no posts.
    seq, newest = -1, told[0]
    for one in told:
        highest = max(one.seqs)
        if highest >= seq:
            seq, newest = highest, one
    return TurnsActivity(room, seq, newest.author, b"".join(frames))
