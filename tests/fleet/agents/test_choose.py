"""The choice of a runtime: the first rule that applies, and whether anybody named it."""

from __future__ import annotations

import pytest

from fleet.agents.choose import BUILT, PROVIDERS, RUNTIMES, choose, provider_of

ORDER = [
    ("override", "gemini", "gemini", True),
    ("member", "human", "human", True),
    ("agent", "command", "command", True),
    ("model", "openai/gpt-5", "codex", True),
    ("default", "pi", "pi", True),
    ("found", "claude", "claude", False),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_rule_that_applies_wins(first: int) -> None:
    given = {name: value for name, value, _, _ in ORDER[first:]}
    choice = choose(**given)
    assert (choice.runtime, choice.is_named) == ORDER[first][2:]
    assert choice.reason


def test_without_anything_it_is_the_rehearsal_and_nobody_named_it() -> None:
    choice = choose()
    assert (choice.runtime, choice.is_named) == ("rehearsal", False)


@pytest.mark.parametrize(
    ("model", "runtime"),
    [
        ("anthropic/claude-opus", "claude"),
        ("openai/gpt-5", "codex"),
        ("Google/gemini-2.5-pro", "gemini"),
        ("xai/grok", "opencode"),
        ("openrouter/qwen/qwen3-coder", "opencode"),
    ],
)
def test_the_provider_of_a_model(model: str, runtime: str) -> None:
    assert choose(model=model).runtime == runtime


@pytest.mark.parametrize("model", [None, "", "opus", "/x", "x/", "/"])
def test_a_bare_model_decides_nothing(model: str | None) -> None:
    assert provider_of(model) is None
    assert choose(model=model).runtime == "rehearsal"


def test_the_tables_agree() -> None:
    assert set(RUNTIMES) >= BUILT
    assert set(RUNTIMES) >= set(PROVIDERS.values())
