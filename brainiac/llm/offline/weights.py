"""What each figure of a statement weighs: learned, never set by hand (benchmarks/offline_weights.py prints it)."""

from __future__ import annotations

WEIGHTS = {
    "coverage": 3.62,
    "exactly": 0.88,
    "least": 0.24,
    "matter": 2.55,
    "unmet": -1.71,
    "density": 1.9,
    "lacks name": -0.79,
    "has name": -0.77,
    "holds": 1.07,
    "lacks kind": -2.72,
    "surely lacks kind": -1.79,
    "asks value": -0.25,
    "asks statement": 0.2,
    "asks yes or no": 0.86,
    "asks why or how": 0.51,
    "own": 0.79,
    "another's": -0.79,
    "past": -2.53,
    "another time": -2.03,
    "task": -1.18,
    "of oneself": 5.03,
    "always": -5.12,
}
