"""A manifest or a blueprint -> the launches it asks for: who starts where, with which words and which texts.

Pure but for the briefs, which are read here. Equal input gives equal launches.

Not here: how they are written down (`plan`, `listing`, `sh`, `tmux`, `orca`), and whether a program is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleet.agents.choose import PROVIDERS, Choice, choose, provider_of
from fleet.blueprint.beside import path_from, text_of
from fleet.blueprint.wording import in_order
from fleet.errors import InvalidFile
from fleet.roles.native import (
    ATTACHABLE,
    MAX_BRIEF_BYTES,
    MAX_WORD_BYTES,
    Native,
    Seating,
    Text,
    argument_vector,
    native,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fleet.agents.skills import Skill
    from fleet.blueprint.load import Loaded
    from fleet.blueprint.schema import Budgets as BlueprintBudgets
    from fleet.blueprint.seats import Seat
    from fleet.errors import Problem
    from fleet.roles.manifest import Budgets, LoadedManifest
    from fleet.yaml import KeyPath

__all__ = ["FanOut", "Launch", "Window", "from_blueprint", "from_manifest"]


class Launch(NamedTuple):
    """One seat and the command that fills it."""

    name: str  #: its name in the room, and on the screen
    room: str
    runtime: str  #: or the program of ``--binary``
    reason: str  #: why this runtime
    provider: str | None
    model: str | None  #: without the provider
    cwd: Path | None  #: absolute; ``None`` is the folder the script is started in
    is_cwd_explicit: bool  #: whether the file says it, or it is only the default
    worktree: str
    argv: tuple[str | Text, ...]  #: ``()`` for a seat that only a run can fill: its pane follows the room
    is_native: bool  #: whether that is the runtime's own command line, or the reference's for ``--binary``
    is_attached: bool  #: whether the program gets the tools of the room; if not it has the shell commands
    settings: Mapping[str, str]  #: variables that attach the room; none is a secret
    notes: tuple[str, ...]  #: what a pane without an agent says first
    footer: str
    brief: str  #: ``""`` for none
    brief_path: Path | None
    env: Mapping[str, str]  #: the member's own variables, which may be secrets
    color: str | None

    def __repr__(self) -> str:
        return f"<launch of {self.name} in #{self.room}>"

    @property
    def words(self) -> tuple[str, ...]:
        """The argv with its texts in full."""
        return tuple(word.text if isinstance(word, Text) else word for word in self.argv)

    @property
    def following(self) -> tuple[str, ...]:
        """What follows the room where no agent sits."""
        return ("roundtable", "tail", "--wait", self.room)

    @property
    def full_model(self) -> str | None:
        """``provider/model`` as far as either is known."""
        return "/".join(part for part in (self.provider, self.model) if part) or None


class Window(NamedTuple):
    """One terminal window."""

    name: str  #: unique in its session
    layout: str | None  #: of its panes; ``None`` for a single one
    launches: tuple[Launch, ...]


class FanOut(NamedTuple):
    """Everything one file asks for."""

    source: str  #: the file as the user gave it
    title: str  #: the task of a manifest, the name of a blueprint; names the session
    task: str  #: the whole task, may have lines
    room: str  #: of the manifest, or of the blueprint's first team
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
        InvalidFile: a brief that could be read when the manifest was checked cannot be now.
    """
    manifest, budgets = loaded.manifest, loaded.manifest.budgets
    texts = _Texts(loaded.folder)
    launches = []
    for name, role in manifest.roles.items():
        room = role.room or manifest.room
        provider = role.provider.lower()
        runtime = binary or PROVIDERS.get(provider, "opencode")
        is_attached = binary is None and runtime in ATTACHABLE
        footer = _footer(name, f"the deliberation {manifest.task}", room, budgets, is_attached=is_attached)
        brief, path = texts.read(("roles", name, "brief"), role.brief)
        if binary:
            argv = argument_vector(binary, name, role.provider, role.model, brief, path, footer)
            started = Native(argv)
        else:
            opening = f"The task is {manifest.task}." if task is None else f"Task: {task}"
            prompt = _prompt(opening, name, room, is_attached=is_attached)
            started = native(runtime, provider, role.model, Seating(name, room, brief, footer, prompt))
        texts.measure(("roles", name), started)
        launches.append(
            Launch(
                name=name,
                room=room,
                runtime=runtime,
                reason="--binary" if binary else f"provider {role.provider}",
                provider=role.provider,
                model=role.model,
                cwd=path_from(role.cwd or ".", loaded.folder),
                is_cwd_explicit=role.cwd is not None,
                worktree=role.worktree,
                argv=started.argv,
                is_native=binary is None,
                is_attached=is_attached,
                settings=started.env,
                notes=(),
                footer=footer,
                brief=brief,
                brief_path=path,
                env={},
                color=None,
            )
        )
    texts.check(loaded.positions.problem)
    return FanOut(
        source=str(loaded.path),
        title=manifest.task,
        task=task or manifest.task,
        room=manifest.room,
        digest=budgets.digest,
        per_message=budgets.per_message,
        windows=_windows(manifest.task, layout or "windows", tuple(launches)),
    )


def from_blueprint(
    loaded: Loaded,
    *,
    binary: str | None,
    layout: str | None,
    task: str | None = None,
    skills: Mapping[str, Skill] | None = None,
) -> FanOut:
    """Give the launches of every team of a blueprint, each seat named as a run names it.

    ``task`` stands over the blueprint's own; ``skills`` are those that were found.

    Raises:
        InvalidFile: briefs that cannot be read, or are too long for a command line; all of them.
    """
    blueprint = loaded.blueprint
    task = task or blueprint.task
    texts = _Texts(loaded.folder)
    windows: list[Window] = []
    for team_name in blueprint.order:
        team = blueprint.teams[team_name]
        launches = _of_team(loaded, team_name, texts, binary, task, skills or {})
        windows += _windows(team_name, layout or team.layout, launches)
    texts.check(loaded.problem)
    if len(blueprint.teams) > 1:  # the same agent may sit in several teams
        windows = [
            window if window.layout else _renamed(window, f"{team}-{window.name}")
            for window, team in zip(windows, _teams_of(loaded, layout), strict=True)
        ]
    return FanOut(
        source=str(loaded.path),
        title=blueprint.name,
        task=task or blueprint.description,
        room=blueprint.room(blueprint.order[0]),
        digest=blueprint.defaults.budgets.digest,
        per_message=blueprint.defaults.budgets.per_message,
        windows=tuple(windows),
    )


def _of_team(
    loaded: Loaded,
    team: str,
    texts: _Texts,
    binary: str | None,
    task: str | None,
    skills: Mapping[str, Skill],
) -> tuple[Launch, ...]:
    from fleet.blueprint.seats import seats_of  # a manifest should not pay for it

    seats = seats_of(loaded.blueprint.teams[team])
    return tuple(_of_seat(loaded, team, seat, texts, binary, task, skills) for seat in seats)


def _of_seat(
    loaded: Loaded,
    team_name: str,
    seat: Seat,
    texts: _Texts,
    binary: str | None,
    task: str | None,
    skills: Mapping[str, Skill],
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
    topic = blueprint.teams[team_name].topic or blueprint.description
    is_attached = binary is None and choice.runtime in ATTACHABLE
    where = f"the team {team_name} of {blueprint.name}"
    footer = _footer(seat.name, where, room, blueprint.defaults.budgets, is_attached=is_attached)
    brief, path = texts.read(("teams", team_name, "members", seat.index, "briefPath"), member.brief_path)
    brief = brief or member.brief or ""
    if agent and agent.prompt:
        brief = f"{agent.prompt}\n\n{brief}".strip()
        path = None
    if skills:
        from fleet.agents.skills import skill_names, skills_text  # a manifest should not pay for it

        names = skill_names(blueprint.teams[team_name], member, agent)
        told = skills_text(skills[name] for name in names if name in skills)
        brief, path = (f"{brief}\n\n{told}".strip(), None) if told else (brief, path)
    provider = provider_of(model)
    bare = model.partition("/")[2] if model and provider else model
    if binary:
        started = Native(argument_vector(binary, seat.name, provider, bare, brief, path, footer))
    else:
        opening = f"Topic: {topic}\nTask: {task or topic}"
        prompt = _prompt(opening, seat.name, room, is_attached=is_attached)
        extra = (*(agent.args if agent else ()), *member.args)
        seating = Seating(seat.name, room, brief, footer, prompt)
        started = native(choice.runtime, provider, bare, seating, extra)
    texts.measure(("teams", team_name, "members", seat.index), started)
    cwd = member.cwd or (agent.cwd if agent else None)
    command = " ".join(agent.command) if agent and agent.command else ""
    return Launch(
        name=seat.name,
        room=room,
        runtime=choice.runtime,
        reason=choice.reason,
        provider=provider,
        model=bare,
        cwd=path_from(cwd, loaded.folder) if cwd else None,
        is_cwd_explicit=cwd is not None,
        worktree="active",
        argv=started.argv,
        is_native=binary is None,
        is_attached=is_attached,
        settings=started.env,
        notes=() if started.argv else _notes(seat.name, choice, command, loaded, team_name),
        footer=footer,
        brief=brief,
        brief_path=path,
        env={**(agent.env if agent else {}), **member.env},
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


def _footer(
    name: str, where: str, room: str, budgets: Budgets | BlueprintBudgets, *, is_attached: bool
) -> str:
    """The four lines every role is told, whatever fills it."""
    post = f"roundtable post {room} TEXT --as {name} --create"
    read = (
        f"roundtable digest {room} --as {name} --budget {budgets.digest} --per-message {budgets.per_message}"
    )
    if is_attached:
        speaking = f"you speak with the tool roundtable_post. Where you do not see it, run: {post}"
        reading = f"roundtable_digest with budget {budgets.digest} and perMessage {budgets.per_message}, or run: {read}"
    else:
        speaking, reading = f"to say something run: {post}", read
    return (
        f"You are {name}, one role of {where}.\n"
        f"Join the room #{room} under exactly the name {name}; {speaking}\n"
        f"Post conclusions, not transcripts. Before every major decision read what is new: {reading}\n"
        f"One digest is at most {budgets.digest} characters and shows at most {budgets.per_message} "
        "characters of a message; what was cut can be fetched."
    )


def _prompt(opening: str, name: str, room: str, *, is_attached: bool) -> str:
    """The first words of a session that is started for a role."""
    command = f"roundtable digest {room} --as {name}"
    if is_attached:
        how = f"roundtable_digest, or where you do not see that tool: {command}"
    else:
        how = f"{command}; if there is none yet, your first post makes it"
    return f"{opening}\nFirst read the room ({how}), then post your opening position."


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


class _Texts:
    """Reads briefs and keeps what is wrong with texts, so that all of it is told at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wrong: dict[KeyPath, str] = {}

    def read(self, key: KeyPath, written: str | None) -> tuple[str, Path | None]:
        """The text of the brief at ``key`` and where it lies; ``("", None)`` if there is none."""
        if written is None:
            return "", None
        path = path_from(written, self._folder)
        text, reason = text_of(path, max_bytes=MAX_BRIEF_BYTES)
        if reason is not None:
            self._wrong[key] = reason
        return text, path

    def measure(self, key: KeyPath, started: Native) -> None:
        """Note at ``key`` if one text of an argv is longer than a command line takes."""
        size = max((len(word.text.encode()) for word in started.argv if isinstance(word, Text)), default=0)
        if size > MAX_WORD_BYTES:
            told = f"its texts come to {size} bytes in one argument, and a command takes {MAX_WORD_BYTES}"
            self._wrong[key] = f"{told}; move some into a file that it reads"

    def check(self, problem: Callable[[KeyPath, str], Problem]) -> None:
        """Raise `InvalidFile` if something was; ``problem`` knows where the keys stand."""
        if self._wrong:
            raise InvalidFile(in_order(problem(key, reason) for key, reason in self._wrong.items()))
