"""``fleet up`` on real tmux servers of the test's own: what it makes, wherever it is run, and what it leaves alone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.live import AGENT, THREE, Machine, machine_in, role, wait_for
from tests.integration.running import alive_with, broker_pid

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def machine(short_path: Path, clean_environ: dict[str, str]) -> Iterator[Machine]:
    with machine_in(short_path, clean_environ) as made:
        yield made


def settings_of(machine: Machine) -> list[str]:
    """All that a person has set on the server, and their own session ``mine``."""
    asked = [machine.tmux("show-options", flags) for flags in ("-g", "-gw", "-s")]
    asked += [
        machine.tmux("show-hooks", "-g"),
        machine.tmux("list-keys"),
        machine.tmux("show-environment", "-g"),
    ]
    asked += [machine.tmux("show-options", "-t", "=mine:"), machine.tmux("show-environment", "-t", "=mine:")]
    panes = "#{pane_id} #{window_name} #{pane_title} #{pane_width}x#{pane_height} #{pane_current_path}"
    return [
        *asked,
        machine.tmux("list-panes", "-s", "-t", "=mine", "-F", panes),
        machine.tmux("list-buffers"),
    ]


def test_every_seat_gets_a_window_behind_the_room(machine: Machine) -> None:
    done = machine.up(machine.manifest(THREE))
    assert done.stderr == ""
    assert done.stdout == "session fleet-talk: attach with  tmux attach -t '=fleet-talk'\n"
    assert machine.windows("fleet-talk") == ["room", "planner", "critic", "tester"]
    assert machine.argv("planner")[:2] == ["--model", "m"]
    assert machine.argv("critic")
    assert machine.record("tester", "cwd") == f"{machine.work}\n"
    titles = machine.tmux("list-panes", "-s", "-t", "=fleet-talk", "-F", "#{pane_title}").split()
    assert titles == ["#den", "planner", "critic", "tester"]
    active = machine.tmux(
        "display-message", "-p", "-t", "=fleet-talk:", "#{window_name} #{window_width}x#{window_height}"
    )
    assert active == "room 250x60\n"


def test_the_agent_is_the_first_process_of_its_pane(machine: Machine) -> None:
    machine.up(machine.manifest(role("planner")))
    machine.argv("planner")
    pid = machine.tmux(
        "display-message", "-p", "-t", machine.pane("fleet-talk", "planner"), "#{pane_pid}"
    ).strip()
    wait_for(
        lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes(), "the agent to be what the pane runs"
    )


def test_the_room_pane_follows_the_discussion(machine: Machine) -> None:
    machine.up(machine.manifest(role("planner")))
    machine.post("planner", "Tests are green.")
    wait_for(
        lambda: "planner#1: Tests are green." in machine.screen("fleet-talk", "#den"), "the post to be shown"
    )
    machine.post("critic", "Are they?")
    wait_for(lambda: "critic#2: Are they?" in machine.screen("fleet-talk", "#den"), "the answer to be shown")


def test_a_task_from_the_command_line(machine: Machine) -> None:
    path = machine.work / "b.yaml"
    path.write_text(
        "name: b\ndescription: d\ntask: the file's\nteams:\n  t:\n    mode: deliberate\n    members:\n"
        "      - {agent: planner, model: anthropic/m}\n"
    )
    machine.up(path, "Should we shard\nthe queue?")
    assert "Should we shard\nthe queue?" in machine.argv("planner")[-1]
    assert "the file's" not in machine.argv("planner")[-1]


HOSTILE = """\
set -g prefix C-a
unbind C-b
set -s exit-empty off
set -g renumber-windows on
set -g default-command 'echo hijacked; exit 3'
set -g default-shell /bin/false
set -g default-size 80x24
set -g destroy-unattached on
set -g detach-on-destroy off
set -g set-titles on
set -g status off
set -gw remain-on-exit off
set -gw allow-rename on
set -gw automatic-rename on
set -gw automatic-rename-format 'x'
set -gw monitor-activity on
set -gw synchronize-panes off
set -gw mode-keys vi
set-hook -g after-split-window 'select-layout even-horizontal'
set-hook -g session-created 'set -g @seen 1'
"""


@pytest.mark.parametrize("layout", ["windows", "tiled"])
@pytest.mark.parametrize("base", [0, 1])
def test_settings_of_a_user(machine: Machine, base: int, layout: str) -> None:
    (machine.folder / "user" / ".tmux.conf").write_text(
        f"set -g base-index {base}\nset -gw pane-base-index {base}\n{HOSTILE}"
    )
    own = ("set-option", "-t", "=mine:", "destroy-unattached", "off")
    machine.tmux("new-session", "-d", "-s", "mine", "--", "sleep", "1000", ";", *own)
    before = settings_of(machine)
    machine.up(machine.manifest(THREE), "--layout", layout)
    for seat in ("planner", "critic", "tester"):
        machine.argv(seat)
    ps = machine.fleet("ps", "talk")
    assert [line.split()[0] for line in ps.stdout.splitlines()[1:]] == ["#den", "planner", "critic", "tester"]
    assert "dead" not in ps.stdout
    expected = (
        ["room", "planner", "critic", "tester"] if layout == "windows" else ["room", "talk", "talk", "talk"]
    )
    assert machine.windows("fleet-talk") == expected
    after = settings_of(machine)

    assert after == before
    machine.fleet("down", "talk")
    assert machine.sessions() == ["mine"]


@pytest.mark.parametrize("name", ["1", "2024", "a.b:c", "größe-漢字", "-x", "$0 %1=@a;"])
def test_names(machine: Machine, name: str) -> None:
    machine.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    machine.tmux("new-session", "-d", "-s", "20245", "sleep 1000")
    done = machine.up(machine.manifest(role('"0"') + role('"1"')), f"--name={name}", LC_ALL="C")
    session = done.stdout.split()[1].rstrip(":")
    assert machine.windows(session) == ["room", "0", "1"]
    assert shlex.split(done.stdout.partition("with")[2])[-1] == f"={session}"
    assert len(machine.windows("mine")) == 1
    assert len(machine.windows("20245")) == 1
    assert machine.fleet("down", "--", session).returncode == 0
    assert machine.sessions() == ["20245", "mine"]


def test_inside_a_running_tmux(machine: Machine) -> None:
    machine.tmux("-L", "other", "new-session", "-d", "-s", "work", "sh")
    socket = machine.tmux("-L", "other", "display-message", "-p", "#{socket_path},#{pid},0").strip()
    done = machine.up(machine.manifest(role("planner")), TMUX=socket)
    assert "attach -t '=fleet-talk'" in done.stdout
    assert machine.tmux("-L", "other", "list-sessions", "-F", "#{session_name}").split() == [
        "fleet-talk",
        "work",
    ]
    assert machine.sessions() == []
    # From elsewhere it is found all the same.
    assert "fleet-talk" in machine.fleet("ps").stdout
    assert machine.fleet("down").returncode == 0
    assert machine.tmux("-L", "other", "list-sessions", "-F", "#{session_name}").split() == ["work"]


def test_a_tmux_variable_of_a_server_that_is_gone(machine: Machine) -> None:
    gone = f"{machine.folder}/sock/tmux-{os.getuid()}/default,99999,0"
    done = machine.fleet("up", str(machine.manifest(role("planner"))), "--wait", "0", TMUX=gone)
    assert done.returncode == 1
    assert "hint: TMUX names a server that is gone with its folder: unset TMUX" in done.stderr
    assert machine.live() == []
    machine.tmux("-L", "other", "new-session", "-d", "sleep 1000")  # makes the folder of the sockets
    machine.up(machine.manifest(role("planner")), TMUX=gone)
    assert machine.sessions() == ["fleet-talk"]


def test_another_server(machine: Machine) -> None:
    done = machine.up(machine.manifest(role("planner")), "-L", "work")
    assert done.stdout.endswith("tmux -L work attach -t '=fleet-talk'\n")
    assert machine.sessions() == []
    assert machine.tmux("-L", "work", "has-session", "-t", "=fleet-talk") == ""
    assert "no team is live" in machine.fleet("ps", "-L", "third").stdout
    assert machine.fleet("down", "talk").returncode == 0


FOLDERS = ["it's here", "#(touch x)#{pid}$(touch y)", "a;", '~ü✓␞ "x"', "--100%"]


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_any_name_without_a_locale(machine: Machine, name: str) -> None:
    folder = machine.folder / name
    folder.mkdir()
    path = machine.manifest(role("planner"))
    path = path.rename(folder / path.name)
    env = {key: value for key, value in machine.env.items() if key not in {"LANG", "LC_CTYPE", "LANGUAGE"}}
    machine.env = {**env, "LC_ALL": "C", "FLEET_HOME": str(folder / "home")}
    done = machine.fleet("up", path.name, "--wait", "0", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert machine.record("planner", "cwd") == f"{folder}\n"
    assert sorted(entry.name for entry in folder.iterdir()) == ["home", "x.roles.yaml"]
    current = machine.tmux(
        "display-message", "-p", "-t", machine.pane("fleet-talk", "planner"), "#{pane_current_path}"
    )
    assert current == f"{folder}\n"
    assert machine.fleet("ps", cwd=folder).stdout.startswith("fleet-talk  1 seat")
    assert machine.fleet("down", cwd=folder).returncode == 0


def test_a_server_that_ends_when_nobody_is_attached(machine: Machine) -> None:
    (machine.folder / "user" / ".tmux.conf").write_text("set -s exit-unattached on\n")
    done = machine.fleet("up", str(machine.manifest(THREE)))
    assert done.returncode == 1
    assert "warning: this tmux server ends when nobody is attached (exit-unattached on)" in done.stderr
    assert "the session, or the tmux server, went away" in done.stderr
    assert machine.live() == []


def test_a_newline_in_a_folder_is_refused(machine: Machine) -> None:
    folder = machine.folder / "a\nb"
    folder.mkdir()
    shutil.copy(machine.manifest(role("planner")), folder / "x.roles.yaml")
    done = machine.fleet("up", "x.roles.yaml", cwd=folder)
    assert done.returncode == 2
    assert "has a newline in its name" in done.stderr
    assert machine.sessions() == []
    inner = machine.manifest(role("planner", more=r', cwd: "in\nner"'))
    done = machine.fleet("up", str(inner))
    assert (done.returncode, "newline" in done.stderr) == (2, True)
    assert machine.live() == []


def test_titles_and_folders_that_break_listings(machine: Machine) -> None:
    folder = machine.folder / "new\nline␞"
    folder.mkdir()
    title = "printf '\\033]2;a␞b\\007'; exec sleep 1000"
    machine.tmux("new-session", "-d", "-s", "mine", "-c", str(folder), title)
    machine.agent("claude", AGENT.replace("exec sleep", "printf '\\033]2;own␞title\\007'; exec sleep"))
    machine.up(machine.manifest(role("planner")), LC_ALL="C")
    machine.argv("planner")
    pane = machine.pane("fleet-talk", "planner")
    wait_for(
        lambda: machine.tmux("display-message", "-p", "-t", pane, "#{pane_title}") == "own␞title\n",
        "the title",
    )
    ps = machine.fleet("ps", LC_ALL="C")
    assert "planner" in ps.stdout
    assert machine.fleet("down", LC_ALL="C").returncode == 0
    assert machine.sessions() == ["mine"]


def test_a_long_brief_arrives_whole(machine: Machine) -> None:
    lines = [f'{n}: it\'s "quoted" $(x) `y` \\ END {"z" * 60} é✓🙂' for n in range(220)]
    brief = "\n".join([*lines, "END", "- last"])
    assert len(brief.encode()) > 20_000
    (machine.work / "b.md").write_text(brief)
    roles = role("planner", more=", brief: b.md") + role("critic", "openai", ", brief: b.md")
    machine.up(machine.manifest(roles), LC_ALL="C")
    assert any(word.endswith(f"\n\n{brief}") for word in machine.argv("planner"))
    assert machine.argv("critic")


def test_many_seats(machine: Machine) -> None:
    many = "".join(role(f"{'n' * 55}{number}") for number in range(50))
    machine.up(machine.manifest(many))
    assert len(machine.windows("fleet-talk")) == 51


@pytest.mark.parametrize("layout", ["tiled", "main-vertical"])
def test_panes_of_one_window_on_a_small_terminal(machine: Machine, layout: str) -> None:
    many = "".join(role(f"r{number}") for number in range(14))
    machine.up(machine.manifest(many), "--layout", layout)
    assert len(machine.windows("fleet-talk")) == 15
    with machine.terminal(*machine.words("attach"), columns=80, rows=24) as shown:
        wait_for(lambda: machine.tmux("list-clients") != "", "the client")
        machine.tmux("select-window", "-t", "=fleet-talk:talk")
        size = "#{window_width}x#{window_height}"
        wait_for(
            lambda: machine.tmux("display-message", "-p", "-t", "=fleet-talk:", size).startswith("80x2"),
            "80x24",
        )
        shown.read()
        assert len(machine.windows("fleet-talk")) == 15
        assert machine.fleet("ps").stdout.count("\n  ") == 15
        assert "dead" not in machine.fleet("ps").stdout


def test_a_name_that_is_taken(machine: Machine) -> None:
    machine.tmux("new-session", "-d", "-s", "fleet-talk", "sleep 1000")
    done = machine.fleet("up", str(machine.manifest(THREE)))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "fleet: the tmux session fleet-talk exists already; nothing was started",
        "hint: attach to it: tmux attach -t '=fleet-talk'; or end it first with --replace, or choose another --name",
    ]
    assert machine.tmux("list-windows", "-a", "-F", "x") == "x\n"
    assert machine.live() == []


def test_replace(machine: Machine) -> None:
    machine.tmux("new-session", "-d", "-s", "fleet-talk", "sleep 1000")
    machine.tmux("new-session", "-d", "-s", "fleet-talk-too", "sleep 1000")
    path = machine.manifest(THREE)
    for _ in range(2):
        machine.up(path, "--replace")
        assert machine.windows("fleet-talk") == ["room", "planner", "critic", "tester"]
        machine.argv("planner")
    assert len(machine.windows("fleet-talk-too")) == 1
    assert len(machine.live()) == 1


def test_two_launches_at_once(machine: Machine) -> None:
    path = machine.manifest(THREE)
    started = [
        subprocess.Popen(
            machine.words("up", str(path), "--wait", "0"),
            env=machine.env,
            cwd=machine.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in started]
    assert sorted(code for _, _, code in ended) == [0, 1, 1, 1]
    assert all("exists already; nothing was started" in err for _, err, code in ended if code)
    assert machine.windows("fleet-talk") == ["room", "planner", "critic", "tester"]
    assert len(machine.live()) == 1


#: What goes wrong half-way -> what is said.
HALFWAY = {
    "set-hook -g after-new-window 'kill-server'": "went away",
    "set-hook -g after-new-session 'rename-session other'": "no such session",
    "set -s command-alias[90] 'select-layout=no-such-command'": "unknown command",
    "set-hook -g after-split-window 'kill-session'": "",
}


@pytest.mark.parametrize("trap", HALFWAY)
def test_a_failure_half_way_removes_what_was_made_and_nothing_else(machine: Machine, trap: str) -> None:
    machine.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    machine.tmux("new-session", "-d", "-s", "fleet-talk2", "sleep 1000")
    conf = machine.folder / "trap.conf"
    conf.write_text(trap + "\n")
    machine.tmux("source-file", str(conf))
    done = machine.fleet(
        "up",
        str(machine.manifest(THREE)),
        "--layout",
        "tiled" if "split" in trap or "layout" in trap else "windows",
    )
    assert done.returncode == 1, done.stderr
    assert HALFWAY[trap] in done.stderr
    assert "Traceback" not in done.stderr
    assert "nothing of the team is left" in done.stderr
    expected = [] if "kill-server" in trap else ["fleet-talk2", "mine"]
    wait_for(lambda: machine.sessions() == expected, "the rest to be as it was")
    assert machine.live() == []
    wait_for(lambda: not alive_with(str(machine.folder / "bin" / "claude")), "the agents to be gone")


def test_an_interruption_while_it_is_made(machine: Machine) -> None:
    real = str(shutil.which("tmux"))
    machine.agent(
        "tmux",
        f'#!/bin/sh\ncase "$*" in *source-file*) {real} "$@"; touch {machine.folder}/made; sleep 5;; '
        f'*) exec {real} "$@";; esac\n',
    )
    process = subprocess.Popen(
        machine.words("up", str(machine.manifest(THREE))),
        env=machine.env,
        cwd=machine.work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for((machine.folder / "made").exists, "the session to stand")
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert machine.sessions() == []
    assert machine.live() == []


def test_a_seat_that_ends_at_once_is_told_with_its_last_lines(machine: Machine) -> None:
    machine.agent(
        "claude", '#!/bin/sh\ni=0; while [ $i -lt 200 ]; do i=$((i+1)); echo "line $i"; done; exit 3\n'
    )
    done = machine.fleet("up", str(machine.manifest(THREE)), "--wait", "1s")
    assert done.returncode == 1
    # tmux 3.3a misses now and then how a program ended.
    assert re.search(
        r"planner ended at once \((exit 3|exit status unknown)\); its last lines:\n", done.stderr
    )
    lines = done.stderr.split("planner ended")[1].split("tester ended")[0].splitlines()[1:]
    shown = [line for line in lines if line.startswith("  line ")]
    assert 70 <= len(shown) <= 80
    assert shown[-1] == "  line 200"
    assert "critic" not in done.stderr
    assert machine.windows("fleet-talk") == ["room", "planner", "critic", "tester"]
    ps = machine.fleet("ps").stdout
    assert re.search(r"  planner  dead \(.*\)  its last lines: fleet ps fleet-talk --last planner\n", ps)
    last = machine.fleet("ps", "talk", "--last", "planner").stdout.splitlines()
    assert "line 200" in last
    assert len(last) <= 80
    machine.agent("claude")
    machine.tmux("respawn-pane", "-t", machine.pane("fleet-talk", "planner"))
    assert machine.argv("planner")


def test_what_is_missing_is_told_before_and_in_the_pane(machine: Machine) -> None:
    path = machine.manifest(role("planner", more=", cwd: gone") + role("oracle", "google"))
    done = machine.fleet("up", str(path), "--wait", "4s")
    assert done.returncode == 1
    assert (
        f"warning: planner: there is no folder {machine.work}/gone; its pane will say so and stay"
        in done.stderr
    )
    assert "warning: oracle: gemini is not on PATH" in done.stderr
    assert "cannot enter its working directory" in machine.screen("fleet-talk", "planner")
    assert "gemini is not on PATH" in machine.screen("fleet-talk", "oracle")


def test_a_folder_that_is_gone(machine: Machine) -> None:
    folder = machine.folder / "gone"
    folder.mkdir()
    path = machine.manifest(role("planner"))
    words = shlex.join(machine.words("up", str(path)))
    done = subprocess.run(
        ["sh", "-c", f"cd {folder} && rmdir {folder} && exec {words}"],
        env=machine.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "the folder this was started in is gone" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_tmux(machine: Machine) -> None:
    (machine.folder / "bin" / "tmux").unlink()
    path = str(machine.manifest(THREE))
    for words in (("up", path), ("ps",), ("down",), ("attach",), ("send", "x", "y")):
        done = machine.fleet(*words, PATH=str(machine.folder / "bin"))
        assert done.returncode == 6, words
        assert "tmux is not installed" in done.stderr
    assert machine.live() == []


@pytest.mark.parametrize("version", ["2.9a", "3.1c", "1.8"])
def test_a_tmux_that_is_too_old(machine: Machine, version: str) -> None:
    machine.agent(
        "tmux",
        f'#!/bin/sh\ncase "$*" in *-V*) echo "tmux {version}";; *) echo "unknown option -- e" >&2; exit 1;; esac\n',
    )
    done = machine.fleet("up", str(machine.manifest(THREE)))
    assert done.returncode == 6
    assert f"tmux {version} is too old: 3.2 or later is needed" in done.stderr


def test_a_server_that_does_not_answer(machine: Machine) -> None:
    machine.agent("tmux", "#!/bin/sh\nexec sleep 1000\n")
    code = (
        "from fleet.tmux import Tmux\nfrom fleet.errors import TmuxFailed\n"
        "try: Tmux().run('list-sessions', seconds=0.5)\nexcept TmuxFailed as e: print(e)\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [machine.words()[0], "-c", code], env=machine.env, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "tmux did not answer list-sessions within 0.5 s\n", done.stderr
    assert time.monotonic() - started < 20


def test_the_environment_of_the_caller_reaches_the_panes_and_no_command_line(machine: Machine) -> None:
    machine.tmux("new-session", "-d", "-s", "mine", "sleep 1000")  # the server has another environment
    value = 's3cret it\'s "$x" `y` \\ ~ #{pid} #(touch pwned)\nsecond; line\ttab é'
    changes = {"OPENAI_API_KEY": value, "CLAUDECODE": "1", "FLEET_SEAT": "someone", "A_PATH": "~/x"}
    machine.up(machine.manifest(role("planner")), **changes)
    noted = dict(pair.split("=", 1) for pair in machine.record("planner", "env").split("\0") if "=" in pair)
    assert noted["OPENAI_API_KEY"] == value
    assert noted["A_PATH"] == "~/x"
    assert noted["PATH"] == machine.env["PATH"]
    assert noted["FLEET_HOME"] == machine.env["FLEET_HOME"]
    assert noted["FLEET_SEAT"] == "planner"
    assert "CLAUDECODE" not in noted
    assert noted["TMUX"].startswith(str(machine.folder))
    assert not list(machine.work.glob("pwned"))
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert b"s3cret" not in path.read_bytes(), path
        except OSError:
            continue
    (folder,) = machine.live()
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
        assert b"s3cret" not in file.read_bytes()
    assert "s3cret" not in machine.tmux("show-environment", "-g")
    assert "s3cret" not in machine.tmux("show-environment", "-t", "=mine:")


@pytest.mark.parametrize("end", ["kill-session", "kill-server"])
def test_the_folder_goes_with_the_session(machine: Machine, end: str) -> None:
    machine.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    machine.up(machine.manifest(THREE))
    machine.argv("planner")
    wait_for(lambda: "begins with" in machine.screen("fleet-talk", "#den"), "the room's pane")
    machine.tmux(*(end,) if end == "kill-server" else (end, "-t", "=fleet-talk"))
    wait_for(lambda: machine.live() == [], "the folder to go")
    assert machine.sessions() == ([] if end == "kill-server" else ["mine"])


def test_the_room_pane_alone_may_go(machine: Machine) -> None:
    machine.up(machine.manifest(THREE))
    wait_for(lambda: "begins with" in machine.screen("fleet-talk", "#den"), "the room's pane")
    machine.tmux("kill-pane", "-t", machine.pane("fleet-talk", "#den"))
    time.sleep(1.5)  # it looks after a second whether the session is still there
    assert len(machine.live()) == 1
    assert machine.fleet("ps").stdout.count("\n  ") == 3


def test_attached_on_a_terminal(machine: Machine) -> None:
    path = machine.manifest(role("planner"))
    with machine.terminal(*machine.words("up", str(path)), columns=100, rows=30) as shown:
        wait_for(
            lambda: machine.tmux("list-clients", "-F", "#{client_session}", check=False) == "fleet-talk\n",
            "a client",
        )
        wait_for(lambda: "Room #den" in shown.read(), "the room to be drawn")
        assert "attached" in machine.fleet("ps").stdout
        machine.tmux("detach-client", "-s", "=fleet-talk")
        shown.process.wait(20)
    with machine.terminal(*machine.words("up", str(path), "--replace", "--detach", "--wait", "0")) as shown:
        shown.process.wait(60)
        assert "attach with  tmux attach -t '=fleet-talk'" in shown.read()
        assert machine.tmux("list-clients") == ""


def test_inside_tmux_it_switches_the_client(machine: Machine) -> None:
    path = machine.manifest(role("planner"))
    with machine.terminal("tmux", "new-session", "-s", "mine", "sh"):
        wait_for(lambda: machine.tmux("list-clients", check=False) != "", "the client")
        words = shlex.join(machine.words("up", str(path)))
        machine.tmux("send-keys", "-t", "=mine:", words, "Enter")
        wait_for(
            lambda: machine.tmux("list-clients", "-F", "#{client_session}") == "fleet-talk\n", "the switch"
        )
        assert machine.tmux("list-clients").count("\n") == 1


def test_inside_another_tmux_it_does_not_nest(machine: Machine) -> None:
    machine.tmux("-L", "other", "new-session", "-d", "-s", "work", "sh")
    path = machine.manifest(role("planner"))
    out = machine.folder / "out"
    words = shlex.join(machine.words("up", str(path), "-L", "third", "--wait", "0"))
    machine.tmux(
        "-L", "other", "send-keys", "-t", "=work:", f"{words} >{out}.part 2>&1; mv {out}.part {out}", "Enter"
    )
    wait_for(out.exists, "the command to end")
    assert "this terminal is inside another tmux server" in out.read_text()
    assert "tmux -L third attach -t '=fleet-talk'" in out.read_text()


def test_a_blueprint_of_two_teams(machine: Machine) -> None:
    path = machine.work / "b.yaml"
    path.write_text(
        "name: two\ndescription: d\nteams:\n"
        "  red: {mode: deliberate, room: r1, members: [{agent: a, model: anthropic/m}, {agent: helper}]}\n"
        "  blue: {mode: deliberate, room: r2, layout: tiled, members: "
        "[{agent: a, model: anthropic/m}, {agent: b, model: openai/m}]}\n"
    )
    machine.up(path, "--pings")
    listed = [line.split()[0] for line in machine.fleet("ps").stdout.splitlines()[1:]]
    assert listed == ["#r1", "#r2", "pings", "red-a", "helper", "blue-a", "b"]
    assert machine.windows("fleet-two") == ["room", "room", "room", "red-a", "red-helper", "blue", "blue"]


def test_a_broker_that_a_pane_has_started_outlives_the_team(machine: Machine) -> None:
    machine.up(machine.manifest(role("planner")))
    machine.post("ann", "hello")
    wait_for(lambda: "hello" in machine.screen("fleet-talk", "#den"), "the post")
    broker = broker_pid(machine.env)
    assert broker is not None
    assert machine.fleet("down").returncode == 0
    assert broker_pid(machine.env) == broker
