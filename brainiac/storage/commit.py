"""The one way a process changes the tree: a commit is whole or not at all, and never overwrites a newer save."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from brainiac.clock import Clock, iso
from brainiac.errors import ConflictError, StorageError, storage_trouble
from brainiac.events import (
    Change,
    Event,
    EventData,
    LeftoversSwept,
    NoteMerged,
    PluginEvent,
    RecordedChange,
    content_hash,
    kind_and_data,
    new_id,
)
from brainiac.storage.concurrent_saves import Displaced
from brainiac.storage.external_edits import Noticing, NotRestedError
from brainiac.storage.file_state import LastSeen
from brainiac.storage.files import Disk, locked, read_bytes
from brainiac.storage.journal import Journal
from brainiac.storage.planning import Plan, Planner, confined, confined_change, is_unkept
from brainiac.storage.transactions import CHECKPOINT_BYTES, Recovery, Transactions
from brainiac.tree import OUR_TEMPORARY_PREFIX, LocalPlaces, Tree


class Committer:
    """Makes commits in a brain; safe across threads and processes.

    Args:
        tree: The brain's folder.
        places: Its machine-local places.
        journal: Where commits are recorded.
        clock: Dates them.
        disk: What writes.
        tell: Called with each event that was recorded here, in the thread that did, when it let go of the lock.
        holds_secret: Whether the text of a (relative) path is to be in no journal, though it is on the record.

    Attributes:
        seen: What each tracked note was when last seen.
        noticing: Looks at single files.
    """

    def __init__(
        self,
        tree: Tree,
        places: LocalPlaces,
        journal: Journal,
        clock: Clock,
        disk: Disk | None = None,
        tell: Callable[[Event], None] = lambda event: None,
        holds_secret: Callable[[str, bytes], bool] = lambda path, content: False,
    ) -> None:
        self._tree, self._journal, self._clock, self._disk = tree, journal, clock, disk or Disk()
        self._tell, self._depth = tell, 0
        self._holds_secret = holds_secret
        self.seen = LastSeen(places.state / "observed.sqlite", tree, journal)
        self._transactions = Transactions(tree, places, journal, self.seen, self._disk)
        self._displaced = Displaced(tree, self._transactions, clock, self._disk, self)
        self.noticing = Noticing(tree, self.seen, clock, self)
        self._is_rescuing = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the commit lock; what is recorded meanwhile is told of when the outermost hold of a thread ends.

        That includes a commit which an error or another process had left unfinished, and which is finished here.
        """
        recorded: list[Event] = []
        try:
            with locked(self._journal.lock):
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                    if self._depth == 0:
                        recorded = self._transactions.take_recorded()
        finally:
            for event in recorded:
                self._tell(event)

    def commit(
        self,
        event: EventData | PluginEvent | str,
        *,
        by: str,
        changes: Sequence[Change] = (),
        data: Mapping[str, Any] | None = None,
        cause: str | None = None,
        expect: Mapping[str, str | None] | None = None,
    ) -> Event:
        """Change the tree and record it, wholly or not at all.

        Args:
            event: What happens; a plugin may give its own kind by name, past tense with hyphens.
            by: Who does it.
            changes: Made with `brainiac.events`; each holds what it was decided on.
            data: Plain JSON values of a plugin's own kind.
            cause: Id of the event that led here.
            expect: Further files the decision rested on: path to hash, None for "must not exist".

        Returns:
            The event as recorded. A file that a person changed in the very moment of writing is named in
            `data["left"]` and was not written, or in `data["displaced"]` and is merged.

        Raises:
            ConflictError: A file moved since the decision; nothing was changed.
            ConfinementError: A path leaves the brain.
        """
        with self.held():
            self._transactions.settle()
            changes = [confined_change(self._tree, change) for change in changes]
            expect = {confined(self._tree, path): digest for path, digest in (expect or {}).items()}
            paths = {p for change in changes if change.op != "append" for p in (change.path, change.source) if p}
            recorded = self.notice(sorted(paths | set(expect)))
            plan = self._plan(changes, expect, recorded)
            hidden = {"off_record": plan.off_record} if plan.off_record else {}
            kind, data = kind_and_data(event, data)
            return self._run(self._event(kind, by, plan.recorded, data | hidden, cause), plan)

    def record_saves(
        self,
        event: EventData,
        changes: Sequence[RecordedChange],
        texts: Mapping[str, bytes],
        by: str = "person",
    ) -> Event:
        """Record what was found in the tree; writes no file of it.

        Args:
            event: What happened.
            changes: What was found.
            texts: Content by hash; those that are not blobs yet.
            by: Who did it.
        """
        with self.held():
            self._transactions.settle()
            return self._run(self._event(event.kind, by, changes, event.to_json(), None), Plan(texts=dict(texts)))

    def commit_merge(
        self, merged: NoteMerged, changes: Sequence[Change], path: str, base: str | None, save: bytes
    ) -> Event:
        """Merge a person's save into the file it was meant for; the caller holds the commit lock.

        Args:
            merged: What happened.
            changes: What the tree is to hold; where nothing is to change, the text alone is kept.
            path: The file.
            base: Hash of what the save grew from.
            save: The person's text.

        Raises:
            ConflictError: A file moved meanwhile; nothing was changed.
        """
        plan, digest = self._plan(changes, {}, {}), content_hash(save)
        if not self.is_unkept(path, save):
            plan.texts[digest] = save
            if any(change.path == path for change in changes):
                plan.recorded.insert(0, RecordedChange("observe", path, base, digest))
            else:
                merged = replace(merged, texts={path: digest})
        return self._run(self._event(merged.kind, "kernel", plan.recorded, merged.to_json(), None), plan)

    def is_unkept(self, path: str, content: bytes | None) -> bool:
        """Return whether the text of a (relative) path is to be in no journal; of such a text the hash is recorded."""
        if content is None:
            return False
        return is_unkept(self._tree, self.seen, path, content) or self._holds_secret(path, content)

    def keep_texts(self, texts: Mapping[str, bytes]) -> None:
        """Make blobs of many texts and bring them to the disk at once."""
        for text in texts.values():
            self._journal.blobs.put(text)
        if texts:
            self._disk.sync_filesystem(self._journal.blobs.folder)

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
                if is_tracked and self.noticing.look(relative) is not None:
                    self.seen.set_told(relative, False)
            except NotRestedError as error:
                raise ConflictError([relative]) from error
            content = contents[relative] = read_bytes(self._tree.absolute(relative))
            if is_tracked and content is not None and not self.noticing.is_recorded(relative, content):
                raise ConflictError([relative])
        return contents

    def settle(self) -> None:
        """Follow what other processes did; the caller holds the commit lock."""
        self._transactions.settle()

    def text_of(self, digest: str) -> bytes:
        """Return a text by hash, from the commits in flight or the journal's blobs.

        Raises:
            BlobError: It is in neither.
        """
        return self._transactions.text_of(digest)

    def has_stood(self, text: bytes) -> bool:
        """Return whether a text stood in a note before, as far as this device's journal tells."""
        digest = content_hash(text)
        return digest in self._journal.blobs and self._journal.names(digest)

    def recover(self) -> Recovery:
        """Finish what a crash left unfinished; the tree is otherwise never changed by the journal."""
        report = Recovery()
        with self.held():
            self._transactions.settle(report)
            self._transactions.restore()
            report.merged = self._displaced.check()
            self._sweep(report)
            self._checkpoint()
        return report

    def check_displaced(self) -> None:
        """Look at what our writes swapped out and bring what is done to the disk; every ten seconds and at the end."""
        with self.held():
            self._transactions.settle()
            if self._transactions.wal.size:
                self._displaced.check()
                self._checkpoint()

    def destroy(self, digests: Collection[str]) -> None:
        """Destroy texts for good, wherever commits keep them: blobs, the write-ahead file, displaced files.

        A save that an editor still makes into a file which was just replaced is no longer waited for.
        """
        with self.held():
            self._transactions.settle()
            self._displaced.check()
            for _, step in list(self._displaced.waiting()):
                self._disk.unlink(self._tree.absolute(step.temporary))
            self._transactions.checkpoint(set())
            self._journal.blobs.delete(*digests)

    def close(self) -> None:
        """End; what was displaced less than ten seconds ago is looked at again by the next start."""
        try:
            with suppress(StorageError), storage_trouble():
                self.check_displaced()
        finally:
            self.seen.close()

    def _run(self, event: Event, plan: Plan) -> Event:
        recorded, outcome = self._transactions.run(event, tuple(plan.steps), plan.texts)
        if outcome.displaced and not self._is_rescuing:  # what a rescue displaces waits for the next look
            self._is_rescuing = True
            try:
                self._displaced.check()
            finally:
                self._is_rescuing = False
        if self._transactions.wal.size > CHECKPOINT_BYTES:
            self._checkpoint()
        return recorded

    def _event(
        self, kind: str, by: str, changes: Sequence[RecordedChange], data: Mapping[str, Any], cause: str | None
    ) -> Event:
        return Event(0, new_id(self._journal.last()[1]), iso(self._clock.now()), kind, by, cause, data, tuple(changes))

    def _plan(
        self, changes: Sequence[Change], expect: Mapping[str, str | None], recorded: Mapping[str, bytes | None]
    ) -> Plan:
        plan = Planner(self._tree, self.seen, self.is_unkept).plan(changes, expect, recorded)
        if plan.conflicts:
            raise ConflictError(plan.conflicts)
        return plan

    def _checkpoint(self) -> None:
        self._transactions.checkpoint({intent.event.id for intent, _ in self._displaced.waiting()})

    def _sweep(self, report: Recovery) -> None:
        """Remove temporary files that belong to no commit, keeping a text that is nowhere else."""
        waiting = {self._tree.absolute(step.temporary) for _, step in self._displaced.waiting()}
        for path in _leftovers(self._tree):
            if path in waiting:
                continue
            content, relative = read_bytes(path), self._tree.relative(path)
            if content and not self.is_unkept(relative, content) and self._tree.journal not in path.parents:
                report.swept[relative] = self._journal.blobs.put(content)
            self._disk.unlink(path)
        if report.swept:
            self._journal.blobs.sync(set(report.swept.values()))
            self.record_saves(LeftoversSwept(texts=report.swept), (), {}, by="kernel")


def _leftovers(tree: Tree) -> Iterator[Path]:
    """Yield the temporary files of ours in the tree."""
    for top in {tree.inbox, tree.memory, tree.system, tree.logs}:
        for folder, _, names in os.walk(top):
            for name in names:
                if name.startswith(OUR_TEMPORARY_PREFIX):
                    yield Path(folder, name)
