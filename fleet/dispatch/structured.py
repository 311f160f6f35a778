"""A JSON value out of an answer, and whether it matches a schema; the only user of jsonschema.

Pure. An agent writes prose around its value more often than not, so the value is looked for where agents put it:
the whole answer, the last fenced block, the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.errors import UsageProblem

__all__ = ["CORRECTIVE_ATTEMPTS", "MAX_ANSWER_BYTES", "Mismatch", "check_schema", "value_of"]

#: How often an answer that does not match is asked for again: the reference's.
CORRECTIVE_ATTEMPTS = 3

#: A longer answer is not read back for its value.
MAX_ANSWER_BYTES = 8 * 2**20

#: How many line beginnings are tried, from the end, for a value that ends the answer.
_TRIES = 200

_FENCED = re.compile(r"^ {0,3}```[A-Za-z0-9]*[ \t]*\n(.*?)^ {0,3}```[ \t]*$", re.MULTILINE | re.DOTALL)
_OPENING = re.compile(r"^[ \t]*(?=[\[{\"0-9tfn-])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why an answer is not accepted; one line: ``/items/0/name: 7 is not of type 'string'``."""

    text: str


def check_schema(schema: Mapping[str, Any] | bool, *, where: str = "outputSchema") -> None:
    """Refuse what is no JSON Schema, before anything starts.

    Raises:
        UsageProblem: it is none; ``where`` says whose it is.
    """
    from jsonschema import SchemaError  # type: ignore[import-untyped]  # it comes without types
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]

    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        path = "/".join(str(part) for part in error.absolute_path)
        raise UsageProblem(f"{where}: not a JSON Schema: /{path}: {_one_line(error.message)}") from error
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise UsageProblem(
                f"{where}: $ref {reference[:80]!r} leaves the schema",
                hint="put what it refers to under $defs",
            )


def value_of(answer: str, schema: Mapping[str, Any] | bool) -> Any | Mismatch:
    """The value in the answer that matches ``schema``, or why there is none.

    Of several candidates the first that matches is taken; if none does, the first one's violation is told.
    """
    mismatch: Mismatch | None = None
    for value in _candidates(answer):
        found = _violation(value, schema)
        if found is None:
            return value
        mismatch = mismatch or found
    return mismatch or Mismatch("there is no JSON value in the answer")


def _candidates(answer: str) -> list[Any]:
    found: list[Any] = []
    for text in (answer, *reversed(_FENCED.findall(answer))):
        try:
            found.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    if not found:
        found += _at_the_end(answer.rstrip())
    return found


def _at_the_end(answer: str) -> list[Any]:
    decoder = json.JSONDecoder()
    starts = [match.end() for match in _OPENING.finditer(answer)]
    for start in reversed(starts[-_TRIES:]):
        try:
            value, end = decoder.raw_decode(answer, start)
        except (ValueError, RecursionError):
            continue
        if end == len(answer) and isinstance(value, dict | list):
            return [value]
    return []


def _violation(value: Any, schema: Mapping[str, Any] | bool) -> Mismatch | None:
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]  # it comes without types
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # A registry of its own: without one a reference to an address would be fetched.
    validator = validator_for(schema)(schema, registry=Registry())
    try:
        error = best_match(validator.iter_errors(value))
    except Unresolvable as problem:
        return Mismatch(f"/: the schema refers to what is not in it: {_one_line(str(problem))}")
    if error is None:
        return None
    path = "/".join(str(part) for part in error.absolute_path)
    return Mismatch(f"/{path}: {_one_line(error.message)}")


def _references(schema: Any) -> Iterator[str]:
    match schema:
        case Mapping():
            for key, value in schema.items():
                if key == "$ref" and isinstance(value, str):
                    yield value
                yield from _references(value)
        case list():
            for entry in schema:
                yield from _references(entry)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
