"""What was said, word for word (redacted already), on the page of its day; once, whatever happens in between."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from brainiac.clock import iso
from brainiac.events import new_id
from brainiac.notes.dialogue import StmEvent, find_events, render_exchange
from brainiac.notes.links import find_links, rewrite_link
from brainiac.notes.memory import MemoryDocument, new_memory
from brainiac.notes.prose import splice
from brainiac.promotion.placement import day_place

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.promotion.draft import Draft

SECTION = "## Conversation"


def add_exchanges(brain: Brain, draft: Draft, events: Sequence[StmEvent]) -> dict[str, list[str]]:
    """Put exchanges on the pages of their days, in the order they were said.

    Args:
        brain: The brain.
        draft: The pages in work.
        events: What is archived.

    Returns:
        Path → ids of the exchanges that were added or stood there.
    """
    said: dict[str, list[StmEvent]] = {}
    for event in sorted(events, key=lambda event: (event.at, event.id)):
        path = _day_page(brain, draft, event)
        answer = _with_links(brain, draft, event.ai, path)
        said.setdefault(path, []).append(replace(event, thoughts="", ai=answer))
    for path, exchanges in said.items():
        working = draft.pages[path]
        text, added = _with_exchanges(str(working.document), exchanges)
        if added:
            working.document = MemoryDocument(text, path)
            working.sources.update(dict.fromkeys(added))
    return {path: [event.id for event in exchanges] for path, exchanges in said.items()}


def _day_page(brain: Brain, draft: Draft, event: StmEvent) -> str:
    """Return the path of the page of an event's day, begun where there is none."""
    place = day_place(brain, event.at, is_private=event.is_private)
    if draft.page(place.path) is None:
        uuid = new_id()
        text = new_memory(place.title, uuid=uuid, now=iso(brain.clock.now()), **place.meta)
        draft.catalogue.add(place.path, uuid, place.title, "", event.is_private)
        draft.add(place.path, text)
    return place.path


def _with_links(brain: Brain, draft: Draft, answer: str, path: str) -> str:
    """Return an answer whose links lead from the day's page to where they led from the inbox; nothing else changes."""
    for link in reversed(find_links(answer)):
        if link.is_wiki or link.is_external or not link.target:
            continue
        page = draft.catalogue.by_uuid.get(link.uuid)
        target = page.path if page else link.target.lstrip("./")
        if page or brain.read(target) is not None:
            answer = rewrite_link(answer, link, posixpath.relpath(target, posixpath.dirname(path)))
    return answer


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
