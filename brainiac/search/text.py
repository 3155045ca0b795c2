"""Words as the index and the ranker see them: one analysis for pages, queries and every engine.

Words carry no positions: phrases are checked on the text itself. What a language knows (stems, stop words) is a help:
without it words match as they are written, and by the character trigrams that inflected forms, compounds and typos
share. A unit of the index is a list of word hashes; all else that ranking asks of a word stands beside its pages.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, tzinfo
from functools import cache, lru_cache, reduce
from importlib import resources
from operator import or_
from typing import NamedTuple

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

MOST_WORDS = 1_000_000  # of one process: hostile text must not fill memory
_MAX_REMEMBERED, _LONGEST_REMEMBERED = 100_000, 40
_LONGEST_WORD = 64  # of a longer one only the beginning counts
SIZE_BITS = 8
MOST_SIGNS = (1 << SIZE_BITS) - 1
EDGE = "\n"  # stands before and after each word, where none of them has it


class Word(NamedTuple):
    """A word and its stem."""

    word: str
    stem: str


def term_hash(term: str) -> int:
    """Return a word's or stem's 32-bit identity, the same on every machine."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def word_id(word: str) -> int:
    """Return a word's id: its hash, and in the last eight bits how many trigrams it has."""
    return term_hash(word) << SIZE_BITS | min(len(folded(word)), MOST_SIGNS)


@lru_cache(maxsize=4096)
def grams_of(word: str) -> frozenset[str]:
    """Return the character trigrams of a word with its edges."""
    signs = f"{EDGE}{folded(word)}{EDGE}"
    return frozenset(signs[at : at + 3] for at in range(len(signs) - 2))


def folded(word: str) -> str:
    """Return a word without the accents and other marks on its letters: many people leave them out when typing."""
    if word.isascii():
        return word
    plain = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return plain or word


class Words(NamedTuple):
    """The words of a text.

    Attributes:
        stems: Of all of them, in order, joined by blanks.
        hashes: uint32, one a word as the index has it.
        signs: What any of them shows, as a bit mask: `TIME` and so on.
        length: How many character trigrams they have together.
    """

    stems: str
    hashes: bytes
    signs: int
    length: int


_NO_WORDS = Words(stems="", hashes=b"", signs=0, length=0)


class Token(NamedTuple):
    """A word of a query: as the index has it, its stem, and whether it only joins others (`the`)."""

    word: str
    stem: str
    is_stop: bool


# What a word shows by itself, whatever stands around it; the first two are flags of a unit too, see `features`.
TIME, NUMBER, CAPITAL = 4, 8, 1 << 16

_TIME = frozenset(
    """yesterday today tonight tomorrow last next ago week weeks weekend month months year years recently monday tuesday
    wednesday thursday friday saturday sunday january february march april may june july august september october
    november december summer winter spring since morning evening birthday soon just""".split()
)
_NUMBER = frozenset(
    "one two three four five six seven eight nine ten once twice couple several few dozen first second third".split()
)


class Analyzer:
    """Turns text into words, in the language of one person; safe to share between threads.

    What stands between two blanks is analyzed once and remembered: text repeats itself.

    Args:
        language: Snowball's name for it, or `none`.
        zone: The person's time zone: "yesterday" is a day of theirs.

    Attributes:
        key: What an index must have been made with to serve.
        met: The words met by this process, by their hashes.
    """

    def __init__(self, language: str, zone: tzinfo = UTC) -> None:
        self.language, self.zone, self.key = language, zone, f"{language}:{zone}"
        self.met: dict[int, Word] = {}
        self._stem, self._is_stop = _language_tools(language)
        self._remembered = lru_cache(_MAX_REMEMBERED)(self._analyzed)

    def words(self, text: str) -> Words:
        """Return a text's words, those of unspaced scripts in pairs of signs."""
        return _joined([self._words_of(piece) for piece in text.split()])

    def _words_of(self, piece: str) -> Words:
        """Return the words of a text without blanks; remembered unless it is long: hostile text must fill no memory."""
        return self._remembered(piece) if len(piece) <= _LONGEST_REMEMBERED else self._analyzed(piece)

    def tokens(self, text: str) -> list[Token]:
        """Return the words of a text one by one, in order."""
        return [token for *_, token in self.spans(text)]

    def spans(self, text: str) -> Iterator[tuple[int, int, Token]]:
        """Yield the words of a text, each with its place in the text."""
        for start, written in _tokens(text):
            if token := self.token(written):
                yield start, start + len(written), token

    def token(self, written: str) -> Token | None:
        """Return a word as it is written in its form for queries; None where it has no sign that counts."""
        plain = written.casefold()
        word = _bare(plain)
        return Token(word, self._stem(word), self._is_stop(plain) or self._is_stop(word)) if word else None

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's content words, in order, stop words left out."""
        return [token.stem for token in self.tokens(text) if not token.is_stop]

    def _analyzed(self, piece: str) -> Words:
        """Return the words of a text without blanks."""
        if (bare := piece.strip(_PUNCTUATION)) != piece:
            return self._words_of(bare)  # most are known without the punctuation around them
        return _joined([self._word(token) for _, token in _tokens(piece)])

    def _word(self, token: str) -> Words:
        """Return one word as the index has it, and keep it in `met`."""
        plain = token.casefold()
        is_digits = token.isdecimal()
        is_time = plain in _TIME or (is_digits and len(token) == 4)  # it may be a year
        is_capitalized = len(token) > 1 and token[0].isupper() and token[1].islower()
        signs = TIME * is_time | NUMBER * (is_digits or plain in _NUMBER) | CAPITAL * is_capitalized
        word = _bare(plain)
        if not word:
            return _NO_WORDS._replace(signs=signs)
        stem, number = self._stem(word), term_hash(word)
        if len(self.met) < MOST_WORDS:
            self.met.setdefault(number, Word(word, stem))
        # a word has as many trigrams as signs
        return Words(stem, number.to_bytes(4, sys.byteorder), signs, length=len(folded(word)))


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a text as written with their places, of unspaced scripts the pairs of signs."""
    for match in _TOKEN.finditer(text):
        token, start = match[0], match.start()
        if len(token) > 1 and is_unspaced(token):
            yield from ((start + at, token[at : at + 2]) for at in range(len(token) - 1))
        else:
            yield start, token


def words_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word of a text as written, and whether a sentence begins with it; unspaced scripts come in runs."""
    for match in _TOKEN.finditer(text):
        # eight signs are enough to look past the quotes and brackets that open before a word
        before = text[max(0, match.start() - 8) : match.start()].rstrip(" \t\"'“„«‘(*_[¿¡")
        is_first = not before or before[-1] in ".!?…:;\n>-" or has_question(before[-1])
        yield match[0], is_first


def is_unspaced(token: str) -> bool:
    """Return whether a word is of a script without spaces."""
    return token[0] > "\u0dff" and _IS_UNSPACED.match(token) is not None


def _bare(written: str) -> str:
    """Return a casefolded word as the index has it: in one spelling of its signs, without `'s`."""
    plain = "".join(unicodedata.normalize("NFKC", written).split()).replace("’", "'")
    return _POSSESSIVE.sub("", plain)[:_LONGEST_WORD]


def _joined(parts: Sequence[Words]) -> Words:
    """Return the words of several pieces as one."""
    if not parts:
        return _NO_WORDS
    stems, hashes, signs, lengths = zip(*parts, strict=True)
    stem_text = " ".join(filter(None, stems))
    return Words(stem_text, b"".join(hashes), signs=reduce(or_, set(signs)), length=sum(lengths))


def mark_of(tokens: Sequence[Token]) -> str:
    """Return the mark that a page with a name has in the index (`=new_garden`); "" for a name without words."""
    return f"={'_'.join(token.word for token in tokens)}" if tokens else ""


def has_question(text: str) -> bool:
    """Return whether there is a question mark of some script in a text."""
    return bool(_QUESTION_MARK.search(text))


def holds(text: str, words: str) -> bool:
    """Return whether words stand in a text as whole words and in this order, case and blanks aside."""
    return _pattern(words).search(_normal(text)) is not None


@lru_cache(maxsize=256)
def _pattern(words: str) -> re.Pattern[str]:
    """Return the pattern that finds these words in a normalized text."""
    parts = _normal(words).split()
    plain = r"\s+".join(map(re.escape, parts))
    first, last = (parts[0][0], parts[-1][-1]) if parts else ("", "")
    before = r"(?<!\w)" if re.match(r"\w", first) and not is_unspaced(first) else ""
    after = r"(?!\w)" if re.match(r"\w", last) and not is_unspaced(last) else ""
    return re.compile(before + plain + after)


def _normal(text: str) -> str:
    """Return a text casefolded and with one spelling for each sign, for comparing."""
    return unicodedata.normalize("NFKC", text).casefold()


def plain_words(text: str) -> frozenset[str]:
    """Return the words of a text casefolded and without `'s`, as names of speakers are compared."""
    return frozenset(_POSSESSIVE.sub("", token) for token in _TOKEN.findall(text.casefold()))


def telling_words(text: str, languages: Sequence[str]) -> list[str]:
    """Return the words of a casefolded text that do more than join others in each of these languages."""
    stops = [_language_tools(language)[1] for language in languages]
    # "j'ai" is two words
    words = [word for _, token in _tokens(text) for word in re.split("['’]", token)]
    return [word for word in words if len(word) > 1 and not any(is_stop(word) for is_stop in stops)]


def languages_of(text: str) -> list[str]:
    """Return the language that a text is in by the words that join others, several where it could be any of them.

    Only for reading: nothing is kept, changed or left out by it.
    """
    words = _TOKEN.findall(text.casefold())
    counts = {language: sum(map(_language_tools(language)[1], words)) for language in _stop_words()}
    most = max(counts.values())
    return [language for language, count in counts.items() if count == most] if most else []


@cache
def _stop_words() -> dict[str, str]:
    """Return the words that only join others, parted by blanks, by language."""
    words: dict[str, str] = json.loads((resources.files("brainiac.search") / "stop_words.json").read_text("utf-8"))[
        "words"
    ]
    return words


@lru_cache(maxsize=32)
def _language_tools(language: str) -> tuple[Callable[[str], str], Callable[[str], bool]]:
    """Return the stemmer of a language, and the function that returns whether a word is a stop word."""
    if language == "none":
        return (lambda word: word), (lambda _: False)
    import Stemmer  # only a few commands analyze text

    is_stop = frozenset(_stop_words().get(language, "").split()).__contains__
    # without a cache of its own: `Analyzer` has one
    stemmer, mutex = Stemmer.Stemmer(language, 0), threading.Lock()

    def stem(word: str) -> str:
        with mutex:  # a stemmer serves one thread at a time
            return str(stemmer.stemWord(word))

    return stem, is_stop
