"""Pages as the index keeps them: hashed terms and a row of facts for each unit, all that ranking needs and no text.

Every scale of ranking is computed from these for the candidates of a query alone, which keeps the index small and
lets a page that is not indexed yet be ranked like any other.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

from brainiac.language.times import find_times
from brainiac.recall import text as text_signs
from brainiac.recall.text import Analyzer, term_hash
from brainiac.recall.units import Page, Unit, UnitKind

PASSAGE_TERMS = 64
NO_DAY = -(2**31)
_REMEMBERED_LENGTH = 8192  # so that the cache stays small whatever people paste
FACTS = 6  # 32-bit columns of a unit: terms, flags, speaker, day said, first and last day spoken of

QUESTION, ASKS, TIME, NUMBER, FIRST_PERSON, PLACE, QUOTE, IMAGE = (1 << i for i in range(8))
_CAPITALS_SHIFT, _KIND_SHIFT, MAX_CAPITALS = 8, 12, 4

_PLACE = re.compile(r"\b(?:in|at|to|from|near) (?:the )?[A-Z]\w+")
_CAPITALIZED = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][a-z]+", re.MULTILINE)
_QUOTED = re.compile(r'["“][^"”\n]{3,80}["”]')
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
    terms, prefixes, facts, content = array("I"), array("I"), array("i"), array("Q")
    heading = [word for word in analyzer.words(_heading(page)) if word.stem]
    passages: list[list[str]] = [[]]
    for unit in page.units:
        # a log of exchanges is encoded again after each of them: what stood there before need not be
        is_kept = unit.kind is UnitKind.TURN and len(unit.text) <= _REMEMBERED_LENGTH
        found = (_known_unit if is_kept else _encoded_unit)(unit, page.at, analyzer)
        terms.frombytes(found.terms)
        prefixes.frombytes(found.prefixes)
        facts.extend(found.facts)
        content.append(found.content)
        if passages[-1] and len(passages[-1]) + found.facts[0] > PASSAGE_TERMS:
            passages.append([])
        passages[-1] += found.stems
    head = [word.stem for word in heading] + [f"#{tag.casefold()}" for tag in page.tags]
    bare = Page(page.path, page.title, (), page.uuid, page.at, page.tags, page.uses, page.links, page.is_archived)
    return EncodedPage(
        bare, stamp, terms.tobytes(), prefixes.tobytes(), array("I", [word.prefix for word in heading]).tobytes(),
        facts.tobytes(), content.tobytes(), tuple(" ".join((*head, *passage)) for passage in passages),
    )  # fmt: skip


class _EncodedUnit(NamedTuple):
    """What a unit adds to its page; `stems` with the marks of its days."""

    terms: bytes
    prefixes: bytes
    facts: tuple[int, ...]
    content: int
    stems: tuple[str, ...]


def _encoded_unit(unit: Unit, page_at: str, analyzer: Analyzer) -> _EncodedUnit:
    text = _URL.sub("]", unit.text) if "http" in unit.text or "](" in unit.text else unit.text
    words = analyzer.words(text)
    kept = [word for word in words if word.stem]
    signs = 0
    for word in words:
        signs |= word.signs
    days = _days_of(unit, page_at, signs)
    speaker = signed(term_hash(speaker_key(unit.speaker))) if unit.speaker else 0
    return _EncodedUnit(
        array("I", [word.hash for word in kept]).tobytes(),
        array("I", [word.prefix for word in kept]).tobytes(),
        (len(kept), _flags_of(unit, signs), speaker, *days),
        content_key(unit),
        (*(word.stem for word in kept), *_day_marks(days)),
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
    digest = hashlib.blake2b(f"{unit.speaker}\0{unit.text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _flags_of(unit: Unit, signs: int) -> int:
    """Return what a unit's words show at a glance, as one number."""
    text, is_image = unit.text, False
    if "![" in text:
        text, is_image = _IMAGE.sub("", text), True
    flags = (
        TIME * bool(signs & text_signs.TIME)
        | NUMBER * bool(signs & text_signs.NUMBER)
        | FIRST_PERSON * bool(signs & text_signs.FIRST_PERSON)
        | IMAGE * is_image
        | unit.kind << _KIND_SHIFT
    )
    if "?" in text:
        flags |= QUESTION | ASKS * text.rstrip().endswith("?")
    if signs & text_signs.CAPITAL:
        flags |= (
            PLACE * bool(_PLACE.search(text)) | min(MAX_CAPITALS, len(_CAPITALIZED.findall(text))) << _CAPITALS_SHIFT
        )
    if '"' in text or "“" in text:
        flags |= QUOTE * bool(_QUOTED.search(text))
    return flags


def kind_of(flags: int) -> UnitKind:
    """Return the kind that `flags_of` put away."""
    return UnitKind(flags >> _KIND_SHIFT & 7)


def _days_of(unit: Unit, page_at: str, signs: int) -> tuple[int, int, int]:
    """Return the day a unit was said and the first and last day it speaks of, as ordinals or `NO_DAY`."""
    said = _day(unit.at or page_at)
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
