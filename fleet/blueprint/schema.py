"""What a blueprint may say: one frozen model per level, strict, with every limit.

The same models validate a file and print its JSON Schema. Keys are camelCase in files and snake_case here. A
bool is no integer, ``"2"`` is none either, text is trimmed, names match as a whole.

Not here: files, positions and messages (`load`, `explain`), seats (`seats`), and whether this version
can do what a blueprint asks for (`not_built`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    Strict,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import NullableSchema, WithDefaultSchema

from fleet.deadline import parse_duration
from roundtable.names import is_topic

__all__ = [
    "COLORS",
    "MAX_MEMBERS",
    "AgentDefinition",
    "Blueprint",
    "Budget",
    "Budgets",
    "Defaults",
    "FileSchema",
    "Gate",
    "Layout",
    "Member",
    "Orchestrator",
    "StrictModel",
    "Team",
]

#: Members of one team after ``count`` is expanded: the reference's ceiling of parallel tasks.
MAX_MEMBERS = 50
#: Rounds of one deliberation; the reference's.
MAX_ROUNDS = 10
#: The longest deadline in milliseconds: the greatest delay of a 32-bit timer, kept as contract.
MAX_DEADLINE_MS = 2_147_483_647
#: Default ceiling of one turn of one member, in seconds.
DEFAULT_TURN_SECONDS = 300.0
#: Names of rooms and members on the wire are at most this long.
MAX_NAME = 64
#: The name of the orchestrating loop in a room.
CONDUCTOR = "conductor"
#: Characters of a name that is to be numbered: ``-100`` still fits within `MAX_NAME`.
_MAX_COUNTED = MAX_NAME - 4
#: Names that `color` takes beside ``#rrggbb``.
COLORS = (
    *("black", "blue", "cyan", "gray", "green", "grey", "magenta"),
    *("orange", "pink", "purple", "red", "white", "yellow"),
)

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
#: Four characters short of `MAX_NAME`, so that ``-100`` still fits behind it.
_AGENT_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$"
_DURATION = r"^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?$"

Rule = tuple[tuple[str | int, ...], str]  #: where, relative to the model, and what is wrong


class StrictModel(BaseModel):
    """Base of every level of a file: frozen, no unknown keys, no conversions, text trimmed.

    Rules between keys are reported together with what is wrong in single keys, so that a half-valid file is
    told everything at once.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        str_strip_whitespace=True,
        alias_generator=to_camel,
        allow_inf_nan=False,
        defer_build=True,
    )

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield what is wrong between keys; ``data`` is as written and may be ill-typed anywhere."""
        return iter(())

    @model_validator(mode="wrap")
    @classmethod
    def _report_all(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        written = data if isinstance(data, dict) else {}
        broken = list(cls.rules(data)) if isinstance(data, dict) else []
        # A key with nothing behind it is a slip, not a way to say "the default".
        keys = {field.alias or name for name, field in cls.model_fields.items()}
        empty = [key for key, value in written.items() if value is None and key in keys]
        found = [
            *(InitErrorDetails(type=_wrong("expected a value"), loc=(key,), input=None) for key in empty),
            *(InitErrorDetails(type=_rule(text), loc=path, input=data) for path, text in broken),
        ]
        if not found:
            return handler(data)
        try:
            handler(data)
        except ValidationError as error:
            found = [*map(_again, error.errors(include_url=False)), *found]
        raise ValidationError.from_exception_data(cls.__name__, found)


def _again(error: Any) -> InitErrorDetails:
    """An error of a level below, ready to be raised once more with others beside it."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in {"rule", "value"}:
        kind = PydanticCustomError(kind, "{text}", context)
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=context)


def _rule(text: str) -> PydanticCustomError:
    """A broken rule between keys: ``text`` is the whole sentence."""
    return PydanticCustomError("rule", "{text}", {"text": text})


def _wrong(text: str) -> PydanticCustomError:
    """What a validator of one value raises; `explain` adds the value where the sentence needs it."""
    return PydanticCustomError("value", "{text}", {"text": text})


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise _wrong("contains a NUL character, which no program can be given")
    return text


def _filled(text: str) -> str:
    if not text:
        raise _wrong("expected a non-empty string")
    return _no_nul(text)


def _name(text: str) -> str:
    if re.fullmatch(_NAME[1:-1], text) is None:
        raise _wrong("must be alphanumeric with - or _, at most 64 characters (it keys broker-side cursors)")
    return text


def _agent_name(text: str) -> str:
    if re.fullmatch(_AGENT_NAME[1:-1], text) is None:
        raise _wrong("must be an agent runtime name: alphanumeric with . - or _, at most 60 characters")
    return text


def _variable(text: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is None:
        raise _wrong("must be a variable name: letters, digits and _, not beginning with a digit")
    return text


def _topic(text: str) -> str:
    if not is_topic(text):
        raise _wrong("expected one line of 1 to 200 characters")
    return text


def _color(text: str) -> str:
    if text not in COLORS and re.fullmatch(r"#[0-9a-fA-F]{6}", text) is None:
        raise _wrong(f"is not a color; allowed: #rrggbb, {', '.join(COLORS)}")
    return text


def _seconds(value: object) -> float:
    """Seconds of a duration as written; an int is refused, since nobody knows its unit."""
    seconds = parse_duration(value) if isinstance(value, str) else None
    if seconds is None or seconds * 1000 > MAX_DEADLINE_MS:
        raise _wrong("expected a duration such as 90s, 10m or 1h30m, at most 24 days")
    return seconds


def _number(value: object) -> object:
    """Let whole numbers stand for floats, but no bool."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _version(value: int) -> int:
    if value != 1:
        raise _wrong("this loader understands version 1")
    return value


def _group(value: object) -> bool | str:
    if not isinstance(value, bool | str) or value is False or value == "":
        raise _wrong("expected true or the name of a group")
    return value if isinstance(value, bool) else _name(value.strip())


def _variable_value(value: object) -> str | int | float | bool:
    if not isinstance(value, str | int | float | bool):
        raise _wrong("expected text, a number, true or false")
    return value


def _tools(value: object) -> object:
    """The three ways agent files write tools: a list, ``Read, Grep``, and ``{write: false}``, as a list."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, dict) and all(isinstance(switch, bool) for switch in value.values()):
        return [tool if is_on else f"-{tool}" for tool, is_on in value.items()]
    return value


class FileSchema(GenerateJsonSchema):
    """The JSON Schema of a file: an optional key may be left out, but not be null; no titles made up from names."""

    def nullable_schema(self, schema: NullableSchema) -> JsonSchemaValue:
        """Describe the value alone."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Leave out a default of ``None``, which no file can say."""
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Keys speak for themselves."""
        return False


T = TypeVar("T")

Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": _NAME})]
AgentName = Annotated[str, AfterValidator(_agent_name), Field(json_schema_extra={"pattern": _AGENT_NAME})]
Text = Annotated[str, AfterValidator(_filled), Field(json_schema_extra={"minLength": 1})]
#: Handed to a program exactly as written: arguments and environment values are not trimmed.
Raw = Annotated[str, StringConstraints(strip_whitespace=False), AfterValidator(_no_nul)]
Variable = Annotated[
    str, AfterValidator(_variable), Field(json_schema_extra={"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
]
#: What a room takes as its topic.
Topic = Annotated[str, AfterValidator(_topic), Field(json_schema_extra={"minLength": 1, "maxLength": 200})]
Color = Annotated[
    str,
    AfterValidator(_color),
    WithJsonSchema({"anyOf": [{"enum": list(COLORS)}, {"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"}]}),
]
Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    WithJsonSchema(
        {"type": "string", "pattern": _DURATION, "minLength": 2, "examples": ["90s", "10m", "1h30m"]}
    ),
]
Listed = Annotated[tuple[T, ...], Strict(False)]
Positive = Annotated[int, Field(ge=1)]
Number = Annotated[float, BeforeValidator(_number)]
Skills = Listed[Text]
Env = Mapping[Variable, Raw]
Tools = Annotated[
    Listed[Text],
    BeforeValidator(_tools),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "string"},
                {"type": "object", "additionalProperties": {"type": "boolean"}},
            ]
        }
    ),
]

Mode = Literal["dispatch", "deliberate", "deliberate-then-dispatch"]
Protocol = Literal["free", "round-robin", "moderated"]
Drive = Literal["runtime", "agent"]
Layout = Literal["windows", "tiled", "even-horizontal", "even-vertical", "main-horizontal", "main-vertical"]
Approvals = Literal["deny", "allow-read", "allow"]


class Budgets(StrictModel):
    """How much one digest may carry, in characters."""

    digest: Positive = 2000
    per_message: Positive = 600


class Defaults(StrictModel):
    """What holds for every team that does not say otherwise."""

    concurrency: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] = 4
    budgets: Budgets = Budgets()


class Budget(StrictModel):
    """What the whole run may spend; crossing one ends it like a deadline."""

    usd: Annotated[Number, Field(gt=0)] | None = None
    tokens: Positive | None = None
    minutes: Annotated[Number, Field(gt=0)] | None = None


class Orchestrator(StrictModel):
    """Who writes the decision of record; without an agent it is extractive."""

    model: Text | None = None
    agent: AgentName | None = None
    prompt: Text | None = None


class Gate(StrictModel):
    """What must hold before a run counts as passed."""

    reviewers: Annotated[Listed[Text], Field(min_length=1)] | None = None
    model: Text | None = None

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """An empty gate is refused."""
        if not data:
            yield (), "an empty gate gates nothing — set reviewers, model, or remove the block"


class DigestOptions(StrictModel):
    """How digests are made."""

    summarizer: AgentName | None = None


class AgentDefinition(StrictModel):
    """What fills a seat: the fields of an agent file; those of Claude Code and OpenCode included."""

    name: AgentName | None = None
    description: Text | None = None
    prompt: Text | None = None
    runtime: AgentName | None = None
    command: Annotated[Listed[Annotated[Raw, Field(min_length=1)]], Field(min_length=1)] | None = None
    session: bool = False
    model: Text | None = None
    fallback_models: Listed[Text] = ()
    fallback_thinking_levels: Listed[Text] = ()
    thinking: Text | None = None
    effort: Text | None = None
    tools: Tools | None = None
    disallowed_tools: Tools | None = None
    skills: Skills = ()
    skill: Text | None = None
    env: Env = {}
    args: Listed[Raw] = ()
    cwd: Text | None = None
    color: Color | None = None
    approvals: Approvals | None = None
    output: Text | None = None
    extensions: Listed[Text] = ()
    package: Text | None = None
    system_prompt_mode: Literal["replace", "append"] | None = None
    inherit_project_context: bool | None = None
    inherit_skills: bool | None = None
    default_context: Literal["fresh", "fork"] | None = None
    default_reads: Listed[Text] = ()
    default_progress: bool | None = None
    interactive: bool | None = None
    max_subagent_depth: Annotated[int, Field(ge=0)] | None = None
    # Claude Code's
    permission_mode: Text | None = None
    max_turns: Positive | None = None
    mcp_servers: Listed[Any] | Mapping[str, Any] | None = None
    hooks: Mapping[str, Any] | None = None
    memory: Text | None = None
    background: bool | None = None
    isolation: Text | None = None
    initial_prompt: Text | None = None
    # OpenCode's
    mode: Literal["primary", "subagent", "all"] | None = None
    temperature: Number | None = None
    top_p: Number | None = Field(default=None, alias="top_p")
    steps: Positive | None = None
    permission: Any = None
    permissions: Listed[Any] | None = None
    variant: Text | None = None
    disable: bool | None = None
    hidden: bool | None = None

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """A `command` runtime and its argv belong together."""
        if data.get("runtime") == "command" and "command" not in data:
            yield ("runtime",), "the command runtime needs `command`, the argv of the program"
        if data.get("session") is True and "command" not in data:
            yield ("session",), "session belongs to the command runtime; there is no `command` here"


class Member(StrictModel):
    """One entry of a team: an agent, how many of it, and what is special about it here."""

    agent: AgentName
    name: Name | None = None
    count: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] = 1
    brief: Text | None = None
    brief_path: Text | None = None
    runtime: AgentName | None = None
    model: Text | None = None
    fallback_models: Listed[Text] = ()
    skills: Skills = ()
    tools: Listed[Text] | None = None
    cwd: Text | None = None
    env: Env = {}
    args: Listed[Raw] = ()
    output: Text | None = None
    timeout: Seconds | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    color: Color | None = None
    worktree: bool | None = None
    approvals: Approvals | None = None

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """At most one brief."""
        if "brief" in data and "briefPath" in data:
            yield ("briefPath",), "brief and briefPath are mutually exclusive — use one"


class Team(StrictModel):
    """Members and how they work together."""

    mode: Mode
    members: Annotated[Listed[Member], Field(min_length=1)]
    room: Name | None = None
    topic: Topic | None = None
    rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] = 2
    protocol: Protocol = "free"
    drive: Drive = "runtime"
    observer: AgentName | None = None
    quorum: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] | None = None
    deadline: Seconds | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=MAX_DEADLINE_MS)] | None = None
    turn_timeout: Seconds = DEFAULT_TURN_SECONDS
    blocking: bool = False
    concurrency: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] | None = None
    fail_fast: bool = False
    group: (
        Annotated[
            bool | str,
            BeforeValidator(_group),
            WithJsonSchema({"anyOf": [{"const": True}, {"type": "string", "pattern": _NAME}]}),
        ]
        | None
    ) = None
    skills: Skills = ()
    layout: Layout = "windows"
    worktree: bool | None = None
    approvals: Approvals | None = None
    approve: bool = False

    @property
    def deadline_seconds(self) -> float | None:
        """Seconds this team has, from ``deadline`` or ``deadlineMs``; ``None`` leaves it to the run."""
        return self.deadline_ms / 1000 if self.deadline_ms is not None else self.deadline

    @property
    def turn_timeout_seconds(self) -> float:
        """Seconds one turn of one member may take."""
        return self.turn_timeout

    @property
    def quorum_size(self) -> int:
        """How many seats must reach a FINAL: ``quorum``, by default all."""
        return self.quorum if self.quorum is not None else self.size

    @property
    def size(self) -> int:
        """Seats, with every ``count`` expanded."""
        return sum(member.count for member in self.members)

    @property
    def deliberates(self) -> bool:
        """Whether its members meet in a room."""
        return self.mode != "dispatch"

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """One deadline, at most `MAX_MEMBERS` seats, a quorum that can be met, names that are taken once."""
        if "deadline" in data and "deadlineMs" in data:
            yield ("deadlineMs",), "deadline and deadlineMs are mutually exclusive — use one"
        written = data.get("members")
        members = (
            [member for member in written if isinstance(member, dict)] if isinstance(written, list) else []
        )
        counts = [_whole(member.get("count", 1)) for member in members]
        size = sum(counts)
        if size > MAX_MEMBERS >= max(counts):  # a single count over the limit is told at its own key
            yield (
                ("members",),
                f"expands to {size} members; the dispatch ceiling is {MAX_MEMBERS} (MAX_PARALLEL_TASKS)",
            )
        quorum = _whole(data.get("quorum"))
        # A count that is none itself says nothing about the size.
        if members and min(counts) > 0 and quorum > size:
            yield ("quorum",), f"{quorum} is more than the {size} members of this team"
        names = Counter(member["name"].strip() for member in members if isinstance(member.get("name"), str))
        for index, member in enumerate(written if isinstance(written, list) else ()):
            name = member.get("name") if isinstance(member, dict) else None
            if isinstance(name, str) and names[name.strip()] > 1:
                yield ("members", index, "name"), f'"{name.strip()[:80]}" is taken more than once; use count'
            if (
                isinstance(name, str)
                and len(name.strip()) > _MAX_COUNTED
                and _whole(member.get("count", 1)) > 1
            ):
                text = f"at most {_MAX_COUNTED} characters where count is above 1, so that the number fits behind it"
                yield ("members", index, "name"), text
            key = "agent" if name is None else "name"
            seat = member.get(key) if isinstance(member, dict) else None
            if isinstance(seat, str) and seat.strip() == CONDUCTOR and _whole(member.get("count", 1)) == 1:
                yield (
                    ("members", index, key),
                    f'a seat may not be called "{CONDUCTOR}", the name of who runs the team',
                )


class Blueprint(StrictModel):
    """A whole blueprint."""

    model_config = ConfigDict(title="Fleet blueprint")

    name: Name
    description: Text
    version: Annotated[int, AfterValidator(_version), WithJsonSchema({"const": 1})] = 1
    task: Text | None = None
    vars: Mapping[
        Variable,
        Annotated[
            str | int | float | bool,
            BeforeValidator(_variable_value),
            WithJsonSchema({"type": ["string", "number", "boolean"]}),
        ],
    ] = {}
    orchestrator: Orchestrator | None = None
    defaults: Defaults = Defaults()
    agents: Mapping[AgentName, AgentDefinition] = {}
    teams: Annotated[Mapping[Name, Team], Field(min_length=1)]
    pipeline: Listed[Name] | None = None
    gate: Gate | None = None
    budget: Budget | None = None
    digest: DigestOptions | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """The teams in the order they run: ``pipeline``, by default as declared."""
        return self.pipeline if self.pipeline is not None else tuple(self.teams)

    def room(self, team: str) -> str:
        """The room of ``team`` as written, or the default ``fleet-<fleet>-<team>``."""
        return self.teams[team].room or default_room(self.name, team)

    @classmethod
    def rules(cls, data: Mapping[str, Any]) -> Iterator[Rule]:
        """A pipeline names every declared team exactly once."""
        pipeline, teams = data.get("pipeline"), data.get("teams")
        if not isinstance(pipeline, list) or not isinstance(teams, dict):
            return
        seen: set[str] = set()
        for index, written in enumerate(pipeline):
            name = written.strip() if isinstance(written, str) else ""
            if not name:
                continue
            if name not in teams:
                yield (
                    ("pipeline", index),
                    f'"{name[:80]}" is not a declared team; declared: {", ".join(teams)}',
                )
            elif name in seen:
                yield ("pipeline", index), f'"{name}" appears more than once'
            seen.add(name)
        missing = [name for name in teams if name not in seen]
        if missing:
            yield (
                ("pipeline",),
                f"must name every declared team exactly once; missing: {', '.join(missing)}",
            )


def default_room(fleet: str, team: str, *, suffix: str = "") -> str:
    """``fleet-<fleet>-<team>`` and ``suffix``; over 64 characters the name is cut and ends in its hash."""
    name = f"fleet-{fleet}-{team}"
    if len(name) + len(suffix) > MAX_NAME:
        name = f"{name[: MAX_NAME - len(suffix) - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
    return name + suffix


def _whole(value: object) -> int:
    """An int as written, 0 for anything else: what is ill-typed is reported elsewhere."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
