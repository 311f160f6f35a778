"""Which pages are of one topic: what they have in common, and how much of it is needed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from roundtable.memory.gardener import Traits, related_pages


def page(*certain: str, **words: int) -> Traits:
    return Traits(frozenset(certain), Counter(words))


def test_one_certain_trait_links() -> None:
    pages = {"a": page("raw/x"), "b": page("raw/x", "raw/y"), "c": page("raw/y"), "d": page()}
    assert related_pages(pages) == {"a": ["b"], "b": ["a", "c"], "c": ["b"], "d": []}


def test_three_keywords_link_and_two_do_not() -> None:
    pages = {
        "a": page(token=2, bucket=3, refill=2, lazy=2),
        "b": page(token=2, bucket=2, refill=5, soup=2),
        "c": page(token=2, bucket=2, soup=2, bread=1),
    }
    assert related_pages(pages) == {"a": ["b"], "b": ["a", "c"], "c": ["b"]}


def test_a_word_of_one_fact_only_is_no_keyword() -> None:
    pages = {name: page(token=1, bucket=1, refill=1) for name in "ab"}
    assert related_pages(pages) == {"a": [], "b": []}


def test_what_most_pages_have_tells_nothing() -> None:
    pages = {name: page(token=2, bucket=2, refill=2) for name in "abcd"}
    assert not any(related_pages(pages).values())
    # Half of them is a topic.
    pages |= {name: page(soup=2) for name in "wxyz"}
    assert related_pages(pages)["a"] == ["b", "c", "d"]


def test_the_nearest_come_first_and_not_more_than_ten() -> None:
    pages = {f"p{number:02}": page("all") for number in range(15)} | {
        "z": page("all", "p00"),
        "a": page("p00", "all"),
    }
    assert related_pages(pages)["z"][:2] == ["a", "p00"]
    assert all(len(others) == 10 for others in related_pages(pages).values())


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.builds(
            Traits,
            st.frozensets(st.sampled_from(["t1", "t2"])),
            st.dictionaries(st.sampled_from(["w1", "w2", "w3", "w4"]), st.integers(1, 3)).map(Counter),
        ),
    )
)
def test_few_pages_link_both_ways_and_never_to_themselves(pages: dict[str, Traits]) -> None:
    found = related_pages(pages)
    assert set(found) == set(pages)
    for name, others in found.items():
        assert name not in others
        assert all(name in found[other] for other in others)
    assert found == related_pages(dict(reversed(pages.items())))
