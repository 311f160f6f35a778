"""Manifests: one table reads them and prints their schema, and the two agree."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import InvalidFile, Problem
from fleet.roles.manifest import Manifest, Role, load_manifest, manifest_schema, validate_manifest
from fleet.yaml import Document, parse

FOLDER = Path("/nowhere")

#: Mostly what a manifest has, so that some are valid.
TEXTS = st.sampled_from(["a", "x-1", "two words", "", "ü", "#den", "n" * 64, "n" * 65])
VALUES = st.one_of(TEXTS, st.none(), st.booleans(), st.integers(-1, 5), st.floats(), st.just([]), st.just({}))
ROLES = st.fixed_dictionaries(
    {"provider": TEXTS, "model": st.sampled_from(["m", "m/n"])},
    optional={"room": VALUES, "cwd": VALUES, "worktree": TEXTS, "wrong": VALUES},
)
MANIFESTS = st.fixed_dictionaries(
    {"task": TEXTS, "room": TEXTS, "roles": st.dictionaries(TEXTS, st.one_of(ROLES, VALUES), max_size=3)},
    optional={
        "budgets": st.one_of(
            VALUES,
            st.dictionaries(st.sampled_from(["digest", "perMessage", "x"]), st.integers(-1, 9) | VALUES),
        ),
        "wrong": VALUES,
    },
)


def manifest(data: Any) -> Manifest:
    return validate_manifest(Document("x", data, {}, {}), FOLDER / "x.roles.yaml").manifest


def is_valid(data: Any) -> bool:
    try:
        manifest(data)
    except InvalidFile:
        return False
    return True


@given(st.one_of(MANIFESTS, VALUES, st.just({})))
def test_the_schema_is_what_is_checked(data: Any) -> None:
    schema = jsonschema.Draft202012Validator(manifest_schema()).is_valid(data)
    # JSON Schema takes 2.0 for an integer, and minLength counts the spaces that are trimmed here.
    has_float = ".0" in json.dumps(data)
    assert is_valid(data) == schema or has_float


def test_what_is_left_out_has_its_default() -> None:
    read = manifest({"task": "t", "room": "r", "roles": {"a": {"provider": "p", "model": "m"}}})
    assert read.roles == {"a": Role("p", "m", None, None, "active", None)}
    assert (read.budgets.digest, read.budgets.per_message) == (2000, 600)
    half = manifest(
        {
            "task": "t",
            "room": "r",
            "roles": {"a": {"provider": "p", "model": "m"}},
            "budgets": {"perMessage": 7},
        }
    )
    assert (half.budgets.digest, half.budgets.per_message) == (2000, 7)


def test_text_is_trimmed_and_names_too() -> None:
    read = manifest({"task": " t ", "room": "r\n", "roles": {" a": {"provider": " p", "model": "m "}}})
    assert (read.task, read.room, read.roles) == ("t", "r", {"a": Role("p", "m")})


def test_words_of_old_yaml_are_text(tmp_path: Path) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text("task: yes\nroom: on\nroles: {no: {provider: off, model: 'null'}}\n")
    read = load_manifest(path).manifest
    assert (read.task, read.room, list(read.roles)) == ("yes", "on", ["no"])
    assert (read.roles["no"].provider, read.roles["no"].model) == ("off", "null")


@pytest.mark.parametrize("value", ["true", "0", "2.5", '"2000"', "-1", "1e3", ".inf", "~", "[1]"])
def test_a_budget_is_a_positive_integer(tmp_path: Path, value: str) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text(
        f"task: t\nroom: r\nroles: {{a: {{provider: p, model: m}}}}\nbudgets: {{digest: {value}}}\n"
    )
    with pytest.raises(InvalidFile) as caught:
        load_manifest(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.key) == (4, 11, "budgets.digest")
    assert problem.text.startswith("expected a positive integer, got ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_brief_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("x")
    (tmp_path / "b.md").chmod(0)
    path = tmp_path / "roles.yaml"
    path.write_text("task: t\nroom: r\nroles: {a: {provider: p, model: m, brief: b.md}}\n")
    with pytest.raises(InvalidFile, match=f"not readable: {tmp_path}/b.md"):
        load_manifest(path)


PIECES = st.sampled_from(
    [
        *(
            "task",
            "room",
            "roles",
            "budgets",
            "provider",
            "model",
            "brief",
            ": ",
            ":\n",
            "\n",
            "  ",
            "- ",
            "{",
            "}",
            "[",
        ),
        *(
            "]",
            ",",
            "&a ",
            "*a",
            "<<",
            "!x ",
            "!!int ",
            "'",
            '"',
            "|\n",
            "#",
            "t",
            "1",
            "~",
            "?",
            "\t",
            "\r",
            "---\n",
        ),
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_a_manifest_or_has_problems(text: str) -> None:
    problems: tuple[Problem, ...] | None = None
    try:
        validate_manifest(parse(text.encode(), name="x"), FOLDER / "x.roles.yaml")
    except InvalidFile as error:
        problems = error.problems
    assert problems is None or all(found.line >= 1 and found.column >= 1 and found.text for found in problems)
    assert problems != ()
