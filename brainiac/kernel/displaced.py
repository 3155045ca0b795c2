"""What our writes swapped out: looked at again ten seconds later, for an editor that still held the old file open.

Whatever is found there that was not there when we decided is a person's save: it is merged into the file, or put
back as the file with a line in `memory/review.md`. The journal keeps all texts in either case.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from brainiac.clock import Clock, parse_iso
from brainiac.errors import BlobError, ConflictError
from brainiac.events import Change, PathKind, content_hash, create, update
from brainiac.kernel.exchange import Disk, read_bytes
from brainiac.kernel.merge import three_way
from brainiac.kernel.transactions import Transactions
from brainiac.kernel.write_ahead import Intent, Step
from brainiac.tree import Tree

if TYPE_CHECKING:
    from brainiac.kernel.commit import Committer

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

    def _rescue(self, intent: Intent, step: Step, save: bytes) -> bool:
        """Bring a person's save into the file; False when the file moves too fast, to be tried again."""
        base = self._wal.base_of(step)
        try:
            standing = self._committer.notice([step.path])[step.path]
            self._commit(intent, step, base, standing, save)
        except ConflictError:
            return False
        self._wal.note_merged(step, content_hash(save))
        return True

    def _commit(self, intent: Intent, step: Step, base: str | None, standing: bytes | None, save: bytes) -> None:
        if standing is not None:
            base = self._committer.noticing.base_of(step.path, standing, save) or base
        merged = save if standing is None else self._merged(step.path, self._text(base), standing, save)
        data = {"displaced_by": intent.event.id, "save": content_hash(save)}
        changes: list[Change] = []
        if standing is None:
            changes = [create(step.path, save)]
        elif merged is None:
            data["conflict"] = step.path
            changes = self._put_back(intent, step, standing, save)
        elif merged != standing:
            changes = [update(step.path, standing, merged)]
        self._committer.commit_merge(changes, data, step.path, base, save)

    def _merged(self, path: str, base: bytes, standing: bytes, save: bytes) -> bytes | None:
        """Merge a save into what stands there; of a log, what was added to it, whatever was cleared meanwhile."""
        if self._tree.kind_of(path) is PathKind.ACCESS_LOG and save.startswith(base):
            return standing + save[len(base) :]
        return three_way(base, standing, save)

    def _put_back(self, intent: Intent, step: Step, standing: bytes, save: bytes) -> list[Change]:
        """Let the person's text stand where both changed the same lines, and say so."""
        known = self._committer.seen.get(step.path)
        if known is not None and known.is_ours and known.hash == content_hash(standing):
            text = f"{step.path}: you saved it while `{intent.event.kind}` wrote it; your text stands, ours is kept"
            changes = [update(step.path, standing, save)]
        else:
            text = f"{step.path}: an earlier save of yours did not fit into the later one; it is kept"
            changes = []
        return [*changes, review_note(self._tree, f"{text} in the journal (event {intent.event.id})")]

    def _text(self, digest: str | None) -> bytes:
        if digest is None:
            return b""
        try:
            return self._committer.text_of(digest)
        except BlobError:  # off the record, or purged: nothing to merge by
            return b""
