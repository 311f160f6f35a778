"""Whether what is to fill the seats is here, asked of all of them before anything starts."""

from __future__ import annotations

import os
import shutil

from fleet.errors import RuntimeMissing
from fleet.plan import Plan, SeatPlan
from fleet.settings import Settings

__all__ = ["check_seats", "seat_problem"]


def check_seats(plan: Plan, settings: Settings) -> None:
    """Look for every seat's working directory and program.

    Raises:
        RuntimeMissing: something is not there; all of it in one message.
    """
    missing: dict[str, str] = {}
    for team in plan.teams:
        for seat in team.seats:
            problem = seat_problem(seat, settings)
            if problem:
                missing[seat.name] = problem
    if missing:
        raise RuntimeMissing(missing, hint="nothing was started; check the paths and PATH")


def seat_problem(seat: SeatPlan, settings: Settings) -> str | None:
    """What is not there for one seat, as a clause, or ``None``."""
    if not seat.cwd.is_dir():
        return f"its working directory {seat.cwd} is not there"
    if seat.command is None:
        return None
    program = seat.command[0]
    path = seat.env.get("PATH", settings.environ.get("PATH", os.defpath))
    if shutil.which(program, path=path) is None:
        is_there = "/" in program and os.path.exists(program)  # noqa: PTH110 - a name may hold anything
        return f"{program} cannot be executed" if is_there else f"{program} is not there"
    return None
