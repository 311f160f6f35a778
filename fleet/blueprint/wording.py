"""The words in which problems of a file are told, whoever found them: what was got, and which known name is near.

Pure, and light to import: reading a roles manifest should not pay for the models of a blueprint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fleet.yaml import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.errors import Problem

__all__ = ["did_you_mean", "echo", "in_order", "received"]

#: An offending scalar is echoed up to here, so that pointing a reader at a secret file does not print it.
_MAX_ECHO = 80


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems as they stand in the file, each once."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: (problem.line, problem.column)))


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """``, did you mean "x"?`` for the nearest of ``known``, or nothing."""
    from difflib import get_close_matches  # only a file with an error pays for it

    by_form = {name.casefold(): name for name in known}
    near = get_close_matches(str(word)[:100].casefold(), by_form, n=1, cutoff=0.6)
    return f', did you mean "{by_form[near[0]]}"?' if near else ""


def echo(value: object) -> str:
    """A value as JSON on one line, at most 80 characters of it; what JSON lacks as YAML."""
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _MAX_ECHO else f"{text[:_MAX_ECHO]}… [{len(text)} chars]"


def received(value: object) -> str:
    """What stands where something else was expected: ``nothing`` for a key without a value."""
    return "nothing" if value is None else echo(value)
