"""Words, runs of signs and pieces of a text, in any language: nothing here knows a word of one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"\w+")
# Thai, Lao, Burmese, Khmer, Kana and Han
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_PIECE_END = re.compile(r"(?<=[.!?…。！？؟])[\"'”’»)\]]*(?:\s+|(?<=[。！？]))")
_CLOSING = frozenset(("Pe", "Pf", "Pi"))
MAX_PIECE = 1_000


def words(text: str) -> list[str]:
    """Return the words of a text in order, compatibility forms and case folded."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def holds_words(text: str, wanted: str) -> bool:
    """Return whether a text holds every word of another, whole; in scripts without spaces as a run of signs.

    Of what has no word, signs alone (an emoji), the text holds it as written; of nothing at all it holds none.
    """
    asked, folded = words(wanted), unicodedata.normalize("NFKC", text).casefold()
    if not asked:
        bare = wanted.strip()
        return any(unicodedata.category(sign).startswith("S") for sign in bare) and bare in text
    known = set(words(text))
    return all(word in known or (_UNSPACED.match(word) is not None and word in folded) for word in asked)


@lru_cache(maxsize=4096)
def trigrams(text: str) -> frozenset[str]:
    """Return the runs of three signs of a text's words, each word with its ends."""
    return frozenset(f" {word} "[at : at + 3] for word in words(text) for at in range(len(word)))


def likeness(first: str, second: str) -> float:
    """Return the share of runs of signs that both texts have (Jaccard), 0 to 1; 0 where one has no words."""
    ones, others = trigrams(first), trigrams(second)
    return len(ones & others) / len(ones | others) if ones and others else 0.0


def coverage(wanted: str, text: str) -> float:
    """Return how much of the runs of signs of a text another has, 0 to 1."""
    ones = trigrams(wanted)
    return len(ones & trigrams(text)) / len(ones) if ones else 0.0


def pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text cut behind each sign that ends a sentence, none longer than `MAX_PIECE` characters.

    An abbreviation cuts a sentence in two: whoever looks for words verbatim finds both parts.
    """
    for line in text.splitlines():
        for piece in _PIECE_END.split(line):
            for start in range(0, len(piece), MAX_PIECE):
                if bare := piece[start : start + MAX_PIECE].strip():
                    yield bare


def ends_as_question(text: str) -> bool:
    """Return whether a text ends in a question mark, of whatever script, quotes and brackets behind it aside."""
    for sign in reversed(text):
        if "QUESTION MARK" in unicodedata.name(sign, ""):
            return True
        if not (sign.isspace() or unicodedata.category(sign) in _CLOSING or sign in "\"'*_"):
            return False
    return False
