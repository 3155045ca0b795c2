"""What memory holds, sentence by sentence, from hits and short-term memory; the engine's own answers never count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from brainiac.clock import parse_iso
from brainiac.language.sentences import standard_spelling, stem, stop_words, words
from brainiac.language.statements import Said, statements_of
from brainiac.language.times import TimeSpan, find_times
from brainiac.notes.dialogue import parse_exchanges
from brainiac.notes.short_term import ShortTermMemory
from brainiac.recall.hit import Hit

MAX_QUOTE = 280
MAX_TOLD = 400  # sentences of short-term memory that are looked at, newest first
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
_BLOCK_ID = re.compile(r"\s+\^[\w-]+\s*$")
_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_AI_LABEL = re.compile(r"^\*{0,2}(?:AI|Thoughts|Assistant):\*{0,2}", re.MULTILINE)
_USER_LABEL = re.compile(r"^\*{0,2}User:\*{0,2}\s*\"?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a statement: its stem, and the word as written."""

    stem: str
    word: str
    is_content: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an utterance, ready to be matched.

    Attributes:
        said: The sentence and its kind.
        tokens: Of the sentence in standard spelling, in order.
        stems: Of the words that carry content.
        nearby: Stems of the other sentences of the same short utterance.
        utterance: What is quoted: the whole utterance when it is short.
        names: Stems of words with a capital inside the sentence.
    """

    said: Said
    tokens: tuple[Token, ...]
    stems: frozenset[str]
    nearby: frozenset[str]
    utterance: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence that memory holds.

    Attributes:
        sentence: What was said.
        at: When; the epoch where it is not known.
        hit: Index into the request's hits, or -1 for short-term memory.
        is_past: It stands in a page's History.
        is_typed: It is in the person's own words; False for statements that were filed.
    """

    sentence: Sentence
    at: datetime
    hit: int = -1
    is_past: bool = False
    is_typed: bool = True

    @property
    def said(self) -> Said:
        """The sentence and its kind."""
        return self.sentence.said

    @property
    def is_dated(self) -> bool:
        """Whether it is known when it was said."""
        return self.at is not _UNKNOWN

    def days(self) -> list[TimeSpan]:
        """Return the days its words name, habits and lengths left out."""
        return [span for span in self.said.times if span.kind in ("point", "range")]


def gather(short_term: ShortTermMemory, hits: Sequence[Hit], language: str) -> list[Evidence]:
    """Return everything that can answer: statements, tasks, decisions, how-tos; oldest first, each once."""
    found = list(_of_short_term(short_term, language))
    for index, hit in enumerate(hits):
        if hit.speaker != "ai" and not hit.path.endswith("/_index.md"):  # a blurb is nobody's statement
            found += _of_hit(hit, index, language)
    return sorted(_distinct(found), key=lambda evidence: evidence.at)


@lru_cache(maxsize=4)
def _of_short_term(short_term: ShortTermMemory, language: str) -> tuple[Evidence, ...]:
    """Analyze short-term memory once as long as it stays the same; what is older than that, search finds."""
    found: list[Evidence] = []
    for event in short_term.events:
        found += _of_text(event.user, _moment(event.at), language)
        if len(found) >= MAX_TOLD:
            break
    told = [one.sentence.stems for one in found]
    for item in short_term.facts:
        for fact in _of_text(item.text, _UNKNOWN, language, is_typed=False):
            if not any(len(fact.sentence.stems & stems) >= 0.6 * len(fact.sentence.stems) for stems in told):
                found.append(fact)
    return tuple(found)


def _moment(text: str) -> datetime:
    try:
        return parse_iso(text)
    except ValueError:
        return _UNKNOWN


def _of_hit(hit: Hit, index: int, language: str) -> list[Evidence]:
    at = _moment(hit.at)
    if hit.kind in ("exchange", "note"):
        return [
            evidence
            for text, moment in _exchanges(hit.text, at)
            for evidence in _of_text(text, moment, language, hit=index)
        ]
    found = []
    for text, is_past in _page_lines(hit.text):
        found += _of_text(text, at, language, hit=index, is_past=is_past, is_typed=False)
    return found


def _exchanges(text: str, at: datetime) -> Iterable[tuple[str, datetime]]:
    """Yield what the person said of a raw exchange, whichever way it is written."""
    if events := parse_exchanges(text):
        return [(event.user, _moment(event.at)) for event in events]
    asked = _USER_LABEL.split(text)
    return [(_AI_LABEL.split(part)[0].strip().removesuffix('"'), at) for part in asked if part.strip()]


def _page_lines(text: str) -> Iterable[tuple[str, bool]]:
    """Yield the statements of a memory page, and whether each is history."""
    is_past = False
    for line in _FRONT_MATTER.sub("", text).splitlines():
        if line.startswith("#"):
            is_past = "history" in line.lower()
        elif line.strip():
            yield _BLOCK_ID.sub("", _LIST_MARK.sub("", line)).strip(), is_past


def _of_text(
    text: str, at: datetime, language: str, *, hit: int = -1, is_past: bool = False, is_typed: bool = True
) -> list[Evidence]:
    return [
        Evidence(sentence, at, hit, is_past, is_typed)
        for sentence in _sentences(text, at, language)
        if sentence.said.kind not in ("question", "small-talk", "forget")
    ]


@lru_cache(maxsize=4096)
def _sentences(text: str, at: datetime, language: str) -> tuple[Sentence, ...]:
    """Analyze an utterance once: it is asked about again with every question."""
    said = [one for one in statements_of(text, at) if one.kind not in ("question", "small-talk", "forget")]
    all_tokens = [tokens_of(one.plain, language) for one in said]
    stems = [frozenset(token.stem for token in tokens if token.is_content) for tokens in all_tokens]
    whole = text.strip()
    around = frozenset(token.stem for token in tokens_of(standard_spelling(whole), language) if token.is_content)
    sentences = []
    for index, one in enumerate(said):
        quote = whole if len(whole) <= MAX_QUOTE or one.kind == "how-to" else one.original.strip()
        nearby = around if len(whole) <= MAX_QUOTE else frozenset().union(*stems[max(0, index - 1) : index + 2])
        names = frozenset(
            token.stem
            for token in all_tokens[index][1:]
            if token.is_content and token.word[0].isupper() and not find_times(token.word, at)
        )
        sentences.append(Sentence(one, all_tokens[index], stems[index], nearby - stems[index], quote, names))
    return tuple(sentences)


def tokens_of(text: str, language: str) -> tuple[Token, ...]:
    """Return the words of a text with their stems; parts of a hyphened word follow it."""
    stop = stop_words(language)
    tokens = []
    for word in words(text.replace("’", "'")):
        bare = re.sub(r"'(?:s|re|ve|ll|d|m)?$", "", word)
        for part in (bare, *bare.split("-")) if "-" in bare else (bare,):
            lower = part.casefold()
            tokens.append(Token(stem(lower, language), word, bool(lower) and lower not in stop))
    return tuple(tokens)


def _distinct(found: Iterable[Evidence]) -> Iterable[Evidence]:
    """Keep the first of sentences that say the same: the exchange itself comes before what was filed from it."""
    seen: set[tuple[str, ...]] = set()
    for evidence in found:
        key = (evidence.said.kind, *sorted(evidence.sentence.stems), str(evidence.is_past))
        if evidence.sentence.stems and key not in seen:
            seen.add(key)
            yield evidence
