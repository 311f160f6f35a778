"""``fleet send``: a text arrives byte for byte as one message, or the command says why it did not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.live.delivery import checked, deliver
from fleet.live.teams import panes, teams_on
from fleet.tmux import Tmux
from tests.integration.live import Machine, machine_in, role, wait_for

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

LONG = "".join(f'{number:05d} é✓🙂 it\'s "long" $x `y` \\ ; #{{pid}}  ' for number in range(520))


@pytest.fixture
def machine(short_path: Path, clean_environ: dict[str, str]) -> Iterator[Machine]:
    with machine_in(short_path, clean_environ) as made:
        yield made


def seated(machine: Machine, **kinds: str) -> None:
    """Seats by name, each a program of `screens.py` of that kind, ready to be spoken to."""
    providers = {"claude": "anthropic", "codex": "openai", "gemini": "google", "opencode": "x"}
    roles = ""
    for (program, provider), (seat, kind) in zip(providers.items(), kinds.items(), strict=False):
        machine.screen_agent(program, kind)
        roles += role(seat, provider)
    machine.up(machine.manifest(roles))
    for seat in kinds:
        wait_for(lambda seat=seat: machine.is_ready(seat), f"{seat} to be ready")  # type: ignore[misc]


def send(machine: Machine, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        machine.words("send", *words),
        cwd=machine.work,
        env=machine.env,
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=180,
    )


TEXTS = [
    "hello",
    "ends with ;",
    ";",
    "-R looks like a flag",
    "--",
    "three\nlines;\n  of one message",
    "tab\tand \\n and ~ $HOME #{pid} #(touch pwned) %H",
    "🙂🙂🙂 漢字 é",
    "Enter",
    "C-c",
    " blanks around ",
    "'quotes\" `and` $(more)",
    LONG,
    "\n".join(f"line {number}" for number in range(500)),
]


def test_texts_arrive_byte_for_byte(machine: Machine) -> None:
    seated(machine, planner="composer")
    socket = machine.tmux("display-message", "-p", "#{socket_path}").strip()
    (team,) = teams_on(Tmux(socket_path=socket))
    (pane,) = (pane for pane in panes(team) if pane.seat == "planner")
    for text in TEXTS:
        receipt = deliver(team.tmux, pane, checked(text), folder=team.folder)
        assert receipt.lines == 1
    assert [message["text"] for message in machine.messages("planner")] == TEXTS
    assert all(message["stray"] == "" for message in machine.messages("planner"))
    assert machine.tmux("list-buffers") == ""
    assert not list(machine.work.glob("pwned"))
    assert not list(team.folder.glob("fleet-*"))


def test_where_a_text_comes_from(machine: Machine) -> None:
    seated(machine, critic="folding", counter="counting")
    done = send(machine, "critic", LONG[:3000])
    assert done.stdout == "delivered to critic of fleet-talk (folded)\n", done.stderr
    done = send(machine, "counter", LONG[:3000])
    assert done.stdout == "delivered to counter of fleet-talk (changed)\n", done.stderr
    # A short one that is not shown was taken for something else.
    done = send(machine, "counter", "short", "--timeout", "2s")
    assert (done.returncode, "Enter was not pressed" in done.stderr) == (1, True)
    assert send(machine, "critic", "--", "-x").returncode == 0
    assert send(machine, "critic", "-", text="from\nstandard input\n").returncode == 0
    (machine.work / "m.txt").write_bytes("from\r\na filé\r\n".encode())
    assert send(machine, "critic", "--file", "m.txt").returncode == 0
    heard = [message["text"] for message in machine.messages("critic")]
    assert heard == [LONG[:3000], "-x", "from\nstandard input", "from\na filé"]


def test_twenty_at_once_to_two_seats(machine: Machine) -> None:
    seated(machine, planner="composer", critic="folding")
    kinds = [
        "{n} ends with ;",
        "-{n} begins with a dash",
        LONG + " {n}",
        "{n} 🙂🙂 漢字",
        "{n} one\n{n} two\n{n} three",
    ]
    texts = {
        seat: [kinds[index % 5].replace("{n}", f"{seat}{index}") for index in range(10)]
        for seat in ("planner", "critic")
    }
    started = [
        subprocess.Popen(
            machine.words("send", seat, "--", text),
            cwd=machine.work,
            env=machine.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(10)
        for seat, text in ((seat, texts[seat][index]) for seat in texts)
    ]
    ended = [(*process.communicate(timeout=180), process.returncode) for process in started]
    assert [code for _, _, code in ended] == [0] * 20, [err for _, err, _ in ended]
    for seat, sent in texts.items():
        assert sorted(message["text"] for message in machine.messages(seat)) == sorted(sent)
        assert all(message["stray"] == "" for message in machine.messages(seat))


def test_the_user_s_own_way_of_looking_does_not_matter(machine: Machine) -> None:
    (machine.folder / "user" / ".tmux.conf").write_text(
        "set -g prefix C-a\nset -gw mode-keys vi\nset -s escape-time 0\n"
        "bind -n Enter kill-session\nbind -n h kill-server\n"
    )
    seated(machine, planner="composer")
    pane = machine.pane("fleet-talk", "planner")
    machine.tmux("copy-mode", "-t", pane)
    assert send(machine, "planner", "hello").returncode == 0
    assert machine.tmux("display-message", "-p", "-t", pane, "#{pane_in_mode}") == "0\n"
    machine.tmux("set-buffer", "-b", "mine", "the user's")
    machine.tmux("clock-mode", "-t", pane)
    assert send(machine, "planner", "again").returncode == 0
    assert [message["text"] for message in machine.messages("planner")] == ["hello", "again"]
    assert machine.tmux("show-buffer", "-b", "mine") == "the user's"


def test_a_question_is_not_answered(machine: Machine) -> None:
    seated(machine, planner="asking", critic="deaf")
    done = send(machine, "planner", "stop that", "--timeout", "2s")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "planner: the text was pasted, but in 2 s nothing of it was to be seen; Enter was not pressed"
        in done.stderr
    )
    assert "please answer" in machine.screen("fleet-talk", "planner")
    assert "deleted" not in machine.screen("fleet-talk", "planner")
    assert machine.messages("planner") == []
    done = send(machine, "critic", "anybody there?", "--timeout", "2s")
    assert (done.returncode, "Enter was not pressed" in done.stderr) == (1, True)


@pytest.fixture
def shell_seats(machine: Machine) -> Machine:
    """Seats that read by lines: one that answers, one that reads nothing, one that has ended."""
    machine.agent("claude", "#!/bin/sh\nexec cat\n")
    machine.agent("codex", "#!/bin/sh\nexec sleep 1000\n")
    machine.agent("gemini", "#!/bin/sh\necho bye\nexit 4\n")
    roles = role("reader") + role("sleeper", "openai") + role("ended", "google")
    machine.up(machine.manifest(roles))
    wait_for(lambda: machine.is_dead("fleet-talk", "ended"), "the one to end")
    return machine


def test_programs_that_read_by_lines(shell_seats: Machine) -> None:
    machine = shell_seats
    done = send(machine, "reader", "one line")
    assert done.stdout == "delivered to reader of fleet-talk (shown)\n", done.stderr
    wait_for(lambda: machine.screen("fleet-talk", "reader").count("one line") == 2, "the answer")
    done = send(machine, "reader", "three\nmore\nlines")
    assert done.stdout.endswith("(shown, as 3 lines: its program reads by lines)\n")
    done = send(machine, "reader", "x" * 4096)
    assert done.returncode == 1
    assert (
        "its program reads by lines, of which a terminal keeps 4095 bytes, and one of the text has 4096"
        in done.stderr
    )
    assert "nothing was sent" in done.stderr
    assert "xxx" not in machine.screen("fleet-talk", "reader")
    done = send(machine, "sleeper", "wake up", "--timeout", "2s")
    assert done.returncode == 1
    assert "sleeper: the program has not read it within 2 s; it may still do so" in done.stderr
    done = send(machine, "ended", "hello?")
    assert done.returncode == 1
    assert re.search(r"ended: its program has ended( \(exit 4\))?; nothing was sent", done.stderr)


def test_panes_that_would_pass_it_on_or_not_take_it(shell_seats: Machine) -> None:
    machine = shell_seats
    pane = machine.pane("fleet-talk", "reader")
    machine.tmux("split-window", "-d", "-t", pane, "cat")
    machine.tmux("set-option", "-w", "-t", pane, "synchronize-panes", "on")
    done = send(machine, "reader", "for one")
    assert (done.returncode, "synchronised with others" in done.stderr) == (1, True)
    machine.tmux("set-option", "-w", "-t", pane, "synchronize-panes", "off")
    machine.tmux("select-pane", "-d", "-t", pane)
    done = send(machine, "reader", "for nobody")
    assert (done.returncode, "input to its pane is switched off" in done.stderr) == (1, True)
    assert machine.screen("fleet-talk", "reader").strip() == ""
    machine.tmux("select-pane", "-e", "-t", pane)
    assert send(machine, "reader", "now").returncode == 0
    machine.tmux("kill-pane", "-t", pane)
    done = send(machine, "reader", "gone?")
    assert (done.returncode, "no seat is called 'reader'" in done.stderr) == (1, True)


def test_who_is_meant(shell_seats: Machine) -> None:
    machine = shell_seats
    done = send(machine, "nobody", "x")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "fleet: no seat is called 'nobody'",
        "hint: seats: reader, sleeper, ended",
    ]
    other = machine.manifest(role("reader"), task="second", name="y.roles.yaml")
    machine.up(other)
    done = send(machine, "reader", "x")
    assert "several seats are called reader: reader of fleet-second, reader of fleet-talk" in done.stderr
    assert send(machine, "reader", "x", "--team", "second").stdout.endswith("of fleet-second (shown)\n")
    assert send(machine, "reader", "x", "--team", "third").returncode == 1
    machine.fleet("down", "--all")
    done = send(machine, "reader", "x")
    assert (done.returncode, "no team is live" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (("reader", ""), None, "there is nothing to send"),
        (("reader", " \n "), None, "there is nothing to send"),
        (("reader",), None, "give a TEXT or --file"),
        (("reader", "x", "--file", "y"), None, "give a TEXT or --file"),
        (("reader", "--file", "no-such-file"), None, "cannot read no-such-file"),
        (("reader", "a\x1b[201~b"), None, "control character (U+001B)"),
        (("reader", "a\rb"), None, "control character (U+000D)"),
        (("reader", "-"), "a\x03b", "control character (U+0003)"),
        (("reader", "-"), "x" * (1024 * 1024 + 1), "over 1024 KiB"),
        (("reader", "x", "--timeout", "soon"), None, "is not a span"),
    ],
)
def test_what_cannot_be_sent(
    tmp_path: Path, clean_environ: dict[str, str], words: tuple[str, ...], text: str | None, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fleet", "send", *words],
        env=clean_environ,
        cwd=tmp_path,
        input=text or "",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_text_that_is_no_text(tmp_path: Path, clean_environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fleet", "send", "reader", b"\xff\xfe"],
        env=clean_environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "is not UTF-8 text" in done.stderr) == (2, True)


def test_a_sender_that_is_killed_blocks_nobody(machine: Machine) -> None:
    seated(machine, planner="deaf", critic="composer")
    process = subprocess.Popen(machine.words("send", "planner", "x"), cwd=machine.work, env=machine.env)
    (folder,) = machine.live()
    wait_for(lambda: list(folder.glob("lock-*")), "the lock")
    process.kill()
    process.wait(20)
    started = time.monotonic()
    assert send(machine, "planner", "y", "--timeout", "1s").returncode == 1
    assert time.monotonic() - started < 60
    shutil.rmtree(folder)
    assert send(machine, "critic", "y").returncode == 0
