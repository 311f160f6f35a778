"""A person at a terminal in a room: what others say is shown as it comes, each line typed is posted.

What was shown counts as read. A broker that went away is reached again, and that is said; nothing typed is posted
twice. Not here: following without a seat (``roundtable tail``).
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import anyio
import anyio.lowlevel

from .client import Client, Joined, reach
from .errors import ConnectionLost, Refused
from .harmless import harmless_line
from .home import Home
from .texts import count, message_line

__all__ = ["sit"]

#: Messages shown on coming in, read before or not.
_FIRST_MESSAGES = 10

#: How long a broker started for a person outlives the last connection.
_GRACE_SECONDS = 600.0

#: Bytes read at once; a person types less, a pipe may bring more.
_READ_BYTES = 64 * 1024

_HELP = "/who lists who is here · /reply NAME#SEQ TEXT answers a message · //TEXT posts /TEXT · /quit or Ctrl-D leaves"


async def sit(home: Home, name: str, room: str, topic: str | None, write: Callable[[str], None]) -> None:
    """Join ``room`` as ``name`` and stay until standard input ends; ``write`` shows one line.

    Raises:
        RoundtableError: the room cannot be joined, or not any more.
    """
    chair = _Chair(home, name, room, write)
    await chair.enter(topic)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(chair.follow)
            async for line in _lines():
                if not await chair.type(line):
                    break
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):  # closing a socket waits for nobody
            await chair.client.aclose()


class _Chair:
    """One place in one room, over however many connections that takes."""

    client: Client

    def __init__(self, home: Home, name: str, room: str, write: Callable[[str], None]) -> None:
        self._home = home
        self._name = name
        self._room = room
        self._write = write
        self._epoch: str | None = None
        self._shown = 0
        self._entering = anyio.Lock()

    async def enter(self, topic: str | None = None) -> None:
        """Connect, join, and show the newest messages; or those not shown yet of the same room."""
        self.client = await reach(self._home, name=self._name, grace_seconds=_GRACE_SECONDS)
        joined = await self.client.join(self._room, topic)
        if joined.epoch != self._epoch:
            self._epoch, self._shown = joined.epoch, max(0, joined.last_seq - _FIRST_MESSAGES)
            self._greet(joined)
        await self._show()

    async def follow(self) -> None:
        """Show what others post, for ever."""
        while True:
            client = self.client
            try:
                await client.next_activity()
                client.take_activity()
                await self._show()
            except ConnectionLost:
                await self._enter_again(client)

    async def type(self, line: str) -> bool:
        """Do what one typed line says; ``False`` if that is to leave."""
        command, _, rest = line.partition(" ")
        if command == "/quit":
            return False
        if command == "/who":
            self._write(", ".join(sorted(await self._names())))
        elif command == "/reply" and " " in rest.strip():
            reply_to, _, text = rest.strip().partition(" ")
            await self._post(text, reply_to)
        elif line.startswith("/") and not line.startswith("//"):
            self._write(_HELP)
        elif line.strip():
            await self._post(line.removeprefix("/") if line.startswith("//") else line, None)
        return True

    async def _post(self, text: str, reply_to: str | None) -> None:
        # Made here, so that a repetition after a lost connection cannot say it twice.
        id_ = uuid4().hex
        while True:
            client = self.client
            try:
                await client.post(self._room, text, reply_to=reply_to, id=id_)
                return
            except Refused as problem:
                self._write(f"Not posted: {harmless_line(problem.message)}")
                return
            except ConnectionLost:
                await self._enter_again(client)

    async def _names(self) -> set[str]:
        while True:
            client = self.client
            try:
                joined = await client.join(self._room)
                return {member.name for member in joined.members}
            except ConnectionLost:
                await self._enter_again(client)

    async def _show(self) -> None:
        """Write what was posted since, but what was typed here, and count it as read."""
        while True:
            page = await self.client.fetch(self._room, self._shown, 500)
            if page.first_seq - 1 > self._shown:
                self._write(f"({count(page.first_seq - 1 - self._shown, 'message')} no longer retained)")
            for message in page.messages:
                if message.author.session_id != self.client.session_id:
                    self._write(message_line(message))
                self._shown = message.seq
            if not page.messages or self._shown >= page.last_seq:
                break
        await self.client.set_cursor(self._room, self._shown)

    async def _enter_again(self, lost: Client) -> None:
        async with self._entering:
            if self.client is not lost:
                return
            self._write("(the broker has gone; coming in again)")
            await self.enter()

    def _greet(self, joined: Joined) -> None:
        topic = f" — {harmless_line(joined.topic)}" if joined.topic else ""
        self._write(f"#{joined.room}{topic} · {count(len(joined.members), 'member')} · {_HELP}")


async def _lines() -> AsyncIterator[str]:
    """Lines of standard input, without blocking anything else; bytes that are no UTF-8 show as U+FFFD."""
    source = sys.stdin.buffer.raw if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pending = ""
    while True:
        try:
            await anyio.wait_readable(source.fileno())
        except PermissionError:
            # A regular file, which is always readable.
            await anyio.lowlevel.checkpoint()
        data = source.read(_READ_BYTES) or b""
        *lines, pending = (pending + decoder.decode(data, final=not data)).split("\n")
        for line in lines:
            yield line.removesuffix("\r")
        if not data:
            if pending:
                yield pending
            return
