"""What each figure of a statement weighs: learned, never set by hand (benchmarks/offline_weights.py prints this table)."""

from __future__ import annotations

WEIGHTS = {
    "coverage": 2.26,
    "inside": 0.14,
    "things": 2.20,
    "no things": 0.59,
    "misses things": -0.81,
    "misses focus": -0.35,
    "has focus": -0.92,
    "lacks name": -2.54,
    "has name": -0.34,
    "matter": 2.63,
    "density": 1.57,
    "holds": 1.72,
    "holds and covers": 0.12,
    "lacks kind": -2.78,
    "unchecked": 0.74,
    "own": 0.69,
    "another's": -1.42,
    "past": -0.80,
    "task": -1.39,
    "steps": 1.10,
    "decision": 1.16,
    "of oneself": 6.0,
}
BIAS = -6.26  # from the sum and this on, 0 is where an answer and none are equally likely
