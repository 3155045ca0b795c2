"""Pages as the index keeps them: hashed words and a row of features for each unit, all that ranking needs and no text.

Every scale of ranking is computed from these for the candidates of a query alone, which keeps the index small and
lets a page that is not indexed yet be ranked like any other.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, tzinfo
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from brainiac.clock import parse_iso
from brainiac.search.documents import NO_DAY, Page, Unit, UnitKind
from brainiac.search.text import CAPITAL, NUMBER, TIME, Analyzer, has_question, mark_of, term_hash
from brainiac.text.dates import dates_in
from brainiac.text.tokens import ends_as_question
from brainiac.tree import Stamp

PASSAGE_WORDS = 100
MAX_DAY = 2**31 - 1
_REMEMBERED_LENGTH = 8192  # so that the cache stays small whatever people paste
# A unit's row: how many words, flags, speaker, day said, first and last day written in it, minute said.
FEATURES = np.dtype({"names": "size flags speaker day first_day last_day minute".split(), "formats": list("iIIiiii")})
_ROW = Struct("=iIIiiii")

# Flags; bits 2 and 3 are `TIME` and `NUMBER`.
QUESTION, ASKS, PLACE, FROM_AI = 1, 2, 32, 64
CAPITALS_SHIFT, KIND_SHIFT, MAX_CAPITALS = 8, 12, 4
HEADED = 1 << 15  # begins with a heading: a section of the page starts there
LENGTH_SHIFT, MAX_LENGTH = 16, 0xFFFF  # above the flags: how many character trigrams its words have


def kind_of(flags: NDArray[Any]) -> NDArray[Any]:
    """Return the `UnitKind` of each unit, given its flags."""
    return flags >> KIND_SHIFT & 7


# both begin with what they seek and look back from there: ten times as fast as a word boundary in front
_PLACE = re.compile(r"(?:i(?<!\w.)n|a(?<!\w.)t|t(?<!\w.)o|f(?<!\w.)rom|n(?<!\w.)ear) (?:the )?[A-Z]\w+")
_CAPITALIZED = re.compile(r"[A-Z](?<!\w.)(?<!^.)(?<![.!?:]\s.)[a-z]+", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_URL = re.compile(r"\]\([^)\s]*\)|https?://\S+")


NO_STAMP = Stamp(0, 0, 0, 0)  # of a page that was read from no file


@dataclass(slots=True)
class EncodedPage:
    """A page without its text.

    Attributes:
        page: Path, title and the like; its `units` are empty.
        stamp: Of the file it was read from.
        words: uint32 hashes of the words of all units in order.
        heading: uint32 hashes of the words of title, other names and tags.
        features: A row of `FEATURES` a unit.
        passages: Stems and marks joined by blanks, for the engine; empty once it is stored.
        content: One hash a unit, the key of its vector.
    """

    page: Page
    stamp: Stamp
    words: bytes
    heading: bytes
    features: bytes
    content: bytes
    passages: tuple[str, ...] = ()

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return len(self.features) // FEATURES.itemsize

    @property
    def days(self) -> tuple[int, int]:
        """The first and last day that its units were said; an empty span where none is known."""
        days = np.frombuffer(self.features, FEATURES)["day"]
        days = days[days != NO_DAY]
        return (int(days.min()), int(days.max())) if len(days) else (MAX_DAY, NO_DAY)


def encode(page: Page, analyzer: Analyzer, stamp: Stamp = NO_STAMP) -> EncodedPage:
    """Return a page as the index keeps it: its words hashed, a row of features for each unit, no text.

    Args:
        page: The page with its units.
        analyzer: The brain's language.
        stamp: Of the file it was read from.
    """
    names = analyzer.words(" ".join((page.title, *page.aliases, *page.tags)))
    # a query finds a page by its folders too, as `path:` does; not in `heading`, since they are no name of the page
    folders = " ".join(word for part in page.path.split("/")[2:-1] for word in part.split("-") if not word.isdigit())
    units = []
    for unit in page.units:
        # a log of exchanges is encoded again after each new exchange; its earlier turns are the same as before
        is_remembered = unit.kind is UnitKind.TURN and len(unit.text) <= _REMEMBERED_LENGTH
        units.append((_known_unit if is_remembered else _encoded_unit)(unit, unit.at or page.at, analyzer))
    # terms that no word has: a query for a tag or for a whole name finds these pages alone
    marks = [f"#{tag.casefold()}" for tag in page.tags] + [mark_of(analyzer.tokens(name)) for name in page.names]
    prefix = " ".join(filter(None, (names.stems, analyzer.words(folders).stems, *marks)))
    return EncodedPage(
        page=replace(page, units=()),
        stamp=stamp,
        words=b"".join([unit.words for unit in units]),
        heading=names.hashes,
        features=b"".join([unit.features for unit in units]),
        content=b"".join([unit.content for unit in units]),
        passages=tuple(_passages(prefix, units)),
    )


class _EncodedUnit(NamedTuple):
    """What a unit adds to its `EncodedPage`.

    Attributes:
        words: See `EncodedPage`; so are `features` and `content`.
        terms: The stems of its words, and the marks of its days, joined by blanks.
        n_words: How many words it has.
        n_terms: How many terms.
    """

    words: bytes
    features: bytes
    content: bytes
    terms: str
    n_words: int
    n_terms: int


def _passages(prefix: str, units: Sequence[_EncodedUnit]) -> Iterator[str]:
    """Yield the text of each passage: that of the page, then the terms of as many units as make `PASSAGE_WORDS`."""
    passage, size = [prefix] if prefix else [], 0
    for unit in units:
        if size and size + unit.n_words > PASSAGE_WORDS:
            yield " ".join(passage)
            passage, size = [prefix] if prefix else [], 0
        if unit.terms:
            passage.append(unit.terms)
        size += unit.n_terms
    yield " ".join(passage)


def _encoded_unit(unit: Unit, at: str, analyzer: Analyzer) -> _EncodedUnit:
    """Return a unit as the index has it.

    Args:
        unit: The unit.
        at: When it was said, ISO 8601.
        analyzer: The brain's language.
    """
    # an address holds words that nobody said; the bracket closes the text of a link, and parts words like a blank
    text = _URL.sub("]", unit.read) if "http" in unit.text or "](" in unit.text else unit.read
    words = analyzer.words(text)
    # the day it was said, and the first and last date written in it in digits
    day = day_of(at, analyzer.zone)
    written = [found.toordinal() for found, _ in dates_in(unit.text)] if words.signs & NUMBER else []
    first_day, last_day = min(written, default=NO_DAY), max(written, default=NO_DAY)
    marks = _marks_of(day) + (_marks_of(first_day) if first_day != day else [])
    speaker = term_hash(speaker_key(unit.speaker)) if unit.speaker else 0
    n_words = len(words.hashes) // 4  # four bytes each
    flags = _flags_of(unit, words.signs) | min(words.length, MAX_LENGTH) << LENGTH_SHIFT
    return _EncodedUnit(
        words=words.hashes,
        features=_ROW.pack(n_words, flags, speaker, day, first_day, last_day, _minute(at)),
        content=content_key(unit).to_bytes(8, sys.byteorder),
        terms=" ".join(filter(None, (words.stems, *marks))),
        n_words=n_words,
        n_terms=n_words + len(marks),
    )


_known_unit = lru_cache(maxsize=4096)(_encoded_unit)


def speaker_key(speaker: str) -> str:
    """Return the key by which speakers are compared: the first name, casefolded."""
    return speaker.casefold().split(" ", 1)[0]


USER, AI = term_hash("user"), term_hash("ai")  # who speaks where no transcript names anybody


def content_key(unit: Unit) -> int:
    """Return the 64-bit hash of a unit's speaker and text, and of what stands above it: such units have one vector."""
    said = f"{unit.speaker}\0{unit.read}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), sys.byteorder)


def _flags_of(unit: Unit, signs: int) -> int:
    """Return the flags of a unit as one number: speaker, kind, questions, times, numbers, places, capitals.

    Args:
        unit: The unit.
        signs: Of its words, see `Words`.
    """
    # the name of a picture is no question and no place
    text = _IMAGE.sub("", unit.text) if "![" in unit.text else unit.text
    flags = signs & (TIME | NUMBER)
    flags |= unit.kind << KIND_SHIFT
    flags |= FROM_AI if unit.side == "ai" or unit.author.origin in ("assistant", "tool") else 0
    flags |= HEADED if unit.kind is UnitKind.PARAGRAPH and text.startswith("#") else 0
    if has_question(text):
        flags |= QUESTION
        flags |= ASKS if not unit.is_answered and ends_as_question(text) else 0
    if signs & CAPITAL:
        flags |= PLACE if _PLACE.search(text) else 0
        flags |= min(MAX_CAPITALS, len(_CAPITALIZED.findall(text))) << CAPITALS_SHIFT
    return flags


@lru_cache(maxsize=4096)
def day_of(at: str, zone: tzinfo) -> int:
    """Return the day of a moment in a time zone as an ordinal; of a bare day itself, of anything else `NO_DAY`."""
    try:
        # a bare day is the same day in every zone, and a moment is written in UTC
        if len(at) <= len("2026-11-22") or zone is UTC:
            return date(int(at[:4]), int(at[5:7]), int(at[8:10])).toordinal()
        return parse_iso(at).astimezone(zone).date().toordinal()
    except (ValueError, OverflowError):
        return NO_DAY


@lru_cache(maxsize=4096)
def _minute(at: str) -> int:
    """Return the minute of a moment, counted from an arbitrary one; `NO_DAY` where only a day is known."""
    try:
        return int(parse_iso(at).timestamp() // 60) if len(at) > len("2026-11-22") else NO_DAY
    except (ValueError, OverflowError):
        return NO_DAY


@lru_cache(maxsize=4096)
def _marks_of(day: int) -> list[str]:
    """Return the marks of a day and of its month in the index (`@2026-11-22`, `@2026-11`); none for no day."""
    if day == NO_DAY:
        return []
    text = date.fromordinal(day).isoformat()
    return [f"@{text}", f"@{text[:7]}"]
