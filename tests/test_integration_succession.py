"""What came of what: which statement, and which part of it, a new one ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from promotions import make_brain, page_with, statements, tell

from brainiac.clock import ManualClock
from brainiac.history.why import why
from brainiac.integration.succession import remainder, succeeds
from brainiac.promotion.run import promote


@pytest.mark.parametrize(
    ("new", "old", "left"),
    [
        ("The choir moves to Fridays from next week", "The choir meets on Mondays", ""),
        ("User sold the Polo last week for £900", "The car is a 2009 VW Polo", ""),
        ("User and Ana pushed the exhibition: 3 July instead of 5 June", "The exhibition opens on 5 June", ""),
        (
            "User has switched from Emacs to Zed",
            "User has a ThinkPad, and they write code in Emacs",
            "User has a ThinkPad",
        ),
        (
            "The allotment now costs £90 a year",
            "Allotment 14 costs £75 a year, the water is free and it's near the canal",
            "Allotment 14: the water is free; it's near the canal",
        ),
        ("User rang Plusnet and left them", "User pays Plusnet £28 a month for broadband", ""),
    ],
)
def test_what_a_change_ends(new: str, old: str, left: str) -> None:
    """A sign of change, the same matter and another value, or what is left behind by name: the part that says it goes.

    Seeds: I3, I5.
    """
    assert succeeds(new, old)
    assert left == remainder(new, old)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User and Ana pushed the exhibition: 3 July instead of 5 June", "Ana is coming to stay on 12 June"),
        ("User's friend Ruth sold her bike", "User has a bike"),
        ("User also plays the cello on Fridays", "User plays the cello on Mondays"),
        ("User finished the marathon in Leeds", "User met Ana at the marathon in Leeds"),
        ("The old printer jammed and they stopped printing posters", "Posters go to the archive in Bath for 7 years"),
    ],
)
def test_what_it_does_not_end(new: str, old: str) -> None:
    """Another date than the one that is replaced, another's thing, an addition, and what did happen all stand."""
    assert not succeeds(new, old)


def test_a_statement_of_two_things_loses_only_what_ended(tmp_path: Path) -> None:
    """The rest stands on as a statement of ours, the old wording is under History with its dates, and `why` leads from
    the rest to the sentence that was typed. Seeds: I5, S7."""
    brain = make_brain(tmp_path / "b")
    tell(brain, "My friend Ruth has a studio in Bath, the rent is £300 a month.")
    promote(brain)
    assert isinstance(brain.clock, ManualClock)
    brain.clock.advance(86_400)
    tell(brain, "The rent of Ruth's studio went up to £340 a month.")
    promote(brain)
    rest = next(one for one in statements(brain) if "in Bath" in one)
    assert "£300" not in " ".join(statements(brain))
    assert "£340" in " ".join(statements(brain))
    page = page_with(brain, "in Bath")
    old = next(one for one in page.statements if one.is_history)
    assert "£300" in old.text
    assert ("2026-03-02", "2026-03-03") == (old.since, old.until)
    chain = next(one for one in why(brain, page.path).chains if one.text == rest)
    assert ["NEW", "UPDATE"] == [step.operation for step in chain.steps]
    assert "has a studio in Bath" in chain.steps[0].sources[0].user
    assert old.text == chain.steps[1].before
