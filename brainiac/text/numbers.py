"""Numbers in texts of any language: digits, number words, and times on the clock."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_NUMBER = re.compile(r"\d+")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?!\d)|\d+")
_CLOCK = re.compile(r"(?<!\d)(\d{1,2})[:.h](00|15|30|45)(?!\d)")
TOKEN = re.compile(r"\d+|[^\W\d_]+")  # a group of digits, or a word
_MIN_PREFIX = 4  # letters from which on an inflected number word is recognized by its beginning
_MIN_LETTERS = 3  # a shorter number word of one language is any word of another


def numbers(texts: Iterable[str]) -> set[int]:
    """Return the numbers in texts, each group of digits by itself: of a date its year, month and day; 0 is left out."""
    return {int(digits[:18]) for text in texts for digits in _NUMBER.findall(text)} - {0}


def spelled_numbers(text: str, quotes: Iterable[str]) -> set[int]:
    """Return those numbers of a text that quotes have as words, in any language.

    Args:
        text: Has the numbers in digits.
        quotes: May have them as number words.

    Returns:
        The numbers as `numbers` returns them: of `1,200` the groups 1 and 200.
    """
    tokens = {token for quote in quotes for token in TOKEN.findall(folded(quote))}
    whole = " ".join(map(folded, quotes))
    spelled: set[int] = set()
    for written in _GROUPED.findall(text):
        value = int(re.sub(r"\D", "", written)[:12])
        if any(_is_spelled(form, tokens, whole) for form in _forms(value)):
            spelled |= numbers([written])
    return spelled


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


def _is_spelled(form: str, tokens: set[str], whole: str) -> bool:
    """Return whether quotes have the words of a number.

    Args:
        form: The number in words, in one language.
        tokens: The words of the quotes.
        whole: The quotes as one text, for scripts without spaces.
    """
    if not form.isascii() and any(unicodedata.name(sign, "").startswith("CJK") for sign in form):
        return form in whole
    parts = TOKEN.findall(form)
    return bool(parts) and all(_stands(part, tokens) for part in parts)


def _stands(part: str, tokens: set[str]) -> bool:
    """Return whether one word of a number is among the words of the quotes, perhaps with another ending."""
    if part in tokens:
        return len(part) >= _MIN_LETTERS
    # inflection changes the ending: the ordinal "szósty" is said as "szóstej"
    stem = part[:-1] if len(part) > _MIN_PREFIX else part
    return len(part) >= _MIN_PREFIX and any(token.startswith(stem) for token in tokens)


@lru_cache(maxsize=256)
def _forms(value: int) -> frozenset[str]:
    """Return a number as words, cardinal and ordinal, in every language of num2words."""
    from num2words import CONVERTER_CLASSES  # type: ignore[import-untyped]  # needed for a number that nobody typed

    forms = set()
    for converter in CONVERTER_CLASSES.values():
        for spell in (converter.to_cardinal, converter.to_ordinal):
            try:
                forms.add(folded(str(spell(value))))
            except Exception:  # noqa: BLE001  # a language that has no such form raises whatever it likes
                continue
    return frozenset(forms)


def folded(text: str) -> str:
    """Return a text casefolded and with one spelling for each sign, for comparing."""
    return unicodedata.normalize("NFKC", text).casefold()
