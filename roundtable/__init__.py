"""The room: members talk outside every context window and read one bounded digest.

Not here: launching anyone. A member is whoever connects.
"""

from __future__ import annotations

__all__: list[str] = []
