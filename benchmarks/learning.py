"""Learn the weights of `brainiac/search/weights.py`: a softmax of each unit of evidence against all that is none.

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

from brainiac.search import weights as current
from brainiac.search.rank import context_signals
from brainiac.search.retrieval import Ranked

RIDGE = 1e-3
MEANING = ("meaning", "meaning_previous", "meaning_next", "meaning_page", "about_meaning")
ALONE = (
    "covered", "trigram", "trigram_three", "trigram_page",
    "window_5", "with_previous", "same_speaker", "page", "page_covered", "window_covered", "before_previous",
    "about", "about_own", "about_first_person", "about_tells", "first_named", "asks", "answers", "answers_match",
    "opening", "names", "when_time", "when_time_own", "where_place", "count_number", "who_names", "day",
)  # fmt: skip
AROUND = ("previous_score", "before_previous_score", "next_score", "place_on_page")


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
    names = [*ALONE, *(name for name in MEANING if name in used[0].ranked.signals)]
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
    return learned + current.RULES["only_asks"] * ranked.signals["only_asks"]


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
    """Replace the learned tables in `brainiac/search/weights.py`."""
    path = Path(current.__file__)
    text = path.read_text("utf-8")
    name = {"lexical": "LEXICAL", "hybrid": "DENSE"}[label]
    for table, values in ((f"{name}_WEIGHTS", weights.alone), (f"{name}_CONTEXT_WEIGHTS", weights.around)):
        lines = "".join(f'    "{signal}": {value:.2f},\n' for signal, value in values.items())
        body = f"{table}: dict[str, float] = {{\n{lines}}}\n"
        text = re.sub(rf"^{table}: .*?\}}\n", lambda _, body=body: body, text, flags=re.DOTALL | re.MULTILINE)
    path.write_text(text, "utf-8")
