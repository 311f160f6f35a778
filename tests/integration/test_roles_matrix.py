"""The tmux script on servers of every kind: settings, names, folders and neighbours that break other scripts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.roles.shell import quote
from tests.integration.roles_terminal import THREE, Terminal, a_terminal, manifest, role, system, wait_for

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

#: What people have in their .tmux.conf. None of it may change what the script makes.
CONFIGURATIONS = {
    "none": "",
    "base-index": "set -g base-index 1\nset -gw pane-base-index 1\n",
    "hostile": """\
set -g prefix C-a
unbind C-b
set -s exit-empty off
set -g base-index 1
set -g renumber-windows on
set -g default-command 'echo hijacked; exit 3'
set -g default-shell /bin/false
set -g default-size 80x24
set -g window-size smallest
set -gw aggressive-resize on
set -g destroy-unattached on
set -g detach-on-destroy on
set -gw remain-on-exit off
set -gw automatic-rename on
set -gw allow-rename on
set -g set-titles on
set -gw pane-border-status bottom
set -gw pane-border-format '#(touch pwned)'
set -g update-environment ''
set -g history-limit 10
set -g mouse on
set -g status off
""",
    "exit-empty": "set -s exit-empty on\nset -g renumber-windows on\nset -gw pane-base-index 7\nset -g base-index 9\n",
}
NAMES = {"plain": "fleet-talk", "numeric": "2024", "dotted": "v1.2:a", "like another": "mine2"}

PANE = " ".join(
    f"#{{{name}}}"
    for name in (
        *(
            "window_id",
            "window_index",
            "window_name",
            "window_active",
            "window_layout",
            "pane_id",
            "pane_active",
        ),
        *("pane_pid", "pane_dead", "pane_title", "pane_current_path", "pane_in_mode"),
    )
)
#: What of a server must be the same afterwards, the user's sessions and panes in full among it.
SHOWN = (
    *(("show-options", "-g"), ("show-options", "-gw"), ("show-options", "-s"), ("show-hooks", "-g")),
    *(("list-keys",), ("list-buffers",), ("show-environment", "-g"), ("show-options", "-t", "=mine:")),
    ("show-environment", "-t", "=mine:"),
    ("list-panes", "-s", "-t", "=mine:", "-F", PANE),
)


@pytest.fixture
def terminal(short_path: Path, clean_environ: dict[str, str]) -> Iterator[Terminal]:
    with a_terminal(short_path, clean_environ) as made:
        yield made


def a_user(terminal: Terminal, configuration: str = "") -> None:
    """Somebody who works in a session of their own, with titles and folders that break whoever parses lists."""
    (terminal.folder / "user" / ".tmux.conf").write_text(configuration)
    odd = terminal.folder / "a\nb ␞ c"
    odd.mkdir()
    words = ("-x", "80", "-y", "24", "-c", str(odd), "sleep", "1000")
    terminal.tmux(
        "new-session", "-d", "-s", "mine", *words, ";", "set", "-t", "=mine:", "destroy-unattached", "off"
    )
    terminal.tmux("split-window", "-d", "-t", "=mine:", "-c", str(odd), "sleep", "1000")
    terminal.tmux("select-pane", "-t", "=mine:", "-T", "my ␞ title\twith\x1b[31m things")
    terminal.tmux(
        "new-session", "-d", "-s", "mine1", *words, ";", "set", "-t", "=mine1:", "destroy-unattached", "off"
    )


def state(terminal: Terminal) -> list[str]:
    return [terminal.tmux(*words) for words in SHOWN]


@pytest.mark.parametrize("layout", ["windows", "main-vertical"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_same_team_stands_on_every_server(
    terminal: Terminal, configuration: str, name: str, layout: str
) -> None:
    a_user(terminal, CONFIGURATIONS[configuration])
    before = state(terminal)
    path = manifest(terminal, THREE)
    done = terminal.run(terminal.script(path, name=NAMES[name], layout=layout), LC_ALL="C")
    assert (done.returncode, done.stderr) == (0, "")
    session = NAMES[name].replace(".", "_").replace(":", "_")
    assert done.stdout == f"session {session}: attach with  tmux attach -t '={session}'\n"
    for seat in ("planner", "critic", "tester"):
        assert terminal.argv(seat)
    seats = terminal.tmux(
        "list-panes", "-s", "-t", f"={session}:", "-F", "#{@seat} #{pane_title} #{pane_dead}"
    )
    assert seats.splitlines() == [f"{seat} {seat} 0" for seat in ("planner", "critic", "tester")]
    windows = terminal.tmux("list-windows", "-t", f"={session}:", "-F", "#{window_name} #{window_active}")
    expected = ["planner 1", "critic 0", "tester 0"] if layout == "windows" else ["talk 1"]
    assert windows.splitlines() == expected
    assert terminal.tmux("display-message", "-p", "-t", f"={session}:", "#{@seat}") == "planner\n"
    size = terminal.tmux("display-message", "-p", "-t", f"={session}:", "#{window_width}x#{window_height}")
    assert size == "250x60\n"
    assert state(terminal) == before
    assert not list(terminal.folder.rglob("pwned"))


def test_the_server_of_a_user_who_sits_in_tmux(terminal: Terminal) -> None:
    """An inherited TMUX decides, whatever TMUX_TMPDIR says, and the user's own pane stays the current one."""
    a_user(terminal)
    before = state(terminal)
    inside = terminal.tmux("display-message", "-p", "-t", "=mine:", "#{socket_path},#{pid},0").strip()
    elsewhere = terminal.folder / "elsewhere"
    elsewhere.mkdir()
    done = terminal.run(
        terminal.script(manifest(terminal, THREE)), TMUX=inside, TMUX_TMPDIR=str(elsewhere), LC_ALL="C"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "session fleet-talk: attach with  tmux switch-client -t '=fleet-talk'\n"
    assert terminal.panes("fleet-talk") == ["planner", "critic", "tester"]
    assert state(terminal) == before
    assert list(elsewhere.iterdir()) == []


def test_a_small_screen_with_many_panes(terminal: Terminal) -> None:
    a_user(terminal, "set -g default-size 80x24\n")
    many = "".join(role(f"r{number}") for number in range(20))
    done = terminal.run(terminal.script(manifest(terminal, many), layout="even-vertical"))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(terminal.panes("fleet-talk")) == 20
    for number in range(20):
        terminal.argv(f"r{number}")


@pytest.mark.parametrize("name", ["a\nb", "a\n", " ␞ ", "a\tb", "\x1b[31m", "é" * 60])
def test_folders_that_break_lists(terminal: Terminal, name: str) -> None:
    """Both where a role works and where the script is started."""
    folder = terminal.folder / name
    folder.mkdir()
    (folder / "sub").mkdir()
    path = terminal.folder / "b.yaml"
    members = "[{agent: here, runtime: claude}, {agent: there, runtime: claude, cwd: %s}]"
    written = '"' + f"{folder}/sub".replace("\n", "\\n").replace("\t", "\\t").replace("\x1b", "\\e") + '"'
    path.write_text(
        f"name: n\ndescription: d\nteams: {{t: {{mode: deliberate, members: {members % written}}}}}\n"
    )
    script = terminal.script(path, name="s")
    done = subprocess.run(
        ["sh"],
        input=script.encode(),
        cwd=folder,
        env={**terminal.env, "LC_ALL": "C"},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert terminal.record("here", "cwd") == f"{folder}\n"
    assert terminal.record("there", "cwd") == f"{folder}/sub\n"


def test_long_texts_for_everybody(terminal: Terminal) -> None:
    """Twenty roles with 20 KB each: more than one command takes, and more than one shell word of a line."""
    (terminal.folder / "b.md").write_text("it's a 'line' with $(x) `y` \\ and ; at its end;\n" * 420)
    brief = (terminal.folder / "b.md").read_text().strip()
    assert len(brief) > 20_000
    many = "".join(role(f"r{number}", more=", brief: b.md") for number in range(20))
    done = terminal.run(terminal.script(manifest(terminal, many)))
    assert (done.returncode, done.stderr) == (0, "")
    for number in range(20):
        assert system(terminal.argv(f"r{number}")).endswith(f"\n\n{brief}")


@pytest.mark.parametrize("replace", [False, True])
def test_a_name_that_is_taken(terminal: Terminal, replace: bool) -> None:
    a_user(terminal)
    before = state(terminal)
    done = terminal.run(terminal.script(manifest(terminal, THREE), name="mine1", replace=replace))
    if replace:
        assert (done.returncode, done.stderr) == (0, "")
        assert terminal.panes("mine1") == ["planner", "critic", "tester"]
    else:
        assert done.returncode == 1
        assert "the tmux session mine1 exists already; nothing was started" in done.stderr
        assert "tmux attach -t '=mine1'" in done.stderr
        assert terminal.tmux("list-panes", "-s", "-t", "=mine1", "-F", "#{@seat}") == "\n"
        assert terminal.leftovers() == []
    assert state(terminal) == before


def test_nobody_replaces_the_session_they_sit_in(terminal: Terminal) -> None:
    a_user(terminal)
    before = state(terminal)
    script, out = terminal.folder / "s.sh", terminal.folder / "out"
    script.write_text(terminal.script(manifest(terminal, THREE), name="mine1", replace=True))
    inner = f"sh {script} >{out}.part 2>&1; echo $? >>{out}.part; mv {out}.part {out}; exec sleep 1000"
    terminal.tmux("respawn-pane", "-k", "-t", "=mine1:", "sh", "-c", inner)
    wait_for(out.exists, "the script to end")
    assert out.read_text() == "this shell sits in the session mine1 itself; run the script from outside\n1\n"
    assert state(terminal) == before


#: In place of tmux: the invocation that is to hang says so and waits.
HANGING = """\
#!/bin/sh
case "$2" in
    new-window|split-window) : >"$RECORDS/hangs"; exec sleep 1000 ;;
esac
exec {tmux} "$@"
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_script_that_is_stopped_half_way(
    terminal: Terminal, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_user(terminal)
    before = state(terminal)
    monkeypatch.setattr("fleet.roles.tmux._MAX_INVOCATION", 500)  # so that three roles take more than one
    script = terminal.folder / "s.sh"
    script.write_text(terminal.script(manifest(terminal, THREE)))
    tmux = terminal.folder / "bin" / "tmux"
    real = str(tmux.readlink())
    tmux.unlink()
    tmux.write_text(HANGING.format(tmux=quote(real)))
    tmux.chmod(0o755)
    # A signal that is ignored here, as in a job in the background, is ignored by every child.
    handler = signal.signal(number, lambda *_: None)
    running = subprocess.Popen(
        ["sh", str(script)],
        env=terminal.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(number, handler)
    try:
        wait_for((terminal.folder / "records" / "hangs").exists, "the second invocation of tmux")
        assert terminal.tmux("list-sessions", "-F", "#{session_name}").splitlines() == [
            "fleet-talk",
            "mine",
            "mine1",
        ]
        os.killpg(running.pid, number)  # as a terminal does
        out, err = running.communicate(timeout=20)
    finally:
        running.kill()
    assert (running.returncode, out) == (128 + number, "")
    assert "the fan-out failed; what it had made is removed" in err
    assert terminal.tmux("list-sessions", "-F", "#{session_name}").splitlines() == ["mine", "mine1"]
    assert terminal.leftovers() == []
    assert state(terminal) == before


#: In place of tmux: somebody ends the session before the second invocation reaches the server.
ENDING = """\
#!/bin/sh
case "$2" in
    new-window|split-window) {tmux} kill-session -t '=fleet-talk' ;;
esac
exec {tmux} "$@"
"""


def test_a_session_that_is_ended_half_way(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left to do is not done to a session whose name begins alike."""
    a_user(terminal)
    terminal.tmux("new-session", "-d", "-s", "fleet-talk-too", "-n", "w", "sleep 1000")
    before = state(terminal)
    monkeypatch.setattr("fleet.roles.tmux._MAX_INVOCATION", 500)
    script = terminal.script(manifest(terminal, THREE))
    tmux = terminal.folder / "bin" / "tmux"
    real = str(tmux.readlink())
    tmux.unlink()
    tmux.write_text(ENDING.format(tmux=quote(real)))
    tmux.chmod(0o755)
    done = terminal.run(script)
    assert done.returncode == 1
    assert "the fan-out failed; what it had made is removed" in done.stderr
    assert terminal.panes("fleet-talk-too") == ["w"]
    assert terminal.leftovers() == []
    assert state(terminal) == before


def test_a_server_that_is_started_anew_half_way(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first session has the number of ours."""
    monkeypatch.setattr("fleet.roles.tmux._MAX_INVOCATION", 500)
    script = terminal.script(manifest(terminal, THREE))
    tmux = terminal.folder / "bin" / "tmux"
    real = str(tmux.readlink())
    tmux.unlink()
    text = ENDING.replace(
        "kill-session -t '=fleet-talk'", "kill-server; {tmux} new-session -d -s mine 'sleep 1000'"
    )
    tmux.write_text(text.format(tmux=quote(real)))
    tmux.chmod(0o755)
    done = terminal.run(script)
    assert done.returncode == 1
    assert "the fan-out failed; what it had made is removed" in done.stderr
    assert terminal.tmux("list-sessions", "-F", "#{session_id} #{session_name}") == "$0 mine\n"
    assert terminal.leftovers() == []


@pytest.mark.parametrize("is_running", [False, True])
def test_two_launches_at_once(terminal: Terminal, is_running: bool) -> None:
    """One of them makes the session; the other says so and takes nothing away but what is its own."""
    if is_running:
        a_user(terminal)
    script = terminal.folder / "s.sh"
    script.write_text(terminal.script(manifest(terminal, THREE)))
    start = f"while [ ! -e {terminal.folder}/go ]; do :; done; exec sh {script}"
    both = [
        subprocess.Popen(
            ["sh", "-c", start], env=terminal.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    (terminal.folder / "go").touch()
    ended = [(process.communicate(timeout=60), process.returncode) for process in both]
    assert sorted(code for _, code in ended) == [0, 1], ended
    (lost,) = (err for (_, err), code in ended if code == 1)
    assert "duplicate session: fleet-talk" in lost or "exists already" in lost
    assert terminal.panes("fleet-talk") == ["planner", "critic", "tester"]
    for seat in ("planner", "critic", "tester"):
        terminal.argv(seat)
    assert len(terminal.leftovers()) == 1


def test_two_teams_at_once(terminal: Terminal) -> None:
    scripts = [terminal.script(manifest(terminal, THREE), name=name) for name in ("one", "other")]
    both = [
        subprocess.Popen(["sh", "-c", script], env=terminal.env, stdout=subprocess.DEVNULL)
        for script in scripts
    ]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    for name in ("one", "other"):
        assert terminal.panes(name) == ["planner", "critic", "tester"]


def test_a_server_that_ends_without_a_client_is_told(terminal: Terminal) -> None:
    (terminal.folder / "user" / ".tmux.conf").write_text("set -s exit-unattached on\n")
    done = terminal.run(terminal.script(manifest(terminal, THREE)))
    assert (done.returncode, done.stdout) == (1, "")
    assert "exit-unattached" in done.stderr
    assert terminal.leftovers() == []


@pytest.mark.parametrize("name", ["with space", "it's", "x" * 100, "new\nline"])
def test_a_place_for_temporary_files_that_is_not_usable(terminal: Terminal, name: str) -> None:
    place = terminal.folder / name
    place.mkdir()
    done = terminal.run(terminal.script(manifest(terminal, THREE)), TMPDIR=str(place))
    assert (done.returncode, done.stderr) == (0, "")
    terminal.argv("tester")
    command = terminal.tmux("display-message", "-p", "-t", "=fleet-talk:", "#{pane_start_command}")
    folder = Path(command.split('"')[1] if '"' in command else command.split()[1]).parent
    assert folder.parent == Path("/tmp")
    assert folder.stat().st_mode & 0o777 == 0o700
    terminal.tmux("kill-server")
    wait_for(lambda: not folder.exists(), "the folder to go")


def test_programs_are_found_where_the_script_was_run(terminal: Terminal) -> None:
    """The server may have been started long ago, with another PATH."""
    terminal.env["PATH"], path = (
        f"{Path(str(shutil.which('tmux'))).parent}:/usr/bin:/bin",
        terminal.env["PATH"],
    )
    terminal.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    done = terminal.run(terminal.script(manifest(terminal, THREE)), PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    for seat in ("planner", "critic", "tester"):
        assert terminal.argv(seat)


def test_a_seat_without_its_room_does_not_begin(terminal: Terminal) -> None:
    (terminal.folder / "bin" / "roundtable").unlink()
    done = terminal.run(terminal.script(manifest(terminal, role("planner"))))
    assert done.returncode == 0
    wait_for(lambda: terminal.is_dead("fleet-talk", "planner"), "the pane to give up")
    assert "planner: roundtable is not on PATH, so this seat could not speak in #den." in terminal.screen(
        "fleet-talk", "planner"
    )
    terminal.agents("roundtable")
    terminal.tmux("respawn-pane", "-t", "=fleet-talk:planner")
    assert terminal.argv("planner")
