"""Which events followed from which, which were undone, and which event a person means by a part of its id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from brainiac import events
from brainiac.clock import iso, parse_iso
from brainiac.errors import FormatError, UserError
from brainiac.events import Event, PathKind, RecordedChange
from brainiac.formats.short_term import EMPTY, ShortTermDocument
from brainiac.storage.projection import ORIGIN
from brainiac.storage.store import Store
from brainiac.text.dates import TIMES, time_named

MIN_ID_PART = 6
_EVENT_ID = re.compile(r"[0-9a-f-]{6,36}", re.IGNORECASE)  # whole, or the end that `brainiac log` shows
# Events that `undo` passes over when it looks for the last change: upkeep that follows from what somebody did
_NeverLast = events.TreeAdopted | events.ExchangesFiled | events.TreeTidied
_LEFT = re.compile(rb'"after":"([0-9a-f]{64})"')
_SYNCED_WITHIN = timedelta(days=2)
_MEMORY = frozenset({PathKind.MEMORY, PathKind.ARCHIVED, PathKind.SHORT_TERM})


def find_event(store: Store, id_part: str) -> Event:
    """Return the event of this device whose id is, begins with or ends with what a person typed.

    Raises:
        UserError: There is none, or more than one.
    """
    id_part = id_part.strip().lower()
    if len(id_part) < MIN_ID_PART:
        raise UserError(f"{id_part!r} is too short for an event; give at least {MIN_ID_PART} characters of its id")

    def has_id(event: Event) -> bool:  # `brainiac log` shows the end of each id
        return event.id.startswith(id_part) or event.id.endswith(id_part)

    matches = list(filter(has_id, store.journal.events()))
    if len(matches) == 1:
        return matches[0]
    if matches:
        few = "; ".join(f"{event.id} ({event.kind}, {event.at})" for event in matches[-5:])
        raise UserError(f"{len(matches)} events have {id_part!r} in their id, the last of them: {few}; give more of it")
    for device, event in store.journal.foreign_events():
        if has_id(event):
            raise UserError(f"{event.id} ({event.kind}) was done on {device}; undo it there")
    raise UserError(f"no event has the id {id_part!r}; `brainiac log` lists them")


def moment_named(store: Store, text: str, *, is_end: bool = False, is_whole: bool = False) -> tuple[str, str]:
    """Return the ISO 8601 UTC moment that a person names, and the id of the event where they named one, else "".

    Args:
        store: Whose time zone, language and clock count.
        text: A time as `time_named` reads it, or the id of an event: then the moment at which it happened.
        is_end: Of a day or a month its last second is meant, but at most now; else the moment at which it begins.
        is_whole: Whether only a whole id counts, and nothing is told of other events: by a part of one a client could
            learn of what it may not see. A whole one has its time in it.

    Raises:
        UserError: It is none of these, is still to come, or looks like an id that no event has, or several.
    """
    now = store.now()
    named = time_named(text, now, store.settings.recall.language)
    if named is None and is_whole:
        if event := store.journal.find(text.strip().lower()):
            return event.at, event.id
    elif named is None and _EVENT_ID.fullmatch(text.strip()):
        event = find_event(store, text)
        return event.at, event.id
    if named is None:
        raise UserError(f"{text!r} is no time; give {TIMES}, or an event's id")
    first, last = named
    if first > now:
        raise UserError(f"{text} is still to come")
    return iso(min(last, now) if is_end else first), ""


def paths_now(store: Store, paths: Iterable[str]) -> set[str]:
    """Return these paths, and those to which their files were moved since."""
    sql = """WITH RECURSIVE known(path) AS (SELECT value FROM json_each(?)
        UNION SELECT changes.path FROM known JOIN changes ON source = known.path) SELECT path FROM known"""
    return {path for (path,) in store.projection.query(sql, json.dumps(list(paths), ensure_ascii=False))}


def last_caused(store: Store) -> list[Event]:
    """Return the commits to undo for the last change of memory on this device, newest first.

    Upkeep and steps back are passed over, and what cannot be brought back since its texts were purged. An exchange
    that changed it comes with all that followed from it, an import, a catch-up and what was decided at once in the
    review with all their commits; anything else, such as a promotion, is one commit.

    Raises:
        UserError: Nothing is left that could be undone.
    """
    undone = undone_events(store)
    for last in store.journal.events(reverse=True):
        if last.id in undone or isinstance(last.what, _NeverLast) or not _changes_memory(store, last):
            continue
        changes = [change for change in last.changes if change.op not in ("append", "observe")]
        texts = (digest for change in changes for digest in (change.before, change.after) if digest)
        if all(store.kept_text(digest) is not None for digest in texts):  # else it was purged
            break
    else:
        raise UserError(
            "nothing changed memory on this device that could be taken back; "
            "of an exchange that brought nothing into memory, `brainiac log` has the id for `brainiac undo`"
        )
    if isinstance(last.what, events.ExchangesImported):
        return commits_of(store, store.journal.find(last.cause or "") or last)
    if catch_up := catch_up_of(store, last):
        return commits_of(store, catch_up)
    if (settled := store.journal.find(last.cause or "")) and isinstance(settled.what, events.ReviewSettled):
        return commits_of(store, settled)
    if not isinstance(last.what, events.OutcomeEvent):
        return [last]
    return commits_of(store, find_event(store, last.what.exchange))


def commits_of(store: Store, event: Event) -> list[Event]:
    """Return the commits to undo so that an event is undone, newest first.

    The event that begins an import, a catch-up or several decisions changes no file itself: its commits followed. With
    an exchange goes what was noted of it; what else rests on it by now is found when the exchange itself is undone.

    Raises:
        UserError: All these commits are undone already.
    """
    undone, is_exchange = undone_events(store), isinstance(event.what, events.ExchangeEvent)
    kinds: tuple[type[events.EventData | events.PluginEvent], ...]
    if is_exchange and event.id not in undone:
        kinds = (events.OutcomeEvent, events.PluginEvent, events.ProposalMade)
    elif isinstance(event.what, events.ImportStarted | events.CatchUpStarted | events.ReviewSettled):
        kinds = (events.ExchangesImported, events.MemoryPromoted, events.ProposalDecided)
        kinds += (events.ExchangeForgotten, events.MemoryForgotten)
    else:
        return [event]
    steps = [step for step in consequences(store, event) if isinstance(step.what, kinds) and step.id not in undone]
    commits = [*filter(_changes_files, reversed(steps)), *([event] if is_exchange else ())]
    if not commits:
        raise UserError(f"{event.id} ({event.kind}) changed nothing that is not taken back already")
    return commits


def catch_up_of(store: Store, event: Event) -> Event | None:
    """Return the start of the catch-up (`promote --past`) that caused a promotion; None for any other event."""
    started = store.journal.find(event.cause or "") if isinstance(event.what, events.MemoryPromoted) else None
    catch_up = store.journal.find(started.cause) if started and started.cause else None
    return catch_up if catch_up and isinstance(catch_up.what, events.CatchUpStarted) else None


def _changes_files(event: Event) -> bool:
    """Return whether an event wrote, moved or removed a file; lines added to a log, which stay, do not count."""
    return any(change.op not in ("append", "observe") for change in event.changes)


def _changes_memory(store: Store, event: Event) -> bool:
    """Return whether an event changed what memory holds.

    Without a language a question cannot be told from what is told: an exchange counts if it changed a list of
    short-term memory, or is a note.
    """
    kinds = {store.tree.kind_of(change.path) for change in event.changes if change.op not in ("append", "observe")}
    match event.what:
        case events.ExchangeReflected(exchange=exchange):
            noted = store.journal.find(exchange)
            is_note = noted is not None and isinstance(noted.what, events.NoteCaptured)
            return is_note or any(_changes_lists(store, change) for change in event.changes)
        case events.ProposalMade(proposals=proposals):
            return any(isinstance(proposal, events.ForgetProposal) and proposal.is_hiding for proposal in proposals)
        case events.EventUndone(is_named=is_named) if not is_named:
            return False  # a step back: the next one goes further
        case events.FoundEvent() if not kinds <= _MEMORY | {PathKind.INDEX_PAGE}:
            return False  # prompts and settings would be taken back with it
        case events.FoundEvent() if came_from(store, event):
            return False  # the other device's to take back
    return not _MEMORY.isdisjoint(kinds)


def came_from(store: Store, event: Event) -> str:
    """Return the device from which a sync brought what an event found; "" where somebody changed it here."""
    if not isinstance(event.what, events.FoundEvent):
        return ""
    store.projection.follow()
    sql = f"SELECT path, {ORIGIN.format('device')} FROM changes WHERE event = ?"
    devices: dict[str, str | None] = dict(store.projection.query(sql, event.id))
    if len(devices) < len(event.changes):  # what is no page the journals alone have: those of the days before are read
        since, left = iso(parse_iso(event.at) - _SYNCED_WITHIN), dict[str, str]()
        for device in {Path(path).parent.name for path in store.journal.foreign_sizes()}:
            for line in store.journal.lines_between(since, f"{event.at}~", device):  # in that second too
                left |= dict.fromkeys((digest.decode() for digest in _LEFT.findall(line.raw)), device)
        devices = {change.path: left.get(change.after or "") for change in event.changes} | devices
    return min((device or "" for device in devices.values()), default="")


def _changes_lists(store: Store, change: RecordedChange) -> bool:
    """Return whether a change of short-term memory changed its goals, facts or tasks."""
    texts = [store.kept_text(digest) or EMPTY for digest in (change.before, change.after)]
    try:
        before, after = (ShortTermDocument(text).memory for text in texts)
    except FormatError:
        return False
    return (before.goals, before.facts, before.tasks) != (after.goals, after.facts, after.tasks)


def undone_events(store: Store) -> dict[str, str]:
    """Return the events that are undone by now, on any device, each id with the id of the undoing event."""
    store.projection.follow()
    return dict(store.projection.query("SELECT event, undoing FROM undone"))


def consequences(store: Store, event: Event) -> list[Event]:
    """Return the events that an event led to, directly or through others, oldest first; undo events are left out."""
    causes, consequences = {event.id}, []
    for later in store.journal.events(since_seq=event.seq):
        if later.kind != events.EventUndone.kind and not causes.isdisjoint(causes_of(later)):
            causes.add(later.id)
            consequences.append(later)
    return consequences


def causes_of(event: Event) -> set[str]:
    """Return the ids of all that led to an event: its cause, its exchange, and the sources of its statements."""
    ids, what = {event.cause or ""}, event.what
    if isinstance(what, events.OutcomeEvent):
        ids.add(what.exchange)
    elif isinstance(what, events.PluginEvent):  # a plugin's own kind may name its exchange as ours do
        ids.add(str(what.data.get("exchange") or ""))
    elif isinstance(what, events.StatingEvent):
        ids.update(source for record in what.statements for source in record.sources)
    return ids - {""}
