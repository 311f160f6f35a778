"""Where the memory of this user is, which role writes it, and whether an external program does the work.

``Place.from_environment`` is the only place of memory that reads these settings. Not here: what lies in the
folder (``folder``), and what can be done with it (``actions``).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageProblem
from ..harmless import harmless_line
from ..home import Home
from ..names import is_member_name

__all__ = ["DEFAULT_WRITER", "RAW", "WIKI", "Place"]

#: Where transcripts and other sources lie in the folder.
RAW = "raw"

#: Where pages lie in it.
WIKI = "wiki"

#: The role that writes when none is configured.
DEFAULT_WRITER = "librarian"


@dataclass(frozen=True, slots=True)
class Place:
    """One memory. That only the writer writes is a convention between roles, not a lock: see ``SECURITY.md``."""

    folder: Path  #: absolute; may be a symbolic link, which is followed once, when it is opened
    writer: str  #: the one role that exports, ingests and tends
    command: tuple[str, ...] | None  #: the argument vector of an external program; ``None``: built in

    @classmethod
    def from_environment(cls, home: Home, environment: Mapping[str, str] | None = None) -> Place:
        """``ROUNDTABLE_MEMORY_DIR``, ``_WRITER_ROLE`` and ``_COMMAND``; blank counts as unset.

        Raises:
            UsageProblem: one of them cannot be what it should be; the message names it.
        """
        environment = os.environ if environment is None else environment
        folder = environment.get("ROUNDTABLE_MEMORY_DIR", "").strip()
        writer = environment.get("ROUNDTABLE_MEMORY_WRITER_ROLE", "").strip() or DEFAULT_WRITER
        command = environment.get("ROUNDTABLE_MEMORY_COMMAND", "").strip()
        path = Path(folder).expanduser() if folder else home.root / "memory"
        if not path.is_absolute():
            raise UsageProblem(
                f"ROUNDTABLE_MEMORY_DIR must be an absolute path, not {harmless_line(folder)!r}",
                hint="a relative one would be another memory in every folder",
            )
        if not is_member_name(writer):
            raise UsageProblem(
                f"ROUNDTABLE_MEMORY_WRITER_ROLE is not a member's name: {harmless_line(writer)!r}",
                hint="use 1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit",
            )
        try:
            words = tuple(shlex.split(command))
        except ValueError as problem:
            raise UsageProblem(
                f"ROUNDTABLE_MEMORY_COMMAND cannot be read: {problem}",
                hint="write it as words of a shell command line; no shell runs it",
            ) from problem
        return cls(path, writer, words or None)

    def refusal(self, role: str | None, what: str) -> str | None:
        """Why ``role`` may not do ``what`` (``export rooms for memory``); ``None`` if it may.

        ``role`` is ``None`` for a session without a name, which is told how to get one.
        """
        if role == self.writer:
            return None
        only = f'Only the "{self.writer}" role may {what}; this session'
        if not role:
            return f"{only} has no role name (name it with --as {self.writer})."
        the = "the " if self.writer == DEFAULT_WRITER else ""
        request = "export" if what.startswith("export") else "write"
        return f'{only} is "{harmless_line(role)[:64]}". Ask {the}{self.writer} to {request}.'
