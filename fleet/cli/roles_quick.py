"""``roles`` without the parser of command lines, whose import takes as long as reading a manifest.

It knows the plainest words only. Whatever it does not take, and whatever goes wrong, is left to `fleet.cli.roles`,
which begins anew: so there is one place that says what is wrong.
"""

from __future__ import annotations

import sys

from fleet.cli.roles_output import FORMATS, LAYOUTS, Request, output
from roundtable.overview import show_page

__all__ = ["request_from", "run_quickly"]

#: Option -> field of a request, and what it takes; ``()`` for anything.
_OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "--format": ("form", FORMATS),
    "--binary": ("binary", ()),
    "--session-name": ("session_name", ()),
    "--layout": ("layout", LAYOUTS),
}


def run_quickly(words: list[str]) -> int | None:
    """Print what the words ask for and return the exit code; ``None`` if nothing was written and nothing done."""
    request = request_from(words)
    if request is None:
        return None
    try:
        text, said = output(request)
        text.encode()  # a path that is not UTF-8 on disk
        errors = "".join(f"{line}\n" for line in said)
        if sys.stderr is not None:
            sys.stderr.write(errors)
    except Exception:  # whatever it is, the parser meets it again and tells of it as ever
        return None
    return show_page(text)


def request_from(words: list[str]) -> Request | None:
    """What well-formed words ask for; ``None`` for all others."""
    given: dict[str, str | bool] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--replace":
            given["is_replacing"] = True
        elif name in _OPTIONS:
            field, allowed = _OPTIONS[name]
            value = value if equals else next(rest, "-")
            if value.startswith("-") or (allowed and value not in allowed):
                return None
            given[field] = value
        elif word.startswith("-") or not word or "file" in given:
            return None
        else:
            given["file"] = word
    return Request(**given)  # type: ignore[arg-type]  # each field has its own option
