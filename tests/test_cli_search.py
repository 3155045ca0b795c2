"""`brainiac search` and `brainiac reindex` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.testing import make_brain
from tests.commands import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    brain = make_brain(tmp_path / "brain")
    (brain.tree.long_term / "concrete/mira.md").write_text("# Mira\n\n- Mira is a botanist in Oslo.\n")
    brain.close()
    return Shell(capsys, str(tmp_path / "brain"))


def test_search_finds_what_was_written_a_moment_ago(shell: Shell) -> None:
    """A page saved by hand is found at once, with its path."""
    found = shell("search", "botanist", "--json").json
    assert "memory/long_term/concrete/mira.md" == found["hits"][0]["path"]
    assert "botanist in Oslo" in shell("search", "who", "is", "Mira").out


def test_search_that_finds_nothing_says_so(shell: Shell) -> None:
    """A miss is told, and is no error."""
    done = shell("search", "xylophone")
    assert 0 == done.code
    assert (done.out + done.err).strip()


def test_reindex_keeps_what_is_found(shell: Shell) -> None:
    """The index is derived: built anew, it finds the same page first."""
    before = shell("search", "botanist", "--json").json["hits"][0]
    assert 0 == shell("reindex").code
    after = shell("search", "botanist", "--json").json["hits"][0]
    assert (before["path"], before["text"]) == (after["path"], after["text"])
