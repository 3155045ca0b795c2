"""English words and stems for the check of a model's merges, which alone knows a language (docs/decisions)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]  # PyStemmer: Snowball in C

_WORD = re.compile(r"[^\W_]+(?:['’.&/-][^\W_]+)*")
_CLITIC = re.compile(r"['’](?:s|re|ve|ll|d|m)$")


class _Stemmers(threading.local):
    """One stemmer a thread: a Snowball stemmer keeps the word it works on in itself."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english")


_STEMMERS = _Stemmers()


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the stem of a case-folded word; irregular forms count as their base form (`ate` → `eat`)."""
    return str(_STEMMERS.english.stemWord(_irregular_forms().get(word, word)))


@cache
def _irregular_forms() -> dict[str, str]:
    forms = {}
    for line in data_lines("irregular.txt"):
        base, *others = line.split()
        forms.update(dict.fromkeys(others, base))
    return forms


@cache
def stop_words() -> frozenset[str]:
    """Return the words that carry no content."""
    return frozenset(" ".join(data_lines("stop_words.txt")).split())


def content_stems(text: str) -> list[str]:
    """Return the stems of the words that carry content, in order."""
    tokens = (_CLITIC.sub("", word.replace("’", "'")).casefold() for word in _WORD.findall(text))
    return [stem(token) for token in tokens if token not in stop_words()]


def overlap(first: Sequence[str], second: Iterable[str]) -> float:
    """Return the share of the first stems that the second hold, 0 to 1."""
    others = set(second)
    return sum(word in others for word in first) / len(first) if first else 0.0


def data_lines(name: str) -> list[str]:
    """Return the lines of a word list of this package, comments and blanks left out."""
    text = (Path(__file__).parent / name).read_text("utf-8")
    return [line for line in (raw.split("#")[0].strip() for raw in text.splitlines()) if line]
