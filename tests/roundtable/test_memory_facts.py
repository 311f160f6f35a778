"""Facts: what a conversation states, found by rules and by nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtable.memory.facts import (
    KIND_TERMS,
    MAX_FACT_CHARS,
    MAX_FACTS_PER_TEXT,
    Fact,
    facts_of_conversation,
    facts_of_text,
)
from roundtable.transcript import Entry


def said(*texts: str, name: str = "ann") -> list[Entry]:
    return [Entry(1000 * seq, name, seq, None, text) for seq, text in enumerate(texts, 1)]


def found(*texts: str) -> list[tuple[str, str]]:
    facts = facts_of_conversation(said(*texts), "raw/a.txt")
    return [(fact.kind, fact.text) for fact in facts if fact.kind != "last word"]


@pytest.mark.parametrize(
    ("text", "kind", "fact"),
    [
        ("FINAL: use a bucket.", "decision", "use a bucket."),
        ("final:use", None, None),
        ("Decision of record: ship", "decision", "ship"),
        ("**Decision:** ship", "decision", "ship"),
        ("**Decision**: ship", "decision", "ship"),
        ("- OUTCOME: ship", "decision", "ship"),
        ("## Conclusion: ship", "decision", "ship"),
        ("> 3) verdict : ship", None, None),
        ("3) verdict : ship", "decision", "ship"),
        ("Open question: who pays", "question", "who pays"),
        ("Dissent: too slow", "dissent", "too slow"),
        ("TODO: measure", "action", "measure"),
        ("Finding: 1 ms", "finding", "1 ms"),
        ("SUPPORT: ann's position: x", "proposal", "ann's position: x"),
        (
            "I looked. We agreed to cap it at 3.14 MB. Then lunch.",
            "decision",
            "We agreed to cap it at 3.14 MB.",
        ),
        ("Let's go with a.py for now", "decision", "Let's go with a.py for now"),
        ("We have not agreed to that.", None, None),
        ("If we agreed to that, fine.", None, None),
        ("Hm. Which store do we use? I like sqlite.", "question", "Which store do we use?"),
        ("Really?", None, None),
        ("https://x.org/?q=1 and so on", None, None),
    ],
)
def test_what_is_a_fact(text: str, kind: str | None, fact: str | None) -> None:
    assert found(text) == ([] if kind is None else [(kind, fact)])


def test_a_label_takes_the_lines_up_to_the_next_or_a_blank_one() -> None:
    text = "Intro.\nDECISION:\n\n1. one\n2. two\nRisk: slow\nstill slow\n\nafterwards"
    assert found(text) == [("decision", "1. one\n2. two"), ("dissent", "slow\nstill slow")]


def test_without_a_decision_the_last_words_are_kept() -> None:
    entries = [
        *said("early"),
        Entry(2000, "bob", 2, None, "bob's view"),
        Entry(3000, "ann", 3, None, "late\n\nwords"),
    ]
    facts = list(facts_of_conversation(entries, "raw/a.txt"))
    assert [(fact.kind, fact.text, fact.sources[0].who) for fact in facts] == [
        ("last word", "bob's view", "bob#2"),
        ("last word", "late\nwords", "ann#3"),
    ]
    decided = facts_of_conversation([*entries, Entry(4000, "bob", 4, None, "FINAL: x")], "raw/a.txt")
    assert [fact.kind for fact in decided] == ["decision"]


def test_a_fact_says_who_and_when() -> None:
    (fact,) = facts_of_conversation([Entry(1_772_355_900_000, "ann", 7, None, "FINAL: x")], "raw/a.txt")
    (source,) = fact.sources
    assert (source.path, source.who, source.at, source.day) == (
        "raw/a.txt",
        "ann#7",
        "2026-03-01T09:05:00.000Z",
        "2026-03-01",
    )
    (fact,) = facts_of_text([(12, "Decision: y")], "raw/n.md", "undated")
    assert (fact.sources[0].who, fact.sources[0].day) == ("line 12", "undated")


def test_controls_and_foreign_breaks_are_made_harmless() -> None:
    assert found("FINAL: a\x1b[2J\r\nb\u2028c") == [("decision", "a\ufffd[2J\nb\nc")]


def test_what_is_too_long_is_cut_with_a_mark() -> None:
    ((_, text),) = found("FINAL: " + "x" * 5000)
    assert text == "x" * MAX_FACT_CHARS + f" …(+{5000 - MAX_FACT_CHARS} chars)"


def test_one_message_has_a_bounded_number_of_facts() -> None:
    assert len(found("what is this\u0020thing?\n" * 10_000)) == MAX_FACTS_PER_TEXT


lines = st.sampled_from(
    ["FINAL:", "Decision: x", "", "we agreed", "is it so?", "    ", "- todo: y", "\x1b", "**", ":"]
)


@given(st.lists(st.one_of(lines, st.text(max_size=30)), max_size=12))
def test_any_text_gives_facts_of_bounded_size_and_known_kind(parts: list[str]) -> None:
    for fact in facts_of_conversation(said("\n".join(parts)), "raw/a.txt"):
        assert isinstance(fact, Fact)
        assert fact.kind in KIND_TERMS
        assert fact.text == fact.text.strip() != ""
        assert "\n\n" not in fact.text
        assert len(fact.text) <= MAX_FACT_CHARS + 30
