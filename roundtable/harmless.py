"""Text of others made safe to show: no control can act, and no line of it can pass for one of ours.

Pure. What is stored stays as it was posted; only what is shown goes through here. The character sets are
spelled out because ``str.isprintable`` and ``str.splitlines`` follow the tables of the running Python.
"""

from __future__ import annotations

import re

__all__ = ["CONTINUATION", "first_line_end", "harmless", "harmless_line", "indented", "is_plain_line"]

#: What every line of a body but its first begins with. No line that a room writes itself begins with a blank.
CONTINUATION = "    "

#: Every line break Unicode knows (UAX 14, mandatory breaks) and the three ASCII separators.
_LINE_BREAKS = "[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]"
_LINE_BREAK = re.compile(f"\r\n|{_LINE_BREAKS}")

#: Where one begins; found four times as fast without the pair.
_LINE_BREAK_START = re.compile(_LINE_BREAKS)

#: C0 and C1 controls but tab and newline, bidirectional controls, and surrogates, which no UTF-8 can carry.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


#: What is to be replaced in ASCII text, line breaks but the newline among it.
_UNSAFE_ASCII = bytes(code for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n")


def harmless(text: str) -> str:
    """``text`` with every line break as ``\\n`` and every other control as U+FFFD. Never longer."""
    # Most text is plain, and finding that out takes a twentieth of the time of replacing nothing in it.
    if text.isascii() and len(text.encode().translate(None, _UNSAFE_ASCII)) == len(text):
        return text
    return _UNSAFE.sub("\ufffd", _LINE_BREAK.sub("\n", text))


def indented(text: str) -> str:
    """``harmless(text)`` with four blanks before every line but the first."""
    text = harmless(text)
    return text.replace("\n", "\n" + CONTINUATION) if "\n" in text else text


def harmless_line(text: str) -> str:
    """``harmless(text)`` on one line: a line break shows as a blank."""
    return harmless(text).replace("\n", " ")


def is_plain_line(text: str) -> bool:
    """Whether ``text`` is one line without anything that ``harmless`` would replace."""
    return _LINE_BREAK_START.search(text) is None and _UNSAFE.search(text) is None


def first_line_end(text: str) -> int:
    """Where the first line break of ``text`` is, or its length."""
    found = _LINE_BREAK_START.search(text)
    return found.start() if found else len(text)
