"""What a role can do with memory, as text an agent reads.

Calls never raise for what can go wrong; they answer with a text that says what to do. For programs, and for a shell
that needs an exit code, ``ask``, ``examine`` and ``perform`` give values and raise.

Files are read and written in a thread, so a server that shares the loop goes on. A cancelled call waits for its
thread: half an ingest is never left running.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import anyio

from ..errors import Refused, RoundtableError, UsageProblem
from ..harmless import harmless_line
from ..said import Said
from .answers import MAX_ANSWER_CHARS, Answer, answer, floored_answer_chars
from .backend import ask_program, program_seconds
from .doctor import Report, examine, nothing_there, standing
from .files import searched
from .folder import WRITE_LOCK, WRITE_SECONDS, Folder, raw_parts
from .gardener import tend
from .history import commit, git_state
from .index import Found, Index, IndexUnavailable
from .ingest import Ingested, ingest
from .passages import Passage
from .place import Place
from .scan import scan
from .wording import count
from .words import Question

__all__ = ["ACTIONS", "Memory"]

#: Passages looked at for one answer; more would not fit the largest.
_MAX_PASSAGES = 200

#: Words that no passage has as such are looked for inside others, unless reading everything takes long.
_MAX_SCANNED_BYTES = 32 * 1024 * 1024

#: A raw passage this much longer than a fact taken from it says something more.
_REPEAT_CHARS = 40

#: Words of a question that are repeated to who asked it.
_TOLD_WORDS = 8


class Memory:
    """The memory at ``place`` as ``role`` may use it; ``None`` is a session without a name.

    ``seconds`` is how long an external program may take, ``None`` what is usual for each action.
    """

    def __init__(self, place: Place, role: str | None, *, seconds: float | None = None) -> None:
        self.place = place
        self.role = role
        self._seconds = seconds

    async def call(self, action: str, arguments: Mapping[str, Any]) -> Said:
        """Do ``query {question, maxChars?}``, ``ingest {source}``, ``gardener {}`` or ``doctor {}``.

        Unknown actions and arguments, missing ones and wrong types are answered; nothing is done.
        """
        entry = ACTIONS.get(action)
        if entry is None:
            return _wrong(
                f"Unknown memory action: {harmless_line(action)[:64]}. Use one of {', '.join(ACTIONS)}."
            )
        given = {name: value for name, value in arguments.items() if value is not None}
        for name, value in given.items():
            kind = entry.get(name)
            if kind is None:
                takes = f"takes {', '.join(entry)}" if entry else "takes nothing"
                return _wrong(f"Unknown parameter {harmless_line(name)[:64]!r}. memory {action} {takes}.")
            if not isinstance(value, kind) or isinstance(value, bool):
                return _wrong(f"'{name}' must be {'text' if kind is str else 'a whole number'}")
        if action == "query":
            return await self.query(given.get("question", ""), given.get("maxChars"))
        if action == "ingest":
            return await self.ingest(given.get("source", ""))
        return await (self.gardener() if action == "gardener" else self.doctor())

    async def query(self, question: str, max_chars: int | None = None) -> Said:
        """Passages that match, with their pages and dates, in at most ``max_chars`` (2000; 200 to 20,000)."""
        return await _said(partial(self.perform, "query", question, max_chars))

    async def ingest(self, source: str) -> Said:
        """Put what a file under ``raw/`` says into pages; only the writer."""
        return await _said(partial(self.perform, "ingest", source))

    async def gardener(self) -> Said:
        """Merge duplicate facts and link pages of one topic; only the writer."""
        return await _said(partial(self.perform, "gardener"))

    async def doctor(self) -> Said:
        """What is where, in what state, and what to do about each problem."""
        return await _said(partial(self.perform, "doctor"))

    async def perform(self, action: str, word: str | None = None, max_chars: int | None = None) -> str:
        """Do one action and give its text.

        Raises:
            RoundtableError: it cannot be done; nothing was changed unless the message says so.
        """
        if action == "query":
            return (await self.ask(word or "", max_chars)).text
        if action == "ingest":
            return await self._ingest(word or "")
        if action == "gardener":
            return await self._gardener()
        return (await self.examine()).text()

    async def ask(self, question: str, max_chars: int | None = None) -> Answer:
        """The answer of ``query`` as a value. Whatever characters ``question`` has, they are plain words.

        Raises:
            UsageProblem: there is no question.
            MemoryFailed: the folder cannot be read, or the external program failed.
        """
        if not question.strip():
            raise UsageProblem("memory query requires a 'question'")
        if self.place.command is not None:
            text = await self._ask_program("query", question, floored_answer_chars(max_chars))
            return Answer(text, 0, ())
        try:
            with Folder.opened(self.place.folder, is_made=False) as folder:
                return await anyio.to_thread.run_sync(self._search, folder, question, max_chars)
        except FileNotFoundError:
            return Answer(self._empty(), 0, ())

    async def examine(self) -> Report:
        """The report of ``doctor`` as a value.

        Raises:
            MemoryFailed: the folder cannot be looked at, or the external program failed.
        """
        if self.place.command is not None:
            told = await self._ask_program("doctor", None, MAX_ANSWER_CHARS)
            return Report((*standing(self.place, self.role), told))
        try:
            with Folder.opened(self.place.folder, is_made=False) as folder:
                git = await git_state(folder)
                return await anyio.to_thread.run_sync(examine, self.place, self.role, folder, git)
        except FileNotFoundError:
            return nothing_there(self.place, self.role)

    async def _ingest(self, source: str) -> str:
        if not source.strip():
            raise UsageProblem("memory ingest requires a 'source' path")
        self._check_writer("ingest into memory")
        if self.place.command is not None:
            return await self._ask_program("ingest", source, MAX_ANSWER_CHARS)
        parts = raw_parts(source, "Source")
        path = "/".join(parts)
        async with self._writing() as folder:
            folder.check(parts, "Source")
            done = await anyio.to_thread.run_sync(ingest, folder, path)
            return await self._finish(folder, done, f"ingest {path}")

    async def _gardener(self) -> str:
        self._check_writer("tend memory")
        if self.place.command is not None:
            return await self._ask_program("gardener", None, MAX_ANSWER_CHARS)
        async with self._writing() as folder:
            done = await anyio.to_thread.run_sync(tend, folder)
            return await self._finish(folder, done, "gardener: merge duplicates, link pages")

    def _check_writer(self, what: str) -> None:
        if refusal := self.place.refusal(self.role, what):
            raise Refused("not-the-writer", refusal)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Folder]:
        """The folder, made if need be, with the lock of its one writer."""
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(Folder.opened(self.place.folder, is_made=True))
            lock = folder.locked(WRITE_LOCK, seconds=WRITE_SECONDS)
            await anyio.to_thread.run_sync(stack.enter_context, lock)
            yield folder

    async def _finish(self, folder: Folder, done: Ingested, message: str) -> str:
        """Commit and index what was written; the text with what did not work of that."""
        if not done.written:
            return done.text
        notice = await commit(folder, done.written, message)
        try:
            await anyio.to_thread.run_sync(lambda: Index(folder).update(searched(folder)))
        except IndexUnavailable as problem:
            notice = f"{notice or ''} Not indexed ({problem}); queries read the files through.".strip()
        return f"{done.text} {notice}" if notice else done.text

    async def _ask_program(self, action: str, word: str | None, max_chars: int) -> str:
        seconds = program_seconds(action) if self._seconds is None else self._seconds
        with Folder.opened(self.place.folder, is_made=True) as folder:
            return await ask_program(self.place, folder, action, word, max_chars=max_chars, seconds=seconds)

    def _search(self, folder: Folder, question: str, max_chars: int | None) -> Answer:
        """Blocking part of ``ask``."""
        now = searched(folder)
        if not now.files:
            return Answer(self._empty(), 0, ())
        words = Question.of(question).words
        if not words:
            return Answer("Nothing to look for: the question has no word in it.", 0, ())
        try:
            found = Index(folder).find(words, _MAX_PASSAGES, now)
        except IndexUnavailable:
            found = scan(folder, words, _MAX_PASSAGES, now)
        else:
            if found.total == 0 and sum(stamp.size for stamp in now.files.values()) <= _MAX_SCANNED_BYTES:
                # The index knows whole words; these may stand inside others.
                found = scan(folder, words, _MAX_PASSAGES, now)
        if found.total == 0:
            told = ", ".join(f'"{word[:30]}"' for word in words[:_TOLD_WORDS])
            more = f" or {len(words) - _TOLD_WORDS} more words" if words[_TOLD_WORDS:] else ""
            places = f"{count(len(now.pages), 'page')} and {count(len(now.raw), 'raw file')}"
            return Answer(
                f"Nothing in memory matches: {places} without {told}{more}. Try other words.", 0, ()
            )
        kept = _without_repeats(found)
        total = found.total - (len(found.passages) - len(kept))
        return answer(kept, total, words, max_chars, is_partial=found.is_partial)

    def _empty(self) -> str:
        return (
            f"Memory is empty: nothing has been exported or ingested into {harmless_line(str(self.place.folder))} "
            f"yet. The {self.place.writer} exports a room to a file under raw/ and ingests that."
        )


def _without_repeats(found: Found) -> list[Passage]:
    """The passages without the raw ones of which a page's fact, found as well, says all."""
    facts = {(passage.source, passage.who): len(passage.text) for passage in found.passages if passage.source}

    def is_repeat(passage: Passage) -> bool:
        said = facts.get((passage.path, passage.who))
        return said is not None and len(passage.text) <= said + _REPEAT_CHARS

    return [passage for passage in found.passages if passage.is_wiki or not is_repeat(passage)]


async def _said(act: Callable[[], Awaitable[str]]) -> Said:
    try:
        return Said(await act())
    except RoundtableError as problem:
        return _wrong(f"{harmless_line(problem.message)}{f' — {problem.hint}' if problem.hint else ''}")


def _wrong(text: str) -> Said:
    return Said(text, is_error=True)


#: Action -> parameters and their kinds.
ACTIONS: dict[str, dict[str, type]] = {
    "query": {"question": str, "maxChars": int},
    "ingest": {"source": str},
    "gardener": {},
    "doctor": {},
}
