"""Sockets that are ready, wakes from elsewhere, and things whose time is over in the order in which they came."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from roundtable import turns
from roundtable.turns import EVENT_READ, EVENT_WRITE, Deadlines, Turns


def soon() -> float:
    return time.monotonic() + 10


def test_what_is_ready_is_given_with_what_can_be_done() -> None:
    seen: list[int] = []
    there, here = socket.socketpair()
    loop = Turns()
    with there, here:
        loop.watch(here, seen.append)
        there.send(b"x")
        for ready, events in loop.wait(soon()):
            ready(events)
        assert seen == [EVENT_READ]
        loop.change(here, EVENT_READ | EVENT_WRITE)
        for ready, events in loop.wait(soon()):
            ready(events)
        assert seen[1:] == [EVENT_READ | EVENT_WRITE]
        loop.forget(here)
        loop.forget(here)
        assert loop.wait(time.monotonic()) == []
    loop.close()


def test_a_wake_ends_a_wait_and_is_taken() -> None:
    loop = Turns()
    waker = threading.Thread(target=loop.wake)
    waker.start()
    for ready, events in loop.wait(soon()):
        ready(events)
    waker.join()
    assert loop.wait(time.monotonic()) == []
    for _ in range(100_000):  # more than any socket holds
        loop.wake()
    assert loop.wait(soon())
    loop.close()
    loop.wake()


def test_who_came_first_is_over_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(turns.time, "monotonic", lambda: now)
    deadlines: Deadlines[str] = Deadlines(5.0)
    assert deadlines.first() is None
    deadlines.add("a")
    now = 101.0
    deadlines.add("b")
    deadlines.add("c")
    deadlines.discard("b")
    deadlines.discard("never there")
    assert (deadlines.first(), "a" in deadlines, "b" in deadlines) == (105.0, True, False)
    assert list(deadlines.over()) == []
    now = 105.0
    assert list(deadlines.over()) == ["a"]
    now = 200.0
    assert list(deadlines.over()) == ["c"]
    assert deadlines.first() is None
