"""Puts conversations and notes of an export into `events/imported/`: a page each, word for word and dated.

An exchange has the same id whatever export it comes from, and the journal says on which page it was put. So a second
import adds only what is new, also after one that was killed, and what a person deleted stays deleted. An import makes
many commits, each with the ids of its exchanges, so that it needs little memory and nothing is half done. One event
causes them all, so that one `undo` takes all of them back. No model sees anything of it until a person asks for that.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError, UserError
from brainiac.events import Change, ExchangesImported, ImportStarted, content_hash, create, new_id, update
from brainiac.formats.authors import SERVICES
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.index_page import new_index
from brainiac.formats.markdown import (
    StmEvent,
    end_of_content,
    escape,
    find_events,
    one_line,
    render_exchange,
    splice,
)
from brainiac.formats.page import own_date
from brainiac.imports.reading import opened_exports
from brainiac.imports.records import Aside, Conversation, Item, Note, PastExchange, exchange_id, note_id, page_path
from brainiac.llm.redaction import redact
from brainiac.search.documents import IMPORTED
from brainiac.storage.causes import undone_events
from brainiac.storage.folders import title_of_folder
from brainiac.tree import slugify

PAGE_CHARACTERS = 32_000  # a longer conversation gets further pages
BATCH_CHARACTERS = 500_000  # of one commit
BATCH_ITEMS = 200
_ASIDES = "## Also in the export"
_ABOUT_ASIDES = "Other versions of messages, and what attached files said."


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of importing a conversation or a note.

    Attributes:
        title: As the person knows it.
        id: The service's own.
        taken: How many exchanges were imported; of a note 1.
        known: How many had been imported before.
        reason: Why nothing, or not all, was imported; "" where all was.
        path: Its page; "" where it has none.
    """

    title: str
    id: str
    taken: int = 0
    known: int = 0
    reason: str = ""
    path: str = ""

    @property
    def state(self) -> Literal["taken", "known", "skipped"]:
        """Whether something of it was imported now, all of it before, or nothing of it could be imported."""
        if self.taken:
            return "taken"
        return "known" if self.known else "skipped"


@dataclass(slots=True)
class Report:
    """The result of an import.

    Attributes:
        outcomes: By service, that of each conversation and note.
        others: Names of files of no known format.
        event: Id of the event by which all of it is undone; "" where nothing was imported.
    """

    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    event: str = ""


def import_path(
    brain: Brain,
    path: Path,
    *,
    is_dry: bool = False,
    is_private: bool = False,
    with_mail: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Import all that a file, an archive or a folder holds.

    Args:
        brain: The brain.
        path: What a person named.
        is_dry: Report what would be imported and write nothing.
        is_private: Mark every page private.
        with_mail: Import mail, which others wrote.
        progress: Called with the bytes read so far and their total.

    Raises:
        UserError: Nothing in it has a known format, or it is an archive that must not be unpacked.
    """
    report, commits = Report(), Commits(brain, path.name)
    with opened_exports(path, brain.zone) as (exports, report.others):
        if not exports:
            names = f" ({', '.join(report.others[:3])})" if report.others else ""
            raise UserError(
                f"{path}: nothing in it has a known format{names}; docs/import.md says what can be imported"
            )
        total, n_read = sum(export.size for export in exports), 0

        def count(n_bytes: int) -> None:
            nonlocal n_read
            n_read += n_bytes
            progress(min(n_read, total), total)

        if not with_mail and any(export.service == "mail" for export in exports):
            raise UserError(f"{path} holds mail, which is others' words more than yours; add --mail to import it")
        services = dict.fromkeys(export.service for export in exports)
        intakes = {name: Intake(brain, name, commits, is_dry=is_dry, is_private=is_private) for name in services}
        if "documents" in intakes and (folder := _folder_in_memory(brain, path)):
            intakes["documents"].top = folder
        for export in exports:
            outcomes = report.outcomes.setdefault(export.service, [])
            outcomes.extend(intakes[export.service].take(export.read(count)))
    report.event = commits.event
    return report


def _folder_in_memory(brain: Brain, path: Path) -> str:
    """Return the folder of long-term memory that a path is in; "" for a path outside.

    A document that lies in memory already gets its page beside it.
    """
    absolute, top = path.resolve(), brain.tree.long_term.resolve()
    folder = absolute if absolute.is_dir() else absolute.parent
    if top not in folder.parents:
        return ""
    return f"{brain.tree.relative(brain.tree.long_term)}/{folder.relative_to(top).as_posix()}"


class Commits:
    """Makes the commits of one import, all caused by one event.

    Args:
        brain: The brain.
        source: Name of the file or folder that a person named.
        by: Who imports.

    Attributes:
        event: Id of the event that causes them; "" before the first commit.
    """

    def __init__(self, brain: Brain, source: str, by: str = "cli") -> None:
        self._brain, self._source, self._by, self.event = brain, source, by, ""

    def commit(self, event: ExchangesImported, changes: Sequence[Change]) -> None:
        """Make a commit of the import."""
        if not self.event:
            self.event = self._brain.record(ImportStarted(source=self._source), by=self._by).id
        self._brain.commit(event, by=self._by, changes=changes, cause=self.event)


class Intake:
    """Puts conversations and notes of one service into a brain.

    Args:
        brain: The brain.
        service: The service.
        commits: Makes the commits.
        is_dry: Report what would be imported and write nothing.
        is_private: Mark every page private.
        is_undone_known: Count what an undone import took in as imported before: what imports by itself must not bring
            it back.

    Attributes:
        top: The folder of the pages: the service's, unless the documents lie in another folder of memory.
    """

    def __init__(
        self,
        brain: Brain,
        service: str,
        commits: Commits,
        *,
        is_dry: bool = False,
        is_private: bool = False,
        is_undone_known: bool = False,
    ) -> None:
        self._brain, self._service, self._commits = brain, service, commits
        self._is_dry, self._is_private = is_dry, is_private
        self._service_folder = f"{brain.tree.relative(brain.tree.long_term)}{IMPORTED}{service}"
        self.top = self._service_folder
        self._undone = json.dumps([] if is_undone_known else list(undone_events(brain)))
        self._dry_pages: dict[str, str] = {}  # page by exchange id, of a dry run, which the journal knows nothing of

    def take(self, items: Iterable[Item]) -> Iterator[Outcome]:
        """Import conversations and notes, several in a commit; yield the outcome of each."""
        for batch in _batches(items):
            yield from self._brain.retry(partial(self._take_batch, batch))

    def _take_batch(self, items: Sequence[Item]) -> list[Outcome]:
        """Import some conversations and notes in one commit.

        Raises:
            ConflictError: Somebody saved one of their pages meanwhile.
        """
        batch = _Batch(self._brain, self._service_folder)
        outcomes = [
            self._take_note(batch, item) if isinstance(item, Note) else self._take_conversation(batch, item)
            for item in items
        ]
        if self._is_dry:
            self._dry_pages |= batch.page_of
        elif changes := batch.changes():
            # the ids are in the event: by them a second import knows these exchanges
            episodes = {path: tuple(page.exchanges) for path, page in batch.pages.items() if page.exchanges}
            notes = {path: page.note for path, page in batch.pages.items() if page.note}
            event = ExchangesImported(service=self._service, episodes=episodes, notes=notes)
            with self._brain.commit_lock():
                self._refuse_imported_meanwhile(batch.page_of)
                self._commits.commit(event, changes)
        return outcomes

    def _refuse_imported_meanwhile(self, ids: Iterable[str]) -> None:
        """Refuse exchanges that were imported after their batch was begun.

        Another import runs at the same time, or one that was killed left a commit that is finished only now.

        Raises:
            ConflictError: Some are imported by now; a batch begun anew knows them.
        """
        self._brain.committer.finish_pending()
        self._brain.projection.follow()
        if pages := self._imported_pages(ids):
            raise ConflictError(sorted(set(pages.values())))

    # --- conversations ----------------------------------------------------------------------------------

    def _take_conversation(self, batch: _Batch, conversation: Conversation) -> Outcome:
        """Add the new exchanges of a conversation to a batch, and its asides that its pages do not have yet."""
        title = one_line(redact(self._brain, conversation.title)) or "Untitled"
        if conversation.problem:
            return Outcome(title, conversation.id, reason=conversation.problem)
        exchanges = {self._id_of(conversation, exchange): exchange for exchange in conversation.exchanges}
        # ids tell which exchanges are new: their texts on the pages are redacted, and perhaps changed by a person
        pages = self._imported_pages(exchanges)
        for pages_of_run in (self._dry_pages, batch.page_of):
            pages |= {uuid: pages_of_run[uuid] for uuid in exchanges if uuid in pages_of_run}
        new_events = [
            self._event(uuid, exchange, conversation.file_at)
            for uuid, exchange in exchanges.items()
            if uuid not in pages
        ]
        n_known = len(exchanges) - len(new_events)
        last_page = next((pages[uuid] for uuid in reversed(exchanges) if uuid in pages), "")
        if not new_events and not _has_later_texts(batch, last_page, conversation):
            return Outcome(title, conversation.id, known=n_known, path=last_page)
        last_page = self._add_exchanges(batch, last_page, title, conversation, new_events)
        if pages or conversation.asides:
            self._add_asides(batch, last_page, {*pages.values(), last_page}, conversation)
        return Outcome(title, conversation.id, len(new_events), n_known, path=last_page)

    def _id_of(self, conversation: Conversation, exchange: PastExchange) -> str:
        """Return the id of an exchange in the brain."""
        return exchange_id(self._service, conversation.id, exchange)

    def _event(self, uuid: str, exchange: PastExchange, file_at: str) -> StmEvent:
        """Return an exchange as its page will have it, without its secrets."""
        user, ai = redact(self._brain, exchange.user), redact(self._brain, exchange.ai)
        return StmEvent(uuid, exchange.at or file_at, user, ai)

    def _imported_pages(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the page of each exchange that a commit imported, by id, also where that page was deleted since.

        An import that was undone does not count.
        """
        rows = self._brain.projection.query(
            "SELECT exchange, page FROM filings WHERE page IS NOT NULL AND exchange IN (SELECT value FROM json_each(?))"
            " AND event NOT IN (SELECT value FROM json_each(?)) ORDER BY event",
            json.dumps(list(ids)),
            self._undone,
        )
        return dict(rows)  # of several pages of an exchange the latest counts

    def _add_exchanges(
        self, batch: _Batch, path: str, title: str, conversation: Conversation, events: Sequence[StmEvent]
    ) -> str:
        """Put exchanges on the last page of a conversation and, where that is full, on new ones.

        Args:
            batch: Takes the pages.
            path: The last page so far; "" for none.
            title: Of the conversation, without secrets.
            conversation: The conversation.
            events: Its new exchanges.

        Returns:
            The path of the last page.
        """
        while events:
            page = batch.page(path)
            if page is None or len(page.text) >= PAGE_CHARACTERS:
                path = batch.free_path(self._folder(conversation.began_at), title)
                page = Page(None, self._head(title, conversation))
            fitting = _fitting(events, PAGE_CHARACTERS - len(page.text))
            batch.change(path, page, _with_exchanges(page.text, fitting), conversation.latest_at)
            batch.note_exchanges(path, [event.id for event in fitting])
            events = events[len(fitting) :]
        return path

    def _add_asides(self, batch: _Batch, path: str, paths: Iterable[str], conversation: Conversation) -> None:
        """Add the asides of a conversation at the end of a page, unless its pages have them.

        Args:
            batch: Takes the page.
            path: The page that gets them.
            paths: All pages of the conversation.
            conversation: The conversation.
        """
        page = batch.page(path)
        if page is None:
            return
        blocks = self._new_asides(conversation, [other.text for path in paths if (other := batch.page(path))])
        text = page.text
        if blocks and _ASIDES not in text:
            text = f"{text.rstrip()}\n\n{_ASIDES}\n{_ABOUT_ASIDES}\n"
        text += "".join(f"\n{block}\n" for block in blocks)
        batch.change(path, page, text, conversation.latest_at)

    def _new_asides(self, conversation: Conversation, pages: Sequence[str]) -> list[str]:
        """Return the asides of a conversation that the texts of its pages do not have, as block quotes."""
        events = {placed.event.id: placed.event for text in pages for placed in find_events(text)}
        texts_in_exchanges = {text.strip() for event in events.values() for text in (event.user, event.ai)}
        asides = [replace(aside, text=redact(self._brain, aside.text).strip()) for aside in conversation.asides]
        asides += self._second_answers(conversation, events, {aside.text for aside in asides})
        blocks = [_block(aside) for aside in asides if aside.text and aside.text not in texts_in_exchanges]
        return [block for block in blocks if not any(block in text for text in pages)]

    def _second_answers(
        self, conversation: Conversation, events: Mapping[str, StmEvent], aside_texts: Collection[str]
    ) -> list[Aside]:
        """Return the answers that the person had made anew since the last import; their pages keep the first ones.

        Args:
            conversation: The conversation as exported now.
            events: Its exchanges on the pages, by id.
            aside_texts: The texts of its asides.
        """
        answers = []
        for exchange in conversation.exchanges:
            event = events.get(self._id_of(conversation, exchange))
            # then the export has the first answer on a branch; one that a person changed on its page is on no branch
            if event and event.ai in aside_texts and (text := redact(self._brain, exchange.ai)) != event.ai:
                answers.append(Aside("branch", "AI", text.strip()))
        return answers

    # --- notes ------------------------------------------------------------------------------------------

    def _take_note(self, batch: _Batch, note: Note) -> Outcome:
        """Add a note to a batch, unless it was imported before and did not change.

        Its id, which is the same in every import, says whether it was imported before. A page that was changed here
        stays, and one that was deleted here stays deleted.
        """
        outcome = partial(Outcome, note.title, note.key)
        if note.problem or not note.text.strip():
            return outcome(reason=note.problem or "is empty")
        uuid = note_id(self._service, note.key)
        path = self._path_of(note, uuid)
        present, imported_hash = batch.page(path), self._imported_hash(path)
        is_deleted_here = bool(imported_hash) and present is None
        if path in batch.pages or is_deleted_here:
            return outcome(known=1, path=path)
        try:
            text = self._note_text(note, uuid, path, present)
        except FormatError as error:
            return outcome(reason=f"has front matter that cannot be read: {error.problem}")
        # the same text as the last import wrote: whatever a person made of it since stays
        if _hash(text) == imported_hash:
            return outcome(known=1, path=path)
        if present is not None and _hash(present.text) != imported_hash:
            return outcome(reason=f"{path} was changed here since; it stays as it is", path=path)
        batch.change(path, present or Page(None, ""), text)
        batch.pages[path].note = uuid
        if note.original:
            batch.files[path.removesuffix(".md")] = note.original
        return outcome(taken=1, reason=note.remark, path=path)

    def _imported_hash(self, path: str) -> str:
        """Return the hash of the text that the last import wrote at a path; "" where none did."""
        rows = self._brain.projection.query(
            "SELECT after FROM changes WHERE path = ? AND kind = ? AND after IS NOT NULL"
            " AND event NOT IN (SELECT value FROM json_each(?)) ORDER BY event DESC LIMIT 1",
            path,
            ExchangesImported.kind,
            self._undone,
        )
        return rows[0][0] if rows else ""

    def _path_of(self, note: Note, uuid: str) -> str:
        """Return the path of a note's page: that of its earlier import, else a new one.

        A new one is the note's own below the service's folder, with a hash of its key where another note has it or one
        that some file systems take for it; a note without a path gets one by month and title.
        """
        if uuid in self._note_pages:
            return self._note_pages[uuid]
        digest = hashlib.sha256(note.key.encode("utf-8", "backslashreplace")).hexdigest()[:8]
        if note.path:
            path = f"{self.top}/{page_path(note.path)}"
            if _folded(path) in self._taken_paths:
                path = f"{path.removesuffix('.md')}-{digest}.md"
        else:
            folder = self._folder(note.at) if note.at else f"{self.top}/undated"
            path = f"{folder}/{slugify(redact(self._brain, note.title))}-{digest}.md"
        self._note_pages[uuid] = path
        self._taken_paths.add(_folded(path))
        return path

    @cached_property
    def _taken_paths(self) -> set[str]:
        """The folded paths of the imported notes' pages."""
        return set(map(_folded, self._note_pages.values()))

    @cached_property
    def _note_pages(self) -> dict[str, str]:
        """The path of each imported note's page by the note's id, of all imports that were not undone."""
        imports = self._brain.journal.all_events({ExchangesImported})
        undone = undone_events(self._brain)
        return {
            uuid: path
            for _, event in imports
            if isinstance(event.what, ExchangesImported) and event.id not in undone
            for path, uuid in event.what.notes.items()
        }

    def _note_text(self, note: Note, uuid: str, path: str, present: Page | None) -> str:
        """Return the text of a note's page: a note or document with the keys that it lacks, any other text as a quote.

        Args:
            note: The note.
            uuid: Its id.
            path: Its page.
            present: The page of an earlier import; None for none.

        Raises:
            FormatError: Its front matter, or that of the present page, is broken.
        """
        text, at = redact(self._brain, note.text), note.at or note.file_at
        if present and not note.at:  # a later import must not give it another date
            at = str(split(present.text, path)[0].get("created_at") or "")
        front_matter = self._front_matter(uuid, at, at)
        if not note.path:
            title = one_line(redact(self._brain, note.title))
            return f"{front_matter}\n# {title} ({SERVICES[self._service]})\n\n{_quoted(text)}\n"
        meta, front_matter_end = split(text, path)
        if not front_matter_end:
            return f"{front_matter}\n{text}"
        defaults: dict[str, object] = {
            "uuid": uuid,
            "created_at": own_date(meta, path, is_creation=True) or at,
            "updated_at": at,
            "tags": [],
            "emotion": "neutral",
            "reinforcement_count": 0,
        }
        missing = {key: value for key, value in defaults.items() if meta.get(key) is None}
        private = {"private": True} if self._is_private else {}
        return edit_meta(text, **missing, origin="import", by=self._service, **private)

    # --- pages ------------------------------------------------------------------------------------------

    def _folder(self, at: str) -> str:
        """Return the folder of the month that a moment is in."""
        return f"{self.top}/{self._brain.day_of(at)[:7].replace('-', '/')}"

    def _head(self, title: str, conversation: Conversation) -> str:
        """Return front matter and heading of a conversation's page."""
        name = json.dumps(one_line(conversation.id), ensure_ascii=False)
        front = self._front_matter(new_id(), conversation.began_at, conversation.latest_at, f"conversation: {name}\n")
        return f"{front}\n# {title} ({SERVICES[self._service]})\n"

    def _front_matter(self, uuid: str, created_at: str, updated_at: str, more: str = "") -> str:
        """Return the front matter of a page; `more` are further lines.

        It is written without a YAML library, which takes milliseconds for a page.
        """
        more += "private: true\n" if self._is_private else ""
        return (
            f"---\nuuid: {uuid}\ncreated_at: {created_at}\nupdated_at: {updated_at}\ntags: []\nemotion: neutral\n"
            f"reinforcement_count: 0\norigin: import\nby: {self._service}\n{more}---\n"
        )


@dataclass(slots=True)
class Page:
    """A page as a commit will leave it.

    Attributes:
        before: Its text on the disk; None for a new page.
        text: Its text after the commit.
        exchanges: Ids of the exchanges that the commit adds to it.
        note: Id of the note that the commit makes it of; "" for a page of exchanges.
    """

    before: str | None
    text: str
    exchanges: list[str] = field(default_factory=list)
    note: str = ""


class _Batch:
    """The pages that one commit makes and changes.

    Args:
        brain: The brain.
        service_folder: The folder of the service.

    Attributes:
        pages: By path.
        page_of: Path of the page of each exchange that is added, by its id.
        files: Contents of the imported documents that stand beside their pages, by path.
    """

    def __init__(self, brain: Brain, service_folder: str) -> None:
        self._brain, self._service_folder = brain, service_folder
        self.pages: dict[str, Page] = {}
        self.page_of: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self._names: dict[str, set[str]] = {}  # of the files in each folder, without their ending

    def page(self, path: str) -> Page | None:
        """Return a page with the changes of this batch so far; None for the path "", no page, or an unreadable one."""
        if not path:
            return None
        if path in self.pages:
            return self.pages[path]
        try:
            text = self._brain.read_page(path)
        except FormatError:
            return None
        return None if text is None else Page(before=text, text=text)

    def change(self, path: str, page: Page, text: str, latest_at: str = "") -> None:
        """Give a page a text in this batch; a page on the disk gets `latest_at`, where given, as its `updated_at`."""
        if page.before is not None and text != page.text and latest_at:
            text = edit_meta(text, updated_at=latest_at)
        page.text = text
        self.pages[path] = page

    def note_exchanges(self, path: str, ids: Sequence[str]) -> None:
        """Note which exchanges were added to a page."""
        self.pages[path].exchanges += ids
        self.page_of |= dict.fromkeys(ids, path)

    def free_path(self, folder: str, title: str) -> str:
        """Return a path in a folder that no file and no page of the batch has."""
        if folder not in self._names:
            try:
                files = os.listdir(self._brain.tree.absolute(folder))
            except OSError:
                files = []  # it is still to be made
            self._names[folder] = {posixpath.splitext(file)[0] for file in files}
        name = slugify(title, self._names[folder])
        self._names[folder].add(name)
        return f"{folder}/{name}.md"

    def changes(self) -> list[Change]:
        """Return the changes of the commit, with an index page for each folder that has none yet."""
        changes = []
        for path, page in self.pages.items():
            if page.before is None:
                changes.append(create(path, page.text))
            elif page.text != page.before:
                changes.append(update(path, page.before, page.text))
        for path, content in self.files.items():
            before = self._brain.read(path)
            if before is None:
                changes.append(create(path, content))
            elif before != content:
                changes.append(update(path, before, content))
        return [*changes, *self._index_pages()] if changes else []

    def _index_pages(self) -> Iterator[Change]:
        """Yield the index pages that the service's folders lack; their lists of entries are made elsewhere."""
        root, now = self._brain.tree.relative(self._brain.tree.long_term), iso(self._brain.clock.now())
        service_pages = [path for path in self.pages if path.startswith(f"{self._service_folder}/")]
        folders = {folder for path in service_pages for folder in _folders_above(path, f"{root}/events")}
        for folder in sorted(folders):
            if self._brain.read(index := f"{folder}/_index.md") is None:
                title = SERVICES.get(posixpath.basename(folder)) or title_of_folder(folder)
                summary = _summary_of(folder, self._service_folder)
                yield create(index, new_index(title, uuid=new_id(), now=now, summary=summary))


def _hash(text: str) -> str:
    """Return the content hash of a page with a text, as the journal has it."""
    return content_hash(text.encode("utf-8", "surrogateescape"))


def _folded(path: str) -> str:
    """Return a path as those file systems see it that do not tell case or accents apart."""
    return unicodedata.normalize("NFC", path).casefold()


def _folders_above(path: str, top: str) -> Iterator[str]:
    """Yield the folders above a file, as far as they are below `top`."""
    while (path := posixpath.dirname(path)).startswith(f"{top}/"):
        yield path


def _summary_of(folder: str, service_folder: str) -> str:
    """Return the first summary of a folder, which is above the service's, that folder itself, or in it."""
    if service_folder.startswith(f"{folder}/"):
        return "What came in from other programs: nothing in it was said here."
    when = "" if folder == service_folder else f" in {title_of_folder(folder)}"
    return f"What was imported from {SERVICES[posixpath.basename(service_folder)]}{when}."


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield items in lists, each for one commit."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += _size_of(item)
        if size > BATCH_CHARACTERS or len(batch) == BATCH_ITEMS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size_of(item: Item) -> int:
    """Return about how many characters an item has."""
    if isinstance(item, Note):
        return len(item.text) + len(item.original)
    in_exchanges = sum(len(exchange.user) + len(exchange.ai) for exchange in item.exchanges)
    return in_exchanges + sum(len(aside.text) for aside in item.asides)


def _has_later_texts(batch: _Batch, path: str, conversation: Conversation) -> bool:
    """Return whether a conversation has texts that are later than those of its page; False for a broken page."""
    page = batch.page(path)
    if page is None:
        return False
    try:
        return str(split(page.text, path)[0].get("updated_at") or "") < conversation.latest_at
    except FormatError:
        return False


def _block(aside: Aside) -> str:
    """Return an aside as a block quote, in which no line is read as structure of the page."""
    heading = f"**{one_line(aside.name)}**" + (f" ({aside.at})" if aside.at else "")
    return _quoted(f"{heading}\n{aside.text}")


def _quoted(text: str) -> str:
    """Return a text as a block quote."""
    return "> " + escape(text.replace("\r\n", "\n").strip()).replace("\n", "\n> ")


def _fitting(events: Sequence[StmEvent], room: int) -> Sequence[StmEvent]:
    """Return the first events that fit into `room` characters; at least one."""
    for number, event in enumerate(events):
        room -= len(event.user) + len(event.ai)
        if room < 0 and number:
            return events[:number]
    return events


def _with_exchanges(text: str, events: Sequence[StmEvent]) -> str:
    """Return a page with exchanges added after its last one; at its end where it has none."""
    rendered = "".join(f"\n{render_exchange(event)}" for event in events)
    last_end = max((placed.end for placed in find_events(text)), default=len(text))
    return splice(text, end_of_content(text, 0, last_end), rendered)
