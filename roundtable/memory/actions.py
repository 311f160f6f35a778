"""What a role can do with memory, as text an agent reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..said import Said
from .place import Place

__all__ = ["Memory"]


class Memory:
    """The memory at ``place`` as ``role`` may use it; ``None`` is a session without a name."""

    def __init__(self, place: Place, role: str | None) -> None:
        self.place = place
        self.role = role

    async def call(self, action: str, arguments: Mapping[str, Any]) -> Said:
        """Do ``query {question, maxChars?}``, ``ingest {source}``, ``gardener {}`` or ``doctor {}``."""
        raise NotImplementedError

    async def query(self, question: str, max_chars: int | None = None) -> Said:
        """Passages that match, with their pages and dates, in at most ``max_chars`` (2000; at most 20,000)."""
        raise NotImplementedError

    async def ingest(self, source: str) -> Said:
        """Put what a file under ``raw/`` says into pages; only the writer."""
        raise NotImplementedError

    async def gardener(self) -> Said:
        """Merge duplicate facts and link pages of one topic; only the writer."""
        raise NotImplementedError

    async def doctor(self) -> Said:
        """What is where, in what state, and what to do about each problem."""
        raise NotImplementedError
