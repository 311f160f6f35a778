"""The texts of the briefs that a blueprint points to, read once and before anything starts."""

from __future__ import annotations

from collections.abc import Mapping

from fleet.blueprint.load import Loaded, brief_of
from fleet.errors import InvalidFile

__all__ = ["read_briefs"]


def read_briefs(loaded: Loaded) -> Mapping[str, str]:
    """Every ``briefPath`` as written, with its text.

    Raises:
        InvalidFile: a file that was there when the blueprint was checked cannot be read now, or is not UTF-8.
    """
    texts: dict[str, str] = {}
    problems = []
    for name, team in loaded.blueprint.teams.items():
        for index, member in enumerate(team.members):
            if member.brief_path is None:
                continue
            path = brief_of(member.brief_path, loaded.folder)
            try:
                texts[member.brief_path] = path.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
                key = ("teams", name, "members", index, "briefPath")
                problems.append(loaded.problem(key, f"{path}: {reason}"))
    if problems:
        raise InvalidFile(tuple(problems))
    return texts
