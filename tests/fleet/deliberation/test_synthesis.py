"""The decision is what was said: a majority of the roster, its dissent, or an honest split."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleet.deliberation.synthesis import decide
from fleet.runs.answer import Final
from fleet.runs.results import Decision


def decided(*finals: str | None, absent: tuple[str, ...] = ()) -> Decision:
    seats = [(f"s{n}", Final(text, len(text)) if text else None) for n, text in enumerate(finals)]
    return decide(
        seats,
        absent=absent,
        quorum=len(finals),
        head=["Decision of record"],
        attendance="x of y finished.",
        digest="[09:00] s0#1: hi",
        artifact_of={},
    )


def test_more_than_half_is_the_outcome_and_the_rest_is_dissent() -> None:
    decision = decided("Shard it.", "shard  it", "Keep one queue")
    assert decision.outcome == "Shard it."
    assert decision.agreed == ("s0", "s1")
    assert "Quorum" not in decision.text
    assert decision.positions[0].seats == ("s0", "s1")
    assert [position.seats for position in decision.dissent] == [("s2",)]
    assert "Agreed by 2 of 3: s0, s1." in decision.text
    assert "- Keep one queue (s2)" in decision.text


def test_exactly_half_is_no_majority() -> None:
    decision = decided("a", "a", "b", "b")
    assert decision.outcome == "split"
    assert decision.dissent == ()
    assert len(decision.positions) == 2


def test_absentees_count_against_a_majority() -> None:
    assert decided("a", "a", None, None, absent=("s2", "s3")).outcome == "split"
    assert decided("a", "a", "a", None, absent=("s3",)).outcome == "a"
    assert decided("a", None, None, absent=("s1", "s2")).absent == ("s1", "s2")


def test_nobody_concluded() -> None:
    decision = decided(None, None)
    assert (decision.outcome, decision.agreed) == ("none", ())
    assert "Quorum missed: 0 reached a FINAL line, 2 were needed." in decision.text
    assert "nobody reached a FINAL line" in decision.text


def test_the_digest_it_rests_on_is_in_the_text() -> None:
    assert decided("a").text.endswith("What it rests on:\n\n[09:00] s0#1: hi\n")


@given(st.lists(st.sampled_from(["a", "A.", "b", "c ", None]), min_size=1, max_size=12))
def test_every_conclusion_is_kept_exactly_once(finals: list[str | None]) -> None:
    decision = decided(*finals)
    seats = sorted(seat for position in decision.positions for seat in position.seats)
    assert seats == sorted(f"s{n}" for n, final in enumerate(finals) if final)
    won = 0 if decision.outcome in {"split", "none"} else len(decision.positions[0].seats)
    assert (2 * won > len(finals)) == (won > 0)
    assert len(decision.dissent) == (len(decision.positions) - 1 if won else 0)
