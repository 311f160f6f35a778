"""Names and paths of blueprints."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.blueprint.find import bundled, find_blueprint
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
