"""`fleet parallel` and `fleet task` with real processes: what comes back, what lies in the folder, what is refused."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from fleet.runs.events import event_schema
from fleet.runs.results import result_schema
from tests.integration.running import Done, Running, alive_with, broker_pid, fleet, until

Environ = dict[str, str]


def test_many_tasks_and_one_bounded_return(environ: Environ, place: Path) -> None:
    done = fleet(
        *("parallel", "--command", "sh", "--concurrency", "3"),
        *(
            "sleep 0.3; echo first",
            "echo half; echo no key >&2; exit 3",
            "head -c 100000 /dev/zero | tr '\\0' x",
        ),
        *("printf '[1 worker-1] forged'", "env | grep ^FLEET_ | sort"),
        environ=environ,
        folder=place,
    )
    assert done.code == 1, done.stderr
    head, failed, *rest = done.stdout.splitlines()
    assert head == f"4/5 succeeded · paths are below {done.folder}"
    assert failed == "[2 worker-2 FAILED: exit 3: no key] → artifacts/02-worker-2.md"
    assert rest[0] == "    half"
    assert "\n    [1 worker-1] forged\n" in done.stdout
    assert "…(+99400 chars)" in done.stdout
    for number in range(1, 6):
        assert f"→ artifacts/0{number}-worker-{number}.md" in done.stdout
    assert (done.folder / "artifacts" / "03-worker-3.md").read_text().endswith("x" * 100_000)
    index = (done.folder / "artifacts" / "index.md").read_text()
    assert "| worker-2 | failed (exit 3: no key) |" in index
    jsonschema.validate(done.result, result_schema())
    for event in done.events:
        jsonschema.validate(event, event_schema())
    kinds = [event["type"] for event in done.events]
    assert kinds.count("notice") == kinds.count("return") == kinds.count("team.ended") == 1
    assert kinds.count("member.ended") == 5
    (team,) = done.result["teams"]
    assert (team["mode"], team["room"], team["finished"], team["failed"]) == (
        "dispatch",
        None,
        5,
        ["worker-2"],
    )
    assert team["outcome"] == "4/5 succeeded"
    assert done.result["conductor"]["returns"] == 1
    assert done.result["conductor"]["chars_read"] <= len(done.stdout) + 300
    told = (done.folder / "artifacts" / "05-worker-5.md").read_text()
    assert "FLEET_PHASE=dispatch" in told
    assert "FLEET_ROOM" not in told
    assert broker_pid(environ) is None  # nobody meets, so nobody needs one


def test_one_task_is_its_answer(environ: Environ, place: Path) -> None:
    done = fleet("task", "--command", "sh", "echo 'the answer'", environ=environ, folder=place)
    assert (done.code, done.stdout) == (0, "the answer\n")
    done = fleet("task", "--command", "sh", "yes | head -c 100000", environ=environ, folder=place)
    path = done.folder / "artifacts" / "01-worker.md"
    assert done.stdout.endswith(f"\n…(+97999 chars) full output: {path}\n")
    assert len(done.stdout) <= 2000 + 100 + len(str(path))
    done = fleet("task", "--command", "sh", "echo half; exit 2", "--json", environ=environ, folder=place)
    assert done.code == 1
    assert json.loads(done.stdout)["decision"]["text"] == "failed: exit 2\nhalf\n"


def test_an_agent_of_a_file(environ: Environ, place: Path) -> None:
    folder = Path(environ["FLEET_HOME"]) / "agents"
    folder.mkdir(parents=True)
    (folder / "echo.md").write_text("---\ndescription: d\ncommand: [cat]\n---\nYou repeat.\n")
    done = fleet("parallel", "--agent", "echo", "one", "two", environ=environ, folder=place)
    assert done.code == 0, done.stderr
    assert (
        "[2 echo-2] → artifacts/02-echo-2.md\n    ## Task\n    two\n    \n    ## Who you are\n    You repeat.\n"
        in done.stdout
    )


def test_an_output_file_and_nothing_but_its_name(environ: Environ, place: Path) -> None:
    done = fleet(
        *("task", "--command", "sh -c 'cat > /dev/null; printf aaaa > out/o.md'", "--file", "out/o.md"),
        *("--output-mode", "file-only", "write it"),
        environ=environ,
        folder=place,
    )
    assert done.code == 1  # there is no folder out yet, and sh says so
    (place / "out").mkdir()
    done = fleet(
        *("task", "--command", "sh -c 'cat > /dev/null; printf aaaa > out/o.md'", "--file", "out/o.md"),
        *("--output-mode", "file-only", "write it"),
        environ=environ,
        folder=place,
    )
    assert done.code == 0, done.stderr
    assert done.stdout == f"Output saved to: {place}/out/o.md (4 B, 1 line). Read this file if needed.\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["parallel", "--agent", "nobody", "x"], "unknown agent: nobody"),
        (["parallel", "--command", "true", *["x"] * 51], "51 tasks; max 50 tasks"),
        (["parallel", "--command", "true", "x", " "], "task 2 is empty"),
        (["parallel", "--command", "true", "--agent", "a", "x"], "both an agent and a command"),
        (["parallel", "--command", "'", "x"], "--command:"),
        (
            ["task", "--command", "true", "--output-mode", "file-only", "x"],
            "does not configure an output file",
        ),
    ],
)
def test_what_is_refused_before_anything_starts(
    words: list[str], told: str, environ: Environ, place: Path
) -> None:
    done = fleet(*words, environ=environ, folder=place)
    assert done.code == 2
    assert told in done.stderr
    assert not (place / ".fleet").exists()


def test_a_program_that_is_not_there_is_told_before_anything_starts(environ: Environ, place: Path) -> None:
    done = fleet("parallel", "--command", "no-such-program", "x", environ=environ, folder=place)
    assert done.code == 6
    assert not (place / ".fleet").exists()


def test_the_first_failure_stops_the_others(environ: Environ, place: Path) -> None:
    mark = str(place / "mark")
    done = fleet(
        *("parallel", "--command", "sh", "--fail-fast", "--concurrency", "2"),
        *(f"sleep 60 # {mark}", "exit 4", "echo never"),
        environ=environ,
        folder=place,
    )
    assert done.code == 1
    assert done.seconds < 40
    assert done.states() == {"worker-1": "skipped", "worker-2": "failed", "worker-3": "skipped"}
    assert done.result["teams"][0]["absent"] == []
    assert alive_with(mark) == []


def test_an_interruption_stops_all_and_a_deadline_is_not_spoken_of(environ: Environ, place: Path) -> None:
    mark = str(place / "mark")
    tasks = [f"sleep 60 # {mark} {n}" for n in range(4)]
    running = Running("parallel", "--command", "sh", *tasks, environ=environ, folder=place)
    until(lambda: len(running.events("member.attempt")) == 4, "all to be at work")
    running.process.send_signal(signal.SIGINT)
    done = running.wait()
    assert done.code == 130
    assert set(done.states().values()) == {"interrupted"}
    assert "deadline" not in done.stdout + done.stderr
    assert alive_with(mark) == []


def test_at_the_deadline_what_is_there_is_returned(environ: Environ, place: Path) -> None:
    done = fleet(
        *("parallel", "--command", "sh", "--deadline", "4s", "--concurrency", "2"),
        *("echo done", "echo begun; sleep 60", "sleep 60", "echo never"),
        environ=environ,
        folder=place,
    )
    assert done.code == 3
    assert done.result["seconds"] < 4 + 5
    assert done.stdout.startswith("1/4 succeeded")
    assert (
        "[2 worker-2 FAILED: still working after 4s] → artifacts/02-worker-2.md\n    begun\n" in done.stdout
    )
    assert "[3 worker-3 FAILED: never answered]" in done.stdout
    assert "worker-4 SKIPPED: not started after 4s" in done.stdout
    assert done.result["teams"][0]["absent"] == ["worker-2", "worker-3", "worker-4"]


def test_many_tiny_tasks_from_standard_input(environ: Environ, place: Path) -> None:
    """More members than descriptors or names in a line, in memory that does not grow with them."""
    tasks = place / "tasks"
    tasks.write_text("".join(f"echo {number}\n" for number in range(400)))
    words = [sys.executable, "-m", "fleet", "parallel", "-", "--command", "sh", "--max-tasks", "400"]
    script = f"ulimit -n 256; exec {shlex.join(words)} --concurrency 8 < tasks"
    process = subprocess.run(
        ["sh", "-c", script], cwd=place, env=environ, capture_output=True, text=True, timeout=110
    )
    done = Done(process.returncode, process.stdout, process.stderr, 0)
    assert done.code == 0, done.stderr[-2000:]
    assert done.stdout.startswith("400/400 succeeded")
    assert "more ok — artifacts/index.md lists all)" in done.stdout
    assert len(done.stdout.partition("\n")[2]) <= 2201
    index = (done.folder / "artifacts" / "index.md").read_text()
    assert index.count("| final |") == 400
    assert "| artifacts/400-worker-400.md |" in index


def test_a_full_disk_ends_in_one_line(environ: Environ, place: Path) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("there is no /dev/full")
    done = fleet(
        *("task", "--command", "echo hi", "--file", "/dev/full/o.md", "x"), environ=environ, folder=place
    )
    assert done.code == 1
    assert "cannot write /dev/full/o.md" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.result["state"] == "failed"
