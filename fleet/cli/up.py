"""``fleet up``: the team of a file, live in tmux."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleet.cli.completing import blueprint_names
from fleet.cli.roles_output import LAYOUTS, Request

if TYPE_CHECKING:
    from fleet.live.teams import Pane, Team
    from fleet.roles.launch import FanOut
    from fleet.tmux import Tmux
    from roundtable.home import Home

__all__ = ["command"]

#: How long seats that end at once are looked for when nobody attaches: an agent that cannot start says so in a moment.
_LOOK_SECONDS = 2.0

#: Between two looks.
_ROUND_SECONDS = 0.1


@click.command(
    "up",
    epilog="Example: fleet up blueprints/design.yaml 'Should we shard the queue?' --pings",
)
@click.argument("file", metavar="FILE", shell_complete=blueprint_names)
@click.argument("task", required=False)
@click.option("--name", metavar="NAME", help="The tmux session; default fleet-<name of the file's team>.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Windows, or panes of one window.")
@click.option("--replace", is_flag=True, help="End a session of the same name first, with all it runs.")
@click.option("--detach", is_flag=True, help="Do not attach; print how to.")
@click.option(
    "--pings", "has_pings", is_flag=True, help="Tell idle seats of news in their room, one line at a time."
)
@click.option(
    "--wait",
    metavar="SPAN",
    help="How long to look for seats that end at once, when nobody attaches. [default: 2s]",
)
@click.option(
    "--binary", metavar="NAME", help="Start this program for every role, with --name, --provider, …"
)
@click.option(
    "-L", "--socket-name", metavar="NAME", help="Another tmux server than tmux itself would choose."
)
def command(
    file: str,
    task: str | None,
    name: str | None,
    layout: str | None,
    replace: bool,
    detach: bool,
    has_pings: bool,
    wait: str | None,
    binary: str | None,
    socket_name: str | None,
) -> int:
    """Start every seat of FILE in tmux, each in its own pane, and attach.

    FILE is a blueprint or a roles manifest: a path, or the name of a blueprint. A window in front follows the room.
    On a terminal this attaches, inside tmux it switches there, elsewhere it prints the command that does. Exit codes:
    0 the team lives, 1 it could not be made or a seat ended at once, 2 usage or file, 6 no tmux, or one too old.
    """
    from fleet.cli.interruption import raising_on_signals
    from fleet.cli.roles_output import fan_out_of, missing_programs
    from fleet.live.creation import make_live
    from fleet.tmux import Tmux
    from roundtable.home import Home

    look_seconds = _look_seconds(wait)
    start = _start()
    found, warnings = fan_out_of(Request(file, "tmux", binary, name, layout, task=task, may_ask=True))
    session = _session_name(name, found)
    for line in (*warnings, *missing_programs(found, "tmux"), *_missing_folders(found)):
        click.echo(line, err=True)
    tmux, home = Tmux(socket_name=socket_name), Home.from_environment()
    if replace:
        _end_existing(session, tmux, home)
    with raising_on_signals():
        made = make_live(
            found,
            session=session,
            tmux=tmux,
            home=home,
            start=start,
            environ=os.environ,
            has_pings=has_pings,
        )
    for line in made.warnings:
        click.echo(f"warning: {line}", err=True)
    if not detach:
        from fleet.cli.attach import attach

        attach(made.team)  # comes back only where that is not possible
    click.echo(f"session {session}: attach with  {made.team.attach_line}")
    sys.stdout.flush()
    return _report_ended(made.team, look_seconds)


def _look_seconds(wait: str | None) -> float:
    from fleet.deadline import parse_duration
    from fleet.errors import UsageProblem

    if wait is None:
        return _LOOK_SECONDS
    if wait.strip() in {"0", "0s"}:
        return 0.0
    seconds = parse_duration(wait)
    if seconds is None:
        raise UsageProblem(f'--wait: "{wait}" is not a span', hint="write 0, 5s or 1m")
    return seconds


def _start() -> Path:
    """The folder this was started in."""
    from fleet.errors import UsageProblem

    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageProblem(
            "the folder this was started in is gone", hint="start it from one that is there"
        ) from None


def _session_name(name: str | None, found: FanOut) -> str:
    from fleet.errors import UsageProblem
    from fleet.roles.panes import safe_session_name

    wanted = name if name is not None else f"fleet-{found.title}"
    session = safe_session_name(wanted)
    if not session.strip("_"):
        raise UsageProblem(f"--name {wanted[:80]!r} has no letter or digit")
    if session != wanted:
        click.echo(f"the session is called {session}: tmux takes letters, digits, - and _", err=True)
    return session


def _missing_folders(found: FanOut) -> list[str]:
    return [
        f"warning: {launch.name}: there is no folder {launch.cwd}; its pane will say so and stay"
        for launch in found.launches
        if launch.cwd is not None and not launch.cwd.is_dir()
    ]


def _end_existing(session: str, tmux: Tmux, home: Home) -> None:
    """End the session of that name: a team with its whole tree, any other as tmux does it."""
    from fleet.errors import Survivors, TmuxFailed, UsageProblem
    from fleet.live.ending import end_team
    from fleet.live.teams import session_of, teams_on

    if session_of(tmux) == session:
        raise UsageProblem(
            f"this shell sits in the session {session} itself", hint="start the team from outside it"
        )
    for team in teams_on(tmux):
        if team.name == session:
            ended = end_team(team)
            if ended.survivors:
                raise Survivors(session, ended.survivors)
            return
    try:
        tmux.run("kill-session", "-t", f"={session}")
    except (
        TmuxFailed
    ):  # most often there is none; if it stands nevertheless, the new one cannot have its name
        return


def _report_ended(team: Team, seconds: float) -> int:
    """Look for seats that end at once, show their last lines, and return the exit code."""
    from fleet.errors import TmuxFailed
    from fleet.live.ending import end_team
    from fleet.live.last_lines import last_lines
    from roundtable.ci import for_ci_log

    if seconds <= 0:
        return 0
    try:
        dead = _ended_within(team, seconds)
        lines = [last_lines(team.tmux, pane) for pane in dead]
    except TmuxFailed as problem:
        end_team(team)
        raise TmuxFailed(
            f"the session, or the tmux server, went away: {problem.message}",
            hint="nothing of the team is left; start it again",
        ) from problem
    if not dead:
        return 0
    for pane, shown in zip(dead, lines, strict=True):
        click.echo(f"{pane.title} ended at once ({pane.ending}); its last lines:", err=True)
        for line in shown:
            click.echo(for_ci_log(f"  {line}"), err=True)
    click.echo(
        f"the session stays; start a seat again in its pane with: tmux respawn-pane, or end it all: "
        f"fleet down {team.name}",
        err=True,
    )
    return 1


def _ended_within(team: Team, seconds: float) -> list[Pane]:
    """The seats that are dead after so many seconds, or once all are."""
    import time

    from fleet.live.teams import panes

    end = time.monotonic() + seconds
    while True:
        seats = [pane for pane in panes(team) if pane.kind == "seat"]
        dead = [pane for pane in seats if pane.is_dead]
        if len(dead) == len(seats) or time.monotonic() > end:
            return dead
        time.sleep(_ROUND_SECONDS)
