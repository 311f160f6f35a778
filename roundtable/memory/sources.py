"""The page that lists what has been ingested: one line per raw file, with the hash of what was read.

Pure. People may read it, edit it, and take a line out to have a file read again; other lines stay as they are.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from .pages import escaped

__all__ = ["EMPTY_SOURCES", "ingested_hashes", "with_source"]

#: The page before anything was ingested.
EMPTY_SOURCES = """# Sources

What ingest has read, one line per file. Take a line out to have the file read again.

"""

_LINE = re.compile(r"- \[(raw/[^\[\]()\s]+)\]\(\.\./\1\) · \S+ · sha256:([0-9a-f]{64}) · .*")


def ingested_hashes(text: str) -> dict[str, str]:
    """Raw files by path, and the SHA-256 of what was read."""
    return {unquote(found[1]): found[2] for line in text.split("\n") if (found := _LINE.fullmatch(line))}


def with_source(text: str, path: str, *, digest: str, at: str, found: str) -> str:
    """``text`` with the line of ``path`` anew: what was read, when, and ``found`` in it."""
    link = escaped(path)
    line = f"- [{link}](../{link}) · {at} · sha256:{digest} · {found}"
    lines = (text or EMPTY_SOURCES).split("\n")
    for at_line, known in enumerate(lines):
        match = _LINE.fullmatch(known)
        if match and unquote(match[1]) == path:
            lines[at_line] = line
            return "\n".join(lines)
    while lines and not lines[-1].strip():
        lines.pop()
    gap = [] if lines and _LINE.fullmatch(lines[-1]) else [""]
    return "\n".join([*lines, *gap, line, ""])
