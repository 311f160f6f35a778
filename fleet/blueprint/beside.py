"""The files that a blueprint or a manifest points to: where they lie, and why one cannot be read.

Light to import: reading a roles manifest should not pay for the models of a blueprint.
"""

from __future__ import annotations

import os.path
from pathlib import Path

__all__ = ["path_from", "text_file_problem"]


def path_from(path: str, folder: Path) -> Path:
    """The absolute path of what a file in ``folder`` calls ``path``; ``..`` is resolved by name."""
    # Path.expanduser raises for an unknown user; this leaves the text as it is, and it is not found.
    expanded = os.path.expanduser(path.strip())  # noqa: PTH111 - see above
    return Path(os.path.normpath(folder / expanded))


def text_file_problem(path: Path) -> str | None:
    """Why ``path`` cannot be read as a text, in one sentence with the resolved path, or ``None``."""
    try:
        if not path.exists():
            return f"file not found: {path}"
        if not path.is_file():
            return f"not a regular file: {path}"
        with path.open("rb") as file:
            file.read(1)
    except (OSError, ValueError) as error:
        return f"not readable: {path} ({getattr(error, 'strerror', None) or error})"
    return None
