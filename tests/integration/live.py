"""What the tests of live teams share: a person's machine with a tmux server that nobody else uses."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.running import end_broker

SCREENS = Path(__file__).with_name("screens.py")

#: Long enough for a loaded machine; a condition that holds is seen at once.
BOUND_SECONDS = 30.0

#: Stands for any agent: notes its words, its folder, its environment and stays.
AGENT = """\
#!/bin/sh
out="$RECORDS/$FLEET_SEAT"
mkdir -p "$out"
pwd >"$out/cwd"
env -0 >"$out/env"
for word in "$@"; do printf '%s\\0' "$word"; done >"$out/argv.part"
mv "$out/argv.part" "$out/argv"
printf 'here I am\\n'
exec sleep 1000
"""


def wait_for(condition: Callable[[], object], what: str, seconds: float = BOUND_SECONDS) -> None:
    """Poll until it holds; fail by name when it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)


@dataclass
class Machine:
    """A home, a PATH with some agents, a folder to work in, and a tmux server of its own."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        """Where commands are run."""
        return self.folder / "work"

    def agent(self, name: str, text: str = AGENT) -> None:
        """Put a program on PATH."""
        path = self.folder / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def screen_agent(self, name: str, kind: str) -> None:
        """Put one of `screens.py` on PATH."""
        words = [sys.executable, "-I", "-S", str(SCREENS), kind]
        self.agent(name, f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')

    def tmux(self, *words: str, check: bool = True) -> str:
        """Run tmux as the person would."""
        done = subprocess.run(
            ["tmux", "-u", *words], env=self.env, capture_output=True, text=True, timeout=30
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def words(self, *words: str) -> list[str]:
        """The command line of one of our commands."""
        return [sys.executable, "-P", "-m", "fleet", *words]

    def fleet(self, *words: str, cwd: Path | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands to its end."""
        return subprocess.run(
            self.words(*words),
            cwd=cwd or self.work,
            env={**self.env, **changes},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=120,
        )

    def up(self, file: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Start a team without a look for seats that end at once; it has to work."""
        done = self.fleet("up", str(file), "--wait", "0", *words, **changes)
        assert done.returncode == 0, done.stderr
        return done

    def manifest(self, roles: str, task: str = "talk", name: str = "x.roles.yaml") -> Path:
        """Write a manifest in the room ``den``."""
        path = self.work / name
        path.write_text(f"task: {task}\nroom: den\nroles:\n{roles}")
        return path

    def windows(self, session: str) -> list[str]:
        """The name of the window of every pane."""
        return self.tmux("list-panes", "-s", "-t", f"={session}", "-F", "#{window_name}").split()

    def sessions(self) -> list[str]:
        """The names of all sessions; none without a server."""
        return sorted(self.tmux("list-sessions", "-F", "#{session_name}", check=False).splitlines())

    def pane(self, session: str, seat: str) -> str:
        """The id of a seat's pane."""
        lines = self.tmux("list-panes", "-s", "-t", f"={session}", "-F", "#{pane_id} #{@seat}").splitlines()
        return next(line.split()[0] for line in lines if line.split()[1:] == [seat])

    def screen(self, session: str, seat: str) -> str:
        """What a seat's pane shows."""
        return self.tmux("capture-pane", "-p", "-J", "-t", self.pane(session, seat))

    def is_dead(self, session: str, seat: str) -> bool:
        """Whether the seat's program has ended."""
        return (
            self.tmux("display-message", "-p", "-t", self.pane(session, seat), "#{pane_dead}").strip() == "1"
        )

    def argv(self, seat: str) -> list[str]:
        """The words an agent was started with."""
        return self.record(seat, "argv").split("\0")[:-1]

    def record(self, seat: str, name: str) -> str:
        """What an agent has noted, once it has."""
        folder = self.folder / "records" / seat
        wait_for((folder / "argv").exists, f"the agent of {seat}")
        return (folder / name).read_text(errors="surrogateescape")

    def is_ready(self, seat: str) -> bool:
        """Whether a program of `screens.py` takes messages."""
        return (self.folder / "records" / f"{seat}.ready").exists()

    def messages(self, seat: str) -> list[dict[str, Any]]:
        """What a program of `screens.py` has received."""
        path = self.folder / "records" / f"{seat}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def live(self) -> list[Path]:
        """Folders of live teams."""
        folder = Path(self.env["FLEET_HOME"]) / "live"
        return sorted(folder.iterdir()) if folder.exists() else []

    def roundtable(self, *words: str) -> str:
        """Run a command of the rooms; it has to work."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "roundtable", *words],
            env=self.env,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def post(self, author: str, text: str, room: str = "den") -> None:
        """Say something in a room."""
        self.roundtable("post", room, text, "--as", author, "--create")

    @contextmanager
    def terminal(self, *words: str, columns: int = 80, rows: int = 24, **changes: str) -> Iterator[Shown]:
        """Run a command on a terminal of that size until the block ends."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = subprocess.Popen(
            list(words),
            env={**self.env, **changes},
            cwd=self.work,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        os.set_blocking(leader, False)
        try:
            yield Shown(process, leader)
        finally:
            process.kill()
            process.wait(20)
            os.close(leader)


@dataclass
class Shown:
    """A command on a terminal, and what it has drawn."""

    process: subprocess.Popen[bytes]
    leader: int
    drawn: bytes = b""

    def read(self) -> str:
        """Everything it has drawn so far."""
        try:
            while chunk := os.read(self.leader, 65536):
                self.drawn += chunk
        except OSError:  # nothing there, or the command has ended
            pass
        return self.drawn.decode(errors="replace")

    def type(self, text: str) -> None:
        """Type on its keyboard."""
        os.write(self.leader, text.encode())


def role(name: str, provider: str = "anthropic", more: str = "") -> str:
    """A line of a manifest."""
    return f"  {name}: {{provider: {provider}, model: m{more}}}\n"


THREE = role("planner") + role("critic", "openai") + role("tester")


@contextmanager
def machine_in(folder: Path, environ: dict[str, str]) -> Iterator[Machine]:
    """A fresh machine; its tmux servers and its broker end with the block."""
    made = Machine(folder)
    for name in ("bin", "tmp", "records", "user", "sock", "work"):
        (folder / name).mkdir()
    made.env = {
        **environ,
        "HOME": str(folder / "user"),
        "TMUX_TMPDIR": str(folder / "sock"),
        "TMPDIR": str(folder / "tmp"),
        "RECORDS": str(folder / "records"),
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "TERM": "xterm-256color",
    }
    (folder / "bin" / "tmux").symlink_to(str(shutil.which("tmux")))
    made.agent("roundtable", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m roundtable "$@"\n')
    for name in ("claude", "codex"):
        made.agent(name)
    try:
        yield made
    finally:
        for socket in (folder / "sock").glob("tmux-*/*"):
            subprocess.run(
                [str(shutil.which("tmux")), "-S", str(socket), "kill-server"], capture_output=True, timeout=30
            )
        end_broker(made.env)
