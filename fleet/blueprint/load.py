"""A file -> a `Blueprint` with its warnings, or every problem in it with its position.

Not here: what a blueprint may say (`schema`), where named ones live (`find`), and what this version cannot do
yet (`not_built`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.blueprint.beside import path_from, text_file_problem
from fleet.blueprint.explain import check, in_order
from fleet.blueprint.schema import Blueprint
from fleet.blueprint.variables import template_problems
from fleet.errors import InvalidFile, Problem
from fleet.yaml import Document, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.yaml import KeyPath

__all__ = ["Loaded", "brief_of", "load_blueprint", "path_from", "text_file_problem", "validate_blueprint"]

#: More live model sessions at once than this are warned about.
_MANY = 4


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid blueprint and where it came from."""

    path: Path  #: as the user gave it; problems begin with it
    blueprint: Blueprint
    warnings: tuple[Problem, ...]
    folder: Path  #: absolute; paths in the blueprint are relative to it
    positions: Document  #: where every key stands
    #: Of the agents in the blueprint those that came from files of their own, each with where its keys stand.
    agent_documents: Mapping[str, Document] = field(default_factory=dict)

    def problem(self, key: KeyPath, text: str) -> Problem:
        """Say ``text`` of a key, at its position in this file or in that of the agent it belongs to."""
        document = self.agent_documents.get(str(key[1])) if key[:1] == ("agents",) and len(key) > 1 else None
        return self.positions.problem(key, text) if document is None else document.problem(key[2:], text)


def load_blueprint(path: Path) -> Loaded:
    """Read one blueprint file and the names of the briefs it points to.

    Raises:
        InvalidFile: with every problem at once, sorted by position.
    """
    return validate_blueprint(read(path, what="blueprint"), path)


def validate_blueprint(document: Document, path: Path) -> Loaded:
    """Do what `load_blueprint` does with a document that was already read from ``path``."""
    folder = path.parent.absolute()
    blueprint, problems = check(document, Blueprint)
    problems = in_order(
        (*document.problems, *problems, *_briefs(document, folder), *template_problems(document))
    )
    if blueprint is None or problems:
        raise InvalidFile(problems)
    return Loaded(path, blueprint, in_order(_warnings(document, blueprint)), folder, document)


#: A brief is found like any other path.
brief_of = path_from


def _briefs(document: Document, folder: Path) -> Iterator[Problem]:
    """Problems of the files that briefs point to, found even where the rest is not valid."""
    teams = document.data.get("teams") if isinstance(document.data, dict) else None
    for name, team in teams.items() if isinstance(teams, dict) else ():
        members = team.get("members") if isinstance(team, dict) else None
        for index, member in enumerate(members if isinstance(members, list) else ()):
            written = member.get("briefPath") if isinstance(member, dict) else None
            if isinstance(written, str) and written.strip() and "\x00" not in written:
                reason = text_file_problem(path_from(written, folder))
                if reason is not None:
                    yield document.problem(("teams", name, "members", index, "briefPath"), reason)


def _warnings(document: Document, blueprint: Blueprint) -> Iterator[Problem]:
    """What is valid and probably not meant."""
    if "concurrency" in blueprint.defaults.model_fields_set and blueprint.defaults.concurrency > _MANY:
        yield document.problem(
            ("defaults", "concurrency"),
            f"{blueprint.defaults.concurrency} is above {_MANY}: every slot is a live model session",
        )
    for name, team in blueprint.teams.items():
        at = ("teams", name)
        if team.concurrency is not None and team.deliberates:
            yield document.problem(
                (*at, "concurrency"),
                "concurrency bounds dispatch only: all members of a deliberating team are seated at once",
            )
        if team.concurrency is not None and team.concurrency > _MANY:
            yield document.problem(
                (*at, "concurrency"),
                f"{team.concurrency} is above {_MANY}: every slot is a live model session",
            )
        if not team.deliberates:
            given = team.model_fields_set
            if "rounds" in given:
                yield document.problem(
                    (*at, "rounds"), "rounds has no effect: dispatch teams do not deliberate"
                )
            if "blocking" in given:
                yield document.problem(
                    (*at, "blocking"), "blocking has no effect: dispatch is always awaited"
                )
        for index, member in enumerate(team.members):
            if team.deliberates and member.tools is not None and "roundtable" not in member.tools:
                yield document.problem(
                    (*at, "members", index, "tools"),
                    "tools lacks roundtable: this member of a deliberating team could not speak in the room",
                )
    for one, other in combinations(blueprint.teams, 2):
        room = blueprint.room(one)
        if room == blueprint.room(other):
            where = other if blueprint.teams[other].room else one
            yield document.problem(
                ("teams", where, "room"),
                f'teams {one} and {other} share room "{room}" — their deliberations will merge',
            )
