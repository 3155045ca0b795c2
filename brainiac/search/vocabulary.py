"""The words of a brain: which of them a query's are like, and which words of a prompt stand nowhere in memory.

A unit of the index is a list of word hashes. What a query asks is looked up in the index once (`LikeWords`), so that of
the candidates' words only the few are looked at that share a stem or a trigram with the query.

A word's id is its hash, and in the last eight bits how many trigrams it has.

Which words stand nowhere is certain without a model that understands the prompt. A word stands in memory when a text
holds it or a form of it; an earlier question with it does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from brainiac.search.features import FEATURES, QUESTION, EncodedPage
from brainiac.search.index import Ids, Index
from brainiac.search.text import MOST_SIGNS, SIZE_BITS, Analyzer, folded, grams_of, is_unspaced, term_hash, words_of
from brainiac.text.tokens import ends_as_question

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
        return self._row[numbers]

    def gram_counts(self, numbers: Numbers, owner: NDArray[Any], n: int) -> NDArray[np.float32]:
        """Return how often each trigram of the query stands in each of `n` texts, a row for each trigram.

        A word that has a trigram twice counts once.

        Args:
            numbers: Words that stand in the texts.
            owner: The number of the text in which each stands.
            n: How many texts there are.
        """
        counts = self._counts[numbers]
        # the places of the trigrams of each word lie one after another, from `_starts` on
        n_before = np.cumsum(counts) - counts
        places = np.repeat(self._starts[numbers] - n_before, counts) + np.arange(counts.sum())
        gram, text = self._gram[places], np.repeat(owner, counts)
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
        return rows[np.lexsort((rows, -shared[rows], -near[rows]))][:_MOST_LIKE]


def similarity(shared: Counts, in_first: Counts, in_second: Counts) -> NDArray[np.float64]:
    """Return how much alike words are, 0 to 1, by how many character trigrams they share and how many each has.

    It is the share of the shorter word's trigrams that the longer one has: `termin` and `zahnarzttermin`, `passport`
    and `passprot`. Below one half, or with fewer than three shared, it is 0.
    """
    shorter = np.maximum(np.minimum(in_first, in_second), 1)
    near = np.minimum(shared / shorter, 1.0)  # a word may have a trigram twice
    return np.where((near >= 0.5) & (shared >= _LEAST_SHARED), near, 0.0)


# --- words that stand nowhere -----------------------------------------------------------------------------------

MOST_NAMED = 3
_LEAST_SIGNS = 3  # of a word worth naming
_MOST_ASKED, _MOST_FORMS = 64, 8
_LOOKED_AT = 64  # passages: of a word that stands in more of them, one is surely no question
_WITHIN = 0.7  # of the asked word's trigrams: a form of it, or a compound, that holds so many holds it
_POSSESSIVE = re.compile(r"['’]s?$")
# stretches of one script, where no blanks part the words: what stands between them mostly joins them
_SCRIPT_RUN = re.compile(
    "[\u30a0-\u30ff]{2,}|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{2,}|[\u0e00-\u109f\u1780-\u17ff]{2,}"
)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a prompt.

    Attributes:
        written: As it is written.
        stems: Of its tokens: one, or the pairs of a script without spaces.
        is_name: It is written as a name is.
    """

    written: str
    stems: tuple[str, ...]
    is_name: bool = False


def absent_words(text: str, index: Index, analyzer: Analyzer, asking: str = "") -> list[str]:
    """Return words of a text that stand nowhere in memory, the archive included: names first, then longer words.

    Args:
        text: A prompt.
        index: Has the words of the brain.
        analyzer: The brain's language.
        asking: Path of the prompt, which is no memory; "" for none.

    Returns:
        At most `MOST_NAMED` words as they are written in the text.
    """
    # of two forms of one word the last is named, and a long paste is not looked through to its end
    words = list({word.stems: word for word in _words(text, analyzer)}.values())[:_MOST_ASKED]
    forms = {stem: _forms(word, stem, analyzer, index) for word in words for stem in word.stems}
    terms = list(dict.fromkeys(form for similar in forms.values() for form in similar))
    if not terms:
        return []
    found = index.query(terms, _LOOKED_AT * MOST_NAMED)
    pages = [page for page in found.pages if page.page.path != asking]
    held = _held(pages, index, terms, [token.stem for token in analyzer.tokens(text)], ends_as_question(text))

    def is_present(stem: str) -> bool:
        """Return whether a stem, or a form of it, stands in memory."""
        is_frequent = any(found.frequencies.get(form, 0) > _LOOKED_AT for form in forms[stem])
        return is_frequent or any(term_hash(form) in held for form in forms[stem])

    # of a stretch without spaces any pair of signs that stands there may be the word
    absent = [word for word in words if not any(map(is_present, word.stems))]
    order = sorted(absent, key=lambda word: (not word.is_name, -len(word.written)))[:MOST_NAMED]
    return list(dict.fromkeys(word.written for word in order))


def _words(text: str, analyzer: Analyzer) -> Iterator[_Word]:
    """Yield the words of a text that are worth naming: no stop words, none of fewer than `_LEAST_SIGNS` signs."""
    for written, is_first in words_of(text):
        if is_unspaced(written):
            yield from (_Word(run, tuple(analyzer.terms(run))) for run in _SCRIPT_RUN.findall(written))
            continue
        token = analyzer.token(written)
        if token and not token.is_stop and len(token.word) >= _LEAST_SIGNS:
            yield _Word(_POSSESSIVE.sub("", written), (token.stem,), is_name=written[0].isupper() and not is_first)


def _forms(word: _Word, stem: str, analyzer: Analyzer, index: Index) -> list[str]:
    """Return a stem and those of similar words of the brain: inflections, compounds, misspellings."""
    if is_unspaced(word.written):
        return [stem]
    token = analyzer.token(word.written)
    written = token.word if token else stem
    like = LikeWords(index, [(written, stem)], [stem])
    return [stem, *like.forms(written, _MOST_FORMS, _WITHIN)]


def _held(
    pages: Sequence[EncodedPage], index: Index, terms: Sequence[str], asked: Sequence[str], is_question: bool
) -> set[int]:
    """Return the hashes of the stems that a heading holds, or a unit that says anything but the prompt.

    Args:
        pages: Those that hold any of the words.
        index: The words of the brain.
        terms: The stems that may be held.
        asked: The stems of the prompt.
        is_question: Whether the prompt ends as a question does.
    """
    stems_by_id = index.with_stems({*asked, *terms})
    # in the order of the words' hashes; a last one for all that have none of these stems
    hashes = np.append(hashes_of(np.array(list(stems_by_id), np.int64)), np.uint32(2**32 - 1))
    stem_of = np.array([*map(term_hash, stems_by_id.values()), 0], np.uint32)

    def stems_of(words: Iterable[bytes]) -> Hashes:
        """Return the hashes of the stems of words that are given by their hashes; 0 for other stems."""
        given = np.frombuffer(b"".join(words), np.uint32)
        place = np.searchsorted(hashes, given)
        return np.where(hashes[place] == given, stem_of[place], np.uint32(0))

    rows = np.frombuffer(b"".join([page.features for page in pages]), FEATURES)
    stems = stems_of(page.words for page in pages)
    # a unit with the words of the prompt in their order and no others only repeats it, but for what was told
    # without the mark of a question that is asked now
    repeated = np.array([term_hash(stem) for stem in asked], np.uint32)
    is_told = (rows["flags"] & QUESTION == 0) & is_question
    ends = np.cumsum(rows["size"], dtype=np.int64)
    says_more = np.ones(len(rows), bool)
    for number in np.flatnonzero((rows["size"] == len(repeated)) & ~is_told).tolist():
        says_more[number] = not np.array_equal(stems[ends[number] - len(repeated) : ends[number]], repeated)
    in_units = stems[np.repeat(says_more, rows["size"])]
    return {*stems_of(page.heading for page in pages).tolist(), *in_units.tolist()}
