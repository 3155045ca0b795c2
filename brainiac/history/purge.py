"""Destroying what the journal keeps of something forgotten, here and on every device that reads of it.

First a tombstone of ids and hashes is journaled, then texts are destroyed, which is done again wherever it was cut
short or a copy is synced back. Beyond reach: git history, versions of a sync service, backups, names of files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import Event, PurgeHonoured, TextsPurged
from brainiac.formats.page import parse_memory
from brainiac.history.forget import (
    MIN_WORDS,
    ForgetPlan,
    Target,
    find_remaining,
    forget,
    pieces_of,
    plan_forget,
    target_of_page,
)
from brainiac.history.why import Exchanges, find_memory
from brainiac.storage.statements import text_hash

BEYOND = (
    "Not reached: git history, versions kept by a sync service, backups, and names of files in journal and access log. "
    "Other devices destroy their own when they next run."
)
# what holds words in the data of an event; all else is ids, hashes, paths and names of models
_WORDED = frozenset(
    ("statement reasoning reason canonical_key subject aliases what content tags steps title text quote").split()
)


@dataclass(frozen=True, slots=True)
class Purged:
    """What was destroyed.

    Attributes:
        tombstone: The event that every device applies.
        event: The commit that took it out of the tree; None when nothing stood there.
        texts: How many texts of the journal.
        lines: How many lines of this device's journal lost their words.
        still: Files of the tree in which words of it stand for other reasons, by the words.
    """

    tombstone: Event
    event: Event | None
    texts: int
    lines: int
    still: dict[str, list[str]]


def purge(brain: Brain, target: Target) -> Purged:
    """Forget something and destroy what is kept of it; cut short after the tombstone, the next start goes on.

    Args:
        brain: The brain.
        target: What is to be forgotten; it may be gone from the tree already.
    """
    plan = plan_forget(brain, target)
    after = {change.path: change.after or b"" for change in plan.changes()}
    pieces = pieces_of(plan.texts)
    elsewhere = find_remaining(brain, pieces, after)
    # Before anything goes: whatever cuts this short, the next start finds what is to be destroyed.
    tombstone = _tombstone(brain, target, plan, after, [piece for piece in pieces if piece not in elsewhere])
    event = forget(brain, target, cause=tombstone.id)
    further = _former_texts(event)
    lines = _carry_out(brain, tombstone, further)
    still = {piece.decode("utf-8", "replace"): paths for piece, paths in elsewhere.items()}
    return Purged(tombstone, event, len(further.union(_named_in(tombstone).hashes)), lines, still)


def _tombstone(
    brain: Brain, target: Target, plan: ForgetPlan, after: Collection[str], pieces: Collection[bytes]
) -> Event:
    """Journal what is to be destroyed, by ids and hashes alone."""
    statements = sorted({row.hash for row in plan.statements})
    fold = brain.journal.fold()
    # What a file holds that stays is somebody's present, whatever it says.
    kept = {digest for path, digest in fold.items() if path not in after}
    hashes = _texts_holding(brain, target.exchanges, statements, pieces) | _texts_of(brain, target.exchanges)
    hashes |= {digest for path, digest in fold.items() if path in after}
    purged = TextsPurged(
        exchanges=target.exchanges,
        page=None if target.page is None else target.page or target.pages[0],
        statements=tuple(statements),
        items=tuple(plan.items),
        hashes=tuple(sorted(hashes - kept)),
        events=tuple(_events_telling(brain, pieces)),
    )
    return brain.record(purged, by="cli")


def _named_in(tombstone: Event) -> TextsPurged:
    assert isinstance(tombstone.what, TextsPurged)
    return tombstone.what


def _former_texts(event: Event | None) -> set[str]:
    return {change.before for change in event.changes if change.before} if event else set()


def _carry_out(brain: Brain, tombstone: Event, further: Collection[str]) -> int:
    """Destroy what a tombstone names; may be cut short and done again.

    Args:
        brain: The brain.
        tombstone: Of this or another device.
        further: Hashes of further texts, found on this device.

    Returns:
        How many lines of this device's journal lost their words.
    """
    named = _named_in(tombstone)
    hashes = set(named.hashes).union(further)
    brain.committer.destroy(hashes - brain.observed.standing(hashes))  # what somebody still has is his
    lines = brain.journal.rewrite(_cleaner(named.exchanges, named.events))
    # Index and vectors hold words too. They are made anew from what stands, by the next search.
    brain.recall.close()
    shutil.rmtree(brain.places.cache, ignore_errors=True)
    brain.record(PurgeHonoured(tombstone=tombstone.id), by="kernel", cause=tombstone.id)
    return lines


# --- what holds it -------------------------------------------------------------------------------------------------


def _texts_of(brain: Brain, exchanges: Collection[str]) -> set[str]:
    """Return the hashes of the prompts and answers of exchanges, as the events that made them known name them."""
    known = Exchanges(brain)
    events = (event for exchange in exchanges if (event := known.event(exchange)))
    changes = (change for event in events for change in event.changes)
    hashes = (digest for change in changes if change.op != "append" for digest in (change.before, change.after))
    return {digest for digest in hashes if digest}


def _texts_holding(
    brain: Brain, exchanges: Collection[str], statements: Collection[str], pieces: Collection[bytes]
) -> set[str]:
    """Return the hashes of the journal's texts that hold any of this.

    Args:
        brain: The brain.
        exchanges: Ids, as short-term memory and episodic pages mark what was said.
        statements: Hashes of statements' texts.
        pieces: Words.
    """
    marks = [f"<!-- {word}: {exchange} -->".encode() for exchange in exchanges for word in ("event", "exchange")]
    needles, hashes = (*marks, *pieces), set()
    for digest in set(brain.journal.blobs.digests()):
        try:
            content = brain.journal.blobs.get(digest)
        except BlobError:
            continue
        if any(needle in content for needle in needles) or (statements and _states(content, statements)):
            hashes.add(digest)
    return hashes


def _states(content: bytes, statements: Collection[str]) -> bool:
    if b"\nuuid:" not in content:
        return False  # no page: reading a thousand blobs as such would take seconds
    try:
        memory = parse_memory("", content.decode("utf-8", "surrogateescape"))
    except FormatError:
        return False
    return any(text_hash(statement.text) in statements for statement in memory.statements)


def _events_telling(brain: Brain, pieces: Collection[bytes]) -> list[str]:
    """Return the ids of this device's events whose data hold any of the pieces."""
    words = [piece.decode("utf-8", "surrogateescape") for piece in pieces]
    return [event.id for event in brain.journal.events() if words and _tells(event.data, words)]


def _tells(value: Any, words: Collection[str]) -> bool:
    if isinstance(value, str):
        return any(word in value for word in words)
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, list) and any(_tells(part, words) for part in value)


def _cleaner(exchanges: Collection[str], events: Collection[str]) -> Callable[[Event], Event]:
    """Return what takes words out of an event's data: entries that rest on the exchanges, and whole events.

    Ids, hashes, paths and numbers stay, so that the history can still be followed.
    """
    ids, whole = set(exchanges), set(events)

    def clean(value: Any, is_meant: bool) -> Any:
        if isinstance(value, dict):
            rests_on = {*value.get("sources", ()), *(value.get("events") or ())}
            is_meant = is_meant or not ids.isdisjoint(name for name in rests_on if isinstance(name, str))
            return {
                key: _blank(part) if is_meant and key in _WORDED else clean(part, is_meant)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [clean(part, is_meant) for part in value]
        is_text = isinstance(value, str) and len(value.split()) >= MIN_WORDS
        return "" if is_meant and is_text else value

    def cleaned(event: Event) -> Event:
        data = {key: clean(value, event.id in whole) for key, value in event.data.items()}
        return event if data == event.data else replace(event, data=data)

    return cleaned


def _blank(value: Any) -> Any:
    if isinstance(value, str):
        return ""
    return [] if isinstance(value, list) and all(isinstance(part, str) for part in value) else value


# --- tombstones of all devices -------------------------------------------------------------------------------------


def apply_tombstones(brain: Brain) -> list[str]:
    """Destroy what was purged on another device, cut short here, or synced back.

    Returns:
        The ids of the tombstones that something was left to do for.
    """
    applied = {
        event.what.tombstone
        for device, event in brain.projection.purges()
        if isinstance(event.what, PurgeHonoured) and device == brain.journal.device
    }
    return [event.id for event in _tombstones(brain) if _apply(brain, event, event.id in applied)]


def remains(brain: Brain) -> list[tuple[Event, str]]:
    """Return what of purged texts is here, by a tombstone: a file that stands, or a text of the journal."""
    blobs = brain.journal.blobs
    places = {digest: path for path, digest in brain.journal.fold().items()}
    places_left = []
    for tombstone in _tombstones(brain):
        for digest in _named_in(tombstone).hashes:
            if digest in places:
                places_left.append((tombstone, places[digest]))
            elif digest in blobs:
                places_left.append((tombstone, f"{brain.tree.relative(blobs.folder)}/{digest[:2]}/{digest[2:]}"))
    return places_left


def _tombstones(brain: Brain) -> list[Event]:
    return [event for _, event in brain.projection.purges() if event.kind == TextsPurged.kind]


def _apply(brain: Brain, tombstone: Event, is_applied: bool) -> bool:
    named = _named_in(tombstone)
    notes = brain.observed.standing(named.hashes)
    is_back = bool(notes) or _is_noted(brain, named.exchanges)
    texts = [digest for digest in named.hashes if digest in brain.journal.blobs and digest not in notes]
    if is_applied and not is_back and not texts:
        return False
    event, further = (None, set()) if is_applied and not is_back else _take_out(brain, tombstone)
    if is_applied and event is None and not texts:
        return False  # the same words, said by somebody for another reason
    _carry_out(brain, tombstone, further)
    return True


def _is_noted(brain: Brain, exchanges: Collection[str]) -> bool:
    text = brain.read_text(brain.tree.short_term) or ""
    return any(f"<!-- event: {exchange} -->" in text for exchange in exchanges)


def _take_out(brain: Brain, tombstone: Event) -> tuple[Event | None, set[str]]:
    """Take out of the tree what a tombstone names; return the event, and the hashes of further texts that hold it."""
    named = _named_in(tombstone)
    page = find_memory(brain, named.page) if named.page else None
    target = target_of_page(page, named.items) if page else Target(named.exchanges, items=named.items)
    texts = plan_forget(brain, target).texts
    event = forget(brain, target, by="kernel", cause=tombstone.id)
    pieces = pieces_of(texts) if event else []
    elsewhere = find_remaining(brain, pieces, {})
    pieces = [piece for piece in pieces if piece not in elsewhere]
    hashes = _texts_holding(brain, named.exchanges, named.statements, pieces)
    return event, hashes | _former_texts(event)
