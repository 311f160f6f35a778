"""One room: ring, sequence, cursors, replies, and digests that point to what they left out."""

from __future__ import annotations

import re

import pytest

from roundtable.errors import Refused
from roundtable.message import Activity, Author
from roundtable.room import Posted, Room

ANN, BOB = Author("s1", "ann"), Author("s2", "bob")


def room(*members: Author, max_messages: int = 500, max_bytes: int = 64 * 1024 * 1024) -> Room:
    made = Room(
        "r",
        epoch="e",
        encode=lambda message: str(message.seq).encode(),
        max_messages=max_messages,
        max_bytes=max_bytes,
    )
    for member in members:
        made.join(member, joined_at=0)
    return made


def post(
    to: Room, author: Author, text: str = "hi", *, id_: str | None = None, reply_to: str | int | None = None
) -> Posted:
    return to.post(
        author, text, id=id_ or f"id-{to.last_seq + 1}", timestamp=1000, size=len(text), reply_to=reply_to
    )


def seqs(of: Room, after: int, limit: int = 500, max_bytes: int = 10_000) -> list[int]:
    return [int(encoded) for encoded in of.after(after, limit=limit, max_bytes=max_bytes)]


def test_a_post_is_numbered_from_one_and_told() -> None:
    there = room(ANN, BOB)
    first, second = post(there, ANN), post(there, BOB)
    assert (first.message.seq, second.message.seq) == (1, 2)
    assert first.is_new
    assert first.message.author == ANN


def test_the_ring_keeps_the_newest_and_numbers_go_on() -> None:
    there = room(ANN)
    for _ in range(501):
        post(there, ANN)
    assert seqs(there, 0) == list(range(2, 502))
    assert (there.first_seq, there.last_seq) == (2, 501)
    assert post(there, ANN).message.seq == 502


def test_the_ring_keeps_no_more_bytes_than_it_may_and_always_the_newest() -> None:
    there = room(ANN, max_bytes=100)
    for size in (60, 30, 30, 500):
        post(there, ANN, "x" * size)
        assert there.last_seq in seqs(there, 0)
    assert seqs(there, 0) == [4]


def test_the_ring_has_its_bytes_back_when_a_message_goes() -> None:
    there = room(ANN, max_bytes=100)
    for _ in range(20):
        post(there, ANN, "x" * 40)
    assert seqs(there, 0) == [19, 20]


def test_what_rotated_out_is_forgotten_everywhere() -> None:
    there = room(ANN, BOB, max_messages=2)
    for _ in range(3):
        post(there, ANN)
    post(there, BOB)
    post(there, BOB)
    assert there.unread("new") == 2
    with pytest.raises(Refused, match="retains"):
        post(there, ANN, reply_to="id-1")
    assert there.digest("bob", after_seq=0, is_others_only=True).total == 0
    assert [len(kept) for kept in (there._ring, there._by_id, there._seqs_by_name["bob"])] == [2, 2, 2]
    assert "ann" not in there._seqs_by_name


def test_a_page_ends_at_its_limit_or_its_bytes_but_is_never_empty() -> None:
    there = room(ANN)
    for _ in range(5):
        post(there, ANN)
    assert seqs(there, 1, limit=2) == [2, 3]
    assert seqs(there, 0, max_bytes=5) == [1, 2]
    assert seqs(there, 0, max_bytes=0) == [1]
    assert seqs(there, 5) == seqs(there, 999) == []
    assert seqs(there, -7) == [1, 2, 3, 4, 5]


def test_a_cursor_goes_forward_only_and_not_past_the_end() -> None:
    there = room(ANN)
    for _ in range(30):
        post(there, ANN)
    assert there.set_cursor("z", 20) == 20
    assert there.set_cursor("z", 10) == 20
    assert there.set_cursor("z", 9999) == 30


def test_a_cursor_belongs_to_the_name_and_outlives_the_session() -> None:
    there = room(ANN, BOB)
    post(there, ANN)
    there.set_cursor("bob", 1)
    there.leave(BOB.session_id)
    assert there.unread("bob") == 0
    assert there.unread("bob2") == 1


def test_posting_moves_the_authors_cursor_and_says_past_what() -> None:
    there = room(ANN, BOB)
    assert post(there, ANN).unread_before == 0
    assert post(there, ANN).unread_before == 0
    assert post(there, BOB).unread_before == 2
    assert there.unread("bob") == 0
    assert post(there, ANN).unread_before == 1


def test_joining_twice_is_one_membership_and_tells_once() -> None:
    there = room()
    assert there.join(ANN, joined_at=5) == Activity("r", "ann", 0)
    assert there.join(ANN, joined_at=6) is None
    assert len(there.members) == 1
    assert there.leave("s1") == Activity("r", "(left)", 0)
    assert there.leave("s1") is None


def test_a_quiet_member_comes_and_goes_untold() -> None:
    there = room()
    assert there.join(ANN, joined_at=5, is_quiet=True) is None
    assert "s1" in there.members
    assert there.leave("s1") is None
    assert there.join(ANN, joined_at=5) is not None


def test_a_topic_is_taken_where_there_is_none() -> None:
    there = room(ANN)
    there.join(BOB, joined_at=1, topic="first")
    there.join(ANN, joined_at=1, topic="second")
    assert there.topic == "first"


def test_sessions_of_one_name_are_counted() -> None:
    there = room(ANN)
    again = Author("s9", "ann")
    there.join(again, joined_at=1)
    assert there.shared_with(ANN) == there.shared_with(again) == 1
    there.leave("s9")
    assert there.shared_with(ANN) == 0


def test_only_members_post() -> None:
    with pytest.raises(Refused, match='Not a member of room "r"; join it first') as caught:
        post(room(), ANN)
    assert caught.value.code == "not-a-member"


def test_the_same_id_is_one_message() -> None:
    there = room(ANN, BOB)
    first = post(there, ANN, "once", id_="x")
    again = post(there, ANN, "twice", id_="x")
    assert again.message == first.message
    assert not again.is_new
    assert there.last_seq == 1


@pytest.mark.parametrize("reference", ["id-1", "ann#1", "1", 1])
def test_a_reply_is_stored_as_name_and_number(reference: str | int) -> None:
    there = room(ANN, BOB)
    post(there, ANN)
    assert post(there, BOB, reply_to=reference).message.reply_to == "ann#1"


@pytest.mark.parametrize(
    "reference", ["bob#1", "ann#2", "0", "99", "nope", "", "ann#", "#1", "-1", "ann#1\n", "1" * 40]
)
def test_a_reply_to_nothing_is_refused_and_not_posted(reference: str) -> None:
    there = room(ANN, BOB)
    post(there, ANN)
    with pytest.raises(Refused) as caught:
        post(there, BOB, reply_to=reference)
    assert caught.value.code == "unknown-reply"
    assert there.last_seq == 1


def test_an_id_cannot_take_over_a_number() -> None:
    there = room(ANN, BOB)
    post(there, ANN)
    post(there, BOB, id_="1")
    assert post(there, ANN, reply_to="1").message.reply_to == "ann#1"


def test_unread_counts_only_what_is_retained() -> None:
    there = room(ANN, max_messages=3)
    for _ in range(10):
        post(there, ANN)
    assert there.unread("late") == 3
    assert there.info("late").unread == 3
    assert there.digest("late").text.startswith("(7 older messages no longer retained)\n")


def test_others_leaves_out_ones_own() -> None:
    there = room(ANN, BOB)
    for author in (ANN, BOB, ANN, BOB, BOB):
        post(there, author)
    found = there.digest("bob", after_seq=0, is_others_only=True)
    assert found.total == found.verbatim == 2
    assert found.consumed_seq == 3
    assert "bob#" not in found.text


@pytest.mark.parametrize("is_others_only", [False, True])
def test_following_the_marker_gives_every_collapsed_body(is_others_only: bool) -> None:
    there = room(ANN, BOB, max_messages=40)
    for number in range(60):
        post(there, BOB if number % 3 else ANN, "y" * 150)
    found = there.digest("ann", after_seq=5, is_others_only=is_others_only, budget=700)
    marker = found.text.split("\n")[0]
    parts = re.fullmatch(
        r"\((\d+) older messages collapsed — fetch with afterSeq (\d+), limit (\d+) to read them; "
        r"15 no longer retained\)",
        marker,
    )
    assert parts is not None, marker
    count, after, limit = map(int, parts.groups())
    fetched = seqs(there, after, limit)
    shown = {int(seq) for seq in re.findall(r"#(\d+):", found.text)}
    wanted = {seq for seq in range(21, 61) if not is_others_only or (seq - 1) % 3}
    assert count == found.collapsed == len(wanted - shown)
    assert wanted - shown <= set(fetched)
    if not is_others_only:
        assert set(fetched) == wanted - shown
    assert not shown & set(fetched)


def test_a_digest_moves_nothing_by_itself() -> None:
    there = room(ANN)
    post(there, ANN)
    assert there.digest("z") == there.digest("z")
    assert there.unread("z") == 1


def test_a_kept_message_comes_back_with_its_number() -> None:
    old, new = room(ANN), room(ANN)
    for _ in range(7):
        post(old, ANN)
    new.restore(post(old, ANN).message, size=2)
    assert (new.first_seq, new.last_seq) == (8, 8)
    assert post(new, ANN).message.seq == 9


def test_an_id_of_somebody_elses_message_is_refused() -> None:
    there = room(ANN, BOB)
    post(there, ANN, "ann's", id_="K")
    with pytest.raises(Refused, match="somebody else"):
        post(there, BOB, "bob's", id_="K")
    assert there.last_seq == 1


def test_a_room_that_goes_back_holds_what_it_held_and_keeps_its_members() -> None:
    there = room(ANN, max_bytes=100)
    for _ in range(3):
        post(there, ANN, "x" * 20)
    there.set_cursor("late", 2)
    state = there.state()
    there.join(BOB, joined_at=0)
    there.topic = "T"
    there.set_cursor("late", 3)
    for _ in range(4):
        post(there, BOB, "y" * 20)
    assert seqs(there, 0) == [3, 4, 5, 6, 7]
    there.go_back(state)
    assert seqs(there, 0) == [1, 2, 3]
    assert (there.topic, there.last_seq, there.cursor("late"), there.cursor("bob")) == (None, 3, 2, 0)
    assert set(there.members) == {"s1", "s2"}
    assert there.digest("ann", after_seq=0, is_others_only=True).total == 0
    # Its bytes, ids and numbers are those of before as well.
    assert post(there, BOB, "y" * 20, id_="id-4").message.seq == 4
    assert post(there, ANN, "y" * 20, reply_to="id-1").message.seq == 5
    assert seqs(there, 0) == [1, 2, 3, 4, 5]
    assert post(there, ANN, "y" * 20).message.seq == 6
    assert seqs(there, 0) == [2, 3, 4, 5, 6]
