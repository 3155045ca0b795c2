"""What was said, word for word (redacted already), on the page of its day; once, whatever happens in between."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.formats.dialogue import StmEvent, find_events, render_exchange
from brainiac.formats.discretion import is_private
from brainiac.formats.memory import MemoryDocument
from brainiac.formats.prose import splice
from brainiac.storage.filed import filed
from brainiac.storage.relinking import Origins

from .draft import Draft, can_hold, is_free
from .placement import day_place

SECTION = "## Conversation"
PAGE_CHARACTERS = 32_000  # a day's page that has more is continued by the next


def add_exchanges(
    brain: Brain, draft: Draft, events: Sequence[StmEvent], origins: Origins, left: dict[str, str]
) -> dict[str, list[str]]:
    """Put exchanges on the pages of their days, in the order they were said; one that stands on a page stays there.

    Args:
        brain: The brain.
        draft: The pages in work.
        events: What is archived.
        origins: Tells where their links lead.
        left: Takes in the events that no page holds as they are given, with the reason.

    Returns:
        Path → ids of the exchanges that stand there now as they are given; one that stands there in other words, put
        right by a person on the page or here, is left out.
    """
    exchanges_filed, days = filed(brain), _DayPages(brain, draft)
    said: dict[str, list[StmEvent]] = {}
    for event in sorted(events, key=lambda event: (event.at, event.id)):
        try:
            path = exchanges_filed.place_of(event.id)
            if not _stands(draft, path, event.id):
                path = days.page_for(event)
        except FormatError as error:
            left[event.id] = str(error)
        else:
            said.setdefault(path, []).append(replace(origins.moved(event, path), thoughts=""))
    pages: dict[str, list[str]] = {}
    for path, exchanges in said.items():
        working = draft.pages[path]
        text, added = _with_exchanges(str(working.document), exchanges)
        if added:
            working.document = MemoryDocument(text, path)
            working.sources.update(dict.fromkeys(added))
        standing = {(placed.event.id, placed.event.user, placed.event.ai) for placed in find_events(text)}
        for event in exchanges:
            if (event.id, event.user, event.ai) in standing:
                pages.setdefault(path, []).append(event.id)
            else:
                left[event.id] = f"it stands in {path} in other words"
    return pages


def _stands(draft: Draft, path: str, exchange: str) -> bool:
    """Return whether an exchange stands on the page that it was once put on."""
    try:
        working = draft.page(path) if path else None
    except FormatError:
        return False
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
        """Return the path of the page that takes an event, begun where there is none with room for it.

        Raises:
            FormatError: The folder of the day cannot be one.
        """
        first = day_place(self._brain, event.at, is_private=event.is_private)
        folder = posixpath.dirname(first.path)
        if not can_hold(self._brain, folder):
            raise FormatError(folder, "is no folder, so that nothing can be filed there; move away what stands there")
        number = self._last.get(first.path) or self._last_number(first.path)
        while not self._takes(event, number):
            number += 1
        self._last[first.path] = number
        path = day_place(self._brain, event.at, is_private=event.is_private, number=number).path
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

    def _takes(self, event: StmEvent, number: int) -> bool:
        """Return whether a page has room for an event; one that is broken or not private is left to the person."""
        place = day_place(self._brain, event.at, is_private=event.is_private, number=number)
        if place.path not in self._sizes:
            try:
                working = self._draft.page(place.path)
            except FormatError:
                return False
            if working is None and not is_free(self._brain, place.path):
                return False
            if working is None:
                begin = self._draft.catalogue.begin
                text = begin(place.path, place.title, place.meta, is_private=event.is_private)
                working = self._draft.add(place.path, text)
            if event.is_private and not is_private(working.document.memory.meta):
                return False
            self._sizes[place.path] = len(str(working.document))
        return self._sizes[place.path] < PAGE_CHARACTERS


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
