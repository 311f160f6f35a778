"""Make a team live: its folder, one ``source-file``, and everything removed again if that fails.

Blocking. Not here: what the commands are (`command_file`), and how the team is attached to.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.errors import NameTaken, StorageFailed, TmuxFailed, TmuxUnusable, UsageProblem
from fleet.live.command_file import Setting, command_file
from fleet.live.ending import end_team
from fleet.live.teams import SOCKET_FILE, Team, live_folder, teams_on
from fleet.roles.seats import START, folder_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.roles.launch import FanOut
    from fleet.tmux import Tmux
    from roundtable.home import Home

__all__ = ["Made", "check_folders", "make_live"]

#: Follows one room; ``-P`` because the folder a team is started in is no place to import from.
#: A closed terminal, of which the shell alone is told, may mean that the session is gone: then its folder goes too.
_ROOM = """\
left() {{
    trap '' HUP
    kill "$tail" 2>/dev/null
    sleep 1
    session=${{TMUX##*,}}
    tmux -S {socket} has-session -t "\\$$session:" >/dev/null 2>&1 || rm -rf "${{0%/*}}"
    exit 129
}}
trap left HUP
trap : INT
printf '%s\\n' "Room #$1 begins with its first message."
while :; do
    {python} -P -m roundtable tail "$1" --wait &
    tail=$!
    wait "$tail"
    kill "$tail" 2>/dev/null
    sleep 2
done
"""

_PINGS = "exec {python} -P -m fleet.live.ping_panes\n"


@dataclass(frozen=True, slots=True)
class Made:
    """A team that was just made."""

    team: Team
    pane_ids: tuple[str, ...]  #: of the rooms, the pings if any, the seats
    warnings: tuple[str, ...]


def make_live(
    fan_out: FanOut,
    *,
    session: str,
    tmux: Tmux,
    home: Home,
    start: Path,
    environ: Mapping[str, str],
    has_pings: bool = False,
) -> Made:
    """Start every seat of ``fan_out`` in a new session called ``session``, detached.

    ``session`` has gone through ``safe_session_name``. Whatever is raised, nothing of what was made here is left.

    Raises:
        NameTaken: a session of that name runs on the server.
        UsageProblem: a folder cannot be told to tmux.
        TmuxUnusable: tmux is missing or too old.
        TmuxFailed: it refused, or its server went away meanwhile.
        StorageFailed: the team's folder cannot be made.
    """
    check_folders(fan_out, start, live_folder(home))
    team_id = os.urandom(6).hex()
    folder = live_folder(home) / team_id
    setting = Setting(session, team_id, folder, start, environ, has_pings)
    try:
        commands = _write_folder(folder, fan_out, setting)
        try:
            lines = tmux.run("start-server", ";", "source-file", str(commands))
        finally:
            commands.unlink(missing_ok=True)
        return _made(lines, tmux, session, setting)
    except BaseException as problem:
        printed = problem.printed if isinstance(problem, TmuxFailed) else ()
        _undo(setting, tmux, printed)
        if isinstance(problem, TmuxFailed):
            raise _explained(problem, session, tmux) from problem
        if isinstance(problem, OSError):
            raise StorageFailed(folder, problem.strerror or str(problem)) from problem
        raise


def check_folders(fan_out: FanOut, *folders: Path) -> None:
    """Look that no folder has a newline in its name, which tmux tells as two lines ever after.

    Raises:
        UsageProblem: one has.
    """
    for folder in (*folders, *(launch.cwd for launch in fan_out.launches)):
        if folder is not None and any(character in str(folder) for character in "\n\r"):
            raise UsageProblem(
                f"the folder {str(folder)!r} has a newline in its name",
                hint="rename it, or start the team from another one",
            )


def _write_folder(folder: Path, fan_out: FanOut, setting: Setting) -> Path:
    """Make the team's folder and return the file of commands in it. All is closed to others: it may hold secrets."""
    folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700)
    python = shlex.quote(sys.executable)
    texts = {
        **folder_files(fan_out.launches),
        START: f"{setting.start}/",
        # The pane knows its server by $TMUX: its path, a number and a number.
        "room": _ROOM.format(python=python, socket='"${TMUX%,*,*}"'),
        "commands": command_file(fan_out, setting),
    }
    if setting.has_pings:
        texts["pings"] = _PINGS.format(python=python)
    for name, text in texts.items():
        _write(folder / name, text)
    return folder / "commands"


def _write(path: Path, text: str) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def _made(lines: list[str], tmux: Tmux, session: str, setting: Setting) -> Made:
    if not lines or not lines[0].startswith("$"):
        raise TmuxFailed(f"told nothing of the session: {'; '.join(lines) or 'no word'}")
    session_id, server, _version, is_leaving, first_pane, socket = lines[0].split(":", 5)
    _write(setting.folder / SOCKET_FILE, f"{socket}\n")
    warnings = []
    if is_leaving == "1":
        warnings.append(
            "this tmux server ends when nobody is attached (exit-unattached on), and the team with it"
        )
    team = Team(tmux, session_id, session, setting.team, int(server), 0, 0, setting.folder)
    return Made(team, (first_pane, *lines[1:]), tuple(warnings))


def _undo(setting: Setting, tmux: Tmux, printed: tuple[str, ...]) -> None:
    """End the session that was made, if it came to that, and remove the folder."""
    with suppress(TmuxFailed, TmuxUnusable):
        made = [team for team in teams_on(tmux) if team.id == setting.team]
        if not made and printed and printed[0].startswith("$"):  # it came to no id, but to the session
            session_id, server, *_ = printed[0].split(":", 5)
            made = [Team(tmux, session_id, setting.session, setting.team, int(server), 0, 0, setting.folder)]
        for team in made:
            end_team(team)
    shutil.rmtree(setting.folder, ignore_errors=True)


def _explained(problem: TmuxFailed, session: str, tmux: Tmux) -> Exception:
    """What tmux said, as what it means for who started the team."""
    if "duplicate session" in problem.message:
        attach = Team(tmux, "", session, "", 0, 0, 0, Path()).attach_line
        return NameTaken(
            session, hint=f"attach to it: {attach}; or end it first with --replace, or choose another --name"
        )
    try:
        tmux.check_version()
    except TmuxUnusable as too_old:
        return too_old
    except TmuxFailed:
        pass
    if "error creating" in problem.message and os.environ.get("TMUX"):
        return TmuxFailed(
            f"tmux: {problem.message}",
            hint="TMUX names a server that is gone with its folder: unset TMUX, or name a server with -L",
        )
    if "server exited" in problem.message or "lost server" in problem.message:
        return TmuxFailed(
            f"the tmux server went away while the team was being made ({problem.message})",
            hint="nothing of the team is left; start it again",
        )
    return TmuxFailed(f"tmux: {problem.message}", hint="nothing of the team is left")
