"""What each figure of a statement weighs: learned, never set by hand (benchmarks/offline_weights.py prints it)."""

from __future__ import annotations

WEIGHTS = {
    "coverage": 2.29,
    "complete": 0.42,
    "inside": 0.2,
    "things": 2.3,
    "no things": 0.51,
    "misses things": -0.94,
    "misses focus": -0.14,
    "has focus": -0.5,
    "lacks name": -2.43,
    "has name": -0.29,
    "matter": 2.63,
    "density": 1.43,
    "holds": 1.46,
    "holds and covers": 0.11,
    "lacks kind": -2.4,
    "surely lacks kind": -2.08,
    "unchecked": 0.63,
    "own": 0.47,
    "another's": -1.56,
    "past": -2.55,
    "task": -1.45,
    "steps": 1.09,
    "decision": 1.15,
    "of oneself": 5.04,
    "always": -6.15,
}
