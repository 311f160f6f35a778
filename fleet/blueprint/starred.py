"""What people are shown of values that may be secret: ``***`` in their place. Pure.

A name tells most of it (`fleet.settings.is_secret`); in a list of arguments the option before a value, or the word
before its ``=``; for the rest the shapes of keys that well-known services give out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fleet.settings import is_secret

__all__ = ["STARS", "starred", "starred_variables", "starred_words"]

STARS = "***"

#: OpenAI, Anthropic and their like; GitHub; Slack; Google; AWS; npm; Hugging Face. Whole runs of their characters.
_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|xox[a-z]-[A-Za-z0-9-]{8,}"
    r"|AIza[\w-]{16,}|AKIA[A-Z0-9]{12,}|npm_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{16,})"
)
#: After these words of an HTTP header nothing is shown.
_BEARER = re.compile(r"\b(Bearer|Basic|Token)\s+\S+", re.IGNORECASE)
#: Values under these keys are nobody's business, whatever they are called.
_ALL_HIDDEN = frozenset({"headers", "http_headers", "httpHeaders"})


def starred_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables of an environment, the secret ones as stars."""
    return {name: STARS if is_secret(name, value) else _text(value) for name, value in variables.items()}


def starred_words(words: Sequence[str]) -> list[str]:
    """The words of a command line: ``--api-key x``, ``--api-key=x`` and ``API_KEY=x`` without the ``x``."""
    shown: list[str] = []
    is_next_hidden = False
    for word in words:
        name, equals, value = word.partition("=")
        is_option = word.startswith("-")
        if is_next_hidden and not is_option:
            shown.append(STARS)
        elif equals and is_secret(name.lstrip("-").replace("-", "_"), value):
            shown.append(f"{name}={STARS}")
        else:
            shown.append(_text(word))
        is_next_hidden = is_option and not equals and is_secret(name.lstrip("-").replace("-", "_"), "")
    return shown


def starred(value: object) -> object:
    """Nested settings of any kind, such as ``mcpServers``, as plain data without what looks secret."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {str(key): _under(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return (
            starred_words(value) if all(isinstance(item, str) for item in value) else [*map(starred, value)]
        )
    return value


def _under(key: str, value: object) -> object:
    if key in _ALL_HIDDEN:
        return dict.fromkeys(map(str, value), STARS) if isinstance(value, Mapping) else STARS
    if isinstance(value, str | int | float) and not isinstance(value, bool) and is_secret(key, str(value)):
        return STARS
    return starred(value)


def _text(text: str) -> str:
    return STARS if is_secret("", text) else _BEARER.sub(rf"\1 {STARS}", _SHAPES.sub(STARS, text))
