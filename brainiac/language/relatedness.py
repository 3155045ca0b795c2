"""How near two words are in meaning, and how common a word is: general English, from a table made beforehand."""

from __future__ import annotations

from functools import cache, lru_cache

from brainiac.language.sentences import data_lines, related

RAREST = 9
_SPELLING = 0.75  # likeness of spelling from which two words count as one, misspelt


@cache
def _table() -> dict[str, str]:
    return dict(line.split(" ", 1) for line in data_lines("related_words.txt"))


@lru_cache(maxsize=8192)
def rarity(stemmed: str) -> float:
    """Return how rare a word is in general English: 0 for the most common, 1 for one that the table lacks."""
    row = _table().get(stemmed)
    return int(row[0]) / 10 if row else 1.0


@lru_cache(maxsize=4096)
def likenesses(stemmed: str) -> dict[str, float]:
    """Return the stems near a stem with their likeness, 0 to 1: near-synonyms and kinds first, then what is related."""
    found: dict[str, float] = {}
    level = 0.0
    for word in _table().get(stemmed, "").split()[1:]:
        if word.isdigit():
            level = int(word) / 10
        else:
            found[word] = level
    for word, likeness in related(stemmed).items():
        found[word] = max(likeness, found.get(word, 0.0))
    return found


@lru_cache(maxsize=65536)
def is_misspelt(first: str, second: str) -> bool:
    """Tell whether two stems differ by a slip of the hand: most of their letter pairs are the same."""
    if min(len(first), len(second)) < 5 or abs(len(first) - len(second)) > 2 or first[0] != second[0]:
        return False
    pairs, others = _pairs(first), _pairs(second)
    return 2 * len(pairs & others) / (len(pairs) + len(others)) >= _SPELLING


def _pairs(word: str) -> frozenset[str]:
    return frozenset(word[i : i + 2] for i in range(len(word) - 1))
