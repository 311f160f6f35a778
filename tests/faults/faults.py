"""Small deliberate faults, each of which some test must notice.

A fault replaces a piece of text that stands exactly once in a module. When a module is rewritten its faults are
rewritten with it: a fault whose text is not there is an error, not a pass.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]

BOUNDED = "roundtable/bounded.py"
DIGEST = "roundtable/digest.py"
ROOM = "roundtable/room.py"
DEADLINE = "fleet/deadline.py"
PROCESS = "fleet/process.py"

#: The tests that answer for a module.
TESTS = {
    BOUNDED: ("tests/roundtable/test_bounded.py", "tests/roundtable/test_digest.py"),
    DIGEST: ("tests/roundtable/test_digest.py",),
    ROOM: ("tests/roundtable/test_room.py",),
    DEADLINE: ("tests/fleet/test_deadline.py",),
    PROCESS: (),  # its tests start real processes and take their time, so each fault names the one that answers
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One change of a module that makes it wrong."""

    name: str
    module: str
    right: str
    wrong: str
    test: str | None = None  #: where the module's tests take long: the one that must notice

    @property
    def tests(self) -> tuple[str, ...]:
        """What is run against it."""
        return TESTS[self.module] if self.test is None else (f"tests/fleet/test_process.py::{self.test}",)


FAULTS = (
    # bounded
    Fault("a text may take one character too many", BOUNDED, "if len(text) < left:", "if len(text) <= left:"),
    Fault("a newline costs nothing", BOUNDED, "left -= len(text) + 1", "left -= len(text)"),
    Fault("verbatim comes back after a headline", BOUNDED, "            is_verbatim = False\n", ""),
    Fault("a later item takes a collapsed one's place", BOUNDED, "            stopped = item\n            break\n", "            stopped = stopped or item\n            continue\n"),
    Fault("headlines are free", BOUNDED, "        left -= len(line) + 1\n", ""),
    Fault("the marker is not bounded", BOUNDED, "line if len(line) <= MAX_MARKER_CHARS else", "line if len(line) else"),
    Fault("the budget has no floor", BOUNDED, "min(max(budget, MIN_BUDGET_CHARS), MAX_BUDGET_CHARS)", "min(budget, MAX_BUDGET_CHARS)"),
    Fault("collapsed counts forget headlines", BOUNDED, "total - len(verbatim) - len(headlines)", "total - len(verbatim)"),
    # digest
    Fault("oldest first", DIGEST, "[*reversed(spent.headlines), *reversed(spent.verbatim)]", "[*spent.headlines, *spent.verbatim]"),
    Fault("verbatim above headlines", DIGEST, "[*reversed(spent.headlines), *reversed(spent.verbatim)]", "[*reversed(spent.verbatim), *reversed(spent.headlines)]"),
    Fault("a body can forge a line", DIGEST, "{indented(text[", "{str(text["),
    Fault("a cut is not said", DIGEST, 'f" …(+{end - cap} chars)" if end > cap else ""', '""'),
    Fault("a cut is counted wrong", DIGEST, "{end - cap} chars", "{end} chars"),
    Fault("the clock is an hour off", DIGEST, "{minute // 60:02d}", "{minute // 60 + 1:02d}"),
    Fault("consumed stops at what was shown first", DIGEST, "consumed = consumed or message.seq", "consumed = message.seq"),
    Fault("the marker counts instead of spanning", DIGEST, "limit = newest_collapsed - after_seq", "limit = collapsed"),
    Fault("lost messages are not told", DIGEST, 'f"; {no_longer_retained} no longer retained" if no_longer_retained else ""', '""'),
    # room
    Fault("the ring keeps one more", ROOM, "while len(ring) > self._max_messages", "while len(ring) > self._max_messages + 1"),
    Fault("bytes are not given back", ROOM, "            self._bytes -= oldest.size\n", ""),
    Fault("a cursor moves back", ROOM, "max(self.cursor(name), min(seq, self.last_seq))", "min(seq, self.last_seq)"),
    Fault("a cursor passes the end", ROOM, "max(self.cursor(name), min(seq, self.last_seq))", "max(self.cursor(name), seq)"),
    Fault("a post does not move its author's cursor", ROOM, "        self._cursors[name] = seq\n", ""),
    Fault("a repeated id is a second message", ROOM, "if known is not None:", "if known is None and False:"),
    Fault("a topic is replaced", ROOM, "if topic is not None and self.topic is None:", "if topic is not None:"),
    Fault("unread counts what is gone", ROOM, "return self.last_seq - self._start(self.cursor(name))", "return self.last_seq - self.cursor(name)"),
    Fault("one's own posts are news", ROOM, "if kept.message.author.name != without:", "if without or True:"),
    # deadline
    Fault("the later of two deadlines", DEADLINE, "self if self.at <= other.at else other", "self if self.at >= other.at else other"),
    Fault("time left is negative", DEADLINE, "max(0.0, self.at - now)", "self.at - now"),
    Fault("a deadline passes late", DEADLINE, "return now >= self.at", "return now > self.at"),
    Fault("minutes are seconds", DEADLINE, "minutes * 60", "minutes"),
    Fault("a part outlives the whole", DEADLINE, "* fraction).earlier(self)", "* fraction)"),
    # process
    Fault("the deadline stops nothing", PROCESS, "                with anyio.move_on_at(deadline.at):\n", "                with anyio.move_on_at(deadline.at + 9):\n", "test_at_the_deadline_the_child_is_stopped"),
    Fault("the cap is not kept", PROCESS, "self._is_over_cap = len(kept) < len(chunk)", "self._is_over_cap = False", "test_the_cap_stops_the_child_and_keeps_what_was_written"),
    Fault("an empty stdin stays open", PROCESS, "                else:\n                    self._shut(self._stdin)\n", "", "test_without_input_stdin_is_at_its_end"),
    Fault("stdin stays open", PROCESS, "        await self._write(self._stdin, left)\n        self._shut(self._stdin)\n", "        await self._write(self._stdin, left)\n", "test_stdin_arrives_whole_and_ends"),
    Fault("stderr is not bounded", PROCESS, "(self._tail + chunk)[-_TAIL_BYTES:]", "(self._tail + chunk)", "test_the_last_of_stderr_is_kept"),
    Fault("the rest of the output is dropped", PROCESS, "            _read_rest(self._stdout, self._take_stdout)\n", "", "test_what_a_larger_pipe_still_holds_is_not_lost"),
    Fault("a stopped child ended by itself", PROCESS, "Cause.STOPPED if is_stopped else Cause.ENDED", "Cause.ENDED", "test_at_the_deadline_the_child_is_stopped"),
    Fault("a failing listener is ignored", PROCESS, "            self._problem = self._problem or problem\n", "", "test_a_full_disk_stops_the_child_and_is_raised"),
    Fault("the bad folder is not named", PROCESS, 'if at == "cwd" else ""', 'if at == "never" else ""', "test_a_folder_that_is_missing_or_none"),
)  # fmt: skip
