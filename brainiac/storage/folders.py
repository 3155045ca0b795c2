"""`_index.md` of every folder that a promotion touched: made where missing, its manifest as it will stand (S8)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date

from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.events import Change, PathKind, create, new_id, update
from brainiac.formats.dialogue import find_events
from brainiac.formats.discretion import is_off_record, shareable
from brainiac.formats.index_page import IndexDocument, IndexEntry, new_index
from brainiac.formats.memory import Memory, parse_memory
from brainiac.storage.relinking import placed, rooted
from brainiac.storage.store import Store
from brainiac.tree import is_temporary

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
        is_whole: Read every page of the folders; otherwise what a manifest says of pages that do not change stays.
    """

    def __init__(
        self,
        store: Store,
        changes: Iterable[Change],
        related: Iterable[tuple[str, str]] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        self._store, self._is_whole = store, is_whole
        self._root = store.tree.relative(store.tree.long_term)
        self._now = iso(store.clock.now())
        changes = list(changes)
        self._gone = {change.path for change in changes if change.op == "remove"}
        self._texts = {change.path: (change.after or b"").decode("utf-8", "surrogateescape") for change in changes}
        self._indexes: dict[str, IndexDocument] = {}
        self._before: dict[str, str | None] = {}
        self._related = list(related)

    def changes(self) -> list[Change]:
        """Return the index pages to be written, deepest folder first."""
        folders = {folder for path in self._texts for folder in _up_to(posixpath.dirname(path), self._root)}
        for folder in sorted(folders, key=lambda folder: (-folder.count("/"), folder)):
            self._open(folder)
        for folder in sorted(self._indexes, key=lambda folder: (-folder.count("/"), folder)):
            self._indexes[folder] = self._indexes[folder].with_manifest(self._entries(folder))
        for source, target in self._related:
            self._relate(posixpath.dirname(source), target)
        changes = []
        for folder, document in self._indexes.items():
            path, before, text = f"{folder}/_index.md", self._before[folder], str(document)
            if before is None:
                changes.append(create(path, text))
            elif text != before:
                changes.append(update(path, before, str(document.set_meta(updated_at=self._now))))
        return changes

    def _open(self, folder: str) -> None:
        """Take an index page up, or begin one; what a person left broken is theirs to mend: `doctor` names it."""
        path = f"{folder}/_index.md"
        with suppress(FormatError):
            before = text = self._store.read_page(path)
            if text is None:
                about = _about(folder, posixpath.basename(folder))
                text = new_index(title_of_folder(folder), uuid=new_id(), now=self._now, summary=about)
            self._indexes[folder] = IndexDocument(text, path)
            self._before[folder] = before

    def _entries(self, folder: str) -> Iterator[IndexEntry]:
        absolute = self._store.tree.absolute(folder)
        standing = absolute.iterdir() if absolute.is_dir() else ()
        names = {one.name: one.is_dir() for one in standing if not one.is_symlink() and not is_temporary(one.name)}
        for path in self._texts:
            if path.startswith(folder + "/"):
                first, _, rest = path[len(folder) + 1 :].partition("/")
                names[first] = bool(rest)
        told = {} if self._is_whole else {entry.path: entry for entry in self._indexes[folder].page.manifest}
        for name, is_folder in sorted(names.items()):
            path = f"{folder}/{name}"
            if path in self._gone:
                continue
            if name in told and path not in self._texts:
                yield told[name]
            elif is_folder:
                yield from self._folder_entry(path, name)
            elif self._store.tree.kind_of(path) is PathKind.MEMORY:
                yield from self._page_entry(path, name)

    def _folder_entry(self, path: str, name: str) -> Iterator[IndexEntry]:
        index = self._indexes.get(path)
        try:
            text = str(index) if index else self._store.read_page(f"{path}/_index.md")
            if text is None:
                return
            page = IndexDocument(text, f"{path}/_index.md").page
        except FormatError:
            return
        about = placed(self._store, rooted(self._store, _first_sentence(page.summary), [path]), f"{path}.md")
        yield IndexEntry(page.title, f"{name}/_index.md", page.uuid, about)

    def _page_entry(self, path: str, name: str) -> Iterator[IndexEntry]:
        memory = self._memory(path)
        if memory is not None and not is_off_record(memory.text.encode("utf-8", "surrogateescape")):
            about = _line(memory)
            yield IndexEntry(memory.title, name, memory.uuid, about)

    def _memory(self, path: str) -> Memory | None:
        try:
            return parse_memory(path, self._texts.get(path) or self._store.read_page(path) or "")
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
    """Return what a manifest says of a page: how much was said that day, else its first statement that is not private.

    Of a page that is private as a whole, nothing.
    """
    rest = shareable(memory.text)
    if rest is None:
        return ""
    said = len(list(find_events(memory.text)))
    if said:
        return f"{said} exchange{'' if said == 1 else 's'}"
    if memory.steps:
        return f"{len(memory.steps)} steps"
    statements = parse_memory(memory.path, rest).statements
    first = next((one.text for one in statements if not one.is_history), "")
    return first if len(first) <= _MAX_SUMMARY else first[: _MAX_SUMMARY - 1].rsplit(" ", 1)[0] + "…"


def _first_sentence(summary: str) -> str:
    return re.split(r"(?<=[.!?])\s", summary.strip(), maxsplit=1)[0]
