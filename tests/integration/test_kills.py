"""A broker with a durable store is killed again and again under eight posters that do not give up.

``FLEET_SOAK=1`` kills it 200 times (about three minutes), and prints what was counted; otherwise it is a few times.
"""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.raw import SECONDS, Raw

KILLS = 200 if os.environ.get("FLEET_SOAK") else 8

POSTERS = 8
ROOMS = ("a", "b", "c")

#: Posts one member has on the way.
WINDOW = 3

#: A broker lives at most this long after it serves.
LIFE_SECONDS = 0.12

#: New posts of one poster in one life: fewer than fill a room's ring, however fast the machine is.
POSTS_PER_LIFE = 40

#: One in so many is killed while it starts, within this time.
EARLY = 5
START_SECONDS = 0.25


class Ledger:
    """What the posters were told, and what was found in the rooms; every contradiction is a finding."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.findings: list[str] = []
        self.counts: Counter[str] = Counter()
        self.epochs: dict[str, str] = {}
        self.ids: dict[tuple[str, int], str] = {}  # by room and number
        self.places: dict[str, tuple[str, int]] = {}  # of each id
        self.acknowledged: dict[str, int] = dict.fromkeys(ROOMS, 0)  # the highest number

    def found(self, room: str, message: dict[str, Any]) -> None:
        """A message has this number, and no other message ever; and it has no other number."""
        with self.lock:
            place, id_ = (room, message["seq"]), message["id"]
            if self.ids.setdefault(place, id_) != id_:
                self.findings.append(f"number {place} was given twice: {self.ids[place]} and {id_}")
            if self.places.setdefault(id_, place) != place:
                self.findings.append(f"{id_} is there twice: {self.places[id_]} and {place}")
            if message["text"] != f"text of {id_}":
                self.findings.append(f"{id_} says {message['text']!r}")

    def acknowledge(self, room: str, message: dict[str, Any]) -> None:
        self.found(room, message)
        with self.lock:
            self.acknowledged[room] = max(self.acknowledged[room], message["seq"])
            self.counts["acknowledged"] += 1

    def joined(self, room: str, joined: dict[str, Any], cursor: int) -> None:
        with self.lock:
            if joined["lastSeq"] and self.epochs.setdefault(room, joined["epoch"]) != joined["epoch"]:
                self.findings.append(f"room {room} was created anew")
            if joined["cursor"] < cursor:
                self.findings.append(f"a cursor in {room} went back from {cursor} to {joined['cursor']}")


class Poster(threading.Thread):
    """Says one thing after another, each as often as it takes to have it acknowledged."""

    def __init__(self, number: int, path: Path, ledger: Ledger) -> None:
        super().__init__(name=f"poster{number}", daemon=True)
        self.is_ending = threading.Event()
        self.unacknowledged: dict[str, str] = {}  # the room of each id
        self._path = path
        self._ledger = ledger
        self._choose = random.Random(number)  # noqa: S311 - a test that can be repeated
        self._cursors = dict.fromkeys(ROOMS, 0)  # as acknowledged
        self._count = 0

    def run(self) -> None:
        try:
            while not self.is_ending.is_set() or self.unacknowledged:
                try:
                    with Raw(self._path, self.name) as raw:
                        self._talk(raw)
                except (OSError, EOFError):
                    self._ledger.counts["connections lost"] += 1
                    time.sleep(0.02)
        except BaseException as problem:  # a thread has nobody to raise to
            self._ledger.findings.append(f"{self.name}: {problem!r}")

    def _talk(self, raw: Raw) -> None:
        for room in ROOMS:
            self._ledger.joined(room, raw.ask("join", room=room), self._cursors[room])
        self._ledger.counts["posted again"] += len(self.unacknowledged)
        left = POSTS_PER_LIFE
        while self.unacknowledged or not self.is_ending.is_set():
            while len(self.unacknowledged) < WINDOW and left and not self.is_ending.is_set():
                self._count, left = self._count + 1, left - 1
                self.unacknowledged[f"{self.name}-{self._count}"] = self._choose.choice(ROOMS)
            asked = {
                raw.send("post", room=room, id=id_, text=f"text of {id_}"): (room, id_)
                for id_, room in self.unacknowledged.items()
            }
            for request_id, (room, id_) in asked.items():
                message = raw.reply(request_id)["message"]
                assert message["id"] == id_
                del self.unacknowledged[id_]
                self._ledger.acknowledge(room, message)
                self._moved(room, message["seq"])
            self._read(raw)
            raw.activity.clear()

    def _read(self, raw: Raw) -> None:
        room = self._choose.choice(ROOMS)
        if self._choose.random() < 0.5:
            self._moved(room, raw.ask("digest", room=room)["cursor"])
        else:
            self._moved(room, raw.ask("set_cursor", room=room, seq=self._choose.randint(0, 10**6))["seq"])

    def _moved(self, room: str, cursor: int) -> None:
        # An answer to an id that was known already moves nothing.
        self._cursors[room] = max(self._cursors[room], cursor)


@contextmanager
def starting(home: Path, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A broker that has just been started, and where it will say that it serves; killed at the end."""
    ready, writable = os.pipe()
    command = [sys.executable, "-m", "roundtable.serve", "--home", str(home), "--store", "sqlite"]
    try:
        with log.open("ab") as stderr:
            process = subprocess.Popen(
                [*command, "--grace", "60", "--ready-fd", str(writable)], pass_fds=(writable,), stderr=stderr
            )
        os.close(writable)
        with process:
            yield process, ready
            process.kill()
    finally:
        os.close(ready)


def look(path: Path, ledger: Ledger) -> None:
    """Compare all that the rooms hold with what was ever told of them."""
    with ledger.lock:
        acknowledged = dict(ledger.acknowledged)
    with Raw(path, "looker") as looker:
        rooms = {room["name"]: room for room in looker.ask("rooms")["rooms"]}
        for name in ROOMS:
            if acknowledged[name] > (rooms[name]["lastSeq"] if name in rooms else 0):
                ledger.findings.append(
                    f"message {acknowledged[name]} of room {name} was acknowledged, and is lost"
                )
            if name not in rooms:
                continue
            after = seen = max((seq for room, seq in list(ledger.ids) if room == name), default=0)
            after = max(0, after - 500)
            while (page := looker.ask("fetch", room=name, afterSeq=after, limit=500))["messages"]:
                if page["firstSeq"] > seen + 1:
                    ledger.findings.append(
                        f"room {name} has rotated past {seen + 1}: the test is too slow to tell"
                    )
                for message in page["messages"]:
                    if message["seq"] != after + 1 and after >= page["firstSeq"] - 1:
                        ledger.findings.append(f"message {after + 1} of room {name} is missing")
                    after = message["seq"]
                    ledger.found(name, message)
                ledger.counts["messages looked at"] += len(page["messages"])


@pytest.mark.timeout(60 + 5 * KILLS)
def test_what_was_acknowledged_outlives_every_kill(home: Path, tmp_path: Path) -> None:
    ledger, log = Ledger(), tmp_path / "log"
    path = home / "roundtable" / "broker.sock"
    choose = random.Random(1)  # noqa: S311 - a test that can be repeated
    posters = [Poster(number, path, ledger) for number in range(POSTERS)]
    for poster in posters:
        poster.start()
    for number in range(KILLS):
        with starting(home, log) as (process, ready):
            if number % EARLY == EARLY - 1:
                time.sleep(choose.uniform(0, START_SECONDS))
                ledger.counts["killed while starting"] += not select.select([ready], [], [], 0)[0]
                continue
            assert os.read(ready, 64) == b"ready\n"
            look(path, ledger)
            time.sleep(choose.uniform(0, LIFE_SECONDS))
            process.kill()
            ledger.counts["killed"] += 1
    with starting(home, log) as (_, ready):
        assert os.read(ready, 64) == b"ready\n"
        for poster in posters:
            poster.is_ending.set()
        for poster in posters:
            poster.join(SECONDS)
            assert not poster.is_alive()
        look(path, ledger)
    assert ledger.findings == []
    told = {id_ for poster in posters for id_ in (f"{poster.name}-{n}" for n in range(1, poster._count + 1))}
    assert set(ledger.places) == told
    assert "Traceback" not in log.read_text()
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".")] == []
    assert ledger.counts["connections lost"] > KILLS
    assert ledger.counts["posted again"] > 0
    print({**ledger.counts, "messages": len(told)})
