"""The bound answers as the broker does: the same keys, numbers and messages for the same requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.raw import Raw

from . import servers
from .servers import Server, bound, bound_command, broker

#: What is each server's own.
OWN = {"id", "sessionId", "timestamp", "joinedAt", "epoch", "broker"}

BARE = ("bare Python", [sys.executable, str(Path(servers.__file__).with_name("bound.py"))])


def conversation(server: Server) -> list[Any]:
    """Two members, 600 posts, and what is kept of them."""
    answers: list[Any] = []
    with Raw(server.path, "ann") as ann, Raw(server.path, "bob") as bob:
        answers += [ann.registered, bob.registered]
        answers += [member.ask("join", room="a") for member in (ann, bob, bob)]
        answers.append(ann.next_activity())
        for number in range(3):
            answers.append(ann.ask("post", room="a", text=f'{number} \\ "quoted" é\n'))
        answers.append(bob.ask("post", room="a", text="y"))
        answers.append(ann.ask("post", room="a", text="z"))
        answers.append(ann.ask("fetch", room="a", afterSeq=2))
        answers += [bob.next_activity() for _ in range(4)]
        ids = [bob.send("post", room="a", text="x" * number) for number in range(1, 597)]
        answers += [bob.reply(request_id) for request_id in ids]
        late = ann.ask("fetch", room="a", afterSeq=0, limit=500)
        answers.append(late)
        assert (late["firstSeq"], late["lastSeq"], len(late["messages"])) == (102, 601, 500)
        # Activity of posts that came while somebody was asked.
        answers.append(sorted(event["seq"] for event in ann.activity))
        bob.socket.close()
        ann.activity.clear()
        answers.append(ann.next_activity())
        answers.append(ann.ask("join", room="a"))
    return [shape(answer) for answer in answers]


def shape(answer: Any) -> Any:
    if isinstance(answer, list):
        return [shape(item) for item in answer]
    if isinstance(answer, dict):
        return {key: type(value) if key in OWN else shape(value) for key, value in answer.items()}
    return answer


@pytest.mark.parametrize("which", ["compiled", "bare Python"])
def test_a_conversation_goes_as_with_the_broker(short_path: Path, which: str) -> None:
    label, command = bound_command(short_path) if which == "compiled" else BARE
    if which == "compiled" and label != "C":
        pytest.skip("no C compiler, or no Linux")
    with broker(short_path) as server:
        wanted = conversation(server)
    with bound(short_path, label, command) as server:
        assert conversation(server) == wanted
