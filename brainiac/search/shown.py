"""A hit as a person is shown it: the words around what was asked, whose they are, and what its score is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, tzinfo

from brainiac.formats.markdown import without_link_targets
from brainiac.search.documents import NO_DAY, Hit
from brainiac.search.features import day_of
from brainiac.search.query import excerpt, matches, without_fields
from brainiac.search.signals import contributions
from brainiac.search.text import Analyzer

_SHOWN_SIGNALS = 8
_WAYS = {"meaning": "by meaning", "context": "by the talk around it", "day": "by its day", "title": "by its title"}


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit for a person.

    Attributes:
        hit: The hit.
        text: The part of it that holds most of the query, on one line.
        places: Where in that the words of the query stand: start and end.
        who: Who said it; "" for words of a page.
        about: Its page's title, its day, and how it was found where not by its words.
        link: Path of its page, with the block id of a statement.
    """

    hit: Hit
    text: str
    places: tuple[tuple[int, int], ...]
    who: str
    about: tuple[str, ...]
    link: str

    @property
    def pieces(self) -> Iterator[tuple[str, bool]]:
        """The text in pieces, each with whether it is a word of the query."""
        last = 0
        for start, end in self.places:
            yield from ((self.text[last:start], False), (self.text[start:end], True))
            last = end
        yield self.text[last:], False


def shown_hit(hit: Hit, query: str, analyzer: Analyzer, zone: tzinfo) -> ShownHit:
    """Return a hit as a person is shown it.

    Args:
        hit: The hit.
        query: As typed.
        analyzer: The person's language.
        zone: The person's time zone.
    """
    words = without_fields(query)  # `tag:` and the like are no words that an excerpt could hold
    # of a link its words: where it leads is for programs
    text = excerpt(" ".join(without_link_targets(hit.text).split()), words, analyzer=analyzer)
    day = day_of(hit.at, zone)
    about = [hit.title, "undated" if day == NO_DAY else str(date.fromordinal(day))]
    about += ["archived"] if hit.is_archived else []
    about += [_WAYS[hit.found_by]] if hit.found_by in _WAYS else []
    who = hit.author.named if hit.by else hit.speaker  # an answer of a model that is not named is an `ai`'s
    block = f"#^{hit.anchor}" if hit.kind == "statement" and hit.anchor else ""
    places = tuple((place.start, place.end) for place in matches(text, words, analyzer))
    return ShownHit(hit, text, places, who, tuple(about), f"{hit.path}{block}")


def reasons(hit: Hit) -> list[tuple[str, str, str, str]]:
    """Return the strongest signals of a hit's score: each with its value, its weight and what it adds."""
    parts = contributions(hit.signals)
    strongest = sorted(parts.items(), key=lambda part: -abs(part[1][2]))[:_SHOWN_SIGNALS]
    return [
        (name, f"{value:.3f}", f"{weight:+.2f}", f"{adds:+.2f}") for name, (value, weight, adds) in strongest if adds
    ]
