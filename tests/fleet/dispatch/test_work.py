"""Work that is given out, with scripted agents under a clock that is moved by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from fleet.agents.base import Answered, Turn, TurnOutcome, Usage
from fleet.deadline import NEVER, Deadline
from fleet.dispatch.assignment import Assignment, OutputMode, refuse_shared_outputs
from fleet.dispatch.work import TaskResult, dispatch
from fleet.errors import UsageProblem
from fleet.plan import BudgetPlan, Plan, SeatPlan, TeamPlan
from fleet.runs.artifacts import Artifact
from fleet.runs.events import Event
from fleet.runs.folder import RunFolder
from fleet.runs.journal import Journal
from fleet.runs.member import Member
from fleet.runs.outcome import MemberState
from fleet.runs.returns import Standing
from fleet.runs.run import Run, TeamRun, Watcher
from fleet.testing import Reply, ScriptedAgent

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class _Journal(Journal):
    """Waits for the disk in place: a thread does not know the clock of a test."""

    async def commit(self, *events: Event) -> None:
        self.append(*events)


class Crew:
    """A dispatching team of scripted agents."""

    def __init__(self, folder: Path, agents: list[ScriptedAgent], **options: Any) -> None:
        self.agents = agents
        self.folder = RunFolder.create("rcrew2345", below=folder, output=folder / "run")
        budget = options.pop("budget", None)
        seat: dict[str, Any] = {
            "agent": "w", "runtime": "scripted", "runtime_reason": "a test", "is_named": True, "command": None,
            "model": None, "persona": None, "brief": None, "cwd": folder, "env": {},
            "turn_timeout_seconds": 300.0, "color": None,
        }  # fmt: skip
        self.assignment = {
            key: options.pop(key) for key in ("schema", "output", "output_mode") if key in options
        }
        self.seats = tuple(
            SeatPlan(name=f"w-{number}", **(seat | options)) for number in range(1, len(agents) + 1)
        )
        team = TeamPlan(
            name="team", mode="dispatch", room="", topic=None, rounds=1, quorum=len(agents), deadline_seconds=None,
            digest_budget=2000, per_message=600, is_blocking=False, seats=self.seats,
        )  # fmt: skip
        self.plan = Plan(
            run="rcrew2345", fleet="crew", task="Do it.", blueprint=Path("x.yaml"), deadline_seconds=None,
            is_rehearsal=False, teams=(), warnings=(), budget=budget,
        )  # fmt: skip
        self.team = TeamRun(
            team,
            tuple(
                Member(
                    seat=planned.name, agent_name="w", runtime="scripted", agent=agent,
                    artifact=Artifact(self.folder.path / "artifacts" / f"{planned.name}.md"), is_to_conclude=False,
                )
                for planned, agent in zip(self.seats, agents, strict=True)
            ),
        )  # fmt: skip

    async def work(self, *, seconds: float | None = None, **limits: Any) -> list[TaskResult]:
        settings: Any = SimpleNamespace(environ={}, home=SimpleNamespace(root=Path("/home")))
        journal = _Journal(self.folder.path / "events.jsonl")
        run = Run(self.plan, settings, self.folder, Watcher(), journal)
        run.teams.append(self.team)
        assignments = [
            Assignment(seat, f"task {number}", **self.assignment)
            for number, seat in enumerate(self.seats, start=1)
        ]
        deadline = NEVER if seconds is None else Deadline(anyio.current_time() + seconds)
        limits = {"concurrency": 4} | limits
        try:
            return await dispatch(run, self.team, self.team.members, assignments, deadline=deadline, **limits)
        finally:
            journal.close()
            self.folder.close()

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder.path / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["type"] == kind]

    def states(self) -> list[tuple[MemberState, str | None]]:
        return [(member.state, member.reason) for member in self.team.members]


@pytest.fixture
def crew(tmp_path: Path) -> Callable[..., Crew]:
    def make(*replies: list[Reply | str], **options: Any) -> Crew:
        return Crew(tmp_path, [ScriptedAgent(own) for own in replies], **options)

    return make


async def test_results_are_in_task_order_and_never_more_than_so_many_work(tmp_path: Path) -> None:
    at_work, most = 0, 0

    class Counting(ScriptedAgent):
        async def turn(self, turn: Turn, emit: Callable[[bytes], None]) -> TurnOutcome:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            try:
                return await super().turn(turn, emit)
            finally:
                at_work -= 1

    made = Crew(tmp_path, [Counting([Reply(f"answer {n}", 7 - n)]) for n in range(1, 7)])
    results = await made.work()
    assert [result.output.head for result in results] == [f"answer {n}" for n in range(1, 7)]
    assert [result.number for result in results] == [1, 2, 3, 4, 5, 6]
    assert most == 4
    assert all(agent.is_closed for agent in made.agents)
    assert [agent.prompts for agent in made.agents] == [[f"task {n}\n"] for n in range(1, 7)]
    assert len(made.events("member.ended")) == 6


async def test_nobody_waits_for_a_slower_one(crew: Callable[..., Crew]) -> None:
    made = crew([Reply("slow", 100)], *[[Reply("quick", 10)] for _ in range(10)])
    began = anyio.current_time()
    await made.work(concurrency=2)
    assert anyio.current_time() - began < 101


async def test_the_first_failure_stops_and_skips_the_others(crew: Callable[..., Crew]) -> None:
    made = crew(["done"], [Reply("half", 5, "exit 3")], [Reply("never", 99)], ["waits"])
    results = await made.work(concurrency=2, is_fail_fast=True)
    assert [result.standing for result in results] == [
        Standing.OK, Standing.FAILED, Standing.SKIPPED, Standing.SKIPPED,
    ]  # fmt: skip
    assert made.states() == [
        (MemberState.FINAL, None),
        (MemberState.FAILED, "exit 3"),
        (MemberState.SKIPPED, "stopped due to fail-fast: w-2 failed"),
        (MemberState.SKIPPED, "skipped due to fail-fast: w-2 failed"),
    ]
    assert made.agents[3].prompts == []
    assert len(made.events("member.ended")) == 4
    assert results[1].output.head == "half"


async def test_at_the_deadline_those_at_work_and_those_who_wait_are_told_apart(
    crew: Callable[..., Crew],
) -> None:
    made = crew([Reply("done", 1)], [Reply("never", 99)], [Reply("never", 99)], ["waits"])
    await made.work(seconds=60, concurrency=2)
    assert made.states() == [
        (MemberState.FINAL, None),
        (MemberState.ABSENT, "never answered"),
        (MemberState.ABSENT, "never answered"),
        (MemberState.ABSENT, "not started after 1m"),
    ]
    assert [turn["outcome"] for turn in made.events("member.turn")] == ["answered", "stopped", "stopped"]


async def test_a_turn_has_its_ceiling(crew: Callable[..., Crew]) -> None:
    made = crew([Reply("never", 999)], turn_timeout_seconds=90.0)
    (result,) = await made.work()
    assert made.states() == [(MemberState.TIMED_OUT, "turn over 1m30s")]
    assert result.standing is Standing.FAILED


async def test_a_failed_turn_is_tried_again_and_every_attempt_is_kept(crew: Callable[..., Crew]) -> None:
    made = crew([Reply("", 1, "exit 1"), "", "done"], retries=2)
    (result,) = await made.work()
    assert (result.standing, result.output.head) == (Standing.OK, "done")
    member = made.team.members[0]
    assert [(one.turn, one.attempt, one.reason) for one in member.retried] == [
        (1, 1, "exit 1"),
        (2, 2, "empty answer"),
    ]
    assert [event["attempt"] for event in made.events("member.attempt")] == [1, 2, 3]
    assert [event["outcome"] for event in made.events("member.turn")] == ["failed", "failed", "answered"]


async def test_retries_end(crew: Callable[..., Crew]) -> None:
    made = crew([Reply("", 0, "exit 1")], retries=1)
    await made.work()
    assert made.states() == [(MemberState.FAILED, "exit 1")]
    assert len(made.agents[0].prompts) == 2


async def test_nothing_is_tried_again_after_the_deadline(crew: Callable[..., Crew]) -> None:
    made = crew([Reply("", 59.9, "exit 1")], retries=5)
    await made.work(seconds=60)
    assert len(made.agents[0].prompts) == 1


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_an_answer_is_asked_for_until_it_matches(crew: Callable[..., Crew]) -> None:
    made = crew(["no json", '{"n": "x"}', "```json\n{}\n```", 'so:\n```json\n{"n": 7}\n```'], schema=SCHEMA)
    (result,) = await made.work()
    assert (result.standing, result.value) == (Standing.OK, {"n": 7})
    prompts = made.agents[0].prompts
    assert len(prompts) == 4
    assert '"required": [' in prompts[0]
    assert "Corrective attempt 1/3: there is no JSON value in the answer" in prompts[1]
    assert "Corrective attempt 2/3: /n: 'x' is not of type 'integer'" in prompts[2]
    assert "Corrective attempt 3/3: /: 'n' is a required property" in prompts[3]
    assert "task 1" in prompts[3]
    assert len(made.events("member.turn")) == 4
    assert len(made.events("member.ended")) == 1


async def test_an_answer_that_never_matches_fails_with_the_path_of_the_violation(
    crew: Callable[..., Crew],
) -> None:
    made = crew(['{"n": "x"}'], schema=SCHEMA)
    (result,) = await made.work()
    assert result.standing is Standing.FAILED
    assert made.states() == [
        (MemberState.FAILED, "structured output validation failed: /n: 'x' is not of type 'integer'")
    ]
    assert len(made.agents[0].prompts) == 4


async def test_an_answer_goes_to_the_output_file(crew: Callable[..., Crew], tmp_path: Path) -> None:
    path = tmp_path / "below" / "o.md"
    made = crew(["x" * 5000], output=path, output_mode=OutputMode.FILE_ONLY)
    (result,) = await made.work()
    assert path.read_text() == "x" * 5000
    assert (
        result.returned().reference == f"Output saved to: {path} (4.9 KB, 1 line). Read this file if needed."
    )
    assert f"Write your findings to: {path}" in made.agents[0].prompts[0]


async def test_what_the_member_wrote_to_its_file_wins(tmp_path: Path) -> None:
    path = tmp_path / "o.md"

    class Writing(ScriptedAgent):
        async def turn(self, turn: Turn, emit: Callable[[bytes], None]) -> TurnOutcome:
            path.write_text("from the file\n" * 3)
            return await super().turn(turn, emit)

    made = Crew(tmp_path, [Writing([""])], output=path)
    (result,) = await made.work()
    assert (result.standing, result.output.chars) == (Standing.OK, 41)
    assert result.whole() == ("from the file\n" * 3).rstrip()
    assert result.output.path == str(path)


async def test_silence_is_told_once_and_nothing_is_done_about_it(crew: Callable[..., Crew]) -> None:
    made = crew([Reply("at last", 200)])
    (result,) = await made.work()
    assert result.standing is Standing.OK
    (stall,) = made.events("member.stalled")
    assert (stall["seat"], stall["turn"], stall["seconds"]) == ("w-1", 1, 60.0)


async def test_who_listens_is_told_when_time_is_nearly_up(crew: Callable[..., Crew]) -> None:
    made = crew([Reply("in time", 95)], [Reply("early", 50)])
    await made.work(seconds=100)
    assert [agent.told for agent in made.agents] == [
        ["Your time is nearly up: answer now with what you have."],
        [],
    ]


async def test_a_spent_budget_ends_the_work_like_a_deadline(tmp_path: Path) -> None:
    class Costly(ScriptedAgent):
        async def turn(self, turn: Turn, emit: Callable[[bytes], None]) -> TurnOutcome:
            await super().turn(turn, emit)
            return Answered(Usage(tokens_in=400, tokens_out=200, cost_usd=0.5))

    agents = [Costly([Reply("a", 1)]), Costly([Reply("b", 2)]), Costly([Reply("c", 99)]), Costly(["d"])]
    made = Crew(tmp_path, agents, budget=BudgetPlan(tokens=1000))
    await made.work(concurrency=2)
    assert [state for state, _ in made.states()] == [
        MemberState.FINAL, MemberState.FINAL, MemberState.ABSENT, MemberState.ABSENT,
    ]  # fmt: skip
    assert made.states()[2][1] == "budget spent: 1200 of 1000 tokens"


def test_work_that_would_write_to_one_file_is_refused(tmp_path: Path) -> None:
    seat = Crew(tmp_path, [ScriptedAgent(["x"])]).seats[0]
    one = Assignment(seat, "a", output=tmp_path / "o.md")
    other = Assignment(seat, "b", output=tmp_path / "x" / ".." / "o.md")
    with pytest.raises(UsageProblem, match="resolve to the same path"):
        refuse_shared_outputs([one, other])
    with pytest.raises(UsageProblem, match="does not configure an output file"):
        Assignment(seat, "a", output_mode=OutputMode.FILE_ONLY)
