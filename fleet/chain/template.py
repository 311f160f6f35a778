"""A task's text with references to what came before: taken apart once, and filled in once.

Pure. What is filled in is never looked at again, so an output that holds ``{task}`` is only text. Braces around
anything else are text too, but in the task of a fan-out, where a slip would be repeated for every item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["MissingPart", "Reference", "Template", "item_text"]

_REFERENCE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)((?:\.[^{}\s]*)?)\}")

#: What a reference may begin with; ``item`` stands for the name that a fan-out gives its items.
_HEADS = ("task", "previous", "chain_dir", "outputs")


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: ``{task}``, ``{previous.full}``, ``{outputs.facts}``, ``{item.name}``."""

    head: str
    rest: str  #: what stands behind the first dot, ``""`` without one

    def __str__(self) -> str:
        return f"{{{self.head}{'.' if self.rest else ''}{self.rest}}}"

    @property
    def output(self) -> str | None:
        """The named output it means, or ``None``."""
        return self.rest.removesuffix(".full") if self.head == "outputs" else None

    @property
    def is_full(self) -> bool:
        """Whether it opts out of the bound."""
        return self.rest == "full" if self.head == "previous" else self.rest.endswith(".full")

    @property
    def problem(self) -> str | None:
        """Why it can mean nothing, whatever comes before it."""
        match self.head:
            case "task" | "chain_dir" if self.rest:
                return f"{self} has no parts"
            case "previous" if self.rest not in ("", "full"):
                return f"invalid reference {self}: only {{previous}} and {{previous.full}}"
            case "outputs" if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(?:\.full)?", self.rest) is None:
                return (
                    f"invalid chain output reference {self}: only {{outputs.NAME}} and {{outputs.NAME.full}}"
                )
        return None


class MissingPart(Exception):
    """An item does not have what a template asks of it."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text and its references."""

    parts: tuple[str | Reference, ...]

    @classmethod
    def parse(cls, text: str, *, item: str | None = None) -> Template:
        """Take ``text`` apart; ``item`` is the name of the item in a fan-out, where every ``{name}`` counts."""
        heads = _HEADS if item is None else (*_HEADS, item)
        parts: list[str | Reference] = []
        at = 0
        for found in _REFERENCE.finditer(text):
            if found[1] not in heads and item is None:
                continue
            parts += [text[at : found.start()], Reference(found[1], found[2][1:])]
            at = found.end()
        return cls((*parts, text[at:]))

    @property
    def references(self) -> tuple[Reference, ...]:
        """All of them, in order."""
        return tuple(part for part in self.parts if isinstance(part, Reference))

    def uses(self, *heads: str) -> bool:
        """Whether it refers to any of them."""
        return any(reference.head in heads for reference in self.references)

    def unknown(self, *, item: str | None) -> tuple[Reference, ...]:
        """References of a fan-out that mean nothing."""
        return tuple(r for r in self.references if r.head not in (*_HEADS, item))

    def fill(self, value_of: Callable[[Reference], str]) -> str:
        """The text with every reference replaced."""
        return "".join(part if isinstance(part, str) else value_of(part) for part in self.parts)


def item_text(item: Any, reference: Reference) -> str:
    """What ``{item.a.b}`` is: text as it is, other scalars as JSON has them, the rest as JSON.

    Raises:
        MissingPart: the item has no such part.
    """
    value = item
    for part in reference.rest.split(".") if reference.rest else ():
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise MissingPart(f"{reference}: there is no {part!r} in it")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
