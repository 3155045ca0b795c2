"""What short-term memory cannot hold: its oldest exchanges are filed word for word and wait there to be consolidated.

Promotion comes while it is quiet and needs a model that serves. A day that is never quiet, an outage or a hundred
thousand prompts must not grow short-term memory without end: each exchange reads and writes all of it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence

from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import ConflictError
from brainiac.events import Change, Event, update
from brainiac.formats.dialogue import Placed, StmEvent, render_event
from brainiac.formats.short_term import ShortTermDocument
from brainiac.llm.catalog import count
from brainiac.storage.filed import FILED
from brainiac.storage.folders import Folders
from brainiac.storage.relinking import Origins
from brainiac.storage.statements import read_past, text_hash

from .draft import Catalogue, Draft
from .episodes import add_exchanges

NAME = "promotion"
OVERFULL = 2  # times the limit: then what goes beyond the limit is filed, many exchanges at once
ATTEMPTS = 20


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
    draft = Draft(brain, Catalogue(brain, is_read=False))
    unwritable: dict[str, str] = {}
    origins = Origins(brain, read_past(brain, iso(brain.clock.now())).prompts, {})
    pages = add_exchanges(brain, draft, events, origins, unwritable)
    ids = [event.id for event in events if event.id not in unwritable]
    if not ids:
        return None
    given = _items_of(brain, ids) if document.memory.facts else set()
    facts = [item.text for item in document.memory.facts if text_hash(item.text) in given]
    left = document.without_event(*ids).without_items(facts=facts)
    changes: list[Change] = draft.changes(iso(brain.clock.now()))
    # a folder must have its index page; what that lists is brought up to date when it is quiet
    begun = [each for each in changes if brain.read(f"{posixpath.dirname(each.path)}/_index.md") is None]
    changes += Folders(brain, begun, is_whole=False).changes() if begun else []
    changes.append(update(brain.tree.relative(brain.tree.short_term), str(document), str(left)))
    return brain.commit(FILED, by=NAME, changes=changes, data={"exchanges": ids, "episodes": pages})


def _oldest(document: ShortTermDocument, limit: int) -> list[StmEvent]:
    """Return the events that go, oldest first: all that the limit has no room for, the newest excepted.

    An event in which a person wrote something of their own stays as it is for Promotion to deal with.
    """
    text = str(document)
    if len(text) <= OVERFULL * limit:  # a token is a character or more
        return []
    placed, sizes = document.logged, [_tokens(text[each.start : each.end]) for each in document.logged]
    total = _tokens(_without(text, placed)) + sum(sizes)
    if total <= OVERFULL * limit:
        return []
    going = [(each.event, size) for each, size in zip(placed, sizes, strict=True) if _is_untouched(text, each)]
    held = total - sum(size for _, size in going)
    going.sort(key=lambda each: (each[0].at, each[0].id), reverse=True)
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
    starts = [0, *(each.end for each in placed)]
    ends = [*(each.start for each in placed), len(text)]
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _tokens(text: str) -> int:
    return count(text.encode("utf-8", "replace").decode("utf-8"))


def _items_of(brain: Brain, exchanges: Collection[str]) -> set[str]:
    """Return the hashes of the list items that the reflections of exchanges wrote."""
    wanted, found = set(exchanges), set[str]()
    for event in brain.journal.events(kinds={"exchange-reflected"}, reverse=True):  # they are the last but a few
        if event.data["exchange"] in wanted:
            wanted.discard(event.data["exchange"])
            found.update(event.data.get("items", ()))
        if not wanted or event.id < min(wanted):  # ids ascend in time
            break
    return found
