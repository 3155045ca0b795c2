"""What was said, word for word (redacted already), on the page of its day; once, whatever happens in between."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
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
    pages: dict[str, list[str]] = {}
    for event in sorted(events, key=lambda event: (event.at, event.id)):
        place = day_place(brain, event.at, is_private=event.is_private)
        working = draft.page(place.path)
        if working is None:
            uuid = new_id()
            text = new_memory(place.title, uuid=uuid, now=iso(brain.clock.now()), **place.meta)
            draft.catalogue.add(place.path, uuid, place.title, "", event.is_private)
            working = draft.add(place.path, text)
        event = replace(event, thoughts="", ai=_with_links(brain, draft, event.ai, place.path))
        text = _with_exchange(str(working.document), event)
        if text != str(working.document):
            working.document = MemoryDocument(text, place.path)
            working.sources[event.id] = None
        pages.setdefault(place.path, []).append(event.id)
    return pages


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


def _with_exchange(text: str, event: StmEvent) -> str:
    """Return a page with one more exchange, after those said before it; one that stands there changes nothing."""
    placed = list(find_events(text))
    if any(one.event.id == event.id for one in placed):
        return text
    rendered = render_exchange(event)
    earlier = [one for one in placed if one.event.at <= event.at]
    if earlier:
        return splice(text, earlier[-1].end, _apart(text, earlier[-1].end) + rendered + "\n")
    if placed:
        return splice(text, placed[0].start, rendered + "\n")
    section = text.find(f"\n{SECTION}\n")
    if section >= 0:
        return splice(text, section + len(SECTION) + 2, rendered + "\n")
    history = text.find("\n## ")
    at = history + 1 if history >= 0 else len(text)
    return splice(text, at, _apart(text, at) + f"{SECTION}\n{rendered}\n")


def _apart(text: str, at: int) -> str:
    """Return the line ends that are missing for a blank line before an offset."""
    return "" if text[:at].endswith("\n\n") else "\n" if text[:at].endswith("\n") else "\n\n"
