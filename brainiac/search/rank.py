"""The ranking: one weighted sum over named signals, and the one table of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainiac.search.query import Query
from brainiac.search.signals import FACTS, NOTES, TALK, Signals, Units, Vector, weighed

# Each learned signal of `signals.py` with its weights by words alone in talk, facts and notes (`Units.sort`), and then
# where there are vectors. Learned by `benchmarks/learning.py` (sources and figures: docs/decisions/ranker.md).
WEIGHTS: dict[str, tuple[float, ...]] = {
    "covered": (0.62, 5.12, 3.79, 0.18, 1.24, 2.82),
    "trigram": (3.11, 4.70, 5.98, 2.68, 1.82, 4.41),
    "whole": (-0.15, 2.29, 3.18, -0.69, 1.60, 2.71),
    "whole_covered": (0.42, -4.90, 0.28, 0.41, -2.39, 0.30),
    "around": (3.16, 1.70, 0.73, 2.80, 2.22, 0.45),
    "page": (2.24, 0.00, -1.97, 1.82, 0.00, -1.54),
    "title": (1.63, 0.00, 8.51, 1.58, 0.00, 4.81),
    "about": (2.14, 2.14, 2.14, 2.20, 2.20, 2.20),
    "first_named": (2.05, 0.00, 0.00, 2.13, 0.00, 0.00),
    "asks": (-0.72, -3.00, 0.00, -0.65, -3.00, 0.00),
    "answers": (1.96, 0.00, 0.00, 1.55, 0.00, 0.00),
    "fits": (1.31, -0.15, 0.00, 0.94, -0.70, 0.00),
    "day": (3.73, 3.73, 3.73, 3.78, 3.78, 3.78),
    "meaning": (0.00, 0.00, 0.00, 3.38, 6.14, 8.77),
    "meaning_page": (0.00, 0.00, 0.00, 3.11, 2.34, 0.96),
    # of all units of a sort: what makes the scores of talk and notes comparable with those of facts
    "is_talk": (-2.95, 0.00, 0.00, -3.64, 0.00, 0.00),
    "is_notes": (0.00, 0.00, -2.89, 0.00, 0.00, -3.33),
}
# No likelihoods, but what stands before what: first what is asked for by its name, last what is archived, unless it
# alone has all words; an assistant's words behind a person's.
ORDER: dict[str, float] = {"titled": 1000.0, "headed": 0.0, "from_ai": -5.0, "archived": -2000.0}
_FULL = 1000.0
N_SORTS = 3
BY_WORDS, WITH_MEANING = 0, N_SORTS  # where the columns of the learned table begin


@dataclass(frozen=True)
class Ranked:
    """The units of a query's candidates with their scores.

    Attributes:
        query: What was asked.
        units: Candidates.
        scores: One a unit, higher is better.
        signals: By name, one number a unit.
        found_by: What led to each unit, by its place in `retrieval.WAYS`; -1 where nothing did.
        chance_cosine: See `Vectors.chance_cosine`.
        earlier: The unit that a newer telling of the same stands before; -1 for none.
        doubted: Units among the first that are about what is asked, and seem not to answer it.
    """

    query: Query
    units: Units
    scores: Vector
    signals: Signals
    found_by: NDArray[np.int8]
    chance_cosine: float = 0.0
    earlier: int = -1
    doubted: frozenset[int] = frozenset()

    def signals_of(self, number: int) -> dict[str, float]:
        """Return the signals of one unit that are not 0."""
        return {name: float(values[number]) for name, values in self.signals.items() if values[number]}


def rank(units: Units, signals: Mapping[str, Vector]) -> Vector:
    """Return a score for each unit, higher is better: the weighted sum of its signals, and what orders all scores.

    Args:
        units: Candidates.
        signals: By name; without `meaning` the weights by words apply.
    """
    scores = _learned(units, signals, BY_WORDS)
    if "meaning" in signals:  # then at least one unit has a vector
        by_words, has_vector = scores, signals["embedded"] > 0
        scores = _learned(units, signals, WITH_MEANING)
        # a unit without a vector is scored by its words, and gains as much by meaning as the others do on average
        mean_gain = (scores - by_words)[has_vector].mean()
        scores = np.where(has_vector, scores, by_words + mean_gain)
    scores = scores + weighed(np.array([signals[name] for name in ORDER]), np.array(list(ORDER.values())))
    is_archived, is_full = signals["archived"] > 0, signals["full"] > 0
    if (is_archived & is_full).any():
        scores += np.where(is_full, _FULL - is_archived * (ORDER["archived"] - ORDER["from_ai"]), 0.0)
    return scores


def _learned(units: Units, signals: Mapping[str, Vector], column: int) -> Vector:
    """Return the learned score of each unit, by the weights of its sort.

    Args:
        units: Candidates.
        signals: By name.
        column: Of the table, `BY_WORDS` or `WITH_MEANING`.
    """
    names = [name for name in WEIGHTS if name in signals]
    values = np.array([signals[name] for name in names])
    weights = np.array([WEIGHTS[name] for name in names])[:, column + units.sort]
    # not a product of matrices: its last bits depend on where a column stands, and equal units must stay equal
    learned: Vector = (values * weights).sum(0)
    return learned


def contributions(signals: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
    """Return value, weight and their product for each signal of one hit that counted.

    Args:
        signals: Of the hit, those that are not 0: they tell which column of the table its weights stand in.
    """
    sort = TALK if "is_talk" in signals else NOTES if "is_notes" in signals else FACTS
    column = sort + (WITH_MEANING if "embedded" in signals else BY_WORDS)
    weights = {name: row[column] for name, row in WEIGHTS.items()} | ORDER
    return {name: (value, weights[name], value * weights[name]) for name, value in signals.items() if name in weights}
