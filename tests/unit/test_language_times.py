"""Time expressions and the days they mean."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainiac.text.dates import find_times, foreign_times, format_date

NOW = datetime(2026, 3, 16, 8, 30, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("text", "earliest", "latest", "kind"),
    [
        ("Last Friday we shipped", "2026-03-13", "2026-03-13", "point"),
        ("I left two weeks ago", "2026-03-02", "2026-03-02", "point"),
        ("moved in June 2020", "2020-06-01", "2020-06-30", "range"),
        ("lived here since 2020", "2020-01-01", "2026-03-16", "range"),
        ("worked there for 5 years", "2021-03-16", "2026-03-16", "duration"),
        ("born 3 May 2023", "2023-05-03", "2023-05-03", "point"),
        ("the party is on May 3rd", "2026-05-03", "2026-05-03", "point"),
        ("it is 2026-04-01", "2026-04-01", "2026-04-01", "point"),
        ("due on the 14th", "2026-04-14", "2026-04-14", "point"),
        ("We hiked last weekend", "2026-03-14", "2026-03-15", "range"),
        ("planned for Q3 2025", "2025-07-01", "2025-09-30", "range"),
        ("every Thursday afternoon", "2026-03-16", "2026-03-16", "frequency"),
        ("What happened last week?", "2026-03-09", "2026-03-15", "range"),
        ("We moved last month", "2026-02-01", "2026-02-28", "range"),
        ("engaged last Christmas", "2025-12-25", "2025-12-25", "point"),
        ("we danced last Halloween", "2025-10-31", "2025-10-31", "point"),
        ("we were there last summer", "2025-06-01", "2025-08-31", "range"),
        ("she ate it on Tuesday", "2026-03-10", "2026-03-10", "point"),
        ("need it on Tuesday", "2026-03-17", "2026-03-17", "point"),
        ("let us meet next Friday", "2026-03-27", "2026-03-27", "point"),
        ("in the past two months", "2026-01-16", "2026-03-16", "range"),
        ("see you tomorrow", "2026-03-17", "2026-03-17", "point"),
        ("on 31.12.2025", "2025-12-31", "2025-12-31", "point"),
    ],
)
def test_expressions_are_resolved(text: str, earliest: str, latest: str, kind: str) -> None:
    """An expression means certain days, counted from when it was said and by the sentence's tense."""
    (span,) = find_times(text, NOW)
    assert (earliest, latest, kind) == (str(span.earliest), str(span.latest), span.kind)


@pytest.mark.parametrize("text", ["I may go", "Feb 30", "the last day at work", "call 555 0100", "a second thought"])
def test_what_tells_no_time(text: str) -> None:
    """Words that only look like times, and days that do not exist, give nothing."""
    assert [] == find_times(text, NOW)


@pytest.mark.parametrize(
    ("text", "language", "days"),
    [
        ("Was habe ich im Mai gemacht?", "german", "2025-05-01 2025-05-31"),
        ("Wo war ich letzte Woche?", "german", "2026-03-09 2026-03-15"),
        ("Was war am 14. Januar 2024?", "german", "2024-01-14 2024-01-14"),
        ("¿Qué hice el 3 de marzo de 2025?", "spanish", "2025-03-03 2025-03-03"),
        ("Qu'est-ce que j'ai acheté hier ?", "french", "2026-03-15 2026-03-15"),
        ("Was sagte der so nette Mann?", "german", ""),
        ("Wie schwer ist der Hund jetzt?", "german", ""),
        ("Wann wird meine Frau 55?", "german", ""),
        ("¿Qué pastilla tomo por la mañana?", "spanish", ""),
        ("Was war am 14. Januar 2024? " + "Und dann? " * 40, "german", ""),
        ("Was war am 14. Januar 2024?", "none", ""),
    ],
)
def test_questions_in_other_languages_name_days(text: str, language: str, days: str) -> None:
    """In the brain's language a day, week or month is what it is in English; a short word is no weekday."""
    found = [f"{first} {last}" for first, last in foreign_times(text, NOW, language)]
    assert found == ([days] if days else [])


@given(st.text(alphabet="0123456789 .-/adehlmnorstuwy", max_size=60))
def test_any_text_gives_spans_in_order(text: str) -> None:
    """Whatever is typed, spans quote the text, do not overlap, and do not end before they start."""
    end = 0
    for span in find_times(text, NOW):
        assert span.text == text[span.start : span.end]
        assert span.start >= end
        assert span.earliest <= span.latest
        end = span.end


def test_a_day_is_written_for_a_reader() -> None:
    assert "3 March 2026" == format_date(date(2026, 3, 3))
