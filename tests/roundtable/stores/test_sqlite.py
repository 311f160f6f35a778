"""What the SQLite store keeps, gives back, and takes back when it cannot be kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from roundtable.errors import NotStored, Refused, StoreUnavailable
from roundtable.message import Author
from roundtable.room import Posted, Room
from roundtable.store import MemoryStore
from roundtable.stores.sqlite import SqliteStore
from roundtable.wire import encode_message

ANN, BOB = Author("s-ann", "ann"), Author("s-bob", "bob")

Opens = Callable[[], SqliteStore]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "rooms.db"


@pytest.fixture
def opened(database: Path) -> Iterator[Opens]:
    """Opens the store; the one before is closed, as when a broker ends."""
    stores: list[SqliteStore] = []

    def again() -> SqliteStore:
        for store in stores:
            store.close()
        stores.append(SqliteStore(database, encode_message))
        return stores[-1]

    yield again
    for store in stores:
        store.close()


def room_in(store: MemoryStore, name: str = "r", *, topic: str | None = None) -> Room:
    room = store.find(name) or store.create(name, epoch=f"epoch of {name}")
    for author in (ANN, BOB):
        room.join(author, joined_at=1, topic=topic)
    return room


def post(
    store: MemoryStore,
    room: Room,
    author: Author = ANN,
    text: str = "hi",
    *,
    id_: str | None = None,
    reply_to: str | int | None = None,
) -> Posted:
    store.before_change(room)
    posted = room.post(
        author,
        text,
        id=id_ or f"{room.name}-{room.last_seq + 1}",
        timestamp=1000 + room.last_seq,
        size=len(text.encode()),
        reply_to=reply_to,
    )
    if posted.is_new:
        store.posted(room, posted.message)
    return posted


def move(store: MemoryStore, room: Room, name: str, seq: int) -> int:
    store.before_change(room)
    cursor = room.set_cursor(name, seq)
    store.cursor_moved(room, name)
    return cursor


def held(room: Room) -> object:
    """Everything a room shows but its members."""
    names = ("ann", "bob", "cy", "nobody")
    info = [room.info(name) for name in names]
    return (
        [
            (i.topic, i.epoch, i.message_count, i.first_seq, i.last_seq, i.last_activity, i.unread)
            for i in info
        ],
        [room.cursor(name) for name in names],
        [
            room.digest(name, is_others_only=others, after_seq=after).text
            for name in names
            for others in (False, True)
            for after in (None, 0)
        ],
        room.after(0, limit=500, max_bytes=1 << 40),
    )


def test_everything_a_room_holds_is_there_again(opened: Opens) -> None:
    store = opened()
    room = room_in(store, topic="Why")
    post(store, room, text="a\0b\n\u2028é🎲\r\x1b[0m")
    post(store, room, BOB, text="yes", reply_to=1)
    move(store, room, "cy", 1)
    store.commit()
    before = held(room)
    again = opened().find("r")
    assert again is not None
    assert held(again) == before
    assert again.members == {}
    assert again._bytes == room._bytes


def test_numbers_and_known_ids_go_on(opened: Opens) -> None:
    store = opened()
    post(store, room_in(store), id_="one")
    store.commit()
    store = opened()
    room = room_in(store)
    assert post(store, room, id_="one").message.seq == 1
    assert post(store, room, id_="two").message.seq == 2
    store.commit()
    assert room_in(opened()).last_seq == 2
    with pytest.raises(Refused, match="somebody else"):
        post(store, room, BOB, id_="one")


def test_rooms_keep_their_order_and_their_own_messages(opened: Opens) -> None:
    store = opened()
    for name in ("z", "a", "m"):
        post(store, room_in(store, name), id_="same id")
        store.commit()
    store = opened()
    assert [room.name for room in store.rooms()] == ["z", "a", "m"]
    assert [room_in(store, name).last_seq for name in ("z", "a", "m")] == [1, 1, 1]
    post(store, room_in(store, "a"))
    store.commit()
    assert [room.last_seq for room in opened().rooms()] == [1, 2, 1]


def test_a_room_is_kept_from_its_first_post_on(opened: Opens, database: Path) -> None:
    store = opened()
    room = room_in(store, "quiet", topic="T")
    store.before_change(room)
    store.topic_set(room)
    store.commit()
    store.drop("quiet")
    room_in(store, "later", topic="L")
    assert list(opened().rooms()) == []
    store = opened()
    post(store, room_in(store, "later", topic="L"))
    store.commit()
    assert [room.topic for room in opened().rooms()] == ["L"]


def test_a_cursor_at_the_beginning_is_as_none(opened: Opens) -> None:
    store = opened()
    room, silent = room_in(store), room_in(store, "silent")
    post(store, room)
    move(store, room, "cy", 0)
    move(store, silent, "cy", 9)
    store.commit()
    assert room_in(opened()).cursor("cy") == 0


def test_a_topic_that_comes_late_is_kept(opened: Opens) -> None:
    store = opened()
    room = room_in(store)
    post(store, room)
    store.commit()
    store.before_change(room)
    room.topic = "late"
    store.topic_set(room)
    store.commit()
    assert room_in(opened()).topic == "late"


@pytest.mark.parametrize("turn", [1, 7, 2000])
def test_what_rotated_out_leaves_the_file_with_the_turn_that_rotated_it(
    opened: Opens, database: Path, turn: int
) -> None:
    store = opened()
    room = room_in(store)
    for number in range(700):
        post(store, room)
        if number % turn == 0:
            store.commit()
    store.commit()
    (kept,) = store._database.execute("SELECT count(*) FROM messages").fetchone()
    assert kept == 500
    again = room_in(opened())
    assert (again.first_seq, again.last_seq) == (201, 700)


def test_what_was_not_committed_is_forgotten(opened: Opens) -> None:
    store = opened()
    room = room_in(store)
    post(store, room)
    store.commit()
    post(store, room)
    move(store, room, "cy", 2)
    again = room_in(opened())
    assert (again.last_seq, again.cursor("cy")) == (1, 0)


def test_one_commit_is_one_transaction(opened: Opens) -> None:
    store = opened()
    said: list[str] = []
    store._database.set_trace_callback(said.append)
    rooms = [room_in(store, name) for name in ("a", "b")]
    for _ in range(5):
        for room in rooms:
            post(store, room)
    store.commit()
    assert [line for line in said if line.startswith(("BEGIN", "COMMIT"))] == ["BEGIN IMMEDIATE", "COMMIT"]
    said.clear()
    store.commit()
    store.before_change(rooms[0])
    post(store, rooms[0], id_="a-1")
    store.commit()
    assert said == []


def fill(store: SqliteStore) -> str:
    """From now on the file cannot grow; gives a text that it has no room for."""
    (pages,) = store._database.execute("PRAGMA page_count").fetchone()
    (size,) = store._database.execute("PRAGMA page_size").fetchone()
    (free,) = store._database.execute("PRAGMA freelist_count").fetchone()
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    return "y" * (free + 20) * size


def test_a_full_disk_takes_the_turn_back_and_the_room_lives(opened: Opens, database: Path) -> None:
    store = opened()
    room, other = room_in(store), room_in(store, "other")
    for _ in range(20):
        post(store, room, text="x" * 600)
    move(store, room, "cy", 5)
    store.commit()
    before = held(room)
    post(store, room, text=fill(store), id_="big")
    move(store, room, "cy", 9)
    post(store, other)
    with pytest.raises(NotStored, match="full") as caught:
        store.commit()
    assert str(database) in str(caught.value)
    assert held(room) == before
    assert other.last_seq == 0
    assert set(room.members) == {"s-ann", "s-bob"}
    # Nothing of it is left to go with the next turn.
    store.commit()
    store._database.execute("PRAGMA max_page_count = 100000")
    assert post(store, room, id_="big").message.seq == 21
    post(store, other)
    store.commit()
    before = held(room)
    store = opened()
    assert held(room_in(store)) == before
    assert room_in(store, "other").last_seq == 1


def test_a_turn_that_fails_half_way_leaves_nothing_in_the_file(
    opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    room = room_in(store)
    post(store, room)
    # A second row of the same number is what must never be; the file itself refuses it.
    store.posted(room, room.post(ANN, "x", id="twice", timestamp=0, size=1).message)
    store._posted.append(store._posted[-1])
    with pytest.raises(NotStored, match="UNIQUE"):
        store.commit()
    assert room.last_seq == 0
    post(store, room, id_="after")
    store.commit()
    assert room_in(opened()).after(0, limit=9, max_bytes=9999) == room.after(0, limit=9, max_bytes=9999)


def test_a_room_limit_counts_the_rooms_of_before(database: Path) -> None:
    store = SqliteStore(database, encode_message, max_rooms=2)
    for name in ("a", "b"):
        post(store, room_in(store, name))
    store.commit()
    store.close()
    store = SqliteStore(database, encode_message, max_rooms=1)
    assert len(list(store.rooms())) == 2
    with pytest.raises(Refused, match="no more"):
        store.create("c", epoch="e")
    store.close()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("DELETE FROM messages WHERE seq = 2", "misses"),
        ("DELETE FROM messages", "lost its messages"),
        ("DELETE FROM rooms", "missing"),
        ("UPDATE rooms SET name = '../etc'", "cannot be"),
        ("UPDATE rooms SET name = CAST(x'ff' AS TEXT)", "UTF-8"),
        ("UPDATE rooms SET topic = 'two' || char(10) || 'lines'", "topic"),
        ("UPDATE rooms SET epoch = ''", "cannot be"),
        ("INSERT INTO rooms VALUES (9, 'r', 'e', NULL)", "cannot be"),
        ("UPDATE messages SET text = x'00ff' WHERE seq = 2", "a row of messages: Expected `str`"),
        ("UPDATE messages SET seq = 'x' WHERE seq = 3", "a row of messages: Expected `int`"),
        ("UPDATE messages SET seq = seq - 1", ">= 1"),
        ("UPDATE messages SET id = 'r-1'", "cannot be"),
        ("UPDATE messages SET author = 'a b' WHERE seq = 2", "cannot be"),
        ("UPDATE cursors SET seq = 99", "cursor"),
        ("UPDATE cursors SET room = 5", "missing"),
        ("UPDATE cursors SET name = ''", "cursor"),
        ("DROP TABLE cursors", "no such table"),
    ],
)
def test_rows_that_make_no_sense_are_told_and_left(
    opened: Opens, database: Path, change: str, reason: str
) -> None:
    store = opened()
    room = room_in(store, topic="T")
    for _ in range(3):
        post(store, room)
    store.commit()
    store.close()
    other = sqlite3.connect(database)
    with other:
        other.execute(change)
    other.close()
    before = database.read_bytes()
    with pytest.raises(StoreUnavailable, match="damaged") as caught:
        SqliteStore(database, encode_message)
    assert reason in str(caught.value)
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


class Sameness(RuleBasedStateMachine):
    """A room in memory and one in a file answer the same, whatever happens and whenever the file is opened anew."""

    database: Path

    @initialize(topic=st.sampled_from([None, "T"]))
    def start(self, topic: str | None) -> None:
        self.memory = MemoryStore(encode_message)
        self.model = room_in(self.memory, topic=topic)
        for path in self.database.parent.glob("rooms.db*"):
            path.unlink()
        self.store = SqliteStore(self.database, encode_message)
        self.room = room_in(self.store, topic=topic)
        self.is_open = True
        self.count = 0

    @rule(
        author=st.sampled_from([ANN, BOB]),
        text=st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=50),
        reply_to=st.none() | st.integers(-1, 12) | st.sampled_from(["ann#1", "id-1"]),
        repeat=st.booleans(),
    )
    def post(self, author: Author, text: str, reply_to: str | int | None, repeat: bool) -> None:
        self.count += not repeat
        outcomes = []
        for store, room in ((self.memory, self.model), (self.store, self.room)):
            try:
                posted = post(store, room, author, text, id_=f"id-{self.count}", reply_to=reply_to)
                outcomes.append((posted.encoded, posted.unread_before, posted.is_new))
            except Refused as problem:
                outcomes.append((problem.code.encode(), 0, None))
        assert outcomes[0] == outcomes[1]

    @rule(size=st.integers(100, 700))
    def post_many(self, size: int) -> None:
        for _ in range(size):
            self.count += 1
            for store, room in ((self.memory, self.model), (self.store, self.room)):
                post(store, room, text="x" * (self.count % 90 + 1), id_=f"id-{self.count}")

    @rule(name=st.sampled_from(["ann", "bob", "cy"]), seq=st.integers(-1, 3000))
    def move(self, name: str, seq: int) -> None:
        if self.model.last_seq:
            moved = [
                move(store, room, name, seq)
                for store, room in ((self.memory, self.model), (self.store, self.room))
            ]
            assert moved[0] == moved[1]

    @rule()
    def commit(self) -> None:
        self.store.commit()

    @precondition(lambda self: self.model.last_seq)
    @rule(cursor=st.integers(0, 3000))
    def fail(self, cursor: int) -> None:
        self.store.commit()
        text = fill(self.store)
        for name in ("bob", "cy"):
            if self.room.cursor(name) < self.room.last_seq:
                move(self.store, self.room, name, cursor)
        post(self.store, self.room, text=text, id_="too large")
        with pytest.raises(NotStored):
            self.store.commit()
        self.store._database.execute("PRAGMA max_page_count = 1000000")

    @rule()
    def reload(self) -> None:
        self.store.commit()
        self.store.close()
        self.store = SqliteStore(self.database, encode_message)
        self.room = room_in(self.store, topic=self.model.topic)
        if not self.model.last_seq:
            self.room.epoch = self.model.epoch

    @invariant()
    def answers_are_the_same(self) -> None:
        assert held(self.room) == held(self.model)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


def test_a_room_in_a_file_answers_as_one_in_memory(tmp_path: Path) -> None:
    machine = type("Sameness", (Sameness,), {"database": tmp_path / "rooms.db"})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine, settings=settings(max_examples=30, stateful_step_count=15, deadline=None)
    )
