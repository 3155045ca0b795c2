"""kill -9 at random moments: the short form of benchmarks/kill9.py."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from kill9 import run


def test_eight_kills_lose_double_and_leave_nothing(tmp_path: Path):
    """One response a revision, every exchange once in short-term memory, no temporary, fold equal to the tree."""
    result = run(tmp_path / "brain", 8)
    assert result.is_clean, result
