"""The completion notice is one line of at most 300 characters and names seats, not agents."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fleet.agents.command import CommandAgent
from fleet.runs.answer import Final
from fleet.runs.artifacts import Artifact
from fleet.runs.member import Member
from fleet.runs.notice import NOTICE_CHARS, notice_line
from fleet.runs.outcome import MemberState


def member(seat: str, state: MemberState, reason: str | None = None) -> Member:
    agent = CommandAgent(("true",), prompts=Path("/"))
    made = Member(
        seat=seat, agent_name="agent", runtime="command", agent=agent, artifact=Artifact(Path("/dev/null"))
    )
    made.end(state, reason)
    return made


def test_it_says_who_finished_and_who_did_not() -> None:
    members = [
        member("ann", MemberState.FINAL),
        member("bob", MemberState.ABSENT, "still talking after 10m"),
        member("carol", MemberState.ABSENT, "never answered"),
        member("dan", MemberState.FAILED, "exit 1"),
        member("eve", MemberState.FINAL, "no FINAL"),
    ]
    members[0].final = Final("yes", 3)
    assert notice_line(members) == (
        "3 of 5 finished. Absent: bob (still talking after 10m), carol (never answered). Failed: dan (exit 1). "
        "No FINAL: eve."
    )
    assert notice_line(members[:1], run="rabcdefgh") == "rabcdefgh: 1 of 1 finished."


def test_names_beyond_the_bound_are_counted() -> None:
    members = [member(f"seat-{n:02d}", MemberState.ABSENT, "never answered") for n in range(50)]
    line = notice_line(members, run="rabcdefgh")
    assert line.startswith("rabcdefgh: 0 of 50 finished. Absent: seat-00 (never answered), ")
    shown = line.count("never answered")
    assert line.endswith(f", +{50 - shown}.")
    assert len(notice_line(members, limit=None)) > NOTICE_CHARS


@given(st.lists(st.tuples(st.sampled_from([*MemberState]), st.text(max_size=200)), max_size=50))
def test_it_never_passes_its_bound(states: list[tuple[MemberState, str]]) -> None:
    members = [member(f"{'n' * 60}-{n}", state, reason) for n, (state, reason) in enumerate(states)]
    line = notice_line(members, run="rabcdefgh")
    assert len(line) <= NOTICE_CHARS
    for made in members:
        made.artifact.close()
