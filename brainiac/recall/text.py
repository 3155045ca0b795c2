"""Words as the index and the ranker see them: one analysis for pages, queries and every engine.

Stems carry no positions and stop words none at all: phrases are checked on the text itself.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache

from brainiac.language.sentences import irregular_forms

# Scripts written without spaces become overlapping pairs: a word of two signs is found, and no segmenter is needed.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])\w)+(?:['’](?:(?![{_UNSPACED}])\w)+)*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_POSSESSIVE = re.compile(r"['’]s?$")

# The engine's own English list has 33 words; questions and talk are made of many more.
_ENGLISH_STOP_WORDS = frozenset(
    "a an the and or but if then than so as of at by for with about against between into through during to from in out "
    "on off over under again here there i me my myself we us our ours you your yours he him his she her hers it its they "
    "them their theirs this that these those am is are was were be been being have has had having do does did doing done "
    "will would shall should can could may might must what which who whom whose when where why how all any both each "
    "more most other some such no nor not only own same too very just also ever many much get got let i'm i've i'd i'll "
    "it's that's there's he's she's we're we've you're you've they're don't didn't doesn't can't isn't wasn't won't "
    "what's who's how's let's".split()
)
PREFIX_CHARACTERS = 5
_MAX_REMEMBERED = 200_000


class Analyzer:
    """Turn text into content words for one language; safe to share between threads.

    Args:
        language: Snowball's name for it; an unknown one means no stemming and no stop words.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._stem, self.stop_words = _language_tools(language)
        self._base_of = irregular_forms() if language == "english" else {}
        self._known: dict[str, str] = {}
        self._hashes: dict[str, tuple[int, int]] = {}

    def words(self, text: str) -> Iterator[str]:
        """Yield the words of a text as they stand, casefolded, unspaced scripts in pairs."""
        for token in _TOKEN.findall(text.casefold()):
            if _IS_UNSPACED.match(token) and len(token) > 1:
                yield from (token[i : i + 2] for i in range(len(token) - 1))
            else:
                yield token

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's content words, in order, stop words left out."""
        known, stems = self._known, []
        for word in self.words(text):
            stem = known.get(word)
            if stem is None:
                stem = known[word] = self._term(word)
            if stem:
                stems.append(stem)
        return stems

    def hashes(self, term: str) -> tuple[int, int]:
        """Return the hashes of a stem and of its beginning, remembered from one page to the next."""
        found = self._hashes.get(term)
        if found is None:
            if len(self._hashes) > _MAX_REMEMBERED:
                self._hashes.clear()
            found = self._hashes[term] = (term_hash(term), prefix_hash(term))
        return found

    def _term(self, word: str) -> str:
        if len(self._known) > _MAX_REMEMBERED:  # a cache, not a vocabulary: hostile text must not fill memory
            self._known.clear()
        bare = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", word).replace("’", "'"))
        if word in self.stop_words or bare in self.stop_words:
            return ""
        return self._stem(self._base_of.get(bare, bare))


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
