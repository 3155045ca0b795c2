"""Words, trigrams and sentences of a text in any language; there are no word lists here."""

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
    """Return the words of a text in order, casefolded and with wide letters as plain ones (NFKC)."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def holds_words(text: str, wanted: str) -> bool:
    """Return whether a text contains every word of another text.

    A word must be whole; in scripts without spaces it may be a part of a run of characters. Symbols without any word
    (an emoji) must stand in the text as written. An empty `wanted` is in no text.
    """
    wanted_words, folded = words(wanted), unicodedata.normalize("NFKC", text).casefold()
    if not wanted_words:
        bare = wanted.strip()
        return any(unicodedata.category(sign).startswith("S") for sign in bare) and bare in text
    known = set(words(text))
    return all(word in known or (_UNSPACED.match(word) is not None and word in folded) for word in wanted_words)


@lru_cache(maxsize=4096)
def trigrams(text: str) -> frozenset[str]:
    """Return all runs of three characters of a text's words, each word with a space at both ends."""
    return frozenset(f" {word} "[at : at + 3] for word in words(text) for at in range(len(word)))


def likeness(first: str, second: str) -> float:
    """Return the share of trigrams that two texts have in common (Jaccard), 0 to 1; 0 where one has no words."""
    ours, theirs = trigrams(first), trigrams(second)
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0


def coverage(wanted: str, text: str) -> float:
    """Return the share of the trigrams of `wanted` that `text` has too, 0 to 1; 0 where `wanted` has no words."""
    needed = trigrams(wanted)
    return len(needed & trigrams(text)) / len(needed) if needed else 0.0


def pieces(text: str) -> Iterator[str]:
    """Yield the sentences of a text, line by line, none longer than `MAX_PIECE` characters.

    An abbreviation cuts a sentence in two; a search for verbatim words still finds both parts.
    """
    for line in text.splitlines():
        for piece in _PIECE_END.split(line):
            for start in range(0, len(piece), MAX_PIECE):
                if bare := piece[start : start + MAX_PIECE].strip():
                    yield bare


def ends_as_question(text: str) -> bool:
    """Return whether a text ends in a question mark of any script; quotes and brackets after it do not count."""
    for sign in reversed(text):
        if "QUESTION MARK" in unicodedata.name(sign, ""):
            return True
        if not (sign.isspace() or unicodedata.category(sign) in _CLOSING or sign in "\"'*_"):
            return False
    return False
