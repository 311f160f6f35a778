"""``fleet ps`` and ``fleet down`` on real tmux servers: what each seat is doing, and an end that leaves nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.errors import Survivors
from fleet.live import ending
from fleet.live.teams import teams
from roundtable.home import Home
from tests.integration.live import THREE, Machine, machine_in, role, wait_for
from tests.integration.running import STUBBORN, alive_with

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def machine(short_path: Path, clean_environ: dict[str, str]) -> Iterator[Machine]:
    with machine_in(short_path, clean_environ) as made:
        yield made


def states(machine: Machine) -> dict[str, str]:
    done = machine.fleet("ps", "--json")
    assert done.returncode == 0, done.stderr
    (team,) = json.loads(done.stdout)["teams"]
    return {pane["seat"]: pane["state"] for pane in team["panes"] if pane["kind"] == "seat"}


@pytest.mark.parametrize("layout", ["windows", "tiled"])
def test_the_state_of_each_seat(machine: Machine, layout: str) -> None:
    machine.agent("claude", "#!/bin/sh\nexec sleep 1000\n")
    machine.screen_agent("codex", "working")
    machine.screen_agent("gemini", "composer")
    machine.agent("opencode", "#!/bin/sh\nkill -9 $$\n")
    work = machine.folder / "records" / "worker.work"
    work.touch()
    roles = role("silent") + role("worker", "openai") + role("waiting", "google") + role("ended", "x")
    machine.up(machine.manifest(roles), "--layout", layout)
    wait_for(lambda: machine.is_ready("worker") and machine.is_ready("waiting"), "the screens")
    expected = {"silent": "starting", "worker": "working", "waiting": "idle", "ended": "dead"}
    seen: dict[str, str] = {}

    def is_as_expected() -> bool:
        seen.update(states(machine))
        return seen == expected

    try:
        wait_for(is_as_expected, "each to be what it is")
    except AssertionError as problem:
        raise AssertionError(seen) from problem
    text = machine.fleet("ps", "talk").stdout
    # tmux 3.3a misses now and then how a program ended.
    how = r"(killed by signal 9|exit status unknown)"
    assert re.search(rf"  ended    dead \({how}\)  its last lines: fleet ps fleet-talk --last ended\n", text)
    assert text.startswith("fleet-talk  4 seats  tmux attach -t '=fleet-talk'\n")
    work.unlink()
    wait_for(lambda: states(machine)["worker"] == "idle", "the worker to rest")


def test_a_team_as_data(machine: Machine) -> None:
    machine.agent("claude", "#!/bin/sh\necho no; exit 7\n")
    machine.up(machine.manifest(role("planner")))
    wait_for(lambda: machine.is_dead("fleet-talk", "planner"), "it to end")
    (team,) = json.loads(machine.fleet("ps", "--json").stdout)["teams"]
    assert team["name"] == "fleet-talk"
    assert team["attach"] == ["tmux", "attach", "-t", "=fleet-talk"]
    assert team["attached"] == 0
    room, seat = team["panes"]
    assert (room["kind"], room["room"], room["seat"]) == ("room", "den", None)
    assert {key: seat[key] for key in ("seat", "name", "room", "state", "pid")} == {
        "seat": "planner",
        "name": "planner",
        "room": "den",
        "state": "dead",
        "pid": None,
    }
    assert seat["exit"] in {7, None}  # tmux 3.3a misses it now and then
    assert json.loads(machine.fleet("ps", "--last", "planner", "--json").stdout)["lines"][0] == "no"


def test_without_a_team(machine: Machine) -> None:
    assert machine.fleet("ps").stdout == "no team is live\n"
    assert json.loads(machine.fleet("ps", "--json").stdout) == {"teams": []}
    for words in (("down",), ("attach",), ("ps", "x"), ("down", "x")):
        done = machine.fleet(*words)
        assert (done.returncode, done.stdout) == (1, ""), words
    assert machine.fleet("down", "--all").stdout == "no team is live\n"
    machine.tmux("new-session", "-d", "-s", "fleet-mine", "sleep 1000")
    assert machine.fleet("ps").stdout == "no team is live\n"
    assert machine.fleet("down", "fleet-mine").returncode == 1
    assert machine.sessions() == ["fleet-mine"]


def test_attach_without_a_terminal_prints_how(machine: Machine) -> None:
    machine.up(machine.manifest(role("planner")))
    done = machine.fleet("attach", "talk")
    assert (done.returncode, done.stdout) == (1, "tmux attach -t '=fleet-talk'\n")


def test_a_folder_of_a_team_that_is_gone_is_cleared_away(machine: Machine) -> None:
    machine.up(machine.manifest(role("planner")))
    (folder,) = machine.live()
    stale = folder.with_name("0" * 12)
    shutil.copytree(folder, stale)
    os.utime(stale, (1, 1))
    os.utime(folder, (1, 1))
    young = folder.with_name("1" * 12)
    young.mkdir()
    machine.fleet("ps")
    assert machine.live() == [young, folder] if young.name < folder.name else [folder, young]


def test_down_ends_whatever_a_seat_has_started(machine: Machine) -> None:
    parts = machine.folder / "parts"
    parts.mkdir()
    words = [sys.executable, "-I", "-S", str(STUBBORN), str(parts), "daemon,group,stopped"]
    detached = [sys.executable, "-I", "-S", str(STUBBORN), str(machine.folder / "marked"), "wait"]
    (machine.folder / "marked").mkdir()
    # One that has left the tree, the session and the terminal, and only carries the mark.
    start = f"( setsid {shlex.join(detached)} </dev/null >/dev/null 2>&1 & )"
    machine.agent("claude", f"#!/bin/sh\n{start}\nexec {shlex.join(words)}\n")
    machine.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    machine.up(machine.manifest(role("planner")))
    ready = [parts / part for part in ("daemon", "group", "stopped", "member")] + [
        machine.folder / "marked" / "member"
    ]
    wait_for(lambda: all(path.exists() for path in ready), "the tree to stand")
    mine = machine.tmux("list-panes", "-s", "-t", "=mine", "-F", "#{pane_pid}")
    done = machine.fleet("down", "talk")
    assert done.returncode == 0, done.stderr
    assert alive_with(str(parts)) == []
    assert alive_with(str(machine.folder / "marked")) == []
    assert machine.sessions() == ["mine"]
    assert machine.tmux("list-panes", "-s", "-t", "=mine", "-F", "#{pane_pid} #{pane_dead}").split() == [
        mine.strip(),
        "0",
    ]
    assert machine.live() == []


def test_a_program_may_tidy_up_even_if_it_was_stopped(machine: Machine) -> None:
    said = machine.folder / "said"
    machine.agent(
        "claude",
        f"#!/bin/sh\ntrap 'echo bye >{said}; exit' TERM\necho up\nkill -STOP $$\nwhile :; do sleep 1; done\n",
    )
    machine.up(machine.manifest(role("planner")))
    wait_for(lambda: "up" in machine.screen("fleet-talk", "planner"), "the program")
    assert machine.fleet("down").returncode == 0
    assert said.read_text() == "bye\n"


def test_orphans_of_a_seat_that_has_ended(machine: Machine) -> None:
    parts = machine.folder / "parts"
    parts.mkdir()
    words = [sys.executable, "-I", "-S", str(STUBBORN), str(parts), "group,exit"]
    machine.agent("claude", f"#!/bin/sh\nexec {shlex.join(words)}\n")
    machine.up(machine.manifest(role("planner")))
    wait_for(lambda: machine.is_dead("fleet-talk", "planner"), "the seat to end")
    assert alive_with(str(parts))
    assert machine.fleet("down").returncode == 0
    assert alive_with(str(parts)) == []


def test_replace_ends_what_the_old_team_has_started(machine: Machine) -> None:
    parts = machine.folder / "parts"
    parts.mkdir()
    words = [sys.executable, "-I", "-S", str(STUBBORN), str(parts), "daemon"]
    machine.agent("claude", f"#!/bin/sh\nexec {shlex.join(words)}\n")
    path = machine.manifest(role("planner"))
    machine.up(path)
    wait_for(lambda: (parts / "daemon").exists() and (parts / "member").exists(), "the tree")
    machine.agent("claude")
    machine.up(path, "--replace")
    assert alive_with(str(parts)) == []
    assert machine.argv("planner")


def test_what_cannot_be_ended_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.up(machine.manifest(role("planner")))
    machine.argv("planner")
    pid = int(
        machine.tmux("display-message", "-p", "-t", machine.pane("fleet-talk", "planner"), "#{pane_pid}")
    )
    monkeypatch.setenv("TMUX_TMPDIR", machine.env["TMUX_TMPDIR"])
    monkeypatch.delenv("TMUX", raising=False)
    (team,) = teams(Home(Path(machine.env["FLEET_HOME"])))
    real = os.kill
    # As if it were in the kernel's hands.
    monkeypatch.setattr(
        ending.os, "kill", lambda target, number: None if target == pid else real(target, number)
    )
    monkeypatch.setattr(ending, "_kill_session", lambda team: None)
    monkeypatch.setattr(ending, "_KILL_SECONDS", 0.2)
    ended = ending.end_team(team, grace_seconds=0.2)
    assert ended.survivors == (pid,)
    assert str(pid) in Survivors(team.name, ended.survivors).message
    real(pid, signal.SIGKILL)


def test_several_teams(machine: Machine) -> None:
    for name in ("one", "two", "three"):
        machine.up(machine.manifest(role("planner"), task=name), *(("-L", "work") if name == "two" else ()))
    assert [line.split()[0] for line in machine.fleet("ps").stdout.splitlines() if line[0] != " "] == [
        "fleet-one",
        "fleet-three",
        "fleet-two",
    ]
    done = machine.fleet("down")
    assert done.stderr.splitlines()[0] == "fleet: several teams are live: fleet-one, fleet-three, fleet-two"
    assert machine.fleet("down", "one", "-L", "work").returncode == 1
    assert machine.fleet("down", "fleet-one").returncode == 0
    assert machine.sessions() == ["fleet-three"]
    assert machine.fleet("down", "--all", "x").returncode == 2
    assert machine.fleet("down", "--all").stdout.count("ended, ") == 2
    assert machine.sessions() == []
    assert machine.live() == []


def test_down_from_within(machine: Machine) -> None:
    machine.up(machine.manifest(THREE))
    out = machine.folder / "out"
    words = shlex.join(machine.words("down"))
    machine.tmux(
        "new-window", "-t", "=fleet-talk:", f"sh -c '{words} >{out}.part 2>&1; true'; echo $? >>{out}.part"
    )
    wait_for(lambda: machine.sessions() == [], "the session to go")
    wait_for(lambda: "fleet-talk: ended" in Path(f"{out}.part").read_text(), "the report")
    assert machine.live() == []


def test_a_window_of_the_user_s_that_is_shown_in_the_session_too_stays(machine: Machine) -> None:
    machine.tmux("new-session", "-d", "-s", "mine", "-n", "own", "sleep 1000")
    machine.up(machine.manifest(role("planner")))
    machine.tmux("link-window", "-s", "=mine:own", "-t", "=fleet-talk:")
    machine.tmux("split-window", "-t", machine.pane("fleet-talk", "planner"), "sleep 1001")
    assert machine.fleet("down").returncode == 0
    assert machine.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_dead}") == "mine 0\n"


def test_a_server_that_is_gone(machine: Machine) -> None:
    machine.up(machine.manifest(role("planner")), "-L", "work")
    machine.argv("planner")
    pid = int(machine.tmux("-L", "work", "display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), "the server to go")
    done = machine.fleet("ps")
    assert (done.returncode, done.stdout) == (0, "no team is live\n")
    assert machine.fleet("down", "talk").returncode == 1


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_server_that_does_not_answer_does_not_hold_up(machine: Machine) -> None:
    machine.up(machine.manifest(role("planner")))
    pid = int(machine.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        code = (
            "import sys, fleet.tmux; fleet.tmux.Tmux.run.__kwdefaults__['seconds'] = 1.0\n"
            "from fleet.cli import main; sys.argv[1:] = ['ps']; main()"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env=machine.env,
            cwd=machine.work,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1
        assert "tmux did not answer list-sessions within 1 s" in done.stderr
    finally:
        os.kill(pid, signal.SIGCONT)
