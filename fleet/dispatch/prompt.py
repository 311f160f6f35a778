"""What a dispatched member is asked, as text. Pure.

A task with nothing around it (no prompt of the agent, no brief, no file) is asked as it stands, so that any program
can be given it. Not here: the questions of a deliberation, which have a room around them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from fleet.dispatch.assignment import Assignment

__all__ = ["again_prompt", "dispatch_prompt"]

_FORM = (
    "End your answer with one JSON value that matches this JSON Schema, in a block fenced with ```json and ```, "
    "and nothing after it:"
)

_TURN = (
    "Do what of the task is yours by your brief, within what you were given, and nothing beyond it. Then say in a few "
    "sentences what you actually did, what you left undone, and where it can be seen."
)


def dispatch_prompt(assignment: Assignment) -> str:
    """The text of the prompt, ending in one newline."""
    sections = list(_sections(assignment))
    if not sections and assignment.team is None:
        return assignment.text.rstrip("\n") + "\n"
    parts = [f"## {title}\n{body}" for title, body in [("Task", assignment.text.strip()), *sections]]
    if assignment.team is not None:
        parts.insert(0, _introduction(assignment))
    return "\n\n".join(parts) + "\n"


def again_prompt(prompt: str, problem: str, *, attempt: int, attempts: int, has_memory: bool) -> str:
    """What is asked after an answer that was not in the form it should have; all anew of who does not remember."""
    again = (
        f"## Your last answer was not accepted\nCorrective attempt {attempt}/{attempts}: {problem}\n"
        "Give the whole answer again, in the form that was asked for.\n"
    )
    return again if has_memory else f"{prompt.rstrip()}\n\n{again}"


def _introduction(assignment: Assignment) -> str:
    others = f" The others: {', '.join(assignment.mates)}." if assignment.mates else ""
    total = len(assignment.mates) + 1
    return (
        f'You are "{assignment.seat.name}", one of {total} members of the team "{assignment.team}".{others}\n'
        "Each works alone, and nobody reads what the others write."
    )


def _sections(assignment: Assignment) -> Iterator[tuple[str, str]]:
    seat = assignment.seat
    if assignment.decided:
        yield "What was decided", assignment.decided.strip()
    if seat.persona:
        yield "Who you are", seat.persona
    if seat.brief:
        yield "Your brief", seat.brief
    if seat.skills:
        lines = ["Read the file of a skill before you do what it is for:"]
        for skill in seat.skills:
            what = f" ({skill.description})" if skill.description else ""
            lines.append(f"- {skill.name}: {skill.path}{what}")
        yield "Skills", "\n".join(lines)
    if assignment.reads:
        yield "Read first", "\n".join(f"- {path}" for path in assignment.reads)
    if assignment.output is not None:
        yield "Output", f"Write your findings to: {assignment.output}"
    if assignment.schema is not None:
        schema = json.dumps(assignment.schema, ensure_ascii=False, indent=2)
        yield "Form of the answer", f"{_FORM}\n\n```json\n{schema}\n```"
    if assignment.team is not None:
        yield "This turn", _TURN
