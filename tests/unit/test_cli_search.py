"""`brainiac search` and `brainiac reindex` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.testing import make_brain
from tests.support.commands import Shell


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["botanist", "after:2027-13"], "after:2027-13 is no time; give a day (2026-03-01)"),
        (["botanist", "before:2026-02-30"], "before:2026-02-30 is no time"),
        (["botanist", 'after:"no day"'], 'after:"no day" is no time'),
        (
            ["botanist", "type:banana"],
            "there are concrete, events, skills, short-term, archive",
        ),
        ([""], "there is nothing to look for; give words"),
        (["botanist", "type:banana", "after:soon"], "after:soon"),
    ],
)
def test_a_field_that_cannot_be_read_is_refused(shell: Shell, words: list[str], told: str) -> None:
    """Nothing is shown as if a filter had counted that did not."""
    done = shell("search", *words)
    assert (1, "", True) == (done.code, done.out, told in done.err)


def test_fields_that_can_be_read_narrow(shell: Shell, tmp_path: Path) -> None:
    """Days in words, folders of one's own as types, and words left out behind `--`."""
    folder = tmp_path / "brain/memory/long_term/Plants"
    folder.mkdir()
    (folder / "fern.md").write_text("---\ncreated_at: 2020-01-01T00:00:00Z\n---\n# Fern\n\n- A botanist loves ferns.\n")
    assert "ferns" in shell("search", "botanist", "type:Plants").out
    assert "Oslo" not in shell("search", "botanist", "type:plants").out
    for field in (
        "after:yesterday",
        'after:"last week"',
        "after:7d",
        "after:22/11/2026",
        "type:concrete",
        "type:event",
    ):
        assert "ferns" not in shell("search", "botanist", field).out
    assert "ferns" in shell("search", "botanist", "before:yesterday").out
    done = shell("search", "botanist", "--brain", str(tmp_path / "brain"), "--", "-Oslo")
    assert (True, False) == ("ferns" in done.out, "Oslo" in done.out)
