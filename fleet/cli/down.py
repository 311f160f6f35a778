"""``fleet down``: end live teams with all they run."""

from __future__ import annotations

import os
import signal

import click

__all__ = ["command"]


@click.command("down", epilog="Example: fleet down design")
@click.argument("name", required=False)
@click.option("--all", "is_all", is_flag=True, help="Every live team.")
@click.option("-L", "--socket-name", metavar="NAME", help="The tmux server it lives on.")
def command(name: str | None, is_all: bool, socket_name: str | None) -> int:
    """End the live team NAME, or the only one: every process of every pane and what they have started.

    They are asked to end and after three seconds killed; then the session goes, and nothing else. Processes that
    could not be ended are told, with exit code 1. The broker of the rooms stays, and what was said in them.
    """
    from fleet.errors import Survivors, UsageProblem
    from fleet.live.ending import end_team
    from fleet.live.teams import clear_away, find_team, teams
    from roundtable.home import Home

    if is_all and name is not None:
        raise UsageProblem("give a NAME or --all, not both")
    home = Home.from_environment()
    if is_all:
        ending = teams(home, socket_name=socket_name)
        if not ending:
            click.echo("no team is live")
    else:
        ending = [find_team(home, name, socket_name=socket_name)]
    if os.environ.get("TMUX"):
        # The session that goes may be the one this runs in.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    left: list[Survivors] = []
    for team in ending:
        ended = end_team(team)
        if ended.survivors:
            left.append(Survivors(team.name, ended.survivors))
        count = ended.processes - len(ended.survivors)
        click.echo(f"{team.name}: ended, {count} {'process' if count == 1 else 'processes'}")
    clear_away(home)
    if left:
        for problem in left[1:]:
            click.echo(f"fleet down: {problem.message}", err=True)
        raise left[0]
    return 0
