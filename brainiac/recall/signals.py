"""What speaks for a unit, as named numbers: computed for the candidates of one query only, at every scale.

Each signal is a vector over all units of the candidate pages. Lexical ones are BM25 (Robertson and Zaragoza,
2009) divided by the best candidate's, since scores fuse better by value over maximum than by rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from brainiac.recall import encode as e
from brainiac.recall.encode import EncodedPage, signed, speaker_key
from brainiac.recall.query import Query, speaker_words
from brainiac.recall.text import prefix_hash, term_hash
from brainiac.recall.units import UnitKind

Vector: TypeAlias = NDArray[np.float64]
Signals: TypeAlias = dict[str, Vector]

# Words of a question that say little of what is sought: they count for less where a signal says "weighted".
_LIGHT = frozenset(
    "kind type sort name say tell mention describ feel think plan use make take give go come start decid receiv find "
    "thing way activ want like need new call specif recent current around happen".split()
)
_LIGHT_WEIGHT = 0.3


class Units:
    """The units of the candidate pages, side by side.

    Args:
        pages: Candidates; those without units are left out by the caller.
    """

    def __init__(self, pages: Sequence[EncodedPage]) -> None:
        self.pages = pages
        self.facts = np.frombuffer(b"".join(page.facts for page in pages), np.int32).reshape(-1, e.FACTS)
        self.terms = np.frombuffer(b"".join(page.terms for page in pages), np.uint32)
        self.prefixes = np.frombuffer(b"".join(page.prefixes for page in pages), np.uint32)
        counts = np.array([page.n_units for page in pages])
        self.n = len(self.facts)
        self.page = np.repeat(np.arange(len(pages)), counts)
        self.start = np.concatenate(([0], np.cumsum(counts)[:-1]))
        self.position = np.arange(self.n) - self.start[self.page]
        self.from_end = counts[self.page] - 1 - self.position
        self.length = np.maximum(self.facts[:, 0], 1).astype(np.float64)
        self.owner = np.repeat(np.arange(self.n), self.facts[:, 0])
        flags = self.facts[:, 1]
        self.kind = flags >> 12 & 7
        self.is_turn = (self.kind == UnitKind.TURN).astype(np.float64)
        self.capitals = (flags >> 8 & 15) / e.MAX_CAPITALS
        self.speaker = self.facts[:, 2]

    def flag(self, bit: int) -> Vector:
        """Return 1 for each unit that has a flag of `encode`."""
        return ((self.facts[:, 1] & bit) > 0).astype(np.float64)

    @cached_property
    def content(self) -> NDArray[np.uint64]:
        """Content hashes, the keys of the units' vectors."""
        return np.frombuffer(b"".join(page.content for page in self.pages), np.uint64)

    def shift(self, values: NDArray[np.float64], by: int) -> NDArray[np.float64]:
        """Return what the unit `by` places further on the same page has; 0 where there is none."""
        moved = np.zeros_like(values)
        if abs(by) >= self.n:
            return moved
        here, there = (slice(None, -by), slice(by, None)) if by > 0 else (slice(-by, None), slice(None, by))
        is_same = self.page[here] == self.page[there]
        moved[here] = values[there] * (is_same if values.ndim == 1 else is_same[:, None])
        return moved

    def by_page(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sums over each page."""
        return np.add.reduceat(values, self.start, axis=0)


def relative(scores: Vector) -> Vector:
    """Return scores over their maximum; zeros stay zeros."""
    best = scores.max() if len(scores) else 0.0
    return scores / best if best > 0 else scores


def bm25(frequency: NDArray[np.float64], length: Vector, idf: Vector, k1: float = 0.9, b: float = 0.4) -> Vector:
    """Return BM25 over its maximum for a matrix of term frequencies, one row a text."""
    saturation = k1 * (1 - b + b * length / length.mean())
    score: Vector = (idf * frequency * (k1 + 1) / (frequency + saturation[:, None])).sum(1)
    return relative(score)


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
    """

    def __init__(self, units: Units, query: Query, frequencies: Mapping[str, int], n_documents: int) -> None:
        self.units, self.query = units, query
        speakers = {int(value) for value in np.unique(units.speaker[units.is_turn > 0])}
        known = {word for word in speaker_words(query) if signed(term_hash(speaker_key(word))) in speakers}
        self.named = known
        own_names = {signed(term_hash(word)) for word in known}
        self.is_named = np.isin(units.speaker, list(own_names)).astype(np.float64) * units.is_turn
        self.name_terms = {term for term in query.terms if _is_name(term, known)}
        self.terms = [term for term in query.terms if term not in self.name_terms] or list(query.terms) or [""]
        self.exact = self.count(units.terms, [term_hash(term) for term in self.terms])
        self.near = self.count(units.prefixes, [prefix_hash(term) for term in self.terms])
        total = max(n_documents, 1)
        documents = np.array([frequencies.get(term, 0) for term in self.terms], np.float64)
        in_exact, in_near = (self.exact > 0).sum(0), (self.near > 0).sum(0)
        self.idf = idf_of(documents, total)
        wider = documents * (in_near + 1) / (in_exact + 1) + (documents == 0) * in_near
        self.near_idf = idf_of(np.minimum(wider, total), total)
        self.weighted = self.near_idf * np.array([_LIGHT_WEIGHT if term in _LIGHT else 1.0 for term in self.terms])

    def count(self, hashes: NDArray[np.uint32], wanted: Sequence[int]) -> NDArray[np.float64]:
        """Return how often each of these hashes stands in each unit."""
        counts = np.zeros((self.units.n, len(wanted)))
        for column, value in enumerate(wanted):
            counts[:, column] = np.bincount(self.units.owner[hashes == value], minlength=self.units.n)
        return counts

    def around(self, values: NDArray[np.float64], *offsets: int) -> NDArray[np.float64]:
        """Return sums over a unit's neighbours at these offsets (0: itself)."""
        shift = self.units.shift
        return sum((shift(values, by) if by else values for by in offsets), np.zeros_like(values))

    def adjacency(self) -> Vector:
        """Return the share of neighbouring query terms that stand within two words of each other."""
        pairs = list(zip(self.terms, self.terms[1:], strict=False))
        met = np.zeros(self.units.n)
        prefixes, owner = self.units.prefixes, self.units.owner
        for first, second in pairs:
            is_first, is_second = prefixes == prefix_hash(first), prefixes == prefix_hash(second)
            places = np.nonzero(is_first)[0]
            near = np.zeros(len(places), bool)
            for step in (-2, -1, 1, 2):
                there = places + step
                inside = (there >= 0) & (there < len(prefixes))
                there = np.where(inside, there, places)
                near |= inside & is_second[there] & (owner[there] == owner[places])
            met[np.unique(owner[places[near]])] += 1
        return met / max(1, len(pairs))


def _is_name(term: str, names: set[str]) -> bool:
    return any(name.startswith(term) or term == name for name in names if len(term) > 2)


def lexical_signals(words: Lexical) -> Signals:
    """Return how well the words fit, from a unit alone to its whole page."""
    units, exact, near, idf = words.units, words.exact, words.near, words.idf
    length, around = units.length, words.around
    page_exact, page_near = units.by_page(exact), units.by_page(near)
    page_length = units.by_page(length)
    in_pages = (page_exact > 0).sum(0).astype(np.float64)
    page_idf = idf_of(in_pages, len(units.pages))
    decayed = near + 0.5 * around(near, -1, 1) + 0.25 * around(near, -2, 2)
    decayed_length = length + 0.5 * around(length, -1, 1) + 0.25 * around(length, -2, 2)
    of_page = np.minimum(page_near, 3)[units.page]
    window = around(near, -1, 0, 1)
    whole = max(float(words.near_idf.sum()), 1e-9)
    weight = max(float(words.weighted.sum()), 1e-9)
    own = bm25(exact, length, idf, b=0.3)
    spread = decayed + 0.1 * around(near, -1, 1) + 0.05 * around(near, -2, 2) + 0.2 * of_page
    return {
        "own": own,
        "own_strict": bm25(exact, length, idf, k1=1.2, b=0.75),
        "own_prefix": bm25(near, length, words.near_idf, b=0.3),
        "own_weighted": bm25(near, length, words.weighted, b=0.3),
        "window_3": bm25(around(exact, -1, 0, 1), around(length, -1, 0, 1), idf),
        "window_5": bm25(around(exact, -2, -1, 0, 1, 2), around(length, -2, -1, 0, 1, 2), idf),
        "with_previous": bm25(around(exact, -1, 0), around(length, -1, 0), idf),
        "window_prefix": bm25(window, around(length, -1, 0, 1), words.near_idf),
        "decayed": bm25(decayed + 0.1 * of_page, decayed_length, words.weighted),
        "same_speaker": bm25(near + 0.5 * around(near, -2, 2), length + 0.5 * around(length, -2, 2), words.weighted),
        "page": bm25(page_exact, page_length, page_idf, k1=1.2, b=0.75)[units.page],
        "page_covered": ((page_near > 0) @ words.near_idf)[units.page] / whole,
        "covered": (near > 0) @ words.near_idf / whole,
        "window_covered": (window > 0) @ words.near_idf / whole,
        "window_complete": (((window > 0) @ words.near_idf / whole) > 0.999).astype(np.float64),
        "covered_around": (spread / (spread + 0.7)) @ words.weighted / weight,
        "rarest": relative(((near > 0) * words.near_idf).max(1)),
        "adjacent": words.adjacency(),
        "previous": units.shift(own, -1),
        "before_previous": units.shift(own, -2),
        "next": units.shift(own, 1),
        "after_next": units.shift(own, 2),
    }


def dialogue_signals(words: Lexical, lexical: Mapping[str, Vector]) -> Signals:
    """Return who speaks, and what asks or answers: features that every exchange carries."""
    units, own = words.units, lexical["own"]
    question, asks = units.flag(e.QUESTION) * units.is_turn, units.flag(e.ASKS) * units.is_turn
    first_person = units.flag(e.FIRST_PERSON)
    one = float(len(words.named) == 1)
    names = words.count(units.prefixes, [prefix_hash(term) for term in sorted(words.name_terms)])
    mentioned = one * (names.sum(1) > 0)
    # a page about somebody is what their own words are in an exchange
    about = np.where(units.is_turn > 0, words.is_named * one, mentioned)
    answers = units.shift(question, -1) * units.is_turn
    answered = answers[:, None] * words.around(words.near, -1)
    answered_length = answers * words.around(units.length, -1)
    return {
        "about": about,
        "about_own": about * own,
        "about_decayed": about * lexical["decayed"],
        "about_first_person": about * first_person,
        "about_tells": about * (1 - asks),
        "about_answers": about * answers * lexical["previous"],
        "mentioned": mentioned,
        "question": question,
        "asks": asks,
        "question_own": question * own,
        "answers": answers,
        "answers_match": answers * lexical["previous"],
        "with_question": bm25(words.near + 0.7 * answered, units.length + 0.7 * answered_length, words.weighted, b=0.3),
        "first_person": first_person * units.is_turn,
        "opening": (units.position == 0) * units.is_turn,
        "second": (units.position == 1) * units.is_turn,
        "closing": (units.from_end < 2) * units.is_turn,
        "depth": units.position / (units.position + units.from_end + 1) * units.is_turn,
    }


def content_signals(words: Lexical, lexical: Mapping[str, Vector]) -> Signals:
    """Return whether a unit holds the kind of thing that is asked for."""
    units = words.units
    asked = {name: float(name in words.query.asks) for name in ("when", "where", "count", "who", "why")}
    time, number, place = units.flag(e.TIME), units.flag(e.NUMBER), units.flag(e.PLACE)
    size = np.log1p(units.length) / 4
    return {
        "length": size,
        "length_own": size * lexical["own"],
        "time": time,
        "number": number,
        "names": units.capitals,
        "quote": units.flag(e.QUOTE),
        "image": units.flag(e.IMAGE),
        "when_time": asked["when"] * time,
        "when_time_own": asked["when"] * time * lexical["own_weighted"],
        "where_place": asked["where"] * place,
        "where_names": asked["where"] * units.capitals,
        "count_number": asked["count"] * number,
        "who_names": asked["who"] * units.capitals,
        "why_length": asked["why"] * size,
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
