"""How near two words are in meaning, and how common a word is: general English, from tables made beforehand."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainiac.language.sentences import related

_UNRELATED, _ALIKE = 0.3, 0.9  # cosines of words that have nothing to do with one another, and of those that are one
_FAINT = 0.1  # likeness below which a word stands for nothing
_LISTED = 0.9  # what a likeness of the synonym table counts beside one of the vectors
_MISSPELT = 0.8
_SPELLING = 0.75  # share of letter pairs from which two words count as one, misspelt
_COMMON, _RARE = 60, 18_000  # ranks: below the one a word says next to nothing, from the other on it is rare


@cache
def ranks() -> dict[str, int]:
    """Read the stems, most frequent first; a stem's place is the row of its vector."""
    text = resources.files("brainiac.language").joinpath("word_vectors.txt").read_text("utf-8")
    return {word: rank for rank, word in enumerate(text.split())}


@cache
def vectors() -> NDArray[np.int8]:
    """Map the vectors, (n_stems, n_parts) of length 127: only the pages of the words met are read."""
    with resources.as_file(resources.files("brainiac.language").joinpath("word_vectors.npy")) as path:
        table: NDArray[np.int8] = np.load(path, mmap_mode="r")
    return table


def rarity(stemmed: str) -> float:
    """Return how rare a word is in general English: near 0 for the most common, 1 for one that the table lacks."""
    rank = ranks().get(stemmed, _RARE)
    return min(1.0, max(0.05, math.log1p(rank / _COMMON) / math.log1p(_RARE / _COMMON)))


def likenesses(stems: Sequence[str], others: Collection[str]) -> list[dict[str, float]]:
    """Return for each stem the others that may stand for it, with their likeness, 0 to 1.

    Args:
        stems: Looked for.
        others: Of the texts looked into.
    """
    known = [other for other in others if other in ranks()]
    found = [_by_vectors(row, known) for row in _cosines(stems, known)]
    for one, near in zip(stems, found, strict=True):
        for other, likeness in related(one).items():
            near[other] = max(likeness if other == one else _LISTED * likeness, near.get(other, 0.0))
        if one not in others:
            near |= {other: _MISSPELT for other in others if other[0] == one[0] and is_misspelt(one, other)}
    return found


def _by_vectors(cosines: NDArray[Any], named: Sequence[str]) -> dict[str, float]:
    scaled = np.minimum(1.0, (cosines - _UNRELATED) / (_ALIKE - _UNRELATED))
    return {named[int(at)]: float(scaled[at]) for at in np.flatnonzero(scaled > _FAINT)}


def _cosines(stems: Sequence[str], known: Sequence[str]) -> NDArray[Any]:
    """Return (n_stems, n_known); a stem without a vector is near nothing."""
    row_of, table = ranks(), vectors()
    others = table[[row_of[other] for other in known]].astype(np.float32) / 127
    wanted = np.zeros((len(stems), table.shape[1]), np.float32)
    for at, one in enumerate(stems):
        if one in row_of:
            wanted[at] = table[row_of[one]] / np.float32(127)
    return np.asarray(np.einsum("ik,jk->ij", wanted, others))  # not `@`: its threads would spin on for 10 ms


@lru_cache(maxsize=65536)
def is_misspelt(first: str, second: str) -> bool:
    """Tell whether two stems, not both known words, differ by a slip of the hand: most letter pairs are the same."""
    if min(len(first), len(second)) < 5 or abs(len(first) - len(second)) > 2 or first[0] != second[0]:
        return False
    if first in ranks() and second in ranks():
        return False
    pairs, others = _pairs(first), _pairs(second)
    return 2 * len(pairs & others) / (len(pairs) + len(others)) >= _SPELLING


def _pairs(word: str) -> frozenset[str]:
    return frozenset(word[i : i + 2] for i in range(len(word) - 1))
