"""The published schema is the one the code follows, and what is sent keeps to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from roundtable import wire
from roundtable.digest import Digest
from roundtable.errors import MalformedFrame
from roundtable.message import Author, Member, Message, RoomInfo

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "wire.schema.json"

AUTHOR = Author("s", "ann")
MESSAGE = Message("i", 3, 1_700_000_000_000, "r", AUTHOR, "text \u2028", "bob#1")
INFO = RoomInfo("r", None, "e", (Member("s", "ann", 5),), 1, 3, 3, 6, 1)


def test_the_published_schema_is_current() -> None:
    assert json.loads(SCHEMA.read_text()) == wire.schema(), (
        "run `roundtable schema > docs/reference/wire.schema.json`"
    )


@pytest.mark.parametrize(
    "body",
    [
        wire.encode_posted("1", wire.encode_message(MESSAGE), 2),
        b"".join(
            wire.encode_messages(
                "1", "r", first_seq=3, last_seq=3, cursor=0, encoded=[wire.encode_message(MESSAGE)] * 2
            )
        ),
        b"".join(wire.encode_messages("1", "r", first_seq=1, last_seq=0, cursor=0, encoded=[])),
        wire.encode_joined("1", INFO, cursor=0, shared_with=0),
        wire.encode_rooms("1", [INFO]),
        wire.encode_digested("1", "r", Digest("t", 1, 1, 0, 0, 3), cursor=3, first_seq=3, last_seq=3),
        wire.activity_frames("r", "(left)", [0])[0][wire.HEADER_BYTES :],
        wire.encode(wire.ErrorReply(code="slow-reader", error="x")),
    ],
)
def test_what_is_sent_keeps_to_the_schema(body: bytes) -> None:
    schema = wire.schema()
    jsonschema.validate(json.loads(body), {**schema, "oneOf": [{"$ref": "#/$defs/Reply"}]})
    wire.decode_reply(body)


def test_values_come_back_as_they_went() -> None:
    reply = wire.decode_reply(wire.encode_posted("1", wire.encode_message(MESSAGE), 2))
    assert isinstance(reply, wire.PostedReply)
    assert reply.message == MESSAGE
    rooms = wire.decode_reply(wire.encode_rooms("1", [INFO]))
    assert isinstance(rooms, wire.RoomsReply)
    assert wire.to_room_info(rooms.rooms[0]) == INFO


def test_the_keys_are_those_of_the_contract() -> None:
    data: dict[str, Any] = json.loads(wire.encode_message(MESSAGE))
    assert data.keys() == {"id", "seq", "timestamp", "room", "from", "text", "replyTo"}
    assert data["from"] == {"sessionId": "s", "name": "ann"}
    digested = json.loads(
        wire.encode_digested("1", "r", Digest("t", 0, 0, 0, 0, 0), cursor=0, first_seq=1, last_seq=0)
    )
    assert digested.keys() == {
        "type", "requestId", "room", "text", "total", "verbatim", "headlines", "collapsed", "chars", "consumedSeq",
        "cursor", "lastSeq", "firstSeq",
    }  # fmt: skip


@pytest.mark.parametrize(
    "frame",
    [
        b'{"type":"join","requestId":"a","room":"r","x":"\xff"}',
        b'\xef\xbb\xbf{"type":"rooms","requestId":"a"}',
        b'{"type":"rooms","requestId":"a","x":NaN}',
        b'{"type":"rooms","requestId":"a","x":[Infinity,-Infinity]}',
    ],
)
def test_what_is_not_json_in_utf8_is_no_request(frame: bytes) -> None:
    with pytest.raises(MalformedFrame):
        wire.decode_request(frame)
