"""Rooms that outlive their broker: messages, sequence numbers, cursors and topics in one SQLite file.

The rooms themselves are held in memory as ever. The file is read once, at the start, and written once per turn of the
broker: all changes of a turn are one transaction and one fsync, so that what was acknowledged is there after a
``kill -9``. Memberships are not kept; a room is kept from its first post on. What rotated out of a room leaves the
file in the transaction that rotated it.

Not here: what makes a file ours, whole and nobody else's (``database_file``).
"""

from __future__ import annotations

import sqlite3
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from ..errors import NotStored
from ..message import Author, Message
from ..names import is_member_name, is_room_name, is_topic
from ..room import Room, RoomState
from ..store import MAX_ROOMS, MemoryStore
from .database_file import Damaged, DatabaseFile, told_of

__all__ = ["SqliteStore"]

#: A file of other tables is not touched.
_VERSION = 1

_TABLES = """
CREATE TABLE rooms (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    epoch TEXT NOT NULL,
    topic TEXT
);
CREATE TABLE messages (
    room INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    reply_to TEXT,
    PRIMARY KEY (room, seq)
) WITHOUT ROWID;
CREATE TABLE cursors (
    room INTEGER NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (room, name)
) WITHOUT ROWID;
"""

_Positive = Annotated[int, Meta(ge=1)]

_RowT = TypeVar("_RowT", bound=NamedTuple)


class _RoomRow(NamedTuple):
    id: int
    name: str
    epoch: str
    topic: str | None


class _MessageRow(NamedTuple):
    room: int
    seq: _Positive
    id: Annotated[str, Meta(min_length=1)]
    timestamp: int
    session_id: str
    author: str
    text: str
    reply_to: str | None


class _CursorRow(NamedTuple):
    room: int
    name: str
    seq: _Positive


class SqliteStore(MemoryStore):
    """Rooms in memory, and in the file at ``path`` what of them must outlive the broker.

    Raises:
        StoreUnavailable: the file cannot be used; it was left as it is.
    """

    is_durable: ClassVar[bool] = True

    def __init__(self, path: Path, encode: Callable[[Message], bytes], *, max_rooms: int = MAX_ROOMS) -> None:
        super().__init__(encode, max_rooms=max_rooms)
        self.path = path
        self._ids: dict[Room, int] = {}  # of the rooms that are in the file
        self._before: dict[Room, RoomState] = {}
        self._posted: list[tuple[Room, Message]] = []
        self._cursors: set[tuple[Room, str]] = set()
        self._topics: set[Room] = set()
        with told_of(path):
            file = DatabaseFile(path, tables=_TABLES, version=_VERSION)
            with closing(file.open_to_read()) as database:
                self._load(database)
            self._database = file.open_to_write()

    def before_change(self, room: Room) -> None:
        """``room`` is about to change; what it holds now is what it goes back to if that cannot be stored."""
        if room not in self._before:
            self._before[room] = room.state()

    def posted(self, room: Room, message: Message) -> None:
        """``message`` was appended to ``room``, and its author's cursor moved to it."""
        self._posted.append((room, message))
        self._cursors.add((room, message.author.name))

    def cursor_moved(self, room: Room, name: str) -> None:
        """The cursor of ``name`` moved without a post."""
        self._cursors.add((room, name))

    def topic_set(self, room: Room) -> None:
        """The room got its topic. One in which nothing was said yet is written with its first post."""
        self._topics.add(room)

    def commit(self) -> None:
        """Make all changes since the last time durable, together."""
        try:
            if self._posted or self._cursors or self._topics:
                self._ids |= self._write()
        except Exception as problem:  # whatever it was: what is not in the file must not be told
            for room, state in self._before.items():
                room.go_back(state)
            raise NotStored(self.path, str(problem)) from problem
        finally:
            self._before = {}
            self._posted, self._cursors, self._topics = [], set(), set()

    def close(self) -> None:
        """Let go of the file; what was not committed is forgotten."""
        # A log that could not be put into the file now is read at the next start.
        with suppress(sqlite3.Error):
            self._database.close()

    def _write(self) -> dict[Room, int]:
        """Write one transaction; give the numbers of rooms that are new in the file.

        One that fails is taken back when the next is begun, or by closing: nothing reads the file meanwhile.
        """
        database = self._database
        if database.in_transaction:  # what is left of a turn that failed
            database.execute("ROLLBACK")
        database.execute("BEGIN IMMEDIATE")
        made: dict[Room, int] = {}
        for room, _ in self._posted:
            if room not in self._ids and room not in made:
                made[room] = self._insert_room(room)
        ids = ChainMap(made, self._ids)
        database.executemany(
            "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    ids[room],
                    message.seq,
                    message.id,
                    message.timestamp,
                    message.author.session_id,
                    message.author.name,
                    message.text,
                    message.reply_to,
                )
                for room, message in self._posted
                if message.seq >= room.first_seq
            ),
        )
        database.executemany(
            "DELETE FROM messages WHERE room = ? AND seq < ?",
            ((ids[room], room.first_seq) for room in {room for room, _ in self._posted}),
        )
        database.executemany(
            "REPLACE INTO cursors VALUES (?, ?, ?)",
            ((ids[room], name, room.cursor(name)) for room, name in self._cursors if room.cursor(name)),
        )
        database.executemany(
            "UPDATE rooms SET topic = ? WHERE id = ?",
            ((room.topic, ids[room]) for room in self._topics if room in ids),
        )
        database.execute("COMMIT")
        return made

    def _insert_room(self, room: Room) -> int:
        cursor = self._database.execute(
            "INSERT INTO rooms (name, epoch, topic) VALUES (?, ?, ?)", (room.name, room.epoch, room.topic)
        )
        assert cursor.lastrowid is not None  # noqa: S101 - an INSERT of one row has one
        return cursor.lastrowid

    def _load(self, database: sqlite3.Connection) -> None:
        """Fill the rooms; every row must make sense.

        Raises:
            Damaged: one does not.
        """
        by_id: dict[int, Room] = {}
        for row in _rows(database, "rooms", _RoomRow, order="id"):
            if not is_room_name(row.name) or row.name in self._rooms or not row.epoch:
                raise Damaged(f"room {row.id} cannot be")
            if row.topic is not None and not is_topic(row.topic):
                raise Damaged(f'the topic of room "{row.name}" cannot be')
            room = Room(row.name, epoch=row.epoch, encode=self._encode)
            room.topic = row.topic
            by_id[row.id] = self._rooms[row.name] = room
        ids: set[str] = set()
        previous: Room | None = None
        for message in _rows(database, "messages", _MessageRow, order="room, seq"):
            room = _owner(by_id, message.room)
            if room is not previous:
                previous, ids = room, set()
            elif message.seq != room.last_seq + 1:
                raise Damaged(f'room "{room.name}" misses what was before message {message.seq}')
            if message.id in ids or not is_member_name(message.author):
                raise Damaged(f'message {message.seq} of room "{room.name}" cannot be')
            ids.add(message.id)
            author = Author(message.session_id, message.author)
            room.restore(
                Message(
                    message.id,
                    message.seq,
                    message.timestamp,
                    room.name,
                    author,
                    message.text,
                    message.reply_to,
                ),
                size=len(message.text.encode()),
            )
        for room in by_id.values():
            if not room.last_seq:
                raise Damaged(f'room "{room.name}" has lost its messages')
        for cursor in _rows(database, "cursors", _CursorRow, order="room, name"):
            room = _owner(by_id, cursor.room)
            if not is_member_name(cursor.name) or room.set_cursor(cursor.name, cursor.seq) != cursor.seq:
                raise Damaged(f'a cursor in room "{room.name}" cannot be')
        self._ids = {room: number for number, room in by_id.items()}


def _rows(database: sqlite3.Connection, table: str, kind: type[_RowT], *, order: str) -> Iterator[_RowT]:
    """The rows of a table, their types looked at: SQLite itself takes any value in any column."""
    columns = ", ".join(kind._fields)
    for row in database.execute(f"SELECT {columns} FROM {table} ORDER BY {order}"):  # noqa: S608 - names of ours
        try:
            yield msgspec.convert(row, kind)
        except msgspec.ValidationError as problem:
            raise Damaged(f"a row of {table}: {problem}") from None


def _owner(by_id: dict[int, Room], number: int) -> Room:
    room = by_id.get(number)
    if room is None:
        raise Damaged(f"room {number} is missing")
    return room
