"""The tmux script, run by a real shell on a real tmux server of the test's own."""

from __future__ import annotations

import os
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.roles_terminal import THREE, Terminal, a_terminal, manifest, role, system, wait_for

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def terminal(short_path: Path, clean_environ: dict[str, str]) -> Iterator[Terminal]:
    with a_terminal(short_path, clean_environ) as made:
        yield made


def test_one_window_per_role_each_with_its_agent(terminal: Terminal) -> None:
    done = terminal.run(terminal.script(manifest(terminal, THREE)))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "session fleet-talk: attach with  tmux attach -t '=fleet-talk'\n"
    assert terminal.panes("fleet-talk") == ["planner", "critic", "tester"]
    words = terminal.argv("planner")
    assert words[:3] == ["--model", "m", "--mcp-config"]
    assert system(words).startswith("You are planner, one role of the deliberation talk.\n")
    assert words[-2] == "--"
    assert "roundtable digest den --as planner" in words[-1]
    assert terminal.argv("critic")[:2] == ["--disable", "daemon_auto_start"]
    first = terminal.tmux("list-windows", "-t", "=fleet-talk", "-F", "#{window_active} #{window_name}")
    assert "1 planner" in first
    size = terminal.tmux("display-message", "-p", "-t", "=fleet-talk:", "#{window_width}x#{window_height}")
    assert size.strip() == "250x60"


def test_the_agent_is_the_first_process_of_its_pane(terminal: Terminal) -> None:
    terminal.run(terminal.script(manifest(terminal, role("planner"))))
    terminal.argv("planner")
    command = "#{pane_current_command}"
    wait_for(
        lambda: terminal.tmux("display-message", "-p", "-t", "=fleet-talk:", command).strip() == "sleep",
        "the agent's own program to be what the pane runs",
    )


def test_a_missing_program_explains_itself_and_stays(terminal: Terminal) -> None:
    path = manifest(terminal, role("planner") + role("oracle", "google"))
    done = terminal.run(terminal.script(path))
    assert done.returncode == 0
    wait_for(lambda: terminal.is_dead("fleet-talk", "oracle"), "the pane to give up")
    screen = terminal.screen("fleet-talk", "oracle")
    assert "oracle: gemini is not on PATH, so this seat is empty." in screen
    assert "respawn-pane" in screen
    terminal.agents("gemini")
    terminal.tmux("respawn-pane", "-t", "=fleet-talk:oracle")
    assert terminal.argv("oracle")[:2] == ["-m", "m"]


def test_a_missing_folder_explains_itself(terminal: Terminal) -> None:
    terminal.run(terminal.script(manifest(terminal, role("planner", more=", cwd: gone"))))
    wait_for(lambda: terminal.is_dead("fleet-talk", "planner"), "the pane to give up")
    screen = terminal.screen("fleet-talk", "planner")
    assert "planner: cannot enter its working directory" in screen
    assert f"{terminal.folder}/gone" in screen


@pytest.mark.parametrize("name", ["it's here", "a b  c", 'say "x"', "$(touch x) `touch y`", "--", "ü\u2713"])
def test_working_directories_of_any_name(terminal: Terminal, name: str) -> None:
    (terminal.folder / name).mkdir()
    cwd = name.replace("'", "''")
    terminal.run(terminal.script(manifest(terminal, role("planner", more=f", cwd: '{cwd}'"))), LC_ALL="C")
    assert terminal.record("planner", "cwd") == f"{terminal.folder}/{name}\n"
    assert not list(terminal.folder.glob("[xy]"))


def test_without_a_locale(terminal: Terminal) -> None:
    (terminal.folder / "b.md").write_text("Grüße — ✓ 漢字 🙂")
    script = terminal.script(manifest(terminal, role("planner", more=", brief: b.md")))
    for name in ("LANG", "LC_CTYPE", "LANGUAGE"):
        terminal.env.pop(name, None)
    assert terminal.run(script, LC_ALL="C").returncode == 0
    assert system(terminal.argv("planner")).endswith("Grüße — ✓ 漢字 🙂")


@pytest.mark.parametrize("layout", ["windows", "tiled"])
def test_indexes_that_begin_at_one_and_other_settings_of_a_user(terminal: Terminal, layout: str) -> None:
    (terminal.folder / "user" / ".tmux.conf").write_text(
        "set -g base-index 1\nset -gw pane-base-index 1\nset -g renumber-windows on\n"
        "set -g default-command 'echo hijacked; exit 3'\nset -g destroy-unattached on\nset -gw remain-on-exit off\n"
    )
    path = manifest(terminal, THREE + role("oracle", "google"))
    done = terminal.run(terminal.script(path, layout=layout))
    assert done.returncode == 0, done.stderr
    assert len(terminal.panes("fleet-talk")) == 4
    for seat in ("planner", "critic", "tester"):
        terminal.argv(seat)
    assert terminal.tmux("show-options", "-gv", "destroy-unattached").strip() == "on"
    assert terminal.tmux("show-options", "-gwv", "remain-on-exit").strip() == "off"


def test_global_options_are_left_alone(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "mine", "sleep 1000")

    def settings() -> list[str]:
        return [terminal.tmux("show-options", flags) for flags in ("-g", "-gw", "-s")] + [
            terminal.tmux("show-hooks", "-g"),
            terminal.tmux("show-options", "-t", "=mine:"),
            terminal.tmux("list-keys"),
        ]

    before = settings()
    terminal.run(terminal.script(manifest(terminal, THREE), layout="main-vertical"))
    assert settings() == before


def test_inside_a_running_tmux(terminal: Terminal) -> None:
    script, out = terminal.folder / "s.sh", terminal.folder / "out"
    script.write_text(terminal.script(manifest(terminal, THREE)))
    inner = f"sh {script} >{out}.part 2>&1; mv {out}.part {out}; sleep 1000"
    terminal.tmux("-L", "other", "new-session", "-d", "-s", "work", inner)
    try:
        wait_for(out.exists, "the script to end")
        assert out.read_text() == "session fleet-talk: attach with  tmux switch-client -t '=fleet-talk'\n"
        sessions = terminal.tmux("-L", "other", "list-sessions", "-F", "#{session_name} #{session_windows}")
        assert sorted(sessions.splitlines()) == ["fleet-talk 3", "work 1"]
    finally:
        terminal.tmux("-L", "other", "kill-server")


def test_a_long_brief_arrives_whole(terminal: Terminal) -> None:
    lines = [f'{n}: it\'s "quoted" $(x) `y` \\ END {"z" * 60}' for n in range(220)]
    brief = "\n".join([*lines, "END", "END-", "- last"])
    assert len(brief) > 20_000
    (terminal.folder / "b.md").write_text(brief)
    roles = role("planner", more=", brief: b.md") + role("critic", "openai", ", brief: b.md")
    script = terminal.script(manifest(terminal, roles))
    assert terminal.run(script).returncode == 0
    assert system(terminal.argv("planner")).endswith(f"\n\n{brief}")
    (told,) = (word for word in terminal.argv("critic") if word.startswith("developer_instructions="))
    assert tomllib.loads(told)["developer_instructions"].endswith(f"\n\n{brief}")


def test_a_session_of_that_name_is_left_alone(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "fleet-talk", "sleep 1000")
    done = terminal.run(terminal.script(manifest(terminal, THREE)))
    assert done.returncode == 1
    assert "fleet-talk exists already; nothing was started" in done.stderr
    assert "tmux attach -t '=fleet-talk'" in done.stderr
    assert "--replace" in done.stderr
    assert terminal.tmux("list-windows", "-a", "-F", "x") == "x\n"
    assert terminal.leftovers() == []


def test_replace(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "fleet-talk", "sleep 1000")
    terminal.tmux("new-session", "-d", "-s", "fleet-talk-too", "sleep 1000")
    script = terminal.script(manifest(terminal, THREE), replace=True)
    for _ in range(2):
        done = terminal.run(script)
        assert done.returncode == 0, done.stderr
        assert terminal.panes("fleet-talk") == ["planner", "critic", "tester"]
    assert terminal.panes("fleet-talk-too")


@pytest.mark.parametrize("others", [["fleet-talk2", "fleet-tal"], ["fleet-talker"]])
def test_similar_names(terminal: Terminal, others: list[str]) -> None:
    for name in others:
        terminal.tmux("new-session", "-d", "-s", name, "sleep 1000")
    done = terminal.run(terminal.script(manifest(terminal, THREE)))
    assert done.returncode == 0, done.stderr
    assert len(terminal.panes("fleet-talk")) == 3
    assert all(len(terminal.panes(name)) == 1 for name in others)


def test_numeric_names(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    path = manifest(terminal, role('"0"') + role('"1"') + role('"2024"'))
    done = terminal.run(terminal.script(path, name="1"))
    assert done.returncode == 0, done.stderr
    assert terminal.panes("1") == ["0", "1", "2024"]
    assert len(terminal.panes("mine")) == 1


def test_a_session_name_in_any_script_without_a_locale(terminal: Terminal) -> None:
    path = manifest(terminal, role("planner"))
    done = terminal.run(terminal.script(path, name="größe-漢字"), LC_ALL="C")
    assert "attach -t '=größe-漢字'" in done.stdout
    assert terminal.tmux("list-sessions", "-F", "#{session_name}") == "größe-漢字\n"


def test_a_hostile_session_name(terminal: Terminal) -> None:
    name = "a.b:c'; touch pwned; $(touch pwned)\n#{pid}"
    script = terminal.script(manifest(terminal, role("planner")), name=name)
    done = terminal.run(script)
    assert done.returncode == 0, done.stderr
    safe = terminal.tmux("list-sessions", "-F", "#{session_name}").strip()
    assert f"attach -t '={safe}'" in done.stdout
    assert safe.startswith("a_b_c")
    assert not Path("pwned").exists()


#: In place of tmux: lets so many invocations that seat someone through, then fails, or adds a failing command.
FAILING = """\
#!/bin/sh
case "$2" in
    new-session) {first} ;;
    new-window|split-window) {later} ;;
esac
exec {tmux} "$@"
"""


def fail(terminal: Terminal, *, first: str = ":", later: str = ":") -> None:
    path = terminal.folder / "bin" / "tmux"
    real = str(shutil.which("tmux"))
    path.unlink()
    path.write_text(FAILING.format(first=first, later=later, tmux=shlex.quote(real)))
    path.chmod(0o755)


def test_a_failure_after_the_session_stands_removes_it_and_nothing_else(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "fleet", "sleep 1000")
    script = terminal.script(manifest(terminal, THREE))
    fail(terminal, first=f"exec {shutil.which('tmux')} \"$@\" ';' select-window -t '=nowhere:'")
    done = terminal.run(script)
    assert done.returncode == 1
    assert "the fan-out failed; what it had made is removed" in done.stderr
    assert terminal.tmux("list-sessions", "-F", "#{session_name}") == "fleet\n"
    assert terminal.leftovers() == []


def test_a_failure_of_a_later_invocation_removes_what_the_first_made(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "fleet", "sleep 1000")
    many = "".join(role(f"{'n' * 55}{number}") for number in range(60))
    script = terminal.script(manifest(terminal, many))
    fail(terminal, later="echo 'no more windows' >&2; exit 1")
    done = terminal.run(script)
    assert done.returncode == 1
    assert "no more windows" in done.stderr
    assert terminal.tmux("list-sessions", "-F", "#{session_name}") == "fleet\n"
    assert terminal.leftovers() == []


def test_a_failure_before_anything_stands(terminal: Terminal) -> None:
    script = terminal.script(manifest(terminal, THREE))
    fail(terminal, first="echo 'no server' >&2; exit 1")
    done = terminal.run(script)
    assert (done.returncode, "no server" in done.stderr) == (1, True)
    assert terminal.leftovers() == []


def test_sixty_roles(terminal: Terminal) -> None:
    many = "".join(role(f"{'n' * 55}{number}") for number in range(60))
    done = terminal.run(terminal.script(manifest(terminal, many)))
    assert done.returncode == 0, done.stderr
    assert len(terminal.panes("fleet-talk")) == 60


@pytest.mark.parametrize(
    "layout", ["tiled", "even-horizontal", "even-vertical", "main-horizontal", "main-vertical"]
)
def test_panes_of_one_window(terminal: Terminal, layout: str) -> None:
    many = "".join(role(f"r{number}") for number in range(14))
    done = terminal.run(terminal.script(manifest(terminal, many), layout=layout))
    assert done.returncode == 0, done.stderr
    shown = terminal.tmux("list-panes", "-t", "=fleet-talk:", "-F", "#{@seat} #{pane_active}").split("\n")[
        :-1
    ]
    assert sorted(line.split()[0] for line in shown) == sorted(f"r{number}" for number in range(14))
    assert "r0 1" in shown
    assert set(terminal.panes("fleet-talk")) == {"talk"}


def test_the_folder_goes_with_the_session(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    terminal.run(terminal.script(manifest(terminal, THREE)))
    (folder,) = terminal.leftovers()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert terminal.argv("planner")
    terminal.tmux("kill-session", "-t", "=fleet-talk")
    wait_for(lambda: terminal.leftovers() == [], "the folder to go")
    assert terminal.panes("mine")


def test_the_folder_goes_with_the_server(terminal: Terminal) -> None:
    terminal.run(terminal.script(manifest(terminal, THREE)))
    terminal.tmux("kill-server")
    wait_for(lambda: terminal.leftovers() == [], "the folder to go")


def test_the_home_reaches_the_panes(terminal: Terminal) -> None:
    terminal.tmux("new-session", "-d", "-s", "mine", "sleep 1000")  # the server has another environment
    script = terminal.script(manifest(terminal, role("planner")))
    terminal.run(script, FLEET_HOME="/a home's/x")
    assert terminal.record("planner", "home") == "/a home's/x"


BLUEPRINT = """\
name: mixed
description: Seats of every kind.
agents:
  helper: {runtime: command, command: [python3, ./h.py]}
teams:
  panel:
    mode: deliberate
    room: den
    topic: it's a topic
    layout: %s
    members:
      - {agent: planner, model: anthropic/opus, color: orange, env: {SPECIAL: "it's $x"}, args: [--verbose, ""]}
      - {agent: helper, count: 2}
      - {agent: nobody}
"""


@pytest.mark.parametrize("layout", ["windows", "even-vertical"])
def test_a_blueprint(terminal: Terminal, layout: str) -> None:
    path = terminal.folder / "b.yaml"
    path.write_text(BLUEPRINT % layout)
    done = terminal.run(terminal.script(path))
    assert done.returncode == 0, done.stderr
    assert len(terminal.panes("fleet-mixed")) == 4
    words = terminal.argv("planner")
    assert words[:3] == ["--model", "opus", "--mcp-config"]
    assert words[-4:-1] == ["--verbose", "", "--"]
    assert terminal.record("planner", "cwd") == f"{os.getcwd()}\n"  # noqa: PTH109 - what a shell would print
    for seat in ("helper-1", "helper-2", "nobody"):
        assert terminal.argv(seat) == ["tail", "--wait", "den"]
    if layout == "windows":
        screen = terminal.screen("fleet-mixed", "helper-1")
        assert "Seat helper-1 is a program that a run starts once per turn: python3 ./h.py" in screen
        assert f"fleet run {path}\n" in screen
        assert "Seat nobody names no runtime." in terminal.screen("fleet-mixed", "nobody")


def test_any_program_with_the_references_arguments(terminal: Terminal) -> None:
    terminal.agents("my agent")
    (terminal.folder / "b.md").write_text("x")
    path = manifest(terminal, role("planner", more=", brief: b.md"))
    terminal.run(terminal.script(path, binary="my agent"))
    words = terminal.argv("planner")
    assert words[:8] == [
        *("--name", "planner", "--provider", "anthropic", "--model", "m"),
        *("--append-system-prompt", f"{terminal.folder}/b.md"),
    ]
    assert words[8] == "--append-system-prompt"
    assert all(part in words[9] for part in ("planner", "#den", "2000", "600"))
    assert len(words) == 10
