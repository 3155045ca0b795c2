"""What leaves short-term memory: exchanges word for word to the pages of their days, and what is left in its place.

What it cannot hold is filed too, oldest first and without any model: Promotion comes while it is quiet and needs a
model that serves. A day that is never quiet, an outage or a hundred thousand prompts must not grow it without end:
each exchange reads and writes all of it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import ConflictError, FormatError
from brainiac.events import Change, Event, ExchangeReflected, ExchangesFiled, update
from brainiac.formats.discretion import is_private
from brainiac.formats.markdown import Placed, StmEvent, find_events, render_event, render_exchange, splice
from brainiac.formats.page import MemoryDocument
from brainiac.formats.short_term import ShortTermDocument
from brainiac.llm.catalog import count
from brainiac.storage.filed import filed
from brainiac.storage.folders import Folders
from brainiac.storage.relinking import Origins
from brainiac.storage.statements import read_statements, text_hash

from .draft import Draft, check_folder, day_page, is_free

NAME = "promotion"
OVERFULL = 2  # times the limit: then what goes beyond the limit is filed, many exchanges at once
ATTEMPTS = 20
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
        working = draft.working[path]
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
        first, _ = day_page(self._brain, event.at, is_private=event.is_private)
        check_folder(self._brain, posixpath.dirname(first))
        number = self._last.get(first) or self._last_number(first)
        while not self._takes(event, number):
            number += 1
        self._last[first] = number
        path, _ = day_page(self._brain, event.at, is_private=event.is_private, number=number)
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
        return max((int(match[1]) for name in names if (match := numbered.fullmatch(name))), default=1)

    def _takes(self, event: StmEvent, number: int) -> bool:
        """Return whether a page has room for an event; one that is broken or not private is left to the person."""
        path, begun = day_page(self._brain, event.at, is_private=event.is_private, number=number)
        if path not in self._sizes:
            try:
                working = self._draft.page(path)
            except FormatError:
                return False
            if working is None and not is_free(self._brain, path):
                return False
            self._draft.begun.setdefault(path, begun)
            working = working or self._draft.opened(path)
            if event.is_private and not is_private(working.document.memory.meta):
                return False
            self._sizes[path] = len(str(working.document))
        return self._sizes[path] < PAGE_CHARACTERS


def _with_exchanges(text: str, events: Sequence[StmEvent]) -> tuple[str, list[str]]:
    """Return a page with further exchanges, each after those said before it, and the ids of those it did not have.

    The page is read once, however much stands there.
    """
    placed = list(find_events(text))
    known = {exchange.event.id for exchange in placed}
    new = list({event.id: event for event in events if event.id not in known}.values())

    def last_before(event: StmEvent) -> int:
        return max((number for number, exchange in enumerate(placed) if exchange.event.at <= event.at), default=-1)

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


# --- what short-term memory cannot hold ----------------------------------------------------------------------


def file_overflow(brain: Brain) -> Event | None:
    """File the oldest exchanges of short-term memory if it is overfull; None when it is not, or nothing can go.

    Raises:
        ConflictError: Somebody else writes the same files again and again.
        FormatError: Short-term memory lacks a heading.
    """
    for _ in range(ATTEMPTS):
        with brain.short_term_lock():
            document = brain.short_term()
            events = _oldest(document, brain.settings.promotion.max_tokens)
            if not events:
                return None
            try:
                return _file(brain, document, events)
            except ConflictError:
                continue
    raise ConflictError([brain.tree.relative(brain.tree.short_term)])


def _file(brain: Brain, document: ShortTermDocument, events: Sequence[StmEvent]) -> Event | None:
    """Move exchanges to the pages of their days in one commit; None where no page of theirs can be written."""
    log = read_statements(brain, iso(brain.clock.now()))
    draft, unwritable = Draft(brain, log), dict[str, str]()
    origins = Origins(brain, log.prompt_of, {})
    pages = add_exchanges(brain, draft, events, origins, unwritable)
    ids = [event.id for event in events if event.id not in unwritable]
    if not ids:
        return None
    given = _items_of(brain, ids) if document.memory.facts else set()
    facts = [item.text for item in document.memory.facts if text_hash(item.text) in given]
    left = document.without_event(*ids).without_items(facts=facts)
    changes: list[Change] = draft.changes(iso(brain.clock.now()))
    # a folder must have its index page; what that lists is brought up to date when it is quiet
    begun = [change for change in changes if brain.read(f"{posixpath.dirname(change.path)}/_index.md") is None]
    changes += Folders(brain, begun, is_whole=False).changes() if begun else []
    changes.append(update(brain.tree.relative(brain.tree.short_term), str(document), str(left)))
    episodes = {path: tuple(exchanges) for path, exchanges in pages.items()}
    filed_event = ExchangesFiled(exchanges=tuple(ids), episodes=episodes)
    return brain.commit(filed_event, by=NAME, changes=changes)


def _oldest(document: ShortTermDocument, limit: int) -> list[StmEvent]:
    """Return the events that go, oldest first: all that the limit has no room for, the newest excepted.

    An event in which a person wrote something of their own stays as it is for Promotion to deal with.
    """
    text = str(document)
    if len(text) <= OVERFULL * limit:  # a token is a character or more
        return []
    placed, sizes = document.logged, [_tokens(text[event.start : event.end]) for event in document.logged]
    total = _tokens(_without(text, placed)) + sum(sizes)
    if total <= OVERFULL * limit:
        return []
    going = [(event.event, size) for event, size in zip(placed, sizes, strict=True) if _is_untouched(text, event)]
    held = total - sum(size for _, size in going)
    going.sort(key=lambda sized: (sized[0].at, sized[0].id), reverse=True)
    for number, (_, size) in enumerate(going):
        held += size
        if held > limit and number:
            return [event for event, _ in going[number:]][::-1]
    return []


def _is_untouched(text: str, placed: Placed) -> bool:
    """Return whether an event stands as a process wrote it, down to the byte, and tells its day."""
    standing = text[placed.start : placed.end].replace("\r\n", "\n")
    if standing.rstrip("\n") != render_event(placed.event).rstrip("\n"):
        return False
    try:
        parse_iso(placed.event.at)
    except ValueError:
        return False
    return True


def _without(text: str, placed: Sequence[Placed]) -> str:
    starts = [0, *(event.end for event in placed)]
    ends = [*(event.start for event in placed), len(text)]
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _tokens(text: str) -> int:
    return count(text.encode("utf-8", "replace").decode("utf-8"))


def _items_of(brain: Brain, exchanges: Collection[str]) -> set[str]:
    """Return the hashes of the list items that the reflections of exchanges wrote."""
    wanted, items = set(exchanges), set[str]()
    for event in brain.journal.events(kinds={ExchangeReflected}, reverse=True):  # they are the last but a few
        if event.data["exchange"] in wanted:
            wanted.discard(event.data["exchange"])
            items.update(event.data.get("items", ()))
        if not wanted or event.id < min(wanted):  # ids ascend in time
            break
    return items
