"""When promotion begins by itself, by the quiet hook and by the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from brainiac_plugins.promotion.run import is_due, promote

from brainiac.history.undo import undo
from tests.support.commands import Shell
from tests.support.promotions import later, make_brain, pages, statements, tell

NAMES = "Ruth Tom Nadia Owen Beth Ines Marc Yara".split()


@pytest.mark.parametrize(
    ("told", "hours", "idle_seconds", "is_expected"),
    [(0, 99, 9999.0, False), (7, 1, 9999.0, False), (8, 0, 301.0, True), (8, 0, 299.0, False), (1, 37, 301.0, True)],
)
def test_quiet_and_enough_to_do(
    tmp_path: Path, told: int, hours: float, idle_seconds: float, is_expected: bool
) -> None:
    """Five minutes of quiet and eight events, or one older than a day. Seeds: S12, P5."""
    brain = make_brain(tmp_path / "b")
    for number in range(told):
        tell(brain, f"Note {number}.")
    later(brain, hours * 3600)
    assert is_expected == is_due(brain, idle_seconds)


def test_too_large_is_due_at_once(tmp_path: Path) -> None:
    """Short-term memory over its limit is promoted without waiting for quiet. Seeds: P5."""
    brain = make_brain(tmp_path / "b", "promotion: {max_tokens: 200}\n")
    tell(brain, "wordy " * 300)
    assert is_due(brain, 0.0)


def test_the_quiet_hook_promotes(tmp_path: Path) -> None:
    """The bundled plugin does it when it is due, and nothing before. Seeds: S9, S15."""
    brain = make_brain(tmp_path / "b")
    for name in NAMES:
        tell(brain, f"My friend {name} lives in Oslo.")
    brain.plugins.call("quiet", brain=brain, idle_seconds=60.0)
    assert [] == statements(brain)
    later(brain, 301)
    brain.plugins.call("quiet", brain=brain, idle_seconds=301.0)
    assert len(NAMES) == len(statements(brain))
    assert () == brain.short_term().memory.events


def test_the_command_promotes_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`brainiac promote` says what was filed."""
    brain = make_brain(tmp_path / "b", keyless=True)
    tell(brain, "/remember My friend Ruth lives in Oslo.")
    brain.close()
    assert "1 exchange filed; statements: 1 new" in Shell(capsys, str(tmp_path / "b"))("promote").out


def test_what_was_undone_is_open_again(tmp_path: Path) -> None:
    """After `undo` of a promotion its exchanges are looked at anew and decided once more, but not before something new
    is said or the command is given: taking back a step takes back its decisions too."""
    brain = make_brain(tmp_path / "b")
    for name in NAMES:
        tell(brain, f"My friend {name} lives in Oslo.")
    later(brain, 301)
    outcome = promote(brain)
    told = sorted(statements(brain))
    assert outcome.event is not None
    undo(brain, outcome.event)
    assert ([], len(NAMES)) == (statements(brain), len(brain.short_term().memory.events))
    later(brain, 301)
    assert not is_due(brain, 301.0)
    tell(brain, "Hello again!")
    later(brain, 301)
    assert is_due(brain, 301.0)
    promote(brain)
    assert told == sorted(statements(brain))
    assert () == brain.short_term().memory.events


@pytest.mark.parametrize("put_back_seconds", [0, 86400])
def test_a_page_edited_before_the_clock_was_put_back_is_written(tmp_path: Path, put_back_seconds: float) -> None:
    """What belongs on a page that a person edits waits a minute, not the days until the clock is there again."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My friend Ruth lives in Oslo.")
    promote(brain)
    page = brain.tree.long_term / next(path for path in pages(brain) if "ruth" in path)
    page.write_text(page.read_text() + "\nMine.\n")
    brain.observed.note_change(brain.tree.relative(page))
    later(brain, -put_back_seconds)
    tell(brain, "My friend Ruth plays chess.", minutes=0)
    promote(brain)
    assert bool(put_back_seconds) == any("chess" in text for text in statements(brain))
