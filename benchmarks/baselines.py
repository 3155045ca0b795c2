"""The usual ways to find a turn, for comparison on the same turns: full-text engines, vectors, ripgrep."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

Find = Callable[[str, int], Sequence[int]]

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
_STOP = frozenset(
    """a an the and or but if of at by for with about to from in on is are was were be been being do does did has have
    had what when where which who whom whose why how i you he she it we they his her its their my your this that these
    those will would can could should may might not""".split()
)


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in _STOP]


def fts5(turns: Sequence[str]) -> Find:
    """SQLite FTS5, Porter stems, any of the words, stop words dropped from the query."""
    database = sqlite3.connect(":memory:")
    database.execute("create virtual table turns using fts5(text, tokenize='porter unicode61')")
    database.executemany("insert into turns (rowid, text) values (?, ?)", enumerate(turns))

    def find(question: str, limit: int) -> Sequence[int]:
        asked = " OR ".join(f'"{word}"' for word in _words(question)) or '"x"'
        rows = database.execute("select rowid from turns where turns match ? order by rank limit ?", (asked, limit))
        return [row[0] for row in rows]

    return find


def bm25s(turns: Sequence[str]) -> Find | None:
    """The library bm25s with Snowball stems, k1 0.9, b 0.3; None when it is not installed."""
    try:
        import bm25s as library
        import Stemmer
    except ImportError:
        return None
    stem = Stemmer.Stemmer("english").stemWord

    def split(text: str) -> list[str]:
        return [stem(word) for word in _words(text)] or [""]

    index = library.BM25(k1=0.9, b=0.3)
    index.index([split(turn) for turn in turns], show_progress=False)

    def find(question: str, limit: int) -> Sequence[int]:
        found, _ = index.retrieve([split(question)], k=min(limit, len(turns)), show_progress=False)
        return [int(number) for number in found[0]]

    return find


def dense(turns: Sequence[str]) -> Find | None:
    """The local embedder alone; None when it is not installed."""
    try:
        from brainiac.search.embed import EmbedderError, local_embedder
    except ImportError:
        return None
    try:
        embedder = local_embedder()
    except EmbedderError:
        return None
    vectors = _embedded(tuple(turns))

    def find(question: str, limit: int) -> Sequence[int]:
        asked = embedder.embed([question], is_query=True)[0]
        return [int(number) for number in np.argsort(-(vectors @ asked))[:limit]]

    return find


@lru_cache(maxsize=2)
def _embedded(texts: tuple[str, ...]) -> np.ndarray:
    from brainiac.search.embed import local_embedder

    return local_embedder().embed(texts)


def reciprocal_ranks(turns: Sequence[str]) -> Find | None:
    """BM25 and the local embedder fused by the reciprocals of their ranks."""
    by_words, by_meaning = okapi(turns), dense(turns)
    if by_meaning is None:
        return None

    def find(question: str, limit: int) -> Sequence[int]:
        scores: Counter[int] = Counter()
        for found in (by_words(question, 100), by_meaning(question, 100)):
            scores.update({number: 1 / (60 + place) for place, number in enumerate(found)})
        return [number for number, _ in scores.most_common(limit)]

    return find


def okapi(texts: Sequence[str], language: str = "english", k1: float = 0.9, b: float = 0.4) -> Find:
    """BM25 over stems of Snowball's for a language it has, pairs of signs in scripts without spaces."""
    import Stemmer

    stem = Stemmer.Stemmer(language).stemWord if language in Stemmer.algorithms() else str

    def split(text: str) -> list[str]:
        pairs = [run[at : at + 2] for run in _UNSPACED.findall(text) for at in range(max(1, len(run) - 1))]
        return pairs + [stem(word) for word in _words(_UNSPACED.sub(" ", text))]

    return _bm25(texts, split, k1, b)


def trigrams(texts: Sequence[str]) -> Find:
    """BM25 over runs of three signs, blanks among them."""

    def split(text: str) -> list[str]:
        words = " ".join(re.findall(r"\w+", text.lower()))
        plain = f" {words} "
        return [plain[at : at + 3] for at in range(len(plain) - 2)]

    return _bm25(texts, split, 1.2, 0.75)


def _bm25(texts: Sequence[str], split: Callable[[str], list[str]], k1: float, b: float) -> Find:
    counts = [Counter(split(text)) for text in texts]
    frequencies = Counter(term for count in counts for term in count)
    lengths = np.array([max(sum(count.values()), 1) for count in counts])

    def find(question: str, limit: int) -> Sequence[int]:
        scores = np.zeros(len(texts))
        for term in dict.fromkeys(split(question)):
            idf = np.log(1 + (len(texts) - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
            has = np.array([count[term] for count in counts], float)
            scores += idf * has / (has + k1 * (1 - b + b * lengths / lengths.mean()))
        best = np.argsort(-scores, kind="stable")[:limit]
        return [int(number) for number in best if scores[number] > 0]

    return find


def ripgrep(turns: Sequence[str]) -> Find | None:
    """Files by how many of the question's words ripgrep finds in them; None when it is not installed."""
    if shutil.which("rg") is None:
        return None
    folder = Path(tempfile.mkdtemp())
    for number, turn in enumerate(turns):
        (folder / str(number)).write_text(turn, "utf-8")

    def find(question: str, limit: int) -> Sequence[int]:
        met: Counter[int] = Counter()
        for word in set(_words(question)):
            output = subprocess.run(["rg", "-liw", word, "."], cwd=folder, capture_output=True, text=True, check=False)
            met.update(int(Path(line).name) for line in output.stdout.splitlines())
        return [number for number, _ in met.most_common(limit)]

    return find


BASELINES: dict[str, Callable[[Sequence[str]], Find | None]] = {
    "fts5": fts5,
    "bm25s": bm25s,
    "trigrams": trigrams,
    "dense": dense,
    "rrf": reciprocal_ranks,
    "ripgrep": ripgrep,
}


def usual_ways(texts: Sequence[str], language: str) -> Iterator[tuple[str, Find]]:
    """Yield what texts of a language are compared by: BM25, runs of signs, the local embedder."""
    yield "bm25", okapi(texts, language)
    yield "trigrams", trigrams(texts)
    if find := dense(texts):
        yield "embedder", find
