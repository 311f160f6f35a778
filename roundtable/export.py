"""A room written to a file of the memory folder: lossless, whole or not at all, and never outside ``raw/``.

The room is taken page by page as it stood when the first page came: what is posted meanwhile is not in the file, and
what rotates out meanwhile is counted. No cursor moves. How the file is reached without following a link, and replaced
as a whole: ``memory.folder``.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from os import fsync
from pathlib import Path
from typing import BinaryIO

import anyio

from .client import Client
from .errors import MalformedFrame, MemoryFailed
from .harmless import harmless_line
from .memory.folder import WRITE_LOCK, WRITE_SECONDS, Folder, raw_parts
from .memory.history import commit, is_repository
from .memory.place import Place
from .message import Message
from .texts import count
from .transcript import json_line, text_line

__all__ = ["Exported", "check_path", "export", "exported_text"]

#: Messages of one request; the broker gives fewer when they are long.
_PAGE_MESSAGES = 500

#: What begins the messages about paths.
_WHAT = "Export"


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    path: Path  #: absolute
    messages: int
    chars: int  #: of the file
    first_seq: int  #: 0 when there was no message
    last_seq: int  #: 0 when there was no message
    dropped_before: int  #: older messages that the room no longer retained
    dropped_during: int = (
        0  #: of the messages retained at the beginning, those that rotated out before their page
    )
    notice: str | None = None  #: what else the caller should be told


def check_path(place: Place, path: str) -> None:
    """Look whether ``path`` may be written; asks no broker and makes nothing.

    Raises:
        UsageProblem: it may not; the message says which rule.
        MemoryFailed: the memory folder cannot be opened.
    """
    parts = raw_parts(path, _WHAT)
    try:
        with Folder.opened(place.folder, is_made=False) as folder:
            folder.check(parts, _WHAT)
    except FileNotFoundError:
        return  # it is made with the first file


async def export(client: Client, room: str, path: str, *, place: Place, epoch: str | None = None) -> Exported:
    """Write all that ``room`` retains to ``path`` below the memory folder: JSON lines for ``.jsonl``, else text.

    Raises:
        UsageProblem: ``path`` may not be written.
        RoundtableError: the broker refused or went away, or the file cannot be written; what was there stays.
    """
    parts = raw_parts(path, _WHAT)
    name = "/".join(parts)
    with Folder.opened(place.folder, is_made=True) as folder:
        folder.check(parts, _WHAT)
        page = await client.fetch(room, 0, _PAGE_MESSAGES, epoch=epoch)
        with folder.replacing(name, _WHAT) as file:
            written = _Written(file, is_json=name.endswith(".jsonl"))
            first, last = page.first_seq, page.last_seq
            while True:
                await anyio.to_thread.run_sync(written.add, [m for m in page.messages if m.seq <= last])
                seq = page.messages[-1].seq if page.messages else last
                if seq >= last:
                    break
                page = await client.fetch(room, seq, _PAGE_MESSAGES, epoch=epoch)
                if page.messages and page.messages[0].seq <= seq:
                    raise MalformedFrame(
                        f"message {page.messages[0].seq} came although those after {seq} were asked"
                    )
            # Here rather than on leaving, where it would hold up everybody else in this loop.
            await anyio.to_thread.run_sync(written.sync)
        notice = await _commit(
            folder, name, f"export #{room} to {name}: {count(written.messages, 'message')}"
        )
        return Exported(
            path=folder.path / name,
            messages=written.messages,
            chars=written.chars,
            first_seq=written.first_seq,
            last_seq=written.last_seq,
            dropped_before=first - 1,
            dropped_during=last - first + 1 - written.messages,
            notice=notice,
        )


def exported_text(exported: Exported, room: str) -> str:
    """What was exported, in counts; never a word of the transcript."""
    text = (
        f"Exported {count(exported.messages, 'retained message')} from #{room} to "
        f"{harmless_line(str(exported.path))} ({count(exported.chars, 'char')})."
    )
    if exported.dropped_before:
        text += f" {_older(exported.dropped_before)} no longer retained."
    if exported.dropped_during:
        text += f" {_older(exported.dropped_during)} pushed out by new ones during the export."
    return f"{text} {exported.notice}" if exported.notice else text


class _Written:
    """What has gone into the file so far."""

    def __init__(self, file: BinaryIO, *, is_json: bool) -> None:
        self.messages = 0
        self.chars = 0
        self.first_seq = 0
        self.last_seq = 0
        self._file = file
        self._line = json_line if is_json else text_line

    def add(self, messages: list[Message]) -> None:
        """Append messages.

        Raises:
            MalformedFrame: one that no broker of this protocol sends.
            OSError: the disk takes no more.
        """
        for message in messages:
            try:
                line = self._line(message)
                data = line.encode()
            except ValueError as problem:
                raise MalformedFrame(str(problem)) from problem
            self._file.write(data)
            self.messages += 1
            self.chars += len(line)
            self.first_seq = self.first_seq or message.seq
            self.last_seq = message.seq

    def sync(self) -> None:
        """Have all of it on the disk."""
        self._file.flush()
        fsync(self._file.fileno())


async def _commit(folder: Folder, name: str, message: str) -> str | None:
    """Commit the file, one writer at a time; a sentence if that did not work."""
    if not is_repository(folder):
        return None
    try:
        with ExitStack() as stack:
            lock = folder.locked(WRITE_LOCK, seconds=WRITE_SECONDS)
            await anyio.to_thread.run_sync(stack.enter_context, lock)
            return await commit(folder, [name], message)
    except MemoryFailed as problem:
        return f"Not committed: {problem.message}; the file is written."


def _older(number: int) -> str:
    return f"{count(number, 'older message')} {'was' if number == 1 else 'were'}"
