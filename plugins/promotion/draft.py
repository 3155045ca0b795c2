"""Memory pages as a promotion changes them: read once, edited in memory, written by the one commit at the end."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConfinementError, FormatError
from brainiac.events import Change, PathKind, create, new_id, update
from brainiac.formats.discretion import is_off_record, is_private_note
from brainiac.formats.frontmatter import split
from brainiac.formats.memory import MemoryDocument, Statement, new_memory, title_of, whole_memory
from brainiac.formats.statements import find_statements
from brainiac.storage.relinking import rooted

from .lookup import Lookup
from .stems import content_stems

KINDS = ("concrete", "events", "skills")
_RANK = {"low": 0, "medium": 1, "high": 2}


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What a page is found by.

    Attributes:
        path: Relative, posix.
        subject: Whom or what it is about; "User" for what is kept about the user by topic.
        names: Title and subject, casefolded.
        kind: The first folder below `long_term/`.
        is_private: Must not be shown to a remote model.
        aliases: Its other names, as written.
    """

    path: str
    uuid: str
    title: str
    subject: str
    names: frozenset[str]
    kind: str
    is_private: bool
    aliases: tuple[str, ...] = ()


class Catalogue:
    """The pages and folders of long-term memory, read once a run.

    Args:
        brain: The brain.
        lookup: Takes in the statements of all pages.
        is_read: False: it knows of no page but those that are added.
    """

    def __init__(self, brain: Brain, lookup: Lookup | None = None, *, is_read: bool = True) -> None:
        self._brain, self._lookup = brain, lookup
        self.root = brain.tree.relative(brain.tree.long_term)
        self.by_path: dict[str, PageInfo] = {}
        self.places: dict[str, str] = {}  # by uuid
        self.begun: dict[str, dict[str, Any]] = {}  # front matter of the pages that this run begins, by path
        self._subjects: dict[tuple[str, bool], PageInfo] = {}
        self.folders: dict[str, set[str]] = {}  # stems taken, casefolded
        self.standing: dict[tuple[str, bool], str] = {}  # ids of statements by their words, private ones apart
        entries = brain.tree.walk(brain.tree.long_term) if is_read else ()
        for entry in sorted(entries, key=lambda entry: entry.path):
            self._read(brain.tree.relative(entry.path))

    def _read(self, path: str) -> None:
        kind = self._brain.tree.kind_of(path)
        if kind in (PathKind.MEMORY, PathKind.INDEX_PAGE):
            self.folders.setdefault(posixpath.dirname(path), set()).add(_stem(path))
        if kind is not PathKind.MEMORY:
            return
        try:
            text = self._brain.read_page(path)
            if text is None:
                return
            meta, offset = split(text, path)
        except FormatError:
            return  # nobody can tell whose it is: it is left alone, its name is taken
        if is_off_record(text.encode("utf-8", "surrogateescape")):
            return  # a decision that rests on it would be kept
        title = title_of(meta, text, offset, path)
        aliases = meta.get("aliases")
        named = tuple(str(alias) for alias in aliases if alias) if isinstance(aliases, list) else ()
        subject, is_hidden = str(meta.get("subject") or ""), is_private_note(text)
        self.add(path, str(meta.get("uuid") or ""), title, subject, is_hidden, named)
        for statement in find_statements(text, offset):
            if statement.is_history:
                continue
            words = folded(statement.text), is_hidden
            self.standing.setdefault(words, f"{meta.get('uuid') or path}#{statement.block_id}")
            if self._lookup:
                self._lookup.add(path, statement.text)

    def add(
        self, path: str, uuid: str, title: str, subject: str, is_private: bool, aliases: tuple[str, ...] = ()
    ) -> None:
        """Take a page in."""
        kind = path.removeprefix(self.root + "/").partition("/")[0]
        names = frozenset(name.casefold() for name in (title, subject) if name and name != "User")
        info = PageInfo(path, uuid, title, subject, names, kind, is_private, aliases)
        self.by_path[path] = info
        if kind == "concrete":
            for name in names:
                self._subjects.setdefault((name, is_private), info)
        if uuid:
            self.places[uuid] = path
        self.folders.setdefault(posixpath.dirname(path), set()).add(_stem(path))

    def begin(self, path: str, title: str, meta: dict[str, Any], *, is_private: bool) -> str:
        """Take in a page that a step begins, and return its text.

        The step may be dropped or put off, and a later one begin the page in its place: what the page was begun with
        is what it is begun with then, `private` above all.
        """
        uuid = new_id()
        meta = self.begun.setdefault(path, meta | ({"private": True} if is_private else {}))
        self.add(path, uuid, title, str(meta.get("subject") or ""), "private" in meta)
        return new_memory(title, uuid=uuid, now=iso(self._brain.clock.now()), **meta)

    def begin_whole(
        self, path: str, body: str, meta: dict[str, Any], *, tags: Iterable[str], is_private: bool
    ) -> tuple[str, str]:
        """Take in a page of its own, whose body is a note as it was written; return its text and its uuid."""
        meta = meta | ({"private": True} if is_private else {})
        uuid, now = new_id(), iso(self._brain.clock.now())
        self.add(path, uuid, str(meta["title"]), str(meta.get("subject") or ""), is_private)
        return whole_memory(body, uuid=uuid, now=now, tags=tags, **meta), uuid

    def of_subject(self, name: str, *, is_private: bool) -> PageInfo | None:
        """Return the page of a person, project or thing: a subject has one."""
        return self._subjects.get((name.casefold(), is_private))

    def of_skill(self, title: str, *, is_private: bool) -> PageInfo | None:
        """Return the page of the same how-to: one whose title says the same."""
        wanted = set(content_stems(title))
        for page in self.by_path.values():
            if page.kind == "skills" and page.is_private == is_private and wanted:
                have = set(content_stems(page.title))
                if wanted & have and len(wanted & have) >= 0.6 * max(len(wanted), len(have)):
                    return page
        return None

    def titles(self, *, is_private: bool) -> list[str]:
        """Return the titles of the pages of subjects; what is kept about the user by topic is none."""
        pages = [page for page in self.by_path.values() if page.kind == "concrete" and page.subject not in ("", "User")]
        return [page.title for page in pages if is_private or not page.is_private]


def can_hold(brain: Brain, folder: str) -> bool:
    """Return whether a page can be made in a folder, which need not be there yet."""
    at = brain.tree.absolute(folder)
    try:
        brain.tree.confine(folder)
    except ConfinementError:
        return False
    return next(each for each in (at, *at.parents) if os.path.lexists(each)).is_dir()


def is_free(brain: Brain, path: str) -> bool:
    """Return whether a page can be made at a path."""
    return not os.path.lexists(brain.tree.absolute(path)) and can_hold(brain, posixpath.dirname(path))


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0].casefold()


def folded(text: str) -> str:
    """Return a text with case and white space folded: what says the same in the same words."""
    return " ".join(text.split()).casefold()


@dataclass(slots=True)
class Working:
    """One page in work.

    Attributes:
        before: Its bytes as they were read; None for a new page.
        document: As it is by now.
        sources: Exchange ids to add.
        reinforced: How often something of it was stated again.
    """

    before: str | None
    document: MemoryDocument
    sources: dict[str, None] = field(default_factory=dict)
    tags: dict[str, None] = field(default_factory=dict)
    reinforced: int = 0
    emotion: str = ""
    importance: str = ""


class Draft:
    """The pages that one promotion changes.

    Args:
        brain: The brain.
        catalogue: What there is.
    """

    def __init__(self, brain: Brain, catalogue: Catalogue) -> None:
        self._brain, self.catalogue = brain, catalogue
        self.pages: dict[str, Working] = {}

    def page(self, path: str) -> Working | None:
        """Return a page for work; None where nothing stands.

        Raises:
            FormatError: What stands there is no page that may be changed.
        """
        if path not in self.pages:
            text = self._brain.read_page(path)
            if text is None:
                return None
            self.pages[path] = Working(text, MemoryDocument(text, path))
        return self.pages[path]

    def rooted(self, text: str, path: str) -> str:
        """Return a statement of a page, its links by their paths from the root."""
        return rooted(self._brain, text, [posixpath.dirname(path)], self.catalogue.places) if "](" in text else text

    def add(self, path: str, text: str) -> Working:
        """Begin a new page."""
        self.pages[path] = Working(None, MemoryDocument(text, path))
        return self.pages[path]

    def same_words(self, text: str, *, is_private: bool) -> tuple[str, ...]:
        """Return the id of the statement that stands in the same words; () where none does."""
        name = self.catalogue.standing.get((folded(text), is_private))
        return (name,) if name else ()

    def current(self, path: str) -> Iterator[Statement]:
        """Yield the statements of a page that hold, as it is by now."""
        try:
            working = self.page(path)
        except FormatError:
            return
        if working is not None:
            yield from (one for one in working.document.memory.statements if not one.is_history)

    def changes(self, now: str) -> list[Change]:
        """Return what the commit is to write."""
        changes = []
        for path, working in sorted(self.pages.items()):
            text = str(_finished(working, now))
            if working.before is None:
                changes.append(create(path, text))
            elif text != working.before:
                changes.append(update(path, working.before, text))
        return changes


def _finished(working: Working, now: str) -> MemoryDocument:
    """Bring the front matter of a page up to date, once."""
    document, meta = working.document, working.document.memory.meta
    is_touched = str(document) != working.before or working.reinforced or working.sources
    if not is_touched:
        return document
    standing = meta.get("sources") or []
    keys: dict[str, object] = {"updated_at": now}
    if isinstance(standing, list):  # else a person means something else by it
        known = [str(one) for one in standing if one]
        if fresh := [one for one in working.sources if one not in known]:
            keys["sources"] = [*known, *fresh]
    if tags := [tag for tag in working.tags if tag not in document.memory.tags]:
        keys["tags"] = [*document.memory.tags, *tags][:12]
    if working.reinforced:
        keys["reinforcement_count"] = document.memory.reinforcement_count + working.reinforced
    if working.emotion and document.memory.emotion in ("", "neutral"):
        keys["emotion"] = working.emotion
    if _RANK.get(working.importance, -1) > _RANK.get(str(meta.get("importance")), -1):
        keys["importance"] = working.importance
    return document.with_missing_keys(new_id(), now).set_meta(**keys)
