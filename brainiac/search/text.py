"""Words as the index and the ranker see them: one analysis for pages, queries and every engine.

Words carry no positions: phrases are checked on the text itself. What a language knows (stems, stop words) is a help:
without it words match as they are written, and by the character trigrams that inflected forms, compounds and typos
share. A unit of the index is a list of word hashes; all else that ranking asks of a word is looked up in the
`Vocabulary` of the brain, which the index keeps beside its pages.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    """The words of a text.

    Attributes:
        stems: Of all of them, in order, joined by blanks.
        hashes: uint32, one a word as the vocabulary has it.
        signs: What any of them shows: `TIME` and so on.
    """

    stems: str
    hashes: bytes
    signs: int


class Token(NamedTuple):
    """A word of a query: as the vocabulary has it, its stem, and whether it only joins others (`the`)."""

    word: str
    stem: str
    is_stop: bool


# What a word shows by itself, whatever stands around it; the first three are flags of a unit too, see `features`.
TIME, NUMBER, FIRST_PERSON, CAPITAL = 4, 8, 16, 1 << 16

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
        self._pieces = _Remembered(self._analyzed)

    def words(self, text: str) -> Words:
        """Return a text's words, those of unspaced scripts in pairs of signs."""
        pieces = self._pieces
        return _joined([pieces[piece] for piece in text.split()])

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
        folded = written.casefold()
        word = _bare(folded)
        return Token(word, self._stem(word), self._is_stop(folded) or self._is_stop(word)) if word else None

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's content words, in order, stop words left out."""
        return [token.stem for token in self.tokens(text) if not token.is_stop]

    def _analyzed(self, piece: str) -> Words:
        """Return the words of a text without blanks; it is looked up again without the punctuation around it."""
        if (bare := piece.strip(_PUNCTUATION)) != piece:
            return self._pieces[bare]
        return _joined([self._word(token) for _, token in _tokens(piece)])

    def _word(self, token: str) -> Words:
        """Return one word as the index has it, and add it to the vocabulary."""
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
        return Words(stem, term_hash(word).to_bytes(4, sys.byteorder), signs)


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
        before = text[max(0, match.start() - 8) : match.start()].rstrip(" \t\"'“„«‘(*_[¿¡")
        yield match[0], not before or before[-1] in ".!?…:;\n>-" or has_question(before[-1])


def is_unspaced(token: str) -> bool:
    """Return whether a word is of a script without spaces."""
    return token[0] > "\u0dff" and _IS_UNSPACED.match(token) is not None


def _bare(folded: str) -> str:
    """Return a casefolded word as the vocabulary has it: in one spelling of its signs, without `'s`."""
    plain = "".join(unicodedata.normalize("NFKC", folded).split()).replace("’", "'")
    return _POSSESSIVE.sub("", plain)[:_LONGEST_WORD]


class _Remembered(dict[str, Words]):
    """A cache of analyzed pieces of text, emptied when full: hostile text must not fill memory."""

    def __init__(self, make: Callable[[str], Words]) -> None:
        self._make = make

    def __missing__(self, piece: str) -> Words:
        """Analyze a piece of text; remember it unless it is long."""
        made = self._make(piece)
        if len(piece) <= _LONGEST_REMEMBERED:
            if len(self) >= _MAX_REMEMBERED:
                # all at once: to drop the oldest would cost each lookup more than analyzing anew
                self.clear()
            self[piece] = made
        return made


def _joined(parts: Sequence[Words]) -> Words:
    """Return the words of several pieces as one."""
    if not parts:
        return Words("", b"", 0)
    stems, hashes, signs = zip(*parts, strict=True)
    return Words(" ".join(filter(None, stems)), b"".join(hashes), reduce(or_, set(signs)))


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


@lru_cache(maxsize=8)
def _language_tools(language: str) -> tuple[Callable[[str], str], Callable[[str], bool]]:
    """Return the stemmer of a language, and the function that returns whether a word is a stop word."""
    if language == "none":
        return (lambda word: word), (lambda _: False)
    import tantivy  # heavy, and not needed for what is shown around a match

    def built(name: str) -> Any:
        """Return an analyzer of the engine with one filter for the language; None where it has no such filter."""
        raw = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
        with contextlib.suppress(ValueError):
            return raw.filter(getattr(tantivy.Filter, name)(language)).build()

    stemmer, stopper = built("stemmer"), built("stopword")
    if stemmer is None:
        return (lambda word: word), (lambda _: False)
    stop_words = _ENGLISH_STOP_WORDS if language == "english" else frozenset()

    def stem(word: str) -> str:
        stems = stemmer.analyze(word)
        return stems[0] if stems else word

    def is_stop(word: str) -> bool:
        return word in stop_words or (stopper is not None and not stopper.analyze(word))

    return stem, is_stop


def term_hash(term: str) -> int:
    """Return a word's or stem's 32-bit identity, the same on every machine."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


# --- the vocabulary of a brain ---------------------------------------------------------------------------------

Hashes: TypeAlias = NDArray[np.uint32]
Numbers: TypeAlias = NDArray[np.int32]

MOST_WORDS = 1_000_000  # hostile text must not fill memory; what comes after is met as it stands
GRAM_BITS = 20
_LAST_BITS = 16
_FEW = 2_000  # so many new words are looked through one by one
_EDGE = "\n"  # stands before and after each word, where none of them has it


@dataclass(frozen=True)
class Table:
    """The words met until a moment, by number; arrays only grow. Number 0 stands for every word that is not there.

    Attributes:
        hashes: Of the words, `(n_words,)`; `stems`: of their stems.
        starts: `(n_words + 1,)`: where the runs of each word begin in `grams`.
        grams: Runs of three signs as numbers below `2 ** GRAM_BITS`, word after word; as many as a word has signs.
        slots: By the last bits of a hash the number of a word that it may be; the length is a power of two.
    """

    hashes: Hashes
    stems: Hashes
    starts: Numbers
    grams: Numbers
    slots: Numbers

    def __len__(self) -> int:
        return len(self.hashes)

    def numbers(self, hashes: Hashes) -> Numbers:
        """Return the number of each word, given by its hash; 0 for an unknown one."""
        # a sorted array alone would cost a query several times as long: it is asked for 50,000 words at once
        numbers: Numbers = self.slots[hashes & np.uint32(len(self.slots) - 1)]
        wrong = np.flatnonzero(self.hashes[numbers] != hashes)  # free slots, and the few that two words share
        if len(wrong):
            by_hash, order = self._sorted
            place = np.minimum(np.searchsorted(by_hash, hashes[wrong]), len(by_hash) - 1)
            numbers[wrong] = np.where(by_hash[place] == hashes[wrong], order[place], 0)
        return numbers

    def stemmed(self, stems: Hashes) -> tuple[Hashes, Numbers]:
        """Return the words that have one of some stems, and the place of each one's stem; all given as hashes."""
        numbers, place = places_of(self.stems, stems)
        return self.hashes[numbers], place.astype(np.int32)

    @cached_property
    def _sorted(self) -> tuple[Hashes, Numbers]:
        """The hashes in order, and the word's number for each."""
        order = np.argsort(self.hashes, kind="stable").astype(np.int32)
        return self.hashes[order], order

    def grams_of(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return the trigrams of some words, one word after another, and for each trigram the place of its word."""
        counts = self.starts[numbers + 1] - self.starts[numbers]
        owner = np.repeat(np.arange(len(numbers), dtype=np.int32), counts)
        first = np.repeat(self.starts[numbers] - (np.cumsum(counts) - counts), counts)
        return self.grams[first + np.arange(len(owner), dtype=np.int32)], owner


def places_of(hashes: Hashes, wanted: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the wanted hashes stand among others, and for each such place which of the wanted it is."""
    # a look at the last bits of each first: a full search of all of them would cost ten times as long
    is_like = np.zeros(1 << _LAST_BITS, bool)
    is_like[wanted & np.uint32((1 << _LAST_BITS) - 1)] = True
    places = np.flatnonzero(is_like[hashes & np.uint32((1 << _LAST_BITS) - 1)])
    order = np.argsort(wanted)
    which = order[np.minimum(np.searchsorted(wanted, hashes[places], sorter=order), len(wanted) - 1)]
    is_it = wanted[which] == hashes[places]
    return places[is_it], which[is_it]


class Vocabulary:
    """The words met so far; safe to share between threads."""

    def __init__(self) -> None:
        self._words = [_EDGE]  # by number; the first is none
        self._stems = {_EDGE: _EDGE}
        self._unsaved: list[str] = []
        self._mutex = threading.Lock()
        nothing = np.empty(0, np.int32)
        self._table = Table(_hashes_of([_EDGE]), _hashes_of([_EDGE]), np.zeros(2, np.int32), nothing, nothing)
        self._table = _extended(self._table, [], [])
        self._postings = _Postings(self._table)

    def add(self, word: str, stem: str) -> None:
        """Learn a word."""
        if word not in self._stems:
            with self._mutex:
                # asked again under the lock: two threads may meet a new word at once
                if self._learn(word, stem):
                    self._unsaved.append(word)

    def load(self, words: Iterable[tuple[str, str]]) -> None:
        """Learn words, with their stems, that an index keeps."""
        with self._mutex:
            for word, stem in words:
                self._learn(word, stem)

    def _learn(self, word: str, stem: str) -> bool:
        """Add a word unless it is known or the vocabulary is full; return whether it was added."""
        if word in self._stems or len(self._words) >= MOST_WORDS:
            return False
        self._stems[word] = stem
        self._words.append(word)
        return True

    def unsaved(self) -> list[tuple[str, str]]:
        """Return the words that no index keeps yet, with their stems; the caller saves them: they are returned once."""
        with self._mutex:
            words, self._unsaved = self._unsaved, []
            return [(word, self._stems[word]) for word in words]

    def lose(self) -> None:
        """Mark all words as not kept by any index."""
        with self._mutex:
            self._unsaved = self._words[1:]

    @property
    def table(self) -> Table:
        """All words met until now."""
        with self._mutex:
            if len(self._table) < len(self._words):
                new = self._words[len(self._table) :]
                self._table = _extended(self._table, new, [self._stems[word] for word in new])
            return self._table

    def similar(
        self, word: str, most: int, *, min_of_longer: float = 0.0, min_of_asked: float = 0.0
    ) -> list[tuple[str, float]]:
        """Return the stems of other words with many of the same character trigrams, the most alike first.

        Args:
            word: In the vocabulary's form.
            most: How many at most.
            min_of_longer: The least share of the longer word's trigrams that both have; a word also counts with
            min_of_asked: the least share of this word's trigrams.

        Returns:
            Stems with the similarity of their words, see `similarity`.
        """
        table, postings = self.table, self._postings
        # sorting all trigrams takes long: only when a tenth of the words is new
        if len(table) - postings.n_words > max(_FEW, postings.n_words // 10):
            postings = self._postings = _Postings(table)
        numbers, shared = postings.sharing(table, grams_of(word))
        size = table.starts[numbers + 1] - table.starts[numbers]
        length = np.full(len(size), len(folded(word)))
        near = similarity(shared, length, size)
        is_form = (shared >= min_of_longer * np.maximum(length, size)) | (shared >= min_of_asked * length)
        kept = np.flatnonzero((near > 0) & is_form)
        # words alike in all else come by their hashes, not in the order they were met: a rebuild answers the same
        best = kept[np.lexsort((table.hashes[numbers[kept]], -shared[kept], -near[kept]))][: 2 * most].tolist()
        stems: dict[str, float] = {}
        for at in best:
            stems.setdefault(self._stems[self._words[numbers[at]]], float(near[at]))
        stems.pop(self._stems.get(word, ""), None)
        return list(stems.items())[:most]

    def holding(self, sign: str) -> list[str]:
        """Return the stems of all words that contain a sign."""
        return [self._stems[word] for word in list(self._words) if sign in word]


def similarity(shared: NDArray[Any], one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Return how much alike words are, 0 to 1, by how many character trigrams they share and how many each has.

    It is the share of the shorter word's trigrams that the longer one has: `termin` and `zahnarzttermin`, `passport`
    and `passprot`. Below one half, or with fewer than three shared, it is 0.
    """
    near = np.minimum(shared / np.maximum(np.minimum(one, other), 1), 1.0)  # a word may have a run twice
    similar: NDArray[np.float64] = np.where((near >= 0.5) & (shared >= 3), near, 0.0)
    return similar


@lru_cache(maxsize=4096)
def grams_of(word: str) -> Numbers:
    """Return the character trigrams of a word with its edges, as numbers, each once."""
    return np.unique(_codes(f"{_EDGE}{folded(word)}{_EDGE}"))


def folded(word: str) -> str:
    """Return a word without the accents and other marks on its letters: many people leave them out when typing."""
    if word.isascii():
        return word
    plain = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return plain or word


class _Postings:
    """The words that have each trigram, sorted once; words that came later are looked through one by one."""

    def __init__(self, table: Table) -> None:
        self.n_words = len(table)
        order = np.argsort(table.grams, kind="stable")
        self._grams = table.grams[order]
        self._owner = np.repeat(np.arange(self.n_words, dtype=np.int32), np.diff(table.starts))[order]

    def sharing(self, table: Table, grams: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
        """Return the words that share at least three of the trigrams, and how many each shares."""
        first, last = np.searchsorted(self._grams, grams), np.searchsorted(self._grams, grams, "right")
        owners = [self._owner[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        newer = np.arange(self.n_words, len(table), dtype=np.int32)
        grams_of_newer, owner = table.grams_of(newer)
        owners.append(newer[owner[np.isin(grams_of_newer, grams)]])
        counts = np.bincount(np.concatenate(owners), minlength=1)
        numbers = np.flatnonzero(counts >= 3).astype(np.int32)
        return numbers, counts[numbers]


def _extended(table: Table, words: Sequence[str], stems: Sequence[str]) -> Table:
    """Return a copy of a table with more words; queries go on reading the old one."""
    plain = [folded(word) for word in words]
    hashes = np.concatenate((table.hashes, _hashes_of(words)))
    size = 1 << max(10, int(4 * len(hashes)).bit_length())
    is_larger = size != len(table.slots)
    slots = np.zeros(size, np.int32) if is_larger else table.slots.copy()
    new = np.arange(0 if is_larger else len(table), len(hashes), dtype=np.int32)
    slots[hashes[new] & np.uint32(size - 1)] = new
    return Table(
        hashes,
        np.concatenate((table.stems, _hashes_of(stems))),
        np.concatenate((table.starts, table.starts[-1] + np.cumsum([len(word) for word in plain], dtype=np.int32))),
        np.concatenate((table.grams, _codes(_EDGE + _EDGE.join(plain) + _EDGE))),
        slots,
    )


def _hashes_of(words: Sequence[str]) -> Hashes:
    """Return the hash of each word."""
    return np.array([term_hash(word) for word in words], np.uint32)


def _codes(text: str) -> Numbers:
    """Return a number for each character trigram whose middle is not the edge of a word."""
    signs = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    mixed = signs[:-2] * np.uint32(0x9E3779B1) ^ signs[1:-1] * np.uint32(0x85EBCA77) ^ signs[2:] * np.uint32(0xC2B2AE3D)
    mixed = (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x2C1B3C6D)
    inside = signs[1:-1] != ord(_EDGE)
    codes: Numbers = (mixed[inside] >> np.uint32(32 - GRAM_BITS)).astype(np.int32)
    return codes
