"""What lets a test run under both kinds of wardens: started one by one, and forked by a supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import anyio
import pytest

from fleet import wardens


@contextmanager
def warden_kind(kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have wardens ``started`` or ``forked`` while this lasts, in every task."""
    if kind == "started":
        yield
        return
    supervisor = wardens._Supervisor()
    monkeypatch.setattr(wardens, "_supervisor", SimpleNamespace(get=lambda: supervisor))
    try:
        yield
    finally:
        anyio.run(supervisor.aclose)
