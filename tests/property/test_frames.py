"""Frames survive every split and merge; bytes that are no frame end in one of two errors."""

# ruff: noqa: PT017 - whether there is an error depends on what was drawn

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtable import wire
from roundtable.errors import FrameTooLarge, MalformedFrame, Refused

VALUE = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
KEYS = [
    "type",
    "requestId",
    "room",
    "text",
    "name",
    "names",
    "secret",
    "afterSeq",
    "limit",
    "seq",
    "budget",
    "replyTo",
    "id",
    "epoch",
]
TYPES = [
    "register",
    "rooms",
    "join",
    "leave",
    "post",
    "fetch",
    "set_cursor",
    "digest",
    "reserve",
    "posted",
    "nope",
]


@given(st.lists(st.binary(max_size=300), max_size=12), st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_any_split_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(wire.frame, bodies))
    decoder, found, at, turn = wire.FrameDecoder(), [], 0, 0
    while at < len(stream):
        step = cuts[turn % len(cuts)]
        found += [bytes(body) for body in decoder.feed(stream[at : at + step])]
        at, turn = at + step, turn + 1
    assert found == bodies
    assert [bytes(body) for body in wire.FrameDecoder().feed(stream)] == bodies


def test_a_large_frame_in_small_pieces_is_copied_once() -> None:
    stream = wire.frame(b"x" * wire.MAX_FRAME_BYTES)
    decoder, start = wire.FrameDecoder(), time.process_time()
    found = [len(body) for at in range(0, len(stream), 4096) for body in decoder.feed(stream[at : at + 4096])]
    assert found == [wire.MAX_FRAME_BYTES]
    # Copying what is there for every piece would move 8 GB.
    assert time.process_time() - start < 0.5


@given(st.integers(101, 2**32 - 1), st.binary(max_size=50))
def test_a_large_header_is_refused_and_nothing_kept(length: int, rest: bytes) -> None:
    decoder = wire.FrameDecoder(max_bytes=100)
    with pytest.raises(FrameTooLarge) as caught:
        list(decoder.feed(length.to_bytes(4, "big") + rest))
    assert caught.value.announced_bytes == length


@settings(max_examples=150)
@given(st.one_of(st.binary(max_size=200), VALUE.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_a_request_or_one_of_two_errors(body: bytes) -> None:
    try:
        wire.decode_request(body)
    except MalformedFrame:
        with pytest.raises((ValueError, AssertionError)):
            assert isinstance(json.loads(body), dict)
    except wire.RefusedRequest as problem:
        assert problem.code in {"bad-request", "unknown-type"}


@settings(max_examples=80)
@given(
    st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=8),
    st.sampled_from(TYPES),
    st.text(min_size=1, max_size=128),
)
def test_a_refused_request_echoes_its_id(data: dict[str, Any], kind: str, request_id: str) -> None:
    data |= {"type": kind, "requestId": request_id}
    try:
        request = wire.decode_request(json.dumps(data).encode())
    except wire.RefusedRequest as problem:
        assert problem.request_id == request_id
        assert problem.code == ("unknown-type" if kind in {"posted", "nope"} else "bad-request")
    else:
        assert request.request_id == request_id


@given(st.text(min_size=1, max_size=400))
def test_what_is_encoded_comes_back(text: str) -> None:
    request = wire.PostRequest(request_id="1", room="r", text=text)
    assert wire.decode_request(wire.encode(request)) == request


def test_half_a_surrogate_pair_is_the_requests_fault_only() -> None:
    with pytest.raises(Refused) as caught:
        wire.decode_request(b'{"type":"post","requestId":"7","room":"r","text":"\\ud800"}')
    assert caught.value.code == "bad-request"


def test_nesting_without_end_is_no_frame() -> None:
    with pytest.raises(MalformedFrame):
        wire.decode_request(b'{"type":"rooms","requestId":"1","x":' + b"[" * 200_000)
