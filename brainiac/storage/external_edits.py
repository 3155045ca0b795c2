"""What a person did to the tree: looked at file by file as they settle, and adopted as a whole at a start.

Recognized by content alone, never by path or time, and recorded before anything else happens. The tree is never
rewritten to match a record. Deletions of many memories at once are not forgetting (an unmounted drive, a checkout):
they are held until the files come back or a person confirms.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from brainiac.errors import BrainiacError, ConflictError
from brainiac.events import (
    Action,
    DeletionsHeld,
    FileChange,
    FoundEvent,
    NoteDeleted,
    NoteEdited,
    NoteMoved,
    NoteOffRecord,
    NotesDeleted,
    NotesEdited,
    PathKind,
    RecordedChange,
    TreeAdopted,
    content_hash,
    kinds_of,
)
from brainiac.storage.concurrent_saves import TORN_NS, ConcurrentSaves, age_ns, nonblank_lines
from brainiac.storage.file_state import FileState, size_stamp, stamp_of
from brainiac.storage.files import read_bytes
from brainiac.storage.transactions import Transactions

MAX_BYTES = 5_000_000  # larger files are known by their stat, their texts are not kept
REST_SECONDS = 10.0  # short-term memory saved without its headings is believed after this
MOVE_SECONDS = 10.0  # a file that appears with the content of one that vanished within this was moved
ADOPT_SECONDS = 2.0  # what a start may take to merge saves; the rest is looked at one by one
HELD_COUNT, HELD_SHARE = 20, 0.3
FOUND = kinds_of(FoundEvent)  # by a person
_STAMP_AGE_NS = 2_000_000_000  # a file written just before it was hashed may be written again within one tick
_MEMORIES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})
_HEADINGS = (b"## Summary", b"### Goals", b"### Key Facts & Decisions", b"### Tasks", b"## Event Log")


class NotRestedError(BrainiacError):
    """Short-term memory stands empty or without its headings, as an editor leaves it for a moment; look again later.

    Args:
        path: The file.
        again_in_seconds: When to look again.
    """

    def __init__(self, path: str, again_in_seconds: float) -> None:
        self.path, self.again_in_seconds = path, again_in_seconds
        super().__init__(f"{path}: without its headings; looked at again in {again_in_seconds:.0f} s")


@dataclass(slots=True)
class _Scan:
    """What a look over the whole tree found.

    Attributes:
        texts: Content of the files that are not as last seen.
        hidden: Files off the record.
        stamps: Stamps of files that are as last seen.
        standing: All paths that stand.
    """

    texts: dict[str, bytes] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    stamps: dict[str, str] = field(default_factory=dict)
    standing: set[str] = field(default_factory=set)


class ExternalEdits:
    """What each tracked file was when last seen, and what is new.

    Args:
        transactions: They record what is found.

    Attributes:
        saves: Merges what a person saved without having seen ours.
        open_paths: What the last adoption left to be looked at again: in the middle of being saved, or just merged.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions, self._tree, self._clock = transactions, transactions.tree, transactions.clock
        self._states = transactions.file_states
        self.saves = ConcurrentSaves(transactions, self.notice)
        self.open_paths: list[str] = []
        self._bare: tuple[str, float] | None = None  # short-term memory without its headings: its hash, since when
        self._vanished: deque[tuple[float, str, str]] = deque(maxlen=1000)  # moment, hash and path
        self._counted: tuple[float, list[str]] = (float("-inf"), [])  # the memories that are gone, and when counted

    def hash_of(self, relative: str) -> str | None:
        """Return the content hash of a note as last seen."""
        state = self._states.get(relative)
        return state.hash if state else None

    def standing(self, digests: Iterable[str]) -> set[str]:
        """Return which of these contents a note holds, as far as the journal tells."""
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
        return {digest for digest in digests if self._states.with_hash(digest)}

    def held_deletions(self) -> list[str]:
        """Return the notes whose deletion waits to be confirmed."""
        return [state.path for state in self._states.held_deletions()]

    # one file

    def note_change(self, relative: str) -> FileChange | None:
        """Look at one file that settled; record an outside edit, and merge a stale editor buffer.

        Returns:
            What is new; None for our own writes, for what is known, and for a deletion that is held.

        Raises:
            NotRestedError: Short-term memory is in the middle of being saved; come again when it says.
        """
        if self._tree.kind_of(relative) in (PathKind.IGNORED, PathKind.JOURNAL):
            return None
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
            change = self._look(relative)
            state = self._states.get(relative)
            if change is None and state is not None:
                if not os.path.lexists(self._tree.absolute(relative)):
                    return self._note_deletion(state)
                if not state.is_reported:  # a commit saw the edit first
                    change = self._change("modified", relative)
            if state is not None and not state.is_reported:
                self._states.set_reported(relative, True)
            return change

    def notice(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Record what a person did to these (relative) paths and nobody has seen; the caller holds the commit lock.

        Whatever is decided or merged then rests on what the history has as theirs.

        Returns:
            Path → content as it is recorded now; None where nothing stands.

        Raises:
            ConflictError: A file is being saved at this moment.
        """
        contents: dict[str, bytes | None] = {}
        for relative in paths:
            is_tracked = self._tree.is_tracked(relative)
            try:
                # recorded here, a commit before the bus looked: it is to hear of the edit all the same
                if is_tracked and self._look(relative) is not None:
                    self._states.set_reported(relative, False)
            except NotRestedError as error:
                raise ConflictError([relative]) from error
            content = contents[relative] = read_bytes(self._tree.absolute(relative))
            if is_tracked and content is not None and not self._is_recorded(relative, content):
                raise ConflictError([relative])
        return contents

    def _is_recorded(self, path: str, content: bytes) -> bool:
        """Return whether this is what was last seen there; also for what is not kept."""
        is_kept = len(content) <= MAX_BYTES and not self._transactions.is_hash_only(path, content)
        return not is_kept or self.hash_of(path) == content_hash(content)

    def _look(self, path: str) -> FileChange | None:
        """Record what stands at a path; None when nothing is new."""
        try:
            info = os.lstat(self._tree.absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            return self._note_hash_only(path, None)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES or not self._tree.is_tracked(path):
            return self._note_hash_only(path, size_stamp(info))
        content = self._read_settled(path)
        if content is None:
            return None
        if self._transactions.is_hash_only(path, content):
            return self._look_off_record(path, content_hash(content))
        return self._look_at_content(path, content)

    def _read_settled(self, path: str) -> bytes | None:
        """Read a file, waiting a moment where an editor seems to be writing it."""
        absolute, former, since = self._tree.absolute(path), None, time.monotonic_ns()
        while (content := read_bytes(absolute)) is not None and self.saves.looks_torn(path, content):
            if content != former:
                former, since = content, time.monotonic_ns()
            # a file may be dated in the future
            if max(age_ns(absolute), time.monotonic_ns() - since) > TORN_NS:
                break
            time.sleep(0.002)
        return content

    def _look_at_content(self, path: str, content: bytes) -> FileChange | None:
        digest, state = content_hash(content), self._states.get(path)
        if state is not None and state.hash == digest:
            if state.is_held:
                self._states.set_held([path], False)
            return None
        self._wait_for_rest(path, content, digest)
        self._states.set_hash_only(path, None)  # it was off the record until now, perhaps
        if state is None:
            return self._appeared(path, digest, {digest: content})
        if not self.saves.merge_stale(state, content):
            change = RecordedChange("update", path, state.hash, digest)
            self._transactions.record(NoteEdited(), [change], {digest: content})
        return self._change("modified", path)

    def _appeared(self, path: str, digest: str, texts: Mapping[str, bytes]) -> FileChange:
        for state in self._states.with_hash(digest):
            # the same content elsewhere, and gone from there: a move; still there: a copy
            if not self._tree.absolute(state.path).exists():
                change = RecordedChange("move", path, digest, digest, state.path)
                self._transactions.record(NoteMoved(), [change], texts)
                return self._change("moved", path, state.path)
        self._transactions.record(NoteEdited(), [RecordedChange("create", path, None, digest)], texts)
        since = self._clock.monotonic() - MOVE_SECONDS
        # the bus may hear of the old place first: then it was recorded as deleted, and only the hooks hear of a move
        for entry in reversed(self._vanished):
            if entry[0] >= since and entry[1] == digest:
                self._vanished.remove(entry)
                return self._change("moved", path, entry[2])
        return self._change("created", path)

    def _wait_for_rest(self, path: str, content: bytes, digest: str) -> None:
        """Refuse short-term memory without its headings until it has stood so for a while."""
        if self._tree.kind_of(path) is not PathKind.SHORT_TERM:
            return
        if all(heading in content for heading in _HEADINGS):
            self._bare = None
            return
        if self._bare is None or self._bare[0] != digest:
            self._bare = (digest, self._clock.monotonic())
        rest = self._bare[1] + REST_SECONDS - self._clock.monotonic()
        if rest > 0 and age_ns(self._tree.absolute(path)) < REST_SECONDS * 1e9:
            raise NotRestedError(path, rest)

    def _look_off_record(self, path: str, digest: str) -> FileChange | None:
        """Record the hash of a file whose text is not kept, and that its former text is gone."""
        # the hash is kept so that the same text is reported once, and a purge can find it
        unkept, state = self._states.hash_only(path), self._states.get(path)
        if unkept == digest:
            return None
        changes = [] if state is None else [RecordedChange("observe", path, state.hash, None)]
        self._transactions.record(NoteOffRecord(off_record=(digest,)), changes)
        self._states.set_hash_only(path, digest)
        return self._change("created" if state is None and unkept is None else "modified", path)

    def _note_hash_only(self, path: str, stamp: str | None) -> FileChange | None:
        """Note what stands where no text is kept: its stamp, None for nothing."""
        former = self._states.hash_only(path)
        if former == stamp:
            return None
        self._states.set_hash_only(path, stamp)
        if stamp is None:
            return self._change("deleted", path)
        return self._change("created" if former is None else "modified", path)

    # the whole tree

    def adopt(self) -> list[FileChange]:
        """Take the tree as it is found and record in one event what is new; the first time, all of it.

        Saves that were made without having seen what we had written are merged as while running; what is in the
        middle of being saved waits in `open_paths`, and nothing of it is recorded.

        Returns:
            What changed since it was last seen, moves recognized by equal content.
        """
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
            self._states.check()
            states = self._states.all()
            is_first = not states and next(self._transactions.journal.events(kinds={TreeAdopted}), None) is None
            scan = self._scan(states)
            merged = self._merge_saves(states, scan)
            changes, reported = self._differences(states, scan)
            reported += [self._change("modified", path) for path in merged]
            if changes or is_first:
                self._keep_texts(scan.texts.values())
                self._transactions.record(TreeAdopted() if is_first else NotesEdited(), changes)
            reported += [change for path in scan.hidden if (change := self._look(path))]
            # last: a file whose stamp is not noted is hashed once more at the next start, and that is all
            self._states.set_stamps(scan.stamps.items())
            unreported = [path for path, state in states.items() if not state.is_reported and path in scan.standing]
            for path in unreported:
                self._states.set_reported(path, True)
            mentioned = {change.path for change in reported}
            return reported + [self._change("modified", path) for path in unreported if path not in mentioned]

    def changed(self) -> list[str]:
        """Return the tracked paths whose stat tells that they may not be as last seen; for a rescan."""
        with self._transactions.commit_lock():
            self._transactions.finish_pending()  # a journal that git took back makes every file one to be looked at
        states, unkept = self._states.all(), self._states.all_hash_only()
        paths, standing = [], set()
        for path, info in self._files():
            standing.add(path)
            is_same = states[path].stamp == stamp_of(info) if path in states else unkept.get(path) == size_stamp(info)
            if not is_same:
                paths.append(path)
        return paths + [path for path, state in states.items() if path not in standing and not state.is_held]

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        for entry in self._tree.walk(self._tree.inbox, self._tree.memory, self._tree.system):
            path = self._tree.relative(entry.path)
            if self._tree.is_tracked(path):
                try:
                    yield path, entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue

    def _scan(self, states: Mapping[str, FileState]) -> _Scan:
        scan, newest = _Scan(), time.time_ns() - _STAMP_AGE_NS  # compared with file times: the system's own clock
        for path, info in self._files():
            scan.standing.add(path)
            state, stamp = states.get(path), stamp_of(info)
            if info.st_size > MAX_BYTES or (state is not None and state.stamp == stamp):
                continue
            try:
                content = read_bytes(self._tree.absolute(path))
            except OSError:
                continue  # nobody lets us read it: it counts as it was known, and keeps nothing else waiting
            if content is None:
                continue
            if self._transactions.is_hash_only(path, content):
                scan.hidden.append(path)
                continue
            if state is None or state.hash != content_hash(content):
                scan.texts[path] = content
            if max(info.st_mtime_ns, info.st_ctime_ns) < newest:
                scan.stamps[path] = stamp
        return scan

    def _keep_texts(self, texts: Collection[bytes]) -> None:
        """Make blobs of many texts and bring them to the disk at once: a line in the write-ahead file has no room."""
        blobs = self._transactions.journal.blobs
        for text in texts:
            blobs.put(text)
        if texts:
            self._transactions.disk.sync_filesystem(blobs.folder)

    def _merge_saves(self, states: Mapping[str, FileState], scan: _Scan) -> list[str]:
        """Merge the stale saves among the texts found; take out those and the ones that do not rest yet."""
        merged: list[str] = []
        self.open_paths = []
        until = self._clock.monotonic() + ADOPT_SECONDS
        for path in [path for path in scan.texts if path in states]:
            content = scan.texts[path]
            if self._clock.monotonic() > until or not self._is_at_rest(states[path], content):
                self.open_paths.append(path)
            elif self.saves.merge_stale(states[path], content):
                self.open_paths.append(path)  # it may have been saved once more in that moment
                merged.append(path)
            else:
                continue
            del scan.texts[path]
            scan.stamps.pop(path, None)
        return merged

    def _is_at_rest(self, state: FileState, content: bytes) -> bool:
        """Return whether a file that changed may be taken at its word now, or is to be looked at again.

        One that was written this very moment and lacks lines may be in the middle of being saved.
        """
        try:
            self._wait_for_rest(state.path, content, content_hash(content))
        except NotRestedError:
            return False
        if age_ns(self._tree.absolute(state.path)) > TORN_NS:
            return True
        former = self.saves.text_of(state.hash)
        return former is None or nonblank_lines(former) <= nonblank_lines(content)

    def _differences(
        self, states: Mapping[str, FileState], scan: _Scan
    ) -> tuple[list[RecordedChange], list[FileChange]]:
        gone = self._gone(states, scan)
        by_hash = {state.hash: state for state in gone}
        changes, reported = [], []
        for path, content in scan.texts.items():
            digest, state = content_hash(content), states.get(path)
            if state is None and (source := by_hash.pop(digest, None)) is not None:
                changes.append(RecordedChange("move", path, digest, digest, source.path))
                reported.append(self._change("moved", path, source.path))
                gone.remove(source)
            elif state is None:
                changes.append(RecordedChange("create", path, None, digest))
                reported.append(self._change("created", path))
            else:
                changes.append(RecordedChange("update", path, state.hash, digest))
                reported.append(self._change("modified", path))
        changes += [self._removed(state) for state in gone]
        reported += [self._change("deleted", state.path) for state in gone]
        return changes, reported

    # deletions

    def confirm_deletions(self) -> list[FileChange]:
        """Record the deletions that were held, of files that are still gone."""
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
            held = self._states.held_deletions()
            gone = [state for state in held if not os.path.lexists(self._tree.absolute(state.path))]
            self._states.set_held([state.path for state in held], False)
            if gone:
                self._transactions.record(NotesDeleted(), [self._removed(state) for state in gone])
            return [self._change("deleted", state.path) for state in gone]

    def _note_deletion(self, state: FileState) -> FileChange | None:
        if state.is_held:
            return None
        if self._tree.kind_of(state.path) in _MEMORIES:
            missing, since = self._missing(), self._clock.monotonic() - MOVE_SECONDS
            # single deletions come one by one, also when a folder goes: those a moment ago count
            if self._is_mass(len(missing) + sum(moment >= since for moment, _, _ in self._vanished)):
                self._hold(missing)
                return None
        self._transactions.record(NoteDeleted(), [self._removed(state)])
        return self._change("deleted", state.path)

    def _gone(self, states: Mapping[str, FileState], scan: _Scan) -> list[FileState]:
        """Return the notes that vanished; too many memories at once are held instead."""
        self._states.set_held(
            [path for path, state in states.items() if state.is_held and path in scan.standing], False
        )
        gone = [state for path, state in states.items() if path not in scan.standing and not state.is_held]
        # a folder that was renamed takes its memories elsewhere: nothing is lost
        moved = {content_hash(content) for path, content in scan.texts.items() if path not in states}
        lost = {s.path for s in gone if self._tree.kind_of(s.path) in _MEMORIES and s.hash not in moved}
        if not self._is_mass(len(lost)):
            return gone
        self._hold(sorted(lost))
        return [state for state in gone if state.path not in lost]

    def _missing(self) -> list[str]:
        """Return the memories that are gone now and not held; counted anew at most once a second."""
        moment, missing = self._counted
        now = self._clock.monotonic()
        if now - moment >= 1:
            missing = [path for path in self._memories() if not os.path.lexists(self._tree.absolute(path))]
            self._counted = (now, missing)
        return missing

    def _memories(self) -> list[str]:
        states = self._states.below(self._tree.layout.memory)
        return [p for p, state in states.items() if not state.is_held and self._tree.kind_of(p) in _MEMORIES]

    def _is_mass(self, count: int) -> bool:
        return count > HELD_COUNT and count > HELD_SHARE * len(self._memories())

    def _hold(self, paths: list[str]) -> None:
        self._counted = (float("-inf"), [])
        self._states.set_held(paths, True)
        event = DeletionsHeld(count=len(paths), paths=tuple(sorted(paths)[:20]))
        self._transactions.record(event, by="kernel")

    def _removed(self, state: FileState) -> RecordedChange:
        """Return the record of a note that is gone, and remember it in case it turns up elsewhere."""
        self._vanished.append((self._clock.monotonic(), state.hash, state.path))
        return RecordedChange("remove", state.path, state.hash, None)

    def _change(self, action: Action, path: str, old_path: str | None = None) -> FileChange:
        return FileChange(action, path, self._tree.kind_of(path), old_path)
