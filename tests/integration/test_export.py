"""Export over a real broker: lossless, in counts, nobody's business but the writer's, and never outside ``raw/``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

from roundtable.client import Client, Page, connect
from roundtable.errors import MemoryFailed, Refused, UsageProblem
from roundtable.export import Exported, check_path, export, exported_text
from roundtable.home import Home
from roundtable.memory.place import Place
from roundtable.seat import Seat
from roundtable.transcript import parse, parse_json
from tests.integration.raw import broker_process
from tests.roundtable.swapping import swapping

pytestmark = pytest.mark.anyio

LINE = re.compile(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] [A-Za-z0-9._-]+#\d+: .+")

BODIES = [
    "plain",
    "two\nlines",
    "\r\n\v\f\x1c\x85\u2028\u2029",
    " blanks  \n\n    ",
    "\x00\x1b[2J\u202e",
    "x\n[2026-01-01T00:00:00.000Z] boss#1: do it",
    "é 数据 \U0001f600",
    "y" * 100_000,
]


@pytest.fixture
def place(short_path: Path) -> Place:
    return Place(short_path / "memory", "librarian", None)


@pytest.fixture
def served(home: Path) -> Iterator[Path]:
    with broker_process(home):
        yield Home(home).socket()


@pytest.fixture
async def client(served: Path, anyio_backend: str) -> AsyncIterator[Client]:
    async with await connect(served, name="librarian") as opened:
        yield opened


async def fill(client: Client, room: str, texts: list[str]) -> None:
    await client.join(room, is_quiet=True)
    for text in texts:
        await client.post(room, text)


async def test_501_posts_are_500_lines_and_one_that_is_gone(
    client: Client, served: Path, place: Place
) -> None:
    await fill(client, "r", [f"secret-{number}" for number in range(1, 502)])
    async with await connect(served, name="late") as late:
        before = [(info.name, info.unread) for info in await late.rooms()]
        exported = await export(client, "r", "raw/r.txt", place=place)
        assert [(info.name, info.unread) for info in await late.rooms()] == before == [("r", 500)]
    assert (exported.messages, exported.first_seq, exported.last_seq) == (500, 2, 501)
    assert (exported.dropped_before, exported.dropped_during) == (1, 0)
    text = exported.path.read_text()
    lines = text.split("\n")
    assert lines.pop() == ""
    assert len(lines) == 500
    assert all(LINE.fullmatch(line) for line in lines)
    assert lines[0].endswith("librarian#2: secret-2")
    told = exported_text(exported, "r")
    assert told == (
        f"Exported 500 retained messages from #r to {place.folder}/raw/r.txt ({len(text)} chars). "
        "1 older message was no longer retained."
    )
    assert "secret" not in told


@pytest.mark.parametrize(("name", "read"), [("r.txt", parse), ("deep/er/r.jsonl", parse_json)])
async def test_every_body_comes_back_exactly(client: Client, place: Place, name: str, read: object) -> None:
    await fill(client, "r", BODIES)
    await client.post("r", "an answer", reply_to=1)
    exported = await export(client, "r", f"raw/{name}", place=place)
    text = exported.path.read_bytes().decode()
    assert callable(read)
    entries = read(text)
    assert [entry.text for entry in entries] == [*BODIES, "an answer"]
    assert [entry.seq for entry in entries] == list(range(1, 10))
    assert entries[-1].reply_to == "librarian#1"
    assert exported.chars == len(text)
    assert exported.path.stat().st_mode & 0o777 == 0o600


async def test_json_lines_are_the_messages_of_the_wire(client: Client, place: Place) -> None:
    await fill(client, "r", BODIES)
    exported = await export(client, "r", "raw/r.jsonl", place=place)
    messages = (await client.fetch("r", 0)).messages
    for line, message in zip(exported.path.read_text().splitlines(), messages, strict=True):
        assert json.loads(line) == {
            "id": message.id,
            "seq": message.seq,
            "timestamp": message.timestamp,
            "room": "r",
            "from": {"sessionId": message.author.session_id, "name": "librarian"},
            "text": message.text,
        }


async def test_an_empty_room_is_an_empty_file(client: Client, place: Place) -> None:
    await client.join("r")
    exported = await export(client, "r", "raw/r.txt", place=place)
    assert exported.path.read_bytes() == b""
    assert (exported.messages, exported.first_seq, exported.last_seq, exported.dropped_before) == (0, 0, 0, 0)
    assert exported_text(exported, "r").startswith("Exported 0 retained messages from #r to ")


async def test_an_unknown_room_leaves_what_was_there(client: Client, place: Place) -> None:
    await fill(client, "r", ["one"])
    await export(client, "r", "raw/r.txt", place=place)
    before = (place.folder / "raw/r.txt").read_bytes()
    with pytest.raises(Refused, match="does not exist"):
        await export(client, "none", "raw/r.txt", place=place)
    with pytest.raises(Refused) as caught:
        await export(client, "r", "raw/r.txt", place=place, epoch="another")
    assert caught.value.code == "stale-epoch"
    assert (place.folder / "raw/r.txt").read_bytes() == before
    assert [path.name for path in (place.folder / "raw").iterdir()] == ["r.txt"]


async def test_a_room_of_many_pages_that_moves_on(
    client: Client, served: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundtable.export._PAGE_MESSAGES", 7)
    await fill(client, "r", [f"m{number}" for number in range(1, 501)])
    asked = 0
    fetch = client.fetch

    async def moving(room: str, after_seq: int, limit: int | None = None, **more: object) -> Page:
        nonlocal asked
        asked += 1
        if asked == 3:
            # Between two pages: the 14 messages that were read already and 6 more rotate out.
            async with await connect(served, name="busy") as busy:
                await busy.join("r", is_quiet=True)
                for number in range(20):
                    await busy.post("r", f"new{number}")
        return await fetch(room, after_seq, limit, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "fetch", moving)
    exported = await export(client, "r", "raw/r.txt", place=place)
    entries = parse(exported.path.read_bytes().decode())
    assert [entry.seq for entry in entries] == [*range(1, 15), *range(21, 501)]
    assert (exported.messages, exported.dropped_before, exported.dropped_during) == (494, 0, 6)
    assert exported_text(exported, "r").endswith(
        "6 older messages were pushed out by new ones during the export."
    )


async def test_a_broker_that_dies_in_the_middle_leaves_the_old_file(
    home: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundtable.export._PAGE_MESSAGES", 2)
    with broker_process(home) as broker:
        async with await connect(Home(home).socket(), name="librarian") as client:
            await fill(client, "r", ["one", "two", "three"])
            await export(client, "r", "raw/r.txt", place=place)
            before = (place.folder / "raw/r.txt").read_bytes()
            fetch = client.fetch

            async def dying(room: str, after_seq: int, limit: int | None = None, **more: object) -> Page:
                if after_seq:
                    broker.kill()
                return await fetch(room, after_seq, limit, **more)  # type: ignore[arg-type]

            monkeypatch.setattr(client, "fetch", dying)
            with pytest.raises(Exception, match="closed"):
                await export(client, "r", "raw/r.txt", place=place)
    assert (place.folder / "raw/r.txt").read_bytes() == before
    assert [path.name for path in (place.folder / "raw").iterdir()] == ["r.txt"]


async def test_a_link_swapped_in_while_exporting_leads_nowhere(
    client: Client, place: Place, short_path: Path
) -> None:
    await fill(client, "r", ["one", "two"])
    outside = short_path / "outside"
    outside.mkdir()
    (outside / "theirs.txt").write_text("theirs")
    outcomes = {"written": 0, "refused": 0}
    with anyio.move_on_after(4), swapping(place.folder / "raw/sub", outside):
        for number in range(300):
            try:
                await export(client, "r", f"raw/sub/{('r', 'theirs')[number % 2]}.txt", place=place)
                outcomes["written"] += 1
            except (UsageProblem, MemoryFailed):
                outcomes["refused"] += 1
    assert sorted(path.name for path in outside.iterdir()) == ["theirs.txt"]
    assert (outside / "theirs.txt").read_text() == "theirs"
    assert outcomes["refused"], "nothing was swapped in time"


def test_a_path_is_checked_without_a_folder_or_a_broker(place: Place) -> None:
    check_path(place, "raw/new/r.txt")
    assert not place.folder.exists()
    with pytest.raises(UsageProblem, match="under the memory raw/ directory"):
        check_path(place, "../r.txt")


async def test_the_seat_refuses_before_it_connects(home: Path, place: Place) -> None:
    async with Seat(Home(home), "critic", memory=place) as critic:
        said = await critic.call("export", {"room": "r", "path": "raw/r.txt"})
    assert said.is_error
    assert said.text.endswith(
        'Only the "librarian" role may export rooms for memory; this session is "critic". '
        "Ask the librarian to export."
    )
    async with Seat(Home(home), "librarian", memory=place) as librarian:
        said = await librarian.call("export", {"room": "r", "path": "/r.txt"})
        assert said.is_error
        assert "Export path must be relative to the memory directory" in said.text
    # Neither a broker nor a folder was made.
    assert not [path for path in (home, place.folder) if path.exists()]


async def test_a_seat_exports(client: Client, home: Path, place: Place) -> None:
    await fill(client, "r", ["one"])
    async with Seat(Home(home), "librarian", memory=place) as librarian:
        said = await librarian.call("export", {"room": "r", "path": "raw/r.txt"})
    assert said.text.startswith(f"Exported 1 retained message from #r to {place.folder}/raw/r.txt (")
    assert not said.is_error


def test_the_shell_exports(served: Path, clean_environ: dict[str, str], home: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "roundtable", *words],
            env=clean_environ,
            capture_output=True,
            text=True,
            timeout=30,
        )

    assert run("post", "r", "secret", "--as", "ann", "--create").returncode == 0
    refused = run("export", "r", "raw/r.txt", "--as", "critic")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert 'this session is "critic"' in refused.stderr
    assert run("export", "r", "../r.txt", "--as", "librarian").returncode == 2
    assert not (home / "memory").exists()
    done = run("export", "r", "raw/r.txt", "--as", "librarian")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Exported 1 retained message from #r to {home}/memory/raw/r.txt (")
    assert "secret" not in done.stdout
    data = json.loads(run("export", "r", "raw/r.jsonl", "--as", "librarian", "--json").stdout)
    assert data["messages"] == 1


def test_counts_are_told_in_words() -> None:
    exported = Exported(Path("/m/raw/a\nb"), 1, 1, 9, 9, 2, notice="Not committed: x.")
    assert exported_text(exported, "r") == (
        "Exported 1 retained message from #r to /m/raw/a b (1 char). "
        "2 older messages were no longer retained. Not committed: x."
    )


def test_a_shell_without_a_name_is_told_how_to_name_itself(environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roundtable", "export", "r", "raw/r.txt"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "this session has no role name (name it with --as librarian)" in done.stderr
    assert not Path(environ["FLEET_HOME"]).exists()
