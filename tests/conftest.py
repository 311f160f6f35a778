"""Fixtures every test may use."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code: bounds are properties here, speed is for tests/bench.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "soak: the full size of what the suite tries small; minutes, `make soak`"
    )
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # In a job in the background it is ignored, and would be by every program that a test starts.
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: What takes minutes: `make soak`, `make faults`.
ON_DEMAND = ("soak", "faults")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes unless it is asked for by its marker."""
    unasked = [marker for marker in ON_DEMAND if marker not in config.option.markexpr]
    left_out = [item for item in items if any(map(item.get_closest_marker, unasked))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        out = set(left_out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture
def anyio_backend() -> str:
    """The only back end a run has."""
    return "asyncio"


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path is short enough for sockets; pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def home(short_path: Path) -> Path:
    """A fresh ``FLEET_HOME``."""
    return short_path / "home"


@pytest.fixture
def clean_environ(home: Path) -> dict[str, str]:
    """The environment of a person on a fresh machine: no CI, no tmux, no agent CLI, a home of its own."""
    dropped = {"CI", "TMUX", "TMUX_PANE", "NO_COLOR", "FORCE_COLOR"}
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in dropped and not name.startswith(("FLEET_", "PYTEST_", "ROUNDTABLE_"))
    }
    return {**kept, "FLEET_HOME": str(home)}
