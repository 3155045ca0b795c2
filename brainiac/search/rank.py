"""The ranking: one weighted sum over named signals, and the one table of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from brainiac.search.query import Query
from brainiac.search.signals import FACTS, NOTES, TALK, Signals, Units, Vector, weighed

# Each signal of `signals.py` that counts, with its weights by words alone in talk, facts and notes (`Units.sort`), and
# then where there are vectors. Learned by `benchmarks/learning.py` (sources and figures: docs/decisions/ranker.md).
# First what speaks for a unit alone:
ALONE: dict[str, tuple[float, ...]] = {
    "covered": (1.00, 1.23, 0.00, 0.37, 0.57, 0.00),
    "trigram": (1.08, 1.97, 0.00, 1.09, 1.06, 0.00),
    "trigram_three": (1.10, 1.24, 6.28, 0.97, 0.74, 4.51),
    "trigram_page": (1.36, 1.16, 0.00, 1.19, 0.76, 0.00),
    "window_5": (1.30, 0.49, 0.00, 1.26, 0.15, 0.00),
    "with_previous": (0.05, 0.88, 0.00, 0.23, 0.37, 0.00),
    "same_speaker": (1.08, 1.24, 0.00, 1.10, 0.87, 0.00),
    "page": (0.31, 0.10, 0.00, 0.19, 0.14, 0.00),
    "page_covered": (0.42, 0.85, 0.00, -0.28, 0.69, 0.00),
    "window_covered": (0.90, 0.85, 0.00, 0.27, 0.69, 0.00),
    "before_previous": (0.72, 0.00, 0.00, 0.30, 0.00, 0.00),
    "about": (1.55, 1.55, 1.55, 1.61, 1.63, 1.63),
    "about_own": (0.25, -0.11, 0.00, -0.41, -0.80, 0.00),
    "about_first_person": (0.58, 0.37, 0.00, 0.56, 0.23, 0.00),
    "about_tells": (0.50, 0.00, 0.00, 0.31, 0.00, 0.00),
    "first_named": (1.10, 0.00, 0.00, 1.05, 0.00, 0.00),
    "asks": (-0.27, 0.00, 0.00, -0.39, 0.00, 0.00),
    "answers": (0.34, 0.28, 0.00, 0.18, 0.27, 0.00),
    "answers_match": (1.68, 0.09, 0.00, 1.34, 0.08, 0.00),
    "opening": (0.44, 0.02, 0.00, 0.21, -0.28, 0.00),
    "names": (0.78, 0.17, 0.00, 0.60, -0.12, 0.00),
    "when_time": (0.92, 0.22, 0.00, 0.91, 0.17, 0.00),
    "when_time_own": (1.16, 0.74, 0.00, 1.45, 0.67, 0.00),
    "where_place": (1.16, 0.09, 0.00, 1.17, 0.03, 0.00),
    "count_number": (1.42, 0.90, 0.00, 1.04, 0.55, 0.00),
    "who_names": (1.30, 0.73, 0.00, 0.68, 0.60, 0.00),
    "day": (4.88, 4.88, 4.88, 4.48, 4.54, 4.54),
    "meaning": (0.00, 0.00, 0.00, 4.02, 4.51, 10.36),
    "meaning_previous": (0.00, 0.00, 0.00, 0.59, 0.04, 0.00),
    "meaning_next": (0.00, 0.00, 0.00, 0.41, 0.19, 0.00),
    "meaning_page": (0.00, 0.00, 0.00, 3.79, 4.33, -1.66),
    "about_meaning": (0.00, 0.00, 0.00, 0.91, 2.06, 0.00),
    "meaning_throughout": (0.00, 0.00, 0.00, 1.78, 0.00, 0.00),
    "meaning_trigram": (0.00, 0.00, 0.00, -1.91, 0.00, 0.00),
    "own": (0.00, 0.00, 4.12, 0.00, 0.00, 2.12),
    "section": (0.00, 0.00, 1.31, 0.00, 0.00, 0.97),
    "title_covered": (0.00, 0.00, 2.55, 0.00, 0.00, 1.57),
    "title_trigram": (0.00, 0.00, 4.81, 0.00, 0.00, 3.97),
    "is_talk": (-3.40, 0.00, 0.00, -3.51, 0.00, 0.00),
    "is_notes": (0.00, 0.00, -4.11, 0.00, 0.00, -2.67),
}
# Then what its surroundings add, by the scores that the units have alone:
AROUND: dict[str, tuple[float, ...]] = {
    "previous_score": (0.04, 0.00, 0.00, 0.05, 0.00, 0.00),
    "before_previous_score": (0.48, 0.00, 0.00, 0.47, 0.00, 0.00),
    "next_score": (0.24, 0.00, 0.00, 0.24, 0.00, 0.00),
    "place_on_page": (-0.82, 0.00, -0.81, -0.92, 0.00, -0.86),
}
# Set by hand. Dialogues do not show how much place, connection and use should count, so they decide between equals.
# `imported` lets words found only there still come first: docs/import.md has what it was measured by.
# The last four are no likelihoods: what is asked for by its name comes first, what is archived comes last.
BY_HAND: dict[str, float] = {
    "folder": 0.3, "linked": 0.4, "connected": 0.05, "used": 0.1, "statement": 1.2, "headed": 1.0,
    "imported": -3.0, "titled": 1000.0, "from_ai": -5.0, "archived": -2000.0, "only_asks": -100.0,
}  # fmt: skip
N_SORTS = 3
BY_WORDS, WITH_MEANING = 0, N_SORTS  # where the columns of the learned tables begin


@dataclass(frozen=True)
class LeftOut:
    """What a query did not look at, by the reason; nothing else is left out.

    Attributes:
        words: Of a long query, those that are not among its rarest.
        passages: They hold a word of the query, but others hold more or rarer ones; -1 where an engine does not say.
        unread: Files that are not in the index yet, and for which there was no time.
        of_long_pages: Units of long pages and talks in which others hold more of the query.
        too_many: Units of the least promising pages.
    """

    words: int = 0
    passages: int = 0
    unread: int = 0
    of_long_pages: int = 0
    too_many: int = 0


@dataclass(frozen=True)
class Ranked:
    """The units of a query's candidates with their scores.

    Attributes:
        query: What was asked.
        units: Candidates.
        scores: One a unit, higher is better.
        signals: By name, one number a unit; those of the second pass too.
        found_by: What led to each unit, by its place in `retrieval.WAYS`; -1 where nothing did.
        left_out: What was not looked at.
    """

    query: Query
    units: Units
    scores: Vector
    signals: Signals
    found_by: NDArray[np.int8]
    left_out: LeftOut = LeftOut()

    def signals_of(self, number: int) -> dict[str, float]:
        """Return the signals of one unit that are not 0."""
        values = self._matrix[:, number].tolist()
        return {name: value for name, value in zip(self.signals, values, strict=True) if value}

    @cached_property
    def _matrix(self) -> Vector:
        return np.array(list(self.signals.values()))


def rank(units: Units, signals: Mapping[str, Vector]) -> tuple[Vector, Signals]:
    """Score units: the weighted sum of each unit's own signals, then of those of its surroundings.

    Args:
        units: Candidates.
        signals: By name; without `meaning` the weights by words apply.

    Returns:
        A score for each unit, higher is better, and the signals of the second pass.
    """
    scores, around = _learned(units, signals, BY_WORDS)
    if "meaning" in signals:  # then at least one unit has a vector
        by_words, has_vector = scores, signals["embedded"] > 0
        scores, around = _learned(units, signals, WITH_MEANING)
        # a unit without a vector yet is scored by its words, and gains as much by meaning as the others do on average
        mean_gain = (scores - by_words)[has_vector].mean()
        scores = np.where(has_vector, scores, by_words + mean_gain)
    names = [name for name in BY_HAND if name in signals]
    by_hand = weighed(np.array([signals[name] for name in names]), np.array([BY_HAND[name] for name in names]))
    return scores + by_hand, around


def _learned(units: Units, signals: Mapping[str, Vector], column: int) -> tuple[Vector, Signals]:
    """Return the learned score of each unit, and the signals that come from its neighbours' scores.

    Args:
        units: Candidates.
        signals: By name.
        column: Of the tables, `BY_WORDS` or `WITH_MEANING`.
    """
    alone = _weighed_by_sort(units, signals, ALONE, column)
    around = context_signals(units, alone)
    return alone + _weighed_by_sort(units, around, AROUND, column), around


def _weighed_by_sort(
    units: Units, signals: Mapping[str, Vector], table: Mapping[str, tuple[float, ...]], column: int
) -> Vector:
    """Return the weighted sum of signals, each unit's by the weights of its sort.

    Args:
        units: Candidates.
        signals: By name.
        table: `ALONE` or `AROUND`.
        column: Where the columns of the sorts begin in it.
    """
    summed: Vector = np.zeros(units.n)
    for sort in np.unique(units.sort).tolist():
        weights = {name: row[column + sort] for name, row in table.items() if name in signals and row[column + sort]}
        if not weights:
            continue
        values, is_of_sort = np.array([signals[name] for name in weights]), units.sort == sort
        summed[is_of_sort] = weighed(values[:, is_of_sort], np.array(list(weights.values())))
    return summed


def context_signals(units: Units, alone: Vector) -> Signals:
    """Return the signals of a unit's surroundings: its neighbours' scores, and its rank within its talk or page.

    Args:
        units: Candidates.
        alone: The score of each unit without its surroundings.
    """
    nearness_to_best = np.exp(0.7 * (alone - alone.max()))  # 1 for the best unit, half of it one point below
    return {
        "previous_score": units.beside(nearness_to_best, -1),
        "before_previous_score": units.beside(nearness_to_best, -2),
        "next_score": units.beside(nearness_to_best, 1),
        "place_on_page": np.minimum(units.place_in_scope(alone), 10) / 10,
    }


def contributions(signals: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
    """Return value, weight and their product for each signal of one hit that counted.

    Args:
        signals: Of the hit, those that are not 0: they tell which column of the tables its weights stand in.
    """
    sort = TALK if "is_talk" in signals else NOTES if "is_notes" in signals else FACTS
    column = sort + (WITH_MEANING if "embedded" in signals else BY_WORDS)
    weights = {name: row[column] for name, row in (ALONE | AROUND).items()} | BY_HAND
    return {name: (value, weights[name], value * weights[name]) for name, value in signals.items() if name in weights}
