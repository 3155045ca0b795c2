"""Words as the index and the ranker see them: one analysis for pages, queries and every engine.

Words carry no positions: phrases are checked on the text itself. What a language knows (stems, stop words) is a help:
without it words are met as they stand, and by the runs of three signs that they share.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import NamedTuple

from brainiac.search.vocabulary import Vocabulary
from brainiac.text.tokens import ends_as_question

# Scripts written without spaces become overlapping pairs: a word of two signs is found, and no segmenter is needed.
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
# Signs that stand on letters (accents, vowels of Hebrew, Arabic, Devanagari and its kin), which are no `\w`.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711"
    "\u0730-\u074a\u0900-\u0963\u0966-\u0dff"
)
_LETTER = rf"(?![{_UNSPACED}])[\w{_MARKS}]"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:{_LETTER})+(?:['’](?:{_LETTER})+)*")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_PUNCTUATION = '.,;:!?()[]*"“”'
_POSSESSIVE = re.compile(r"['’]s?$")

# Every sign whose name says QUESTION MARK, those that open a question left out, and the Greek one.
_QUESTION_MARKS = (
    "?\u037e\u055e\u061f\u1367\u1945\u2047-\u2049\u203d\u2753\u2754\u2a7b\u2a7c\u2cfa\u2cfb\u2e2e\ua60f\ua6f7\ufe16\ufe56\uff1f"
    "\U00011143\U0001e95f\U0001fbc4"
)
_QUESTION_MARK = re.compile(rf"[{_QUESTION_MARKS}]")
_SENTENCE_END = re.compile(rf"(?<=[.!{_QUESTION_MARKS}।॥])[\"'”’»›)\]*_]*\s+|\n+|(?<=[。！？])")
_WORD = re.compile(r"\w")

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
_MAX_REMEMBERED, _LONGEST_REMEMBERED = 100_000, 40
_LONGEST_WORD = 64  # of a longer one only the beginning counts


class Words(NamedTuple):
    """What is known of a text.

    Attributes:
        stems: Of all its words, in order, joined by blanks.
        hashes: uint32, one a word as the vocabulary knows it.
        signs: What any of its words shows.
    """

    stems: str
    hashes: bytes
    signs: int


class Token(NamedTuple):
    """A word of a query: as the vocabulary knows it, its stem, and whether it only joins others (`the`)."""

    word: str
    stem: str
    is_stop: bool


_NOTHING = Words("", b"", 0)

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
    """Turn text into words as one person means them; safe to share between threads.

    What stands between two blanks is analyzed once and remembered: text repeats itself.

    Args:
        language: Snowball's name for it; an unknown one means no stemming and no stop words.
        zone: The person's time zone: "yesterday" is a day of theirs.

    Attributes:
        key: What an index must have been made with to serve.
        vocabulary: Every word that was met.
    """

    def __init__(self, language: str, zone: tzinfo = UTC) -> None:
        self.language, self.zone, self.key = language, zone, f"{language}:{zone}"
        self.vocabulary = Vocabulary()
        self._stem, self._is_stop = _language_tools(language)
        self._known = _Remembered(self._analyzed)

    def words(self, text: str) -> Words:
        """Return what is known of a text's words, unspaced scripts in pairs."""
        known = self._known
        found = [known[piece] for piece in text.split()]
        return _joined(found) if found else _NOTHING

    def tokens(self, text: str) -> list[Token]:
        """Return the words of a text one by one, in order."""
        return [token for written in _tokens(text) if (token := self.token(written))]

    def token(self, written: str) -> Token | None:
        """Return what is known of a word as it is written; None where it has no sign that counts."""
        folded = written.casefold()
        word = _bare(folded)
        return Token(word, self._stem(word), self._is_stop(folded) or self._is_stop(word)) if word else None

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's content words, in order, stop words left out."""
        return [token.stem for token in self.tokens(text) if not token.is_stop]

    def _analyzed(self, piece: str) -> Words:
        if (bare := piece.strip(_PUNCTUATION)) != piece:
            return self._known[bare]
        found = [self._word(token) for token in _tokens(piece)]
        return _joined(found) if found else _NOTHING

    def _word(self, token: str) -> Words:
        folded = token.casefold()
        is_digits = token.isdecimal()
        signs = (
            TIME * (folded in _TIME or (is_digits and len(token) == 4))
            | NUMBER * (is_digits or folded in _NUMBER)
            | FIRST_PERSON * bool(_FIRST_PERSON.fullmatch(folded))
            | CAPITAL * (len(token) > 1 and token[0].isupper() and token[1].islower())
        )
        word = _bare(folded)
        if not word:
            return Words("", b"", signs)
        stem = self._stem(word)
        self.vocabulary.add(word, stem)
        return Words(stem, packed(term_hash(word)), signs)


def _tokens(text: str) -> Iterator[str]:
    """Yield the words of a text as written, unspaced scripts in pairs."""
    for token in _TOKEN.findall(text):
        yield from (part for _, part in _parts(token))


def _parts(token: str) -> list[tuple[int, str]]:
    """Return a word with its place in itself; of an unspaced script its pairs of signs."""
    if len(token) > 1 and is_unspaced(token):
        return [(at, token[at : at + 2]) for at in range(len(token) - 1)]
    return [(0, token)]


def spans_of(text: str, analyzer: Analyzer) -> Iterator[tuple[int, int, Token]]:
    """Yield the words of a text, as `Analyzer.tokens` does, each with its place in the text."""
    for found in _TOKEN.finditer(text):
        for at, part in _parts(found[0]):
            if token := analyzer.token(part):
                yield found.start() + at, found.start() + at + len(part), token


def words_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of a text as written, and whether a sentence begins with each; scripts without spaces in runs."""
    for found in _TOKEN.finditer(text):
        before = text[max(0, found.start() - 8) : found.start()].rstrip(" \t\"'“„«‘(*_[¿¡")
        yield found[0], not before or before[-1] in ".!?…:;\n>-" or has_question(before[-1])


def is_unspaced(token: str) -> bool:
    """Return whether a word is of a script without spaces."""
    return token[0] > "\u0dff" and _IS_UNSPACED.match(token) is not None


def _bare(folded: str) -> str:
    """Return a casefolded word as the vocabulary knows it: in one spelling of its signs, without `'s`."""
    plain = "".join(unicodedata.normalize("NFKC", folded).split()).replace("’", "'")
    return _POSSESSIVE.sub("", plain)[:_LONGEST_WORD]


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
    stems, hashes, shown = zip(*found, strict=True)
    signs = 0
    for sign in set(shown):
        signs |= sign
    return Words(" ".join(filter(None, stems)), b"".join(hashes), signs)


def is_question(text: str) -> bool:
    """Return whether a text does nothing but ask: each of its sentences ends in a question mark of some script.

    "I moved to Leeds. Any tips?" tells something.
    """
    sentences = [part for part in _SENTENCE_END.split(text) if _WORD.search(part)]
    return bool(sentences) and all(ends_as_question(sentence) for sentence in sentences)


def has_question(text: str) -> bool:
    """Return whether there is a question mark of some script in a text."""
    return bool(_QUESTION_MARK.search(text))


def holds(text: str, words: str) -> bool:
    """Return whether words stand in a text as whole words and in this order, case and blanks aside."""
    return _pattern(words).search(_normal(text)) is not None


@lru_cache(maxsize=256)
def _pattern(words: str) -> re.Pattern[str]:
    parts = _normal(words).split()
    plain = r"\s+".join(map(re.escape, parts))
    first, last = (parts[0][0], parts[-1][-1]) if parts else ("", "")
    before = r"(?<!\w)" if re.match(r"\w", first) and not is_unspaced(first) else ""
    after = r"(?!\w)" if re.match(r"\w", last) and not is_unspaced(last) else ""
    return re.compile(before + plain + after)


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def plain_words(text: str) -> frozenset[str]:
    """Return the words of a text casefolded and without `'s`, as names of speakers are compared."""
    return frozenset(_POSSESSIVE.sub("", token) for token in _TOKEN.findall(text.casefold()))


@lru_cache(maxsize=8)
def _language_tools(language: str) -> tuple[Callable[[str], str], Callable[[str], bool]]:
    """Return what stems a word of a language, and what tells its stop words."""
    if language == "none":
        return (lambda word: word), (lambda _: False)
    import tantivy

    raw = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
    try:
        stemmer = raw.filter(tantivy.Filter.stemmer(language)).build()
    except ValueError:
        return (lambda word: word), (lambda _: False)
    stop_words = _ENGLISH_STOP_WORDS if language == "english" else frozenset()
    try:
        stopper = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stopword(language)).build()
    except ValueError:
        stopper = None

    def stem(word: str) -> str:
        found = stemmer.analyze(word)
        return found[0] if found else word

    def is_stop(word: str) -> bool:
        return word in stop_words or (stopper is not None and not stopper.analyze(word))

    return stem, is_stop


def term_hash(term: str) -> int:
    """Return a word's or stem's 32-bit identity, the same on every machine."""
    return zlib.crc32(term.encode())


def packed(hash_: int) -> bytes:
    """Return a hash as it stands among a page's."""
    return hash_.to_bytes(4, sys.byteorder)
