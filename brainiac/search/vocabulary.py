"""The words of a brain: their stems, and the runs of three signs in which inflected forms, compounds and typos meet.

A unit of the index is a list of word hashes; all else that ranking asks of a word is looked up here. The words are
kept by the index beside its pages. Nothing here knows a language.
"""

from __future__ import annotations

import threading
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.uint32]
Numbers: TypeAlias = NDArray[np.int32]

MOST_WORDS = 1_000_000  # hostile text must not fill memory; what comes after is met as it stands
GRAM_BITS = 20
_GRAMS = 1 << GRAM_BITS
_FEW = 2_000  # so many new words are looked through one by one
_EDGE = "\n"  # stands before and after each word, where none of them has it


@dataclass(frozen=True)
class Table:
    """The words known at one moment, by number; arrays only grow.

    Attributes:
        hashes: Of the words, `(n_words,)`; `stems`: of their stems.
        starts: `(n_words + 1,)`: where the runs of each word begin in `grams`.
        grams: Runs of three signs as numbers below `2 ** GRAM_BITS`, word after word; as many as a word has signs.
    """

    hashes: Hashes
    stems: Hashes
    starts: Numbers
    grams: Numbers
    slots: Numbers

    def __len__(self) -> int:
        return len(self.hashes)

    def numbers(self, hashes: Hashes) -> Numbers:
        """Return the number of each word known by its hash, -1 for an unknown one."""
        if not len(self.hashes):
            return np.full(len(hashes), -1, np.int32)
        found: Numbers = self.slots[hashes & np.uint32(len(self.slots) - 1)]
        wrong = np.flatnonzero(self.hashes[found] != hashes)  # free slots, and the few that two words share
        if len(wrong):
            by_hash, order = self._sorted
            place = np.minimum(np.searchsorted(by_hash, hashes[wrong]), len(by_hash) - 1)
            found[wrong] = np.where(by_hash[place] == hashes[wrong], order[place], -1)
        return found

    def stems_at(self, numbers: Numbers) -> Hashes:
        """Return the hashes of the stems of words; 0 for an unknown one."""
        return (
            np.where(numbers >= 0, self.stems[numbers], np.uint32(0))
            if len(self)
            else np.zeros(len(numbers), np.uint32)
        )

    @cached_property
    def _sorted(self) -> tuple[Hashes, Numbers]:
        order = np.argsort(self.hashes, kind="stable").astype(np.int32)
        return self.hashes[order], order

    def grams_of(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return the runs of some words, one after another, and the place of the word that each belongs to."""
        counts = self.starts[numbers + 1] - self.starts[numbers]
        owner = np.repeat(np.arange(len(numbers), dtype=np.int32), counts)
        first = np.repeat(self.starts[numbers] - (np.cumsum(counts) - counts), counts)
        return self.grams[first + np.arange(len(owner), dtype=np.int32)], owner


class Vocabulary:
    """The words met so far; safe to share between threads."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._stems: dict[str, str] = {}
        self._unsaved: list[str] = []
        self._mutex = threading.Lock()
        self._table = _table_of([], [])
        self._postings: _Postings | None = None

    def add(self, word: str, stem: str) -> None:
        """Learn a word."""
        if word not in self._stems:
            with self._mutex:
                if self._learn(word, stem):
                    self._unsaved.append(word)

    def load(self, words: Iterable[tuple[str, str]]) -> None:
        """Learn words, with their stems, that an index keeps."""
        with self._mutex:
            for word, stem in words:
                self._learn(word, stem)

    def _learn(self, word: str, stem: str) -> bool:
        if word in self._stems or len(self._words) >= MOST_WORDS:
            return False
        self._stems[word] = stem
        self._words.append(word)
        return True

    def unsaved(self) -> list[tuple[str, str]]:
        """Return the words that no index keeps yet, with their stems, and take them for kept from now on."""
        with self._mutex:
            words, self._unsaved = self._unsaved, []
            return [(word, self._stems[word]) for word in words]

    def lose(self) -> None:
        """Note that no index keeps any of the words."""
        with self._mutex:
            self._unsaved = list(self._words)

    @property
    def table(self) -> Table:
        """All words met until now."""
        with self._mutex:
            if len(self._table) < len(self._words):
                new = self._words[len(self._table) :]
                self._table = _extended(self._table, _table_of(new, [self._stems[word] for word in new]))
            return self._table

    def alike(
        self, word: str, most: int, *, min_of_longer: float = 0.0, min_of_asked: float = 0.0
    ) -> list[tuple[str, float]]:
        """Return the stems of other words with many of the same runs of signs, the most alike first.

        Args:
            word: As the vocabulary knows it.
            most: How many at most.
            min_of_longer: The least share of the longer word's runs; or
            min_of_asked: the least share of this word's.

        Returns:
            Stems with the likeness of their words, see `likeness`.
        """
        table = self.table
        postings = self._postings
        if postings is None or len(table) - postings.n_words > max(_FEW, postings.n_words // 10):
            postings = self._postings = _Postings(table)
        own = grams_of(word)
        numbers, shared = postings.sharing(table, own)
        size = table.starts[numbers + 1] - table.starts[numbers]
        length = np.full(len(size), len(folded(word)))
        near = likeness(shared, length, size)
        is_form = (shared >= min_of_longer * np.maximum(length, size)) | (shared >= min_of_asked * length)
        kept = np.flatnonzero((near > 0) & is_form)
        best = kept[np.lexsort((numbers[kept], -shared[kept], -near[kept]))][: 2 * most].tolist()
        stem, found = self._stems.get(word), dict[str, float]()
        for at in best:
            other = self._stems[self._words[numbers[at]]]
            if other != stem:
                found.setdefault(other, float(near[at]))
        return list(found.items())[:most]

    def holding(self, sign: str) -> list[str]:
        """Return the stems of all words with a sign in them."""
        return [self._stems[word] for word in list(self._words) if sign in word]


def likeness(shared: NDArray[Any], one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Return how much alike words are, 0 to 1, by how many runs of signs they share and how many each has.

    It is the share of the shorter word's runs that the longer one has: `termin` and `zahnarzttermin`, `passport` and
    `passprot`. Where less than half of them are there, or less than three, they are not alike.
    """
    near = np.minimum(shared / np.maximum(np.minimum(one, other), 1), 1.0)  # a word may have a run twice
    found: NDArray[np.float64] = np.where((near >= 0.5) & (shared >= 3), near, 0.0)
    return found


@lru_cache(maxsize=4096)
def grams_of(word: str) -> Numbers:
    """Return the runs of three signs of a word with its ends, each once."""
    return np.unique(_codes(f"{_EDGE}{folded(word)}{_EDGE}"))


def folded(word: str) -> str:
    """Return a word without the marks on its letters: who types in haste leaves them out."""
    if word.isascii():
        return word
    plain = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return plain or word


class _Postings:
    """Which words have a run of signs: sorted once for many words; newer ones are looked through."""

    def __init__(self, table: Table) -> None:
        self.n_words = len(table)
        size = int(table.starts[self.n_words])
        order = np.argsort(table.grams[:size], kind="stable")
        self._grams = table.grams[:size][order]
        self._owner = np.repeat(np.arange(self.n_words, dtype=np.int32), np.diff(table.starts[: self.n_words + 1]))[
            order
        ]

    def sharing(self, table: Table, grams: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
        """Return the words that have any of the runs, and how many of them each has."""
        first, last = np.searchsorted(self._grams, grams), np.searchsorted(self._grams, grams, "right")
        found = [self._owner[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        newer = np.arange(self.n_words, len(table), dtype=np.int32)
        has, owner = table.grams_of(newer)
        found.append(newer[owner[np.isin(has, grams)]])
        counts = np.bincount(np.concatenate(found), minlength=1)
        numbers = np.flatnonzero(counts >= 3).astype(np.int32)
        return numbers, counts[numbers]


def _extended(table: Table, more: Table) -> Table:
    hashes = np.concatenate((table.hashes, more.hashes))
    return Table(
        hashes,
        np.concatenate((table.stems, more.stems)),
        np.concatenate((table.starts, table.starts[-1] + more.starts[1:])),
        np.concatenate((table.grams, more.grams)),
        _slotted(hashes, table.slots, len(table)),
    )


def _table_of(words: Sequence[str], stems: Sequence[str]) -> Table:
    plain = [folded(word) for word in words]
    hashes = _hashes_of(words)
    return Table(
        hashes,
        _hashes_of(stems),
        np.cumsum([0, *map(len, plain)], dtype=np.int32),
        _codes(_EDGE + _EDGE.join(plain) + _EDGE),
        _slotted(hashes, np.zeros(1, np.int32), 0),
    )


def _hashes_of(words: Sequence[str]) -> Hashes:
    return np.array([zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words], np.uint32)


def _slotted(hashes: Hashes, slots: Numbers, known: int) -> Numbers:
    """Return where each hash is looked up: the number of the first word whose hash ends in the same bits."""
    size = 1 << max(10, int(4 * len(hashes)).bit_length())
    if size != len(slots):
        slots, known = np.zeros(size, np.int32), 0
    slots = slots.copy()
    new = np.arange(known, len(hashes), dtype=np.int32)[::-1]  # the last assignment stays: the first word's
    slots[hashes[new] & np.uint32(size - 1)] = new
    return slots


def _codes(text: str) -> Numbers:
    """Return a number for each run of three signs whose middle is not the edge of a word."""
    signs = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    mixed = signs[:-2] * np.uint32(0x9E3779B1) ^ signs[1:-1] * np.uint32(0x85EBCA77) ^ signs[2:] * np.uint32(0xC2B2AE3D)
    mixed = (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x2C1B3C6D)
    inside = signs[1:-1] != ord(_EDGE)
    codes: Numbers = (mixed[inside] >> np.uint32(32 - GRAM_BITS)).astype(np.int32)
    return codes
