"""Which version of a file two others grew from, and which of two paths of a page is its new one, by the journals.

The journals of all devices are asked, never clocks or file names. An event of a process says truly what a text grew
from. An edit from outside does not: what a sync tool puts over a file did not grow from what stood there. So of several
devices that saw one text arrive only what all of them had before counts, and a version of which a conflict copy was
made is not taken for the origin of what stands in its place.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cache
from itertools import groupby

from brainiac import events
from brainiac.errors import FormatError
from brainiac.formats.frontmatter import split
from brainiac.storage.external_edits import FOUND
from brainiac.storage.store import Store
from brainiac.tree import original_of, possible_original

_PAGES = frozenset({events.PathKind.MEMORY, events.PathKind.ARCHIVED})
MAX_DEPTH = 4  # so many versions that arrived on several devices are looked behind, one within the other


def common_version(store: Store, path: str, ours: bytes, theirs: bytes, former_path: str = "") -> bytes | None:
    """Return the last version that two texts of a file grew from; None where the journals do not tell.

    Args:
        store: Whose journals.
        path: The file; its earlier paths count too.
        ours: The one text.
        theirs: The other text: of a copy, or of the same page at a path that it was moved from.
        former_path: That path; "" for a copy.
    """
    paths = {path}
    if former_path:  # there may be a third one, where it was moved twice
        paths, _ = _known_paths(store, _uuid_of(theirs.decode("utf-8", "replace")), {path, former_path})
    lineage = _Lineage(store, paths, events.content_hash(theirs), is_moved=bool(former_path))
    first, second = lineage.distances(events.content_hash(ours)), lineage.distances(events.content_hash(theirs))
    common = sorted((first[digest] + second[digest], digest) for digest in first.keys() & second.keys())
    texts = (store.committer.kept_text(digest) for _, digest in common)
    return next((text for text in texts if text is not None), None)


class _Places:
    """Where a page stands on one device, while the events of the device are read in order."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._removed_path = ""
        self._removed_version: str | None = None

    def follow(self, change: events.RecordedChange) -> tuple[bool, str | None]:
        """Bring the places up to date, and return what a new file at the path of a change grew from.

        It grew from the version that was removed last, at another path; from nothing (None) where none was. Where the
        page still stands at another path, or was removed last at this one, the new file came from elsewhere: then the
        first value is false.
        """
        self._paths.discard(change.source or change.path)
        origin = not self._paths and self._removed_path != change.path, self._removed_version
        if change.after is None:
            self._removed_path, self._removed_version = change.path, change.before
        else:
            self._paths.add(change.path)
        return origin


class _Lineage:
    """What each version of a file grew from.

    Args:
        store: Whose journals.
        paths: The file's; all that a page ever had, where it stands at two.
        copied: The content hash of the version in the conflict copy, or at the former path.
        is_moved: Whether it stands at two.
    """

    def __init__(self, store: Store, paths: Collection[str], copied: str, *, is_moved: bool) -> None:
        # by content hash, of a version that a process wrote: the versions that it grew from
        self._made: dict[str, set[str]] = defaultdict(set)
        # by content hash, of a version that came from outside: what each device had there before, None for nothing
        self._seen: dict[str, list[str | None]] = defaultdict(list)
        self._is_moved = is_moved
        recorded = [(device, event) for device, event in store.journal.all_events() if event.changes]
        changes = [change for _, event in recorded for change in event.changes]
        moves = {(each.path, each.source) for each in changes if each.source and each.source != each.path}
        all_paths = {*paths}.union(*(_reachable(path, moves) for path in paths))  # that it ever had
        places: dict[str, _Places] = defaultdict(_Places)  # by device
        for device, event in recorded:
            self._add(event, all_paths, places[device])
        # also those of other copies: of three versions one may have been put over the other two in turn
        copies = {copied} | _conflict_copies(event for _, event in recorded)
        for digest, before in self._seen.items():
            # one that was moved away says nothing alone; beside another one it still limits what both grew from
            is_known = any(former not in copies and former != digest for former in before)
            self._seen[digest] = [former for former in before if former != copied] if is_known else []

    def _add(self, event: events.Event, paths: set[str], places: _Places) -> None:
        """Add what an event of a device says about the versions of the file.

        Args:
            event: The event.
            paths: All that the file ever had.
            places: Where the page stands on the device.
        """
        changes = [change for change in event.changes if change.path in paths and change.op != "append"]
        for change in sorted(changes, key=lambda change: change.after is not None):  # removals first
            has_origin, origin = places.follow(change)
            if change.after is None:
                continue
            # it was seen changed; of kinds that this version lacks, a person's say so
            is_seen = event.kind in FOUND or (event.by == "person" and event.kind not in events.KINDS)
            if not (is_seen or change.op == "observe"):
                self._made[change.after] |= _named_origins(event, change)
            elif change.before or not self._is_moved:
                self._seen[change.after].append(change.before)
            elif has_origin:  # the page was moved, and what moved it says so in no event
                self._seen[change.after].append(origin)

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
        """Return the versions that a version certainly grew from; empty where that is not known.

        Of a version that arrived on several devices, those that every device had before: A, where one had A and another
        had B, which grew from A.

        Args:
            digest: The content hash of the version.
            passed: The versions on the way to it, so that the search ends after `MAX_DEPTH`.
        """
        if origins := self._made.get(digest):
            return origins
        before = self._seen.get(digest, ())
        # to a device that had nothing there it came from elsewhere, or was written before the first start
        if None in before:
            return set()
        formers = {former for former in before if former is not None and former != digest}
        if len(formers) < 2:
            return formers
        if len(passed) >= MAX_DEPTH:
            return set()
        return set.intersection(*(set(self.distances(former, passed | {digest})) for former in sorted(formers)))


def _conflict_copies(recorded: Iterable[events.Event]) -> set[str]:
    """Return the versions in a sync tool's conflict copies that were merged or set aside.

    They are known by their names: any other copy of a file is a person's.
    """
    return {
        change.before
        for event in recorded
        if isinstance(event.what, events.CopyMerged | events.CopySetAside) and original_of(event.what.copy)
        for change in event.changes
        if change.path == event.what.copy and change.before
    }


def _named_origins(event: events.Event, change: events.RecordedChange) -> set[str]:
    """Return the versions that the version of a process's change grew from, as the event names them."""
    origins = {change.before} if change.before else set()
    match event.what:
        case events.CopyMerged():
            origins |= {each.before for each in event.changes if each.before}
        case events.MarkersMerged(ours=ours, theirs=theirs):
            origins |= {ours, theirs}
        case events.NoteMerged(stale=stale) if stale:
            origins.add(stale)
    return origins


# --- pages that moved ----------------------------------------------------------------------------------------------


def new_paths(store: Store, uuid: str, paths: Collection[str]) -> dict[str, str]:
    """Return where the files with one uuid belong that are one page, by the moves in the journals and by their names.

    A page that one device moved while another edited it stands at both paths; one that two devices moved, at three.
    Beside a page its copy may stand that a sync service made, by its name. What a person copied by hand is no such
    page: nothing left a path for it, and it has a name of its own.

    Args:
        store: Whose journals.
        uuid: That of all the files.
        paths: The files that stand.

    Returns:
        The new path by the former one; the first by name where two devices moved the page to different places.
    """
    result = {path: original for path in paths if (original := possible_original(path, paths))}
    pages = [path for path in paths if path not in result]
    moves = _moves(store, uuid, pages) if len(pages) > 1 else set()
    both_ways = moves | {(new, former) for former, new in moves}
    for path in pages:
        group = {path} | (_reachable(path, both_ways) & set(pages))
        after = {page: _reachable(page, moves) for page in group}
        # those from which no move leads on, unless it also leads back
        end = min(page for page in group if all(page in after[later] for later in after[page] & group))
        if path != end:
            result[path] = end
    return result


def _moves(store: Store, uuid: str, paths: Collection[str]) -> set[tuple[str, str]]:
    """Return (former path, new path) of each move of a page on each device, also of a removal and a creation.

    Args:
        store: Whose journals.
        uuid: The page's.
        paths: Where files with this uuid stand now.
    """
    known, is_page = _known_paths(store, uuid, paths)
    rows = store.projection.query(
        "WITH known AS (SELECT value FROM json_each(?)) SELECT device, path, before, after, source FROM changes"
        " WHERE path IN known OR source IN known ORDER BY device, event, position",
        json.dumps(sorted(known)),
    )
    # from where it stands to where it stands: that was it, also where a purge took the text that it had then
    moves = {(source, path) for _, path, _, _, source in rows if source in paths and path in paths and source != path}
    for _, changes in groupby(rows, key=lambda row: row[0]):
        standing: list[str] = []  # in the order of arrival
        left = ""  # the path that was left when the page stood nowhere else
        for _, path, before, after, source in changes:
            left_now = source or (path if after is None else "")
            if left_now and is_page(before or after):
                standing = [place for place in standing if place != left_now]
                if not standing:
                    left = left_now
                elif not source:  # created there first, then removed here
                    moves.add((left_now, standing[-1]))
            if after is None or path in standing or not is_page(after):
                continue
            if source and source != path:
                moves.add((source, path))
            elif not standing and left not in ("", path):  # removed there first, then created here
                moves.add((left, path))
            standing.append(path)
    return moves


def _known_paths(store: Store, uuid: str, paths: Collection[str]) -> tuple[set[str], Callable[[str | None], bool]]:
    """Return the paths where a page stands and all that it ever left; and what tells whether a text is one of its own.

    Args:
        store: Whose journals.
        uuid: The page's.
        paths: Where files with this uuid stand now.
    """

    @cache
    def is_page(digest: str | None) -> bool:
        texts = [store.kept_text(digest)]
        if digest and texts[0] is None:  # a purge took it: it is known by what stood there before, and since
            beside = "SELECT before, after FROM changes WHERE ? IN (before, after) AND before != after"
            texts = [store.kept_text(each) for row in store.projection.query(beside, digest) for each in row]
        return any(uuid and _uuid_of(text or "") == uuid for text in texts)

    store.projection.follow()
    leaves_path = "after IS NULL OR (source IS NOT NULL AND source != path)"
    left = store.projection.query(f"SELECT source, path, COALESCE(before, after) FROM changes WHERE {leaves_path}")
    pages = [(source or path, digest) for source, path, digest in left if store.tree.kind_of(source or path) in _PAGES]
    return {*paths, *(path for path, digest in pages if is_page(digest))}, is_page


def _uuid_of(text: str) -> str:
    """Return the uuid in a page's front matter; "" where there is none, or it cannot be parsed."""
    with suppress(FormatError):
        return str(split(text)[0].get("uuid") or "")
    return ""


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
