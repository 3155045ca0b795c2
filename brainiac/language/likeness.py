"""How much two texts say the same, in any language: by the runs of three signs that they share."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"\w+")


@lru_cache(maxsize=4096)
def trigrams(text: str) -> frozenset[str]:
    """Return the runs of three signs of a text's words, case and signs between them aside, each word with its ends."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return frozenset(f" {word} "[at : at + 3] for word in words for at in range(len(word)))


def likeness(first: str, second: str) -> float:
    """Return the share of runs that both texts have (Jaccard), 0 to 1; 0 where one has no words."""
    ones, others = trigrams(first), trigrams(second)
    return len(ones & others) / len(ones | others) if ones and others else 0.0


def ends_as_question(text: str) -> bool:
    """Return whether a text ends in a question mark, of whatever script, quotes and brackets behind it aside."""
    for sign in reversed(text):
        if "QUESTION MARK" in unicodedata.name(sign, ""):
            return True
        if not (sign.isspace() or unicodedata.category(sign) in ("Pe", "Pf", "Pi") or sign in "\"'*_"):
            return False
    return False
