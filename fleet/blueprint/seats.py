"""Team -> its seats, each with a name of its own.

Pure. An agent used once keeps its name; one used more often is numbered ``agent-1``, ``agent-2``, … in the
order of the members, and what is taken as a name elsewhere is skipped. A member's ``name``
counts like an agent of that name, but a single one is always kept as written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.blueprint.schema import Member, Team

__all__ = ["Seat", "seats_of"]


@dataclass(frozen=True, slots=True)
class Seat:
    """One place in a team's room."""

    name: str  #: unique in the team
    agent: str  #: the agent that fills it
    member: Member  #: the entry of the blueprint it comes from
    index: int  #: of that entry in ``team.members``, from 0
    number: int  #: among the seats of that entry, from 1


def seats_of(team: Team) -> tuple[Seat, ...]:
    """Return one seat per member and count, in the order they are written."""
    written: Counter[str] = Counter()  # how many seats want a name that the blueprint spells out
    agents: Counter[str] = Counter()
    for member in team.members:
        if member.name is not None:
            written[member.name] += member.count
        else:
            agents[member.agent] += member.count
    reserved = {name for name, total in written.items() if total == 1}
    singles = {name for name, total in agents.items() if total == 1} - reserved  # a written name goes first

    taken: set[str] = set()
    last: Counter[str] = Counter()
    seats: list[Seat] = []
    for index, member in enumerate(team.members):
        base = member.agent if member.name is None else member.name
        is_kept = base in (singles if member.name is None else reserved)
        for number in range(1, member.count + 1):
            name = base if is_kept else _next(base, last, taken | reserved | singles)
            taken.add(name)
            seats.append(Seat(name, member.agent, member, index, number))
    return tuple(seats)


def _next(base: str, last: Counter[str], taken: set[str]) -> str:
    """The next free ``base-N``; ``last`` remembers the numbers tried."""
    while True:
        last[base] += 1
        name = f"{base}-{last[base]}"
        if name not in taken:
            return name
