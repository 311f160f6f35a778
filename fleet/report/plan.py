"""A plan as text for people: every team with its room and limits, every seat with what fills it. Pure.

Not here: the plan as JSON (``Plan.as_data``), from which this is made, so that both show the same and no secret.
"""

from __future__ import annotations

import shlex
from typing import Any

from fleet.deadline import show_duration
from fleet.plan import Plan
from roundtable.harmless import harmless_line

__all__ = ["plan_text"]


def plan_text(plan: Plan) -> str:
    """Lines without a newline at the end; each names one thing, on one line whatever it holds."""
    data = plan.as_data()
    lines = [
        f"fleet: {data['fleet']}",
        f"blueprint: {data['blueprint']}",
        f"task: {data['task']}",
        f"deadline: {_span(data['deadline_seconds'])}",
    ]
    if data["rehearsal"]:
        lines.append("rehearsal: no model would be used")
    for team in data["teams"]:
        lines += _team_lines(team, plan.run)
    return "\n".join(map(harmless_line, lines))


def _team_lines(team: dict[str, Any], run: str) -> list[str]:
    budgets = team["budgets"]
    # A room that the blueprint does not name ends in the run's id, and every run has its own.
    room = (team["room"] or "").replace(run, "ID")
    meeting = [
        f"  room: #{room}{' (ID: the id of the run)' if room != team['room'] else ''}",
        f"  rounds: {team['rounds']}",
    ]
    lines = [
        f"team {team['team']}: {team['mode']}",
        *(meeting if room else []),
        *([] if team["mode"] == "deliberate" else [f"  concurrency: {team['concurrency']}"]),
        f"  quorum: {team['quorum']} of {len(team['seats'])}",
        f"  deadline: {_span(team['deadline_seconds'])}",
        f"  digest: {budgets['digest']} chars, {budgets['perMessage']} per message",
    ]
    for seat in team["seats"]:
        lines += _seat_lines(seat)
    return lines


def _seat_lines(seat: dict[str, Any]) -> list[str]:
    lines = [f"  seat {seat['seat']}: {seat['runtime']} ({seat['reason']})"]
    if seat["command"]:
        lines.append(f"    argv: {shlex.join(seat['command'])}")
    if seat["definition"]:
        lines.append(f"    defined in: {seat['definition']}")
    if seat["model"]:
        lines.append(f"    model: {seat['model']}")
    lines += [f"    skill: {name} ({path})" for name, path in seat["skills"].items()]
    lines.append(f"    cwd: {seat['cwd']}")
    lines.append(f"    turn timeout: {_span(seat['turn_timeout_seconds'])}")
    lines += [f"    env: {name}={shlex.quote(value)}" for name, value in seat["env"].items()]
    return lines


def _span(seconds: float | None) -> str:
    return "none" if seconds is None else show_duration(seconds)
