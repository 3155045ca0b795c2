"""Putting one commit's files in place, and finishing it after a crash, so that no newer save is overwritten.

A replaced file is swapped with the new one in one step, and what came out is looked at: check-then-replace lost saves
that fell between. A removed file is moved aside first and looked at there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from brainiac.events import content_hash
from brainiac.storage.files import Disk, copy_attributes, make_folders, read_bytes
from brainiac.storage.write_ahead import Intent, Step
from brainiac.tree import Tree

MISSING_STEPS, STEP_SECONDS = 20, 0.01


@dataclass(slots=True)
class Outcome:
    """What became of a commit's files.

    Attributes:
        left: Paths that a person changed meanwhile; they stand as the person left them.
        displaced: Paths where a person's save was swapped out; it waits to be merged.
    """

    left: list[str] = field(default_factory=list)
    displaced: list[str] = field(default_factory=list)


class Placing:
    """Places one commit's files.

    Args:
        tree: The brain's folder.
        disk: What writes.
        text_of: Content by hash.
    """

    def __init__(self, tree: Tree, disk: Disk, text_of: Callable[[str], bytes]) -> None:
        self._tree, self._disk, self._text_of = tree, disk, text_of
        self._folders: set[Path] = set()
        self.outcome = Outcome()

    def run(self, intent: Intent) -> Outcome:
        """Do all steps of a commit that was just made binding."""
        return self._each(intent, self._do)

    def resume(self, intent: Intent) -> Outcome:
        """Do the steps that a crash left undone; the files themselves tell which."""
        return self._each(intent, self._resume)

    def _each(self, intent: Intent, act: Callable[[Step], None]) -> Outcome:
        targets = {change.source: change.path for change in intent.event.changes if change.source is not None}
        for step in intent.steps:
            if step.op == "remove" and targets.get(step.path) in self.outcome.left:
                self.outcome.left.append(step.path)  # a move whose new place was taken: nothing moves
                continue
            act(step)
        for folder in sorted(self._folders):
            self._disk.fsync(folder)
        return self.outcome

    def _do(self, step: Step) -> None:
        {"append": self._append, "create": self._create, "update": self._update, "remove": self._remove}[step.op](step)

    def _resume(self, step: Step) -> None:
        {
            "append": self._resume_append,
            "create": self._resume_create,
            "update": self._resume_update,
            "remove": self._resume_remove,
        }[step.op](step)

    # doing

    def _append(self, step: Step) -> None:
        path = self._path(step)
        self._prepare_folder(path)
        self._disk.append(path, self._after(step), mode=0o644)
        self._disk.fsync(path)

    def _create(self, step: Step) -> None:
        path, temporary = self._path(step), self._temporary(step)
        self._prepare_folder(path)
        self._disk.write(temporary, self._after(step), mode=0o644)
        self._disk.fsync(temporary)
        try:
            self._disk.rename_new(temporary, path)
        except FileExistsError:
            self._disk.unlink(temporary)
            self._leave(step)
        self._folders.add(path.parent)

    def _update(self, step: Step) -> None:
        path, temporary = self._path(step), self._temporary(step)
        try:
            self._disk.write(temporary, self._after(step))
            is_exchanged = self._exchange(temporary, path)
        except FileNotFoundError:  # a person removed it, or its folder
            self._disk.unlink(temporary)
            self._leave(step)
            return
        if not is_exchanged and not self._replace_unchanged(step):
            return
        self._folders.add(path.parent)
        self._look_at_displaced(step)

    def _exchange(self, temporary: Path, path: Path) -> bool:
        """Swap the files; one that is missing is waited for: some editors move the old one away before they save."""
        for left in reversed(range(MISSING_STEPS)):
            try:
                copy_attributes(path, temporary)
                self._disk.fsync(temporary)
                return self._disk.exchange(temporary, path)
            except FileNotFoundError:
                if not left or not path.parent.is_dir():
                    raise
                time.sleep(STEP_SECONDS)
        raise AssertionError("the last step returns or raises")

    def _look_at_displaced(self, step: Step) -> None:
        if self._hash(self._temporary(step)) not in (None, step.before):
            self.outcome.displaced.append(step.path)

    def _replace_unchanged(self, step: Step) -> bool:
        """Replace where files cannot be swapped; the check is as late as it can be."""
        path, temporary = self._path(step), self._temporary(step)
        if self._hash(path) == step.before:
            self._disk.replace(temporary, path)
            return True
        self._disk.unlink(temporary)
        self._leave(step)
        return False

    def _remove(self, step: Step) -> None:
        path, temporary = self._path(step), self._temporary(step)
        self._folders.add(path.parent)
        try:
            self._disk.replace(path, temporary)
        except FileNotFoundError:
            return
        self._check_removed(step)

    def _check_removed(self, step: Step) -> None:
        path, temporary = self._path(step), self._temporary(step)
        if self._hash(temporary) == step.before:
            return
        self._leave(step)
        try:
            self._disk.rename_new(temporary, path)
        except FileExistsError:  # saved once more meanwhile: both saves are kept
            self.outcome.displaced.append(step.path)

    # finishing after a crash

    def _resume_append(self, step: Step) -> None:
        """Add what is missing of the lines; other writers may have added theirs since."""
        text, log = self._after(step), read_bytes(self._path(step)) or b""
        tail = log[step.size :]
        if text in tail:
            return
        if text.startswith(tail) and len(log) >= step.size:
            text = text[len(tail) :]
        elif not log.endswith(b"\n"):
            text = b"\n" + text
        path = self._path(step)
        self._prepare_folder(path)
        self._disk.append(path, text, mode=0o644)
        self._disk.fsync(path)

    def _resume_create(self, step: Step) -> None:
        standing = self._hash(self._path(step))
        self._disk.unlink(self._temporary(step))
        if standing is None:
            self._create(step)
        elif standing != step.after:
            self._leave(step)
        else:
            self._folders.add(self._path(step).parent)

    def _resume_update(self, step: Step) -> None:
        """Swap the files, if that is not done; what a person saved since is swapped out and merged like any save."""
        if self._hash(self._path(step)) == step.after or self._was_exchanged(step):
            self._folders.add(self._path(step).parent)
            self._look_at_displaced(step)
            return
        self._disk.unlink(self._temporary(step))
        if self._path(step).is_file() and not self._path(step).is_symlink():
            self._update(step)
        else:
            self._leave(step)

    def _was_exchanged(self, step: Step) -> bool:
        """Tell by the temporary file: it is the file that stood there, or no beginning of our text."""
        temporary = self._temporary(step)
        content = read_bytes(temporary)
        if content is None:
            return False
        return os.stat(temporary).st_ino == step.inode or not self._after(step).startswith(content)

    def _resume_remove(self, step: Step) -> None:
        if self._temporary(step).exists():
            if self._path(step).exists():
                self._leave(step)  # it was moved aside, and a person made it anew
            else:
                self._check_removed(step)
            return
        standing = self._hash(self._path(step))
        if standing == step.before:
            self._remove(step)
        elif standing is not None:
            self._leave(step)

    # small parts

    def _path(self, step: Step) -> Path:
        return self._tree.absolute(step.path)

    def _temporary(self, step: Step) -> Path:
        return self._tree.absolute(step.temporary)

    def _after(self, step: Step) -> bytes:
        assert step.after is not None
        return self._text_of(step.after)

    def _prepare_folder(self, path: Path) -> None:
        self._folders.update(make_folders(self._disk, path.parent))

    def _leave(self, step: Step) -> None:
        self.outcome.left.append(step.path)

    @staticmethod
    def _hash(path: Path) -> str | None:
        content = read_bytes(path)
        return None if content is None else content_hash(content)
