"""The words of a brain: each with its hash, its stem and its character trigrams, and which of them a query's are like.

A unit of the index is a list of word hashes; all else that ranking asks of a word is looked up here. What a query asks
is looked up once for the whole vocabulary (`LikeWords`), so that of the candidates' words only the few are looked at
that have anything of the query.
"""

from __future__ import annotations

import threading
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.uint32]
Numbers: TypeAlias = NDArray[np.int32]
Places: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = NDArray[np.float64]

MOST_WORDS = 1_000_000  # hostile text must not fill memory; what comes after is met as it stands
GRAM_BITS = 20
_LAST_BITS = 18
_FEW = 2_000  # so many new words are sorted by themselves
_EDGE = "\n"  # stands before and after each word, where none of them has it
_LEAST_SHARED = 3  # trigrams, of two words that are alike


def term_hash(term: str) -> int:
    """Return a word's or stem's 32-bit identity, the same on every machine."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Table:
    """The words met until a moment, by number; arrays only grow. Number 0 stands for every word that is not there.

    Attributes:
        hashes: Of the words, `(n_words,)`; `stems`: of their stems.
        starts: `(n_words + 1,)`: where the trigrams of each word begin in `grams`.
        grams: Trigrams as numbers below `2 ** GRAM_BITS`, word after word; as many as a word has signs.
        slots: By the last bits of a hash the number of a word that it may be; the length is a power of two.
    """

    hashes: Hashes
    stems: Hashes
    starts: Numbers
    grams: Numbers
    slots: Numbers

    def __len__(self) -> int:
        return len(self.hashes)

    def numbers(self, hashes: Hashes) -> Numbers:
        """Return the number of each word, given by its hash; 0 for an unknown one."""
        # a sorted array alone would cost a query several times as long: it is asked for 50,000 words at once
        numbers: Numbers = np.take(self.slots, (hashes & np.uint32(len(self.slots) - 1)).astype(np.intp))
        wrong = np.flatnonzero(self.hashes[numbers] != hashes)  # free slots, and the few that two words share
        if len(wrong):
            by_hash, order = self._sorted
            place = np.minimum(np.searchsorted(by_hash, hashes[wrong]), len(by_hash) - 1)
            numbers[wrong] = np.where(by_hash[place] == hashes[wrong], order[place], 0)
        return numbers

    @cached_property
    def _sorted(self) -> tuple[Hashes, Numbers]:
        """The hashes in order, and the word's number for each."""
        order = np.argsort(self.hashes, kind="stable").astype(np.int32)
        return self.hashes[order], order

    def grams_of(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return the trigrams of some words, one word after another, and for each trigram the place of its word."""
        counts = self.starts[numbers + 1] - self.starts[numbers]
        owner = np.repeat(np.arange(len(numbers), dtype=np.int32), counts)
        first = np.repeat(self.starts[numbers] - (np.cumsum(counts) - counts), counts)
        return self.grams[first + np.arange(len(owner), dtype=np.int32)], owner


def may_be_among(hashes: Hashes, wanted: Hashes) -> Places:
    """Return where hashes stand that have the last bits of a wanted one: all that are wanted, and some others.

    A full comparison of all of them would cost ten times as long.
    """
    mask = np.uint32((1 << _LAST_BITS) - 1)
    is_like = np.zeros(1 << _LAST_BITS, bool)
    is_like[wanted & mask] = True
    # `take` by the machine's own integers is twice as fast as indexing
    return np.flatnonzero(np.take(is_like, (hashes & mask).astype(np.intp)))


def places_of(hashes: Hashes, wanted: Hashes) -> tuple[Places, Places]:
    """Return where the wanted hashes stand among others, and for each such place which of the wanted it is."""
    places = may_be_among(hashes, wanted)
    order = np.argsort(wanted)
    which = order[np.minimum(np.searchsorted(wanted, hashes[places], sorter=order), len(wanted) - 1)]
    is_it = wanted[which] == hashes[places]
    return places[is_it], which[is_it]


class Vocabulary:
    """The words met so far; safe to share between threads."""

    def __init__(self) -> None:
        self._words = [_EDGE]  # by number; the first is none
        self._stems = {_EDGE: _EDGE}
        self._unsaved: list[str] = []
        self._mutex = threading.Lock()
        nothing = np.empty(0, np.int32)
        self._table = Table(_hashes_of([_EDGE]), _hashes_of([_EDGE]), np.zeros(2, np.int32), nothing, nothing)
        self._table = _extended(self._table, [], [])
        # two: sorting the trigrams of all words takes long, so those of new words are sorted by themselves
        self._postings = _Postings(self._table, 0), _Postings(self._table, len(self._table))

    def add(self, word: str, stem: str) -> None:
        """Learn a word."""
        if word not in self._stems:
            with self._mutex:
                # asked again under the lock: two threads may meet a new word at once
                if self._learn(word, stem):
                    self._unsaved.append(word)

    def load(self, words: Iterable[tuple[str, str]]) -> None:
        """Learn words, with their stems, that an index keeps."""
        with self._mutex:
            for word, stem in words:
                self._learn(word, stem)

    def _learn(self, word: str, stem: str) -> bool:
        """Add a word unless it is known or the vocabulary is full; return whether it was added."""
        if word in self._stems or len(self._words) >= MOST_WORDS:
            return False
        self._stems[word] = stem
        self._words.append(word)
        return True

    def unsaved(self) -> list[tuple[str, str]]:
        """Return the words that no index keeps yet, with their stems; the caller saves them: they are returned once."""
        with self._mutex:
            words, self._unsaved = self._unsaved, []
            return [(word, self._stems[word]) for word in words]

    def lose(self) -> None:
        """Mark all words as not kept by any index."""
        with self._mutex:
            self._unsaved = self._words[1:]

    def __len__(self) -> int:
        return len(self._words)

    @property
    def table(self) -> Table:
        """All words met until now."""
        with self._mutex:
            if len(self._table) < len(self._words):
                new = self._words[len(self._table) :]
                self._table = _extended(self._table, new, [self._stems[word] for word in new])
            return self._table

    def sharing(self, table: Table, grams: Numbers) -> Numbers:
        """Return the words of a table that have any of some trigrams: a word's number once for each that it has."""
        old, new = self._postings
        if len(table) - old.end > max(_FEW, old.end // 10):
            old, new = _Postings(table, 0), _Postings(table, len(table))
        elif new.end < len(table):
            new = _Postings(table, old.end)
        self._postings = old, new
        numbers = np.concatenate((old.having(grams), new.having(grams)))
        # another thread may have sorted words that came after this table
        return numbers[numbers < len(table)] if new.end > len(table) else numbers

    def similar(
        self, word: str, most: int, *, min_of_longer: float = 0.0, min_of_asked: float = 0.0
    ) -> list[tuple[str, float]]:
        """Return the stems of other words with many of the same character trigrams, the most alike first.

        Args:
            word: In the vocabulary's form.
            most: How many at most.
            min_of_longer: The least share of the longer word's trigrams that both have; a word also counts with
            min_of_asked: the least share of this word's trigrams.

        Returns:
            Stems with the similarity of their words, see `similarity`.
        """
        table = self.table
        counts = np.bincount(self.sharing(table, grams_of(word)), minlength=1)
        numbers = np.flatnonzero(counts >= _LEAST_SHARED)
        shared, size = counts[numbers], table.starts[numbers + 1] - table.starts[numbers]
        length = len(folded(word))
        near = similarity(shared, np.full(len(size), length), size)
        is_form = (shared >= min_of_longer * np.maximum(length, size)) | (shared >= min_of_asked * length)
        kept = np.flatnonzero((near > 0) & is_form)
        # words alike in all else come by their hashes, not in the order they were met: a rebuild answers the same
        best = kept[np.lexsort((table.hashes[numbers[kept]], -shared[kept], -near[kept]))][: 2 * most]
        stems: dict[str, float] = {}
        for number, likeness in zip(numbers[best].tolist(), near[best].tolist(), strict=True):
            stems.setdefault(self.stem(number), likeness)
        stems.pop(self._stems.get(word, ""), None)
        return list(stems.items())[:most]

    def variants(self, like: LikeWords, terms: Iterable[str]) -> Iterator[tuple[str, str, float]]:
        """Yield the stems of words that are like a term, the most alike first, with the term and how like it they are.

        All of them: the vocabulary forgets nothing, and the words of deleted pages would crowd out others.
        """
        hashes = like.table.hashes[like.alike]
        for term in terms:
            column = like.terms.index(term)
            near = like.near[:, column]
            rows = np.flatnonzero(near * (1 - like.exact[:, column]))
            # words alike in all else come by their hashes, not in the order they were met: a rebuild answers the same
            rows = rows[np.lexsort((hashes[rows], -like.shared[rows, column], -near[rows]))]
            for number, likeness in zip(like.alike[rows].tolist(), near[rows].tolist(), strict=True):
                yield self.stem(number), term, likeness

    def stem(self, number: int) -> str:
        """Return the stem of a word, given by its number."""
        return self._stems[self._words[number]]

    def holding(self, sign: str) -> list[str]:
        """Return the stems of all words that contain a sign."""
        return [self._stems[word] for word in list(self._words) if sign in word]


class LikeWords:
    """The words of a brain that have anything of a query's words: a stem, or a trigram.

    Args:
        vocabulary: The brain's.
        words: Of the query, each as the vocabulary has it and with its stem.
        terms: The stems that are asked for.
        is_cut: There are more words in the query.

    Attributes:
        table: All words of the brain.
        grams: The trigrams of the query.
        exact: 1 where a word has the stem of a term, else 0: a row for each of the words that are like any term (see
            `of_alike`), a column for each term.
        near: Likewise how like each of them is to the term's word, 0 to 1; `shared`: how many trigrams both have.
        alike: Those words, by number.
    """

    def __init__(
        self, vocabulary: Vocabulary, words: Sequence[tuple[str, str]], terms: Sequence[str], *, is_cut: bool = False
    ) -> None:
        self.table = table = vocabulary.table
        self.terms, self.is_cut = list(terms) or [""], is_cut
        terms = self.terms
        grams = [grams_of(word) for word, _ in words]
        self.grams: Numbers = np.unique(np.concatenate([np.empty(0, np.int32), *grams]))
        counts = np.bincount(vocabulary.sharing(table, self.grams), minlength=len(table))
        of_stem, term = places_of(table.stems, np.array([term_hash(term) for term in terms], np.uint32))
        has_any = counts > 0
        has_any[of_stem] = True
        has_any[0] = False
        self._hashes = table.hashes[has_any]
        self._has_any = has_any
        is_close = counts >= _LEAST_SHARED
        is_close[of_stem] = True
        close: Numbers = np.flatnonzero(is_close).astype(np.int32)
        exact = np.zeros((len(close), len(terms)))
        exact[np.searchsorted(close, of_stem), term] = 1
        near, shared = self._nearness(close, words, exact)
        is_alike = near.any(1)
        self.exact, self.near, self.shared = exact[is_alike], near[is_alike], shared[is_alike]
        self.alike = close[is_alike]
        self._row = np.full(len(table), -1, np.int32)
        self._row[self.alike] = np.arange(len(self.alike))

    def _nearness(
        self, close: Numbers, words: Sequence[tuple[str, str]], exact: Matrix
    ) -> tuple[Matrix, NDArray[np.int64]]:
        """Return how like each of some words is to each term's word, 1 with its stem, and their shared trigrams."""
        near, columns = exact.copy(), {term: column for column, term in enumerate(self.terms)}
        most_shared = np.zeros(near.shape, np.int64)
        place, owner = self._columns(close)
        has = np.zeros((len(close), len(self.grams)), np.uint8)
        has[owner, place] = 1
        sizes = self.table.starts[close + 1] - self.table.starts[close]
        for word, stem in words:
            column = columns.get(stem)
            if column is not None and len(word) > 2:
                shared = has[:, np.searchsorted(self.grams, grams_of(word))].sum(1)
                similar = similarity(shared, np.full(len(shared), len(folded(word))), sizes)
                near[:, column] = np.maximum(near[:, column], similar)
                most_shared[:, column] = np.maximum(most_shared[:, column], shared)
        return near, most_shared

    def _columns(self, numbers: Numbers) -> tuple[Places, Numbers]:
        """Return which trigrams of the query some words have: the trigram's place in `grams`, and the word's."""
        codes, owner = self.table.grams_of(numbers)
        places, which = places_of(codes.view(np.uint32), self.grams.view(np.uint32))
        return which, owner[places]

    def met_in(self, hashes: Hashes) -> tuple[Places, Numbers]:
        """Return where words stand that have anything of the query, and their numbers."""
        places = may_be_among(hashes, self._hashes)
        numbers = self.table.numbers(hashes[places])
        is_it = self._has_any[numbers]
        return places[is_it], numbers[is_it]

    def of_alike(self, numbers: Numbers) -> Numbers:
        """Return for each word its row in `exact` and `near`; -1 where it is like no term."""
        rows: Numbers = self._row[numbers]
        return rows

    def gram_counts(self, numbers: Numbers, owner: NDArray[Any], n: int) -> NDArray[np.float32]:
        """Return how often each trigram of the query stands in each of `n` things, a row for each trigram.

        Args:
            numbers: Words that stand in them.
            owner: In which one each does.
            n: How many there are.
        """
        is_met = np.zeros(len(self.table), bool)
        is_met[numbers] = True
        distinct = np.flatnonzero(is_met).astype(np.int32)
        gram, word = self._columns(distinct)
        has = np.zeros((len(distinct), len(self.grams)), bool)  # a trigram counts once for a word that has it twice
        has[word, gram] = True
        row, column = np.nonzero(has)
        counts = np.bincount(row, minlength=len(distinct))
        first = np.cumsum(counts) - counts
        at = np.zeros(len(self.table), np.int32)
        at[distinct] = np.arange(len(distinct), dtype=np.int32)
        at = at[numbers]
        of_word = counts[at]
        pair = np.repeat(first[at] - (np.cumsum(of_word) - of_word), of_word) + np.arange(of_word.sum())
        summed = np.bincount(column[pair] * n + np.repeat(owner, of_word), minlength=len(self.grams) * n)
        return summed.reshape(len(self.grams), n).astype(np.float32)


def similarity(shared: NDArray[Any], one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Return how much alike words are, 0 to 1, by how many character trigrams they share and how many each has.

    It is the share of the shorter word's trigrams that the longer one has: `termin` and `zahnarzttermin`, `passport`
    and `passprot`. Below one half, or with fewer than three shared, it is 0.
    """
    near = np.minimum(shared / np.maximum(np.minimum(one, other), 1), 1.0)  # a word may have a run twice
    similar: NDArray[np.float64] = np.where((near >= 0.5) & (shared >= _LEAST_SHARED), near, 0.0)
    return similar


@lru_cache(maxsize=4096)
def grams_of(word: str) -> Numbers:
    """Return the character trigrams of a word with its edges, as numbers, each once."""
    return np.unique(_codes(f"{_EDGE}{folded(word)}{_EDGE}"))


def folded(word: str) -> str:
    """Return a word without the accents and other marks on its letters: many people leave them out when typing."""
    if word.isascii():
        return word
    plain = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return plain or word


class _Postings:
    """The words of a table that have each trigram, from one number on.

    Args:
        table: The words.
        start: The first number.
    """

    def __init__(self, table: Table, start: int) -> None:
        self.end = len(table)
        first = table.starts[start]
        order = np.argsort(table.grams[first:], kind="stable")
        self._grams = table.grams[first:][order]
        self._owner = np.repeat(np.arange(start, self.end, dtype=np.int32), np.diff(table.starts[start:]))[order]

    def having(self, grams: Numbers) -> Numbers:
        """Return the words that have any of the trigrams, once for each."""
        first, last = np.searchsorted(self._grams, grams), np.searchsorted(self._grams, grams, "right")
        owners = [self._owner[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        return np.concatenate(owners) if owners else np.empty(0, np.int32)


def _extended(table: Table, words: Sequence[str], stems: Sequence[str]) -> Table:
    """Return a copy of a table with more words; queries go on reading the old one."""
    plain = [folded(word) for word in words]
    hashes = np.concatenate((table.hashes, _hashes_of(words)))
    size = 1 << max(10, int(4 * len(hashes)).bit_length())
    is_larger = size != len(table.slots)
    slots = np.zeros(size, np.int32) if is_larger else table.slots.copy()
    new = np.arange(0 if is_larger else len(table), len(hashes), dtype=np.int32)
    slots[hashes[new] & np.uint32(size - 1)] = new
    return Table(
        hashes,
        np.concatenate((table.stems, _hashes_of(stems))),
        np.concatenate((table.starts, table.starts[-1] + np.cumsum([len(word) for word in plain], dtype=np.int32))),
        np.concatenate((table.grams, _codes(_EDGE + _EDGE.join(plain) + _EDGE))),
        slots,
    )


def _hashes_of(words: Sequence[str]) -> Hashes:
    """Return the hash of each word."""
    return np.array([term_hash(word) for word in words], np.uint32)


def _codes(text: str) -> Numbers:
    """Return a number for each character trigram whose middle is not the edge of a word."""
    signs = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    mixed = signs[:-2] * np.uint32(0x9E3779B1) ^ signs[1:-1] * np.uint32(0x85EBCA77) ^ signs[2:] * np.uint32(0xC2B2AE3D)
    mixed = (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x2C1B3C6D)
    inside = signs[1:-1] != ord(_EDGE)
    codes: Numbers = (mixed[inside] >> np.uint32(32 - GRAM_BITS)).astype(np.int32)
    return codes
