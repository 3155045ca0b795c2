"""The days that a question names ("last March", "am 14. Januar"), the time that a person gives, and dates in digits.

English questions are read by patterns of our own: dateparser, which reads the other languages, takes a fifth of a
second to load, and each question on a command line would wait for it. It is always told the languages: without them it
reads a day in "Where do I live?".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

Span = tuple[date, date]  # first and last day
_DAY_LONG = timedelta(days=1)
TIMES = "a day (2026-03-01), a month, a moment (2026-03-01T14:30), yesterday, 3 days ago, last May"  # what is read

MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the month in which each begins
_NEAR = {"day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1, "day after tomorrow": 2}
_COUNTS = {"couple": 2, "few": 3, "several": 5} | {
    word: number
    for number, words in enumerate("a an one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve".split(","), 1)
    for word in words.split()
}
_ORDINALS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth
twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first""".split()


class _Part(NamedTuple):
    """A stretch of a text that names a time.

    Attributes:
        start: Where it begins; `end`: where it ends.
        span: Its days.
        whole: The week, month or year that a smaller time beside it lies in ("Monday last week"); None for none.
        reread: Reads it anew as of another day.
    """

    start: int
    end: int
    span: Span
    whole: Span | None
    reread: Callable[[date], Span | None]


_LONGEST_BETWEEN = 4  # letters between two times that mean one: "Monday of last week"


def days_named(text: str, now: datetime, languages: Sequence[str] = ()) -> tuple[list[Span], str]:
    """Return the first and last day of each time that a question names, and its text without these times.

    What it names lies before `now` where it may.

    Args:
        text: The question.
        now: When it was asked; its own calendar day counts.
        languages: As Snowball calls them, the likeliest first; the first in which it names a time counts. English is
            read besides.
    """
    parts: list[_Part] = []
    asked = text
    for language in dict.fromkeys((*languages, "english")):
        text = _in_digits(asked, _CODES[language]) if language in _CODES else asked
        parts = list(_english_parts(text, now.date()) if language == "english" else _parts_in(language, text, now))
        if parts:
            break
    rest = text
    for part in reversed(parts):
        rest = f"{rest[: part.start]} {rest[part.end :]}"
    spans = [part.span for part in parts]
    for number, (first, second) in enumerate(pairwise(parts)):
        if sum(map(str.isalpha, text[first.end : second.start])) <= _LONGEST_BETWEEN:
            spans[number : number + 2] = _joined(first, second)
    return list(dict.fromkeys(spans)), rest


def _joined(first: _Part, second: _Part) -> list[Span]:
    """Return the days of two times beside each other; of a weekday in a week, or a month in a year, the smaller's."""
    for outer, inner in ((first, second), (second, first)):
        if outer.whole and _length(inner.span) < _length(outer.whole):
            begins, ends = outer.whole
            # as of the day after, for the last weekday is never today; a month and its days have begun today
            for asked in (ends + _DAY_LONG, ends):
                with suppress(ValueError, OverflowError):
                    if (within := inner.reread(asked)) and begins <= within[0] <= ends:
                        return [within, within]
    return [first.span, second.span]


def _length(span: Span) -> int:
    return (span[1] - span[0]).days


def _english_parts(text: str, today: date) -> Iterator[_Part]:
    """Yield the times in an English text."""
    if bare := re.fullmatch(rf"\W*({_MONTH})\W*", text, re.IGNORECASE):  # a bare word, and nothing else
        month = partial(_english, "month", bare[1].lower())
        yield _Part(0, len(text), month(today), month(today), month)
        return
    for match in re.finditer(_PATTERN, text, re.VERBOSE | re.IGNORECASE):
        kind, phrase = match.lastgroup or "", match.group().lower()
        resolve = partial(_english, kind, phrase)
        with suppress(ValueError, OverflowError):
            span = resolve(today)
            is_week = kind == "ago" and re.search("week|fortnight", phrase)
            whole = _span_around(span[0], "week") if is_week else span if span[0] < span[1] else None
            yield _Part(*match.span(), span, whole, resolve)


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
            return _seconds_of((date(year, month, day),) * 2 if day else _part_of_year(year, month), now)
        with suppress(ValueError):
            return _seconds_of((date.fromisoformat(text),) * 2, now)
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo),) * 2
        # where blanks part words `last-week` is one word
        for phrase in (text, text.replace("-", " "), f"in {text}"):
            if match := re.fullmatch(_PATTERN, phrase, re.VERBOSE | re.IGNORECASE):
                return _seconds_of(_english(match.lastgroup or "", phrase.lower(), now.date()), now)
        return _time_in_language(text.replace("-", " "), now, language)
    return None


def _seconds_of(span: Span, now: datetime) -> tuple[datetime, datetime]:
    """Return the first and last second of a span of days, in the time zone of `now`."""
    first, after = (datetime.combine(day, time.min, now.tzinfo) for day in (span[0], span[1] + _DAY_LONG))
    return first, after - timedelta(seconds=1)


# --- resolving an English expression to days -------------------------------------------------------------------------


def _english(kind: str, text: str, today: date) -> Span:
    """Return the first and last day that an English expression means.

    Args:
        kind: The group of `_PATTERN` that it matches.
        text: The expression, in lower case.
        today: The day of the question.

    Raises:
        ValueError: The calendar has no such day ("31 February").
        OverflowError: Likewise, of what is very long ago.
    """
    year, month, season = _year_of(text), _month_of(text), next((name for name in _SEASONS if name in text), "")
    begun = year or today.year - (month > today.month)  # of a month without a year the last one that has begun
    weekday = next((number for number, name in enumerate(_DAYS) if name in text), None)
    match kind:
        case "slashed":  # "2026-03-14"; "3/14/2026" and "on 3/14", month first; "14.3.2026" and "14/3/2026", day first
            first, second, *rest = map(int, re.findall(r"\d+", text))
            if first > 31:
                return (date(first, second, *rest),) * 2
            day, of = (first, second) if "." in text or first > 12 else (second, first)
            return _days_of_month(next(iter(rest), None), of, [day], today)
        case "calendar_day":  # "May 23", "the third of May", "3 to 5 May" and "23 May 2026"
            return _days_of_month(year, month, _numbers_in(text), today)
        case "day_of_month":  # "on the 14th": the last one, in this month or the one before
            number = _numbers_in(text)[0]
            of_month = today if number <= today.day else today.replace(day=1) - _DAY_LONG
            return (of_month.replace(day=number),) * 2
        case (
            "part_of_month"
        ):  # "the first week of March", seven days, "the last day of March", "the second Monday in March"
            (starts, ends), length = _part_of_year(begun, month), 1 if " day " in text else 7
            number = 0 if "last" in text else _numbers_in(text)[0]
            starts = starts + length * (number - 1) * _DAY_LONG if number else ends - (length - 1) * _DAY_LONG
            if weekday is not None:
                return (starts + (weekday - starts.weekday()) % 7 * _DAY_LONG,) * 2
            return starts, starts + (length - 1) * _DAY_LONG
        case "month":  # "in March" and "March 2026"
            return _part_of_year(begun, month)
        case "season":  # "spring 2026"
            return _part_of_year(begun, month, season)
        case "year":  # "in 2024"
            return _span_around(date(begun, 1, 1), "year")
        case "since":  # "since March", "since 2024" and "since last March": from the first day until today
            inner = "stepped" if "last" in text else "month" if month else "year"
            return min(_english(inner, text.removeprefix("since "), today)[0], today), today
        case (
            "ago" | "lately"
        ):  # "three weeks ago" and "a year ago today"; "the last three weeks", which go on until today
            near = re.search("yesterday|today|tomorrow", text)
            asked, _ = _english("near_today", near.group(), today) if near else (today, today)
            count, unit = _counted(text)
            # of months and years alone the whole month or year
            span = _span_around(_shifted(asked, -count, unit), unit if not near and unit in ("month", "year") else "")
            return span if kind == "ago" else (span[0], today)
        case "near_today":
            return (today + _NEAR.get(text.removeprefix("the "), 0) * _DAY_LONG,) * 2
        case "weekend":  # "at the weekend", in any language: the last one that has begun
            return _span_around(today - (today.weekday() - 5) % 7 * _DAY_LONG, "weekend")
    # "on Tuesday": the last one; or "last", "this" or "next" with a weekday, unit, month or season
    direction, _, unit = text.rpartition(" ")
    step = {"this": 0, "next": 1, "coming": 1}.get(direction, -1)
    if weekday is not None:
        ahead = (weekday - today.weekday()) % 7 if step < 1 else 7 + weekday - today.weekday()
        return (today + (ahead if step >= 0 else ahead - 7) * _DAY_LONG,) * 2
    if month or season:  # the last one is over; the next one has not begun
        begins, ends = _part_of_year(today.year, month, season)
        is_in_this_year = ends < today if step < 0 else begins > today
        return _part_of_year(today.year + (0 if is_in_this_year else step), month, season)
    return _span_around(_shifted(today, step, unit), unit)


def _days_of_month(year: int | None, month: int, numbers: Sequence[int], today: date) -> Span:
    """Return the span of some days of a month; without a year the last one that has begun.

    Raises:
        ValueError: There are no such days.
    """
    # most years have no 29 February
    for candidate in [year] if year else range(today.year, max(today.year - 9, 0), -1):
        with suppress(ValueError):
            first, last = date(candidate, month, numbers[0]), date(candidate, month, numbers[-1])
            if first <= (last if year else min(last, today)):
                return first, last
    raise ValueError(f"no day {numbers} of month {month}")


def _numbers_in(text: str) -> list[int]:
    """Return the days of a month that a text names, in digits ("3", "3rd") or in words ("third")."""
    found = re.findall(rf"(?<!\w)(?:(\d{{1,2}})(?!\d)|({'|'.join(reversed(_ORDINALS))}))", text)
    return [int(digits) if digits else _ORDINALS.index(word) + 1 for digits, word in found]


def _counted(text: str) -> tuple[int, str]:
    """Return the number and the unit, in the singular, of "three weeks ago": 3 and "week"."""
    *_, unit = re.findall(_UNIT, text := text.replace("fortnight", "2 weeks"))
    counts = [int(word) if word.isdecimal() else _COUNTS.get(word, 0) for word in re.findall(r"\w+", text)]
    return next(count for count in reversed(counts) if count), unit


def _shifted(day: date, count: int, unit: str) -> date:
    """Return the day `count` units later, earlier when negative; in a month without such a day it is the last one.

    Raises:
        ValueError: It lies outside of the calendar; or an `OverflowError`.
    """
    if unit in ("month", "year"):
        year, month = divmod(day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1), 12)
        return date(year, month + 1, min(day.day, _part_of_year(year, month + 1)[1].day))
    return day + count * (7 if unit in ("week", "weekend") else 1) * _DAY_LONG


def _span_around(day: date, unit: str) -> Span:
    """Return the week, weekend, month or year that a day is in; of any other unit the day itself."""
    monday = day - day.weekday() * _DAY_LONG
    spans = {"week": (monday, monday + 6 * _DAY_LONG), "weekend": (monday + 5 * _DAY_LONG, monday + 6 * _DAY_LONG)}
    if unit in ("month", "year"):
        first, last = (day.month, day.month) if unit == "month" else (1, 12)
        return date(day.year, first, 1), _part_of_year(day.year, last)[1]
    return spans.get(unit, (day, day))


def _part_of_year(year: int, month: int, season: str = "") -> Span:
    """Return the first and last day of a month, or of the season that begins in a year."""
    first = date(year, _SEASONS.get(season, month), 1)
    in_last = first + 70 * _DAY_LONG if season else first  # a season has three months
    return first, date(in_last.year + in_last.month // 12, in_last.month % 12 + 1, 1) - _DAY_LONG


def _month_of(text: str) -> int:
    """Return the number, 1 to 12, of the first month that a text names; 0 for none."""
    match = re.search(_MONTH, text)
    return next((number for number, name in enumerate(MONTHS, 1) if match and name.startswith(match.group()[:3])), 0)


def _year_of(text: str) -> int | None:
    """Return the four-digit year in a text; None where there is none."""
    match = re.search(_YEAR, text)
    return int(match.group()) if match else None


_YEAR = r"(?:19|20)\d\d"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = f"(?:{'|'.join(_DAYS)})"
_UNIT = r"\b(?:day|weekend|week|month|year)(?=s?\b)"
_COUNT = rf"(?:\d{{1,4}}|(?:a\ )?(?:couple|few)(?:\ of)?|{'|'.join(_COUNTS)})"
_NUMBER = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?![\d:])|(?:{'|'.join(reversed(_ORDINALS))})\b)"
_NUMBERS = rf"(?:{_NUMBER}(?:\ ?[-–/]\ ?|\ (?:to|and|until)\ (?:the\ )?))?{_NUMBER}"
_PART_OF_DAY = r"(?:morning|afternoon|evening|night|noon)"
# Alone a weekday is often a name ("Black Friday", "Sunday roast"), and a month a word or a person ("from June").
_AFTER_DAY = rf"""(?=(?:\ {_PART_OF_DAY})?(?:\ *(?:[^\w\s,'’]|$)|,?\ (?:last|i|we|did|{_COUNT}\ week)\b
    |\ (?:and|or|to|in|at|about|with|do|was|were|is|that|the|a|my|of)\b))"""
_PATTERN = rf"""\b(?:
      (?P<slashed>{_YEAR}-\d\d-\d\d|\d{{1,2}}[/.]\d{{1,2}}[/.]{_YEAR}|(?<=\bon\ )\d{{1,2}}/\d{{1,2}}(?![/.]|\ {_MONTH}))
    | (?P<calendar_day>(?:(?:on\ )?{_DAY},?\ )?(?:(?:the\ )?{_NUMBERS}\ (?:of\ )?{_MONTH}(?:,?\ {_YEAR})?
        | {_MONTH}\ (?:the\ )?{_NUMBERS}(?:,?\ ?{_YEAR})?))
    | (?P<since>since\ (?:last\ )?(?:{_MONTH}(?:\ {_YEAR})?|{_YEAR})(?!\ \d))
    | (?P<part_of_month>(?:first|second|third|fourth|last)\ (?:week|day|{_DAY})\ (?:of|in)\ {_MONTH}(?:,?\ {_YEAR})?)
    | (?P<month>(?:early\ |mid[\ -]|late\ )?{_MONTH},?\ {_YEAR}
        | (?:in|until|till|around|during|before|after|early|mid|late
           |(?:by|of|from)(?!\ (?:apr|may|ju|aug)|\ \w+\ (?-i:[A-Z])))[\ -]
          (?:(?:early|mid|late)[\ -]|the\ (?:end|beginning|start)\ of\ )?{_MONTH}(?:,?\ {_YEAR}|(?!['’]s)))
    | (?P<ago>(?:(?:yesterday|today|tomorrow)\ )?{_COUNT}\ (?:{_UNIT}|fortnight)s?\ (?:ago|back)
        (?:\ (?:yesterday|today|tomorrow))?)
    | (?P<lately>(?:last|past)\ {_COUNT}\ {_UNIT}s?)
    | (?P<near_today>(?:the\ )?day\ before\ yesterday|(?:the\ )?day\ after\ tomorrow|today|tonight|yesterday|tomorrow
        |last\ night|this\ {_PART_OF_DAY})
    | (?P<stepped>(?:last|past|this|next|coming|previous)\ (?:{_DAY}|weekend|week|month|year
        |{"|".join(_SEASONS)}|{_MONTH}))
    | (?P<season>(?:{"|".join(_SEASONS)})\ (?:of\ )?{_YEAR})
    | (?P<year>(?:in|by|until|till|of|around|during|before|after|from|to)\ {_YEAR}(?![-/.]\d))
    | (?P<weekday>on\ {_DAY}|{_DAY}{_AFTER_DAY})
    | (?P<weekend>(?:at|on|over|during)\ (?:the\ )?weekend)
    | (?P<day_of_month>(?:on|by|until)\ the\ \d{{1,2}}(?:st|nd|rd|th)(?!\ (?!of\ (?:last|this)\ month)\w))
    )(?!\w)"""


# --- questions in other languages ------------------------------------------------------------------------------------

_CODES = {  # Snowball's names for the languages that dateparser knows by their codes
    "arabic": "ar", "armenian": "hy", "basque": "eu", "catalan": "ca", "danish": "da", "dutch": "nl", "esperanto": "eo",
    "estonian": "et", "finnish": "fi", "french": "fr", "german": "de", "greek": "el", "hindi": "hi", "hungarian": "hu",
    "indonesian": "id", "irish": "ga", "italian": "it", "lithuanian": "lt", "nepali": "ne", "norwegian": "nb",
    "portuguese": "pt", "romanian": "ro", "russian": "ru", "serbian": "sr", "spanish": "es", "swedish": "sv",
    "tamil": "ta", "turkish": "tr",
}  # fmt: skip
_LONGEST_SEARCHED = 300  # signs: dateparser takes a tenth of a second for a page
_MOST_WORDS = 6  # of a time
# What may stand beside a time without changing it, by its beginning: the last Monday is what "Monday" means.
_BESIDE = re.compile(
    r"letzt|vorig|vergangen|abend|derni|soir|pasad|noche|scors|sera|passad|noite|afgelopen|avond|förra|kväll|прошл|вечер"
)
_WORD = re.compile(r"[^\W\d]{3}|[^\x00-\x7f]|\d:\d")  # of a time; digits alone that were not read are no day
_LONGEST_TIME = 60  # signs
# A short word alone is the name of a weekday cut short, and most often another word ("so", "do"); a number alone is an
# hour, an age or a count; but "im Mai" and "il y a 2 ans" are times.
_UNAMBIGUOUS = re.compile(r"[^\W\d]{4}|\d\D{1,2}\d|[^\x00-\x7f]{3}|^\w\w [^\W\d]{3}\Z|^(?:\w+ ){2,3}\d+ \w{3}")
_WEEKENDS = re.compile(
    r"\b(?:wochenende|week-?end|fin de semana|fine settimana|fim de semana|helgen|viikonloppuna|выходны[ех])\b", re.I
)
# "3 to 5 May" in any language: the month, and the year, belong to the first day too
_RANGE = re.compile(
    rf"\b(\d{{1,2}}\.?)(?=(?: ?[-–/] ?|(?: [^\W\d]{{1,3}}){{1,2}} )\d{{1,2}}\.?( (?:de )?[^\W\d]{{3,}}"
    rf"(?: (?:de )?{_YEAR})?))"
)


@cache
def _spelled(code: str) -> dict[str, str]:
    """Return the words of a language for the days of a month, each with its digits; "dritten" as "dritte"."""
    from num2words import num2words  # a twentieth of a second

    words = {"duas": "2"}  # "dois" is what it gives of Portuguese
    # one is an article in many languages
    for kind, first, endings in (("cardinal", 2, [""]), ("ordinal", 1, ["", *"mnrs"])):
        with suppress(NotImplementedError):
            words |= {
                num2words(n, lang=code.replace("nb", "no"), to=kind) + end: str(n)
                for n in range(first, 32)
                for end in endings
            }
    return words


def _in_digits(text: str, code: str) -> str:
    """Return a text with numbers before another word in digits, and a month beside each end of a range of its days."""
    numbers = _spelled(code)
    either = "|".join(sorted(map(re.escape, numbers), key=len, reverse=True))
    # "dritten Juni" and "dritten bis fünften Juni", not "der dritte im Juni" and "acht und zehn"
    between = rf"(?:\w{{1,3}} ){{1,2}}(?=(?:{either}) (?:de )?[^\W\d]{{3}})|(?:de )?(?!\w{{1,3}} (?:{either})\b)"
    spelled = re.compile(rf"\b(?:{either})(?= (?:{between})[^\W\d]{{3}})", re.IGNORECASE)
    return _RANGE.sub(r"\1\2 ", spelled.sub(lambda match: numbers.get(match[0].lower(), match[0]), text))


def _parts_in(language: str, text: str, now: datetime) -> Iterator[_Part]:
    """Yield the times in a text of a language other than English; none in one that is not known.

    Nothing is looked for in a text longer than a question either.
    """
    code = _CODES.get(language)
    if code is None or len(text) > _LONGEST_SEARCHED:
        return
    words = list(re.finditer(r"\w+(?:[-./]\w+)*\.?", text))
    start = 0
    while start < len(words):
        before = words[start - 1][0] if start else ""
        for end in range(min(len(words), start + _MOST_WORDS), start, -1):
            at, phrase = words[start].start(), text[words[start].start() : words[end - 1].end()]
            if (len(words) == 1 or _may_be_time(phrase, before, code)) and (part := _part_in(code, phrase, at, now)):
                # one word before it and one behind it at most
                first = start - bool(start and _BESIDE.match(before.lower()))
                last = end - 1 + bool(end < len(words) and _BESIDE.match(words[end][0].lower()))
                yield part._replace(start=words[first].start(), end=words[last].end())
                start = end - 1
                break
        start += 1


def _may_be_time(phrase: str, before: str, code: str) -> bool:
    """Return whether a phrase is more than a word or a number that is most often something else.

    Args:
        phrase: A word or several.
        before: The word before it; "" for none.
        code: Of the language.
    """
    if not _UNAMBIGUOUS.search(phrase):
        return False
    if not re.search(r"[^\W\d]{3}", phrase):  # "am 3.2.", not "Nummer 3.2"
        return len(before) <= 3 or re.search(_YEAR, phrase) is not None
    # a single word with a capital is a name, but for German, where it is the second part of one ("Frau Sonntag")
    is_name = phrase[0].isupper() and bool(before) and (code != "de" or (before[0].isupper() and len(before) > 3))
    return not (is_name and re.fullmatch(r"[^\W\d]+", phrase))


def _part_in(code: str, phrase: str, at: int, now: datetime) -> _Part | None:
    """Return a whole phrase that begins at a place as a time in a language; None where it is none."""
    today, week = now.date(), timedelta(days=7)
    if _WEEKENDS.fullmatch(phrase):
        weekend = partial(_english, "weekend", "")
        return _Part(at, at + len(phrase), weekend(today), None, weekend)
    named = _parsed(code, phrase, today)
    # the word for tomorrow is that for morning too
    if named is None or (named[0] > today and re.search("mañana|Morgen", phrase)):
        return None
    day, period = named
    if period != "month" and not re.search(r"[^\W\d]{4}|\d|[^\x00-\x7f]{3}", phrase):  # "um die", "so"
        return None
    # a number alone would be that day of any month, and one before a unit an age: asked earlier, they are other days.
    # Of times "3 May" is the same day then, and what is counted back is as far away.
    is_count = re.fullmatch(r"\d+ [^\W\d]+", phrase)
    before = _parsed(code, phrase, today - 6 * week) if is_count or period == "day" else None
    expected = (day if is_count else day - 6 * week, day if re.search(r"\d", phrase) else day - 6 * week)
    if before and before[0] not in expected and before[0] > day - 12 * week:
        return None

    def reread(today: date) -> Span | None:
        again = _parsed(code, phrase, today)
        return again and _span_around(*again)

    is_day = period == "week" and day < today - week  # "three weeks ago"
    span = (day, day) if is_day else _span_around(day, period)
    return _Part(at, at + len(phrase), span, None if period == "day" else _span_around(day, period), reread)


def _parsed(code: str, phrase: str, today: date) -> tuple[date, str] | None:
    """Return the day that a whole phrase names, and whether it, its week, month or year is meant; None for none."""
    named = _read([code], phrase.lower(), datetime.combine(today, time(12)))
    is_day = named.date_obj is not None and named.period != "time"
    return (named.date_obj.date(), named.period) if is_day else None


def _time_in_language(text: str, now: datetime, language: str) -> tuple[datetime, datetime] | None:
    """Return what `time_named` does for a time in the brain's language, or in English by the hour ("2 hours ago")."""
    if len(text) > _LONGEST_TIME or not _WORD.search(text):
        return None
    named = _read([code for code in (_CODES.get(language), "en") if code], text, now)
    if named.date_obj is None:
        return None
    if named.period == "time":
        return (named.date_obj.replace(tzinfo=now.tzinfo),) * 2
    return _seconds_of(_span_around(named.date_obj.date(), named.period), now)


def _read(codes: list[str], text: str, now: datetime) -> Any:
    """Return what dateparser reads in a whole text in these languages."""
    from dateparser.date import DateDataParser  # 25 MB, and a fifth of a second

    how = {"PREFER_DATES_FROM": "past", "RETURN_TIME_AS_PERIOD": True, "DATE_ORDER": "DMY"}
    settings = how | {"RELATIVE_BASE": now.replace(tzinfo=None)}
    return DateDataParser(languages=codes, settings=settings).get_date_data(text)


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
            with suppress(ValueError):
                yield date(*(int(match[part]) for part in order)), match.group()
