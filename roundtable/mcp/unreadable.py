"""Requests that cannot be read are answered, so that no client waits in vain.

A string that was cut in the middle of a character, a number of thousands of digits or a list nested too deep is no
frame for the SDK, which would say nothing. Where not even an id can be told, nobody waits and nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Awaitable, Callable

import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

__all__ = ["pass_readable"]

#: The id of a request in text that need not be JSON: a number, or a short string without escapes.
_ID = re.compile(r'"id"\s*:\s*(?:(\d{1,18})(?!\d)|"([^"\\]{1,128})")')

_ADVICE = (
    "Parse error: this is no frame of the protocol. Text must be valid Unicode (a string that was cut in the middle of "
    "a character is not), and numbers and nesting of a sane size."
)


async def pass_readable(
    frames: AsyncIterable[SessionMessage | Exception],
    readable: MemoryObjectSendStream[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Hand on what can be read, and answer the rest, until there is no more."""
    async with readable:
        async for frame in frames:
            if not isinstance(frame, Exception):
                await readable.send(frame)
            elif (request_id := _request_id(frame)) is not None:
                error = types.ErrorData(code=types.PARSE_ERROR, message=_ADVICE)
                await answer(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))


def _request_id(problem: Exception) -> str | int | None:
    """The id that the frame named, as far as it can be told."""
    if not isinstance(problem, ValidationError):
        return None
    line = problem.errors(include_url=False, include_context=False)[0]["input"]
    if isinstance(line, dict):
        given = line.get("id")
        return given if isinstance(given, str | int) and not isinstance(given, bool) else None
    found = _ID.search(line) if isinstance(line, str) else None
    if found is None:
        return None
    return int(found[1]) if found[1] else found[2]
