"""A burst of activity is one line of bounded length."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from roundtable.message import Activity
from roundtable.ping import MAX_PING_CHARS, Ping


def test_ten_posts_by_two_in_two_rooms_are_one_line() -> None:
    ping = Ping()
    for number in range(5):
        ping.feed(Activity("a", "x" if number % 2 else "y", number + 1), now=number / 10)
        ping.feed(Activity("b", "y", number + 1), now=number / 10)
    ping.feed(Activity("a", "z", 0), now=0.5)
    ping.feed(Activity("a", "(left)", 0), now=0.5)
    assert ping.due_at == 1.5
    assert ping.take() == (
        "Roundtable activity — #a: 5 new (y, x) · #b: 5 new (y). Use digest to catch up when relevant."
    )
    assert ping.due_at is None
    assert ping.take() == ""


def test_comings_and_goings_are_no_activity() -> None:
    ping = Ping()
    ping.feed(Activity("a", "x", 0), now=1)
    assert ping.due_at is None


def test_the_next_burst_pings_again() -> None:
    ping = Ping()
    ping.feed(Activity("a", "x", 7), now=0)
    assert "#a: 1 new (x)" in ping.take()
    ping.feed(Activity("a", "y", 9), now=10)
    assert ping.due_at == 11.5
    assert "#a: 2 new (y)" in ping.take()


def test_what_was_merged_is_counted_without_ones_own() -> None:
    ping = Ping()
    ping.know("a", 10)
    ping.feed(Activity("a", "x", 13), now=0)
    ping.own("a", 14)
    ping.feed(Activity("a", "y", 16), now=0)
    ping.feed(Activity("a", "z", 15), now=0)
    assert "#a: 5 new (x, y, z)" in ping.take()


NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True) | st.just("N" * 64)


@given(st.lists(st.tuples(NAME, NAME, st.integers(1, 10**18)), min_size=1, max_size=60))
def test_a_line_is_bounded_and_says_what_it_leaves_out(fed: list[tuple[str, str, int]]) -> None:
    ping = Ping()
    for room, author, seq in fed:
        ping.feed(Activity(room, author, seq), now=0)
    line = ping.take()
    assert len(line) <= MAX_PING_CHARS
    assert "\n" not in line
    rooms = {room for room, _, _ in fed}
    shown = set(re.findall(r"#([A-Za-z0-9_-]+): [1-9]", line))
    more = re.search(r"\+(\d+) rooms", line)
    assert shown <= rooms
    assert len(shown) + (int(more[1]) if more else 0) == len(rooms)


def test_what_was_read_is_no_news() -> None:
    ping = Ping()
    ping.know("a", 0)
    ping.feed(Activity("a", "bob", 1), 0.0)
    ping.feed(Activity("a", "eve", 3), 0.0)
    ping.know("a", 2)
    assert ping.take() == "Roundtable activity — #a: 1 new (bob, eve). Use digest to catch up when relevant."
    ping.feed(Activity("a", "bob", 4), 0.0)
    ping.know("a", 4)
    assert ping.take() == ""
    assert ping.due_at is None
    # What was still on its way when it was read.
    ping.feed(Activity("a", "eve", 4), 0.0)
    assert ping.take() == ""


def test_a_line_of_some_rooms_leaves_the_others() -> None:
    ping = Ping()
    ping.feed(Activity("a", "bob", 1), 0.0)
    ping.feed(Activity("b", "eve", 7), 0.0)
    assert "#a: 1 new (bob)" in ping.take({"a"})
    assert ping.due_at is not None
    assert ping.take({"a"}) == ""
    assert "#b: 1 new (eve)" in ping.take()
    assert ping.due_at is None


def test_a_room_of_the_same_name_begins_anew() -> None:
    ping = Ping()
    ping.know("a", 40)
    ping.forget("a")
    ping.know("a", 0)
    ping.feed(Activity("a", "bob", 2), 0.0)
    assert "#a: 2 new (bob)" in ping.take()


def test_ones_own_posts_in_a_row_take_no_room_and_are_not_counted() -> None:
    ping = Ping()
    ping.know("a", 0)
    for seq in range(1, 1000):
        ping.own("a", seq)
    assert not ping._own
    ping.feed(Activity("a", "bob", 1001), 0.0)
    assert "#a: 2 new (bob)" in ping.take()
