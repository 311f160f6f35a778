"""What is written as YAML reads back as the same data, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.written import Entry, yaml_text
from fleet.yaml import parse


def entries(value: Any, note: str = "") -> Entry:
    if isinstance(value, dict):
        return Entry({key: entries(inner, note) for key, inner in value.items()}, note)
    if isinstance(value, list):
        return Entry([entries(inner, note) for inner in value], note)
    return Entry(value, note)


def text_of(value: dict[str, Any], note: str = "") -> str:
    return yaml_text({key: entries(inner, note) for key, inner in value.items()})


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain words", "k: plain words"),
        ("yes", 'k: "yes"'),
        ("Null", 'k: "Null"'),
        ("10m", "k: 10m"),
        ("1h30m", "k: 1h30m"),
        ("0123", 'k: "0123"'),
        ("a: b", 'k: "a: b"'),
        ("a # b", 'k: "a # b"'),
        ("- a", 'k: "- a"'),
        ("", 'k: ""'),
        ("\x1b[2J", 'k: "\\x1b[2J"'),
        ("é", 'k: "é"'),
        (True, "k: true"),
        (2.5, "k: 2.5"),
        ([], "k: []"),
        ({}, "k: {}"),
        (["a", "b c", "no"], 'k: [a, b c, "no"]'),
        ("one\ntwo", "k: |-\n  one\n  two"),
        ("one\n\ntwo\n", "k: |\n  one\n\n  two"),
        (" one\ntwo", 'k: " one\\ntwo"'),
    ],
)
def test_how_values_are_written(value: object, line: str) -> None:
    assert text_of({"k": value}) == line + "\n"


def test_notes_and_remarks() -> None:
    data = {
        "a": Entry(1, "default"),
        "b": Entry({"c": Entry("x\ny", "from f")}, "two\nlines"),
        "d": Entry(None, "only said", is_remark=True),
    }
    assert yaml_text(data) == (
        "a: 1  # default\nb:  # two lines\n  c: |-  # from f\n    x\n    y\n# only said\n"
    )


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40) | st.text(
    "ab \n\t#:-\"'|>%@`,[]{}&*!", max_size=20
)
scalars = (
    texts | st.integers(-(2**63), 2**63) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
)
keys = texts.filter(lambda key: key.strip() != "")
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(keys, values, max_size=4), st.sampled_from(["", "default", "from # x: y"]))
def test_it_reads_back_as_the_same(data: dict[str, Any], note: str) -> None:
    text = text_of(data, note)
    document = parse(text.encode(), name="x")
    assert document.problems == ()
    assert document.data == data
    assert all(line.isprintable() for line in text.split("\n"))


@given(st.dictionaries(keys, texts, max_size=4))
def test_a_reader_of_the_older_yaml_agrees_on_texts(data: dict[str, Any]) -> None:
    assert yaml.safe_load(text_of(data)) == data
