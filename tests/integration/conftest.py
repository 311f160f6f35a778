"""Fixtures of the tests that run the real commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.running import end_broker


@pytest.fixture
def place(short_path: Path) -> Path:
    """A folder to run commands in."""
    folder = short_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(clean_environ: dict[str, str]) -> Iterator[dict[str, str]]:
    """A fresh home; its broker ends with the test."""
    yield clean_environ
    end_broker(clean_environ)
