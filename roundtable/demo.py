"""A short discussion played in a room of its own, and what somebody who comes late has to read of it.

Uses real seats over a real broker in a temporary home, so it touches no room of the user's. What it promises it also
checks: a digest within its share of the discussion, the last three messages whole, and no more to read
after hundreds of messages than after nine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .client import Client, connect, reach
from .errors import RoundtableError
from .home import Home

__all__ = ["DISCUSSION", "Played", "play"]

#: Who says what, in order; one message a line in the file.
DISCUSSION: tuple[tuple[str, str], ...] = tuple(
    (name, text)
    for name, _, text in (
        line.partition(": ")
        for line in Path(__file__).with_name("demo_discussion.txt").read_text("utf-8").splitlines()
    )
)

_BUDGET_CHARS = 800

#: Of the discussion's text, what a late reader may be asked to read.
_SHARE = 0.32

_VERBATIM = 3

#: Messages said before the same discussion in the second part; with it the room is full.
_EARLIER = 491

#: Numbers of messages are longer in a long room: two digits more in three lines and the marker.
_LONGER_NUMBERS_CHARS = 12


@dataclass(frozen=True, slots=True)
class Played:
    """What a late reader was given, after the discussion alone and after hundreds of messages and the discussion."""

    text_chars: int  #: of the nine messages
    short: str
    long: str

    @property
    def broken(self) -> list[str]:
        """Promises that do not hold; empty when all do."""
        limit = _SHARE * self.text_chars
        last = [text for _, text in DISCUSSION[-_VERBATIM:]]
        found = [
            f"the digest {when} has {len(text)} characters, more than {limit:.0f}"
            for when, text in (("after nine messages", self.short), ("after 500", self.long))
            if len(text) > limit
        ]
        found += [
            f"the digest {when} lacks one of the last {_VERBATIM} messages"
            for when, text in (("after nine messages", self.short), ("after 500", self.long))
            if not all(message in text for message in last)
        ]
        if len(self.long) > len(self.short) + _LONGER_NUMBERS_CHARS:
            found.append(f"500 messages cost {len(self.long)} characters, nine {len(self.short)}")
        return found


async def play(write: Callable[[str], None]) -> Played:
    """Play both parts and say with ``write``, a line at a time, what happens.

    Raises:
        RoundtableError: no broker could be started.
    """
    # Short, because a socket's path is.
    with tempfile.TemporaryDirectory(prefix="fl-", dir="/tmp") as folder:
        home = Home(Path(folder))
        async with await reach(home, name="host", grace_seconds=0.0) as host:
            path = home.socket()
            await _discuss(path, "short", write)
            short = await _read_late(host, path, "short", write)
            await host.join("long")
            for number in range(_EARLIER):
                await host.post("long", f"Earlier note {number + 1}: " + "nothing that decides. " * 12)
            write(f"The same after {_EARLIER} earlier messages in another room.")
            await _discuss(path, "long", lambda _: None)
            long = await _read_late(host, path, "long", write)
    return Played(sum(len(text) for _, text in DISCUSSION), short, long)


async def _discuss(path: Path, room: str, write: Callable[[str], None]) -> None:
    seats: dict[str, Client] = {}
    try:
        for name, text in DISCUSSION:
            if name not in seats:
                seats[name] = await connect(path, name=name)
                await seats[name].join(room)
            posted = await seats[name].post(room, text)
            write(f"{name}#{posted.message.seq}: {text[:60]}… ({len(text)} characters)")
    finally:
        for seat in seats.values():
            await seat.aclose()


async def _read_late(host: Client, path: Path, room: str, write: Callable[[str], None]) -> str:
    async with await connect(path, name="late") as late:
        await late.join(room)
        found = await late.digest(room, budget=_BUDGET_CHARS)
        page = await host.fetch(room, 0, 500)
        if len(page.messages) != found.total:
            raise RoundtableError(f"{found.total} of {len(page.messages)} messages were digested")
    text_chars = sum(len(message.text) for message in page.messages)
    write("")
    write(f"late joins #{room} and asks for a digest of {_BUDGET_CHARS} characters:")
    write("")
    write(found.text)
    write("")
    write(
        f"{len(found.text)} characters instead of {text_chars} ({len(found.text) / text_chars:.1%}): "
        f"{found.verbatim} whole, {found.headlines} headlines, {found.collapsed} counted."
    )
    write("")
    return found.text
