"""A roles manifest: who sits in one room with which model, and the file's every problem with its position.

The keys are the reference's, all of them, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field

from fleet.blueprint.explain import check, in_order
from fleet.blueprint.load import path_from, text_file_problem
from fleet.blueprint.schema import Budgets, Name, StrictModel, Text
from fleet.errors import InvalidFile, Problem
from fleet.yaml import Document, read

__all__ = ["LoadedManifest", "Manifest", "Role", "is_manifest", "load_manifest", "validate_manifest"]


class Role(StrictModel):
    """One role: a model behind a name."""

    provider: Text
    model: Text
    room: Name | None = None
    cwd: Text | None = None
    worktree: Text = "active"
    brief: Text | None = None


class Manifest(StrictModel):
    """A whole manifest. The task names the terminal session, the room is where all roles meet."""

    model_config = ConfigDict(title="Roles manifest")

    task: Name
    room: Name
    roles: Annotated[Mapping[Name, Role], Field(min_length=1)]
    budgets: Budgets = Budgets()


@dataclass(frozen=True, slots=True)
class LoadedManifest:
    """A valid manifest and where it came from."""

    path: Path  #: as the user gave it
    manifest: Manifest
    folder: Path  #: absolute; briefs and working directories are relative to it
    positions: Document


def is_manifest(document: Document) -> bool:
    """Whether a document is meant as a manifest: by its keys, and where they do not tell by its file's name."""
    data = document.data if isinstance(document.data, dict) else {}
    if "teams" in data or "roles" in data:
        return "teams" not in data
    name = document.name.rpartition("/")[2]
    return name.startswith("roles.") or ".roles." in name


def load_manifest(path: Path) -> LoadedManifest:
    """Read one manifest and the names of its briefs.

    Raises:
        InvalidFile: with every problem at once, sorted by position.
    """
    return validate_manifest(read(path, what="manifest"), path)


def validate_manifest(document: Document, path: Path) -> LoadedManifest:
    """Do what `load_manifest` does with a document that was already read from ``path``."""
    folder = path.parent.absolute()
    manifest, problems = check(document, Manifest)
    problems = in_order((*document.problems, *problems, *_briefs(document, folder)))
    if manifest is None or problems:
        raise InvalidFile(problems)
    return LoadedManifest(path, manifest, folder, document)


def _briefs(document: Document, folder: Path) -> Iterator[Problem]:
    """Problems of brief files: an agent takes a path that it cannot read for the brief itself."""
    roles = document.data.get("roles") if isinstance(document.data, dict) else None
    for name, role in roles.items() if isinstance(roles, dict) else ():
        written = role.get("brief") if isinstance(role, dict) else None
        if isinstance(written, str) and written.strip() and "\x00" not in written:
            reason = text_file_problem(path_from(written, folder))
            if reason is not None:
                yield document.problem(("roles", name, "brief"), reason)
