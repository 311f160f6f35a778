"""``fleet send``: a message to a seat of a live team, delivered for certain or refused with a reason."""

from __future__ import annotations

import sys

import click

__all__ = ["command"]


@click.command("send", epilog="Example: fleet send critic 'Please look at the retry logic.'")
@click.argument("seat")
@click.argument("text", required=False)
@click.option("--team", metavar="NAME", help="The team, if several have a seat of that name.")
@click.option("--file", "path", metavar="PATH", help="Send what stands in this file; - reads standard input.")
@click.option("--timeout", metavar="SPAN", help="How long the program may take to show it. [default: 10s]")
@click.option("-L", "--socket-name", metavar="NAME", help="The tmux server the team lives on.")
def command(
    seat: str,
    text: str | None,
    team: str | None,
    path: str | None,
    timeout: str | None,
    socket_name: str | None,
) -> None:
    """Bring TEXT to the program in SEAT's pane as one message, and press Enter.

    A TEXT that begins with a dash goes after --; `-` reads standard input. Exit code 0 means that the program has
    shown the text, or something of it, and then read all of it; anything else is 1 with the reason.
    """
    from fleet.live.delivery import WAIT_SECONDS, checked, deliver
    from fleet.live.teams import find_seat
    from roundtable.home import Home

    message = checked(_text(text, path))
    seconds = _seconds(timeout) or WAIT_SECONDS
    found, pane = find_seat(Home.from_environment(), seat, team, socket_name=socket_name)
    receipt = deliver(found.tmux, pane, message, folder=found.folder, wait_seconds=seconds)
    note = f", as {receipt.lines} lines: its program reads by lines" if receipt.lines > 1 else ""
    click.echo(f"delivered to {pane.title} of {found.name} ({receipt.evidence.value}{note})")


def _text(text: str | None, path: str | None) -> str:
    """The text of the command line, of a file or of standard input: UTF-8, whatever the locale says."""
    import os
    from pathlib import Path

    from fleet.errors import UsageProblem

    if (text is None) == (path is None):
        raise UsageProblem("give a TEXT or --file, one of them")
    where = "the text"
    try:
        if path not in {None, "-"}:
            where = str(path)
            return Path(str(path)).read_bytes().decode()
        if path == "-" or text == "-":
            where = "standard input"
            return sys.stdin.buffer.read().decode() if sys.stdin else ""
        # Bytes that the locale's encoding does not have arrive as surrogates; they may be UTF-8 all the same.
        return os.fsencode(str(text)).decode() if _has_surrogate(str(text)) else str(text)
    except UnicodeError:
        raise UsageProblem(f"{where} is not UTF-8 text", hint="convert it first: iconv -t UTF-8") from None
    except OSError as problem:
        raise UsageProblem(f"cannot read {where}: {problem.strerror or problem}") from problem


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _seconds(timeout: str | None) -> float | None:
    from fleet.deadline import parse_duration
    from fleet.errors import UsageProblem

    if timeout is None:
        return None
    seconds = parse_duration(timeout)
    if seconds is None:
        raise UsageProblem(f'--timeout: "{timeout}" is not a span', hint="write 5s or 1m")
    return seconds
