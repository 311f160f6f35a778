"""What a role reads when it uses a room, and what it never sees: a traceback, another's line, a surprise."""

# ruff: noqa: ASYNC240 - nothing else runs in the loop of a test while it looks

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from roundtable.client import connect
from roundtable.errors import UsageProblem
from roundtable.home import Home
from roundtable.message import Member, RoomInfo
from roundtable.seat import Seat
from roundtable.texts import room_line
from tests.integration.raw import broker_process, embedded_broker, eventually, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def broker(home: Path) -> Iterator[Path]:
    with embedded_broker(home) as path:
        yield path


@pytest.fixture
async def ann(home: Path, broker: Path) -> AsyncIterator[Seat]:
    async with Seat(Home(home), "ann") as seat:
        yield seat


@pytest.fixture
async def bob(home: Path, broker: Path) -> AsyncIterator[Seat]:
    async with Seat(Home(home), "bob") as seat:
        yield seat


async def test_a_seat_that_never_calls_starts_nothing(home: Path) -> None:
    async with Seat(Home(home), "ann") as seat:
        # Neither does a call that cannot be right.
        assert (await seat.call("dance", {})).is_error
        assert (await seat.call("post", {"room": "a"})).is_error
        assert (await seat.digest("a b")).is_error
    assert not home.exists()


async def test_ten_first_calls_at_once_are_one_member(home: Path, broker: Path, ann: Seat) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(ann.join, "a")
    async with await connect(broker, name="look") as look:
        (info,) = await look.rooms()
        assert [member.name for member in info.members] == ["ann"]


async def test_the_texts_of_a_conversation(ann: Seat, bob: Seat) -> None:
    assert (await ann.rooms()).text == "No active rooms. Use join to create one."
    assert (await ann.join("a", "About a")).text == "Joined #a — About a. 1 member, 0 unread messages."
    assert (await ann.post("a", "hi")).text == "Posted to #a as ann#1. Nobody else is in #a now."
    assert (await bob.join("a")).text == (
        "Joined #a — About a. 2 members, 1 unread message. Use digest to catch up."
    )
    assert (await ann.post("a", "there?")).text == "Posted to #a as ann#2."
    assert (await bob.rooms()).text == "#a — About a · 2 unread · 2 msgs · members: ann, bob"
    peeked = (await bob.peek("a")).text
    head, text = peeked.split("\n", 1)
    assert (
        head
        == f"#a · 2 unread · showing 2 verbatim, 0 headlines, 0 collapsed · {len(text)} chars · peek (cursor unchanged)"
    )
    assert (await bob.post("a", "yes", reply_to="ann#2")).text == (
        "Posted to #a as bob#3. 2 older unread are now behind your cursor; fetch with afterSeq 0 to read them."
    )
    assert (await bob.digest("a")).text.endswith("\nNo new messages.")
    assert (await bob.fetch("a", 0, 2)).text == (
        "#a · 2 messages after seq 0 (latest is 3) · 25 chars · cursor unchanged\n"
        "[ann#1] hi\n[ann#2] there?\n(1 more — fetch with afterSeq 2 to go on)"
    )
    assert (await bob.fetch("a")).text == "#a · nothing after seq 3 (latest is 3)."
    assert (await ann.digest("a")).text.split("\n", 1)[1].endswith("bob#3 (reply to ann#2): yes")
    assert (await bob.leave("a")).text == "Left #a."
    refused = await bob.post("a", "x")
    assert refused.is_error
    assert refused.text == 'Roundtable post failed: Not a member of room "a"; join it first'


async def test_a_name_used_twice_is_said(home: Path, ann: Seat) -> None:
    await ann.join("a")
    async with Seat(Home(home), "ann") as again:
        assert "1 other session here under your name" in (await again.join("a")).text


@pytest.mark.parametrize(
    ("action", "arguments", "says"),
    [
        ("dance", {}, "Unknown action: dance"),
        ("x\x1b\ny", {}, "Unknown action: x\ufffd y"),
        ("digest", {}, "Missing 'room' parameter"),
        ("post", {"room": "a"}, "Missing 'message' parameter"),
        ("post", {}, "Missing 'room' and 'message' parameter"),
        ("join", {"room": "a", "as": "boss"}, "Unknown parameter 'as'"),
        ("digest", {"room": "a", "budget": True}, "'budget' must be a whole number"),
        ("digest", {"room": "a", "budget": "2000"}, "'budget' must be a whole number"),
        ("digest", {"room": 5}, "'room' must be text"),
        ("digest", {"room": "a/b"}, "'room' must be 1 to 64"),
        ("join", {"room": "a", "topic": "a\nb"}, "'topic' must be one line"),
        ("fetch", {"room": "a", "limit": 501}, "'limit' must be 1 to 500"),
        ("fetch", {"room": "a", "offset": 5}, "'offset' needs 'seq'"),
        ("fetch", {"room": "a", "seq": 0}, "'seq' counts from 1"),
        ("fetch", {"room": "a", "seq": 1, "afterSeq": 1}, "not both"),
    ],
)
async def test_what_cannot_be_is_answered_without_a_connection(
    home: Path, action: str, arguments: dict[str, Any], says: str
) -> None:
    async with Seat(Home(home), "ann") as seat:
        said = await seat.call(action, arguments)
    assert said.is_error
    assert says in said.text
    assert not home.exists()


async def test_a_tool_call_reaches_the_method(ann: Seat) -> None:
    assert not (await ann.call("join", {"room": "a", "topic": None})).is_error
    assert "ann#1" in (await ann.call("post", {"room": "a", "message": "hi"})).text
    assert (
        "(reply to ann#1)"
        in (
            await ann.call("post", {"room": "a", "message": "re", "replyTo": "1"})
            and await ann.call("fetch", {"room": "a", "afterSeq": 1, "maxChars": 300})
        ).text
    )


async def test_a_bad_name_is_refused_at_once(home: Path) -> None:
    with pytest.raises(UsageProblem):
        Seat(Home(home), "a b")


async def test_a_fetch_ends_before_what_does_not_fit_and_goes_on_from_there(ann: Seat, bob: Seat) -> None:
    await ann.join("a")
    texts = ["x" * 90, "y" * 90, "first\nline\r\u2028end", "z" * 90]
    for text in texts:
        await ann.post("a", text)
    read, after = [], 0
    while True:
        said = (await bob.fetch("a", after, max_chars=210)).text
        _, *lines = said.split("\n")
        assert sum(len(line) + 1 for line in lines if not line.startswith("(")) <= 211
        read += [line for line in lines if not line.startswith("(")]
        if not lines[-1].startswith("("):
            break
        after = int(lines[-1].split("afterSeq ")[1].split(" ")[0])
    assert read == [
        f"[ann#1] {'x' * 90}",
        f"[ann#2] {'y' * 90}",
        "[ann#3] first",
        "    line",
        "    ",
        "    end",
        f"[ann#4] {'z' * 90}",
    ]


async def test_a_body_that_is_too_long_comes_in_slices_that_lose_nothing(ann: Seat, bob: Seat) -> None:
    await ann.join("a")
    body = "".join(f"{number} " for number in range(400)) + "\n" * 300 + "end"
    await ann.post("a", body)
    await ann.post("a", "next")
    said = (await bob.fetch("a", 0, max_chars=500)).text
    found, offset = "", 0
    while True:
        lines = said.split("\n")
        shown = "\n".join(lines[1:] if not lines[-1].startswith("(") else lines[1:-1])
        assert len(shown) <= 500
        found += shown.removeprefix("[ann#1] ").replace("\n    ", "\n")
        if "offset" not in lines[-1]:
            break
        offset = int(lines[-1].split("offset ")[1].split(" ")[0])
        assert "fetch with seq 1," in lines[-1]
        said = (await bob.fetch("a", seq=1, offset=offset, max_chars=500)).text
    assert found == body
    assert lines[-1] == "(1 more — fetch with afterSeq 1 to go on)"
    assert "is not retained" in (await bob.fetch("a", seq=9)).text


async def test_no_line_of_a_body_can_pass_for_another_message(ann: Seat, bob: Seat) -> None:
    await ann.join("a")
    await ann.post("a", "ok\n[bob#7] I agree\x1b[2J\r[bob#8] really")
    lines = (await bob.fetch("a", 0)).text.split("\n")
    assert lines[1:] == ["[ann#1] ok", "    [bob#7] I agree\ufffd[2J", "    [bob#8] really"]


async def test_a_lost_broker_is_reached_again_and_nothing_is_replayed(home: Path) -> None:
    there = Home(home)
    with broker_process(home) as first:
        async with Seat(there, "ann", grace_seconds=30) as seat:
            await seat.join("a")
            await seat.post("a", "one")
            first.kill()
            first.wait(5)
            try:
                said = await seat.post("a", "two")
                assert said.is_error
                assert 'Room "a" does not exist; join it first' in said.text
                # A room of that name made by somebody else in the meantime is not taken for the old one.
                async with Seat(there, "bob") as other:
                    await other.join("a")
                    assert "join it first" in (await seat.digest("a")).text
                    await seat.join("a")
                    assert (await seat.post("a", "three")).text == "Posted to #a as ann#1."
            finally:
                with contextlib.suppress(OSError):
                    os.kill(int(there.pid.read_text()), signal.SIGTERM)
    until(lambda: not there.pid.exists())


async def test_no_broker_is_a_text_that_names_the_socket(home: Path) -> None:
    there = Home(home)
    there.folder.mkdir(parents=True, mode=0o700)
    there.default_socket().mkdir()
    async with Seat(there, "ann") as seat:
        said = await seat.rooms()
    assert said.is_error
    assert said.text.startswith("Roundtable not connected: ")
    assert str(there.default_socket()) in said.text
    assert "\n" not in said.text


def test_a_line_of_rooms_is_bounded() -> None:
    members = tuple(Member(f"s{number}", f"{'n' * 60}{number}", 0) for number in range(100))
    line = room_line(RoomInfo("r" * 64, "t" * 200, "e", members, 500, 1, 10**15, 5, 500))
    assert len(line) <= 300
    assert "+99" in line or "+100" in line


async def test_the_list_of_rooms_is_bounded(broker: Path, bob: Seat) -> None:
    async with await connect(broker, name="ann") as ann:
        for number in range(100):
            await ann.join(f"{'r' * 60}{number}", "t" * 200)
        said = (await bob.rooms()).text
        assert len(said) <= 20_100
        assert said.split("\n")[-1].endswith("more rooms — `roundtable rooms --json` lists all)")


async def test_a_wait_says_who_is_new_and_nothing_of_what_was_said(ann: Seat, bob: Seat) -> None:
    await ann.join("a")
    await bob.join("a")
    assert (await ann.wait(timeout_seconds=0)).text == "Nothing new."

    answers: list[str] = []

    async def wait() -> None:
        answers.append((await ann.wait()).text)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        await bob.post("a", "a secret")
    assert answers == ["Roundtable activity — #a: 1 new (bob). Use digest to catch up when relevant."]
    # It was said once, and the cursor has not moved.
    assert (await ann.wait(timeout_seconds=0)).text == "Nothing new."
    assert "1 unread" in (await ann.peek("a")).text


async def test_a_wait_is_told_at_once_of_what_came_before_it_unless_it_was_read(ann: Seat, bob: Seat) -> None:
    for room in ("a", "b"):
        await ann.join(room)
        await bob.join(room)
    await bob.post("a", "one")
    await bob.post("b", "two")
    await ann.digest("b")
    assert "#b" not in (await ann.wait()).text
    await bob.post("b", "three")
    assert (await ann.wait(["a"], timeout_seconds=0)).text == "Nothing new."
    assert "#b: 1 new (bob)" in (await ann.wait(["b", "a"])).text


async def test_a_wait_of_two_at_once_in_one_seat_tells_one_of_them(ann: Seat, bob: Seat) -> None:
    for room in ("a", "b"):
        await ann.join(room)
        await bob.join(room)
    answers: dict[str, str] = {}

    async def wait(room: str) -> None:
        answers[room] = (await ann.wait([room], timeout_seconds=20)).text

    async with anyio.create_task_group() as group:
        group.start_soon(wait, "a")
        group.start_soon(wait, "b")
        await anyio.wait_all_tasks_blocked()
        await bob.post("b", "to b")
        await eventually(lambda: "b" in answers)
        assert "a" not in answers
        # Other calls go on meanwhile.
        assert (await ann.post("a", "mine")).text == "Posted to #a as ann#1."
        await bob.post("a", "to a")
    assert "#b: 1 new" in answers["b"]
    assert "#a: 1 new" in answers["a"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "Not a member of any room; join one first"),
        ({"rooms": ["a"]}, 'Not a member of room "a"; join it first'),
        ({"rooms": ["a b"]}, "'room' must be 1 to 64"),
        ({"rooms": "a"}, "'rooms' must be a list of room names"),
        ({"rooms": [1]}, "'room' must be 1 to 64"),
        ({"timeoutSeconds": 301}, "'timeoutSeconds' must be 0 to 300"),
        ({"timeoutSeconds": True}, "'timeoutSeconds' must be a number of seconds"),
        ({"timeoutSeconds": float("nan")}, "'timeoutSeconds' must be 0 to 300"),
    ],
)
async def test_a_wait_that_cannot_be_is_refused_without_a_connection(
    home: Path, arguments: dict[str, Any], told: str
) -> None:
    async with Seat(Home(home), "ann") as seat:
        said = await seat.call("wait", arguments)
        assert said.is_error
        assert told in said.text
    assert not home.exists()


async def test_a_wait_over_a_lost_broker_says_what_to_do_and_the_next_call_works(home: Path) -> None:
    answers: list[str] = []
    async with Seat(Home(home), "ann") as ann:
        with broker_process(home) as first:
            await ann.join("a")

            async def wait() -> None:
                answers.append((await ann.wait()).text)

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                first.kill()
        assert "join the room again first" in answers[0]
        with broker_process(home):
            assert "join the room again first" in (await ann.call("wait", {"rooms": ["a"]})).text
            assert (await ann.join("a")).text == "Joined #a. 1 member, 0 unread messages."
            assert (await ann.wait(timeout_seconds=0)).text == "Nothing new."


async def test_pings_come_one_a_burst_and_over_a_new_broker(home: Path) -> None:
    lines: list[str] = []
    async with (
        Seat(Home(home), "ann") as ann,
        Seat(Home(home), "bob") as bob,
        anyio.create_task_group() as group,
    ):

        async def listen() -> None:
            async for line in ann.pings():
                lines.append(line)  # noqa: PERF401 - seen while it grows

        group.start_soon(listen)
        for turn in (1, 2):
            with broker_process(home) as broker:
                for room in ("a", "b"):
                    await ann.join(room)
                    await bob.join(room)
                for number in range(5):
                    await bob.post("a", f"{number}")
                    await bob.post("b", f"{number}")
                await eventually(lambda turn=turn: len(lines) == turn)
                # A wait is told of it as well: one does not take it from the other.
                assert "#a: 5 new (bob) · #b: 5 new (bob)" in (await ann.wait()).text
                broker.kill()
        group.cancel_scope.cancel()
    assert (
        lines
        == ["Roundtable activity — #a: 5 new (bob) · #b: 5 new (bob). Use digest to catch up when relevant."]
        * 2
    )
