"""What speaks for a unit, as named numbers: computed for the candidates of one query only, at every scale.

Each signal is a vector over all units of the candidate pages. Lexical ones are BM25 (Robertson and Zaragoza,
2009) divided by the best candidate's, since scores fuse better by value over maximum than by rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from brainiac.recall import encode as e
from brainiac.recall.encode import EncodedPage, signed, speaker_key
from brainiac.recall.query import Query, speaker_words
from brainiac.recall.text import plain_words, prefix_hash, term_hash
from brainiac.recall.units import UnitKind

Vector: TypeAlias = NDArray[np.float64]
Signals: TypeAlias = dict[str, Vector]


class Units:
    """The units of the candidate pages, side by side; matrices have a column a unit.

    Args:
        pages: Candidates; those without units are left out by the caller.
    """

    def __init__(self, pages: Sequence[EncodedPage]) -> None:
        self.pages = pages
        self.facts = np.frombuffer(b"".join([page.facts for page in pages]), np.int32).reshape(-1, e.FACTS)
        self.terms = np.frombuffer(b"".join([page.terms for page in pages]), np.uint32)
        self.prefixes = np.frombuffer(b"".join([page.prefixes for page in pages]), np.uint32)
        counts = np.array([page.n_units for page in pages])
        self.words, flags, self.speaker = self.facts[:, 0], self.facts[:, 1], self.facts[:, 2]
        self.n = len(self.facts)
        self.page = np.repeat(np.arange(len(pages)), counts)
        self.start = np.cumsum(counts) - counts
        self.position = np.arange(self.n) - self.start[self.page]
        self.length = np.maximum(self.words, 1).astype(np.float64)
        self.owner = np.repeat(np.arange(self.n), self.words)
        self.kind = flags >> 12 & 7
        self.is_turn = (self.kind == UnitKind.TURN).astype(np.float64)
        self.capitals = (flags >> 8 & 15) / e.MAX_CAPITALS
        # items of a list stand in no order: what is beside a statement says nothing of it
        told = np.where(self.kind == UnitKind.STATEMENT, -1 - np.arange(self.n), self.page)
        self._neighbours = {by: (told[by:] == told[:-by]).astype(np.float64) for by in (1, 2)}

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

    def by_page(self, values: Vector) -> Vector:
        """Return sums over each page."""
        sums: Vector = np.add.reduceat(values, self.start, axis=-1)
        return sums


def relative(scores: Vector) -> Vector:
    """Return scores over their maximum; zeros stay zeros."""
    best = scores.max() if len(scores) else 0.0
    return scores / best if best > 0 else scores


def bm25(frequency: Vector, length: Vector, idf: Vector, k1: float = 0.9, b: float = 0.4) -> Vector:
    """Return BM25 over its maximum for a matrix of term frequencies, one row a term."""
    saturation = k1 * (1 - b) + length * (k1 * b / length.mean())
    return relative(weighed(frequency / (frequency + saturation), idf))


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

    Attributes:
        exact: How often each term stands in each unit; `near`: how often what begins like it.
        here: Both and the units' lengths, below each other; `before`, `after`: the same of the units so many places
            away.
    """

    def __init__(self, units: Units, query: Query, frequencies: Mapping[str, int], n_documents: int) -> None:
        self.units, self.query = units, query
        speakers = set(units.speaker[units.is_turn > 0].tolist())
        known = {word for word in speaker_words(query) if signed(term_hash(speaker_key(word))) in speakers}
        self.named = known
        self.is_named = self._spoken_by(known)
        in_order = dict.fromkeys(word for piece in query.text.split() for word in sorted(plain_words(piece) & known))
        self.is_first_named = self._spoken_by(list(in_order)[:1] if len(in_order) > 1 else ())
        self.name_terms = {term for term in query.terms if _is_name(term, known)}
        self.terms = [term for term in query.terms if term not in self.name_terms] or list(query.terms) or [""]
        self.exact = self._counted(_places(units.terms, [term_hash(term) for term in self.terms]))
        self.near = self._counted(_places(units.prefixes, [prefix_hash(term) for term in self.terms]))
        self.here = np.concatenate((self.exact, self.near, units.length[None]))
        self.before = {by: units.shift(self.here, -by) for by in (1, 2)}
        self.after = {by: units.shift(self.here, by) for by in (1, 2)}
        total = max(n_documents, 1)
        documents = np.array([frequencies.get(term, 0) for term in self.terms], np.float64)
        in_exact, in_near = (self.exact > 0).sum(1), (self.near > 0).sum(1)
        self.idf = idf_of(documents, total)
        wider = documents * (in_near + 1) / (in_exact + 1) + (documents == 0) * in_near
        self.near_idf = idf_of(np.minimum(wider, total), total)
        rare = np.array([1.0 for term in self.terms])
        self.weighted = self.near_idf * rare
        self.telling = self.idf * rare

    def _spoken_by(self, names: Iterable[str]) -> Vector:
        """Return 1 for each turn of one who is named."""
        hashes = [signed(term_hash(name)) for name in names]
        found: Vector = np.isin(self.units.speaker, hashes) * self.units.is_turn
        return found

    def _counted(self, places: NDArray[np.bool_]) -> Vector:
        """Return how often each term stands in each unit, given where it stands among all words."""
        row, place = np.nonzero(places)
        size = len(places) * self.units.n
        counts = np.bincount(row * self.units.n + self.units.owner[place], minlength=size)
        found: Vector = counts.reshape(len(places), self.units.n).astype(np.float64)
        return found

    def split(self, stacked: Vector) -> tuple[Vector, Vector, Vector]:
        """Return exact frequencies, those of beginnings, and lengths of what `here` holds."""
        return stacked[: len(self.terms)], stacked[len(self.terms) : -1], stacked[-1]

    def mentions(self) -> Vector:
        """Return how often the names in the query stand in each unit."""
        hashes = [prefix_hash(term) for term in sorted(self.name_terms)]
        found: Vector = self._counted(_places(self.units.prefixes, hashes)).sum(0)
        return found


def _places(hashes: NDArray[np.uint32], wanted: Sequence[int]) -> NDArray[np.bool_]:
    places: NDArray[np.bool_] = hashes == np.array(wanted, np.uint32)[:, None]
    return places


def _is_name(term: str, names: set[str]) -> bool:
    return any(name.startswith(term) or term == name for name in names if len(term) > 2)


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
    page_exact, page_near, page_length = words.split(units.by_page(here))
    page_idf = idf_of((page_exact > 0).sum(1).astype(np.float64), len(units.pages))
    own = bm25(exact, length, idf, b=0.3)
    alike = (exact > 0).astype(np.float64)
    return {
        "own": own,
        "window_5": bm25(exact_five, length_five, idf),
        "with_previous": bm25(exact_two, length_two, idf),
        "same_speaker": bm25(near + 0.5 * near_further, length + 0.5 * length_further, words.weighted),
        "page": bm25(page_exact, page_length, page_idf, k1=1.2, b=0.75)[units.page],
        "page_covered": share(page_near > 0, near_idf)[units.page],
        "window_covered": share(near_three > 0, near_idf),
        "alike_around": share(_around(units, alike), words.telling),
        "before_previous": units.shift(own, -2),
        "next": units.shift(own, 1),
    }


def _around(units: Units, values: Vector) -> Vector:
    """Return the best of each unit and its neighbours, who count for less the further they stand."""
    best = values
    for by, weight in ((1, 0.7), (2, 0.5)):
        best = np.maximum(best, weight * np.maximum(units.shift(values, -by), units.shift(values, by)))
    return best


def dialogue_signals(words: Lexical, lexical: Mapping[str, Vector]) -> Signals:
    """Return who speaks, and what asks or answers: features that every exchange carries."""
    units, own = words.units, lexical["own"]
    question, asks = units.flag(e.QUESTION) * units.is_turn, units.flag(e.ASKS) * units.is_turn
    first_person = units.flag(e.FIRST_PERSON)
    one = float(len(words.named) == 1)
    mentioned = one * (words.mentions() > 0)
    # a page about somebody is what their own words are in an exchange
    about = np.where(units.is_turn > 0, words.is_named * one, mentioned)
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
        "opening": (units.position == 0) * units.is_turn,
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
