"""Broken blueprints and manifests, each a file with all that is said of it beside it.

``HERE`` in an expected text is the folder of these files.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.cli.roles_output import Request, output
from fleet.errors import InvalidFile

HERE = Path(__file__).parent / "broken"
FILES = sorted(HERE.glob("*.yaml"))
#: path:line:column: key — problem
LINE = re.compile(r"[^:\n]+\.yaml:[1-9][0-9]*:[1-9][0-9]*: [^\n]+ — [^\n]+")


def expected(path: Path) -> list[str]:
    text = (HERE / f"{path.name.split('.')[0]}.expected").read_text()
    return text.replace("HERE", str(HERE)).splitlines()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Every line that `fleet validate` has to say of all of them."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from fleet.cli import main; main()"),
            *("validate", *(path.name for path in FILES)),
        ],
        cwd=HERE,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.splitlines()


def test_there_are_enough_of_each() -> None:
    manifests = [path for path in FILES if ".roles." in path.name]
    assert len(manifests) >= 10
    assert len(FILES) - len(manifests) >= 20
    assert {path.name.split(".")[0] for path in FILES} == {path.stem for path in HERE.glob("*.expected")}


def test_every_line_has_its_form_and_there_is_no_other(told: list[str]) -> None:
    assert [line for line in told if not LINE.fullmatch(line)] == []
    assert told == [line for path in FILES for line in expected(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_all_that_is_wrong_is_said(path: Path, told: list[str]) -> None:
    assert [line for line in told if line.startswith(f"{path.name}:")] == expected(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_roles_says_the_same(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("FLEET_HOME", str(tmp_path))
    with pytest.raises(InvalidFile) as caught:
        output(Request(path.name))
    assert str(caught.value).splitlines() == expected(path)
    assert caught.value.exit_code == 2
