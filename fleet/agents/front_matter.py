"""A markdown file with settings above its text -> both, with the line and column of every setting.

The settings stand between two lines of ``---`` and are YAML. Published files often hold a text there that is none (an
unquoted ``Context: …`` in a description): such a block is read key by key, each with its lines, and that is told.

Pure but for `read_markdown`, which takes the bytes from a file.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from fleet.errors import InvalidFile, Problem
from fleet.yaml import MAX_BYTES, Document, KeyPath, Position, parse

__all__ = ["Markdown", "parse_markdown", "read_markdown"]

_FENCE = "---"
_KEY = re.compile(r"([A-Za-z_][\w-]*):(?:[ \t]+(.*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Markdown:
    """One file. Without settings ``front`` is ``None`` and the body is the whole text."""

    front: Document | None
    body: str  #: without blank lines around it
    note: Problem | None = None  #: that the settings are no YAML, and where


def read_markdown(path: Path, *, shown: str) -> tuple[Markdown, bytes]:
    """Read one file; ``shown`` is how problems call it. Also its content as it is.

    Raises:
        InvalidFile: not a regular file, not readable, too long, not UTF-8 text, or settings that nothing can be
            made of.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _invalid(shown, "not a regular file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _invalid(shown, f"not readable: {error.strerror or error}") from error
    return parse_markdown(content, name=shown), content


def parse_markdown(content: bytes, *, name: str) -> Markdown:
    """Take one file apart.

    Raises:
        InvalidFile: too long, not UTF-8 text, or settings that nothing can be made of.
    """
    if len(content) > MAX_BYTES or b"\x00" in content:
        parse(content, name=name)  # says which
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        parse(content, name=name)  # says which byte
        raise
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        return Markdown(None, text.strip())
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise _invalid(name, f"the settings begin with {_FENCE} in line 1 and never end")
    body = "\n".join(lines[end + 1 :]).strip()
    # The first fence is also how a YAML document begins, so lines need no correction.
    settings = "\n".join(lines[:end])
    try:
        return Markdown(parse(settings.encode(), name=name), body)
    except InvalidFile as error:
        front = _key_by_key(lines[1:end], name)
        if front is None:
            raise
        problem = error.problems[0]
        said = f"{problem.text}; read key by key instead"
        return Markdown(front, body, Problem(name, problem.line, problem.column, "", said))


def _key_by_key(lines: list[str], name: str) -> Document | None:
    """What can be made of settings that are no YAML as a whole; ``None`` if no line is a key."""
    chunks: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 2):
        if _KEY.fullmatch(line.rstrip()):
            chunks.append((number, [line]))
        elif chunks:
            chunks[-1][1].append(line)
        elif line.strip():
            return None
    data: dict[str, object] = {}
    at = Position(1, 1)
    keys: dict[KeyPath, Position] = {}
    values: dict[KeyPath, Position] = {(): at}
    for number, chunk in chunks:
        key, value = _value(chunk, name)
        if key not in data:  # as in YAML the first one stands
            data[key] = value
            keys[(key,)] = values[(key,)] = Position(number, 1)
    return Document(name, data, keys, values) if data else None


def _value(chunk: list[str], name: str) -> tuple[str, object]:
    """One key and its lines: as YAML where they are, else as the text that is there."""
    found = _KEY.fullmatch(chunk[0].rstrip())
    if found is None:
        raise ValueError("a chunk begins with its key")
    key = found[1]
    try:
        document = parse("\n".join(chunk).encode(), name=name)
        if isinstance(document.data, dict) and list(document.data) == [key] and not document.problems:
            return key, document.data[key]
    except InvalidFile:
        pass
    text = "\n".join([found[2] or "", *(line.strip() for line in chunk[1:])]).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return key, text or None


def _invalid(name: str, text: str) -> InvalidFile:
    return InvalidFile((Problem(name, 1, 1, "", text),))
