"""What a member is asked, from the templates beside this file.

Only our own templates are ever template source; a task, a brief or a message is a value and is never rendered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.agents.skills import Skill
from fleet.runs.outcome import Phase

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["Question", "turn_prompt"]


@dataclass(frozen=True, slots=True)
class Question:
    """Everything one turn's prompt is made of."""

    team: str
    room: str
    seat: str
    others: tuple[str, ...]
    task: str
    topic: str | None
    persona: str | None
    brief: str | None
    phase: Phase
    rounds: int
    per_message: int  #: what a digest shows of one message, in characters
    record: str = ""  #: where the whole discussion lies
    digest: str = ""
    last_words: str = ""  #: the seat's own last answer, for an agent without memory
    is_asked_again: bool = False
    decided: str = ""  #: what earlier teams decided, bounded
    skills: tuple[Skill, ...] = ()


def turn_prompt(question: Question) -> str:
    """The text of one prompt, ending in one newline."""
    values = {name: getattr(question, name) for name in Question.__dataclass_fields__}
    values["phase"] = question.phase.value
    values["total"] = len(question.others) + 1
    return _template().render(values).rstrip() + "\n"


@cache
def _template() -> Template:
    # jinja2 costs 40 ms of start-up; only a run that really asks something pays it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).with_name("prompts"))
    # Prompts are plain text for a program's stdin; there is no markup to escape.
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, autoescape=False)  # noqa: S701
    return environment.get_template("turn.j2")
