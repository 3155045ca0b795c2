"""Which exchanges stand on the pages of their days, and which were filed there before anybody consolidated them.

Folded from the journals: `exchanges-filed` moved an exchange out of short-term memory because that was full;
`memory-promoted` names those that were consolidated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from brainiac.errors import FormatError
from brainiac.events import Event, ExchangeReflected, ExchangesFiled, MemoryPromoted, kinds_of
from brainiac.formats.dialogue import StmEvent, find_events
from brainiac.formats.discretion import is_private
from brainiac.formats.frontmatter import split
from brainiac.storage.following import Following
from brainiac.storage.record import undone_events
from brainiac.storage.store import Store

MAX_WAITING = 200  # so many are consolidated in one run, which must not take an hour


@dataclass(slots=True)
class Filed:
    """What the journals tell.

    Attributes:
        places: The page that each exchange was put on, by exchange id.
        waiting: Exchanges that were filed and not consolidated, in the order of their filing.
        filed_at: When exchanges were last filed, ISO 8601; "" for never.
        done: Exchanges that were consolidated, or revised.
        bare: Exchanges that were noted while no model could extract anything from them.
        undone: Ids of events that are taken back.
    """

    places: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    filed_at: str = ""
    done: set[str] = field(default_factory=set)
    bare: set[str] = field(default_factory=set)
    undone: frozenset[str] = frozenset()


def filed(store: Store) -> Filed:
    """Return what stands where and what waits to be consolidated."""
    return _following.of(store)


def _take(store: Store, known: Filed, event: Event, is_own: bool) -> None:
    if event.id in known.undone:
        return
    for path, exchanges in event.data.get("episodes", {}).items():
        known.places.update(dict.fromkeys(exchanges, path))
    if event.kind == ExchangesFiled.kind:
        known.waiting.update(dict.fromkeys(each for each in event.data["exchanges"] if each not in known.done))
        known.filed_at = max(known.filed_at, event.at)
    elif event.kind == MemoryPromoted.kind:
        _end(known, event.data.get("exchanges", ()))
    else:
        _take_reflection(known, event)


def _take_reflection(known: Filed, event: Event) -> None:
    exchange, superseded = event.data["exchange"], event.data.get("supersedes")
    (known.bare.discard if event.data.get("is_extracted", True) else known.bare.add)(exchange)
    if superseded and superseded != exchange:
        _end(known, [superseded])  # its revision says it better, and is consolidated itself


def _end(known: Filed, exchanges: Collection[str]) -> None:
    known.bare.difference_update(exchanges)
    known.done.update(exchanges)  # another device's journal is read first, whatever came first
    for exchange in exchanges:
        known.waiting.pop(exchange, None)


_following = Following(
    lambda store: Filed(undone=frozenset(undone_events(store))),
    _take,
    kinds_of(ExchangesFiled, MemoryPromoted, ExchangeReflected),
)


def waiting_events(store: Store) -> tuple[list[StmEvent], list[str], bool]:
    """Return the oldest exchanges that wait to be consolidated, as their pages have them by now.

    Returns:
        They, oldest first; the ids of those that stand on no page any more (a person took them out); whether more wait.
    """
    known = filed(store)
    ids = sorted(known.waiting)[:MAX_WAITING]  # ids ascend in time
    events = _standing(store, {known.places[each] for each in ids}, ids)
    if missing := [each for each in ids if each not in events]:  # perhaps their page was moved
        tree = store.tree
        paths = {tree.relative(entry.path) for entry in tree.walk(tree.long_term / "events", tree.archive)}
        events |= _standing(store, paths, missing)
    gone = [each for each in ids if each not in events]
    return sorted(events.values(), key=lambda event: (event.at, event.id)), gone, len(known.waiting) > len(ids)


def _standing(store: Store, paths: Collection[str], wanted: Collection[str]) -> dict[str, StmEvent]:
    """Return those of the wanted exchanges that stand on some pages, by id."""
    return {event.id: event for path in paths for event in _exchanges_of(store, path) if event.id in wanted}


def _exchanges_of(store: Store, path: str) -> Iterator[StmEvent]:
    text = store.read_text(path) or ""
    try:
        meta, offset = split(text, path)
    except FormatError:
        meta, offset = {"private": True}, 0  # nobody can tell whether it is
    for placed in find_events(text, offset):
        yield replace(placed.event, is_private=True) if is_private(meta) else placed.event
