"""A person at a terminal in a room: sees what others say, says what is typed, and stays over a new broker."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.raw import Raw, broker_process, until

COMMAND = [
    sys.executable,
    "-c",
    "from roundtable.cli import main; main()",
    "sit",
    "--room",
    "a",
    "--as",
    "pat",
]


class Chair:
    """The command in the background; what it wrote so far, and a way to type."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path) -> None:
        self.process = process
        self._out = out

    @property
    def shown(self) -> str:
        return self._out.read_text()

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()


@contextmanager
def sitting(environ: dict[str, str], folder: Path, *words: str) -> Iterator[Chair]:
    out = folder / "shown"
    with open(out, "wb") as stdout, open(folder / "errors", "wb") as stderr:
        process = subprocess.Popen(
            [*COMMAND, *words], env=environ, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr
        )
    try:
        yield Chair(process, out)
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def broker(home: Path) -> Iterator[Path]:
    with broker_process(home):
        yield home / "roundtable" / "broker.sock"


def test_what_others_say_is_shown_and_each_line_typed_is_posted(
    broker: Path, clean_environ: dict[str, str], tmp_path: Path
) -> None:
    with Raw(broker, "bob") as bob:
        bob.ask("join", room="a", topic="Queues")
        bob.ask("post", room="a", text="before you came")
        with sitting(clean_environ, tmp_path) as pat:
            until(lambda: "bob#1: before you came" in pat.shown)
            assert pat.shown.startswith("#a — Queues · 2 members · /who lists")
            # Nothing shown can act on the terminal or pass for another's line.
            bob.ask("post", room="a", text="one\n[09:00] eve#9: forged \x1b[31m")
            until(lambda: "forged" in pat.shown)
            assert "    [09:00] eve#9: forged \ufffd[31m" in pat.shown

            pat.type("hello\n/reply bob#1 an answer\n//slash\n\n/who\n/nonsense\n")
            until(lambda: pat.shown.count("/who lists") == 2)
            assert "bob, pat\n" in pat.shown
            messages = bob.ask("fetch", room="a", afterSeq=2)["messages"]
            assert [(m["from"]["name"], m["text"], m.get("replyTo")) for m in messages] == [
                ("pat", "hello", None),
                ("pat", "an answer", "bob#1"),
                ("pat", "/slash", None),
            ]
            assert "pat#" not in pat.shown
            pat.type("/reply bob#77 nothing\n")
            until(lambda: "Not posted: replyTo names no message" in pat.shown)
            pat.type("/quit\n")
            assert pat.process.wait(10) == 0
        # What was shown is read.
        with Raw(broker, "pat") as again:
            assert again.ask("join", room="a")["unread"] == 0


def test_the_end_of_input_leaves_and_the_last_line_needs_no_newline(
    broker: Path, clean_environ: dict[str, str], tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one\r\ntwo")
    with open(lines, "rb") as stdin:
        done = subprocess.run(COMMAND, env=clean_environ, stdin=stdin, capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
    with Raw(broker, "bob") as bob:
        assert [m["text"] for m in bob.ask("fetch", room="a", afterSeq=0)["messages"]] == ["one", "two"]
        assert bob.ask("join", room="a")["members"] != []
        assert [m["name"] for m in bob.ask("join", room="a")["members"]] == ["bob"]


def test_a_new_broker_is_entered_and_that_is_said(
    home: Path, clean_environ: dict[str, str], tmp_path: Path
) -> None:
    with sitting(clean_environ, tmp_path) as pat:
        with broker_process(home) as first:
            until(lambda: "#a · 1 member" in pat.shown)
            first.kill()
            first.wait()
        until(lambda: "(the broker has gone; coming in again)" in pat.shown)
        until(lambda: pat.shown.count("#a · 1 member") == 2)
        with Raw(home / "roundtable" / "broker.sock", "bob") as bob:
            bob.ask("join", room="a")
            bob.ask("post", room="a", text="still there?")
            until(lambda: "bob#1: still there?" in pat.shown)
            pat.type("yes\n")
            until(lambda: len(bob.ask("fetch", room="a", afterSeq=0)["messages"]) == 2)


def test_on_a_terminal_ctrl_c_leaves_at_once(
    broker: Path, clean_environ: dict[str, str], tmp_path: Path
) -> None:
    leader, follower = pty.openpty()
    try:
        process = subprocess.Popen(
            COMMAND, env=clean_environ, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),  # noqa: PLW1509 - one thread
        )  # fmt: skip
        shown = b""
        while b"1 member" not in shown:
            shown += os.read(leader, 4096)
        os.write(leader, b"\x03")
        assert process.wait(10) == 130
    finally:
        os.close(leader)
        os.close(follower)


def test_the_demonstration_keeps_what_it_promises(clean_environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from roundtable.cli import main; main()", "demo"],
        env=clean_environ, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 whole, 0 headlines, 6 counted" in done.stdout
    assert not Path(clean_environ["FLEET_HOME"]).exists()
