"""Merges saves that were made without having seen our last writes; `versions.merge` does it.

There are two kinds of concurrent saves, and none is overwritten. A stale save comes from an editor that loaded the file
before our last writes. A displaced save was made at the moment when our write swapped the file, or up to ten seconds
later into the old file, by an editor that still had it open. See docs/decisions/saves-and-merges.md.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from brainiac.clock import parse_iso
from brainiac.errors import ConflictError
from brainiac.events import Change, Event, NoteMerged, PathKind, content_hash, create, update
from brainiac.storage.files import read_bytes
from brainiac.storage.projection import FileState
from brainiac.storage.transactions import Intent, Step, Transactions
from brainiac.storage.versions import Difference, Merge, differences_change, merge
from brainiac.tree import Tree, original_of, possible_original

MAX_BYTES = 2_000_000  # merging takes seconds beyond this; such files are left as the person saved them
REST_SECONDS = 10  # an editor may hold a file open that we replaced, and write into it, for so long
TORN_NS = 200_000_000  # an empty or shortened file counts as fully saved after this time
TORN_VERSIONS = 4  # a shortened file is compared with the beginnings of so many last versions
# A save that differs from a version by more than this share of the lines of both, and more lines, was not made from it.
UNLIKE, UNLIKE_LINES = 1 / 3, 20
_WE = "you and Brainiac"
_TOO_LARGE = Difference("", "it is too large to be merged, and your save stands; what else was written is kept")
_UNQUOTED = Difference("", "both stand in it")
# what a version is known by: the hashes of its lines, and of the ids in it
_Marks: TypeAlias = tuple[frozenset[int], frozenset[int]]
_ID = re.compile(rb"(?<![^ \t])\^[A-Za-z0-9-]+(?=[ \t\r]*$)|<!-- \w+: \S+ -->", re.MULTILINE)


class ConcurrentSaves:
    """Merges stale and displaced saves; all calls need the commit lock.

    Args:
        transactions: Carries out the merges, and has the list of swapped-out files.
        notice: Records a person's edits at (relative) paths, and returns the files' contents by path.
    """

    def __init__(
        self, transactions: Transactions, notice: Callable[[Sequence[str]], Mapping[str, bytes | None]]
    ) -> None:
        self._transactions, self._notice = transactions, notice
        self._tree, self._states = transactions.tree, transactions.file_states
        self._write_ahead = transactions.write_ahead
        # the versions of some files: reading all texts for each save would take longer than the save
        self._marks_of = lru_cache(maxsize=512)(
            lambda digest: None if (text := self._transactions.kept_text(digest)) is None else _marks_of(text)
        )

    def merge_stale(self, state: FileState, save: bytes) -> bool:
        """Merge a person's save with our last version if the editor had loaded an earlier one; return whether it did.

        Args:
            state: The file before the save.
            save: The file's content now.
        """
        base = self._base_of(state.versions, save)
        # where a copy lies beside the file, a sync tool put another device's version there: no editor's save
        if base is None or _has_copy(self._tree, state.path, state.hash):
            return False
        kind, ours = self._tree.kind_of(state.path), self._transactions.text_of(state.hash)
        former = self._transactions.kept_text(base)
        if former is not None:
            lines, saved = nonblank_lines(former), nonblank_lines(save)
            if len(lines ^ saved) > max(UNLIKE_LINES, UNLIKE * (len(lines) + len(saved))):
                former = None  # the true base is not known any more: nothing counts as removed
        merged = merge(kind, former, ours, save, prefer="theirs")
        if merged.text == save:  # an edit like any other, made in sight of ours
            return False
        changes = [update(state.path, save, merged.text)]
        with suppress(ConflictError):  # the person saved once more; that save is looked at next
            event = self._run(NoteMerged(stale=state.hash), changes, state.path, base, save, merged, _WE)
            if "displaced" in event.data:  # writing the merged text displaced a still newer save
                self.check_displaced()
        return True

    def name_too_large(self, state: FileState) -> None:
        """Say in `memory/review.md` that a save stands alone, since the file is too large to be merged with ours."""
        merged = Merge(b"", (_TOO_LARGE,))
        if state.is_ours and (changes := self._review_changes(state.path, merged, _WE)):
            with suppress(ConflictError):
                self._transactions.run_merge(NoteMerged(conflict=state.path), changes, state.path, None, None)

    def _run(
        self,
        event: NoteMerged,
        changes: list[Change],
        path: str,
        base: str | None,
        save: bytes,
        merged: Merge,
        who: str,
    ) -> Event:
        """Commit a merge, with a line in `memory/review.md` for each text that stands beside another.

        Args:
            event: What happens.
            changes: Those of the file.
            path: The file.
            base: Hash of the version that the save was made from.
            save: The save.
            merged: What it was merged to.
            who: Who changed the same, for a person.

        Raises:
            ConflictError: A file moved meanwhile; nothing was changed.
        """
        if merged.differences:
            event, changes = replace(event, conflict=path), [*changes, *self._review_changes(path, merged, who)]
        return self._transactions.run_merge(event, changes, path, base, save)

    def _base_of(self, versions: Sequence[str], save: bytes) -> str | None:
        """Return the hash of the version that an editor had loaded when it made a save: the last one it has seen.

        It has seen a version where it shows something of it that is in no version before: an id, which nobody types by
        chance, or a line that still stands. The first version counts as seen.

        Args:
            versions: `FileState.versions`; the last one was the file's content before the save.
            save: The content that a person saved.

        Returns:
            None where it has seen the last one or has nothing of the one it should have been made from, and where a
            person put an earlier text back (`git checkout`).
        """
        trail = [(digest, marks) for digest in versions if (marks := self._marks_of(digest)) is not None]
        if len(trail) < 2 or trail[-1][0] != versions[-1]:
            return None
        (saved, saved_ids), (present, _) = _marks_of(save), trail[-1][1]
        (seen, (base, base_ids)), *later = trail
        lines, ids = set(base), set(base_ids)
        for digest, (its_lines, its_ids) in later:
            if saved & present & (its_lines - lines) or saved_ids & (its_ids - ids):
                seen, base = digest, its_lines
            lines |= its_lines
            ids |= its_ids
        if base == present or base.isdisjoint(saved):
            return None
        journal, digest = self._transactions.journal, content_hash(save)
        return None if digest in journal.blobs and journal.has_written(digest) else seen

    def looks_torn(self, path: str, content: bytes) -> bool:
        """Return whether a file may be half written: it is empty, or equals the beginning of one of its last versions.

        False for a file whose content is the last seen one.
        """
        state = self._states.get(path)
        if state is None or state.hash == content_hash(content):
            return False
        # the editor may be writing a version from before our last few writes
        texts = map(self._transactions.kept_text, state.versions[-TORN_VERSIONS:])
        return not content or any(text is not None and text.startswith(content) for text in texts)

    def at_rest(self, path: str, file: Path) -> bytes | None:
        """Return a file's content; wait a moment where an editor seems to be in the middle of writing it."""
        former, since = None, time.monotonic_ns()
        while (content := read_bytes(file)) is not None and self.looks_torn(path, content):
            if content != former:
                former, since = content, time.monotonic_ns()
            # a file may be dated in the future
            if max(age_ns(file), time.monotonic_ns() - since) > TORN_NS:
                break
            time.sleep(0.002)
        return content

    def check_displaced(self) -> None:
        """Merge saves that were made into displaced files; remove displaced files after ten unchanged seconds.

        A displaced file with another content than our commit expected has a person's save in it. It is merged into
        the file, or put in its place where there is none any more. Where both changed the same lines,
        `memory/review.md` says so. The journal keeps all texts.
        """
        for intent, step, file in self._transactions.displaced_files():
            content = read_bytes(file)
            if content is None:
                continue
            # one second more, since an event's time has no fractions
            due_at = parse_iso(intent.event.at) + timedelta(seconds=REST_SECONDS + 1)
            is_due = self._transactions.clock.now() >= due_at
            if content_hash(content) != self._write_ahead.base_of(step):
                # wait a moment where it lacks lines, since it may be half saved
                base_lines = nonblank_lines(self._transactions.kept_text(self._write_ahead.base_of(step)) or b"")
                while base_lines - nonblank_lines(content) and 0 <= age_ns(file) <= TORN_NS:
                    time.sleep(0.01)
                    content = read_bytes(file) or content
                # the next check reads it again; once it is due, it is merged as it is
                if not is_due and self.looks_torn(step.path, content):
                    continue
                try:
                    self._merge_displaced(intent, step, self._notice([step.path])[step.path], content)
                except ConflictError:  # the file changed meanwhile: the next check tries again
                    continue
                self._write_ahead.note_merged(step, content_hash(content))
            # read once more, in case an editor has written in the meantime
            if is_due and content == read_bytes(file):
                self._transactions.disk.unlink(file)

    def _merge_displaced(self, intent: Intent, step: Step, present: bytes | None, save: bytes) -> None:
        """Merge a displaced save into the present file, or make the file of it where there is none any more.

        Where both changed the same lines, the person's win over ours, and their later ones over their earlier ones.
        """
        path = step.path
        event = NoteMerged(displaced_by=intent.event.id, save=content_hash(save))
        base = self._write_ahead.base_of(step)
        if present is None:
            self._transactions.run_merge(event, [create(path, save)], path, base, save)
            return
        # it is what was last merged from the swapped-out file; else what the save has seen, at most what we swapped out
        if base == step.before:
            base = self._base_of(step.versions, save) or base
        self.merge_later(event, path, base, present, save)

    def merge_later(self, event: NoteMerged, path: str, base: str | None, present: bytes, save: bytes) -> None:
        """Merge a person's save into a file that somebody changed since they loaded it.

        Args:
            event: What happens; that it names a `stale` version says that the save is the later of the two.
            path: The file.
            base: Hash of the version that the save was made from.
            present: The file as it stands, and is recorded.
            save: The save.

        Raises:
            ConflictError: The file moved meanwhile; nothing was changed.
        """
        kind, state = self._tree.kind_of(path), self._states.get(path)
        former = self._transactions.kept_text(base) or b""
        # where it is not ours, the person saved twice, and the present file is the later save
        is_ours = state is not None and state.is_ours and state.hash == content_hash(present)
        is_later = is_ours or bool(event.stale)
        if kind is PathKind.ACCESS_LOG and save.startswith(former):
            merged = Merge(present + save[len(former) :])  # the added lines, though the log may be cleared
        elif max(len(former), len(present), len(save)) > MAX_BYTES:
            merged = Merge(save if is_later else present, (_TOO_LARGE,))
        else:
            merged = merge(kind, former, present, save, prefer="theirs" if is_later else "ours")
        changes = [update(path, present, merged.text)] if merged.text != present else []
        self._run(event, changes, path, base, save, merged, _WE if is_ours else "two saves of yours")

    def _review_changes(self, path: str, merged: Merge, who: str) -> list[Change]:
        """Return the change that names in `memory/review.md` what stands beside another text; none where it does."""
        if self._transactions.is_hash_only(path, merged.text):  # its words are kept nowhere else
            merged = replace(merged, differences=(_UNQUOTED,))
        return differences_change(self._tree, path, merged, who)


def _marks_of(text: bytes) -> _Marks:
    """Return what a version is known by."""
    return frozenset(map(hash, nonblank_lines(text))), frozenset(map(hash, _ID.findall(text)))


def age_ns(path: Path) -> int:
    """Return how long ago a file was written, in nanoseconds, by its modification time; 0 where there is none."""
    try:
        return time.time_ns() - os.stat(path).st_mtime_ns  # file times are the system clock's
    except OSError:
        return 0


def nonblank_lines(text: bytes) -> set[bytes]:
    """Return the lines of a text that are not blank, without the white space around them."""
    return {line.strip() for line in text.split(b"\n")} - {b""}


def _has_copy(tree: Tree, path: str, digest: str) -> bool:
    """Return whether a conflict copy of a file stands beside it that has a certain content.

    Args:
        tree: The brain's folder.
        path: The file, relative.
        digest: The content hash.
    """
    file = tree.absolute(path)
    with suppress(OSError):
        for _ in range(2):  # once more where a copy got its mark in this moment
            is_gone = False
            for beside in file.parent.iterdir():
                if original_of(beside.name) == file.name or possible_original(beside.name, {file.name}):
                    content = read_bytes(beside)
                    is_gone |= content is None
                    if content is not None and content_hash(content) == digest:
                        return True
            if not is_gone:
                break
    return False
