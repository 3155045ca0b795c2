"""A text around what was asked: whole words, no longer than a person reads at a glance, and where the words stand."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from brainiac.search.text import Analyzer, Token, spans_of
from brainiac.search.vocabulary import folded, grams_of, likeness

SHOWN_CHARACTERS = 400
_PLAIN = Analyzer("none")
_MOST_ASKED = 32  # words of a long query
_LEAD = 0.25  # so much of an excerpt stands before its first match
_ELLIPSIS = "…"


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


def matches(text: str, query: str, analyzer: Analyzer = _PLAIN) -> list[tuple[int, int, str]]:
    """Return where the words of a query stand in a text, in other forms too: start, end, and which word it is."""
    asked = [token for token in dict.fromkeys(analyzer.tokens(query)) if not token.is_stop]
    asked = sorted(asked or dict.fromkeys(analyzer.tokens(query)), key=lambda token: -len(token.word))[:_MOST_ASKED]
    known: dict[Token, str] = {}
    found = []
    for start, end, token in spans_of(text, analyzer):
        if token not in known:
            known[token] = next((one.word for one in asked if _is_same(one, token)), "")
        if known[token]:
            found.append((start, end, known[token]))
    return list(_joined(found))


def _is_same(asked: Token, token: Token) -> bool:
    if asked.stem == token.stem or asked.word == token.word:
        return True
    if min(len(asked.word), len(token.word)) < 3:
        return False
    shared = np.intersect1d(grams_of(asked.word), grams_of(token.word), assume_unique=True)
    sizes = np.array([len(folded(asked.word))]), np.array([len(folded(token.word))])
    return bool(likeness(np.array([len(shared)]), *sizes)[0] > 0)


def _joined(found: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield the places, the overlapping pairs of signs of a script without spaces as one."""
    last: tuple[int, int, str] | None = None
    for start, end, word in found:
        if last and start < last[1]:
            last = last[0], end, last[2] + word[-1]
            continue
        if last:
            yield last
        last = start, end, word
    if last:
        yield last


def _start_of_best(places: Sequence[tuple[int, int, str]], room: int) -> int:
    """Return where the stretch begins that holds most of the words: each once, the longer and the rarer for more."""
    counts = Counter(word for _, _, word in places)
    weights = {word: len(word) / count for word, count in counts.items()}
    ends = [end for _, end, _ in places]
    best, at = 0.0, 0
    for number, (start, _, _) in enumerate(places):
        last = bisect.bisect_right(ends, start + int(room * (1 - _LEAD)))
        held = sum(weights[word] for word in {word for _, _, word in places[number:last]})
        if held > best:
            best, at = held, start
    return at


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds moved inwards to blanks, where there are any near."""
    if start and not text[start - 1].isspace():
        blank = next((at for at in range(start, min(start + 40, end)) if text[at].isspace()), start)
        start = blank
    if end < len(text) and not text[end].isspace():
        blank = next((at for at in range(end, max(end - 40, start), -1) if text[at - 1].isspace()), end)
        end = blank
    return start, end
