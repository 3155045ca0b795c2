"""What each figure of a statement weighs: learned, never set by hand (benchmarks/offline_weights.py prints it)."""

from __future__ import annotations

WEIGHTS = {
    "coverage": 3.75,
    "exactly": 0.69,
    "least": 0.42,
    "matter": 2.77,
    "unmet": -1.92,
    "density": 1.98,
    "lacks name": -0.92,
    "has name": -0.79,
    "holds": 1.07,
    "lacks kind": -2.66,
    "surely lacks kind": -1.76,
    "asks value": -0.2,
    "asks statement": 0.26,
    "asks yes or no": 0.91,
    "asks why or how": 0.5,
    "own": 0.78,
    "another's": -0.89,
    "past": -2.52,
    "task": -1.32,
    "of oneself": 5.05,
    "always": -5.6,
}
