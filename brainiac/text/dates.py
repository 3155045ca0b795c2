"""Time expressions ("last March", "on Tuesday") in a text, and the days they mean when it was written.

English ones by patterns of our own, fast enough for every text that is taken in; those of other languages, which only
questions are looked through for, by dateparser. Also the dates that a text has in digits, in any language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

# --- resolving an expression to days: one function for each group of `_PATTERN` --------------------------------------
#
# Each takes the expression in lower case, the day it was written on, and the tense of its sentence, and returns
# the first and last day it may mean with the kind, or None where it means no day ("31 February").

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
_Resolved = tuple[date, date, TimeKind] | None  # first day, last day, kind


def _month_number(text: str) -> int:
    """Return the number, 1 to 12, of the month that a text names."""
    match = re.search(MONTH, text)
    return next(i for i, name in enumerate(MONTHS, 1) if match and name.startswith(match.group()[:3]))


def _year_of(text: str) -> int | None:
    """Return the four-digit year in a text; None where there is none."""
    match = re.search(YEAR, text)
    return int(match.group()) if match else None


def _date_or_none(year: int, month: int, day: int) -> date | None:
    """Return a date; None where the calendar has no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _single_day(day: date | None) -> _Resolved:
    """Return a day as a resolved expression that begins and ends on it."""
    return (day, day, "point") if day else None


def month_span(year: int, month: int) -> tuple[date, date]:
    """Return the first and last day of a month."""
    first = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    return first, following - timedelta(days=1)


def _iso(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "2026-03-14"."""
    return _single_day(_date_or_none(int(text[:4]), int(text[5:7]), int(text[8:10])))


def _slashed(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "3/14/2026", month first, and "14.3.2026" or "14/3/2026", day first."""
    first, second, year = (int(part) for part in re.split(r"[/.]", text))
    day, month = (first, second) if "." in text or first > 12 else (second, first)
    return _single_day(_date_or_none(year, month, day))


def _calendar_day(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "May 23" or "23 May 2026"; without a year the nearest such day that fits the tense."""
    month, year = _month_number(text), _year_of(text)
    match = re.search(r"(?<!\d)\d{1,2}(?!\d)", text)
    number = int(match.group()) if match else 1
    if year is not None:
        return _single_day(_date_or_none(year, month, number))
    choices = [day for offset in (-1, 0, 1) if (day := _date_or_none(today.year + offset, month, number))]
    if tense == "past":
        choices = [day for day in choices if day <= today]
    elif tense == "ahead":
        choices = [day for day in choices if day >= today]
    return _single_day(min(choices, key=lambda day: abs(day - today), default=None))


def _month(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "in March" or "March 2026"; without a year that of this year, or of the year that the tense asks for."""
    month = _month_number(text)
    year = _year_of(text)
    if year is None:
        year = today.year
        # "my trip in March" has no verb of the past, and so counts as `ahead`, but may be over; "by March" is not
        may_be_over = re.match(r"in|since|of|around|during|from", text)
        if tense == "past" and month > today.month:
            year -= 1
        elif tense == "ahead" and month < today.month and not may_be_over:
            year += 1
    return (*month_span(year, month), "range")


def _year(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "in 2024"."""
    year = _year_of(text) or today.year
    return date(year, 1, 1), date(year, 12, 31), "range"


def _since(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "since March" or "since 2024": from its first day until today."""
    if re.search(MONTH, text):
        month = _month(text, today, "past")
        return (month[0], max(today, month[0]), "range") if month else None
    return date(_year_of(text) or today.year, 1, 1), today, "range"


def number_of(text: str) -> float | None:
    """Return the number that digits or a number word stand for; None if there is none."""
    if digits := re.search(r"\d+(?:,\d+)*(?:\.\d+)?", text):
        return float(digits.group().replace(",", ""))
    # of "a dozen" the last word is the number, although "a" is one too
    last_words = reversed(re.findall(r"[a-z]+", text.lower()))
    return next((float(_NUMBERS[word]) for word in last_words if word in _NUMBERS), None)


def _counted(text: str) -> tuple[float, str]:
    """Return the number and the unit, in the singular, of an expression such as "three weeks ago": (3, "week")."""
    count = 0.5 if "half a" in text else number_of(re.sub(UNIT, "", text)) or 1
    last_words = reversed(re.findall(r"[a-z]+", text))
    unit = next((word for word in last_words if re.fullmatch(UNIT, word)), "day")
    return count, unit.rstrip("s")


def shift(day: date, count: float, unit: str) -> date:
    """Return the day `count` units later, earlier when negative; a day that its month lacks becomes its last day.

    The same day is returned where the result would lie outside the calendar.
    """
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


def _ago(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "three weeks ago"."""
    count, unit = _counted(text)
    return _unit_around(shift(today, -count, unit), unit)


def _ahead(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "in three weeks", and "the next three weeks" from today on."""
    count, unit = _counted(text)
    if "next" in text:
        return today, shift(today, count, unit), "range"
    return _unit_around(shift(today, count, unit), unit)


def _unit_around(day: date, unit: str) -> _Resolved:
    """Return the days that "two months ago" may mean: the whole month or year that a day is in, else the day itself."""
    if unit in ("month", "quarter"):
        return (*month_span(day.year, day.month), "range")
    if unit in ("year", "decade"):
        return date(day.year, 1, 1), date(day.year, 12, 31), "range"
    return day, day, "point"


def _lately(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "the last three weeks": those until today."""
    count, unit = _counted(text)
    return shift(today, -count, unit), today, "range"


def _duration(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "for three weeks", counted back from today."""
    count, unit = _counted(text)
    return shift(today, -count, unit), today, "duration"


def _stepped(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "last", "this" or "next" with a weekday, unit, month or feast: "last March", "next Tuesday".

    "Since last March" is from its first day until today.
    """
    if text.startswith("since "):
        days = _stepped(text.removeprefix("since "), today, tense)
        return (days[0], max(days[0], today), "range") if days else None
    direction, unit = text.split(None, 1)
    step = {"last": -1, "past": -1, "previous": -1, "this": 0}.get(direction, 1)
    if re.fullmatch(DAY, unit):
        return _single_day(_stepped_weekday(unit, step, today))
    if days := _stepped_unit(unit.rstrip("s"), step, today):
        return days
    if re.fullmatch(MONTH, unit):
        month = _month_number(unit)
        year = _stepped_year(step, today, is_over=month < today.month, is_ahead=month > today.month)
        return (*month_span(year, month), "range")
    return _stepped_feast(unit, step, today)


def _stepped_year(step: int, today: date, *, is_over: bool, is_ahead: bool) -> int:
    """Return the year of the last (step -1), this (0) or next (1) March, summer or Christmas.

    Args:
        step: The direction.
        today: The day it is counted from.
        is_over: Whether this year's is over, so that it is the last one.
        is_ahead: Whether this year's is still to come, so that it is the next one.
    """
    is_in_this_year = is_over if step < 0 else is_ahead
    return today.year if is_in_this_year else today.year + step


def _stepped_weekday(name: str, step: int, today: date) -> date:
    """Return the day of "last Tuesday" (step -1), "this Tuesday" (0) or "next Tuesday" (1)."""
    number = _weekday_number(name)
    if step < 0:
        return today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
    monday = today - timedelta(days=today.weekday())
    if step > 0:
        return monday + timedelta(days=7 + number)
    this_week = monday + timedelta(days=number)
    return this_week if this_week >= today else this_week + timedelta(days=7)


def _stepped_unit(unit: str, step: int, today: date) -> _Resolved:
    """Resolve "last week" (step -1), "this week" (0) or "next week" (1), likewise other units."""
    monday = today - timedelta(days=today.weekday())
    if unit in ("day", "night", "morning", "afternoon", "evening"):
        return _single_day(today + timedelta(days=step))
    if unit in ("week", "fortnight"):
        first = monday + timedelta(days=7 * step)
        return first, first + timedelta(days=6), "range"
    if unit == "weekend":
        first = monday + timedelta(days=5 + 7 * step)
        return first, first + timedelta(days=1), "range"
    if unit == "month":
        month = shift(today.replace(day=1), step, "month")
        return (*month_span(month.year, month.month), "range")
    if unit == "quarter":
        first = shift(date(today.year, (today.month - 1) // 3 * 3 + 1, 1), 3 * step, "month")
        return first, shift(first, 3, "month") - timedelta(days=1), "range"
    if unit in ("year", "decade"):
        year = today.year + step
        return date(year, 1, 1), date(year, 12, 31), "range"
    return None


def _stepped_feast(name: str, step: int, today: date) -> _Resolved:
    """Resolve "last", "this" or "next" (step -1, 0 or 1) with a feast or a season; None for any other name.

    The last one is over today; the next one has not begun, but a feast may be today.
    """
    feast = next((feast for feast in _FEASTS if name.startswith(feast)), "")
    if feast:
        day = date(today.year, *_FEASTS[feast])
        return _single_day(day.replace(year=_stepped_year(step, today, is_over=day < today, is_ahead=day >= today)))
    if name in _SEASONS:
        first = date(today.year, _SEASONS[name], 1)
        is_over = shift(first, 3, "month") <= today
        first = first.replace(year=_stepped_year(step, today, is_over=is_over, is_ahead=first > today))
        return first, shift(first, 3, "month") - timedelta(days=1), "range"
    return None


def _near_today(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "yesterday", "today", "tomorrow" and the days beside them."""
    offsets = {"the day before yesterday": -2, "yesterday": -1, "tomorrow": 1, "the day after tomorrow": 2}
    return _single_day(today + timedelta(days=offsets.get(text, 0)))


def _quarter(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "Q2 2026" or "the second quarter"; without a year that of this year."""
    names = ("first", "second", "third", "fourth")
    number = next((i for i, name in enumerate(names) if name in text), None)
    number = int(text[1]) - 1 if number is None else number
    first = date(_year_of(text) or today.year, 3 * number + 1, 1)
    return first, shift(first, 3, "month") - timedelta(days=1), "range"


def _season(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "spring 2026"."""
    first = date(_year_of(text) or today.year, next(m for name, m in _SEASONS.items() if name in text), 1)
    return first, shift(first, 3, "month") - timedelta(days=1), "range"


def _feast(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "at Christmas": the next one or the last one, by the tense."""
    return _stepped_feast(text.split(None, 1)[1], 1 if tense == "ahead" else -1, today)


def _weekday_number(text: str) -> int:
    """Return the number of a weekday, Monday being 0."""
    return next(i for i, name in enumerate(DAYS) if name[:3] == text[:3])


def _weekday(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "on Tuesday": the next one where the tense is `ahead`, else the last one."""
    number = _weekday_number(text.removeprefix("on "))
    if tense != "ahead":
        return _single_day(today - timedelta(days=(today.weekday() - number - 1) % 7 + 1))
    return _single_day(today + timedelta(days=(number - today.weekday() - 1) % 7 + 1))


def _day_of_month(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "on the 14th": the next such day where the tense is `ahead`, else the last one."""
    number, is_ahead = int(re.findall(r"\d+", text)[0]), tense == "ahead"
    this_month = _date_or_none(today.year, today.month, number)
    if this_month and (this_month > today if is_ahead else this_month <= today):
        return _single_day(this_month)
    other = shift(today.replace(day=1), 1 if is_ahead else -1, "month")
    return _single_day(_date_or_none(other.year, other.month, number))


def _frequency(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "every week": today, since a habit has no day of its own."""
    return today, today, "frequency"


def _clock(text: str, today: date, tense: Tense) -> _Resolved:
    """Resolve "at 5pm": today; None where the number is no time of day."""
    hour = number_of(text)
    is_time = re.search(r":|m$|\.$|clock$", text)  # 5:30, 5pm, 5 p.m., 5 o'clock
    return _single_day(today) if is_time and hour is not None and hour <= 24 else None


_RESOLVERS: dict[str, Callable[[str, date, Tense], _Resolved]] = {
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
    "moved": _stepped,
    "near": _near_today,
    "quarter": _quarter,
    "season": _season,
    "feast": _feast,
    "weekday": _weekday,
    "nth": _day_of_month,
    "frequency": _frequency,
    "duration": _duration,
    "clock": _clock,
}


# --- which expressions a text holds ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time expression.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last.
        text: The expression as written.
        earliest: First day it may mean.
        latest: Last day it may mean.
        kind: `point` (a day), `range` (several days), `duration` (a length, counted back from the moment),
            `frequency` (a habit; the days are the moment's own).
    """

    start: int
    end: int
    text: str
    earliest: date
    latest: date
    kind: TimeKind


_TIME_WORDS = frozenset(  # a text without any of these and without digits has no time expression
    f"{' '.join(MONTHS + DAYS)} jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs "
    f"fri sat sun "
    "today tonight yesterday tomorrow day days daily weekday weekdays week weeks weekend weekends weekly weeknights "
    "fortnight month months monthly quarter quarters year years yearly annually night nights nightly morning mornings "
    "afternoon afternoons evening evenings hour hours minute minutes min mins second seconds decade decades spring "
    "summer autumn fall winter christmas halloween valentine new mondays tuesdays wednesdays thursdays fridays "
    "saturdays sundays q".split()
)
_WORDS = re.compile(r"[a-z]+|\d")
_PATTERN = rf"""\b(?:
      (?P<iso>{YEAR}-\d\d-\d\d(?:T[\d:.]+Z?)?)
    | (?P<slashed>\d{{1,2}}[/.]\d{{1,2}}[/.]{YEAR})
    | (?P<frequency>every\ (?:other\ |single\ |second\ )?(?:{DAY}|{UNIT}|morning|evening|afternoon|{COUNT}\ {UNIT})
        (?:\ (?:morning|afternoon|evening|night))?
        | (?:once|twice|thrice|{COUNT}\ (?:times|{UNIT}))\ (?:a|an|per|each|every)\ {UNIT}
        | (?:once|twice)\ (?:daily|weekly|monthly|yearly) | daily | weekly | monthly | yearly | annually | nightly
        | (?:on\ )?(?:{FULL_DAY}s|weekdays|weekends|weeknights) | each\ {UNIT} | in\ the\ (?:mornings|evenings))
    | (?P<day_month>(?:the\ )?\d{{1,2}}(?:st|nd|rd|th)?\ (?:of\ )?{MONTH}(?:,?\ {YEAR})?)
    | (?P<month_year>(?:in\ |by\ |until\ |of\ |around\ |during\ |before\ |after\ |from\ )?
        (?:early\ |mid[\ -]?|late\ )?{MONTH},?\ {YEAR})
    | (?P<month_day>{MONTH}\ (?:the\ )?\d{{1,2}}(?:st|nd|rd|th)?(?![\d:])(?:,?\ {YEAR})?)
    | (?P<ago>{COUNT}\ {UNIT}\ (?:ago|back))
    | (?P<lately>(?:the\ |these\ |in\ the\ |over\ the\ )?(?:last|past)\ {COUNT}\ {UNIT})
    | (?P<ahead>(?:in|within)\ {COUNT}\ {UNIT}(?:\ from\ now|'\ time)? | (?:the\ )?next\ {COUNT}\ {UNIT})
    | (?P<moved>(?!(?:last|past|coming|previous)\ (?:day|hour|minute|second)s?\b)
        (?:last|past|this|next|coming|previous|since\ last)\ (?:{FULL_DAY}|{DAY}\b|{UNIT}|morning|afternoon
        |evening|spring|summer|autumn|fall|winter|christmas|halloween|new\ year(?:'s)?|{MONTH}))
    | (?P<near>the\ day\ before\ yesterday|the\ day\ after\ tomorrow|today|tonight|yesterday|tomorrow)
    | (?P<since>since\ (?:{MONTH}\ )?{YEAR} | since\ {MONTH}(?!\ \d))
    | (?P<quarter>q[1-4](?:[\ ,]*{YEAR})? | (?:the\ )?(?:first|second|third|fourth)\ quarter(?:\ of\ {YEAR})?)
    | (?P<season>(?:in\ |the\ )*(?:spring|summer|autumn|fall|winter)\ (?:of\ )?{YEAR})
    | (?P<feast>(?:at|on|for|over|by|until)\ (?:christmas|halloween|new\ year(?:'s)?|valentine(?:'s)?))
    | (?P<duration>(?:for\ (?:over\ |about\ |almost\ |more\ than\ )?)?{COUNT}[\ -]{UNIT}(?:\ and\ a\ half)?)
    | (?P<month>(?:in|by|since|until|till|of|around|during|before|after|from|early|mid|late|this)[\ -]
        (?:early\ |mid[\ -]?
        |late\ |the\ (?:end|beginning|start)\ of\ )?{MONTH})
    | (?P<year>(?:in|by|until|till|of|around|during|before|after|from|to)\ {YEAR})
    | (?P<weekday>(?:on\ )?(?:{FULL_DAY}))
    | (?P<nth>(?:on|by|until)\ the\ \d{{1,2}}(?:st|nd|rd|th)(?!\ of\b))
    | (?P<clock>at\ \d{{1,2}}(?::\d\d)?\s?(?:am|pm|a\.m\.|p\.m\.|o'clock)?(?!\d))
    )(?!\w)"""
_FLAGS = re.VERBOSE | re.IGNORECASE  # compiled when first needed: each command would wait for it
_BACK = re.compile(
    r"\b(?:was|were|did|had|went|got|came|ago|last|been|bought|ate|met|saw|said|took|made|gave|left|\w{2,}ed)\b", re.I
)
_PRESENT = re.compile(r"\b(?:is|are|am|'s|turns)\b|['’](?:s|re|m)\b", re.I)
_HABIT = re.compile(  # a weekday that names no one day
    rf"\b(?:every|each|usually|always|a week|per week|from {FULL_DAY} to|the {FULL_DAY} [a-z]+)\b"
    rf"|{FULL_DAY}s\b",
    re.I,
)
_FORWARD = re.compile(
    r"\b(?:will|going to|gonna|next|need|must|have to|remind|todo|plan|should|due|by|upcoming)\b", re.I
)


def find_times(text: str, now: datetime) -> list[TimeSpan]:
    """Find the time expressions of a text.

    Args:
        text: One sentence; its tense decides whether "on Tuesday" lies before or ahead.
        now: When it was written; its own calendar day counts.

    Returns:
        Spans in order of their offsets, not overlapping.
    """
    words = _WORDS.findall(text.lower())
    if _TIME_WORDS.isdisjoint(words) and not any(word.isdigit() for word in words):
        return []
    today = now.date()
    tense = _tense(text)
    spans = []
    for match in re.finditer(_PATTERN, text, _FLAGS):
        kind = match.lastgroup or ""
        if kind == "weekday" and _HABIT.search(text):
            kind = "frequency"
        days = _RESOLVERS[kind](match.group().lower(), today, tense)
        if days is not None:
            spans.append(TimeSpan(match.start(), match.end(), match.group(), *days))
    return spans


def _tense(text: str) -> Tense:
    """Return a sentence's tense: `past`, `mixed` for past and present together, else `ahead` ("I fly on Friday")."""
    if _FORWARD.search(text) or not _BACK.search(text):
        return "ahead"
    return "mixed" if _PRESENT.search(text) else "past"


# --- times in other languages ----------------------------------------------------------------------------------------

_CODES = {  # Snowball's names for the languages that dateparser knows by their codes
    "arabic": "ar", "armenian": "hy", "basque": "eu", "catalan": "ca", "danish": "da", "dutch": "nl", "esperanto": "eo",
    "estonian": "et", "finnish": "fi", "french": "fr", "german": "de", "greek": "el", "hindi": "hi", "hungarian": "hu",
    "indonesian": "id", "irish": "ga", "italian": "it", "lithuanian": "lt", "nepali": "ne", "norwegian": "nb",
    "portuguese": "pt", "romanian": "ro", "russian": "ru", "serbian": "sr", "spanish": "es", "swedish": "sv",
    "tamil": "ta", "turkish": "tr",
}  # fmt: skip
_LONGEST_SEARCHED = 300  # signs: dateparser takes half a second for a page
# A short word alone is the name of a weekday cut short, and most often another word ("so", "do"); a number alone is an
# hour, an age or a count.
_UNAMBIGUOUS = re.compile(r"[^\W\d]{4}|\d\D+\d")


def foreign_times(text: str, now: datetime, language: str) -> list[tuple[date, date]]:
    """Find the days, weeks, months and years that a text in another language than English names.

    Args:
        text: A question: what it names lies before `now` where it may; what must lie ahead is passed over.
        now: When it was asked; its own calendar day counts.
        language: As Snowball calls it.

    Returns:
        First and last day of each; none for a language that is not known, and for a text that is no question's length.
    """
    code = _CODES.get(language)
    if code is None or len(text) > _LONGEST_SEARCHED:
        return []
    from dateparser.date import DateDataParser  # 25 MB, and a fifth of a second
    from dateparser.search import search_dates

    settings = {"RELATIVE_BASE": now.replace(tzinfo=None), "PREFER_DATES_FROM": "past", "RETURN_TIME_AS_PERIOD": True}
    parser = DateDataParser(languages=[code], settings=settings)
    spans = []
    for part, moment in search_dates(text, languages=[code], settings=settings) or ():
        day, period = moment.date(), parser.get_date_data(part.rstrip("?!.")).period
        is_ambiguous = period != "month" and not _UNAMBIGUOUS.search(part)
        is_now = period == "time"
        # the word for tomorrow is that for morning in several languages
        if not is_ambiguous and not is_now and day <= now.date():
            spans.append(_period_around(day, period))
    return spans


def _period_around(day: date, period: str) -> tuple[date, date]:
    """Return the first and last day of the week, month or year around a day; of any other period the day itself."""
    if period == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=6)
    if period == "month":
        return month_span(day.year, day.month)
    return (date(day.year, 1, 1), date(day.year, 12, 31)) if period == "year" else (day, day)


def format_date(day: date) -> str:
    """Format a day for reading: `3 March 2026`."""
    return f"{day.day} {MONTHS[day.month - 1].title()} {day.year}"


# --- dates in digits --------------------------------------------------------------------------------------------------

_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})[^\d\n]{1,2}(\d{1,2})[^\d\n]{1,2}(\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)(\d{1,2})[./][^\S\n]?(\d{1,2})[./][^\S\n]?(\d{4})(?!\d)")


def dates_in(text: str) -> Iterator[tuple[date, str]]:
    """Yield the dates in a text that have day, month and year in digits, each with its text as written.

    A date is on one line: numbers in lines below each other are none.
    """
    for pattern, order in ((_YEAR_FIRST, (1, 2, 3)), (_DAY_FIRST, (3, 2, 1))):
        for match in pattern.finditer(text):
            if day := _date_or_none(*(int(match[part]) for part in order)):
                yield day, match.group()
