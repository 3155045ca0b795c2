"""`_index.md` of every folder that a promotion touched: made where missing, its manifest as it will stand (S8)."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from datetime import date

from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.events import Change, PathKind, create, new_id, update
from brainiac.formats.index_page import IndexDocument, IndexEntry, IndexPage, new_index, parse_index
from brainiac.formats.markdown import find_events
from brainiac.formats.page import Memory, parse_memory, shareable_text
from brainiac.storage.pages import INDEX
from brainiac.storage.relinking import with_links_from, with_rooted_links
from brainiac.storage.store import Store

_MAX_SUMMARY = 100
MAX_RELATED = 12
_ABOUT = {
    "people": "The people the user knows, a page each.",
    "projects": "What the user works on, a folder each.",
    "preferences": "What the user likes, dislikes and wants done in a certain way.",
    "personal": "The user's own facts.",
}


class Folders:
    """Writes index pages for the folders of changed pages.

    Args:
        store: The store.
        changes: The page changes of the commit.
        related: (from page, to page) paths of pages that are named by statements of this run.
        is_whole: Describe every page of the folders anew; otherwise what a manifest says of pages that do not change
            stays, since a folder may hold thousands.
    """

    def __init__(
        self,
        store: Store,
        changes: Iterable[Change],
        related: Iterable[tuple[str, str]] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        self._store, self._is_whole, self._related = store, is_whole, list(related)
        self._pages, self._now = store.pages(), iso(store.clock.now())
        # What will stand at the paths of the changes; None for what goes.
        self._texts = {
            change.path: None if change.op == "remove" else (change.after or b"").decode("utf-8", "surrogateescape")
            for change in changes
        }
        self._indexes: dict[str, IndexDocument] = {}

    def changes(self) -> list[Change]:
        """Return the index pages to be written, deepest folder first."""
        folders = {folder for path in self._texts for folder in _up_to(posixpath.dirname(path), self._pages.root)}
        deepest_first = sorted(folders, key=lambda folder: (-folder.count("/"), folder))
        for folder in deepest_first:
            self._open(folder)
        for folder in deepest_first:  # a folder's entry above tells what its own index page will say
            if folder in self._indexes:
                self._indexes[folder] = self._indexes[folder].with_manifest(self._entries(folder))
        for source, target in self._related:
            self._relate(posixpath.dirname(source), target)
        return [change for folder, index in self._indexes.items() for change in self._written(folder, index)]

    def _written(self, folder: str, index: IndexDocument) -> Iterator[Change]:
        path = f"{folder}/{INDEX}"
        standing = self._pages.pages.get(path)
        if standing is None:
            yield create(path, str(index))
        elif str(index) != standing.text:
            yield update(path, standing.text, str(index.set_meta(updated_at=self._now)))

    def _open(self, folder: str) -> None:
        """Take an index page up, or begin one; what a person left broken is theirs to mend: `doctor` names it."""
        path = f"{folder}/{INDEX}"
        if path in self._pages.pages:
            self._indexes[folder] = IndexDocument(self._pages.pages[path].text, path)
        elif not os.path.lexists(self._store.tree.absolute(path)):  # a folder or a link may stand there
            about = _about(folder, posixpath.basename(folder))
            text = new_index(title_of_folder(folder), uuid=new_id(), now=self._now, summary=about)
            self._indexes[folder] = IndexDocument(text, path)

    def _entries(self, folder: str) -> Iterator[IndexEntry]:
        children = set(self._pages.children.get(folder, ()))
        for path in self._texts:
            if path.startswith(f"{folder}/"):
                children.add(f"{folder}/{path[len(folder) + 1 :].partition('/')[0]}")
        standing = () if self._is_whole else self._indexes[folder].page.manifest
        entries = {entry.path: entry for entry in standing}
        for path in sorted(children):
            name = posixpath.basename(path)
            if name in entries and path not in self._texts:
                yield entries[name]
            elif self._store.tree.kind_of(path) is PathKind.MEMORY:
                yield from self._page_entry(path, name)
            elif index := self._index_of(path):
                # A link in the summary leads from the folder's own index page: here from beside that folder.
                about = with_rooted_links(self._store, _first_sentence(index.summary), [path])
                yield IndexEntry(
                    index.title, f"{name}/{INDEX}", index.uuid, with_links_from(self._store, about, f"{path}.md")
                )

    def _index_of(self, folder: str) -> IndexPage | None:
        path = f"{folder}/{INDEX}"
        if folder in self._indexes:
            return self._indexes[folder].page
        return parse_index(path, self._pages.pages[path].text) if path in self._pages.pages else None

    def _page_entry(self, path: str, name: str) -> Iterator[IndexEntry]:
        memory = self._memory(path)
        if memory is not None and not memory.is_off_record:
            yield IndexEntry(memory.title, name, memory.uuid, _line(memory))

    def _memory(self, path: str) -> Memory | None:
        if path not in self._texts:
            return self._pages.pages.get(path)
        try:
            text = self._texts[path]
            return None if text is None else parse_memory(path, text)
        except FormatError:
            return None

    def _relate(self, folder: str, target: str) -> None:
        """Link a page that this folder's statements name, from its index."""
        memory, index = self._memory(target), self._indexes.get(folder)
        if memory is None or index is None or not memory.uuid or posixpath.dirname(target) == folder:
            return
        if len(index.page.related) < MAX_RELATED:
            relative = posixpath.relpath(target, folder)
            self._indexes[folder] = index.with_related(memory.title, relative, memory.uuid, "named here")


def _up_to(folder: str, root: str) -> Iterator[str]:
    while folder.startswith(root + "/"):
        yield folder
        folder = posixpath.dirname(folder)
    yield root


def title_of_folder(folder: str) -> str:
    """Return a folder's name as a title: `2026/03` as `March 2026`, `water-quality` as `Water quality`."""
    if found := re.search(r"/(\d{4})(?:/(\d\d))?(?:/(\d\d))?$", folder):
        year, month, day = found.groups()
        if month and not day:
            return f"{date(int(year), int(month), 1):%B %Y}"
        return f"{int(day)} {date(int(year), int(month), 1):%B %Y}" if day else year
    name = posixpath.basename(folder).replace("-", " ").replace("_", " ")
    return name[:1].upper() + name[1:]


def _about(folder: str, name: str) -> str:
    if re.search(r"/\d{4}(/\d\d){0,2}$", folder):
        return f"What was said and what happened {'on' if folder.count('/') >= 5 else 'in'} {title_of_folder(folder)}."
    return _ABOUT.get(name, f"What is known about {title_of_folder(folder)}.")


def _line(memory: Memory) -> str:
    """Return what a manifest says of a page: how much was said that day, its summary, else its first open statement.

    Of a page that is private as a whole, nothing.
    """
    rest = shareable_text(memory.text)
    if rest is None:
        return ""
    said = len(list(find_events(memory.text)))
    if said:
        return f"{said} exchange{'' if said == 1 else 's'}"
    if memory.steps:
        return f"{len(memory.steps)} steps"
    if summary := str(memory.meta.get("summary") or ""):
        return summary
    statements = parse_memory(memory.path, rest).statements
    first = next((statement.text for statement in statements if not statement.is_history), "")
    return first if len(first) <= _MAX_SUMMARY else first[: _MAX_SUMMARY - 1].rsplit(" ", 1)[0] + "…"


def _first_sentence(summary: str) -> str:
    return re.split(r"(?<=[.!?])\s", summary.strip(), maxsplit=1)[0]
