"""Detects what a person did to the tree: file by file as files settle, and the whole tree at a start.

An edit is detected by content alone, never by time, and recorded before anything else happens. The tree is never
rewritten to match the journal. Deletions of many memories at once may be an unmounted drive or a checkout: they are
held until the files come back or a person confirms them.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from brainiac import events
from brainiac.clock import iso
from brainiac.errors import BrainiacError, ConflictError
from brainiac.formats.markdown import CONFLICT
from brainiac.formats.prompt import client_of
from brainiac.storage.files import read_bytes
from brainiac.storage.projection import FileState
from brainiac.storage.saves import TORN_NS, ConcurrentSaves, age_ns, nonblank_lines
from brainiac.storage.transactions import Transactions
from brainiac.tree import Stamp

MAX_BYTES = 5_000_000  # larger files are known by size and time alone; their texts are not kept
REST_SECONDS = 10.0  # short-term memory saved without its headings is accepted after this time
MOVE_SECONDS = 10.0  # a new file with the content of one that vanished within this time was moved
ADOPT_SECONDS = 2.0  # what a start may take to merge saves; the remaining files are looked at one by one
HELD_COUNT, HELD_SHARE = 5, 0.3  # deletions at once are held if they are more, and a greater share of all memories
FOUND = events.kinds_of(events.FoundEvent)  # the kinds of events that record a person's edits
# A file that was written so shortly before it was hashed may be written again with the same times.
_STAMP_AGE_NS = 2_000_000_000
_MEMORIES = frozenset({events.PathKind.MEMORY, events.PathKind.ARCHIVED})
_ACTIONS: dict[str, events.Action] = {"create": "created", "update": "modified", "move": "moved", "remove": "deleted"}
_HEADINGS = (b"## Summary", b"### Goals", b"### Key Facts & Decisions", b"### Tasks", b"## Event Log")


class NotRestedError(BrainiacError):
    """Short-term memory is empty or lacks its headings, as while an editor saves it; look again later.

    Args:
        path: The file.
        again_in_seconds: When to look again.
    """

    def __init__(self, path: str, again_in_seconds: float) -> None:
        self.path, self.again_in_seconds = path, again_in_seconds
        super().__init__(f"{path}: without its headings; looked at again in {again_in_seconds:.0f} s")


@dataclass(slots=True)
class _Scan:
    """The result of a scan of the whole tree.

    Attributes:
        texts: Content by path of the files that are not as last seen.
        hash_only: Paths of hash-only files.
        stamps: New stamps by path, of files that were written long enough ago.
        existing: All tracked paths that exist.
    """

    texts: dict[str, bytes] = field(default_factory=dict)
    hash_only: list[str] = field(default_factory=list)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    existing: set[str] = field(default_factory=set)


class ExternalEdits:
    """Compares the tracked files with their last seen states and records what a person changed.

    Args:
        transactions: Records the edits.

    Attributes:
        saves: Merges what a person saved without having seen our last writes.
        open_paths: Paths that the last `adopt` left to be looked at again: being saved at that moment, or just merged.
        conflicted: Paths of the files that `adopt` read and that may have conflict markers.
    """

    def __init__(self, transactions: Transactions) -> None:
        self._transactions, self._tree, self._clock = transactions, transactions.tree, transactions.clock
        self._states = transactions.file_states
        self.saves = ConcurrentSaves(transactions, self.notice)
        self.open_paths: list[str] = []
        self.conflicted: list[str] = []
        # hash of the present short-term memory where it lacks headings, and when it was first seen so
        self._headless_hash, self._headless_since = "", 0.0
        # the removed files, oldest first: when (monotonic), content hash, path
        self._vanished: deque[tuple[float, str, str]] = deque(maxlen=1000)
        self._missing: list[str] = []  # the missing memories, but those whose deletion is held
        self._missing_since = float("-inf")  # when they were looked up

    def hash_of(self, relative: str) -> str | None:
        """Return the content hash of a file as last seen; None where it is not tracked or was never seen."""
        state = self._states.get(relative)
        return state.hash if state else None

    def present_hashes(self, digests: Iterable[str]) -> set[str]:
        """Return those of some content hashes that a tracked file has, as last seen; not one that is missing."""
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
        return {digest for digest in digests if any(not state.is_held for state in self._states.with_hash(digest))}

    def held_deletions(self) -> list[str]:
        """Return the paths of the files whose deletion waits to be confirmed."""
        return [state.path for state in self._states.held_deletions()]

    # one file

    def note_change(self, relative: str, action: events.Action = "modified") -> events.FileChange | None:
        """Look at one file that settled: record a person's edit, or merge a stale save.

        Args:
            relative: The file.
            action: What the watcher saw happen to it. It is returned for an edit that a commit has recorded already.

        Returns:
            The change; None for our own writes, for changes that were returned before, and for a held deletion.

        Raises:
            NotRestedError: Short-term memory is in the middle of being saved; call again when the error says.
        """
        if self._tree.kind_of(relative) in (events.PathKind.IGNORED, events.PathKind.JOURNAL):
            return None
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
            change = self._record_path(relative)
            state = self._states.get(relative)
            if change is None and state is not None and not os.path.lexists(self._tree.absolute(relative)):
                return self._note_deletion(state)
            if state is not None and not state.is_reported:  # a commit saw and recorded an edit before
                self._states.note("is_told", {relative: True})
                return change or self._change(action, relative)
            return change

    def notice(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Record a person's edits of these (relative) paths before a commit changes them; needs the commit lock.

        Returns:
            Content by path as it is recorded now; None where there is no file.

        Raises:
            ConflictError: A file is being saved at this moment.
        """
        contents: dict[str, bytes | None] = {}
        for relative in paths:
            is_tracked = self._tree.is_tracked(relative)
            try:
                # recorded here, the edit is still to be reported when the watcher looks at the file
                if is_tracked and self._record_path(relative) is not None:
                    self._states.note("is_told", {relative: False})
            except NotRestedError as error:
                raise ConflictError([relative]) from error
            content = contents[relative] = read_bytes(self._tree.absolute(relative))
            if not is_tracked or content is None or len(content) > MAX_BYTES:
                continue
            is_new = self.hash_of(relative) != events.content_hash(content)
            if is_new and not self._transactions.is_hash_only(relative, content):  # saved once more since
                raise ConflictError([relative])
        return contents

    def _record_path(self, path: str) -> events.FileChange | None:
        """Record the present content of a path; return the change, None where nothing is new.

        That a file with a last seen text is gone is not recorded here but by `_note_deletion`.
        """
        try:
            info = os.lstat(self._tree.absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            return self._record_unkept(path, None, is_read=False)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES or not self._tree.is_tracked(path):
            change, state = self._record_unkept(path, Stamp.of(info).written, is_read=False), self._states.get(path)
            if change is not None and state is not None and info.st_size > MAX_BYTES:
                self.saves.name_too_large(state)
            return change
        content = self.saves.at_rest(path, self._tree.absolute(path))
        if content is None:
            return None
        if self._transactions.is_hash_only(path, content):
            return self._record_unkept(path, events.content_hash(content), is_read=True)
        return self._record_content(path, content)

    def _record_content(self, path: str, content: bytes) -> events.FileChange | None:
        """Record or merge a file's content; return the change, None where the content is the last seen one."""
        digest, state = events.content_hash(content), self._states.get(path)
        if state is not None and state.hash == digest:
            if state.is_held:  # the file is there again
                self._states.note("is_held", {path: False})
            return None
        self._wait_for_rest(path, content, digest)
        self._states.set_hash_only(path, None)  # it may have been off the record until now
        if state is None:
            return self._record_new(path, digest, {digest: content})
        if not self.saves.merge_stale(state, content):
            change = events.RecordedChange("update", path, state.hash, digest)
            self._transactions.record(events.NoteEdited(written=self._written([change])), [change], {digest: content})
        return self._change("modified", path)

    def _record_new(self, path: str, digest: str, texts: Mapping[str, bytes]) -> events.FileChange:
        """Record a file that was not there before; where a file with the same content is missing, it was moved."""
        for state in self._states.with_hash(digest):
            if not self._tree.absolute(state.path).exists():
                change = events.RecordedChange("move", path, digest, digest, state.path)
                self._transactions.record(events.NoteMoved(), [change], texts)
                return self._change("moved", path, state.path)
        is_prompt = self._tree.kind_of(path) in (events.PathKind.PROMPT, events.PathKind.CAPTURE)
        client = client_of(texts[digest]) if is_prompt else ""
        change = events.RecordedChange("create", path, None, digest)
        self._transactions.record(events.NoteEdited(client=client, written=self._written([change])), [change], texts)
        since = self._clock.monotonic() - MOVE_SECONDS
        # where the old path settled first, its deletion is in the journal already: only the returned change is a move
        for vanished in reversed(self._vanished):
            if vanished[0] >= since and vanished[1] == digest:
                self._vanished.remove(vanished)
                return self._change("moved", path, vanished[2])
        return self._change("created", path)

    def _wait_for_rest(self, path: str, content: bytes, digest: str) -> None:
        """Raise `NotRestedError` if short-term memory lacks headings, until it has been unchanged for ten seconds."""
        if self._tree.kind_of(path) is not events.PathKind.SHORT_TERM:
            return
        if all(heading in content for heading in _HEADINGS):
            self._headless_hash = ""
            return
        if self._headless_hash != digest:
            self._headless_hash, self._headless_since = digest, self._clock.monotonic()
        rest = self._headless_since + REST_SECONDS - self._clock.monotonic()
        # a file that was written long ago need not rest, though it is seen for the first time
        if rest > 0 and age_ns(self._tree.absolute(path)) < REST_SECONDS * 1e9:
            raise NotRestedError(path, rest)

    def _record_unkept(self, path: str, mark: str | None, *, is_read: bool) -> events.FileChange | None:
        """Store by what a file is known whose text is not kept; return the change if that is new.

        Args:
            path: The file.
            mark: Its content hash, by which a purge can find it; of one that is not read (too large, no regular file)
                its `Stamp.written`; None where there is no file.
            is_read: Whether it was read. Where its former text was kept, the journal is told that this one is gone.
        """
        former, state = self._states.hash_only(path), self._states.get(path)
        if former == mark:
            return None
        if is_read:
            changes = [] if state is None else [events.RecordedChange("observe", path, state.hash, None)]
            self._transactions.record(events.NoteOffRecord(off_record=(str(mark),)), changes)
        self._states.set_hash_only(path, mark)
        is_new = former is None and not (is_read and state)
        return self._change("deleted" if mark is None else "created" if is_new else "modified", path)

    # the whole tree

    def adopt(self, *, is_anew: bool = False) -> list[events.FileChange]:
        """Compare the whole tree with its last seen state and record all changes in one event.

        The first time every file is new. Stale saves are merged as while running. Files that are being saved at this
        moment are named in `open_paths`, and nothing of them is recorded.

        Args:
            is_anew: Whether to treat the tree as if it were seen for the first time, whatever the journal has.

        Returns:
            The changes since the tree was last seen; a move is recognized by equal content.
        """
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
            self._states.check()
            states = {} if is_anew else self._states.all()
            # a command may have committed before: the rest of the tree is no edit, which `undo` could take back
            is_first = is_anew or next(self._transactions.journal.events(kinds={events.TreeAdopted}), None) is None
            scan = self._scan(states)
            merged = self._merge_saves(states, scan)
            differences = self._differences(states, scan)
            if differences or is_first:
                # blobs, synced at once: the record of a commit cannot hold so many texts
                blobs = self._transactions.journal.blobs
                for text in scan.texts.values():
                    blobs.put(text)
                if scan.texts:
                    self._transactions.disk.sync_filesystem(blobs.folder)
                if is_first:  # a creation for every tracked file as it stands, whether a commit has recorded it or not
                    hashes = {path: state.hash for path, state in self._states.all().items() if path in scan.existing}
                    hashes |= {path: events.content_hash(content) for path, content in scan.texts.items()}
                    whole = [events.RecordedChange("create", path, None, digest) for path, digest in hashes.items()]
                    self._transactions.record(events.TreeAdopted(), whole)
                else:
                    self._transactions.record(events.NotesEdited(written=self._written(differences)), differences)
            changes = [self._change(_ACTIONS[change.op], change.path, change.source) for change in differences]
            changes += [self._change("modified", path) for path in merged]
            changes += [change for path in scan.hash_only if (change := self._record_path(path))]
            # last, since a crash before it costs no more than hashing these files again at the next start
            self._states.note("stamp", scan.stamps)
            paths = {change.path for change in changes}
            # edits that a commit recorded shortly before the last daemon ended
            unreported = [path for path, state in states.items() if not state.is_reported and path in scan.existing]
            self._states.note("is_told", dict.fromkeys(unreported, True))
            return changes + [self._change("modified", path) for path in unreported if path not in paths]

    def _written(self, changes: Iterable[events.RecordedChange]) -> dict[str, str]:
        """Return when the changed memories were written, by the times of their files, ISO 8601 by path."""
        written = {}
        for change in changes:
            if change.op in ("create", "update") and self._tree.kind_of(change.path) is events.PathKind.MEMORY:
                with suppress(OSError):  # gone in this moment
                    seconds = os.stat(self._tree.absolute(change.path)).st_mtime
                    written[change.path] = iso(datetime.fromtimestamp(seconds, UTC))
        return written

    def restamped(self) -> list[str]:
        """Return the tracked paths whose size, times or inode differ from when they were last read.

        A file with conflict markers is always among them, since it gets no stamp. Nothing is locked or written.
        """
        stamps = {path: state.stamp for path, state in self._states.all().items()}
        hash_only = self._states.all_hash_only()  # of large files these are stamps
        return [
            path
            for path, stamp in self._tree.tracked().items()
            if (stamps[path] != str(stamp) if path in stamps else hash_only.get(path) != stamp.written)
        ]

    def _scan(self, states: Mapping[str, FileState]) -> _Scan:
        """Read the files of the tree whose stamps differ from their last seen states; set `conflicted`."""
        self.conflicted = []
        scan = _Scan()
        for path, stamp in self._tree.tracked().items():
            scan.existing.add(path)
            state = states.get(path)
            if stamp.size > MAX_BYTES or (state is not None and state.stamp == str(stamp)):
                continue
            stamped_until, content = time.time_ns() - _STAMP_AGE_NS, None  # file times are the system clock's
            with suppress(OSError):  # no permission: it counts as unchanged, and the others are adopted
                content = read_bytes(self._tree.absolute(path))
            if content is None:
                continue
            if CONFLICT in content:
                self.conflicted.append(path)
            if self._transactions.is_hash_only(path, content):
                scan.hash_only.append(path)
                continue
            if state is None or state.hash != events.content_hash(content):
                scan.texts[path] = content
            # a file with conflict markers gets no stamp, so that `restamped` finds it without reading all files
            if max(stamp.mtime_ns, stamp.ctime_ns) < stamped_until and CONFLICT not in content:
                scan.stamps[path] = stamp
        return scan

    def _merge_saves(self, states: Mapping[str, FileState], scan: _Scan) -> list[str]:
        """Merge the changed files whose editor had not loaded our last write (stale saves), and return their paths.

        They are taken out of the scan, which keeps the edits that are only to be recorded, and put into `open_paths`.
        So are files that are still being saved, and, when `ADOPT_SECONDS` are over, all that were not looked at.
        """
        merged: list[str] = []
        self.open_paths = []
        deadline = self._clock.monotonic() + ADOPT_SECONDS
        for path in [path for path in scan.texts if path in states]:
            state, content = states[path], scan.texts[path]
            is_at_rest = self._clock.monotonic() <= deadline
            try:
                self._wait_for_rest(path, content, events.content_hash(content))
            except NotRestedError:
                is_at_rest = False
            # one that was just written and lacks former lines may still be being saved
            if is_at_rest and age_ns(self._tree.absolute(path)) <= TORN_NS:
                former = self._transactions.kept_text(state.hash)
                is_at_rest = former is None or nonblank_lines(former) <= nonblank_lines(content)
            is_merged = is_at_rest and self.saves.merge_stale(state, content)
            if is_merged:
                merged.append(path)
            if is_merged or not is_at_rest:
                self.open_paths.append(path)  # a merged file may have been saved once more in that moment
                del scan.texts[path]
                scan.stamps.pop(path, None)
        return merged

    def _differences(self, states: Mapping[str, FileState], scan: _Scan) -> list[events.RecordedChange]:
        """Return the changes from the last seen states to the files of a scan; an equal text elsewhere was moved.

        Where too many memories are missing at once, their deletions are held, and they are left out. A held file that
        is there again is not held any more.
        """
        back = [path for path, state in states.items() if state.is_held and path in scan.existing]
        self._states.note("is_held", dict.fromkeys(back, False))
        missing = [state for path, state in states.items() if path not in scan.existing and not state.is_held]
        # memories of a renamed folder are elsewhere with the same content: they are not lost
        moved = {events.content_hash(content) for path, content in scan.texts.items() if path not in states}
        memories = (state for state in missing if self._tree.kind_of(state.path) in _MEMORIES)
        lost = {state.path for state in memories if state.hash not in moved}
        if self._are_too_many(lost):
            self._hold_deletions(sorted(lost))
            missing = [state for state in missing if state.path not in lost]
        by_hash = {state.hash: state for state in missing}
        changes: list[events.RecordedChange] = []
        for path, content in scan.texts.items():
            digest, state = events.content_hash(content), states.get(path)
            if state is not None:
                changes.append(events.RecordedChange("update", path, state.hash, digest))
            elif (source := by_hash.pop(digest, None)) is not None:
                changes.append(events.RecordedChange("move", path, digest, digest, source.path))
                missing.remove(source)
            else:
                changes.append(events.RecordedChange("create", path, None, digest))
        return changes + [self._removal(state) for state in missing]

    # deletions

    def confirm_deletions(self) -> list[events.FileChange]:
        """Record the held deletions, which a person confirmed; files that are back are not held any more."""
        with self._transactions.commit_lock():
            self._transactions.finish_pending()
            held = self._states.held_deletions()
            missing = [state for state in held if not os.path.lexists(self._tree.absolute(state.path))]
            self._states.note("is_held", dict.fromkeys([state.path for state in held], False))
            if missing:
                self._transactions.record(events.NoteDeleted(), [self._removal(state) for state in missing])
            return [self._change("deleted", state.path) for state in missing]

    def _note_deletion(self, state: FileState) -> events.FileChange | None:
        """Record that a file was deleted; where many memories vanish at once, hold the deletion and return None."""
        if state.is_held:
            return None
        if self._tree.kind_of(state.path) in _MEMORIES:
            now = self._clock.monotonic()
            if now - self._missing_since >= 1:  # looked up at most once a second
                self._missing = [path for path in self._memories() if not os.path.lexists(self._tree.absolute(path))]
                self._missing_since = now
            # the deletion of a folder arrives file by file, so recently vanished memories count too
            recent = {path for moment, _, path in self._vanished if moment >= now - MOVE_SECONDS}
            gone = {path for path in recent if self._tree.kind_of(path) in _MEMORIES}
            if self._are_too_many(gone.union(self._missing)):
                self._hold_deletions(sorted({*self._missing, state.path}))
                return None
        self._transactions.record(events.NoteDeleted(), [self._removal(state)])
        return self._change("deleted", state.path)

    def _memories(self) -> list[str]:
        """Return the paths of memories as last seen, archived ones included; not those whose deletion is held."""
        states = self._states.all()
        return [p for p, state in states.items() if not state.is_held and self._tree.kind_of(p) in _MEMORIES]

    def _are_too_many(self, gone: set[str]) -> bool:
        """Return whether the deletions of these memories are to be held: more than 5, and more than 30 % of all."""
        return len(gone) > HELD_COUNT and len(gone) > HELD_SHARE * len(gone.union(self._memories()))

    def _hold_deletions(self, paths: list[str]) -> None:
        """Mark the deletions of these paths as held, and record it."""
        self._missing_since = float("-inf")
        self._states.note("is_held", dict.fromkeys(paths, True))
        event = events.DeletionsHeld(count=len(paths), paths=tuple(sorted(paths)[:20]))
        self._transactions.record(event, by="kernel")

    def _removal(self, state: FileState) -> events.RecordedChange:
        """Return the recorded removal of a file, and remember its hash in case the file appears elsewhere."""
        self._vanished.append((self._clock.monotonic(), state.hash, state.path))
        return events.RecordedChange("remove", state.path, state.hash, None)

    def _change(self, action: events.Action, path: str, old_path: str | None = None) -> events.FileChange:
        """Return the change to be reported."""
        return events.FileChange(action, path, self._tree.kind_of(path), old_path)
