"""The commands that make a team, as text: one line, complete, and readable to tmux's own parser."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleet.live.command_file import MARK, Setting, command_file, labels, quoted
from fleet.roles.launch import FanOut, from_manifest
from fleet.roles.manifest import load_manifest


def fan_out(folder: Path, *, layout: str | None = None, count: int = 3) -> FanOut:
    path = folder / "x.roles.yaml"
    roles = "".join(f"  r{number}: {{provider: anthropic, model: m}}\n" for number in range(count))
    path.write_text(f"task: talk\nroom: den\nroles:\n{roles}")
    return from_manifest(load_manifest(path), binary=None, layout=layout)


def setting(**environ: str) -> Setting:
    return Setting("fleet-talk", "abc", Path("/home/live/abc"), Path("/start"), environ, has_pings=False)


def test_all_on_one_line(tmp_path: Path) -> None:
    text = command_file(fan_out(tmp_path), setting(A="one\ntwo"))
    assert text.count("\n") == 1
    assert text.startswith('"new-session" "-d" "-P" "-F" ')
    assert '"-e" "A=one\\ntwo"' in text
    assert f'"-e" "{MARK}=abc"' in text
    _first, second, *_ = text.split(" ; ")
    assert second == '"set-option" "-t" "=fleet-talk:" "@fleet_id" "abc"'
    assert text.count('"new-window"') == 3


def test_what_belongs_to_a_terminal_or_to_another_seat_is_not_passed_on(tmp_path: Path) -> None:
    passed = {
        "PATH": "/bin",
        "TERM": "x",
        "TMUX": "x",
        "TMUX_PANE": "%1",
        "FLEET_SEAT": "x",
        "BASH_FUNC_x%%": "()",
    }
    text = command_file(fan_out(tmp_path), setting(**passed))
    assert '"PATH=/bin"' in text
    assert not any(f'"{name}=' in text for name in passed if name != "PATH")


def test_a_room_pane_per_room_and_one_that_pings(tmp_path: Path) -> None:
    path = tmp_path / "x.roles.yaml"
    path.write_text(
        "task: t\nroom: one\nroles:\n  a: {provider: x, model: m}\n  b: {provider: x, model: m, room: two}\n"
    )
    found = from_manifest(load_manifest(path), binary=None, layout=None)
    here = Setting("s", "abc", Path("/f"), Path("/start"), {}, has_pings=True)
    commands = command_file(found, here).split(" ; ")
    assert [command for command in commands if '"/f/room"' in command or '"/f/pings"' in command] == [
        commands[0],
        '"split-window" "-P" "-F" "#{pane_id}" "-c" "/start" "-t" "=s:" "sh" "/f/room" "two"',
        '"split-window" "-P" "-F" "#{pane_id}" "-c" "/start" "-t" "=s:" "sh" "/f/pings"',
    ]


def test_seats_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    from fleet.blueprint.load import load_blueprint
    from fleet.roles.launch import from_blueprint

    path = tmp_path / "b.yaml"
    path.write_text(
        "name: two\ndescription: d\nteams:\n"
        "  red: {mode: deliberate, members: [{agent: a}, {agent: c}]}\n"
        "  blue: {mode: deliberate, layout: tiled, members: [{agent: a}, {agent: b}]}\n"
    )
    assert labels(from_blueprint(load_blueprint(path), binary=None, layout=None)) == (
        "red-a",
        "c",
        "blue-a",
        "b",
    )


@dataclass
class Server:
    """A tmux server that nobody else uses."""

    folder: Path

    def tmux(self, *words: str) -> bytes:
        start = ["tmux", "-u", "-S", str(self.folder / "s"), "-f", "/dev/null"]
        done = subprocess.run([*start, *words], capture_output=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    made = Server(Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp")))
    made.tmux("new-session", "-d", "-s", "x", "sleep 1000")
    yield made
    made.tmux("kill-server")
    shutil.rmtree(made.folder, ignore_errors=True)


WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t\r\"'\\$~#;{}%@= "), max_size=30
)


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=10))
@example(["\\", "\\n", "~/x", "$HOME", "${HOME}", "#{pid}", "#(touch x)", "%if", "a;", ";", "'", '"', "é␞🙂"])
def test_tmux_reads_every_word_as_it_was(server: Server, words: list[str]) -> None:
    file = server.folder / "commands"
    setting = ((quoted("set-option"), "-s", f"@w{index}", quoted(word)) for index, word in enumerate(words))
    file.write_bytes((" ; ".join(map(" ".join, setting)) + "\n").encode())
    server.tmux("source-file", str(file))
    for index, word in enumerate(words):
        assert server.tmux("display-message", "-p", f"#{{@w{index}}}") == f"{word}\n".encode()
