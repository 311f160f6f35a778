"""An agent file -> what fills a seat: markdown, its settings above, its text the system prompt.

A subagent file of Claude Code and an agent file of OpenCode are read as they are. Settings of other programs that
mean nothing here are left alone; one that limits or widens what an agent may do is never ignored for being ill-formed.

Not here: where such files lie (`find`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path

from fleet.agents.front_matter import Markdown, read_markdown
from fleet.blueprint.beside import argv_beside, path_from
from fleet.blueprint.explain import check
from fleet.blueprint.schema import AgentDefinition
from fleet.blueprint.wording import in_order
from fleet.errors import InvalidFile, Problem
from fleet.yaml import Document

__all__ = ["AgentFile", "read_agent"]

#: Broken ones are errors: leaving them out would let an agent do more, or something else, than was written.
_GUARDED = frozenset(
    """runtime command session model tools disallowedTools permission permissions permissionMode approvals env args cwd
    isolation prompt""".split()  # noqa: SIM905 - a list of literals would hide the words
)
#: Often written on one line with commas, as Claude Code and the published dialect do.
_LISTS = frozenset(
    "skills fallbackModels fallbackThinkingLevels extensions defaultReads".split()  # noqa: SIM905
)
#: Other names of what is known here.
_ALIASES = {"system": "prompt", "disabled": "disable", "maxSteps": "steps"}
#: Models that Claude Code knows by a first name, or by its maker's.
_CLAUDE_MODEL = re.compile(r"(?:opus|sonnet|haiku|opusplan|best)(?:\[1m\])?|claude-.+")
_NO_NAME = re.compile(r"[^a-z0-9._-]+")

#: How alike an unknown key must be to a known one to be told as a slip.
_LIKENESS = 0.78


@dataclass(frozen=True, slots=True)
class AgentFile:
    """One agent as its file has it; paths in it are absolute."""

    name: str  #: what blueprints call it: ``package.name``, or ``name``, or the file's
    definition: AgentDefinition
    path: Path
    document: Document  #: where its settings stand
    fingerprint: str  #: SHA-256 of the file's bytes, in hexadecimal
    warnings: tuple[Problem, ...]  #: what was left out, or is probably a slip
    notes: tuple[Problem, ...]  #: how it was read where that is not as it was written
    unused: tuple[str, ...]  #: settings of other programs


def read_agent(path: Path, *, shown: str) -> AgentFile | None:
    """Read one file; ``shown`` is how problems call it. ``None`` for markdown without settings, which is no agent.

    Raises:
        InvalidFile: with every problem at once.
    """
    markdown, content = read_markdown(path, shown=shown)
    if markdown.front is None:
        return None
    document = markdown.front
    if not isinstance(document.data, dict):
        raise InvalidFile((document.problem(("(document)",), "expected settings, one key per line"),))
    warnings: list[Problem] = []
    notes = [] if markdown.note is None else [markdown.note]
    data, unused = _known(document, warnings)
    _set_prompt(data, markdown, document, warnings)
    name = _take_name(data, path, document, notes)
    _settle_model(data)
    definition = _checked(replace(document, data=data), warnings)
    return AgentFile(
        name=name,
        definition=_with_paths(definition, path.parent.absolute()),
        path=path,
        document=document,
        fingerprint=sha256(content).hexdigest(),
        warnings=tuple(warnings),
        notes=tuple(notes),
        unused=unused,
    )


def _known(document: Document, warnings: list[Problem]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The settings that mean something here, in our words, and the keys of the others."""
    fields = {field.alias or name for name, field in AgentDefinition.model_fields.items()}
    written = document.data if isinstance(document.data, dict) else {}
    data: dict[str, object] = {}
    unused: list[str] = []
    for key, value in written.items():
        ours = key if key in fields else _ALIASES.get(key, key)
        if ours in data:
            continue
        if ours not in fields:
            unused.append(key)
            near = get_close_matches(key, fields, n=1, cutoff=_LIKENESS)
            if near:
                warnings.append(document.problem((key,), f'unknown key, did you mean "{near[0]}"?'))
            continue
        if value is None:
            warnings.append(document.problem((key,), "nothing stands behind this key"))
            continue
        is_row = ours in _LISTS and isinstance(value, str)
        data[ours] = [part.strip() for part in str(value).split(",") if part.strip()] if is_row else value
    return data, tuple(unused)


def _set_prompt(
    data: dict[str, object], markdown: Markdown, document: Document, warnings: list[Problem]
) -> None:
    if not markdown.body:
        return
    if "prompt" in data:
        warnings.append(
            document.problem(("prompt",), "the text below the settings is the prompt; this is not")
        )
    data["prompt"] = markdown.body


def _take_name(data: dict[str, object], path: Path, document: Document, notes: list[Problem]) -> str:
    """What blueprints call it: made of what is written, and of the file's name where nothing usable is."""
    written = data.get("name", path.stem)
    text = str(written).strip()
    name = _NO_NAME.sub("-", text.lower()) if re.fullmatch(r"[A-Za-z0-9._-]+", text) is None else text
    name = name.strip("-._")[:60] or _NO_NAME.sub("-", path.stem.lower()).strip("-._")[:60] or "agent"
    if name != text:
        notes.append(document.problem(("name",), f"blueprints call it {name}"))
    package = data.get("package")
    if isinstance(package, str) and re.fullmatch(r"[a-z0-9][a-z0-9.-]*", package.strip()):
        name = f"{package.strip()}.{name}"[:60].rstrip("-._")
    data["name"] = name
    return name


def _settle_model(data: dict[str, object]) -> None:
    """``inherit`` names no model, ``sonnet`` one of Anthropic's, and ``x/y#high`` an effort too."""
    model = data.get("model")
    if not isinstance(model, str):
        return
    model, _, variant = model.strip().partition("#")
    if variant:
        data.setdefault("effort", variant)
    if model == "inherit":
        del data["model"]
    else:
        data["model"] = f"anthropic/{model}" if _CLAUDE_MODEL.fullmatch(model) else model


def _checked(document: Document, warnings: list[Problem]) -> AgentDefinition:
    """The definition; a broken setting that guards nothing is left out and told."""
    data = dict(document.data) if isinstance(document.data, dict) else {}
    definition, problems = check(document, AgentDefinition)
    broken = [problem for problem in (*document.problems, *problems) if _top(problem) in _GUARDED]
    for problem in (*document.problems, *problems):
        if problem not in broken:
            warnings.append(replace(problem, text=f"{problem.text}; left out"))
            data.pop(_top(problem), None)
    if definition is None and not broken:
        definition = check(replace(document, data=data), AgentDefinition)[0]
    if definition is None or broken:
        raise InvalidFile(in_order(broken or problems))
    return definition


def _top(problem: Problem) -> str:
    return re.split(r"[.\[]", problem.key, maxsplit=1)[0]


def _with_paths(definition: AgentDefinition, folder: Path) -> AgentDefinition:
    """Make the paths absolute that are written relative to the file."""
    changed: dict[str, object] = {}
    if definition.command:
        changed["command"] = argv_beside(definition.command, folder)
    if definition.cwd is not None:
        changed["cwd"] = str(path_from(definition.cwd, folder))
    return definition.model_copy(update=changed) if changed else definition
