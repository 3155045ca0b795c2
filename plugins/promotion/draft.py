"""The pages that a promotion changes, as its draft has them, and what is asked of them while it decides."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConfinementError, FormatError
from brainiac.events import new_id
from brainiac.formats.authors import PERSON, author_of_statement
from brainiac.formats.page import Memory, MemoryDocument, Statement, new_memory
from brainiac.history.forget import is_bare
from brainiac.history.why import folded
from brainiac.storage.links import MENTIONS, Draft, Mentions, with_rooted_links
from brainiac.storage.pages import PageSet
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.dates import format_date
from brainiac.text.tokens import likeness

USER = "User"  # what models call the person: the subject of most pages
SAME_TITLE = 0.6  # two titles that share so many of their character trigrams name the same how-to
MAX_NAMES = 12  # tags, or aliases, of a page
PAGE_CHARACTERS = 32_000  # a page of a day that has more is full, and the day goes on on a further page
MAX_UNDIVIDED = 20  # statements that read well without headings


@dataclass(frozen=True, slots=True)
class CurrentStatement:
    """A statement that holds now, with its page and its owner.

    Attributes:
        id: `<page uuid>#<block id>`, or `<page uuid>#~<hash>` where a person wrote it without a block id.
        path: The path of its page.
        page: The uuid of its page, or the path of a page without one.
        title: The title of its page.
        statement: The list item on the page.
        is_ours: Whether a process wrote it in these words; otherwise it is the person's.
        is_private: Whether it must not leave this machine.
        text: Its words, with links as paths from the root (`storage/links.py`).
        since: The date it was said on; "" where no journal has it.
    """

    id: str
    path: str
    page: str
    title: str
    statement: Statement
    is_ours: bool
    is_private: bool
    text: str
    since: str = ""

    @property
    def is_by_hand(self) -> bool:
        """Whether the person wrote or edited it themselves; what others are named for came otherwise."""
        return not self.is_ours and author_of_statement(self.text).origin == PERSON

    @property
    def place(self) -> dict[str, Any]:
        """Where it stands, by the names of a proposal's fields."""
        block, digest = self.statement.block_id, text_hash(self.statement.text)
        return {"page": self.page, "path": self.path, "block": block, "hash": digest}


NOWHERE: dict[str, Any] = {"page": "", "path": "", "block": "", "hash": ""}


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page that does not exist yet and that a run begins.

    Attributes:
        title: Its heading.
        meta: Front matter besides the keys of every page. A run whose commit is retried begins the page with the same
            keys again, above all `private`.
    """

    title: str
    meta: dict[str, Any]

    @property
    def is_private(self) -> bool:
        """Whether it must not be shown to a remote model."""
        return "private" in self.meta


class MemoryDraft(Draft):
    """All pages as one promotion will leave them.

    Args:
        brain: The brain.
        log: Statements and their owners, from the journals; the statements that the run writes are added to it.
        new_pages: The pages that the run begins, by path; added to.

    Attributes:
        emptied: Pages from which a stand-in was taken out: one of them goes if nothing is left on it.
    """

    def __init__(self, brain: Brain, log: StatementLog, new_pages: dict[str, NewPage] | None = None) -> None:
        super().__init__(brain)
        self.brain, self.log = brain, log
        self.new_pages = {} if new_pages is None else new_pages
        self.emptied: set[str] = set()
        self._sources: list[tuple[str, Iterable[str]]] = []  # of pages, by path
        self._day_numbers: dict[str, int] = {}  # the number of a day's last page, by the path of its first
        self._sizes: dict[str, int] = {}  # characters of the pages of days, by path

    @contextmanager
    def step(self) -> Iterator[None]:
        """Take all edits of the block back where it raises: they are made all, or none."""
        n_sources = len(self._sources)
        try:
            with super().step():
                yield
        except BaseException:
            del self._sources[n_sources:]
            raise

    def rest(self, path: str, sources: Iterable[str]) -> None:
        """Have a page name the exchanges that it rests on; `finish` writes them, once a page."""
        self._sources.append((path, sources))

    @cached_property
    def pages(self) -> PageSet:
        """All pages, as they were when this was first asked for."""
        return self.brain.pages()

    # --- finding ----------------------------------------------------------------------------------------

    def opened(self, path: str) -> MemoryDocument:
        """Return a page as edited so far; one that does not exist is begun as `new_pages` says."""
        if page := self.page(path):
            return page
        new_page, now = self.new_pages[path], iso(self.brain.clock.now())
        self.write(path, new_memory(new_page.title, uuid=new_id(), now=now, **new_page.meta))
        return self.opened(path)

    @property
    def read_pages(self) -> dict[str, Memory]:
        """The pages that were opened until now, as edited so far."""
        return {path: page.memory for path in self._after if (page := self.page(path))}

    def memories(self, *, is_private: bool) -> Iterator[Memory]:
        """Yield the pages that a decision may rest on, private ones or the others, with the changes so far."""
        opened = self.read_pages
        for path, memory in self.pages.memories.items():
            if memory.is_private == is_private and not memory.is_off_record:
                yield opened.get(path, memory)
        for path, memory in opened.items():
            if path not in self.pages.memories and memory.is_private == is_private:
                yield memory

    def path_of_name(self, name: str, *, is_private: bool) -> str:
        """Return the path of the page of a person, project or thing by its title or alias; "" where there is none."""
        folded_name = name.casefold()
        if not folded_name or name == USER:
            return ""
        for page in self.pages.by_name.get(folded_name, ()):
            is_usable = page.is_private == is_private and not page.is_off_record
            if is_usable and self.pages.kind_of(page.path) == "concrete":
                return page.path
        # pages begun in this run count too, or two candidates would begin the same page twice
        for path, new_page in self.new_pages.items():
            names = (new_page.title, new_page.meta.get("subject", ""), *new_page.meta.get("aliases", ()))
            is_usable = new_page.is_private == is_private and self.pages.kind_of(path) == "concrete"
            if is_usable and folded_name in map(str.casefold, names):
                return path
        return ""

    def path_of_skill(self, title: str, *, is_private: bool) -> str:
        """Return the path of the how-to whose title is nearly the same; "" where there is none."""
        titles = {page.path: page.title for page in self.memories(is_private=is_private)}
        titles |= {path: page.title for path, page in self.new_pages.items() if page.is_private == is_private}
        scores = {path: likeness(name, title) for path, name in titles.items() if self.pages.kind_of(path) == "skills"}
        path = max(scores, key=lambda path: scores[path], default="")
        return path if path and scores[path] >= SAME_TITLE else ""

    def statements_of(self, memory: Memory) -> list[CurrentStatement]:
        """Return the statements of a page that hold now."""
        page = memory.uuid or memory.path
        folder = posixpath.dirname(memory.path)
        return [
            CurrentStatement(
                id=_statement_id(page, statement),
                path=memory.path,
                page=page,
                title=memory.title,
                statement=statement,
                is_ours=self.log.is_ours(page, statement),
                is_private=memory.is_private,
                text=with_rooted_links(self.brain, statement.text, [folder], self.pages.path_by_uuid),
                since=self.log.since_of(page, statement),
            )
            for statement in memory.current_statements
        ]

    def statement(self, statement_id: str) -> CurrentStatement | None:
        """Return the current statement of an id; None where there is none, or its page is off the record."""
        uuid_or_path, opened = statement_id.partition("#")[0], self.read_pages
        path_of_added = {memory.uuid: path for path, memory in opened.items() if self.is_new(path)}
        path = self.pages.path_by_uuid.get(uuid_or_path, path_of_added.get(uuid_or_path, uuid_or_path))
        memory = opened.get(path, self.pages.memories.get(path))
        if memory is None or memory.is_off_record:
            return None
        return next((current for current in self.statements_of(memory) if current.id == statement_id), None)

    @cached_property
    def first_ids_by_words(self) -> tuple[dict[str, str], dict[str, str]]:
        """`ids_by_words` when it was first asked for."""
        return self.ids_by_words()

    def ids_by_words(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the ids of the current statements by their folded text, with the changes so far: open, and private."""
        ids: tuple[dict[str, str], dict[str, str]] = ({}, {})
        for is_private in (False, True):
            for memory in self.memories(is_private=is_private):
                for statement in memory.current_statements:
                    name = _statement_id(memory.uuid or memory.path, statement)
                    ids[is_private].setdefault(folded(statement.text), name)
        return ids

    # --- places -----------------------------------------------------------------------------------------

    def free_path(self, folder: str, title: str) -> str:
        """Return a path in a folder for a new page, named by its title, that no file and no new page has."""
        names = {posixpath.basename(path).casefold() for path in self.new_pages if posixpath.dirname(path) == folder}
        while True:
            path = self.pages.free_path(folder, title, names)
            if is_free(self.brain, path):
                return path
            names.add(posixpath.basename(path).casefold())

    def day_page(self, at: str, *, is_private: bool, size: int = 0) -> str:
        """Return the path of the page of a day, the last one that is not full; it is begun where it does not exist.

        Pages have a limited size so that the cost of filing an exchange does not grow with its day.

        Args:
            at: A moment of the day, ISO 8601.
            is_private: Whether the day's private page is meant.
            size: The characters that come to it.

        Raises:
            FormatError: The folder cannot be made, since a file has its path.
        """
        day = self.brain.day_of(at)
        folder = f"{self.brain.tree.relative(self.brain.tree.long_term)}/events/{day.replace('-', '/')}"
        if not can_hold(self.brain, folder):
            raise FormatError(folder, "is no folder, so that nothing can be filed there; move away what stands there")
        first = f"{folder}/{day}" + "-private" * is_private
        number = self._day_numbers.get(first, 1)
        while os.path.lexists(self.brain.tree.absolute(f"{first}-{number + 1}.md")):
            number += 1
        while not self._takes_more(path := first + f"-{number}" * (number > 1) + ".md", is_private=is_private):
            number += 1
        self._day_numbers[first] = number
        self._sizes[path] += size
        marks = f" ({number})" * (number > 1) + " (private)" * is_private
        title = format_date(date.fromisoformat(day)) + marks
        self.new_pages.setdefault(path, NewPage(title, {"private": True} if is_private else {}))
        return path

    def _takes_more(self, path: str, *, is_private: bool) -> bool:
        """Return whether a page of a day is not full, can be read or made, and is not open for what is private."""
        if path not in self._sizes:
            try:
                page = self.page(path)
            except FormatError:
                return False
            if not is_free(self.brain, path) if page is None else is_private and not page.memory.is_private:
                return False
            self._sizes[path] = len(str(page or ""))
        return self._sizes[path] < PAGE_CHARACTERS

    # --- what the commit is to write ----------------------------------------------------------------------

    def finish(self) -> Mentions:
        """Bring the front matter of the changed pages up to date; a page that was emptied goes.

        Returns:
            What finds the pages that texts name, as the run leaves them.
        """
        mentions = Mentions((self.pages.memories | self.read_pages).values(), self.pages.root)
        now, sources = iso(self.brain.clock.now()), defaultdict[str, list[str]](list)
        for path, exchanges in self._sources:
            sources[path] += exchanges
        for path in dict.fromkeys((*self.edited, *sources)):
            page = self.opened(path)
            # no page on which a person ever wrote
            if path in self.emptied and is_bare(page.memory) and not self.log.touched_at(path):
                self.write(path, None)
                continue
            written = now if self.is_new(path) else self.brain.written_at(path)
            links = mentions.renewed(page.memory)
            keys = {"updated_at": now} | ({} if links is None else {MENTIONS: links})
            self.put(with_added(page.with_missing_keys(new_id(), written), keys, sources=sources[path]))
        return mentions


def with_added(
    page: MemoryDocument, meta: Mapping[str, object] | None = None, **added: Iterable[str]
) -> MemoryDocument:
    """Return a page with keys of front matter, and further items in its lists: at most `MAX_NAMES` tags and aliases."""
    keys = dict(meta or {})
    for key, items in added.items():
        present = page.memory.tags if key == "tags" else page.memory.meta.get(key) or ()
        if isinstance(present, list | tuple):  # else a person wrote something else under this key: it is theirs
            listed = [str(item) for item in present if item]
            new = [item for item in dict.fromkeys(items) if item not in listed]
            if new := new if key == "sources" else new[: max(0, MAX_NAMES - len(listed))]:
                keys[key] = [*listed, *new]
    return page.set_meta(**keys) if keys else page


def reinforced(page: MemoryDocument) -> MemoryDocument:
    """Return a page one of whose statements was said again."""
    return page.set_meta(reinforcement_count=page.memory.reinforcement_count + 1)


def wants_headings(page: MemoryDocument, kind: str) -> bool:
    """Return whether a page is of `concrete/` and has many statements and no headings; a person's own stay alone."""
    return kind == "concrete" and len(page.memory.current_statements) > MAX_UNDIVIDED and not page.is_divided


def _statement_id(page: str, statement: Statement) -> str:
    """Return the id of a statement on the page with a uuid (see `CurrentStatement.id`)."""
    return f"{page}#{statement.block_id or '~' + text_hash(statement.text)[:8]}"


def can_hold(brain: Brain, folder: str) -> bool:
    """Return whether a page can be made in a folder, which need not exist.

    It cannot where the folder leads outside, or one above it is a file.
    """
    path = brain.tree.absolute(folder)
    try:
        brain.tree.confine(folder)
    except ConfinementError:
        return False
    return next(parent for parent in (path, *path.parents) if os.path.lexists(parent)).is_dir()


def is_free(brain: Brain, path: str) -> bool:
    """Return whether a page can be made at a path: no file has it, and its folder can be made."""
    return not os.path.lexists(brain.tree.absolute(path)) and can_hold(brain, posixpath.dirname(path))
