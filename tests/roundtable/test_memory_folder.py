"""The memory folder: no path and no link leads out of it, and no file is ever half there."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtable.errors import MemoryFailed, UsageProblem
from roundtable.memory import folder as folder_module
from roundtable.memory.folder import Folder, Lines, raw_parts
from tests.roundtable.swapping import swapping


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.opened(tmp_path / "memory", is_made=True) as opened:
        yield opened


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    return path


def write(folder: Folder, path: str, text: str) -> None:
    with folder.replacing(path, "Export") as file:
        file.write(text.encode())


def names(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/x", "must be relative to the memory directory"),
        ("~/x", "must be relative to the memory directory"),
        ("x.txt", "must name a file under the memory raw/ directory"),
        ("raw", "must name a file under the memory raw/ directory"),
        ("raw/", "must name a file under the memory raw/ directory"),
        ("raw/.", "must name a file under the memory raw/ directory"),
        ("raw/x/", "must name a file under the memory raw/ directory"),
        ("raw/../x.txt", "must name a file under the memory raw/ directory"),
        ("raw/a/../../../x.txt", "must name a file under the memory raw/ directory"),
        ("wiki/x.md", "must name a file under the memory raw/ directory"),
        ("../raw/x", "must name a file under the memory raw/ directory"),
        ("", "must name a file under the memory raw/ directory"),
        ("raw/.git/hooks/x", "hidden"),
        ("raw/a\nb", "control characters"),
        ("raw/a\0b", "control characters"),
        ("raw/\udcff", "control characters"),
        ("raw/" + "x" * 256, "too long"),
        ("raw/" + "é" * 128, "too long"),
        ("raw/" + "a/" * 20 + "x", "too long"),
    ],
)
def test_a_path_is_judged_by_its_letters_first(path: str, message: str) -> None:
    with pytest.raises(UsageProblem, match=f"Export path .*{message}"):
        raw_parts(path, "Export")


def test_a_path_may_be_written_loosely() -> None:
    assert raw_parts("raw//a/./b.txt", "Export") == ("raw", "a", "b.txt")
    assert raw_parts("./raw/é ü.txt", "Export") == ("raw", "é ü.txt")


@given(st.text(st.sampled_from("raw/.\\x~ \n\0é"), max_size=20))
def test_no_path_that_passes_climbs(path: str) -> None:
    try:
        parts = raw_parts(path, "Export")
    except UsageProblem:
        return
    assert parts[0] == "raw"
    assert len(parts) > 1
    assert not any(part in {"", ".", ".."} or "/" in part or part.startswith(".") for part in parts)


def test_a_file_is_written_with_its_folders(folder: Folder) -> None:
    write(folder, "raw/a/b.txt", "one")
    write(folder, "raw/a/b.txt", "two")
    assert (folder.path / "raw/a/b.txt").read_text() == "two"
    assert names(folder.path) == ["raw", "raw/a", "raw/a/b.txt"]
    assert (folder.path / "raw/a/b.txt").stat().st_mode & 0o777 == 0o600
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_rights_that_somebody_gave_stay(folder: Folder) -> None:
    write(folder, "wiki/a.md", "one")
    (folder.path / "wiki/a.md").chmod(0o644)
    write(folder, "wiki/a.md", "two")
    assert (folder.path / "wiki/a.md").stat().st_mode & 0o777 == 0o644


def test_what_fails_in_the_middle_leaves_the_old_file_and_nothing_else(folder: Folder) -> None:
    write(folder, "raw/a.txt", "old")

    def fail() -> None:
        with folder.replacing("raw/a.txt") as file:
            file.write(b"new")
            file.flush()
            assert (folder.path / "raw/a.txt").read_text() == "old"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (folder.path / "raw/a.txt").read_text() == "old"
    assert names(folder.path) == ["raw", "raw/a.txt"]


def test_a_full_disk_leaves_the_old_file(folder: Folder) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    write(folder, "raw/a.txt", "old")
    full = os.open("/dev/full", os.O_WRONLY)

    def fill() -> None:
        with folder.replacing("raw/a.txt") as file:
            os.dup2(full, file.fileno())
            file.write(b"new")

    with pytest.raises(MemoryFailed, match=r"cannot write raw/a\.txt: No space left") as caught:
        fill()
    os.close(full)
    assert "free some space" in str(caught.value.hint)
    assert (folder.path / "raw/a.txt").read_text() == "old"
    assert names(folder.path) == ["raw", "raw/a.txt"]


@pytest.mark.parametrize("path", ["raw/out/x.txt", "raw/in/out/x.txt", "raw/in/out/new/x.txt"])
def test_a_link_on_the_way_is_refused(folder: Folder, outside: Path, path: str) -> None:
    (folder.path / "raw/in").mkdir(parents=True)
    (folder.path / "raw/out").symlink_to(outside)
    (folder.path / "raw/in/out").symlink_to("../..")
    message = "Export path must not traverse a symlink outside the memory raw/ directory"
    with pytest.raises(UsageProblem, match=message):
        folder.check(tuple(path.split("/")), "Export")
    with pytest.raises(UsageProblem, match=message):
        write(folder, path, "x")
    assert names(outside) == []
    assert not (folder.path / "x.txt").exists()


def test_raw_itself_may_be_no_link(folder: Folder, outside: Path) -> None:
    (folder.path / "raw").symlink_to(outside)
    message = "Memory raw directory must not resolve outside the memory directory"
    with pytest.raises(UsageProblem, match=message):
        folder.check(("raw", "x.txt"), "Export")
    with pytest.raises(UsageProblem, match=message):
        write(folder, "raw/x.txt", "x")
    assert names(outside) == []
    with pytest.raises(MemoryFailed, match="no folder of its own"):
        folder.listing("raw")


def test_the_target_may_be_no_link_and_no_folder(folder: Folder, outside: Path) -> None:
    (outside / "x.txt").write_text("theirs")
    (folder.path / "raw/sub").mkdir(parents=True)
    (folder.path / "raw/link").symlink_to(outside / "x.txt")
    (folder.path / "raw/dangling").symlink_to(outside / "new.txt")
    for name in ("link", "dangling"):
        with pytest.raises(UsageProblem, match="Export target must not be a symbolic link"):
            write(folder, f"raw/{name}", "x")
    with pytest.raises(UsageProblem, match="Export target must be a file"):
        write(folder, "raw/sub", "x")
    (folder.path / "raw/file").write_text("x")
    with pytest.raises(UsageProblem, match="leads through a file"):
        write(folder, "raw/file/x", "y")
    assert (outside / "x.txt").read_text() == "theirs"
    assert names(outside) == ["x.txt"]


def test_the_folder_itself_may_be_a_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "link").symlink_to(outside)
    with Folder.opened(tmp_path / "link", is_made=True) as folder:
        # Followed once: pointing it elsewhere now changes nothing.
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("/")
        write(folder, "raw/x.txt", "x")
    assert names(outside) == ["raw", "raw/x.txt"]


def test_a_folder_that_is_moved_away_meanwhile_is_told(folder: Folder, outside: Path) -> None:
    (folder.path / "raw/sub").mkdir(parents=True)

    def move() -> None:
        with folder.replacing("raw/sub/x.txt") as file:
            file.write(b"x")
            (folder.path / "raw/sub").rename(folder.path / "raw/other")
            (folder.path / "raw/sub").symlink_to(outside)

    with pytest.raises(MemoryFailed, match="was moved or replaced while it was written"):
        move()
    assert names(outside) == []


def test_a_link_swapped_in_at_any_moment_leads_nowhere(folder: Folder, outside: Path) -> None:
    outcomes = {"written": 0, "refused": 0}
    with swapping(folder.path / "raw/sub", outside):
        for number in range(200):
            try:
                write(folder, f"raw/sub/{number % 7}.txt", "x")
                outcomes["written"] += 1
            except (UsageProblem, MemoryFailed):
                outcomes["refused"] += 1
    assert names(outside) == []
    assert outcomes["refused"], "nothing was swapped in time"


def test_a_listing_follows_nothing_and_says_what_it_leaves_out(folder: Folder, outside: Path) -> None:
    (outside / "secret.txt").write_text("secret")
    raw = folder.path / "raw"
    (raw / "sub").mkdir(parents=True)
    (raw / "sub/a.txt").write_text("a")
    (raw / "b.txt").write_text("bb")
    (raw / ".hidden").write_text("x")
    (raw / f"{folder_module._TEMPORARY}0").write_text("x")
    (raw / "link.txt").symlink_to(outside / "secret.txt")
    (raw / "linked").symlink_to(outside)
    os.mkfifo(raw / "pipe")
    listing = folder.listing("raw")
    assert {path: stamp.size for path, stamp in listing.files.items()} == {"raw/b.txt": 2, "raw/sub/a.txt": 1}
    assert dict(listing.skipped) == {
        "raw/link.txt": "a symbolic link",
        "raw/linked": "a symbolic link",
        "raw/pipe": "not a regular file",
    }
    assert listing.leftovers == (f"raw/{folder_module._TEMPORARY}0",)
    assert folder.listing("wiki").files == {}
    for path in ("raw/link.txt", "raw/linked/secret.txt", "raw/pipe"):
        with pytest.raises((MemoryFailed, UsageProblem)), folder.reading(path):
            pass


def test_names_that_are_no_utf8_are_told(folder: Folder) -> None:
    (folder.path / "raw").mkdir()
    try:
        os.close(os.open(os.fsencode(folder.path) + b"/raw/\xff.txt", os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    ((path, reason),) = folder.listing("raw").skipped
    assert path.isprintable()
    assert reason == "a name that is not UTF-8"


def test_lines_are_decoded_one_by_one_and_never_longer_than_the_bound(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.path / "raw").mkdir()
    (folder.path / "raw/a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\xfftwo\n\nlast")
    with folder.lines("raw/a.txt") as lines:
        assert list(lines) == ["one\r", "\ufffdtwo", "", "last"]
        assert not lines.is_utf8
    monkeypatch.setattr(folder_module, "MAX_LINE_BYTES", 10)
    (folder.path / "raw/b.txt").write_bytes(b"x" * 25 + b"\ny\n")
    with folder.lines("raw/b.txt") as lines:
        assert list(lines) == ["x" * 10, "x" * 10, "x" * 5, "y"]
        assert lines.is_utf8


@given(st.text(st.sampled_from("aé数\U0001f600\n"), max_size=40), st.integers(4, 9))
def test_a_long_line_is_cut_between_characters(text: str, max_bytes: int) -> None:
    lines = Lines(io.BytesIO(text.encode()), max_bytes)
    pieces = list(lines)
    assert lines.is_utf8
    assert "".join(pieces) == text.replace("\n", "")
    assert "\ufffd" in "".join(Lines(io.BytesIO(text.encode() + b"\xf0\x9f"), max_bytes))


def test_a_lock_is_waited_for_and_given_up(folder: Folder) -> None:
    with (
        folder.locked("write.lock", seconds=1),
        pytest.raises(MemoryFailed, match="another process has been writing"),
        folder.locked("write.lock", seconds=0.05),
    ):
        pass
    with folder.locked("write.lock", seconds=0.05):
        pass


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(MemoryFailed, match="cannot open"), Folder.opened(tmp_path / "file", is_made=True):
        pass
    with pytest.raises(FileNotFoundError), Folder.opened(tmp_path / "none", is_made=False):
        pass
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(MemoryFailed), Folder.opened(tmp_path / "dangling", is_made=True):
        pass
