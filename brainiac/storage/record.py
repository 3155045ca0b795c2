"""Queries on the journals: an event by a part of its id, which events were undone, which followed from which."""

from __future__ import annotations

from collections.abc import Iterator

from brainiac.errors import UserError
from brainiac.events import (
    CatchUpStarted,
    ErrorCleared,
    Event,
    EventUndone,
    ExchangesImported,
    ImportStarted,
    MemoryPromoted,
    OutcomeEvent,
    PluginEvent,
    PromptRefused,
    StatingEvent,
    TreeAdopted,
)
from brainiac.storage.store import Store

MIN_PREFIX = 6
# error files come and go with what they tell of
_NOT_CAUSED = frozenset({TreeAdopted.kind, EventUndone.kind, PromptRefused.kind, ErrorCleared.kind})


def find_event(store: Store, named: str) -> Event:
    """Return the event of this device whose id is, begins with or ends with what a person typed.

    Raises:
        UserError: There is none, or more than one.
    """
    named = named.strip().lower()
    if len(named) < MIN_PREFIX:
        raise UserError(f"{named!r} is too short for an event; give at least {MIN_PREFIX} characters of its id")
    matches = [event for event in store.journal.events() if event.id.startswith(named) or event.id.endswith(named)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        few = "; ".join(f"{event.id} ({event.kind}, {event.at})" for event in matches[-5:])
        raise UserError(f"{len(matches)} events have {named!r} in their id, the last of them: {few}; give more of it")
    for device, event in store.journal.foreign_events():
        if event.id.startswith(named) or event.id.endswith(named):
            raise UserError(f"{event.id} ({event.kind}) was done on {device}; undo it there")
    raise UserError(f"no event has the id {named!r}; `brainiac log` lists them")


def last_caused(store: Store) -> list[Event]:
    """Return the commits of the last thing that a person caused on this device, newest first.

    An exchange comes with all that followed from it, an import and a catch-up with all their commits; anything else,
    such as a promotion, is one commit.

    Raises:
        UserError: Nothing is left that could be taken back.
    """
    last = last_undoable(store)
    if isinstance(last.what, ExchangesImported):
        return commits_of(store, store.journal.find(last.cause or "") or last)
    if catch_up := catch_up_of(store, last):
        return commits_of(store, catch_up)
    if not isinstance(last.what, OutcomeEvent):
        return [last]
    exchange = find_event(store, last.what.exchange)
    undone = undone_events(store)
    steps = [event for event in (exchange, *consequences(store, exchange)) if event.id not in undone]
    return [event for event in reversed(steps) if _changes_files(event)]


def commits_of(store: Store, event: Event) -> list[Event]:
    """Return the commits that are undone to take an event back, newest first: of an import or a catch-up all of them.

    Raises:
        UserError: It is one of which nothing is left to take back.
    """
    if not isinstance(event.what, ImportStarted | CatchUpStarted):
        return [event]
    undone = undone_events(store)
    steps = (step for step in consequences(store, event) if isinstance(step.what, ExchangesImported | MemoryPromoted))
    standing = [step for step in steps if step.id not in undone and _changes_files(step)]
    if not standing:
        raise UserError(f"{event.id} ({event.kind}) changed nothing that is not taken back already")
    return standing[::-1]


def catch_up_of(store: Store, event: Event) -> Event | None:
    """Return the catch-up that a promotion is a part of; None where it is of none."""
    started = store.journal.find(event.cause or "") if isinstance(event.what, MemoryPromoted) else None
    catch_up = store.journal.find(started.cause) if started and started.cause else None
    return catch_up if catch_up and isinstance(catch_up.what, CatchUpStarted) else None


def _changes_files(event: Event) -> bool:
    return any(change.op not in ("append", "observe") for change in event.changes)


def last_undoable(store: Store) -> Event:
    """Return the newest commit of a process on this device that is not undone.

    Raises:
        UserError: There is none.
    """
    undone = undone_events(store)
    for event in store.journal.events(reverse=True):
        is_commit = event.by != "person" and event.kind not in _NOT_CAUSED and event.id not in undone
        if is_commit and _changes_files(event):
            return event
    raise UserError("nothing was done on this device that could be taken back")


def undone_events(store: Store) -> dict[str, str]:
    """Return the events of this device that are undone by now, each id with the id of the undoing event."""
    store.projection.follow()
    undone: dict[str, str] = {}
    sql = "SELECT event, undone FROM undoings WHERE device = ? ORDER BY event"
    for event, former in store.projection.query(sql, store.journal.device):
        # an undo that is undone itself gives back what it had undone
        undone = {event_id: undoing for event_id, undoing in undone.items() if undoing != former}
        undone[former] = event
    return undone


def consequences(store: Store, event: Event) -> list[Event]:
    """Return the events that this one led to, directly or through others, oldest first; undo events are left out."""
    causes, followed = {event.id}, []
    for later in store.journal.events(since_seq=event.seq):
        if later.kind != EventUndone.kind and not causes.isdisjoint(causes_of(later)):
            causes.add(later.id)
            followed.append(later)
    return followed


def causes_of(event: Event) -> set[str]:
    """Return the ids of the events and exchanges that an event names as what it rests on."""
    names = {event.cause or ""}
    match event.what:
        case OutcomeEvent(exchange=exchange):
            names.add(exchange)
        case PluginEvent(data=data):
            names.add(str(data.get("exchange") or ""))
        case _ if isinstance(event.what, StatingEvent):
            names.update(source for row in event.what.statements for source in row.sources)
    return names - {""}


def events_changing(store: Store, path: str, since_seq: int) -> Iterator[Event]:
    """Yield the events after a `seq` that changed a file, oldest first."""
    for event in store.journal.events(since_seq=since_seq):
        if any(path in (change.path, change.source) and change.op != "append" for change in event.changes):
            yield event
