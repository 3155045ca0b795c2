"""Edits of several files that become one commit: each file is read once, and the commit is refused if it changed."""

from __future__ import annotations

from brainiac.events import Change, create, remove, update
from brainiac.formats.markdown import decode_text
from brainiac.storage.folders import Folders
from brainiac.storage.store import Store


class Edits:
    """The planned texts of files.

    Args:
        store: The brain.

    Attributes:
        actions: For each edit that was given one a sentence for a person.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: dict[str, bytes | None] = {}
        self._after: dict[str, str | None] = {}
        self.actions: list[str] = []

    def read(self, path: str) -> str | None:
        """Return a file's text as planned so far; None where there is no file, or it is to be removed."""
        # read from the tree once: the commit is refused where the file changes afterwards
        if path not in self._before:
            before = self._before[path] = self._store.read(path)
            self._after[path] = None if before is None else decode_text(before)
        return self._after[path]

    def write(self, path: str, text: str | None, action: str = "") -> None:
        """Plan the new text of a file; None removes it, if there is one."""
        if text == self.read(path):
            return
        self._after[path] = text
        if action:
            self.actions.append(f"{'-' if text is None else '~'} {path}: {action}")

    def changes(self) -> list[Change]:
        """Return the changes of the planned files and of the index pages of their folders."""
        changes = []
        for path, before in self._before.items():
            after = self._after[path]
            if before is None and after is not None:
                changes.append(create(path, after))
            elif before is not None and decode_text(before) != after:
                changes.append(remove(path, before) if after is None else update(path, before, after))
        top = self._store.tree.relative(self._store.tree.long_term) + "/"
        pages = [change for change in changes if change.path.startswith(top)]
        indexes = Folders(self._store, pages).changes() if pages else []
        # what is planned for index pages is in what is derived
        derived = {change.path for change in indexes}
        return [*(change for change in changes if change.path not in derived), *indexes]
