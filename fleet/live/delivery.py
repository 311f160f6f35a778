"""Bring a text to a pane's program as one message, and know whether it came.

The text goes through a file into a buffer of its own and is pasted, in brackets where the program asks for them, so
that it arrives byte for byte and its lines stay together; then Enter is pressed. One delivery to a pane at a time: the
others wait at a lock, which the kernel lets go of when its holder dies.

What counts as delivered, in this order:

1. tmux took the paste, and it can be seen: the end of the text is on the screen where it was not (*shown*), or the
   ``[Pasted …]`` that agent CLIs put in its place (*folded*); of a long text it will do that the screen has *changed*.
   Only then is Enter pressed: a program that shows nothing of it may be asking something that Enter would answer.
2. After Enter the screen has changed again, and the pane's terminal holds nothing that the program has not read.

What is not known: whether the program has understood it. While a program draws by itself, *changed* says little.

Blocking. Nothing is ever typed, so no binding, prefix or key name can be met.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import sys
import termios
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from fleet.errors import NotDelivered, StorageFailed, TmuxFailed, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.live.teams import Pane
    from fleet.tmux import Tmux

__all__ = ["MAX_BYTES", "WAIT_SECONDS", "Evidence", "Receipt", "checked", "deliver"]

#: How long the program may take to show the text, and after Enter to read it.
WAIT_SECONDS = 10.0

#: A message, not a file: what is longer belongs into one, and its path into the message.
MAX_BYTES = 1024 * 1024

#: How long other deliveries to the same pane are waited for. Each takes at most two `WAIT_SECONDS` and a little.
_TURN_SECONDS = 120.0

#: How long the text itself is looked for before a changed screen will do.
_PATIENCE_SECONDS = 1.0

#: Between two looks; each is one call of tmux.
_LOOK_SECONDS = 0.03

#: Between the paste and Enter at the least: some programs take an Enter that comes at once for a part of the paste.
_SETTLE_SECONDS = 0.2

#: How much of a text's end is looked for on the screen: enough to tell it from others, and to fit into a narrow pane.
_PROBE_CHARS = 24
_WHOLE_CHARS = 300

#: What Claude Code, Codex, Gemini CLI and OpenCode show for a long paste begins like this, blanks left out.
_FOLD = "[Pasted"

#: A line up to this long is shown by all of them as it is.
_SHORT_CHARS = 150

#: What terminals of a line-reading program keep of one line, its end included: N_TTY_BUF_SIZE of Linux, MAX_CANON.
_LINE_BYTES = 4096 if sys.platform.startswith("linux") else 1024

#: Everything that is no text: it would be a key to the program, or end the brackets around the paste.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

#: What programs draw around or between what they show, and blanks, which they may put in.
_DRAWN = re.compile(r"[\s\u2500-\u259f|>]+")

_FACTS = (
    "#{pane_dead}:#{pane_dead_status}:#{pane_input_off}:#{pane_synchronized}:#{cursor_x}:#{cursor_y}:"
    "#{history_size}:#{pane_tty}"
)


class Evidence(Enum):
    """What could be seen of a text before Enter was pressed."""

    SHOWN = "shown"  #: its end stands on the screen
    FOLDED = "folded"  #: a word that stands for a paste does
    CHANGED = "changed"  #: the screen has changed


@dataclass(frozen=True, slots=True)
class Receipt:
    """A text that was delivered."""

    evidence: Evidence
    lines: int  #: as how many messages it arrived, for a program that reads by lines; else 1


@dataclass(frozen=True, slots=True)
class _Seen:
    """A pane at one moment."""

    is_dead: bool
    status: str
    is_input_off: bool
    is_synchronized: bool
    tty: str
    state: tuple[str, ...]  #: changes with everything that is shown
    text: str  #: what is shown, without blanks and frames


def checked(text: str) -> str:
    """The text as it can be delivered: line ends are LF, none at its end.

    Raises:
        UsageProblem: there is nothing in it, a control character, or too much.
    """
    text = text.replace("\r\n", "\n").rstrip("\n")
    if not text.strip():
        raise UsageProblem(
            "there is nothing to send", hint="give a text, or - and the text on standard input"
        )
    if found := _CONTROL.search(text):
        raise UsageProblem(
            f"the text has a control character (U+{ord(found[0]):04X}), which would be a key to the program",
            hint="send plain text; tabs and newlines are fine",
        )
    if len(text.encode()) > MAX_BYTES:
        raise UsageProblem(
            f"the text has over {MAX_BYTES // 1024} KiB", hint="write it to a file and send its path"
        )
    return text


def deliver(
    tmux: Tmux,
    pane: Pane,
    text: str,
    *,
    folder: Path,
    wait_seconds: float = WAIT_SECONDS,
    is_seen_needed: bool = False,
) -> Receipt:
    """Deliver ``text``, which has gone through `checked`, to the program in ``pane``.

    ``folder`` is the team's. With ``is_seen_needed`` a change of the screen alone will not do, however long the text.

    Raises:
        NotDelivered: with the reason; its text says whether Enter was pressed.
        TmuxFailed: the server went away.
    """
    with _turn(folder, pane):
        return _Delivery(tmux, pane, text, wait_seconds).run(folder, is_seen_needed=is_seen_needed)


class _Delivery:
    """One text on its way to one pane."""

    def __init__(self, tmux: Tmux, pane: Pane, text: str, wait_seconds: float) -> None:
        self._tmux = tmux
        self._pane = pane
        self._text = text
        self._wait_seconds = wait_seconds
        bare = _bare(text)
        #: The whole of a short text beside its end: an end that many texts share may scroll away as it comes.
        self._probes = tuple({bare[-_PROBE_CHARS:], bare[-_WHOLE_CHARS:]} - {""})

    def run(self, folder: Path, *, is_seen_needed: bool) -> Receipt:
        before = self._look()
        self._check(before)
        is_by_lines = _reads_by_lines(before.tty)
        longest = max(len(line.encode()) for line in self._text.split("\n"))
        if is_by_lines and longest >= _LINE_BYTES:
            raise self._problem(
                f"its program reads by lines, of which a terminal keeps {_LINE_BYTES - 1} bytes, and one of the "
                f"text has {longest}; nothing was sent",
                hint="write the text to a file and send its path",
            )
        self._paste(folder)
        evidence = self._wait_until_seen(before, is_seen_needed=is_seen_needed)
        time.sleep(_SETTLE_SECONDS)
        entered = self._look()
        self._tmux.run("send-keys", "-t", self._pane.id, "Enter")
        self._wait_until_read(entered)
        return Receipt(evidence, self._text.count("\n") + 1 if is_by_lines else 1)

    def _check(self, seen: _Seen) -> None:
        if seen.is_dead:
            status = f" (exit {seen.status})" if seen.status else ""
            raise self._problem(f"its program has ended{status}; nothing was sent", hint=_RESTART)
        if seen.is_input_off:
            raise self._problem(
                "input to its pane is switched off; nothing was sent",
                hint="switch it on: tmux select-pane -e",
            )
        if seen.is_synchronized:
            raise self._problem(
                "its pane is synchronised with others, which would get the text too; nothing was sent",
                hint="tmux set-option -w synchronize-panes off",
            )

    def _paste(self, folder: Path) -> None:
        name = f"fleet-{os.urandom(8).hex()}"
        path = folder / name
        target = ("-t", self._pane.id)
        try:
            with open(path, "xb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
                file.write(self._text.encode())
            self._tmux.run(
                *("if-shell", "-F", *target, "#{pane_in_mode}", f"copy-mode -q {' '.join(target)}", ";"),
                *("load-buffer", "-b", name, str(path), ";"),
                *("paste-buffer", "-p", "-d", "-r", "-b", name, *target),
            )
        except TmuxFailed as problem:
            with suppress(TmuxFailed):
                self._tmux.run("delete-buffer", "-b", name)
            raise self._problem(
                f"tmux did not take the text: {problem.message}; nothing was sent"
            ) from problem
        except OSError as problem:
            raise StorageFailed(path, problem.strerror or str(problem)) from problem
        finally:
            path.unlink(missing_ok=True)

    def _wait_until_seen(self, before: _Seen, *, is_seen_needed: bool) -> Evidence:
        """Wait for the text itself; after a while a long one will do with a screen that has changed."""
        start = time.monotonic()
        is_short = "\n" not in self._text and len(self._text) <= _SHORT_CHARS
        may_only_change = not (is_seen_needed or (is_short and self._probes))
        while True:
            seen = self._look()
            if seen.is_dead:
                raise self._problem("its program has ended while it was given the text", hint=_RESTART)
            if any(_has_more(probe, seen, before) for probe in self._probes):
                return Evidence.SHOWN
            if _has_more(_FOLD, seen, before):
                return Evidence.FOLDED
            waited = time.monotonic() - start
            if may_only_change and waited > _PATIENCE_SECONDS and seen.state != before.state:
                return Evidence.CHANGED
            if waited > self._wait_seconds:
                raise self._problem(
                    f"the text was pasted, but in {self._wait_seconds:g} s nothing of it was to be seen; Enter was "
                    "not pressed",
                    hint="look at its pane: the program may be busy, or be asking something",
                )
            time.sleep(_LOOK_SECONDS)

    def _wait_until_read(self, entered: _Seen) -> None:
        end = time.monotonic() + self._wait_seconds
        has_changed = False
        while True:
            seen = self._look()
            if seen.is_dead:  # with its message: an `exit` has been followed
                return
            has_changed = has_changed or seen.state != entered.state
            unread = _unread(seen.tty)
            if has_changed and not unread:
                return
            if time.monotonic() > end:
                if unread:
                    reason = (
                        f"the program has not read it within {self._wait_seconds:g} s; it may still do so"
                    )
                else:
                    reason = f"Enter was pressed, and nothing changed within {self._wait_seconds:g} s"
                raise self._problem(reason, hint="look at its pane before sending it again")
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> _Seen:
        target = ("-t", self._pane.id)
        try:
            facts, *lines = self._tmux.run(
                *("display-message", "-p", *target, _FACTS, ";", "capture-pane", "-p", "-J", *target)
            )
        except TmuxFailed as problem:
            if "can't find" in problem.message:
                raise self._problem("its pane is gone", hint="fleet ps shows what lives") from problem
            raise
        dead, status, off, synchronized, column, row, history, tty = facts.split(":", 7)
        return _Seen(
            is_dead=dead == "1",
            status=status,
            is_input_off=off == "1",
            is_synchronized=synchronized == "1",
            tty=tty,
            state=(column, row, history, *lines),
            text=_bare("".join(lines)),
        )

    def _problem(self, reason: str, *, hint: str | None = None) -> NotDelivered:
        return NotDelivered(self._pane.title, reason, hint=hint)


_RESTART = "start it again in its pane with the tmux command respawn-pane; fleet ps shows its last lines"


@contextmanager
def _turn(folder: Path, pane: Pane) -> Iterator[None]:
    """Be the only one who delivers to ``pane``."""
    path = folder / f"lock-{pane.id.removeprefix('%')}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have tidied up
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise StorageFailed(path, problem.strerror or str(problem)) from problem
    try:
        if not _poll(lambda: _is_locked(descriptor), _TURN_SECONDS):
            raise NotDelivered(
                pane.title, f"others have been sending to it for {_TURN_SECONDS:g} s; nothing was sent"
            )
        yield
    finally:
        os.close(descriptor)


def _poll(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _is_locked(descriptor: int) -> bool:
    """Take the lock if it is free; the kernel offers no bounded wait for it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_more(text: str, seen: _Seen, before: _Seen) -> bool:
    return seen.text.count(text) > before.text.count(text)


def _bare(text: str) -> str:
    return _DRAWN.sub("", text)


@contextmanager
def _terminal(path: str) -> Iterator[int | None]:
    """The pane's terminal, opened for a moment; ``None`` where that is not possible.

    Not kept open: tmux sees the end of a program by the terminal's last user going.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _reads_by_lines(tty: str) -> bool:
    with _terminal(tty) as descriptor, suppress(termios.error):
        return descriptor is not None and bool(termios.tcgetattr(descriptor)[3] & termios.ICANON)
    return False


def _unread(tty: str) -> int:
    """Bytes that lie in the terminal for the program to read; whole lines only where it reads by lines."""
    with _terminal(tty) as descriptor, suppress(OSError):
        if descriptor is not None:
            (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, struct.pack("i", 0)))
            return int(count)
    return 0
