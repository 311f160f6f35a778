"""The door to tmux, with programs in its place."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fleet.errors import TmuxFailed, TmuxUnusable
from fleet.tmux import OLDEST, Tmux, version_of
from tests.integration.running import alive_with


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called tmux that the test writes; its folder comes first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "tmux"


def be(stand_in: Path, text: str) -> None:
    stand_in.write_text(f"#!/bin/sh\n{text}\n")
    stand_in.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("3.3a", (3, 3)),
        ("tmux 3.2", (3, 2)),
        ("next-3.7", (3, 7)),
        ("openbsd-7.4", (7, 4)),
        ("master", (99, 0)),
    ],
)
def test_versions(text: str, version: tuple[int, int]) -> None:
    assert version_of(text) == version


def test_words_are_handed_over_as_they_are(stand_in: Path) -> None:
    be(stand_in, 'printf "[%s]\\n" "$@"; echo; echo')
    words = ["a b", "", "é", "$x", "-t", ";"]
    assert Tmux(socket_name="work").run(*words) == ["[-Lwork]", "[-u]", *(f"[{word}]" for word in words)]
    assert Tmux(socket_path="/s k").run("x") == ["[-S/s k]", "[-u]", "[x]"]
    assert Tmux().run("x") == ["[-u]", "[x]"]


def test_how_a_person_reaches_the_server() -> None:
    assert Tmux().words == ("tmux",)
    assert Tmux(socket_name="work").words == ("tmux", "-L", "work")
    assert Tmux(socket_path="/s k").words == ("tmux", "-S", "/s k")


def test_what_tmux_says_is_the_error(stand_in: Path) -> None:
    be(stand_in, "echo first; echo 'no such thing' >&2; exit 1")
    with pytest.raises(TmuxFailed, match=r"^no such thing$") as caught:
        Tmux().run("x")
    assert caught.value.printed == ("first",)
    be(stand_in, "exit 3")
    with pytest.raises(TmuxFailed, match=r"^tmux ended with exit status 3$"):
        Tmux().run("x")


def test_without_tmux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TmuxUnusable, match="not installed") as caught:
        Tmux().run("x")
    assert caught.value.exit_code == 6


@pytest.mark.parametrize("version", ["3.1c", "2.6", "1.8"])
def test_too_old(stand_in: Path, version: str) -> None:
    be(stand_in, f"echo tmux {version}")
    with pytest.raises(TmuxUnusable, match=f"tmux {version} is too old: {OLDEST[0]}.{OLDEST[1]} or later"):
        Tmux().check_version()
    be(stand_in, "echo tmux 3.2a")
    Tmux().check_version()


def test_an_answer_that_does_not_come(stand_in: Path, tmp_path: Path) -> None:
    be(stand_in, f"exec sleep 60.{os.getpid()}")
    started = time.monotonic()
    with pytest.raises(TmuxFailed, match=r"did not answer x within 0.3 s"):
        Tmux().run("x", seconds=0.3)
    assert time.monotonic() - started < 20
    assert alive_with(f"60.{os.getpid()}") == []


def test_nothing_of_ours_is_handed_down_to_a_server(stand_in: Path) -> None:
    be(stand_in, "env | grep -c LIBTMUX; :")
    assert Tmux().run("x") == ["0"]
