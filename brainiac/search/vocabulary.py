"""The words of a brain: each with its hash, its stem and its character trigrams, and which of them a query's are like.

A unit of the index is a list of word hashes; all else that ranking asks of a word is looked up here. What a query asks
is looked up once for the whole vocabulary (`LikeWords`), so that of the candidates' words only the few are looked at
that share a stem or a trigram with the query.

Words have numbers, in the order in which they were met; number 0 is no word.
"""

from __future__ import annotations

import threading
import unicodedata
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.uint32]
Numbers: TypeAlias = NDArray[np.int32]
Places: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[Any] | int

MOST_WORDS = 1_000_000  # hostile text must not fill memory; what comes after is met as it stands
GRAM_BITS = 20
_LAST_BITS = 18
_FEW = 2_000  # so many new words are sorted by themselves in any case
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
        slots: A hash table, its length a power of two: at the last bits of a hash the number of one word with these
            bits, 0 where no word has them. The other words with them are found in `_sorted`.
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
        others = np.flatnonzero(self.hashes[numbers] != hashes)  # unknown words, and the few whose slot another has
        if len(others):
            by_hash, order = self._sorted
            place = np.minimum(np.searchsorted(by_hash, hashes[others]), len(by_hash) - 1)
            numbers[others] = np.where(by_hash[place] == hashes[others], order[place], 0)
        return numbers

    @cached_property
    def _sorted(self) -> tuple[Hashes, Numbers]:
        """The hashes in order, and the word's number for each."""
        order = np.argsort(self.hashes, kind="stable").astype(np.int32)
        return self.hashes[order], order

    def grams_of(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return the trigrams of some words, one word after another, and of each the index of its word in `numbers`."""
        counts = self.starts[numbers + 1] - self.starts[numbers]
        owner = np.repeat(np.arange(len(numbers), dtype=np.int32), counts)
        return self.grams[_ranges(self.starts[numbers], counts)], owner


def _ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of several ranges, one after another: of starts 5, 9 and counts 3, 2 these are 5 6 7 9 10."""
    n_before = np.cumsum(counts) - counts
    numbers: NDArray[Any] = np.repeat(starts - n_before, counts) + np.arange(counts.sum(), dtype=starts.dtype)
    return numbers


def possible_places_of(hashes: Hashes, wanted: Hashes) -> Places:
    """Return where hashes stand that have the last bits of a wanted one: all that are wanted, and some others.

    A full comparison of all of them would cost ten times as long.
    """
    mask = np.uint32((1 << _LAST_BITS) - 1)
    is_possible = np.zeros(1 << _LAST_BITS, bool)
    is_possible[wanted & mask] = True
    # `take` by the machine's own integers is twice as fast as indexing
    return np.flatnonzero(np.take(is_possible, (hashes & mask).astype(np.intp)))


def places_of(hashes: Hashes, wanted: Hashes) -> tuple[Places, Places]:
    """Return where the wanted hashes stand among others, and for each such place the index of its hash in `wanted`."""
    places = possible_places_of(hashes, wanted)
    order = np.argsort(wanted)
    # the nearest of the wanted for each; those that are not equal to it are dropped
    which = order[np.minimum(np.searchsorted(wanted, hashes[places], sorter=order), len(wanted) - 1)]
    is_wanted = wanted[which] == hashes[places]
    return places[is_wanted], which[is_wanted]


class Vocabulary:
    """The words met so far; safe to share between threads."""

    def __init__(self) -> None:
        self._words = [_EDGE]  # by number; the first is none
        self._stems = {_EDGE: _EDGE}
        self._unsaved: list[str] = []
        self._mutex = threading.Lock()
        nothing = np.empty(0, np.int32)
        edge = _hashes_of([_EDGE])
        without_slots = Table(hashes=edge, stems=edge, starts=np.zeros(2, np.int32), grams=nothing, slots=nothing)
        self._table = _extended(without_slots, [], [])
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

    def unsaved(self, hashes: Container[int]) -> list[tuple[str, str]]:
        """Return the words that no index keeps yet, with their stems; the caller saves them: they are returned once.

        Args:
            hashes: Of the words that the saved pages have: a word that was purged is in none.
        """
        with self._mutex:
            words = [word for word in self._unsaved if term_hash(word) in hashes]
            self._unsaved = sorted(set(self._unsaved).difference(words))
            return [(word, self._stems[word]) for word in words]

    def mark_unsaved(self) -> None:
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
        # once they are more than a tenth, the new words are sorted among the old ones
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

        Either of the two least shares is enough.

        Args:
            word: In the vocabulary's form.
            most: How many at most.
            min_of_longer: The least share of the longer word's trigrams that both have.
            min_of_asked: The least share of this word's trigrams that both have.

        Returns:
            Stems with the similarity of their words, see `similarity`.
        """
        table = self.table
        counts = np.bincount(self.sharing(table, grams_of(word)), minlength=1)
        numbers = np.flatnonzero(counts >= _LEAST_SHARED)
        shared, size = counts[numbers], table.starts[numbers + 1] - table.starts[numbers]
        length = len(folded(word))
        near = similarity(shared, length, size)
        is_form = (shared >= min_of_longer * np.maximum(length, size)) | (shared >= min_of_asked * length)
        alike = np.flatnonzero((near > 0) & is_form)
        # words alike in all else come by their hashes, not in the order they were met: a rebuild answers the same
        order = np.lexsort((table.hashes[numbers[alike]], -shared[alike], -near[alike]))
        best = alike[order][: 2 * most]  # several words may have one stem
        stems: dict[str, float] = {}
        for number, likeness in zip(numbers[best].tolist(), near[best].tolist(), strict=True):
            stems.setdefault(self.stem(number), likeness)
        stems.pop(self._stems.get(word, ""), None)
        return list(stems.items())[:most]

    def variants(self, like: LikeWords, terms: Iterable[str]) -> Iterator[tuple[str, str, float]]:
        """Yield the stems of words that are like a term, the most alike first, with the term and how like it they are.

        Without a limit: the vocabulary keeps the words of deleted pages, which would take the places of others.
        """
        hashes = like.table.hashes[like.alike]
        for term in terms:
            column = like.terms.index(term)
            near = like.near[:, column]
            rows = np.flatnonzero((near > 0) & (like.exact[:, column] == 0))
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
    """The words of a brain that share a stem or a trigram with a query's words.

    Of these, some share enough to be like a term: the stem, or at least half of the trigrams (`similarity`).

    Args:
        vocabulary: The brain's.
        words: Of the query, each as the vocabulary has it and with its stem.
        terms: The stems that are asked for.
        is_cut: There are more words in the query.

    Attributes:
        table: All words of the brain.
        grams: The trigrams of the query.
        alike: The numbers of the words that are like a term. The next three have a row for each, and a column for each
            term.
        exact: 1 where the word has the term as its stem, else 0.
        near: How like the term's word it is, 0 to 1.
        shared: How many trigrams both have.
    """

    def __init__(
        self, vocabulary: Vocabulary, words: Sequence[tuple[str, str]], terms: Sequence[str], *, is_cut: bool = False
    ) -> None:
        self.table = table = vocabulary.table
        self.terms, self.is_cut = list(terms) or [""], is_cut
        terms = self.terms
        grams = [grams_of(word) for word, _ in words]
        self.grams: Numbers = np.unique(np.concatenate([np.empty(0, np.int32), *grams]))
        n_shared = np.bincount(vocabulary.sharing(table, self.grams), minlength=len(table))
        with_stem, term = places_of(table.stems, np.array([term_hash(term) for term in terms], np.uint32))
        self._is_sharing = n_shared > 0
        self._is_sharing[with_stem] = True
        self._is_sharing[0] = False  # it is no word
        self._hashes = table.hashes[self._is_sharing]
        may_be_alike = n_shared >= _LEAST_SHARED
        may_be_alike[with_stem] = True
        numbers: Numbers = np.flatnonzero(may_be_alike).astype(np.int32)
        exact = np.zeros((len(numbers), len(terms)))
        exact[np.searchsorted(numbers, with_stem), term] = 1
        near, shared = self._nearness(numbers, words, exact)
        is_alike = near.any(1)
        self.exact, self.near, self.shared = exact[is_alike], near[is_alike], shared[is_alike]
        self.alike = numbers[is_alike]
        self._row = np.full(len(table), -1, np.int32)
        self._row[self.alike] = np.arange(len(self.alike))

    def _nearness(
        self, numbers: Numbers, words: Sequence[tuple[str, str]], exact: Matrix
    ) -> tuple[Matrix, NDArray[np.int64]]:
        """Return how like each of some words is to each term's word, and how many trigrams both have.

        Args:
            numbers: Those words.
            words: Of the query, with their stems: several may have the stem of one term.
            exact: 1 where a word has the term as its stem: a row for each word, a column for each term.
        """
        near, columns = exact.copy(), {term: column for column, term in enumerate(self.terms)}
        most_shared = np.zeros(near.shape, np.int64)
        has_gram = self._has_gram(numbers)
        sizes = self.table.starts[numbers + 1] - self.table.starts[numbers]
        for word, stem in words:
            column = columns.get(stem)
            # a shorter word has too few trigrams to be like another
            if column is not None and len(word) > 2:
                shared = has_gram[:, np.searchsorted(self.grams, grams_of(word))].sum(1)
                near[:, column] = np.maximum(near[:, column], similarity(shared, len(folded(word)), sizes))
                most_shared[:, column] = np.maximum(most_shared[:, column], shared)
        return near, most_shared

    def _has_gram(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Return which of the query's trigrams some words have: a row for each word, a column for each trigram."""
        grams, owner = self.table.grams_of(numbers)
        places, column = places_of(grams.view(np.uint32), self.grams.view(np.uint32))
        has_gram = np.zeros((len(numbers), len(self.grams)), bool)
        has_gram[owner[places], column] = True
        return has_gram

    def matches_in(self, hashes: Hashes) -> tuple[Places, Numbers]:
        """Return where words stand that share a stem or a trigram with the query, and the numbers of these words."""
        places = possible_places_of(hashes, self._hashes)
        numbers = self.table.numbers(hashes[places])
        is_match = self._is_sharing[numbers]
        return places[is_match], numbers[is_match]

    def of_alike(self, numbers: Numbers) -> Numbers:
        """Return for each word its row in `exact` and `near`; -1 where it is like no term."""
        rows: Numbers = self._row[numbers]
        return rows

    def gram_counts(self, numbers: Numbers, owner: NDArray[Any], n: int) -> NDArray[np.float32]:
        """Return how often each trigram of the query stands in each of `n` texts, a row for each trigram.

        A word that has a trigram twice counts once.

        Args:
            numbers: Words that stand in the texts.
            owner: The number of the text in which each stands.
            n: How many texts there are.
        """
        is_present = np.zeros(len(self.table), bool)
        is_present[numbers] = True
        distinct = np.flatnonzero(is_present).astype(np.int32)
        index = np.zeros(len(self.table), np.int32)
        index[distinct] = np.arange(len(distinct), dtype=np.int32)
        # the query's trigrams of each distinct word, one word after another
        row, gram = np.nonzero(self._has_gram(distinct))
        counts = np.bincount(row, minlength=len(distinct))
        starts = np.cumsum(counts) - counts
        # the same for each word of the texts
        word = index[numbers]
        gram_of_text = gram[_ranges(starts[word], counts[word])]
        text = np.repeat(owner, counts[word])
        summed = np.bincount(gram_of_text * n + text, minlength=len(self.grams) * n)
        return summed.reshape(len(self.grams), n).astype(np.float32)


def similarity(shared: Counts, in_first: Counts, in_second: Counts) -> NDArray[np.float64]:
    """Return how much alike words are, 0 to 1, by how many character trigrams they share and how many each has.

    It is the share of the shorter word's trigrams that the longer one has: `termin` and `zahnarzttermin`, `passport`
    and `passprot`. Below one half, or with fewer than three shared, it is 0.
    """
    shorter = np.maximum(np.minimum(in_first, in_second), 1)
    near = np.minimum(shared / shorter, 1.0)  # a word may have a trigram twice
    similar: NDArray[np.float64] = np.where((near >= 0.5) & (shared >= _LEAST_SHARED), near, 0.0)
    return similar


@lru_cache(maxsize=4096)
def grams_of(word: str) -> Numbers:
    """Return the character trigrams of a word with its edges, as numbers, each once."""
    return np.unique(_gram_hashes(f"{_EDGE}{folded(word)}{_EDGE}"))


def folded(word: str) -> str:
    """Return a word without the accents and other marks on its letters: many people leave them out when typing."""
    if word.isascii():
        return word
    plain = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return plain or word


class _Postings:
    """The words of a table that have each trigram, of the words from number `start` on.

    Args:
        table: The words.
        start: The first number.
    """

    def __init__(self, table: Table, start: int) -> None:
        self.end = len(table)
        grams = table.grams[table.starts[start] :]
        owner = np.repeat(np.arange(start, self.end, dtype=np.int32), np.diff(table.starts[start:]))
        order = np.argsort(grams, kind="stable")
        self._grams, self._owner = grams[order], owner[order]

    def having(self, grams: Numbers) -> Numbers:
        """Return the words that have any of the trigrams, once for each."""
        first, last = np.searchsorted(self._grams, grams), np.searchsorted(self._grams, grams, "right")
        owners = [self._owner[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        return np.concatenate(owners) if owners else np.empty(0, np.int32)


def _extended(table: Table, words: Sequence[str], stems: Sequence[str]) -> Table:
    """Return a copy of a table with more words; queries go on reading the old one."""
    plain = [folded(word) for word in words]
    hashes = np.concatenate((table.hashes, _hashes_of(words)))
    sizes = np.cumsum([len(word) for word in plain], dtype=np.int32)
    return Table(
        hashes=hashes,
        stems=np.concatenate((table.stems, _hashes_of(stems))),
        starts=np.concatenate((table.starts, table.starts[-1] + sizes)),
        grams=np.concatenate((table.grams, _gram_hashes(_EDGE + _EDGE.join(plain) + _EDGE))),
        slots=_slots_of(hashes, table.slots, n_placed=len(table)),
    )


def _slots_of(hashes: Hashes, slots: Numbers, n_placed: int) -> Numbers:
    """Return a copy of `Table.slots` with more words, twice as long once a quarter of it is used.

    Args:
        hashes: Of all words.
        slots: Those of the table before.
        n_placed: How many words have their slots.
    """
    size = 1 << max(10, int(4 * len(hashes)).bit_length())
    is_larger = size != len(slots)
    slots = np.zeros(size, np.int32) if is_larger else slots.copy()
    numbers = np.arange(0 if is_larger else n_placed, len(hashes), dtype=np.int32)
    slots[hashes[numbers] & np.uint32(size - 1)] = numbers  # of two words with one slot the later has it
    return slots


def _hashes_of(words: Sequence[str]) -> Hashes:
    """Return the hash of each word."""
    return np.array([term_hash(word) for word in words], np.uint32)


def _gram_hashes(text: str) -> Numbers:
    """Return a hash of `GRAM_BITS` bits for each character trigram of words that have `_EDGE` around and between them.

    A trigram over two words, whose middle is `_EDGE`, is left out.
    """
    signs = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    # multiplied by arbitrary large odd numbers, which spreads the bits; the high ones depend on all
    mixed = signs[:-2] * np.uint32(0x9E3779B1) ^ signs[1:-1] * np.uint32(0x85EBCA77) ^ signs[2:] * np.uint32(0xC2B2AE3D)
    mixed = (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x2C1B3C6D)
    is_of_word = signs[1:-1] != ord(_EDGE)
    hashes: Numbers = (mixed[is_of_word] >> np.uint32(32 - GRAM_BITS)).astype(np.int32)
    return hashes
