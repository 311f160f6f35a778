"""A shell script with one line per launch, to be copied into terminals of one's own or run from top to bottom.

Pure: equal launches give equal bytes. A text of more than 4 KiB is written to a file of a folder of its own first,
which goes when the script ends; a script without such texts has no other lines than the launches'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.roles.native import Text
from fleet.roles.shell import MAKE_FOLDER, here, quote

if TYPE_CHECKING:
    from fleet.roles.launch import FanOut, Launch

__all__ = ["MAX_INLINE_BYTES", "render", "variables"]

#: A longer text does not stand in a line.
MAX_INLINE_BYTES = 4096

_HEAD = """\
#!/bin/sh
# {count}. Copy a line into a terminal of its own, or run this file: then one follows the other.
"""

_UNDO = """\
trap 'rm -rf "$dir"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
"""

_START = "start=$PWD\n"


def render(fan_out: FanOut) -> str:
    """Return the script."""
    count = "1 role" if len(fan_out.launches) == 1 else f"{len(fan_out.launches)} roles"
    files: dict[str, str] = {}  # filled by the lines that need one
    lines = [_paragraph(number, launch, files) for number, launch in enumerate(fan_out.launches, start=1)]
    parts = [_HEAD.format(count=count)]
    if any(launch.cwd is None for launch in fan_out.launches):
        parts.append(_START)
    if files:
        parts += [MAKE_FOLDER, _UNDO, *(here(name, text) for name, text in files.items())]
    return "".join([*parts, *lines])


def variables(launch: Launch) -> dict[str, str]:
    """What a launch sets in a line; nothing for a program that is told all in its arguments."""
    seat = {"FLEET_SEAT": launch.name} if launch.is_native else {}
    return {**seat, **launch.settings, **launch.env}


def _paragraph(number: int, launch: Launch, files: dict[str, str]) -> str:
    """A comment and the line of one launch; texts that are too long for it are added to ``files``."""
    about = f"\n# {launch.name} in #{launch.room}, {_one_line(launch.full_model or launch.runtime)}\n"
    if not launch.argv:
        notes = "".join(f"# {_one_line(note)}\n" for note in launch.notes)
        return f"{about}{notes}{' '.join(launch.following)}\n"
    words = [_word(number, word, files) for word in launch.argv]
    settings = [f"{name}={quote(value)}" for name, value in variables(launch).items()]
    entering = quote(str(launch.cwd)) if launch.cwd else '"${start:-.}"'
    return f"{about}cd {entering} && {' '.join([*settings, *words])}\n"


def _word(number: int, word: str | Text, files: dict[str, str]) -> str:
    if isinstance(word, str):
        return quote(word)
    if len(word.text.encode()) <= MAX_INLINE_BYTES:
        return quote(word.text)
    files[f"{number}-{word.kind}"] = word.text
    return f'"$(cat "$dir/{number}-{word.kind}")"'


def _one_line(text: str) -> str:
    """What a comment can hold: nothing that ends its line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
