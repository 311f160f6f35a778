"""What a file that came with a project could do, and whether the user has seen it and said yes.

A blueprint or an agent that is found by name in a project was written by whoever wrote the project. If it could act
(a command, arguments, an environment, MCP servers, hooks, approvals given away, a file from elsewhere in a prompt), the
user is shown what and asked once; the yes holds for that path with that content and for nothing else. A path on a
command line is trusted as given.

Not here: the asking (`fleet.cli.trust`).
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from fleet.agents.find import AgentCatalogue
from fleet.blueprint.beside import path_from
from fleet.blueprint.find import Found
from fleet.blueprint.load import Loaded
from fleet.blueprint.schema import AgentDefinition, Member, Team
from fleet.blueprint.starred import starred, starred_variables, starred_words
from fleet.errors import InvalidFile, Problem, StorageFailed
from fleet.yaml import printable

__all__ = ["Claim", "TrustStore", "Trusted", "acts_of_agent", "acts_of_blueprint", "claims"]

#: Entries kept; the oldest go first. A file that went is asked about once more.
_MAX_ENTRIES = 1000
#: A trust file is far below it.
_MAX_BYTES = 4 << 20
#: Modes of Claude Code that let an agent change files or run programs unasked.
_UNASKED = frozenset({"acceptEdits", "bypassPermissions", "auto", "dontAsk"})
#: Permission bits of others: whoever can write the file can trust in the user's name.
_OTHERS_WRITE = 0o022
#: Characters of one act; a longer one is in the file.
_MAX_ACT = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """One file that could act."""

    path: Path  #: absolute, links resolved
    shown: str  #: as people would write it here
    fingerprint: str  #: SHA-256 of its bytes, in hexadecimal
    acts: tuple[str, ...]  #: what it could do, one line each, without secrets


@dataclass(frozen=True, slots=True)
class Trusted:
    """One yes."""

    path: Path
    fingerprint: str
    since: str  #: ISO 8601, UTC


def claims(found: Found, loaded: Loaded, agents: AgentCatalogue, *, shown: str) -> tuple[Claim, ...]:
    """The files that a run of this blueprint would need trust in: itself, and agents its members name.

    ``loaded`` has its agents already; ``shown`` is how people call the blueprint's path.
    """
    needed: list[Claim] = []
    if found.scope.is_project:
        acts = tuple(acts_of_blueprint(loaded))
        if acts:
            fingerprint = sha256(loaded.positions.content).hexdigest()
            needed.append(Claim(found.path.resolve(), printable(shown), fingerprint, acts))
    for name in loaded.agent_documents:
        agent = agents.get(name)
        if agent is None or agent.file is None or not agent.scope.is_project:
            continue
        acts = tuple(acts_of_agent(agent.file.definition))
        if acts:
            needed.append(Claim(agent.path.resolve(), agent.shown, agent.file.fingerprint, acts))
    return tuple(needed)


def acts_of_blueprint(loaded: Loaded) -> Iterator[str]:
    """What the file itself could do, agents from other files left out."""
    blueprint = loaded.blueprint
    for name, agent in blueprint.agents.items():
        if name not in loaded.agent_documents:
            yield from (_line(f"agent {name}: {act}") for act in acts_of_agent(agent))
    for name, team in blueprint.teams.items():
        yield from (_line(f"team {name}: {act}") for act in _acts_of_team(team, loaded.folder))


def acts_of_agent(agent: AgentDefinition) -> Iterator[str]:
    """What an agent could do beyond talking."""
    if agent.command:
        yield _line(f"runs {shlex.join(starred_words(agent.command))}")
    yield from _common(agent.args, agent.env, agent.approvals)
    if agent.permission_mode in _UNASKED:
        yield f"permissionMode: {agent.permission_mode}"
    if agent.mcp_servers:
        yield _line(f"starts MCP servers: {_named(agent.mcp_servers)}")
    if agent.hooks:
        yield _line(f"runs hooks: {_named(agent.hooks)}")


def _acts_of_team(team: Team, folder: Path) -> Iterator[str]:
    yield from _common((), {}, team.approvals)
    for member in team.members:
        yield from (f"member {member.name or member.agent}: {act}" for act in _acts_of_member(member, folder))


def _acts_of_member(member: Member, folder: Path) -> Iterator[str]:
    yield from _common(member.args, member.env, member.approvals)
    if member.brief_path is not None:
        path = path_from(member.brief_path, folder)
        # Named folders lie two levels below the project: `.fleet/blueprints`, `.orphus/fleets`.
        if not path.resolve().is_relative_to(folder.parent.parent.resolve()):
            yield f"reads {path}, which is not the project's, into a prompt"


def _common(args: tuple[str, ...], env: Mapping[str, str], approvals: str | None) -> Iterator[str]:
    if args:
        yield _line(f"adds arguments {shlex.join(starred_words(args))}")
    if env:
        yield _line(f"sets {', '.join(f'{name}={value}' for name, value in starred_variables(env).items())}")
    if approvals == "allow":
        yield "approvals: allow"


def _named(value: object) -> str:
    """Names, each with what would run, as far as one line shows it."""
    shown = starred(value)
    if isinstance(shown, dict):
        return ", ".join(f"{name} {json.dumps(inner, ensure_ascii=False)}" for name, inner in shown.items())
    return json.dumps(shown, ensure_ascii=False)


def _line(text: str) -> str:
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _MAX_ACT else line[: _MAX_ACT - 1] + "…"


class TrustStore:
    """The user's ``trust.json``. Several processes may use it at once."""

    def __init__(self, home: Path) -> None:
        self.path = home / "trust.json"

    def lacks(self, needed: Iterable[Claim]) -> tuple[Claim, ...]:
        """Those of ``needed`` that nobody has said yes to as they are now.

        Raises:
            InvalidFile: the file is not what it should be.
        """
        known = {(entry.path, entry.fingerprint) for entry in self.entries()}
        return tuple(claim for claim in needed if (claim.path, claim.fingerprint) not in known)

    def entries(self) -> tuple[Trusted, ...]:
        """Every yes, the oldest first.

        Raises:
            InvalidFile: the file is not what it should be, or others may write it.
        """
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                content = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._invalid(f"not readable: {error.strerror or error}") from error
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
            mode = stat.S_IMODE(status.st_mode)
            raise self._invalid(f"others may write it (owner {status.st_uid}, mode {mode:04o})")
        try:
            data = json.loads(content)
            return tuple(Trusted(Path(e["path"]), str(e["sha256"]), str(e["since"])) for e in data["trusted"])
        except (ValueError, TypeError, KeyError) as error:
            raise self._invalid("no JSON of the form it was written in") from error

    def remember(self, needed: Iterable[Claim], *, now: str) -> None:
        """Note a yes to each, at ``now`` (ISO 8601, UTC).

        Raises:
            InvalidFile: the file is not what it should be.
            StorageFailed: it cannot be written.
        """
        fresh = [Trusted(claim.path, claim.fingerprint, now) for claim in needed]
        self._change(lambda old: [*(e for e in old if _key(e) not in set(map(_key, fresh))), *fresh])

    def forget(self, paths: Iterable[Path]) -> int:
        """Take back every yes to these paths; how many there were."""
        gone = set(paths)
        before = len(self.entries())
        self._change(lambda old: [entry for entry in old if entry.path not in gone])
        return before - len(self.entries())

    def _change(self, change: Any) -> None:
        """Read, change and replace the file under a lock."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)  # held for as long as one small file takes
                self._write(change(list(self.entries()))[-_MAX_ENTRIES:])
            finally:
                os.close(lock)
        except OSError as error:
            hint = "make the folder writable, or name the blueprint by its path"
            raise StorageFailed(self.path, error.strerror or str(error), hint=hint) from error

    def _write(self, entries: list[Trusted]) -> None:
        listed = [{"path": str(e.path), "sha256": e.fingerprint, "since": e.since} for e in entries]
        text = json.dumps({"version": 1, "trusted": listed}, indent=1, ensure_ascii=False)
        # The temporary file has mode 0600 from the start.
        descriptor, name = tempfile.mkstemp(prefix=".trust-", dir=self.path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)  # noqa: PTH105 - it is a name, from mkstemp
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _invalid(self, text: str) -> InvalidFile:
        hint = "set it right or remove it; then what it held is asked about once more"
        return InvalidFile((Problem(str(self.path), 1, 1, "", text),), hint=hint)


def _key(entry: Trusted) -> tuple[Path, str]:
    return entry.path, entry.fingerprint
