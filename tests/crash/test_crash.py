"""SIGKILL again and again under mixed load: the short form of benchmarks/crash.py."""

from __future__ import annotations

from pathlib import Path

from benchmarks.crash import run

SEED = 4


def test_kills_lose_double_and_leave_nothing(tmp_path: Path) -> None:
    """Every prompt has one answer and one place in memory, every line written by hand stands, nothing is half-done,
    and what is off the record or private stands only where it may."""
    result = run(tmp_path / "machine", kills=8, seed=SEED)
    assert {} == {name: what for name, what in result.wrong.items() if what}
    assert result.totals["prompts"] >= 5
    assert result.totals["edits"] >= 5
