"""``roundtable mcp`` and ``roundtable token``: check the command line, then serve or print.

Nothing heavy is imported until what is asked for is known to make sense.
"""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import click

from ..errors import PortUnavailable
from ..home import Home
from ..names import is_member_name, is_room_name

if TYPE_CHECKING:
    from ..memory.place import Place

__all__ = ["DEFAULT_PORT", "mcp_command", "token_command"]

#: Where HTTP is served when no port is named: fixed, so that the configuration of a client stays true.
DEFAULT_PORT = 7411

#: Seconds after which a role nobody asks for leaves its rooms: longer than most tests and builds that an agent runs.
_IDLE_SECONDS = 600.0

_USAGE = "usage: roundtable mcp --as ROLE [--room ROOM], or roundtable mcp --http [--port N] --as ROLE ..."

_NAME = "1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit"


@click.command("mcp")
@click.option("--as", "roles", metavar="ROLE", multiple=True, help="Who acts; with --http once per role.")
@click.option("--room", metavar="ROOM", help="Join this room with the first call.")
@click.option(
    "--http", "is_http", is_flag=True, help="Serve over HTTP on 127.0.0.1, a bearer token per role."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help=f"With --http; 0 takes any. [default: {DEFAULT_PORT}]"
)
@click.option(
    "--idle",
    "idle_seconds",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help=f"With --http: leave the rooms of a role unheard of for so long. [default: {_IDLE_SECONDS:g}]",
)
def mcp_command(
    roles: tuple[str, ...], room: str | None, is_http: bool, port: int | None, idle_seconds: float | None
) -> None:
    """Serve a role's tools over MCP, on standard input and output or over HTTP."""
    if not roles:
        raise click.UsageError(f"--as is missing; {_USAGE}")
    for role in roles:
        if not is_member_name(role):
            raise click.UsageError(f"--as takes a role of {_NAME}, not {role!r}; {_USAGE}")
    room = room.removeprefix("#") if room is not None else None
    if room is not None and not is_room_name(room):
        raise click.UsageError(f"--room takes 1 to 64 of A-Z a-z 0-9 _ -, not {room!r}; {_USAGE}")
    if not is_http and (len(roles) > 1 or port is not None or idle_seconds is not None):
        raise click.UsageError(f"more than one --as, --port and --idle need --http; {_USAGE}")

    from ..memory.place import Place

    home = Home.from_environment()
    place = Place.from_environment(home)
    if is_http:
        _serve_http(
            home,
            place,
            tuple(dict.fromkeys(roles)),
            room,
            DEFAULT_PORT if port is None else port,
            _IDLE_SECONDS if idle_seconds is None else idle_seconds,
        )
    else:
        _serve_stdio(home, place, roles[0], room)


@click.command("token")
@click.argument("role")
def token_command(role: str) -> None:
    """Print the bearer token of ROLE for `roundtable mcp --http`; make one if there is none."""
    if not is_member_name(role):
        raise click.BadParameter(_NAME, param_hint="ROLE")

    from ..tokens import tokens

    click.echo(tokens(Home.from_environment(), [role])[role])


def _serve_stdio(home: Home, place: Place, role: str, room: str | None) -> None:
    stdin = getattr(sys, "stdin", None)  # None: closed before we began, so there is no client
    if stdin is None:
        return
    if stdin.isatty():
        click.echo(f"roundtable mcp: {role} waits for an MCP client on standard input", err=True)

    import anyio

    from .stdio import serve

    anyio.run(lambda: serve(home, role, place, room=room))


def _serve_http(
    home: Home, place: Place, roles: tuple[str, ...], room: str | None, port: int, idle_seconds: float
) -> None:
    from ..tokens import tokens, tokens_path

    # What can fail at once does so before the second that the imports take.
    with _listen(port) as listener:
        known = tokens(home, roles)

        import anyio

        from .http import serve

        port = listener.getsockname()[1]
        click.echo(f"roundtable mcp: serving {', '.join(roles)} at http://127.0.0.1:{port}/mcp", err=True)
        click.echo(f"tokens: {tokens_path(home)} (`roundtable token ROLE` prints one)", err=True)
        anyio.run(lambda: serve(home, known, place, listener, room=room, idle_seconds=idle_seconds))


def _listen(port: int) -> socket.socket:
    """A socket that accepts connections of this machine on ``port``; 0 is any that is free."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # What a server that has just ended leaves in the kernel is no reason to refuse the next.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as problem:
        listener.close()
        raise PortUnavailable(port, problem.strerror or str(problem)) from problem
    return listener
