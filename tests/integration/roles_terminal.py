"""A person's machine for scripts of `roles`: a home, a PATH with some agents, a tmux server nobody else uses."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fleet.blueprint.load import load_blueprint
from fleet.roles.launch import from_blueprint, from_manifest
from fleet.roles.manifest import is_manifest, load_manifest
from fleet.roles.tmux import render, safe_session_name
from fleet.yaml import read

#: Long enough for a loaded machine; a condition that holds is seen at once.
BOUND_SECONDS = 20.0

#: Stands for any agent: notes its words, its folder and its seat, and stays.
AGENT = """\
#!/bin/sh
out="$RECORDS/$FLEET_SEAT"
mkdir -p "$out"
pwd >"$out/cwd"
printf '%s' "${FLEET_HOME:-}" >"$out/home"
for word in "$@"; do printf '%s\\0' "$word"; done >"$out/argv.part"
mv "$out/argv.part" "$out/argv"
exec sleep 1000
"""


def wait_for(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + BOUND_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited {BOUND_SECONDS:g} s for {what}"
        time.sleep(0.02)


@dataclass
class Terminal:
    """A person's machine: a home, a PATH with some agents, and a tmux server nobody else uses."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def agents(self, *names: str) -> None:
        for name in names:
            path = self.folder / "bin" / name
            path.write_text(AGENT)
            path.chmod(0o755)

    def tmux(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["tmux", "-u", *words], env=self.env, capture_output=True, text=True, timeout=20
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def script(
        self,
        file: Path,
        *,
        layout: str | None = None,
        binary: str | None = None,
        name: str | None = None,
        replace: bool = False,
    ) -> str:
        """What `roles FILE --format tmux` prints, without the cost of another Python."""
        if is_manifest(read(file, what="file")):
            fan_out = from_manifest(load_manifest(file), binary=binary, layout=layout)
        else:
            fan_out = from_blueprint(load_blueprint(file), binary=binary, layout=layout)
        session = safe_session_name(name or f"fleet-{fan_out.title}")
        return render(fan_out, session=session, replace=replace)

    def run(self, script: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Pipe a script into `sh`, as people do."""
        return subprocess.run(
            ["sh"],
            input=script,
            env={**self.env, **changes},
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
        )

    def panes(self, session: str) -> list[str]:
        return self.tmux("list-panes", "-s", "-t", f"={session}", "-F", "#{window_name}").split()

    def screen(self, session: str, window: str) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-t", f"={session}:{window}")

    def is_dead(self, session: str, window: str) -> bool:
        """Whether the pane's program has ended. tmux does not always draw its line that says so."""
        return self.tmux("display-message", "-p", "-t", f"={session}:{window}", "#{pane_dead}").strip() == "1"

    def argv(self, seat: str) -> list[str]:
        path = self.folder / "records" / seat / "argv"
        wait_for(path.exists, f"the agent of {seat}")
        return path.read_text().split("\0")[:-1]

    def record(self, seat: str, name: str) -> str:
        self.argv(seat)
        return (self.folder / "records" / seat / name).read_text()

    def leftovers(self) -> list[Path]:
        return sorted((self.folder / "tmp").iterdir())


@contextmanager
def a_terminal(folder: Path, environ: dict[str, str]) -> Iterator[Terminal]:
    """A fresh machine in ``folder``; its tmux server ends with it."""
    made = Terminal(folder)
    for name in ("bin", "tmp", "records", "user", "sock"):
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
    made.agents("claude", "codex", "roundtable")
    try:
        yield made
    finally:
        made.tmux("kill-server", check=False)


def manifest(terminal: Terminal, roles: str, task: str = "talk") -> Path:
    path = terminal.folder / "x.roles.yaml"
    path.write_text(f"task: {task}\nroom: den\nroles:\n{roles}")
    return path


def role(name: str, provider: str = "anthropic", more: str = "") -> str:
    return f"  {name}: {{provider: {provider}, model: m{more}}}\n"


def system(words: list[str]) -> str:
    """What an agent was given beside its first prompt."""
    return words[words.index("--append-system-prompt") + 1]


THREE = role("planner") + role("critic", "openai") + role("tester")
