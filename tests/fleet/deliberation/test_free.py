"""The free protocol under a clock that is moved by hand: rounds, ceilings, last call, the deadline."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from fleet.agents.base import Opening
from fleet.deadline import NEVER, Deadline
from fleet.deliberation.free import Table, deliberate
from fleet.plan import SeatPlan, TeamPlan
from fleet.runs.artifacts import Artifact
from fleet.runs.journal import Journal
from fleet.runs.member import Member
from fleet.runs.outcome import MemberState
from fleet.testing import MemoryRoom, Reply, ScriptedAgent

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Team:
    """A team of scripted agents that has deliberated."""

    def __init__(
        self, folder: Path, agents: dict[str, ScriptedAgent], *, rounds: int = 1, **seat: Any
    ) -> None:
        self.agents = agents
        self.room = MemoryRoom()
        self.journal_path = folder / "events.jsonl"
        self.members = tuple(
            Member(
                seat=name,
                agent_name=name,
                runtime="scripted",
                agent=agent,
                artifact=Artifact(folder / f"{name}.md"),
            )
            for name, agent in agents.items()
        )
        fixed: dict[str, Any] = {
            "runtime": "scripted", "runtime_reason": "a test", "is_named": True, "command": None, "model": None,
            "persona": None, "brief": None, "cwd": folder, "env": {}, "turn_timeout_seconds": 300.0, "color": None,
        }  # fmt: skip
        seats = tuple(SeatPlan(name=name, agent=name, **(fixed | seat)) for name in agents)
        self.plan = TeamPlan(
            name="team", mode="deliberate", room="room", topic=None, rounds=rounds, quorum=len(seats),
            deadline_seconds=None, digest_budget=2000, per_message=600, is_blocking=False, seats=seats,
        )  # fmt: skip

    async def deliberate(self, seconds: float = math.inf) -> float:
        """Run to the end; returns how long it took."""
        journal = Journal(self.journal_path)
        began = anyio.current_time()
        deadline = NEVER if math.isinf(seconds) else Deadline(began + seconds)
        table = Table(
            plan=self.plan,
            task="Decide.",
            members=self.members,
            room=self.room,
            journal=journal,
            artifact_path=lambda member: member.artifact.path.name,
            record="rooms/room.jsonl",
            deadline=deadline,
            last_call=deadline.part(0.8, now=began),
            seconds_given=seconds,
        )
        await deliberate(table, [Opening(Path("/"), {})] * len(self.members))
        journal.close()
        return anyio.current_time() - began

    def states(self) -> dict[str, tuple[MemberState, str | None]]:
        return {member.seat: (member.state, member.reason) for member in self.members}

    def turns(self, seat: str) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in self.journal_path.read_text().splitlines()]
        return [event for event in events if event["type"] == "member.turn" and event["seat"] == seat]


Make = Callable[..., Team]


@pytest.fixture
def team(tmp_path: Path) -> Make:
    def make(agents: dict[str, list[Reply | str]], **options: Any) -> Team:
        return Team(tmp_path, {name: ScriptedAgent(replies) for name, replies in agents.items()}, **options)

    return make


async def test_everybody_reads_everybodys_last_word(team: Make) -> None:
    made = team(
        {
            "ann": [Reply("ann opens", 1), Reply("ann replies", 1), Reply("FINAL: a", 1)],
            "bob": [Reply("bob opens", 2), Reply("bob replies", 2), Reply("FINAL: b", 2)],
        },
        rounds=2,
    )
    await made.deliberate()
    opening, reply, last = made.agents["ann"].prompts
    assert "bob opens" not in opening
    assert "bob#2: bob opens" in reply
    assert "ann#1: ann opens" not in reply.partition("posted since")[2]
    assert "ann opens" in reply.partition("Your last words")[2]
    assert "bob replies" in last
    assert "bob opens" not in last
    assert [name for name, _ in made.room.posts] == ["ann", "bob"] * 3


async def test_a_round_waits_for_the_slowest(team: Make) -> None:
    made = team({"slow": [Reply("slow opens", 200), "FINAL: a"], "quick": ["quick opens", "FINAL: a"]})
    assert 200 <= await made.deliberate() < 201
    assert "slow opens" in made.agents["quick"].prompts[1]


async def test_a_turn_ends_at_its_ceiling_and_the_round_goes_on(team: Make) -> None:
    made = team({"slow": [Reply("never", 900), "FINAL: a"], "quick": ["hi", "FINAL: a"]})
    assert 300 <= await made.deliberate() < 301
    assert made.states() == {"slow": (MemberState.FINAL, None), "quick": (MemberState.FINAL, None)}
    assert made.turns("slow")[0]["reason"] == "turn over 5m"


async def test_a_member_that_times_out_in_its_last_turn_is_timed_out(team: Make) -> None:
    made = team({"slow": ["hi", Reply("never", 900)], "quick": ["hi", "FINAL: a"]})
    await made.deliberate()
    assert made.states()["slow"] == (MemberState.TIMED_OUT, "turn over 5m")


async def test_at_last_call_the_waiting_conclude(team: Make) -> None:
    made = team({"mule": [Reply("never", 9999)], "quick": ["hi", "FINAL: a"]}, turn_timeout_seconds=9999.0)
    assert 3600 <= await made.deliberate(3600) < 3601
    assert made.states() == {
        "mule": (MemberState.ABSENT, "never answered"),
        "quick": (MemberState.FINAL, None),
    }
    assert [turn["phase"] for turn in made.turns("quick")] == ["open", "final"]


async def test_who_answers_after_last_call_is_asked_for_its_conclusion(team: Make) -> None:
    made = team(
        {"late": [Reply("late opens", 3000), "FINAL: b"], "quick": ["hi", "FINAL: a"]},
        turn_timeout_seconds=9999.0,
    )
    assert await made.deliberate(3600) < 3001
    assert made.states() == {"late": (MemberState.FINAL, None), "quick": (MemberState.FINAL, None)}
    assert "quick#2: FINAL: a" in made.agents["late"].prompts[1]


async def test_a_member_that_spoke_is_still_talking_at_the_deadline(team: Make) -> None:
    made = team(
        {"talker": ["hi", Reply("never", 9999)], "quick": ["hi", "FINAL: a"]}, turn_timeout_seconds=9999.0
    )
    await made.deliberate(600)
    assert made.states()["talker"] == (MemberState.ABSENT, "still talking after 10m")
    assert made.turns("talker")[-1]["outcome"] == "stopped"


async def test_a_failed_member_is_over_and_the_others_go_on(team: Make) -> None:
    made = team({"dan": [Reply("half", 1, "exit 1")], "ann": ["hi", "FINAL: a"]})
    await made.deliberate()
    assert made.states() == {"dan": (MemberState.FAILED, "exit 1"), "ann": (MemberState.FINAL, None)}
    assert len(made.agents["dan"].prompts) == 1
    assert ("dan", "half") not in made.room.posts


async def test_a_missing_final_is_asked_for_once(team: Make) -> None:
    made = team({"ann": ["hi", "I think so", "FINAL: yes"], "bob": ["hi", "well", "well", "FINAL: too late"]})
    await made.deliberate()
    assert made.states() == {"ann": (MemberState.FINAL, None), "bob": (MemberState.FINAL, "no FINAL")}
    assert made.members[1].final is None
    assert 'had no line that begins with "FINAL:"' in made.agents["ann"].prompts[2]
    assert len(made.agents["bob"].prompts) == 3


async def test_seats_that_answer_by_rule_post_in_seat_order(tmp_path: Path) -> None:
    agents = {
        name: ScriptedAgent([Reply(f"{name} opens", delay), "FINAL: a"], is_deterministic=True)
        for name, delay in (("ann", 3), ("bob", 2), ("cat", 1))
    }
    made = Team(tmp_path, agents)
    await made.deliberate()
    assert [name for name, _ in made.room.posts] == ["ann", "bob", "cat"] * 2


async def test_others_post_as_they_come(team: Make) -> None:
    made = team({"ann": [Reply("ann opens", 3), "FINAL: a"], "bob": [Reply("bob opens", 2), "FINAL: a"]})
    await made.deliberate()
    assert [name for name, _ in made.room.posts[:2]] == ["bob", "ann"]


async def test_an_agent_with_memory_is_not_told_its_own_words(tmp_path: Path) -> None:
    agent = ScriptedAgent(["I said this", "FINAL: a"], has_memory=True)
    await Team(tmp_path, {"ann": agent}).deliberate()
    assert "I said this" not in agent.prompts[1]


async def test_a_turn_is_told_when_it_is_stopped(team: Make) -> None:
    made = team({"ann": ["hi", "FINAL: a"]})
    await made.deliberate(60)
    turn = made.agents["ann"].turns[0]
    assert turn.deadline.remaining(anyio.current_time()) <= 60
    assert turn.env["FLEET_PHASE"] == "open"
    assert float(turn.env["FLEET_DEADLINE"]) > 0


async def test_the_digest_of_a_prompt_is_bounded(team: Make) -> None:
    loud = {f"loud-{n}": ["x" * 5000, "FINAL: a"] for n in range(12)}
    made = team({"ann": ["hi", "FINAL: a"], **loud})
    await made.deliberate()
    digest = (
        made.agents["ann"].prompts[1].partition("since your last turn\n")[2].partition("\n## This turn")[0]
    )
    assert len(digest.strip()) <= 2201
    assert "older messages collapsed" in digest
