"""Several teams in one run: their order, what goes from one to the next, and what ends the pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from fleet.runs.events import event_schema
from fleet.runs.results import result_schema
from tests.integration.running import TALKER, Done, alive_with, broker_pid, fleet, python

Environ = dict[str, str]

#: A member that says what it is asked to do, in full.
READER = "import sys; print(sys.stdin.read())"


def fleet_of(folder: Path, teams: dict[str, Any], agents: dict[str, list[str]], **rest: Any) -> str:
    path = folder / "fleet.yaml"
    path.write_text(
        json.dumps(
            {
                "name": "line",
                "description": "Teams for a test.",
                "task": "Build it.",
                "agents": {name: {"runtime": "command", "command": argv} for name, argv in agents.items()},
                "teams": teams,
                **rest,
            }
        )
    )
    return str(path)


def states(done: Done) -> dict[str, str]:
    return {
        f"{team['team']}/{member['seat']}": member["state"]
        for team in done.result["teams"]
        for member in team["members"]
    }


def test_teams_work_in_pipeline_order_and_know_what_was_decided(environ: Environ, place: Path) -> None:
    teams = {
        "build": {
            "mode": "dispatch",
            "concurrency": 2,
            "members": [{"agent": "worker", "count": 3, "brief": "Do it."}],
        },
        "design": {"mode": "deliberate", "rounds": 1, "members": [{"agent": "ann"}, {"agent": "bob"}]},
        "both": {
            "mode": "deliberate-then-dispatch",
            "rounds": 1,
            "members": [{"agent": "cat"}, {"agent": "dan"}],
        },
    }
    both = (
        "import os, sys; prompt = sys.stdin.read(); phase = os.environ['FLEET_PHASE']\n"
        "print(prompt if phase == 'dispatch' else 'FINAL: ' + os.environ['FLEET_ROOM'][:10])\n"
    )
    agents = {
        "ann": python(TALKER), "bob": python(TALKER), "worker": python(READER),
        "cat": python(both), "dan": python(both),
    }  # fmt: skip
    path = fleet_of(place, teams, agents, pipeline=["design", "build", "both"])
    done = fleet("run", path, "--json", environ=environ, folder=place)
    assert done.code == 0, done.stderr
    result = json.loads(done.stdout)
    jsonschema.validate(result, result_schema())
    for event in done.events:
        jsonschema.validate(event, event_schema())
    assert [(team["team"], team["state"], team["outcome"]) for team in result["teams"]] == [
        ("design", "done", "agreed"),
        ("build", "done", "3/3 succeeded"),
        ("both", "done", "fleet-line"),
    ]
    assert [team["room"] is None for team in result["teams"]] == [False, True, False]
    assert set(states(done).values()) == {"final"}
    kinds = [event["type"] for event in done.events]
    assert kinds.count("notice") == 1
    assert kinds.count("team.started") == kinds.count("team.ended") == kinds.count("decision") == 3
    assert (kinds.count("digest"), kinds.count("return")) == (2, 2)
    assert kinds.count("member.ended") == 7
    (notice,) = (event for event in done.events if event["type"] == "notice")
    assert (notice["finished"], notice["total"]) == (7, 7)
    # What was decided goes on, bounded and with the path of the whole.
    prompt = (done.folder / "artifacts" / "03-worker-1.md").read_text()
    assert "## What was decided\nTeam design:\nDecision of record · line · team design" in prompt
    assert "Outcome: agreed" in prompt
    assert "What it rests on" not in prompt
    assert 'You are "worker-1", one of 3 members of the team "build"' in prompt
    assert "what you actually did" in prompt
    prompt = (done.folder / "artifacts" / "06-cat.md").read_text()
    assert "Team design:" in prompt
    assert "Team build:" in prompt
    assert "Decision of record · line · team both" in prompt
    assert prompt.count("## Turn ") == 3
    records = [team["record"] for team in result["teams"]]
    assert records == ["decisions/01-design.md", "decisions/02-build.md", "decisions/03-both.md"]
    texts = [(done.folder / record).read_text() for record in records]
    assert (done.folder / "decision.md").read_text() == "\n".join(texts) == result["decision"]["text"]
    assert "2/2 succeeded" in texts[2]
    posts = [
        json.loads(line)
        for line in (done.folder / "rooms").glob("*both*").__next__().read_text().splitlines()
    ]
    assert posts[-1]["text"].startswith("DECISION: ")


def test_a_team_without_quorum_ends_the_pipeline(environ: Environ, place: Path) -> None:
    teams = {
        "first": {"mode": "dispatch", "members": [{"agent": "good"}, {"agent": "bad"}]},
        "second": {"mode": "deliberate", "members": [{"agent": "ann"}]},
    }
    agents = {"good": python("print('done')"), "bad": python("raise SystemExit(3)"), "ann": python(TALKER)}
    done = fleet("run", fleet_of(place, teams, agents), environ=environ, folder=place)
    assert done.code == 1
    assert states(done) == {"first/good": "final", "first/bad": "failed", "second/ann": "skipped"}
    assert [team["state"] for team in done.result["teams"]] == ["failed", "pending"]
    assert broker_pid(environ) is None
    (notice,) = (event for event in done.events if event["type"] == "notice")
    assert notice["line"].endswith("2 of 3 finished. Failed: bad (exit 3). Skipped: ann.")
    teams["first"]["quorum"] = 1
    done = fleet("run", fleet_of(place, teams, agents), environ=environ, folder=place)
    assert done.code == 0, done.stderr
    assert "FAILED: exit 3" in done.stdout


def test_a_deliberation_without_quorum_is_not_worked_on(environ: Environ, place: Path) -> None:
    marks = place / "mark"
    code = f"import os; open({str(marks)!r}, 'w') if os.environ['FLEET_PHASE'] == 'dispatch' else print('I muse')"
    teams = {
        "t": {"mode": "deliberate-then-dispatch", "rounds": 1, "members": [{"agent": "a"}, {"agent": "b"}]}
    }
    done = fleet(
        "run", fleet_of(place, teams, {"a": python(code), "b": python(code)}), environ=environ, folder=place
    )
    assert done.code == 1
    assert not marks.exists()
    assert states(done) == {"t/a": "final", "t/b": "final"}
    assert "Quorum missed" in done.stdout
    assert [event["type"] for event in done.events].count("member.ended") == 2


def test_the_deadline_of_one_team_is_not_that_of_the_next(environ: Environ, place: Path) -> None:
    mark = str(place / "mark")
    teams = {
        "slow": {
            "mode": "dispatch",
            "deadline": "2s",
            "quorum": 1,
            "members": [{"agent": "quick"}, {"agent": "mule"}],
        },
        "next": {"mode": "dispatch", "members": [{"agent": "quick"}]},
    }
    agents = {"quick": python("print('done')"), "mule": ["sh", "-c", f"sleep 60 # {mark}"]}
    done = fleet("run", fleet_of(place, teams, agents), environ=environ, folder=place)
    assert done.code == 0, done.stderr
    assert states(done) == {"slow/quick": "final", "slow/mule": "absent", "next/quick": "final"}
    assert alive_with(mark) == []


def test_the_minutes_of_a_budget_end_the_run(environ: Environ, place: Path) -> None:
    teams = {"t": {"mode": "dispatch", "members": [{"agent": "mule"}]}}
    path = fleet_of(place, teams, {"mule": ["sleep", "60"]}, budget={"minutes": 0.05})
    done = fleet("run", path, environ=environ, folder=place)
    assert done.code == 5
    assert done.result["state"] == "deadline"
    assert states(done) == {"t/mule": "absent"}


def test_a_deadline_beyond_all_measure_and_retries(environ: Environ, place: Path) -> None:
    code = "import os, sys; sys.exit(4) if os.environ['FLEET_TURN'] == '1' else print('FINAL: agreed')"
    teams = {
        "t": {
            "mode": "deliberate", "rounds": 1, "deadlineMs": 2147483647,
            "members": [{"agent": "a", "retries": 1}, {"agent": "b"}],
        }
    }  # fmt: skip
    path = fleet_of(place, teams, {"a": python(code), "b": python(TALKER)})
    done = fleet("run", path, environ=environ, folder=place)
    assert done.code == 0, done.stderr
    member = done.result["teams"][0]["members"][0]
    assert member["attempts"] == 3
    (failed,) = member["retried"]
    assert (failed["turn"], failed["attempt"], failed["reason"]) == (1, 1, "exit 4")
    turns = [event for event in done.events if event["type"] == "member.turn" and event["seat"] == "a"]
    assert [turn["outcome"] for turn in turns] == ["failed", "answered", "answered"]


def test_what_reaches_the_conductor_does_not_grow(environ: Environ, place: Path) -> None:
    """50 members of 1 MB against 3 of 1 KB: at most 1.15 times as much, and both within budget, marker and notices."""

    def chars(count: int, size: int) -> int:
        code = f"print('x' * {size})"
        teams = {"t": {"mode": "dispatch", "concurrency": 8, "members": [{"agent": "w", "count": count}]}}
        done = fleet(
            "run", fleet_of(place, teams, {"w": python(code)}), environ=environ, folder=place, seconds=100
        )
        assert done.code == 0, done.stderr
        read: int = done.result["conductor"]["chars_read"]
        assert read <= 2000 + 201 + 300 + 100 + len(str(done.folder))
        return read

    assert chars(50, 2**20) <= 1.15 * chars(3, 1024)
