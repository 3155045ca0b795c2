"""The pages as an organization leaves them: moved, edited, made and taken away in memory, written by one commit."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator

from brainiac.brain import Brain
from brainiac.events import Change, create, move, remove, update
from brainiac.formats.links import find_links
from brainiac.storage.folders import Folders
from brainiac.tree import slugify

from .catalog import Catalog
from .healing import healed, meant_path

_INDEX = "_index.md"


class Draft:
    """One organization in the making; paths are those before it, unless said otherwise.

    Args:
        brain: The brain.
        catalog: The pages as they stand.
        is_resting: Whether a page may be rewritten for the sake of its links; one a person is at is healed later.
    """

    def __init__(self, brain: Brain, catalog: Catalog, is_resting: Callable[[str], bool]) -> None:
        self._brain, self._catalog, self._is_resting = brain, catalog, is_resting
        self._places: dict[str, str] = {}
        self._texts: dict[str, str] = {}  # of pages that are changed beside their links
        self._made: dict[str, str] = {}  # by their new path
        self._removed: set[str] = set()

    def place(self, path: str) -> str:
        """Return where a page will stand."""
        return self._places.get(path, path)

    def move(self, path: str, folder: str) -> str:
        """Move a page to a folder, under another name where its own is taken; return where it will stand."""
        taken = self._catalog.names.setdefault(folder, set())
        stem = posixpath.splitext(posixpath.basename(path))[0]
        target = f"{folder}/{stem}.md"
        if f"{stem}.md".casefold() in taken:
            target = f"{folder}/{slugify(stem, {posixpath.splitext(name)[0] for name in taken})}.md"
        taken.add(posixpath.basename(target).casefold())
        self._places[path] = target
        return target

    def make(self, path: str, text: str) -> None:
        """Make a page; its links are written for where pages will stand."""
        self._made[path] = text
        self._catalog.names.setdefault(posixpath.dirname(path), set()).add(posixpath.basename(path).casefold())

    def edit(self, path: str, edit: Callable[[str], str]) -> None:
        """Change a page's text."""
        if path in self._made:
            self._made[path] = edit(self._made[path])
        else:
            self._texts[path] = edit(self._texts.get(path, self._catalog.texts[path]))

    def text(self, path: str) -> str | None:
        """Return a page's text as it is by now; None where there is none."""
        return self._made.get(path) or self._texts.get(path) or self._catalog.texts.get(path)

    def complete_folders(self) -> None:
        """Give every new folder its index page, and take it from the folders that nothing is left in."""
        arrived = [path for path in [*self._places.values(), *self._made] if self._is_long_term(path)]
        origins = {new: old for old, new in self._places.items()}
        texts = [create(path, self._made.get(path) or self._catalog.texts[origins[path]]) for path in arrived]
        for change in Folders(self._brain, texts).changes() if texts else ():
            if change.op == "create" and self.text(change.path) is None:
                self.make(change.path, (change.after or b"").decode("utf-8", "surrogateescape"))
        for folder in sorted({posixpath.dirname(path) for path in self._places}, key=lambda one: -one.count("/")):
            self._take_empty(folder)

    def _is_long_term(self, path: str) -> bool:
        return path.startswith(self._catalog.root + "/") and posixpath.basename(path) != _INDEX

    def _take_empty(self, folder: str) -> None:
        """Take away the index pages of a folder and those above it that hold nothing and that nobody links to."""
        while folder.count("/") > self._catalog.root.count("/") + 1 and self._is_empty(folder):
            index = f"{folder}/{_INDEX}"
            above = posixpath.dirname(folder)
            if index not in self._catalog.texts or any(self._linking(index, apart_from=f"{above}/{_INDEX}")):
                return
            self._removed.add(index)
            folder = above

    def _is_empty(self, folder: str) -> bool:
        prefix = folder + "/"
        arrived = [*self._places.values(), *self._made]
        return not any(path.startswith(prefix) for path in arrived) and not any(
            path.startswith(prefix)
            and path not in self._places
            and path not in self._removed
            and path != f"{folder}/{_INDEX}"
            for path in self._catalog.texts
        )

    def _linking(self, index: str, apart_from: str) -> Iterator[str]:
        uuid = self._catalog.uuids.get(index, "")
        for path, text in self._catalog.texts.items():
            if path not in (index, apart_from) and (not uuid or uuid in text or posixpath.dirname(index) in text):
                links = find_links(text)
                if any(link.uuid == uuid if link.uuid else meant_path(link, path) == index for link in links):
                    yield path

    def changes(self) -> list[Change]:
        """Return all that is to be written, links healed on every page that leads to what moves."""
        places = {uuid: self.place(path) for uuid, path in self._catalog.place_of.items()}
        changes: list[Change] = []
        for path, before in self._catalog.texts.items():
            now, after = self.place(path), self._texts.get(path, before)
            if path in self._removed:
                changes.append(remove(path, before))
                continue
            if self._places and (now != path or path in self._texts or self._is_resting(path)):
                after = healed(
                    after, was=path, now=now, moved=self._places, places=places, is_standing=self._brain.tree.holds
                )
            if now != path:
                changes.append(move(path, now, before, after))
            elif after != before:
                changes.append(update(path, before, after))
        return changes + [create(path, text) for path, text in self._made.items()]


def folders_of(changes: Iterable[Change]) -> set[str]:
    """Return the folders whose manifests are not as they were, once changes are made."""
    paths = {path for change in changes for path in (change.path, change.source) if path}
    return {posixpath.dirname(path) for path in paths} | {
        posixpath.dirname(posixpath.dirname(path)) for path in paths if posixpath.basename(path) == _INDEX
    }
