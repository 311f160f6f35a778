"""The whole loop, as docs/how-to/remember.md plays it: deliberate, catch up, keep, ask without the room."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.running import broker_pid, end_broker, until

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "remember.md"


@pytest.fixture
def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def played(block: str, environ: dict[str, str]) -> str:
    done = subprocess.run(["sh", "-eu"], input=block, env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_a_process_that_never_saw_the_room_answers_what_was_decided(
    blocks: list[str], environ: dict[str, str], place: Path
) -> None:
    bin_ = place / "bin"
    bin_.mkdir()
    program = bin_ / "roundtable"
    program.write_text(f"#!{sys.executable}\nfrom roundtable.cli import main\nmain()\n")
    program.chmod(0o755)
    environ["PATH"] = f"{bin_}:{environ['PATH']}"
    deliberate, catch_up, keep, ask = blocks

    assert played(deliberate, environ).count("Posted to #council as ") == 6
    caught_up = played(catch_up, environ)
    head, text = caught_up.split("\n", 1)
    assert head.startswith("#council · 6 unread · showing 3 verbatim")
    assert "DECISION: the gateway gives each service at most 20 workers" in text
    # The budget and one marker line.
    assert len(text.rstrip("\n")) <= 400 + 201

    kept = played(keep, environ)
    assert "Exported 6 retained messages from #council to " in kept
    # What is exported never enters the context of who exports.
    assert "20 workers" not in kept.splitlines()[0]

    end_broker(environ)
    until(lambda: broker_pid(environ) is None, "the end of the broker")
    memory = Path(environ["FLEET_HOME"]) / "memory"
    elsewhere = {**environ, "FLEET_HOME": str(place / "other"), "ROUNDTABLE_MEMORY_DIR": str(memory)}
    answer = played(ask, elsewhere)
    assert "at most 20 workers and answers 503" in answer
    assert "planner" in answer
    assert re.search(r"20\d\d-\d\d-\d\d", answer), "no date"
    assert "wiki/" in answer
    assert not (place / "other" / "roundtable").exists(), "it asked a room"
