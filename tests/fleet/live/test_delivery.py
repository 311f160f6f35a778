"""What a text must be to be delivered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import UsageProblem
from fleet.live.delivery import MAX_BYTES, checked


@given(st.text())
def test_what_goes_through_is_text_and_nothing_else(text: str) -> None:
    try:
        found = checked(text)
    except UsageProblem:
        return
    assert found == text.replace("\r\n", "\n").rstrip("\n")
    assert found.strip()
    assert all(
        character in "\n\t" or (ord(character) >= 0x20 and not 0x7F <= ord(character) < 0xA0)
        for character in found
    )
    assert found.encode()


@pytest.mark.parametrize("text", ["", "\n", " ", "a\x00", "\x1b[201~", "a\rb", "\x7f", "\x9b", "\ud800"])
def test_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        checked(text)


def test_size() -> None:
    assert checked("x" * MAX_BYTES)
    with pytest.raises(UsageProblem, match="1024 KiB"):
        checked("é" * (MAX_BYTES // 2 + 1))
