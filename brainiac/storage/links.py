"""What follows from a change of pages: links in a text that moves (docs/format.md, F-LNK), `mentions`, index pages.

`Draft` has the edits of one commit, with all of that.

While a promotion decides, links to files of the brain are paths from the root, `/memory/…`, so that the same link is
the same text whatever file it comes from; on a page they are relative to the page.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Literal

from brainiac.clock import iso
from brainiac.events import Change, PathKind, create, move, new_id, remove, update
from brainiac.formats.authors import PERSON
from brainiac.formats.discretion import Audience
from brainiac.formats.index_page import IndexDocument, IndexEntry, new_index
from brainiac.formats.markdown import PRIVATE, Link, decode_text, find_events, retarget_links, without_link_targets
from brainiac.formats.page import Memory, MemoryDocument, audience_of, parse_memory, readable_memory, shareable_text
from brainiac.formats.prompt import arguments, parse_commands
from brainiac.formats.short_term import StmEvent
from brainiac.storage.pages import INDEX, PageSet, linked_path
from brainiac.storage.store import Store
from brainiac.storage.today import without_ours
from brainiac.text.tokens import as_sentence, pieces


def with_rooted_links(store: Store, text: str, folders: Sequence[str], places: Mapping[str, str] | None = None) -> str:
    """Return a text in which relative links are replaced by paths from the root (`/memory/…`).

    A link to no existing file stays as it is.

    Args:
        store: Of the brain.
        text: With relative links.
        folders: Folders (from the root) to which its links may be relative; the first one with the file counts.
        places: Paths of pages by uuid; a link with a uuid leads to that page, whatever its path says.
    """

    def target_of(link: Link) -> str:
        """Return the path from the root that a link leads to; "" to leave it as it is."""
        path = (places or {}).get(link.uuid, "")
        if not path and not link.target.startswith("/"):
            candidates = (posixpath.normpath(posixpath.join(folder, link.target)) for folder in folders)
            path = next((path for path in candidates if store.tree.holds(path)), "")
        return f"/{path}" if path else ""

    return retarget_links(text, target_of)


def with_links_from(store: Store, text: str, path: str) -> str:
    """Return a text in which links that are paths from the root (`/memory/…`) are replaced by links for a page.

    Args:
        store: Of the brain.
        text: From `with_rooted_links`.
        path: Of the page, to whose folder the links are made relative.
    """

    def target_of(link: Link) -> str:
        """Return a link's target relative to the page; "" to leave it as it is."""
        target = link.target.removeprefix("/")
        if target == link.target or not store.tree.holds(target):
            return ""
        return posixpath.relpath(target, posixpath.dirname(path))

    return retarget_links(text, target_of)


def with_repaired_links(
    text: str,
    *,
    was: str,
    now: str,
    moved: Mapping[str, str],
    places: Mapping[str, str],
    is_standing: Callable[[str], bool] = lambda path: False,
    is_hidden: Callable[[str], bool] = lambda path: False,
) -> str:
    """Return a page's text with links repaired after pages moved, this one or others; all else stays byte for byte.

    Args:
        text: The page's whole text.
        was: Path of the page when its links were written, relative to the root.
        now: Its present or future path.
        moved: Old path to new one, of every file that moved.
        places: Present path by uuid, of every page; a link with a uuid leads to that page, whatever its path says.
        is_standing: Whether there is a file at a path; asked for a link without uuid to a file that did not move.
        is_hidden: Whether a path is private: an open page is not told that it is, and keeps its link as it is.
    """
    is_open = audience_of(text) is Audience.ANYONE

    def target_of(link: Link) -> str:
        """Return the new target of a link; "" to leave it as it is."""
        if link.target.startswith("/"):  # a person who wrote a path from the root meant it so
            return ""
        old_target = linked_path(link, was)
        target = places.get(link.uuid) or moved.get(old_target, old_target)
        if is_open and is_hidden(target):
            return ""
        if target == old_target and posixpath.dirname(was) == posixpath.dirname(now):
            return ""
        is_known = link.uuid in places or old_target in moved or is_standing(old_target)
        return posixpath.relpath(target, posixpath.dirname(now)) if is_known else ""

    return retarget_links(text, target_of)


class LinkOrigins:
    """Rewrites the links in events; they are relative to the file they were written in: a prompt or short-term memory.

    Args:
        store: Of the brain.
        prompt_of: Returns the path of the prompt of an exchange; "" if unknown.
        places: Paths of pages by uuid.
    """

    def __init__(self, store: Store, prompt_of: Callable[[str], str], places: Mapping[str, str]) -> None:
        self._store, self._prompt_of, self._places = store, prompt_of, places
        self._inbox, self._memory = store.tree.relative(store.tree.inbox), store.tree.relative(store.tree.memory)

    def with_rooted_links(self, event: StmEvent) -> StmEvent:
        """Return an event in which relative links are replaced by paths from the root (`/memory/…`)."""
        if "](" not in event.user and "](" not in event.ai:
            return event
        prompt = self._prompt_of(event.id)
        # a person may have written links into the event itself, which is in short-term memory
        folders = [posixpath.dirname(prompt), self._memory] if prompt else [self._memory, self._inbox]
        user, ai = (with_rooted_links(self._store, text, folders, self._places) for text in (event.user, event.ai))
        return replace(event, user=user, ai=ai)

    def moved(self, event: StmEvent, path: str) -> StmEvent:
        """Return an event with its links made relative to a page, to which the event moves."""
        event = self.with_rooted_links(event)
        return replace(
            event, user=with_links_from(self._store, event.user, path), ai=with_links_from(self._store, event.ai, path)
        )


# --- the `mentions` in a page's front matter ------------------------------------------------------------------------

# Links to the pages whose titles appear in a page's text, for Obsidian's graph. They are derived: made anew from the
# text and from the titles of all pages whenever a page is written.

MENTIONS = "mentions"
MAX_MENTIONS = 12
_WORD = re.compile(r"\w+")
_OURS = re.compile(r"\[\[[^|\]]+\|(?P<title>[^\]]+)\]\]")  # the form that the program writes, `[[page|title]]`
_FOLDERS = ("concrete", "skills")  # the titles of event pages are days, which most texts name


class Mentions:
    """Finds the pages whose titles appear in another page's text.

    Args:
        pages: All pages that may be mentioned; a private one is mentioned by private pages only.
        root: The folder of long-term memory, relative.
    """

    def __init__(self, pages: Iterable[Memory], root: str) -> None:
        folders = tuple(f"{root}/{folder}/" for folder in _FOLDERS)
        targets = [page for page in pages if page.path.startswith(folders)]
        file_names = Counter(posixpath.basename(page.path).casefold() for page in targets)
        # the pages with a title, and the links to them, by the title's words
        self._targets: dict[tuple[str, ...], list[tuple[Memory, str]]] = defaultdict(list)
        # how many words the titles have that begin with a word
        self._lengths: dict[str, set[int]] = defaultdict(set)
        for page in targets:
            words = tuple(_WORD.findall(page.title))
            if words and len(page.title) > 1 and "|" not in page.title and "]" not in page.title:
                name = page.path.removesuffix(".md")
                is_unique = file_names[posixpath.basename(page.path).casefold()] == 1
                link = f"[[{posixpath.basename(name) if is_unique else name}|{page.title}]]"
                self._targets[words].append((page, link))
                self._lengths[words[0]].add(len(words))

    def of(self, page: Memory) -> list[str]:
        """Return wiki links to the pages whose titles appear in a page's text, in the order of the text, at most 12."""
        return list(dict.fromkeys(link for _, link in self.in_text(page, page.body)))[:MAX_MENTIONS]

    def in_text(self, page: Memory, text: str) -> Iterator[tuple[Memory, str]]:
        """Yield the pages whose titles appear in a text of a page, and the wiki links to them, in its order."""
        words = _WORD.findall(without_link_targets(text))
        for position, word in enumerate(words):
            for length in sorted(self._lengths.get(word, ())):
                for target, link in self._targets.get(tuple(words[position : position + length]), ()):
                    if target.path != page.path and target.audience <= page.audience:
                        yield target, link

    def renewed(self, page: Memory) -> list[str] | None:
        """Return the list to write as a page's `mentions`; None where the page has it already.

        Links that a person added to the list stay in it. A value that is no list is a person's: None too.
        """
        present = page.meta.get(MENTIONS, [])
        if not isinstance(present, list):
            return None
        by_person = [link for link in map(str, present) if not _OURS.fullmatch(link)]
        links = [*by_person, *self.of(page)]
        return links if links != present else None


def still_named(page: Memory) -> list[str]:
    """Return a page's `mentions` without the links `[[page|title]]` of the program whose title is not in the text.

    Args:
        page: A page whose `mentions` are a list.
    """
    body = without_link_targets(page.body)
    links = map(str, page.meta[MENTIONS])
    return [link for link in links if not (match := _OURS.fullmatch(link)) or match["title"] in body]


# --- index pages ----------------------------------------------------------------------------------------------------

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
    """The index pages of the folders in which a commit changes pages: updated, or made where one is missing.

    Args:
        store: Of the brain.
        changes: The page changes of the commit.
        related: Pairs of paths: of a page with a new statement, and of a page that the statement names.
        is_whole: Make the manifest entry of every page anew; otherwise only of the changed pages, since a folder may
            hold thousands.
    """

    def __init__(
        self, store: Store, changes: Iterable[Change], related: Iterable[tuple[str, str]] = (), *, is_whole: bool = True
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
            about = _ABOUT.get(posixpath.basename(folder), as_sentence(f"What is known about {title}"))
            # of a day or a month the manifest quotes what was said
            text = new_index(title, uuid=new_id(), now=self._now, summary="" if _DATE.search(folder) else about)
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
        known = self._texts
        return readable_memory(path, known[path]) if path in known else self._pages.pages.get(path)


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


# --- what one commit changes ----------------------------------------------------------------------------------------


class Draft:
    """The files that one commit changes: each is read once, edited in memory, and not written where it changed since.

    A path is always that which a file has before the commit.

    Args:
        store: The brain.
        pages: The pages as they were decided on, or None; other files are read when they are first asked for.

    Attributes:
        moved: The path that each file that moves will have.
    """

    def __init__(self, store: Store, pages: PageSet | None = None) -> None:
        self._store, self._known = store, pages
        self._before: dict[str, bytes | None] = {}
        self._after: dict[str, str | None] = {}
        self._documents: dict[str, MemoryDocument] = {}  # what `page` returned
        self.moved: dict[str, str] = {}

    def read(self, path: str) -> str | None:
        """Return a file's text as edited so far; None where there is no file, or it is to be removed."""
        # read from the tree once: the commit is refused where the file changes afterwards
        if path not in self._before:
            page = self._known.pages.get(path) if self._known else None
            before = self._before[path] = self._store.read(path) if page is None else page.text.encode()
            self._after[path] = None if before is None else decode_text(before)
        return self._after[path]

    def page(self, path: str) -> MemoryDocument | None:
        """Return a page as edited so far; None where there is no such page.

        Raises:
            FormatError: The file at this path is no page that may be changed.
        """
        if path not in self._before and self._known is None:
            text = self._store.read_page(path)  # raises for what is no UTF-8, and for what is no file
            if text is not None:
                self._documents[path] = MemoryDocument(text, path)
            self._before[path], self._after[path] = None if text is None else text.encode(), text
        if (text := self.read(path)) is None:
            return None
        if path not in self._documents or str(self._documents[path]) != text:
            self._documents[path] = MemoryDocument(text, path)
        return self._documents[path]

    def write(self, path: str, text: str | None) -> None:
        """Give a file another text; None removes it, if there is one."""
        if text != self.read(path):
            self._after[path] = text

    def new(self, path: str, text: str) -> None:
        """Make a file; the commit is refused where there is one by then."""
        self._before[path], self._after[path] = None, text

    def put(self, page: MemoryDocument) -> None:
        """Write a page."""
        self.write(page.memory.path, str(page))
        self._documents[page.memory.path] = page

    def move(self, path: str, to: str) -> None:
        """Move a file."""
        self.read(path)
        self.moved[path] = to

    def place(self, path: str) -> str:
        """Return the path that a file will have."""
        return self.moved.get(path, path)

    def is_new(self, path: str) -> bool:
        """Return whether the file is made here."""
        return path in self._before and self._before[path] is None

    @property
    def edited(self) -> list[str]:
        """The files that are made, removed, moved, or get another text."""
        return [
            path
            for path, before in self._before.items()
            if path in self.moved or self._after[path] != (None if before is None else decode_text(before))
        ]

    @contextmanager
    def step(self) -> Iterator[None]:
        """Take all edits of the block back where it raises: they are made all, or none."""
        before = dict(self._before), dict(self._after), dict(self.moved)
        try:
            yield
        except BaseException:
            self._before, self._after, self.moved = before
            raise

    def repair_links(
        self, paths: Iterable[str], by_hand: Mapping[str, str] | None = None, hidden: Iterable[str] = ()
    ) -> None:
        """Have the links on pages lead to the pages with their uuids, and to where files were moved or will be.

        Args:
            paths: Of the pages whose links to repair.
            by_hand: Old path to new one, of a page that a person moved.
            hidden: Paths besides those of private pages that no open page is told.
        """
        pages, by_hand = self._known or self._store.pages(), by_hand or {}
        former = {new: old for old, new in by_hand.items()}
        places = {uuid: self.place(path) for uuid, path in pages.path_by_uuid.items()}
        hidden = {*hidden, *(self.place(path) for path, page in pages.pages.items() if page.is_private)}
        for path in paths:
            if (text := self.read(path)) is not None:
                # on the moved page itself a person's links to private pages go on leading there
                not_named = hidden & {path} if path in former else hidden
                text = with_repaired_links(
                    text,
                    was=former.get(path, path),
                    now=self.place(path),
                    moved={**by_hand, **self.moved},
                    places=places,
                    is_standing=self._store.tree.holds,
                    is_hidden=not_named.__contains__,
                )
                self.write(path, text)

    def begin_folders(self) -> None:
        """Make the index pages that the folders of new and moved pages lack; present ones are derived later."""
        holds = self._store.tree.holds
        pages = [
            change
            for change in self._planned()
            if change.path.startswith(self._top)
            and change.op in ("create", "move")
            and not holds(f"{posixpath.dirname(change.path)}/{INDEX}")
        ]
        for change in Folders(self._store, pages, is_whole=False).changes() if pages else ():
            if change.op == "create" and self.read(change.path) is None:
                self.write(change.path, decode_text(change.after or b""))

    def changes(
        self, *, indexes: Literal["whole", "entries", "none"] = "whole", related: Iterable[tuple[str, str]] = ()
    ) -> list[Change]:
        """Return the changes for the commit, with the index pages of the folders in which pages change.

        Args:
            indexes: Whether every entry on them is made anew, those of the changed pages, or none: they are derived
                after the commit.
            related: See `Folders`.
        """
        changes = list(self._planned())
        pages = [change for change in changes if change.path.startswith(self._top)] if indexes != "none" else []
        derived = Folders(self._store, pages, related, is_whole=indexes == "whole").changes() if pages else []
        # what is planned for index pages is in what is derived
        paths = {change.path for change in derived}
        return [*(change for change in changes if change.path not in paths), *derived]

    @property
    def _top(self) -> str:
        return self._store.tree.relative(self._store.tree.long_term) + "/"

    def _planned(self) -> Iterator[Change]:
        """Yield the changes of the edited files."""
        for path in self.edited:
            before, after = self._before[path], self._after[path]
            if before is None:
                yield create(path, after or "")
            elif after is None:
                yield remove(path, before)
            elif path in self.moved:
                yield move(path, self.moved[path], before, after)
            else:
                yield update(path, before, after)


class Edits(Draft):
    """A draft that takes out or rewords what `Today.md` may repeat."""

    def write(self, path: str, text: str | None) -> None:
        """Give a file another text; None removes it, if there is one."""
        if text == self.read(path):
            return
        super().write(path, text)
        today = self._store.tree.relative(self._store.tree.today)
        if path != today and (told := self.read(today)):  # it may repeat what changes, and is written anew afterwards
            super().write(today, without_ours(told) or None)
