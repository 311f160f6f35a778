"""A roles manifest: who sits in one room with which model, and the file's every problem with its position.

The keys are the reference's, all of them, and no others. One table of keys validates a file and prints its JSON
Schema. It is read without the models of a blueprint, whose import takes several times as long as all that printing a
script needs; its values are named tuples for the same reason. The words of its problems are the blueprint's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleet.blueprint.beside import path_from, text_file_problem
from fleet.blueprint.wording import did_you_mean, echo, in_order, received
from fleet.errors import InvalidFile, Problem
from fleet.roles.native import MAX_BRIEF_BYTES
from fleet.yaml import Document, read

if TYPE_CHECKING:
    from fleet.yaml import KeyPath

__all__ = [
    "Budgets",
    "LoadedManifest",
    "Manifest",
    "Role",
    "is_manifest",
    "load_manifest",
    "manifest_schema",
    "validate_manifest",
]

_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"


class Role(NamedTuple):
    """One role: a model behind a name."""

    provider: str
    model: str
    room: str | None = None  #: default: the manifest's
    cwd: str | None = None  #: as written
    worktree: str = "active"
    brief: str | None = None  #: a path as written


class Budgets(NamedTuple):
    """How much one digest may carry, in characters."""

    digest: int = 2000
    per_message: int = 600


class Manifest(NamedTuple):
    """A whole manifest. The task names the terminal session, the room is where all roles meet."""

    task: str
    room: str
    roles: Mapping[str, Role]
    budgets: Budgets


class LoadedManifest(NamedTuple):
    """A valid manifest and where it came from."""

    path: Path  #: as the user gave it
    manifest: Manifest
    folder: Path  #: absolute; briefs and working directories are relative to it
    positions: Document


class _Wrong(Exception):
    """A value that its key does not take; the text is the sentence."""


class _Key(NamedTuple):
    """What one key takes."""

    take: Callable[[object], object]  #: the value as kept, or `_Wrong`
    schema: Mapping[str, object]
    is_required: bool = False


def is_manifest(document: Document) -> bool:
    """Whether a document is meant as a manifest: by its keys, and where they do not tell by its file's name."""
    data = document.data if isinstance(document.data, dict) else {}
    if "teams" in data or "roles" in data:
        return "teams" not in data
    name = document.name.rpartition("/")[2]
    return name.startswith("roles.") or ".roles." in name


def load_manifest(path: Path) -> LoadedManifest:
    """Read one manifest, and look at its briefs.

    Raises:
        InvalidFile: with every problem at once, sorted by position.
    """
    return validate_manifest(read(path, what="manifest"), path)


def validate_manifest(document: Document, path: Path) -> LoadedManifest:
    """Do what `load_manifest` does with a document that was already read from ``path``."""
    reader = _Reader(document, path.parent.absolute())
    manifest = reader.manifest()
    problems = in_order((*document.problems, *reader.problems))
    if problems:
        raise InvalidFile(problems)
    return LoadedManifest(path, manifest, reader.folder, document)


def manifest_schema() -> dict[str, object]:
    """The JSON Schema of a manifest, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "Budgets": _object("Budgets", Budgets, _BUDGETS),
            "Role": _object("Role", Role, _ROLE),
        },
        **_object("Roles manifest", Manifest, _TOP),
    }


def _object(title: str, value: type, keys: Mapping[str, _Key]) -> dict[str, object]:
    """The schema of a map with these keys."""
    required = [key for key, what in keys.items() if what.is_required]
    return {
        "title": title,
        "description": value.__doc__,
        "type": "object",
        "properties": {key: dict(what.schema) for key, what in keys.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


class _Reader:
    """Takes the values of one document, and says of every other what is wrong with it."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.problems: list[Problem] = []
        self.folder = folder
        self._document = document

    def manifest(self) -> Manifest:
        """What the document says; a value that it lacks is made up, and is among the problems."""
        top = self._map((), self._document.data, _TOP)
        return Manifest(
            task=str(top.get("task", "")),
            room=str(top.get("room", "")),
            roles=self._roles(top.get("roles")),
            budgets=self._budgets(top.get("budgets")),
        )

    def _roles(self, written: object) -> dict[str, Role]:
        roles: dict[str, Role] = {}
        for key, value in written.items() if isinstance(written, dict) else ():
            path: KeyPath = ("roles", key)
            try:
                name = _name(key)
            except _Wrong as wrong:
                self._say(path, str(wrong))
                name = key
            if name in roles:
                self._say(path, f'"{name}" is taken already; names are read without the spaces around them')
            fields = self._map(path, value, _ROLE)
            self._look_at_brief((*path, "brief"), fields.get("brief"))
            roles[name] = Role(**{"provider": "", "model": "", **fields})  # type: ignore[arg-type]  # texts, by _ROLE
        return roles

    def _budgets(self, written: object) -> Budgets:
        if written is None:
            return Budgets()
        fields = self._map(("budgets",), written, _BUDGETS)
        keys = {"digest": "digest", "perMessage": "per_message"}
        return Budgets(**{keys[key]: value for key, value in fields.items()})  # type: ignore[arg-type]  # by _BUDGETS

    def _map(self, path: KeyPath, written: object, keys: Mapping[str, _Key]) -> dict[str, object]:
        """The values that are as they should be; the rest becomes problems."""
        if not isinstance(written, dict):
            if path not in self._document.unreadable:
                where = "a map of settings" if path else "a map at the top level"
                self._say(path or ("(document)",), f"expected {where}, got {received(written)}")
            return {}
        taken: dict[str, object] = {}
        for key, value in written.items():
            here = (*path, key)
            if key not in keys:
                self._say(here, f"unknown key; allowed here: {', '.join(keys)}{did_you_mean(key, keys)}")
            elif here not in self._document.unreadable:
                try:
                    taken[key] = keys[key].take(value)
                except _Wrong as wrong:
                    self._say(here, str(wrong))
        for key, what in keys.items():
            if what.is_required and key not in written:
                hint = "; at least one role is required" if key == "roles" else ""
                self._say((*path, key), f"a required key is missing{hint}")
        return taken

    def _look_at_brief(self, path: KeyPath, written: object) -> None:
        """An agent takes a path that it cannot read for the brief itself, so it is read here."""
        if isinstance(written, str):
            reason = text_file_problem(path_from(written, self.folder), max_bytes=MAX_BRIEF_BYTES)
            if reason is not None:
                self._say(path, reason)

    def _say(self, path: KeyPath, text: str) -> None:
        self.problems.append(self._document.problem(path, text))


def _text(value: object) -> str:
    if not isinstance(value, str):
        hint = " (quotes make it text)" if isinstance(value, int | float) else ""
        raise _Wrong(f"expected a non-empty string, got {received(value)}{hint}")
    text = value.strip()
    if not text:
        raise _Wrong(f"expected a non-empty string, got {echo(value)}")
    if "\x00" in text:
        raise _Wrong("contains a NUL character, which no program can be given")
    return text


def _name(value: object) -> str:
    text = _text(value)
    if re.fullmatch(_NAME, text) is None:
        rule = "must be alphanumeric with - or _, at most 64 characters (it keys broker-side cursors)"
        raise _Wrong(f"{echo(value)} {rule}")
    return text


def _positive(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _Wrong(f"expected a positive integer, got {received(value)}")
    return value


def _some_roles(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _Wrong(f"expected a map of role name to settings, got {received(value)}")
    if not value:
        raise _Wrong("at least one role is required")
    return value


def _settings(value: object) -> object:
    if value is None:
        raise _Wrong("expected a map of settings, got nothing")
    return value


_A_NAME = {"type": "string", "pattern": f"^{_NAME}$"}
_A_TEXT = {"type": "string", "minLength": 1}
_TOP = {
    "task": _Key(_name, _A_NAME, is_required=True),
    "room": _Key(_name, _A_NAME, is_required=True),
    "roles": _Key(
        _some_roles,
        {
            "type": "object",
            "minProperties": 1,
            "patternProperties": {f"^{_NAME}$": {"$ref": "#/$defs/Role"}},
            "additionalProperties": False,
        },
        is_required=True,
    ),
    "budgets": _Key(_settings, {"$ref": "#/$defs/Budgets", "default": {"digest": 2000, "perMessage": 600}}),
}
_ROLE = {
    "provider": _Key(_text, _A_TEXT, is_required=True),
    "model": _Key(_text, _A_TEXT, is_required=True),
    "room": _Key(_name, _A_NAME),
    "cwd": _Key(_text, _A_TEXT),
    "worktree": _Key(_text, {**_A_TEXT, "default": "active"}),
    "brief": _Key(_text, _A_TEXT),
}
_BUDGETS = {
    "digest": _Key(_positive, {"type": "integer", "minimum": 1, "default": 2000}),
    "perMessage": _Key(_positive, {"type": "integer", "minimum": 1, "default": 600}),
}
