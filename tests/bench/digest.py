"""What a digest costs depends on its budget, not on what the room holds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from roundtable.digest import digest
from roundtable.message import Author, Message
from roundtable.room import Room

#: Rounds, interleaved so that a slow moment of the machine hits all alike.
ROUNDS = 30
REPEATS = 100


def run() -> list[tuple[str, float, float | None]]:
    """Rows of label, ratio and goal; medians over interleaved rounds."""
    subjects: dict[str, Callable[[], object]] = {
        "10": _room(10),
        "500": _room(500),
        "500 of 10,000": _room(10_000),
        "10,000 in one list": _list(10_000),
        "format of 4 lines": _format,
    }
    for subject in subjects.values():
        subject()
    rounds = [{name: _seconds(subject) for name, subject in subjects.items()} for _ in range(ROUNDS)]

    def ratio(name: str, to: str) -> float:
        return statistics.median(times[name] / times[to] for times in rounds)

    return [
        ("digest of 500 messages / of 10, same budget", ratio("500", "10"), 1.2),
        ("digest of 500 that 10,000 posts have left / of 10", ratio("500 of 10,000", "10"), 1.2),
        ("digest of a list of 10,000 / of 10", ratio("10,000 in one list", "10"), 1.2),
        ("digest of 500 / formatting its four lines by hand", ratio("500", "format of 4 lines"), 6.0),
    ]


def _room(posts: int) -> Callable[[], object]:
    room = Room("r", epoch="e", encode=lambda _: b"")
    author = Author("s", "planner")
    room.join(author, joined_at=0)
    for seq in range(1, posts + 1):
        room.post(author, "x" * 600, id=f"i{seq}", timestamp=seq * 1000, size=600)
    return lambda: room.digest("reader")


def _list(posts: int) -> Callable[[], object]:
    messages = [
        Message(f"i{seq}", seq, seq * 1000, "r", Author("s", "planner"), "x" * 600, None)
        for seq in range(1, posts + 1)
    ]
    return lambda: digest(reversed(messages), total=posts, after_seq=0)


def _format() -> str:
    text = "x" * 600
    return "\n".join(f"[{seq // 60:02d}:{seq % 60:02d}] planner#{seq}: {text}" for seq in range(4))


def _seconds(subject: Callable[[], object]) -> float:
    # Time computed, not passed: the longer of two is interrupted more often on a busy machine.
    start = time.process_time()
    for _ in range(REPEATS):
        subject()
    return time.process_time() - start
