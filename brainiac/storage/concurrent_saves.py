"""What our writes swapped out: looked at again ten seconds later, for an editor that still held the old file open.

Whatever is found there that was not there when we decided is a person's save: it is merged into the file, or put
back as the file with a line in `memory/review.md`. The journal keeps all texts in either case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from brainiac.clock import Clock, parse_iso
from brainiac.errors import BlobError, ConflictError
from brainiac.events import Change, NoteMerged, PathKind, content_hash, create, update
from brainiac.storage.external_edits import TORN_NS, age_ns, filled
from brainiac.storage.files import Disk, read_bytes
from brainiac.storage.merge import distance, woven
from brainiac.storage.transactions import Transactions
from brainiac.storage.write_ahead import Intent, Step
from brainiac.tree import Tree

if TYPE_CHECKING:
    from brainiac.storage.commit import Committer

REST_SECONDS = 10


def review_note(tree: Tree, text: str) -> Change:
    """Return the change that adds a line to `memory/review.md`."""
    content = read_bytes(tree.review)
    line = f"- {text}\n".encode("utf-8", "surrogateescape")
    if content is None:
        return create(tree.relative(tree.review), line)
    gap = b"" if content.endswith(b"\n") or not content else b"\n"
    return update(tree.relative(tree.review), content, content + gap + line)


class Displaced:
    """The displaced files of a brain; all calls are made under the commit lock.

    Args:
        tree: The brain's folder.
        transactions: Their write-ahead file names them.
        clock: Tells when they have rested.
        disk: What writes.
        committer: Makes the further commits.
    """

    def __init__(self, tree: Tree, transactions: Transactions, clock: Clock, disk: Disk, committer: Committer) -> None:
        self._tree, self._wal, self._clock, self._disk, self._committer = tree, transactions.wal, clock, disk, committer

    def check(self) -> list[str]:
        """Look at every displaced file; remove those that rested unchanged.

        Returns:
            Paths whose saves were merged or put back.
        """
        rescued = []
        for intent, step in list(self.waiting()):
            content = read_bytes(self._tree.absolute(step.temporary))
            if content is None:
                continue
            is_due = self._is_due(intent)
            if content_hash(content) != self._wal.base_of(step):
                content = self._rested(step, content)
                if not is_due and self._committer.noticing.looks_torn(step.path, content):  # looked at again
                    continue
                if not self._rescue(intent, step, content):
                    continue
                rescued.append(step.path)
            if is_due and content == read_bytes(self._tree.absolute(step.temporary)):
                self._disk.unlink(self._tree.absolute(step.temporary))
        return rescued

    def waiting(self) -> Iterator[tuple[Intent, Step]]:
        """Yield the displaced files that are still kept aside."""
        for intent in self._wal.read()[0]:
            for step in intent.steps:
                if step.temporary and self._tree.absolute(step.temporary).exists():
                    yield intent, step

    def _is_due(self, intent: Intent) -> bool:
        # an event's time is cut to the second
        return self._clock.now() >= parse_iso(intent.event.at) + timedelta(seconds=REST_SECONDS + 1)

    def _rested(self, step: Step, content: bytes) -> bytes:
        """Return a displaced file; one that lacks lines is waited for a moment: it may be in the middle of a save."""
        path, base = self._tree.absolute(step.temporary), filled(self._text(self._wal.base_of(step)))
        while base - filled(content) and 0 <= age_ns(path) <= TORN_NS:
            time.sleep(0.01)
            content = read_bytes(path) or content
        return content

    def _rescue(self, intent: Intent, step: Step, save: bytes) -> bool:
        """Bring a person's save into the file; False when the file moves too fast, to be tried again."""
        try:
            standing = self._committer.notice([step.path])[step.path]
            self._commit(intent, step, standing, save)
        except ConflictError:
            return False
        self._wal.note_merged(step, content_hash(save))
        return True

    def _commit(self, intent: Intent, step: Step, standing: bytes | None, save: bytes) -> None:
        saved = NoteMerged(displaced_by=intent.event.id, save=content_hash(save))
        if standing is None:
            self._committer.commit_merge(saved, [create(step.path, save)], step.path, self._wal.base_of(step), save)
            return
        base, known = self._base_of(step, save), self._committer.seen.get(step.path)
        is_ours = known is not None and known.is_ours and known.hash == content_hash(standing)
        merged, is_clean = self._merged(step.path, self._text(base), standing, save, is_ours=is_ours)
        changes = [update(step.path, standing, merged)] if merged != standing else []
        if not is_clean:
            saved = replace(saved, conflict=step.path)
            if self._tree.absolute(step.path) != self._tree.review:
                changes.append(self._conflict(intent, step.path, is_ours=is_ours))
        self._committer.commit_merge(saved, changes, step.path, base, save)

    def _base_of(self, step: Step, save: bytes) -> str | None:
        """Return the hash of what a save grew from: never of a version later than the one that it was swapped out of.

        Mostly that one, or what the same file held when it was last dealt with; where an editor held an earlier one,
        the nearest of those.
        """
        swapped_out = self._wal.base_of(step)
        earlier = self._committer.noticing.base_of(step.versions, save) if step.versions else None
        if earlier is None or swapped_out is None:
            return swapped_out
        distances = [(distance(self._text(digest), save), digest) for digest in (swapped_out, earlier)]
        return min(distances, key=lambda pair: pair[0])[1]

    def _merged(self, path: str, base: bytes, standing: bytes, save: bytes, *, is_ours: bool) -> tuple[bytes, bool]:
        """Merge a save into what stands there; of a log, what was added to it, whatever was cleared meanwhile.

        Where both changed the same lines, the person's stand, or the later of theirs.
        """
        if self._tree.kind_of(path) is PathKind.ACCESS_LOG and save.startswith(base):
            return standing + save[len(base) :], True
        return woven(base, standing, save, is_ours_first=not is_ours) or (save if is_ours else standing, False)

    def _conflict(self, intent: Intent, path: str, *, is_ours: bool) -> Change:
        """Return the line of `memory/review.md` that tells what gave way."""
        if is_ours:
            text = f"{path}: you saved it while `{intent.event.kind}` wrote it; your lines stand, ours are kept"
        else:
            text = f"{path}: an earlier save of yours did not fit into the later one; it is kept"
        return review_note(self._tree, f"{text} in the journal (event {intent.event.id})")

    def _text(self, digest: str | None) -> bytes:
        if digest is None:
            return b""
        try:
            return self._committer.text_of(digest)
        except BlobError:  # off the record, or purged: nothing to merge by
            return b""
