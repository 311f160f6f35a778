"""A seat with no model behind it: a real child process that argues from its brief, the same way every time.

It shows a blueprint's whole path (rounds, digests, dissent, FINAL lines) without a key, a login or a network.
Not here: the arguing itself, which is the program ``rehearsal_seat.py`` beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fleet.agents.command import CommandAgent

__all__ = ["rehearsal_agent"]


def rehearsal_agent(*, prompts: Path) -> CommandAgent:
    """A member that runs the rehearsal program once per turn."""
    program = Path(__file__).with_name("rehearsal_seat.py")
    argv = (sys.executable, "-I", "-S", str(program))
    return CommandAgent(argv, prompts=prompts, is_deterministic=True)
