"""Which store a broker is told to use, and what everybody hears when its file cannot be used or its disk is full."""

from __future__ import annotations

import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from roundtable.claim import claim, is_served
from roundtable.client import connect, reach
from roundtable.errors import BrokerUnavailable, Refused, UsageProblem
from roundtable.home import Home
from roundtable.message import Author
from roundtable.store import absolute_store, database_path
from roundtable.stores.sqlite import SqliteStore
from roundtable.wire import encode_message, frame
from tests.integration.raw import SECONDS, Raw, broker_process, until


def serve(home: Path, *options: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A broker that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "roundtable.serve", "--home", str(home), *options],
        env={**os.environ, **environ},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


# The word that names a store.


def test_a_word_names_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/somewhere")
    default = Path("/default/rooms.db")
    assert database_path("memory", default=default) is None
    assert database_path("sqlite", default=default) == default
    assert database_path("sqlite:/a:b.db", default=default) == Path("/a:b.db")
    assert database_path("sqlite:x/y.db", default=default) == tmp_path / "x" / "y.db"
    assert database_path("sqlite:~/y.db", default=default) == Path("/somewhere/y.db")
    assert absolute_store("sqlite:y.db") == f"sqlite:{tmp_path}/y.db"
    for word in ("memory", "sqlite", "sqlite:", "nats:x", ""):
        assert absolute_store(word) == word


@pytest.mark.parametrize(
    "word",
    ["", "sqlite:", "memory:x", "SQLITE", "nats", "sqlite ", "sqlite: ", "sqlite::memory:", "sqlite:a\0b"],
)
def test_any_other_word_is_a_usage_error(word: str) -> None:
    with pytest.raises(UsageProblem, match="no store is called") as caught:
        database_path(word, default=Path("/default"))
    assert caught.value.hint == "say memory, sqlite or sqlite:PATH"


@pytest.mark.parametrize("options", [("--store", "nats"), ("--store", ""), ()])
def test_a_bad_word_ends_the_broker_with_2_and_a_sentence(
    home: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = serve(home, *options, cwd=tmp_path, ROUNDTABLE_STORE="redis")
    assert done.returncode == 2
    assert ("--store: no store" if options else "ROUNDTABLE_STORE: no store is called 'redis'") in done.stderr
    assert "sqlite:PATH" in done.stderr
    assert not home.exists()


def test_the_flag_comes_before_the_environment_and_memory_before_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = home / "roundtable" / "rooms.db"
    monkeypatch.setenv("ROUNDTABLE_STORE", "sqlite")
    with broker_process(home, "--store", "memory"):
        assert not database.exists()
    monkeypatch.setenv("ROUNDTABLE_STORE", "")
    with broker_process(home):
        assert not database.exists()
    monkeypatch.setenv("ROUNDTABLE_STORE", "sqlite")
    with broker_process(home):
        assert database.exists()


def test_rooms_in_memory_need_no_database() -> None:
    code = "import sys, roundtable.serve; sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@contextmanager
def started_by(home: Home) -> Iterator[None]:
    """The broker that a client starts ends with the block."""
    try:
        yield
    finally:
        if home.pid.exists():
            os.kill(int(home.pid.read_text()), signal.SIGTERM)
            until(lambda: not home.pid.exists())


@pytest.mark.anyio
async def test_whoever_starts_a_broker_hands_on_the_store_by_its_own_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROUNDTABLE_STORE", "sqlite:mine.db")
    for text in ("first", "second"):
        with started_by(Home(home)):
            async with await reach(Home(home), name="ann") as client:
                await client.join("a")
                await client.post("a", text)
                texts = [message.text for message in (await client.fetch("a", after_seq=0)).messages]
    assert texts == ["first", "second"]
    assert (tmp_path / "mine.db").exists()


# A file that cannot be used.


def damage(path: Path) -> None:
    store = SqliteStore(path, encode_message)
    room = store.create("a", epoch="e")
    ann = Author("s", "ann")
    room.join(ann, joined_at=0)
    for number in range(100):
        store.before_change(room)
        text = "x" * 500
        store.posted(room, room.post(ann, text, id=str(number), timestamp=0, size=500).message)
    store.commit()
    store.close()
    os.truncate(path, path.stat().st_size // 2)


def test_a_broker_that_cannot_use_its_file_says_so_and_serves_nobody(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "rooms.db"
    damage(path)
    before = path.read_bytes()
    done = serve(home, "--store", f"sqlite:{path}", cwd=tmp_path)
    assert done.returncode == 1
    assert f"cannot keep rooms in {path}: it is damaged and was left as it is" in done.stderr
    assert "put a copy in its place" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("rooms")] == ["rooms.db"]
    assert [entry.name for entry in (home / "roundtable").iterdir()] == ["broker.lock"]


def test_two_homes_cannot_share_a_file(home: Path, short_path: Path) -> None:
    store = ("--store", f"sqlite:{short_path / 'rooms.db'}")
    with broker_process(home, *store), Raw(home / "roundtable" / "broker.sock", "ann") as ann:
        ann.ask("join", room="a")
        ann.ask("post", room="a", text="x")
        done = serve(short_path / "other", *store, cwd=short_path)
        assert done.returncode == 1
        assert "another broker or program has it open" in done.stderr
        assert ann.ask("post", room="a", text="x")["message"]["seq"] == 2
        # In its own home a second broker has nothing to open.
        assert serve(home, *store, cwd=short_path).returncode == 0


@pytest.mark.anyio
async def test_the_client_that_starts_a_broker_is_told_why_there_is_none(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rooms.db"
    path.write_text("my notes")
    monkeypatch.setenv("ROUNDTABLE_STORE", f"sqlite:{path}")
    with pytest.raises(BrokerUnavailable) as caught:
        await reach(Home(home), name="ann")
    assert str(caught.value) == (
        f"no room broker at {Home(home).default_socket()}: cannot keep rooms in {path}: it is no SQLite database"
    )
    assert caught.value.hint == (
        "name another file with --store sqlite:PATH, or move this one away with the -wal and -shm beside it "
        "and a new one is made"
    )
    monkeypatch.setenv("ROUNDTABLE_STORE", "redis")
    with pytest.raises(BrokerUnavailable, match="ROUNDTABLE_STORE: no store is called 'redis'") as caught:
        await reach(Home(home), name="ann")
    assert caught.value.hint == "say memory, sqlite or sqlite:PATH"
    assert path.read_text() == "my notes"


def test_who_waits_for_a_broker_that_cannot_use_its_file_is_told(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "rooms.db"
    SqliteStore(path, encode_message).close()
    command = [sys.executable, "-m", "roundtable.serve", "--home", str(home), "--store", f"sqlite:{path}"]
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        # It looks for the lock for a while, and has its socket already.
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            until(lambda: is_served(Home(home).default_socket()))
            with Raw(Home(home).default_socket()) as raw:
                refused = raw.receive()
                assert refused["code"] == "store-unavailable"
                assert "another broker or program has it open; stop that one" in refused["error"]
                assert raw.is_closed()
            assert process.wait(SECONDS) == 1


def test_who_has_connected_to_a_broker_that_cannot_serve_is_told(home: Path) -> None:
    taken = claim(Home(home))
    assert taken is not None
    with Raw(taken.path) as one, Raw(taken.path) as two:
        one.send("register", name="ann")
        taken.refuse(frame(b'{"type":"error","code":"store-unavailable","error":"why"}'))
        for raw in (one, two):
            assert raw.receive()["error"] == "why"
            assert raw.is_closed()
    assert not taken.path.exists()


@pytest.mark.anyio
async def test_a_client_hands_on_what_such_a_broker_said(home: Path) -> None:
    taken = claim(Home(home))
    assert taken is not None

    def refuse_the_first() -> None:
        assert select.select([taken.listener], [], [], SECONDS)[0]
        taken.refuse(frame(b'{"type":"error","code":"store-unavailable","error":"why"}'))

    thread = threading.Thread(target=refuse_the_first)
    thread.start()
    with pytest.raises(Refused, match="why") as caught:
        await connect(taken.path, name="ann")
    assert caught.value.code == "store-unavailable"
    thread.join(SECONDS)


# A full disk.


def posts_until_refused(raw: Raw, size: int) -> int:
    """Post until the broker refuses; how many it took."""
    for number in range(10_000):
        reply = raw.ask("post", room="a", text="x" * size, id=f"id-{size}-{number}")
        if reply["type"] == "error":
            assert reply["code"] == "not-stored"
            assert reply["error"].startswith("Nothing was posted: cannot write ")
            return number
    raise AssertionError("the disk never became full")


def check_lives(raw: Raw, count: int) -> None:
    """The room answers, and holds what was acknowledged."""
    page = raw.ask("fetch", room="a", afterSeq=0, limit=500)
    assert page["lastSeq"] == count
    assert [message["seq"] for message in page["messages"]] == list(range(1, count + 1))
    assert raw.ask("digest", room="a", peek=True)["lastSeq"] == count
    assert len(raw.ask("rooms")["rooms"][0]["members"]) == 1


@pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="no way to limit another process here (Linux only)"
)
def test_a_file_that_may_not_grow_refuses_posts_until_it_may_again(home: Path) -> None:
    database = home / "roundtable" / "rooms.db"
    with broker_process(home, "--store", "sqlite") as process:
        with Raw(home / "roundtable" / "broker.sock", "ann") as ann:
            ann.ask("join", room="a")
            for _ in range(5):
                assert ann.ask("post", room="a", text="x" * 600)["type"] == "posted"
            limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            for limit in (1, Path(f"{database}-wal").stat().st_size + 5000):
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limits[1]))
                count = ann.ask("fetch", room="a", afterSeq=0)["lastSeq"]
                refused = ann.ask("post", room="a", text="y" * 50_000, id=f"late {limit}")
                assert refused["code"] == "not-stored", refused
                assert str(database) in refused["error"]
                assert ann.ask("set_cursor", room="a", seq=count)["type"] == "cursor_set"
                check_lives(ann, count)
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
                again = ann.ask("post", room="a", text="y" * 50_000, id=f"late {limit}")
                assert again["message"]["seq"] == count + 1
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
    with broker_process(home, "--store", "sqlite"), Raw(home / "roundtable" / "broker.sock", "ann") as ann:
        assert ann.ask("join", room="a")["lastSeq"] == 7


@contextmanager
def small_disk(folder: Path, kibibytes: int) -> Iterator[Path]:
    """A file system of its own that is soon full; skips the test where none can be mounted."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
@pytest.mark.parametrize("size", [600, 70_000])
def test_a_full_disk_refuses_posts_until_there_is_space(home: Path, short_path: Path, size: int) -> None:
    with small_disk(short_path / "disk", 1024) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * 512 * 1024)
        store = ("--store", f"sqlite:{disk / 'rooms.db'}")
        with broker_process(home, *store) as process:
            with Raw(home / "roundtable" / "broker.sock", "ann") as ann:
                ann.ask("join", room="a")
                count = posts_until_refused(ann, size)
                assert count
                check_lives(ann, count)
                for _ in range(20):
                    assert ann.ask("post", room="a", text="y" * 100_000)["code"] == "not-stored"
                check_lives(ann, count)
                ballast.unlink()
                assert ann.ask("post", room="a", text="z" * 100_000)["message"]["seq"] == count + 1
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
        with broker_process(home, *store), Raw(home / "roundtable" / "broker.sock", "ann") as ann:
            ann.ask("join", room="a")
            check_lives(ann, count + 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_disk_too_full_for_a_new_file_is_told_and_nothing_is_left_there(
    home: Path, short_path: Path
) -> None:
    with small_disk(short_path / "disk", 64) as disk:
        (disk / "ballast").write_bytes(b"\0" * 60 * 1024)
        done = serve(home, "--store", f"sqlite:{disk / 'rooms.db'}", cwd=short_path)
        assert done.returncode == 1
        assert f"cannot keep rooms in {disk / 'rooms.db'}: " in done.stderr
        assert "full" in done.stderr
        assert [entry.name for entry in disk.iterdir()] == ["ballast"]


def test_what_another_program_reads_meanwhile_does_not_hurt(home: Path) -> None:
    with broker_process(home, "--store", "sqlite"), Raw(home / "roundtable" / "broker.sock", "ann") as ann:
        ann.ask("join", room="a")
        ann.ask("post", room="a", text="x")
        with closing(sqlite3.connect(home / "roundtable" / "rooms.db", timeout=0)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("SELECT * FROM messages")
            assert ann.ask("post", room="a", text="x")["message"]["seq"] == 2
