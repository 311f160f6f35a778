"""Fixtures of the tests of single commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.cli.calling import Call, caller


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder to be in, with a home beside it and nothing of the machine's own."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FLEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("CI", raising=False)
    return folder


@pytest.fixture
def call(place: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """``fleet WORDS``, run in `place`."""
    return caller(capsys)
