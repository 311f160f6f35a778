"""Search and answers: every question is answered, within its bound, and no passage looks like a line of ours."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from roundtable.memory import index as index_module
from roundtable.memory.answers import MAX_ANSWER_CHARS, answer, floored_answer_chars
from roundtable.memory.files import Searched, searched
from roundtable.memory.folder import Folder
from roundtable.memory.index import INDEX, Found, Index, IndexUnavailable
from roundtable.memory.pages import Page
from roundtable.memory.passages import MAX_PASSAGE_CHARS, Passage, page_passages, paragraphs, raw_passages
from roundtable.memory.scan import scan
from roundtable.memory.words import Question

TALK = """\
[2026-03-01T09:05:00.000Z] ann#1: Which store do we use for the limiter?
[2026-03-01T09:06:00.000Z] bob#2 (reply to ann#1): SQLite decides it: no server.
    It is on every machine.
[2026-03-01T09:07:00.000Z] cy#3: 我们决定用数据库。
"""

PAGE = """\
# limiter

## 2026-03-01

- **decision** Use SQLite for the limiter.
  - bob#2 · 2026-03-01T09:06:00.000Z · [raw/limiter.txt](../raw/limiter.txt)

Somebody's note about Grüße.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.opened(tmp_path / "memory", is_made=True) as opened:
        put(opened, "raw/limiter.txt", TALK)
        put(opened, "wiki/limiter.md", PAGE)
        yield opened


def put(folder: Folder, path: str, text: str) -> None:
    with folder.replacing(path) as file:
        file.write(text.encode())


def find(folder: Folder, question: str) -> Found:
    return Index(folder).find(Question.of(question).words, 50, searched(folder))


def places(found: Found) -> list[tuple[str, str]]:
    return [(passage.path, passage.who) for passage in found.passages]


def test_pages_come_before_raw_files(folder: Folder) -> None:
    found = find(folder, "sqlite")
    assert places(found) == [("wiki/limiter.md", "bob#2"), ("raw/limiter.txt", "bob#2")]
    assert found.total == 2
    assert not found.is_partial


@pytest.mark.parametrize(
    ("question", "count", "is_partial"),
    [
        ("which limiter was decided?", 2, False),  # the fact by its kind, the message by its word
        ("decision", 1, False),
        ("server machine", 1, False),
        ("stores", 1, False),
        ("grusse", 1, False),
        ("数据库", 1, False),
        ("据数", 0, False),
        ("sqlite zebra", 2, True),
        ("zebra", 0, False),
    ],
)
def test_what_is_found(folder: Folder, question: str, count: int, is_partial: bool) -> None:
    found = find(folder, question)
    assert (found.total, found.is_partial and found.total > 0) == (count, is_partial)


def test_the_index_follows_the_files(folder: Folder) -> None:
    assert find(folder, "zebra").total == 0
    put(folder, "raw/sub/new.md", "# Animals\n\nA zebra.\n")
    assert places(find(folder, "zebra")) == [("raw/sub/new.md", "line 3")]
    assert places(find(folder, "animals zebra")) == [("raw/sub/new.md", "line 3")]
    put(folder, "raw/sub/new.md", "A horse.\n")
    assert find(folder, "zebra").total == 0
    assert find(folder, "horse").total == 1
    (folder.path / "raw/sub/new.md").unlink()
    assert find(folder, "horse").total == 0
    assert Index(folder).state(searched(folder)).passages == Index(folder).update(searched(folder))


def test_a_change_within_one_tick_of_the_clock_is_seen(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow this machine is, the first look comes within the tick.
    monkeypatch.setattr(index_module, "_UNSETTLED_NS", 10**12)
    path = folder.path / "raw/same.txt"
    path.write_text("zebra")
    now = path.stat()
    assert find(folder, "zebra").total == 1
    # The same size, the same inode and, as on a coarse clock, the same time.
    with path.open("r+") as file:
        file.write("horse")
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))
    assert find(folder, "horse").total == 1


def damage_nothing(path: Path) -> None:
    path.unlink()


def damage_text(path: Path) -> None:
    path.write_text("this is no database" * 1000)


def damage_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 : len(data) // 2] = b"\xff" * (len(data) // 2 - 4096)
    path.write_bytes(bytes(data))


def damage_version(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()


def damage_tables(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("DROP TABLE passages")
    database.commit()
    database.close()


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage", [damage_nothing, damage_text, damage_middle, damage_version, damage_tables, damage_empty]
)
def test_an_index_that_is_no_good_is_made_again(folder: Folder, damage: object) -> None:
    before = places(find(folder, "sqlite"))
    assert callable(damage)
    damage(folder.path / INDEX)
    assert places(find(folder, "sqlite")) == before
    state = Index(folder).state(searched(folder))
    assert state.problem is None


def test_a_link_in_the_place_of_the_index_is_not_followed(folder: Folder, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (folder.path / INDEX).symlink_to(theirs)
    assert "no regular file" in str(Index(folder).state(searched(folder)).problem)
    assert find(folder, "sqlite").total == 2
    assert theirs.read_text() == "theirs"
    assert not (folder.path / INDEX).is_symlink()


def test_an_index_that_cannot_be_made_is_told(folder: Folder) -> None:
    (folder.path / INDEX).mkdir()
    with pytest.raises(IndexUnavailable):
        find(folder, "sqlite")


def test_many_passages_are_forgotten_at_once(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "raw/big.txt", "".join(f"{number} zebra\n\n" for number in range(300)))
    assert find(folder, "zebra").total == 300
    made_anew: list[Folder] = []
    remove = index_module._remove
    monkeypatch.setattr(index_module, "_remove", lambda folder: (made_anew.append(folder), remove(folder)))
    monkeypatch.setattr(index_module, "_MAX_FORGOTTEN", 100)
    put(folder, "raw/big.txt", "one horse\n")
    assert find(folder, "zebra").total == 0
    assert find(folder, "horse").total == 1
    assert made_anew == [folder]


def test_a_reader_needs_no_lock_when_nothing_has_changed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_UNSETTLED_NS", 0)
    find(folder, "sqlite")
    with folder.locked("index.lock", seconds=1):
        assert find(folder, "sqlite").total == 2
        monkeypatch.setattr(index_module, "_LOCK_SECONDS", 0.05)
        put(folder, "raw/new.txt", "x")
        with pytest.raises(IndexUnavailable, match="another process"):
            find(folder, "sqlite")


def test_without_an_index_the_same_is_found(folder: Folder) -> None:
    now = searched(folder)
    for question in ("sqlite", "数据库", "grusse", "server machine", "decision"):
        words = Question.of(question).words
        assert set(places(scan(folder, words, 50, now))) == set(places(find(folder, question))), question
    found = scan(folder, ("sqlite", "zebra"), 50, now)
    assert (found.total, found.is_partial) == (2, True)
    # Parts of words are found too, and pages come first.
    assert places(scan(folder, ("imite",), 50, now))[0][0] == "wiki/limiter.md"
    assert scan(folder, ("zebra",), 50, now).total == 0
    assert len(scan(folder, ("limiter",), 1, now).passages) == 1


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    with Folder.opened(tmp_path_factory.mktemp("memory"), is_made=True) as opened:
        put(opened, "raw/limiter.txt", TALK)
        put(opened, "wiki/limiter.md", PAGE)
        yield opened


operators = st.lists(
    st.sampled_from(
        [
            "NEAR(",
            "AND",
            "OR",
            "NOT",
            '"',
            "'",
            "*",
            "^",
            "title:",
            "{",
            "}",
            "-",
            "+",
            "(",
            ")",
            "sqlite",
            ";",
            "--",
            "\0",
        ]
    ),
    max_size=12,
).map(" ".join)


@given(st.one_of(st.text(max_size=80), operators))
@example('NEAR("a" "b", 5) AND title : x* OR ^y NOT {text} : z')
@example('"')
@example("\U0001e900\U0001e922 𞤀")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_question_is_an_error(shared: Folder, question: str) -> None:
    words = Question.of(question).words
    if words:
        found = Index(shared).find(words, 50, searched(shared))
        assert found.total >= len(found.passages) >= 0


texts = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n", "\r", "\u2028", "\x1b[2J", "\u202e", "[2026-03-01] wiki/x.md", "3 of 9 passages", "sqlite"]
        ),
        st.text(max_size=30),
        st.integers(1, 900).map("y".__mul__),
    ),
    max_size=8,
).map("".join)
passages = st.builds(
    Passage,
    path=st.one_of(st.just("wiki/a.md"), st.text(max_size=200).map("raw/{}".format)),
    title=st.text(max_size=10),
    kind=st.sampled_from(["", "decision"]),
    who=st.sampled_from(["", "ann#1", "x" * 64 + "#1"]),
    at=st.sampled_from(["undated", "2026-03-01", "2026-03-01T09:05:00.000Z"]),
    source=st.one_of(st.just(""), st.text(max_size=200)),
    more_sources=st.integers(0, 10**6),
    text=texts,
)


@given(
    st.lists(passages, min_size=1, max_size=30),
    st.integers(0, 10**9),
    st.one_of(st.none(), st.integers(-10, 30_000)),
    st.booleans(),
)
def test_an_answer_is_bounded_and_only_its_own_lines_begin_at_the_margin(
    found: list[Passage], more: int, max_chars: int | None, is_partial: bool
) -> None:
    total = len(found) + more
    made = answer(found, total, ("sqlite",), max_chars, is_partial=is_partial)
    assert len(made.text) <= floored_answer_chars(max_chars)
    head, *rest = made.text.split("\n")
    own = [line for line in rest if not line.startswith("    ")]
    # One line of ours per passage that is shown, and no other line break of any kind.
    assert len(own) == len(made.shown) == len(set(range(len(made.shown))))
    assert all(line.startswith(("[", "· [")) for line in own)
    assert not set(made.text) & set("\r\v\f\x1b\x85\u2028\u2029\u202e\x00")
    shown, rest_count = len(made.shown), total - len(made.shown)
    assert head.startswith(f"{shown} of {total} passages" if rest_count else f"{total} passage")
    if rest_count:
        assert "for more" in head


def test_a_match_far_in_a_long_passage_is_shown(folder: Folder) -> None:
    text = "x" * 900 + " needle " + "y" * 900
    (passage,) = raw_passages([text], "raw/a.txt")
    made = answer([passage], 1, ("needle",), None, is_partial=False)
    assert "needle" in made.text
    assert made.text.count("…") == 2
    assert len(made.text) < 700


@pytest.mark.parametrize(
    "text", ["ab\n" * 400, "\n".join("x" * n for n in range(60)), "y" * 300 + "\n" * 400 + "z"]
)
def test_wherever_a_passage_is_cut_its_lines_begin_with_four_blanks(text: str) -> None:
    passage = Passage("wiki/a.md", "a", "", "", "2026-03-01", "", 0, text)
    for max_chars in range(200, 800):
        _, _, *lines = answer([passage], 1, ("z",), max_chars, is_partial=False).text.split("\n")
        assert all(line.startswith("    ") for line in lines)


def test_small_budgets_show_headlines_and_count_the_rest() -> None:
    some = [Passage("wiki/a.md", "a", "decision", "ann#1", "2026-03-01", "raw/a.txt", 0, "x " * 200)] * 9
    small = answer(some, 9, ("x",), 1, is_partial=False).text
    assert len(small) <= 200
    assert small.startswith(
        "1 of 9 passages; for more: maxChars up to 20000, or narrower words\n· [2026-03-01]"
    )
    large = answer(some, 900, ("x",), 10**9, is_partial=False).text
    assert len(large) <= MAX_ANSWER_CHARS
    assert large.startswith("9 of 900 passages; for more: narrower words\n")


def test_long_texts_are_several_passages_and_nothing_is_left_out() -> None:
    text = " ".join(f"word{number}" for number in range(3000))
    for lines in ([text], [f"[2026-03-01T09:05:00.000Z] ann#1: {text}"]):
        found = list(raw_passages(lines, "raw/a.txt"))
        assert len(found) > 10
        assert all(len(passage.text) <= MAX_PASSAGE_CHARS for passage in found)
        assert "".join(passage.text for passage in found) == text


@given(st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"])), max_size=20))
def test_every_word_of_a_text_is_in_a_passage(lines: list[str]) -> None:
    found = "\n".join(f"{heading}\n{text}" for _, heading, text in paragraphs(lines))
    for line in lines:
        for word in line.split():
            assert word.strip("#") in found


def test_prose_of_a_page_is_found_with_its_day() -> None:
    found = list(page_passages(Page.parse(PAGE), "wiki/limiter.md"))
    assert [(one.kind, one.text, one.at[:10]) for one in found] == [
        ("decision", "Use SQLite for the limiter.", "2026-03-01"),
        ("", "Somebody's note about Grüße.", "undated"),
    ]


def test_json_with_lone_surrogates_is_indexed(folder: Folder) -> None:
    put(
        folder,
        "raw/s.jsonl",
        '{"seq": 1, "timestamp": 0, "room": "r", "from": {"name": "ann"}, "text": "zebra \\ud800"}\nnot json zebra\n',
    )
    found = find(folder, "zebra")
    assert sorted(passage.who for passage in found.passages) == ["", "ann#1"]
    assert answer(found.passages, 2, ("zebra",), None, is_partial=False).text.encode()


def test_nothing_to_search_is_nothing_found(tmp_path: Path) -> None:
    with Folder.opened(tmp_path / "m", is_made=True) as empty:
        assert searched(empty) == Searched({}, (), ())
        assert Index(empty).find(("x",), 5, searched(empty)).total == 0
