"""Words and texts as a POSIX shell reads them. Pure; what comes out has the same meaning in any locale."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FOLDER_BYTES", "MAKE_FOLDER", "here", "quote", "quoted", "readable"]

#: Longest path of a folder for temporary files that is used, so that what is made in it fits where space is short.
_MAX_TEMPORARY = 90
#: What the path of a file's folder takes at most, with the slash behind it.
FOLDER_BYTES = _MAX_TEMPORARY + len("/fleet-roles.XXXXXX/")
#: Lines that make a folder nobody else can read and set ``dir``. Where the usual place has a path that would need
#: quotes somewhere, that is relative or that is long, it is made in /tmp.
MAKE_FOLDER = f"""\
dir=${{TMPDIR:-/tmp}}
case $dir in [!/]* | *[!A-Za-z0-9/._+-]*) dir=/tmp ;; esac
[ ${{#dir}} -le {_MAX_TEMPORARY} ] || dir=/tmp
dir=$(mktemp -d "${{dir%/}}/fleet-roles.XXXXXX")
"""

#: Words that mean themselves without quotes, wherever they stand but first; as in `shlex`.
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-]+")


def quote(text: str) -> str:
    """One word."""
    return "'" + text.replace("'", "'\\''") + "'"


def quoted(words: Iterable[str]) -> str:
    """Several words, with a space between."""
    return " ".join(map(quote, words))


def readable(text: str) -> str:
    """One word, quoted only where a shell would read it as something else."""
    return text if _PLAIN.fullmatch(text) else quote(text)


def here(name: str, text: str) -> str:
    """Lines that write ``text`` and one newline to a file of that name in the folder ``$dir``."""
    end = "END"
    lines = text.split("\n")
    while end in lines:
        end += "-"
    return f"cat >\"$dir/{name}\" <<'{end}'\n{text}\n{end}\n"
