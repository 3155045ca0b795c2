"""Numbers that were said in words, dates with the month's name, and times on the clock, in any language."""

from __future__ import annotations

from datetime import date

import pytest

from brainiac.text.dates import dates_in
from brainiac.text.numbers import clock_hours, numbers, spelled_numbers


@pytest.mark.parametrize(
    ("stated", "quote", "is_said"),
    [
        ("six people", "6", False),
        ("6 people", "six of us", True),
        ("68,000 yen", "家賃、来月から六万八千円に上がります", True),
        ("her 90th birthday", "die Oma hat ihren Neunziger gefeiert", True),
        ("at 6", "o wpół do szóstej po południu", True),
        ("8 kilos", "her weight is fine", False),
        ("10 of them", "come on in", False),
        ("700 euros", "he paid seven of them", False),
    ],
)
def test_a_number_in_words_is_the_number(stated: str, quote: str, is_said: bool) -> None:
    """Number words of any language count, inflected ones too; part of another word does not."""
    assert (numbers([stated]) if is_said else set()) == spelled_numbers(stated, [quote])


@pytest.mark.parametrize(
    "text",
    ["on 18 June 2026 at two", "June 18, 2026", "18. Juni 2026", "18 de junio de 2026", "2026年6月18日に", "18.6.2026",
     "w czwartek 18 czerwca 2026", "18 Haziran 2026'da", "2026-06-18"],
)  # fmt: skip
def test_a_date_is_read_in_any_language(text: str) -> None:
    """By its digits, or by the month's name as it is written in a date."""
    assert {date(2026, 6, 18)} == {day for day, _ in dates_in(text)}


def test_numbers_below_each_other_are_no_date() -> None:
    """A year that ends a line makes no date with the numbers of the next lines."""
    assert [] == list(dates_in("It was 2026\n6\n18 people came.")) + list(dates_in("18.\n6.\n2026"))


def test_a_time_may_have_been_told_by_two_hours() -> None:
    """Half past seven is "half eight" in some languages, and both are said of the evening."""
    assert {"7:30": {7, 8, 19, 20}} == clock_hours("at 7:30, for 20 minutes")
