"""The usual ways to find a text, for comparison on the same texts: SQLite FTS5, BM25, runs of signs, vectors, RRF."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

import numpy as np
import Stemmer

Find = Callable[[str, int], Sequence[int]]

WAYS = ("fts5", "bm25", "trigrams", "embedder", "rrf")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
_STOP = frozenset(
    """a an the and or but if of at by for with about to from in on is are was were be been being do does did has have
    had what when where which who whom whose why how i you he she it we they his her its their my your this that these
    those will would can could should may might not""".split()
)
_FUSED_FROM, _FUSED_PLACES = 60, 100  # as reciprocal ranks were published: Cormack and others, 2009


def usual_ways(texts: Sequence[str], language: str = "english") -> Iterator[tuple[str, Find]]:
    """Yield what texts of a language are compared by; without the local embedder nothing with vectors.

    Args:
        texts: What is searched.
        language: As Snowball calls it; "" where it has none.
    """
    yield "fts5", fts5(texts)
    by_words = bm25(texts, partial(stems, language=language), 0.9, 0.4)
    yield "bm25", by_words
    yield "trigrams", bm25(texts, runs_of_signs, 1.2, 0.75)
    if by_meaning := embedder(texts):
        yield "embedder", by_meaning
        yield "rrf", reciprocal_ranks(by_words, by_meaning)


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in _STOP]


def stems(text: str, language: str) -> list[str]:
    """Return Snowball's stems for a language it has, pairs of signs in scripts without spaces."""
    stem = _stemmer(language)
    pairs = [run[at : at + 2] for run in _UNSPACED.findall(text) for at in range(max(1, len(run) - 1))]
    return pairs + [stem(word) for word in _words(_UNSPACED.sub(" ", text))]


@lru_cache
def _stemmer(language: str) -> Callable[[str], str]:
    return Stemmer.Stemmer(language).stemWord if language in Stemmer.algorithms() else str


def runs_of_signs(text: str) -> list[str]:
    """Return the runs of three signs, blanks among them."""
    words = " ".join(re.findall(r"\w+", text.lower()))
    plain = f" {words} "
    return [plain[at : at + 3] for at in range(len(plain) - 2)]


def fts5(texts: Sequence[str]) -> Find:
    """SQLite FTS5, Porter stems, any of the words, stop words dropped from the query."""
    database = sqlite3.connect(":memory:")
    database.execute("create virtual table texts using fts5(text, tokenize='porter unicode61')")
    database.executemany("insert into texts (rowid, text) values (?, ?)", enumerate(texts))

    def find(question: str, limit: int) -> Sequence[int]:
        asked = " OR ".join(f'"{word}"' for word in _words(question)) or '"x"'
        rows = database.execute("select rowid from texts where texts match ? order by rank limit ?", (asked, limit))
        return [row[0] for row in rows]

    return find


def bm25(texts: Sequence[str], split: Callable[[str], list[str]], k1: float, b: float) -> Find:
    """BM25 in Lucene's form, as the library bm25s has it, over what `split` makes of a text."""
    postings: dict[str, list[tuple[int, int]]] = {}
    lengths = np.ones(len(texts))
    for number, text in enumerate(texts):
        terms = Counter(split(text))
        lengths[number] = max(terms.total(), 1)
        for term, count in terms.items():
            postings.setdefault(term, []).append((number, count))
    norm = k1 * (1 - b + b * lengths / lengths.mean())

    def find(question: str, limit: int) -> Sequence[int]:
        scores = np.zeros(len(texts))
        for term in dict.fromkeys(split(question)):
            if term in postings:
                numbers, counts = np.array(postings[term]).T
                idf = np.log(1 + (len(texts) - len(numbers) + 0.5) / (len(numbers) + 0.5))
                scores[numbers] += idf * counts / (counts + norm[numbers])
        best = np.argsort(-scores, kind="stable")[:limit]
        return [int(number) for number in best if scores[number] > 0]

    return find


def embedder(texts: Sequence[str]) -> Find | None:
    """The local embedder alone; None when it cannot be loaded."""
    from brainiac.search.embed import EmbedderError, local_embedder

    try:
        model = local_embedder()
    except EmbedderError:
        return None
    vectors = model.embed(texts)

    def find(question: str, limit: int) -> Sequence[int]:
        asked = model.embed([question], is_query=True)[0]
        return [int(number) for number in np.argsort(-(vectors @ asked))[:limit]]

    return find


def reciprocal_ranks(*ways: Find) -> Find:
    """Several ways fused by the reciprocals of their ranks."""

    def find(question: str, limit: int) -> Sequence[int]:
        scores: Counter[int] = Counter()
        for way in ways:
            scores.update(
                {number: 1 / (_FUSED_FROM + place) for place, number in enumerate(way(question, _FUSED_PLACES), 1)}
            )
        return [number for number, _ in scores.most_common(limit)]

    return find
