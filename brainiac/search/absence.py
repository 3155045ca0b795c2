"""Which words of a prompt stand nowhere in memory: certain without a model that understands the prompt.

A word stands in memory when a text holds it or a form of it; an earlier question with it does not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from brainiac.search.features import FEATURES, QUESTION, EncodedPage
from brainiac.search.index import Index
from brainiac.search.pages import Pages
from brainiac.search.text import Analyzer, is_unspaced, term_hash, words_of
from brainiac.search.vocabulary import Hashes, LikeWords, hashes_of
from brainiac.text.tokens import ends_as_question

MOST_NAMED = 3
_LEAST_SIGNS = 3  # of a word worth naming
_MOST_ASKED, _MOST_FORMS = 64, 8
_LOOKED_AT = 64  # passages: of a word that stands in more of them, one is surely no question
_WITHIN = 0.7  # of the asked word's trigrams: a form of it, or a compound, that holds so many holds it
_POSSESSIVE = re.compile(r"['’]s?$")
# stretches of one script, where no blanks part the words: what stands between them mostly joins them
_SCRIPT_RUN = re.compile(
    "[\u30a0-\u30ff]{2,}|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[\u0e00-\u109f\u1780-\u17ff]+"
)
_LONGEST_TERM = 4  # signs of such a script: a longer stretch is no single word


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a prompt.

    Attributes:
        written: As it is written.
        stems: Of its tokens: one, or the pairs of a script without spaces.
        is_name: It is written as a name is.
        is_run: It is a stretch of such a script.
    """

    written: str
    stems: tuple[str, ...]
    is_name: bool = False
    is_run: bool = False


def absent_words(text: str, pages: Pages, asking: str = "") -> list[str]:
    """Return words of a text that stand nowhere in memory, the archive included: names first, then longer words.

    Args:
        text: A prompt.
        pages: Where memory is searched.
        asking: Path of the prompt, which is no memory; "" for none.

    Returns:
        At most `MOST_NAMED` words as they are written in the text.
    """
    # of two forms of one word the last is named, and a long paste is not looked through to its end
    words = list({word.stems: word for word in _words(text, pages.analyzer)}.values())[:_MOST_ASKED]
    # what was written a moment ago brings words of its own, which the forms below must know
    pages.catch_up(asking)
    absent = pages.ask(lambda index: list(_absent(words, text, index, pages.analyzer, asking))) or []
    order = sorted(absent, key=lambda word: (not word.is_name, -len(word.written)))[:MOST_NAMED]
    return list(dict.fromkeys(word.written for word in order))


def _absent(words: Sequence[_Word], text: str, index: Index, analyzer: Analyzer, asking: str) -> Iterator[_Word]:
    """Yield the words of a prompt, and parts of such, that stand nowhere in memory."""
    forms = {stem: _forms(word, stem, analyzer, index) for word in words for stem in word.stems}
    terms = list(dict.fromkeys(form for similar in forms.values() for form in similar))
    if not terms:
        return
    found = index.query(terms, _LOOKED_AT * MOST_NAMED)
    pages = [page for page in found.pages if page.page.path != asking]
    held = _held(pages, index, terms, [token.stem for token in analyzer.tokens(text)], ends_as_question(text))

    def is_present(stem: str) -> bool:
        """Return whether a stem, or a form of it, stands in memory."""
        is_frequent = any(found.frequencies.get(form, 0) > _LOOKED_AT for form in forms[stem])
        return is_frequent or any(term_hash(form) in held for form in forms[stem])

    for word in words:
        yield from _absent_parts(word, is_present)


def _absent_parts(word: _Word, is_present: Callable[[str], bool]) -> Iterator[_Word]:
    """Yield a word that stands nowhere; of a stretch without spaces, the parts that no known pair of signs covers.

    Args:
        word: Of the prompt.
        is_present: Returns whether a stem stands in memory.
    """
    are_present = [is_present(stem) for stem in word.stems]
    is_katakana = "\u30a0" <= word.written[0] <= "\u30ff"  # it writes single words
    if not word.is_run or is_katakana:
        if not all(are_present):
            yield word
        return
    covered = bytearray(b"." * len(word.written))
    for at in np.flatnonzero(are_present):
        covered[at : at + 2] = b"xx"
    for gap in re.finditer(rb"\.+", covered):
        # one sign is mostly an ending, and a long gap is no single word, unless nothing of the stretch is known
        if 1 < len(gap[0]) <= _LONGEST_TERM or len(gap[0]) == len(word.written):
            yield replace(word, written=word.written[slice(*gap.span())])


def _words(text: str, analyzer: Analyzer) -> Iterator[_Word]:
    """Yield the words of a text that are worth naming: no stop words, none of fewer than `_LEAST_SIGNS` signs."""
    for written, is_first in words_of(text):
        if is_unspaced(written):
            for run in _SCRIPT_RUN.findall(written):
                yield _Word(run, tuple(analyzer.terms(run)), is_run=True)
            continue
        token = analyzer.token(written)
        if token and not token.is_stop and len(token.word) >= _LEAST_SIGNS:
            yield _Word(_POSSESSIVE.sub("", written), (token.stem,), is_name=written[0].isupper() and not is_first)


def _forms(word: _Word, stem: str, analyzer: Analyzer, index: Index) -> list[str]:
    """Return a stem and those of similar words of the brain: inflections, compounds, misspellings."""
    if word.is_run:
        # the index has pairs of signs: a single sign stands in those that hold it
        return index.holding(stem) if len(stem) == 1 else [stem]
    token = analyzer.token(word.written)
    written = token.word if token else stem
    like = LikeWords(index, [(written, stem)], [stem])
    return [stem, *like.forms(written, _MOST_FORMS, _WITHIN)]


def _held(
    pages: Sequence[EncodedPage], index: Index, terms: Sequence[str], asked: Sequence[str], is_question: bool
) -> set[int]:
    """Return the hashes of the stems that a heading holds, or a unit that says anything but the prompt.

    Args:
        pages: Those that hold any of the words.
        index: The words of the brain.
        terms: The stems that may be held.
        asked: The stems of the prompt.
        is_question: Whether the prompt ends as a question does.
    """
    stems_by_id = index.with_stems({*asked, *terms})
    # in the order of the words' hashes; a last one for all that have none of these stems
    hashes = np.append(hashes_of(np.array(list(stems_by_id), np.int64)), np.uint32(2**32 - 1))
    stem_of = np.array([*map(term_hash, stems_by_id.values()), 0], np.uint32)

    def stems_of(words: Iterable[bytes]) -> Hashes:
        """Return the hashes of the stems of words that are given by their hashes; 0 for other stems."""
        given = np.frombuffer(b"".join(words), np.uint32)
        place = np.searchsorted(hashes, given)
        return np.where(hashes[place] == given, stem_of[place], np.uint32(0))

    rows = np.frombuffer(b"".join([page.features for page in pages]), FEATURES)
    stems = stems_of(page.words for page in pages)
    # a unit with the words of the prompt in their order and no others only repeats it, but for what was told
    # without the mark of a question that is asked now
    repeated = np.array([term_hash(stem) for stem in asked], np.uint32)
    is_told = (rows["flags"] & QUESTION == 0) & is_question
    ends = np.cumsum(rows["size"], dtype=np.int64)
    says_more = np.ones(len(rows), bool)
    for number in np.flatnonzero((rows["size"] == len(repeated)) & ~is_told).tolist():
        says_more[number] = not np.array_equal(stems[ends[number] - len(repeated) : ends[number]], repeated)
    in_units = stems[np.repeat(says_more, rows["size"])]
    return {*stems_of(page.heading for page in pages).tolist(), *in_units.tolist()}
