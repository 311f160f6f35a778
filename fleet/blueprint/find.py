"""A path or a name -> the blueprint file.

Not here: folders of a project or a user. In this version a name means a blueprint that comes with Fleet.
"""

from __future__ import annotations

from pathlib import Path

import fleet
from fleet.errors import UsageProblem

__all__ = ["bundled", "find_blueprint"]

#: Longest first, so that ``design.fleet.yaml`` is called ``design``.
_SUFFIXES = (".fleet.yaml", ".fleet.yml", ".yaml", ".yml")


def find_blueprint(name_or_path: str) -> Path:
    """Return the path as given if something is there, else the bundled blueprint of that name.

    Raises:
        UsageProblem: neither; its hint lists the names there are.
    """
    path = Path(name_or_path)
    try:
        if name_or_path and path.exists():
            return path
    except (OSError, ValueError):  # too long for a path, or with a NUL in it: then it is no name either
        pass
    names = bundled()
    if name_or_path in names:
        return names[name_or_path]
    raise UsageProblem(
        f"no blueprint {name_or_path[:200]!r}: not a file, and no bundled blueprint has that name",
        hint=f"bundled: {', '.join(names) or 'none'}",
    )


def bundled() -> dict[str, Path]:
    """The blueprints that come with Fleet, by name: in the wheel or beside the package in a checkout."""
    package = Path(fleet.__file__).parent
    for folder in (package / "bundled" / "blueprints", package.parent / "blueprints"):
        if folder.is_dir():
            break
    else:
        return {}
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), None)
        name = path.name.removesuffix(suffix) if suffix else ""
        # A manifest of roles is no blueprint, though it lies beside them.
        if name and name != "roles" and not name.endswith(".roles"):
            found.setdefault(name, path)
    return found
