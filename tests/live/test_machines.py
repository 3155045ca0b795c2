"""A clone of a brain on another machine; `benchmarks/sync.py` has real Syncthing between two and three daemons."""

from __future__ import annotations

from pathlib import Path

from benchmarks.sync import clone


def test_a_clone_answers_nothing_again(tmp_path: Path) -> None:
    """A daemon in a clone knows from the other device's journal what was answered; a new prompt it answers."""
    result = clone(tmp_path, prompts=25)
    assert result.is_good, result
