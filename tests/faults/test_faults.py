"""Each deliberate fault, applied to a copy of the code, makes a test fail; without a fault the same tests pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.faults import FAULTS, Fault

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.faults

#: pytest's exit statuses: all passed, some failed.
PASSED, FAILED = 0, 1


@pytest.fixture
def copy(short_path: Path) -> Path:
    """The code and its tests in a folder of their own."""
    for name in ("fleet", "roundtable", "tests"):
        shutil.copytree(ROOT / name, short_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", short_path)
    return short_path


def outcome(copy: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """What pytest says of ``tests`` in the copy, which stands before the installed project."""
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--timeout",
        "25",
        *tests,
    ]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ["PYTHONPATH"] = str(copy)
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(words, cwd=copy, env=environ, capture_output=True, text=True)
    return done.returncode, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_noticed(fault: Fault, copy: Path) -> None:
    path = copy / fault.module
    text = path.read_text()
    assert text.count(fault.right) == 1, f"{fault.module} no longer holds {fault.right!r} exactly once"
    path.write_text(text.replace(fault.right, fault.wrong))
    code, said = outcome(copy, fault.tests)
    assert code == FAILED, f"nothing noticed it:\n{said}"


@pytest.mark.parametrize("tests", dict.fromkeys(fault.tests for fault in FAULTS), ids=" ".join)
def test_without_a_fault_the_same_tests_pass(tests: tuple[str, ...], copy: Path) -> None:
    code, said = outcome(copy, tests)
    assert code == PASSED, said
