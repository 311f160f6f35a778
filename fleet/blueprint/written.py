"""Data with a remark per key -> YAML that reads back as the same data.

Pure. Texts are plain where every reader agrees on them, a literal block where they have lines, and quoted
otherwise; what a terminal could obey is written as an escape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Entry", "yaml_text"]

#: Text that needs no quotes under any version of YAML, if it is none of `_WORDS`.
_PLAIN = re.compile(r"(?:[0-9]+[hms])+|[A-Za-z][\w./@+-]*(?: [\w./@+(),;!?'&-]*[\w./@+(),;!?'-])*", re.ASCII)
#: Text that some reader takes for something else.
_WORDS = frozenset("true false yes no on off y n null".split())  # noqa: SIM905 - reads better than eight literals
_KEY = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One value, and what is to be said of it behind ``#``."""

    value: object  #: text, a number, a bool, ``None``; or a mapping or a sequence of entries
    note: str = ""
    is_remark: bool = False  #: only the note is written, on a line of its own; for a mapping's entry


def yaml_text(data: Mapping[str, Entry]) -> str:
    """The text of a whole file, ending in one newline."""
    return "".join(f"{line}\n" for line in _mapping(data, "")) or "{}\n"


def _mapping(data: Mapping[str, Entry], indent: str) -> list[str]:
    lines: list[str] = []
    for key, entry in data.items():
        if entry.is_remark:
            lines.append(f"{indent}# {_one_line(entry.note)}")
            continue
        name = key if _KEY.fullmatch(key) and key.lower() not in _WORDS else _quoted(key)
        lines += _led(f"{indent}{name}:", entry, indent + "  ")
    return lines


def _sequence(items: Sequence[Entry], indent: str) -> list[str]:
    lines: list[str] = []
    for item in items:
        if isinstance(item.value, Mapping) and item.value and not item.note:
            inner = _mapping(item.value, indent + "  ")
            lines += [f"{indent}- {inner[0].lstrip()}", *inner[1:]]
        else:
            lines += _led(f"{indent}-", item, indent + "  ")
    return lines


def _led(lead: str, entry: Entry, indent: str) -> list[str]:
    """``lead`` and the value: behind it, or below it."""
    value, note = entry.value, f"  # {_one_line(entry.note)}" if entry.note else ""
    if isinstance(value, Mapping) and value:
        return [lead + note, *_mapping(value, indent)]
    if isinstance(value, str):
        if "\n" in value and _is_block(value):
            mark = "|" if value.endswith("\n") else "|-"
            body = value.removesuffix("\n").split("\n")
            return [f"{lead} {mark}{note}", *(f"{indent}{line}" if line else "" for line in body)]
        return [f"{lead} {_scalar(value)}{note}"]
    if isinstance(value, Sequence) and value:
        if all(not isinstance(item.value, Mapping | list | tuple) and not item.note for item in value):
            row = ", ".join(_scalar(item.value) for item in value)
            if "\n" not in row and len(row) < 80:
                return [f"{lead} [{row}]{note}"]
        return [lead + note, *_sequence(value, indent)]
    return [f"{lead} {_scalar(value)}{note}"]


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        # In a row of items a comma would end one.
        return value if is_plain and "," not in value else _quoted(value)
    return "[]"


def _is_block(text: str) -> bool:
    """Whether a literal block gives back exactly this text."""
    lines = text.removesuffix("\n").split("\n")
    return (
        all(line.isprintable() for line in lines)
        and lines[0].strip() != ""
        and not lines[0].startswith(" ")
        and all(line.strip() != "" or line == "" for line in lines)
        and lines[-1] != ""
    )


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    number = ord(letter)
    return (
        f"\\x{number:02x}"
        if number < 0x100
        else f"\\u{number:04x}"
        if number < 0x10000
        else f"\\U{number:08x}"
    )


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
