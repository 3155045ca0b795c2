"""The weights of the ranking, learned by `benchmarks/locomo.py --learn` (figures: docs/decisions/ranker.md)."""

from __future__ import annotations

LEXICAL_WEIGHTS: dict[str, float] = {"own": 1.0}
DENSE_WEIGHTS: dict[str, float] = {"own": 1.0, "meaning": 1.0}
CONTEXT_WEIGHTS: dict[str, float] = {}
# Set by hand: no dialogue data shows how much place, connection and use should count, so they decide between equals.
PRIOR_WEIGHTS: dict[str, float] = {"folder": 0.3, "linked": 0.4, "connected": 0.05, "used": 0.1, "statement": 0.1}
