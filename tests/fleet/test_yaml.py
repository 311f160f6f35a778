"""YAML 1.2 core types, positions, and everything that must be refused."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import InvalidFile
from fleet.yaml import MAX_BYTES, Document, dotted, parse, printable, read


def data(text: str) -> object:
    document = parse(text.encode(), name="f.yaml")
    assert document.problems == ()
    return document.data


def complaints(text: str | bytes) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    try:
        return [str(problem) for problem in parse(content, name="f.yaml").problems]
    except InvalidFile as error:
        return str(error).split("\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("0123", 123),
        ("0o17", 15),
        ("0x1F", 31),
        ("+12", 12),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("1e3", 1000.0),
        ("1.10", 1.1),
        (".5", 0.5),
        ("", None),
        ("~", None),
        ("null", None),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("<<", "<<"),
        ("=", "="),
    ],
)
def test_core_types(written: str, meant: object) -> None:
    value = data(f"key: {written}\n")
    assert value == {"key": meant}
    assert type(value["key"]) is type(meant)  # type: ignore[index]


def test_infinities_and_not_a_number_are_floats() -> None:
    assert data("[.inf, -.Inf]") == [math.inf, -math.inf]
    assert math.isnan(data("[.nan]")[0])  # type: ignore[index]


def test_keys_are_the_text_that_was_written() -> None:
    assert data("2024: a\n0123: b\nyes: c\ntrue: d\n~: e\n") == {
        "2024": "a",
        "0123": "b",
        "yes": "c",
        "true": "d",
        "~": "e",
    }


def test_positions_count_from_one_in_characters() -> None:
    document = parse("a: 1\nü: {b: [x, yy]}\n".encode(), name="f")
    assert document.keys["ü",].line == 2
    assert (document.keys["ü", "b"].line, document.keys["ü", "b"].column) == (2, 5)
    assert (document.values["ü", "b", 1].line, document.values["ü", "b", 1].column) == (2, 12)
    assert str(document.problem(("ü", "b", 1), "no")) == "f:2:12: ü.b[1] — no"
    assert str(document.problem(("ü", "missing"), "no")) == "f:2:1: ü.missing — no"
    assert str(document.problem((), "no")) == "f:1:1: no"


def test_a_byte_order_mark_is_no_column() -> None:
    assert parse(b"\xef\xbb\xbfa: 1", name="f").keys["a",].column == 1


def test_aliases_and_merge_keys() -> None:
    text = """\
base: &base {x: 1, y: {z: 2}}
one: {<<: *base, x: 5}
two: {<<: [*base, {y: 7, q: 1}], r: 1}
three: *base
four: {"<<": 3}
"""
    assert data(text) == {
        "base": {"x": 1, "y": {"z": 2}},
        "one": {"x": 5, "y": {"z": 2}},
        "two": {"r": 1, "x": 1, "y": {"z": 2}, "q": 1},
        "three": {"x": 1, "y": {"z": 2}},
        "four": {"<<": 3},
    }


def test_a_merged_key_stands_where_it_was_written_and_an_own_one_keeps_its_place() -> None:
    document = parse(b"a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  x: 5\n", name="f")
    assert document.keys["b", "x"].line == 4
    assert document.values["b", "x"].line == 4
    assert document.keys["b", "y"].line == 1


def test_copies_of_an_alias_are_their_own() -> None:
    value = data("a: &a [1]\nb: *a\n")
    assert value["a"] is not value["b"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "f.yaml:4:3: b.c — duplicate key; it stands already in line 3"),
        ("1: a\n'1': b", "f.yaml:2:1: 1 — duplicate key; it stands already in line 1"),
        ("a: {<<: {}, <<: {}}", "f.yaml:1:13: a.<< — duplicate key; it stands already in line 1"),
        ("a: {<<: 4}", "f.yaml:1:9: a — `<<` takes a map or a list of maps"),
        ("a: !!python/object:os.system x", "the tag !!python/object:os.system is not allowed"),
        ("a: !!python/object/apply:os.system [x]", "is not allowed"),
        ("a: !mine x", "f.yaml:1:4: a — the tag !mine is not allowed"),
        ("a: !!set {x}", "the tag !!set is not allowed"),
        ("a: !!binary aGVs", "the tag !!binary is not allowed"),
        ("a: !!timestamp 2026-01-02", "the tag !!timestamp is not allowed"),
        ("a: !!int x", "this text is no int, as its tag says"),
        ("? [a]\n: b", "f.yaml:1:3: (document) — a list or a map cannot be a key"),
        ("'': b", "an empty key"),
        ("a: " + "9" * 5000, "a number of more than 300 digits"),
        ("a: &a [*a]", "f.yaml:1:4: (document) — an alias inside its own anchor never ends"),
        ("a: &a {b: {<<: *a}}", "an alias inside its own anchor never ends"),
        ("a: *nowhere", "f.yaml:1:4: invalid YAML — found undefined alias *nowhere"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: invalid YAML — several documents in one file; exactly one is expected"),
        ("a: [1,\n", "f.yaml:2:1: invalid YAML — "),
        ("a: b: c", "f.yaml:1:5: invalid YAML — "),
        ("\ta: 1", "f.yaml:1:1: invalid YAML — a tab, where YAML is indented with spaces alone"),
        ("%YAML 2.0\n---\na: 1", "invalid YAML — "),
        ("[" * 200_000, "exceeded maximum nesting depth"),
        ("- " * 200_000, "exceeded maximum nesting depth"),
        ("[" * 100 + "]" * 100, "nested more than 64 levels deep"),
        ("a: \x1b[31m", "f.yaml:1:4: (document) — control character U+001B is not allowed in YAML"),
        (b"a: b\nc: \xff", "f.yaml:2:4: (document) — not UTF-8 text: byte 0xff"),
        (b"\x7fELF\x00\x01", "f.yaml:1:1: (document) — a binary file, not YAML text"),
        (b"\x89PNG\xff\x00", "f.yaml:1:1: (document) — a binary file, not YAML text"),
        ("a: 1".encode("utf-16"), "f.yaml:1:1: (document) — UTF-16 text; save it as UTF-8"),
        (b"#" * (MAX_BYTES + 1), f"f.yaml:1:1: (document) — over {MAX_BYTES} bytes; a file of this kind is"),
    ],
)  # fmt: skip
def test_refused(text: str | bytes, said: str) -> None:
    found = complaints(text)
    assert len(found) == 1
    assert said in found[0]
    assert found[0].startswith("f.yaml:")


def test_an_alias_bomb_is_refused_quickly() -> None:
    names = "abcdefghijk"
    lines = [f"{names[0]}: &{names[0]} [x, x, x, x, x, x, x, x, x, x]"]
    for one, other in pairwise(names):
        lines.append(f"{other}: &{other} [{', '.join(f'*{one}' for _ in range(10))}]")
    assert "more than 100000 values once aliases are expanded" in complaints("\n".join(lines))[0]


def test_a_bomb_of_merge_keys_is_refused() -> None:
    lines = ["a0: &a0 {x0: 1}"]
    lines += [f"a{n}: &a{n} {{x{n}: {{<<: *a{n - 1}}}, y: {{<<: *a{n - 1}}}}}" for n in range(1, 30)]
    assert "more than 100000 values" in complaints("\n".join(lines))[0]


def test_all_duplicates_are_told_and_the_rest_is_still_read() -> None:
    document = parse(b"a: 1\na: 2\nb: {c: 1, c: 2}\n", name="f")
    assert [(problem.line, problem.key) for problem in document.problems] == [(2, "a"), (3, "b.c")]
    assert document.data == {"a": 1, "b": {"c": 1}}


def test_at_the_limit_of_size() -> None:
    assert parse(b"a: 1\n".ljust(MAX_BYTES, b"#"), name="f").problems == ()


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_nothing(text: str) -> None:
    assert data(text) is None


def test_files_that_are_none(tmp_path: Path) -> None:
    def said(path: Path) -> str:
        with pytest.raises(InvalidFile) as caught:
            read(path, what="blueprint")
        return str(caught.value)

    missing = tmp_path / "missing.yaml"
    assert said(missing) == f"{missing}:1:1: blueprint not found"
    assert said(tmp_path) == f"{tmp_path}:1:1: blueprint is not a regular file"
    assert "blueprint is not a regular file" in said(Path("/dev/zero"))
    assert "blueprint is not readable" in said(Path("a\x00b"))
    assert "blueprint is not readable" in said(Path("x" * 5000))
    below = tmp_path / "file"
    below.write_text("a: 1")
    assert "blueprint is not readable" in said(below / "deeper.yaml")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (2 << 20))
    assert (
        said(large)
        == f"{large}:1:1: (document) — over {MAX_BYTES} bytes; a file of this kind is never that large"
    )


def test_a_path_is_shown_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text("a: 1")
    assert read(Path("./x.yaml"), what="file").name == "x.yaml"


def test_dotted_paths_are_bounded_and_harmless() -> None:
    assert dotted(("teams", "a", "members", 0, "brief")) == "teams.a.members[0].brief"
    assert dotted((0, "a")) == "[0].a"
    assert len(dotted(("x" * 5000,))) == 200
    assert dotted(("a\x1b[2J\nb",)) == "a\\x1b[2J\\nb"
    assert printable("\u202eabc\u2028") == "\\u202eabc\\u2028"


letters = st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))
scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(letters, max_size=20)
keys = st.text("abcdefgh", min_size=1, max_size=5)
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(plain)
def test_json_is_read_as_what_it_is(value: object) -> None:
    document = parse(json.dumps(value, ensure_ascii=False).encode(), name="f")
    assert document.problems == ()
    assert document.data == value
    _every_value_has_a_position(document, document.data, ())


def _every_value_has_a_position(document: Document, value: object, path: tuple[str | int, ...]) -> None:
    assert path in document.values
    if isinstance(value, dict):
        for key, inner in value.items():
            assert (*path, key) in document.keys
            _every_value_has_a_position(document, inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _every_value_has_a_position(document, inner, (*path, index))


awkward = st.text(alphabet="ab:-[]{}&*!<>|?#'\"\n ,%@`~0123", max_size=60).map(str.encode)


@given(st.binary(max_size=200) | awkward)
def test_any_bytes_are_data_or_clear_errors(content: bytes) -> None:
    for line in complaints(content):
        assert line.startswith("f.yaml:")
        assert "\n" not in line


def test_a_value_that_is_not_kept_is_still_looked_through() -> None:
    document = parse(b"a: {b: 1}\na: {c: !x 2, d: 1, d: 2}\n", name="f")
    assert [problem.key for problem in document.problems] == ["a", "a.c", "a.d"]
    assert document.data == {"a": {"b": 1}}


def test_a_value_that_is_refused_is_marked_as_one_that_says_nothing() -> None:
    document = parse(b"a: !x 2\nb: &b {c: !!int x}\nd: {<<: *b}\ne: 1\n", name="f")
    assert document.unreadable == {("a",), ("b", "c"), ("d", "c")}
