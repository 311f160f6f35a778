"""A manifest or a blueprint -> the launches it asks for: who starts where, with which words and which texts.

Pure but for the briefs, which are read here. Equal input gives equal launches.

Not here: how they are written down (`plan`, `tmux`), and whether a program is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.agents.choose import PROVIDERS, Choice, choose, provider_of
from fleet.blueprint.load import path_from
from fleet.blueprint.seats import seats_of
from fleet.errors import InvalidFile
from fleet.roles.native import Text, argument_vector, native

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleet.blueprint.load import Loaded
    from fleet.blueprint.schema import Budgets, Team
    from fleet.blueprint.seats import Seat
    from fleet.roles.manifest import LoadedManifest
    from fleet.yaml import Document, KeyPath

__all__ = ["FanOut", "Launch", "Window", "from_blueprint", "from_manifest"]

#: A brief travels in one argument of a command; Linux allows 128 KiB for one, footer and quotes included.
_MAX_BRIEF_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Launch:
    """One seat and the command that fills it."""

    name: str  #: its name in the room, and on the screen
    room: str
    runtime: str
    reason: str  #: why this runtime
    model: str | None  #: for people: ``provider/model``
    cwd: Path | None  #: absolute; ``None`` is the folder the script is started in
    worktree: str
    argv: tuple[str | Text, ...]  #: ``()`` for a seat that only a run can fill: its pane follows the room
    notes: tuple[str, ...]  #: what such a pane says first
    footer: str
    brief: str  #: ``""`` for none
    brief_path: Path | None
    env: Mapping[str, str]
    color: str | None


@dataclass(frozen=True, slots=True)
class Window:
    """One terminal window."""

    name: str  #: unique in its session
    layout: str | None  #: of its panes; ``None`` for a single one
    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True)
class FanOut:
    """Everything one file asks for."""

    source: str  #: the file as the user gave it
    title: str  #: the task of a manifest, the name of a blueprint; names the session
    task: str  #: the whole task, may have lines
    digest: int  #: characters
    per_message: int  #: characters
    windows: tuple[Window, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches in the order of the file."""
        return tuple(launch for window in self.windows for launch in window.launches)


def from_manifest(
    loaded: LoadedManifest, *, binary: str | None, layout: str | None, task: str | None = None
) -> FanOut:
    """Give the launches of a manifest. ``binary`` starts that program with the reference's argument vector.

    With ``task`` the seats are told that one; the manifest's still names the deliberation.

    Raises:
        InvalidFile: a brief cannot be read, or is too long for a command line.
    """
    manifest, budgets = loaded.manifest, loaded.manifest.budgets
    launches = []
    for name, role in manifest.roles.items():
        room = role.room or manifest.room
        footer = _footer(name, f"the deliberation {manifest.task}", room, budgets)
        brief, path = _read_brief(loaded.positions, ("roles", name, "brief"), role.brief, loaded.folder)
        provider = role.provider.lower()
        runtime = binary or PROVIDERS.get(provider, "opencode")
        if binary:
            argv = argument_vector(binary, name, role.provider, role.model, brief, path, footer)
        else:
            opening = f"The task is {manifest.task}." if task is None else f"Task: {task}"
            prompt = _prompt(opening, name, room)
            argv = native(runtime, provider, role.model, brief, footer, prompt)
        launches.append(
            Launch(
                name=name,
                room=room,
                runtime=runtime,
                reason="--binary" if binary else f"provider {role.provider}",
                model=f"{role.provider}/{role.model}",
                cwd=path_from(role.cwd or ".", loaded.folder),
                worktree=role.worktree,
                argv=argv,
                notes=(),
                footer=footer,
                brief=brief,
                brief_path=path,
                env={},
                color=None,
            )
        )
    windows = _windows(manifest.task, layout or "windows", tuple(launches))
    return FanOut(
        str(loaded.path), manifest.task, task or manifest.task, budgets.digest, budgets.per_message, windows
    )


def from_blueprint(
    loaded: Loaded, *, binary: str | None, layout: str | None, task: str | None = None
) -> FanOut:
    """Give the launches of every team of a blueprint, each seat named as a run names it.

    ``task`` stands over the blueprint's own.

    Raises:
        InvalidFile: a brief cannot be read, or is too long for a command line.
    """
    blueprint, budgets = loaded.blueprint, loaded.blueprint.defaults.budgets
    windows: list[Window] = []
    for team_name in blueprint.order:
        team = blueprint.teams[team_name]
        launches = tuple(_of_seat(loaded, team_name, team, seat, binary, task) for seat in seats_of(team))
        windows += _windows(team_name, layout or team.layout, launches)
    if len(blueprint.teams) > 1:  # the same agent may sit in several teams
        windows = [
            window if window.layout else _renamed(window, f"{team}-{window.name}")
            for window, team in zip(windows, _teams_of(loaded, layout), strict=True)
        ]
    task = task or blueprint.task or blueprint.description
    return FanOut(str(loaded.path), blueprint.name, task, budgets.digest, budgets.per_message, tuple(windows))


def _of_seat(
    loaded: Loaded, team_name: str, team: Team, seat: Seat, binary: str | None, task: str | None
) -> Launch:
    blueprint, member = loaded.blueprint, seat.member
    agent = blueprint.agents.get(seat.agent)
    model = member.model or (agent.model if agent else None)
    # An agent with a `command` is a program, as a run has it too.
    own = (agent.runtime or ("command" if agent.command else None)) if agent else None
    choice = choose(member=member.runtime, agent=own, model=model)
    if binary:
        choice = Choice(binary, "--binary", is_named=True)
    room = blueprint.room(team_name)
    topic = team.topic or blueprint.description
    footer = _footer(seat.name, f"the team {team_name} of {blueprint.name}", room, blueprint.defaults.budgets)
    at = ("teams", team_name, "members", seat.index, "briefPath")
    brief, path = _read_brief(loaded.positions, at, member.brief_path, loaded.folder)
    brief = brief or member.brief or ""
    if agent and agent.prompt:
        brief = f"{agent.prompt}\n\n{brief}".strip()
        path = None
    env = {**(agent.env if agent else {}), **member.env}
    extra = (*(agent.args if agent else ()), *member.args)
    provider = provider_of(model)
    bare = model.partition("/")[2] if model and provider else model
    if binary:
        argv = argument_vector(binary, seat.name, provider, bare, brief, path, footer)
    else:
        opening = f"Topic: {topic}\nTask: {task or blueprint.task or topic}"
        argv = native(choice.runtime, provider, bare, brief, footer, _prompt(opening, seat.name, room), extra)
    cwd = member.cwd or (agent.cwd if agent else None)
    command = " ".join(agent.command) if agent and agent.command else ""
    return Launch(
        name=seat.name,
        room=room,
        runtime=choice.runtime,
        reason=choice.reason,
        model=model,
        cwd=path_from(cwd, loaded.folder) if cwd else None,
        worktree="active",
        argv=argv,
        notes=() if argv else _notes(seat.name, choice, command, loaded, team_name),
        footer=footer,
        brief=brief,
        brief_path=path,
        env=env,
        color=member.color or (agent.color if agent else None),
    )


def _notes(name: str, choice: Choice, command: str, loaded: Loaded, team: str) -> tuple[str, ...]:
    """What a pane says that cannot hold its seat's agent."""
    room = loaded.blueprint.room(team)
    match choice.runtime:
        case "command":
            how = f"Seat {name} is a program that a run starts once per turn: {command or '(no command)'}"
        case "human":
            how = f"Seat {name} is yours. Speak with: roundtable post {room} TEXT --as {name} --create"
        case _ if not choice.is_named:
            how = (
                f"Seat {name} names no runtime. Give it one with `runtime:`; a run fills it with a rehearsal."
            )
        case other:
            how = f"Seat {name} ({other}) has no screen of its own; a run fills it."
    notes = [how, f"Start the run in another window: fleet run {loaded.path}"]
    if loaded.blueprint.teams[team].room is None:
        notes.append(f"A run talks in a room of its own, #{room}-ID.")
    return (*notes, f"Here follows #{room}, as soon as somebody speaks in it.")


def _footer(name: str, where: str, room: str, budgets: Budgets) -> str:
    """The four lines every role is told, whatever fills it."""
    return (
        f"You are {name}, one role of {where}.\n"
        f"Work in the room #{room} under exactly the name {name}. "
        f"To say something run: roundtable post {room} TEXT --as {name} --create\n"
        "Post conclusions, not transcripts. Before every major decision read what is new: "
        f"roundtable digest {room} --as {name} "
        f"--budget {budgets.digest} --per-message {budgets.per_message}\n"
        f"One digest is at most {budgets.digest} characters and shows at most {budgets.per_message} "
        "characters of a message; what was cut can be fetched."
    )


def _prompt(opening: str, name: str, room: str) -> str:
    """The first words of a session that is started for a role."""
    return (
        f"{opening}\nFirst read the room (roundtable digest {room} --as {name}; if there is none yet, "
        "your first post makes it), then post your opening position."
    )


def _windows(name: str, layout: str, launches: tuple[Launch, ...]) -> tuple[Window, ...]:
    if layout == "windows":
        return tuple(Window(launch.name, None, (launch,)) for launch in launches)
    return (Window(name, layout, launches),)


def _teams_of(loaded: Loaded, layout: str | None) -> list[str]:
    """For each window of a blueprint of several teams: its team."""
    teams = []
    for name in loaded.blueprint.order:
        team = loaded.blueprint.teams[name]
        teams += [name] * (team.size if (layout or team.layout) == "windows" else 1)
    return teams


def _renamed(window: Window, name: str) -> Window:
    return Window(name, window.layout, window.launches)


def _read_brief(
    document: Document, key: KeyPath, written: str | None, folder: Path
) -> tuple[str, Path | None]:
    """The text of a brief and where it lies; ``("", None)`` if there is none."""
    if written is None:
        return "", None
    path = path_from(written, folder)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFile((document.problem(key, f"not readable: {path} ({error.strerror})"),)) from error
    reason = None
    if len(content) > _MAX_BRIEF_BYTES:
        reason = f"{path} has {len(content)} bytes; a brief travels on a command line of at most {_MAX_BRIEF_BYTES}"
    elif b"\x00" in content:
        reason = f"{path} is a binary file"
    if reason is not None:
        raise InvalidFile((document.problem(key, reason),))
    return content.decode("utf-8", errors="replace"), path
