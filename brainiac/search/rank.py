"""The ranking: one function over named signals, and the one table of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from brainiac.search.signals import Signals, Units, Vector, weighed
from brainiac.search.weights import (
    DENSE_CONTEXT_WEIGHTS,
    DENSE_WEIGHTS,
    LEXICAL_CONTEXT_WEIGHTS,
    LEXICAL_WEIGHTS,
    PRIOR_WEIGHTS,
    RULES,
)


def rank(units: Units, signals: Mapping[str, Vector]) -> tuple[Vector, Signals]:
    """Score units: a weighted sum of what speaks for each alone, then for its surroundings.

    Args:
        units: Candidates.
        signals: By name, see `signals`; without the dense ones, the lexical weights apply.

    Returns:
        A score for each unit, higher is better, and the signals of the second pass.
    """
    given = {**PRIOR_WEIGHTS, **RULES}
    scores, around = _learned(units, signals, LEXICAL_WEIGHTS, LEXICAL_CONTEXT_WEIGHTS)
    if "meaning" in signals:
        by_words, is_known = scores, signals["embedded"] > 0
        scores, around = _learned(units, signals, DENSE_WEIGHTS, DENSE_CONTEXT_WEIGHTS)
        # what has no vector yet is ranked by its words, as if it came as near as all else does
        scores = np.where(is_known, scores, by_words + (scores - by_words)[is_known].mean())
    return scores + total({name: signals[name] for name in given}, given), around


def _learned(
    units: Units, signals: Mapping[str, Vector], weights: Mapping[str, float], context: Mapping[str, float]
) -> tuple[Vector, Signals]:
    alone = total(signals, weights)
    around = context_signals(units, alone)
    return alone + total(around, context), around


def _tables(signals: Mapping[str, Any]) -> tuple[Mapping[str, float], Mapping[str, float]]:
    if "embedded" in signals:
        return DENSE_WEIGHTS, DENSE_CONTEXT_WEIGHTS
    return LEXICAL_WEIGHTS, LEXICAL_CONTEXT_WEIGHTS


def contributions(signals: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
    """Return value, weight and their product for each signal of one hit that counted."""
    table, context = _tables(signals)
    weights = {**table, **context, **PRIOR_WEIGHTS, **RULES}
    return {name: (value, weights[name], value * weights[name]) for name, value in signals.items() if name in weights}


def total(signals: Mapping[str, Vector], weights: Mapping[str, float]) -> Vector:
    """Return the weighted sum of the signals that have a weight."""
    names = [name for name in weights if name in signals]
    if not names:
        return np.zeros(len(next(iter(signals.values()))))
    return weighed(np.array([signals[name] for name in names]), np.array([weights[name] for name in names]))


def context_signals(units: Units, alone: Vector) -> Signals:
    """Return what a unit's surroundings add: good neighbours, and its place among those of its talk or page."""
    height = np.exp(0.7 * (alone - alone.max()))
    return {
        "previous_score": units.shift(height, -1),
        "before_previous_score": units.shift(height, -2),
        "next_score": units.shift(height, 1),
        "place_on_page": np.minimum(units.place_in_scope(alone), 10) / 10,
    }
