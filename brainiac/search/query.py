"""What is asked: words, who, when, and the field syntax of `brainiac search`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from brainiac.search.encode import name_mark
from brainiac.search.narrowing import Narrowing
from brainiac.search.text import Analyzer, Token, plain_words
from brainiac.text.times import find_times
from brainiac.text.tokens import ends_as_question

_FIELD = re.compile(r'(?<!\S)(-?)(?:(tag|type|after|before|path):("[^"]*"|\S+)|"([^"]+)"|(?<=-)(\w\S*))', re.IGNORECASE)
_WHEN = re.compile(r"\b(?:when|(?:what|which) (?:date|day|month|year|time|week)|how long)\b", re.IGNORECASE)
_WHERE = re.compile(r"\b(?:where|(?:what|which) (?:city|country|place|state|town|area))\b", re.IGNORECASE)
_COUNT = re.compile(r"\bhow (?:many|much|often|old|long)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE)
_USER = frozenset({"i", "my", "me", "mine", "we", "our"})
_AI = frozenset({"you", "your", "yours"})
_TYPES = ("concrete", "events", "skills", "short-term", "index")
_ALSO_TYPES = frozenset(("event", "skill", "stm", "index-page", "archive", "archived"))
_LONGEST_SPAN_DAYS = 370
_MARKED_DAYS = 7


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart.

    Attributes:
        text: The words without fields.
        terms: Stems of content words, in order, each once; of all words where there are no others.
        tokens: All words, in order, each once.
        words: Casefolded words as they stand, for names of speakers.
        name: The mark of a page that is asked for by its title alone.
        days: First and last day asked about, as ordinals; None when no time is named.
        asks: Which of `when`, `where`, `count`, `who` it asks.
        is_question: It ends in a question mark.
        phrases: Must stand word for word; without_words: must not stand.
        phrase_terms: Stems of the phrases' words.
        narrowing: Tags, types, paths and days asked for.
    """

    text: str
    terms: tuple[str, ...]
    tokens: tuple[Token, ...] = ()
    words: frozenset[str] = frozenset()
    name: str = ""
    days: tuple[int, int] | None = None
    asks: frozenset[str] = frozenset()
    is_question: bool = False
    phrases: tuple[str, ...] = ()
    without_words: tuple[str, ...] = ()
    phrase_terms: tuple[str, ...] = ()
    narrowing: Narrowing = field(default_factory=Narrowing)

    @property
    def reads_text(self) -> bool:
        """Whether hits must be checked on their text."""
        return bool(self.phrases or self.without_words)

    @property
    def required(self) -> list[str]:
        """Return the terms and marks that must stand beside whatever is found."""
        return [*self.phrase_terms, *(f"#{tag}" for tag in self.narrowing.tags)]

    def marks(self) -> list[str]:
        """Return the marks of the page and the days asked about, as passages carry them."""
        name = [self.name] if self.name else []
        return name + (self._day_marks(*self.days) if self.days else [])

    @staticmethod
    def _day_marks(first: int, last: int) -> list[str]:
        if last - first > _LONGEST_SPAN_DAYS:
            return []
        days = [date.fromordinal(day).isoformat() for day in range(first, last + 1)]
        return [f"@{day}" for day in days[:_MARKED_DAYS]] + [
            f"@{month}" for month in dict.fromkeys(d[:7] for d in days)
        ]


def parse_query(text: str, analyzer: Analyzer, now: datetime, long_term: str = "") -> Query:
    """Take a query apart.

    Args:
        text: As a person types it: `tag:`, `type:`, `after:`, `before:`, `path:`, "exact words", `-word`, and words.
        analyzer: The person's language and time zone.
        now: What "last week" refers to.
        long_term: Where long-term memory lies, relative.
    """
    fields: dict[str, list[str]] = {}

    def take(found: re.Match[str]) -> str:
        minus, name, value, phrase, word = found.groups()
        if name:
            fields.setdefault(name.lower(), []).append(value.strip('"'))
        elif word or (minus and phrase):
            fields.setdefault("-", []).append(word or phrase)
        else:
            fields.setdefault('"', []).append(phrase)
            return f" {phrase} "
        return " "

    plain, today = " ".join(_FIELD.sub(take, text).split()), now.astimezone(analyzer.zone)
    tokens = tuple(dict.fromkeys(analyzer.tokens(plain)))
    phrases = tuple(fields.get('"', ()))
    return Query(
        text=plain,
        terms=_terms(tokens),
        tokens=tokens,
        words=plain_words(plain),
        name=name_mark(plain, analyzer),
        days=_days(plain, today),
        asks=_asks(plain),
        is_question=ends_as_question(plain),
        phrases=phrases,
        without_words=tuple(fields.get("-", ())),
        phrase_terms=tuple(token.stem for token in analyzer.tokens(" ".join(phrases))),
        narrowing=Narrowing(
            long_term=long_term,
            paths=tuple(fields.get("path", ())),
            types=tuple(kind.casefold() for kind in fields.get("type", ())),
            tags=tuple(tag.lstrip("#").casefold() for tag in fields.get("tag", ())),
            after=_edge(fields.get("after"), today),
            before=_edge(fields.get("before"), today),
        ),
    )


def _terms(tokens: Sequence[Token]) -> tuple[str, ...]:
    content = [token.stem for token in tokens if not token.is_stop]
    return tuple(dict.fromkeys(content or (token.stem for token in tokens)))


def misfits(text: str, now: datetime, folders: Collection[str] = ()) -> list[str]:
    """Return what is wrong with a query that a person typed as one; a search itself passes over what it cannot read.

    Args:
        text: As `parse_query` takes it.
        now: What "last week" refers to.
        folders: Those of long-term memory, each of which is a type.
    """
    types = dict.fromkeys((*_TYPES, *sorted(map(str.casefold, folders))))
    found = [] if text.strip() else ["there is nothing to look for; give words, or a field such as type:events"]
    for _, name, value, *_ in _FIELD.findall(text):
        field, given = name.lower(), value.strip('"')
        if field in ("after", "before") and _edge([given], now) is None:
            expected = 'a day such as 2026-05-31, 2026-05, yesterday, 7d or "last week"'
            found.append(f"{field}:{value} is no day; expected {expected}")
        elif field == "type" and given.casefold() not in _ALSO_TYPES.union(types):
            found.append(f"type:{value} is no type of page; there are {', '.join(types)}")
    return found


def speaker_words(query: Query) -> frozenset[str]:
    """Return whom a query may be about: its words, `user` for "I", `ai` for "you"."""
    named = set(query.words)
    if named & _USER:
        named.add("user")
    if named & _AI:
        named.add("ai")
    return frozenset(named)


def _asks(text: str) -> frozenset[str]:
    patterns = {"when": _WHEN, "where": _WHERE, "count": _COUNT, "who": _WHO}
    return frozenset(name for name, pattern in patterns.items() if pattern.search(text))


def _days(text: str, now: datetime) -> tuple[int, int] | None:
    spans = [span for span in find_times(text, now) if span.kind in ("point", "range")]
    if not spans:
        return None
    return min(span.earliest for span in spans).toordinal(), max(span.latest for span in spans).toordinal()


def _edge(given: list[str] | None, now: datetime) -> int | None:
    if not given:
        return None
    text = given[-1]
    parts = [int(part) for part in re.findall(r"\d+", text)][:3]
    try:
        if re.fullmatch(r"\d{4}(-\d{1,2}){0,2}", text):
            return date(*[*parts, 1, 1][:3]).toordinal()
    except ValueError:
        pass
    spans = find_times(text.replace("-", " "), now)
    if spans:
        return spans[0].earliest.toordinal()
    days = re.fullmatch(r"(\d{1,5})d", text)
    return (now.date() - timedelta(days=int(days[1]))).toordinal() if days else None
