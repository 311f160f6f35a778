"""``fleet init``: a first blueprint, from questions on a terminal or from flags."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from fleet.agents.find import AgentCatalogue
    from fleet.blueprint.places import Places
    from fleet.blueprint.written import Entry
    from fleet.settings import Settings

__all__ = ["Wish", "blueprint_text", "command"]

#: Who sits in a team of which nobody was named.
_DEFAULT_AGENTS = ("analyst", "pattern-finder", "critic")
#: Times one question is asked before the interview ends.
_MAX_TRIES = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the blueprint is to say."""

    name: str
    description: str
    members: tuple[tuple[str, str | None], ...]  #: agent and brief
    task: str | None = None
    topic: str | None = None
    runtime: str | None = None  #: of every member; ``None`` leaves it to the run
    rounds: int = 2
    deadline: str = "10m"


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet init queue --member analyst --member 'critic=Find what breaks first.' --rounds 2",
)
@click.argument("name", required=False)
@click.option("--description", metavar="TEXT", help="One line: what the team is for.")
@click.option("--task", metavar="TEXT", help="The task when a run is given none.")
@click.option("--topic", metavar="TEXT", help="One line the team is reminded of.")
@click.option("--member", "members", metavar="AGENT[=BRIEF]", multiple=True, help="A seat; once per seat.")
@click.option(
    "--runtime", metavar="NAME", help="Fill every seat with it: an agent CLI of this machine, or rehearsal."
)
@click.option("--rounds", type=click.IntRange(1, 10), help="Replies after the opening. [default: 2]")
@click.option("--deadline", metavar="SPAN", help="Time for the team. [default: 10m]")
@click.option("--output", metavar="FILE", help="Where to write. [default: .fleet/blueprints/NAME.yaml]")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(
    name: str | None,
    description: str | None,
    task: str | None,
    topic: str | None,
    members: tuple[str, ...],
    runtime: str | None,
    rounds: int | None,
    deadline: str | None,
    output: str | None,
    *,
    force: bool,
) -> None:
    """Write a blueprint of one team that deliberates.

    Without NAME, on a terminal, everything that no flag says is asked. With NAME the rest has defaults: three bundled
    agents. The file is checked before it is written, and an existing one is replaced only with --force.
    """
    from fleet.agents.find import read_agents
    from fleet.agents.present import present_clis
    from fleet.cli.opening import places_of, settings_here
    from fleet.errors import UsageProblem

    settings = settings_here()
    offered = [*present_clis(settings.environ), "rehearsal"]
    if runtime is not None and runtime not in offered:
        raise UsageProblem(
            f'--runtime: "{runtime}" is not on this machine', hint=f"there is: {', '.join(offered)}"
        )
    is_asked = name is None
    if is_asked and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageProblem(
            "a NAME is needed where nobody can be asked", hint="fleet init NAME; --help tells the rest"
        )
    wish = Wish(
        name=name or "",
        description=description or "",
        members=tuple(_member(word) for word in members),
        task=task,
        topic=topic,
        runtime=runtime,
        rounds=rounds or 2,
        deadline=deadline or "10m",
    )
    places = places_of(settings)
    if is_asked:
        given = {key for key, value in {"rounds": rounds, "deadline": deadline}.items() if value is not None}
        wish = _interview(wish, given, offered, read_agents(places), settings)
    wish = _with_defaults(wish)
    path = Path(output) if output is not None else Path(".fleet", "blueprints", f"{wish.name}.yaml")
    _write(path, wish, places, is_replacing=force)
    click.echo(str(path))
    _tell_next(path, wish, is_named=output is None)


def blueprint_text(wish: Wish, *, schema: str) -> str:
    """The file's text; ``schema`` is the path of the JSON Schema as the file calls it."""
    from fleet.blueprint.written import Entry, yaml_text

    members = [Entry(_seat(agent, brief, wish.runtime)) for agent, brief in wish.members]
    team: dict[str, Entry] = {"mode": Entry("deliberate")}
    if wish.topic:
        team["topic"] = Entry(wish.topic)
    team |= {
        "rounds": Entry(wish.rounds, "replies after the opening, 1 to 10"),
        "deadline": Entry(wish.deadline),
        "members": Entry(members),
    }
    data: dict[str, Entry] = {"name": Entry(wish.name), "description": Entry(wish.description)}
    if wish.task:
        data["task"] = Entry(wish.task, "when a run is given none")
    data["teams"] = Entry({"panel": Entry(team)})
    return f"# yaml-language-server: $schema={schema}\n{yaml_text(data)}"


def _seat(agent: str, brief: str | None, runtime: str | None) -> dict[str, Entry]:
    from fleet.blueprint.written import Entry

    seat = {"agent": Entry(agent)}
    if runtime:
        seat["runtime"] = Entry(runtime)
    if brief:
        seat["brief"] = Entry(brief)
    return seat


def _member(word: str) -> tuple[str, str | None]:
    agent, equals, brief = word.partition("=")
    return agent.strip(), brief.strip() or None if equals else None


def _with_defaults(wish: Wish) -> Wish:
    return replace(
        wish,
        description=wish.description or f"The {wish.name} team.",
        members=wish.members or tuple((agent, None) for agent in _DEFAULT_AGENTS),
    )


def _write(path: Path, wish: Wish, places: Places, *, is_replacing: bool) -> None:
    """Check the text, then write it and the schema it names.

    Raises:
        UsageProblem: the file is there already, cannot be written, or something asked for cannot be in a blueprint.
    """
    import os

    from fleet.blueprint.load import validate_blueprint
    from fleet.errors import InvalidFile, UsageProblem
    from fleet.yaml import parse

    text = blueprint_text(wish, schema=_schema_of(path, places))
    try:
        validate_blueprint(parse(text.encode("utf-8", "replace"), name=str(path)), path)
    except InvalidFile as error:
        said = "; ".join(f"{problem.key}: {problem.text}" for problem in error.problems)
        raise UsageProblem(f"no blueprint can be made of that: {said}") from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_schema(path, places)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_replacing else os.O_EXCL)
        with os.fdopen(os.open(path, flags, 0o644), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageProblem(
            f"{path} is there already", hint="replace it with --force, or use another name"
        ) from error
    except OSError as error:
        raise UsageProblem(f"cannot write {path}: {error.strerror or error}") from error


def _schema_file(places: Places) -> Path:
    return places.levels[0] / ".fleet" / "blueprint.schema.json"


def _schema_of(path: Path, places: Places) -> str:
    """How the file calls the schema: relative to itself."""
    import os

    return os.path.relpath(_schema_file(places), path.absolute().parent)


def _write_schema(path: Path, places: Places) -> None:
    """Put the schema where editors will look for it; one that is there is left alone."""
    from contextlib import suppress

    from fleet.cli.schema import schema_text

    schema = _schema_file(places)
    schema.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), schema.open("x", encoding="utf-8") as file:
        file.write(schema_text("blueprint"))


def _tell_next(path: Path, wish: Wish, *, is_named: bool) -> None:
    import shlex

    word = wish.name if is_named else str(path)
    runtime = "" if wish.runtime else " --runtime rehearsal"
    task = "" if wish.task else " 'YOUR QUESTION'"
    click.echo(f"try it: fleet run {shlex.quote(word)}{task}{runtime}", err=True)
    click.echo(f"see it: fleet show {shlex.quote(word)}   change it: {path}", err=True)


def _interview(
    wish: Wish, given: set[str], offered: list[str], agents: AgentCatalogue, settings: Settings
) -> Wish:
    """Ask for what no flag said."""
    from fleet.agents.choose import BUILT

    name = _ask("Name of the blueprint", settings.folder.name.lower().replace(" ", "-"), _name)
    description = wish.description or _ask("What is the team for, in one line", f"The {name} team.", _line)
    task = (
        wish.task or _ask("Task when a run is given none (empty: every run names its own)", "", _any) or None
    )
    members = wish.members
    if not members:
        _show_agents(agents)
        names = _ask("Members, with commas", ", ".join(_DEFAULT_AGENTS), _agent_names)
        members = tuple(
            (agent, _ask(f"  Brief for {agent} (empty: as the agent is)", "", _any) or None)
            for agent in names
        )
    runtime = wish.runtime
    if runtime is None:
        for other in offered:
            note = "" if other in BUILT else "  (for roles and fleet up; fleet run cannot use it yet)"
            click.echo(f"  {other}{note}", err=True)
        choose = _one_of([*offered, "none"])
        runtime = _ask("Runtime of every member (none: each run decides)", "none", choose)
        runtime = None if runtime == "none" else runtime
    rounds = wish.rounds if "rounds" in given else _ask("Replies after the opening, 1 to 10", "2", _rounds)
    deadline = wish.deadline if "deadline" in given else _ask("Time for the team", "10m", _span)
    return replace(
        wish,
        name=name,
        description=description,
        task=task,
        members=members,
        runtime=runtime,
        rounds=rounds,
        deadline=deadline,
    )


def _show_agents(agents: AgentCatalogue) -> None:
    from roundtable.harmless import harmless_line

    for found in agents.found:
        if found.file is not None and agents.get(found.name) is found:
            said = " ".join((found.file.definition.description or "").split())[:80]
            click.echo(harmless_line(f"  {found.name}: {said}"), err=True)


def _ask(question: str, default: str, read: Callable[[str], T]) -> T:
    """One question on the terminal until its answer can be used.

    Raises:
        click.Abort: the end of input.
        UsageProblem: no usable answer after a few tries.
    """
    from fleet.errors import UsageProblem

    for _ in range(_MAX_TRIES):
        click.echo(f"{question}{f' [{default}]' if default else ''}: ", err=True, nl=False)
        line = sys.stdin.readline()
        if not line:
            raise click.Abort
        try:
            return read(line.strip() or default)
        except ValueError as problem:
            click.echo(f"  {problem}", err=True)
    raise UsageProblem(f"no usable answer to: {question}")


def _any(text: str) -> str:
    return text


def _line(text: str) -> str:
    if not text.isprintable() or not text:
        raise ValueError("one line of text is needed")
    return text


def _name(text: str) -> str:
    import re

    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", text) is None:
        raise ValueError("letters, digits, - and _, at most 64, beginning with a letter or digit")
    return text


def _agent_names(text: str) -> list[str]:
    import re

    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name) is None:
            raise ValueError(f"{name!r} is no agent's name: letters, digits, . - and _, at most 60")
    if not 1 <= len(names) <= 50:
        raise ValueError("1 to 50 members")
    return names


def _one_of(allowed: list[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"one of: {', '.join(allowed)}")
        return text

    return read


def _rounds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:4]) <= 10:
        raise ValueError("a number from 1 to 10")
    return int(text)


def _span(text: str) -> str:
    from fleet.deadline import parse_duration

    if parse_duration(text) is None:
        raise ValueError("a span such as 90s, 10m or 1h30m")
    return text
