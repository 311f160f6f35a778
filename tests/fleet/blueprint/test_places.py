"""Where a project begins and ends, and that the user's own folder is not part of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleet.blueprint.places import Places, Scope


def test_a_project_reaches_up_to_the_root_of_its_repository(tmp_path: Path) -> None:
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/a/b").mkdir(parents=True)
    places = Places.around(tmp_path / "repo/a/b", home=tmp_path / "home")
    assert places.levels == tuple(tmp_path / part for part in ("repo/a/b", "repo/a", "repo"))
    assert places.of_project(".fleet", "x")[-1] == tmp_path / "repo/.fleet/x"


def test_a_worktree_has_a_file_for_git(tmp_path: Path) -> None:
    (tmp_path / "tree/src").mkdir(parents=True)
    (tmp_path / "tree/.git").write_text("gitdir: elsewhere\n")
    assert len(Places.around(tmp_path / "tree/src", home=tmp_path).levels) == 2


def test_outside_a_repository_it_is_one_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    places = Places.around(tmp_path / "a", home=tmp_path / "home")
    # Whatever lies above the temporary folder of this machine is not ours to know.
    assert places.levels[0] == tmp_path / "a"
    assert places.levels[-1] == tmp_path / "a" or (places.levels[-1] / ".git").exists()


def test_a_folder_that_everybody_may_write_ends_the_way_up(tmp_path: Path) -> None:
    (tmp_path / "shared/.git").mkdir(parents=True)
    (tmp_path / "shared/mine/src").mkdir(parents=True)
    start, home = tmp_path / "shared/mine/src", tmp_path / "home"
    assert len(Places.around(start, home=home).levels) == 3
    (tmp_path / "shared").chmod(0o1777)
    assert Places.around(start, home=home).levels == (start,)
    (tmp_path / "shared/mine/.git").mkdir()
    assert Places.around(start, home=home).levels == (start, start.parent)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_ends_the_way_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs/.git").mkdir(parents=True)
    (tmp_path / "theirs/mine").mkdir()
    os.chown(tmp_path / "theirs", 12345, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert len(Places.around(tmp_path / "theirs/mine", home=tmp_path / "home").levels) == 1


def test_the_users_own_folder_is_no_projects(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    places = Places.around(tmp_path, home=tmp_path / ".fleet")
    assert places.of_project(".fleet", "blueprints") == ()
    assert places.of_project(".claude", "agents") == (tmp_path / ".claude/agents",)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Places.around(tmp_path, home=tmp_path / "real").of_project("link", "x") == ()


def test_paths_are_shown_from_here(tmp_path: Path) -> None:
    places = Places.around(tmp_path / "a", home=tmp_path)
    assert places.shown(tmp_path / "a/b/c") == "b/c"
    assert places.shown(tmp_path / "b") == str(tmp_path / "b")


def test_which_scopes_came_with_the_project() -> None:
    assert [scope for scope in Scope if scope.is_project] == [Scope.PROJECT, Scope.ORPHUS]
