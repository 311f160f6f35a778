"""The three shapes from Python, with real programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleet.dispatch.assignment import OutputMode
from fleet.errors import UsageProblem
from fleet.settings import Settings, resolve
from fleet.shapes import chain, parallel, task

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return resolve({"PATH": os.environ["PATH"], "FLEET_HOME": str(tmp_path / "home")}, folder=tmp_path)


async def test_one_task(settings: Settings, tmp_path: Path) -> None:
    result = await task("hello", settings, command=("cat",), folder=tmp_path / "run")
    assert result.exit_code == 0
    assert result.decision is not None
    assert result.decision.text == "hello\n"
    assert (tmp_path / "run" / "result.json").exists()


async def test_many_tasks(settings: Settings) -> None:
    events = []
    from fleet.runs.run import Watcher

    result = await parallel(
        ["echo one", "exit 2", "echo three"],
        settings,
        command=("sh",),
        output_mode=OutputMode.INLINE,
        watcher=Watcher(on_event=events.append),
    )
    assert result.exit_code == 1
    assert result.decision is not None
    assert result.decision.text.startswith("2/3 succeeded")
    assert "[1 worker-1]\n    one\n[3 worker-3]\n    three\n" in result.decision.text
    assert len(events) > 10


async def test_a_chain(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "c.chain.yaml"
    path.write_text(
        "name: c\ndescription: d\nagents: {up: {command: [tr, a-z, A-Z]}}\nchain: [{agent: up}]\n"
    )
    result = await chain(path, settings, task="shout")
    assert result.decision is not None
    assert result.decision.text.endswith("\n\nSHOUT\n")


async def test_what_cannot_be_is_raised_before_anything_starts(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="unknown agent"):
        await parallel(["x"], settings, agent="nobody")
    assert not (tmp_path / ".fleet").exists()
