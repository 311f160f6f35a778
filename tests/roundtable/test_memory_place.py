"""Where memory is: the environment's words, and who is told what when refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundtable.errors import UsageProblem
from roundtable.home import Home
from roundtable.memory.place import Place

HOME = Home(Path("/h"))


def test_blank_settings_count_as_unset() -> None:
    plain = Place(Path("/h/memory"), "librarian", None)
    assert Place.from_environment(HOME, {}) == plain
    blank = {f"ROUNDTABLE_MEMORY_{name}": "  " for name in ("DIR", "WRITER_ROLE", "COMMAND")}
    assert Place.from_environment(HOME, blank) == plain


def test_settings_are_taken_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    place = Place.from_environment(
        HOME,
        {
            "ROUNDTABLE_MEMORY_DIR": "~/notes",
            "ROUNDTABLE_MEMORY_WRITER_ROLE": "scribe",
            "ROUNDTABLE_MEMORY_COMMAND": "python -m dossier --in 'a b' $HOME",
        },
    )
    assert place.folder == Path("/somebody/notes")
    assert place.writer == "scribe"
    assert place.command == ("python", "-m", "dossier", "--in", "a b", "$HOME")


@pytest.mark.parametrize(
    ("name", "value"),
    [("DIR", "notes"), ("WRITER_ROLE", "a b"), ("WRITER_ROLE", "../x"), ("COMMAND", "a 'b")],
)
def test_a_setting_that_cannot_be_is_named(name: str, value: str) -> None:
    with pytest.raises(UsageProblem, match=f"ROUNDTABLE_MEMORY_{name}"):
        Place.from_environment(HOME, {f"ROUNDTABLE_MEMORY_{name}": value})


def test_only_the_writer_is_not_refused() -> None:
    place = Place(Path("/m"), "librarian", None)
    assert place.refusal("librarian", "export rooms for memory") is None
    assert place.refusal("critic", "export rooms for memory") == (
        'Only the "librarian" role may export rooms for memory; this session is "critic". '
        "Ask the librarian to export."
    )
    assert place.refusal("critic", "ingest into memory") == (
        'Only the "librarian" role may ingest into memory; this session is "critic". Ask the librarian to write.'
    )
    for nobody in (None, ""):
        assert place.refusal(nobody, "ingest into memory") == (
            'Only the "librarian" role may ingest into memory; this session has no role name '
            "(name it with --as librarian)."
        )
