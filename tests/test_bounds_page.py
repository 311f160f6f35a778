"""The page that tells where the bounds are says what the code does."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"

CONSTANT = re.compile(r"`((?:roundtable|fleet)[a-zA-Z_.]*)\.([A-Za-z_]+)` = ([0-9.]+) \|")


def rows() -> list[tuple[str, str, str]]:
    return [match.groups() for line in PAGE.read_text().splitlines() for match in CONSTANT.finditer(line)]  # type: ignore[misc]


def value(module: str, name: str) -> float:
    parent, _, last = module.rpartition(".")
    if last[:1].isupper():  # a field of a value with defaults
        return float(getattr(getattr(import_module(parent), last)(), name))
    return float(getattr(import_module(module), name))


@pytest.mark.parametrize(("module", "name", "told"), rows(), ids=lambda text: text)
def test_a_bound_is_what_the_page_says(module: str, name: str, told: str) -> None:
    assert value(module, name) == float(told)


def test_every_limit_of_what_enters_a_context_is_on_the_page() -> None:
    told = {name for _, name, _ in rows()}
    bounds = re.compile(
        r"^((?:MAX|MIN|DEFAULT)_[A-Z_]*(?:CHARS|MESSAGES)|MAX_RETAINED_[A-Z]+|NOTICE_CHARS) = ", re.MULTILINE
    )
    found = {
        name
        for path in (PAGE.parent.parent / "roundtable").rglob("*.py")
        for name in bounds.findall(path.read_text())
    }
    inside = {
        "MIN_FETCH_CHARS",  # a smaller number counts as it; no more enters by it
        "MAX_FETCH_MESSAGES",  # what a room retains
        "MAX_BODY_CHARS",  # of a transcript, as it is read; a longer body is read in parts
    }
    assert found - inside <= told, "a bound without a row"
