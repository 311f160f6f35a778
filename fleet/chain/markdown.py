"""A chain as markdown: settings above, then one ``## agent`` section per step, its settings and its task below.

A line of a task that would begin a section is written with a backslash before it, and read without one, so that a
chain that was saved is the same when it is loaded. Groups and fan-outs have no form here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleet.agents.front_matter import read_markdown
from fleet.chain.schema import ChainFile
from fleet.errors import InvalidFile, UsageProblem
from fleet.yaml import Document, KeyPath, Position

__all__ = ["data_of", "to_markdown"]

_SECTION = re.compile(r"##[ \t]+(\S.*?)[ \t]*")
_ESCAPED = re.compile(r"\\+##(?=[ \t])")
_KEY = re.compile(r"([A-Za-z]+):[ \t]*(.*?)[ \t]*")

#: What a section may set, each on one line.
_KEYS = frozenset(
    """output phase label as outputSchema outputMode reads model skills progress name timeout
    retries""".split()  # noqa: SIM905 - a list of literals would hide the words
)

#: Those with commas in them are lists.
_LISTS = frozenset({"reads", "skills"})

_SWITCHES = {"true": True, "false": False}


def data_of(path: Path) -> Document:
    """The chain as the data that a yaml file would have, with the positions of its keys.

    Raises:
        InvalidFile: it cannot be read, or has no settings, or a section holds what it may not.
    """
    shown = str(path)
    markdown, content = read_markdown(path, shown=shown)
    front = markdown.front
    if front is None or not isinstance(front.data, dict):
        raise _invalid(
            shown, 1, "a chain begins with settings between two lines of ---: name and description"
        )
    lines = content.decode("utf-8-sig").splitlines()
    keys: dict[KeyPath, Position] = dict(front.keys)
    steps: list[dict[str, Any]] = []
    start = _after_settings(lines)
    section: list[tuple[int, str]] = []
    name = ""
    for number in range(start, len(lines) + 1):
        found = _SECTION.fullmatch(lines[number - 1])
        if found is None:
            section.append((number, lines[number - 1]))
            continue
        if name:
            steps.append(_step(shown, name, section, len(steps), keys))
        elif any(line.strip() for _, line in section):
            raise _invalid(
                shown, section[0][0], "text before the first section: a section begins with ## AGENT"
            )
        name, section = found[1], []
        keys["chain", len(steps)] = Position(number, 1)
        keys["chain", len(steps), "agent"] = Position(number, 4)
    if name:
        steps.append(_step(shown, name, section, len(steps), keys))
    data = {**front.data, "chain": steps}
    keys.setdefault(("chain",), Position(start, 1))
    values = {**keys, **front.values}
    return Document(front.name, data, keys, values, front.problems, content=content)


def to_markdown(file: ChainFile) -> str:
    """The chain in this form.

    Raises:
        UsageProblem: it has a group, a fan-out, an inline schema, or a key that has no form here.
    """
    lines = ["---", f"name: {file.name}", f"description: {_quoted(file.description)}"]
    for key, value in (("package", file.package), ("task", file.task)):
        if value is not None:
            lines.append(f"{key}: {_quoted(value)}")
    lines += ["---", ""]
    for number, step in enumerate(file.chain, start=1):
        written = step.model_dump(by_alias=True, exclude_unset=True)
        agent, task = written.pop("agent", None), written.pop("task", None)
        unknown = sorted(set(written) - _KEYS)
        if agent is None or unknown or isinstance(step.output_schema, Mapping):
            what = "a group" if agent is None else ", ".join(unknown) or "an inline outputSchema"
            raise UsageProblem(
                f"step {number}: {what} cannot be written as markdown",
                hint="save it as .chain.yaml or .chain.json",
            )
        lines.append(f"## {agent}")
        lines += [f"{key}: {_line(value)}" for key, value in written.items()]
        lines += ["", *map(_escaped, (task or "").split("\n")), ""]
    return "\n".join(lines)


def _step(
    shown: str, name: str, section: list[tuple[int, str]], index: int, keys: dict[KeyPath, Position]
) -> dict[str, Any]:
    step: dict[str, Any] = {"agent": name}
    at = 0
    for number, line in section:
        if not line.strip():
            break
        found = _KEY.fullmatch(line)
        if found is None:
            break
        key, value = found[1], found[2]
        if key not in _KEYS:
            raise _invalid(shown, number, f"{key}: not a key of a section; known: {', '.join(sorted(_KEYS))}")
        if key == "outputSchema" and value.startswith("{"):
            raise _invalid(shown, number, "outputSchema: an inline schema has no place here; name a file")
        keys["chain", index, key] = Position(number, 1)
        step[key] = _value(key, value)
        at += 1
    body = [
        _ESCAPED.sub(lambda m: m[0][1:], line, count=1) if _ESCAPED.match(line) else line
        for _, line in section[at:]
    ]
    task = "\n".join(body).strip()
    if task:
        step["task"] = task
        keys["chain", index, "task"] = Position(section[at][0], 1)
    return step


def _value(key: str, value: str) -> Any:
    if key in _LISTS and value not in _SWITCHES:
        return [part.strip() for part in value.split(",") if part.strip()]
    if key == "retries" and value.isdecimal():
        return int(value)
    if key in {"progress", "reads", "output"} and value in _SWITCHES:
        return _SWITCHES[value]
    return value


def _line(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(value)
    if isinstance(value, float):
        from fleet.deadline import show_duration

        return show_duration(value)
    return str(value)


def _escaped(line: str) -> str:
    return f"\\{line}" if re.match(r"\\*##[ \t]", line) else line


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _after_settings(lines: list[str]) -> int:
    """The number of the line behind the settings; they are known to be there."""
    fences = [number for number, line in enumerate(lines, start=1) if line.rstrip() == "---"]
    return fences[1] + 1


def _invalid(shown: str, line: int, text: str) -> InvalidFile:
    return InvalidFile(
        (Document(shown, {}, {(): Position(line, 1)}, {(): Position(line, 1)}).problem((), text),)
    )
