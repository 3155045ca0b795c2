"""Which version of a file two others grew from, and which of two paths of a page is its new one, by the journals.

The journals of all devices are asked, never clocks or file names. An event of a process says truly what a text grew
from. An edit from outside does not: what a sync tool puts over a file did not grow from what stood there. So of several
devices that saw one text arrive only what all of them had before counts, and a version of which a conflict copy was
made is not taken for the origin of what stands in its place.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby

from brainiac.errors import BlobError, FormatError
from brainiac.events import (
    KINDS,
    CopyMerged,
    CopySetAside,
    Event,
    MarkersMerged,
    NoteMerged,
    RecordedChange,
    content_hash,
)
from brainiac.formats.frontmatter import split
from brainiac.storage.copies import original_of
from brainiac.storage.external_edits import FOUND
from brainiac.storage.store import Store

MAX_PATHS = 20  # of one file, through as many renames
MAX_DEPTH = 4  # so many versions that arrived on several devices are looked behind, one within the other
MAX_MERGED = 3  # a page that was merged so often and comes back: devices disagree about which path is the new one


def common_version(store: Store, path: str, ours: bytes, theirs: bytes, former_path: str = "") -> bytes | None:
    """Return the last version that two texts of a file grew from; None where the journals do not tell.

    Args:
        store: Whose journals.
        path: The file; its earlier paths count too.
        ours: The one text.
        theirs: The other text: of a copy, or of the same page at a path that it was moved from.
        former_path: That path; "" for a copy.
    """
    lineage = _Lineage(store, (path, former_path) if former_path else (path,), content_hash(theirs))
    first, second = lineage.distances(content_hash(ours)), lineage.distances(content_hash(theirs))
    common = sorted((first[digest] + second[digest], digest) for digest in first.keys() & second.keys())
    for _, digest in common:
        with suppress(BlobError):
            return store.committer.text_of(digest)
    return None


class _Places:
    """Where a page stands on one device, while the events of the device are read."""

    def __init__(self) -> None:
        self._standing: set[str] = set()
        self._last: tuple[str, str | None] = ("", None)  # the path that was left last, and the version there

    def follow(self, change: RecordedChange) -> tuple[bool, str | None]:
        """Bring the places up to date, and return what a file without a former version grew from, if that is known.

        A new file grew from the version that stood at another path and is gone; from nothing where none was. Where
        the page stands at another path, or stood at this one, a new file came from elsewhere.
        """
        self._standing.discard(change.source or change.path)
        (path, version), is_elsewhere = self._last, bool(self._standing)
        if change.after is None:
            self._last = change.path, change.before
        else:
            self._standing.add(change.path)
        return not is_elsewhere and path != change.path, version


class _Lineage:
    """What each version of a file grew from.

    Args:
        store: Whose journals.
        paths: The file's; two where a page stands at both.
        copied: The content hash of the version of which a conflict copy was made.
    """

    def __init__(self, store: Store, paths: Sequence[str], copied: str) -> None:
        self._made: dict[str, set[str]] = defaultdict(set)  # by a process: content hash → of what it grew from
        self._seen: dict[str, list[str | None]] = defaultdict(list)  # from outside: what each device had before
        self._is_moved = len(paths) > 1
        events = [(device, event) for device, event in store.journal.all_events() if event.changes]
        all_paths = _earlier_paths(paths, [event for _, event in events])
        holders: set[str] = set()
        places: dict[str, _Places] = defaultdict(_Places)  # by device
        for device, event in events:
            self._add(event, all_paths, places[device])
            if any(change.after == copied and change.path in all_paths for change in event.changes):
                holders.add(device)
        # what each device had, that which stands may well have grown from
        copies = {copied} if len(holders) < 2 else set()
        if self._is_moved:
            copies |= {version for _, event in events for version in _copied_versions(event)}
        for digest, before in self._seen.items():
            self._seen[digest] = [former for former in before if former not in copies]

    def _add(self, event: Event, paths: set[str], places: _Places) -> None:
        """Add what an event of a device says about the versions of the file, which ever had these paths."""
        changes = [change for change in event.changes if change.path in paths and change.op != "append"]
        for change in sorted(changes, key=lambda change: change.after is not None):  # what went is first
            is_origin_known, before = places.follow(change)
            if change.after is None:
                continue
            if _is_from_outside(event) or change.op == "observe":
                if change.before or not self._is_moved:
                    self._seen[change.after].append(change.before)
                elif is_origin_known:
                    self._seen[change.after].append(before)
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


def _is_from_outside(event: Event) -> bool:
    """Return whether an event says that a file was seen changed; of a newer version's kinds those of a person do."""
    return event.kind in FOUND or (event.by == "person" and event.kind not in KINDS)


def _copied_versions(event: Event) -> Iterator[str]:
    """Yield the version of which a sync tool had made a conflict copy, if an event says what became of the copy."""
    if isinstance(event.what, CopyMerged | CopySetAside) and original_of(event.what.copy):
        yield from (change.before for change in event.changes if change.path == event.what.copy and change.before)


def _earlier_paths(own_paths: Iterable[str], events: Iterable[Event]) -> set[str]:
    """Return the paths that a file ever had."""
    moves = [change for event in events for change in event.changes if change.source and change.source != change.path]
    paths = set(own_paths)
    while len(paths) < MAX_PATHS:
        more = {str(change.source) for change in moves if change.path in paths} - paths
        if not more:
            break
        paths |= more
    return paths


# --- pages that moved ----------------------------------------------------------------------------------------------


def new_paths(store: Store, uuid: str, paths: Collection[str]) -> dict[str, str]:
    """Return where the files with one uuid belong that are one page, by the moves in the journals.

    A page that one device moved while another edited it stands at both paths; one that two devices moved, at three.
    What a person copied by hand is no such page: nothing left a path for it.

    Args:
        store: Whose journals.
        uuid: That of all the files.
        paths: The files that stand.

    Returns:
        The new path by the former one; the first by name where two devices moved the page to different places.
    """
    moves = set(_Moves(store, uuid, paths).edges())
    result: dict[str, str] = {}
    for group in _connected(paths, moves):
        after = {path: _reachable(path, moves) for path in group}
        ends = [path for path in group if not any(path not in after[later] for later in after[path] & set(group))]
        path = min(group if _times_merged(store, group) >= MAX_MERGED else ends)
        result |= {former: path for former in group if former != path}
    return result


class _Moves:
    """How the page with a uuid went from path to path, on each device.

    Args:
        store: Whose journals.
        uuid: The page's.
        paths: Where files with this uuid stand now.
    """

    def __init__(self, store: Store, uuid: str, paths: Collection[str]) -> None:
        self._store, self._uuid, self._texts = store, uuid, dict[str, bool]()
        store.projection.follow()
        left = "after IS NULL OR (source IS NOT NULL AND source != path)"
        rows = store.projection.query(f"SELECT source, path, COALESCE(before, after) FROM changes WHERE {left}")
        self._paths = {*paths, *(source or path for source, path, digest in rows if self._is_page(digest))}

    def _is_page(self, digest: str | None) -> bool:
        """Return whether a text in the journal is one of the page's."""
        if not digest:
            return False
        if digest not in self._texts:
            text = self._store.kept_text(digest)
            self._texts[digest] = text is not None and _uuid_of(text) == self._uuid
        return self._texts[digest]

    def edges(self) -> Iterator[tuple[str, str]]:
        """Yield each (former path, new path)."""
        columns = "device, op, path, before, after, source"
        known = "(SELECT value FROM json_each(?1))"
        where = f"path IN {known} OR source IN {known} ORDER BY device, event, position"
        rows = self._store.projection.query(
            f"SELECT {columns} FROM changes WHERE {where}", json.dumps(sorted(self._paths))
        )
        for _, changes in groupby(rows, key=lambda row: row[0]):
            yield from self._edges_of(RecordedChange(*row[1:]) for row in changes)

    def _edges_of(self, changes: Iterable[RecordedChange]) -> Iterator[tuple[str, str]]:
        """Yield the moves on one device: a path that was left while the page stood at another, or before it did."""
        standing: list[str] = []  # the last one came last
        former = ""  # the path that was left when the page stood nowhere
        for change in changes:
            vanished = change.source or (change.path if change.after is None else "")
            if vanished and self._is_page(change.before or change.after):
                standing = [path for path in standing if path != vanished]
                if not standing:
                    former = vanished
                elif not change.source:
                    yield vanished, standing[-1]
            if change.after is None or change.path in standing or not self._is_page(change.after):
                continue
            if change.source and change.source != change.path:
                yield change.source, change.path
            elif not standing and former not in ("", change.path):
                yield former, change.path
            standing.append(change.path)


def _uuid_of(text: str) -> str:
    with suppress(FormatError):
        return str(split(text)[0].get("uuid") or "")
    return ""


def _connected(paths: Collection[str], edges: Collection[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield the groups of paths between which moves lead, forth or back; none of a single path."""
    both_ways = {*edges, *((new, former) for former, new in edges)}
    waiting = sorted(paths)
    while waiting:
        group = _reachable(waiting[0], both_ways) | {waiting[0]}
        if len(standing := [path for path in waiting if path in group]) > 1:
            yield standing
        waiting = [path for path in waiting if path not in group]


def _reachable(path: str, edges: Collection[tuple[str, str]]) -> set[str]:
    """Return the paths to which moves lead from one."""
    reached: set[str] = set()
    waiting = [path]
    while waiting:
        last = waiting.pop()
        more = {new for former, new in edges if former == last} - reached
        reached |= more
        waiting += more
    return reached


def _times_merged(store: Store, paths: Collection[str]) -> int:
    """Return how often one of these paths of a page was merged into another of them, on any device."""
    merged = (event.what for _, event in store.journal.all_events(kinds={CopyMerged}))
    return sum(isinstance(what, CopyMerged) and {what.copy, what.of} <= set(paths) for what in merged)
