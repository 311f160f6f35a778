"""A burst of activity -> one line that says who is new where, and nothing of what was said.

Pure: fed with activity and the time, asked when a line is due. The first activity of a quiet period opens a
window; when it closes there is one line for everything in it. Comings and goings are no activity.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from .message import Activity

__all__ = ["MAX_PING_CHARS", "WINDOW_SECONDS", "Ping"]

#: How long a burst is gathered.
WINDOW_SECONDS = 1.5

#: The only thing that enters an agent's context unasked.
MAX_PING_CHARS = 300

_HEAD = "Roundtable activity — "
_TAIL = ". Use digest to catch up when relevant."
_BETWEEN = " · "


@dataclass(slots=True)
class _New:
    """What is new in one room."""

    count: int = 0
    authors: dict[str, None] = field(default_factory=dict)  #: in the order they were first seen


class Ping:
    """Gathers activity into lines. Times are seconds on any clock that does not go back.

    Activity may come merged, so what is new is counted from sequence numbers: tell ``know`` where a room stood on
    joining, and ``own`` of every post of one's own. Of a room nobody told of, the first activity counts as one.
    """

    def __init__(self, *, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window_seconds = window_seconds
        self._new: dict[str, _New] = {}
        self._due_at: float | None = None
        self._newest: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._own: dict[str, set[int]] = {}

    @property
    def due_at(self) -> float | None:
        """When the line of the current burst is to be taken; ``None`` while all is quiet."""
        return self._due_at

    def know(self, room: str, seq: int) -> None:
        """What is in ``room`` up to ``seq`` is no news: it was there on joining, or has been read."""
        newest = self._newest.get(room, 0)
        self._known[room] = max(self._known.get(room, 0), seq)
        self._newest[room] = max(newest, seq)
        if room in self._new:
            if seq >= newest:
                self._drop(room)
            else:
                self._new[room].count = min(self._new[room].count, newest - seq)

    def forget(self, room: str) -> None:
        """Nothing is known of ``room`` any more: it was left, or is another one of this name."""
        for known in (self._newest, self._known, self._own):
            known.pop(room, None)
        self._drop(room)

    def own(self, room: str, seq: int) -> None:
        """``seq`` is a post of one's own, so it is not counted in what is new."""
        if seq == self._newest.get(room, 0) + 1:
            self._newest[room] = seq
        else:
            self._own.setdefault(room, set()).add(seq)

    def feed(self, activity: Activity, now: float) -> None:
        """Take one activity. Where several were merged the sequence numbers tell how many there were."""
        room, seq = activity.room, activity.seq
        if seq < 1 or seq <= self._known.get(room, 0):
            return
        newest = self._newest.get(room, seq - 1)
        new = self._new.setdefault(room, _New())
        if seq > newest:
            own = self._own.pop(room, set())
            new.count += seq - newest - sum(newest < mine < seq for mine in own)
            self._own[room] = {mine for mine in own if mine > seq}
            self._newest[room] = seq
        new.authors[activity.author] = None
        if self._due_at is None:
            self._due_at = now + self._window_seconds

    def take(self, rooms: Collection[str] | None = None) -> str:
        """The line of the burst, at most 300 characters, and begin anew; ``""`` while all is quiet.

        With ``rooms`` the line is of those, and what is new elsewhere stays.
        """
        taken = {room: new for room, new in self._new.items() if rooms is None or room in rooms}
        for room in taken:
            self._drop(room)
        return _line(taken) if taken else ""

    def _drop(self, room: str) -> None:
        self._new.pop(room, None)
        if not self._new:
            self._due_at = None


def _line(new: dict[str, _New]) -> str:
    """All rooms if they fit, else as many as fit and how many more there are."""
    left = MAX_PING_CHARS - len(_HEAD) - len(_TAIL)
    parts: list[str] = []
    for index, (room, what) in enumerate(new.items()):
        others = len(new) - index - 1
        more = f"{_BETWEEN}+{others + 1} rooms" if others else ""
        between = len(_BETWEEN) if parts else 0
        part = _room(room, what, left - between - len(more))
        if part is None:
            parts.append(f"+{others + 1} rooms")
            break
        parts.append(part)
        left -= between + len(part)
    return f"{_HEAD}{_BETWEEN.join(parts)}{_TAIL}"


def _room(room: str, what: _New, room_chars: int) -> str | None:
    """``#room: N new (authors)`` within ``room_chars``; ``None`` if not even that without authors fits."""
    # What a merge has hidden counts once at least: somebody did post.
    head = f"#{room}: {max(what.count, 1)} new"
    authors: Sequence[str] = list(what.authors)
    for shown in range(len(authors), -1, -1):
        hidden = len(authors) - shown
        names = [*authors[:shown], *([f"+{hidden}"] if hidden else [])]
        text = f"{head} ({', '.join(names)})"
        if len(text) <= room_chars:
            return text
    return None
