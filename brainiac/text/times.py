"""Time expressions of ordinary English, resolved against the moment they were written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime

from brainiac.text.calendar_days import (
    COUNT,
    DAY,
    DAYS,
    FULL_DAY,
    MONTH,
    MONTHS,
    RESOLVERS,
    UNIT,
    YEAR,
    Tense,
    TimeKind,
    month_span,
)


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
        is_relative: It means another day when said on another day.
    """

    start: int
    end: int
    text: str
    earliest: date
    latest: date
    kind: TimeKind
    is_relative: bool = False


_TIME_WORDS = frozenset(  # without one of these or a digit the long pattern is not tried
    f"{' '.join(MONTHS + DAYS)} jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs "
    f"fri sat sun "
    "today tonight yesterday tomorrow day days daily weekday weekdays week weeks weekend weekends weekly weeknights "
    "fortnight month months monthly quarter quarters year years yearly annually night nights nightly morning mornings "
    "afternoon afternoons evening evenings hour hours minute minutes min mins second seconds decade decades spring "
    "summer autumn fall winter christmas halloween valentine new mondays tuesdays wednesdays thursdays fridays "
    "saturdays sundays q".split()
)
_WORDS = re.compile(r"[a-z]+|\d")
_PATTERN = re.compile(
    rf"""\b(?:
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
    )(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
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
    found_words = _WORDS.findall(text.lower())
    if _TIME_WORDS.isdisjoint(found_words) and not any(word.isdigit() for word in found_words):
        return []
    today = now.date()
    tense = _tense(text)
    spans = []
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "weekday" and _HABIT.search(text):
            kind = "frequency"
        found = RESOLVERS[kind](match.group().lower(), today, tense)
        if found is not None:
            earliest, latest, time_kind = found
            is_relative = kind in _RELATIVE or (kind in _YEARLESS and not re.search(YEAR, match.group()))
            spans.append(TimeSpan(match.start(), match.end(), match.group(), earliest, latest, time_kind, is_relative))
    return spans


def _tense(text: str) -> Tense:
    if _FORWARD.search(text) or not _BACK.search(text):
        return "ahead"
    return "mixed" if _PRESENT.search(text) else "past"


_RELATIVE = frozenset({"ago", "lately", "ahead", "moved", "near", "weekday", "nth"})
_YEARLESS = frozenset({"day_month", "month_day", "month", "since", "quarter", "feast"})


def format_date(day: date) -> str:
    """Format a day for reading: `3 March 2026`."""
    return f"{day.day} {MONTHS[day.month - 1].title()} {day.year}"


def format_span(span: TimeSpan) -> str:
    """Format the days of a span for reading: a day, a month, a year, or `20 April 2026 to 26 April 2026`."""
    first, last = span.earliest, span.latest
    if first == last:
        return format_date(first)
    if (first, last) == month_span(first.year, first.month):
        return f"{MONTHS[first.month - 1].title()} {first.year}"
    if first == date(first.year, 1, 1) and last == date(first.year, 12, 31):
        return str(first.year)
    return f"{format_date(first)} to {format_date(last)}"


_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_LEADS_TO_DAY = re.compile(
    r"\b(?:on|this|next|last|by|until|till|before|since|after|from|past|coming)\s+$", re.IGNORECASE
)


def _is_bare_weekday(text: str, span: TimeSpan) -> bool:
    """Tell whether a weekday names no single day: its date stands beside it, or one of several, or a mere greeting."""
    if not re.fullmatch(_WEEKDAY, span.text, re.IGNORECASE):
        return False
    before, after = text[: span.start], text[span.end :]
    has_date = re.match(rf"[ ,]+(?:the )?\d|[ ,]+(?:{'|'.join(MONTHS)})\b", after, re.IGNORECASE)
    is_list = re.match(rf",?\s*(?:to|and|or|,|through|-)\s*{_WEEKDAY}\b", after, re.IGNORECASE) or re.search(
        rf"\b{_WEEKDAY},?\s*(?:to|and|or|,|through|-)\s*$", before, re.IGNORECASE
    )
    return bool(has_date or is_list) or not _LEADS_TO_DAY.search(before)


def with_dates(text: str, said: datetime, *, except_year: bool = False) -> str:
    """Return a text with the date in brackets behind each expression that depends on when it was said.

    Args:
        text: A sentence, e.g. `I left Google last month`.
        said: When it was said.
        except_year: Leave expressions alone that only lack the year, e.g. `May 23`.

    Returns:
        E.g. `I left Google last month (February 2026)`.
    """
    pieces, position = [], 0
    for span in find_times(text, said):
        lacks_year_only = any(name[:3] in span.text.lower() for name in MONTHS) and "last" not in span.text.lower()
        if not span.is_relative or (except_year and lacks_year_only) or text[span.end : span.end + 2] == " (":
            continue
        if _is_bare_weekday(text, span):
            continue
        pieces += [text[position : span.end], f" ({format_span(span)})"]
        position = span.end
    return "".join(pieces) + text[position:]
