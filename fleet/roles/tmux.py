"""A shell script that seats every launch in tmux: POSIX sh and tmux 3.2 or later, nothing else.

Pure: equal launches give equal bytes. The script makes one folder of its own, starts one session, and removes both
again if it fails half-way. What it relies on in tmux:

- Targets are ``=name:`` or ids, since a bare name is a prefix match and a number is a window.
- ``new-window`` makes its window the current one, so the options that follow in the same invocation are its own; no
  process can end before ``remain-on-exit`` stands, for the server handles one invocation at a time.
- A command of two words or more is executed as it is; no shell of the user's is involved and nothing is typed.
- One invocation carries at most 16 KB, so texts lie in a file, and one invocation seats as many as fit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.roles.native import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fleet.roles.launch import FanOut, Launch, Window

__all__ = ["color_of", "render", "safe_session_name", "screen_size", "seats_file"]

#: Bytes of one tmux invocation as written here; the folder's path, unknown yet, is added when the script runs.
_MAX_INVOCATION = 15_000
#: What one ``$dir`` is counted as: ``$TMPDIR`` of macOS and the name below it are about 70.
_FOLDER_BYTES = 120
#: Seconds between two looks at whether the session still lives, to remove the folder.
_WATCH_SECONDS = 2
#: Seconds between two tries to follow a room that does not exist yet.
_FOLLOW_SECONDS = 5
#: Names that tmux does not know on every version; the others it has always known.
_COLORS = {
    "gray": "#8a8a8a",
    "grey": "#8a8a8a",
    "orange": "#ff8700",
    "pink": "#ff87d7",
    "purple": "#af5fff",
}

_HEAD = """\
#!/bin/sh
# Starts {count} in tmux, each as the first process of its pane.
set -eu

session={session}
say() {{ printf '%s\\n' "$*" >&2; }}
command -v tmux >/dev/null 2>&1 || {{ say 'tmux is not installed'; exit 1; }}
if [ -n "${{TMUX:-}}" ]; then
    attach="tmux switch-client -t '=$session'"
else
    attach="tmux attach -t '=$session'"
fi
"""

_TAKEN = """\
if tmux -u has-session -t "=$session" 2>/dev/null; then
    say "the tmux session $session exists already; nothing was started"
    say "attach to it with: $attach"
    say "or write the script again with --replace, or with another --session-name"
    exit 1
fi
"""

_REPLACE = """\
if tmux -u has-session -t "=$session" 2>/dev/null; then
    if [ -n "${TMUX:-}" ] && [ "$(tmux -u display-message -p '#{session_name}')" = "$session" ]; then
        say "this shell sits in the session $session itself; run the script from outside"
        exit 1
    fi
    tmux -u kill-session -t "=$session"
fi
"""

_UNDO = """\
ids=
dir=$(mktemp -d "${TMPDIR:-/tmp}/fleet-roles.XXXXXX")
undo() {
    status=$?
    trap - EXIT HUP INT TERM
    case $ids in '$'*) tmux -u kill-session -t "${ids%% *}" 2>/dev/null || : ;; esac
    rm -rf "$dir"
    say "the fan-out failed; what it had made is removed"
    exit "$status"
}
trap undo EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
"""

#: The head of the file that holds every seat. A shell reads it one `if` at a time and is gone at its own.
_SEATS = """\
# The empty line first: tmux scrolls a dead pane up by one.
stay() { printf '%s\\n' '' "$@"; sleep 1; exit 127; }
unset CDPATH
"""

_TAIL = """\
trap - EXIT HUP INT TERM

# The folder goes when the session ends.
mark=${ids#* }
(
    trap '' HUP
    while
        sleep %d
        [ "$(tmux -u display-message -p -t "$sid:" '#{pid} #{session_created}')" = "$mark" ]
    do :; done
    rm -rf "$dir"
) >/dev/null 2>&1 </dev/null &

printf 'session %%s: attach with  %%s\\n' "$session" "$attach"
"""

_FIRST = "ids=$(tmux -u {commands})\nsid=${{ids%% *}}\n"


def render(fan_out: FanOut, *, session: str, replace: bool = False) -> str:
    """Return the script. ``session`` has gone through `safe_session_name`; ``replace`` ends one of that name first."""
    launches = fan_out.launches
    count = "1 role" if len(launches) == 1 else f"{len(launches)} roles"
    parts = [
        _HEAD.format(count=count, session=_quote(session)),
        _REPLACE if replace else _TAKEN,
        "\n",
        _UNDO,
        'printf \'%s\\n\' "$PWD" >"$dir/start"\n',
    ]
    parts.append(_here("seats", seats_file(launches)))
    parts += _invocations(fan_out.windows, launches)
    parts += [_TAIL % _WATCH_SECONDS]
    return "".join(parts)


def seats_file(launches: tuple[Launch, ...]) -> str:
    """What ``sh FILE N`` runs to seat launch N, counted from 1; beside it lies ``start``, the folder it began in."""
    seats = "\n".join(_seat(number, launch) for number, launch in enumerate(launches, start=1))
    return f"{_SEATS}{seats}"


def safe_session_name(name: str) -> str:
    """The name with everything replaced by ``_`` that tmux or a shell reads as more than a name; may be ``""``."""
    return re.sub(r"[^\w-]", "_", name.strip())[:64]


def screen_size(windows: tuple[Window, ...]) -> tuple[int, int]:
    """Columns and rows of the detached session: large enough that no split runs out of space."""
    columns, rows = 250, 60
    for window in windows:
        seats = len(window.launches)
        if window.layout in ("even-horizontal", "main-horizontal"):
            columns = max(columns, 20 * seats)
        elif window.layout in ("even-vertical", "main-vertical"):
            rows = max(rows, 6 * seats)
        elif window.layout == "tiled":
            rows = max(rows, 2 * seats)
    return columns, rows


def color_of(launch: Launch) -> str | None:
    """The colour of a seat as tmux takes it."""
    return _COLORS.get(launch.color, launch.color) if launch.color else None


def _quote(text: str) -> str:
    """One word for a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _here(name: str, text: str) -> str:
    """Lines that write ``text`` and one newline to a file of the script's folder."""
    end = "END"
    lines = text.split("\n")
    while end in lines:
        end += "-"
    return f"cat >\"$dir/{name}\" <<'{end}'\n{text}\n{end}\n"


def _seat(number: int, launch: Launch) -> str:
    """What runs first in a pane; it becomes the agent, or says why it cannot and follows the room."""
    follow = f"roundtable tail {launch.room}"
    words = [word.text if isinstance(word, Text) else word for word in launch.argv] or ["roundtable"]
    missing: tuple[str, ...]
    if launch.argv:
        missing = (
            f"{launch.name}: {words[0]} is not on PATH, so this seat is empty.",
            f"Install it, or give the role another provider or runtime; the others go on in #{launch.room}.",
            "Then start this pane again with the tmux command: respawn-pane",
        )
    else:
        missing = (f"To follow the room, roundtable must be on PATH: {follow}",)
    folder = _quote(str(launch.cwd)) if launch.cwd else '"$(cat "${0%/*}/start")"'
    lost = _quote(f"{launch.name}: cannot enter its working directory")
    lines = [
        f'if [ "$1" = {number} ]; then',
        f"cd -- {folder} 2>/dev/null || stay {lost} {folder}",
        f"export FLEET_SEAT={_quote(launch.name)}",
        *(f"export {name}={_quote(value)}" for name, value in launch.env.items()),
    ]
    if launch.notes:
        lines.append(f"printf '%s\\n' '' {_quoted(launch.notes)} ''")
    lines.append(f"command -v {_quote(words[0])} >/dev/null 2>&1 || stay {_quoted(missing)}")
    if launch.argv:
        lines += [f"exec {_quoted(words)}", "fi"]
    else:
        # It ends while there is no room, and when the broker goes; every look costs a start of Python.
        lines += [f"while :; do {follow} 2>/dev/null; sleep {_FOLLOW_SECONDS}; done", "fi"]
    return "\n".join(lines)


def _quoted(words: Iterable[str]) -> str:
    """Several words for a shell."""
    return " ".join(map(_quote, words))


def _invocations(windows: tuple[Window, ...], launches: tuple[Launch, ...]) -> Iterator[str]:
    """The calls of tmux: one, or as many as their size asks for."""
    commands = list(_commands(windows, screen_size(windows)))
    last: list[str] = ['select-window -t "=$session:^"', 'select-pane -t "=$session:^.{top-left}"']
    chunk: list[str] = []
    size, is_first = 0, True
    yield "\n"
    for command in [*commands, last if len(launches) > 1 else []]:
        needed = sum(
            len(part.encode()) + len(" \\;") + part.count("$dir") * _FOLDER_BYTES + 64 for part in command
        )
        if chunk and size + needed > _MAX_INVOCATION:
            yield _invocation(chunk, is_first=is_first)
            chunk, size, is_first = [], 0, False
        chunk += command
        size += needed
    yield _invocation(chunk, is_first=is_first)


def _invocation(commands: list[str], *, is_first: bool) -> str:
    joined = " ';' \\\n    ".join(commands)
    if is_first:
        return _FIRST.format(commands=joined)
    return f"tmux -u {joined}\n"


def _commands(windows: tuple[Window, ...], size: tuple[int, int]) -> Iterator[list[str]]:
    """Per launch the tmux commands that seat it; those of one launch stay in one invocation."""
    number = 0
    for window in windows:
        for index, launch in enumerate(window.launches):
            number += 1
            start = f'sh "$dir/seats" {number}'
            own: list[str] = []
            if number == 1:
                own.append(
                    "new-session -d -P -F '#{session_id} #{pid} #{session_created}'"
                    f' -s "$session" -n {_quote(window.name)} -x {size[0]} -y {size[1]}'
                    ' ${FLEET_HOME:+-e "FLEET_HOME=$FLEET_HOME"} ' + start
                )
                own.append('set-option -t "=$session:" destroy-unattached off')
            elif index == 0:
                own.append(f'new-window -t "=$session:" -n {_quote(window.name)} {start}')
            else:
                own.append(f'split-window -t "=$session:" {start}')
            if index == 0:
                own.append('set-option -w -t "=$session:" remain-on-exit on')
            color = color_of(launch)
            if window.layout is None and color:
                own.append(f'set-option -w -t "=$session:" window-status-style {_quote("fg=" + color)}')
            if window.layout is not None:
                shown = f"#[fg={color}]{launch.name}" if color else launch.name
                own.append(f'set-option -p -t "=$session:" @seat {_quote(shown)}')
                if index == 0:
                    own.append('set-option -w -t "=$session:" pane-border-status top')
                    own.append("set-option -w -t \"=$session:\" pane-border-format ' #{@seat} '")
                else:
                    own.append(f'select-layout -t "=$session:" {window.layout}')
            yield own
