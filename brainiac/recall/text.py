"""Words as the index and the ranker see them: one analysis for pages, queries and every engine.

Stems carry no positions and stop words none at all: phrases are checked on the text itself.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

# Scripts written without spaces become overlapping pairs: a word of two signs is found, and no segmenter is needed.
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])\w)+(?:['’](?:(?![{_UNSPACED}])\w)+)*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_PUNCTUATION = '.,;:!?()[]*"“”'
_POSSESSIVE = re.compile(r"['’]s?$")

# The engine's own English list has 33 words; questions and talk are made of many more.
_ENGLISH_STOP_WORDS = frozenset(
    """a an the and or but if then than so as of at by for with about against between into through during to from in
    out on off over under again here there i me my myself we us our ours you your yours he him his she her hers it its
    they them their theirs this that these those am is are was were be been being have has had having do does did
    doing done will would shall should can could may might must what which who whom whose when where why how all any
    both each more most other some such no nor not only own same too very just also ever many much get got let i'm
    i've i'd i'll it's that's there's he's she's we're we've you're you've they're don't didn't doesn't can't isn't
    wasn't won't what's who's how's let's""".split()
)
PREFIX_CHARACTERS = 5
_MAX_REMEMBERED, _LONGEST_REMEMBERED = 100_000, 40


class Words(NamedTuple):
    """What is known of a text: stems of its content words joined by blanks, two hashes of each, and what it shows.

    Attributes:
        stems: Without stop words, in order.
        hashes: uint32, one a stem; prefixes: likewise, of their beginnings.
        signs: What any of all its words shows.
    """

    stems: str
    hashes: bytes
    prefixes: bytes
    signs: int


_NOTHING = Words("", b"", b"", 0)

# What a word shows by itself, whatever stands around it.
TIME, NUMBER, FIRST_PERSON, CAPITAL = 1, 2, 4, 8

_TIME = frozenset(
    """yesterday today tonight tomorrow last next ago week weeks weekend month months year years recently monday tuesday
    wednesday thursday friday saturday sunday january february march april may june july august september october
    november december summer winter spring since morning evening birthday soon just""".split()
)
_NUMBER = frozenset(
    "one two three four five six seven eight nine ten once twice couple several few dozen first second third".split()
)
_FIRST_PERSON = re.compile(r"(?:i|my|we|our|me|mine|us)(?:['’]\w+)?")


class Analyzer:
    """Turn text into content words for one language; safe to share between threads.

    What stands between two blanks is analyzed once and remembered: text repeats itself.

    Args:
        language: Snowball's name for it; an unknown one means no stemming and no stop words.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._stem, self._stop_words = _language_tools(language)
        self._base_of = {}
        self._known = _Remembered(self._analyzed)

    def words(self, text: str) -> Words:
        """Return what is known of a text's words, unspaced scripts in pairs."""
        known = self._known
        found = [known[piece] for piece in text.split()]
        return _joined(found) if found else _NOTHING

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's content words, in order, stop words left out."""
        return self.words(text).stems.split()

    def _analyzed(self, piece: str) -> Words:
        if (bare := piece.strip(_PUNCTUATION)) != piece:
            return self._known[bare]
        found = []
        for token in _TOKEN.findall(piece):
            if token[0] > "\u0dff" and len(token) > 1 and _IS_UNSPACED.match(token):
                found += [self._word(token[i : i + 2]) for i in range(len(token) - 1)]
            else:
                found.append(self._word(token))
        return _joined(found) if found else _NOTHING

    def _word(self, token: str) -> Words:
        folded = token.casefold()
        bare = _POSSESSIVE.sub("", "".join(unicodedata.normalize("NFKC", folded).split()).replace("’", "'"))
        is_digits = token.isdecimal()
        signs = (
            TIME * (folded in _TIME or (is_digits and len(token) == 4))
            | NUMBER * (is_digits or folded in _NUMBER)
            | FIRST_PERSON * bool(_FIRST_PERSON.fullmatch(folded))
            | CAPITAL * (len(token) > 1 and token[0].isupper() and token[1].islower())
        )
        is_stop = folded in self._stop_words or bare in self._stop_words
        stem = "" if is_stop else self._stem(self._base_of.get(bare, bare))
        return (
            Words(stem, packed(term_hash(stem)), packed(prefix_hash(stem)), signs)
            if stem
            else Words("", b"", b"", signs)
        )


class _Remembered(dict[str, Words]):
    """A cache, not a vocabulary: hostile text must not fill memory."""

    def __init__(self, make: Callable[[str], Words]) -> None:
        self._make = make

    def __missing__(self, piece: str) -> Words:
        made = self._make(piece)
        if len(piece) <= _LONGEST_REMEMBERED:
            if len(self) >= _MAX_REMEMBERED:
                self.clear()
            self[piece] = made
        return made


def _joined(found: Sequence[Words]) -> Words:
    stems, hashes, prefixes, shown = zip(*found, strict=True)
    signs = 0
    for sign in set(shown):
        signs |= sign
    return Words(" ".join(filter(None, stems)), b"".join(hashes), b"".join(prefixes), signs)


def plain_words(text: str) -> frozenset[str]:
    """Return the words of a text casefolded and without `'s`, as names of speakers are compared."""
    return frozenset(_POSSESSIVE.sub("", token) for token in _TOKEN.findall(text.casefold()))


@lru_cache(maxsize=8)
def _language_tools(language: str) -> tuple[Callable[[str], str], frozenset[str]]:
    import tantivy

    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
    try:
        stemmer = words.filter(tantivy.Filter.stemmer(language)).build()
    except ValueError:
        return (lambda word: word), frozenset()
    stop_words = _ENGLISH_STOP_WORDS if language == "english" else frozenset()
    try:
        stopper = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stopword(language)).build()
    except ValueError:
        stopper = None

    def stem(word: str) -> str:
        if stopper is not None and not stopper.analyze(word):
            return ""
        found = stemmer.analyze(word)
        return found[0] if found else word

    return stem, stop_words


def term_hash(term: str) -> int:
    """Return a term's 32-bit identity, the same on every machine."""
    return zlib.crc32(term.encode())


def prefix_hash(term: str) -> int:
    """Return the identity of a term's beginning, which joins `counselor` and `counseling`."""
    return zlib.crc32(term[:PREFIX_CHARACTERS].encode())


def packed(hash_: int) -> bytes:
    """Return a hash as it stands among a page's."""
    return hash_.to_bytes(4, sys.byteorder)
