"""Pages as the index keeps them: hashed terms and a row of facts for each unit, all that ranking needs and no text.

Every scale of ranking is computed from these for the candidates of a query alone, which keeps the index small and
lets a page that is not indexed yet be ranked like any other.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from brainiac.language.times import find_times
from brainiac.recall.text import Analyzer, prefix_hash, term_hash
from brainiac.recall.units import Link, Page, Unit, UnitKind

PASSAGE_TERMS = 64
NO_DAY = -(2**31)
FACTS = 6  # 32-bit columns of a unit: terms, flags, speaker, day said, first and last day spoken of

QUESTION, ASKS, TIME, NUMBER, FIRST_PERSON, PLACE, QUOTE, IMAGE = (1 << i for i in range(8))
_CAPITALS_SHIFT, _KIND_SHIFT, MAX_CAPITALS = 8, 12, 4

_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|recently|(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december|summer"
    r"|winter|spring|since|\d{4}|morning|evening|birthday|soon|just)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|couple|several|few|dozen|first|second|third)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|my|we|our|me|mine|us)\b", re.IGNORECASE)
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
    heading = analyzer.terms(" ".join((page.title, *page.tags, *_folder_words(page.path))))
    passages: list[list[str]] = [[]]
    marks = [f"#{tag.casefold()}" for tag in page.tags]
    for unit in page.units:
        stems = analyzer.terms(_URL.sub("]", unit.text))
        hashes = [analyzer.hashes(stem) for stem in stems]
        terms.extend(pair[0] for pair in hashes)
        prefixes.extend(pair[1] for pair in hashes)
        days = days_of(unit, page)
        facts.extend((len(stems), flags_of(unit), signed(term_hash(speaker_key(unit.speaker))), *days))
        content.append(content_key(unit))
        if len(passages[-1]) + len(stems) > PASSAGE_TERMS and passages[-1]:
            passages.append([])
        passages[-1] += stems
        passages[-1] += _day_marks(days)
    bare = Page(page.path, page.title, (), page.uuid, page.at, page.tags, page.uses, page.links, page.is_archived)
    head = [*heading, *marks]
    return EncodedPage(
        bare, stamp, terms.tobytes(), prefixes.tobytes(), array("I", map(prefix_hash, heading)).tobytes(),
        facts.tobytes(), content.tobytes(), tuple(" ".join((*head, *passage)) for passage in passages),
    )  # fmt: skip


def signed(number: int) -> int:
    """Return a 32-bit hash as the signed number that the facts hold."""
    return number - (1 << 32) if number >= 1 << 31 else number


def speaker_key(speaker: str) -> str:
    """Return what a speaker is matched by: the first name, casefolded."""
    return speaker.casefold().split(" ", 1)[0]


def content_key(unit: Unit) -> int:
    """Return a unit's 64-bit content hash; the same words by the same speaker have the same vector."""
    import hashlib

    digest = hashlib.blake2b(f"{unit.speaker}\0{unit.text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def flags_of(unit: Unit) -> int:
    """Return what a unit's words show at a glance, as one number."""
    text, is_image = unit.text, False
    if "![" in text:
        text, is_image = _IMAGE.sub("", text), True
    flags = (
        QUESTION * ("?" in text)
        | ASKS * text.rstrip().endswith("?")
        | TIME * bool(_TIME.search(text))
        | NUMBER * bool(_NUMBER.search(text))
        | FIRST_PERSON * bool(_FIRST_PERSON.search(text))
        | PLACE * bool(_PLACE.search(text))
        | QUOTE * bool(_QUOTED.search(text))
        | IMAGE * is_image
    )
    capitals = min(MAX_CAPITALS, sum(1 for _ in _CAPITALIZED.finditer(text)))
    return flags | capitals << _CAPITALS_SHIFT | unit.kind << _KIND_SHIFT


def kind_of(flags: int) -> UnitKind:
    """Return the kind that `flags_of` put away."""
    return UnitKind(flags >> _KIND_SHIFT & 7)


def days_of(unit: Unit, page: Page) -> tuple[int, int, int]:
    """Return the day a unit was said and the first and last day it speaks of, as ordinals or `NO_DAY`."""
    said = _day(unit.at or page.at)
    if said == NO_DAY or unit.kind is UnitKind.SUMMARY:
        return said, NO_DAY, NO_DAY
    spans = find_times(unit.text, datetime.combine(date.fromordinal(said), datetime.min.time(), UTC))
    days = [(s.earliest.toordinal(), s.latest.toordinal()) for s in spans if s.kind in ("point", "range")]
    if not days:
        return said, NO_DAY, NO_DAY
    return said, min(first for first, _ in days), max(last for _, last in days)


def _day(at: str) -> int:
    try:
        return date(int(at[:4]), int(at[5:7]), int(at[8:10])).toordinal()
    except ValueError:
        return NO_DAY


def _day_marks(days: tuple[int, int, int]) -> Iterator[str]:
    for day in {days[0], days[1]} - {NO_DAY}:
        text = date.fromordinal(day).isoformat()
        yield f"@{text}"
        yield f"@{text[:7]}"


def _folder_words(path: str) -> list[str]:
    return [word for part in path.removesuffix(".md").split("/")[2:] for word in part.split("-") if not word.isdigit()]
