"""Words, trigrams, sentences and numbers of a text in any language; there are no word lists here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

_WORD = re.compile(r"\w+")
# Thai, Lao, Burmese, Khmer, Kana and Han
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_PIECE_END = re.compile(r"(?<=[.!?…。！？؟])[\"'”’»)\]]*(?:\s+|(?<=[。！？]))")
_ENDED = re.compile(r"[.!?…。！？؟।][\"'”’»)\]*_]*\Z")
_CLOSING = frozenset(("Pe", "Pf", "Pi"))  # Unicode's categories of closing brackets and of quotes
_NUMBER = re.compile(r"\d+")
_CLOCK = re.compile(r"(?<!\d)(\d{1,2})[:.h](00|15|30|45)(?!\d)")
MAX_NAMED = 8  # signs of a word of a script without spaces that is known by its hash
MAX_PIECE = 1_000


def words(text: str) -> list[str]:
    """Return the words of a text in order, casefolded and with wide letters as plain ones (NFKC)."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def holds_words(text: str, query: str) -> bool:
    """Return whether a text contains every word of `query`.

    A word must be whole; in scripts without spaces it may be a part of a run of characters. Where `query` has symbols
    and no word (an emoji), the text must contain it as written. An empty `query` is in no text.
    """
    query_words, folded_text = words(query), unicodedata.normalize("NFKC", text).casefold()
    if not query_words:
        symbols = query.strip()
        return any(unicodedata.category(sign).startswith("S") for sign in symbols) and symbols in text
    if not all(word in folded_text for word in query_words):
        return False  # a quick look, since most texts lack one
    text_words = set(words(text))
    return all(
        word in text_words or (_UNSPACED.match(word) is not None and word in folded_text) for word in query_words
    )


def named_words(text: str) -> set[str]:
    """Return the words by which `holds_words` finds a text: its own, and parts of runs in scripts without spaces."""
    found = set(words(text))
    for run in filter(_UNSPACED.match, tuple(found)):
        found |= {run[at : at + length] for at in range(len(run)) for length in range(1, MAX_NAMED + 1)}
    return found


@lru_cache(maxsize=512)  # those of a long text have a hundred kilobytes
def trigrams(text: str) -> frozenset[str]:
    """Return all runs of three characters of a text's words, each word with a space at both ends."""
    return frozenset(f" {word} "[at : at + 3] for word in words(text) for at in range(len(word)))


def likeness(first: str, second: str) -> float:
    """Return the share of trigrams that two texts have in common (Jaccard), 0 to 1; 0 where one has no words."""
    first_trigrams, second_trigrams = trigrams(first), trigrams(second)
    if not first_trigrams or not second_trigrams:
        return 0.0
    return len(first_trigrams & second_trigrams) / len(first_trigrams | second_trigrams)


def coverage(query: str, text: str) -> float:
    """Return the share of the trigrams of `query` that `text` has too, 0 to 1; 0 where `query` has no words."""
    needed = trigrams(query)
    return len(needed & trigrams(text)) / len(needed) if needed else 0.0


def holds_phrase(text: str, phrase: str) -> bool:
    """Return whether the words of a phrase stand in a text in the same order, without others between them."""
    return bool(words(phrase)) and " ".join(words(phrase)) in " ".join(words(text))


def pieces(text: str) -> Iterator[str]:
    """Yield the sentences of a text, line by line, none longer than `MAX_PIECE` characters.

    An abbreviation cuts a sentence in two; a search for verbatim words still finds both parts.
    """
    for line in text.splitlines():
        for piece in _PIECE_END.split(line):
            for start in range(0, len(piece), MAX_PIECE):
                if sentence := piece[start : start + MAX_PIECE].strip():
                    yield sentence


def as_sentence(text: object) -> str:
    """Return a text with a full stop at its end, unless it ends as a sentence does: it may quote one."""
    ended = str(text).rstrip()
    return ended if _ENDED.search(ended) else f"{ended}."


def ends_as_question(text: str) -> bool:
    """Return whether a text ends in a question mark of any script; quotes and brackets after it do not count."""
    for sign in reversed(text):
        if "QUESTION MARK" in unicodedata.name(sign, ""):
            return True
        if not (sign.isspace() or unicodedata.category(sign) in _CLOSING or sign in "\"'*_"):
            return False
    return False


def numbers(texts: Iterable[str]) -> set[int]:
    """Return the numbers in texts, one for each group of digits: a date has three; 0 is left out."""
    # a group of thousands of digits would be slow to convert
    return {int(digits[:18]) for text in texts for digits in _NUMBER.findall(text)} - {0}


def clock_hours(text: str) -> dict[str, set[int]]:
    """Return the times at a full, half or quarter hour in a text, each with the hours that may be said for it.

    For "7:30" these are 7 ("half past seven") and 8 ("halb acht"), and 19 and 20 for the evening.
    """
    hours: dict[str, set[int]] = {}
    for match in _CLOCK.finditer(text):
        hour = int(match[1])
        hours[match[0]] = {spoken for named in (hour, hour + 1) for spoken in (named, named % 12, named % 12 + 12)}
    return hours
