"""Search without a database: every file is read through, and the best passages are kept.

For a Python without FTS5, a folder that takes no index, and words that an index does not find because they stand inside
other words. Slower than the index by the size of the memory; needs room for the kept passages only. Blocking.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ..errors import MemoryFailed
from .files import Searched, passages_of
from .folder import Folder
from .index import Found
from .passages import Passage
from .words import folded

__all__ = ["scan"]

#: Letters of a word that decide: endings differ.
_STEM_CHARS = 5

#: Occurrences of one word in a passage that count.
_MAX_COUNTED = 3


def scan(folder: Folder, words: Sequence[str], limit: int, now: Searched) -> Found:
    """The passages with all ``words``, else those with any; a word counts wherever its letters stand.

    Ordered by how many of the words a passage has, then pages before raw files, then how often it has them, then the
    newest first.
    """
    stems = [_stem(word) for word in words]
    best: list[tuple[tuple[int, bool, int, str, int], Passage]] = []
    totals = dict.fromkeys(range(len(stems) + 1), 0)
    for path in now.files:
        try:
            for passage in passages_of(folder, path):
                text = folded(f"{passage.title}\n{passage.terms}\n{passage.text}")
                counts = [min(text.count(stem), _MAX_COUNTED) for stem in stems]
                has = sum(map(bool, counts))
                if not has:
                    continue
                totals[has] += 1
                # The running number makes every key another, so that passages themselves are not compared.
                number = -sum(totals.values())
                item = ((has, passage.is_wiki, sum(counts), passage.at, number), passage)
                (heapq.heappush if len(best) < limit else heapq.heappushpop)(best, item)
        except (FileNotFoundError, MemoryFailed):
            continue  # gone or closed to us since it was listed; doctor tells
    has_all = totals[len(stems)]
    total = has_all or sum(totals.values())
    kept = sorted(best, reverse=True)
    passages = tuple(passage for key, passage in kept if not has_all or key[0] == len(stems))
    return Found(total, passages, is_partial=not has_all and len(stems) > 1)


def _stem(word: str) -> str:
    return word[:_STEM_CHARS] if word.isascii() and word.isalpha() and len(word) > _STEM_CHARS else word
