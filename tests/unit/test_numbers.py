"""Dates in digits and times on the clock."""

from __future__ import annotations

from datetime import date

import pytest

from brainiac.text.dates import dates_in
from brainiac.text.tokens import clock_hours


@pytest.mark.parametrize(
    "text",
    ["2026年6月18日に", "18.6.2026", "18/6/2026", "on 2026-06-18 at two"],
)  # fmt: skip
def test_a_date_in_digits_is_read(text: str) -> None:
    """Year first or day first, whatever signs stand between."""
    assert {date(2026, 6, 18)} == {day for day, _ in dates_in(text)}


def test_numbers_below_each_other_are_no_date() -> None:
    """A year that ends a line makes no date with the numbers of the next lines."""
    assert [] == list(dates_in("It was 2026\n6\n18 people came.")) + list(dates_in("18.\n6.\n2026"))


def test_a_time_may_have_been_told_by_two_hours() -> None:
    """Half past seven is "half eight" in some languages, and both are said of the evening."""
    assert {"7:30": {7, 8, 19, 20}} == clock_hours("at 7:30, for 20 minutes")
