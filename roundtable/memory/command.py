"""``roundtable memory``: ask, and for the writer fill and tend, the memory from a shell."""

from __future__ import annotations

import click

__all__ = ["memory_command"]


@click.group("memory")
def memory_command() -> None:
    """Ask, and for the writer fill and tend, the durable memory."""
