"""What each figure of a statement weighs: learned, never set by hand (benchmarks/offline_weights.py prints it)."""

from __future__ import annotations

WEIGHTS = {
    "coverage": 3.77,
    "exactly": 0.91,
    "least": 0.31,
    "matter": 2.59,
    "unmet": -1.74,
    "density": 1.95,
    "lacks name": -0.76,
    "has name": -0.79,
    "holds": 1.14,
    "lacks kind": -2.69,
    "surely lacks kind": -1.79,
    "asks value": -0.25,
    "asks statement": 0.26,
    "asks yes or no": 0.87,
    "asks why or how": 0.51,
    "own": 0.79,
    "another's": -0.78,
    "past": -2.53,
    "another time": -2.03,
    "task": -1.17,
    "of oneself": 5.04,
    "always": -5.43,
}
