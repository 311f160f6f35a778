"""What every store of rooms must hold, seen from outside a real broker process.

A store joins by one more entry in ``STORES``: its name, how a broker is told to use it, and whether what it was given
outlives a broker that is killed.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.raw import SECONDS, Raw, broker_process


@dataclass(frozen=True)
class Store:
    """One way of keeping rooms."""

    name: str
    options: tuple[str, ...]
    is_durable: bool


STORES = [
    Store("memory", ("--store", "memory"), is_durable=False),
    Store("sqlite", ("--store", "sqlite"), is_durable=True),
]


@dataclass
class Service:
    """Brokers of one home, one at a time."""

    home: Path
    store: Store
    _stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        self.process = self._stack.enter_context(broker_process(self.home, *self.store.options))

    def stop(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(SECONDS)
        self._stack.close()

    def restart(self, number: signal.Signals) -> None:
        self.stop(number)
        self.start()

    def connect(self, name: str, *rooms: str) -> AbstractContextManager[Raw]:
        raw = Raw(self.home / "roundtable" / "broker.sock", name)
        for room in rooms:
            assert raw.ask("join", room=room)["type"] == "joined"
        return raw


@pytest.fixture(params=STORES, ids=lambda store: store.name)
def service(request: pytest.FixtureRequest, home: Path) -> Iterator[Service]:
    service = Service(home, request.param)
    service.start()
    yield service
    service.stop(signal.SIGTERM)


def everything(reader: Raw, room: str) -> list[dict[str, Any]]:
    """All that is retained, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        page = reader.ask("fetch", room=room, afterSeq=found[-1]["seq"] if found else 0)
        found += page["messages"]
        if not page["messages"]:
            return found


def test_numbers_rise_and_are_given_once_whoever_posts(service: Service) -> None:
    given: list[list[int]] = [[] for _ in range(8)]

    def talk(number: int) -> None:
        with service.connect(f"m{number}", "a") as raw:
            for _ in range(5):
                ids = [raw.send("post", room="a", text="x") for _ in range(8)]
                given[number] += [raw.reply(id_)["message"]["seq"] for id_ in ids]

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert all(seqs == sorted(seqs) and len(seqs) == 40 for seqs in given)
    assert len({seq for seqs in given for seq in seqs}) == 320
    with service.connect("late") as late:
        seqs = [message["seq"] for message in everything(late, "a")]
        assert seqs == sorted(seq for numbers in given for seq in numbers)


def test_the_newest_500_are_kept(service: Service) -> None:
    with service.connect("ann", "a") as ann:
        ids = [ann.send("post", room="a", text=str(number)) for number in range(530)]
        seqs = [ann.reply(id_)["message"]["seq"] for id_ in ids]
        kept = everything(ann, "a")
        assert [message["seq"] for message in kept] == seqs[-500:]
        assert [message["text"] for message in kept] == [str(number) for number in range(30, 530)]
        assert ann.ask("fetch", room="a", afterSeq=0)["firstSeq"] == seqs[30]


def test_the_same_id_twice_is_one_message(service: Service) -> None:
    with (
        service.connect("ann", "a") as ann,
        service.connect("ann", "a") as again,
        service.connect("bob", "a") as bob,
    ):
        first = ann.ask("post", room="a", text="once", id="one")
        for raw in (ann, again):
            assert raw.ask("post", room="a", text="other words", id="one")["message"] == first["message"]
        # Both before either is answered.
        ids = [ann.send("post", room="a", text="at once", id="two") for _ in range(2)]
        messages = [ann.reply(id_)["message"] for id_ in ids]
        assert messages[0] == messages[1]
        assert bob.ask("post", room="a", text="mine", id="one")["code"] == "bad-request"
        assert [message["id"] for message in everything(bob, "a")] == ["one", "two"]


def test_a_cursor_never_goes_back_however_many_move_it(service: Service) -> None:
    with service.connect("ann", "a") as ann:
        for _ in range(100):
            ann.ask("post", room="a", text="x")
    lock, highest, back = threading.Lock(), 0, []

    def move(seed: int) -> None:
        nonlocal highest
        choose = random.Random(seed)  # noqa: S311 - a test that can be repeated
        with service.connect("reader") as raw:
            for _ in range(50):
                with lock:
                    floor = highest
                seq = choose.randint(-5, 100)
                cursor = raw.ask("set_cursor", room="a", seq=seq)["seq"]
                if cursor < max(floor, seq):
                    back.append((floor, seq, cursor))
                with lock:
                    highest = max(highest, cursor)

    threads = [threading.Thread(target=move, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert back == []
    with service.connect("reader") as raw:
        assert raw.ask("join", room="a")["cursor"] == highest > 50


def test_activity_carries_room_number_and_sender_and_a_fetch_makes_current(service: Service) -> None:
    with service.connect("ann", "a", "b") as ann, service.connect("bob", "a", "b") as bob:
        bob.ask("post", room="b", text="x")
        while (told := ann.next_activity())["seq"] == 0:
            pass
        assert told == {"type": "activity", "room": "b", "from": "bob", "seq": 1}
        # Ann reads nothing for a while; what she is told then may be one of many.
        ids = [bob.send("post", room="a", text=f"{number}") for number in range(300)]
        posted = [bob.reply(id_)["message"]["id"] for id_ in ids]
        ann.activity.clear()
        seen = [message["id"] for message in everything(ann, "a")]
        assert seen == posted
        while ann.activity[-1]["seq"] < 300:
            ann.activity.append(ann.next_activity())
        assert {(event["room"], event["from"]) for event in ann.activity} == {("a", "bob")}


def test_nobody_is_told_of_a_message_that_cannot_be_read_yet(service: Service) -> None:
    with service.connect("ann", "a") as ann, service.connect("bob", "a") as bob:
        for _ in range(50):
            bob.send("post", room="a", text="x")
            while (seq := ann.next_activity()["seq"]) == 0:
                pass
            assert ann.ask("fetch", room="a", afterSeq=seq - 1)["messages"][0]["seq"] == seq


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_what_outlives_a_broker_and_what_does_not(service: Service, number: signal.Signals) -> None:
    with service.connect("ann") as ann, service.connect("bob") as bob:
        epoch = ann.ask("join", room="a", topic="Why")["epoch"]
        bob.ask("join", room="a")
        bob.ask("join", room="silent", topic="Nothing")
        ids = [ann.send("post", room="a", text=f"{number} é\0🎲\n") for number in range(520)]
        for id_ in ids:
            ann.reply(id_)
        bob.ask("post", room="a", text="mine", id="mine", replyTo=520)
        ann.ask("set_cursor", room="a", seq=300)
        bob.ask("post", room="b", text="x")
        bob.ask("join", room="b")
        bob.ask("post", room="b", text="x")
        with service.connect("late") as late:
            late.ask("digest", room="a")
        before = everything(ann, "a")
        assert len(before) == 500
    service.restart(number)
    with service.connect("ann") as ann, service.connect("bob") as bob, service.connect("late") as late:
        rooms = {room["name"]: room for room in ann.ask("rooms")["rooms"]}
        if not service.store.is_durable:
            assert rooms == {}
            assert ann.ask("post", room="a", text="x")["code"] == "no-such-room"
            assert ann.ask("join", room="a", epoch=epoch)["code"] == "stale-epoch"
            joined = ann.ask("join", room="a")
            assert joined["epoch"] != epoch
            assert (joined["cursor"], joined["lastSeq"]) == (0, 0)
            for kind, keys in {"fetch": {"afterSeq": 9}, "digest": {}, "set_cursor": {"seq": 9}}.items():
                assert ann.ask(kind, room="a", epoch=epoch, **keys)["code"] == "stale-epoch"
            return
        assert list(rooms) == ["a", "b"]
        assert rooms["a"]["members"] == []
        assert (rooms["a"]["topic"], rooms["a"]["epoch"], rooms["a"]["lastSeq"]) == ("Why", epoch, 521)
        assert rooms["b"]["lastSeq"] == 1
        assert everything(bob, "a") == before
        # Nobody is a member, and a cursor that was known is known.
        assert ann.ask("post", room="a", text="x")["code"] == "not-a-member"
        cursors = [raw.ask("join", room="a", epoch=epoch)["cursor"] for raw in (ann, bob, late)]
        assert cursors == [520, 521, 521]
        again = bob.ask("post", room="a", text="mine, again", id="mine")
        assert (again["message"]["seq"], again["message"]["text"]) == (521, "mine")
        assert bob.ask("post", room="a", text="new", replyTo="mine")["message"]["seq"] == 522
        assert everything(bob, "a")[:-1] == before[1:]


def test_a_text_of_any_size_is_kept_whole(service: Service) -> None:
    sizes = (1, 4095, 100_000, 6 * 1024 * 1024)
    with service.connect("ann", "a") as ann:
        for size in sizes:
            assert ann.ask("post", room="a", text="x" * size)["type"] == "posted"
    if service.store.is_durable:
        service.restart(signal.SIGKILL)
    with service.connect("ann") as ann:
        assert [len(message["text"]) for message in everything(ann, "a")] == list(sizes)
