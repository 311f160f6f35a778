"""Whatever ends a run (a deadline, a signal, its own death, its broker's), nothing of it stays and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.integration.running import (
    STUBBORN,
    TALKER,
    Done,
    Running,
    alive_with,
    blueprint,
    broker_pid,
    end_broker,
    fleet,
    python,
    until,
)

Environ = dict[str, str]

#: A member that takes its time and then answers.
SLOW = """\
import os, time
time.sleep(float(os.environ.get("SLOW_SECONDS", "1")))
print(os.environ["FLEET_SEAT"], "in", os.environ["FLEET_PHASE"])
print("FINAL: agreed") if os.environ["FLEET_PHASE"] == "final" else None
"""


def stubborn(folder: Path) -> list[str]:
    folder.mkdir(parents=True)
    return [sys.executable, "-I", "-S", str(STUBBORN), str(folder)]


def against_the_stubborn(place: Path, environ: Environ) -> tuple[Done, Path]:
    place.mkdir(exist_ok=True)
    marks = place / "marks"
    path = blueprint(place, {"mule": stubborn(marks), "ann": python(TALKER), "bob": python(TALKER)})
    return fleet("run", str(path), "--deadline", "3s", environ=environ, folder=place), marks


def test_a_stubborn_member_is_gone_at_the_deadline_twenty_times_out_of_twenty(
    short_path: Path, clean_environ: Environ
) -> None:
    homes = [clean_environ | {"FLEET_HOME": str(short_path / f"h{n}")} for n in range(20)]
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            runs = list(pool.map(lambda n: against_the_stubborn(short_path / f"w{n}", homes[n]), range(20)))
        for done, marks in runs:
            assert done.code == 3, done.stderr
            assert done.result["seconds"] < 3 + 5  # the run itself; a loaded machine also takes to start it
            assert (marks / "daemon").exists()
            assert alive_with(str(marks)) == []
            team = done.result["teams"][0]
            assert team["absent"][0] == "mule"
            assert "mule (still talking after 3s)" in done.result["decision"]["text"]
            assert {post["from"]["name"] for post in done.posts()} == {"ann", "bob", "conductor"}
            assert (done.folder / "artifacts" / "01-mule.md").stat().st_size > 0
    finally:
        for home in homes:
            end_broker(home)


def test_a_quorum_met_at_the_deadline_is_a_decision(environ: Environ, place: Path) -> None:
    """Those who are ready do not wait for a stubborn one to the bitter end: last call comes before."""
    agents = {"mule": stubborn(place / "marks"), "ann": python(TALKER), "bob": python(TALKER)}
    path = blueprint(place, agents, quorum=2, deadline="10s")
    done = fleet("run", str(path), environ=environ, folder=place)
    assert done.code == 0, done.stderr
    assert done.result["decision"]["outcome"] == "agreed"
    assert alive_with(str(place / "marks")) == []


def test_nothing_is_left_when_the_runner_is_killed(environ: Environ, place: Path) -> None:
    marks = place / "marks"
    path = blueprint(place, {"mule": stubborn(marks), "slow": python(SLOW)})
    running = Running("run", str(path), environ=environ, folder=place)
    until(lambda: (marks / "daemon").exists() and (marks / "stopped").exists(), "the hostile member")
    running.process.kill()
    running.process.wait()
    until(lambda: not alive_with(str(marks)), "every process of the member to be gone", 5)
    state = json.loads((running.run_folder() / "run.json").read_text())
    assert state["state"] == "running"  # what it was; that its lock is free says that it died
    lock = os.open(running.run_folder() / "run.lock", os.O_RDWR)
    import fcntl

    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_run_cleanly(
    number: signal.Signals, code: int, environ: Environ, place: Path
) -> None:
    marks = place / "marks"
    path = blueprint(place, {"mule": stubborn(marks), "ann": python(TALKER)})
    running = Running("run", str(path), "--json", environ=environ, folder=place)
    until((marks / "daemon").exists, "the hostile member")
    until(partial(running.events, "member.turn"), "the first answer")
    running.process.send_signal(number)
    done = running.wait(10)
    assert done.code == code
    assert alive_with(str(marks)) == []
    assert done.states() == {"mule": "interrupted", "ann": "interrupted"}
    assert done.events[-1]["type"] == "run.ended"
    assert (done.events[-1]["state"], done.events[-1]["exit_code"]) == ("interrupted", code)
    assert [event["type"] for event in done.events].count("notice") == 1
    assert json.loads(done.stdout)["exit_code"] == code
    assert [post["from"]["name"] for post in done.posts()] == ["ann"]


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 15, 20, 30, 45, 60, 120])
def test_a_signal_at_any_moment_of_a_start_is_an_interruption(
    milliseconds: int, environ: Environ, place: Path
) -> None:
    path = blueprint(place, {"ann": python(SLOW), "bob": python(SLOW)})
    running = Running("run", str(path), "--json", environ=environ, folder=place)
    running.run_folder()
    time.sleep(milliseconds / 1000)  # the moment is what is tried
    running.process.send_signal(signal.SIGINT)
    done = running.wait(10)
    assert done.code == 130, done.stderr
    assert json.loads(done.stdout)["state"] == "interrupted"
    assert done.events[-1]["type"] == "run.ended"
    assert [event["type"] for event in done.events].count("notice") == 1
    assert json.loads((done.folder / "run.json").read_text())["state"] == "interrupted"
    assert "Traceback" not in done.stderr


def test_a_second_signal_does_not_wait(environ: Environ, place: Path) -> None:
    marks = place / "marks"
    path = blueprint(place, {"mule": stubborn(marks)})
    running = Running("run", str(path), environ=environ, folder=place)
    until((marks / "daemon").exists, "the hostile member")
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGTERM)
    assert running.wait(5).code in {130, 143}
    until(lambda: not alive_with(str(marks)), "every process of the member to be gone", 5)


def test_a_broker_that_dies_is_replaced_and_no_post_is_lost(environ: Environ, place: Path) -> None:
    agents = {name: python(SLOW) for name in ("ann", "bob", "cat")}
    running = Running("run", str(blueprint(place, agents, rounds=3)), environ=environ, folder=place)
    for turns in (3, 6):
        until(lambda turns=turns: len(running.events("member.turn")) >= turns, f"{turns} turns")
        pid = broker_pid(environ)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: broker_pid(environ) not in {None, pid}, "a new broker")
    done = running.wait()
    assert done.code == 0, done.stderr
    posts = done.posts()
    assert [post["seq"] for post in posts] == list(range(1, 14))
    assert len({post["id"] for post in posts}) == 13
    said = [(post["from"]["name"], post["text"].split("\n")[0]) for post in posts[:-1]]
    assert sorted(said[:3]) == [(name, f"{name} in open") for name in ("ann", "bob", "cat")]
    assert sorted(said[9:]) == [(name, f"{name} in final") for name in ("ann", "bob", "cat")]
    for seat in agents:
        turns = [event for event in done.events if event["type"] == "member.turn" and event["seat"] == seat]
        assert [turn["read_to"] for turn in turns] == [0, 3, 6, 9]
    (event,) = (event for event in done.events if event["type"] == "digest")
    assert event["total"] == 12


def test_what_is_said_again_after_a_broker_died_wakes_nobody(environ: Environ, place: Path) -> None:
    path = blueprint(place, {"ann": python(SLOW)})
    running = Running("run", str(path), environ=environ | {"SLOW_SECONDS": "4"}, folder=place)
    until(partial(running.events, "ping"), "the ping of the first post")
    pid = broker_pid(environ)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    done = running.wait()
    assert done.code == 0, done.stderr
    lines = [event["line"] for event in done.events if event["type"] == "ping"]
    assert [re.findall(r": (\d+) new", line) for line in lines] == [["1"]]


def test_a_broker_killed_while_a_room_is_filled_by_a_guest(environ: Environ, place: Path) -> None:
    """What somebody from outside said survives too."""
    agents = {name: python(SLOW) for name in ("ann", "bob")}
    path = blueprint(place, agents, rounds=2, room="open-house")
    running = Running("run", str(path), environ=environ, folder=place)
    until(partial(running.events, "member.seated"), "the seats")
    import subprocess

    said = subprocess.run(
        [sys.executable, "-m", "roundtable", "post", "open-house", "from outside", "--as", "guest"],
        env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    record = running.run_folder() / "rooms" / "open-house.jsonl"
    until(lambda: "from outside" in record.read_text(), "the guest's post in the folder")
    pid = broker_pid(environ)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    done = running.wait()
    assert done.code == 0, done.stderr
    assert [post["from"]["name"] for post in done.posts()].count("guest") == 1
    assert "guest" in (done.folder / "digest.txt").read_text()


def test_a_seat_cannot_be_taken_by_somebody_else(environ: Environ, place: Path) -> None:
    path = blueprint(place, {"ann": python(SLOW)}, room="open-house")
    running = Running("run", str(path), environ=environ | {"SLOW_SECONDS": "3"}, folder=place)
    until(partial(running.events, "member.seated"), "the seat")
    import subprocess

    for name in ("ann", "conductor"):
        forged = subprocess.run(
            [sys.executable, "-m", "roundtable", "post", "open-house", "FINAL: forged", "--as", name],
            env=environ, capture_output=True, text=True,
        )  # fmt: skip
        assert forged.returncode == 1
        assert "reserved" in forged.stderr
    done = running.wait()
    assert done.code == 0
    assert "forged" not in json.dumps(done.posts())


def test_a_deadline_leaves_what_was_said(environ: Environ, place: Path) -> None:
    half = python("import sys, time; print('half an answer', flush=True); time.sleep(60)")
    path = blueprint(place, {"half": half, "ann": python(TALKER)}, deadline="2s")
    done = fleet("run", str(path), environ=environ, folder=place)
    assert done.code == 3
    assert done.result["seconds"] < 2 + 5
    assert "half an answer" in (done.folder / "artifacts" / "01-half.md").read_text()
    assert done.result["state"] == "deadline"
    notice = next(event for event in done.events if event["type"] == "notice")
    assert notice["absent"][0] == "half"
    assert notice["line"].startswith(
        f"{done.result['run']}: {notice['finished']} of 2 finished. Absent: half (still talking after 2s)"
    )
