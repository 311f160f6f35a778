"""Tell the seats of a live team that there is something new: one line into the pane of who is idle, and never else.

A program of its own, ``python -m fleet.live.ping_panes`` in a pane of the team, where it writes down what it does. It
ends with its session. A seat is pinged for what others say in its room, as one line for all that has come meanwhile:

- only when its screen has been quiet for some seconds, nobody reads back in its pane or has just typed there;
- not for what it has read already, by itself, while it was working;
- Enter is pressed only when the line stands on its screen. A program that is asking something does not show it.

The broker is asked once a second; this is no member of any room, and nothing of what was said is kept.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING

import anyio

from fleet.errors import FleetError, NoSuchTeam, NotDelivered
from fleet.live.delivery import deliver
from fleet.live.states import QUIET_SECONDS, look
from fleet.live.teams import panes, teams_on
from fleet.tmux import Tmux
from roundtable.client import reach
from roundtable.errors import RoundtableError
from roundtable.home import Home
from roundtable.message import Activity
from roundtable.ping import Ping

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.live.states import Look
    from fleet.live.teams import Pane, Team
    from roundtable.client import Client

__all__ = ["Watch", "main"]

#: Between two looks at the rooms, and at the panes while something waits for them: uneven, or a spinner could stand
#: as it stood each time.
_LOOK_SECONDS = (0.83, 1.13, 0.97)

#: A pane in which somebody typed a moment ago may hold half a message.
_TYPING_SECONDS = 30.0

#: How long a line may take to show, and then to be read.
_SHOWN_SECONDS = 5.0

#: After a line that was not taken; after so many of them it is dropped, and the next news begins anew.
_AGAIN_SECONDS = 60.0
_ATTEMPTS = 3

#: Before a broker that has gone is looked for again, and how long one started here outlives its last connection.
_RECONNECT_SECONDS = 2.0
_GRACE_SECONDS = 600.0

#: Messages read at once.
_PAGE = 500


@dataclass(slots=True)
class _Seat:
    """A seat and what it is to be told."""

    pane: Pane
    ping: Ping = field(default_factory=Ping)
    kept: str = ""  #: a line that was not taken
    attempts: int = 0
    not_before: float = 0.0
    is_being_told: bool = False
    content: str = ""  #: of its screen when it was last looked at
    quiet_since: float | None = None  #: ``None`` while it is not looked at

    def is_due(self, now: float) -> bool:
        """Whether there is a line for it and it may be tried."""
        due_at = self.ping.due_at
        has_line = bool(self.kept) or (due_at is not None and now >= due_at)
        return has_line and now >= self.not_before and not self.is_being_told

    def observe(self, seen: Look, now: float) -> None:
        """Note what its screen shows."""
        if self.quiet_since is None or seen.content != self.content:
            self.quiet_since = now
        self.content = seen.content

    def is_idle(self, seen: Look, now: float) -> bool:
        """Whether its screen has been still for long enough."""
        is_open = not (seen.is_dead or seen.is_untouched or seen.is_in_mode)
        return is_open and self.quiet_since is not None and now - self.quiet_since >= QUIET_SECONDS


class Watch:
    """The watch over one team."""

    def __init__(self, team: Team, home: Home, tell: Callable[[str], None]) -> None:
        """``tell`` takes a line for people."""
        self._team = team
        self._home = home
        self._tell = tell
        self._seats: dict[str, _Seat] = {}
        self._read: dict[str, tuple[str, int]] = {}  #: room -> its epoch, and how far it was read

    async def run(self) -> None:
        """Watch until the session has gone.

        Raises:
            TmuxFailed: the session, or its server, is gone.
        """
        self._tell("Seats are told of news when they are idle; what they are told is noted here.")
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    async with await reach(self._home, name="pings", grace_seconds=_GRACE_SECONDS) as client:
                        for seconds in cycle(_LOOK_SECONDS):
                            await self._find_seats()
                            await self._read_rooms(client)
                            await self._tell_seats(tasks.start_soon)
                            await anyio.sleep(seconds)
                except RoundtableError as problem:
                    self._tell(f"no broker: {problem}")
                    await anyio.sleep(_RECONNECT_SECONDS)

    async def _find_seats(self) -> None:
        found = await anyio.to_thread.run_sync(panes, self._team)
        living = {pane.id: pane for pane in found if pane.kind == "seat"}
        for pane_id, pane in living.items():
            if pane_id not in self._seats:
                self._seats[pane_id] = seat = _Seat(pane)
                if pane.room in self._read:
                    seat.ping.know(pane.room, self._read[pane.room][1])
        for pane_id in self._seats.keys() - living.keys():
            del self._seats[pane_id]

    async def _read_rooms(self, client: Client) -> None:
        """Feed every seat what others have said in its room; what stood there in the beginning is no news."""
        wanted = {seat.pane.room for seat in self._seats.values()}
        for info in await client.rooms():
            if info.name not in wanted:
                continue
            epoch, seq = self._read.get(info.name, ("", 0))
            if epoch != info.epoch:
                is_first_look = not epoch
                seq = info.last_seq if is_first_look else 0
                self._begin(info.name, seq)
            while seq < info.last_seq:
                page = await client.fetch(info.name, seq, _PAGE, epoch=info.epoch)
                if not page.messages:
                    break
                for message in page.messages:
                    seq = message.seq
                    self._feed(info.name, message.author.name, seq)
            self._read[info.name] = (info.epoch, seq)
        for room in wanted - self._read.keys():
            self._read[room] = ("none yet", 0)

    def _begin(self, room: str, seq: int) -> None:
        for seat in self._seats.values():
            if seat.pane.room == room:
                seat.ping.forget(room)
                seat.ping.know(room, seq)

    def _feed(self, room: str, author: str, seq: int) -> None:
        now = anyio.current_time()
        for seat in self._seats.values():
            if seat.pane.room != room:
                continue
            if author == seat.pane.name:
                seat.ping.own(room, seq)
            else:
                seat.ping.feed(Activity(room=room, author=author, seq=seq), now)

    async def _tell_seats(self, start_soon: Callable[..., object]) -> None:
        now = anyio.current_time()
        due = {seat.pane.id: seat for seat in self._seats.values() if seat.is_due(now)}
        for seat in self._seats.values():
            if seat.pane.id not in due:
                seat.quiet_since = None
        if not due:
            return
        seen = await anyio.to_thread.run_sync(look, self._team.tmux, list(due))
        typed = await anyio.to_thread.run_sync(self._typed_in)
        now = anyio.current_time()
        for pane_id, seat in due.items():
            if pane_id in seen:
                seat.observe(seen[pane_id], now)
                if seat.is_idle(seen[pane_id], now) and pane_id not in typed:
                    seat.is_being_told = True
                    start_soon(self._tell_seat, seat)

    async def _tell_seat(self, seat: _Seat) -> None:
        """Deliver the seat's line; whatever comes of it, the seat can be told again."""
        pane = seat.pane
        line = seat.ping.take() or seat.kept
        seat.kept = ""
        try:
            if not await self._has_unread(pane):
                seat.attempts = 0
                return
            await anyio.to_thread.run_sync(self._deliver, pane, line)
            seat.attempts = 0
            self._tell(f"{pane.title}: {line}")
        except NotDelivered as problem:
            seat.attempts += 1
            seat.not_before = anyio.current_time() + _AGAIN_SECONDS
            seat.kept = line if seat.attempts < _ATTEMPTS else ""
            self._tell(f"not told {problem}")
        finally:
            seat.is_being_told = False
            seat.quiet_since = None

    def _deliver(self, pane: Pane, line: str) -> None:
        deliver(
            self._team.tmux,
            pane,
            line,
            folder=self._team.folder,
            wait_seconds=_SHOWN_SECONDS,
            is_seen_needed=True,
        )

    async def _has_unread(self, pane: Pane) -> bool:
        """Whether the seat, under its name, has anything left to read in its room; if in doubt, yes."""
        try:
            async with await reach(self._home, name=pane.name) as client:
                rooms = await client.rooms()
        except RoundtableError:
            return True
        return any(info.unread for info in rooms if info.name == pane.room)

    def _typed_in(self) -> set[str]:
        """Panes in which somebody has typed a moment ago."""
        lines = self._team.tmux.run(
            "list-clients", "-t", f"{self._team.session_id}:", "-F", "#{client_activity}:#{pane_id}"
        )
        now = time.time()
        pairs = [line.split(":") for line in lines]
        return {pane_id for activity, pane_id in pairs if now - int(activity or 0) < _TYPING_SECONDS}


def main() -> int:
    """Watch over the team whose session this process stands in."""
    socket, _, number = os.environ.get("TMUX", "").rpartition(",")
    tmux = Tmux(socket_path=socket.rpartition(",")[0])
    home = Home.from_environment()
    problem: BaseException
    try:
        team = next((team for team in teams_on(tmux) if team.session_id == f"${number}"), None)
        if team is None:
            problem = NoSuchTeam("this is no session of a team")
        else:
            anyio.run(Watch(team, home, _say).run)
            return 0
    except* FleetError as problems:  # the session has gone, and this with it
        problem = problems.exceptions[0]
    print(problem, file=sys.stderr)  # noqa: T201 - its pane is where it speaks
    return 1


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
