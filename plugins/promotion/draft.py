"""The pages that a promotion changes: read when first needed, changed in memory, written by its one commit."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import count
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConfinementError, FormatError
from brainiac.events import Change, create, new_id, remove, update
from brainiac.formats.authors import PERSON, author_of_statement
from brainiac.formats.index_page import parse_index
from brainiac.formats.markdown import one_line
from brainiac.formats.page import Memory, MemoryDocument, Statement, new_memory
from brainiac.history.forget import is_bare
from brainiac.history.why import folded
from brainiac.llm.schemas import Page
from brainiac.storage.links import MENTIONS, Mentions, with_rooted_links
from brainiac.storage.pages import PageSet
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.dates import format_date
from brainiac.text.tokens import likeness

USER = "User"  # what models call the person: the subject of most pages
SAME_TITLE = 0.6  # two titles that share so many of their character trigrams name the same how-to
MAX_TAGS, MAX_ALIASES = 12, 12
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


@dataclass(slots=True)
class PageDraft:
    """One page with the changes of this run.

    Attributes:
        before: Its text as it was read; None for a new page.
        document: Its text with the changes so far.
        written_at: When its file was last written, ISO 8601 UTC; "" for a new page.
        sources: Exchange ids to add to its front matter, in order (a dictionary without values).
        tags: Tags to add, likewise.
        aliases: Aliases to add, likewise.
        reinforced: How many of its statements were said again.
        importance: The highest importance of what was stated: `low`, `medium`, `high`, or "".
        answer: A model's answer about its name and order; None where none was asked.
        summary: The summary that an operation gave it; "" for none.
        may_be_empty: Whether a stand-in was taken out of it, so that it is removed if nothing is left.
    """

    before: str | None
    document: MemoryDocument
    written_at: str = ""
    sources: dict[str, None] = field(default_factory=dict)
    tags: dict[str, None] = field(default_factory=dict)
    aliases: dict[str, None] = field(default_factory=dict)
    reinforced: int = 0
    importance: str = ""
    answer: Page | None = None
    summary: str = ""
    may_be_empty: bool = False

    @property
    def current(self) -> list[Statement]:
        """Its statements that hold now."""
        return self.document.memory.current_statements

    def wants_headings(self, kind: str) -> bool:
        """Whether it is of `concrete/` and has many statements and no headings; a person's own are not added to."""
        return kind == "concrete" and len(self.current) > MAX_UNDIVIDED and not self.document.is_divided

    def finished(self, now: str, mentions: Mentions) -> MemoryDocument:
        """Return the page with its front matter brought up to date.

        Args:
            now: ISO 8601 UTC.
            mentions: The pages that it may name.
        """
        document, memory = self.document, self.document.memory
        if str(document) == self.before and not self.reinforced and not self.sources:
            return document
        keys: dict[str, object] = {"updated_at": now}
        for key, added in (("sources", list(self.sources)), ("aliases", list(self.aliases)[:MAX_ALIASES])):
            present = memory.meta.get(key) or []
            if isinstance(present, list):  # else a person wrote something else under this key: it is theirs
                items = [str(item) for item in present if item]
                keys |= {key: [*items, *new]} if (new := [item for item in added if item not in items]) else {}
        if tags := [tag for tag in self.tags if tag not in memory.tags]:
            keys["tags"] = [*memory.tags, *tags][:MAX_TAGS]
        if self.reinforced:
            keys["reinforcement_count"] = memory.reinforcement_count + self.reinforced
        # only "high" is noted: Organization asks before it archives such a page
        if self.importance == "high" and not memory.meta.get("importance"):
            keys["importance"] = self.importance
        # a person's word for it is not replaced
        if self.answer and self.answer.emotion and memory.emotion in ("", "neutral"):
            keys["emotion"] = self.answer.emotion
        if summary := (self.answer and one_line(self.answer.summary)) or self.summary:
            keys["summary"] = summary
        if (links := mentions.renewed(memory)) is not None:
            keys[MENTIONS] = links
        return document.with_missing_keys(new_id(), self.written_at or now).set_meta(**keys)


class Draft:
    """All pages as one promotion will leave them.

    Args:
        brain: The brain.
        log: Statements and their owners, from the journals; the statements that the run writes are added to it.
        new_pages: The pages that the run begins, by path; added to.

    Attributes:
        page_drafts: The pages that are changed, by path.
    """

    def __init__(self, brain: Brain, log: StatementLog, new_pages: dict[str, NewPage] | None = None) -> None:
        self.brain, self.log = brain, log
        self.new_pages = {} if new_pages is None else new_pages
        self.page_drafts: dict[str, PageDraft] = {}

    @cached_property
    def pages(self) -> PageSet:
        """All pages, as they were when this was first asked for."""
        return self.brain.pages()

    # --- finding ----------------------------------------------------------------------------------------

    def page(self, path: str) -> PageDraft | None:
        """Return the draft of a page that exists or was added; None where there is no such page.

        Raises:
            FormatError: The file at this path is no page that may be changed.
        """
        if path not in self.page_drafts:
            text = self.brain.read_page(path)
            if text is None:
                return None
            self.page_drafts[path] = PageDraft(text, MemoryDocument(text, path), self.brain.written_at(path))
        return self.page_drafts[path]

    def opened(self, path: str) -> PageDraft:
        """Return the draft of a page; one that does not exist is begun as `new_pages` says."""
        if page_draft := self.page(path):
            return page_draft
        page, now = self.new_pages[path], iso(self.brain.clock.now())
        return self.add(path, new_memory(page.title, uuid=new_id(), now=now, **page.meta))

    def add(self, path: str, text: str) -> PageDraft:
        """Add a new page with its text."""
        self.page_drafts[path] = PageDraft(before=None, document=MemoryDocument(text, path))
        return self.page_drafts[path]

    @contextmanager
    def undone_on_error(self, paths: Collection[str]) -> Iterator[None]:
        """Give pages their former content where the block raises: a step changes all of its pages or none."""
        before = {
            path: replace(page, sources=dict(page.sources), tags=dict(page.tags), aliases=dict(page.aliases))
            for path in paths
            if (page := self.page_drafts.get(path))
        }
        try:
            yield
        except BaseException:
            for path in paths:
                self.page_drafts.pop(path, None)
            self.page_drafts |= before
            raise

    def memories(self, *, is_private: bool) -> Iterator[Memory]:
        """Yield the pages that a decision may rest on, private ones or the others, with the changes so far."""
        for path, memory in self.pages.memories.items():
            if memory.is_private == is_private and not memory.is_off_record:
                yield self.page_drafts[path].document.memory if path in self.page_drafts else memory
        for path, page_draft in self.page_drafts.items():
            if path not in self.pages.memories and page_draft.document.memory.is_private == is_private:
                yield page_draft.document.memory

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
        uuid_or_path, _, _ = statement_id.partition("#")
        added = (draft.document.memory for draft in self.page_drafts.values() if draft.before is None)
        path_of_added = {memory.uuid: memory.path for memory in added}.get(uuid_or_path, uuid_or_path)
        path = self.pages.path_by_uuid.get(uuid_or_path, path_of_added)
        page_draft = self.page_drafts.get(path)
        memory = page_draft.document.memory if page_draft else self.pages.memories.get(path)
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

    def folders(self) -> dict[str, str]:
        """Return the summaries of the folders of `concrete/` and `skills/`, by their path below long-term memory."""
        top = self.pages.root + "/"
        names = [folder.removeprefix(top) for folder in self.pages.children if folder.startswith(top)]
        names = [name for name in names if name.split("/")[0] in ("concrete", "skills")]
        indexes = {name: self.pages.pages.get(f"{top}{name}/_index.md") for name in names}
        return {name: parse_index(page.path, page.text).summary if page else "" for name, page in indexes.items()}

    def free_path(self, folder: str, title: str) -> str:
        """Return a path in a folder for a new page, named by its title, that no file and no new page has."""
        names = {posixpath.basename(path).casefold() for path in self.new_pages if posixpath.dirname(path) == folder}
        while True:
            path = self.pages.free_path(folder, title, names)
            if is_free(self.brain, path):
                return path
            names.add(posixpath.basename(path).casefold())

    def mentions(self) -> Mentions:
        """Return what finds the pages that texts name, as the run leaves them."""
        drafted = {path: draft.document.memory for path, draft in self.page_drafts.items()}
        return Mentions((self.pages.memories | drafted).values(), self.pages.root)

    # --- what the commit is to write ----------------------------------------------------------------------

    def changes(self) -> list[Change]:
        """Return the changes of files for the commit; the pages get the present moment as `updated_at`."""
        changes: list[Change] = []
        mentions, now = self.mentions(), iso(self.brain.clock.now())
        for path, page_draft in sorted(self.page_drafts.items()):
            text = str(page_draft.finished(now, mentions))
            is_empty = page_draft.may_be_empty and is_bare(page_draft.document.memory)
            if page_draft.before is None:
                changes.append(create(path, text))
            elif is_empty and not self.log.touched_at(path):  # a page on which no person ever wrote
                changes.append(remove(path, page_draft.before))
            elif text != page_draft.before:
                changes.append(update(path, page_draft.before, text))
        return changes


def day_page(brain: Brain, at: str, *, is_private: bool, number: int = 1) -> tuple[str, NewPage]:
    """Return path and beginning of the page of a day, which holds its events and, word for word, its exchanges.

    Args:
        brain: The brain.
        at: A moment of the day, ISO 8601.
        is_private: Whether the day's private page is meant.
        number: Which page of that day, from 1.
    """
    day = brain.day_of(at)
    suffix = ("-private" if is_private else "") + (f"-{number}" if number > 1 else "")
    root = brain.tree.relative(brain.tree.long_term)
    path = f"{root}/events/{day.replace('-', '/')}/{day}{suffix}.md"
    marks = (f" ({number})" if number > 1 else "") + (" (private)" if is_private else "")
    title = format_date(date.fromisoformat(day)) + marks
    return path, NewPage(title, {"private": True} if is_private else {})


def free_day_page(draft: Draft, at: str, *, is_private: bool) -> tuple[str, NewPage]:
    """Return path and beginning of the first page of a day that can be written.

    A page cannot be used where another file has its path, or where the words are private and the page is not.

    Raises:
        FormatError: The folder cannot be made, since a file has its path.
    """
    for number in count(1):
        path, new_page = day_page(draft.brain, at, is_private=is_private, number=number)
        check_folder(draft.brain, posixpath.dirname(path))
        page = draft.pages.memories.get(path)
        if is_free(draft.brain, path) if page is None else page.is_private or not is_private:
            break
    return path, new_page


def check_folder(brain: Brain, folder: str) -> None:
    """Raise `FormatError` where a file has the path of a folder, or of a folder above it."""
    if not can_hold(brain, folder):
        raise FormatError(folder, "is no folder, so that nothing can be filed there; move away what stands there")


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
