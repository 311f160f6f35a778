"""Names and paths of blueprints."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.find import all_blueprints, bundled, find_blueprint, look_up
from fleet.blueprint.places import Places, Scope
from fleet.errors import UsageProblem

ROOT = Path(__file__).parents[3]


def test_a_path_is_returned_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("design").write_text("x")
    assert find_blueprint("design") == Path("design")
    assert find_blueprint("./design") == Path("./design")


def test_a_name_means_a_bundled_blueprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = find_blueprint("design")
    assert found.name == "design.yaml"
    assert found.is_file()


def test_a_manifest_is_no_blueprint() -> None:
    assert "roles" not in bundled()


@pytest.mark.parametrize("name", ["", "nope", "design.yaml", "../design", "a\x00b", "x" * 5000, "a\nb"])
def test_neither(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageProblem) as caught:
        find_blueprint(name)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert "design" in (caught.value.hint or "")


def test_a_name_that_is_nearly_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageProblem, match='did you mean "design"'):
        look_up("desing", Places.around(tmp_path, home=tmp_path / "home"))


def test_every_place_of_a_project_goes_before_the_next(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    here, home = tmp_path / "sub", tmp_path / "home"
    folders = [
        *(here / ".fleet/blueprints", tmp_path / ".fleet/blueprints", home / "blueprints"),
        *(here / ".orphus/fleets", tmp_path / ".orphus/fleets"),
    ]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "mine.yaml").write_text("")
        (folder / "mine.roles.yaml").write_text("")
        (folder / "notes.txt").write_text("")
    found = [
        entry for entry in all_blueprints(Places.around(here, home=home)) if entry.scope != Scope.BUNDLED
    ]
    assert [entry.path.parent for entry in found] == folders
    assert [entry.scope for entry in found] == ["project", "project", "user", "orphus", "orphus"]
    assert {entry.shadowed_by for entry in found[1:]} == {here / ".fleet/blueprints/mine.yaml"}
    assert found[0].shadowed_by is None
    for folder in folders:
        assert look_up("mine", Places.around(here, home=home)).path == folder / "mine.yaml"
        (folder / "mine.yaml").unlink()


def test_in_one_folder_the_more_telling_ending_goes_first(tmp_path: Path) -> None:
    folder = tmp_path / "home/blueprints"
    folder.mkdir(parents=True)
    endings = [".fleet.yaml", ".fleet.yml", ".yaml", ".yml"]
    for ending in (endings[2], endings[0], endings[3], endings[1]):
        (folder / f"mine{ending}").write_text("")
        (folder / f"another{ending}").write_text("")
    found = [entry.path.name for entry in all_blueprints(Places.around(tmp_path, home=tmp_path / "home"))]
    assert found[:8] == [f"{name}{ending}" for name in ("another", "mine") for ending in endings]


suffixes = st.sampled_from([".fleet.yaml", ".fleet.yml", ".yaml", ".yml"])
words = st.text("ab.-", min_size=1, max_size=6).filter(lambda word: word not in (".", ".."))
scopes = st.sampled_from(["project/.fleet/blueprints", "home/blueprints", "project/.orphus/fleets"])


@given(st.lists(st.tuples(scopes, words, suffixes), max_size=8))
def test_exactly_one_file_of_a_name_is_not_shadowed(files: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        for scope, word, suffix in files:
            folder = Path(root) / scope
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{word}{suffix}").write_text("")
        places = Places.around(Path(root) / "project", home=Path(root) / "home")
        found = all_blueprints(places)
        for entry in found:
            first = next(other for other in found if other.name == entry.name)
            assert entry.shadowed_by == (None if entry is first else first.path)
            assert look_up(entry.name, places).path == first.path or Path(entry.name).exists()
