"""JSON Pointer (RFC 6901): where in a value something lies. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["NotThere", "pointer_problem", "resolve"]

_BAD_ESCAPE = re.compile(r"~(?![01])")

#: An index as the RFC has it: no sign, no leading zero.
_INDEX = re.compile(r"0|[1-9][0-9]*")


class NotThere(Exception):
    """A pointer leads nowhere in a value."""


def pointer_problem(pointer: str) -> str | None:
    """Why ``pointer`` is none, as a clause, or ``None``. The empty pointer is the whole value."""
    if pointer and not pointer.startswith("/"):
        return "must be a JSON Pointer starting with '/'"
    if _BAD_ESCAPE.search(pointer):
        return "has an invalid ~ escape: ~0 is ~ and ~1 is /"
    return None


def resolve(value: Any, pointer: str) -> Any:
    """What lies there.

    Raises:
        NotThere: nothing does.
    """
    for token in pointer.split("/")[1:]:
        part = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            raise NotThere(f"there is nothing at {pointer}")
    return value
