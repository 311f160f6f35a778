"""``fleet ps``: the live teams, and what each seat is doing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fleet.live.states import State
    from fleet.live.teams import Pane, Team

__all__ = ["command"]


@click.command("ps", epilog="Example: fleet ps design --last critic")
@click.argument("name", required=False)
@click.option("--last", "seat", metavar="SEAT", help="Print the last 80 lines of this seat's pane instead.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
@click.option(
    "-L", "--socket-name", metavar="NAME", help="A tmux server to look on; else all teams were started on."
)
def command(name: str | None, seat: str | None, is_json: bool, socket_name: str | None) -> None:
    """List the live teams, or only NAME, with the state of each seat.

    starting: runs and has written nothing yet; working: its screen has changed in the last three seconds; idle: it
    has not; dead: its program has ended, with its exit status.
    """
    from fleet.live.last_lines import last_lines
    from fleet.live.teams import clear_away, find_seat, select_teams
    from roundtable.home import Home

    home = Home.from_environment()
    if seat is not None:
        team, pane = find_seat(home, seat, name, socket_name=socket_name)
        lines = last_lines(team.tmux, pane)
        click.echo(
            json.dumps({"seat": pane.seat, "lines": lines}, ensure_ascii=False)
            if is_json
            else "\n".join(lines)
        )
        return
    clear_away(home)
    found = select_teams(home, name, socket_name=socket_name)
    looks = [(team, *_look(team)) for team in found]
    if is_json:
        listed = [_as_data(team, panes, states) for team, panes, states in looks]
        click.echo(json.dumps({"teams": listed}, indent=2, ensure_ascii=False))
    elif not looks:
        click.echo("no team is live")
    else:
        click.echo("\n".join(line for look in looks for line in _lines(*look)))


def _look(team: Team) -> tuple[list[Pane], dict[str, State]]:
    """Its panes and their states. A pane, or the whole team, may go while it is looked at."""
    from fleet.errors import TmuxFailed
    from fleet.live.states import states
    from fleet.live.teams import panes

    for _ in range(_ATTEMPTS):
        try:
            known = [pane for pane in panes(team) if pane.kind]
            return known, states(team.tmux, known)
        except TmuxFailed as problem:
            last = problem
    if "can't find" in last.message or "no server" in last.message:
        return [], {}
    raise last


#: Looks at a team whose panes go meanwhile.
_ATTEMPTS = 3


def _lines(team: Team, panes: list[Pane], states: dict[str, State]) -> list[str]:
    seats = [pane for pane in panes if pane.kind == "seat"]
    width = max((len(pane.title) for pane in panes), default=0)
    count = "1 seat" if len(seats) == 1 else f"{len(seats)} seats"
    shown = "attached" if team.attached else team.attach_line
    lines = [f"{team.name}  {count}  {shown}"]
    for pane in panes:
        state = states[pane.id].value
        if pane.is_dead:
            state += f" ({pane.ending})"
            if pane.kind == "seat":
                state += f"  its last lines: fleet ps {team.name} --last {pane.seat}"
        lines.append(f"  {pane.title:<{width}}  {state}")
    return lines


def _as_data(team: Team, panes: list[Pane], states: dict[str, State]) -> dict[str, Any]:
    return {
        "name": team.name,
        "session": team.session_id,
        "created": team.created,
        "attached": team.attached,
        "attach": list(team.attach_words),
        "panes": [
            {
                "kind": pane.kind,
                "seat": pane.seat or None,
                "name": pane.name or None,
                "room": pane.room or None,
                "pane": pane.id,
                "state": states[pane.id].value,
                "exit": pane.status if pane.is_dead else None,
                "signal": pane.signal if pane.is_dead else None,
                "pid": None if pane.is_dead else pane.pid,
            }
            for pane in panes
        ],
    }
