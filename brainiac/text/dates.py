"""The days that a question names ("last March", "am 14. Januar"), the time that a person gives, and dates in digits.

English questions are read by patterns of our own: dateparser, which reads the other languages, takes a fifth of a
second to load, and each question on a command line would wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

Span = tuple[date, date]  # first and last day
TIMES = "a day (2026-03-01), a month, a moment (2026-03-01T14:30), yesterday, 3 days ago, last May"  # what is read

MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the month in which each begins
_COUNTS = {"couple": 2, "few": 3, "several": 5} | {
    word: number
    for number, words in enumerate("a an one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve".split(","), 1)
    for word in words.split()
}


def days_named(text: str, now: datetime, language: str = "english") -> list[Span]:
    """Return the first and last day of each time that a question names; what it names lies before `now` where it may.

    Args:
        text: The question.
        now: When it was asked; its own calendar day counts.
        language: As Snowball calls it; English is read in a brain of any language.
    """
    today = now.date()
    matches = re.finditer(_PATTERN, text, re.VERBOSE | re.IGNORECASE)
    spans = (_RESOLVERS[match.lastgroup or ""](match.group().lower(), today) for match in matches)
    return [span for span in spans if span] or _days_in_language(text, now, language)


_DAYS_BACK = re.compile(r"(\d{1,5})d|(\d{1,3})")
_DIGITS = re.compile(r"((?:19|20)\d\d)(?:-(\d{1,2}))?(?:-(\d{1,2}))?")


def time_named(text: str, now: datetime, language: str = "english") -> tuple[datetime, datetime] | None:
    """Return the first and the last second of the time that a whole text names; of a moment both are the same.

    Args:
        text: One of `TIMES`, in the brain's language or English, or how many days back: `7`, `7d`.
        now: The present moment, in the time zone in which days begin and a moment without a zone is meant.
        language: As Snowball calls it.

    Returns:
        None where it is no time.
    """
    text = " ".join(text.split())
    with suppress(ValueError, OverflowError):
        if match := _DAYS_BACK.fullmatch(text):
            return (now - timedelta(days=int(match[1] or match[2])),) * 2
        if match := _DIGITS.fullmatch(text):
            year, month, day = int(match[1]), int(match[2] or 0), int(match[3] or 0)
            if not month:
                return _seconds_of((date(year, 1, 1), date(year, 12, 31)), now)
            return _seconds_of(_single_day(date(year, month, day)) if day else _month_span(year, month), now)
        with suppress(ValueError):
            return _seconds_of(_single_day(date.fromisoformat(text)), now)
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo),) * 2
        # where blanks part words `last-week` is one word
        for phrase in (text, text.replace("-", " "), f"in {text}"):
            match = re.fullmatch(_PATTERN, phrase, re.VERBOSE | re.IGNORECASE)
            if match and (span := _RESOLVERS[match.lastgroup or ""](phrase.lower(), now.date())):
                return _seconds_of(span, now)
        return _time_in_language(text.replace("-", " "), now, language)
    return None


def _seconds_of(span: Span | None, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the first and last second of a span of days, in the time zone of `now`."""
    if span is None:
        return None
    first, after = (datetime.combine(day, time.min, now.tzinfo) for day in (span[0], span[1] + timedelta(days=1)))
    return first, after - timedelta(seconds=1)


# --- resolving an English expression to days: one function for each group of `_PATTERN` ------------------------------
#
# Each takes the expression in lower case and the day of the question, and returns the first and last day that it means,
# or None where it means no day ("31 February").


def _year_first(text: str, today: date) -> Span | None:
    """Resolve "2026-03-14"."""
    return _single_day(_date_or_none(*map(int, text.split("-"))))


def _slashed(text: str, today: date) -> Span | None:
    """Resolve "3/14/2026", month first, and "14.3.2026" or "14/3/2026", day first."""
    first, second, year = map(int, re.split(r"[/.]", text))
    is_day_first = "." in text or first > 12
    return _single_day(_date_or_none(year, second, first) if is_day_first else _date_or_none(year, first, second))


def _calendar_day(text: str, today: date) -> Span | None:
    """Resolve "May 23" and "23 May 2026"; without a year the last such day."""
    month, year = _month_number(text), _year_of(text)
    numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", text)
    if year:
        return _single_day(_date_or_none(year, month, int(numbers[0])))
    # most years have no 29 February
    days = (_date_or_none(today.year - years, month, int(numbers[0])) for years in range(9))
    return _single_day(next((day for day in days if day and day <= today), None))


def _month(text: str, today: date) -> Span | None:
    """Resolve "in March" and "March 2026"; without a year the last one that has begun."""
    month = _month_number(text)
    return _month_span(_year_of(text) or today.year - (month > today.month), month)


def _year(text: str, today: date) -> Span | None:
    """Resolve "in 2024"."""
    year = _year_of(text) or today.year
    return date(year, 1, 1), date(year, 12, 31)


def _since(text: str, today: date) -> Span | None:
    """Resolve "since March", "since 2024" and "since last March": from the first day until today."""
    resolve = _stepped if "last" in text else _month if re.search(_MONTH, text) else _year
    span = resolve(text.removeprefix("since "), today)
    return span and (min(span[0], today), today)


def _ago(text: str, today: date) -> Span | None:
    """Resolve "three weeks ago"; of months and years the whole month or year."""
    count, unit = _counted(text)
    day = _shifted(today, -count, unit)
    return _span_around(day, unit) if unit in ("month", "year") else (day, day)


def _lately(text: str, today: date) -> Span | None:
    """Resolve "the last three weeks": those until today."""
    count, unit = _counted(text)
    return _shifted(today, -count, unit), today


def _stepped(text: str, today: date) -> Span | None:
    """Resolve "last", "this" or "next" with a weekday, unit, month or season: "last March", "next Tuesday"."""
    direction, unit = text.split(None, 1)
    step = {"last": -1, "past": -1, "previous": -1, "this": 0}.get(direction, 1)
    if unit in _DAYS:
        return _single_day(_stepped_weekday(unit, step, today))
    if unit in _SEASONS or re.fullmatch(_MONTH, unit):
        return _stepped_part_of_year(unit, step, today)
    return _span_around(_shifted(today, step, unit), unit)


def _stepped_part_of_year(name: str, step: int, today: date) -> Span:
    """Return the days of the last (step -1), this year's (0) or the next (1) month or season of a name.

    The last one is over; the next one has not begun.
    """
    first, last = _season_span(name, today.year) if name in _SEASONS else _month_span(today.year, _month_number(name))
    is_in_this_year = last < today if step < 0 else first > today
    year = today.year + (0 if is_in_this_year else step)
    return _season_span(name, year) if name in _SEASONS else _month_span(year, _month_number(name))


def _stepped_weekday(name: str, step: int, today: date) -> date:
    """Return the day of "last Tuesday" (step -1), "this Tuesday" (0) or "next Tuesday" (1)."""
    number = _DAYS.index(name)
    if step < 0:
        return today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
    if step == 0:
        return today + timedelta(days=(number - today.weekday()) % 7)
    return today + timedelta(days=7 + number - today.weekday())


def _near_today(text: str, today: date) -> Span | None:
    """Resolve "yesterday", "today", "tomorrow" and the days beside them."""
    offsets = {"the day before yesterday": -2, "yesterday": -1, "tomorrow": 1, "the day after tomorrow": 2}
    return _single_day(today + timedelta(days=offsets.get(text, 0)))


def _season(text: str, today: date) -> Span | None:
    """Resolve "spring 2026"."""
    return _season_span(next(name for name in _SEASONS if name in text), _year_of(text) or today.year)


def _weekday(text: str, today: date) -> Span | None:
    """Resolve "on Tuesday": the last one."""
    return _single_day(_stepped_weekday(text.removeprefix("on "), -1, today))


def _day_of_month(text: str, today: date) -> Span | None:
    """Resolve "on the 14th": the last one, in this month or the one before."""
    number = int(re.findall(r"\d+", text)[0])
    month = today if number <= today.day else today.replace(day=1) - timedelta(days=1)
    return _single_day(_date_or_none(month.year, month.month, number))


def _counted(text: str) -> tuple[int, str]:
    """Return the number and the unit, in the singular, of "three weeks ago": 3 and "week"."""
    *_, unit = re.findall(_UNIT, text)
    counts = [int(word) if word.isdecimal() else _COUNTS.get(word, 0) for word in re.findall(r"\w+", text)]
    return next(count for count in reversed(counts) if count), unit


def _shifted(day: date, count: int, unit: str) -> date:
    """Return the day `count` units later, earlier when negative; the same day where that lies outside the calendar.

    Of months and years it is a day in that month or year.
    """
    try:
        if unit == "month":
            year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
            return date(year, month + 1, 1)
        if unit == "year":
            return date(day.year + count, 1, 1)
        return day + timedelta(days=count * (7 if unit in ("week", "weekend") else 1))
    except (OverflowError, ValueError):
        return day


def _span_around(day: date, unit: str) -> Span:
    """Return the week, weekend, month or year that a day is in; of any other unit the day itself."""
    monday = day - timedelta(days=day.weekday())
    if unit == "week":
        return monday, monday + timedelta(days=6)
    if unit == "weekend":
        return monday + timedelta(days=5), monday + timedelta(days=6)
    if unit == "month":
        return _month_span(day.year, day.month)
    return (date(day.year, 1, 1), date(day.year, 12, 31)) if unit == "year" else (day, day)


def _month_number(text: str) -> int:
    """Return the number, 1 to 12, of the first month that a text names."""
    match = re.search(_MONTH, text)
    return next(number for number, name in enumerate(MONTHS, 1) if match and name.startswith(match.group()[:3]))


def _year_of(text: str) -> int | None:
    """Return the four-digit year in a text; None where there is none."""
    match = re.search(_YEAR, text)
    return int(match.group()) if match else None


def _date_or_none(year: int, month: int, day: int) -> date | None:
    """Return a date; None where the calendar has no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _single_day(day: date | None) -> Span | None:
    return (day, day) if day else None


def _month_span(year: int, month: int) -> Span:
    """Return the first and last day of a month."""
    following = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), following - timedelta(days=1)


def _season_span(name: str, year: int) -> Span:
    """Return the first and last day of the season that begins in a year."""
    first = date(year, _SEASONS[name], 1)
    within_last = first + timedelta(days=70)  # a season has three months
    return first, _month_span(within_last.year, within_last.month)[1]


_YEAR = r"(?:19|20)\d\d"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = f"(?:{'|'.join(_DAYS)})"
_UNIT = r"(?:day|weekend|week|month|year)(?=s?\b)"
_COUNT = rf"(?:\d{{1,4}}|(?:a\ )?(?:couple|few)(?:\ of)?|{'|'.join(_COUNTS)})"
_PATTERN = rf"""\b(?:
      (?P<year_first>{_YEAR}-\d\d-\d\d)
    | (?P<slashed>\d{{1,2}}[/.]\d{{1,2}}[/.]{_YEAR})
    | (?P<calendar_day>(?:the\ )?\d{{1,2}}(?:st|nd|rd|th)?\ (?:of\ )?{_MONTH}(?:,?\ {_YEAR})?
        | {_MONTH}\ (?:the\ )?\d{{1,2}}(?:st|nd|rd|th)?(?![\d:])(?:,?\ ?{_YEAR})?)
    | (?P<since>since\ (?:last\ )?(?:{_MONTH}(?:\ {_YEAR})?|{_YEAR})(?!\ \d))
    | (?P<month>(?:early\ |mid[\ -]|late\ )?{_MONTH},?\ {_YEAR}
        | (?:in|by|until|till|of|around|during|before|after|from|early|mid|late)[\ -]
          (?:(?:early|mid|late)[\ -]|the\ (?:end|beginning|start)\ of\ )?{_MONTH}(?:,?\ {_YEAR})?)
    | (?P<ago>{_COUNT}\ {_UNIT}s?\ (?:ago|back))
    | (?P<lately>(?:last|past)\ {_COUNT}\ {_UNIT}s?)
    | (?P<stepped>(?:last|past|this|next|coming|previous)\ (?:{_DAY}|weekend|week|month|year
        |{"|".join(_SEASONS)}|{_MONTH}))
    | (?P<near_today>the\ day\ before\ yesterday|the\ day\ after\ tomorrow|today|tonight|yesterday|tomorrow)
    | (?P<season>(?:{"|".join(_SEASONS)})\ (?:of\ )?{_YEAR})
    | (?P<year>(?:in|by|until|till|of|around|during|before|after|from|to)\ {_YEAR})
    | (?P<weekday>(?:on\ )?{_DAY})
    | (?P<day_of_month>(?:on|by|until)\ the\ \d{{1,2}}(?:st|nd|rd|th)(?!\ of\b))
    )(?!\w)"""
_RESOLVERS: dict[str, Callable[[str, date], Span | None]] = {
    "year_first": _year_first,
    "slashed": _slashed,
    "calendar_day": _calendar_day,
    "since": _since,
    "month": _month,
    "ago": _ago,
    "lately": _lately,
    "stepped": _stepped,
    "near_today": _near_today,
    "season": _season,
    "year": _year,
    "weekday": _weekday,
    "day_of_month": _day_of_month,
}


# --- questions in other languages ------------------------------------------------------------------------------------

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
_WORD = re.compile(r"[^\W\d]{3}|[^\x00-\x7f]|\d:\d")  # of a time; digits alone that were not read are no day
_LONGEST_TIME = 60  # signs
_UNAMBIGUOUS = re.compile(r"[^\W\d]{4}|\d\D+\d")


def _days_in_language(text: str, now: datetime, language: str) -> list[Span]:
    """Return what `days_named` does for a language other than English; nothing for one that is not known.

    Nothing is looked for in a text longer than a question either.
    """
    code = _CODES.get(language)
    if code is None or len(text) > _LONGEST_SEARCHED:
        return []
    from dateparser.date import DateDataParser  # 25 MB, and a fifth of a second
    from dateparser.search import search_dates

    parser = DateDataParser(languages=[code], settings=_settings(now))
    spans = []
    for part, moment in search_dates(text, languages=[code], settings=_settings(now)) or ():
        period = parser.get_date_data(part.rstrip("?!.")).period
        is_unambiguous = period == "month" or _UNAMBIGUOUS.search(part)
        # "now" names no day, and the word for tomorrow is that for morning in several languages
        if is_unambiguous and period != "time" and moment.date() <= now.date():
            spans.append(_span_around(moment.date(), period))
    return spans


def _time_in_language(text: str, now: datetime, language: str) -> tuple[datetime, datetime] | None:
    """Return what `time_named` does for a time in the brain's language, or in English by the hour ("2 hours ago")."""
    if len(text) > _LONGEST_TIME or not _WORD.search(text):
        return None
    from dateparser.date import DateDataParser  # 25 MB, and a fifth of a second

    codes = [code for code in (_CODES.get(language), "en") if code]
    named = DateDataParser(languages=codes, settings=_settings(now)).get_date_data(text)
    if named.date_obj is None:
        return None
    if named.period == "time":
        return (named.date_obj.replace(tzinfo=now.tzinfo),) * 2
    return _seconds_of(_span_around(named.date_obj.date(), named.period), now)


def _settings(now: datetime) -> dict[str, Any]:
    """Return what dateparser is to read by."""
    return {"RELATIVE_BASE": now.replace(tzinfo=None), "PREFER_DATES_FROM": "past", "RETURN_TIME_AS_PERIOD": True}


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
