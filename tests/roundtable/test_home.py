"""Where the files are, and that a folder of somebody else is never used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from roundtable.errors import UnsafeFolder
from roundtable.home import Home, check_folder, private_folder


def test_the_environment_names_the_home() -> None:
    assert Home.from_environment({"FLEET_HOME": "/x/y"}) == Home(Path("/x/y"))
    assert Home.from_environment({"FLEET_HOME": "~/z"}).root == Path.home() / "z"
    assert Home.from_environment({"FLEET_HOME": ""}).root == Path.home() / ".fleet"
    assert Home.from_environment({"FLEET_HOME": "rel"}).root == Path.cwd() / "rel"
    assert Home.from_environment({"FLEET_HOME": "/x", "XDG_RUNTIME_DIR": "rel"}).runtime is None


def test_a_path_of_a_hundred_bytes_is_kept_and_one_more_is_not(tmp_path: Path) -> None:
    rest = len("/roundtable/broker.sock")
    fits, over = (Home(Path("/" + "d" * (size - rest - 1)), tmp_path) for size in (100, 101))
    assert fits.default_socket() == fits.folder / "broker.sock"
    mark = over.default_socket().parent.name
    assert over.default_socket() in {tmp_path / mark / "broker.sock", Path("/tmp") / mark / "broker.sock"}


def test_without_a_runtime_folder_it_goes_to_tmp_and_two_homes_apart() -> None:
    one, two = (Home(Path("/" + letter * 120)).default_socket() for letter in "ab")
    assert one != two
    assert one.parent.name.startswith(f"fleet-{os.geteuid()}-")
    assert one.parent.parent == Path("/tmp")
    assert len(one.parent.name.rsplit("-", 1)[1]) == 12


def test_bytes_count_not_characters() -> None:
    assert Home(Path("/" + "é" * 60)).default_socket().parent.parent == Path("/tmp")


def test_the_recorded_path_decides_while_its_folder_is_there(short_path: Path) -> None:
    home = Home(short_path / "home")
    private_folder(home.folder)
    other = short_path / "other"
    private_folder(other)
    home.path_file.write_text(f"{other / 'broker.sock'}\n")
    assert home.socket() == other / "broker.sock"
    for text in (
        "",
        "relative/broker.sock",
        "/nowhere/at/all/broker.sock",
        "/x\0y/broker.sock",
    ):
        home.path_file.write_text(text)
        assert home.socket() == home.default_socket()


def test_a_folder_open_to_others_is_narrowed_or_refused(tmp_path: Path) -> None:
    wide = tmp_path / "wide"
    wide.mkdir()
    wide.chmod(0o777)
    with pytest.raises(UnsafeFolder, match="open to others"):
        check_folder(wide)
    private_folder(wide)
    assert wide.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    with pytest.raises(UnsafeFolder, match="belongs to user 65534"):
        private_folder(theirs)
    home = Home(tmp_path)
    theirs.rename(home.folder)
    with pytest.raises(UnsafeFolder, match="belongs to user 65534"):
        home.socket()


def test_a_link_where_everybody_may_write_is_refused(short_path: Path) -> None:
    open_to_all = short_path / "tmp"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    target = short_path / "mine"
    private_folder(target)
    (open_to_all / "link").symlink_to(target)
    with pytest.raises(UnsafeFolder, match="not a folder"):
        private_folder(open_to_all / "link")
