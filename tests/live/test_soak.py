"""Mixed load with faults: the short form of benchmarks/soak.py."""

from __future__ import annotations

from pathlib import Path

from benchmarks.soak import run


def test_under_mixed_load_and_faults_nothing_is_lost_doubled_or_left_open(tmp_path: Path) -> None:
    """Prompts, edits, moves, a faulty plugin and provider: no edit lost, no answer doubled, no descriptor leaked."""
    report = run(tmp_path / "brain", 5.0, cycle_seconds=5.0)
    assert [] == report.wrong
    assert report.plugin_faults > 0
    assert report.quarters[-1].descriptors <= report.quarters[0].descriptors + 5
