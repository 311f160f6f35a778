"""Stars stand where a secret stood, and nowhere else."""

from __future__ import annotations

import pytest

from fleet.blueprint.starred import starred, starred_variables, starred_words


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--api-key", "abc", "x"], ["--api-key", "***", "x"]),
        (["--api-key=abc"], ["--api-key=***"]),
        (["OPENAI_API_KEY=abc", "run"], ["OPENAI_API_KEY=***", "run"]),
        (["--token", "--verbose", "x"], ["--token", "--verbose", "x"]),
        (["--keep", "x"], ["--keep", "x"]),
        (["https://u:p@host/"], ["***"]),
        (["a sk-abcdefgh12345678 b"], ["a *** b"]),
        (["-H", "Authorization: Bearer abc.def"], ["-H", "Authorization: Bearer ***"]),
        (["ghp_0123456789abcdefghij"], ["***"]),
        (["task-runner", "sk-1"], ["task-runner", "sk-1"]),
        ([], []),
    ],
)
def test_words(words: list[str], shown: list[str]) -> None:
    assert starred_words(words) == shown


def test_variables() -> None:
    given = {"GH_PAT": "x", "PATH": "/bin", "DB": "postgres://u:p@h/d", "NOTE": "key sk-abcdefgh12345678"}
    assert starred_variables(given) == {"GH_PAT": "***", "PATH": "/bin", "DB": "***", "NOTE": "key ***"}


def test_nested_settings() -> None:
    given = {
        "s": {"command": "npx", "args": ["-y", "--token=x"], "env": {"A_TOKEN": "x", "B": 1}, "on": True},
        "t": {"url": "https://h", "headers": {"Authorization": "x", "Other": "y"}},
        "pass": True,
    }
    assert starred(given) == {
        "s": {"command": "npx", "args": ["-y", "--token=***"], "env": {"A_TOKEN": "***", "B": 1}, "on": True},
        "t": {"url": "https://h", "headers": {"Authorization": "***", "Other": "***"}},
        "pass": True,
    }
