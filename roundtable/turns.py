"""Turns: wait until some socket can be read or written, do all that can be done, then end the turn.

One thread, over ``selectors``. Whoever uses it sees a turn as one step: what is to happen once for all that a turn has
brought (a commit, one write per connection) comes after all that ``wait`` has given.

Not asyncio: importing it is half of a broker's start, and its transports and handles are a third of what a post costs
(docs/decisions/0005).
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE
from typing import Generic, TypeVar

__all__ = ["EVENT_READ", "EVENT_WRITE", "Deadlines", "Turns"]

ThingT = TypeVar("ThingT")


class Turns:
    """The sockets of one thread. Each is watched with what to call when it is ready."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.setblocking(False)
        self._selector.register(self._woken, EVENT_READ, self._take_wakes)

    def watch(self, end: socket.socket, ready: Callable[[int], None], events: int = EVENT_READ) -> None:
        """Call ``ready`` with what can be done in every turn in which something can."""
        self._selector.register(end, events, ready)

    def change(self, end: socket.socket, events: int) -> None:
        """Watch for other events from now on."""
        self._selector.modify(end, events, self._selector.get_key(end).data)

    def forget(self, end: socket.socket) -> None:
        """Watch no longer. What this turn has found already is still called."""
        with suppress(KeyError):
            self._selector.unregister(end)

    def wake(self) -> None:
        """Let the turn that waits go on. Safe in a signal handler, in another thread, and after the end."""
        with suppress(OSError):  # a full socket wakes as well
            self._waker.send(b"\0")

    def wait(self, until: float | None) -> list[tuple[Callable[[int], None], int]]:
        """Wait until something can be done, or until ``until`` on the monotonic clock; what to call, and with what."""
        seconds = None if until is None else max(0.0, until - time.monotonic())
        return [(key.data, events) for key, events in self._selector.select(seconds)]

    def close(self) -> None:
        """Watch nothing any more."""
        self._selector.close()
        self._woken.close()
        self._waker.close()

    def _take_wakes(self, events: int) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)


class Deadlines(Generic[ThingT]):
    """Things that have the same time each: who comes first is over first, so that no order need be kept."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[ThingT, float] = {}

    def add(self, thing: ThingT) -> None:
        """Its time begins now."""
        self._ends[thing] = time.monotonic() + self._seconds

    def __contains__(self, thing: ThingT) -> bool:
        return thing in self._ends

    def discard(self, thing: ThingT) -> None:
        """It has no deadline any more."""
        self._ends.pop(thing, None)

    def first(self) -> float | None:
        """When the next one is over, on the monotonic clock; ``None`` if there is none."""
        return next(iter(self._ends.values())) if self._ends else None

    def over(self) -> Iterator[ThingT]:
        """Take out each whose time is over."""
        while self._ends:
            thing, end = next(iter(self._ends.items()))
            if end > time.monotonic():
                return
            del self._ends[thing]
            yield thing
