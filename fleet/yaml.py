"""Text -> plain data with the line and column of every key and value; the only place that knows YAML.

YAML 1.2 core types: ``yes`` and ``on`` are text, ``0123`` is not octal, ``1:30`` and dates are text. Keys are
always the text that was written (``2024:`` is the key ``"2024"``). Anchors, aliases and ``<<`` are resolved
here, under a cap.

Pure but for `read`, which takes the bytes from a file. Not here: what the data should look like.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import yaml
import yamlcore

from fleet.errors import InvalidFile, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["MAX_BYTES", "Document", "KeyPath", "Position", "dotted", "parse", "printable", "read"]

#: Larger input is refused before it is parsed. A blueprint of 50 members with long briefs is below 100 KB.
MAX_BYTES = 1 << 20
#: Values after aliases are expanded: a bomb of nested aliases is refused here, long before memory is short.
_MAX_VALUES = 100_000
#: Levels of nesting; also what keeps the walk clear of Python's own recursion limit.
_MAX_DEPTH = 64
#: Decimal digits of an integer; beyond it Python itself refuses to convert.
_MAX_DIGITS = 300

_TAG = "tag:yaml.org,2002:"
#: The core schema's, matched whole: the resolver's own end in ``$``, which a trailing newline passes.
_INTEGER = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_WORDS: dict[str, dict[str, bool | None]] = {
    "bool": {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False},
    "null": {"": None, "~": None, "null": None, "Null": None, "NULL": None},
}
#: What YAML does not allow in a stream at all; one of them usually means that the file is not text.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")

#: The keys and list indexes that lead to a value; ``()`` is the document itself.
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text; both count from 1, columns in characters."""

    line: int
    column: int


_START = Position(1, 1)
#: Key of what is not about one key.
_WHOLE = "(document)"


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file: its data, where everything stands, and what is wrong with it as YAML."""

    name: str  #: the path as the user gave it; every problem begins with it
    data: object  #: dict, list, str, int, float, bool or None, nested; each alias is a copy of its own
    keys: Mapping[KeyPath, Position] = field(repr=False)  #: a mapping's key, a list's item
    values: Mapping[KeyPath, Position] = field(
        repr=False
    )  #: what follows the key; an alias stands where its anchor does
    problems: tuple[
        Problem, ...
    ] = ()  #: duplicate keys, foreign tags: the data is usable to look for further problems only
    unreadable: frozenset[KeyPath] = (
        frozenset()
    )  #: values that are among the problems: what they are says nothing
    content: bytes = field(default=b"", repr=False)  #: what was parsed

    def problem(self, path: KeyPath, text: str) -> Problem:
        """Say ``text`` of ``path``, at its key or at the nearest enclosing key that is written there."""
        shown = path
        while path and path not in self.keys:
            path = path[:-1]
        position = self.keys.get(path) or self.values.get((), _START)
        return Problem(self.name, position.line, position.column, dotted(shown), text)


def dotted(path: KeyPath) -> str:
    """Write a path as people do: ``teams.panel.members[0].brief``; list indexes count from 0."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    text = printable(text)
    return text if len(text) <= 200 else text[:199] + "…"


def printable(text: str) -> str:
    """Write what a terminal could obey (escapes, line ends, direction marks) as ``\\x1b`` and the like."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def read(path: Path, *, what: str) -> Document:
    """Read and parse one file; ``what`` names it in messages (``blueprint``, ``manifest``).

    Raises:
        InvalidFile: not found, not a regular file, not readable, over `MAX_BYTES`, or not one YAML document.
    """
    name = str(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _invalid(name, f"{what} is not a regular file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _invalid(name, f"{what} not found") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise _invalid(name, f"{what} is not readable: {reason}") from error
    return parse(content, name=name)


def parse(content: bytes, *, name: str) -> Document:
    """Parse one YAML document from UTF-8 bytes.

    Duplicate keys and the like are collected in `Document.problems`, so that a reader can report them
    together with its own findings.

    Raises:
        InvalidFile: over `MAX_BYTES`, not UTF-8 text, not one YAML document, or aliases without end.
    """
    text = _decode(content, name)
    try:
        node = yamlcore.CCoreLoader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Position(mark.line + 1, mark.column + 1) if mark else _START
        said = " ".join(part for part in (error.problem, error.context) if part) or "cannot be parsed"
        if mark and said == "found undefined alias":  # the parser does not say which
            said += f" {text[mark.index :].split(maxsplit=1)[0][:80]}"
        if mark and "cannot start any token" in said and text[mark.index :].startswith("\t"):
            said = "a tab, where YAML is indented with spaces alone"
        if error.problem and "another document" in error.problem:
            raise _invalid(
                name, "invalid YAML — several documents in one file; exactly one is expected", at
            ) from None
        raise _invalid(name, f"invalid YAML — {said[:200]}", at) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise _invalid(name, f"invalid YAML — {str(error)[:200]}") from error
    if node is None:
        return Document(name, None, {}, {(): _START}, content=content)
    walk = _Walk(name)
    data = walk.value(node, ())
    return Document(
        name,
        data,
        walk.keys,
        walk.values,
        tuple(walk.problems),
        frozenset(walk.unreadable),
        content,
    )


def _decode(content: bytes, name: str) -> str:
    """Give the text without a byte-order mark, or say what kind of file this is instead."""
    if len(content) > MAX_BYTES:
        raise _unreadable(name, f"over {MAX_BYTES} bytes; a file of this kind is never that large")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _unreadable(name, "UTF-16 text; save it as UTF-8")
    if b"\x00" in content:
        raise _unreadable(name, "a binary file, not YAML text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        raise _unreadable(
            name, f"not UTF-8 text: byte 0x{content[error.start]:02x}", _end_of(before)
        ) from None
    found = _FORBIDDEN.search(text)
    if found is None:
        return text
    raise _unreadable(
        name,
        f"control character U+{ord(found.group()):04X} is not allowed in YAML",
        _end_of(text[: found.start()]),
    )


def _end_of(text: str) -> Position:
    """The place just after ``text``."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


def _invalid(name: str, text: str, at: Position = _START) -> InvalidFile:
    return InvalidFile((Problem(name, at.line, at.column, "", text),))


def _unreadable(name: str, text: str, at: Position = _START) -> InvalidFile:
    """What holds for a file that is there and whose text cannot be read as one document."""
    return InvalidFile((Problem(name, at.line, at.column, _WHOLE, text),))


class _Walk:
    """One pass over the composed nodes of one document."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.keys: dict[KeyPath, Position] = {}
        self.values: dict[KeyPath, Position] = {}
        self.problems: list[Problem] = []
        self.unreadable: set[KeyPath] = set()
        self._seen = 0
        self._open: set[int] = (
            set()
        )  # nodes being walked: meeting one again is an alias inside its own anchor

    def value(self, node: yaml.Node, path: KeyPath) -> object:
        """Build the data of ``node`` and note where its parts stand."""
        at = _at(node)
        self._seen += 1
        if self._seen > _MAX_VALUES:
            raise _unreadable(self.name, f"more than {_MAX_VALUES} values once aliases are expanded", at)
        if id(node) in self._open:
            raise _unreadable(self.name, "an alias inside its own anchor never ends", at)
        if len(self._open) >= _MAX_DEPTH:
            raise _unreadable(self.name, f"nested more than {_MAX_DEPTH} levels deep", at)
        self.values[path] = at
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        kind = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != _TAG + kind:
            self._refuse(at, path, f"the tag {_shown(node.tag)} is not allowed")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            items = []
            for index, item in enumerate(node.value):
                self.keys[*path, index] = _at(item)
                items.append(self.value(item, (*path, index)))
            return items
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        """Build a mapping: its own keys in order, then those that ``<<`` brings and it does not have."""
        data: dict[str, object] = {}
        merges: list[yaml.Node] = []
        first_at: dict[str, Position] = {}
        for key_node, value_node in node.value:
            at = _at(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self._say(at, path, "a list or a map cannot be a key")
                continue
            key = key_node.value
            is_merge = key == "<<" and not key_node.style
            if key in first_at:
                where = f"line {first_at[key].line}"
                self._say(at, (*path, key), f"duplicate key; it stands already in {where}")
                self._look_through(value_node, (*path, key))
                continue
            first_at[key] = at
            if is_merge:
                merges.append(value_node)
                continue
            if not key.strip():
                self._say(at, path, "an empty key")
                continue
            self.keys[*path, key] = at
            data[key] = self.value(value_node, (*path, key))
        for merge in merges:
            for source in merge.value if isinstance(merge, yaml.SequenceNode) else [merge]:
                if not isinstance(source, yaml.MappingNode):
                    self._say(_at(source), path, "`<<` takes a map or a list of maps")
                    continue
                self._merge(source, path, data)
        return data

    def _look_through(self, node: yaml.Node, path: KeyPath) -> None:
        """Collect the problems of a value that is not kept."""
        aside = _Walk(self.name)
        aside._seen, aside._open = self._seen, self._open
        aside.value(node, path)
        self._seen = aside._seen
        self.problems += aside.problems

    def _merge(self, source: yaml.MappingNode, path: KeyPath, data: dict[str, object]) -> None:
        """Add the keys of ``source`` that ``data`` lacks; an earlier one stands."""
        aside = _Walk(self.name)
        aside._seen, aside._open = self._seen, self._open
        merged = aside.value(source, path)
        self._seen = aside._seen
        self.problems += [problem for problem in aside.problems if problem not in self.problems]
        if not isinstance(merged, dict):  # value() of a mapping node gives a dict
            return
        taken = [key for key in merged if key not in data]
        depth = len(path)
        for theirs, ours in ((aside.keys, self.keys), (aside.values, self.values)):
            ours.update({at: where for at, where in theirs.items() if len(at) > depth and at[depth] in taken})
        self.unreadable.update(at for at in aside.unreadable if len(at) <= depth or at[depth] in taken)
        data.update({key: merged[key] for key in taken})

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> object:
        """Resolve one scalar by its tag: what the core schema knows, and nothing else."""
        text, kind = cast("str", node.value), node.tag.removeprefix(_TAG)
        if kind == "str":
            return text
        if kind in _WORDS and text in _WORDS[kind]:
            return _WORDS[kind][text]
        if kind == "int" and _INTEGER.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                self._refuse(_at(node), path, f"a number of more than {_MAX_DIGITS} digits")
                return 0
            return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)
        if kind == "float" and _FLOAT.fullmatch(text):
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if kind in ("bool", "null", "int", "float"):
            self._refuse(_at(node), path, f"this text is no {kind}, as its tag says")
        else:
            self._refuse(_at(node), path, f"the tag {_shown(node.tag)} is not allowed")
        return text

    def _refuse(self, at: Position, path: KeyPath, text: str) -> None:
        """Say it of a value that stands for nothing then."""
        self.unreadable.add(path)
        self._say(at, path, text)

    def _say(self, at: Position, path: KeyPath, text: str) -> None:
        self.problems.append(Problem(self.name, at.line, at.column, dotted(path) or _WHOLE, text))


def _at(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _shown(tag: str) -> str:
    """A tag as people write it, shortened."""
    return ("!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag)[:80]
