"""Updates `_index.md` of every folder whose pages a commit changes, and creates it where it is missing."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from datetime import date

from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.events import Change, PathKind, create, new_id, update
from brainiac.formats.authors import PERSON
from brainiac.formats.index_page import IndexDocument, IndexEntry, IndexPage, new_index, parse_index
from brainiac.formats.markdown import PRIVATE, find_events
from brainiac.formats.page import Memory, parse_memory, shareable_text
from brainiac.formats.prompt import arguments, parse_commands
from brainiac.storage.links import with_links_from, with_rooted_links
from brainiac.storage.pages import INDEX
from brainiac.storage.store import Store
from brainiac.text.tokens import as_sentence, pieces

_MAX_SUMMARY = 100
_MAX_QUOTED = 200  # of what a day held
MAX_RELATED = 12
_DATE = re.compile(r"/\d{4}(?:/\d\d){0,2}$")  # a folder of a year, a month or a day
_ABOUT = {
    "people": "The people the user knows, a page each.",
    "projects": "What the user works on, a folder each.",
    "preferences": "What the user likes, dislikes and wants done in a certain way.",
    "personal": "The user's own facts.",
}


class Folders:
    """The index pages of the folders in which a commit changes pages.

    Args:
        store: Of the brain.
        changes: The page changes of the commit.
        related: Pairs of paths: of a page with a new statement, and of a page that the statement names.
        is_whole: Make the manifest entry of every page anew; otherwise only of the changed pages, since a folder may
            hold thousands.
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
        # the future texts of the changed pages; None for a page that is removed
        self._texts = {
            change.path: None if change.op == "remove" else (change.after or b"").decode("utf-8", "surrogateescape")
            for change in changes
        }
        self._indexes: dict[str, IndexDocument] = {}

    def changes(self) -> list[Change]:
        """Return the index pages to be written, deepest folder first."""
        folders = {
            folder for path in self._texts for folder in _folders_up_to(posixpath.dirname(path), self._pages.root)
        }
        deepest_first = sorted(folders, key=lambda folder: (-folder.count("/"), folder))
        for folder in deepest_first:
            self._open_index(folder)
        for folder in deepest_first:  # a folder's manifest has the new summaries of its subfolders
            if folder in self._indexes:
                self._indexes[folder] = self._indexes[folder].with_manifest(self._entries(folder))
        for source, target in self._related:
            self._add_related(posixpath.dirname(source), target)
        return [change for folder, index in self._indexes.items() for change in self._index_changes(folder, index)]

    def _index_changes(self, folder: str, index: IndexDocument) -> Iterator[Change]:
        """Yield the change that writes a folder's index page, if it differs from the present one."""
        path = f"{folder}/{INDEX}"
        former = self._pages.pages.get(path)
        if former is None:
            yield create(path, str(index))
        elif str(index) != former.text:
            yield update(path, former.text, str(index.set_meta(updated_at=self._now)))

    def _open_index(self, folder: str) -> None:
        """Load a folder's index page, or begin a new one; a broken one is left to the person (`doctor` names it)."""
        path = f"{folder}/{INDEX}"
        if path in self._pages.pages:
            # the commit may change the page itself too
            text = self._texts.get(path) or self._pages.pages[path].text
            self._indexes[folder] = IndexDocument(text, path)
        elif not os.path.lexists(self._store.tree.absolute(path)):  # a folder or a link may have that name
            summary = _default_summary(folder)
            text = new_index(title_of_folder(folder), uuid=new_id(), now=self._now, summary=summary)
            self._indexes[folder] = IndexDocument(text, path)

    def _entries(self, folder: str) -> Iterator[IndexEntry]:
        """Yield the manifest entries of a folder as it will be after the commit.

        If not all entries are made anew, those of pages that the commit does not change are taken as they are.
        """
        children = set(self._pages.children.get(folder, ()))
        for path in self._texts:
            if path.startswith(f"{folder}/"):
                children.add(f"{folder}/{path[len(folder) + 1 :].partition('/')[0]}")
        former = () if self._is_whole else self._indexes[folder].page.manifest
        former_entries = {entry.path: entry for entry in former}
        for path in sorted(children):
            name = posixpath.basename(path)
            if name in former_entries and path not in self._texts:
                yield former_entries[name]
            elif self._store.tree.kind_of(path) is PathKind.MEMORY:
                yield from self._page_entry(path, name)
            elif index := self._index_of(path):
                about = _cut(index.about, _MAX_QUOTED) if _DATE.search(path) else _first_sentence(index.summary)
                summary = "" if PRIVATE.search(index.summary) else self._moved_up(about, path)
                yield IndexEntry(index.title, f"{name}/{INDEX}", index.uuid, summary)

    def _moved_up(self, summary: str, folder: str) -> str:
        """Return a summary with its links, which are relative to a folder, made relative to the folder above it."""
        rooted = with_rooted_links(self._store, summary, [folder])
        return with_links_from(self._store, rooted, f"{posixpath.dirname(folder)}/{INDEX}")

    def _index_of(self, folder: str) -> IndexPage | None:
        """Return a folder's index page, as changed so far; None where it has none."""
        path = f"{folder}/{INDEX}"
        if folder in self._indexes:
            return self._indexes[folder].page
        return parse_index(path, self._pages.pages[path].text) if path in self._pages.pages else None

    def _page_entry(self, path: str, name: str) -> Iterator[IndexEntry]:
        """Yield the manifest's entry for a page; none for a page that is off the record or cannot be read."""
        memory = self._memory(path)
        if memory is not None and not memory.is_off_record:
            yield IndexEntry(memory.title, name, memory.uuid, _summary_of(memory))

    def _memory(self, path: str) -> Memory | None:
        """Return a page as it will be after the commit; None where it is removed or cannot be parsed."""
        if path not in self._texts:
            return self._pages.pages.get(path)
        try:
            text = self._texts[path]
            return None if text is None else parse_memory(path, text)
        except FormatError:
            return None

    def _add_related(self, folder: str, target: str) -> None:
        """Add a link to a page to the Related Memories of a folder; none to a page of the folder itself.

        Args:
            folder: In which a statement names the page.
            target: Path of the page.
        """
        memory, index = self._memory(target), self._indexes.get(folder)
        if memory is None or index is None or not memory.uuid or posixpath.dirname(target) == folder:
            return
        if len(index.page.related) < MAX_RELATED:
            relative = posixpath.relpath(target, folder)
            self._indexes[folder] = index.with_related(memory.title, relative, memory.uuid, "named here")


def _folders_up_to(folder: str, root: str) -> Iterator[str]:
    """Yield a folder and all folders above it, down to the root of long-term memory."""
    while folder.startswith(root + "/"):
        yield folder
        folder = posixpath.dirname(folder)
    yield root


def title_of_folder(folder: str) -> str:
    """Return a folder's name as a title: `2026/03` as `March 2026`, `water-quality` as `Water quality`."""
    if match := re.search(r"/(\d{4})(?:/(\d\d))?(?:/(\d\d))?$", folder):
        year, month, day = match.groups()
        if month and not day:
            return f"{date(int(year), int(month), 1):%B %Y}"
        return f"{int(day)} {date(int(year), int(month), 1):%B %Y}" if day else year
    name = posixpath.basename(folder).replace("-", " ").replace("_", " ")
    return name[:1].upper() + name[1:]


def _default_summary(folder: str) -> str:
    """Return the summary of a new folder, until a person or a model writes another."""
    if _DATE.search(folder):
        return ""  # the manifest quotes what was said
    title = title_of_folder(folder)
    return _ABOUT.get(posixpath.basename(folder), as_sentence(f"What is known about {title}"))


def _summary_of(memory: Memory) -> str:
    """Return the line about a page in a manifest, without private statements; "" for a page that is private as a whole.

    It is what the person said in its exchanges, the number of steps, else the `summary` of the front matter, else the
    first current statement.
    """
    text = shareable_text(memory.text)
    if text is None:
        return ""
    exchanges = [placed.event for placed in find_events(text)]
    if exchanges:
        said = (_first_words(event.user) for event in exchanges if event.origin == PERSON)
        return _cut(" ".join(filter(None, said)), _MAX_QUOTED)
    if memory.steps:
        return f"{len(memory.steps)} steps"
    if summary := str(memory.meta.get("summary") or ""):
        return summary
    statements = parse_memory(memory.path, text).statements
    first = next((statement.text for statement in statements if not statement.is_history), "")
    return _cut(first, _MAX_SUMMARY)


def _first_words(message: str) -> str:
    """Return the first sentence of a message, or of what it wants remembered."""
    commands, rest = parse_commands(message)
    return next(pieces("\n".join([*arguments(commands, "remember"), rest])), "")


def _cut(text: str, limit: int) -> str:
    """Return a text, or as many of its first words as there is room for."""
    return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + "…"


def _first_sentence(summary: str) -> str:
    """Return the first sentence of a summary."""
    return re.split(r"(?<=[.!?])\s", summary.strip(), maxsplit=1)[0]
