"""The tree as it is found: adopted at a start, followed while running; the tree is never rewritten to match a record.

Deletions of many memories at once are not forgetting (an unmounted drive, a checkout): they are held until the files
come back or a person confirms.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from brainiac.clock import Clock
from brainiac.events import (
    DeletionsHeld,
    FileChange,
    NoteDeleted,
    NotesDeleted,
    NotesEdited,
    PathKind,
    RecordedChange,
    TreeAdopted,
    content_hash,
)
from brainiac.storage.commit import Committer
from brainiac.storage.external_edits import MAX_BYTES
from brainiac.storage.file_state import Seen, size_stamp, stamp_of
from brainiac.storage.files import read_bytes
from brainiac.storage.journal import Journal
from brainiac.tree import Tree

HELD_COUNT, HELD_SHARE = 20, 0.3
ADOPT_SECONDS = 2.0  # what a start may take to merge saves; the rest is looked at one by one
_STAMP_AGE_NS = 2_000_000_000  # a file written just before it was hashed may be written again within one tick
_MEMORIES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})


@dataclass(slots=True)
class _Scan:
    """What a look over the whole tree found.

    Attributes:
        texts: Content of the files that are not as last seen.
        hidden: Files off the record.
        stamps: Stamps of files that are as last seen.
        found: All paths that stand.
    """

    texts: dict[str, bytes] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    stamps: dict[str, str] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)


class Observed:
    """What each tracked file was when last seen, and what is new.

    Args:
        tree: The brain's folder.
        journal: Where what is found is recorded.
        clock: Measures rest.
        committer: Records and merges.

    Attributes:
        open_paths: What the last adoption left to be looked at again: in the middle of being saved, or just merged.
    """

    def __init__(self, tree: Tree, journal: Journal, clock: Clock, committer: Committer) -> None:
        self.open_paths: list[str] = []
        self._tree, self._journal, self._committer = tree, journal, committer
        self._seen, self._noticing = committer.seen, committer.noticing
        self._clock = clock
        self._counted: tuple[float, list[str]] = (float("-inf"), [])

    def hash_of(self, relative: str) -> str | None:
        """Return the content hash of a note as last seen."""
        seen = self._seen.get(relative)
        return seen.hash if seen else None

    def path_of(self, digest: str) -> list[str]:
        """Return the notes that held this content when last seen."""
        return [seen.path for seen in self._seen.with_hash(digest)]

    def standing(self, digests: Iterable[str]) -> set[str]:
        """Return which of these contents a note holds, as far as the journal tells."""
        with self._committer.held():
            self._committer.settle()
        return {digest for digest in digests if self._seen.with_hash(digest)}

    def held(self) -> list[str]:
        """Return the notes whose deletion waits to be confirmed."""
        return sorted(path for path, seen in self._seen.all().items() if seen.is_held)

    def note_change(self, relative: str) -> FileChange | None:
        """Look at one file that settled; record an outside edit, and merge a stale editor buffer.

        Returns:
            What is new; None for our own writes, for what is known, and for a deletion that is held.

        Raises:
            NotRestedError: Short-term memory is in the middle of being saved; come again when it says.
        """
        if self._tree.kind_of(relative) in (PathKind.IGNORED, PathKind.JOURNAL):
            return None
        with self._committer.held():
            self._committer.settle()
            change = self._noticing.look(relative)
            seen = self._seen.get(relative)
            if change is None and seen is not None:
                if not os.path.lexists(self._tree.absolute(relative)):
                    return self._note_deletion(seen)
                if not seen.is_told:  # a commit saw the edit first
                    change = FileChange("modified", relative, self._tree.kind_of(relative))
            if seen is not None and not seen.is_told:
                self._seen.set_told(relative, True)
            return change

    def adopt(self) -> list[FileChange]:
        """Take the tree as it is found and record in one event what is new; the first time, all of it.

        Saves that were made without having seen what we had written are merged as while running; what is in the
        middle of being saved waits in `open_paths`, and nothing of it is recorded.

        Returns:
            What changed since it was last seen, moves recognized by equal content.
        """
        with self._committer.held():
            self._committer.settle()
            self._seen.check()
            known = self._seen.all()
            is_first = not known and next(self._journal.events(kinds={TreeAdopted}), None) is None
            scan = self._scan(known)
            merged = self._merge_saves(known, scan)
            changes, reported = self._differences(known, scan)
            reported += [FileChange("modified", path, self._tree.kind_of(path)) for path in merged]
            if changes or is_first:
                self._committer.keep_texts(scan.texts)
                self._committer.record_saves(TreeAdopted() if is_first else NotesEdited(), changes, {})
            for path in scan.hidden:
                if change := self._noticing.look(path):
                    reported.append(change)
            self._seen.set_stamps(scan.stamps.items())
            untold = [path for path, seen in known.items() if not seen.is_told and path in scan.found]
            for path in untold:
                self._seen.set_told(path, True)
            mentioned = {change.path for change in reported}
            reported += [FileChange("modified", p, self._tree.kind_of(p)) for p in untold if p not in mentioned]
            return reported

    def changed(self) -> list[str]:
        """Return the tracked paths whose stat tells that they may not be as last seen; for a rescan."""
        with self._committer.held():
            self._committer.settle()  # a journal that git took back makes every file one to be looked at
        known, unkept = self._seen.all(), self._seen.all_unkept()
        paths, found = [], set()
        for path, stat in self._files():
            found.add(path)
            is_same = known[path].stamp == stamp_of(stat) if path in known else unkept.get(path) == size_stamp(stat)
            if not is_same:
                paths.append(path)
        return paths + [path for path, seen in known.items() if path not in found and not seen.is_held]

    def confirm_deletions(self) -> list[FileChange]:
        """Record the deletions that were held, of files that are still gone."""
        with self._committer.held():
            self._committer.settle()
            held = [seen for seen in self._seen.all().values() if seen.is_held]
            gone = [seen for seen in held if not os.path.lexists(self._tree.absolute(seen.path))]
            self._seen.set_held([seen.path for seen in held], False)
            if gone:
                self._committer.record_saves(NotesDeleted(), [self._noticing.removed(seen) for seen in gone], {})
            return [self._deleted(seen.path) for seen in gone]

    def _note_deletion(self, seen: Seen) -> FileChange | None:
        if seen.is_held:
            return None
        if self._tree.kind_of(seen.path) in _MEMORIES:
            missing = self._missing()
            if self._is_mass(len(missing) + self._noticing.recently_removed()):
                self._hold(missing)
                return None
        self._committer.record_saves(NoteDeleted(), [self._noticing.removed(seen)], {})
        return self._deleted(seen.path)

    def _missing(self) -> list[str]:
        """Return the memories that are gone now and not held; counted anew at most once a second."""
        moment, missing = self._counted
        now = self._clock.monotonic()
        if now - moment >= 1:
            missing = [path for path in self._memories() if not os.path.lexists(self._tree.absolute(path))]
            self._counted = (now, missing)
        return missing

    def _memories(self) -> list[str]:
        known = self._seen.below(self._tree.layout.memory)
        return [p for p, seen in known.items() if not seen.is_held and self._tree.kind_of(p) in _MEMORIES]

    def _is_mass(self, count: int) -> bool:
        return count > HELD_COUNT and count > max(HELD_COUNT, HELD_SHARE * len(self._memories()))

    def _hold(self, paths: list[str]) -> None:
        self._counted = (float("-inf"), [])
        self._seen.set_held(paths, True)
        held = DeletionsHeld(count=len(paths), paths=tuple(sorted(paths)[:20]))
        self._committer.record_saves(held, (), {}, by="kernel")

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        for entry in self._tree.walk(self._tree.inbox, self._tree.memory, self._tree.system):
            path = self._tree.relative(entry.path)
            if self._tree.is_tracked(path):
                try:
                    yield path, entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue

    def _scan(self, known: dict[str, Seen]) -> _Scan:
        scan, newest = _Scan(), time.time_ns() - _STAMP_AGE_NS  # compared with file times: the system's own clock
        for path, stat in self._files():
            scan.found.add(path)
            seen, stamp = known.get(path), stamp_of(stat)
            if stat.st_size > MAX_BYTES or (seen is not None and seen.stamp == stamp):
                continue
            try:
                content = read_bytes(self._tree.absolute(path))
            except OSError:
                continue  # nobody lets us read it: it counts as it was known, and keeps nothing else waiting
            if content is None:
                continue
            if self._committer.is_unkept(path, content):
                scan.hidden.append(path)
                continue
            if seen is None or seen.hash != content_hash(content):
                scan.texts[path] = content
            if max(stat.st_mtime_ns, stat.st_ctime_ns) < newest:
                scan.stamps[path] = stamp
        return scan

    def _merge_saves(self, known: dict[str, Seen], scan: _Scan) -> list[str]:
        """Merge the stale saves among the texts found; take out those and the ones that do not rest yet."""
        merged: list[str] = []
        self.open_paths = []
        until = self._clock.monotonic() + ADOPT_SECONDS
        for path in [path for path in scan.texts if path in known]:
            content = scan.texts[path]
            if self._clock.monotonic() > until or not self._noticing.is_at_rest(known[path], content):
                self.open_paths.append(path)
            elif self._noticing.merge_stale(known[path], content):
                self.open_paths.append(path)  # it may have been saved once more in that moment
                merged.append(path)
            else:
                continue
            del scan.texts[path]
            scan.stamps.pop(path, None)
        return merged

    def _differences(self, known: dict[str, Seen], scan: _Scan) -> tuple[list[RecordedChange], list[FileChange]]:
        gone = self._gone(known, scan)
        by_hash = {seen.hash: seen for seen in gone}
        changes, reported = [], []
        for path, content in scan.texts.items():
            digest, seen = content_hash(content), known.get(path)
            if seen is None and (source := by_hash.pop(digest, None)) is not None:
                changes.append(RecordedChange("move", path, digest, digest, source.path))
                reported.append(FileChange("moved", path, self._tree.kind_of(path), source.path))
                gone.remove(source)
                continue
            changes.append(RecordedChange("update" if seen else "create", path, seen.hash if seen else None, digest))
            reported.append(FileChange("modified" if seen else "created", path, self._tree.kind_of(path)))
        changes += [self._noticing.removed(seen) for seen in gone]
        reported += [self._deleted(seen.path) for seen in gone]
        return changes, reported

    def _gone(self, known: dict[str, Seen], scan: _Scan) -> list[Seen]:
        """Return the notes that vanished; too many memories at once are held instead."""
        back = [path for path, seen in known.items() if seen.is_held and path in scan.found]
        self._seen.set_held(back, False)
        gone = [seen for path, seen in known.items() if path not in scan.found and not seen.is_held]
        moved = {content_hash(content) for path, content in scan.texts.items() if path not in known}
        lost = [s.path for s in gone if self._tree.kind_of(s.path) in _MEMORIES and s.hash not in moved]
        if not self._is_mass(len(lost)):
            return gone
        self._hold(lost)
        held = set(lost)
        return [seen for seen in gone if seen.path not in held]

    def _deleted(self, path: str) -> FileChange:
        return FileChange("deleted", path, self._tree.kind_of(path))
