"""The files that a blueprint or a manifest points to: where they lie, and why one cannot be read.

Light to import: reading a roles manifest should not pay for the models of a blueprint.
"""

from __future__ import annotations

import os.path
from pathlib import Path

__all__ = ["MAX_TEXT_BYTES", "argv_beside", "path_from", "text_file_problem", "text_of"]

#: Larger files are refused, as a blueprint of that size is.
MAX_TEXT_BYTES = 1 << 20


def path_from(path: str, folder: Path) -> Path:
    """The absolute path of what a file in ``folder`` calls ``path``; ``..`` is resolved by name."""
    # Path.expanduser raises for an unknown user; this leaves the text as it is, and it is not found.
    expanded = os.path.expanduser(path.strip())  # noqa: PTH111 - see above
    return Path(os.path.normpath(folder / expanded))


def argv_beside(words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """An argv as a file in ``folder`` means it: a program with a slash, and a script that lies beside the file.

    A further word that begins with ``./`` or ``../`` is such a script only if it exists; else it stays as it is.
    """
    program, *rest = words
    if "/" in program:
        program = str(path_from(program, folder))
    is_script = [word.startswith(("./", "../")) and os.path.exists(folder / word) for word in rest]  # noqa: PTH110 - a word may hold anything
    return (
        program,
        *(str(folder / word) if script else word for word, script in zip(rest, is_script, strict=True)),
    )


def text_of(path: Path, *, max_bytes: int = MAX_TEXT_BYTES) -> tuple[str, str | None]:
    """The UTF-8 text of a file, and why it has none in one sentence with the resolved path, or ``None``."""
    try:
        if not path.exists():
            return "", f"file not found: {path}"
        if not path.is_file():
            return "", f"not a regular file: {path}"
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            return (
                "",
                f"too long: {path} has {path.stat().st_size} bytes, at most {max_bytes} are allowed here",
            )
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        return "", f"not readable: {path} ({getattr(error, 'strerror', None) or error})"
    if b"\x00" in content:
        return "", f"a binary file, not text: {path}"
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return "", f"not UTF-8 text: {path}, byte 0x{content[error.start]:02x} at offset {error.start}"


def text_file_problem(path: Path, *, max_bytes: int = MAX_TEXT_BYTES) -> str | None:
    """Why ``path`` cannot be read as a text, or ``None``."""
    return text_of(path, max_bytes=max_bytes)[1]
