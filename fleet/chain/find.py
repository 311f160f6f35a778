"""Chains that have a name: the project's, then the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fleet.blueprint.places import Places, Scope
from fleet.errors import UsageProblem

__all__ = ["SUFFIXES", "FoundChain", "all_chains", "find_chain"]

#: Of two files of one name in one folder the first of these wins.
SUFFIXES = (".chain.yaml", ".chain.yml", ".chain.json", ".chain.md")

#: Below a project and below the user's folder.
_FOLDER = "chains"


@dataclass(frozen=True, slots=True)
class FoundChain:
    """One chain file. Nothing has been read of it."""

    name: str
    scope: Scope
    path: Path
    is_shadowed: bool = False  #: whether its name means another file


def find_chain(word: str, places: Places) -> FoundChain:
    """The path as given if something is there, else the first chain of that name.

    Raises:
        UsageProblem: neither, or a file whose name says no form of a chain.
    """
    path = Path(word)
    try:
        is_there = bool(word) and path.exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL in it: then it is no name either
        is_there = False
    if is_there:
        if path.is_file() and not path.name.endswith((".yaml", ".yml", ".json", ".md")):
            raise UsageProblem(f"{path}: a chain is a file ending in .yaml, .json or .md")
        return FoundChain(path.name.split(".chain.")[0], Scope.PATH, path)
    chains = [found for found in all_chains(places) if not found.is_shadowed]
    for found in chains:
        if found.name == word:
            return found
    names = ", ".join(found.name for found in chains) or "none"
    raise UsageProblem(
        f"no chain {word[:200]!r}: not a file, and no chain has that name", hint=f"chains: {names}"
    )


def all_chains(places: Places) -> Iterator[FoundChain]:
    """Every chain file of the project and of the user, nearest first."""
    seen: set[str] = set()
    folders = [(Scope.PROJECT, folder) for folder in places.of_project(".fleet", _FOLDER)]
    for scope, folder in [*folders, (Scope.USER, places.of_user(_FOLDER))]:
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        ordered = [(path, suffix) for suffix in SUFFIXES for path in files if path.name.endswith(suffix)]
        for path, suffix in ordered:
            name = path.name.removesuffix(suffix)
            if name and path.is_file():
                yield FoundChain(name, scope, path, is_shadowed=name in seen)
                seen.add(name)
