"""What is searched, as values: a page, and the units on it that can be found.

A unit is the smallest thing a search returns: a statement, one speaker's words of an exchange, a paragraph.
Wider scales (neighbours, windows, the whole page) are made from the units of a page when it is ranked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from brainiac.search.hit import HitKind


class UnitKind(IntEnum):
    """What a unit is; stored in the index by number."""

    PARAGRAPH = 0
    STATEMENT = 1
    TURN = 2
    SUMMARY = 3

    @property
    def hit_kind(self) -> HitKind:
        """What a hit of it is called."""
        return _HIT_KINDS[self]


_HIT_KINDS: dict[UnitKind, HitKind] = {
    UnitKind.PARAGRAPH: "memory",
    UnitKind.STATEMENT: "statement",
    UnitKind.TURN: "exchange",
    UnitKind.SUMMARY: "index-page",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that can be found.

    Attributes:
        text: Its words as they stand.
        kind: What it is.
        anchor: Block id of a statement, id of an exchange, or "".
        at: ISO 8601 moment it was said; "" means the page's.
        speaker: Who says it: `user`, `ai`, or the name that labels the words in a transcript.
        side: `user` or `ai`: whose text of the exchange it stands in; else "".
        is_private: It must not leave this machine.
    """

    text: str
    kind: UnitKind = UnitKind.PARAGRAPH
    anchor: str = ""
    at: str = ""
    speaker: str = ""
    side: str = ""
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link found on a page: the identity it names, if any, and the path it leads to, relative to the root."""

    uuid: str
    path: str

    @property
    def target(self) -> str:
        """What it is looked up by: the uuid is the truth."""
        return self.uuid or self.path


@dataclass(slots=True)  # not frozen: a hundred are made for each query, in half the time
class Page:
    """A file as it is searched.

    Attributes:
        path: Relative, posix.
        title: For a person.
        units: In the order of the page.
        uuid: "" where the file has none.
        at: ISO 8601 moment of its last change; "" if unknown.
        tags: As they stand.
        uses: Times stated again or cited.
        links: Where it leads.
        is_archived: It was put to rest: found behind all else, and marked.
        aliases: Other names of it.
    """

    path: str
    title: str
    units: tuple[Unit, ...]
    uuid: str = ""
    at: str = ""
    tags: tuple[str, ...] = ()
    uses: int = 0
    links: tuple[Link, ...] = ()
    is_archived: bool = False
    aliases: tuple[str, ...] = ()
