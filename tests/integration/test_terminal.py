"""What a person sees of a run on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

from tests.integration.running import DESIGN, FLEET, blueprint, python

Environ = dict[str, str]


def watched(words: list[str], environ: Environ, folder: Path) -> tuple[int, str]:
    """Run a command with stderr on a terminal of 100 columns; returns its exit code and what it drew."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*FLEET, *words],
        cwd=folder,
        env=environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    os.close(follower)
    drawn = b""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                drawn += os.read(leader, 65536)
            except OSError:  # the terminal is gone with its last user
                break
    os.close(leader)
    return process.wait(10), drawn.decode()


def plain(drawn: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn).replace("\r", "")


def test_live_rows_per_member(environ: Environ, place: Path) -> None:
    code, drawn = watched(["run", str(DESIGN)], environ, place)
    assert code == 0
    text = plain(drawn)
    assert text.startswith("run r")
    assert "rehearsal: no model is used" in text
    last = text[text.rindex("builder ") :]
    assert re.search(r"builder\s+final\s+turn 3\s+\d+s\s+FINAL: builder's position", last)
    assert "3 of 3 finished." in text


def test_a_member_cannot_draw_on_the_terminal(environ: Environ, place: Path) -> None:
    code = "print('\\x1b]0;title\\x07\\x1b[2J[red]loud[/red]'); print('FINAL: \\x1b[31mred')"
    _, drawn = watched(["run", str(blueprint(place, {"loud": python(code)}))], environ, place)
    assert "\x1b]0;title" not in drawn
    assert "\x1b[2J" not in drawn
    assert "\x1b[31mred" not in drawn
    assert "FINAL: \ufffd[31mred" in plain(drawn)


def test_no_color_is_respected(environ: Environ, place: Path) -> None:
    _, drawn = watched(["run", str(DESIGN)], environ | {"NO_COLOR": "1"}, place)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", drawn)
