"""`read_units`: the units of a page, whatever stands in it, cover it in order; edits keep all else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brainiac.formats.markdown import PlacedEvent, edited
from brainiac.formats.page import Statement, read_units

PAGE = """\
# Ann
Some words.

- Ann lives in Lyon. ^a1b2
  - near the river

### 2026-11-22T10:00:00Z
<!-- exchange: 01A -->
**User:** "Hello"
- an item within it

### 2026-11-22 Dinner
- with Bob
"""
LINES = st.sampled_from(
    [*PAGE.splitlines(keepends=True), "```\n", "---\n", "\r\n", "## History\r\n", "  more", "1. a\n"]
)


def test_a_page_is_its_exchanges_its_statements_and_the_text_between() -> None:
    """A list item of an exchange is part of it; a heading with a day alone begins one, unless only dated ones do."""
    kinds = [type(unit.part) for unit in read_units(PAGE)]
    assert kinds == [type(None), Statement, type(None), PlacedEvent, PlacedEvent]
    kinds = [type(unit.part) for unit in read_units(PAGE, only_dated=True)]
    assert kinds == [type(None), Statement, type(None), PlacedEvent, type(None), Statement]


@given(st.lists(LINES).map("".join), st.booleans())
def test_units_cover_any_text_without_gaps(text: str, only_dated: bool) -> None:
    """They are in order, and what an edit does not name stays byte for byte."""
    units = list(read_units(text, only_dated=only_dated))
    assert "".join(text[unit.start : unit.end] for unit in units) == text
    assert [unit.start for unit in units[1:]] == [unit.end for unit in units[:-1]]
    kept = "".join(text[unit.start : unit.end] for unit in units if unit.part is None)
    assert edited(text, ((unit.start, unit.end, "") for unit in units if unit.part)) == kept
