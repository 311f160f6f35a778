"""How long to wait before a turn that failed is tried again. Pure but for chance."""

from __future__ import annotations

import random

__all__ = ["pause_seconds"]

#: Before the second attempt, seconds; doubled for each further one.
_FIRST_SECONDS = 1.0

#: No pause is longer, seconds: who waits longer would rather fail.
_LONGEST_SECONDS = 30.0


def pause_seconds(attempt: int, *, chance: float | None = None) -> float:
    """Seconds to wait after failed attempt number ``attempt`` (1, 2, …): half of the span fixed, half by chance.

    So members that failed together do not come back together. ``chance`` is a number from 0 to 1; ``None`` draws one.
    """
    span = min(_FIRST_SECONDS * 2.0 ** (attempt - 1), _LONGEST_SECONDS)
    drawn = random.random() if chance is None else chance  # noqa: S311 - no secret: it only spreads load
    return span / 2 + span / 2 * drawn
