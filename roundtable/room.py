"""One room: its ring of messages, sequence, members and cursors.

Pure: no clock, no I/O; times and ids are handed in. What others must be told is returned as ``Activity``.
Unread counts are arithmetic on sequence numbers, and what is left out of a digest is found by bisection, so
neither depends on how much a room holds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from msgspec import Struct

from .digest import Digest, digest
from .errors import Refused
from .message import Activity, Author, Member, Message, RoomInfo

__all__ = ["LEFT", "MAX_RETAINED_BYTES", "MAX_RETAINED_MESSAGES", "Posted", "Room", "RoomState"]

#: Messages a room keeps.
MAX_RETAINED_MESSAGES = 500

#: Bytes of UTF-8 text a room keeps, if that is less than 500 messages.
MAX_RETAINED_BYTES = 64 * 1024 * 1024

#: What the wire form of a message takes at most for a byte of its text, which is an escape, and around the text.
_MAX_ESCAPE_BYTES = 6
_AROUND_TEXT_BYTES = 1024

#: Who an activity is from when somebody left.
LEFT = "(left)"

_REFERENCE = re.compile(r"(?:(?P<name>[^#]+)#)?(?P<seq>[0-9]{1,18})")


class Posted(Struct, frozen=True, gc=False):
    """What a post did."""

    message: Message
    encoded: bytes
    unread_before: int  #: retained messages of others that moved behind the author's cursor
    is_new: (
        bool  #: ``False`` when the id was known and nothing was posted; otherwise the others are to be told
    )


class _Kept(Struct, frozen=True, gc=False):
    """A retained message, its wire form, and the bytes of its text."""

    message: Message
    encoded: bytes
    size: int


@dataclass(frozen=True, slots=True)
class RoomState:
    """What a room holds apart from its members, at one moment."""

    topic: str | None
    last_seq: int
    ring: tuple[_Kept, ...]
    cursors: Mapping[str, int]


class Room:
    """A named place with members, the newest messages, and a cursor per name.

    ``encode`` gives the wire form of a message; it is kept so that a message is encoded once.
    """

    def __init__(
        self,
        name: str,
        *,
        epoch: str,
        encode: Callable[[Message], bytes],
        max_messages: int = MAX_RETAINED_MESSAGES,
        max_bytes: int = MAX_RETAINED_BYTES,
    ) -> None:
        self.name = name
        self.epoch = epoch
        self.topic: str | None = None
        self.last_seq = 0
        self.members: dict[str, Member] = {}
        self._encode = encode
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._ring: deque[_Kept] = deque()
        self._encoded: deque[bytes] = deque()  # of the ring, so that a page is taken in one step
        self._bytes = 0
        self._by_id: dict[str, _Kept] = {}
        self._seqs_by_name: dict[str, deque[int]] = {}
        self._cursors: dict[str, int] = {}
        self._sessions_by_name: Counter[str] = Counter()
        self._quiet: set[str] = set()

    @property
    def first_seq(self) -> int:
        """The oldest retained message; ``last_seq + 1`` when there is none."""
        return self.last_seq - len(self._ring) + 1

    @property
    def is_disposable(self) -> bool:
        """Whether nobody is here and nothing ever was said."""
        return not self.members and not self.last_seq

    def cursor(self, name: str) -> int:
        """How far ``name`` has read; 0 for who never was here."""
        return self._cursors.get(name, 0)

    def unread(self, name: str) -> int:
        """Retained messages after the cursor of ``name``."""
        return self.last_seq - self._start(self.cursor(name))

    def info(self, name: str) -> RoomInfo:
        """The room as ``name`` sees it."""
        return RoomInfo(
            name=self.name,
            topic=self.topic,
            epoch=self.epoch,
            members=tuple(self.members.values()),
            message_count=len(self._ring),
            first_seq=self.first_seq,
            last_seq=self.last_seq,
            last_activity=self._ring[-1].message.timestamp if self._ring else None,
            unread=self.unread(name),
        )

    def shared_with(self, author: Author) -> int:
        """How many other members sit here under the author's name, and so share its cursor."""
        return self._sessions_by_name[author.name] - (author.session_id in self.members)

    def join(
        self, author: Author, *, joined_at: int, topic: str | None = None, is_quiet: bool = False
    ) -> Activity | None:
        """Make ``author`` a member; ``None`` if it was one or nobody is to be told of its coming and going.

        A topic is taken only where there is none.
        """
        if topic is not None and self.topic is None:
            self.topic = topic
        if author.session_id in self.members:
            return None
        self.members[author.session_id] = Member(author.session_id, author.name, joined_at)
        self._sessions_by_name[author.name] += 1
        if is_quiet:
            self._quiet.add(author.session_id)
            return None
        return Activity(self.name, author.name, 0)

    def leave(self, session_id: str) -> Activity | None:
        """End a membership; ``None`` if there was none to tell of. The cursor stays."""
        member = self.members.pop(session_id, None)
        if member is None:
            return None
        self._sessions_by_name[member.name] -= 1
        if not self._sessions_by_name[member.name]:
            del self._sessions_by_name[member.name]
        if session_id in self._quiet:
            self._quiet.remove(session_id)
            return None
        return Activity(self.name, LEFT, 0)

    def post(
        self,
        author: Author,
        text: str,
        *,
        id: str,  # noqa: A002 - the word of the wire
        timestamp: int,
        size: int,
        reply_to: str | int | None = None,
    ) -> Posted:
        """Append a message of ``size`` bytes of text and move its author's cursor to it.

        An ``id`` that a retained message has posts nothing and returns that message.

        Raises:
            Refused: ``not-a-member``; ``bad-request`` for the ``id`` of somebody else's message; ``unknown-reply`` if
                ``reply_to`` names nothing retained.
        """
        if author.session_id not in self.members:
            raise Refused("not-a-member", f'Not a member of room "{self.name}"; join it first')
        known = self._by_id.get(id)
        if known is not None:
            if known.message.author.name != author.name:
                raise Refused("bad-request", "id: a message of somebody else has it; make another")
            return Posted(known.message, known.encoded, 0, is_new=False)
        reference = None if reply_to is None else self._reference(reply_to)

        name, seq = author.name, self.last_seq + 1
        cursor = self._cursors.get(name, 0)
        unread_before = 0 if cursor == self.last_seq else self._others_after(self._start(cursor), name)
        message = Message(id, seq, timestamp, self.name, author, text, reference)
        encoded = self._encode(message)
        self._append(_Kept(message, encoded, size))
        self._cursors[name] = seq
        return Posted(message, encoded, unread_before, is_new=True)

    def restore(self, message: Message, *, size: int) -> None:
        """Append a message that a store has kept, with the sequence number it had."""
        self.last_seq = message.seq - 1
        self._append(_Kept(message, self._encode(message), size))

    def state(self) -> RoomState:
        """What this room holds now, to be gone back to."""
        return RoomState(self.topic, self.last_seq, tuple(self._ring), dict(self._cursors))

    def go_back(self, state: RoomState) -> None:
        """Hold again what this room held at ``state``; members stay as they are."""
        self.topic = state.topic
        self._cursors = dict(state.cursors)
        self._ring.clear()
        self._encoded.clear()
        self._by_id.clear()
        self._seqs_by_name.clear()
        self._bytes = 0
        self.last_seq = state.last_seq
        for kept in state.ring:
            self._append(kept)

    def set_cursor(self, name: str, seq: int) -> int:
        """Move the cursor of ``name`` forward to ``seq``, never back and never past the end; return it."""
        cursor = max(self.cursor(name), min(seq, self.last_seq))
        if cursor:
            self._cursors[name] = cursor
        return cursor

    def after(self, seq: int, *, limit: int, max_bytes: int) -> list[bytes]:
        """The wire forms of retained messages after ``seq``, oldest first, at most ``limit``.

        They take at most ``max_bytes`` together, but the first is always among them.
        """
        skip = self._start(seq) - self.first_seq + 1
        found = list(islice(self._encoded, skip, skip + limit))
        # Mostly all of them surely fit, and adding them up would take as long as taking them.
        if self._bytes * _MAX_ESCAPE_BYTES + len(found) * _AROUND_TEXT_BYTES <= max_bytes:
            return found
        left = max_bytes
        for number, encoded in enumerate(found):
            left -= len(encoded) + 1
            if left < 0 and number:
                return found[:number]
        return found

    def digest(
        self,
        name: str,
        *,
        after_seq: int | None = None,
        is_others_only: bool = False,
        budget: int | None = None,
        per_message: int | None = None,
    ) -> Digest:
        """What ``name`` has not read, or what lies after ``after_seq``; moves no cursor."""
        asked = self.cursor(name) if after_seq is None else max(0, after_seq)
        start = self._start(asked)
        total = self._others_after(start, name) if is_others_only else self.last_seq - start
        return digest(
            self._newest_first(start, name if is_others_only else None),
            total=total,
            after_seq=start,
            no_longer_retained=max(0, start - asked),
            budget=budget,
            per_message=per_message,
        )

    def _start(self, seq: int) -> int:
        """The number after which everything is retained, not before ``seq`` and within the room."""
        return max(min(seq, self.last_seq), self.first_seq - 1)

    def _others_after(self, start: int, name: str) -> int:
        own = self._seqs_by_name.get(name)
        # An author has read past its own posts, so that mostly there are none to find.
        if not own or own[-1] <= start:
            return self.last_seq - start
        return self.last_seq - start - (len(own) - bisect_right(own, start))

    def _newest_first(self, start: int, without: str | None) -> Iterator[Message]:
        for kept in reversed(self._ring):
            if kept.message.seq <= start:
                return
            if kept.message.author.name != without:
                yield kept.message

    def _reference(self, reply_to: str | int) -> str:
        """``name#seq`` of the retained message that an id, ``name#seq`` or ``seq`` names."""
        text = str(reply_to)
        # Numbers first: an id is made by its author, who must not be able to take over another's number.
        parts = _REFERENCE.fullmatch(text)
        kept = None
        if parts:
            index = int(parts["seq"]) - self.first_seq
            if 0 <= index < len(self._ring):
                kept = self._ring[index]
                if parts["name"] is not None and parts["name"] != kept.message.author.name:
                    kept = None
        kept = kept or self._by_id.get(text)
        if kept is None:
            raise Refused("unknown-reply", f'replyTo names no message that room "{self.name}" retains')
        return f"{kept.message.author.name}#{kept.message.seq}"

    def _append(self, kept: _Kept) -> None:
        message, ring = kept.message, self._ring
        ring.append(kept)
        self._encoded.append(kept.encoded)
        self.last_seq = message.seq
        self._bytes += kept.size
        self._by_id[message.id] = kept
        name = message.author.name
        seqs = self._seqs_by_name.get(name)
        if seqs is None:
            seqs = self._seqs_by_name[name] = deque()
        seqs.append(message.seq)
        while len(ring) > self._max_messages or (self._bytes > self._max_bytes and len(ring) > 1):
            oldest = ring.popleft()
            self._encoded.popleft()
            message = oldest.message
            self._bytes -= oldest.size
            del self._by_id[message.id]
            seqs = self._seqs_by_name[message.author.name]
            seqs.popleft()
            if not seqs:
                del self._seqs_by_name[message.author.name]
