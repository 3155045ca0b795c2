"""What speaks for a unit, as named numbers: computed for the candidates of one query only, at every scale.

Each signal is a vector over all units of the candidate pages. Lexical ones are BM25 (Robertson and Zaragoza,
2009) divided by the best candidate's, since scores fuse better by value over maximum than by rank. Words are met by
their stems, and in any language by the runs of three signs that they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from brainiac.search import encode as e
from brainiac.search.encode import EncodedPage, signed, speaker_key
from brainiac.search.query import Query, speaker_words
from brainiac.search.text import Token, plain_words, term_hash
from brainiac.search.units import UnitKind
from brainiac.search.vocabulary import GRAM_BITS, Table, folded, grams_of, likeness

Vector: TypeAlias = NDArray[np.float64]
Signals: TypeAlias = dict[str, Vector]

TALK_MINUTES = 15  # what was said longer ago than that is no context of what is said now
COMMON_SHARE = 1 / 3  # what stands in a greater share of all passages tells nothing by itself
_FEW_PASSAGES, _FEW_DOCUMENTS = 8, 64
_MOST_TOKENS = 48  # of a long query the rarest words


class Units:
    """The units of the candidate pages, side by side; matrices have a column a unit.

    Args:
        pages: Candidates; those without units are left out by the caller.
    """

    def __init__(self, pages: Sequence[EncodedPage]) -> None:
        self.pages = pages
        self.facts = np.frombuffer(b"".join([page.facts for page in pages]), np.int32).reshape(-1, e.FACTS)
        self.words = np.frombuffer(b"".join([page.words for page in pages]), np.uint32)
        counts = np.array([page.n_units for page in pages])
        self.sizes, flags, self.speaker = self.facts[:, 0], self.facts[:, 1], self.facts[:, 2]
        self.n = len(self.facts)
        self.page = np.repeat(np.arange(len(pages)), counts)
        self.start = np.cumsum(counts) - counts
        self.position = np.concatenate([np.asarray(page.positions, np.int64) for page in pages])
        self.place = np.concatenate([np.asarray(page.places, np.int64) for page in pages])
        self.length = np.maximum(self.sizes, 1).astype(np.float64)
        self.owner = np.repeat(np.arange(self.n), self.sizes)
        self.kind = flags >> e.KIND_SHIFT & 7
        self.is_turn = (self.kind == UnitKind.TURN).astype(np.float64)
        self.capitals = (flags >> e.CAPITALS_SHIFT & 15) / e.MAX_CAPITALS
        self.tells = flags & e.ONLY_ASKS == 0
        is_apart, is_cut = self._apart()
        talk = np.concatenate(([0], np.cumsum(is_apart | is_cut)))[: self.n]
        talk = np.where(self.kind == UnitKind.STATEMENT, -1 - np.arange(self.n), talk)
        self._neighbours = {by: (talk[by:] == talk[:-by]).astype(np.float64) for by in (1, 2)}
        self.scope = np.concatenate(([0], np.cumsum(is_apart)))[: self.n]
        self._scope_start = np.flatnonzero(np.diff(self.scope, prepend=-1))

    def _apart(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return whether each unit but the first begins another talk or page, and whether one before it was cut out.

        A unit's neighbours say something of it only in one talk: what was said an hour apart seldom belongs together.
        (Items of a list stand in no order either.) The talk, or the page of a note, is the widest scale of ranking.
        """
        minute, turn = self.facts[:, 6].astype(np.int64), self.is_turn > 0
        is_later = (minute[1:] == e.NO_DAY) | (np.abs(np.diff(minute)) > TALK_MINUTES)
        is_apart = (np.diff(self.page) > 0) | (turn[1:] != turn[:-1]) | (turn[1:] & is_later)
        return is_apart, np.diff(self.place) != 1

    def flag(self, bit: int) -> Vector:
        """Return 1 for each unit that has a flag of `encode`."""
        return ((self.facts[:, 1] & bit) > 0).astype(np.float64)

    @cached_property
    def content(self) -> NDArray[np.uint64]:
        """Content hashes, the keys of the units' vectors."""
        return np.frombuffer(b"".join([page.content for page in self.pages]), np.uint64)

    def shift(self, values: Vector, by: int) -> Vector:
        """Return what the unit `by` places further on the same page has, at most two; 0 where there is none."""
        moved = np.zeros(values.shape)
        size = min(abs(by), self.n)
        early, late = values[..., : self.n - size], values[..., size:]
        if by > 0:
            np.multiply(late, self._neighbours[by], out=moved[..., : self.n - size])
        else:
            np.multiply(early, self._neighbours[-by], out=moved[..., size:])
        return moved

    def by_scope(self, values: Vector) -> Vector:
        """Return sums over each talk or page."""
        sums: Vector = np.add.reduceat(values, self._scope_start, axis=-1)
        return sums

    def best_of_scope(self, values: Vector) -> Vector:
        """Return for each unit the highest value in its talk or page."""
        best: Vector = np.maximum.reduceat(values, self._scope_start)[self.scope]
        return best

    def place_in_scope(self, values: Vector) -> Vector:
        """Return the place of each unit among those of its talk or page, the highest value first."""
        place = np.empty(self.n)
        place[np.lexsort((-values, self.scope))] = np.arange(self.n) - self._scope_start[self.scope]
        return place


def relative(scores: Vector, among: NDArray[np.bool_] | None = None) -> Vector:
    """Return scores over their maximum, 1 at most; zeros stay zeros.

    Args:
        scores: None below 0.
        among: Whose maximum it is: an earlier question has all the words, and is no measure of what answers it.
    """
    best = (scores if among is None else scores[among]).max(initial=0.0)
    return np.minimum(scores / best, 1.0) if best > 0 else np.minimum(scores, 1.0)


def bm25(
    frequency: Vector,
    length: Vector,
    idf: Vector,
    k1: float = 0.9,
    b: float = 0.4,
    among: NDArray[np.bool_] | None = None,
) -> Vector:
    """Return BM25 over its maximum for a matrix of term frequencies, one row a term; see `relative`."""
    saturation = k1 * (1 - b) + length * (k1 * b / max(length.mean(), 1.0))
    return relative(weighed(frequency / (frequency + saturation), idf), among)


def weighed(values: NDArray[Any], weights: Vector) -> Vector:
    """Return the weighted sum of a matrix's rows."""
    # not `weights @ values`: its last bits depend on where a column stands, and equal units must stay equal
    summed: Vector = (values * weights[:, None]).sum(0)
    return summed


def share(values: NDArray[Any], weights: Vector) -> Vector:
    """Return the weighted mean of a matrix's rows: how much of what is asked for each column has."""
    return weighed(values, weights) / max(float(weights.sum()), 1e-9)


def idf_of(documents: Vector, total: float) -> Vector:
    """Return the weight of terms that stand in so many of all documents."""
    weight: Vector = np.log(1 + (total - documents + 0.5) / (documents + 0.5))
    return weight


class Lexical:
    """How a query's words stand in the units.

    Args:
        units: Candidates.
        query: What is asked.
        frequencies: Documents that hold each term.
        n_documents: How many there are.
        table: The words of the brain.

    Attributes:
        is_labelled: 1 for a turn whose speaker a transcript names; `is_called`: and so does the query.
        met: How much of any term that tells something each unit has: 1 for the word itself, less for one like it.
        exact: How often each term stands in each unit; `near`: how often what is like it does, as far as it is.
        here: Both and the units' lengths, below each other; `before`, `after`: the same of the units so many places
            away.
        grams: How often each run of signs of the query stands in each unit.
    """

    def __init__(
        self, units: Units, query: Query, frequencies: Mapping[str, int], n_documents: int, table: Table
    ) -> None:
        self.units, self.query = units, query
        speakers = set(units.speaker[units.is_turn > 0].tolist())
        known = {word for word in speaker_words(query) if signed(term_hash(speaker_key(word))) in speakers}
        self.named = known
        self.is_named = self._spoken_by(known)
        self.is_labelled = units.is_turn * ~np.isin(units.speaker, [e.USER, e.AI])
        self.is_called = self._spoken_by(known & query.words) * self.is_labelled
        in_order = dict.fromkeys(word for piece in query.text.split() for word in sorted(plain_words(piece) & known))
        self.is_first_named = self._spoken_by(list(in_order)[:1] if len(in_order) > 1 else ())
        name_terms = {term for term in query.terms if _is_name(term, known)}
        total = max(n_documents, 1)
        rarest = sorted(query.terms, key=lambda term: frequencies.get(term, 0))[:_MOST_TOKENS]
        terms = [term for term in query.terms if term not in name_terms and term in rarest]
        self.terms = terms or [term for term in query.terms if term in rarest] or [""]
        words = _Words(units, table, _tokens_of(query, rarest))
        exact, near = words.matches([*self.terms, *name_terms])
        self.mentions: Vector = words.counted(exact[len(self.terms) :] > 0).sum(0)
        self.exact, self.near = words.counted(exact[: len(self.terms)]), words.counted(near[: len(self.terms)])
        self.best_near = words.best(near[: len(self.terms)])
        self.grams, self.gram_length = words.grams(), words.gram_length
        self.here = np.concatenate((self.exact, self.near, units.length[None]))
        self.before = {by: units.shift(self.here, -by) for by in (1, 2)}
        self.after = {by: units.shift(self.here, by) for by in (1, 2)}
        documents = np.array([frequencies.get(term, 0) for term in self.terms], np.float64)
        in_exact, in_near = (self.exact[:, units.tells] > 0).sum(1), (self.near[:, units.tells] > 0).sum(1)
        # of a rare word all places are candidates: those where it was only asked for do not make it less telling
        documents = np.where(documents <= _FEW_DOCUMENTS, np.minimum(documents, in_exact), documents)
        self.idf = idf_of(documents, total)
        wider = documents * (in_near + 1) / (in_exact + 1) + (documents == 0) * in_near
        self.near_idf = idf_of(np.minimum(wider, total), total)
        telling = documents <= max(_FEW_PASSAGES, total * COMMON_SHARE)
        self.met: Vector = self.best_near[telling if telling.any() else ~telling].max(0, initial=0)

    def _spoken_by(self, names: Iterable[str]) -> Vector:
        """Return 1 for each turn of one who is named."""
        hashes = [signed(term_hash(name)) for name in names]
        found: Vector = np.isin(self.units.speaker, hashes) * self.units.is_turn
        return found

    def split(self, stacked: Vector) -> tuple[Vector, Vector, Vector]:
        """Return exact frequencies, those of what is alike, and lengths of what `here` holds."""
        return stacked[: len(self.terms)], stacked[len(self.terms) : -1], stacked[-1]


def _is_name(term: str, names: set[str]) -> bool:
    return any(name.startswith(term) or term == name for name in names if len(term) > 2)


def _tokens_of(query: Query, rarest: Sequence[str]) -> list[Token]:
    """Return the query's words; of a long query those that tell most."""
    if len(query.tokens) <= _MOST_TOKENS:
        return list(query.tokens)
    return [token for token in query.tokens if token.stem in rarest]


class _Words:
    """The words of all units, each distinct one looked at once.

    Args:
        units: Candidates.
        table: The words of the brain.
        tokens: Of the query.

    Attributes:
        gram_length: How many runs of signs each unit has.
    """

    def __init__(self, units: Units, table: Table, tokens: Sequence[Token]) -> None:
        self._units, self._tokens = units, tokens
        numbers = table.numbers(units.words)
        seen = np.zeros(len(table) + 1, bool)
        seen[numbers] = True  # what the table does not know is the last one
        distinct = np.flatnonzero(seen[:-1]).astype(np.int32)
        place = np.full(len(table) + 1, len(distinct), np.int32)
        place[distinct] = np.arange(len(distinct), dtype=np.int32)
        self._at = place[numbers]  # each word of the units among the distinct ones
        self._stems = table.stems[distinct]
        self._sizes = np.append(table.starts[distinct + 1] - table.starts[distinct], 0)
        self.gram_length: Vector = np.bincount(units.owner, self._sizes[self._at], units.n).astype(np.float64)
        # which runs of the query each distinct word has
        grams = np.unique(np.concatenate([np.empty(0, np.int32), *(grams_of(token.word) for token in tokens)]))
        self._numbers = np.zeros(1 << GRAM_BITS, np.uint16)
        self._numbers[grams] = np.arange(1, len(grams) + 1)
        codes, owner = table.grams_of(distinct)
        met = self._numbers[codes]
        held = np.flatnonzero(met)
        self._has = np.zeros((len(self._sizes), len(grams)), np.float32)
        self._has[owner[held], met[held] - 1] = 1

    def matches(self, terms: Sequence[str]) -> tuple[Vector, Vector]:
        """Return `(n_terms, n_distinct + 1)`: 1 where a word has the stem; and how like the term's words it is."""
        hashes = np.array([term_hash(term) for term in terms], np.uint32)
        exact = np.zeros((len(terms), len(self._sizes)))
        exact[:, :-1] = self._stems == hashes[:, None]
        near, rows = exact.copy(), {term: row for row, term in enumerate(terms)}
        for token in self._tokens:
            row = rows.get(token.stem)
            if row is not None and len(token.word) > 2:
                shared = self._has[:, self._numbers[grams_of(token.word)] - 1].sum(1)
                alike = likeness(shared, np.full(len(shared), len(folded(token.word))), self._sizes)
                near[row] = np.maximum(near[row], alike)
        return exact, near

    def counted(self, weights: NDArray[Any]) -> Vector:
        """Return sums over the words of each unit, given a weight for each distinct word, one row a term."""
        words = np.flatnonzero(np.any(weights, axis=0)[self._at])
        row, place = np.nonzero(weights[:, self._at[words]])
        where = words[place]
        size = len(weights) * self._units.n
        values = weights[row, self._at[where]].astype(np.float64)
        found = np.bincount(row * self._units.n + self._units.owner[where], values, size).astype(np.float64)
        return found.reshape(len(weights), self._units.n)

    def best(self, weights: Vector) -> Vector:
        """Return likewise the highest weight of any word of each unit."""
        found = np.zeros((len(weights), self._units.n))
        words = np.flatnonzero(np.any(weights, axis=0)[self._at])
        if len(words):
            owners, first = np.unique(self._units.owner[words], return_index=True)
            found[:, owners] = np.maximum.reduceat(weights[:, self._at[words]], first, axis=1)
        return found

    def grams(self) -> Vector:
        """Return `(n_grams, n_units)`: how often each run of signs of the query stands in each unit."""
        found = np.zeros((self._units.n, self._has.shape[1]))
        words = np.flatnonzero(np.any(self._has, axis=1)[self._at])
        if len(words):
            owners, first = np.unique(self._units.owner[words], return_index=True)
            found[owners] = np.add.reduceat(self._has[self._at[words]], first, axis=0)
        return found.T


def lexical_signals(words: Lexical) -> Signals:
    """Return how well the words fit, from a unit alone to its whole page."""
    units, exact, near, idf, near_idf = words.units, words.exact, words.near, words.idf, words.near_idf
    length, here, before, after = units.length, words.here, words.before, words.after
    two = here + before[1]
    three = two + after[1]
    further = before[2] + after[2]
    exact_two, _, length_two = words.split(two)
    _, near_three, _ = words.split(three)
    exact_five, _, length_five = words.split(three + further)
    _, near_further, length_further = words.split(further)
    page_exact, page_near, page_length = words.split(units.by_scope(here))
    page_idf = idf_of((page_exact > 0).sum(1).astype(np.float64), page_exact.shape[1])
    tells, page_tells = units.tells, units.by_scope(units.tells.astype(np.float64)) > 0
    own = bm25(exact, length, idf, b=0.3, among=tells)
    near_talk = near + 0.5 * near_further, length + 0.5 * length_further
    return {
        "own": own,
        "covered": share(exact > 0, idf),
        "near_covered": share(words.best_near, near_idf),
        "window_5": bm25(exact_five, length_five, idf, among=tells),
        "with_previous": bm25(exact_two, length_two, idf, among=tells),
        "same_speaker": bm25(*near_talk, near_idf, among=tells),
        "page": bm25(page_exact, page_length, page_idf, k1=1.2, b=0.75, among=page_tells)[units.scope],
        "page_covered": share(page_near > 0, near_idf)[units.scope],
        "window_covered": share(near_three > 0, near_idf),
        "before_previous": units.shift(own, -2),
        "next": units.shift(own, 1),
        **_trigram_signals(words),
    }


def _trigram_signals(words: Lexical) -> Signals:
    """Return BM25 over runs of three signs: inflected forms, compounds and typos share most of them."""
    units, own = words.units, np.concatenate((words.grams, words.gram_length[None]))
    three, pages = own + units.shift(own, -1) + units.shift(own, 1), units.by_scope(own)
    idf = idf_of((own[:-1, units.tells] > 0).sum(1).astype(np.float64), float(units.tells.sum()))
    page_idf = idf_of((pages[:-1] > 0).sum(1).astype(np.float64), pages.shape[1])
    page_tells = units.by_scope(units.tells.astype(np.float64)) > 0
    return {
        "trigram": bm25(own[:-1], own[-1], idf, k1=1.2, b=0.75, among=units.tells),
        "trigram_three": bm25(three[:-1], three[-1], idf, k1=1.2, b=0.75, among=units.tells),
        "trigram_page": bm25(pages[:-1], pages[-1], page_idf, k1=1.2, b=0.75, among=page_tells)[units.scope],
    }


def dialogue_signals(words: Lexical, lexical: Mapping[str, Vector]) -> Signals:
    """Return who speaks, and what asks or answers: features that every exchange carries."""
    units, own = words.units, lexical["own"]
    question, asks = units.flag(e.QUESTION) * units.is_turn, units.flag(e.ASKS) * units.is_turn
    first_person = units.flag(e.FIRST_PERSON)
    one = float(len(words.named) == 1)
    mentioned = one * (words.mentions > 0)
    # a page about somebody is what their own words are in an exchange, and what stands on pages the person wrote
    is_persons = one * float("user" in words.named)
    about = np.where(units.is_turn > 0, words.is_named * one, np.maximum(mentioned, is_persons))
    answers = units.shift(question, -1) * units.is_turn
    return {
        "about": about,
        "about_own": about * own,
        "about_first_person": about * first_person,
        "about_tells": about * (1 - asks),
        # of two the first is who did or said it: "What did Ann tell Tom?"
        "first_named": words.is_first_named,
        "asks": asks,
        "answers": answers,
        "answers_match": answers * units.shift(own, -1),
        "opening": (units.place == 0) * units.is_turn,
    }


def content_signals(words: Lexical, lexical: Mapping[str, Vector]) -> Signals:
    """Return whether a unit holds the kind of thing that is asked for."""
    units = words.units
    asked = {name: float(name in words.query.asks) for name in ("when", "where", "count", "who")}
    time, place = units.flag(e.TIME), units.flag(e.PLACE)
    return {
        "time": time,
        "names": units.capitals,
        "when_time": asked["when"] * time,
        "when_time_own": asked["when"] * time * lexical["own"],
        "where_place": asked["where"] * place,
        "where_names": asked["where"] * units.capitals,
        "count_number": asked["count"] * units.flag(e.NUMBER),
        "who_names": asked["who"] * units.capitals,
        "day": _day_match(units, words.query.days),
    }


def _day_match(units: Units, days: tuple[int, int] | None) -> Vector:
    """Return 1 where the day asked about was spoken of or is the day of the words, less with each day away."""
    if days is None:
        return np.zeros(units.n)
    first, last = days
    said = units.facts[:, 3].astype(np.float64)
    said[units.facts[:, 3] == e.NO_DAY] = -1e9
    away = np.maximum(np.maximum(first - said, said - last - 2), 0)  # most things are told a day or two later
    match = np.exp(-away / 7)
    spoken = (units.facts[:, 4] != e.NO_DAY) & (units.facts[:, 4] <= last) & (units.facts[:, 5] >= first)
    found: Vector = np.maximum(match, spoken.astype(np.float64))
    return found
