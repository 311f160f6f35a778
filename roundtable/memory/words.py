"""Words: of a question, to search by; of a fact, to compare it by; of a page, to know its topic by.

Pure. Letters are compared without case and accents. Chinese and Japanese are written without blanks, so each of their
characters counts as a word, in what is searched as in what is asked. Not here: any query language. Whatever
characters a question has, it is a list of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "MAX_QUESTION_WORDS",
    "Question",
    "content_words",
    "folded",
    "indexed",
    "same_fact_key",
    "words_of",
]

#: Words of a question that are looked for; more only make a search slower.
MAX_QUESTION_WORDS = 32

#: Characters of a question that are looked at.
_MAX_QUESTION_CHARS = 20_000

#: Hiragana, Katakana and the CJK ideographs.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CHARACTER = re.compile(f"[{_UNSPACED}]")
_WORD = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_])+")
_AROUND = re.compile(r"""^(?:\*\*|["'“”‘’`(\[])+|(?:\*\*|[.,;:!?"'“”‘’`)\]…])+$""")
_MARK = re.compile(r"[\u0300-\u036f]")

#: Words that ask rather than say what about. Negations are none: they change what is said.
_STOP_WORDS = frozenset(
    """
    a about an and any are as at be been being but by can could did do does done for from had has have he her him his
    how i if in into is it its let me my of on or our please say says she should so some tell than that the their them
    then there these they this those to us was we were what when where which who whom whose why will with would you
    your
    """.split()  # noqa: SIM905 - a list of sixty literals is harder to read and to check
)

#: Words that may be left out of a fact without changing it.
_FILLERS = frozenset({"a", "an", "our", "please", "that", "the", "us", "we"})


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for; no words when the question has none."""

    words: tuple[str, ...]  #: folded, each once, in order

    @classmethod
    def of(cls, text: str) -> Question:
        """The words of ``text`` that say what it is about; all of them if none does."""
        found = tuple(dict.fromkeys(words_of(text[:_MAX_QUESTION_CHARS])))
        telling = tuple(word for word in found if word not in _STOP_WORDS)
        return cls((telling or found)[:MAX_QUESTION_WORDS])


def folded(text: str) -> str:
    """``text`` without case and accents."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _MARK.sub("", unicodedata.normalize("NFKD", text.casefold())))


def words_of(text: str) -> list[str]:
    """The words of ``text``, folded, in order; a run of unspaced characters is one."""
    return _WORD.findall(folded(text))


def indexed(text: str) -> str:
    """``text`` as an index takes it: folded as questions are, with blanks around characters that are words."""
    return text if text.isascii() else _CHARACTER.sub(r" \g<0> ", folded(text))


def same_fact_key(text: str) -> tuple[str, ...]:
    """What two facts that say the same in nearly the same words have in common.

    Their words in order, without case, accents, endings, fillers (articles and the like) and the punctuation around
    them. Nothing that could change the meaning is left out: numbers, signs, negations and the order of words count.
    """
    found = [_AROUND.sub("", word) for word in folded(text).split()]
    return tuple(_stem(word) for word in found if word and word not in _FILLERS) or (text.strip(),)


def content_words(texts: Iterable[str]) -> set[str]:
    """The words of ``texts`` that can tell a topic: four letters or more, no stop words, without endings."""
    return {
        _stem(word)
        for text in texts
        for word in words_of(text)
        if len(word) > 3 and word not in _STOP_WORDS and not word.isdigit()
    }


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    """``word`` without the endings of English plurals and verbs; crude, and the same everywhere."""
    if not word.isascii() or not word.isalpha() or len(word) < 5:
        return word
    for ending, kept in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word[: len(word) - len(ending)] + kept
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
