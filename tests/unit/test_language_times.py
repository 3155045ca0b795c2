"""Time expressions and the days they mean."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.text.dates import days_named, format_date, time_named

NOW = datetime(2026, 3, 16, 8, 30, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("What did I do last Friday?", "2026-03-13 2026-03-13"),
        ("Where was I two weeks ago?", "2026-03-02 2026-03-02"),
        ("Whom did I meet a few years ago?", "2023-01-01 2023-12-31"),
        ("What moved in June 2020?", "2020-06-01 2020-06-30"),
        ("What has happened in April?", "2025-04-01 2025-04-30"),
        ("Where have I lived since 2020?", "2020-01-01 2026-03-16"),
        ("Who was born 3 May 2023?", "2023-05-03 2023-05-03"),
        ("What was on May 3rd?", "2025-05-03 2025-05-03"),
        ("What was on February 29?", "2024-02-29 2024-02-29"),
        ("What was on 2026-02-01?", "2026-02-01 2026-02-01"),
        ("What was on the 14th?", "2026-03-14 2026-03-14"),
        ("What was on the 20th?", "2026-02-20 2026-02-20"),
        ("Where did we hike last weekend?", "2026-03-14 2026-03-15"),
        ("What happened last week?", "2026-03-09 2026-03-15"),
        ("What did we do last month?", "2026-02-01 2026-02-28"),
        ("Where were we last summer?", "2025-06-01 2025-08-31"),
        ("Where were we in the winter of 2022?", "2022-12-01 2023-02-28"),
        ("What did she eat on Tuesday?", "2026-03-10 2026-03-10"),
        ("What is next Friday?", "2026-03-27 2026-03-27"),
        ("What did I read in the past two months?", "2026-01-01 2026-03-16"),
        ("What is tomorrow?", "2026-03-17 2026-03-17"),
        ("What was on 31.12.2025?", "2025-12-31 2025-12-31"),
        ("Who came on 12/24/2025?", "2025-12-24 2025-12-24"),
        ("What did I do on 3/4?", "2026-03-04 2026-03-04"),
        ("Who came over on the fourth of March?", "2026-03-04 2026-03-04"),
        ("What did I do on February twenty-first?", "2026-02-21 2026-02-21"),
        ("What did I do on Monday, 2 March?", "2026-03-02 2026-03-02"),
        ("What did I do between 3 and 5 March?", "2026-03-03 2026-03-05"),
        ("What did I do on March 3-5?", "2026-03-03 2026-03-05"),
        ("What did I plan in the first week of February?", "2026-02-01 2026-02-07"),
        ("What did I do a fortnight ago?", "2026-03-02 2026-03-02"),
        ("What did I cook last night?", "2026-03-15 2026-03-15"),
        ("What did I plan over the weekend?", "2026-03-14 2026-03-15"),
        ("What did I do three weeks ago on Monday?", "2026-02-23 2026-02-23"),
        ("On Wednesday, two weeks ago, where was I?", "2026-03-04 2026-03-04"),
        ("What did I buy on Tuesday of last week?", "2026-03-10 2026-03-10"),
        ("What happened a week ago yesterday?", "2026-03-08 2026-03-08"),
        ("What did I buy a month ago today?", "2026-02-16 2026-02-16"),
        ("Yesterday two years ago, where did I sleep?", "2024-03-15 2024-03-15"),
        ("What did I read two months ago?", "2026-01-01 2026-01-31"),
        ("What did I bake on the last day of February?", "2026-02-28 2026-02-28"),
        ("Who called on the second day of March?", "2026-03-02 2026-03-02"),
        ("Who was here on 5/6 January 2026?", "2026-01-05 2026-01-06"),
        ("What did I cook Saturday evening?", "2026-03-14 2026-03-14"),
        ("Where was I Wednesday?", "2026-03-11 2026-03-11"),
        ("What happened in March last year?", "2025-03-01 2025-03-31"),
        ("March", "2026-03-01 2026-03-31"),
        ("monday?", "2026-03-09 2026-03-09"),
    ],
)
def test_questions_name_days(text: str, days: str) -> None:
    """What a question names is counted from when it was asked, and has passed or begun where that is possible."""
    ((first, last),) = days_named(text, NOW)[0]
    assert days == f"{first} {last}"


@pytest.mark.parametrize(
    "text",
    [
        "May I go?",
        "on Feb 30",
        "the last day at work",
        "call 555 0100",
        "a second thought",
        "99999 years ago",
        "Where do I live?",
        "Who won the second round of the march?",
        "What is my Sunday roast recipe?",
        "Where are the black Friday vouchers?",
        "What did I learn from June?",
        "Was there something in May's letter?",
        "Who lives on the 3rd floor, in flat 3/4?",
        "Are the winter tyres the 2020 model?",
        "What is version 1.2.3 about?",
        "Can Monday, my parrot, whistle?",
        "Who reads out Tuesday's poem?",
        "Who won the Thursday evening draw?",
    ],
)
def test_what_names_no_day(text: str) -> None:
    """Words that only look like times, and days that do not exist, give nothing."""
    assert [] == days_named(text, NOW)[0]


@pytest.mark.parametrize(
    ("text", "language", "days"),
    [
        ("Was habe ich im Mai gemacht?", "german", "2025-05-01 2025-05-31"),
        ("Wo war ich letzte Woche?", "german", "2026-03-09 2026-03-15"),
        ("Was war am 14. Januar 2024?", "german", "2024-01-14 2024-01-14"),
        ("¿Qué hice el 3 de marzo de 2025?", "spanish", "2025-03-03 2025-03-03"),
        ("Qu'est-ce que j'ai acheté hier ?", "french", "2026-03-15 2026-03-15"),
        ("Was habe ich vor drei Wochen am Montag gemacht?", "german", "2026-02-23 2026-02-23"),
        ("Was war am Montag letzter Woche?", "german", "2026-03-09 2026-03-09"),
        ("Was habe ich am letzten Wochenende gemacht?", "german", "2026-03-14 2026-03-15"),
        ("Was war am 3.2.?", "german", "2026-02-03 2026-02-03"),
        ("Mai", "german", "2025-05-01 2025-05-31"),
        ("¿Qué hice hace tres semanas?", "spanish", "2026-02-23 2026-02-23"),
        ("Qu'ai-je mangé le week-end dernier ?", "french", "2026-03-14 2026-03-15"),
        ("Dove sono stato tre settimane fa?", "italian", "2026-02-23 2026-02-23"),
        ("Что я делал в прошлый понедельник?", "russian", "2026-03-09 2026-03-09"),
        ("Was habe ich am fünfundzwanzigsten Februar gelesen?", "german", "2026-02-25 2026-02-25"),
        ("Wer war der erste im Februar?", "german", "2026-02-01 2026-02-28"),
        ("Vad åt jag den fjärde mars?", "swedish", "2026-03-04 2026-03-04"),
        ("Cosa ho comprato il ventuno febbraio?", "italian", "2026-02-21 2026-02-21"),
        ("Où étais-je il y a deux ans ?", "french", "2024-01-01 2024-12-31"),
        ("O que fiz há duas semanas?", "portuguese", "2026-03-02 2026-03-02"),
        ("Hva gjorde jeg for to uker siden?", "norwegian", "2026-03-02 2026-03-02"),
        ("Wo war ich zwischen dem 4. und dem 6. März 2025?", "german", "2025-03-04 2025-03-04, 2025-03-06 2025-03-06"),
        ("¿Qué hice del tres al seis de marzo?", "spanish", "2026-03-03 2026-03-03, 2026-03-06 2026-03-06"),
        ("Что я делал с 3 по 6 марта?", "russian", "2026-03-03 2026-03-03, 2026-03-06 2026-03-06"),
        ("Was mache ich morgen?", "german", "2026-03-17 2026-03-17"),
        ("Chi viene domani?", "italian", "2026-03-17 2026-03-17"),
        ("Was ist nächste Woche los?", "german", "2026-03-23 2026-03-29"),
        ("Quand expire mon passeport, en mars 2030 ?", "french", "2030-03-01 2030-03-31"),
        ("Was esse ich am Morgen?", "german", ""),
        ("Habe ich am Dienstag um 18 Uhr Zeit?", "german", "2026-03-10 2026-03-10"),
        ("Kommt der Maler zwischen acht und zehn?", "german", ""),
        ("Welches Spiel ist für elf Jahre alte Kinder?", "german", ""),
        ("¿Quién tiene catorce años?", "spanish", ""),
        ("Wie lautet die Nummer 3.2 im Vertrag?", "german", ""),
        ("Wo liegt das Buch von Frau Sonntag?", "german", ""),
        ("Was mag Mai am liebsten?", "german", ""),
        ("Qui est Monsieur Mars ?", "french", ""),
        ("Кто третий в очереди?", "russian", ""),
        ("Was sagte der so nette Mann?", "german", ""),
        ("Wie schwer ist der Hund jetzt?", "german", ""),
        ("Wann wird meine Frau 55?", "german", ""),
        ("¿Qué pastilla tomo por la mañana?", "spanish", ""),
        ("Was war am 14. Januar 2024? " + "Und dann? " * 40, "german", ""),
        ("Was war am 14. Januar 2024?", "none", ""),
    ],
)
def test_questions_in_other_languages_name_days(text: str, language: str, days: str) -> None:
    """In the brain's language a day, week or month is what it is in English; a short word and an age are none."""
    named = [f"{first} {last}" for first, last in days_named(text, NOW, [language])[0]]
    assert days == ", ".join(named)


@pytest.mark.parametrize(
    ("text", "language", "first", "last"),
    [
        ("2026-03-01", "english", "2026-03-01T00:00:00+01:00", "2026-03-01T23:59:59+01:00"),
        ("20260301", "english", "2026-03-01T00:00:00+01:00", "2026-03-01T23:59:59+01:00"),
        ("2026-02", "english", "2026-02-01T00:00:00+01:00", "2026-02-28T23:59:59+01:00"),
        ("2024", "english", "2024-01-01T00:00:00+01:00", "2024-12-31T23:59:59+01:00"),
        ("2026-03-01T14:30", "english", "2026-03-01T14:30:00+01:00", ""),
        ("2026-03-01 14:30", "english", "2026-03-01T14:30:00+01:00", ""),
        ("2026-03-01T14:30:00Z", "english", "2026-03-01T14:30:00+00:00", ""),
        ("7", "english", "2026-03-09T09:30:00+01:00", ""),
        ("7d", "english", "2026-03-09T09:30:00+01:00", ""),
        ("today", "english", "2026-03-16T00:00:00+01:00", "2026-03-16T23:59:59+01:00"),
        ("Yesterday", "german", "2026-03-15T00:00:00+01:00", "2026-03-15T23:59:59+01:00"),
        ("3 days ago", "english", "2026-03-13T00:00:00+01:00", "2026-03-13T23:59:59+01:00"),
        ("2 hours ago", "none", "2026-03-16T07:30:00+01:00", ""),
        ("last-week", "english", "2026-03-09T00:00:00+01:00", "2026-03-15T23:59:59+01:00"),
        ("last May", "english", "2025-05-01T00:00:00+02:00", "2025-05-31T23:59:59+02:00"),
        ("May", "english", "2025-05-01T00:00:00+02:00", "2025-05-31T23:59:59+02:00"),
        ("vorgestern", "german", "2026-03-14T00:00:00+01:00", "2026-03-14T23:59:59+01:00"),
        ("vor 3 Tagen", "german", "2026-03-13T00:00:00+01:00", "2026-03-13T23:59:59+01:00"),
        ("hier", "french", "2026-03-15T00:00:00+01:00", "2026-03-15T23:59:59+01:00"),
    ],
)
def test_a_time_is_a_day_a_month_or_a_moment(text: str, language: str, first: str, last: str) -> None:
    """In digits or in words, in English and the brain's language; days begin in the person's zone."""
    named = time_named(text, NOW.astimezone(ZoneInfo("Europe/Berlin")), language)
    assert named is not None
    assert (first, last or first) == tuple(moment.isoformat() for moment in named)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-02-30", "99999", "9999999d", "so", "the day we met"])
def test_what_is_no_time(text: str) -> None:
    """Nothing is guessed, and a day that does not exist is none."""
    assert None is time_named(text, NOW, "german")


@given(st.text(alphabet="0123456789 .-/adehlmnorstuwy", max_size=60))
def test_any_text_gives_spans_that_end_after_they_begin(text: str) -> None:
    """Whatever is typed, nothing fails."""
    assert all(first <= last for first, last in days_named(text, NOW)[0])
    first, last = time_named(text, NOW, "german") or (NOW, NOW)
    assert first <= last


def test_a_day_is_written_for_a_reader() -> None:
    assert "3 March 2026" == format_date(date(2026, 3, 3))
