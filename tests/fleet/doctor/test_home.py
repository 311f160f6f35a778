"""The user's folder and socket, the locale, git and keys: what is said of each state they can be in."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fleet.blueprint.places import Places
from fleet.doctor.asking import asker
from fleet.doctor.finding import Finding, Level
from fleet.doctor.home import is_served, look_at_home
from fleet.doctor.keys import look_at_keys
from fleet.doctor.machine import look_at_git, look_at_locale, look_at_python
from roundtable.home import Home


def look(root: Path) -> list[Finding]:
    environ = {"FLEET_HOME": str(root)}
    return look_at_home(Home.from_environment(environ), environ, root.parent)


def worst(findings: list[Finding]) -> tuple[Level, str]:
    order = [Level.OK, Level.NOTE, Level.WARNING, Level.BROKEN]
    found = max(findings, key=lambda f: order.index(f.level))
    assert found.level is Level.OK or found.mend
    return found.level, found.text


def test_a_fresh_home(short_path: Path) -> None:
    assert worst(look(short_path / "home")) == (Level.OK, f"{short_path / 'home'} (made when it is needed)")
    assert not (short_path / "home").exists()


@pytest.mark.parametrize(
    ("mode", "level"), [(0o700, Level.OK), (0o755, Level.OK), (0o775, Level.WARNING), (0o707, Level.WARNING)]
)
def test_who_may_write_it(short_path: Path, mode: int, level: Level) -> None:
    home = short_path / "home"
    home.mkdir()
    home.chmod(mode)
    assert worst(look(home))[0] is level


def test_a_home_that_is_no_folder(short_path: Path) -> None:
    (short_path / "home").write_text("")
    level, text = worst(look(short_path / "home"))
    assert (level, text) == (Level.BROKEN, f"{short_path / 'home'} is no folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_home_that_cannot_be_made(short_path: Path) -> None:
    short_path.chmod(0o500)
    assert worst(look(short_path / "home"))[0] is Level.BROKEN
    short_path.chmod(0o700)


def test_settings_and_trust_that_cannot_be_read(short_path: Path) -> None:
    home = short_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("defaults: {runtim: claude}\n")
    (home / "trust.json").write_text("{")
    levels = {f.text.split(":")[0]: f.level for f in look(home)}
    assert levels[str(home / "config.yaml")] is Level.BROKEN
    assert levels[str(home / "trust.json")] is Level.WARNING


def test_a_socket_that_was_left_behind(short_path: Path) -> None:
    home = short_path / "home"
    (home / "roundtable").mkdir(parents=True, mode=0o700)
    path = home / "roundtable/broker.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        assert is_served(path) is True
        assert any("a broker serves it" in f.text for f in look(home))
    level, text = worst(look(home))
    assert (level, "was left behind by a broker that is gone" in text) == (Level.NOTE, True)
    path.unlink()
    path.write_text("")
    assert worst(look(home))[0] is Level.BROKEN


def test_a_long_path_moves_the_socket(short_path: Path) -> None:
    home = short_path / ("x" * 90)
    findings = look(home)
    assert any("would be too long for a socket" in f.text for f in findings)
    assert all(f.level in (Level.OK, Level.NOTE) for f in findings)
    size = next(f.text for f in findings if "of 100 bytes" in f.text)
    assert int(size.rpartition("(")[2].split()[0]) <= 100


@pytest.mark.parametrize(
    ("environ", "level"),
    [
        ({"LANG": "de_DE.UTF-8"}, Level.OK),
        ({"LANG": "C.utf8"}, Level.OK),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, Level.WARNING),
        ({"LC_CTYPE": "POSIX"}, Level.WARNING),
        ({"LC_ALL": "", "LANG": ""}, Level.WARNING),
        ({}, Level.WARNING),
    ],
)
def test_locales(environ: dict[str, str], level: Level) -> None:
    (finding,) = look_at_locale(environ)
    assert finding.level is level
    assert (finding.mend is None) == (level is Level.OK)


def test_python_is_named() -> None:
    assert look_at_python()[0].text.startswith("Python 3.")


def test_keys_by_name_and_nothing_else() -> None:
    environ = {
        "OPENAI_API_KEY": "canary-1",
        "MISTRAL_API_KEY": "canary-2",
        "GH_TOKEN": "canary-3",
        "GEMINI_API_KEY": "",
        "PATH": "/bin",
    }
    findings = look_at_keys(environ)
    assert [f.text.split(":")[0] for f in findings] == ["set", "set to nothing"]
    assert findings[0].text.startswith("set: GH_TOKEN, MISTRAL_API_KEY, OPENAI_API_KEY;")
    assert findings[1].mend == "unset GEMINI_API_KEY"
    assert not [f for f in findings if "canary" in f.text]
    assert look_at_keys({"PATH": "x"})[0].level is Level.NOTE


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "level", "text"),
    [
        ("echo git version 2.39.5", Level.OK, "git version 2.39.5"),
        ("echo git version 2.20.1", Level.WARNING, "git version 2.20.1 is older than 2.31"),
        (None, Level.WARNING, "git cannot be used"),
    ],
)
async def test_git(tmp_path: Path, script: str | None, level: Level, text: str) -> None:
    if script:
        (tmp_path / "git").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "git").chmod(0o755)
    places = Places.around(tmp_path, home=tmp_path / "home")
    findings = await look_at_git(asker({"PATH": str(tmp_path)}, tmp_path), places)
    assert (findings[0].level, text in findings[0].text) == (level, True)
