"""What a chain file may say: one frozen model per level, strict, with every limit.

Not here: references between steps (``check``), files and positions (``load``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, StringConstraints, Tag
from pydantic_core import PydanticCustomError

from fleet.blueprint.schema import (
    MAX_MEMBERS,
    AgentDefinition,
    AgentName,
    Env,
    Listed,
    Name,
    Positive,
    Raw,
    Rule,
    Seconds,
    Skills,
    StrictModel,
    Text,
)
from fleet.chain.pointer import pointer_problem

__all__ = ["ChainFile", "Collect", "Expand", "From", "Step", "Task"]

#: Names of outputs and items; also what a reference may call them.
OUTPUT_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _output_name(text: str) -> str:
    if re.fullmatch(OUTPUT_NAME[1:-1], text) is None:
        problem = "must be an output name: letters, digits and _, not beginning with a digit"
        raise PydanticCustomError("value", "{text}", {"text": problem})
    return text


#: Not trimmed: a name with a line break behind it is no name.
OutputName = Annotated[
    str,
    StringConstraints(strip_whitespace=False),
    AfterValidator(_output_name),
    Field(json_schema_extra={"pattern": OUTPUT_NAME}),
]

#: Keys that say how a group of tasks works, and mean nothing for a single one.
_OF_GROUPS = ("concurrency", "failFast", "expand", "collect")


class Task(StrictModel):
    """One task for one agent."""

    agent: AgentName
    task: Text | None = None
    name: Name | None = None
    as_: OutputName | None = Field(default=None, alias="as")
    count: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] = 1
    output: Text | bool | None = None
    output_mode: Literal["inline", "digest", "file-only"] = "digest"
    output_schema: Mapping[str, Any] | Text | None = None
    reads: Listed[Text] | bool | None = None
    skills: Skills = ()
    model: Text | None = None
    runtime: AgentName | None = None
    cwd: Text | None = None
    env: Env = Field(default={})
    args: Listed[Raw] = ()
    timeout: Seconds | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    label: Text | None = None
    phase: Text | None = None
    progress: bool | None = None

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """A counted task has no one output; a switch can only be off."""
        count = data.get("count", 1)
        if "as" in data and isinstance(count, int) and count > 1:
            yield ("as",), "a name belongs to one output, and count gives several"
        for key in ("output", "reads"):
            if data.get(key) is True:
                what = "a path or false" if key == "output" else "a list of paths or false"
                yield (key,), f"expected {what}"


class From(StrictModel):
    """Where the items of a fan-out are."""

    output: OutputName
    path: str = ""

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """The path is a JSON Pointer."""
        yield from _pointer(data, "path")


class Expand(StrictModel):
    """One task per item of an earlier output."""

    from_: From = Field(alias="from")
    item: OutputName = "item"
    key: str | None = None
    max_items: Positive
    on_empty: Literal["skip", "fail"] = "skip"

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """The key is a JSON Pointer."""
        yield from _pointer(data, "key")


class Collect(StrictModel):
    """The output that all items together make."""

    as_: OutputName = Field(alias="as")
    output_schema: Mapping[str, Any] | Text | None = None


class Step(Task):
    """One step: a task, a group of tasks at the same time, or a task per item."""

    model_config = ConfigDict(title="Step of a chain")

    agent: AgentName | None = None  # type: ignore[assignment]  # a group has its agents in its tasks
    parallel: (
        Annotated[
            Annotated[Listed[Task], Tag("tasks")] | Annotated[Task, Tag("template")],
            Discriminator(lambda value: "tasks" if isinstance(value, list | tuple) else "template"),
        ]
        | None
    ) = None
    expand: Expand | None = None
    collect: Collect | None = None
    concurrency: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] | None = None
    fail_fast: bool = False
    worktree: Literal[False] | None = None

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """Which keys go together."""
        yield from super().rules(data)
        parallel = data.get("parallel")
        if "parallel" not in data:
            if "agent" not in data:
                yield (), "a step needs an agent, or parallel with tasks"
            for key in _OF_GROUPS:
                if key in data:
                    yield (key,), f"{key} belongs to a step with parallel"
            return
        own = {"parallel", *_OF_GROUPS, "label", "phase", "worktree"}
        for key in data:
            if key not in own:
                yield (key,), f"{key} belongs into the tasks of parallel"
        if "expand" in data:
            if isinstance(parallel, list):
                yield ("parallel",), "one task is the template of a fan-out; expected a map"
            if "collect" not in data:
                yield ("expand",), "a fan-out needs collect, the name of what its items give together"
            for key in ("as", "count", "name"):
                if isinstance(parallel, dict) and key in parallel:
                    yield ("parallel", key), f"the template of a fan-out does not support {key}"
        elif isinstance(parallel, dict):
            yield ("parallel",), "expected a list of tasks (one task as a map is the template of expand)"
        elif parallel == []:
            yield ("parallel",), "at least one task is required"
        if "collect" in data and "expand" not in data:
            yield ("collect",), "collect belongs to a step with expand"


class ChainFile(StrictModel):
    """A whole chain."""

    model_config = ConfigDict(title="Fleet chain")

    name: Name
    description: Text
    package: Text | None = None
    version: Literal[1] = 1
    task: Text | None = None
    agents: Mapping[AgentName, AgentDefinition] = {}
    concurrency: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] = 4
    deadline: Seconds | None = None
    chain: Annotated[Listed[Step], Field(min_length=1)]


def _pointer(data: Mapping[str, Any], key: str) -> Iterator[Rule]:
    written = data.get(key)
    if isinstance(written, str):
        problem = pointer_problem(written)
        if problem:
            yield (key,), f"{written[:80]!r} {problem}"
