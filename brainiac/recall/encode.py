"""Pages as the index keeps them: hashed terms and a row of facts for each unit, all that ranking needs and no text.

Every scale of ranking is computed from these for the candidates of a query alone, which keeps the index small and
lets a page that is not indexed yet be ranked like any other.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from brainiac.language.times import find_times
from brainiac.recall import text as text_signs
from brainiac.recall.text import Analyzer, term_hash
from brainiac.recall.units import Page, Unit, UnitKind

PASSAGE_TERMS = 64
NO_DAY = -(2**31)
_REMEMBERED_LENGTH = 8192  # so that the cache stays small whatever people paste
FACTS = 6  # 32-bit columns of a unit: terms, flags, speaker, day said, first and last day spoken of
_FACTS = Struct(f"={FACTS}i")

QUESTION, ASKS, TIME, NUMBER, FIRST_PERSON, PLACE, ECHO = (1 << i for i in range(7))
_CAPITALS_SHIFT, _KIND_SHIFT, MAX_CAPITALS = 8, 12, 4

# both begin with what they seek and look back from there: ten times as fast as a word boundary in front
_PLACE = re.compile(r"(?:i(?<!\w.)n|a(?<!\w.)t|t(?<!\w.)o|f(?<!\w.)rom|n(?<!\w.)ear) (?:the )?[A-Z]\w+")
_CAPITALIZED = re.compile(r"[A-Z](?<!\w.)(?<!^.)(?<![.!?:]\s.)[a-z]+", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_URL = re.compile(r"\]\([^)\s]*\)|https?://\S+")


@dataclass(slots=True)
class EncodedPage:
    """A page without its text.

    Attributes:
        page: Path, title and the like; its `units` are empty.
        stamp: Modification time in ns and size of the file it was read from.
        terms: uint32 hashes of the stems of all units in order; prefixes: likewise of their beginnings.
        heading: uint32 prefix hashes of title, tags and folder names.
        facts: int32, `FACTS` a unit.
        passages: Stems joined by blanks, for the engine; empty once it is stored.
        content: One hash a unit, the key of its vector.
    """

    page: Page
    stamp: tuple[int, int]
    terms: bytes
    prefixes: bytes
    heading: bytes
    facts: bytes
    content: bytes
    passages: tuple[str, ...] = ()

    @property
    def n_units(self) -> int:
        """How many units the page has."""
        return len(self.facts) // (4 * FACTS)


def encode(page: Page, analyzer: Analyzer, stamp: tuple[int, int] = (0, 0)) -> EncodedPage:
    """Analyze a page's units; the page's own text is not kept."""
    heading = analyzer.words(_heading(page))
    # a log of exchanges is encoded again after each of them: what stood there before need not be
    units = [
        (_known_unit if unit.kind is UnitKind.TURN and len(unit.text) <= _REMEMBERED_LENGTH else _encoded_unit)(
            unit, unit.at or page.at, analyzer
        )
        for unit in page.units
    ]
    head = [heading.stems, *(f"#{tag.casefold()}" for tag in page.tags)]
    bare = Page(page.path, page.title, (), page.uuid, page.at, page.tags, page.uses, page.links, page.is_archived)
    return EncodedPage(
        bare,
        stamp,
        b"".join([unit.terms for unit in units]),
        b"".join([unit.prefixes for unit in units]),
        heading.prefixes,
        b"".join([unit.facts for unit in units]),
        b"".join([unit.content for unit in units]),
        tuple(_passages(" ".join(filter(None, head)), units)),
    )


class _EncodedUnit(NamedTuple):
    """What a unit adds to its page; `stems` joined by blanks, with the marks of its days, `n_stems` with them."""

    terms: bytes
    prefixes: bytes
    facts: bytes
    content: bytes
    stems: str
    n_stems: int


def _passages(head: str, units: Sequence[_EncodedUnit]) -> Iterator[str]:
    """Yield the stems of some units at a time, under the heading of their page."""
    passage, size = [head] if head else [], 0
    for unit in units:
        if size and size + len(unit.terms) // 4 > PASSAGE_TERMS:
            yield " ".join(passage)
            passage, size = [head] if head else [], 0
        if unit.stems:
            passage.append(unit.stems)
        size += unit.n_stems
    yield " ".join(passage)


def _encoded_unit(unit: Unit, at: str, analyzer: Analyzer) -> _EncodedUnit:
    text = _URL.sub("]", unit.text) if "http" in unit.text or "](" in unit.text else unit.text
    stems, hashes, prefixes, signs = analyzer.words(text)
    days = _days_of(unit, at, signs)
    marks = _day_marks(days)
    speaker = signed(term_hash(speaker_key(unit.speaker))) if unit.speaker else 0
    count = len(hashes) // 4
    return _EncodedUnit(
        hashes,
        prefixes,
        _FACTS.pack(count, _flags_of(unit, signs), speaker, *days),
        _digest(unit),
        " ".join((stems, *marks)) if stems else " ".join(marks),
        count + len(marks),
    )


_known_unit = lru_cache(maxsize=4096)(_encoded_unit)


def signed(number: int) -> int:
    """Return a 32-bit hash as the signed number that the facts hold."""
    return number - (1 << 32) if number >= 1 << 31 else number


def speaker_key(speaker: str) -> str:
    """Return what a speaker is matched by: the first name, casefolded."""
    return speaker.casefold().split(" ", 1)[0]


def content_key(unit: Unit) -> int:
    """Return a unit's 64-bit content hash; the same words by the same speaker have the same vector."""
    return int.from_bytes(_digest(unit), sys.byteorder)


def _digest(unit: Unit) -> bytes:
    return hashlib.blake2b(f"{unit.speaker}\0{unit.text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _flags_of(unit: Unit, signs: int) -> int:
    """Return what a unit's words show at a glance, as one number."""
    text = _IMAGE.sub("", unit.text) if "![" in unit.text else unit.text
    flags = (
        TIME * bool(signs & text_signs.TIME)
        | NUMBER * bool(signs & text_signs.NUMBER)
        | FIRST_PERSON * bool(signs & text_signs.FIRST_PERSON)
        | unit.kind << _KIND_SHIFT
    )
    if unit.side == "ai" and ('"uuid:' in text or "From memory: [" in text):
        flags |= ECHO  # it tells what it read in memory, which is found by itself
    if "?" in text:
        flags |= QUESTION | ASKS * text.rstrip().endswith("?")
    if signs & text_signs.CAPITAL:
        flags |= (
            PLACE * bool(_PLACE.search(text)) | min(MAX_CAPITALS, len(_CAPITALIZED.findall(text))) << _CAPITALS_SHIFT
        )
    return flags


def _days_of(unit: Unit, at: str, signs: int) -> tuple[int, int, int]:
    """Return the day a unit was said and the first and last day it speaks of, as ordinals or `NO_DAY`."""
    said = _day(at)
    if said == NO_DAY or not signs & (text_signs.TIME | text_signs.NUMBER):
        return said, NO_DAY, NO_DAY
    spans = find_times(unit.text, datetime.combine(date.fromordinal(said), datetime.min.time(), UTC))
    days = [(s.earliest.toordinal(), s.latest.toordinal()) for s in spans if s.kind in ("point", "range")]
    if not days:
        return said, NO_DAY, NO_DAY
    return said, min(first for first, _ in days), max(last for _, last in days)


@lru_cache(maxsize=4096)
def _day(at: str) -> int:
    try:
        return date(int(at[:4]), int(at[5:7]), int(at[8:10])).toordinal()
    except ValueError:
        return NO_DAY


def _day_marks(days: tuple[int, int, int]) -> list[str]:
    marks = _marks_of(days[0])
    return marks if days[1] in (NO_DAY, days[0]) else marks + _marks_of(days[1])


@lru_cache(maxsize=4096)
def _marks_of(day: int) -> list[str]:
    if day == NO_DAY:
        return []
    text = date.fromordinal(day).isoformat()
    return [f"@{text}", f"@{text[:7]}"]


def _heading(page: Page) -> str:
    """Return title, tags and the names of the folders below `memory/…/`, numbers left out."""
    folders = [word for part in page.path.split("/")[2:-1] for word in part.split("-") if not word.isdigit()]
    return " ".join((page.title, *page.tags, *folders))
