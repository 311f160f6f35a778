"""The border: whatever becomes of the standard streams, a command ends with a line and a number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundtable.errors import RequestTimedOut
from roundtable.overview import overview

#: A command with a line on each stream, and one error of each kind.
PROGRAM = """\
import sys, click
from roundtable.commandline import invoke
from roundtable.errors import UsageProblem

@click.command()
@click.option("--json", "is_json", is_flag=True)
@click.option("--size", default=1)
@click.option("--fail", default="")
@click.option("--open", "is_opening", is_flag=True)
def command(is_json, size, fail, is_opening):
    if is_opening:
        return open(__import__("os").devnull).fileno()
    click.echo("working", err=True)
    if fail == "usage":
        raise UsageProblem("\\n::error::caf\\u00e9")
    if fail:
        raise RuntimeError(fail)
    sys.stdout.write("caf\\u00e9" * size)
    sys.stderr.write("done\\n")
    return 5

sys.exit(invoke(command, program="prog"))
"""

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


def run(
    *words: str, redirect: str = "", environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run ``PROGRAM`` in a shell that redirects it."""
    dropped = ("LC_", "LANG", "PYTHONIO", "PYTHONUTF8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-c", PROGRAM, *words],
        env={**kept, "PYTHONIOENCODING": "utf-8", **(environ or {})},
        capture_output=True,
    )


def test_a_code_of_its_own() -> None:
    done = run()
    assert (done.returncode, done.stdout.decode(), done.stderr) == (5, "café", b"working\ndone\n")


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("words", [(), ("--json",)])
@FULL
def test_a_full_disk_behind_standard_output(words: tuple[str, ...], size: int) -> None:
    done = run(*words, "--size", str(size), redirect=">/dev/full")
    assert done.returncode == 1
    told = done.stderr.decode().splitlines()
    assert told[-1] == "prog: cannot write to standard output: No space left on device"
    assert set(told[:-1]) <= {"working", "done"}


def test_a_reader_that_has_gone_ends_a_command_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-c", PROGRAM, "--size", "100000"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"working\n")


@pytest.mark.parametrize(
    ("redirect", "out", "err"),
    [
        ("2>&-", "café", b""),
        (">&-", "", b"working\ndone\n"),
        (">&- 2>&-", "", b""),
        ("<&- >&- 2>&-", "", b""),
        pytest.param("2>/dev/full", "café", b"", marks=FULL),
    ],
)
def test_streams_that_nobody_has_opened_or_reads(redirect: str, out: str, err: bytes) -> None:
    done = run(redirect=redirect)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (5, out, err)


@pytest.mark.parametrize("redirect", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_comes_in_the_place_of_a_closed_stream(redirect: str) -> None:
    assert run("--open", redirect=redirect).returncode > 2


@pytest.mark.parametrize(
    "environ",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_any_encoding(environ: dict[str, str]) -> None:
    done = run(environ=environ)
    assert (done.returncode, done.stdout) in {(5, b"caf\\xe9"), (5, b"caf\xe9")}
    assert run("--json", environ=environ).stdout.decode() == "café"
    told = run("--json", "--fail", "usage", environ=environ)
    assert json.loads(told.stdout.decode())["error"]["message"] == "\n::error::café"


def test_an_error_cannot_command_a_ci_runner() -> None:
    done = run("--fail", "usage")
    assert done.returncode == 2
    assert done.stderr.decode() == "working\nprog: \n: :error::café\n"


@FULL
def test_an_error_that_standard_output_does_not_take_is_still_that_error() -> None:
    done = run("--json", "--fail", "usage", redirect=">/dev/full")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"No space" not in done.stderr


def test_a_fault_of_ours_is_one_line_and_debug_shows_it() -> None:
    done = run("--fail", "boom")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[1] == "prog: internal error: RuntimeError: boom"
    assert b"Traceback" in run("--fail", "boom", "--debug").stderr


@pytest.mark.parametrize(("redirect", "code"), [(">/dev/full", 1), (">&-", 0), (">&- 2>&-", 0)])
@FULL
def test_the_page_of_a_program(redirect: str, code: int) -> None:
    program = "import sys; from roundtable.overview import show_page; sys.exit(show_page('a page\\n'))"
    words = ["/bin/sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == code
    assert done.stderr == ("cannot write to standard output: No space left on device\n" if code else "")


def test_the_page_names_debug() -> None:
    assert "  --debug " in overview("prog", "Does it.", {}, "prog x")


def test_a_time_is_told_as_people_say_it_and_with_what_to_do() -> None:
    problem = RequestTimedOut("connect", 9.99903)
    assert str(problem) == "roundtable connect request timed out after 10 s"
    assert problem.hint is not None
    assert "broker.pid" in problem.hint
    assert str(RequestTimedOut("post", 0.52)).endswith("after 0.5 s")
