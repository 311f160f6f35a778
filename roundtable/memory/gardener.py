"""Pages tended: what says the same is one fact, and pages of one topic link to each other.

Duplicates are facts of one kind in one page that have the same words in the same order, without case, accents,
endings, articles and the punctuation around words (``words.same_fact_key``). The first stays and takes over the sources
of the others. Facts of different pages stay where they are: what two topics have in common links them.

Two pages are of one topic when one continues the other, when they cite one raw file, when one fact of four words or
more stands in both, when a word of their names is the same, or when they share three of their keywords. Keywords are
the twelve words that most facts of a page have, at least two of them, and not more than half of all pages.

The same pages give the same result, so a second call changes nothing. Blocking; whoever calls holds the lock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from .files import MAX_READ_PAGE_BYTES, is_page, searched
from .folder import Folder
from .ingest import Ingested
from .pages import Page
from .wording import count, some
from .words import content_words, same_fact_key

__all__ = ["related_pages", "tend"]

#: Words that tell the topic of a page.
_KEYWORDS = 12

#: Of them, how many two pages of one topic have in common.
_SHARED_KEYWORDS = 3

#: Words a fact has at least to link two pages; "yes" stands in many.
_LINKING_FACT_WORDS = 4

#: Links of one page.
_MAX_LINKS = 10

#: What more pages than this have in common is no topic.
_MAX_SHARING = 50

#: Pages named in the answer.
_SHOWN_NAMES = 10


@dataclass(frozen=True, slots=True)
class Traits:
    """What a page is recognised by."""

    certain: frozenset[Hashable]  #: one of these in common makes one topic
    words: Counter[str]  #: in how many facts each word stands


def tend(folder: Folder) -> Ingested:
    """Merge and link; what changed, and which pages were written.

    Raises:
        MemoryFailed: a page cannot be read or written; those before it are done.
    """
    paths = list(filter(is_page, searched(folder).pages))
    traits: dict[str, Traits] = {}
    merged: dict[str, int] = {}
    skipped: list[str] = []
    written: dict[str, None] = {}
    for path in paths:
        page = _page(folder, path)
        if page is None:
            skipped.append(path)
            continue
        if gone := page.merge():
            merged[path] = gone
            _replace(folder, path, page)
            written[path] = None
        traits[path] = _traits(path, page)
    linked: list[str] = []
    for path, others in related_pages(traits).items():
        page = _page(folder, path)
        if page is not None and page.relate(path, others):
            _replace(folder, path, page)
            linked.append(path)
            written[path] = None
    return Ingested(_told(len(traits), merged, linked, skipped), tuple(written))


def related_pages(traits: dict[str, Traits]) -> dict[str, list[str]]:
    """For each page the pages of its topic, nearest first, at most ten."""
    together: dict[str, Counter[str]] = {path: Counter() for path in traits}
    for weight, sharing in ((_SHARED_KEYWORDS, _by_trait(traits)), (1, _by_keyword(traits))):
        for pages in sharing:
            for one in pages:
                for other in pages:
                    if one != other:
                        together[one][other] += weight
    return {
        path: [
            other
            for other, shared in sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
            if shared >= _SHARED_KEYWORDS
        ][:_MAX_LINKS]
        for path, found in together.items()
    }


def _by_trait(traits: dict[str, Traits]) -> list[list[str]]:
    return _sharing((path, trait) for path, page in traits.items() for trait in page.certain)


def _by_keyword(traits: dict[str, Traits]) -> list[list[str]]:
    having = Counter(word for page in traits.values() for word in page.words)
    most = len(traits) / 2 if len(traits) > 3 else len(traits)
    found: list[tuple[str, str]] = []
    for path, page in traits.items():
        telling = [(word, times) for word, times in page.words.items() if times > 1 and having[word] <= most]
        telling.sort(key=lambda pair: (-pair[1], pair[0]))
        found.extend((path, word) for word, _ in telling[:_KEYWORDS])
    return _sharing(found)


def _sharing(found: Iterable[tuple[str, Hashable]]) -> list[list[str]]:
    """The pages that have each trait, where that is more than one and not many."""
    having: defaultdict[Hashable, list[str]] = defaultdict(list)
    for path, trait in found:
        having[trait].append(path)
    return [pages for pages in having.values() if 1 < len(pages) <= _MAX_SHARING]


def _traits(path: str, page: Page) -> Traits:
    name = path.rsplit("/", 1)[-1].removesuffix(".md")
    certain: set[Hashable] = {("topic", name.split(".")[0])}
    certain.update(("name", word) for word in content_words([name]))
    words: Counter[str] = Counter()
    for fact in page.facts:
        certain.update(("raw", source.path) for source in fact.sources)
        key = same_fact_key(fact.text)
        if len(key) >= _LINKING_FACT_WORDS:
            certain.add(("fact", key))
        words.update(content_words([fact.text]))
    return Traits(frozenset(certain), words)


def _page(folder: Folder, path: str) -> Page | None:
    try:
        text = folder.text(path, MAX_READ_PAGE_BYTES)
    except FileNotFoundError:
        return None
    return None if text is None else Page.parse(text)


def _replace(folder: Folder, path: str, page: Page) -> None:
    with folder.replacing(path) as file:
        file.write(page.render().encode())


def _told(pages: int, merged: dict[str, int], linked: list[str], skipped: list[str]) -> str:
    text = f"Tended {count(pages, 'page')}: "
    parts: list[str] = []
    if merged:
        each = [f"{path} ({gone})" for path, gone in merged.items()]
        parts.append(f"{count(sum(merged.values()), 'duplicate fact')} merged in {some(each, _SHOWN_NAMES)}")
    if linked:
        parts.append(f"links of {count(len(linked), 'page')} changed: {some(linked, _SHOWN_NAMES)}")
    text += f"{'; '.join(parts) or 'nothing to change'}."
    if skipped:
        text += f" Left alone because too large or not UTF-8: {some(skipped, _SHOWN_NAMES)}."
    return text
