"""From the name of a runtime to an agent in a seat; the only place that knows every runtime that is built."""

from __future__ import annotations

from pathlib import Path

from fleet.agents.base import Agent
from fleet.agents.command import CommandAgent
from fleet.agents.rehearsal import rehearsal_agent

__all__ = ["make_agent"]


def make_agent(runtime: str, *, command: tuple[str, ...] | None, prompts: Path) -> Agent:
    """An agent that has not started.

    ``command`` is the argv of the ``command`` runtime; ``prompts`` a private folder for prompt files.
    """
    match runtime:
        case "rehearsal":
            return rehearsal_agent(prompts=prompts)
        case "command" if command:
            return CommandAgent(command, prompts=prompts)
        case _:
            raise ValueError(f"runtime {runtime} with command {command}: the plan has checked this")
