"""Words that mean nearly the same: what a question calls "instruments" may have been told as "violin"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainiac.language.relatedness import ranks, vectors
from brainiac.recall.text import term_hash

_UNRELATED, _ALIKE = 0.35, 0.9  # cosines of words that have nothing to do with one another, and of those that are one


def likeness(terms: Sequence[str], words: NDArray[np.uint32], counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return how near in meaning each text's nearest word is to each term.

    Args:
        terms: Stems looked for.
        words: Term hashes of all texts, one after another.
        counts: How many of them each text has.

    Returns:
        `(n_terms, n_texts)`, 0 to 1; 1 where the term itself stands.
    """
    known, place = np.unique(words, return_inverse=True)
    sought = np.array([term_hash(term) for term in terms], np.uint32)
    rows, wanted = _rows_of(known), _rows_of(sought)
    cosines = _cosines(vectors()[wanted], vectors()[rows])
    cosines *= (wanted >= 0)[:, None] & (rows >= 0)  # who has no vector is like nobody but itself
    near = np.clip((cosines - _UNRELATED) / (_ALIKE - _UNRELATED), 0, 1)
    near[known == sought[:, None]] = 1
    return _best_in_each(near.take(place, axis=1), counts)


def _cosines(ones: NDArray[np.int8], others: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return `(n_ones, n_others)` cosines of rows of length 127.

    Sums of such products are whole numbers that a float32 holds, so that the same words are as near in any company.
    """
    # no `@`: its threads would spin on for ten times as long as this takes
    products = np.einsum("ik,jk->ij", ones.astype(np.float32), others.astype(np.float32))
    found: NDArray[np.float32] = products / np.float32(127 * 127)
    return found


def _best_in_each(values: NDArray[np.float32], counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the highest value of each row in each text, 0 in an empty one.

    Args:
        values: `(n_rows, n_words)` of all texts, one after another.
        counts: How many words each text has.
    """
    found = np.zeros((len(values), len(counts)))
    filled = counts > 0
    if filled.any():
        starts = (np.cumsum(counts) - counts)[filled]
        found[:, filled] = np.maximum.reduceat(values, starts, axis=1)
    return found


def _rows_of(hashes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the rows of the vectors of words known by hash; -1 where there is none."""
    known, rows = _table()
    place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.where(known[place] == hashes, rows[place], -1)


@cache
def _table() -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the hashes of the known stems in order, and the row of each."""
    hashes = np.array([term_hash(stem) for stem in ranks()], np.uint32)
    rows = np.argsort(hashes, kind="stable")
    return hashes[rows], rows
