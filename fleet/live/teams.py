"""The teams that live on this machine and their panes, as tmux itself tells.

There is no register: a team is a session with an id in its options. The folders below ``$FLEET_HOME/live`` only say
on which servers to look, and what lies there of a team that is gone is cleared away here.

Blocking. Ids of tmux (``$1``, ``@2``, ``%3``) are never given twice by one server.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.errors import NoSuchTeam, TmuxFailed
from fleet.live.command_file import (
    FOLDER_OPTION,
    ID_OPTION,
    KIND_OPTION,
    NAME_OPTION,
    ROOM_OPTION,
    SEAT_OPTION,
)
from fleet.roles.shell import quote, readable
from fleet.tmux import Tmux

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roundtable.home import Home

__all__ = [
    "SOCKET_FILE",
    "Pane",
    "Team",
    "clear_away",
    "find_seat",
    "find_team",
    "live_folder",
    "panes",
    "select_teams",
    "session_of",
    "teams",
    "teams_on",
]

#: In a team's folder: the path of the socket of its server.
SOCKET_FILE = "socket"

#: A folder without a session may belong to a team that is just being made.
_YOUNG_SECONDS = 120.0

_SESSION_FORMAT = (
    f"#{{session_id}}:#{{pid}}:#{{session_created}}:#{{session_attached}}:#{{{ID_OPTION}}}:"
    f"#{{session_name}}:#{{{FOLDER_OPTION}}}"
)
_PANE_FIELDS = (
    "pane_id",
    "window_id",
    "session_id",
    "pane_pid",
    "pane_tty",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "window_panes",
    "window_linked",
    KIND_OPTION,
    SEAT_OPTION,
    NAME_OPTION,
    ROOM_OPTION,
)
#: None of the fields can have a colon in it.
_PANE_FORMAT = ":".join(f"#{{{field}}}" for field in _PANE_FIELDS)


@dataclass(frozen=True, slots=True)
class Team:
    """A live session of ours."""

    tmux: Tmux
    session_id: str
    name: str  #: of the session
    id: str
    server_pid: int
    created: int  #: seconds since the epoch
    attached: int  #: clients that show it
    folder: Path

    @property
    def attach_words(self) -> tuple[str, ...]:
        """The command line that shows it."""
        return (*self.tmux.words, "attach", "-t", f"={self.name}")

    @property
    def attach_line(self) -> str:
        """The same for a shell; some shells take a word that begins with ``=`` for a program."""
        *words, target = self.attach_words
        return f"{' '.join(map(readable, words))} {quote(target)}"


@dataclass(frozen=True, slots=True)
class Pane:
    """A pane of a team's session, ours or one the user has made there."""

    id: str
    window_id: str
    session_id: str
    pid: int  #: of its first process; may be another's when it is dead
    tty: str
    is_dead: bool
    status: int | None  #: exit status of a dead one
    signal: str | None  #: what killed a dead one, where tmux tells (3.3)
    window_panes: int
    is_linked: bool  #: its window is shown in another session too
    kind: str  #: ``seat``, ``room``, ``pings``; ``""`` for the user's own
    seat: str
    name: str  #: the seat's in its room
    room: str

    @property
    def title(self) -> str:
        """What it is called."""
        return self.seat or (f"#{self.room}" if self.kind == "room" else self.kind)

    @property
    def ending(self) -> str:
        """How a dead one ended: ``exit 3``, ``killed by signal 9``. Now and then tmux misses it (seen with 3.3a)."""
        if self.signal:
            return f"killed by signal {self.signal}"
        return f"exit {self.status}" if self.status is not None else "exit status unknown"


def live_folder(home: Home) -> Path:
    """Where the folders of live teams are."""
    return home.root / "live"


def teams(home: Home, *, socket_name: str | None = None) -> list[Team]:
    """The live teams by name: of the server named, or of tmux's own choice and of every server a team was started on.

    Raises:
        TmuxUnusable: tmux is not installed.
        TmuxFailed: a server does not answer; one that does not run has no teams.
    """
    found: dict[str, Team] = {}
    for tmux in _servers(home, socket_name):
        for team in teams_on(tmux):
            found.setdefault(f"{team.server_pid}:{team.session_id}", team)
    return sorted(found.values(), key=lambda team: team.name)


def teams_on(tmux: Tmux) -> list[Team]:
    """The live teams of one server; none if it does not run.

    Raises:
        TmuxUnusable: tmux is not installed.
        TmuxFailed: the server does not answer.
    """
    try:
        lines = tmux.run("list-sessions", "-F", _SESSION_FORMAT)
    except TmuxFailed as problem:
        if _is_no_server(problem):
            return []
        raise
    found = []
    for line in lines:
        fields = line.split(":", 6)
        if len(fields) == 7 and fields[4]:
            session, server, created, attached, team, name, folder = fields
            found.append(
                Team(tmux, session, name, team, int(server), int(created), int(attached), Path(folder))
            )
    return found


def find_team(home: Home, name: str | None, *, socket_name: str | None = None) -> Team:
    """The team whose session has that name, with or without ``fleet-`` before it; the only one for ``None``.

    Raises:
        NoSuchTeam: there is none, or more than one.
        TmuxUnusable, TmuxFailed: as from `teams`.
    """
    known = teams(home, socket_name=socket_name)
    names = ", ".join(team.name for team in known)
    if name is None:
        if len(known) == 1:
            return known[0]
        if not known:
            raise NoSuchTeam("no team is live", hint="start one: fleet up FILE")
        raise NoSuchTeam(f"several teams are live: {names}", hint="say which one")
    for wanted in (name, f"fleet-{name}"):
        matching = [team for team in known if team.name == wanted]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise NoSuchTeam(f"{wanted} lives on several tmux servers", hint="say which one: -L SOCKET-NAME")
    raise NoSuchTeam(f"no live team is called {name[:200]!r}", hint=f"live: {names or 'none'}")


def select_teams(home: Home, name: str | None, *, socket_name: str | None = None) -> list[Team]:
    """The team of that name alone, or all of them for ``None``.

    Raises:
        NoSuchTeam: none has that name.
        TmuxUnusable, TmuxFailed: as from `teams`.
    """
    if name is None:
        return teams(home, socket_name=socket_name)
    return [find_team(home, name, socket_name=socket_name)]


def find_seat(
    home: Home, seat: str, team: str | None, *, socket_name: str | None = None
) -> tuple[Team, Pane]:
    """The pane of a seat, by the name people give it or by its name in the room, if only one has that.

    Raises:
        NoSuchTeam: no such seat, or more than one.
        TmuxUnusable, TmuxFailed: as from `teams`.
    """
    among = select_teams(home, team, socket_name=socket_name)
    if not among:
        raise NoSuchTeam("no team is live", hint="start one: fleet up FILE")
    seats = [(one, pane) for one in among for pane in panes(one) if pane.kind == "seat"]
    matching = [found for found in seats if found[1].seat == seat]
    matching = matching or [found for found in seats if found[1].name == seat]
    if len(matching) == 1:
        return matching[0]
    if matching:
        where = ", ".join(f"{pane.seat} of {one.name}" for one, pane in matching)
        raise NoSuchTeam(f"several seats are called {seat}: {where}", hint="say which team: --team NAME")
    known = ", ".join(pane.seat for _, pane in seats) or "none"
    raise NoSuchTeam(f"no seat is called {seat[:200]!r}", hint=f"seats: {known}")


def panes(team: Team) -> list[Pane]:
    """All panes of a team's session in the order of its windows.

    Raises:
        TmuxFailed: the session or its server is gone.
    """
    lines = team.tmux.run("list-panes", "-s", "-t", f"{team.session_id}:", "-F", _PANE_FORMAT)
    return [pane for line in lines if (pane := _pane(line)) is not None]


def session_of(tmux: Tmux) -> str | None:
    """The session on this server that the caller's own pane is in, ``None`` if it is in none.

    Raises:
        TmuxUnusable: tmux is not installed.
    """
    pane = os.environ.get("TMUX_PANE", "")
    if not os.environ.get("TMUX") or not pane.startswith("%"):
        return None
    try:
        lines = tmux.run("display-message", "-p", "-t", pane, "#{socket_path}:#{session_name}")
    except TmuxFailed:
        return None
    socket, _, session = lines[0].rpartition(":") if lines else ("", "", "")
    return session if os.environ["TMUX"].startswith(f"{socket},") else None


def clear_away(home: Home) -> None:
    """Remove the folders of teams that are gone. Never raises: what cannot be looked at stays."""
    now = time.time()
    for folder in _folders(home):
        with suppress(OSError, TmuxFailed):
            if now - folder.stat().st_mtime < _YOUNG_SECONDS:
                continue
            socket = _socket_of(folder)
            alive = {team.id for team in teams_on(Tmux(socket_path=socket))} if socket else set()
            if folder.name not in alive:
                shutil.rmtree(folder, ignore_errors=True)


def _servers(home: Home, socket_name: str | None) -> Iterator[Tmux]:
    yield Tmux(socket_name=socket_name)
    if socket_name is None:
        usual = _usual_socket()
        for path in sorted({socket for folder in _folders(home) if (socket := _socket_of(folder))}):
            if path != usual:
                yield Tmux(socket_path=path)


def _usual_socket() -> str:
    """The socket tmux chooses by itself."""
    inside = os.environ.get("TMUX", "").rpartition(",")[0].rpartition(",")[0]
    folder = Path(os.environ.get("TMUX_TMPDIR") or "/tmp")  # noqa: S108 - where tmux itself looks
    return inside or str(folder.resolve() / f"tmux-{os.getuid()}" / "default")


def _is_no_server(problem: TmuxFailed) -> bool:
    gone = ("no server running", "No such file or directory", "server exited", "lost server")
    return any(part in problem.message for part in gone)


def _pane(line: str) -> Pane | None:
    fields = dict(zip(_PANE_FIELDS, line.split(":"), strict=False))
    if len(fields) != len(_PANE_FIELDS):
        return None
    status = fields["pane_dead_status"]
    return Pane(
        id=fields["pane_id"],
        window_id=fields["window_id"],
        session_id=fields["session_id"],
        pid=int(fields["pane_pid"] or 0),
        tty=fields["pane_tty"],
        is_dead=fields["pane_dead"] == "1",
        status=int(status) if status else None,
        signal=fields["pane_dead_signal"] or None,
        window_panes=int(fields["window_panes"] or 1),
        is_linked=fields["window_linked"] == "1",
        kind=fields[KIND_OPTION],
        seat=fields[SEAT_OPTION],
        name=fields[NAME_OPTION],
        room=fields[ROOM_OPTION],
    )


def _folders(home: Home) -> list[Path]:
    try:
        return sorted(path for path in live_folder(home).iterdir() if path.is_dir())
    except OSError:
        return []


def _socket_of(folder: Path) -> str | None:
    try:
        return (folder / SOCKET_FILE).read_text(encoding="utf-8", errors="surrogateescape").rstrip(
            "\n"
        ) or None
    except OSError:
        return None
