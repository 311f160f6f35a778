"""A document and a model -> the value, or every problem as one sentence with its position and a near name.

Pure. The words it shares with roles manifests are in `wording`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from pydantic import ValidationError

from fleet.blueprint.schema import COLORS, StrictModel
from fleet.blueprint.wording import did_you_mean, echo, in_order, received
from fleet.yaml import KeyPath, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

    from fleet.errors import Problem
    from fleet.yaml import Document

__all__ = ["check", "did_you_mean", "echo", "in_order"]

_EMPTY = {
    "members": "at least one member is required",
    "teams": "at least one team is required",
    "roles": "at least one role is required",
    "reviewers": "at least one reviewer, or omit the key",
}
_LISTS = {"members": "expected a list of members", "pipeline": "expected a list of teams"}
_MAPS = {
    "teams": "expected a map of team name to settings",
    "roles": "expected a map of role name to settings",
    "agents": "expected a map of agent name to settings",
    "vars": "expected a map of variable name to value",
    "env": "expected a map of variable name to text",
}
#: Values below these keys may be empty.
_TEXTS = frozenset({"args", "env"})
#: Numbers that may be 0, or any number at all; what else is a number here is above 0.
_FROM_ZERO = frozenset({"retries", "maxSubagentDepth"})
_ANY_NUMBER = frozenset({"temperature", "top_p"})
_CEILINGS = {
    "rounds": "the sane ceiling of {}",
    "concurrency": "the parallel-task ceiling of {}",
    "deadlineMs": "the maximum timer delay of {} ms",
}
#: What a value of these keys is called in a sentence.
_NOUNS = {"mode": "a mode", "protocol": "a protocol", "layout": "a layout"}

M = TypeVar("M", bound=StrictModel)


def check(document: Document, model: type[M]) -> tuple[M | None, tuple[Problem, ...]]:
    """Validate and say everything that is wrong; the value is ``None`` when something in it is.

    The document's own problems (duplicate keys and the like) are not repeated here.
    """
    try:
        return model.model_validate(document.data), ()
    except ValidationError as error:
        found: dict[KeyPath, Problem] = {}  # a union reports each of its branches; the first one speaks
        for details in error.errors(include_url=False):
            if details["type"] == "too_short" and details["input"]:
                continue  # its entries are told one by one; only the valid ones were counted
            path = _path(document, details)
            if path in document.unreadable and details["type"] != "rule":
                continue  # told already; what stands there in its place says nothing
            text = _sentence(details, path, model)
            key = (*path, text) if details["type"] in ("rule", "extra_forbidden") else path
            found.setdefault(key, document.problem(path or ("(document)",), text))
        return None, in_order(found.values())


def _path(document: Document, details: ErrorDetails) -> KeyPath:
    """The key path of an error, without the names pydantic adds for the branches of a union."""
    path: KeyPath = ()
    for part in details["loc"]:
        inner = (*path, part)
        is_written = inner in document.values
        if is_written or (details["type"] == "missing" and inner == details["loc"]):
            path = inner
    return path


def _sentence(details: ErrorDetails, path: KeyPath, model: type[StrictModel]) -> str:
    """What is wrong with one value."""
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    key = path[-1] if path and isinstance(path[-1], str) else ""
    got = f", got {received(value)}"
    match kind:
        case "rule":
            return printable(str(context["text"]))
        case "missing":
            return f"a required key is missing{_members_hint(key)}"
        case "extra_forbidden":
            allowed = _allowed(model, path[:-1])
            return f"unknown key; allowed here: {', '.join(allowed)}{did_you_mean(key, allowed)}"
        case "value":
            return _value_sentence(str(context["text"]), value, got)
        case "string_type":
            is_plain = isinstance(value, int | float)
            is_text = any(part in _TEXTS for part in path[-2:-1])
            noun = "text" if is_text else "a non-empty string"
            return f"expected {noun}{got}{' (quotes make it text)' if is_plain else ''}"
        case "bool_type":
            return f"expected true or false{got}"
        case "int_type" | "int_from_float" | "int_parsing" | "int_parsing_size":
            noun = "a whole number, at least 0" if key in _FROM_ZERO else "a positive integer"
            return f"expected {noun}{got}"
        case "float_type" | "float_parsing" | "finite_number" | "greater_than":
            return f"expected {'a number' if key in _ANY_NUMBER else 'a positive number'}{got}"
        case "greater_than_equal":
            least = context["ge"]
            noun = "a positive integer" if least == 1 else f"a whole number, at least {least}"
            return f"expected {noun}{got}"
        case "less_than_equal":
            return f"{received(value)} exceeds {_CEILINGS.get(key, 'the limit of {}').format(context['le'])}"
        case "literal_error":
            allowed = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
            if value is None:
                return f"expected {_NOUNS.get(key, 'a value')}{got}; allowed: {', '.join(allowed)}"
            noun = _NOUNS.get(key, "allowed here")
            return f"{received(value)} is not {noun}; allowed: {', '.join(allowed)}{did_you_mean(value, allowed)}"
        case "tuple_type" | "list_type":
            return f"{_LISTS.get(key, 'expected a list')}{got}"
        case "too_short" | "string_too_short" if isinstance(value, str):
            return f"expected a non-empty string{got}"
        case "too_short":
            return _EMPTY.get(key, "expected at least one entry")
        case "dict_type" | "mapping_type" | "model_type" | "model_attributes_type":
            if not path:
                return f"expected a map at the top level{got}"
            return f"{_MAPS.get(key, 'expected a map of settings')}{got}"
        case _:
            return f"{printable(details['msg'])[:200]}{got}"


def _value_sentence(text: str, value: object, got: str) -> str:
    """A sentence of one of the schema's own validators, with the value where it belongs."""
    if text.startswith(("expected", "this loader")):
        return text + got
    if text.startswith("is not a color"):
        return f"{received(value)} {text}{did_you_mean(value, COLORS)}"
    if text.startswith("must"):
        return f"{received(value)} {text}"
    return text


def _members_hint(key: str) -> str:
    return f"; {_EMPTY[key]}" if key in _EMPTY else ""


def _allowed(model: type[StrictModel], path: Sequence[str | int]) -> list[str]:
    """The keys of the model at ``path``, as files write them."""
    current, parts = model, list(path)
    while parts:
        part = parts.pop(0)
        fields = {field.alias or name: field for name, field in current.model_fields.items()}
        if part not in fields:
            break
        inner, is_container = _model_in(fields[str(part)].annotation)
        if inner is None:
            break
        current = inner
        if is_container and parts:
            parts.pop(0)
    return [field.alias or name for name, field in current.model_fields.items()]


def _model_in(annotation: Any) -> tuple[type[StrictModel] | None, bool]:
    """The model inside an annotation, and whether a key or an index leads to it."""
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        return annotation, False
    is_container = get_origin(annotation) in (tuple, Mapping)
    for argument in get_args(annotation):
        inner, is_nested = _model_in(argument)
        if inner is not None:
            return inner, is_container or is_nested
    return None, False
