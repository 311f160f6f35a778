"""Skills by name: a folder with a ``SKILL.md``, which an agent reads when it needs it.

A skill is told by its path and its one-line description; its text never enters a prompt. Looked through in this
order: the project's ``.fleet/skills``, ``.agents/skills`` and ``.claude/skills``, the user's ``skills``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.agents.front_matter import read_markdown
from fleet.errors import InvalidFile, Problem

if TYPE_CHECKING:
    from fleet.blueprint.load import Loaded
    from fleet.blueprint.places import Places
    from fleet.blueprint.schema import AgentDefinition, Member, Team
    from fleet.yaml import KeyPath

__all__ = ["Skill", "find_skills", "skill_names", "skills_text"]

#: What a folder may be called; a name with a slash would lead elsewhere.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PROJECT = ((".fleet", "skills"), (".agents", "skills"), (".claude", "skills"))
_FILE = "SKILL.md"
#: Characters of a description in a prompt.
_MAX_DESCRIPTION = 200


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill that is there."""

    name: str
    path: Path  #: of its ``SKILL.md``, absolute
    description: str  #: one line of at most 200 characters; ``""`` for none


def skills_text(skills: Iterable[Skill]) -> str:
    """What a prompt says of skills, each on a line; ``""`` for none."""
    lines = [
        f"- {skill.name}: {skill.path}{f' ({skill.description})' if skill.description else ''}"
        for skill in skills
    ]
    return "\n".join(["Read the file of a skill before you do what it is for:", *lines]) if lines else ""


def skill_names(team: Team, member: Member, agent: AgentDefinition | None) -> tuple[str, ...]:
    """What one seat may use: the team's and the member's, each once; where neither says anything, the agent's own."""
    written = (*team.skills, *member.skills)
    if not written and agent is not None:
        written = (*agent.skills, *((agent.skill,) if agent.skill else ()))
    return tuple(dict.fromkeys(written))


def find_skills(loaded: Loaded, places: Places) -> tuple[Mapping[str, Skill], tuple[Problem, ...]]:
    """The skills that a blueprint's seats name, and one problem per place that names one that is not there."""
    folders = [folder for parts in _PROJECT for folder in places.of_project(*parts)]
    folders.append(places.of_user("skills"))
    found: dict[str, Skill] = {}
    missing: list[Problem] = []
    for key, name in _named(loaded):
        if name in found:
            continue
        skill = _find(name, folders)
        if skill is not None:
            found[name] = skill
            continue
        looked_in = ", ".join(f"{places.shown(folder)}/" for folder in folders)
        text = f"no skill {name[:80]!r}: looked for {_FILE} in a folder of that name in {looked_in}"
        missing.append(loaded.problem(key, text))
    return found, tuple(missing)


def _named(loaded: Loaded) -> Iterator[tuple[KeyPath, str]]:
    """Every skill that is written and would be used, with its key."""
    blueprint = loaded.blueprint
    for team_name, team in blueprint.teams.items():
        for number, name in enumerate(team.skills):
            yield ("teams", team_name, "skills", number), name
        for index, member in enumerate(team.members):
            for number, name in enumerate(member.skills):
                yield ("teams", team_name, "members", index, "skills", number), name
            agent = blueprint.agents.get(member.agent)
            if agent is not None and not team.skills and not member.skills:
                for name in skill_names(team, member, agent):
                    yield ("agents", member.agent, "skills" if name in agent.skills else "skill"), name


def _find(name: str, folders: list[Path]) -> Skill | None:
    if _NAME.fullmatch(name) is None:
        return None
    for folder in folders:
        path = folder / name / _FILE
        try:
            if path.is_file():
                return Skill(name, path, _description(path))
        except OSError:  # a folder that may not be looked into has no skill for us
            continue
    return None


def _description(path: Path) -> str:
    """What the skill says of itself; a broken one says nothing and is named all the same."""
    try:
        front = read_markdown(path, shown=str(path))[0].front
    except InvalidFile:
        return ""
    data = front.data if front is not None else None
    text = data.get("description") if isinstance(data, dict) else None
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return line if len(line) <= _MAX_DESCRIPTION else line[: _MAX_DESCRIPTION - 1] + "…"
