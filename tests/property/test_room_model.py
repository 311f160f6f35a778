"""A room against the plainest model of one: a list of everything ever posted, and a dict of cursors."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from roundtable.message import Author, Message
from roundtable.room import Room

NAMES = ("ann", "bob", "eve")
KEPT = 7
KEPT_BYTES = 60


class RoomAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.room = Room(
            "r",
            epoch="e",
            encode=lambda message: b"%d" % message.seq,
            max_messages=KEPT,
            max_bytes=KEPT_BYTES,
        )
        self.said: list[Message] = []
        self.sizes: list[int] = []
        self.cursors = dict.fromkeys(NAMES, 0)
        for name in NAMES:
            self.room.join(Author(name, name), joined_at=0)

    @property
    def kept(self) -> list[Message]:
        """The newest that fit, and the newest in any case."""
        count, size = 0, 0
        for one in reversed(self.sizes):
            if count and (count == KEPT or size + one > KEPT_BYTES):
                break
            count, size = count + 1, size + one
        return self.said[len(self.said) - count :]

    def unread(self, after: int, without: str | None = None) -> list[int]:
        return [one.seq for one in self.kept if one.seq > after and one.author.name != without]

    @rule(name=st.sampled_from(NAMES), size=st.integers(1, 80))
    def post(self, name: str, size: int) -> None:
        behind = len(self.unread(self.cursors[name], name))
        posted = self.room.post(
            Author(name, name), "x" * size, id=f"i{len(self.said)}", timestamp=len(self.said), size=size
        )
        assert posted.unread_before == behind
        assert posted.message.seq == len(self.said) + 1
        self.said.append(posted.message)
        self.sizes.append(size)
        self.cursors[name] = posted.message.seq

    @rule(name=st.sampled_from(NAMES), seq=st.integers(-5, 60))
    def set_cursor(self, name: str, seq: int) -> None:
        self.cursors[name] = max(self.cursors[name], min(seq, len(self.said)))
        assert self.room.set_cursor(name, seq) == self.cursors[name]

    @rule(
        name=st.sampled_from(NAMES),
        after=st.none() | st.integers(-3, 60),
        is_others_only=st.booleans(),
        budget=st.integers(0, 500),
    )
    def digest(self, name: str, after: int | None, is_others_only: bool, budget: int) -> None:
        start = self.cursors[name] if after is None else max(0, after)
        wanted = self.unread(start, name if is_others_only else None)
        found = self.room.digest(name, after_seq=after, is_others_only=is_others_only, budget=budget)
        assert found.total == len(wanted)
        assert found.consumed_seq == (wanted[-1] if wanted else 0)
        shown = [int(seq) for seq in re.findall(r"^(?:\[.{5}\]|·) \w+#(\d+):", found.text, re.MULTILINE)]
        assert shown == wanted[found.collapsed :]
        if found.collapsed:
            limits = re.match(
                r"\(\d+ older messages? collapsed — fetch with afterSeq (\d+), limit (\d+) ", found.text
            )
            assert limits is not None
            page = self.room.after(int(limits[1]), limit=int(limits[2]), max_bytes=10**6)
            assert set(wanted[: found.collapsed]) <= {int(seq) for seq in page}
            assert not set(shown) & {int(seq) for seq in page}
        lost = re.search(r"(\d+)(?: older messages?)? no longer retained\)", found.text)
        oldest = self.kept[0].seq if self.kept else 1
        assert int(lost[1] if lost else 0) == max(0, min(oldest - 1, len(self.said)) - start)

    @rule(after=st.integers(-3, 60), limit=st.integers(1, 10))
    def fetch(self, after: int, limit: int) -> None:
        page = self.room.after(after, limit=limit, max_bytes=10**6)
        assert [int(seq) for seq in page] == self.unread(after)[:limit]

    @invariant()
    def what_is_known_agrees(self) -> None:
        info = self.room.info("late")
        assert info.message_count == len(self.kept)
        assert info.last_seq == len(self.said)
        assert info.first_seq == (self.kept[0].seq if self.kept else len(self.said) + 1)
        assert [self.room.unread(name) for name in NAMES] == [
            len(self.unread(self.cursors[name])) for name in NAMES
        ]


TestRoomAgainstModel = RoomAgainstModel.TestCase
