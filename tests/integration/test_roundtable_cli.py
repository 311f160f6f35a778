"""The command `roundtable` as a shell sees it: output, exit codes, and who acts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundtable.home import Home
from tests.integration.raw import Raw, broker_process, until


class Shell:
    """Runs the command in one environment."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def run(self, *words: str, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", "from roundtable.cli import main; main()", *words],
            input=given,
            capture_output=True,
            env={**self.environment, **environment},
            timeout=30,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def out(self, *words: str, **more: str) -> str:
        done = self.run(*words, **more)
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture
def shell(home: Path, clean_environ: dict[str, str]) -> Iterator[Shell]:
    with broker_process(home):
        yield Shell(clean_environ)


def test_tail_waits_for_the_room_and_goes_on_over_a_new_broker(
    home: Path, clean_environ: dict[str, str]
) -> None:
    command = [sys.executable, "-c", "from roundtable.cli import main; main()", "tail", "a", "--wait"]
    shell = Shell(clean_environ)
    with broker_process(home) as first:
        refused = shell.run("tail", "a")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert 'Room "a" does not exist' in refused.stderr
        with subprocess.Popen(command, env=clean_environ, stdout=subprocess.PIPE, text=True) as tail:
            assert tail.stdout is not None
            shell.out("post", "a", "one", "--as", "ann", "--create")
            assert tail.stdout.readline().endswith("ann#1: one\n")
            first.kill()
            first.wait()
            with broker_process(home):
                shell.out("post", "a", "two", "--as", "ann", "--create")
                # Another room of the name, from its beginning.
                assert tail.stdout.readline().endswith("ann#1: two\n")
                tail.send_signal(signal.SIGINT)
                assert tail.wait(10) == 130


def test_a_room_from_the_shell(shell: Shell, home: Path) -> None:
    refused = shell.run("post", "a", "hi", "--as", "ann")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith('roundtable: Room "a" does not exist')
    assert "--create" in refused.stderr
    assert shell.out("post", "a", "hi", "--as", "ann", "--create", "--topic", "T") == (
        "Posted to #a as ann#1. Nobody else is in #a now.\n"
    )
    assert shell.out("post", "#a", "yes", "--reply-to", "ann#1", FLEET_SEAT="bob").startswith(
        "Posted to #a as bob#2. 1 older unread is now"
    )
    assert shell.out("rooms", "--as", "new") == "#a — T · 2 unread · 2 msgs · members: none\n"
    peeked = shell.out("peek", "a", "--as", "new")
    assert peeked.endswith("bob#2 (reply to ann#1): yes\n")
    assert shell.out("digest", "a", "--as", "new").split("\n", 1)[1] == peeked.split("\n", 1)[1]
    assert shell.out("digest", "a", "--as", "new").endswith("\nNo new messages.\n")
    fetched = shell.out("fetch", "a", "--as", "new", "--after-seq", "0", "--limit", "1")
    assert fetched.split("\n")[1:3] == ["[ann#1] hi", "(1 more — fetch with afterSeq 1 to go on)"]
    assert shell.out("where") == f"{home}/roundtable/broker.sock\n"


def test_json_is_for_programs(shell: Shell) -> None:
    posted = json.loads(shell.out("post", "a", "é\x1b", "--as", "ann", "--create", "--json"))
    assert posted["message"]["text"] == "é\x1b"
    assert posted["unreadBefore"] == 0
    (room,) = json.loads(shell.out("rooms", "--json"))["rooms"]
    assert (room["name"], room["messageCount"], room["unread"], room["members"]) == ("a", 1, 1, [])
    page = json.loads(shell.out("fetch", "a", "--after-seq", "0", "--json"))
    assert page["messages"] == [posted["message"]]
    digest = json.loads(shell.out("digest", "a", "--json", "--as", "q"))
    assert (digest["total"], digest["consumedSeq"], digest["chars"]) == (1, 1, len(digest["text"]))
    refused = shell.run("digest", "nope", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["code"] == "no-such-room"


def test_standard_input_is_posted_whole(shell: Shell) -> None:
    done = shell.run("post", "a", "-", "--create", given="one\ntwo é\n".encode())
    assert done.returncode == 0
    assert (
        json.loads(shell.out("fetch", "a", "--after-seq", "0", "--json"))["messages"][0]["text"]
        == "one\ntwo é"
    )
    assert shell.run("post", "a", "-", given=b"\xff").returncode == 2
    assert shell.run("post", "a", "-", given=b"").returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        ("post", "a b", "x"),
        ("post", "a"),
        ("post", "a", "x", "--as", "a b"),
        ("post", "a", "x", "--as", ""),
        ("post", "a", ""),
        ("fetch", "a", "--limit", "0"),
        ("fetch", "a", "--offset", "3"),
        ("digest", "a", "--budget", "many"),
        ("dance",),
        ("broker", "--grace", "-1"),
    ],
)
def test_what_cannot_be_asked_is_exit_2_and_one_line(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= 2
    assert "Traceback" not in done.stderr


def test_a_post_announces_nobody(shell: Shell, home: Path) -> None:
    with Raw(home / "roundtable" / "broker.sock", "ann") as ann:
        ann.ask("join", room="a")
        assert shell.out("post", "a", "hi", "--as", "bob") == "Posted to #a as bob#1.\n"
        until(lambda: len(ann.ask("rooms")["rooms"][0]["members"]) == 1)
        assert [event["seq"] for event in ann.activity] == [1]


def test_following_a_room_is_harmless_and_unseen(shell: Shell, home: Path) -> None:
    with Raw(home / "roundtable" / "broker.sock", "ann") as ann:
        ann.ask("join", room="a")
        ann.ask("post", room="a", text="old")
        ann.ask("post", room="a", text="new\n[09:05] boss#1: \x1b[2J")
        command = [sys.executable, "-c", "from roundtable.cli import main; main()", "tail", "a", "-n", "1"]
        with subprocess.Popen(command, env=shell.environment, stdout=subprocess.PIPE, text=True) as tail:
            assert tail.stdout is not None
            assert tail.stdout.readline().endswith("ann#2: new\n")
            assert tail.stdout.readline() == "    [09:05] boss#1: \ufffd[2J\n"
            ann.ask("post", room="a", text="live")
            assert tail.stdout.readline().endswith("ann#3: live\n")
            assert len(ann.ask("rooms")["rooms"][0]["members"]) == 1
            tail.send_signal(signal.SIGINT)
            assert tail.wait(10) == 130


def test_a_room_survives_between_two_commands(home: Path, clean_environ: dict[str, str]) -> None:
    shell = Shell(clean_environ)
    try:
        shell.out("post", "a", "hi", "--create")
        command = Path(f"/proc/{Home(home).pid.read_text().strip()}/cmdline")
        if command.exists():
            assert b"--grace\x00600\x00" in command.read_bytes()
        assert "1 msgs" in shell.out("rooms")
    finally:
        with contextlib.suppress(OSError):
            os.kill(int(Home(home).pid.read_text()), signal.SIGTERM)
        until(lambda: not Home(home).pid.exists())


def test_a_broker_in_the_foreground(home: Path, clean_environ: dict[str, str]) -> None:
    command = [sys.executable, "-c", "from roundtable.cli import main; main()", "broker", "--grace", "600"]
    with subprocess.Popen(command, env=clean_environ, stderr=subprocess.PIPE) as broker:
        until(Home(home).pid.exists)
        broker.send_signal(signal.SIGINT)
        assert broker.wait(10) == 0
        broker.communicate()


def test_a_store_that_is_none_is_told_by_the_command_that_was_typed(
    home: Path, clean_environ: dict[str, str]
) -> None:
    done = Shell(clean_environ).run("broker", "--store", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "roundtable: no store is called 'nonsense'\nhint: say memory, sqlite or sqlite:PATH\n"
    )
    assert not home.exists()


def test_help_and_where_load_nothing_heavy(clean_environ: dict[str, str], home: Path) -> None:
    code = (
        "import sys\nfrom roundtable.cli import group\nfrom roundtable.commandline import invoke\n"
        "invoke(group, sys.argv[1:], program='roundtable')\n"
        "print(sorted({'anyio', 'asyncio', 'msgspec'} & set(sys.modules)))"
    )
    for words in (["--help"], ["where"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], env=clean_environ, capture_output=True, text=True
        )
        assert done.stdout.endswith("[]\n"), done
    assert not home.exists()


def test_the_schema_is_printed(clean_environ: dict[str, str]) -> None:
    published = Path(__file__).parents[2] / "docs" / "reference" / "wire.schema.json"
    assert Shell(clean_environ).out("schema") == published.read_text()
