"""The short way to a plan: it takes what the parser takes, or leaves everything to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cli.roles import command
from fleet.cli.roles_output import FORMATS, LAYOUTS, Request
from fleet.cli.roles_quick import request_from, run_quickly

MINIMAL = "task: t\nroom: r\nroles: {critic: {provider: anthropic, model: opus}}\n"

NAMES = [
    "--format",
    "--binary",
    "--session-name",
    "--layout",
    "--replace",
    "--schema",
    "--debug",
    "--help",
    "-h",
]
VALUES = [*FORMATS, *LAYOUTS, "x", "x y", "a=b", "", "-", "--", "-x", "--form", "roles.yaml"]
WORDS = st.one_of(
    st.sampled_from(NAMES + VALUES),
    st.builds("{}={}".format, st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.text(max_size=5),
)


def parsed(words: list[str]) -> Request:
    """What the parser makes of the words."""
    values = command.make_context("roles", list(words)).params
    assert not values.pop("schema")
    return Request(
        file=values["file"],
        form=values["form"],
        binary=values["binary"],
        session_name=values["session_name"],
        layout=values["layout"],
        is_replacing=values["replace"],
    )


@given(st.lists(WORDS, max_size=6))
def test_it_reads_words_as_the_parser_does(words: list[str]) -> None:
    request = request_from(words)
    if request is not None:
        assert parsed(words) == request


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["x.yaml"],
        ["--format", "tmux"],
        ["--format=sh", "x"],
        ["--layout", "tiled", "--replace", "--binary", "a b"],
    ],
)
def test_it_takes_what_people_write(words: list[str]) -> None:
    assert request_from(words) == parsed(words)


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["--format", "xml"],
            ["--format"],
            ["--frmat", "sh"],
            ["a", "b"],
            ["--help"],
            ["--schema"],
            ["--"],
            [""],
        ),
        *(["--layout=diagonal"], ["--form", "sh"], ["--replace=1"], ["--binary", "-x"], ["--debug"]),
    ],
)
def test_everything_else_is_the_parsers(words: list[str]) -> None:
    assert request_from(words) is None


def test_what_goes_wrong_is_left_to_the_parser_with_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("roles: {}\n")
    for words in ([], ["gone.yaml"], ["bad.yaml"], ["--binary", " "], ["nobody-knows-it"]):
        assert run_quickly(words) is None
    assert capfd.readouterr() == ("", "")


def run(
    call: str, folder: Path, *words: str, out: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    code = f"from fleet.cli import {call}; {call}()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, stdout=out, stderr=subprocess.PIPE, timeout=60
    )


@pytest.mark.parametrize(
    "words", [["--format", "tmux", "--session-name", "a.b"], ["gone.yaml"], ["bad.yaml"]]
)
def test_both_ways_print_the_same(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "roles.yaml").write_text(MINIMAL)
    (tmp_path / "bad.yaml").write_text("roles: {}\n")
    quick = run("roles", tmp_path, *words)
    parsed = subprocess.run(
        [sys.executable, "-c", "from fleet.cli.roles import main; main()", *words],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert (quick.returncode, quick.stdout, quick.stderr) == (parsed.returncode, parsed.stdout, parsed.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text(MINIMAL)
    with open("/dev/full", "wb") as full:
        done = run("roles", tmp_path, "--format", "sh", out=full.fileno())
    assert done.returncode == 1
    assert b"cannot write to standard output" in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_options_are_those_of_the_parser() -> None:
    known = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {"--format", "--binary", "--session-name", "--layout", "--replace", "--schema"} == known
    choices = {p.name: p.type.choices for p in command.params if isinstance(p.type, click.Choice)}
    assert choices == {"form": FORMATS, "layout": LAYOUTS}
