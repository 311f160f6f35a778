"""Frames and protocol messages: bytes in, values out; no I/O.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON. The contract is
``docs/reference/wire.md``; ``schema`` gives it as JSON Schema. Lists of messages are encoded from messages that
were encoded before, so that a body is turned into JSON once however often it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct as Layout
from typing import Annotated, Any, NoReturn, TypeAlias

import msgspec
from msgspec import Meta, Struct

from .digest import Digest
from .errors import FrameTooLarge, MalformedFrame, Refused
from .message import Activity, Member, Message, RoomInfo

__all__ = [
    "DEFAULT_FETCH_LIMIT",
    "HEADER_BYTES",
    "MAX_FETCH_BYTES",
    "MAX_FRAME_BYTES",
    "MAX_TEXT_BYTES",
    "PROTOCOL",
    "CursorSetReply",
    "DigestRequest",
    "DigestedReply",
    "ErrorReply",
    "FetchRequest",
    "FrameDecoder",
    "JoinRequest",
    "JoinedReply",
    "LeaveRequest",
    "LeftReply",
    "MessagesReply",
    "PostRequest",
    "PostedReply",
    "RefusedRequest",
    "RegisterRequest",
    "RegisteredReply",
    "Reply",
    "Request",
    "ReserveRequest",
    "ReservedReply",
    "RoomsReply",
    "RoomsRequest",
    "SetCursorRequest",
    "activity_frames",
    "decode_reply",
    "decode_request",
    "encode",
    "encode_digested",
    "encode_joined",
    "encode_message",
    "encode_messages",
    "encode_posted",
    "encode_rooms",
    "frame",
    "schema",
    "to_room_info",
]

#: The version in ``register`` and ``registered``.
PROTOCOL = 1

HEADER_BYTES = 4

#: A frame's body. Checked on the header, before anything of the body is kept.
MAX_FRAME_BYTES = 8 * 1024 * 1024

#: The text of one message in UTF-8.
MAX_TEXT_BYTES = 6 * 1024 * 1024

#: Messages of one fetch, encoded; leaves room in a frame for what is around them.
MAX_FETCH_BYTES = 7 * 1024 * 1024

#: Messages of a fetch that does not say how many.
DEFAULT_FETCH_LIMIT = 200

_HEADER = Layout(">I")

_POSTED = b'{"type":"posted","requestId":%b,"unreadBefore":%d,"message":%b}'

RequestId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
MemberName: TypeAlias = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "maxLength": 64})
]
RoomName: TypeAlias = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", "maxLength": 64})
]
Topic: TypeAlias = Annotated[str, Meta(extra_json_schema={"maxLength": 200})]
Secret: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256)]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=500)]


class _Wire(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", omit_defaults=True):
    """What all messages share: camelCase keys, tagged by ``type``, nothing sent that is absent.

    ``frozen`` and ``kw_only`` are said again below each: type checkers do not inherit them.
    """


class _Value(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a message."""


class RoomBody(_Value, frozen=True, kw_only=True):
    """A room as the asking name sees it."""

    name: str
    topic: str | None = None
    epoch: str
    members: list[Member]
    message_count: int
    first_seq: int
    last_seq: int
    last_activity: int | None = None
    unread: int


class RegisterRequest(_Wire, frozen=True, kw_only=True, tag="register"):
    """The first request of a connection."""

    name: MemberName
    pid: int | None = None
    cwd: str | None = None
    protocol: int | None = None
    secret: Secret | None = None
    request_id: RequestId | None = None


class RoomsRequest(_Wire, frozen=True, kw_only=True, tag="rooms"):
    """List the rooms."""

    request_id: RequestId


class JoinRequest(_Wire, frozen=True, kw_only=True, tag="join"):
    """Become a member; ``quiet`` tells nobody, for who only comes to post and leave."""

    request_id: RequestId
    room: RoomName
    topic: Topic | None = None
    epoch: str | None = None
    quiet: bool | None = None


class LeaveRequest(_Wire, frozen=True, kw_only=True, tag="leave"):
    """End a membership."""

    request_id: RequestId
    room: RoomName


class PostRequest(_Wire, frozen=True, kw_only=True, tag="post"):
    """Say something."""

    request_id: RequestId
    room: RoomName
    text: Annotated[str, Meta(min_length=1)]
    reply_to: str | int | None = None
    id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    epoch: str | None = None


class FetchRequest(_Wire, frozen=True, kw_only=True, tag="fetch"):
    """Read whole messages."""

    request_id: RequestId
    room: RoomName
    after_seq: int
    limit: Limit | None = None
    epoch: str | None = None


class SetCursorRequest(_Wire, frozen=True, kw_only=True, tag="set_cursor"):
    """Move the cursor forward."""

    request_id: RequestId
    room: RoomName
    seq: int
    epoch: str | None = None


class DigestRequest(_Wire, frozen=True, kw_only=True, tag="digest"):
    """Read what is new within a budget."""

    request_id: RequestId
    room: RoomName
    budget: int | None = None
    per_message: int | None = None
    peek: bool | None = None
    after_seq: int | None = None
    others: bool | None = None
    epoch: str | None = None


class ReserveRequest(_Wire, frozen=True, kw_only=True, tag="reserve"):
    """Keep names in a room for sessions that registered with a secret."""

    request_id: RequestId
    room: RoomName
    names: Annotated[list[MemberName], Meta(min_length=1, max_length=500)]
    secret: Secret


Request: TypeAlias = (
    RegisterRequest
    | RoomsRequest
    | JoinRequest
    | LeaveRequest
    | PostRequest
    | FetchRequest
    | SetCursorRequest
    | DigestRequest
    | ReserveRequest
)


class RegisteredReply(_Wire, frozen=True, kw_only=True, tag="registered"):
    """The connection has a session."""

    request_id: str | None = None
    session_id: str
    broker: str
    protocol: int


class RoomsReply(_Wire, frozen=True, kw_only=True, tag="rooms"):
    """All rooms."""

    request_id: str
    rooms: list[RoomBody]


class JoinedReply(_Wire, frozen=True, kw_only=True, tag="joined"):
    """The session is a member."""

    request_id: str
    room: str
    topic: str | None = None
    epoch: str
    cursor: int
    last_seq: int
    unread: int
    shared_with: int
    members: list[Member]


class LeftReply(_Wire, frozen=True, kw_only=True, tag="left"):
    """The session is no member."""

    request_id: str
    room: str


class PostedReply(_Wire, frozen=True, kw_only=True, tag="posted"):
    """The message as it was posted."""

    request_id: str
    unread_before: int
    message: Message


class MessagesReply(_Wire, frozen=True, kw_only=True, tag="messages"):
    """Whole messages, oldest first. ``messages`` is the last key; ``encode_messages`` depends on it."""

    request_id: str
    room: str
    first_seq: int
    last_seq: int
    cursor: int
    messages: list[Message]


class CursorSetReply(_Wire, frozen=True, kw_only=True, tag="cursor_set"):
    """Where the cursor is now."""

    request_id: str
    room: str
    seq: int


class DigestedReply(_Wire, frozen=True, kw_only=True, tag="digested"):
    """A digest and where it stands."""

    request_id: str
    room: str
    total: int
    verbatim: int
    headlines: int
    collapsed: int
    chars: int
    consumed_seq: int
    cursor: int
    first_seq: int
    last_seq: int
    text: str


class ReservedReply(_Wire, frozen=True, kw_only=True, tag="reserved"):
    """The names are kept."""

    request_id: str
    room: str
    names: list[str]


class ErrorReply(_Wire, frozen=True, kw_only=True, tag="error"):
    """A request was refused. ``code`` is stable, ``error`` is for people."""

    request_id: str | None = None
    code: str
    error: str


Reply: TypeAlias = (
    RegisteredReply
    | RoomsReply
    | JoinedReply
    | LeftReply
    | PostedReply
    | MessagesReply
    | CursorSetReply
    | DigestedReply
    | ReservedReply
    | Activity
    | ErrorReply
)

_ENCODER = msgspec.json.Encoder()

#: A message as it is part of other messages; the encoder's own method, since every post goes through it.
encode_message: Callable[[Message], bytes] = _ENCODER.encode

_REQUEST: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_REPLY: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in Request.__args__)


class FrameDecoder:
    """Cuts a byte stream into frame bodies; any split and any merge is fine."""

    def __init__(self, *, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._needed = HEADER_BYTES

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[memoryview]:
        """Take ``data`` and give the bodies that are complete, each valid until the next is asked for.

        Raises:
            FrameTooLarge: a header announces more than the cap; frames before it were given.
        """
        if self._pending:
            self._pending += data
            if len(self._pending) < self._needed:
                return
            data, self._pending = self._pending, bytearray()
        view = memoryview(data)
        size, max_bytes = len(view), self._max_bytes
        self._needed = HEADER_BYTES
        at, start = 0, HEADER_BYTES
        while start <= size:
            (length,) = _HEADER.unpack_from(view, at)
            if length > max_bytes:
                raise FrameTooLarge(length, max_bytes)
            end = start + length
            if end > size:
                self._needed = HEADER_BYTES + length
                break
            yield view[start:end]
            at, start = end, end + HEADER_BYTES
        if at < size:
            self._pending = bytearray(view[at:])


def frame(body: bytes) -> bytes:
    """One frame around ``body``."""
    return _HEADER.pack(len(body)) + body


def decode_request(body: bytes | memoryview) -> Request:
    """The request in a frame.

    Raises:
        MalformedFrame: not one JSON object.
        RefusedRequest: an object that is no request; carries the request's id.
    """
    try:
        request = _REQUEST.decode(body)
        str(body, "utf-8")  # the decoder passes over what it does not need, valid or not
        return request
    except UnicodeDecodeError as problem:
        raise MalformedFrame(str(problem)) from None
    except msgspec.ValidationError as problem:
        raise _refusal(body, str(problem)) from None
    except (msgspec.DecodeError, RecursionError):
        # JSON that is well formed and cannot be taken (half of a surrogate pair) is the request's fault only.
        raise _refusal(body, "text that is not valid Unicode") from None


def decode_reply(body: bytes | memoryview) -> Reply:
    """The reply or event in a frame.

    Raises:
        MalformedFrame: not a reply of this protocol.
    """
    try:
        return _REPLY.decode(body)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise MalformedFrame(str(problem)) from None


class RefusedRequest(Refused):
    """A frame that is an object and no request; ``request_id`` is the one to echo, if it has one."""

    def __init__(self, code: str, message: str, request_id: str | None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


def encode(message: Struct) -> bytes:
    """The body of a frame with ``message``."""
    return _ENCODER.encode(message)


def activity_frames(room: str, author: str, seqs: Sequence[int]) -> list[bytes]:
    """A whole frame for each of ``seqs``, in order.

    Not made by the encoder: what is the same in all is made once, which takes a tenth of the time. No name needs
    escapes.
    """
    same = f'{{"type":"activity","room":"{room}","from":"{author}","seq":'.encode()
    head, length, frames = b"", 0, []
    for seq in seqs:
        rest = b"%d}" % seq
        if len(rest) != length:
            length = len(rest)
            head = _HEADER.pack(len(same) + length) + same
        frames.append(head + rest)
    return frames


def encode_posted(request_id: str, encoded: bytes, unread_before: int) -> bytes:
    """The body of a ``posted`` around an encoded message. Put together by hand in half the encoder's time."""
    return _POSTED % (_ENCODER.encode(request_id), unread_before, encoded)


def encode_messages(
    request_id: str, room: str, *, first_seq: int, last_seq: int, cursor: int, encoded: Sequence[bytes]
) -> tuple[bytes, bytes, bytes]:
    """The body of a ``messages`` in three parts, so that the large one is put together once."""
    empty = _ENCODER.encode(
        MessagesReply(
            request_id=request_id,
            room=room,
            first_seq=first_seq,
            last_seq=last_seq,
            cursor=cursor,
            messages=[],
        )
    )
    return empty[:-2], b",".join(encoded), empty[-2:]


def encode_joined(request_id: str, info: RoomInfo, *, cursor: int, shared_with: int) -> bytes:
    """The body of a ``joined``."""
    return _ENCODER.encode(
        JoinedReply(
            request_id=request_id,
            room=info.name,
            topic=info.topic,
            epoch=info.epoch,
            cursor=cursor,
            last_seq=info.last_seq,
            unread=info.unread,
            shared_with=shared_with,
            members=list(info.members),
        )
    )


def encode_rooms(request_id: str, rooms: Sequence[RoomInfo]) -> bytes:
    """The body of a ``rooms``."""
    bodies = [
        RoomBody(
            name=info.name,
            topic=info.topic,
            epoch=info.epoch,
            members=list(info.members),
            message_count=info.message_count,
            first_seq=info.first_seq,
            last_seq=info.last_seq,
            last_activity=info.last_activity,
            unread=info.unread,
        )
        for info in rooms
    ]
    return _ENCODER.encode(RoomsReply(request_id=request_id, rooms=bodies))


def encode_digested(
    request_id: str, room: str, digest: Digest, *, cursor: int, first_seq: int, last_seq: int
) -> bytes:
    """The body of a ``digested``."""
    return _ENCODER.encode(
        DigestedReply(
            request_id=request_id,
            room=room,
            total=digest.total,
            verbatim=digest.verbatim,
            headlines=digest.headlines,
            collapsed=digest.collapsed,
            chars=len(digest.text),
            consumed_seq=digest.consumed_seq,
            cursor=cursor,
            first_seq=first_seq,
            last_seq=last_seq,
            text=digest.text,
        )
    )


def to_room_info(body: RoomBody) -> RoomInfo:
    """The value of a decoded room."""
    return RoomInfo(
        name=body.name,
        topic=body.topic,
        epoch=body.epoch,
        members=tuple(body.members),
        message_count=body.message_count,
        first_seq=body.first_seq,
        last_seq=body.last_seq,
        last_activity=body.last_activity,
        unread=body.unread,
    )


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of every message; ``oneOf`` requests and replies, told apart by direction."""
    kinds: tuple[type[Struct], ...] = (*Request.__args__, *Reply.__args__)
    references, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    requests = len(Request.__args__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Messages between a client and the room broker",
        "oneOf": [{"$ref": "#/$defs/Request"}, {"$ref": "#/$defs/Reply"}],
        "$defs": {
            "Request": {"oneOf": list(references[:requests])},
            "Reply": {"oneOf": list(references[requests:])},
            **definitions,
        },
    }


def _refusal(body: bytes | memoryview, reason: str) -> RefusedRequest:
    """Why an object is no request. Slow and thorough; only what is wrong comes here."""
    import json

    try:
        # JSON as the wire has it: no byte order mark, no NaN, no Infinity; numbers of any length, none of them needed.
        data = json.loads(str(body, "utf-8"), parse_constant=_no_constant, parse_int=len)
    except (ValueError, RecursionError) as problem:
        raise MalformedFrame(str(problem)) from None
    if not isinstance(data, dict):
        raise MalformedFrame("not an object")
    request_id = data.get("requestId")
    echo = request_id if _is_request_id(request_id) else None
    kind = data.get("type")
    if isinstance(kind, str) and kind not in _TYPES:
        return RefusedRequest("unknown-type", f"Unknown message type: {kind[:64]!r}", echo)
    return RefusedRequest("bad-request", reason, echo)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_request_id(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= 128:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)
