"""Numbers and lists of names as the texts of memory tell them.

Pure. Not from ``texts``, which knows rooms: asking memory loads nothing of a connection.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..harmless import harmless_line

__all__ = ["count", "some"]

#: A longer name is cut.
_NAME_CHARS = 120


def count(number: int, what: str) -> str:
    """``1 page``, ``2 pages``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def some(names: Sequence[str], most: int) -> str:
    """At most ``most`` of ``names`` on one line, the others as ``+N``."""
    shown = ", ".join(harmless_line(name)[:_NAME_CHARS] for name in names[:most])
    return f"{shown} +{len(names) - most}" if len(names) > most else shown
