"""The append-only list of what happened in a run, and those who watch it grow.

The file is the truth: a change of state is on the disk before anything that follows from it begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from fleet.runs.events import Event, MemberAttempt, MemberSeated, Pinged, event_schema
from fleet.runs.folder import writing

__all__ = ["Journal", "event_schema", "timestamp"]

#: Losing these in a power cut loses no state, so they do not wait for the disk.
_UNSYNCED = (Pinged, MemberSeated, MemberAttempt)


def timestamp(moment: datetime | None = None) -> str:
    """ISO-8601 UTC with milliseconds; now if ``moment`` is ``None``."""
    return (moment or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal:
    """Writes ``events.jsonl`` of one run and hands each event to its watchers, in order."""

    def __init__(self, path: Path, watchers: tuple[Callable[[Event], None], ...] = ()) -> None:
        self._path = path
        self._watchers = watchers
        self._seq = 0
        self._synced = 0  # up to here the file is known to be on the disk
        self._syncing = anyio.Lock()
        self._encoder = msgspec.json.Encoder()
        with writing(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def append(self, *events: Event) -> None:
        """Write events of one moment, waiting for the disk once; their time and numbers are filled in here.

        Raises:
            StorageFailed: they could not be written; nothing of them is in the file.
        """
        numbered, before = self._write(events)
        if not all(isinstance(event, _UNSYNCED) for event in events):
            with writing(self._path):
                try:
                    os.fsync(self._descriptor)
                except OSError:
                    os.ftruncate(self._descriptor, before)
                    raise
            self._synced = self._seq + len(numbered)
        self._told(numbered)

    async def commit(self, *events: Event) -> None:
        """Write events and wait for the disk without holding up the others; those who wait together wait once.

        For many members that settle at the same time. Between the writing and the return the events are in the file
        and may be lost in a power cut.

        Raises:
            StorageFailed: they could not be written, or not be made durable.
        """
        numbered, _ = self._write(events)
        self._told(numbered)
        wanted = self._seq
        async with self._syncing:
            if self._synced >= wanted:
                return
            written = self._seq
            with writing(self._path):
                await anyio.to_thread.run_sync(os.fsync, self._descriptor)
            self._synced = max(self._synced, written)

    def _write(self, events: tuple[Event, ...]) -> tuple[list[Event], int]:
        """Write lines; the events as they stand there, and the size of the file before.

        Raises:
            StorageFailed: they could not be written; nothing of them is in the file.
        """
        moment = timestamp()
        numbered = [
            msgspec.structs.replace(event, ts=moment, seq=number)
            for number, event in enumerate(events, start=self._seq + 1)
        ]
        lines = b"".join(self._encoder.encode(event) + b"\n" for event in numbered)
        with writing(self._path):
            before = os.fstat(self._descriptor).st_size
            try:
                _write_all(self._descriptor, lines)
            except OSError:
                # Half a line would make the journal unreadable from here on.
                os.ftruncate(self._descriptor, before)
                raise
        return numbered, before

    def _told(self, numbered: list[Event]) -> None:
        self._seq += len(numbered)
        for event in numbered:
            for watch in self._watchers:
                watch(event)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
