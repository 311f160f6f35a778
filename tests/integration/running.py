"""What the tests of whole runs share: a command in a fresh home, its folder, and who of it is still alive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
STUBBORN = Path(__file__).with_name("stubborn.py")
DESIGN = ROOT / "blueprints" / "design.yaml"

FLEET = (sys.executable, "-m", "fleet")

#: A member that answers every turn with its name and ends in the same conclusion as all of its kind.
TALKER = """\
import os, sys
prompt = sys.stdin.read()
print(os.environ["FLEET_SEAT"], "says", os.environ["FLEET_PHASE"], len(prompt))
print("FINAL: agreed") if os.environ["FLEET_PHASE"] == "final" else None
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def folder(self) -> Path:
        """The run folder, from the first line of stderr."""
        first = next(line for line in self.stderr.splitlines() if line.startswith("run r"))
        return Path(first.split(" ", 2)[2])

    @property
    def result(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "result.json").read_text()))

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]

    def posts(self) -> list[dict[str, Any]]:
        (room,) = (self.folder / "rooms").iterdir()
        return [json.loads(line) for line in room.read_text().splitlines()]

    def states(self) -> dict[str, str]:
        return {member["seat"]: member["state"] for member in self.result["teams"][0]["members"]}


class Running:
    """A command that goes on in the background."""

    def __init__(self, *words: str, environ: dict[str, str], folder: Path, **popen: Any) -> None:
        self._began = time.monotonic()
        self._out = folder / "stdout"
        self._err = folder / "stderr"
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = subprocess.Popen(
                [*FLEET, *words],
                cwd=folder,
                env=environ,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                **popen,
            )

    def wait(self, seconds: float = 60) -> Done:
        code = self.process.wait(timeout=seconds)
        return Done(code, self._out.read_text(), self._err.read_text(), time.monotonic() - self._began)

    def run_folder(self) -> Path:
        """The folder, as soon as it has been announced."""
        until(
            lambda: any(line.startswith("run r") for line in self._err.read_text().splitlines()),
            "a run folder",
        )
        return Done(0, "", self._err.read_text(), 0).folder

    def events(self, kind: str) -> list[dict[str, Any]]:
        path = self.run_folder() / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["type"] == kind]


def fleet(*words: str, environ: dict[str, str], folder: Path, seconds: float = 60, **popen: Any) -> Done:
    """Run a command to its end."""
    return Running(*words, environ=environ, folder=folder, **popen).wait(seconds)


def until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    """Wait for a condition; fail by name when it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def alive_with(word: str) -> list[int]:
    """Processes that have ``word`` in their argv, zombies left out."""
    found = []
    for pid, argv, state in _processes():
        if word in argv and state != "Z" and pid != os.getpid():
            found.append(pid)
    return found


def broker_pid(environ: dict[str, str]) -> int | None:
    """The broker of a home, if one runs."""
    path = Path(environ["FLEET_HOME"]) / "roundtable" / "broker.pid"
    try:
        pid = int(path.read_text().split()[0])
        os.kill(pid, 0)
    except (OSError, ValueError, IndexError):
        return None
    return pid


def end_broker(environ: dict[str, str]) -> None:
    """Do not leave a broker behind a test."""
    pid = broker_pid(environ)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)


def blueprint(folder: Path, agents: dict[str, list[str]], **team: Any) -> Path:
    """Write a blueprint of one deliberating team with one member per agent; ``agents`` maps names to argv."""
    path = folder / "team.yaml"
    members = [{"agent": name} for name in agents]
    path.write_text(
        json.dumps(  # JSON is YAML
            {
                "name": "trial",
                "description": "A team for a test.",
                "task": "Decide.",
                "agents": {name: {"runtime": "command", "command": argv} for name, argv in agents.items()},
                "teams": {"team": {"mode": "deliberate", "rounds": 1, "members": members, **team}},
            }
        )
    )
    return path


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *words]


def _processes() -> Iterator[tuple[int, str, str]]:
    if not Path("/proc/self/stat").exists():
        listing = subprocess.run(
            ["ps", "-axo", "pid=,stat=,command="], capture_output=True, text=True, check=True
        )
        for line in listing.stdout.splitlines():
            pid, state, argv = line.split(None, 2)
            yield int(pid), argv, state[0]
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                argv = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            yield int(entry.name), argv, state
