"""What a valid blueprint asks for and this version does not do, each with its position.

Pure. `fleet run` refuses such a blueprint before anything starts; `fleet validate` does not mind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.blueprint.load import Loaded
    from fleet.blueprint.schema import AgentDefinition, Member, Team
    from fleet.errors import Problem
    from fleet.yaml import KeyPath

__all__ = ["not_built"]

_ABSENT = "is not available in this version"


def not_built(loaded: Loaded) -> tuple[Problem, ...]:
    """Return one problem per key that this version cannot do, in the file's order; ``()`` if it can run."""
    found = [loaded.problem(path, text) for path, text in _found(loaded)]
    return tuple(sorted(found, key=lambda problem: (problem.line, problem.column)))


def _found(loaded: Loaded) -> Iterator[tuple[KeyPath, str]]:
    blueprint = loaded.blueprint
    if blueprint.gate is not None:
        yield ("gate",), f"gate {_ABSENT}"
    if blueprint.orchestrator is not None:
        for key in ("agent", "prompt", "model"):
            if getattr(blueprint.orchestrator, key) is not None:
                yield ("orchestrator", key), f"an orchestrator {_ABSENT} (available: the extractive decision)"
    if blueprint.digest is not None and blueprint.digest.summarizer is not None:
        yield ("digest", "summarizer"), f"digest.summarizer {_ABSENT}"
    for name, agent in blueprint.agents.items():
        for key, text in _of_agent(agent):
            yield ("agents", name, key), text
    for name, team in blueprint.teams.items():
        for key, text in _of_team(team):
            yield ("teams", name, key), text
        for index, member in enumerate(team.members):
            for key, text in _of_member(member, team):
                yield ("teams", name, "members", index, key), text


def _of_team(team: Team) -> Iterator[tuple[str, str]]:
    if team.protocol != "free":
        yield "protocol", f"{team.protocol} {_ABSENT} (available: free)"
    if team.drive != "runtime":
        yield "drive", f"drive: {team.drive} {_ABSENT} (available: runtime)"
    if team.observer is not None:
        yield "observer", f"observer {_ABSENT}"
    if team.worktree:
        yield "worktree", f"worktree {_ABSENT}"
    if team.approvals == "allow":
        yield "approvals", f"approvals: allow {_ABSENT} (available: deny, allow-read)"
    if team.approve:
        yield "approve", f"approve {_ABSENT}"
    if team.group is not None:
        yield "group", f"group {_ABSENT}"


def _of_member(member: Member, team: Team) -> Iterator[tuple[str, str]]:
    if member.worktree:
        yield "worktree", f"worktree {_ABSENT}"
    if member.approvals == "allow":
        yield "approvals", f"approvals: allow {_ABSENT} (available: deny, allow-read)"
    if member.fallback_models:
        yield "fallbackModels", f"fallbackModels {_ABSENT}"
    if member.output is not None and team.mode == "deliberate":
        yield "output", f"output of a member that only deliberates {_ABSENT} (available: its artifact)"


def _of_agent(agent: AgentDefinition) -> Iterator[tuple[str, str]]:
    if agent.session:
        yield "session", f"session: true {_ABSENT} (available: one process per turn)"
    if agent.approvals == "allow":
        yield "approvals", f"approvals: allow {_ABSENT} (available: deny, allow-read)"
    if agent.fallback_models:
        yield "fallbackModels", f"fallbackModels {_ABSENT}"
    if agent.output is not None:
        yield "output", f"output {_ABSENT} (available: the artifact in the run folder)"
