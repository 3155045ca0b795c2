"""Learn the weights of `brainiac/search/rank.py`: a softmax of each unit of evidence against all that is none.

Two passes as in the ranking: first what speaks for a unit alone, then what its surroundings add. Talk and single facts
weigh the same, however many questions each has. Few parameters, a ridge penalty, and cross-validation by source keep
it from learning a data set by heart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from brainiac.search import rank
from brainiac.search.rank import ALONE, AROUND, BY_HAND, Ranked, context_signals

RIDGE = 1e-3


@dataclass(frozen=True)
class Example:
    """A question's candidates and which of them are evidence.

    Attributes:
        kind: `talk` or `facts`: each kind weighs as much as the other.
    """

    is_learned_from: bool
    ranked: Ranked
    is_evidence: np.ndarray
    question: Any
    kind: str = "talk"


@dataclass(frozen=True)
class Weights:
    """Weights by signal, of the first pass and the second."""

    alone: dict[str, float]
    around: dict[str, float]


def learn(examples: Sequence[Example]) -> Weights:
    """Return the weights that put evidence first."""
    used = [x for x in examples if x.is_learned_from and x.is_evidence.any()]
    counts = Counter(x.kind for x in used)
    shares = [1 / (len(counts) * counts[x.kind]) for x in used]
    names = [name for name in ALONE if name in used[0].ranked.signals]  # by words alone there is no meaning
    labels = [x.is_evidence for x in used]
    first = _fit([_matrix(x.ranked, names) for x in used], labels, shares)
    alone = dict(zip(names, first, strict=True))
    second = _fit([_around(x.ranked, alone) for x in used], labels, shares)
    # the first column is the first pass itself: its scale is folded into the other weights
    around = dict(zip(AROUND, second[1:] / second[0], strict=True))
    return Weights(alone, around)


def score(ranked: Ranked, weights: Weights) -> np.ndarray:
    """Return the scores of a question's candidates."""
    learned = _around(ranked, weights.alone) @ np.array([1.0, *weights.around.values()])
    return learned + BY_HAND["only_asks"] * ranked.signals["only_asks"]


def _matrix(ranked: Ranked, names: Sequence[str]) -> np.ndarray:
    return np.stack([ranked.signals[name] for name in names], 1).astype(np.float64)


def _around(ranked: Ranked, alone: dict[str, float]) -> np.ndarray:
    scores = _matrix(ranked, list(alone)) @ np.array(list(alone.values()))
    found = context_signals(ranked.units, scores)
    return np.stack([scores, *(found[name] for name in AROUND)], 1)


def _fit(
    matrices: Sequence[np.ndarray], labels: Sequence[np.ndarray], shares: Sequence[float], steps: int = 25
) -> np.ndarray:
    """Minimize the softmax loss by Newton's method with step halving."""
    weights = np.zeros(matrices[0].shape[1])
    loss, gradient, curvature = _loss(matrices, labels, shares, weights)
    for _ in range(steps):
        step, size = np.linalg.solve(curvature, gradient), 1.0
        while size > 1e-4:
            attempt = _loss(matrices, labels, shares, weights - size * step)
            if attempt[0] < loss:
                break
            size /= 2
        else:
            break
        improved = loss - attempt[0]
        weights, (loss, gradient, curvature) = weights - size * step, attempt
        if improved < 1e-6:
            break
    return weights


def _loss(
    matrices: Sequence[np.ndarray], labels: Sequence[np.ndarray], shares: Sequence[float], weights: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    width = len(weights)
    loss, gradient, curvature = 0.0, np.zeros(width), np.zeros((width, width))
    for matrix, label, weight in zip(matrices, labels, shares, strict=True):
        others = matrix[label == 0]
        against = others @ weights
        for unit in matrix[label > 0]:
            own = unit @ weights
            highest = max(own, against.max(initial=own))
            share, own_share = np.exp(against - highest), np.exp(own - highest)
            total = share.sum() + own_share
            weighed = others * share[:, None]
            mean = (weighed.sum(0) + own_share * unit) / total
            scatter = (weighed.T @ others + own_share * np.outer(unit, unit)) / total - np.outer(mean, mean)
            part = weight / label.sum()
            loss += part * (np.log(total) + highest - own)
            gradient += part * (mean - unit)
            curvature += part * scatter
    ridge = RIDGE * np.eye(width)
    return loss + RIDGE / 2 * weights @ weights, gradient + RIDGE * weights, curvature + ridge


def write_weights(label: str, weights: Weights) -> None:
    """Replace a column of the learned tables in `brainiac/search/rank.py`."""
    path = Path(rank.__file__)
    text = path.read_text("utf-8")
    for name, value in (weights.alone | weights.around).items():
        row = rf"\1\2, {value:.2f})," if label == "hybrid" else rf"\g<1>{value:.2f}, \3),"
        text = re.sub(rf'^(    "{name}": \()(\S+), (\S+)\),$', row, text, flags=re.MULTILINE)
    path.write_text(text, "utf-8")
