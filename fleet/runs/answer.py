"""An answer as it streams by: its head, its size, its last line and its FINAL line, in constant memory.

Pure. The full text lies in the member's artifact; what is kept here is bounded, and says how much it leaves out.
Sizes are characters (code points).
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from hashlib import sha256

from roundtable.harmless import harmless_line

__all__ = ["FINAL_CHARS", "HEAD_CHARS", "Answer", "AnswerReader", "Final"]

#: What of an answer is posted to the room. A digest shows 600 of it; who wants more than this is told the path.
HEAD_CHARS = 20_000

#: What of a FINAL line is kept. Longer ones are no conclusion; their length is still compared.
FINAL_CHARS = 1_000

#: Of a line no more than this is looked at; FINAL and fences stand at its beginning.
_LINE_CHARS = 4_096

#: Every character at which Python splits lines, so that no other line break hides or forges one.
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

#: Without one of these a line neither concludes nor begins or ends a fence.
_MARKS = ("FINAL:", "```", "~~~")


@dataclass(frozen=True, slots=True)
class Final:
    """A concluding line: its text without ``FINAL:``, harmless, cut at ``FINAL_CHARS``, and the length it had."""

    text: str
    chars: int
    rest: str = ""  #: a hash of what was cut, ``""`` if nothing was

    @property
    def key(self) -> tuple[str, str]:
        """Equal for conclusions that differ only in case, blanks and end punctuation; what was cut counts as it is."""
        words = " ".join(self.text.casefold().split())
        return (words if self.rest else words.rstrip(" .!?;:,…") or words), self.rest


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an answer once it has ended."""

    head: str  #: the first ``HEAD_CHARS`` characters, right-trimmed
    chars: int  #: length of the whole
    trimmed_chars: int  #: length of the whole without trailing blanks
    final: Final | None  #: the last line outside code fences that begins with ``FINAL:``

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but blanks in it."""
        return not self.head.strip() and self.chars <= HEAD_CHARS

    @property
    def is_pass(self) -> bool:
        """Whether the member said that it has nothing to add."""
        return self.head.strip().rstrip(".!").upper() == "PASS"

    def text(self, path: str) -> str:
        """What is posted: the head, and where the rest lies if there is a rest."""
        if self.chars <= HEAD_CHARS:
            return self.head
        return f"{self.head}\n…(+{self.chars - HEAD_CHARS} chars) full output: {path}"


class AnswerReader:
    """Reads bytes of any split and form; ``answer`` tells what came so far."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head: list[str] = []
        self._head_chars = 0
        self._chars = 0
        self._blanks = 0  # that the text ends in
        self._line = ""
        self._line_chars = 0
        self._overflow = sha256()  # of what a line has beyond what is looked at
        self._fence: str | None = None
        self._final: Final | None = None
        self.last_line = ""  #: the last line that is not blank, cut at 200 characters

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._take(self._decoder.decode(data))

    def finish(self) -> Answer:
        """The answer, after the last byte."""
        self._take(self._decoder.decode(b"", final=True))
        if self._line_chars:
            self._end_line()
        return Answer("".join(self._head).rstrip(), self._chars, self._chars - self._blanks, self._final)

    def _take(self, text: str) -> None:
        self._chars += len(text)
        kept = len(text.rstrip())
        self._blanks = len(text) - kept if kept else self._blanks + len(text)
        room = HEAD_CHARS - self._head_chars
        if room > 0 and text:
            self._head.append(text[:room])
            self._head_chars += min(room, len(text))
        self._read_lines(text, self._skip_plain(text))

    def _read_lines(self, text: str, at: int) -> None:
        for found in _LINE_BREAK.finditer(text, at):
            self._extend(text, at, found.start())
            self._end_line()
            at = found.end()
        self._extend(text, at, len(text))

    def _skip_plain(self, text: str) -> int:
        """Pass over whole lines in which nothing matters, a hundred times faster than line by line; where it ended.

        The first line goes with what came before it and the last one with what follows; both are read.
        """
        last = text.rfind("\n")
        first = _LINE_BREAK.search(text)
        if first is None or last <= first.end() or any(mark in text for mark in _MARKS):
            return 0
        self._extend(text, 0, first.start())
        self._end_line()
        # What is shown of it is the last line that is not blank, looked for as far as one line is looked at.
        near = text[max(first.end(), last - _LINE_CHARS) : last].rstrip()
        shown = _LINE_BREAK.split(near[near.rfind("\n") + 1 :])[-1].strip()
        if shown:
            self.last_line = shown[:200]
        return last + 1

    def _extend(self, text: str, start: int, end: int) -> None:
        room = _LINE_CHARS - len(self._line)
        if room > 0:
            self._line += text[start : min(end, start + room)]
        if end - start > room and self._line.lstrip().startswith("FINAL:"):
            self._overflow.update(text[start + max(room, 0) : end].encode("utf-8", "surrogatepass"))
        self._line_chars += end - start

    def _end_line(self) -> None:
        line, chars, overflow = self._line, self._line_chars, self._overflow
        self._line, self._line_chars = "", 0
        if chars > _LINE_CHARS:
            self._overflow = sha256()
        if line.strip():
            self.last_line = line.strip()[:200]
        fence = _FENCE.match(line)
        if self._fence is not None:
            # A fence is closed by one of its own kind, at least as long, with nothing behind it.
            if fence and fence[1].startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = None
            return
        if fence:
            self._fence = fence[1]
            return
        stripped = line.strip()
        if stripped.startswith("FINAL:"):
            text = stripped.removeprefix("FINAL:").strip()
            if text:
                self._final = _final(text, chars, overflow.hexdigest() if chars > _LINE_CHARS else "")


def _final(text: str, line_chars: int, overflow: str) -> Final:
    shown, rest = text[:FINAL_CHARS], text[FINAL_CHARS:]
    cut = sha256(f"{rest}{overflow}".encode("utf-8", "surrogatepass")).hexdigest() if rest else ""
    return Final(harmless_line(shown), line_chars if overflow else len(text), cut)
