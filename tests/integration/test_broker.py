"""The broker from outside: its socket, its answers, and what one connection cannot do to another."""

# ruff: noqa: S106 - the secrets here guard nothing

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roundtable.home import Home
from roundtable.limits import Limits
from tests.integration.raw import SECONDS, Raw, broker_process, embedded_broker, until


@pytest.fixture
def path(home: Path) -> Iterator[Path]:
    with embedded_broker(home) as path:
        yield path


def cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


# Registering, and requests that are none.


def test_a_post_is_answered_whole_and_numbered(path: Path) -> None:
    with Raw(path, "ann") as ann:
        joined = ann.ask("join", room="a", topic="T")
        assert joined.keys() == {
            "type", "requestId", "room", "topic", "cursor", "epoch", "sharedWith", "lastSeq", "unread", "members",
        }  # fmt: skip
        posted = ann.ask("post", room="a", text="hi")
        message = posted["message"]
        assert message["from"] == {"sessionId": ann.registered["sessionId"], "name": "ann"}
        assert (message["seq"], message["text"], message["room"]) == (1, "hi", "a")
        assert message["id"]
        assert message["timestamp"] > 1_700_000_000_000
        assert posted["unreadBefore"] == 0
        assert ann.ask("post", room="a", text="again")["message"]["seq"] == 2


def test_nothing_before_register_and_everything_after(path: Path) -> None:
    with Raw(path) as raw:
        refused = raw.ask("join", room="a")
        assert (refused["type"], refused["code"]) == ("error", "not-registered")
        assert raw.ask("register", name="ann")["protocol"] == 1
        assert raw.ask("register", name="bob")["code"] == "already-registered"
        assert raw.ask("join", room="a")["type"] == "joined"
        assert len(raw.ask("rooms")["rooms"][0]["members"]) == 1


def test_register_needs_no_request_id(path: Path) -> None:
    with Raw(path) as raw:
        raw.send_body(b'{"type":"register","name":"ann","pid":1,"cwd":"/"}')
        assert "requestId" not in raw.reply(None)


@pytest.mark.parametrize("name", ["", "a b", "../x", "a\n", "-a", "x" * 65, "é", "a#1", 7, None])
def test_a_bad_name_is_refused_and_another_may_follow(path: Path, name: Any) -> None:
    with Raw(path) as raw:
        assert raw.ask("register", name=name)["code"] == "bad-request"
        assert raw.ask("register", name="x" * 64)["type"] == "registered"


@pytest.mark.parametrize("protocol", [2, "1"])
def test_another_protocol_is_refused(path: Path, protocol: Any) -> None:
    with Raw(path) as raw:
        assert raw.ask("register", name="ann", protocol=protocol)["code"] == "bad-request"


@pytest.mark.parametrize(
    ("kind", "keys", "code"),
    [
        ("dance", {}, "unknown-type"),
        ("join", {}, "bad-request"),
        ("join", {"room": "a/b"}, "bad-request"),
        ("join", {"room": "a\n"}, "bad-request"),
        ("join", {"room": "a.b"}, "bad-request"),
        ("join", {"room": "a", "topic": "x" * 201}, "bad-request"),
        ("join", {"room": "a", "topic": "two\nlines"}, "bad-request"),
        ("join", {"room": "a", "topic": "\x1b[2J"}, "bad-request"),
        ("post", {"room": "in", "text": ""}, "bad-request"),
        ("post", {"room": "in", "text": 5}, "bad-request"),
        ("post", {"room": "in", "text": "x", "id": ""}, "bad-request"),
        ("post", {"room": "in", "text": "x", "id": "x" * 65}, "bad-request"),
        ("post", {"room": "in", "text": "x", "replyTo": "9"}, "unknown-reply"),
        ("post", {"room": "nope", "text": "x"}, "no-such-room"),
        ("post", {"room": "out", "text": "x"}, "not-a-member"),
        ("fetch", {"room": "in"}, "bad-request"),
        ("fetch", {"room": "in", "afterSeq": True}, "bad-request"),
        ("fetch", {"room": "in", "afterSeq": 0, "limit": 0}, "bad-request"),
        ("fetch", {"room": "in", "afterSeq": 0, "limit": 501}, "bad-request"),
        ("fetch", {"room": "nope", "afterSeq": 0}, "no-such-room"),
        ("set_cursor", {"room": "nope", "seq": 0}, "no-such-room"),
        ("digest", {"room": "nope"}, "no-such-room"),
        ("digest", {"room": "in", "budget": "2000"}, "bad-request"),
        ("digest", {"room": "in", "epoch": "old"}, "stale-epoch"),
        ("join", {"room": "in", "epoch": "old"}, "stale-epoch"),
        ("join", {"room": "new", "epoch": "old"}, "stale-epoch"),
        ("reserve", {"room": "in", "names": ["a b"], "secret": "s"}, "bad-request"),
    ],
)
def test_what_is_refused_echoes_its_id_and_the_connection_goes_on(
    path: Path, kind: str, keys: dict[str, Any], code: str
) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        ann.ask("join", room="in")
        bob.ask("join", room="out")
        refused = ann.ask(kind, **keys)
        assert (refused["type"], refused["code"]) == ("error", code)
        assert refused["error"]
        assert ann.ask("post", room="in", text="still here")["type"] == "posted"


def test_the_two_sentences_an_agent_acts_on(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        bob.ask("join", room="x")
        assert ann.ask("post", room="x", text="t")["error"] == 'Not a member of room "x"; join it first'
        assert ann.ask("post", room="y", text="t")["error"] == 'Room "y" does not exist; join it first'


@pytest.mark.parametrize("request_id", ["", "x" * 129, 5, None])
def test_a_request_without_a_usable_id_is_refused(path: Path, request_id: Any) -> None:
    with Raw(path, "ann") as ann:
        ann.send_body(json.dumps({"type": "rooms", "requestId": request_id}).encode())
        refused = ann.receive()
        assert refused["code"] == "bad-request"
        assert "requestId" not in refused


# Frames.


@pytest.mark.parametrize("body", [b"", b"nope", b"[]", b'"x"', b"{} {}", b"\xff\xfe", b'{"type":"rooms"'])
def test_what_is_no_object_ends_its_connection_and_nothing_after_it_runs(path: Path, body: bytes) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        join = json.dumps({"type": "join", "requestId": "9", "room": "ghost"}).encode()
        before = json.dumps({"type": "join", "requestId": "8", "room": "real"}).encode()
        bob.ask("join", room="real")
        ann.socket.sendall(b"".join(struct.pack(">I", len(part)) + part for part in (before, body, join)))
        assert ann.receive()["room"] == "real"
        assert ann.is_closed()
        assert [bob.next_activity()["from"] for _ in range(2)] == ["ann", "(left)"]
        assert [room["name"] for room in bob.ask("rooms")["rooms"]] == ["real"]


def test_any_split_and_any_merge_is_fine(path: Path) -> None:
    with Raw(path, "ann") as ann:
        bodies = [
            {"type": "join", "requestId": "j", "room": "a"},
            *(
                {"type": "post", "requestId": str(number), "room": "a", "text": "é" * number}
                for number in range(1, 9)
            ),
        ]
        stream = b"".join(
            struct.pack(">I", len(body)) + body for body in (json.dumps(body).encode() for body in bodies)
        )
        for at in range(300):
            ann.socket.sendall(stream[at : at + 1])
        ann.socket.sendall(stream[300:])
        replies = [ann.receive() for _ in bodies]
        assert [reply["requestId"] for reply in replies] == [body["requestId"] for body in bodies]
        assert replies[-1]["message"]["text"] == "é" * 8


def test_a_header_over_the_cap_ends_the_connection_and_costs_nothing(home: Path) -> None:
    with broker_process(home) as process:
        path = home / "roundtable" / "broker.sock"
        with Raw(path, "bob") as bob:
            before = resident_bytes(process.pid) if sys.platform == "linux" else 0
            for _ in range(20):
                with Raw(path, "ann") as ann:
                    ann.socket.sendall(struct.pack(">I", 4_000_000_000))
                    assert ann.is_closed()
            after = resident_bytes(process.pid) if sys.platform == "linux" else 0
            assert after - before < 4_000_000
            assert bob.ask("rooms")["type"] == "rooms"


def test_six_mebibytes_pass_and_one_byte_more_does_not(path: Path) -> None:
    most = 6 * 1024 * 1024
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        ann.ask("join", room="a")
        assert ann.ask("post", room="a", text="x" * most)["message"]["seq"] == 1
        refused = ann.ask("post", room="a", text="x" * (most + 1))
        assert refused["code"] == "too-large"
        assert "file" in refused["error"]
        # Three bytes each in UTF-8, so it is bytes that count.
        over = json.dumps(
            {"type": "post", "requestId": "u", "room": "a", "text": "€" * (most // 3 + 1)}, ensure_ascii=False
        )
        ann.send_body(over.encode())
        assert ann.reply("u")["code"] == "too-large"
        assert len(bob.ask("fetch", room="a", afterSeq=0)["messages"][0]["text"]) == most
        digest = bob.ask("digest", room="a", budget=10**12, perMessage=10**12)
        assert (digest["total"], digest["chars"]) == (1, len(digest["text"]))


def test_a_text_that_fills_a_frame_only_escaped_is_answered(path: Path) -> None:
    with Raw(path, "ann") as ann:
        ann.ask("join", room="a")
        # With what is around it the second would fit a frame on its way in and none on its way out.
        replies = [
            ann.ask("post", room="a", text='"' * size)
            for size in (4 * 1024 * 1024 - 2000, 4 * 1024 * 1024 - 60)
        ]
        assert [reply.get("code", reply["type"]) for reply in replies] == ["posted", "too-large"]
        assert ann.ask("rooms")["type"] == "rooms"


# Rooms.


def test_501_posts_leave_500(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "late") as late:
        ann.ask("join", room="a")
        ids = [ann.send("post", room="a", text=str(number)) for number in range(501)]
        assert [ann.reply(request_id)["message"]["seq"] for request_id in ids] == list(range(1, 502))
        page = late.ask("fetch", room="a", afterSeq=0, limit=500)
        assert [message["seq"] for message in page["messages"]] == list(range(2, 502))
        assert (page["firstSeq"], page["lastSeq"], page["cursor"]) == (2, 501, 0)
        digest = late.ask("digest", room="a", peek=True)
        assert digest["total"] == 500
        assert "1 no longer retained" in digest["text"].split("\n")[0]
        assert len(late.ask("fetch", room="a", afterSeq=0)["messages"]) == 200
        assert ann.ask("post", room="a", text="x")["message"]["seq"] == 502


def test_a_digest_moves_the_cursor_and_a_peek_does_not(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        ann.ask("join", room="a")
        for text in ("one", "two"):
            ann.ask("post", room="a", text=text)
        first, second, third = (bob.ask("digest", room="a", peek=peek) for peek in (True, True, False))
        assert first["text"] == second["text"] == third["text"]
        assert (second["cursor"], third["cursor"], third["consumedSeq"]) == (0, 2, 2)
        assert bob.ask("rooms")["rooms"][0]["unread"] == 0
        again = bob.ask("digest", room="a")
        assert (again["text"], again["cursor"], again["total"]) == ("No new messages.", 2, 0)
        there = bob.ask("digest", room="a", afterSeq=1)
        assert (there["total"], there["cursor"]) == (1, 2)
        with Raw(path, "new") as new:
            there = new.ask("digest", room="a", afterSeq=1)
            assert (there["total"], there["consumedSeq"], there["cursor"]) == (1, 2, 0)
        assert bob.ask("rooms")["rooms"][0]["members"] == [
            {
                "sessionId": ann.registered["sessionId"],
                "name": "ann",
                "joinedAt": pytest.approx(2e12, abs=1e12),
            }
        ]


def test_a_cursor_belongs_to_a_name_and_survives_its_session(path: Path) -> None:
    with Raw(path, "ann") as ann:
        ann.ask("join", room="a")
        for _ in range(5):
            ann.ask("post", room="a", text="x")
        with Raw(path, "planner") as planner:
            planner.ask("digest", room="a")
        for name, unread in (("planner", 0), ("planner2", 5)):
            with Raw(path, name) as again:
                assert again.ask("join", room="a")["unread"] == unread
        assert ann.ask("set_cursor", room="a", seq=9999)["seq"] == 5
        assert ann.ask("set_cursor", room="a", seq=1)["seq"] == 5


def test_joining_again_changes_nothing_and_a_topic_stays(path: Path) -> None:
    with Raw(path, "ann") as ann:
        first, second = (ann.ask("join", room="a", topic=topic) for topic in ("first", "second"))
        assert (first["topic"], second["topic"]) == ("first", "first")
        assert len(second["members"]) == 1
        assert first["epoch"] == second["epoch"]


def test_posting_leaves_nothing_unread_and_says_past_what_it_went(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        ann.ask("join", room="a")
        bob.ask("join", room="a")
        ann.ask("post", room="a", text="x")
        assert bob.ask("post", room="a", text="y")["unreadBefore"] == 1
        assert [one.ask("rooms")["rooms"][0]["unread"] for one in (ann, bob)] == [1, 0]


def test_who_only_reads_is_no_member_and_moves_nothing(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        ann.ask("join", room="a")
        ann.ask("post", room="a", text="x")
        assert len(bob.ask("fetch", room="a", afterSeq=0)["messages"]) == 1
        (info,) = bob.ask("rooms")["rooms"]
        assert [member["name"] for member in info["members"]] == ["ann"]
        assert info["unread"] == 1
        assert bob.ask("post", room="a", text="x")["code"] == "not-a-member"


def test_a_name_used_twice_is_said(path: Path) -> None:
    with Raw(path, "ann") as one, Raw(path, "ann") as two:
        assert one.ask("join", room="a")["sharedWith"] == 0
        assert two.ask("join", room="a")["sharedWith"] == 1


def test_activity_goes_to_the_others_and_holds_no_body(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob:
        ann.ask("join", room="a")
        bob.ask("join", room="a")
        assert ann.next_activity() == {"type": "activity", "room": "a", "from": "bob", "seq": 0}
        bob.ask("join", room="a")
        bob.ask("post", room="a", text="secret")
        assert ann.next_activity() == {"type": "activity", "room": "a", "from": "bob", "seq": 1}
        bob.ask("leave", room="a")
        bob.ask("leave", room="a")
        assert ann.next_activity() == {"type": "activity", "room": "a", "from": "(left)", "seq": 0}
        assert bob.activity == []
        bob.ask("join", room="a")
        bob.socket.close()
        assert [ann.next_activity()["from"] for _ in range(2)] == ["bob", "(left)"]


def test_in_one_turn_everybody_is_told_of_all_others_and_nobody_of_what_was_before(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "bob") as bob, Raw(path, "look") as look:
        for member in (ann, bob, look):
            member.ask("join", room="a")
        look.ask("rooms")
        look.activity.clear()
        ann.activity.clear()
        bob.activity.clear()

        def frames(*requests: dict[str, Any]) -> bytes:
            bodies = [json.dumps({"requestId": "x", "room": "a", **request}).encode() for request in requests]
            return b"".join(struct.pack(">I", len(body)) + body for body in bodies)

        post = {"type": "post", "text": "x"}
        # One write, so one turn of the loop: posts, a going and a coming.
        ann.socket.sendall(frames(post, post, {"type": "leave"}, {"type": "join"}, post))
        for _ in range(5):
            ann.reply("x")
        bob.ask("post", room="a", text="y")
        for member in (bob, look, ann):
            member.ask("rooms")
        seen = [[(event["from"], event["seq"]) for event in member.activity] for member in (look, bob, ann)]
        told = [("ann", 1), ("ann", 2), ("(left)", 0), ("ann", 0), ("ann", 3)]
        assert seen[0][-6:] == [*told, ("bob", 4)]
        assert seen[1][-5:] == told
        assert seen[2][-1:] == [("bob", 4)]
        assert not [event for event in seen[2] if event[0] == "ann"]


def test_among_many_a_coming_waits_for_company_but_never_behind_a_post(path: Path) -> None:
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(Raw(path, f"m{number}")) for number in range(70)]
        for member in many:
            member.ask("join", room="a")
        first, leaver, poster = many[0], many[1], many[-1]
        late = [stack.enter_context(Raw(path, f"late{number}")) for number in range(3)]
        for member in late:
            member.ask("join", room="a")
        # Who goes before it was told hears of it all the same, and of nothing after.
        leaver.ask("leave", room="a")
        poster.ask("post", room="a", text="x")
        late[0].ask("leave", room="a")
        leaver.ask("rooms")
        assert [event["from"] for event in leaver.activity[-3:]] == ["late0", "late1", "late2"]
        heard = []
        while heard.count("(left)") < 2:
            heard.append(first.next_activity()["from"])
        # All of it, once, in order, and what was told alone comes without a post, too.
        came = [*(f"m{number}" for number in range(1, 70)), "late0", "late1", "late2"]
        assert heard == [*came, "(left)", "m69", "(left)"]
        told = [late[2].next_activity() for _ in range(3)]
        assert [(event["from"], event["seq"]) for event in told] == [("(left)", 0), ("m69", 1), ("(left)", 0)]


def test_who_joins_quietly_is_not_announced(path: Path) -> None:
    with Raw(path, "ann") as ann, Raw(path, "cli") as cli:
        ann.ask("join", room="a")
        cli.ask("join", room="a", quiet=True)
        cli.ask("post", room="a", text="x")
        cli.ask("leave", room="a")
        ann.ask("rooms")
        assert [event["seq"] for event in ann.activity] == [1]


def test_a_room_without_a_word_ends_with_its_last_member(path: Path) -> None:
    with Raw(path, "ann") as ann:
        with Raw(path, "bob") as bob:
            bob.ask("join", room="silent")
            bob.ask("join", room="loud")
            bob.ask("post", room="loud", text="x")
        until(lambda: [room["name"] for room in ann.ask("rooms")["rooms"]] == ["loud"])
        first = ann.ask("join", room="silent")["epoch"]
        assert ann.ask("leave", room="silent")["type"] == "left"
        assert ann.ask("join", room="silent")["epoch"] != first


def test_the_same_id_posts_once_even_over_two_connections(path: Path) -> None:
    with Raw(path, "keep") as keep:
        keep.ask("join", room="a")
        found = []
        for _ in range(2):
            with Raw(path, "ann") as ann:
                ann.ask("join", room="a")
                found.append(ann.ask("post", room="a", text="once", id="mine")["message"])
        assert found[0] == found[1]
        assert keep.ask("fetch", room="a", afterSeq=0)["lastSeq"] == 1


def test_reserved_names_are_for_those_who_know_the_secret(path: Path) -> None:
    with (
        Raw(path, "runner", secret="s") as runner,
        Raw(path, "seat") as stranger,
        Raw(path, "seat", secret="s") as own,
    ):
        stranger.ask("join", room="a")
        assert runner.ask("reserve", room="a", names=["seat", "conductor"], secret="s")["names"] == [
            "seat",
            "conductor",
        ]
        assert stranger.ask("post", room="a", text="forged")["code"] == "reserved"
        assert stranger.ask("join", room="a")["code"] == "reserved"
        assert stranger.ask("reserve", room="a", names=["x", "seat"], secret="other")["code"] == "reserved"
        assert own.ask("join", room="a")["type"] == "joined"
        assert own.ask("post", room="a", text="mine")["type"] == "posted"
        assert stranger.ask("join", room="b")["type"] == "joined"
        with Raw(path, "x") as other:
            assert other.ask("join", room="a")["type"] == "joined"
        runner.socket.close()
        until(lambda: stranger.ask("join", room="a")["type"] == "joined")


# Bounds.


def test_who_does_not_register_is_closed(home: Path) -> None:
    with (
        embedded_broker(home, limits=Limits(register_seconds=0.2)) as path,
        Raw(path) as silent,
        Raw(path, "ann") as ann,
    ):
        assert silent.is_closed()
        assert ann.ask("rooms")["type"] == "rooms"


def test_one_connection_too_many_is_told_and_the_others_go_on(home: Path) -> None:
    with embedded_broker(home, limits=Limits(connections=2)) as path:
        with Raw(path, "ann") as ann, Raw(path, "bob"), Raw(path) as third:
            assert third.receive()["code"] == "connection-limit"
            assert third.is_closed()
            assert ann.ask("rooms")["type"] == "rooms"

        def is_let_in() -> bool:
            with Raw(path) as again:
                again.send("register", name="late")
                return again.receive()["type"] == "registered"

        until(is_let_in)


def test_the_4097th_connection_is_told_and_the_others_go_on(home: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = Limits().connections + 200
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"needs {needed} open files")
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    path = home / "roundtable" / "broker.sock"
    try:
        with broker_process(home), contextlib.ExitStack() as stack:
            members = [stack.enter_context(Raw(path, f"m{number}")) for number in range(Limits().connections)]
            for _ in range(3):
                with Raw(path) as beyond:
                    assert beyond.receive()["code"] == "connection-limit"
                    assert beyond.is_closed()
            for member in (members[0], members[-1]):
                assert member.ask("rooms")["type"] == "rooms"
            members[0].socket.close()

            def is_let_in() -> bool:
                with Raw(path) as again:
                    again.send("register", name="late")
                    return again.receive()["type"] == "registered"

            until(is_let_in)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="takes another process its descriptors away")
def test_without_a_free_descriptor_it_lets_in_nobody_spins_not_and_goes_on(home: Path) -> None:
    path = home / "roundtable" / "broker.sock"
    with broker_process(home) as process, Raw(path, "ann") as ann:
        with Raw(path, "bob"):
            held = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (held, hard))
            late = Raw(path)
            request = late.send("register", name="late")
            late.socket.settimeout(0.05)
            used = cpu_seconds(process.pid)
            for _ in range(20):
                assert ann.ask("rooms")["type"] == "rooms"
                with pytest.raises(TimeoutError):
                    late.receive()
            assert cpu_seconds(process.pid) - used < 0.5
        late.socket.settimeout(SECONDS)
        with late:
            assert late.reply(request)["type"] == "registered"
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_who_does_not_read_replies_is_dropped_and_nobody_else(home: Path) -> None:
    with (
        embedded_broker(home, limits=Limits(unread_reply_bytes=3_000_000)) as path,
        Raw(path, "ann") as ann,
        Raw(path, "slow") as slow,
    ):
        ann.ask("join", room="a")
        slow.ask("join", room="a")
        ann.ask("post", room="a", text="x" * 1_000_000)
        # One write: between two the broker might have closed the connection.
        fetch = json.dumps({"type": "fetch", "requestId": "f", "room": "a", "afterSeq": 0}).encode()
        slow.socket.sendall((struct.pack(">I", len(fetch)) + fetch) * 30)
        left = {"type": "activity", "room": "a", "from": "(left)", "seq": 0}
        while ann.next_activity() != left:
            pass
        assert ann.ask("post", room="a", text="y")["type"] == "posted"
        last: dict[str, Any] = {}
        with pytest.raises((EOFError, ConnectionError)):  # noqa: PT012 - every frame before the end is looked at
            while True:
                last = slow.receive()
        assert last.get("code", "slow-reader") == "slow-reader"


def test_activity_nobody_reads_is_merged_and_costs_nothing(home: Path) -> None:
    with broker_process(home) as process:
        path = home / "roundtable" / "broker.sock"
        rooms = ["a" * 64, "b" * 64]  # long names, to fill what the kernel holds sooner
        with Raw(path, "a" * 64) as ann, Raw(path, "slow") as slow:
            for room in rooms:
                ann.ask("join", room=room)
                slow.ask("join", room=room)
            before = resident_bytes(process.pid) if sys.platform == "linux" else 0
            count = 16_000
            sent: list[str] = []
            for number in range(count):
                sent.append(ann.send("post", room=rooms[number % 2], text="x"))
                if len(sent) == 100:
                    for request_id in sent:
                        assert ann.reply(request_id)["type"] == "posted"
                    sent.clear()
            after = resident_bytes(process.pid) if sys.platform == "linux" else 0
            assert after - before < 6_000_000
            newest: dict[str, int] = {}
            events = 0
            while newest != dict.fromkeys(rooms, count // 2):
                event = slow.next_activity()
                newest[event["room"]] = event["seq"]
                events += 1
            assert events < count
            assert slow.ask("rooms")["type"] == "rooms"


# Its life.


def test_the_folder_and_the_socket_are_closed_to_others(home: Path) -> None:
    (home / "roundtable").mkdir(parents=True, mode=0o777)
    (home / "roundtable").chmod(0o777)
    with broker_process(home, umask=0):
        modes = [
            stat.S_IMODE(path.stat().st_mode)
            for path in (home / "roundtable", *(home / "roundtable").iterdir())
        ]
        assert modes[0] == 0o700
        assert not any(mode & 0o077 for mode in modes)
        assert stat.S_IMODE((home / "roundtable" / "broker.sock").stat().st_mode) == 0o600


def test_a_folder_named_by_somebody_is_never_changed(home: Path, short_path: Path) -> None:
    open_to_all = short_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    command = [
        sys.executable,
        "-m",
        "roundtable.serve",
        "--home",
        str(home),
        "--socket",
        str(open_to_all / "s"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert "open to others" in done.stderr
    assert stat.S_IMODE(open_to_all.stat().st_mode) == 0o777
    open_to_all.chmod(0o700)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until((home / "roundtable" / "broker.path").exists)
        assert Home(home).socket() == open_to_all / "s"
        with Raw(Home(home).socket(), "ann") as ann:
            assert ann.ask("rooms")["type"] == "rooms"
        process.terminate()


def test_a_home_is_made_for_its_user_alone_and_not_changed_if_it_stands(home: Path, short_path: Path) -> None:
    with broker_process(home, umask=0):
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
    standing = short_path / "standing"
    standing.mkdir()
    standing.chmod(0o755)
    with broker_process(standing):
        assert stat.S_IMODE(standing.stat().st_mode) == 0o755
        assert stat.S_IMODE((standing / "roundtable").stat().st_mode) == 0o700


def test_a_second_broker_stands_down_and_the_first_goes_on(home: Path) -> None:
    with broker_process(home) as first, Raw(home / "roundtable" / "broker.sock", "ann") as ann:
        ann.ask("join", room="a")
        second = subprocess.run(
            [sys.executable, "-m", "roundtable.serve", "--home", str(home)],
            capture_output=True,
            text=True,
            timeout=10,
        )
        assert second.returncode == 0
        assert "already listening" in second.stderr
        assert ann.ask("post", room="a", text="x")["type"] == "posted"
        assert (home / "roundtable" / "broker.pid").read_text() == f"{first.pid}\n"
        with Raw(home / "roundtable" / "broker.sock", "bob") as bob:
            assert bob.ask("rooms")["rooms"][0]["messageCount"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_and_leaves_nothing(home: Path, number: int) -> None:
    with broker_process(home, grace=600) as process, Raw(home / "roundtable" / "broker.sock", "ann") as ann:
        process.send_signal(number)
        assert process.wait(5) == 0
        assert ann.is_closed()
        assert sorted(path.name for path in (home / "roundtable").iterdir()) == ["broker.lock"]


def test_told_to_end_it_waits_a_moment_for_who_does_not_read_and_no_longer(home: Path) -> None:
    path = home / "roundtable" / "broker.sock"
    with broker_process(home, grace=600) as process, Raw(path, "slow") as slow, Raw(path, "ann") as ann:
        slow.ask("join", room="a")
        slow.ask("post", room="a", text="x" * 6_000_000)
        slow.send("fetch", room="a", afterSeq=0)
        # Answered in the same turn or after it, so the reply to the other is on its way now.
        ann.ask("rooms")
        process.send_signal(signal.SIGTERM)
        assert ann.is_closed()
        assert process.wait(SECONDS) == 0


def test_it_ends_when_nobody_has_been_there_for_its_grace(home: Path) -> None:
    path = home / "roundtable" / "broker.sock"
    with broker_process(home, grace=1.0) as process:
        with Raw(path, "ann") as ann:
            ann.ask("join", room="a")
            ann.ask("post", room="a", text="x")
        with Raw(path, "bob") as bob:
            assert bob.ask("rooms")["rooms"][0]["messageCount"] == 1
        assert process.wait(10) == 0
        assert not path.exists()


def test_who_never_registers_does_not_keep_it_alive(home: Path) -> None:
    with embedded_broker(home, limits=Limits(register_seconds=0.1), grace=0.1) as path, Raw(path) as silent:
        assert silent.is_closed()
        # Looking by connecting would keep it alive.
        until(lambda: f"broker of {home}" not in {thread.name for thread in threading.enumerate()})


def test_it_does_not_remove_a_socket_that_another_has_made(home: Path) -> None:
    path = home / "roundtable" / "broker.sock"
    with broker_process(home) as process:
        path.unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(str(path))
            process.terminate()
            assert process.wait(5) == 0
            assert path.exists()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs to become another user")
def test_another_user_is_not_served(home: Path, short_path: Path) -> None:
    with broker_process(home):
        for folder in (short_path, home, home / "roundtable"):
            folder.chmod(0o755)
        path = home / "roundtable" / "broker.sock"
        path.chmod(0o666)
        code = f"""import os, socket
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.connect({str(path)!r})
s.settimeout(5)
try:
    print("closed" if s.recv(1) == b"" else "served")
except ConnectionError:
    print("closed")
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
        assert ran.stdout == "closed\n", ran
