"""``roundtable``: what a seat can do, for people and their programs, one command at a time.

Each command is one short connection; a broker it has to start waits ten minutes for the next. Nothing heavy is
imported before a command runs, so that ``--help`` and ``where`` answer at once.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from .acting import acting_name, acting_role
from .commandline import LazyGroup, invoke
from .errors import ConnectionLost, Refused, UsageProblem
from .home import Home
from .names import is_room_name

if TYPE_CHECKING:
    from .client import Client
    from .message import Message, RoomInfo

__all__ = ["group", "main"]

#: How long a broker started by one command waits for the next, so that a room survives between two.
_GRACE_SECONDS = 600.0

#: Between two looks of ``tail``; it is no member, so nobody tells it.
_TAIL_SECONDS = 0.5

#: What one message may have, and a newline at its end.
_MAX_INPUT_BYTES = 6 * 1024 * 1024 + 1

_HELP = {
    "broker": "Serve this user's rooms in the foreground.",
    "where": "Print the path of the socket.",
    "rooms": "List the rooms.",
    "post": "Say something in a room.",
    "digest": "Read what is unread, bounded, and move past it.",
    "peek": "Read what a digest would show; nothing moves.",
    "fetch": "Read whole messages; nothing moves.",
    "tail": "Follow a room without sitting in it.",
    "sit": "Sit in a room at this terminal.",
    "export": "Write a room to a file of the memory, lossless.",
    "memory": "Ask what is remembered; ingest, tend and check it.",
    "mcp": "Serve a role's tools over the Model Context Protocol.",
    "token": "Print the bearer token of a role for MCP over HTTP.",
    "demo": "Play a discussion and show what a late reader reads.",
    "schema": "Print the JSON Schema of the wire.",
}


#: Commands that have a file of their own.
_MODULES = {
    "memory": "roundtable.memory.command",
    "mcp": "roundtable.mcp.command",
    "token": "roundtable.mcp.command",
}


@click.group(
    cls=LazyGroup,
    table={name: (_MODULES.get(name, __name__), f"{name}_command", text) for name, text in _HELP.items()},
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: roundtable post standup 'Tests are green.' --create",
)
def group() -> None:
    """Rooms where agents and people talk outside every context window."""


def main() -> None:
    """The ``roundtable`` command."""
    sys.exit(invoke(group, program="roundtable"))


def _room_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    name = value.removeprefix("#")
    if not is_room_name(name):
        raise click.BadParameter("1 to 64 of A-Z a-z 0-9 _ -, beginning with a letter or digit")
    return name


_room = click.argument("room", callback=_room_name)
_name = click.option("--as", "name", metavar="NAME", help="Who acts; else FLEET_SEAT, else the login name.")
_json = click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
_budget = click.option("--budget", type=int, metavar="CHARS", help="Size of the digest. [default: 2000]")
_per_message = click.option(
    "--per-message", type=int, metavar="CHARS", help="Most of one message. [default: 600]"
)


@click.command("broker")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Seconds to outlive the last connection.",
)
@click.option("--socket", metavar="PATH", help="Where to listen; by default below the home.")
@click.option(
    "--store",
    metavar="STORE",
    help="Where rooms are kept: memory (default), or sqlite[:PATH]; else ROUNDTABLE_STORE.",
)
def broker_command(grace: float, socket: str | None, store: str | None) -> int:
    """Serve this user's rooms in the foreground, until idle or told to stop."""
    from .serve import main as serve
    from .store import database_path

    if store is not None:
        # Here, so that who typed `roundtable broker` is told of that and of no other program.
        database_path(store, default=Home.from_environment().database)

    given = {"--socket": socket, "--store": store}
    return serve(
        ["--grace", str(grace), *(word for pair in given.items() if pair[1] for word in pair if word)]
    )


@click.command("where")
def where_command() -> None:
    """Print the path of the socket a broker of this home serves, or would."""
    click.echo(Home.from_environment().socket())


@click.command("rooms")
@_name
@_json
def rooms_command(name: str | None, is_json: bool) -> None:
    """List the rooms with what is unread, retained, and who is there."""

    async def act(client: Client) -> None:
        rooms = await client.rooms()
        if is_json:
            _print_json({"rooms": [_room_json(info) for info in rooms]})
        else:
            from .texts import rooms_text

            none = "No active rooms. `roundtable post ROOM TEXT --create` makes one."
            click.echo(rooms_text(rooms) if rooms else none)

    _with_client(name, act)


@click.command("post")
@_room
@click.argument("text")
@_name
@click.option("--reply-to", metavar="NAME#SEQ", help="The message this answers.")
@click.option("--create", is_flag=True, help="Make the room if there is none.")
@click.option("--topic", metavar="TEXT", help="Topic of a room that has none.")
@_json
def post_command(
    room: str,
    text: str,
    name: str | None,
    reply_to: str | None,
    create: bool,
    topic: str | None,
    is_json: bool,
) -> None:
    """Say TEXT in ROOM, joining for as long as it takes; `-` reads standard input."""
    if text == "-":
        text = _standard_input()
    if not text:
        raise UsageProblem(
            "there is nothing to post", hint="give a text, or - and the text on standard input"
        )

    async def act(client: Client) -> None:
        if not create:
            try:
                await client.set_cursor(room, 0)
            except Refused as problem:
                if problem.code == "no-such-room":
                    problem.hint = "`roundtable rooms` lists the rooms; --create makes this one"
                raise
        joined = await client.join(room, topic, is_quiet=True)
        posted = await client.post(room, text, reply_to=reply_to)
        if is_json:
            _print_json({"message": _message_json(posted.message), "unreadBefore": posted.unread_before})
        else:
            from .texts import posted_text

            click.echo(posted_text(posted, is_alone=len(joined.members) < 2))

    _with_client(name, act)


@click.command("digest")
@_room
@_name
@_budget
@_per_message
@click.option(
    "--after-seq", type=click.IntRange(min=0), help="Begin here instead of at the cursor, which then stays."
)
@_json
def digest_command(
    room: str,
    name: str | None,
    budget: int | None,
    per_message: int | None,
    after_seq: int | None,
    is_json: bool,
) -> None:
    """Read what is unread in ROOM within a budget, newest first, and move the cursor past it."""
    _digest(room, name, budget, per_message, after_seq, is_peek=False, is_json=is_json)


@click.command("peek")
@_room
@_name
@_budget
@_per_message
@_json
def peek_command(
    room: str, name: str | None, budget: int | None, per_message: int | None, is_json: bool
) -> None:
    """Read what a digest of ROOM would show; the cursor stays."""
    _digest(room, name, budget, per_message, None, is_peek=True, is_json=is_json)


@click.command("fetch")
@_room
@_name
@click.option("--after-seq", type=click.IntRange(min=0), help="Begin after this message; else at the cursor.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="Most messages.")
@click.option("--max-chars", type=click.IntRange(min=1), help="Most characters. [default: 20000]")
@click.option("--seq", type=click.IntRange(min=1), help="Only this message.")
@click.option("--offset", type=click.IntRange(min=0), help="Begin at this character of the message --seq.")
@_json
def fetch_command(
    room: str,
    name: str | None,
    after_seq: int | None,
    limit: int,
    max_chars: int | None,
    seq: int | None,
    offset: int | None,
    is_json: bool,
) -> None:
    """Read whole messages of ROOM, oldest first; the cursor stays."""
    if offset is not None and seq is None:
        raise click.UsageError("--offset needs --seq, the message whose body is to be read on")
    if seq is not None and after_seq is not None:
        raise click.UsageError("give --seq for one message or --after-seq for those after it, not both")

    async def act(client: Client) -> None:
        if seq is not None:
            start, most = seq - 1, 1
        else:
            start, most = (await client.set_cursor(room, 0) if after_seq is None else after_seq), limit
        page = await client.fetch(room, start, most)
        if is_json:
            _print_json(
                {
                    "room": room,
                    "messages": [_message_json(message) for message in page.messages],
                    "firstSeq": page.first_seq,
                    "lastSeq": page.last_seq,
                    "cursor": page.cursor,
                }
            )
        else:
            from .texts import fetched_text

            click.echo(
                fetched_text(room, page, after_seq=start, max_chars=max_chars, seq=seq, offset=offset or 0)
            )

    _with_client(name, act)


@click.command("tail")
@_room
@_name
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0, 500),
    default=10,
    show_default=True,
    help="Messages to begin with.",
)
@click.option("--wait", "is_waiting", is_flag=True, help="Wait for a room, or a broker, that is not there.")
@_json
def tail_command(room: str, name: str | None, lines: int, is_waiting: bool, is_json: bool) -> None:
    """Follow ROOM until interrupted, without sitting in it: nobody sees you and no cursor moves."""
    import anyio

    from .texts import message_line

    # What was shown of the room, which over a new broker may be another one.
    shown: dict[str, int] = {}

    async def follow(client: Client) -> None:
        last_seq = (await client.fetch(room, 0, 1)).last_seq
        epoch = next(info.epoch for info in await client.rooms() if info.name == room)
        seq = shown.setdefault(epoch, max(0, last_seq - lines))
        while True:
            page = await client.fetch(room, seq, 500, epoch=epoch)
            for message in page.messages:
                _print_json(_message_json(message)) if is_json else click.echo(message_line(message))
                seq = shown[epoch] = message.seq
            if page.messages:
                sys.stdout.flush()
            else:
                await anyio.sleep(_TAIL_SECONDS)

    async def act(client: Client) -> None:
        try:
            await follow(client)
        except Refused as problem:
            if not is_waiting or problem.code not in {"no-such-room", "stale-epoch"}:
                raise

    while True:
        try:
            _with_client(name, act)
        except ConnectionLost:
            if not is_waiting:
                raise
        time.sleep(_TAIL_SECONDS)


@click.command("sit")
@click.option("--room", required=True, callback=_room_name, help="Where; made if there is none.")
@_name
@click.option("--topic", metavar="TEXT", help="Topic of a room that has none.")
def sit_command(room: str, name: str | None, topic: str | None) -> None:
    """Sit in ROOM at this terminal: what others say is shown, each line typed is posted."""
    import anyio

    from .sit import sit

    def write(line: str) -> None:
        click.echo(line)
        sys.stdout.flush()

    anyio.run(sit, Home.from_environment(), acting_name(name), room, topic, write)


@click.command("export")
@_room
@click.argument("path")
@_name
@_json
def export_command(room: str, path: str, name: str | None, is_json: bool) -> None:
    """Write all that ROOM retains to PATH under raw/ of the memory folder; for the writer role."""
    from .export import check_path, export, exported_text
    from .memory.place import Place

    place = Place.from_environment(Home.from_environment())
    if refusal := place.refusal(acting_role(name, writer=place.writer), "export rooms for memory"):
        raise Refused("not-the-writer", refusal)
    check_path(place, path)

    async def act(client: Client) -> None:
        exported = await export(client, room, path, place=place)
        if is_json:
            _print_json(
                {
                    "room": room,
                    "path": str(exported.path),
                    "messages": exported.messages,
                    "chars": exported.chars,
                    "firstSeq": exported.first_seq,
                    "lastSeq": exported.last_seq,
                    "droppedBefore": exported.dropped_before,
                    "droppedDuring": exported.dropped_during,
                    "notice": exported.notice,
                }
            )
        else:
            click.echo(exported_text(exported, room))

    _with_client(name, act)


@click.command("demo")
def demo_command() -> int:
    """Play a discussion in a room of its own and show what somebody who comes late reads of it."""
    import anyio

    from .demo import play

    played = anyio.run(play, click.echo)
    for problem in played.broken:
        click.echo(f"roundtable: {problem}", err=True)
    return 1 if played.broken else 0


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of every message between a client and the broker."""
    from .wire import schema

    click.echo(json.dumps(schema(), indent=2, sort_keys=True))


def _digest(
    room: str,
    name: str | None,
    budget: int | None,
    per_message: int | None,
    after_seq: int | None,
    *,
    is_peek: bool,
    is_json: bool,
) -> None:
    async def act(client: Client) -> None:
        found = await client.digest(
            room, budget=budget, per_message=per_message, peek=is_peek, after_seq=after_seq
        )
        if is_json:
            _print_json(
                {
                    "room": room,
                    "text": found.text,
                    "total": found.total,
                    "verbatim": found.verbatim,
                    "headlines": found.headlines,
                    "collapsed": found.collapsed,
                    "chars": len(found.text),
                    "consumedSeq": found.consumed_seq,
                    "cursor": found.cursor,
                    "firstSeq": found.first_seq,
                    "lastSeq": found.last_seq,
                }
            )
        else:
            from .texts import digested_text

            click.echo(digested_text(room, found, is_peek=is_peek))

    _with_client(name, act)


def _with_client(name: str | None, act: Callable[[Client], Awaitable[None]]) -> None:
    """Run ``act`` with one connection, made and closed around it."""
    import anyio

    from .client import reach

    acting = acting_name(name)

    async def run() -> None:
        async with await reach(Home.from_environment(), name=acting, grace_seconds=_GRACE_SECONDS) as client:
            try:
                await act(client)
            except Refused as problem:
                if problem.code == "no-such-room":
                    problem.hint = problem.hint or "`roundtable rooms` lists the rooms there are"
                raise

    anyio.run(run)


def _standard_input() -> str:
    try:
        data = sys.stdin.buffer.read(_MAX_INPUT_BYTES + 1)
        if len(data) > _MAX_INPUT_BYTES:
            raise UsageProblem("standard input is over 6 MiB", hint="post the path of a file instead")
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise UsageProblem(f"standard input is not UTF-8: byte {problem.start}") from problem
    return text.removesuffix("\n")


def _message_json(message: Message) -> dict[str, Any]:
    """As on the wire."""
    body: dict[str, Any] = {
        "id": message.id,
        "seq": message.seq,
        "timestamp": message.timestamp,
        "room": message.room,
        "from": {"sessionId": message.author.session_id, "name": message.author.name},
        "text": message.text,
    }
    if message.reply_to is not None:
        body["replyTo"] = message.reply_to
    return body


def _room_json(info: RoomInfo) -> dict[str, Any]:
    """As on the wire."""
    body: dict[str, Any] = {"name": info.name}
    if info.topic is not None:
        body["topic"] = info.topic
    body |= {
        "epoch": info.epoch,
        "members": [
            {"sessionId": member.session_id, "name": member.name, "joinedAt": member.joined_at}
            for member in info.members
        ],
        "messageCount": info.message_count,
        "firstSeq": info.first_seq,
        "lastSeq": info.last_seq,
        "unread": info.unread,
    }
    if info.last_activity is not None:
        body["lastActivity"] = info.last_activity
    return body


def _print_json(data: dict[str, Any]) -> None:
    """One line; everything but ASCII is escaped, so that it can act on no terminal."""
    click.echo(json.dumps(data))
