"""The tmux commands that make a whole team live, as one file for ``source-file``.

Pure: equal input gives equal text. The seats are made by the same commands as in a script of `fleet.roles`; a window
that follows the rooms comes before them. All stand in one line: tmux skips the rest of a line, and no more, after a
command that fails. On lines of their own they would go on in somebody else's session that has the name.

A session carries who it is in options of its own (`ID_OPTION` and the rest): there is no list of teams that could be
wrong. Its environment is the caller's, and so every pane's. What could be a secret stands in this file alone, never
in a command line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.roles.panes import InFolder, commands, screen_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fleet.roles.launch import FanOut
    from fleet.roles.panes import Command

__all__ = [
    "FOLDER_OPTION",
    "ID_OPTION",
    "KIND_OPTION",
    "MARK",
    "NAME_OPTION",
    "ROOM_OPTION",
    "SEAT_OPTION",
    "Setting",
    "command_file",
    "labels",
    "quoted",
]

#: Of the session: the team's id, and the absolute path of its folder.
ID_OPTION = "@fleet_id"
FOLDER_OPTION = "@fleet_folder"

#: Of a pane: ``seat``, ``room`` or ``pings``; the seat as people name it; its name in the room; the room.
KIND_OPTION = "@fleet_kind"
SEAT_OPTION = "@fleet_seat"
NAME_OPTION = "@fleet_name"
ROOM_OPTION = "@fleet_room"

#: Set for every process of a team to its id; what leaves the process tree keeps it.
MARK = "FLEET_LIVE"

#: What belongs to the caller's own terminal, shell or seat and would mislead another's.
_NOT_PASSED_ON = frozenset(
    {
        "CLAUDECODE",  # claude refuses to start where it stands
        "COLUMNS",
        "FLEET_PHASE",
        "FLEET_RUN",
        "FLEET_RUN_DIR",
        "FLEET_SEAT",
        "FLEET_TEAM",
        "FLEET_TURN",
        "LINES",
        "OLDPWD",
        "PWD",
        "SHLVL",
        "STY",
        "TERM",
        "TERM_PROGRAM",
        "TERM_PROGRAM_VERSION",
        "TMUX",
        "TMUX_PANE",
        "WINDOWID",
        "_",
    }
)

#: A name that any shell takes.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Rows of a pane that follows a room, at the least.
_ROOM_ROWS = 6


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how a team is to live."""

    session: str  #: has gone through ``safe_session_name``
    team: str  #: its id
    folder: Path  #: of the team: ``seats``, ``room``, ``pings``
    start: Path  #: the folder it is started in
    environ: Mapping[str, str]  #: of the caller
    has_pings: bool


def command_file(fan_out: FanOut, setting: Setting) -> str:
    """Return the text. Run, it prints `FIRST_LINE` of the session and then an id per pane, in the order made here."""
    return " ; ".join(" ".join(map(quoted, words)) for words in _commands(fan_out, setting)) + "\n"


#: What the first line says, fields parted by ``:``, which only the last, the path of the socket, may have in it.
FIRST_LINE = "#{session_id}:#{pid}:#{version}:#{exit-unattached}:#{pane_id}:#{socket_path}"


def labels(fan_out: FanOut) -> tuple[str, ...]:
    """How people name each seat: by its own name, or with its team's before it where two teams have the name."""
    names = [launch.name for launch in fan_out.launches]
    found = []
    for window in fan_out.windows:
        for launch in window.launches:
            qualified = f"{window.name}-{launch.name}" if window.layout else window.name
            found.append(launch.name if names.count(launch.name) == 1 else qualified)
    return tuple(found)


def quoted(word: str) -> str:
    """One word as tmux reads it in a file."""
    text = re.sub(r'["\\$~]', r"\\\g<0>", word)
    for character, escape in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(character, escape)
    return f'"{text}"'


def _literal(text: str) -> str:
    """Text in a place where tmux expands formats, and would run what stands in ``#(…)``."""
    return text.replace("#", "##")


def _commands(fan_out: FanOut, setting: Setting) -> Iterator[tuple[str, ...]]:
    yield from _room_window(fan_out, setting)
    seats = iter(zip(labels(fan_out), fan_out.launches, strict=True))
    for making, *options in commands(fan_out.windows, session=setting.session):
        if making[0] not in {"new-session", "new-window", "split-window"}:
            continue  # the last ones go back to the first seat
        yield _making(making, setting)
        for command in options:
            if "destroy-unattached" not in command:
                yield _words(command, setting)
        label, launch = next(seats)
        yield from _window_options(setting)
        yield from _pane_options(setting, "seat", room=launch.room)
        yield ("set-option", "-p", "-t", _here(setting), SEAT_OPTION, label)
        yield ("set-option", "-p", "-t", _here(setting), NAME_OPTION, launch.name)
    yield ("select-window", "-t", f"{_here(setting)}^")
    yield ("select-pane", "-t", f"{_here(setting)}^.{{top-left}}")


def _making(command: Command, setting: Setting) -> tuple[str, ...]:
    """The command that makes a seat's pane; it tells the pane's id, and the first seat gets a window like the rest."""
    words = _words(command, setting)
    told = ("-P", "-F", "#{pane_id}", "-c", _literal(str(setting.start)))
    if words[0] == "new-session":
        name, program = words[words.index("-n") + 1], words[-3:]
        return ("new-window", *told, "-t", _here(setting), "-n", name, *program)
    return (words[0], *told, *words[1:])


def _words(command: Command, setting: Setting) -> tuple[str, ...]:
    return tuple(str(setting.folder / word.name) if isinstance(word, InFolder) else word for word in command)


def _room_window(fan_out: FanOut, setting: Setting) -> Iterator[tuple[str, ...]]:
    """The session with its first window: a pane per room, and one that pings if wanted."""
    rooms = tuple(dict.fromkeys(launch.room for launch in fan_out.launches))
    columns, rows = screen_size(fan_out.windows)
    rows = max(rows, _ROOM_ROWS * (len(rooms) + setting.has_pings))
    here, start = _here(setting), _literal(str(setting.start))
    yield (
        *("new-session", "-d", "-P", "-F", FIRST_LINE, "-s", setting.session, "-n", "room"),
        *("-x", str(columns), "-y", str(rows), "-c", start),
        *(word for pair in _environment(setting).items() for word in ("-e", "=".join(pair))),
        *("sh", str(setting.folder / "room"), rooms[0]),
    )
    # The id first: whatever comes after it, the session can be told from every other.
    yield ("set-option", "-t", here, ID_OPTION, setting.team)
    yield ("set-option", "-t", here, FOLDER_OPTION, str(setting.folder))
    yield ("set-option", "-t", here, "destroy-unattached", "off")
    yield ("set-option", "-w", "-t", here, "remain-on-exit", "on")
    yield from _window_options(setting)
    yield from _pane_options(setting, "room", room=rooms[0])
    split = ("split-window", "-P", "-F", "#{pane_id}", "-c", start, "-t", here)
    for room in rooms[1:]:
        yield (*split, "sh", str(setting.folder / "room"), room)
        yield from _pane_options(setting, "room", room=room)
        yield ("select-layout", "-t", here, "even-vertical")
    if setting.has_pings:
        yield (*split, "sh", str(setting.folder / "pings"))
        yield from _pane_options(setting, "pings")
        yield ("select-layout", "-t", here, "even-vertical")
    if len(rooms) > 1 or setting.has_pings:
        yield ("set-option", "-w", "-t", here, "pane-border-status", "top")
        yield ("set-option", "-w", "-t", here, "pane-border-format", " #{@seat} ")


def _environment(setting: Setting) -> dict[str, str]:
    passed = {
        name: value
        for name, value in setting.environ.items()
        if name not in _NOT_PASSED_ON and _VARIABLE.fullmatch(name)
    }
    return {**passed, MARK: setting.team}


def _window_options(setting: Setting) -> Iterator[tuple[str, ...]]:
    """A program in a pane shall not rename the window, whatever the user's own windows allow."""
    yield ("set-option", "-w", "-t", _here(setting), "allow-rename", "off")
    yield ("set-option", "-w", "-t", _here(setting), "automatic-rename", "off")


def _pane_options(setting: Setting, kind: str, *, room: str | None = None) -> Iterator[tuple[str, ...]]:
    here = _here(setting)
    yield ("set-option", "-p", "-t", here, KIND_OPTION, kind)
    if room is not None:
        yield ("set-option", "-p", "-t", here, ROOM_OPTION, room)
    if kind != "seat":  # a seat's own commands have done it
        title = f"#{room}" if room else kind
        yield ("set-option", "-p", "-t", here, "@seat", title)
        yield ("select-pane", "-t", here, "-T", _literal(title))


def _here(setting: Setting) -> str:
    """The session's current window and pane: what was made last."""
    return f"={setting.session}:"
