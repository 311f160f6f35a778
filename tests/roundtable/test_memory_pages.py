"""Pages: facts are found again as they were written, and what people wrote stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundtable.memory.facts import Fact, Source
from roundtable.memory.pages import Page, day_of, page_name, topic_of
from roundtable.memory.sources import EMPTY_SOURCES, ingested_hashes, with_source


def fact(
    text: str, *who: str, kind: str = "decision", day: str = "2026-03-01", path: str = "raw/a.txt"
) -> Fact:
    sources = tuple(Source(path, name, f"{day}T09:05:00.000Z") for name in who or ("ann#1",))
    return Fact(kind, text, sources)


PAGE = """\
# design

Somebody's own words.

## 2026-03-01

- **decision** Use a bucket.
    Refill it.
  - ann#1 · 2026-03-01T09:05:00.000Z · [raw/a.txt](../raw/a.txt)
"""

lines = st.sampled_from(
    [
        "# t",
        "## 2026-03-01",
        "## 2026-03-02",
        "## undated",
        "",
        "    x",
        "- **decision** Use a bucket.",
        "- **last word** y",
        "  - ann#1 · 2026-03-01T09:05:00.000Z · [raw/a.txt](../raw/a.txt)",
        "  - line 3 · undated · [raw/b%20c.md](../raw/b%20c.md)",
        "  - ann#1 · undated · [raw/a.txt](../raw/b.txt)",
        "Related: [a](a.md)",
        "text\r",
    ]
)
page_texts = st.lists(st.one_of(lines, st.text(max_size=10)), max_size=14).map("\n".join)
fact_texts = st.lists(
    st.one_of(lines, st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=20)),
    min_size=1,
    max_size=4,
).map(lambda parts: "\n".join(part.strip() for part in parts if part.strip()).replace("\r", "") or "x")
paths = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=12).map(
    lambda name: f"raw/{name.replace('/', '')}x"
)
days = st.sampled_from(["2026-02-01", "2026-03-01", "2026-04-01"])
facts = st.builds(
    lambda text, name, kind, day, path: fact(text, name, kind=kind, day=day, path=path),
    fact_texts,
    st.sampled_from(["ann#1", "bob#22", "line 3"]),
    st.sampled_from(["decision", "question", "last word"]),
    days,
    paths,
)


@given(page_texts)
@example("- **decision** x\n  - ann#1 · undated · [raw/b%2Dc.md](../raw/b%2Dc.md)")
def test_a_page_is_written_as_it_was_read(text: str) -> None:
    assert Page.parse(text).render() == text


@given(page_texts, st.lists(facts, max_size=5))
def test_what_is_added_is_found_again_and_the_rest_stays(text: str, added: list[Fact]) -> None:
    page = Page.parse(text)
    before = [block for block in page.blocks if block != ""]
    page.add(added)
    again = Page.parse(page.render())
    for one in added:
        assert one in again.facts
    rest = [block for block in again.blocks if block != "" and block not in added]
    kept = [block for block in before if block not in added]
    # Only headings of days come on top.
    for block in kept:
        assert block in rest
    assert all(block in before or str(block).startswith("## ") for block in rest)


def test_facts_are_put_below_their_day_and_days_in_order() -> None:
    page = Page.parse(PAGE)
    page.add([fact("third", day="2026-03-03"), fact("second"), fact("first", day="2026-02-01")])
    page.relate("wiki/design.md", ["wiki/other.md"])
    page.add([fact("last", day="2026-05-01")])
    text = page.render()
    order = [
        "own words",
        "2026-02-01\n",
        "first",
        "## 2026-03-01\n",
        "Use a bucket",
        "second",
        "third",
        "last",
        "Rel",
    ]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
    assert text.endswith("\n\nRelated: [other](other.md)\n")
    assert "\n\n\n" not in text


@pytest.mark.parametrize(
    "text", ["", "\n", "words", "words\n", "# t", "# t\n\n\n", "---\na: b\n---\nwords\n"]
)
def test_a_page_of_somebody_elses_takes_facts(text: str) -> None:
    page = Page.parse(text)
    page.add([fact("one"), fact("two")])
    assert page.render().startswith(text.rstrip("\n"))
    assert [one.text for one in Page.parse(page.render()).facts] == ["one", "two"]
    assert page.render().endswith("\n")


@given(facts)
def test_no_text_of_a_fact_passes_for_another(one: Fact) -> None:
    page = Page.new("t")
    page.add([one])
    assert Page.parse(page.render()).facts == [one]


def test_duplicates_become_one_with_all_sources() -> None:
    page = Page.new("t")
    page.add(
        [
            fact("Use a bucket."),
            fact("we use the bucket", "bob#2"),
            fact("use a bucket", "cy#3", kind="question"),
        ]
    )
    page.add([fact("Use bucket", "dan#9", day="2026-03-02")])
    assert page.merge() == 2
    assert page.merge() == 0
    again = Page.parse(page.render())
    assert [(one.kind, one.text, [source.who for source in one.sources]) for one in again.facts] == [
        ("decision", "Use a bucket.", ["ann#1", "bob#2", "dan#9"]),
        ("question", "use a bucket", ["cy#3"]),
    ]
    # The day that only had a duplicate is gone with it.
    assert "2026-03-02\n" not in page.render()


@given(page_texts)
def test_merging_again_changes_nothing(text: str) -> None:
    page = Page.parse(text)
    page.merge()
    once = page.render()
    page = Page.parse(once)
    assert page.merge() == 0
    assert page.render() == once


@given(page_texts, st.lists(st.sampled_from(["wiki/a.md", "wiki/b c.md", "wiki/sub/d.md"]), unique=True))
def test_links_are_set_once_and_taken_away(text: str, others: list[str]) -> None:
    page = Page.parse(text)
    had = page.related
    page.relate("wiki/x.md", others)
    once = page.render()
    again = Page.parse(once)
    assert again.relate("wiki/x.md", others) is False
    assert again.render() == once
    if others:
        assert again.relate("wiki/x.md", []) is True
        assert again.related is None or again.related.startswith("Related: [")
    if had is None and not others:
        assert once == text


def test_links_are_relative_to_the_page() -> None:
    page = Page.new("t")
    page.relate("wiki/sub/x.md", ["wiki/a b.md", "wiki/sub/c.md"])
    assert page.related == "Related: [a%20b](../a%20b.md), [c](c.md)"


@pytest.mark.parametrize(
    ("path", "topic", "day"),
    [
        ("raw/rate-limiter.txt", "rate-limiter", "undated"),
        ("raw/Rate Limiter.jsonl", "rate-limiter", "undated"),
        ("raw/design-2026-03-01.txt", "design", "2026-03-01"),
        ("raw/design_20260301T1200.txt", "design", "2026-03-01"),
        ("raw/2026-03-01-design.md", "design", "2026-03-01"),
        ("raw/design/2026-03-01.txt", "design", "2026-03-01"),
        ("raw/2026-03-01.txt", "2026-03-01", "2026-03-01"),
        ("raw/v1.2.txt", "v1-2", "undated"),
        ("raw/---.txt", "memory", "undated"),
        ("raw/设计.txt", "设计", "undated"),
        ("raw/2026-13-45.txt", "2026-13-45", "undated"),
    ],
)
def test_a_file_names_its_topic_and_day(path: str, topic: str, day: str) -> None:
    assert (topic_of(path), day_of(path)) == (topic, day)


@given(st.text())
def test_a_topic_is_a_plain_file_name(text: str) -> None:
    name = page_name(text)
    assert len(name.encode()) <= 240
    assert not set(name) & set("./\\ \0\n")
    assert not name.startswith("-")


def test_sources_are_one_line_per_file() -> None:
    text = with_source("", "raw/a b.txt", digest="0" * 64, at="2026-03-01T09:05:00Z", found="1 message")
    assert text.startswith(EMPTY_SOURCES)
    text = with_source(text, "raw/c.txt", digest="1" * 64, at="t", found="x").replace(
        "What ingest", "Mine: what"
    )
    text = with_source(text, "raw/a b.txt", digest="2" * 64, at="t", found="2 messages")
    assert ingested_hashes(text) == {"raw/a b.txt": "2" * 64, "raw/c.txt": "1" * 64}
    assert "Mine: what" in text
    assert text.count("\n- ") == 2
    assert text.endswith("x\n")


@given(paths)
def test_every_path_is_found_again_in_the_list(path: str) -> None:
    text = with_source(EMPTY_SOURCES, path, digest="a" * 64, at="t", found="x")
    assert ingested_hashes(text) == {path: "a" * 64}
