"""Where a run meets its caller: streams that are closed, full or of another encoding, early signals, odd arguments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.running import FLEET, TALKER, Done, blueprint, fleet, python, until

Environ = dict[str, str]

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")

#: A locale without characters beyond ASCII, and a Python that believes it.
BARE_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def team(place: Path) -> Path:
    return blueprint(place, {"ann": python(TALKER), "bob": python(TALKER)})


def ended(
    words: list[str], environ: Mapping[str, str], folder: Path, redirect: str = "", **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a shell that redirects it."""
    shell = ["/bin/sh", "-c", f'exec "$@" {redirect}', "sh", *FLEET, *words]
    return subprocess.run(shell, env=environ, cwd=folder, capture_output=True, timeout=60, **more)


def record(place: Path) -> dict[str, Any]:
    """The result of the only run there."""
    (path,) = (place / ".fleet" / "runs").glob("*/result.json")
    return dict(json.loads(path.read_text()))


@pytest.mark.parametrize("redirect", [pytest.param("2>/dev/full", marks=FULL), "2>&-", "<&- 2>&-"])
def test_a_run_goes_on_when_nobody_watches(redirect: str, team: Path, environ: Environ, place: Path) -> None:
    done = ended(["run", str(team)], environ, place, redirect)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == record(place)["decision"]["text"]


def test_a_run_goes_on_when_who_watched_has_gone(team: Path, environ: Environ, place: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*FLEET, "run", str(team)], env=environ, cwd=place, stdout=subprocess.PIPE, stderr=write
    )
    os.close(write)
    assert done.returncode == 0
    assert done.stdout.decode() == record(place)["decision"]["text"]


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_result_nobody_reads_keeps_the_code_of_the_run(
    words: list[str], environ: Environ, place: Path
) -> None:
    path = blueprint(place, {"dan": python("import time; time.sleep(60)")}, deadline="1s")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*FLEET, "run", str(path), *words], env=environ, cwd=place, stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert done.returncode == record(place)["exit_code"] == 3
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("fleet run: ")]
    assert len(told) == 1
    assert told[0].startswith("fleet run: nobody reads standard output; the result is in ")
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.parametrize("words", [[], ["--json"]])
@FULL
def test_a_result_that_does_not_fit_names_where_it_is(
    words: list[str], team: Path, environ: Environ, place: Path
) -> None:
    done = ended(["run", str(team), *words], environ, place, ">/dev/full")
    assert done.returncode == 1
    (told,) = (line for line in done.stderr.decode().splitlines() if line.startswith("fleet run: "))
    assert "No space left on device; the result is in " in told
    assert json.loads(Path(told.rpartition(" ")[2]).read_text())["exit_code"] == 0
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_a_closed_standard_output(team: Path, environ: Environ, place: Path) -> None:
    done = ended(["run", str(team)], environ, place, ">&-")
    assert done.returncode == 0
    assert b"conductor: decided: agreed" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "locale", [{"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"}, BARE_LOCALE]
)
def test_any_encoding(locale: Environ, environ: Environ, place: Path) -> None:
    code = "print('na\\u00efve \\u2014'.encode().decode()); print('FINAL: caf\\u00e9')"
    # -X utf8: what the member writes is its own affair; and an argument that is not ASCII.
    argv = [sys.executable, "-X", "utf8", "-I", "-S", "-c", code, "é—"]
    path = blueprint(place, {"ann": argv})
    unset = ("LC_", "LANG", "PYTHONIO", "PYTHONUTF8")
    environ = {name: value for name, value in environ.items() if not name.startswith(unset)} | locale
    done = ended(["run", str(path), "Fähig—?", "--output", "one"], environ, place)
    assert done.returncode == 0, done.stderr
    assert b"FINAL" in done.stdout
    done = ended(["run", str(path), "Fähig—?", "--output", "two", "--json"], environ, place)
    result = json.loads(done.stdout.decode("utf-8"))
    assert (result["exit_code"], result["task"]) == (0, "Fähig—?")
    assert result["decision"]["outcome"] == "café"
    assert done.stdout == (place / "two" / "result.json").read_bytes()
    done = ended(["run", str(path), "Fähig—?", "--dry-run", "--json"], environ, place)
    assert json.loads(done.stdout.decode("utf-8"))["task"] == "Fähig—?"


@pytest.mark.parametrize(
    ("word", "given", "told"),
    [
        ("-", b"latin \xe9\n", "not UTF-8"),
        ("-", b"nul \0\n", "NUL"),
        (b"latin \xe9", b"", "not UTF-8"),
        ("-", b"", "no task"),
    ],
)
def test_a_task_that_is_no_text(
    word: str | bytes, given: bytes, told: str, environ: Environ, place: Path
) -> None:
    path = blueprint(place, {"ann": python(TALKER)})
    for locale in ({}, {"PYTHONUTF8": "1"}, BARE_LOCALE):
        words = [os.fsencode(part) for part in (*FLEET, "run", str(path))] + [
            word if isinstance(word, bytes) else word.encode()
        ]
        done = subprocess.run(
            words, env=environ | locale, cwd=place, input=given, capture_output=True, timeout=60
        )
        assert done.returncode == 2
        assert told in done.stderr.decode()
        assert len(done.stderr.splitlines()) <= 2
        assert not (place / ".fleet").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--json-file", "no/such/out.json"], "there is no folder no/such"),
        (["--json-file", "."], "is a folder"),
        (["--json-file", ""], "--json-file needs"),
        (["--output", ""], "--output needs"),
    ],
)
def test_places_that_cannot_be_written_are_told_before(
    words: list[str], told: str, team: Path, environ: Environ, place: Path
) -> None:
    done = fleet("run", str(team), *words, environ=environ, folder=place)
    assert done.code == 2
    assert told in done.stderr
    assert done.stdout == ""
    assert not (place / ".fleet").exists()


@FULL
def test_a_result_file_that_does_not_fit_comes_after_standard_output(
    team: Path, environ: Environ, place: Path
) -> None:
    done = fleet("run", str(team), "--json", "--json-file", "/dev/full", environ=environ, folder=place)
    assert done.code == 1
    assert json.loads(done.stdout) == record(place)
    (told,) = (line for line in done.stderr.splitlines() if line.startswith("fleet run: "))
    assert told.startswith("fleet run: cannot write /dev/full: No space left on device; the result is in ")


def interrupted(number: signal.Signals, words: list[str], environ: Environ, place: Path) -> Done:
    """Send a signal while the command waits for its task; it reads as soon as it has taken what a pipe holds."""
    process = subprocess.Popen(
        [*FLEET, "run", *words, "-"],
        env=environ,
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - there are no threads
    )
    assert process.stdin
    os.write(process.stdin.fileno(), b"x" * 300_000)

    def is_over() -> bool:
        # Between two reads Python looks at no signal, so that one may be heeded only with the next.
        process.send_signal(number)
        return process.poll() is not None

    until(is_over, "the end of the command")
    code = process.returncode
    assert process.stdout
    assert process.stderr
    with process.stdin, process.stdout, process.stderr:
        return Done(code, process.stdout.read().decode(), process.stderr.read().decode(), 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_the_run_is_under_way(
    number: signal.Signals, code: int, team: Path, environ: Environ, place: Path
) -> None:
    done = interrupted(number, [str(team), "--json"], environ, place)
    assert (done.code, done.stderr) == (code, "")
    assert json.loads(done.stdout)["error"]["code"] == "interrupted"
    done = interrupted(number, [str(team)], environ, place)
    assert (done.code, done.stdout, done.stderr) == (code, "", "")
    assert not (place / ".fleet").exists()


@pytest.mark.parametrize(
    ("module", "number", "code"),
    [
        # Before these two SIGTERM still ends the process by itself, which is as quiet.
        ("roundtable.overview", signal.SIGINT, 130),
        ("signal", signal.SIGINT, 130),
        ("click", signal.SIGINT, 130),
        ("click", signal.SIGTERM, 143),
        ("fleet.plan", signal.SIGINT, 130),
        ("fleet.plan", signal.SIGTERM, 143),
    ],
)
def test_a_signal_in_the_middle_of_an_import(
    module: str, number: signal.Signals, code: int, team: Path, environ: Environ, place: Path
) -> None:
    program = (
        "import os, sys\n"
        "class Hook:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        f"            sys.meta_path.remove(self); os.kill(os.getpid(), {int(number)})\n"
        "from fleet.cli import main\n"
        f"sys.argv = ['fleet', 'run', {str(team)!r}, '--json']\n"
        f"sys.modules.pop({module!r}, None)\n"
        "sys.meta_path.insert(0, Hook())\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        cwd=place,
        capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stderr) == (code, b"")
    assert json.loads(done.stdout)["error"]["code"] == "interrupted"


def test_a_dry_run_shows_what_would_be_started(environ: Environ, place: Path) -> None:
    path = blueprint(place, {"ann": ["sh", "-c", "echo a b"], "bob": ["sh"]}, quorum=1, deadline="90s")
    data = json.loads(path.read_text())
    data["teams"]["team"]["members"][0] |= {"env": {"MY_TOKEN": "hidden", "PLAIN": "a b"}, "timeout": "45s"}
    path.write_text(json.dumps(data))
    done = fleet("run", str(path), "--dry-run", environ=environ, folder=place)
    assert done.code == 0
    lines = done.stdout.splitlines()
    for line in (
        "task: Decide.",
        "team team: deliberate",
        "  room: #fleet-trial-team-ID (ID: the id of the run)",
        "  rounds: 1",
        "  quorum: 1 of 2",
        "  deadline: 1m30s",
        "  digest: 2000 chars, 600 per message",
        "  seat ann: command (runtime of the agent)",
        "    argv: sh -c 'echo a b'",
        f"    cwd: {place}",
        "    turn timeout: 45s",
        "    env: MY_TOKEN='***'",
        "    env: PLAIN='a b'",
        "  seat bob: command (runtime of the agent)",
    ):
        assert line in lines
    assert "hidden" not in done.stdout
    assert not (place / ".fleet").exists()


def test_a_room_with_a_name_is_shown_by_it(environ: Environ, place: Path) -> None:
    path = blueprint(place, {"ann": ["sh"]}, room="hall")
    done = fleet("run", str(path), "--dry-run", environ=environ, folder=place)
    assert "  room: #hall" in done.stdout.splitlines()


def test_a_member_cannot_command_a_ci_runner(environ: Environ, place: Path) -> None:
    code = "print('::error::x'); print('##[group]y'); print('FINAL: ::stop ##[z')"
    path = blueprint(place, {"loud": python(code)})
    done = fleet("run", str(path), "--output", "ci", environ=environ | {"CI": "true"}, folder=place)
    assert done.code == 0, done.stderr
    for text in (done.stdout, done.stderr):
        assert "##[" not in text
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert ": :error" in done.stdout or "## [" in done.stdout
    result = fleet("run", str(path), "--json", environ=environ | {"CI": "true"}, folder=place)
    assert "##[" in json.loads(result.stdout)["decision"]["text"]
    assert "##[" in fleet("run", str(path), environ=environ, folder=place).stdout


def test_debug_is_named_by_help(environ: Environ, place: Path) -> None:
    for words in (["--help"], ["run", "--help"]):
        assert "--debug" in fleet(*words, environ=environ, folder=place).stdout
