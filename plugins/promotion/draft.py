"""Memory pages as a promotion changes them: read when first needed, edited in memory, written by the one commit."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConfinementError, FormatError
from brainiac.events import Change, create, new_id, update
from brainiac.formats.index_page import parse_index
from brainiac.formats.markdown import PRIVATE, one_line
from brainiac.formats.page import Memory, MemoryDocument, Statement, new_memory
from brainiac.llm.schemas import Page
from brainiac.storage.pages import PageSet
from brainiac.storage.relinking import with_rooted_links
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.text.dates import format_date
from brainiac.text.tokens import likeness

USER = "User"
SAME_TITLE = 0.6  # of their runs of signs: two titles of one how-to
MAX_TAGS, MAX_ALIASES = 12, 12
_IMPORTANCE = {"": -1, "low": 0, "medium": 1, "high": 2}


@dataclass(frozen=True, slots=True)
class Known:
    """A statement that stands in memory.

    Attributes:
        id: `<page uuid>#<block id>`, or `<page uuid>#~<hash>` where a person wrote it without a block id.
        path: Of its page.
        page: The page's uuid, or its path for want of one.
        statement: As it stands.
        is_ours: A process wrote it so.
        is_private: It must not leave this machine.
        text: What it says, its links by their paths from the root (`relinking`).
        since: The date it was said, if a journal tells.
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


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page that a run begins.

    Attributes:
        title: Its heading.
        meta: Front matter besides what every page has. What a page was first begun with is what it is begun with
            again when the step that began it is dropped: `private` above all.
    """

    title: str
    meta: dict[str, Any]

    @property
    def is_private(self) -> bool:
        """It must not be shown to a remote model."""
        return "private" in self.meta


@dataclass(slots=True)
class Working:
    """One page in work.

    Attributes:
        before: Its text as it was read; None for a new page.
        document: As it is by now.
        sources: Exchange ids to add; likewise `tags` and `aliases`.
        reinforced: How often something of it was stated again.
        named: What synthesis made of it, if it was asked.
    """

    before: str | None
    document: MemoryDocument
    sources: dict[str, None] = field(default_factory=dict)
    tags: dict[str, None] = field(default_factory=dict)
    aliases: dict[str, None] = field(default_factory=dict)
    reinforced: int = 0
    importance: str = ""
    named: Page | None = None

    @property
    def current(self) -> list[Statement]:
        """The statements that hold."""
        return [statement for statement in self.document.memory.statements if not statement.is_history]

    def copied(self) -> Working:
        """Return a copy that further work does not change."""
        return replace(self, sources=dict(self.sources), tags=dict(self.tags), aliases=dict(self.aliases))

    def finished(self, now: str) -> MemoryDocument:
        """Return the page with its front matter brought up to date."""
        document, memory = self.document, self.document.memory
        if str(document) == self.before and not self.reinforced and not self.sources:
            return document
        keys: dict[str, object] = {"updated_at": now}
        keys |= _longer(memory, "sources", list(self.sources)) | _longer(
            memory, "aliases", list(self.aliases)[:MAX_ALIASES]
        )
        if tags := [tag for tag in self.tags if tag not in memory.tags]:
            keys["tags"] = [*memory.tags, *tags][:MAX_TAGS]
        if self.reinforced:
            keys["reinforcement_count"] = memory.reinforcement_count + self.reinforced
        if _IMPORTANCE[self.importance] > _IMPORTANCE.get(str(memory.meta.get("importance") or ""), -1):
            keys["importance"] = self.importance
        if self.named and self.named.emotion and memory.emotion in ("", "neutral"):
            keys["emotion"] = self.named.emotion
        if self.named and self.named.summary:
            keys["summary"] = one_line(self.named.summary)
        return document.with_missing_keys(new_id(), now).set_meta(**keys)


def _longer(memory: Memory, key: str, added: Sequence[str]) -> dict[str, object]:
    """Return a list of the front matter with what it lacks; nothing where a person means something else by it."""
    standing = memory.meta.get(key) or []
    if not isinstance(standing, list):
        return {}
    known = [str(item) for item in standing if item]
    new = [item for item in added if item not in known]
    return {key: [*known, *new]} if new else {}


class Draft:
    """The pages that one promotion changes, among all that there are.

    Args:
        brain: The brain.
        log: What the journals tell; it takes in what becomes ours.
        begun: The pages that the run begins, by path; added to.
    """

    def __init__(self, brain: Brain, log: StatementLog, begun: dict[str, NewPage] | None = None) -> None:
        self.brain, self.log = brain, log
        self.begun = {} if begun is None else begun
        self.working: dict[str, Working] = {}

    def anew(self) -> Draft:
        """Return a draft on the pages as they stand now, on which nothing was done yet."""
        return Draft(self.brain, self.log, self.begun)

    @cached_property
    def pages(self) -> PageSet:
        """All pages, as they stood when the first of them was looked for."""
        return self.brain.pages()

    # --- finding ----------------------------------------------------------------------------------------

    def page(self, path: str) -> Working | None:
        """Return a page for work; None where nothing stands.

        Raises:
            FormatError: What stands there is no page that may be changed.
        """
        if path not in self.working:
            text = self.brain.read_page(path)
            if text is None:
                return None
            self.working[path] = Working(text, MemoryDocument(text, path))
        return self.working[path]

    def opened(self, path: str) -> Working:
        """Return a page for work, begun where nothing stands."""
        if working := self.page(path):
            return working
        page, now = self.begun[path], iso(self.brain.clock.now())
        return self.add(path, new_memory(page.title, uuid=new_id(), now=now, **page.meta))

    def add(self, path: str, text: str) -> Working:
        """Take in a new page."""
        self.working[path] = Working(None, MemoryDocument(text, path))
        return self.working[path]

    @contextmanager
    def undone_on_error(self, paths: Collection[str]) -> Iterator[None]:
        """Leave pages as they were when what is done within fails halfway."""
        before = {path: self.working[path].copied() for path in paths if path in self.working}
        try:
            yield
        except BaseException:
            for path in paths:
                self.working.pop(path, None)
            self.working |= before
            raise

    def memories(self, *, is_private: bool) -> Iterator[Memory]:
        """Yield the pages that a decision may rest on, private ones or the others, as they are by now."""
        for path, memory in self.pages.memories.items():
            if memory.is_private == is_private and not memory.is_off_record:
                yield self.working[path].document.memory if path in self.working else memory
        for path, working in self.working.items():
            if path not in self.pages.memories and working.document.memory.is_private == is_private:
                yield working.document.memory

    def path_called(self, name: str, *, is_private: bool) -> str:
        """Return the page of a person, project or thing: a subject has one; "" where it has none."""
        wanted = name.casefold()
        if not wanted or name == USER:
            return ""
        for page in self.pages.by_name.get(wanted, ()):
            is_fit = page.is_private == is_private and not page.is_off_record
            if is_fit and self.pages.kind_of(page.path) == "concrete":
                return page.path
        for path, begun in self.begun.items():
            names = (begun.title, str(begun.meta.get("subject")), *begun.meta.get("aliases", ()))
            if begun.is_private == is_private and wanted in map(str.casefold, names):
                return path if self.pages.kind_of(path) == "concrete" else ""
        return ""

    def skill_called(self, title: str, *, is_private: bool) -> str:
        """Return the page of the same how-to, one whose title says nearly the same; "" where there is none."""
        pages = [(page.path, page.title) for page in self.memories(is_private=is_private)]
        pages += [(path, begun.title) for path, begun in self.begun.items() if begun.is_private == is_private]
        skills = [(path, name) for path, name in pages if self.pages.kind_of(path) == "skills"]
        path, name = max(skills, key=lambda page: likeness(page[1], title), default=("", ""))
        return path if likeness(name, title) >= SAME_TITLE else ""

    def statements_of(self, memory: Memory) -> list[Known]:
        """Return the statements of a page that hold."""
        page = memory.uuid or memory.path
        folder = posixpath.dirname(memory.path)
        return [
            Known(
                id=_statement_id(page, statement),
                path=memory.path,
                page=page,
                title=memory.title,
                statement=statement,
                is_ours=self.log.is_ours(page, statement),
                is_private=memory.is_private or PRIVATE.search(statement.text) is not None,
                text=with_rooted_links(self.brain, statement.text, [folder], self.pages.place_of),
                since=self.log.since_of(page, statement),
            )
            for statement in memory.statements
            if not statement.is_history
        ]

    def known(self, name: str) -> Known | None:
        """Return the statement of an id that holds."""
        page, _, _ = name.partition("#")
        path = self.pages.place_of.get(page) or self._added.get(page, page)
        working = self.working.get(path)
        memory = working.document.memory if working else self.pages.memories.get(path)
        if memory is None or memory.is_off_record:
            return None
        return next((statement for statement in self.statements_of(memory) if statement.id == name), None)

    @property
    def _added(self) -> dict[str, str]:
        return {working.document.memory.uuid: path for path, working in self.working.items() if working.before is None}

    def same_words(self, text: str, *, is_private: bool) -> str:
        """Return the id of the statement that stands in the same words, on whatever page; "" where none does."""
        return self._by_words.get((folded(text), is_private), "")

    @cached_property
    def _by_words(self) -> dict[tuple[str, bool], str]:
        names: dict[tuple[str, bool], str] = {}
        for is_private in (False, True):
            for memory in self.memories(is_private=is_private):
                for statement in memory.statements:
                    if not statement.is_history:
                        name = _statement_id(memory.uuid or memory.path, statement)
                        names.setdefault((folded(statement.text), is_private), name)
        return names

    def total(self) -> int:
        """Return how many statements held when the pages were read."""
        statements = (statement for memory in self.pages.memories.values() for statement in memory.statements)
        return sum(not statement.is_history for statement in statements)

    # --- places -----------------------------------------------------------------------------------------

    def folders(self) -> dict[str, str]:
        """Return the folders of `concrete/` and `skills/` with what each is about, by path below long-term memory."""
        top = self.pages.root + "/"
        names = [folder.removeprefix(top) for folder in self.pages.children if folder.startswith(top)]
        return {name: self._summary_of(top + name) for name in names if name.split("/")[0] in ("concrete", "skills")}

    def _summary_of(self, folder: str) -> str:
        index = self.pages.pages.get(f"{folder}/_index.md")
        return parse_index(index.path, index.text).summary if index else ""

    def free_path(self, folder: str, title: str) -> str:
        """Return where a new page of a folder may stand."""
        taken = {posixpath.basename(path).casefold() for path in self.begun if posixpath.dirname(path) == folder}
        while True:
            path = self.pages.free_path(folder, title, taken)
            if is_free(self.brain, path):
                return path
            taken.add(posixpath.basename(path).casefold())

    # --- what the commit is to write ----------------------------------------------------------------------

    def changes(self, now: str) -> list[Change]:
        """Return what the commit is to write."""
        changes = []
        for path, working in sorted(self.working.items()):
            text = str(working.finished(now))
            if working.before is None:
                changes.append(create(path, text))
            elif text != working.before:
                changes.append(update(path, working.before, text))
        return changes


def day_page(brain: Brain, at: str, *, is_private: bool, number: int = 1) -> tuple[str, NewPage]:
    """Return path and title of a page of a day: what happened, and what was said word for word."""
    day = brain.day_of(at)
    suffix = ("-private" if is_private else "") + (f"-{number}" if number > 1 else "")
    root = brain.tree.relative(brain.tree.long_term)
    path = f"{root}/events/{day.replace('-', '/')}/{day}{suffix}.md"
    marks = (f" ({number})" if number > 1 else "") + (" (private)" if is_private else "")
    title = format_date(date.fromisoformat(day)) + marks
    return path, NewPage(title, {"private": True} if is_private else {})


def free_day_page(draft: Draft, at: str, *, is_private: bool) -> tuple[str, NewPage]:
    """Return the page of a day that can be written: a further one where something else stands in its place.

    Raises:
        FormatError: Its folder cannot be one.
    """
    number = 1
    while True:
        path, begun = day_page(draft.brain, at, is_private=is_private, number=number)
        check_folder(draft.brain, posixpath.dirname(path))
        page = draft.pages.memories.get(path)
        if page.is_private >= is_private if page else is_free(draft.brain, path):
            return path, begun
        number += 1


def check_folder(brain: Brain, folder: str) -> None:
    """Raise `FormatError` where something that is no folder keeps a folder from being made."""
    if not can_hold(brain, folder):
        raise FormatError(folder, "is no folder, so that nothing can be filed there; move away what stands there")


def _statement_id(page: str, statement: Statement) -> str:
    return f"{page}#{statement.block_id or '~' + text_hash(statement.text)[:8]}"


def folded(text: str) -> str:
    """Return a text with case and white space folded: what says the same in the same words."""
    return " ".join(text.split()).casefold()


def can_hold(brain: Brain, folder: str) -> bool:
    """Return whether a page can be made in a folder, which need not be there yet."""
    at = brain.tree.absolute(folder)
    try:
        brain.tree.confine(folder)
    except ConfinementError:
        return False
    return next(place for place in (at, *at.parents) if os.path.lexists(place)).is_dir()


def is_free(brain: Brain, path: str) -> bool:
    """Return whether a page can be made at a path."""
    return not os.path.lexists(brain.tree.absolute(path)) and can_hold(brain, posixpath.dirname(path))
