"""``roundtable memory``: ask, and for the writer fill and tend, the memory from a shell.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from ..acting import acting_role
from ..errors import RoundtableError
from ..home import Home
from .place import Place

if TYPE_CHECKING:
    from .actions import Memory

__all__ = ["memory_command"]

_name = click.option("--as", "name", metavar="NAME", help="Who acts; else FLEET_SEAT, else the login name.")
_json = click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")


@click.group("memory")
def memory_command() -> None:
    """Ask, and for the writer fill and tend, the durable memory."""


@memory_command.command("query")
@click.argument("question")
@click.option("--max-chars", type=click.IntRange(min=1), help="Size of the answer. [default: 2000]")
@_name
@_json
def query_command(question: str, max_chars: int | None, name: str | None, is_json: bool) -> None:
    """Read the passages that match QUESTION, with their pages and dates."""

    async def act(memory: Memory) -> None:
        found = await memory.ask(question, max_chars)
        if is_json:
            _print_json(
                {
                    "question": question,
                    "text": found.text,
                    "total": found.total,
                    "passages": [
                        {
                            "path": passage.path,
                            "kind": passage.kind or None,
                            "who": passage.who or None,
                            "at": passage.at,
                            "source": passage.source or None,
                            "moreSources": passage.more_sources,
                            "text": passage.text,
                        }
                        for passage in found.shown
                    ],
                }
            )
        else:
            click.echo(found.text)

    _with_memory(name, act)


@memory_command.command("ingest")
@click.argument("source")
@_name
def ingest_command(source: str, name: str | None) -> None:
    """Put what the file SOURCE, a path like raw/design.txt, says into pages; for the writer role."""

    async def act(memory: Memory) -> None:
        click.echo(await memory.perform("ingest", source))

    _with_memory(name, act)


@memory_command.command("gardener")
@_name
def gardener_command(name: str | None) -> None:
    """Merge duplicate facts and link pages of one topic; for the writer role."""

    async def act(memory: Memory) -> None:
        click.echo(await memory.perform("gardener"))

    _with_memory(name, act)


@memory_command.command("doctor")
@_name
@_json
def doctor_command(name: str | None, is_json: bool) -> None:
    """Look what is where, in what state, and what to do about each problem."""

    async def act(memory: Memory) -> None:
        report = await memory.examine()
        if is_json:
            place = memory.place
            _print_json(
                {
                    "folder": str(place.folder),
                    "writer": place.writer,
                    "command": list(place.command) if place.command is not None else None,
                    "text": report.text(),
                    "problems": [{"problem": what, "remedy": remedy} for what, remedy in report.problems],
                    **(report.numbers or {}),
                }
            )
        else:
            click.echo(report.text())

    _with_memory(name, act)


def _with_memory(name: str | None, act: Callable[[Memory], Awaitable[None]]) -> None:
    """Run ``act``; told to stop, it ends an external program first and then this one."""
    import anyio

    from .actions import Memory

    place = Place.from_environment(Home.from_environment())
    memory = Memory(place, acting_role(name, writer=place.writer))
    stopped_by: list[int] = []
    problems: list[RoundtableError] = []

    async def run() -> None:
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
                    async for number in signals:
                        stopped_by.append(number)
                        tasks.cancel_scope.cancel()
                        return

            tasks.start_soon(listen)
            try:
                await act(memory)
            except RoundtableError as problem:  # told as it is, not as one of a group
                problems.append(problem)
            tasks.cancel_scope.cancel()

    anyio.run(run)
    if stopped_by:
        sys.exit(128 + stopped_by[0])
    for problem in problems:
        raise problem


def _print_json(data: dict[str, object]) -> None:
    """One line; everything but ASCII is escaped, so that it can act on no terminal."""
    click.echo(json.dumps(data))
