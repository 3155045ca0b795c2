"""Words as the index and the ranker see them: one analysis for pages, queries and every engine.

Stems carry no positions and stop words none at all: phrases are checked on the text itself.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from brainiac.language.sentences import irregular_forms

# Scripts written without spaces become overlapping pairs: a word of two signs is found, and no segmenter is needed.
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])\w)+(?:['’](?:(?![{_UNSPACED}])\w)+)*")
_SPACED_TOKEN = re.compile(r"\w+(?:['’]\w+)*")  # three times as fast, for the text that most text is
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
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
_MAX_REMEMBERED = 200_000


class Word(NamedTuple):
    """What is known of a word as it stands: its stem ("" for a stop word), its hashes, and what it shows."""

    stem: str
    hash: int
    prefix: int
    signs: int


# What a word shows by itself, whatever stands around it.
TIME, NUMBER, FIRST_PERSON, CAPITAL = 1, 2, 4, 8

_TIME = re.compile(
    r"yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|recently|(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december|summer"
    r"|winter|spring|since|\d{4}|morning|evening|birthday|soon|just"
)
_NUMBER = re.compile(
    r"\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|couple|several|few|dozen|first|second|third"
)
_FIRST_PERSON = re.compile(r"(?:i|my|we|our|me|mine|us)(?:['’]\w+)?")


class Analyzer:
    """Turn text into content words for one language; safe to share between threads.

    Args:
        language: Snowball's name for it; an unknown one means no stemming and no stop words.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._stem, self.stop_words = _language_tools(language)
        self._base_of = irregular_forms() if language == "english" else {}
        self._known: dict[str, Word] = {}

    def words(self, text: str) -> list[Word]:
        """Return what is known of each word of a text, in order, unspaced scripts in pairs."""
        known, found = self._known, []
        for token in (_SPACED_TOKEN if text.isascii() else _TOKEN).findall(text):
            word = known.get(token)
            if word is None:
                if token[0] > "\u0dff" and len(token) > 1 and _IS_UNSPACED.match(token):
                    found += [self._word(token[i : i + 2]) for i in range(len(token) - 1)]
                    continue
                word = self._word(token)
            found.append(word)
        return found

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's content words, in order, stop words left out."""
        return [word.stem for word in self.words(text) if word.stem]

    def _word(self, token: str) -> Word:
        if len(self._known) > _MAX_REMEMBERED:  # a cache, not a vocabulary: hostile text must not fill memory
            self._known.clear()
        folded = token.casefold()
        bare = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", folded).replace("’", "'"))
        is_stop = folded in self.stop_words or bare in self.stop_words
        stem = "" if is_stop else self._stem(self._base_of.get(bare, bare))
        signs = (
            TIME * bool(_TIME.fullmatch(folded))
            | NUMBER * bool(_NUMBER.fullmatch(folded))
            | FIRST_PERSON * bool(_FIRST_PERSON.fullmatch(folded))
            | CAPITAL * (len(token) > 1 and token[0].isupper() and token[1].islower())
        )
        word = self._known[token] = Word(stem, term_hash(stem), prefix_hash(stem), signs)
        return word


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
