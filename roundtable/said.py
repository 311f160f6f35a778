"""What a call answers: a text for an agent, and whether it tells of an error."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Said"]


@dataclass(frozen=True, slots=True)
class Said:
    """A text that says what was done, or what went wrong and what to do."""

    text: str
    is_error: bool = False
