"""The one way a process changes the tree: a commit is whole or not at all, and never overwrites a newer save."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from brainiac.errors import StorageError, UserError, storage_trouble
from brainiac.events import (
    Change,
    Event,
    EventData,
    NoteMerged,
    NoteSaved,
    PathKind,
    PluginEvent,
    TreeTidied,
    content_hash,
    write,
)
from brainiac.storage.external_edits import ExternalEdits
from brainiac.storage.files import read_bytes
from brainiac.storage.transactions import Plan, Transactions
from brainiac.tree import OUR_TEMPORARY_PREFIX


class Committer(Transactions):
    """Makes commits in a brain; before each one, a person's unseen edits of the same files are recorded."""

    @cached_property
    def edits(self) -> ExternalEdits:
        """Detects and records what a person does to the tree."""
        return ExternalEdits(self)

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
            changes: Made with `brainiac.events`; each holds the content of the file on which it was decided.
            data: Plain JSON values of a plugin's own kind.
            cause: Id of the event that led here.
            expect: Further files the decision rested on: path to hash, None for "must not exist".

        Returns:
            The event as recorded. A file that a person changed in the very moment of writing is named in
            `data["left"]` and was not written, or in `data["displaced"]` and is merged.

        Raises:
            ConflictError: A file moved since the decision; nothing was changed.
            UserError: Two changes name one path.
            ConfinementError: A path leaves the brain.
        """
        with self.commit_lock():
            self.finish_pending()
            changes = [
                replace(each, path=self._confined(each.path), source=each.source and self._confined(each.source))
                for each in changes
            ]
            expect = {self._confined(path): digest for path, digest in (expect or {}).items()}
            paths = {p for change in changes if change.op != "append" for p in (change.path, change.source) if p}
            # a person's unseen edits are recorded first, so that the journal has their version before ours replaces it
            contents = self.edits.notice(sorted(paths | set(expect)))
            plan = Plan(self, changes, expect, contents)
            kind, own = (event, {}) if isinstance(event, str) else (event.kind, event.to_json())
            off_record = {"off_record": plan.off_record} if plan.off_record else {}
            whole = Event(0, "", "", kind, by, cause, {**own, **(data or {}), **off_record}, tuple(plan.recorded))
            recorded = self._commit(whole, plan.steps, plan.texts)
            if "displaced" in recorded.data:  # a person saved in that very moment
                self.edits.saves.check_displaced()
            return recorded

    def save(self, path: str, base: str, content: bytes) -> bool:
        """Write a file for a person who changed it, as their editor would, and merge it where it is another by now.

        Args:
            path: The file, relative.
            base: Hash of the version that they had loaded.
            content: The whole file as they want it.

        Returns:
            Whether somebody else had changed it meanwhile, so that both were merged.

        Raises:
            ConflictError: The file is being saved at this moment; nothing was changed.
            ConfinementError: The path leaves the brain.
        """
        with self.commit_lock():
            self.finish_pending()
            path = self._confined(path)
            present = self.edits.notice([path])[path]
            if present is None or content_hash(present) == base:
                self.commit(NoteSaved(), by="person", changes=[write(path, present, content)])
                return False
            if content_hash(content) not in (base, content_hash(present)):
                event = NoteMerged(stale=content_hash(present), save=content_hash(content))
                self.edits.saves.merge_later(event, path, base, present, content)
            return True

    def recover(self) -> None:
        """Finish what a crash interrupted: a commit, checks of displaced saves, and temporary files to be removed."""
        with self.commit_lock():
            self.finish_pending()
            self.restore()
            # merged before the sweep: displaced files have the names of temporary files too
            self.edits.saves.check_displaced()
            self._sweep()
            self.checkpoint()

    def check_displaced(self) -> None:
        """Merge saves that persons made into displaced files, then checkpoint; called every ten seconds."""
        with self.commit_lock():
            self.finish_pending()
            if self.write_ahead.size:
                self.edits.saves.check_displaced()
                self.checkpoint()

    def destroy(self, digests: Collection[str]) -> None:
        """Destroy texts for good, wherever commits keep them: blobs, `state.db`, displaced files.

        Displaced files are destroyed too, although an editor may still save into one.
        """
        with self.commit_lock():
            self.finish_pending()
            self.edits.saves.check_displaced()
            # displaced files have former versions word for word
            for _, _, displaced in self.displaced_files():
                self.disk.unlink(displaced)
            self.checkpoint()  # drops the records of commits, which would restore their texts
            self.journal.blobs.delete(*digests)

    def close(self) -> None:
        """Close the files; files displaced less than ten seconds ago are checked once more at the next start."""
        try:
            with suppress(StorageError), storage_trouble():
                self.check_displaced()
        finally:
            self.database.close()

    def _confined(self, path: str) -> str:
        """Return the relative path of a file that may be written.

        Raises:
            ConfinementError: It is outside the brain.
            UserError: It is a symbolic link, or in a source, which is only read.
        """
        absolute = self.tree.confine(path)
        if absolute.is_symlink():
            raise UserError(f"{path}: a symbolic link; Brainiac changes files, not links; replace it by the file")
        relative = self.tree.relative(absolute)
        if self.tree.kind_of(relative) is PathKind.SOURCE:
            raise UserError(f"{path}: lies in a folder of `sources`, which is only read; nothing was changed")
        return relative

    def _sweep(self) -> None:
        """Remove our temporary files that belong to no commit; their texts are kept as blobs."""
        needed = {path for _, _, path in self.displaced_files()}
        tops = {self.tree.inbox, self.tree.memory, self.tree.system, self.tree.logs}
        found = ((folder, name) for top in tops for folder, _, names in os.walk(top) for name in names)
        files = {Path(folder, name) for folder, name in found if name.startswith(OUR_TEMPORARY_PREFIX)}
        hashes: dict[str, str] = {}
        for path in files - needed:
            content, relative = read_bytes(path), self.tree.relative(path)
            # its text may be a person's save that a crash left there: it is kept as a blob
            if content and not self.is_hash_only(relative, content) and self.tree.journal not in path.parents:
                hashes[relative] = self.journal.blobs.put(content)
            self.disk.unlink(path)
        if hashes:
            # the text is on the disk before the event that names it
            self.journal.blobs.sync(set(hashes.values()))
            self.record(TreeTidied(what="leftovers", texts=hashes), by="kernel")
