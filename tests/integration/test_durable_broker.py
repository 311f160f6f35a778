"""A broker whose store is durable: nobody learns of a change before it is stored, and a turn is one commit."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from roundtable.errors import NotStored
from roundtable.message import Message
from roundtable.room import Room, RoomState
from roundtable.store import MemoryStore
from roundtable.wire import encode_message
from tests.integration.raw import SECONDS, Raw, embedded_broker, until


class Ledger(MemoryStore):
    """Durable as far as the broker can tell; a test decides when and whether a commit succeeds."""

    is_durable: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(encode_message)
        self.is_full = False
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.is_committing = threading.Event()
        self.commits: list[list[str]] = []
        self._open: list[str] = []
        self._before: dict[Room, RoomState] = {}

    def before_change(self, room: Room) -> None:
        self._before.setdefault(room, room.state())

    def posted(self, room: Room, message: Message) -> None:
        self._open.append(message.text)

    def cursor_moved(self, room: Room, name: str) -> None:
        self._open.append(f"{name} at {room.cursor(name)}")

    def topic_set(self, room: Room) -> None:
        self._open.append(str(room.topic))

    def commit(self) -> None:
        changes, self._open = self._open, []
        before, self._before = self._before, {}
        if not changes:
            return
        self.is_committing.set()
        assert self.may_commit.wait(SECONDS)
        if self.is_full:
            for room, state in before.items():
                room.go_back(state)
            raise NotStored(Path("/disk/rooms.db"), "database or disk is full")
        self.commits.append(changes)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def path(home: Path, ledger: Ledger) -> Iterator[Path]:
    with embedded_broker(home, store=ledger) as path:
        yield path


def frames(*requests: dict[str, Any]) -> bytes:
    bodies = [json.dumps({"room": "a", **request}).encode() for request in requests]
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def member(path: Path, name: str) -> Raw:
    raw = Raw(path, name)
    raw.ask("join", room="a")
    return raw


def has_arrived(raw: Raw) -> bool:
    """Whether anything lies there to be read now."""
    raw.socket.setblocking(False)
    try:
        raw._read += raw.socket.recv(65536)
    except BlockingIOError:
        return bool(raw._read)
    finally:
        raw.socket.settimeout(SECONDS)
    return True


def test_neither_the_poster_nor_anybody_else_hears_of_it_before_it_is_stored(
    path: Path, ledger: Ledger
) -> None:
    with member(path, "ann") as ann, member(path, "bob") as bob:
        while ann.next_activity()["from"] != "bob":
            pass
        ledger.may_commit.clear()
        sent = ann.send("post", room="a", text="hi")
        assert ledger.is_committing.wait(SECONDS)
        assert not has_arrived(ann)
        assert not has_arrived(bob)
        ledger.may_commit.set()
        assert ann.reply(sent)["message"]["seq"] == 1
        assert bob.next_activity() == {"type": "activity", "room": "a", "from": "ann", "seq": 1}


def test_what_one_turn_changes_is_one_commit_and_is_answered_in_order(path: Path, ledger: Ledger) -> None:
    with member(path, "ann") as ann:
        ann.socket.sendall(
            frames(
                {"type": "post", "requestId": "1", "text": "one", "id": "x"},
                {"type": "post", "requestId": "2", "text": "again", "id": "x"},
                {"type": "digest", "requestId": "3"},
                {"type": "set_cursor", "requestId": "4", "seq": 9},
                {"type": "post", "requestId": "5", "text": "two"},
            )
        )
        replies = [ann.receive() for _ in range(5)]
        assert [reply["requestId"] for reply in replies] == list("12345")
        assert replies[1]["message"] == replies[0]["message"]
        assert ledger.commits == [["one", "two"]]


def test_posts_of_several_connections_share_a_commit(path: Path, ledger: Ledger) -> None:
    members = [member(path, f"m{number}") for number in range(8)]
    ledger.may_commit.clear()
    first = members[0].send("post", room="a", text="0")
    assert ledger.is_committing.wait(SECONDS)
    # The broker is in its commit; what arrives meanwhile is one turn.
    sent = [raw.send("post", room="a", text=str(number)) for number, raw in enumerate(members[1:], 1)]
    ledger.may_commit.set()
    members[0].reply(first)
    for raw, request_id in zip(members[1:], sent, strict=True):
        assert raw.reply(request_id)["type"] == "posted"
    assert [sorted(texts) for texts in ledger.commits] == [["0"], [str(number) for number in range(1, 8)]]
    for raw in members:
        raw.socket.close()


READS: list[dict[str, Any]] = [
    {"type": "fetch", "afterSeq": 0},
    {"type": "digest", "peek": True},
    {"type": "digest", "afterSeq": 0},
    {"type": "rooms"},
    {"type": "join"},
    {"type": "leave"},
    {"type": "post", "text": "x", "replyTo": "nothing"},
    {"type": "dance"},
]


@pytest.mark.parametrize("request_", READS, ids=lambda request: "-".join(map(str, request.values())))
@pytest.mark.parametrize("is_full", [False, True])
def test_whatever_reads_a_room_in_the_same_turn_comes_after_the_commit(
    path: Path, ledger: Ledger, request_: dict[str, Any], is_full: bool
) -> None:
    with member(path, "ann") as ann:
        ledger.is_full = is_full
        ann.socket.sendall(
            frames({"type": "post", "requestId": "1", "text": "secret"}, {**request_, "requestId": "2"})
        )
        first, second = ann.receive(), ann.receive()
        assert (first["requestId"], second["requestId"]) == ("1", "2")
        assert first.get("code", "posted") == ("not-stored" if is_full else "posted")
        if is_full:
            assert "secret" not in json.dumps(second)
            assert second.get("lastSeq", 0) == 0


def test_a_full_disk_refuses_the_post_and_the_room_lives(path: Path, ledger: Ledger) -> None:
    with member(path, "ann") as ann, member(path, "bob") as bob:
        ann.ask("post", room="a", text="before")
        while bob.next_activity()["seq"] != 1:
            pass
        ledger.is_full = True
        refused = ann.ask("post", room="a", text="lost", id="mine")
        assert (refused["type"], refused["code"]) == ("error", "not-stored")
        assert refused["error"] == (
            "Nothing was posted: cannot write /disk/rooms.db: database or disk is full; try again once that is mended"
        )
        moved = bob.ask("digest", room="a")
        assert moved["code"] == "not-stored"
        assert moved["error"].startswith("The cursor was not moved: ")
        assert bob.ask("set_cursor", room="a", seq=1)["code"] == "not-stored"
        peeked = bob.ask("digest", room="a", peek=True)
        assert (peeked["total"], peeked["cursor"]) == (1, 0)
        assert bob.ask("digest", room="a", afterSeq=1)["total"] == 0
        assert len(bob.ask("rooms")["rooms"][0]["members"]) == 2
        assert bob.activity == []
        ledger.is_full = False
        assert ann.ask("post", room="a", text="lost", id="mine")["message"]["seq"] == 2
        assert bob.ask("digest", room="a")["total"] == 2
        assert bob.next_activity()["seq"] == 2


def test_a_topic_that_cannot_be_stored_is_nobodys(path: Path, ledger: Ledger) -> None:
    with member(path, "ann") as ann, Raw(path, "bob") as bob:
        ann.ask("post", room="a", text="x")
        ledger.is_full = True
        refused = bob.ask("join", room="a", topic="T")
        assert refused["code"] == "not-stored"
        assert refused["error"].startswith("Not joined: ")
        (room,) = bob.ask("rooms")["rooms"]
        assert ("topic" in room, len(room["members"])) == (False, 1)
        assert bob.ask("join", room="a")["type"] == "joined"
        ledger.is_full = False
        assert bob.ask("join", room="a", topic="T")["topic"] == "T"
        assert ledger.commits[-1] == ["T"]
        assert ann.ask("join", room="a", topic="other")["topic"] == "T"
        assert ledger.commits[-1] == ["T"]


def test_a_room_whose_first_post_was_not_stored_is_forgotten_with_its_last_member(
    path: Path, ledger: Ledger
) -> None:
    ledger.is_full = True
    with member(path, "ann") as ann, Raw(path, "look") as look:
        assert ann.ask("post", room="a", text="x")["code"] == "not-stored"
        ann.ask("leave", room="a")
        assert look.ask("rooms")["rooms"] == []


def test_what_was_done_before_a_frame_that_is_none_is_stored_and_answered(path: Path, ledger: Ledger) -> None:
    for broken in (b"\0\0\0\1[", b"\xff\xff\xff\xff"):
        with member(path, "ann") as ann:
            ann.socket.sendall(frames({"type": "post", "requestId": "1", "text": "x"}) + broken)
            assert ann.receive()["type"] == "posted"
            assert ann.is_closed()
    assert ledger.commits == [["x"], ["x"]]


def test_the_post_of_who_goes_at_once_is_stored_and_told_before_the_going(path: Path, ledger: Ledger) -> None:
    with member(path, "bob") as bob:
        ann = member(path, "ann")
        ann.send("post", room="a", text="last words")
        ann.socket.close()
        told = [bob.next_activity() for _ in range(3)]
        assert [(event["from"], event["seq"]) for event in told] == [("ann", 0), ("ann", 1), ("(left)", 0)]
    assert ledger.commits == [["last words"]]


def test_a_broker_that_is_told_to_stop_stores_and_answers_what_it_has_taken(
    home: Path, ledger: Ledger
) -> None:
    with embedded_broker(home, store=ledger) as path:
        ann = member(path, "ann")
        ledger.may_commit.clear()
        sent = ann.send("post", room="a", text="x")
        assert ledger.is_committing.wait(SECONDS)
        late = ann.send("post", room="a", text="y")
        ledger.may_commit.set()
    assert ann.reply(sent)["type"] == "posted"
    # It may not have been read any more; if it was answered it was stored.
    try:
        answered = ann.reply(late)["type"] == "posted"
    except (EOFError, ConnectionError):
        answered = False
    until(lambda: ledger.commits == ([["x"], ["y"]] if answered else [["x"]]))
    ann.socket.close()
