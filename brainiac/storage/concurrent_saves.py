"""Merges saves that a person made without having seen our last writes; none is overwritten.

There are two kinds. A stale save comes from an editor that loaded the file before our last writes. A displaced save
was made at the moment when our write swapped the file, or up to ten seconds later into the old file, by an editor that
still had it open. See docs/decisions/saves-and-merges.md.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from brainiac.clock import parse_iso
from brainiac.errors import BlobError, ConflictError
from brainiac.events import Change, NoteMerged, PathKind, content_hash, create, update
from brainiac.storage.copies import has_copy
from brainiac.storage.file_state import PERSONS, FileState
from brainiac.storage.files import read_bytes
from brainiac.storage.merge import common_lines, is_stale, line_distance, merge_lines
from brainiac.storage.transactions import Transactions
from brainiac.storage.write_ahead import Intent, Step

REST_SECONDS = 10  # an editor may hold a file open that we replaced, and write into it, for so long
TORN_NS = 200_000_000  # an empty or shortened file counts as fully saved after this time
# A save with lines that are in none of three consecutive versions was made after them: no older base is looked for.
MAX_OLDER_VERSIONS = 3
# A save that differs from a version by more than this share of the lines of both, and more lines, was not made from it.
UNLIKE, UNLIKE_LINES = 1 / 3, 20


class ConcurrentSaves:
    """Merges stale and displaced saves; all calls need the commit lock.

    Args:
        transactions: Carries out the merges, and has the list of swapped-out files.
        notice: Records a person's edits at (relative) paths, and returns the files' contents.
    """

    def __init__(
        self, transactions: Transactions, notice: Callable[[Sequence[str]], Mapping[str, bytes | None]]
    ) -> None:
        self._transactions, self._notice = transactions, notice
        self._tree, self._states = transactions.tree, transactions.file_states
        self._write_ahead = transactions.write_ahead

    def merge_stale(self, state: FileState, save: bytes) -> bool:
        """Merge a person's save with our last version if the editor had loaded an earlier one; return whether it did.

        Args:
            state: The file before the save.
            save: The file's content now.
        """
        base = self._base_of(state.versions, save)
        # where a copy lies beside the file, a sync tool put another device's version there: no editor's save
        if base is None or has_copy(self._tree, state.path, state.hash):
            return False
        base_text, ours = self._transactions.text_of(base), self._transactions.text_of(state.hash)
        if line_distance(base_text, save) > max(UNLIKE_LINES, UNLIKE * (base_text.count(b"\n") + save.count(b"\n"))):
            base_text = common_lines(ours, save)  # the true base is not known any more: no line is removed
        merged = merge_lines(base_text, ours, save, is_ours_first=False)
        if merged is None:
            return False
        changes = [update(state.path, save, merged[0])] if merged[0] != save else []
        with contextlib.suppress(ConflictError):  # the person saved once more; that save is looked at next
            event = self._transactions.run_merge(NoteMerged(stale=state.hash), changes, state.path, base, save)
            if "displaced" in event.data:
                self.check_displaced()
        return True

    def _base_of(self, versions: Sequence[str], save: bytes) -> str | None:
        """Return the hash of the earlier version that an editor had loaded when it made a save.

        None where the editor had loaded the last version, or where a person put an earlier text back (`git checkout`).

        Args:
            versions: `FileState.versions`; the last one was the file's content before the save.
            save: The content that a person saved.
        """
        ours = self.text_of(versions[-1].removeprefix(PERSONS))
        if ours is None:
            return None
        bases = [base for base in self._possible_bases(versions, ours, save) if is_stale(base[1], ours, save)]
        nearest = min(reversed(bases), key=lambda base: line_distance(base[1], save), default=None)
        # asked last, since it searches the whole journal
        return None if nearest is None or self._is_earlier_text(save) else nearest[0]

    def _is_earlier_text(self, text: bytes) -> bool:
        """Return whether a text was the content of some file before, by this device's journal."""
        journal, digest = self._transactions.journal, content_hash(text)
        return digest in journal.blobs and journal.has_written(digest)

    def _possible_bases(self, versions: Sequence[str], ours: bytes, save: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield hash and text of the versions, newest first, that an editor may have loaded before it made a save.

        Two things hold of such a version. A process changed it later, and that change is still in the present text
        (`ours`). The save has no line that was added after it; otherwise the editor had loaded a later version.
        """
        saved_lines, has_our_change, older_versions = nonblank_lines(save), False, 0
        present_lines = later_lines = nonblank_lines(ours)
        reach = 2 * line_distance(ours, save)  # a version further from our text is further from the save, too
        for version, later_version in zip(reversed(versions[:-1]), reversed(versions), strict=False):
            digest = version.removeprefix(PERSONS)
            text = self.text_of(digest)
            if text is None:
                continue
            lines = nonblank_lines(text)
            if not later_version.startswith(PERSONS):  # a process made it: its added and removed lines are ours
                added, removed = later_lines - lines, lines - later_lines
                has_our_change |= bool(added & present_lines or removed - present_lines)
            later_lines = lines
            has_later_line = not (present_lines - lines).isdisjoint(saved_lines)
            older_versions = older_versions + 1 if has_later_line else 0
            if older_versions >= MAX_OLDER_VERSIONS and line_distance(ours, text) > reach:
                return  # going on would find versions that are alike by chance
            if has_our_change and not has_later_line:
                yield digest, text

    def looks_torn(self, path: str, content: bytes) -> bool:
        """Return whether a file may be half written: it is empty, or equals the beginning of one of its last versions.

        False for a file whose content is the last seen one.
        """
        state = self._states.get(path)
        if state is None or state.hash == content_hash(content):
            return False
        # the editor may be writing a version from before our last few writes
        texts = (self.text_of(digest.removeprefix(PERSONS)) for digest in state.versions[-4:])
        return not content or any(text is not None and text.startswith(content) for text in texts)

    def check_displaced(self) -> list[str]:
        """Merge saves that were made into displaced files; remove displaced files after ten unchanged seconds.

        A displaced file with another content than our commit expected has a person's save in it. It is merged into
        the file, or put in its place where there is none any more. Where both changed the same lines,
        `memory/review.md` says so. The journal keeps all texts.

        Returns:
            Paths whose saves were merged or put back.
        """
        merged_paths = []
        for intent, step, file in self._transactions.displaced_files():
            content = read_bytes(file)
            if content is None:
                continue
            # one second more, since an event's time has no fractions
            due_at = parse_iso(intent.event.at) + timedelta(seconds=REST_SECONDS + 1)
            is_due = self._transactions.clock.now() >= due_at
            if content_hash(content) != self._write_ahead.base_of(step):
                content = self._read_when_whole(file, step, content)
                if not is_due and self.looks_torn(step.path, content):
                    continue  # the next check reads it again
                if not self._try_to_merge_displaced(intent, step, content):
                    continue
                merged_paths.append(step.path)
            # read once more, in case an editor has written in the meantime
            if is_due and content == read_bytes(file):
                self._transactions.disk.unlink(file)
        return merged_paths

    def _read_when_whole(self, file: Path, step: Step, content: bytes) -> bytes:
        """Return a displaced file's content; wait a moment where it lacks lines, since it may be half saved."""
        base_lines = nonblank_lines(self.text_of(self._write_ahead.base_of(step)) or b"")
        while base_lines - nonblank_lines(content) and 0 <= age_ns(file) <= TORN_NS:
            time.sleep(0.01)
            content = read_bytes(file) or content
        return content

    def _try_to_merge_displaced(self, intent: Intent, step: Step, save: bytes) -> bool:
        """Merge a displaced save into its file; return False where the file changed meanwhile: the next check retries.

        Args:
            intent: The commit that displaced the file.
            step: The step of the commit.
            save: The displaced file's content.
        """
        try:
            self._merge_displaced(intent, step, self._notice([step.path])[step.path], save)
        except ConflictError:
            return False
        self._write_ahead.note_merged(step, content_hash(save))
        return True

    def _merge_displaced(self, intent: Intent, step: Step, present: bytes | None, save: bytes) -> None:
        """Merge a displaced save into the present file, or make the file of it where there is none any more.

        Where both changed the same lines, the person's win over ours, and their later ones over their earlier ones.
        """
        path, event = step.path, NoteMerged(displaced_by=intent.event.id, save=content_hash(save))
        if present is None:
            swapped_out = self._write_ahead.base_of(step)
            self._transactions.run_merge(event, [create(path, save)], path, swapped_out, save)
            return
        base, state = self._base_of_displaced(step, save), self._states.get(path)
        base_text = self.text_of(base) or b""
        # where it is not ours, the person saved twice, and the present file is the later save
        is_ours = state is not None and state.is_ours and state.hash == content_hash(present)
        if self._tree.kind_of(path) is PathKind.ACCESS_LOG and save.startswith(base_text):
            merged, is_clean = present + save[len(base_text) :], True  # the added lines, though the log may be cleared
        else:
            result = merge_lines(base_text, present, save, is_ours_first=not is_ours)
            merged, is_clean = result or (save if is_ours else present, False)
        changes = [update(path, present, merged)] if merged != present else []
        if not is_clean:
            event = replace(event, conflict=path)
            if self._tree.absolute(path) != self._tree.review:
                changes.append(self._review_line(intent, path, is_ours=is_ours))
        self._transactions.run_merge(event, changes, path, base, save)

    def _base_of_displaced(self, step: Step, save: bytes) -> str | None:
        """Return the hash of the version from which a displaced save was made.

        It is the version that our write swapped out, or the content that was last merged from this file. Where the
        editor had loaded an earlier version and that is more like the save, it is the earlier one.
        """
        swapped_out = self._write_ahead.base_of(step)
        earlier = self._base_of(step.versions, save) if step.versions else None
        if earlier is None or swapped_out is None:
            return swapped_out
        return min((swapped_out, earlier), key=lambda digest: line_distance(self.text_of(digest) or b"", save))

    def _review_line(self, intent: Intent, path: str, *, is_ours: bool) -> Change:
        """Return the change that adds a line to `memory/review.md` saying whose lines were not kept in the file."""
        if is_ours:
            text = f"{path}: you saved it while `{intent.event.kind}` wrote it; your lines stand, ours are kept"
        else:
            text = f"{path}: an earlier save of yours did not fit into the later one; it is kept"
        line = f"- {text} in the journal (event {intent.event.id})\n".encode("utf-8", "surrogateescape")
        review, content = self._tree.relative(self._tree.review), read_bytes(self._tree.review)
        if content is None:
            return create(review, line)
        gap = b"" if content.endswith(b"\n") or not content else b"\n"
        return update(review, content, content + gap + line)

    def text_of(self, digest: str | None) -> bytes | None:
        """Return a text by its hash; None for no hash, and for a text that is off the record or purged."""
        if digest is not None:
            with contextlib.suppress(BlobError):
                return self._transactions.text_of(digest)
        return None


def age_ns(path: Path) -> int:
    """Return how long ago a file was written, in nanoseconds, by its modification time; 0 where there is none."""
    try:
        return time.time_ns() - os.stat(path).st_mtime_ns  # file times are the system clock's
    except OSError:
        return 0


def nonblank_lines(text: bytes) -> set[bytes]:
    """Return the lines of a text that are not blank."""
    return {line for line in text.split(b"\n") if line.strip()}
