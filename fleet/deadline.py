"""A deadline is a point on the monotonic clock, fixed once; everything below inherits what is left of it.

Pure: the caller brings ``now`` (``anyio.current_time()`` in a run). Seconds throughout.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

__all__ = ["NEVER", "Deadline", "parse_duration", "show_duration", "show_span"]

#: One or more of hours, minutes, seconds, in that order, each at most once: ``1h30m``, ``90s``, ``10m``.
_DURATION = re.compile(r"(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """A moment after which nothing more is waited for. ``math.inf`` is no deadline.

    Raises:
        ValueError: the moment is not a number, so that nothing would come before or after it.
    """

    at: float

    def __post_init__(self) -> None:
        if math.isnan(self.at):
            raise ValueError("a deadline is a number")

    @classmethod
    def after(cls, seconds: float | None, *, now: float) -> Deadline:
        """The point ``seconds`` from ``now``; ``None`` means never."""
        return NEVER if seconds is None else cls(now + seconds)

    def remaining(self, now: float) -> float:
        """Seconds left, never negative; infinite for ``NEVER``."""
        return max(0.0, self.at - now)

    def has_passed(self, now: float) -> bool:
        """Whether ``now`` is at or after this point."""
        return now >= self.at

    def earlier(self, other: Deadline) -> Deadline:
        """The one that comes first: a part never outlives the whole."""
        return self if self.at <= other.at else other

    def part(self, fraction: float, *, now: float) -> Deadline:
        """The point at which ``fraction`` (0 to 1) of what is left from ``now`` will be used up.

        Never later than this one, also when this one has passed or the sum is rounded up.
        """
        if self.at == math.inf:
            return NEVER
        return Deadline(now + self.remaining(now) * fraction).earlier(self)


#: No deadline at all.
NEVER = Deadline(math.inf)


def parse_duration(text: str) -> float | None:
    """Seconds of a duration such as ``90s``, ``10m`` or ``1h30m``; ``None`` if it is not one or is zero."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(hours * 3600 + minutes * 60 + seconds) or None


def show_span(seconds: float) -> str:
    """A span that was measured, as it is spoken of: whole seconds from two on."""
    return show_duration(float(round(seconds)) if seconds >= 1.95 else round(seconds, 1))


def show_duration(seconds: float) -> str:
    """``90`` as ``1m30s``, ``0.5`` as ``0.5s``: the way durations are written in blueprints."""
    if seconds < 60 or seconds != int(seconds):
        return f"{seconds:g}s"
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)
