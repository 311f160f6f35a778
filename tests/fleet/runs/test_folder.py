"""The run folder: private, ignored by git, locked while its runner lives, files replaced whole."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

import pytest

from fleet.errors import StorageFailed, UsageProblem
from fleet.runs.folder import RunFolder, new_run_id


def test_an_id_is_r_and_eight_base32_characters() -> None:
    ids = {new_run_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"r[a-z2-7]{8}", run) for run in ids)


def test_a_new_folder_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    folder = RunFolder.create("rabcdefgh", below=tmp_path, output=None)
    assert folder.path == tmp_path / ".fleet" / "runs" / "rabcdefgh"
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (folder.path / ".gitignore").read_text() == "*\n"
    folder.close()


def test_the_lock_is_held_until_the_folder_is_closed(tmp_path: Path) -> None:
    folder = RunFolder.create("rabcdefgh", below=tmp_path, output=tmp_path / "out")
    other = os.open(folder.path / "run.lock", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder.close()
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


def test_a_folder_with_a_run_in_it_is_not_taken(tmp_path: Path) -> None:
    RunFolder.create("rabcdefgh", below=tmp_path, output=tmp_path / "out").write("run.json", "{}")
    with pytest.raises(UsageProblem, match="already holds a run"):
        RunFolder.create("rabcdefgi", below=tmp_path, output=tmp_path / "out")


def test_a_file_in_the_way_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageProblem, match="is not a folder"):
        RunFolder.create("rabcdefgh", below=tmp_path, output=tmp_path / "out")
    with pytest.raises(StorageFailed, match="Not a directory"):
        RunFolder.create("rabcdefgh", below=tmp_path, output=tmp_path / "out" / "run")


def test_a_folder_of_the_users_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o755)
    (tmp_path / "out" / "decision.md").write_text("my notes")
    with pytest.raises(UsageProblem, match="is not empty"):
        RunFolder.create("rabcdefgh", below=tmp_path, output=tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["decision.md"]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    folder = RunFolder.create("rabcdefgh", below=tmp_path, output=None)
    folder.write("decision.md", "one")
    folder.write("decision.md", "two \ud800")
    assert (folder.path / "decision.md").read_text() == "two \\ud800"
    assert [path.name for path in folder.path.glob("decision*")] == ["decision.md"]
    folder.close()
