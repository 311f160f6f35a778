"""Who hears what after a turn: everything but one's own, nothing of what was before one came, in order."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from roundtable.activity import Heard, Told, heard, heard_by
from roundtable.message import Activity
from roundtable.wire import FrameDecoder

SESSIONS = ("s1", "s2", "s3")


def events(found: Heard | None) -> list[tuple[str, int]]:
    if found is None:
        return []
    bodies = [json.loads(bytes(body)) for body in FrameDecoder().feed(found.frames)]
    assert all(body["type"] == "activity" and body["room"] == "r" for body in bodies)
    return [(body["from"], body["seq"]) for body in bodies]


def test_who_caused_nothing_hears_everything_and_who_caused_all_hears_nothing() -> None:
    everybody, causes = heard("r", [Told("s1", "ann", [7, 8, 9]), Told("s1", "(left)", [0])])
    assert events(everybody) == [("ann", 7), ("ann", 8), ("ann", 9), ("(left)", 0)]
    assert everybody is not None
    assert everybody.newest == Activity("r", "ann", 9)
    assert causes == {"s1": None}


def test_each_cause_hears_the_others() -> None:
    told = [Told("s1", "ann", [9]), Told("s2", "bob", [10, 11]), Told("s1", "ann", [12])]
    _, causes = heard("r", told)
    assert {cause: events(found) for cause, found in causes.items()} == {
        "s1": [("bob", 10), ("bob", 11)],
        "s2": [("ann", 9), ("ann", 12)],
    }
    assert causes["s1"] is not None
    assert causes["s1"].newest == Activity("r", "bob", 11)


def test_who_comes_hears_only_what_is_said_from_then_on() -> None:
    told = [
        Told("s1", "ann", [4]),
        Told("s2", "", [], is_coming=True),
        Told("s2", "bob", [0]),
        Told("s1", "ann", [5]),
    ]
    everybody, causes = heard("r", told)
    assert events(causes["s2"]) == [("ann", 5)]
    assert events(everybody) == [("ann", 4), ("bob", 0), ("ann", 5)]
    assert events(heard_by("s3", "r", told)) == events(everybody)
    assert events(heard_by("s1", "r", told)) == [("bob", 0)]


def test_of_what_has_no_number_the_last_stands_for_all() -> None:
    everybody, _ = heard("r", [Told("s1", "ann", [0]), Told("s2", "(left)", [0])])
    assert everybody is not None
    assert everybody.newest == Activity("r", "(left)", 0)


@given(
    st.lists(
        st.tuples(st.sampled_from(SESSIONS), st.booleans(), st.lists(st.integers(0, 10**6), max_size=4)),
        max_size=12,
    )
)
def test_everybody_hears_all_of_the_others_since_it_came(said: list[tuple[str, bool, list[int]]]) -> None:
    told = [Told(session, f"n-{session}", seqs, is_coming) for session, is_coming, seqs in said]
    everybody, causes = heard("r", told)
    assert events(everybody) == [(one.author, seq) for one in told for seq in one.seqs]
    for session in SESSIONS:
        comings = [number for number, one in enumerate(told) if one.but == session and one.is_coming]
        since = told[comings[-1] + 1 :] if comings else told
        wanted = [(one.author, seq) for one in since if one.but != session for seq in one.seqs]
        found = causes.get(session, everybody)
        assert events(found) == wanted
        assert heard_by(session, "r", told) == found
        if found is not None:
            assert found.newest.seq == max(seq for _, seq in wanted)
