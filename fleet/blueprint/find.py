"""A path or a name -> the blueprint file, and the list of all that have a name.

Looked through in this order: the project's ``.fleet/blueprints``, the user's ``blueprints``, what comes with Fleet,
the project's ``.orphus/fleets``. The first file of a name is meant by it and shadows the others.

Not here: what is in a file (`load`), and whether one that came with a project may act (`fleet.trust`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import fleet
from fleet.blueprint.places import Places, Scope
from fleet.errors import UsageProblem

__all__ = ["Found", "all_blueprints", "bundled", "find_blueprint", "look_up"]

#: Longest first, so that ``design.fleet.yaml`` is called ``design``; in one folder the first of these goes first.
_SUFFIXES = (".fleet.yaml", ".fleet.yml", ".yaml", ".yml")

#: Names told in a hint; the rest is counted.
_MAX_TOLD = 20


@dataclass(frozen=True, slots=True)
class Found:
    """One blueprint file. Nothing has been read of it."""

    name: str  #: the file's, without what marks it as a blueprint
    scope: Scope
    path: Path  #: as given on the command line; otherwise below one of the `Places`
    shadowed_by: Path | None = None  #: the file that its name means

    def as_named(self, places: Places) -> Found:
        """The same file as it is found by name, where a path on the command line named it."""
        here = self.path.absolute()
        return next((found for found in all_blueprints(places) if found.path == here), self)


def look_up(word: str, places: Places | None) -> Found:
    """The path as given if something is there, else the first blueprint of that name.

    Without ``places`` a name means a blueprint that comes with Fleet.

    Raises:
        UsageProblem: neither, with the names there are; or a folder that cannot be listed.
    """
    path = Path(word)
    try:
        if word and path.exists():
            return Found(_name(path) or path.name, Scope.PATH, path)
    except (OSError, ValueError):  # too long for a path, or with a NUL in it: then it is no name either
        pass
    known: dict[str, Found] = {}
    for found in all_blueprints(places):
        known.setdefault(found.name, found)
    if word in known:
        return known[word]
    raise _unknown(word, known)


def all_blueprints(places: Places | None) -> tuple[Found, ...]:
    """Every blueprint with a name, the one that a name means before those it shadows.

    Raises:
        UsageProblem: something that is no folder stands where one is looked through, or it cannot be read.
    """
    first: dict[str, Path] = {}
    return tuple(
        Found(name, scope, path, shadowed_by if shadowed_by != path else None)
        for scope, folder in _folders(places)
        for name, path in _in(folder)
        for shadowed_by in (first.setdefault(name, path),)
    )


def find_blueprint(word: str, places: Places | None = None) -> Path:
    """The path of what `look_up` finds.

    Raises:
        UsageProblem: as `look_up`.
    """
    return look_up(word, places).path


def bundled() -> dict[str, Path]:
    """The blueprints that come with Fleet, by name: in the wheel or beside the package in a checkout."""
    found: dict[str, Path] = {}
    for name, path in _in(_bundled_folder()):
        found.setdefault(name, path)
    return found


def _folders(places: Places | None) -> Iterator[tuple[Scope, Path]]:
    if places is None:
        yield Scope.BUNDLED, _bundled_folder()
        return
    for folder in places.of_project(".fleet", "blueprints"):
        yield Scope.PROJECT, folder
    yield Scope.USER, places.of_user("blueprints")
    yield Scope.BUNDLED, _bundled_folder()
    for folder in places.of_project(".orphus", "fleets"):
        yield Scope.ORPHUS, folder


def _bundled_folder() -> Path:
    package = Path(fleet.__file__).parent
    inside = package / "bundled" / "blueprints"
    return inside if inside.is_dir() else package.parent / "blueprints"


def _in(folder: Path) -> list[tuple[str, Path]]:
    """The blueprints of one folder by name; ``[]`` if there is no such folder."""
    try:
        paths = list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as problem:
        raise UsageProblem(
            f"cannot list the blueprints in {folder}: {problem.strerror or problem}",
            hint="it has to be a folder that you can read",
        ) from problem
    named = [(_name(path), path) for path in paths]
    return sorted(((name, path) for name, path in named if name), key=_order)


def _order(entry: tuple[str, Path]) -> tuple[str, int]:
    name, path = entry
    return name, _SUFFIXES.index(path.name[len(name) :])


def _name(path: Path) -> str:
    """What a file is called as a blueprint; ``""`` for one that is none."""
    suffix = next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), None)
    name = path.name.removesuffix(suffix) if suffix else ""
    # A manifest of roles is no blueprint, though it may lie beside them.
    return "" if name == "roles" or name.endswith(".roles") else name


def _unknown(word: str, known: Mapping[str, Found]) -> UsageProblem:
    names = sorted(known)
    told = ", ".join(names[:_MAX_TOLD]) + (
        f" and {len(names) - _MAX_TOLD} more" if len(names) > _MAX_TOLD else ""
    )
    from fleet.blueprint.wording import did_you_mean  # completions list names and never need it

    near = did_you_mean(word, names) if word else ""
    return UsageProblem(
        f"no blueprint {word[:200]!r}: not a file, and no blueprint has that name{near}",
        hint=f"known: {told or 'none'}; fleet list tells more",
    )
