"""Hostile files in the inbox, kind by kind; benchmarks/hostile_inputs.py prints the whole table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.hostile_inputs import run
from tests.support.hostile import Case

SLOW = ("large", "odd text")  # answered, after a while: the benchmark's
UNPRIVILEGED = shutil.which("setpriv")


def is_quick(case: Case) -> bool:
    return case.kind not in SLOW


@pytest.mark.skipif(not UNPRIVILEGED, reason="needs setpriv, to be one to whom permissions apply")
def test_each_gets_what_its_rule_says_and_the_daemon_lives(tmp_path: Path) -> None:
    """An answer, an error file or nothing; the file untouched; an ordinary prompt answered after each kind."""
    rows = list(run(tmp_path / "brain", is_quick))
    assert len(rows) >= 200
    assert [] == [(row.case.kind, row.case.name, row.got, row.case.expected) for row in rows if not row.is_right]
