"""What was said, word for word (redacted already), on the page of its day; once, whatever happens in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from brainiac.errors import FormatError
from brainiac.notes.dialogue import StmEvent, find_events, render_exchange
from brainiac.notes.frontmatter import is_private
from brainiac.notes.memory import MemoryDocument
from brainiac.notes.prose import splice
from brainiac.promotion.placement import day_of

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.promotion.draft import Draft
    from brainiac.promotion.relinking import Origins

SECTION = "## Conversation"


def add_exchanges(
    brain: Brain, draft: Draft, events: Sequence[StmEvent], origins: Origins, left: dict[str, str]
) -> dict[str, list[str]]:
    """Put exchanges on the pages of their days, in the order they were said.

    Args:
        brain: The brain.
        draft: The pages in work.
        events: What is archived.
        origins: Tells where their links lead.
        left: Takes in the events for which no page can be written, with the reason.

    Returns:
        Path → ids of the exchanges that were added or stood there.
    """
    said: dict[str, list[StmEvent]] = {}
    for event in sorted(events, key=lambda event: (event.at, event.id)):
        try:
            path = _day_page(brain, draft, event)
        except FormatError as error:
            left[event.id] = str(error)
        else:
            said.setdefault(path, []).append(replace(origins.moved(event, path), thoughts=""))
    for path, exchanges in said.items():
        working = draft.pages[path]
        text, added = _with_exchanges(str(working.document), exchanges)
        if added:
            working.document = MemoryDocument(text, path)
            working.sources.update(dict.fromkeys(added))
    return {path: [event.id for event in exchanges] for path, exchanges in said.items()}


def _day_page(brain: Brain, draft: Draft, event: StmEvent) -> str:
    """Return the path of the page of an event's day, begun where there is none."""
    place = day_of(brain, draft.catalogue, event.at, is_private=event.is_private)
    working = draft.page(place.path)
    if working is None:
        text = draft.catalogue.begin(place.path, place.title, place.meta, is_private=event.is_private)
        working = draft.add(place.path, text)
    if event.is_private and not is_private(working.document.memory.meta):
        raise FormatError(place.path, "what is private cannot stand there: the page is not private any more")
    return place.path


def _with_exchanges(text: str, events: Sequence[StmEvent]) -> tuple[str, list[str]]:
    """Return a page with further exchanges, each after those said before it, and the ids of those it did not have.

    The page is read once, however much stands there: a day has one page.
    """
    placed = list(find_events(text))
    known = {one.event.id for one in placed}
    new = list({event.id: event for event in events if event.id not in known}.values())

    def last_before(event: StmEvent) -> int:
        return max((number for number, one in enumerate(placed) if one.event.at <= event.at), default=-1)

    for number, some in reversed([(number, list(some)) for number, some in groupby(new, last_before)]):
        rendered = "".join(render_exchange(event) + "\n" for event in some)
        if number >= 0:
            text = splice(text, placed[number].end, _apart(text, placed[number].end) + rendered)
        elif placed:
            text = splice(text, placed[0].start, rendered)
        else:
            text = _begun(text, rendered)
    return text, [event.id for event in new]


def _begun(text: str, rendered: str) -> str:
    """Return a page without exchanges with its first ones."""
    section = text.find(f"\n{SECTION}\n")
    if section >= 0:
        return splice(text, section + len(SECTION) + 2, rendered)
    history = text.find("\n## ")
    at = history + 1 if history >= 0 else len(text)
    return splice(text, at, _apart(text, at) + f"{SECTION}\n{rendered}")


def _apart(text: str, at: int) -> str:
    """Return the line ends that are missing for a blank line before an offset."""
    return "" if text[:at].endswith("\n\n") else "\n" if text[:at].endswith("\n") else "\n\n"
