"""What a seat is doing, decided from looks at its terminal."""

from __future__ import annotations

import dataclasses

import pytest

from fleet.live.states import QUIET_SECONDS, Look, State, state_of

NOW = 1000.0
QUIET = int(NOW - QUIET_SECONDS - 1)
BUSY = Look(is_dead=False, is_untouched=False, is_in_mode=False, window_activity=int(NOW), content="x")


@pytest.mark.parametrize(
    ("changes", "has_changed", "shares_window", "expected"),
    [
        ({}, None, False, State.WORKING),
        ({"window_activity": QUIET}, None, False, State.IDLE),
        ({"is_untouched": True}, None, False, State.STARTING),
        ({"is_untouched": True, "window_activity": QUIET}, None, True, State.STARTING),
        ({"is_dead": True}, None, False, State.DEAD),
        ({"is_dead": True, "is_untouched": True}, True, True, State.DEAD),
        # Of a window that several share it is only known that one of them writes.
        ({}, None, True, State.WORKING),
        ({}, True, True, State.WORKING),
        ({}, False, True, State.IDLE),
        ({"window_activity": QUIET}, True, True, State.IDLE),
    ],
)
def test_states(
    changes: dict[str, object], has_changed: bool | None, shares_window: bool, expected: State
) -> None:
    seen = dataclasses.replace(BUSY, **changes)  # type: ignore[arg-type]
    assert state_of(seen, has_changed=has_changed, shares_window=shares_window, now=NOW) is expected
