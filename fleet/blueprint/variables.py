"""A blueprint and what ``--var`` says -> the blueprint with its own texts filled in, each rendered once.

Templates are the ``task``, every ``topic`` and every inline ``brief``. A file that ``briefPath`` names is text and no
template, and so is a task from the command line.

Pure. Not here: what a template may hold (`template`, which is imported only where a text has marks of one).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.blueprint.wording import did_you_mean, echo, in_order
from fleet.errors import InvalidFile, Problem, UsageProblem
from roundtable.names import is_topic

if TYPE_CHECKING:
    from fleet.blueprint.load import Loaded
    from fleet.blueprint.schema import Blueprint, Member, Team
    from fleet.yaml import Document, KeyPath

__all__ = ["template_problems", "with_variables"]

_MARKS = re.compile(r"\{[{%]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SWITCHES = {"true": True, "false": False}

Scalar = str | int | float | bool


def with_variables(
    loaded: Loaded, given: Sequence[str] = (), *, is_task_needed: bool = True, is_lenient: bool = False
) -> tuple[Loaded, tuple[Problem, ...]]:
    """Fill in every template. ``given`` holds ``NAME=VALUE`` words; they go before the defaults under ``vars``.

    Without ``is_task_needed`` the task stays as it is. With ``is_lenient`` a text whose variable has no value stays
    as it is, and the problem is returned beside the blueprint instead of raised.

    Raises:
        UsageProblem: a word is no ``NAME=VALUE``, names something that no text asks for, or has a value of another
            kind than its default.
        InvalidFile: a template is broken, lacks a value, or gives what may not stand there; all of it at once.
    """
    texts = dict(_texts(loaded.blueprint, is_task_needed=is_task_needed))
    values = _values(loaded.blueprint, given, _asked_for(texts.values()))
    problems: list[Problem] = []
    lacking: list[Problem] = []

    def fill(key: KeyPath, text: str) -> str:
        if key not in texts:
            return text
        rendered, problem, is_lacking = _rendered(loaded, key, text, values)
        if problem is not None:
            (lacking if is_lenient and is_lacking else problems).append(problem)
        return rendered

    filled = _filled(loaded.blueprint, fill)
    if problems:
        raise InvalidFile(in_order(problems))
    return replace(loaded, blueprint=filled), in_order(lacking)


def template_problems(document: Document) -> Iterator[Problem]:
    """What is wrong with templates whatever their values are, found even where the rest is not valid."""
    data = document.data if isinstance(document.data, dict) else {}
    texts: list[tuple[KeyPath, object]] = [(("task",), data.get("task"))]
    teams = data.get("teams")
    for name, team in teams.items() if isinstance(teams, dict) else ():
        if not isinstance(team, dict):
            continue
        texts.append((("teams", name, "topic"), team.get("topic")))
        members = team.get("members")
        for index, member in enumerate(members if isinstance(members, list) else ()):
            if isinstance(member, dict):
                texts.append((("teams", name, "members", index, "brief"), member.get("brief")))
    for key, text in texts:
        if isinstance(text, str) and _MARKS.search(text):
            from fleet.blueprint.template import Broken, variables

            try:
                variables(text)
            except Broken as error:
                yield document.problem(key, _said(error))


def _rendered(
    loaded: Loaded, key: KeyPath, text: str, values: Mapping[str, Scalar]
) -> tuple[str, Problem | None, bool]:
    """The text, what is wrong with it, and whether that is only a value that is not there."""
    from fleet.blueprint.template import Broken, render

    try:
        rendered = render(text, values).strip()
    except Broken as error:
        if error.variable is None:
            return text, loaded.problem(key, _said(error)), False
        near = did_you_mean(error.variable, values)
        how = f"; give it one with --var {error.variable}=… or under vars{near}"
        return text, loaded.problem(key, f"{_said(error)}{how}"), True
    if not rendered:
        return text, loaded.problem(key, "nothing is left of it once it is filled in"), False
    if "\x00" in rendered:
        return text, loaded.problem(key, "contains a NUL character once it is filled in"), False
    if key[-1] == "topic" and not is_topic(rendered):
        said = f"is no line of 1 to 200 characters once it is filled in, but {echo(rendered)}"
        return text, loaded.problem(key, said), False
    return rendered, None, False


def _said(error: Exception) -> str:
    line = getattr(error, "line", 1)
    return f"{error} (line {line} of the text)" if line > 1 else str(error)


def _texts(blueprint: Blueprint, *, is_task_needed: bool) -> Iterator[tuple[KeyPath, str]]:
    """Every text of the blueprint's own that has marks of a template in it."""
    texts: list[tuple[KeyPath, str | None]] = [(("task",), blueprint.task if is_task_needed else None)]
    for name, team in blueprint.teams.items():
        texts.append((("teams", name, "topic"), team.topic))
        texts += [
            (("teams", name, "members", index, "brief"), member.brief)
            for index, member in enumerate(team.members)
        ]
    return ((key, text) for key, text in texts if text is not None and _MARKS.search(text))


def _asked_for(texts: Iterable[str]) -> frozenset[str]:
    """The names that the templates ask for; a broken one is told where it is rendered."""
    names: set[str] = set()
    for text in texts:
        from fleet.blueprint.template import Broken, variables

        with suppress(Broken):
            names |= variables(text)
    return frozenset(names)


def _values(blueprint: Blueprint, given: Sequence[str], asked_for: frozenset[str]) -> dict[str, Scalar]:
    values: dict[str, Scalar] = dict(blueprint.vars)
    known = {*blueprint.vars, *asked_for}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or _NAME.fullmatch(name) is None:
            raise UsageProblem(f"--var: {word[:80]!r} is not NAME=VALUE", hint="--var subject='the queue'")
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageProblem(
                f'--var: no text of this blueprint asks for "{name}"{did_you_mean(name, known)}',
                hint=f"its variables: {listed}",
            )
        values[name] = _like(blueprint.vars.get(name, ""), name, text)
    return values


def _like(default: Scalar, name: str, text: str) -> Scalar:
    """``text`` as a value of the kind that the default has."""
    try:
        if isinstance(default, bool):
            return _SWITCHES[text.strip().lower()]
        if isinstance(default, int | float):
            return int(text) if isinstance(default, int) else float(text)
    except (KeyError, ValueError):
        kind = (
            "true or false"
            if isinstance(default, bool)
            else "a whole number"
            if isinstance(default, int)
            else "a number"
        )
        raise UsageProblem(f"--var: {name} takes {kind}, got {text[:80]!r}") from None
    return text


def _filled(blueprint: Blueprint, fill: Callable[[KeyPath, str], str]) -> Blueprint:
    teams = {name: _filled_team(name, team, fill) for name, team in blueprint.teams.items()}
    task = blueprint.task if blueprint.task is None else fill(("task",), blueprint.task)
    changed: dict[str, object] = {} if teams == blueprint.teams else {"teams": teams}
    if task != blueprint.task:
        changed["task"] = task
    return blueprint.model_copy(update=changed) if changed else blueprint


def _filled_team(name: str, team: Team, fill: Callable[[KeyPath, str], str]) -> Team:
    changed: dict[str, object] = {}
    members = tuple(
        _filled_member(("teams", name, "members", index, "brief"), member, fill)
        for index, member in enumerate(team.members)
    )
    if members != team.members:
        changed["members"] = members
    topic = team.topic if team.topic is None else fill(("teams", name, "topic"), team.topic)
    if topic != team.topic:
        changed["topic"] = topic
    return team.model_copy(update=changed) if changed else team


def _filled_member(key: KeyPath, member: Member, fill: Callable[[KeyPath, str], str]) -> Member:
    brief = member.brief if member.brief is None else fill(key, member.brief)
    return member if brief == member.brief else member.model_copy(update={"brief": brief})
