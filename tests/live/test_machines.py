"""Real daemons on several machines with one memory between them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.sync import clone, share


def test_a_clone_answers_nothing_again(tmp_path: Path) -> None:
    """A daemon in a clone knows from the other device's journal what was answered; a new prompt it answers."""
    result = clone(tmp_path, prompts=60)
    assert result.is_good, result


@pytest.mark.skipif(shutil.which("syncthing") is None, reason="Syncthing is not installed")
def test_real_syncthing_between_two_daemons(tmp_path: Path) -> None:
    """Prompts, edits and moves on both sides, online and offline by turns: when both have met nothing is lost,
    doubled or left over."""
    result = share(tmp_path, devices=2, prompts=8)
    assert result.is_good, result
