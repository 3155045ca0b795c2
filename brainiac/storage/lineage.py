"""Which version of a file two others grew from, by the journals of all devices; never by clocks or names.

An event of a process says truly what a text grew from. An edit from outside does not: what a sync tool puts over a
file did not grow from what stood there. So of several devices that saw one text arrive only what all of them had
before counts, and a version of which a conflict copy was made is not taken for the origin of what stands in its place.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress

from brainiac.errors import BlobError
from brainiac.events import CopyMerged, Event, MarkersMerged, NoteMerged, content_hash
from brainiac.storage.external_edits import FOUND
from brainiac.storage.store import Store

MAX_PATHS = 20  # of one file, through as many renames
MAX_DEPTH = 4  # so many versions that arrived on several devices are looked behind, one within the other


def common_version(store: Store, path: str, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the last version that two texts of a file grew from; None where the journals do not tell.

    Args:
        store: Whose journals.
        path: The file; its earlier paths count too.
        ours: The one text.
        theirs: The other text, of which a copy was made.
    """
    lineage = _Lineage(store, path, content_hash(theirs))
    first, second = lineage.distances(content_hash(ours)), lineage.distances(content_hash(theirs))
    common = sorted((first[digest] + second[digest], digest) for digest in first.keys() & second.keys())
    for _, digest in common:
        with suppress(BlobError):
            return store.committer.text_of(digest)
    return None


class _Lineage:
    """What each version of a file grew from.

    Args:
        store: Whose journals.
        path: The file.
        copied: The content hash of the version of which a conflict copy was made.
    """

    def __init__(self, store: Store, path: str, copied: str) -> None:
        self._made: dict[str, set[str]] = defaultdict(set)  # by a process: content hash → of what it grew from
        self._seen: dict[str, list[str | None]] = defaultdict(list)  # from outside: what each device had before
        events = [(device, event) for device, event in store.journal.all_events() if event.changes]
        paths = _earlier_paths(path, (event for _, event in events))
        holders: set[str] = set()
        for device, event in events:
            self._add(event, paths)
            if any(change.after == copied and change.path in paths for change in event.changes):
                holders.add(device)
        if len(holders) < 2:  # else each device had it, and what stands may well have grown from it
            for digest, before in self._seen.items():
                self._seen[digest] = [former for former in before if former != copied]

    def _add(self, event: Event, paths: set[str]) -> None:
        """Add what an event says about the versions of the file."""
        for change in event.changes:
            if change.path not in paths or change.after is None or change.op == "append":
                continue
            if event.kind in FOUND or change.op == "observe":
                self._seen[change.after].append(change.before)
                continue
            if change.before:
                self._made[change.after].add(change.before)
            match event.what:
                case CopyMerged():
                    self._made[change.after] |= {each.before for each in event.changes if each.before}
                case MarkersMerged(ours=ours, theirs=theirs):
                    self._made[change.after] |= {ours, theirs}
                case NoteMerged(stale=stale) if stale:
                    self._made[change.after].add(stale)

    def distances(self, digest: str, passed: frozenset[str] = frozenset()) -> dict[str, int]:
        """Return the versions that a version grew from, itself included, with the number of steps to each.

        Args:
            digest: The version.
            passed: Versions that are not gone through: those that led here.
        """
        steps, waiting = {digest: 0}, deque([digest])
        while waiting:
            version = waiting.popleft()
            for former in self._origins(version, passed):
                if former not in steps and former not in passed:
                    steps[former] = steps[version] + 1
                    waiting.append(former)
        return steps

    def _origins(self, digest: str, passed: frozenset[str]) -> set[str]:
        """Return the versions that one certainly grew from: of one from outside, those that every device had.

        Args:
            digest: The content hash of the version.
            passed: The versions on the way to it, so that the search ends after `MAX_DEPTH`.
        """
        if made := self._made.get(digest):
            return made
        before = self._seen.get(digest, ())
        # to a device that had nothing there it came from elsewhere, or was written before the first start
        if None in before:
            return set()
        seen = {former for former in before if former is not None and former != digest}
        if len(seen) < 2:
            return seen
        if len(passed) >= MAX_DEPTH:
            return set()
        return set.intersection(*(set(self.distances(former, passed | {digest})) for former in sorted(seen)))


def _earlier_paths(path: str, events: Iterable[Event]) -> set[str]:
    """Return the paths that a file ever had."""
    moves = [change for event in events for change in event.changes if change.source and change.source != change.path]
    paths = {path}
    while len(paths) < MAX_PATHS:
        more = {str(change.source) for change in moves if change.path in paths} - paths
        if not more:
            break
        paths |= more
    return paths
