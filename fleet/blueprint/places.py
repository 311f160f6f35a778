"""Where the files of a project and of a user lie: every folder that is looked through, nearest first.

A project is the folder a command was started in and those above it, up to the root of its repository; outside a
repository it is that folder alone. A folder of somebody else, or one that everybody may write, ends the way up: what
lies there was put there by strangers. The user's own folder (``FLEET_HOME``) is never a project's, wherever it lies.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from pathlib import Path

__all__ = ["Places", "Scope"]

#: Folders above the first that are looked at; a repository is never that deep.
_MAX_LEVELS = 64


class Scope(StrEnum):
    """Whose a file is. What a project brings was written by whoever wrote the project."""

    PATH = "path"  #: named on the command line
    PROJECT = "project"
    USER = "user"
    BUNDLED = "bundled"
    ORPHUS = "orphus"  #: a project's too, from a folder of the dialect this one understands

    @property
    def is_project(self) -> bool:
        """Whether the file came with the project, and so need not be the user's own."""
        return self in (Scope.PROJECT, Scope.ORPHUS)


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one call; made with `around`."""

    levels: tuple[Path, ...]  #: the project's, absolute, nearest first; at least one
    home: Path  #: the user's, absolute

    @classmethod
    def around(cls, folder: Path, *, home: Path) -> Places:
        """Look from ``folder`` upwards for the root of a repository."""
        start = folder.absolute()
        above = [start, *takewhile(_is_ours, start.parents)][:_MAX_LEVELS]
        # Path.exists raises where a folder above may not be looked into.
        root = next((level for level in above if os.path.exists(level / ".git")), start)  # noqa: PTH110 - see above
        return cls(tuple(above[: above.index(root) + 1]), home.absolute())

    def of_project(self, *parts: str) -> tuple[Path, ...]:
        """``parts`` below every level of the project, but for what is the user's own."""
        own = self.home.resolve()
        folders = (level.joinpath(*parts) for level in self.levels)
        return tuple(folder for folder in folders if not folder.resolve().is_relative_to(own))

    def of_user(self, *parts: str) -> Path:
        """``parts`` below the user's folder."""
        return self.home.joinpath(*parts)

    def shown(self, path: Path) -> str:
        """``path`` as people would write it here: relative to where they are, if it lies below."""
        return str(path.relative_to(self.levels[0]) if path.is_relative_to(self.levels[0]) else path)


def _is_ours(folder: Path) -> bool:
    """Whether a folder belongs to this user, or anybody's for root, and not everybody may write it."""
    try:
        status = folder.stat()
    except OSError:
        return False
    is_own = os.geteuid() in (status.st_uid, 0)
    return is_own and not status.st_mode & stat.S_IWOTH
