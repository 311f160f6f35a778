"""What a role can do with memory: every call answers with a text, and nothing is added twice or lost."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtable.memory import actions, index, ingest
from roundtable.memory.actions import Memory
from roundtable.memory.folder import Folder
from roundtable.memory.pages import Page
from roundtable.memory.place import Place

pytestmark = pytest.mark.anyio

TALK = (
    "[2026-03-01T09:05:00.000Z] ann#1: Which store do we use for the limiter?\n"
    "[2026-03-01T09:06:00.000Z] bob#2 (reply to ann#1): It needs no server.\n"
    "    \n"
    "    FINAL: use SQLite for the limiter.\n"
    "[2026-03-02T10:00:00.000Z] cy#3: FINAL: Use the SQLite for limiter\n"
)
MORE = TALK + "[2026-03-02T11:00:00.000Z] ann#4: DECISION: cap it at 10 MB\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "memory", "librarian", None)


@pytest.fixture
def writer(place: Place) -> Memory:
    return Memory(place, "librarian")


def put(place: Place, path: str, text: str) -> None:
    target = place.folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def facts(place: Place, path: str = "wiki/limiter.md") -> list[tuple[str, str, list[str]]]:
    page = Page.parse((place.folder / path).read_text())
    return [(fact.kind, fact.text, [source.who for source in fact.sources]) for fact in page.facts]


def snapshot(place: Place) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in place.folder.rglob("*")
        if path.is_file() and path.suffix in {".md", ".txt", ".jsonl"}
    }


async def test_what_was_ingested_is_answered_with_page_and_date(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    said = await writer.ingest("raw/limiter.txt")
    assert said.text == (
        "Ingested raw/limiter.txt: 3 messages, 3 new facts (2 decisions, 1 question) in wiki/limiter.md."
    )
    answer = await Memory(place, None).query("What was decided about the limiter?")
    assert not answer.is_error
    assert answer.text.split("\n") == [
        "2 passages",
        "[2026-03-02 10:00] wiki/limiter.md · decision · cy#3 in raw/limiter.txt",
        "    Use the SQLite for limiter",
        "[2026-03-01 09:06] wiki/limiter.md · decision · bob#2 in raw/limiter.txt",
        "    use SQLite for the limiter.",
    ]
    # What no rule made a fact is found where it was said.
    answer = await Memory(place, None).query("server")
    assert answer.text.split("\n")[1] == "[2026-03-01 09:06] raw/limiter.txt · bob#2"


async def test_the_same_file_twice_adds_nothing(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    await writer.ingest("raw/limiter.txt")
    before = snapshot(place)
    said = await writer.ingest("raw//limiter.txt")
    assert said.text == "raw/limiter.txt was ingested before and has not changed; nothing added."
    assert snapshot(place) == before


async def test_a_file_that_has_grown_adds_what_is_new(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    await writer.ingest("raw/limiter.txt")
    await writer.gardener()
    put(place, "raw/limiter.txt", MORE)
    said = await writer.ingest("raw/limiter.txt")
    assert said.text == (
        "Ingested raw/limiter.txt: 4 messages, 1 new fact (1 decision) in wiki/limiter.md. "
        "3 facts stood there already."
    )
    assert [text for _, text, _ in facts(place)][-1] == "cap it at 10 MB"


async def test_a_fact_somebody_has_reworded_is_known_by_its_message(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    await writer.ingest("raw/limiter.txt")
    page = place.folder / "wiki/limiter.md"
    page.write_text(page.read_text().replace("use SQLite for the limiter.", "SQLite it is"))
    put(place, "raw/limiter.txt", MORE)
    assert "1 new fact (1 decision)" in (await writer.ingest("raw/limiter.txt")).text
    assert "use SQLite for the limiter." not in page.read_text()


async def test_the_same_room_in_another_file_adds_nothing_either(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    await writer.ingest("raw/limiter.txt")
    await writer.gardener()
    put(place, "raw/limiter-2026-03-02.txt", TALK)
    said = await writer.ingest("raw/limiter-2026-03-02.txt")
    assert "0 new facts." in said.text
    assert "3 facts stood there already." in said.text
    assert "It has the same content as raw/limiter.txt." in said.text
    assert len(facts(place)) == 2


async def test_json_transcripts_name_their_room(place: Place, writer: Memory) -> None:
    line = (
        '{"id": "i", "seq": 1, "timestamp": 1772355900000, "room": "Council", '
        '"from": {"sessionId": "s", "name": "ann"}, "text": "FINAL: x"}\n'
    )
    put(place, "raw/whatever.jsonl", line + "\nnot json\n")
    said = await writer.ingest("raw/whatever.jsonl")
    assert said.text == (
        "Ingested raw/whatever.jsonl: 1 message, 1 new fact (1 decision) in wiki/council.md. "
        "1 line belonged to no message; found as text."
    )


async def test_other_texts_are_ingested_by_their_paragraphs(place: Place, writer: Memory) -> None:
    put(place, "raw/notes/2026-04-05.md", "# Notes\n\nSome prose.\n\n**Decision:** ship on Monday\n")
    said = await writer.ingest("raw/notes/2026-04-05.md")
    assert said.text == ("Ingested raw/notes/2026-04-05.md: text, 1 new fact (1 decision) in wiki/notes.md.")
    answer = await writer.query("when do we ship?")
    assert "[2026-04-05] wiki/notes.md · decision · line 5 in raw/notes/2026-04-05.md" in answer.text
    # A line before it moves the number; the fact is the same.
    put(place, "raw/notes/2026-04-05.md", "New.\n\n# Notes\n\nSome prose.\n\n**Decision:** ship on Monday\n")
    assert "0 new facts" in (await writer.ingest("raw/notes/2026-04-05.md")).text


async def test_a_page_people_have_edited_keeps_what_they_wrote(place: Place, writer: Memory) -> None:
    put(place, "wiki/limiter.md", "# Limits\n\nMine.\n\n## 2026-03-01\n\n- my own item\n")
    put(place, "raw/limiter.txt", TALK)
    await writer.ingest("raw/limiter.txt")
    await writer.gardener()
    text = (place.folder / "wiki/limiter.md").read_text()
    assert text.startswith("# Limits\n\nMine.\n\n## 2026-03-01\n\n- my own item\n- **question** Which")
    assert "Limits" not in (await writer.query("mine")).text.split("\n")[0]


async def test_bytes_that_are_no_utf8_are_said(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    (place.folder / "raw/limiter.txt").write_bytes(
        TALK.encode() + b"[2026-03-02T10:00:00.000Z] a#9: \xff zebra\n"
    )
    assert "not UTF-8" in (await writer.ingest("raw/limiter.txt")).text
    assert "\ufffd zebra" in (await writer.query("zebra")).text
    report = await writer.doctor()
    assert "- raw/limiter.txt is not UTF-8 — it is read with U+FFFD; convert it" in report.text


async def test_a_page_that_is_full_is_continued(
    place: Place, writer: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MAX_PAGE_BYTES", 2000)
    talk = "".join(
        f"[2026-03-01T09:05:00.000Z] ann#{n}: FINAL: choice {n} {'x' * 100}\n" for n in range(1, 31)
    )
    put(place, "raw/limiter.txt", talk)
    await writer.ingest("raw/limiter.txt")
    pages = sorted(path.name for path in (place.folder / "wiki").glob("limiter*.md"))
    assert pages == ["limiter.2.md", "limiter.3.md", "limiter.4.md", "limiter.5.md", "limiter.md"]
    assert sum(len(facts(place, f"wiki/{name}")) for name in pages) == 30
    assert "links of 5 pages changed" in (await writer.gardener()).text


async def test_new_facts_of_one_call_are_bounded(
    place: Place, writer: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MAX_NEW_FACTS", 2)
    put(place, "raw/limiter.txt", TALK)
    assert "1 more were not taken over" in (await writer.ingest("raw/limiter.txt")).text


async def test_a_topic_called_sources_does_not_touch_the_list(place: Place, writer: Memory) -> None:
    put(place, "raw/sources.txt", TALK)
    assert "in wiki/sources-topic.md." in (await writer.ingest("raw/sources.txt")).text


async def test_tending_merges_links_and_then_rests(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    put(place, "raw/limiter-redis.txt", "[2026-03-05T09:00:00.000Z] ann#1: FINAL: no Redis\n")
    put(place, "raw/cooking.txt", "[2026-03-05T09:00:00.000Z] ann#1: FINAL: soup\n")
    for name in ("limiter", "limiter-redis", "cooking"):
        await writer.ingest(f"raw/{name}.txt")
    said = await writer.gardener()
    assert said.text == (
        "Tended 3 pages: 1 duplicate fact merged in wiki/limiter.md (1); "
        "links of 2 pages changed: wiki/limiter-redis.md, wiki/limiter.md."
    )
    assert ("decision", "use SQLite for the limiter.", ["bob#2", "cy#3"]) in facts(place)
    assert "Related: [limiter-redis](limiter-redis.md)" in (place.folder / "wiki/limiter.md").read_text()
    assert "Related" not in (place.folder / "wiki/cooking.md").read_text()
    before = snapshot(place)
    assert (await writer.gardener()).text == "Tended 3 pages: nothing to change."
    assert snapshot(place) == before
    assert "+1 more source" in (await writer.query("what was decided: sqlite")).text


pages = st.dictionaries(
    st.sampled_from(["a", "alpha-one", "alpha-two", "a.2"]),
    st.lists(
        st.tuples(
            st.sampled_from(["FINAL", "Question"]),
            st.sampled_from(
                [
                    "use the bucket",
                    "Use bucket.",
                    "do not use the bucket",
                    "keep counting tokens",
                    "keep counting token",
                ]
            ),
            st.integers(1, 9),
        ),
        max_size=6,
    ),
    max_size=4,
)


@given(pages)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
async def test_tending_twice_changes_nothing_and_loses_no_source(
    tmp_path_factory: pytest.TempPathFactory, topics: dict[str, list[tuple[str, str, int]]]
) -> None:
    place = Place(tmp_path_factory.mktemp("memory"), "librarian", None)
    writer = Memory(place, "librarian")
    expected = set()
    for name, lines in topics.items():
        talk = ""
        for at, (label, text, seq) in enumerate(lines):
            talk += f"[2026-03-01T09:05:00.{at:03}Z] ann#{seq}: {label}: {text}\n"
            expected.add(f"ann#{seq} · 2026-03-01T09:05:00.{at:03}Z · [raw/{name}.txt]")
        put(place, f"raw/{name}.txt", talk)
        await writer.ingest(f"raw/{name}.txt")
    await writer.gardener()
    once = snapshot(place)
    assert "nothing to change" in (await writer.gardener()).text
    assert snapshot(place) == once
    told = b"".join(once.values()).decode()
    # The same message of two files stands there once.
    assert all(source in told or source.split(" · [")[0] in told for source in expected)
    for name in topics:
        assert "nothing added" in (await writer.ingest(f"raw/{name}.txt")).text


@pytest.mark.parametrize("role", ["critic", "Librarian", None, ""])
async def test_only_the_writer_writes(place: Place, role: str | None) -> None:
    put(place, "raw/limiter.txt", TALK)
    memory = Memory(place, role)
    for said in (await memory.ingest("raw/limiter.txt"), await memory.gardener()):
        assert said.is_error
        assert said.text.startswith('Only the "librarian" role may ')
        assert ("Ask the librarian to write." if role else "--as librarian") in said.text
    assert sorted(path.name for path in place.folder.iterdir()) == ["raw"]
    assert not (await memory.query("limiter")).is_error
    assert not (await memory.doctor()).is_error


@pytest.mark.parametrize(
    ("action", "arguments", "text"),
    [
        ("dance", {}, "Unknown memory action: dance. Use one of query, ingest, gardener, doctor."),
        ("query", {}, "memory query requires a 'question'"),
        ("query", {"question": " \n"}, "memory query requires a 'question'"),
        ("ingest", {}, "memory ingest requires a 'source' path"),
        ("query", {"question": "x", "maxChars": "many"}, "'maxChars' must be a whole number"),
        ("query", {"question": "x", "maxChars": True}, "'maxChars' must be a whole number"),
        ("query", {"question": 3}, "'question' must be text"),
        ("gardener", {"force": True}, "Unknown parameter 'force'. memory gardener takes nothing."),
        ("ingest", {"source": "/etc/passwd"}, "Source path must be relative to the memory directory"),
        ("ingest", {"source": "wiki/a.md"}, "Source path must name a file under the memory raw/ directory"),
        ("ingest", {"source": "raw/../../x"}, "Source path must name a file under the memory raw/ directory"),
    ],
)
async def test_what_cannot_be_asked_is_told(
    writer: Memory, action: str, arguments: dict[str, object], text: str
) -> None:
    said = await writer.call(action, arguments)
    assert said.is_error
    assert said.text.startswith(text)
    assert not (writer.place.folder / "raw").exists()


async def test_calls_reach_the_actions(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    assert "3 new facts" in (await writer.call("ingest", {"source": "raw/limiter.txt"})).text
    answer = await writer.call("query", {"question": "limiter", "maxChars": 200})
    assert len(answer.text) <= 200
    assert "1 duplicate fact" in (await writer.call("gardener", {})).text
    assert "Memory at" in (await writer.call("doctor", {})).text


async def test_a_file_that_is_not_there_says_what_is(place: Place, writer: Memory) -> None:
    assert "raw/ is empty; export a room first" in (await writer.ingest("raw/x.txt")).text
    put(place, "raw/limiter.txt", TALK)
    said = await writer.ingest("raw/x.txt")
    assert said.is_error
    assert "there is no raw/x.txt" in said.text
    assert "raw/ has raw/limiter.txt" in said.text


async def test_links_are_not_ingested(place: Place, writer: Memory, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("FINAL: secret\n")
    (place.folder / "raw").mkdir(parents=True)
    (place.folder / "raw/link.txt").symlink_to(tmp_path / "secret.txt")
    (place.folder / "raw/sub").symlink_to(tmp_path)
    for path in ("raw/link.txt", "raw/sub/secret.txt"):
        said = await writer.ingest(path)
        assert said.is_error
        assert "symlink" in said.text or "symbolic link" in said.text
    assert "secret" not in (await writer.query("secret")).text.replace('"secret"', "")
    report = (await writer.doctor()).text
    assert "raw/link.txt is not read: a symbolic link" in report
    assert "raw/sub is not read: a symbolic link" in report


async def test_a_wiki_that_leads_out_is_neither_read_nor_written(
    place: Place, writer: Memory, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    put(place, "raw/limiter.txt", TALK)
    (place.folder / "wiki").symlink_to(outside)
    for said in (
        await writer.ingest("raw/limiter.txt"),
        await writer.query("x"),
        await writer.doctor(),
        await writer.gardener(),
    ):
        assert said.is_error
        assert "replace it with a real folder" in said.text
    assert list(outside.iterdir()) == []


async def test_an_empty_memory_says_so(place: Place, writer: Memory) -> None:
    for _ in range(2):
        said = await Memory(place, None).query("anything")
        assert said.text.startswith("Memory is empty: ")
        assert "The librarian exports a room" in said.text
        assert not said.is_error
        place.folder.mkdir(exist_ok=True)
    assert list(place.folder.iterdir()) == []


async def test_a_question_without_an_answer_is_told(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    said = await writer.query("zebra unicorn")
    assert said.text == (
        'Nothing in memory matches: 0 pages and 1 raw file without "zebra", "unicorn". Try other words.'
    )
    assert (await writer.query("?!")).text == "Nothing to look for: the question has no word in it."
    many = await writer.query(" ".join(f"zebra{n}" + "x" * 100 for n in range(1000)))
    assert len(many.text) < 500
    assert "or 24 more words" in many.text
    # Parts of words count when nothing else is found.
    assert "bob#2" in (await writer.query("erve")).text


@given(st.text(max_size=200), st.one_of(st.none(), st.integers(-5, 50_000)))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
async def test_every_question_is_answered_within_its_bound(
    tmp_path_factory: pytest.TempPathFactory, question: str, max_chars: int | None
) -> None:
    folder = tmp_path_factory.getbasetemp() / "shared-memory"
    place = Place(folder, "librarian", None)
    if not folder.exists():
        put(place, "raw/limiter.txt", TALK)
    said = await Memory(place, None).query(question, max_chars)
    assert said.text
    assert said.is_error == (not question.strip())
    assert len(said.text) <= max(200, min(max_chars or 2000, 20_000)) + 300


async def test_without_fts5_memory_works_and_says_so(
    place: Place, writer: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "has_fts5", lambda: False)
    monkeypatch.setattr("roundtable.memory.doctor.has_fts5", lambda: False)
    put(place, "raw/limiter.txt", TALK)
    assert "Not indexed (this Python's SQLite has no FTS5)" in (await writer.ingest("raw/limiter.txt")).text
    answer = await writer.query("what was decided about the limiter")
    assert "    use SQLite for the limiter." in answer.text
    assert "Index: none: this Python's SQLite has no FTS5" in (await writer.doctor()).text
    assert not (place.folder / "index.db").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_takes_no_index_is_read_through(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    place.folder.chmod(0o500)
    try:
        assert "bob#2" in (await writer.query("server")).text
        assert "cannot be written" in (await writer.doctor()).text
    finally:
        place.folder.chmod(0o700)


async def test_a_locked_index_is_no_obstacle(
    place: Place, writer: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_LOCK_SECONDS", 0.05)
    put(place, "raw/limiter.txt", TALK)
    with Folder.opened(place.folder, is_made=False) as folder, folder.locked("index.lock", seconds=1):
        assert "bob#2" in (await writer.query("server")).text


async def test_one_writer_at_a_time(place: Place, writer: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "WRITE_SECONDS", 0.05)
    put(place, "raw/limiter.txt", TALK)
    with Folder.opened(place.folder, is_made=False) as folder, folder.locked("write.lock", seconds=1):
        for said in (await writer.ingest("raw/limiter.txt"), await writer.gardener()):
            assert said.is_error
            assert "another process has been writing" in said.text
    assert not (place.folder / "wiki").exists()


async def test_many_writers_at_once_add_everything_once(place: Place) -> None:
    for number in range(6):
        put(
            place,
            f"raw/r{number}.txt",
            f"[2026-03-01T09:05:00.000Z] ann#1: FINAL: choice {number}\n",
        )
    async with anyio.create_task_group() as tasks:
        for number in (*range(6), *range(6)):
            tasks.start_soon(Memory(place, "librarian").ingest, f"raw/r{number}.txt")
    assert [len(facts(place, f"wiki/r{number}.md")) for number in range(6)] == [1] * 6
    report = await Memory(place, "librarian").doctor()
    assert "6 pages, 6 facts" in report.text
    assert "No problems." in report.text


async def test_doctor_tells_what_is_where(place: Place, writer: Memory) -> None:
    assert "The folder is not there yet" in (await writer.doctor()).text
    assert not place.folder.exists()
    put(place, "raw/limiter.txt", TALK)
    put(place, "raw/later.txt", TALK)
    await writer.ingest("raw/limiter.txt")
    lines = (await Memory(place, "critic").doctor()).text.split("\n")
    assert lines[0] == f"Memory at {place.folder}, built in."
    assert lines[1] == 'Only "librarian" writes; this session is "critic" and may ask.'
    assert lines[2].startswith("wiki/: 1 page, 3 facts, ")
    assert lines[3].endswith("; not ingested: raw/later.txt.")
    assert lines[4].startswith("Index: index.db, ")
    assert lines[5].startswith("Git: no repository")
    assert lines[6] == "No problems."


async def test_the_list_of_sources_is_no_answer_and_can_be_edited(place: Place, writer: Memory) -> None:
    put(place, "raw/limiter.txt", TALK)
    await writer.ingest("raw/limiter.txt")
    assert "sources.md" not in (await writer.query("sources sha256 ingest limiter")).text
    sources = place.folder / "wiki/sources.md"
    sources.write_text("")
    said = await writer.ingest("raw/limiter.txt")
    assert "0 new facts" in said.text
    assert "raw/limiter.txt" in sources.read_text()
    sources.write_bytes(b"\xff")
    said = await writer.ingest("raw/limiter.txt")
    assert said.is_error
    assert "mend it" in said.text
