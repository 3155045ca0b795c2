"""Saves that a person made without having seen what we wrote: they are merged, none is overwritten.

Two kinds. A stale save comes from an editor that was opened before our last writes. A displaced one was made while our
write swapped the file out, or went into the old file ten seconds later, by an editor that still held it open.
See docs/decisions/saves-and-merges.md.
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
from brainiac.storage.file_state import PERSONS, FileState
from brainiac.storage.files import read_bytes
from brainiac.storage.merge import common_lines, is_stale, line_distance, merge_lines
from brainiac.storage.transactions import Transactions
from brainiac.storage.write_ahead import Intent, Step

REST_SECONDS = 10  # an editor may hold a file open that we replaced, and write into it, for so long
TORN_NS = 200_000_000  # an empty or shortened file is believed after this rest
SIGHTS = 3  # a save that has seen what came after three versions grew from none before: merges have two parents
UNLIKE, UNLIKE_LINES = 1 / 3, 20  # of the lines of both: a save differs by more from what it did not grow from


class ConcurrentSaves:
    """Merges them; all calls are made under the commit lock.

    Args:
        transactions: They carry out the merges, and know which files were swapped out.
        notice: Records what stands at (relative) paths, and returns it.
    """

    def __init__(
        self, transactions: Transactions, notice: Callable[[Sequence[str]], Mapping[str, bytes | None]]
    ) -> None:
        self._transactions, self._notice = transactions, notice
        self._tree, self._states = transactions.tree, transactions.file_states
        self._write_ahead = transactions.write_ahead

    def merge_stale(self, state: FileState, save: bytes) -> bool:
        """Put back what we added, where the save was made without having seen it; return whether that was so."""
        base = self._base_of(state.versions, save)
        if base is None:
            return False
        # merged as if the person had saved that version; the journal has ours, so that nothing of theirs is guessed
        text, ours = self._transactions.text_of(base), self._transactions.text_of(state.hash)
        if line_distance(text, save) > max(UNLIKE_LINES, UNLIKE * (text.count(b"\n") + save.count(b"\n"))):
            text = common_lines(ours, save)  # it grew from a version that nobody knows any more: nothing is taken out
        merged = merge_lines(text, ours, save, is_ours_first=False)
        if merged is None:
            return False
        changes = [update(state.path, save, merged[0])] if merged[0] != save else []
        with contextlib.suppress(ConflictError):  # saved once more meanwhile; that save is looked at next
            event = self._transactions.run_merge(NoteMerged(stale=state.hash), changes, state.path, base, save)
            if "displaced" in event.data:
                self.check_displaced()
        return True

    def _base_of(self, versions: Sequence[str], save: bytes) -> str | None:
        """Return the hash of the earlier version that a save grew from without having seen what we made of it.

        None when it was made in sight of the last version, or equals what stood here once: that is a revert.

        Args:
            versions: As `FileState.versions` has them; the last stood when the save was made.
            save: What a person saved.
        """
        ours = self.text_of(versions[-1].removeprefix(PERSONS))
        if ours is None:
            return None
        bases = [base for base in self._untouched(versions, ours, save) if is_stale(base[1], ours, save)]
        nearest = min(reversed(bases), key=lambda base: line_distance(base[1], save), default=None)
        return None if nearest is None or self._has_stood(save) else nearest[0]

    def _has_stood(self, text: bytes) -> bool:
        """Return whether a text stood in a note before, as far as this device's journal tells."""
        journal, digest = self._transactions.journal, content_hash(text)
        return digest in journal.blobs and journal.names(digest)

    def _untouched(self, versions: Sequence[str], ours: bytes, save: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield hash and text of versions, newest first, that were followed by something of ours a save may lack.

        It still shows in what stands (`ours`), and nothing that was added since then is in the save.
        """
        saved, shows, sights = nonblank_lines(save), False, 0
        standing = following = nonblank_lines(ours)
        reach = 2 * line_distance(ours, save)  # a version further from what stands is further from the save, too
        for marked, later in zip(reversed(versions[:-1]), reversed(versions), strict=False):
            digest = marked.removeprefix(PERSONS)
            text = self.text_of(digest)
            if text is None:
                continue
            lines = nonblank_lines(text)
            if not later.startswith(PERSONS):
                shows |= bool((following - lines) & standing or (lines - following) - standing)
            following = lines
            is_seen = not (standing - lines).isdisjoint(saved)  # made in sight of what was added since
            sights = sights + 1 if is_seen else 0
            if sights >= SIGHTS and line_distance(ours, text) > reach:
                return  # not before: many a line is like one that stood there long ago
            if shows and not is_seen:
                yield digest, text

    def looks_torn(self, path: str, content: bytes) -> bool:
        """Return whether a file may be in the middle of being written: it is empty, or a beginning of what it held."""
        state = self._states.get(path)
        if state is None or state.hash == content_hash(content):
            return False
        # an editor may write a version anew that it had before our last few writes
        texts = (self.text_of(digest.removeprefix(PERSONS)) for digest in state.versions[-4:])
        return not content or any(text is not None and text.startswith(content) for text in texts)

    def check_displaced(self) -> list[str]:
        """Look at every displaced file; remove those that rested unchanged for ten seconds.

        Whatever is found there that was not there when we decided is a person's save: it is merged into the file, or
        put back as the file with a line in `memory/review.md`. The journal keeps all texts in either case.

        Returns:
            Paths whose saves were merged or put back.
        """
        rescued = []
        for intent, step, file in self._transactions.displaced():
            content = read_bytes(file)
            if content is None:
                continue
            # an event's time is cut to the second
            due = parse_iso(intent.event.at) + timedelta(seconds=REST_SECONDS + 1)
            is_due = self._transactions.clock.now() >= due
            if content_hash(content) != self._write_ahead.base_of(step):
                content = self._rested(file, step, content)
                if not is_due and self.looks_torn(step.path, content):  # looked at again
                    continue
                if not self._rescue(intent, step, content):
                    continue
                rescued.append(step.path)
            # read once more: an editor may have written in the meantime, and that is no reason to lose it
            if is_due and content == read_bytes(file):
                self._transactions.disk.unlink(file)
        return rescued

    def _rested(self, file: Path, step: Step, content: bytes) -> bytes:
        """Return a displaced file; one that lacks lines is waited for a moment: it may be in the middle of a save."""
        base = nonblank_lines(self.text_of(self._write_ahead.base_of(step)) or b"")
        while base - nonblank_lines(content) and 0 <= age_ns(file) <= TORN_NS:
            time.sleep(0.01)
            content = read_bytes(file) or content
        return content

    def _rescue(self, intent: Intent, step: Step, save: bytes) -> bool:
        """Bring a displaced save into its file; return False when that moves too fast, to be tried again."""
        try:
            self._merge_displaced(intent, step, self._notice([step.path])[step.path], save)
        except ConflictError:
            return False
        self._write_ahead.note_merged(step, content_hash(save))
        return True

    def _merge_displaced(self, intent: Intent, step: Step, standing: bytes | None, save: bytes) -> None:
        """Merge a save into what stands; where both changed the same lines, the person's stand, or their later ones."""
        path, event = step.path, NoteMerged(displaced_by=intent.event.id, save=content_hash(save))
        if standing is None:
            swapped_out = self._write_ahead.base_of(step)
            self._transactions.run_merge(event, [create(path, save)], path, swapped_out, save)
            return
        base, state = self._base_of_displaced(step, save), self._states.get(path)
        # ours gives way to the person; between two saves of theirs, the one that stands is the later
        text = self.text_of(base) or b""
        is_ours = state is not None and state.is_ours and state.hash == content_hash(standing)
        if self._tree.kind_of(path) is PathKind.ACCESS_LOG and save.startswith(text):
            merged, is_clean = standing + save[len(text) :], True  # what was added, whatever was cleared meanwhile
        else:
            woven_text = merge_lines(text, standing, save, is_ours_first=not is_ours)
            merged, is_clean = woven_text or (save if is_ours else standing, False)
        changes = [update(path, standing, merged)] if merged != standing else []
        if not is_clean:
            event = replace(event, conflict=path)
            if self._tree.absolute(path) != self._tree.review:
                changes.append(self._review_line(intent, path, is_ours=is_ours))
        self._transactions.run_merge(event, changes, path, base, save)

    def _base_of_displaced(self, step: Step, save: bytes) -> str | None:
        """Return the hash of what a save grew from: never of a version later than the one that it was swapped out of.

        Mostly that one, or what the same file held when it was last dealt with; where an editor held an earlier one,
        the nearest of those.
        """
        swapped_out = self._write_ahead.base_of(step)
        earlier = self._base_of(step.versions, save) if step.versions else None
        if earlier is None or swapped_out is None:
            return swapped_out
        return min((swapped_out, earlier), key=lambda digest: line_distance(self.text_of(digest) or b"", save))

    def _review_line(self, intent: Intent, path: str, *, is_ours: bool) -> Change:
        """Return the line of `memory/review.md` that tells what gave way."""
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
        """Return a text; None where it is not kept (any more): off the record, or purged."""
        if digest is not None:
            with contextlib.suppress(BlobError):
                return self._transactions.text_of(digest)
        return None


def age_ns(path: Path) -> int:
    """Return how long ago a file was written, by its own time."""
    try:
        return time.time_ns() - os.stat(path).st_mtime_ns  # file times are the system clock's
    except OSError:
        return 0


def nonblank_lines(text: bytes) -> set[bytes]:
    """Return the lines of a text that are not blank."""
    return {line for line in text.split(b"\n") if line.strip()}
