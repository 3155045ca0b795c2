"""What was said, word for word (redacted already), on the page of its day; once, whatever happens in between."""

from __future__ import annotations

import os
import posixpath
import re
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
from brainiac.promotion.filed import filed
from brainiac.promotion.placement import Place, day_place

if TYPE_CHECKING:
    from brainiac.brain import Brain
    from brainiac.promotion.draft import Draft, Working

SECTION = "## Conversation"
PAGE_CHARACTERS = 32_000  # a day's page that has more is continued by the next


def add_exchanges(brain: Brain, draft: Draft, events: Sequence[StmEvent]) -> dict[str, list[str]]:
    """Put exchanges on the pages of their days, in the order they were said; one that stands on a page stays there.

    Args:
        brain: The brain.
        draft: The pages in work.
        events: What is archived.

    Returns:
        Path → ids of the exchanges that stand there now as they are given; one that stands there in other words, put
        right by a person on the page or here, is left out.
    """
    places, days = filed(brain).places, _DayPages(brain, draft)
    said: dict[str, list[StmEvent]] = {}
    for event in sorted(events, key=lambda event: (event.at, event.id)):
        path = places.get(event.id, "")
        if not _stands(draft, path, event.id):
            path = days.page_for(event)
        answer = _with_links(brain, draft, event.ai, path)
        said.setdefault(path, []).append(replace(event, thoughts="", ai=answer))
    pages: dict[str, list[str]] = {}
    for path, exchanges in said.items():
        working = draft.pages[path]
        text, added = _with_exchanges(str(working.document), exchanges)
        if added:
            working.document = MemoryDocument(text, path)
            working.sources.update(dict.fromkeys(added))
        standing = {(placed.event.id, placed.event.user, placed.event.ai) for placed in find_events(text)}
        pages[path] = [each.id for each in exchanges if (each.id, each.user, each.ai) in standing]
    return {path: ids for path, ids in pages.items() if ids}


def _stands(draft: Draft, path: str, exchange: str) -> bool:
    """Return whether an exchange stands on the page that it was once put on."""
    working = draft.page(path) if path else None
    return working is not None and f"<!-- exchange: {exchange} -->" in str(working.document)


class _DayPages:
    """The pages of days, each continued by a further one when it is full: what a filing costs must not grow with a day.

    Args:
        brain: The brain.
        draft: The pages in work.
    """

    def __init__(self, brain: Brain, draft: Draft) -> None:
        self._brain, self._draft = brain, draft
        self._last: dict[str, int] = {}  # number of a day's last page, by the path of its first
        self._sizes: dict[str, int] = {}

    def page_for(self, event: StmEvent) -> str:
        """Return the path of the page that takes an event, begun where there is none with room for it."""
        place = day_place(self._brain, event.at, is_private=event.is_private)
        number = self._last.get(place.path) or self._last_number(place.path)
        while not self._has_room(path := _numbered(place.path, number), place, number, event.is_private):
            number += 1
        self._last[place.path] = number
        self._sizes[path] += len(render_exchange(event))
        return path

    def _last_number(self, first: str) -> int:
        """Return the number of a day's last page by the files that stand there."""
        folder, name = posixpath.split(first.removesuffix(".md"))
        numbered = re.compile(rf"{re.escape(name)}-([2-9]|[1-9]\d+)\.md")
        try:
            names = os.listdir(self._brain.tree.absolute(folder))
        except FileNotFoundError:
            return 1
        return max((int(found[1]) for each in names if (found := numbered.fullmatch(each))), default=1)

    def _has_room(self, path: str, place: Place, number: int, is_private: bool) -> bool:
        if path not in self._sizes:
            working = self._draft.page(path)
            if working is None and self._brain.read(path) is not None:
                return False  # broken: it is a person's to mend
            if working is None:
                working = self._begin(path, place, number, is_private)
            self._sizes[path] = len(str(working.document))
        return self._sizes[path] < PAGE_CHARACTERS

    def _begin(self, path: str, place: Place, number: int, is_private: bool) -> Working:
        uuid, title = new_id(), place.title if number == 1 else f"{place.title} ({number})"
        text = new_memory(title, uuid=uuid, now=iso(self._brain.clock.now()), **place.meta)
        self._draft.catalogue.add(path, uuid, title, "", is_private)
        return self._draft.add(path, text)


def _numbered(first: str, number: int) -> str:
    return first if number == 1 else f"{first.removesuffix('.md')}-{number}.md"


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

    The page is read once, however much stands there.
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
