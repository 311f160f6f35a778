"""Launch teams of AI coding agents, seat them in a room, and end in one decision of record.

Not here: rooms, digests and the broker. They are the package ``roundtable``, which knows nothing of this one.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
