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
from brainiac.formats.index_page import IndexDocument, IndexEntry, new_index
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
        folders = {self._pages.root} if self._texts else set[str]()
        for path in self._texts:
            while (path := posixpath.dirname(path)).startswith(f"{self._pages.root}/"):
                folders.add(path)
        deepest_first = sorted(folders, key=lambda folder: (-folder.count("/"), folder))
        for folder in deepest_first:
            self._open_index(folder)
        for folder in deepest_first:  # a folder's manifest has the new summaries of its subfolders
            if folder in self._indexes:
                self._indexes[folder] = self._indexes[folder].with_manifest(self._entries(folder))
        for source, target in self._related:  # to no page of the folder itself
            folder, memory = posixpath.dirname(source), self._memory(target)
            index = self._indexes.get(folder)
            if memory is None or index is None or not memory.uuid or posixpath.dirname(target) == folder:
                continue
            if len(index.page.related) < MAX_RELATED:
                relative = posixpath.relpath(target, folder)
                self._indexes[folder] = index.with_related(memory.title, relative, memory.uuid, "named here")
        changes = []
        for folder, index in self._indexes.items():
            path, former = f"{folder}/{INDEX}", self._pages.pages.get(f"{folder}/{INDEX}")
            if former is None:
                changes.append(create(path, str(index)))
            elif str(index) != former.text:
                changes.append(update(path, former.text, str(index.set_meta(updated_at=self._now))))
        return changes

    def _open_index(self, folder: str) -> None:
        """Load a folder's index page, or begin a new one; a broken one is left to the person (`doctor` names it)."""
        path = f"{folder}/{INDEX}"
        if path in self._pages.pages:
            # the commit may change the page itself too
            text = self._texts.get(path) or self._pages.pages[path].text
            self._indexes[folder] = IndexDocument(text, path)
        elif not os.path.lexists(self._store.tree.absolute(path)):  # a folder or a link may have that name
            title = title_of_folder(folder)
            summary = _ABOUT.get(posixpath.basename(folder), as_sentence(f"What is known about {title}"))
            # of a day or a month the manifest quotes what was said
            summary = "" if _DATE.search(folder) else summary
            text = new_index(title, uuid=new_id(), now=self._now, summary=summary)
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
            page = self._pages.pages.get(f"{path}/{INDEX}")
            if name in former_entries and path not in self._texts:
                yield former_entries[name]
            elif self._store.tree.kind_of(path) is PathKind.MEMORY:
                memory = self._memory(path)
                if memory is not None and not memory.is_off_record:
                    yield IndexEntry(memory.title, name, memory.uuid, _summary_of(memory))
            elif index := self._indexes.get(path) or (page and IndexDocument(page.text, page.path)):
                about, summary = index.page, ""
                if not PRIVATE.search(about.summary):
                    first_sentence = re.split(r"(?<=[.!?])\s", about.summary.strip(), maxsplit=1)[0]
                    text = shortened(about.about, _MAX_QUOTED) if _DATE.search(path) else first_sentence
                    # its links are relative to its folder, and become relative to the one above
                    rooted = with_rooted_links(self._store, text, [path])
                    summary = with_links_from(self._store, rooted, f"{folder}/{INDEX}")
                yield IndexEntry(about.title, f"{name}/{INDEX}", about.uuid, summary)

    def _memory(self, path: str) -> Memory | None:
        """Return a page as it will be after the commit; None where it is removed or cannot be parsed."""
        if path not in self._texts:
            return self._pages.pages.get(path)
        try:
            text = self._texts[path]
            return None if text is None else parse_memory(path, text)
        except FormatError:
            return None


def title_of_folder(folder: str) -> str:
    """Return a folder's name as a title: `2026/03` as `March 2026`, `water-quality` as `Water quality`."""
    if match := re.search(r"/(\d{4})(?:/(\d\d))?(?:/(\d\d))?$", folder):
        year, month, day = match.groups()
        if month and not day:
            return f"{date(int(year), int(month), 1):%B %Y}"
        return f"{int(day)} {date(int(year), int(month), 1):%B %Y}" if day else year
    name = posixpath.basename(folder).replace("-", " ").replace("_", " ")
    return name[:1].upper() + name[1:]


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
        return shortened(" ".join(filter(None, said)), _MAX_QUOTED)
    if memory.steps:
        return f"{len(memory.steps)} steps"
    if summary := str(memory.meta.get("summary") or ""):
        return summary
    statements = parse_memory(memory.path, text).statements
    first = next((statement.text for statement in statements if not statement.is_history), "")
    return shortened(first, _MAX_SUMMARY)


def _first_words(message: str) -> str:
    """Return the first sentence of a message, or of what it wants remembered."""
    commands, rest = parse_commands(message)
    return next(pieces("\n".join([*arguments(commands, "remember"), rest])), "")


def shortened(text: str, limit: int) -> str:
    """Return a text, or as many of its first words as there is room for."""
    return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + "…"
