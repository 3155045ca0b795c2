"""Real editors and tools, each saving in its own way: the short form of benchmarks/editors.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import editors
from benchmarks.editors import SUITE, Row
from tests.support.living import living, unfolded


def rows_of(tmp_path: Path, scenario: editors.Scenario) -> list[Row]:
    """Run a scenario with a daemon of its own and check that the journal tells what stands in the tree."""
    root = editors.brain(tmp_path / "brain", SUITE)
    with living(root) as one:
        rows = list(scenario(one, SUITE))
        assert 0 == one.terminate()
    assert [] == unfolded(root)
    return rows


@pytest.mark.skipif(bool(editors.missing()), reason=f"not installed: {', '.join(editors.missing())}")
def test_each_editor_s_prompt_is_answered_once_with_its_final_text(tmp_path: Path) -> None:
    """And each editor's line in a memory stands in the tree and in the journal's fold; no edit is lost."""
    rows = rows_of(tmp_path, editors.tools)
    assert len(editors.TOOLS) == len(rows)
    assert [] == [row for row in rows if not row.is_right]


def test_renaming_and_moving_answered_prompts_costs_no_answer(tmp_path: Path) -> None:
    """The response comes along, and short-term memory holds the exchange once."""
    assert [] == [row for row in rows_of(tmp_path, editors.moves) if not row.is_right]


def test_an_editor_that_autosaves_and_renames_costs_one_answer(tmp_path: Path) -> None:
    """As Obsidian does: empty first, saved as one types, renamed in the middle, a pause; stale buffers lose nothing."""
    assert [] == [row for row in rows_of(tmp_path, editors.obsidian) if not row.is_right]


@pytest.mark.skipif("git" in editors.missing(), reason="git is not installed")
def test_git_may_take_the_inbox_and_memories_back_and_forth(tmp_path: Path) -> None:
    """Checkout, stash and rebase in a brain kept in git: nothing is answered twice, what git restores stands."""
    assert [] == [row for row in rows_of(tmp_path, editors.git) if not row.is_right]
