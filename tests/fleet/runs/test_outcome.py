"""The exit code follows from who reached FINAL, who was absent and which signal came."""

from __future__ import annotations

import pytest

from fleet.runs.outcome import RunState, TeamCount, exit_code, run_state


@pytest.mark.parametrize(
    ("positions", "quorum", "absent", "signal", "code", "state"),
    [
        (3, 3, 0, None, 0, RunState.DONE),
        (2, 2, 1, None, 0, RunState.DONE),  # met, also by the deadline
        (2, 3, 1, None, 3, RunState.DEADLINE),
        (2, 3, 0, None, 1, RunState.FAILED),
        (0, 1, 2, None, 3, RunState.DEADLINE),
        (3, 3, 0, 2, 130, RunState.INTERRUPTED),
        (0, 3, 3, 15, 143, RunState.INTERRUPTED),
        (0, 3, 3, 1, 129, RunState.INTERRUPTED),
    ],
)
def test_the_exit_code(
    positions: int, quorum: int, absent: int, signal: int | None, code: int, state: RunState
) -> None:
    count = TeamCount(positions, quorum, absent)
    assert exit_code(count, interrupted_by=signal) == code
    assert run_state(count, interrupted_by=signal) is state
