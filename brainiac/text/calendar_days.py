"""Which days an expression of time means: calendar arithmetic, one function a form."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Literal

TimeKind = Literal["point", "range", "duration", "frequency"]
Tense = Literal["past", "mixed", "ahead"]

MONTHS = "january february march april may june july august september october november december".split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NUMBERS = {
    word: number
    for number, text in enumerate(
        "zero,one a an,two couple,three few,four,five several,six,seven,eight,nine,ten,eleven,twelve,thirteen,"
        "fourteen,fifteen,sixteen,seventeen,eighteen,nineteen,twenty".split(",")
    )
    for word in text.split()
} | {"thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "dozen": 12}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_FEASTS = {"christmas": (12, 25), "new year": (1, 1), "halloween": (10, 31), "valentine": (2, 14)}
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
FULL_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
COUNT = (
    r"(?:\d+(?:[.,]\d+)?|half\ an?|a\ couple\ of|a\ few|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven"
    r"|twelve|fifteen|twenty|thirty|forty|fifty|several|couple\ of|few)"
)
UNIT = r"(?:seconds|minute|min|hour|hr|day|night|week|weekend|fortnight|month|quarter|year|decade)s?"
YEAR = r"(?:19|20)\d\d"
Found = tuple[date, date, TimeKind] | None


def _month_number(text: str) -> int:
    found = re.search(MONTH, text)
    return next(i for i, name in enumerate(MONTHS, 1) if found and name.startswith(found.group()[:3]))


def _year_of(text: str) -> int | None:
    found = re.search(YEAR, text)
    return int(found.group()) if found else None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _one(day: date | None) -> Found:
    return (day, day, "point") if day else None


def month_span(year: int, month: int) -> tuple[date, date]:
    """Return the first and last day of a month."""
    first = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    return first, following - timedelta(days=1)


def _iso(text: str, today: date, tense: Tense) -> Found:
    return _one(_day(int(text[:4]), int(text[5:7]), int(text[8:10])))


def _slashed(text: str, today: date, tense: Tense) -> Found:
    first, second, year = (int(part) for part in re.split(r"[/.]", text))
    day, month = (first, second) if "." in text or first > 12 else (second, first)
    return _one(_day(year, month, day))


def _calendar_day(text: str, today: date, tense: Tense) -> Found:
    month, year = _month_number(text), _year_of(text)
    found = re.search(r"(?<!\d)\d{1,2}(?!\d)", text)
    number = int(found.group()) if found else 1
    if year is not None:
        return _one(_day(year, month, number))
    choices = [day for offset in (-1, 0, 1) if (day := _day(today.year + offset, month, number))]
    if tense == "past":
        choices = [day for day in choices if day <= today]
    elif tense == "ahead":
        choices = [day for day in choices if day >= today]
    return _one(min(choices, key=lambda day: abs(day - today), default=None))


def _month(text: str, today: date, tense: Tense) -> Found:
    month = _month_number(text)
    year = _year_of(text)
    if year is None:
        year = today.year
        if tense == "past" and month > today.month:
            year -= 1
        elif tense == "ahead" and month < today.month and not re.match(r"in|since|of|around|during|from", text):
            year += 1
    first, last = month_span(year, month)
    return first, last, "range"


def _year(text: str, today: date, tense: Tense) -> Found:
    year = _year_of(text) or today.year
    return date(year, 1, 1), date(year, 12, 31), "range"


def _since(text: str, today: date, tense: Tense) -> Found:
    if re.search(MONTH, text):
        found = _month(text, today, "past")
        return (found[0], max(today, found[0]), "range") if found else None
    return date(_year_of(text) or today.year, 1, 1), today, "range"


def number_of(text: str) -> float | None:
    """Return the number that digits or a number word stand for; None if there is none."""
    if digits := re.search(r"\d+(?:[.,]\d+)*", text):
        return float(digits.group().replace(",", ""))
    return next((float(_NUMBERS[word]) for word in re.findall(r"[a-z]+", text.lower())[::-1] if word in _NUMBERS), None)


def _counted(text: str) -> tuple[float, str]:
    count = 0.5 if "half a" in text else number_of(re.sub(UNIT, "", text)) or 1
    unit = next((u for u in re.findall(r"[a-z]+", text)[::-1] if re.fullmatch(UNIT, u)), "day")
    return count, unit.rstrip("s")


def shift(day: date, count: float, unit: str) -> date:
    """Return the day that lies so many units later (earlier when negative); month ends are kept within the month."""
    if unit in ("month", "quarter", "year", "decade"):
        months = int(count * {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit])
        year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
        if not 1 <= year <= 9998:
            return day
        return date(year, month + 1, min(day.day, month_span(year, month + 1)[1].day))
    days = count * {"week": 7, "weekend": 7, "fortnight": 14, "day": 1, "night": 1}.get(unit, 0)
    try:
        return day + timedelta(days=int(days))
    except OverflowError:
        return day


def _ago(text: str, today: date, tense: Tense) -> Found:
    count, unit = _counted(text)
    return _around(shift(today, -count, unit), unit)


def _ahead(text: str, today: date, tense: Tense) -> Found:
    count, unit = _counted(text)
    if "next" in text:
        return today, shift(today, count, unit), "range"
    return _around(shift(today, count, unit), unit)


def _around(day: date, unit: str) -> Found:
    """Widen a counted day to what the unit leaves open."""
    if unit in ("month", "quarter"):
        return (*month_span(day.year, day.month), "range")
    if unit in ("year", "decade"):
        return date(day.year, 1, 1), date(day.year, 12, 31), "range"
    return day, day, "point"


def _lately(text: str, today: date, tense: Tense) -> Found:
    count, unit = _counted(text)
    return shift(today, -count, unit), today, "range"


def _duration(text: str, today: date, tense: Tense) -> Found:
    count, unit = _counted(text)
    return shift(today, -count, unit), today, "duration"


def _moved(text: str, today: date, tense: Tense) -> Found:
    if text.startswith("since "):
        found = _moved(text.removeprefix("since "), today, tense)
        return (found[0], max(found[0], today), "range") if found else None
    direction, what = text.split(None, 1)
    step = {"last": -1, "past": -1, "previous": -1, "this": 0}.get(direction, 1)
    if re.fullmatch(DAY, what):
        return _one(_moved_weekday(what, step, today))
    if found := _moved_unit(what.rstrip("s"), step, today):
        return found
    if re.fullmatch(MONTH, what):
        number = _month_number(what)
        year = today.year + (step if (number >= today.month if step < 0 else number <= today.month) else 0)
        return (*month_span(year, number), "range")
    return _moved_feast(what, step, today)


def _moved_weekday(what: str, step: int, today: date) -> date:
    number = _weekday_number(what)
    if step < 0:
        return today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
    monday = today - timedelta(days=today.weekday())
    if step > 0:
        return monday + timedelta(days=7 + number)
    this_week = monday + timedelta(days=number)
    return this_week if this_week >= today else this_week + timedelta(days=7)


def _moved_unit(what: str, step: int, today: date) -> Found:
    monday = today - timedelta(days=today.weekday())
    if what in ("day", "night", "morning", "afternoon", "evening"):
        return _one(today + timedelta(days=step))
    if what in ("week", "fortnight"):
        first = monday + timedelta(days=7 * step)
        return first, first + timedelta(days=6), "range"
    if what == "weekend":
        first = monday + timedelta(days=5 + 7 * step)
        return first, first + timedelta(days=1), "range"
    if what == "month":
        moved = shift(today.replace(day=1), step, "month")
        return (*month_span(moved.year, moved.month), "range")
    if what == "quarter":
        first = shift(date(today.year, (today.month - 1) // 3 * 3 + 1, 1), 3 * step, "month")
        return first, month_span(*_year_month(shift(first, 2, "month")))[1], "range"
    if what in ("year", "decade"):
        year = today.year + step
        return date(year, 1, 1), date(year, 12, 31), "range"
    return None


def _year_month(day: date) -> tuple[int, int]:
    return day.year, day.month


def _moved_feast(what: str, step: int, today: date) -> Found:
    feast = next((name for name in _FEASTS if what.startswith(name)), "")
    if feast:
        this_year = date(today.year, *_FEASTS[feast])
        passed = this_year < today
        offset = step if step == 0 else (0 if passed else -1) if step < 0 else (1 if passed else 0)
        return _one(date(today.year + offset, *_FEASTS[feast]))
    if what in _SEASONS:
        first = date(today.year, _SEASONS[what], 1)
        offset = -1 if step < 0 and shift(first, 3, "month") > today else 1 if step > 0 and first <= today else 0
        first = first.replace(year=today.year + offset)
        return first, shift(first, 3, "month") - timedelta(days=1), "range"
    return None


def _near(text: str, today: date, tense: Tense) -> Found:
    offsets = {"the day before yesterday": -2, "yesterday": -1, "tomorrow": 1, "the day after tomorrow": 2}
    return _one(today + timedelta(days=offsets.get(text, 0)))


def _quarter(text: str, today: date, tense: Tense) -> Found:
    names = ("first", "second", "third", "fourth")
    number = next((i for i, name in enumerate(names) if name in text), None)
    number = int(text[1]) - 1 if number is None else number
    first = date(_year_of(text) or today.year, 3 * number + 1, 1)
    return first, shift(first, 3, "month") - timedelta(days=1), "range"


def _season(text: str, today: date, tense: Tense) -> Found:
    first = date(_year_of(text) or today.year, next(m for name, m in _SEASONS.items() if name in text), 1)
    return first, shift(first, 3, "month") - timedelta(days=1), "range"


def _feast(text: str, today: date, tense: Tense) -> Found:
    return _moved_feast(text.split(None, 1)[1], 1 if tense == "ahead" else -1, today)


def _weekday_number(text: str) -> int:
    return next(i for i, name in enumerate(DAYS) if name[:3] == text[:3])


def _weekday(text: str, today: date, tense: Tense) -> Found:
    number = _weekday_number(text.removeprefix("on "))
    if tense != "ahead":
        return _one(today - timedelta(days=(today.weekday() - number - 1) % 7 + 1))
    return _one(today + timedelta(days=(number - today.weekday() - 1) % 7 + 1))


def _nth(text: str, today: date, tense: Tense) -> Found:
    number = int(re.findall(r"\d+", text)[0])
    this_month = _day(today.year, today.month, number)
    if this_month and (this_month <= today) == (tense != "ahead"):
        return _one(this_month)
    other = shift(today.replace(day=1), 1 if tense == "ahead" else -1, "month")
    return _one(_day(other.year, other.month, number))


def _frequency(text: str, today: date, tense: Tense) -> Found:
    return today, today, "frequency"


def _clock(text: str, today: date, tense: Tense) -> Found:
    hour = number_of(text)
    has_mark = re.search(r":|m$|\.$|clock$", text)
    return _one(today) if has_mark and hour is not None and hour <= 24 else None


RESOLVERS: dict[str, Callable[[str, date, Tense], Found]] = {
    "iso": _iso,
    "slashed": _slashed,
    "day_month": _calendar_day,
    "month_day": _calendar_day,
    "month_year": _month,
    "month": _month,
    "year": _year,
    "since": _since,
    "ago": _ago,
    "lately": _lately,
    "ahead": _ahead,
    "moved": _moved,
    "near": _near,
    "quarter": _quarter,
    "season": _season,
    "feast": _feast,
    "weekday": _weekday,
    "nth": _nth,
    "frequency": _frequency,
    "duration": _duration,
    "clock": _clock,
}
