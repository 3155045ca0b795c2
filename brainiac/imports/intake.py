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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Literal

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError, UserError
from brainiac.events import Change, ExchangesImported, ImportStarted, content_hash, create, new_id, write
from brainiac.formats.authors import SERVICES
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.index_page import new_index
from brainiac.formats.markdown import StmEvent, end_of_content, find_events, one_line, render_exchange, splice
from brainiac.formats.page import MemoryDocument
from brainiac.imports.reading import opened_exports
from brainiac.imports.records import Conversation, Item, Note, exchange_id, note_id, page_path, quoted
from brainiac.llm.redaction import redact
from brainiac.search.documents import IMPORTED
from brainiac.storage.causes import undone_events
from brainiac.storage.links import Draft, title_of_folder
from brainiac.tree import slugify

PAGE_CHARACTERS = 32_000  # a longer conversation gets further pages
BATCH_CHARACTERS = 500_000  # of one commit
BATCH_ITEMS = 200


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
    report, intake = Report(), Intake(brain, path.name, is_dry=is_dry, is_private=is_private)
    # a document that lies in memory already gets its page beside it
    absolute, long_term = path.resolve(), brain.tree.long_term.resolve()
    folder = absolute if absolute.is_dir() else absolute.parent
    beside = (
        brain.tree.relative(brain.tree.long_term / folder.relative_to(long_term)) if long_term in folder.parents else ""
    )
    with opened_exports(path, brain.zone) as (exports, report.others):
        if not exports:
            names = f" ({', '.join(report.others[:3])})" if report.others else ""
            what = f"nothing in it has a known format{names}"
            raise UserError(f"{path}: {what}; docs/import.md says what can be imported")
        if not with_mail and any(export.service == "mail" for export in exports):
            raise UserError(f"{path} holds mail, which is others' words more than yours; add --mail to import it")
        total, n_before = sum(export.size for export in exports), 0

        def told(n_read: int) -> None:
            progress(min(n_before + n_read, total), total)

        for export in exports:
            outcomes = report.outcomes.setdefault(export.service, [])
            top = beside if export.service == "documents" else ""
            outcomes.extend(intake.take(export.service, export.read(told), top))
            n_before += export.size
    report.event = intake.event
    return report


class Intake:
    """Puts conversations and notes into a brain, in commits that are all caused by one event.

    Args:
        brain: The brain.
        source: Name of the file or folder that a person named.
        by: Who imports.
        is_dry: Report what would be imported and write nothing.
        is_private: Mark every page private.
        is_undone_known: Count what an undone import took in as imported before: what imports by itself must not bring
            it back.

    Attributes:
        event: Id of the event that causes the commits; "" before the first.
    """

    def __init__(
        self,
        brain: Brain,
        source: str,
        *,
        by: str = "cli",
        is_dry: bool = False,
        is_private: bool = False,
        is_undone_known: bool = False,
    ) -> None:
        self._brain, self._source, self._by = brain, source, by
        self._is_dry, self._is_private, self.event = is_dry, is_private, ""
        self._undone = json.dumps([] if is_undone_known else list(undone_events(brain)))
        self._dry_pages: dict[str, str] = {}  # page by exchange id, of a dry run, which the journal knows nothing of
        self._service = self._service_folder = self._top = ""
        self._taken_paths = set[str]()  # the folded paths of the imported notes' pages

    def take(self, service: str, items: Iterable[Item], top: str = "") -> Iterator[Outcome]:
        """Import conversations and notes of a service, several in a commit; yield the outcome of each.

        Args:
            service: The service.
            items: The conversations and notes.
            top: The folder of the pages; "" for the service's own.
        """
        self._service = service
        self._service_folder = f"{self._brain.tree.relative(self._brain.tree.long_term)}{IMPORTED}{service}"
        self._top = top or self._service_folder
        for batch in _batches(items):
            yield from self._brain.retry(partial(self._take_batch, batch))

    def _take_batch(self, items: Sequence[Item]) -> list[Outcome]:
        """Import some conversations and notes in one commit.

        Raises:
            ConflictError: Somebody saved one of their pages meanwhile, or imported some of it; a batch begun anew
                knows that.
        """
        batch = _Batch(self._brain, self._service_folder)
        outcomes = [
            self._take_note(batch, item) if isinstance(item, Note) else self._take_conversation(batch, item)
            for item in items
        ]
        if self._is_dry:
            self._dry_pages |= batch.page_of
        elif changes := batch.all_changes():
            # the ids are in the event: by them a second import knows these exchanges
            episodes = {path: tuple(exchanges) for path, exchanges in batch.episodes.items()}
            with self._brain.commit_lock():
                # another import runs at the same time, or one that was killed left a commit that is finished only now
                self._brain.committer.finish_pending()
                self._brain.projection.follow()
                if pages := self._imported_pages(batch.page_of):
                    raise ConflictError(sorted(set(pages.values())))
                if not self.event:
                    self.event = self._brain.record(ImportStarted(source=self._source), by=self._by).id
                event = ExchangesImported(service=self._service, episodes=episodes, notes=batch.notes)
                self._brain.commit(event, by=self._by, changes=changes, cause=self.event)
        return outcomes

    # --- conversations ----------------------------------------------------------------------------------

    def _take_conversation(self, batch: _Batch, conversation: Conversation) -> Outcome:
        """Add the new exchanges of a conversation to a batch."""
        title = one_line(redact(self._brain, conversation.title)) or "Untitled"
        if conversation.problem:
            return Outcome(title, conversation.id, reason=conversation.problem)
        exchanges = {exchange_id(self._service, conversation.id, each): each for each in conversation.exchanges}
        # ids tell which exchanges are new: their texts on the pages are redacted, and perhaps changed by a person
        pages = self._imported_pages(exchanges)
        for pages_of_run in (self._dry_pages, batch.page_of):
            pages |= {uuid: pages_of_run[uuid] for uuid in exchanges if uuid in pages_of_run}
        new_events = []
        for uuid, each in ((uuid, each) for uuid, each in exchanges.items() if uuid not in pages):
            if each.user or each.ai:
                user, ai = redact(self._brain, each.user), redact(self._brain, each.ai)
                at = each.at or conversation.file_at
                new_events.append(StmEvent(uuid, at, user, ai, is_private=each.is_private))
        n_known = len(exchanges) - len(new_events)
        path = next((pages[uuid] for uuid in reversed(exchanges) if uuid in pages), "")
        path = self._add_exchanges(batch, path, title, conversation, new_events)
        n = conversation.n_aside
        aside = f"{n} of its messages, made anew or edited since, {'stays' if n == 1 else 'stay'} in the export"
        return Outcome(title, conversation.id, len(new_events), n_known, aside if n else "", path)

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
            text = batch.text(path)
            if text is None or len(text) >= PAGE_CHARACTERS:
                path = batch.free_path(self._folder(conversation.began_at), title)
                name = json.dumps(one_line(conversation.id), ensure_ascii=False)
                moments = conversation.began_at, conversation.ended_at
                head = self._front_matter(new_id(), *moments, f"conversation: {name}\n")
                text = f"{head}\n# {title} ({SERVICES[self._service]})\n"
                batch.new(path, text)
            fitting, room = events[:1], PAGE_CHARACTERS - len(text) - len(events[0].user) - len(events[0].ai)
            for event in events[1:]:  # as many as fit, and at least one
                if (room := room - len(event.user) - len(event.ai)) < 0:
                    break
                fitting = [*fitting, event]
            # after the last one there; at the end where there is none
            last_end = max((placed.end for placed in find_events(text)), default=len(text))
            rendered = "".join(f"\n{render_exchange(event)}" for event in fitting)
            text = splice(text, end_of_content(text, 0, last_end), rendered)
            if conversation.ended_at and not batch.is_new(path):
                text = edit_meta(text, updated_at=conversation.ended_at)
            batch.write(path, text)
            batch.episodes.setdefault(path, []).extend(event.id for event in fitting)
            batch.page_of |= {event.id: path for event in fitting}
            events = events[len(fitting) :]
        return path

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
        # the text that the last import wrote there; none where no import did
        rows = self._brain.projection.query(
            "SELECT after FROM changes WHERE path = ? AND kind = ? AND after IS NOT NULL"
            " AND event NOT IN (SELECT value FROM json_each(?)) ORDER BY event DESC LIMIT 1",
            path,
            ExchangesImported.kind,
            self._undone,
        )
        present, imported_hash = batch.text(path), rows[0][0] if rows else ""
        is_deleted_here = bool(imported_hash) and present is None
        if path in batch.notes or is_deleted_here:
            return outcome(known=1, path=path)
        try:
            text = self._note_text(note, uuid, path, present)
        except FormatError as error:
            return outcome(reason=f"has front matter that cannot be read: {error.problem}")
        # the same text as the last import wrote: whatever a person made of it since stays
        if _hash(text) == imported_hash:
            return outcome(known=1, path=path)
        if present is not None and _hash(present) != imported_hash:
            return outcome(reason=f"{path} was changed here since; it stays as it is", path=path)
        batch.write(path, text)
        batch.notes[path] = uuid
        if note.original:
            batch.files[path.removesuffix(".md")] = note.original
        return outcome(taken=1, reason=note.remark, path=path)

    def _path_of(self, note: Note, uuid: str) -> str:
        """Return the path of a note's page: that of its earlier import, else a new one.

        A new one is the note's own below the service's folder, with a hash of its key where another note has it or one
        that some file systems take for it; a note without a path gets one by month and title.
        """
        if uuid in self._note_pages:
            return self._note_pages[uuid]
        digest = hashlib.sha256(note.key.encode("utf-8", "backslashreplace")).hexdigest()[:8]
        if note.path:
            path = f"{self._top}/{page_path(note.path)}"
            if _folded(path) in self._taken_paths:
                path = f"{path.removesuffix('.md')}-{digest}.md"
        else:
            folder = self._folder(note.at) if note.at else f"{self._top}/undated"
            path = f"{folder}/{slugify(redact(self._brain, note.title))}-{digest}.md"
        self._note_pages[uuid] = path
        self._taken_paths.add(_folded(path))
        return path

    @cached_property
    def _note_pages(self) -> dict[str, str]:
        """The path of each imported note's page by the note's id, of all imports that were not undone."""
        imports = self._brain.journal.all_events({ExchangesImported})
        undone, pages = undone_events(self._brain), dict[str, str]()
        for _, event in imports:
            if isinstance(event.what, ExchangesImported) and event.id not in undone:
                pages |= {uuid: path for path, uuid in event.what.notes.items()}
        self._taken_paths = set(map(_folded, pages.values()))
        return pages

    def _note_text(self, note: Note, uuid: str, path: str, present: str | None) -> str:
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
            at = str(split(present, path)[0].get("created_at") or "")
        front_matter = self._front_matter(uuid, at, at)
        if not note.path:
            title = one_line(redact(self._brain, note.title))
            return f"{front_matter}\n# {title} ({SERVICES[self._service]})\n\n{quoted(text)}\n"
        if not split(text, path)[1]:  # without front matter
            return f"{front_matter}\n{text}"
        ours = {"origin": "import", "by": self._service} | ({"private": True} if self._is_private else {})
        return str(MemoryDocument(text, path).with_missing_keys(uuid, at).set_meta(**ours))

    # --- pages ------------------------------------------------------------------------------------------

    def _folder(self, at: str) -> str:
        """Return the folder of the month that a moment is in."""
        return f"{self._top}/{self._brain.day_of(at)[:7].replace('-', '/')}"

    def _front_matter(self, uuid: str, created_at: str, updated_at: str, more: str = "") -> str:
        """Return the front matter of a page; `more` are further lines.

        It is written without a YAML library, which takes milliseconds for a page.
        """
        more += "private: true\n" if self._is_private else ""
        return (
            f"---\nuuid: {uuid}\ncreated_at: {created_at}\nupdated_at: {updated_at}\ntags: []\nemotion: neutral\n"
            f"reinforcement_count: 0\norigin: import\nby: {self._service}\n{more}---\n"
        )


class _Batch(Draft):
    """The pages that one commit makes and changes.

    Args:
        brain: The brain.
        service_folder: The folder of the service.

    Attributes:
        episodes: Ids of the exchanges that are added to a page, by its path.
        notes: Id of the note that a page is made of, by its path.
        page_of: Path of the page of each exchange that is added, by its id.
        files: Contents of the imported documents that stand beside their pages, by path.
    """

    def __init__(self, brain: Brain, service_folder: str) -> None:
        super().__init__(brain)
        self._brain, self._service_folder = brain, service_folder
        self.episodes: dict[str, list[str]] = {}
        self.notes: dict[str, str] = {}
        self.page_of: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self._names: dict[str, set[str]] = {}  # of the files in each folder, without their ending

    def text(self, path: str) -> str | None:
        """Return a page's text in this batch so far; None for the path "", no page, or an unreadable one."""
        if path and path not in self._before:
            text = None
            with suppress(FormatError):
                text = self._brain.read_page(path)
            self._before[path], self._after[path] = None if text is None else text.encode(), text
        return self.read(path) if path else None

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

    def all_changes(self) -> list[Change]:
        """Return the changes of the commit, with an index page for each folder that has none yet."""
        files = ((path, self._brain.read(path), content) for path, content in self.files.items())
        changes = self.changes(indexes="none")
        changes += (write(path, before, after) for path, before, after in files if before != after)
        return [*changes, *self._index_pages()] if changes else []

    def _index_pages(self) -> Iterator[Change]:
        """Yield the index pages that the service's folders lack; their lists of entries are made elsewhere."""
        root, now = self._brain.tree.relative(self._brain.tree.long_term), iso(self._brain.clock.now())
        top = self._service_folder
        above = (PurePosixPath(path).parents for path in self.edited if path.startswith(f"{top}/"))
        folders = {str(folder) for parents in above for folder in parents}
        for folder in sorted(folder for folder in folders if folder.startswith(f"{root}/events/")):
            if self._brain.read(index := f"{folder}/_index.md") is None:
                service = SERVICES[posixpath.basename(top)]
                when = "" if folder == top else f" in {title_of_folder(folder)}"
                summary = f"What was imported from {service}{when}."
                if top.startswith(f"{folder}/"):
                    summary = "What came in from other programs: nothing in it was said here."
                title = service if folder == top else title_of_folder(folder)
                yield create(index, new_index(title, uuid=new_id(), now=now, summary=summary))


def _hash(text: str) -> str:
    """Return the content hash of a page with a text, as the journal has it."""
    return content_hash(text.encode("utf-8", "surrogateescape"))


def _folded(path: str) -> str:
    """Return a path as those file systems see it that do not tell case or accents apart."""
    return unicodedata.normalize("NFC", path).casefold()


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield items in lists, each for one commit."""
    batch, size = list[Item](), 0
    for item in items:
        batch.append(item)
        if isinstance(item, Note):
            size += len(item.text) + len(item.original)
        else:
            size += sum(len(each.user) + len(each.ai) for each in item.exchanges)
        if size > BATCH_CHARACTERS or len(batch) == BATCH_ITEMS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
