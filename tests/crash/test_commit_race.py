"""A writer that saves the same files as fast as it can, in another process, loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.commit_race import MODES, Race


@pytest.mark.parametrize("mode", MODES)
def test_no_save_of_a_racing_writer_is_lost(tmp_path: Path, mode: str) -> None:
    """After fifty commits every line that the writer saved stands in the tree; benchmarks/commit_race.py does 1,000."""
    (tmp_path / "brain").mkdir()
    result = Race(tmp_path / "brain", 0.01).run(50, mode)
    assert (50, 0, 0, True) == (result.commits, result.lost, result.ours_lost, result.is_fold_equal)
    assert result.saves > 0
