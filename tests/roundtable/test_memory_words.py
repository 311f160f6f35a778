"""Words: what a question looks for, and when two facts say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtable.memory.words import MAX_QUESTION_WORDS, Question, content_words, indexed, same_fact_key


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What was decided about the rate-limiter?", ("decided", "rate", "limiter")),
        ("what was it about?", ("what", "was", "it", "about")),
        ('NEAR(a b) AND "x" OR title:y* ^z NOT -w', ("near", "b", "x", "title", "y", "z", "not", "w")),
        ("CAFÉ Straße", ("cafe", "strasse")),
        ("为什么选择 SQLite数据库", ("为什么选择", "sqlite", "数据库")),
        ("redis Redis REDIS", ("redis",)),
        ("?!… * \" ' --", ()),
        ("", ()),
    ],
)
def test_a_question_is_its_telling_words(question: str, words: tuple[str, ...]) -> None:
    assert set(Question.of(question).words) == set(words)


@given(st.text(max_size=300))
def test_no_question_has_anything_but_words(text: str) -> None:
    words = Question.of(text).words
    assert len(words) <= MAX_QUESTION_WORDS
    assert len(set(words)) == len(words)
    for word in words:
        assert word == word.strip() != ""
        assert not set(word) & set("\"*^():{}+-,.'\\\0 ")


def test_a_long_question_is_bounded() -> None:
    assert len(Question.of(" ".join(f"word{n}" for n in range(100_000))).words) == MAX_QUESTION_WORDS


def test_an_index_takes_words_as_questions_have_them() -> None:
    assert indexed("用SQLite库").split() == ["用", "sqlite", "库"]
    assert indexed("Grüße") == "grusse"
    assert indexed("Plain text") == "Plain text"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use a token bucket per key.", "use token bucket, per key"),
        ("We use the **SQLite** stores!", "use SQLite store"),
        ("“Cafés” close early", "cafe closes early"),
    ],
)
def test_the_same_in_nearly_the_same_words(one: str, other: str) -> None:
    assert same_fact_key(one) == same_fact_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("use redis", "do not use redis"),
        ("never cache", "cache"),
        ("is not ready", "is ready"),
        ("a blocks b", "b blocks a"),
        ("limit is 10", "limit is 20"),
        ("1.5 MB", "15 MB"),
        ("use C", "use C++"),
        ("x > 5", "x < 5"),
        ("-5", "5"),
        ("use redis for sessions", "use sqlite for sessions"),
        ("note this", "not this"),
        ("?", "!"),
    ],
)
def test_what_changes_the_meaning_is_never_left_out(one: str, other: str) -> None:
    assert same_fact_key(one) != same_fact_key(other)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_key_is_never_empty_and_depends_on_the_text_only(one: str, other: str) -> None:
    assert same_fact_key(one) == same_fact_key(one)
    assert len(same_fact_key(other)) > 0


def test_topics_are_told_by_words_of_four_letters() -> None:
    assert content_words(["The limiters are in the API, limiter 2026"]) == {"limiter"}
