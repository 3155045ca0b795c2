"""Destroying what the journal keeps of something forgotten, here and on every device that reads of it.

First a tombstone of ids and hashes is journaled, then texts are destroyed, which is done again wherever it was cut
short or a copy is synced back. Beyond reach: git history, versions of a sync service, backups, names of files.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from brainiac.brain import Brain
from brainiac.events import Event, PurgeHonoured, TextsPurged
from brainiac.history.forget import Forgetting, forget, of_exchanges, of_memory
from brainiac.history.naming import find_memory
from brainiac.history.retraction import Retraction
from brainiac.history.traces import cleaner, holding, pieces_of, standing, telling

BEYOND = (
    "Not reached: git history, versions kept by a sync service, backups, and names of files in journal and access log. "
    "Other devices destroy their own when they next run."
)


@dataclass(frozen=True, slots=True)
class Purged:
    """What was destroyed.

    Attributes:
        tombstone: The event that every device honours.
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


def purge(brain: Brain, forgetting: Forgetting) -> Purged:
    """Forget something and destroy what is kept of it; cut short after the tombstone, the next start goes on.

    Args:
        brain: The brain.
        forgetting: What is to be forgotten; it may be gone from the tree already.
    """
    retraction = forgetting.plan()
    after = {change.path: change.after or b"" for change in retraction.changes(brain)}
    pieces = pieces_of(retraction.texts)
    elsewhere = standing(brain, pieces, after)
    tombstone = _tombstone(brain, forgetting, retraction, after, [each for each in pieces if each not in elsewhere])
    event = forget(brain, forgetting, cause=tombstone.id)
    further = {change.before for change in event.changes if change.before} if event else set()
    lines = carry_out(brain, tombstone, further)
    still = {piece.decode("utf-8", "replace"): paths for piece, paths in elsewhere.items()}
    return Purged(tombstone, event, len(further.union(tombstone.data["hashes"])), lines, still)


def _tombstone(
    brain: Brain, forgetting: Forgetting, retraction: Retraction, after: Collection[str], pieces: Collection[bytes]
) -> Event:
    """Journal what is to be destroyed, by ids and hashes alone."""
    exchanges = [str(each) for each in forgetting.data.get("exchanges", ())]
    statements = sorted({one["hash"] for one in retraction.statements})
    fold = brain.journal.fold()
    kept = {digest for path, digest in fold.items() if path not in after}
    found = holding(brain, exchanges, statements, pieces) | _named_by(brain, exchanges)
    found |= {digest for path, digest in fold.items() if path in after}
    data: dict[str, Any] = {
        "exchanges": exchanges,
        "page": forgetting.data.get("page") or forgetting.data.get("path"),
        "statements": statements,
        "items": retraction.items,
        "hashes": sorted(found - kept),
        "events": telling(brain, pieces),
    }
    return brain.record(TextsPurged.kind, by="cli", data=data)


def carry_out(brain: Brain, tombstone: Event, further: Collection[str] = ()) -> int:
    """Destroy what a tombstone names; may be cut short and done again.

    Args:
        brain: The brain.
        tombstone: Of this or another device.
        further: Hashes of further texts, found on this device.

    Returns:
        How many lines of this device's journal lost their words.
    """
    hashes = {str(each) for each in tombstone.data.get("hashes", ())}.union(further)
    brain.committer.destroy(hashes - brain.observed.standing(hashes))  # what somebody still has is his
    lines = brain.journal.rewrite(cleaner(tombstone.data.get("exchanges", ()), tombstone.data.get("events", ())))
    _remove_derived(brain)
    brain.record(PurgeHonoured.kind, by="kernel", data={"tombstone": tombstone.id}, cause=tombstone.id)
    return lines


def _remove_derived(brain: Brain) -> None:
    """Throw index and vectors away: they are made anew from what stands."""
    brain.recall.close()  # opened anew by the next search
    shutil.rmtree(brain.places.cache, ignore_errors=True)


def _named_by(brain: Brain, exchanges: list[str]) -> set[str]:
    """Return the hashes of the prompts and answers of exchanges, as the events that made them known name them."""
    wanted = set(exchanges)
    own = (event for event in brain.journal.events() if event.id in wanted)
    foreign = (event for _, event in brain.journal.foreign_events() if event.id in wanted)
    changes = [change for event in (*own, *foreign) for change in event.changes if change.op != "append"]
    return {each for change in changes for each in (change.before, change.after) if each}


class Tombstones:
    """The tombstones of all devices, honoured at a start and whenever the tree is looked over.

    Args:
        brain: The brain.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._seq = 0  # of this device's journal, all up to here was taken in;
        self._sizes: dict[str, int] = {}  # of the other devices', all while they were so large
        self._known: dict[str, Event] = {}
        self._done: set[str] = set()

    def honour(self) -> list[str]:
        """Destroy what was purged elsewhere, cut short here, or synced back.

        Returns:
            The tombstones that something was left to do for.
        """
        self._refresh()
        if not self._known:
            return []
        return [each.id for each in self._known.values() if self._honour(each)]

    def remains(self) -> list[tuple[Event, str]]:
        """Return what of purged texts is here, by a tombstone: a file that stands, or a text of the journal."""
        self._refresh()
        by_hash = {digest: path for path, digest in self._brain.journal.fold().items()}
        found = []
        for tombstone in self._known.values():
            for digest in tombstone.data.get("hashes", ()):
                if digest in by_hash:
                    found.append((tombstone, by_hash[digest]))
                elif digest in self._brain.journal.blobs:
                    blobs = self._brain.tree.relative(self._brain.journal.blobs.folder)
                    found.append((tombstone, f"{blobs}/{digest[:2]}/{digest[2:]}"))
        return found

    def _refresh(self) -> None:
        """Take in what the journals gained; those of other devices are read again once they are not as they were."""
        journal = self._brain.journal
        last = journal.last()[0]
        for event in journal.events(since_seq=min(self._seq, last), kinds={TextsPurged, PurgeHonoured}):
            self._take(event)
        self._seq = last
        sizes = journal.foreign_sizes()
        if sizes != self._sizes:
            self._sizes = sizes
            for _, event in journal.foreign_events():
                if event.kind == TextsPurged.kind:
                    self._take(event)

    def _take(self, event: Event) -> None:
        if event.kind == TextsPurged.kind:
            self._known[event.id] = event
        else:
            self._done.add(str(event.data.get("tombstone")))

    def _honour(self, tombstone: Event) -> bool:
        data, brain = tombstone.data, self._brain
        is_done, notes = tombstone.id in self._done, brain.observed.standing(data.get("hashes", ()))
        is_back = bool(notes) or self._is_noted(data.get("exchanges", ()))
        texts = [each for each in data.get("hashes", ()) if each in brain.journal.blobs and each not in notes]
        if is_done and not is_back and not texts:
            return False
        further: set[str] = set()
        event = None
        if is_back or not is_done:
            event, further = self._take_out(tombstone)
        if is_done and event is None and not texts:
            return False  # the same words, said by somebody for another reason
        carry_out(brain, tombstone, further)
        return True

    def _take_out(self, tombstone: Event) -> tuple[Event | None, set[str]]:
        data, brain = tombstone.data, self._brain
        exchanges = [str(each) for each in data.get("exchanges", ())]
        page = find_memory(brain, str(data["page"])) if data.get("page") else None
        items = data.get("items", ())
        forgetting = of_memory(brain, page, items) if page else of_exchanges(brain, exchanges, items)
        retraction = forgetting.plan()
        event = forget(brain, forgetting, by="kernel", cause=tombstone.id)
        pieces = pieces_of(retraction.texts) if event else []
        elsewhere = standing(brain, pieces, {})
        pieces = [piece for piece in pieces if piece not in elsewhere]
        found = holding(brain, exchanges, data.get("statements", ()), pieces)
        return event, found | {change.before for change in event.changes if change.before} if event else found

    def _is_noted(self, exchanges: list[str]) -> bool:
        text = self._brain.read_text(self._brain.tree.short_term) or ""
        return any(f"<!-- event: {one} -->" in text for one in exchanges)
