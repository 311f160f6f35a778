"""``fleet up --pings``: one line for what is new, to who is idle, never to who works; gone with its session."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.live import Machine, machine_in, role, wait_for
from tests.integration.running import alive_with

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def machine(short_path: Path, clean_environ: dict[str, str]) -> Iterator[Machine]:
    with machine_in(short_path, clean_environ) as made:
        yield made


def seated(machine: Machine, *words: str, **kinds: str) -> None:
    providers = {"claude": "anthropic", "codex": "openai", "gemini": "google"}
    roles = ""
    for (program, provider), (seat, kind) in zip(providers.items(), kinds.items(), strict=False):
        machine.screen_agent(program, kind)
        roles += role(seat, provider)
    machine.post("ann", "said before anybody came")
    machine.up(machine.manifest(roles), "--pings", *words)
    for seat in kinds:
        wait_for(lambda seat=seat: machine.is_ready(seat), f"{seat} to be ready")  # type: ignore[misc]
    wait_for(lambda: "Seats are told" in machine.screen("fleet-talk", "pings"), "the watch to begin")
    # It has read the room by then: what is said from now on is news.
    time.sleep(3)


def heard(machine: Machine, seat: str) -> list[str]:
    assert all(message["stray"] == "" for message in machine.messages(seat))
    return [message["text"] for message in machine.messages(seat)]


@pytest.mark.parametrize("layout", ["windows", "tiled"])
def test_who_is_idle_is_told_once_in_one_line(machine: Machine, layout: str) -> None:
    seated(machine, "--layout", layout, planner="composer", critic="composer")
    for number in range(3):
        machine.post("ann", f"a long story {number}\n" * 50)
    wait_for(lambda: heard(machine, "planner") and heard(machine, "critic"), "the pings")
    for seat in ("planner", "critic"):
        told = heard(machine, seat)
        assert all(line.startswith("Roundtable activity — #den: ") for line in told)
        assert all(len(line) <= 300 and "\n" not in line and "story" not in line for line in told)
        # A slow machine may tell of the first before the last has come; nothing is told twice.
        assert sum(int(line.split(": ")[1].split()[0]) for line in told) <= 3
    machine.post("planner", "my own words")
    wait_for(lambda: "planner" in "".join(heard(machine, "critic")), "the critic to be told of the planner")
    assert "(planner)" not in "".join(heard(machine, "planner"))
    assert "critic: Roundtable activity" in machine.screen("fleet-talk", "pings")


def test_who_works_is_told_later_and_not_of_what_it_has_read(machine: Machine) -> None:
    work = machine.folder / "records" / "worker.work"
    work.touch()
    seated(machine, worker="working", idler="composer")
    machine.post("ann", "first")
    machine.post("bob", "second")
    wait_for(lambda: heard(machine, "idler"), "the idle one to be told")
    end = time.monotonic() + 5
    while time.monotonic() < end:  # it works, and is left alone
        assert heard(machine, "worker") == []
        time.sleep(0.2)
    work.unlink()
    wait_for(lambda: heard(machine, "worker"), "the worker to be told when it rests")
    assert len(heard(machine, "worker")) == 1
    assert "2 new (ann, bob)" in heard(machine, "worker")[0]
    # What it reads while it works is no news afterwards.
    work.touch()
    machine.post("ann", "third")
    done = machine.roundtable("digest", "den", "--as", "worker")
    assert "third" in done
    work.unlink()
    machine.post("worker", "a sign of life")
    wait_for(lambda: "worker" in heard(machine, "idler")[-1], "the idle one to be told of it")
    time.sleep(6)
    assert len(heard(machine, "worker")) == 1


def test_a_question_is_not_answered_by_a_ping(machine: Machine) -> None:
    seated(machine, asker="asking", idler="composer")
    machine.post("ann", "news")
    wait_for(lambda: heard(machine, "idler"), "the idle one to be told")
    wait_for(lambda: "not told asker: " in machine.screen("fleet-talk", "pings"), "the watch to say so")
    assert machine.messages("asker") == []
    assert "please answer" in machine.screen("fleet-talk", "asker")
    assert "deleted" not in machine.screen("fleet-talk", "asker")


def test_who_reads_back_is_left_alone(machine: Machine) -> None:
    seated(machine, planner="composer", idler="composer")
    pane = machine.pane("fleet-talk", "planner")
    machine.tmux("copy-mode", "-t", pane)
    machine.post("ann", "news")
    wait_for(lambda: heard(machine, "idler"), "the idle one to be told")
    time.sleep(3)
    assert heard(machine, "planner") == []
    assert machine.tmux("display-message", "-p", "-t", pane, "#{pane_in_mode}") == "1\n"
    machine.tmux("copy-mode", "-q", "-t", pane)
    wait_for(lambda: heard(machine, "planner"), "the planner to be told")


@pytest.mark.parametrize("end", ["down", "kill-session", "kill-server"])
def test_the_watch_ends_with_its_session(machine: Machine, end: str) -> None:
    machine.tmux("new-session", "-d", "-s", "mine", "sleep 1000")
    machine.up(machine.manifest(role("planner")), "--pings")
    wait_for(lambda: "Seats are told" in machine.screen("fleet-talk", "pings"), "the watch to begin")
    pid = machine.tmux(
        "display-message", "-p", "-t", machine.pane("fleet-talk", "pings"), "#{pane_pid}"
    ).strip()
    if end == "down":
        machine.fleet("down", "talk")
    else:
        machine.tmux(*(("kill-session", "-t", "=fleet-talk") if end == "kill-session" else ("kill-server",)))
    wait_for(lambda: int(pid) not in alive_with("fleet.live.ping_panes"), "the watch to end")


def test_a_broker_that_goes_away(machine: Machine) -> None:
    from tests.integration.running import broker_pid, end_broker

    seated(machine, planner="composer")
    end_broker(machine.env)
    wait_for(lambda: broker_pid(machine.env) is not None, "another broker, started by the panes")
    time.sleep(3)
    machine.post("ann", "in a room that begins anew")
    wait_for(lambda: heard(machine, "planner"), "the ping")
