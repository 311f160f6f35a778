"""Blueprints: the files in which people declare teams, as frozen values with positions."""

from __future__ import annotations

from fleet.blueprint.find import find_blueprint
from fleet.blueprint.load import Loaded, load_blueprint
from fleet.blueprint.not_built import not_built
from fleet.blueprint.schema import AgentDefinition, Blueprint, Member, Team
from fleet.blueprint.seats import Seat, seats_of

__all__ = [
    "AgentDefinition",
    "Blueprint",
    "Loaded",
    "Member",
    "Seat",
    "Team",
    "find_blueprint",
    "load_blueprint",
    "not_built",
    "seats_of",
]
