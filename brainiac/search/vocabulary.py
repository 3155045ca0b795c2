"""The words of a brain by their character trigrams: which of them a query's are like.

A unit of the index is a list of word hashes. What a query asks is looked up in the index once (`LikeWords`), so that of
the candidates' words only the few are looked at that share a stem or a trigram with the query.

A word's id is its hash, and in the last eight bits how many trigrams it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from brainiac.search.index import Ids, Index
from brainiac.search.text import MOST_SIGNS, SIZE_BITS, folded, grams_of

Hashes: TypeAlias = NDArray[np.uint32]
Numbers: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = NDArray[Any] | int

_LAST_BITS, _GRAM_BITS = 17, 13
_LEAST_SHARED = 3  # trigrams, of two words that are alike
_MOST_LIKE = 16  # words, for each that is asked for


def hashes_of(ids: Ids) -> Hashes:
    """Return the hashes of words by their ids."""
    return (ids >> SIZE_BITS).astype(np.uint32)


class LikeWords:
    """The words of a brain that share a stem or a trigram with a query's words.

    Of these, some share enough to be like a term: the stem, or at least half of the trigrams (`similarity`). They have
    numbers, in the order of their ids.

    Args:
        index: Has the words of the brain.
        words: Of the query, each as the index has it and with its stem: several may have the stem of one term.
        terms: The stems that are asked for.
        is_cut: There are more words in the query.

    Attributes:
        grams: The trigrams of the query.
        alike: The numbers of the words that are like a term. The next three have a row for each, and a column for each
            term.
        exact: 1 where the word has the term as its stem, else 0.
        near: How like the term's word it is, 0 to 1.
        shared: How many trigrams both have.
    """

    def __init__(
        self, index: Index, words: Iterable[tuple[str, str]], terms: Sequence[str], *, is_cut: bool = False
    ) -> None:
        self._index, self.terms, self.is_cut = index, list(terms) or [""], is_cut
        self._column = {term: column for column, term in enumerate(self.terms)}
        words = list(words)
        self.grams = sorted(frozenset[str]().union(*(grams_of(word) for word, _ in words)))
        stems = index.with_stems(self.terms)
        lists = [*index.having(self.grams), np.array(list(stems), np.int64)]
        # each pair of a word and a trigram that it has as one number: sorting these is the quickest way to bring words
        # together; a last trigram stands for the stem
        pairs = np.concatenate(lists) << _GRAM_BITS | np.repeat(np.arange(len(lists)), list(map(len, lists)))
        pairs.sort()
        gram, ids = pairs & ((1 << _GRAM_BITS) - 1), pairs >> _GRAM_BITS
        is_first = np.diff(ids, prepend=-1) != 0
        self._ids, numbers = ids[is_first], np.cumsum(is_first) - 1
        is_gram = gram < len(self.grams)
        with_stem = numbers[~is_gram]
        numbers, self._gram = numbers[is_gram], gram[is_gram]
        self._counts = np.bincount(numbers, minlength=len(self._ids))
        self._starts = np.cumsum(self._counts) - self._counts
        self._hashes = hashes_of(self._ids)
        # the number of one word with these last bits of its hash; the others with them are found in `_hashes`
        self._slots = np.full(1 << _LAST_BITS, -1, np.int32)
        self._slots[self._hashes & np.uint32(len(self._slots) - 1)] = np.arange(len(self._ids))
        found = [
            (self._column[stem], *self._similar(word, numbers))
            for word, stem in words
            # a shorter word has too few trigrams to be like another
            if stem in self._column and len(word) > 2
        ]
        self.alike = np.unique(np.concatenate([with_stem, *(numbers for _, numbers, *_ in found)]))
        self._row = np.full(len(self._ids), -1)
        self._row[self.alike] = np.arange(len(self.alike))
        self.exact = np.zeros((len(self.alike), len(self.terms)))
        self.exact[self._row[with_stem], [self._column[stem] for stem in stems.values()]] = 1
        self.near, self.shared = self.exact.copy(), np.zeros(self.exact.shape, np.int64)
        for column, numbers, near, shared in found:
            place = self._row[numbers], column
            self.near[place] = np.maximum(self.near[place], near)
            self.shared[place] = np.maximum(self.shared[place], shared)

    def _similar(self, word: str, sharing: Numbers) -> tuple[Numbers, NDArray[np.float64], Counts]:
        """Return the numbers of the words that are like a word, how like, and how many trigrams both have.

        Args:
            word: Of the query.
            sharing: The word that has each of `_gram`.
        """
        grams = grams_of(word)
        is_own = np.array([gram in grams for gram in self.grams])
        shared = np.bincount(sharing[is_own[self._gram]], minlength=len(self._ids))
        numbers = np.flatnonzero(shared >= _LEAST_SHARED)
        near = similarity(shared[numbers], len(folded(word)), self._ids[numbers] & MOST_SIGNS)
        is_near = near > 0
        return numbers[is_near], near[is_near], shared[numbers[is_near]]

    def matches_in(self, hashes: Hashes) -> tuple[Places, Numbers]:
        """Return where words stand that share a stem or a trigram with the query, and the numbers of these words."""
        # `take` by the machine's own integers is twice as fast as indexing; four of five words have no slot
        slots = np.take(self._slots, (hashes & np.uint32(len(self._slots) - 1)).astype(np.intp))
        places = np.flatnonzero(slots >= 0)
        numbers, wanted = slots[places].astype(np.int64), hashes[places]
        others = np.flatnonzero(self._hashes[numbers] != wanted)
        if len(others):
            numbers[others] = np.minimum(np.searchsorted(self._hashes, wanted[others]), len(self._hashes) - 1)
        is_match = self._hashes[numbers] == wanted
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
        counts = self._counts[numbers]
        gram, text = self._gram[_ranges(self._starts[numbers], counts)], np.repeat(owner, counts)
        summed = np.bincount(gram * n + text, minlength=len(self.grams) * n)
        return summed.reshape(len(self.grams), n).astype(np.float32)

    def variants(self, terms: Iterable[str]) -> Iterator[tuple[str, str, float]]:
        """Yield the stems of words like a term, the most alike first, with the term and how like it they are."""
        best = {term: self._most_alike(self._column[term]) for term in terms}
        ids = {term: self._ids[self.alike[rows]].tolist() for term, rows in best.items()}
        stems = self._index.stems_of(number for numbers in ids.values() for number in numbers)
        for term, rows in best.items():
            for number, likeness in zip(ids[term], self.near[rows, self._column[term]].tolist(), strict=True):
                if number in stems:
                    yield stems[number], term, likeness

    def forms(self, word: str, most: int, least: float) -> list[str]:
        """Return the stems of words that share so much with the only one asked for that they may be forms of it.

        Args:
            word: That word.
            most: How many at most, the most alike first.
            least: The least share of its trigrams that both have.
        """
        is_form = self.shared[:, 0] >= least * len(folded(word))
        ids = self._ids[self.alike[self._most_alike(0, is_form)]].tolist()
        stems = self._index.stems_of(ids)
        return list(dict.fromkeys(stems[number] for number in ids if number in stems))[:most]

    def _most_alike(self, column: int, among: NDArray[np.bool_] | bool = True) -> Numbers:
        """Return the rows of the words that are most like a term, but do not have it as their stem."""
        near, shared = self.near[:, column], self.shared[:, column]
        rows = np.flatnonzero((near > 0) & (self.exact[:, column] == 0) & among)
        # words alike in all else come by their ids: a rebuild answers the same
        best: Numbers = rows[np.lexsort((rows, -shared[rows], -near[rows]))][:_MOST_LIKE]
        return best


def _ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of several ranges, one after another: of starts 5, 9 and counts 3, 2 these are 5 6 7 9 10."""
    n_before = np.cumsum(counts) - counts
    numbers: NDArray[Any] = np.repeat(starts - n_before, counts) + np.arange(counts.sum(), dtype=starts.dtype)
    return numbers


def similarity(shared: Counts, in_first: Counts, in_second: Counts) -> NDArray[np.float64]:
    """Return how much alike words are, 0 to 1, by how many character trigrams they share and how many each has.

    It is the share of the shorter word's trigrams that the longer one has: `termin` and `zahnarzttermin`, `passport`
    and `passprot`. Below one half, or with fewer than three shared, it is 0.
    """
    shorter = np.maximum(np.minimum(in_first, in_second), 1)
    near = np.minimum(shared / shorter, 1.0)  # a word may have a trigram twice
    similar: NDArray[np.float64] = np.where((near >= 0.5) & (shared >= _LEAST_SHARED), near, 0.0)
    return similar
