"""Purging: destroys the texts that the journal keeps of something forgotten, on this and every other device.

First a tombstone with ids and hashes is journaled; then the texts are destroyed. This is done again wherever it was
interrupted or a copy was synced back. Out of reach: git history, versions of a sync service, backups, file names.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import Event, PurgeHonoured, TextsPurged
from brainiac.formats.page import parse_memory
from brainiac.history.digest import write_digest
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import MIN_WORDS, ForgetPlan, find_remaining, forget, pieces_of, plan_forget
from brainiac.history.targets import Target, target_of_page
from brainiac.history.why import find_memory
from brainiac.storage.statements import text_hash

BEYOND = (
    "Not reached: git history, versions kept by a sync service, backups, and names of files in journal and access log. "
    "Other devices destroy their own when they next run."
)
# fields of events that have a person's words in them; all others are ids, hashes, paths and names of models
_FIELDS_WITH_WORDS = frozenset(
    ("statement reasoning reason canonical_key subject aliases what content tags steps title text quote").split()
)


@dataclass(frozen=True, slots=True)
class Purged:
    """The result of a purge.

    Attributes:
        tombstone: The event that every device applies.
        event: The event of the commit that removed the target from the tree; None when nothing of it was there.
        texts: How many texts of the journal were destroyed.
        lines: How many lines of this device's journal lost their words.
        still: By sentence: the files of the tree that have the same words for other reasons.
    """

    tombstone: Event
    event: Event | None
    texts: int
    lines: int
    still: dict[str, list[str]]


def purge(brain: Brain, target: Target) -> Purged:
    """Forget a target and destroy its texts; if this is interrupted, the next start completes it.

    Args:
        brain: The brain.
        target: What is to be forgotten; it may have been removed from the tree before.
    """
    plan = plan_forget(brain, target)
    after = {change.path: change.after or b"" for change in plan.changes()}
    pieces = pieces_of(plan.texts)
    # sentences that other files have too, for reasons of their own, are not looked for in the journal's texts
    elsewhere = find_remaining(brain, pieces, after)
    # before anything is destroyed, so that after a crash the next start knows what is to be destroyed
    tombstone = _record_tombstone(brain, target, plan, after, [piece for piece in pieces if piece not in elsewhere])
    event = forget(brain, target, cause=tombstone.id)
    # a file may have changed between the plan and the commit: then the tombstone lacks the text that was removed
    removed = _hashes_before(event)
    lines = _destroy(brain, tombstone, removed)
    write_digest(brain)
    still = {piece.decode("utf-8", "replace"): paths for piece, paths in elsewhere.items()}
    return Purged(tombstone, event, len(removed.union(_purged_by(tombstone).hashes)), lines, still)


def _record_tombstone(
    brain: Brain, target: Target, plan: ForgetPlan, changed: Collection[str], pieces: Collection[bytes]
) -> Event:
    """Record what is to be destroyed, by ids and hashes alone; return the event.

    Args:
        brain: The brain.
        target: What is forgotten.
        plan: The plan of that.
        changed: Paths of the files that the plan changes or removes.
        pieces: The removed sentences that no other file has.
    """
    statements = sorted({row.hash for row in plan.statements})
    fold = brain.journal.fold()
    # texts that are the present content of remaining files are not destroyed
    present = {digest for path, digest in fold.items() if path not in changed}
    hashes = _texts_holding(brain, target.exchanges, statements, pieces) | _texts_of(brain, target.exchanges)
    hashes |= {digest for path, digest in fold.items() if path in changed}
    purged = TextsPurged(
        exchanges=target.exchanges,
        # its uuid, or the path of a page without one
        page=None if target.page is None else target.page or target.pages[0],
        statements=tuple(statements),
        items=tuple(plan.items),
        hashes=tuple(sorted(hashes - present)),
        events=tuple(_events_with_words(brain, pieces)),
    )
    return brain.record(purged, by="cli")


def _purged_by(tombstone: Event) -> TextsPurged:
    """Return the data of a tombstone event."""
    assert isinstance(tombstone.what, TextsPurged)
    return tombstone.what


def _hashes_before(event: Event | None) -> set[str]:
    """Return the hashes of the texts that an event's changes replaced or removed."""
    return {change.before for change in event.changes if change.before} if event else set()


def _destroy(brain: Brain, tombstone: Event, further: Collection[str]) -> int:
    """Destroy what a tombstone names; doing it again after an interruption is harmless.

    Args:
        brain: The brain.
        tombstone: Of this or another device.
        further: Hashes of further texts, found on this device.

    Returns:
        How many lines of this device's journal lost their words.
    """
    purged = _purged_by(tombstone)
    hashes = set(purged.hashes).union(further)
    brain.committer.destroy(hashes - brain.observed.present_hashes(hashes))  # not the present content of a file
    lines = brain.journal.rewrite(_Cleaner(frozenset(purged.exchanges), frozenset(purged.events)))
    # index and vectors have the words too; the next search rebuilds them
    brain.recall.close()
    shutil.rmtree(brain.places.cache, ignore_errors=True)
    brain.record(PurgeHonoured(tombstone=tombstone.id), by="kernel", cause=tombstone.id)
    return lines


# --- the texts to destroy ------------------------------------------------------------------------------------------


def _texts_of(brain: Brain, exchanges: Collection[str]) -> set[str]:
    """Return the hashes of the prompts and answers of exchanges, from the changes of their events."""
    index = Exchanges(brain)
    hashes: set[str | None] = set()
    for event in map(index.event, exchanges):
        for change in event.changes if event else ():
            hashes |= set() if change.op == "append" else {change.before, change.after}  # log lines have no words
    return {digest for digest in hashes if digest}


def _texts_holding(
    brain: Brain, exchanges: Collection[str], statements: Collection[str], pieces: Collection[bytes]
) -> set[str]:
    """Return the hashes of the journal's texts that contain any of these.

    Args:
        brain: The brain.
        exchanges: Ids, as in the comments of short-term memory and episodic pages.
        statements: Hashes of statements' texts.
        pieces: Sentences.
    """
    marks = [f"<!-- {word}: {exchange} -->".encode() for exchange in exchanges for word in ("event", "exchange")]
    needles, hashes = (*marks, *pieces), set()
    for digest in set(brain.journal.blobs.digests()):
        try:
            content = brain.journal.blobs.get(digest)
        except BlobError:
            continue
        if any(needle in content for needle in needles) or (statements and _has_statement(content, statements)):
            hashes.add(digest)
    return hashes


def _has_statement(content: bytes, statements: Collection[str]) -> bool:
    """Return whether a text is a page with a statement that has one of the hashes."""
    if b"\nuuid:" not in content:
        return False  # no page: parsing every blob would take seconds
    try:
        memory = parse_memory("", content.decode("utf-8", "surrogateescape"))
    except FormatError:
        return False
    return any(text_hash(statement.text) in statements for statement in memory.statements)


def _events_with_words(brain: Brain, pieces: Collection[bytes]) -> list[str]:
    """Return the ids of this device's events whose data contain any of the sentences."""
    words = [piece.decode("utf-8", "surrogateescape") for piece in pieces]
    return [event.id for event in brain.journal.events() if words and _has_words(event.data, words)]


def _has_words(value: Any, words: Collection[str]) -> bool:
    """Return whether a JSON value contains any of the words, at any depth."""
    if isinstance(value, str):
        return any(word in value for word in words)
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, list) and any(_has_words(part, words) for part in value)


@dataclass(frozen=True, slots=True)
class _Cleaner:
    """Removes purged words from the data of events; ids, hashes, paths and numbers stay.

    Attributes:
        exchanges: The purged exchanges: a part of the data that names one of them as a source loses its words.
        events: Ids of events that lose their words in all parts.
    """

    exchanges: frozenset[str]
    events: frozenset[str]

    def __call__(self, event: Event) -> Event:
        """Return an event without the words."""
        is_purged = event.id in self.events
        data = {key: self._cleaned(value, is_purged=is_purged) for key, value in event.data.items()}
        return event if data == event.data else replace(event, data=data)

    def _cleaned(self, value: Any, *, is_purged: bool) -> Any:
        """Return a part of an event's data without purged words.

        Args:
            value: The part.
            is_purged: Whether all words in it are purged, as they are in the part around it.
        """
        if isinstance(value, dict):
            sources = {*value.get("sources", ()), *(value.get("events") or ())}
            is_purged = is_purged or any(name in self.exchanges for name in sources if isinstance(name, str))
            return {
                key: _blank(part)
                if is_purged and key in _FIELDS_WITH_WORDS
                else self._cleaned(part, is_purged=is_purged)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [self._cleaned(part, is_purged=is_purged) for part in value]
        # in any other field a sentence goes too; ids, hashes and names are shorter
        is_sentence = isinstance(value, str) and len(value.split()) >= MIN_WORDS
        return "" if is_purged and is_sentence else value


def _blank(value: Any) -> Any:
    """Return "" for a text and [] for a list of texts; any other value as it is."""
    if isinstance(value, str):
        return ""
    return [] if isinstance(value, list) and all(isinstance(part, str) for part in value) else value


# --- tombstones of all devices -------------------------------------------------------------------------------------


def apply_tombstones(brain: Brain) -> list[str]:
    """Destroy texts that were purged on another device, or here but not completely, or that were synced back.

    Returns:
        The ids of the tombstones for which something had to be done.
    """
    applied = {
        event.what.tombstone
        for device, event in brain.projection.purges()
        if isinstance(event.what, PurgeHonoured) and device == brain.journal.device
    }
    tombstones = _tombstones(brain)
    return [event.id for event in tombstones if _apply_tombstone(brain, event, was_applied=event.id in applied)]


def remains(brain: Brain) -> list[tuple[Event, str]]:
    """Return the purged texts that are here all the same: each tombstone with the path of a file or a blob."""
    blobs = brain.journal.blobs
    path_by_hash = {digest: path for path, digest in brain.journal.fold().items()}
    remaining = []
    for tombstone in _tombstones(brain):
        for digest in _purged_by(tombstone).hashes:
            if digest in path_by_hash:
                remaining.append((tombstone, path_by_hash[digest]))
            elif digest in blobs:
                remaining.append((tombstone, f"{brain.tree.relative(blobs.folder)}/{digest[:2]}/{digest[2:]}"))
    return remaining


def _tombstones(brain: Brain) -> list[Event]:
    """Return the events of all devices that name texts to be destroyed."""
    return [event for _, event in brain.projection.purges() if event.kind == TextsPurged.kind]


def _apply_tombstone(brain: Brain, tombstone: Event, *, was_applied: bool) -> bool:
    """Destroy what a tombstone names if it was not applied here yet, or something of it is back.

    Returns:
        Whether there was something to do.
    """
    purged = _purged_by(tombstone)
    present = brain.observed.present_hashes(purged.hashes)  # of whole files
    is_in_tree = bool(present) or _is_in_short_term(brain, purged.exchanges)
    has_blobs = any(digest in brain.journal.blobs for digest in set(purged.hashes) - present)
    event: Event | None = None
    further: set[str] = set()
    if is_in_tree or not was_applied:
        event, further = _forget_again(brain, tombstone)
    # files alone are no reason: where nothing was forgotten, somebody wrote the same words
    if was_applied and event is None and not has_blobs:
        return False
    _destroy(brain, tombstone, further)
    return True


def _is_in_short_term(brain: Brain, exchanges: Collection[str]) -> bool:
    """Return whether one of the exchanges is in the event log."""
    text = brain.read_text(brain.tree.short_term) or ""
    return any(f"<!-- event: {exchange} -->" in text for exchange in exchanges)


def _forget_again(brain: Brain, tombstone: Event) -> tuple[Event | None, set[str]]:
    """Remove from the tree what a tombstone names.

    Returns:
        The event, None where nothing of it is in the tree; and the hashes of further texts of this device to destroy:
        those with a purged exchange or statement, or with a removed sentence that no file has any more.
    """
    purged = _purged_by(tombstone)
    page = find_memory(brain, purged.page) if purged.page else None
    target = target_of_page(page, purged.items) if page else Target(purged.exchanges, items=purged.items)
    texts = plan_forget(brain, target).texts  # before they are removed
    event = forget(brain, target, by="kernel", cause=tombstone.id)
    pieces = pieces_of(texts) if event else []
    elsewhere = find_remaining(brain, pieces)
    pieces = [piece for piece in pieces if piece not in elsewhere]
    hashes = _texts_holding(brain, purged.exchanges, purged.statements, pieces)
    return event, hashes | _hashes_before(event)
