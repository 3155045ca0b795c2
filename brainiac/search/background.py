"""How rare words are in general, in about a hundred languages at once: a background that no brain changes.

A small brain knows few words, so that each of them looks rare in it; what a prompt is about is judged by this instead.
The packaged file has the more common words by the first 24 bits of their hashes; a word that is not in it is rare.
`benchmarks/push.py background` makes it of the vocabulary that comes with the packaged embedder.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainiac.search.text import folded, term_hash

FILE = "background.bin"
STEP = 1 / 24  # of a level, in natural logarithms
LEAST, RAREST = 5.0, 14.0  # how rare the most common word is, and one that is not in the file
_COMMON = 10.0  # a word so rare, about one in twenty thousand, begins to tell something


@cache
def _levels() -> NDArray[Any]:
    """Return the packaged rows in the order of their hashes: 24 bits of hash, then a level of 8 bits."""
    return np.frombuffer((resources.files("brainiac.search") / FILE).read_bytes(), "<u4")


def row_of(word: str, rarity: float) -> int:
    """Return the row of a word, as the file has it."""
    return term_hash(folded(word)) >> 8 << 8 | min(255, max(0, round((rarity - LEAST) / STEP)))


def information(word: str) -> float:
    """Return how much a word tells by how rare it is, from 0 for a common one to 4.

    Args:
        word: In small letters.
    """
    rows, least = _levels(), term_hash(folded(word)) >> 8 << 8
    place = int(np.searchsorted(rows, least))
    is_known = place < len(rows) and int(rows[place]) >> 8 << 8 == least
    rarity = LEAST + (int(rows[place]) & 255) * STEP if is_known else RAREST
    return max(0.0, rarity - _COMMON)
