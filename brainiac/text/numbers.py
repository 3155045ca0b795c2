"""Numbers in texts of any language, by their digits, and times on the clock."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"\d+")
_CLOCK = re.compile(r"(?<!\d)(\d{1,2})[:.h](00|15|30|45)(?!\d)")


def numbers(texts: Iterable[str]) -> set[int]:
    """Return the numbers in texts, each group of digits by itself: of a date its year, month and day; 0 is left out."""
    return {int(digits[:18]) for text in texts for digits in _NUMBER.findall(text)} - {0}


def clock_hours(text: str) -> dict[str, set[int]]:
    """Return the times of a text at a full, half or quarter hour, each with the hours that may be named when saying it.

    "Half past seven" names seven, "halb acht" eight, both in the evening too.
    """
    return {
        match.group(): {
            hour for named in (int(match[1]), int(match[1]) + 1) for hour in (named, named % 12, named % 12 + 12)
        }
        for match in _CLOCK.finditer(text)
    }
