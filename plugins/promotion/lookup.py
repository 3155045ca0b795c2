"""Statements by their words, so that a candidate meets what may have to do with it at any size of memory.

Recall ranks for questions; here the same matter counts, wherever it stands and however long ago it was said.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from heapq import nlargest
from itertools import islice
from math import log

from .stems import content_stems

_COMMON = 200  # statements that may share a word before it tells nothing


class Lookup:
    """An inverted index of statements, kept in memory for one run."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] = []
        self._postings: dict[str, list[int]] = defaultdict(list)

    def add(self, path: str, text: str) -> None:
        """Take a statement of a page in."""
        for term in _terms(text):
            self._postings[term].append(len(self._entries))
        self._entries.append((path, text))

    def nearest(self, text: str, limit: int) -> list[tuple[str, str]]:
        """Return (path, statement) of what shares the most telling words, nearest first.

        Where few share any, the newest follow: whoever decides may know what words cannot tell.
        """
        scores: dict[int, float] = defaultdict(float)
        total = len(self._entries)
        for term in _terms(text):
            postings = self._postings.get(term, ())
            if len(postings) <= max(_COMMON, total // 10):
                for entry in postings:
                    scores[entry] += log(1 + total / len(postings))
        found = nlargest(limit, scores, key=lambda entry: (scores[entry], entry))
        newest = (entry for entry in reversed(range(total)) if entry not in scores)
        return [self._entries[entry] for entry in (*found, *islice(newest, limit - len(found)))]


@lru_cache(maxsize=65536)
def _terms(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))
