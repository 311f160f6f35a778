"""A database file that cannot be used is told in one error and left as it is; a new one is whole and private."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from roundtable.errors import StoreUnavailable
from roundtable.stores import database_file
from roundtable.stores.database_file import DatabaseFile, told_of

TABLES = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.db"


def open_file(path: Path, version: int = 1) -> sqlite3.Connection:
    with told_of(path):
        file = DatabaseFile(path, tables=TABLES, version=version)
        file.open_to_read().close()
        return file.open_to_write()


def write(path: Path, count: int = 50) -> None:
    with closing(open_file(path)) as database:
        database.executemany("INSERT INTO notes (text) VALUES (?)", [("x" * 900,)] * count)


def folder_of(path: Path) -> dict[str, bytes]:
    return {
        entry.name: entry.read_bytes() if entry.is_file() else b"" for entry in sorted(path.parent.iterdir())
    }


def test_a_new_file_is_made_whole_marked_and_closed_to_others(path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(open_file(path)) as database:
            database.execute("INSERT INTO notes (text) VALUES ('x')")
            assert {entry.name for entry in path.parent.iterdir()} == {"some.db", "some.db-wal"}
            modes = {stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
            assert modes == {0o600}
            pragmas = ("journal_mode", "synchronous", "locking_mode", "user_version")
            found = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
            assert found == ["wal", 2, "exclusive", 1]
    finally:
        os.umask(before)
    header = path.read_bytes()[:100]
    assert header[60:64] == (1).to_bytes(4, "big")
    assert header[68:72] == b"FLRT"
    assert [entry.name for entry in path.parent.iterdir()] == ["some.db"]


def test_a_file_that_stood_wider_is_narrowed(path: Path) -> None:
    write(path)
    path.chmod(0o664)
    open_file(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_leads_to_the_file_and_its_log_lies_beside_the_file(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "disk"
    other.mkdir()
    path.symlink_to(other / "real.db")
    with closing(open_file(path)) as database:
        database.execute("INSERT INTO notes (text) VALUES ('x')")
        assert {entry.name for entry in other.iterdir()} == {"real.db", "real.db-wal"}
    assert path.is_symlink()


def not_sqlite(path: Path) -> None:
    path.write_text("notes of mine, longer than the header of a database is; " * 5)


def empty(path: Path) -> None:
    path.touch()


def short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 20)


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE theirs (x)")


def newer(path: Path) -> None:
    open_file(path, version=7).close()


def older(path: Path) -> None:
    open_file(path, version=0).close()


def newer_in_its_log(path: Path) -> None:
    """The header says 1, and a log that a dead process left says 3."""
    write(path)
    code = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA locking_mode = EXCLUSIVE")
database.execute("PRAGMA user_version = 3")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert Path(f"{path}-wal").stat().st_size > 0


def torn(path: Path) -> None:
    write(path)
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xa5" * 4096)


def cut(path: Path) -> None:
    write(path)
    os.truncate(path, path.stat().st_size // 2)


def header_only(path: Path) -> None:
    write(path)
    os.truncate(path, 4096)


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (not_sqlite, "no SQLite database"),
        (empty, "empty"),
        (short, "no SQLite database"),
        (foreign, "another program"),
        (newer, "version 7, and this program knows 1"),
        (older, "damaged"),
        (newer_in_its_log, "version 3, and this program knows 1"),
        (torn, "damaged"),
        (cut, "damaged"),
        (header_only, "damaged"),
        (folder, "folder"),
        (pipe, "no SQLite database"),
        (link_to_itself, "symbolic links"),
    ],
)
def test_what_cannot_be_used_is_told_and_left(
    path: Path, make: Callable[[Path], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(path)
    before = folder_of(path) if not path.is_fifo() else {}
    with pytest.raises(StoreUnavailable, match=reason) as caught:
        open_file(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 1
    after = folder_of(path) if not path.is_fifo() else {}
    # To look into a log that somebody has left, SQLite makes an index of it; it is no part of what is kept.
    if make is newer_in_its_log:
        after.pop("some.db-shm")
    assert after == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads and writes everything")
@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_a_file_without_the_rights_is_told_and_left(path: Path, mode: int) -> None:
    write(path)
    path.chmod(mode)
    with pytest.raises(StoreUnavailable, match="Permission denied"):
        open_file(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads and writes everything")
@pytest.mark.parametrize("is_there", [True, False])
def test_a_folder_that_cannot_be_written_is_told(path: Path, is_there: bool) -> None:
    if is_there:
        write(path)
    path.parent.chmod(0o500)
    try:
        with pytest.raises(StoreUnavailable, match="folder cannot be written"):
            open_file(path)
    finally:
        path.parent.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_file_of_somebody_else_is_told_and_left(path: Path, end: str) -> None:
    write(path)
    beside = Path(f"{path}{end}")
    beside.touch()
    os.chown(beside, 12345, 12345)
    before = folder_of(path)
    with pytest.raises(StoreUnavailable, match="belongs to user 12345"):
        open_file(path)
    assert folder_of(path) == before


def test_a_folder_that_is_missing_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="folder does not exist"):
        open_file(tmp_path / "no" / "some.db")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_file, "_LOCK_SECONDS", 0.05)


#: Opens the file like a broker, or as any program does, says so and holds it until it is told to end.
HOLD = """
import sqlite3, sys
from pathlib import Path
path, kind = Path(sys.argv[1]), sys.argv[2]
if kind == "broker":
    from roundtable.stores.database_file import DatabaseFile
    database = DatabaseFile(path, tables="", version=1).open_to_write()
    database.execute("INSERT INTO notes (text) VALUES ('theirs')")
else:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN")
    database.execute("SELECT * FROM notes").fetchone()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["broker", "reader"])
@pytest.mark.usefixtures("_impatient")
def test_a_file_that_somebody_has_open_is_told_and_left(path: Path, kind: str) -> None:
    write(path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        before = folder_of(path)
        with pytest.raises(StoreUnavailable, match="another broker or program has it open"):
            open_file(path)
        assert folder_of(path) == before
        other.send_signal(signal.SIGKILL)
    open_file(path).close()


@pytest.mark.usefixtures("_impatient")
def test_who_holds_it_keeps_others_out(path: Path) -> None:
    with closing(open_file(path)) as database:
        for _ in range(2):  # before and after the first write
            with (
                closing(sqlite3.connect(path, timeout=0)) as other,
                pytest.raises(sqlite3.OperationalError, match="locked"),
            ):
                other.execute("SELECT * FROM notes").fetchall()
            database.execute("INSERT INTO notes (text) VALUES ('x')")


def test_a_log_that_a_dead_process_left_is_read_and_nothing_stays_of_the_reading(path: Path) -> None:
    write(path, 1)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), "broker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        other.send_signal(signal.SIGKILL)
    assert Path(f"{path}-wal").stat().st_size > 0
    with closing(open_file(path)) as database:
        assert database.execute("SELECT count(*) FROM notes").fetchone() == (2,)
        assert not Path(f"{path}-shm").exists()


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_log_of_a_file_that_is_gone_is_not_written_into_a_new_one(path: Path, end: str) -> None:
    Path(f"{path}{end}").write_bytes(b"changes of another file")
    before = folder_of(path)
    with pytest.raises(StoreUnavailable) as caught:
        open_file(path)
    assert f"some.db{end}, which holds its last changes" in str(caught.value)
    assert "put the file back, or move that away" in str(caught.value.hint)
    assert folder_of(path) == before


def test_what_somebody_wrote_between_reading_and_having_it_is_noticed(path: Path) -> None:
    write(path)
    with told_of(path):
        file = DatabaseFile(path, tables=TABLES, version=1)
        file.open_to_read().close()
    write(path, 1)
    with pytest.raises(StoreUnavailable, match="another broker"), told_of(path):
        file.open_to_write()
    with closing(open_file(path)) as database:
        assert database.execute("SELECT count(*) FROM notes").fetchone() == (51,)


#: Waits for a word, opens the file or says why not, and holds it until it is told to end.
RACE = """
import sys
from pathlib import Path
from roundtable.errors import StoreUnavailable
from roundtable.stores import database_file
path = Path(sys.argv[1])
database_file._LOCK_SECONDS = 0.3
print("ready", flush=True)
sys.stdin.readline()
try:
    with database_file.told_of(path):
        file = database_file.DatabaseFile(path, tables="CREATE TABLE notes (id, text);", version=1)
        file.open_to_read().close()
        database = file.open_to_write()
    print("held", flush=True)
except StoreUnavailable as problem:
    print(problem.reason, flush=True)
sys.stdin.readline()
"""


def test_of_many_who_make_it_at_once_one_has_it_and_nothing_lies_about(path: Path) -> None:
    with ExitStack() as stack:
        starters = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", RACE, str(path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                )
            )
            for _ in range(6)
        ]
        said: list[str] = []
        for turn in range(2):
            for starter in starters:
                assert starter.stdin is not None
                assert starter.stdout is not None
                if turn:
                    starter.stdin.write("go\n")
                else:
                    assert starter.stdout.readline() == "ready\n"
        for starter in starters:
            assert starter.stdout is not None
            said.append(starter.stdout.readline().strip())
        assert sorted(said) == ["another broker or program has it open"] * 5 + ["held"]
        for starter in starters:
            starter.communicate("end\n")
    assert [entry.name for entry in path.parent.iterdir()] == ["some.db"]


def test_a_file_is_never_made_over_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path)
    before = path.read_bytes()
    # As if it had come into being after we looked.
    monkeypatch.setattr(Path, "exists", lambda _: False)
    open_file(path).close()
    assert path.read_bytes() == before
