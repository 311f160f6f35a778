"""What one broker bears: connections, reserved rooms, and how long and how much it keeps for one connection."""

from __future__ import annotations

from dataclasses import dataclass

from .store import MAX_ROOMS

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one broker bears."""

    connections: int = 4096
    reserved_rooms: int = MAX_ROOMS
    register_seconds: float = 10.0  #: a connection that has not said who it is by then is closed
    unread_reply_bytes: int = 16 * 1024 * 1024  #: per connection
