"""A shell script that seats every launch in tmux: POSIX sh and tmux 3.2 or later, nothing else.

Pure: equal launches give equal bytes. The script makes one folder of its own, starts one session, and removes both
again if it fails half-way. Texts lie in the folder, since tmux takes no more than 16 KB at once, and one invocation
seats as many as fit.

Not here: what tmux is told (`panes`), and what runs in a pane (`seats`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.roles.panes import InFolder, color_of, commands, safe_session_name, screen_size
from fleet.roles.seats import HOME, PATH, START, folder_files
from fleet.roles.shell import FOLDER_BYTES, MAKE_FOLDER, here, quote, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.roles.launch import FanOut
    from fleet.roles.panes import Command

__all__ = ["color_of", "folder_lines", "render", "safe_session_name", "screen_size"]

#: Bytes of one tmux invocation as written here; the folder's path, unknown yet, is added when the script runs.
_MAX_INVOCATION = 15_000
#: Seconds between two looks at whether the session still lives, to remove the folder.
_WATCH_SECONDS = 2

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

#: Asked only once tmux has refused: whoever asks first pays for it every time, and may still come second.
_REFUSED = """\
refused() {
    if [ -z "$ids" ] && tmux -u has-session -t "=$session" 2>/dev/null; then
        trap - EXIT
        rm -rf "$dir"
        say "the tmux session $session exists already; nothing was started"
        say "attach to it with: $attach"
        say "or write the script again with --replace, or with another --session-name"
    fi
    exit 1
}
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

#: A server that was started anew counts its sessions from the beginning.
_OURS = """\
know() { sid=${ids%% *} mark=${ids#* }; mark=${mark% *}; }
is_there() {
    [ "$(tmux -u display-message -p -t "$sid:" '#{pid} #{session_created}' 2>/dev/null)" = "$mark" ]
}
"""

_UNDO = """\
undo() {
    status=$?
    trap - EXIT HUP INT TERM
    know
    case $sid in '$'*) ! is_there || tmux -u kill-session -t "$sid" || : ;; esac
    rm -rf "$dir"
    say "the fan-out failed; what it had made is removed"
    exit "$status"
}
trap undo EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
"""

#: Inside tmux somebody is attached.
_MADE = """\
know
case ${ids##* }${TMUX:-} in
    1 | on)
        say 'this tmux has the option exit-unattached: it ends when nobody is attached'
        say 'set it to off, or run the script inside tmux'
        exit 1
        ;;
esac
"""

_TAIL = f"""\
trap - EXIT HUP INT TERM

# The folder goes when the session ends.
(
    trap '' HUP
    while
        sleep {_WATCH_SECONDS}
        is_there
    do :; done
    rm -rf "$dir"
) >/dev/null 2>&1 </dev/null &

printf 'session %s: attach with  %s\\n' "$session" "$attach"
"""


def render(fan_out: FanOut, *, session: str, replace: bool = False) -> str:
    """Return the script. ``session`` has gone through `safe_session_name`; ``replace`` ends one of that name first."""
    launches = fan_out.launches
    count = "1 role" if len(launches) == 1 else f"{len(launches)} roles"
    return "".join(
        [
            _HEAD.format(count=count, session=quote(session)),
            _REPLACE if replace else "",
            "\nids=\n",
            MAKE_FOLDER,
            _OURS,
            _UNDO,
            _REFUSED,
            folder_lines(folder_files(launches)),
            "\n",
            *_invocations(fan_out, session),
            _TAIL,
        ]
    )


def folder_lines(files: dict[str, str]) -> str:
    """Lines that write these files, and what only the running script knows, into the folder ``$dir``."""
    kept = {START: "$PWD", PATH: "$PATH", HOME: "${FLEET_HOME:-}"}
    lines = [f'printf \'%s/\' "{value}" >"$dir/{name}"\n' for name, value in kept.items()]
    return "".join([*lines, *(here(name, text) for name, text in files.items())])


def _invocations(fan_out: FanOut, session: str) -> Iterator[str]:
    """The calls of tmux: one, or as many as their size asks for."""
    chunk: list[str] = []
    size, is_first = 0, True
    for group in commands(fan_out.windows, session=session):
        needed = sum(map(_size_of, group))
        if chunk and size + needed > _MAX_INVOCATION:
            yield _invocation(chunk, is_first=is_first)
            chunk, size, is_first = [], 0, False
        chunk += map(_as_words, group)
        size += needed
    yield _invocation(chunk, is_first=is_first)


def _invocation(chunk: list[str], *, is_first: bool) -> str:
    joined = " ';' \\\n    ".join(chunk)
    if is_first:
        return f"ids=$(tmux -u {joined}) || refused\n{_MADE}"
    return f"tmux -u {joined}\n"


def _size_of(command: Command) -> int:
    """Bytes that a command takes on its way to the server, with some to spare for each."""
    words = (
        FOLDER_BYTES + len(word.name) if isinstance(word, InFolder) else len(word.encode())
        for word in command
    )
    return sum(size + 1 for size in words) + 16


def _as_words(command: Command) -> str:
    """A command as a shell reads it."""
    return " ".join(
        f'"$dir/{word.name}"' if isinstance(word, InFolder) else readable(word) for word in command
    )
