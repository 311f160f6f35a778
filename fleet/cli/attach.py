"""``fleet attach``: show a live team on this terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fleet.live.teams import Team

__all__ = ["attach", "command"]


@click.command("attach", epilog="Example: fleet attach design")
@click.argument("name", required=False)
@click.option("-L", "--socket-name", metavar="NAME", help="The tmux server it lives on.")
def command(name: str | None, socket_name: str | None) -> int:
    """Show the live team NAME, or the only one: attach on a terminal, switch inside tmux.

    NAME is the session's, with or without fleet- before it. Where neither is possible the command that does it is
    printed and the exit code is 1.
    """
    from fleet.live.teams import find_team
    from roundtable.home import Home

    team = find_team(Home.from_environment(), name, socket_name=socket_name)
    attach(team)
    click.echo(team.attach_line)
    return 1


def attach(team: Team) -> None:
    """Become the client that shows ``team``, or switch the one this runs in; return where neither is possible."""
    from fleet.errors import TmuxFailed

    sys.stdout.flush()
    inside = os.environ.get("TMUX", "")
    if inside:
        server = inside.rpartition(",")[0].rpartition(",")[2]
        if server == str(team.server_pid):
            try:
                team.tmux.run("switch-client", "-t", f"={team.name}")
            except TmuxFailed:  # no client shows the session this runs in
                return
            raise SystemExit(0)
        click.echo(
            "this terminal is inside another tmux server: detach from it, or use another terminal", err=True
        )
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        words = team.attach_words
        try:
            os.execvp(words[0], words)  # noqa: S606 - no shell: the point of it
        except OSError as problem:
            raise TmuxFailed(f"cannot run tmux: {problem.strerror}") from problem
