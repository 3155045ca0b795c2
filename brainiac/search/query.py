"""What is asked: words, who, when, and the field syntax of `brainiac search`; and where it stands in a text.

One prompt may be searched for in several ways: `searches` says what is searched for, `merged` makes one list of it.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import reduce
from operator import and_
from typing import Any, NamedTuple, TypeAlias

from brainiac.search.documents import NO_DAY, Hit, Page
from brainiac.search.text import Analyzer, Token, folded, grams_of, languages_of, mark_of, plain_words, telling_words
from brainiac.text.dates import TIMES, days_named, time_named
from brainiac.text.tokens import ends_as_question

_WHEN = re.compile(r"\b(?:when|(?:what|which) (?:date|day|month|year|time|week)|how long)\b", re.IGNORECASE)
_WHERE = re.compile(r"\b(?:where|(?:what|which) (?:city|country|place|state|town|area))\b", re.IGNORECASE)
_COUNT = re.compile(r"\bhow (?:many|much|often|old|long)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE)
_USER = frozenset({"i", "my", "me", "mine", "we", "our"})
_AI = frozenset({"you", "your", "yours"})
_TYPES = ("concrete", "events", "skills", "short-term", "archive")
_LONGEST_SPAN_DAYS = 370
_LONGEST_LISTED_DAYS = 31
# Beside a day these leave open what is asked: then it is listed what was said. They decide this display, nothing else.
_TELLS_NOTHING = frozenset(
    """what anything happen happened going went say said tell told write wrote note noted talk about
    was passiert geschah geschehen gemacht gesagt geschrieben erzählt erlebt los getan
    quoi fait passé dit écrit est cosa fatto successo detto scritto che
    qué hice hecho pasó dije escribí wat deed gedaan gebeurd gebeurde gezegd fiz fez aconteceu disse
    что делал делала было сказал сказала произошло vad gjorde hände sa""".split()
)
_MARKED_DAYS = 7
# A score is a log-likelihood by learned weights: what only a model's query finds is taken to be e² times less likely.
# Measured against sums, ranks and filling up: docs/decisions/model-queries.md.
DOUBT = 2.0
PROMPT_CHARACTERS = 4_000  # an embedder reads no more, and what is asked stands at an end
SHOWN_CHARACTERS = 400
_PLAIN = Analyzer("none")
_MOST_ASKED = 32  # words of a long query
_LEAD = 0.25  # so much of an excerpt stands before its first match
_ELLIPSIS = "…"


# --- fields: what narrows a query -------------------------------------------------------------------------------


class Reading(NamedTuple):
    """What a field's value is read with.

    Attributes:
        now: The moment from which "last week" counts, in the person's time zone.
        language: As `time_named` takes it.
        long_term: Where long-term memory lies, relative.
        folders: The folders of long-term memory, each of which is a type; None where any is taken for one.
    """

    now: datetime
    language: str = "english"
    long_term: str = ""
    folders: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a query, such as `path:` in `path:garden`.

    Attributes:
        help: How it is written, in the help of `brainiac search`.
        read: Makes of what a person wrote what pages are compared with; its `ValueError` says what is wrong, and what
            there is.
        allows_page: Whether a value allows a page, given the first and last day of its units.
        allows_units: Which units a value allows, given the day of each as an array of ordinals, which is `NO_DAY` where
            it has none; None where it allows all units of its pages.
        is_any: Of several values any must allow a page, not each of them.
        mark: Passages of the pages that a value allows have it, behind this sign, among their terms; "" where not.
    """

    help: str
    read: Callable[[str, Reading], Any]
    allows_page: Callable[[Any, Page, tuple[int, int]], bool]
    allows_units: Callable[[Any, Any], Any] | None = None
    is_any: bool = False
    mark: str = ""


def _read_day(value: str, reading: Reading) -> int:
    """Return the day that `after:` or `before:` names, as an ordinal; of several, such as a month, the first."""
    named = time_named(value, reading.now, reading.language)
    if named is None:
        raise ValueError(f"is no time; give {TIMES} (with blanks in quotation marks)")
    return named[0].astimezone(reading.now.tzinfo).toordinal()


def _read_type(value: str, reading: Reading) -> str:
    """Return the type that `type:` names: the beginning of a path, or what is not in long-term memory."""
    value = value.casefold()
    kind = {"event": "events", "skill": "skills", "stm": "short-term", "archived": "archive"}.get(value, value)
    types = dict.fromkeys((*_TYPES, *sorted(map(str.casefold, reading.folders or ()))))
    if reading.folders is not None and kind not in types:
        raise ValueError(f"is no type of page; there are {', '.join(types)}")
    return kind if kind in ("short-term", "archive") else f"{reading.long_term}/{kind}/".casefold()


def _is_of_type(kind: str, page: Page, _: tuple[int, int]) -> bool:
    """Return whether a page is of a type that `_read_type` returned."""
    if kind == "archive":
        return page.is_archived
    return page.path.endswith("/short_term.md") if kind == "short-term" else page.path.casefold().startswith(kind)


# Every field that a query may have: it is read, explained and applied by its line here.
FIELDS: dict[str, Field] = {
    "tag": Field(
        "tag:NAME",
        lambda value, _: value.lstrip("#").casefold(),
        lambda tag, page, _: tag in {other.casefold() for other in page.tags},
        mark="#",
    ),
    "type": Field(f"type:{'|'.join(_TYPES)}", _read_type, _is_of_type, is_any=True),
    "after": Field("after:2024-05", _read_day, lambda day, _, days: days[1] >= day, lambda day, said: said >= day),
    # what has no day is not before any
    "before": Field(
        "before:DATE", _read_day, lambda day, _, days: days[0] < day, lambda day, said: (said < day) & (said != NO_DAY)
    ),
    "path": Field(
        "path:PART", lambda value, _: value.casefold(), lambda part, page, _: part in page.path.casefold(), is_any=True
    ),
}
FIELD_NAMES = " ".join(f"{name}:" for name in FIELDS)
FIELDS_HELP = " ".join(field.help for field in FIELDS.values())
_NAMES = "|".join(FIELDS)
_FIELD = re.compile(rf'(?<!\S)(-?)(?:({_NAMES}):("[^"]*"|\S+)|"([^"]+)"|(?<=-)(\w\S*))', re.IGNORECASE)
_SYNTAX = re.compile(rf'(?<!\S)-?((?:{_NAMES}):)(?=\S)|(?<!\S)-(?=[\w"])|"', re.IGNORECASE)


# The values of a query's fields by their names, as each was read.
Narrowing: TypeAlias = Mapping[str, Sequence[Any]]


def allows_page(narrowing: Narrowing, page: Page, days: tuple[int, int]) -> bool:
    """Return whether a query's fields allow a page, given the first and last day of its units."""
    return all(
        (any if FIELDS[name].is_any else all)(FIELDS[name].allows_page(value, page, days) for value in values)
        for name, values in narrowing.items()
    )


def allowed_units(narrowing: Narrowing, day: Any) -> Any:
    """Return which units a query's fields allow, given the day of each as an array; True for all."""
    allowed = (
        allows(value, day)
        for name, values in narrowing.items()
        if (allows := FIELDS[name].allows_units)
        for value in values
    )
    return reduce(and_, allowed, True)


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
        is_of_days: It asks for these days and hardly anything besides ("What did I do on Monday?").
        asks: Which of `when`, `where`, `count`, `who` it asks.
        is_question: It ends in a question mark.
        phrases: Must stand word for word; without_words: must not stand.
        phrase_terms: Stems of the phrases' words.
        narrowing: What its fields ask for.
    """

    text: str
    terms: tuple[str, ...]
    tokens: tuple[Token, ...] = ()
    words: frozenset[str] = frozenset()
    name: str = ""
    days: tuple[int, int] | None = None
    is_of_days: bool = False
    asks: frozenset[str] = frozenset()
    is_question: bool = False
    phrases: tuple[str, ...] = ()
    without_words: tuple[str, ...] = ()
    phrase_terms: tuple[str, ...] = ()
    narrowing: Narrowing = field(default_factory=dict)

    @property
    def listing(self) -> Query | None:
        """The same query of what was said on its days alone; None where it asks for more than days."""
        if not self.is_of_days or self.days is None or self.narrowing:
            return None
        return replace(self, narrowing={"after": [self.days[0]], "before": [self.days[1] + 1]})

    @property
    def required(self) -> list[str]:
        """The terms and marks that every hit's passage must have."""
        marks = ((FIELDS[name].mark, values) for name, values in self.narrowing.items())
        return [*self.phrase_terms, *(f"{mark}{value}" for mark, values in marks if mark for value in values)]

    @property
    def marks(self) -> list[str]:
        """The marks of the page and the days asked about, as passages carry them."""
        marks = [self.name] if self.name else []
        if self.days and self.days[1] - self.days[0] <= _LONGEST_SPAN_DAYS:
            days = [date.fromordinal(day).isoformat() for day in range(self.days[0], self.days[1] + 1)]
            marks += [f"@{day}" for day in days[:_MARKED_DAYS]]
            marks += [f"@{month}" for month in dict.fromkeys(day[:7] for day in days)]
        return marks


def parse_query(text: str, analyzer: Analyzer, now: datetime, long_term: str = "") -> Query:
    """Parse a query.

    Args:
        text: As a person types it: `tag:`, `type:`, `after:`, `before:`, `path:`, "exact words", `-word`, and words.
        analyzer: The person's language and time zone.
        now: What "last week" refers to.
        long_term: Where long-term memory lies, relative.
    """
    today = now.astimezone(analyzer.zone)
    reading = Reading(today, analyzer.language, long_term)
    narrowing: dict[str, list[Any]] = {}
    phrases: list[str] = []
    without_words: list[str] = []

    def take_out(match: re.Match[str]) -> str:
        """Note a field, a phrase, or a word with a minus; return what stays in its place: the words of a phrase."""
        minus, name, value, phrase, word = match.groups()
        if name:
            with suppress(ValueError):  # a prompt may hold any text
                values = narrowing.setdefault(name.lower(), [])
                values.append(FIELDS[name.lower()].read(value.strip('"'), reading))
        elif word or minus:
            without_words.append(word or phrase)
        else:
            phrases.append(phrase)
            return f" {phrase} "
        return " "

    plain = " ".join(_FIELD.sub(take_out, text).split())
    # a word said twice is asked for once
    tokens = tuple(dict.fromkeys(analyzer.tokens(plain)))
    content = [token.stem for token in tokens if not token.is_stop]
    days, is_of_days = _days(plain, today, analyzer)
    # the page of a day bears its date
    name = date.fromordinal(days[0]).isoformat() if days and is_of_days and days[0] == days[1] else plain
    patterns = {"when": _WHEN, "where": _WHERE, "count": _COUNT, "who": _WHO}
    return Query(
        text=plain,
        terms=tuple(dict.fromkeys(content or (token.stem for token in tokens))),
        tokens=tokens,
        words=plain_words(plain),
        name=mark_of(analyzer.tokens(name)),
        days=days,
        is_of_days=is_of_days,
        asks=frozenset(asked for asked, pattern in patterns.items() if pattern.search(plain)),
        is_question=ends_as_question(plain),
        phrases=tuple(phrases),
        without_words=tuple(without_words),
        phrase_terms=tuple(token.stem for token in analyzer.tokens(" ".join(phrases))),
        narrowing={name: values for name, values in narrowing.items() if values},
    )


def query_problems(text: str, now: datetime, folders: Collection[str] = (), language: str = "english") -> list[str]:
    """Return what is wrong with the fields (`type:`, `after:` and so on) of a query that a person typed, as messages.

    A search ignores a field that it cannot read: a prompt may hold any text.

    Args:
        text: As `parse_query` takes it.
        now: The moment from which "last week" counts.
        folders: The folders of long-term memory, each of which is a type.
        language: As `days_named` takes it.
    """
    problems = [] if text.strip() else ["there is nothing to look for; give words, or a field such as type:events"]
    for _, name, value, *_ in _FIELD.findall(text):
        try:
            if name:
                FIELDS[name.lower()].read(value.strip('"'), Reading(now, language, folders=folders))
        except ValueError as error:
            problems.append(f"{name.lower()}:{value} {error}")
    return problems


def nothing_found(text: str) -> str:
    """Return what a person is told where nothing fits a query as typed: what may find more."""
    is_quoted = any(phrase and not minus for minus, _, _, phrase, _ in _FIELD.findall(text))
    advice = "What is in quotes must stand so, word for word: without the quotes more may be found."
    return (
        f"Nothing in memory fits, nor in what was put to rest. {advice if is_quoted else 'Fewer words may find more.'}"
    )


def without_fields(text: str) -> str:
    """Return a query as typed without its fields and the words that are ruled out; phrases stay."""
    return _FIELD.sub(lambda match: f" {match[4] or ''} " if not match[1] else " ", text)


def speaker_words(query: Query) -> frozenset[str]:
    """Return whom a query may be about: its words, `user` for "I", `ai` for "you"."""
    user = {"user"} if query.words & _USER else set()
    ai = {"ai"} if query.words & _AI else set()
    return query.words | user | ai


def _days(text: str, now: datetime, analyzer: Analyzer) -> tuple[tuple[int, int] | None, bool]:
    """Return the first and last day that a query speaks of, as ordinals, and whether it asks for hardly more than them.

    Of a month at most: what was said on the days of a year is no answer.
    """
    languages = [*languages_of(text), analyzer.language]
    spans, rest = days_named(text, now, languages)
    if not spans:
        return None, False
    first, last = min(first for first, _ in spans).toordinal(), max(last for _, last in spans).toordinal()
    words = [word.casefold() for word in re.findall(r"[^\W\d_]+", rest)]
    tells = set(telling_words(rest.casefold(), languages)) - _TELLS_NOTHING
    is_asked = ends_as_question(text) or not words or words[0] in _TELLS_NOTHING
    return (first, last), is_asked and not tells and last - first <= _LONGEST_LISTED_DAYS


# --- several searches for one prompt ----------------------------------------------------------------------------


def searches(prompt: str, queries: Iterable[str]) -> list[str]:
    """Return the texts to search for: the prompt, then each query with a word that the prompt does not have.

    Of a long prompt the beginning and the end are searched for.
    """
    if len(prompt) > PROMPT_CHARACTERS:  # cut between words
        head, tail = prompt[: PROMPT_CHARACTERS * 3 // 4], prompt[-(PROMPT_CHARACTERS // 4) :]
        prompt = f"{head.rsplit(None, 1)[0]}\n\n{tail.split(None, 1)[-1]}"
    asked = _as_prose(prompt)
    words = _words(asked)
    further = (_as_prose(query) for query in queries if not _words(query) <= words)
    return [asked, *dict.fromkeys(further)]


def _as_prose(text: str) -> str:
    """Return a text in which nothing is field syntax: without quotation marks and minus, with a blank after `path:`."""
    return _SYNTAX.sub(r"\1 ", text)


def merged(searched: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return each place once, best first.

    Args:
        searched: The hits of each search; the prompt's own first.
    """
    best: dict[tuple[str, str, str, int], tuple[float, Hit]] = {}
    for number, hits in enumerate(searched):
        for hit in hits:
            worth = hit.score - (DOUBT if number else 0.0)
            if hit.key not in best or worth > best[hit.key][0]:
                best[hit.key] = worth, hit
    return [hit for _, hit in sorted(best.values(), key=lambda pair: -pair[0])]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


# --- a text around what was asked: no longer than a person reads at a glance ------------------------------------


def excerpt(text: str, query: str, limit: int = SHOWN_CHARACTERS, analyzer: Analyzer = _PLAIN) -> str:
    """Return a text, or of a longer one the part that holds most of a query.

    Args:
        text: Any.
        query: What was asked, as typed.
        limit: The most signs, those for what is left out among them.
        analyzer: The person's language, where it is known: stop words lead nowhere.
    """
    text = text.strip()
    if len(text) <= limit:
        return text
    places = matches(text, query, analyzer)
    room = limit - 2 * len(_ELLIPSIS)
    start = _start_of_best(places, room)
    start = max(0, min(start - int(room * _LEAD), len(text) - room))
    start, end = _whole_words(text, start, start + room)
    before, after = _ELLIPSIS if start else "", _ELLIPSIS if end < len(text) else ""
    return f"{before}{text[start:end].strip()}{after}"


class Place(NamedTuple):
    """Where a text has a word of a query.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last.
        word: The word of the query.
    """

    start: int
    end: int
    word: str


def matches(text: str, query: str, analyzer: Analyzer = _PLAIN) -> list[Place]:
    """Return where the words of a query stand in a text, in other forms too."""
    tokens = dict.fromkeys(analyzer.tokens(query))
    # a query of nothing but stop words means these
    content = [token for token in tokens if not token.is_stop] or tokens
    asked = sorted(content, key=lambda token: -len(token.word))[:_MOST_ASKED]
    matched_word: dict[Token, str] = {}  # by the words of the text; "" where none of the query's matches
    places: list[Place] = []
    for start, end, token in analyzer.spans(text):
        if token not in matched_word:
            matched_word[token] = next((other.word for other in asked if _is_same(other, token)), "")
        if not (word := matched_word[token]):
            continue
        if places and start < places[-1].end:
            # overlapping pairs of signs of a script without spaces are one: 東京, 京都 as 東京都
            places[-1] = Place(places[-1].start, end, places[-1].word + word[-1])
        else:
            places.append(Place(start, end, word))
    return places


def _is_same(asked: Token, token: Token) -> bool:
    """Return whether two words match: by stem, by spelling, or by enough character trigrams."""
    if asked.stem == token.stem or asked.word == token.word:
        return True
    n_shared = len(grams_of(asked.word) & grams_of(token.word))
    # as `vocabulary.similarity` has it, which is for arrays
    return n_shared >= 3 and 2 * n_shared >= min(len(folded(asked.word)), len(folded(token.word)))


def _start_of_best(places: Sequence[Place], room: int) -> int:
    """Return where the stretch begins that has most of the words: each once, the longer and the rarer for more.

    Args:
        places: In the order of the text.
        room: Length of the excerpt, of which a part is shown before the stretch.
    """
    counts = Counter(place.word for place in places)
    weights = {word: len(word) / count for word, count in counts.items()}
    ends = [place.end for place in places]
    best, start = 0.0, 0
    for number, place in enumerate(places):
        last = bisect.bisect_right(ends, place.start + int(room * (1 - _LEAD)))
        weight = sum(weights[word] for word in {inside.word for inside in places[number:last]})
        if weight > best:
            best, start = weight, place.start
    return start


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds moved inwards to blanks, where there are any near."""
    if start and not text[start - 1].isspace():
        blank = next((at for at in range(start, min(start + 40, end)) if text[at].isspace()), start)
        start = blank
    if end < len(text) and not text[end].isspace():
        blank = next((at for at in range(end, max(end - 40, start), -1) if text[at - 1].isspace()), end)
        end = blank
    return start, end
