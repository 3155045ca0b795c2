"""A new brain from another's raw exchanges: what was said and what persons wrote, without what models made of it.

It gets the exchanges as their pages have them by now, so that what was forgotten or purged is not there; the pages and
statements that a person wrote or reworded; what was kept word for word without a model; short-term memory, inbox and
system. Of the journal it gets what those rest on, and the edits by hand, by which corrections hold. The first brain is
only read. In the new one every exchange waits for a model, as after a time without one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from brainiac.clock import iso
from brainiac.errors import BlobError, FormatError, UserError
from brainiac.events import (
    BrainRebuilt,
    CopyMerged,
    Event,
    EventUndone,
    ExchangeEvent,
    ExchangeForgotten,
    ExchangeMadePrivate,
    ExchangesFiled,
    ExchangesImported,
    ImportStarted,
    InboxTidied,
    MarkersMerged,
    MemoryForgotten,
    MemoryOrganized,
    MemoryPromoted,
    NoteMerged,
    OutcomeEvent,
    PathKind,
    PromptMoved,
    PurgeHonoured,
    RecordedChange,
    StatementCorrected,
    StatementsAdopted,
    TextsPurged,
    TreeAdopted,
    new_id,
    update,
)
from brainiac.formats.frontmatter import split
from brainiac.formats.page import Memory, MemoryDocument, Statement, parse_memory
from brainiac.history.forget import is_bare
from brainiac.settings import Settings, load
from brainiac.skeleton import create_brain
from brainiac.storage.external_edits import FOUND
from brainiac.storage.files import Disk
from brainiac.storage.folders import Folders
from brainiac.storage.journal import BlobStore, Journal, to_line
from brainiac.storage.pages import INDEX
from brainiac.storage.statements import StatementChange, StatementLog, text_hash
from brainiac.storage.store import Store
from brainiac.tree import LocalPlaces, Tree, is_brain

OFFLINE = "offline"  # the model that statements kept without one name
# what was said and done by persons; what processes made of it is left out
_KEPT = (
    ExchangeEvent | OutcomeEvent | PromptMoved | ExchangeMadePrivate | ExchangesFiled | ExchangesImported
    | ImportStarted | InboxTidied | MemoryPromoted | ExchangeForgotten | MemoryForgotten | TextsPurged | PurgeHonoured
    | NoteMerged | CopyMerged | MarkersMerged | StatementCorrected | StatementsAdopted
)  # fmt: skip
_FILING = ExchangesFiled | ExchangesImported | InboxTidied | OutcomeEvent  # in their commits processes write pages
_PLACES = frozenset(
    {PathKind.PROMPT, PathKind.RESPONSE, PathKind.CAPTURE, PathKind.MEMORY, PathKind.ARCHIVED}
)  # files whose versions are kept; of short-term memory only the present one counts
# front matter that processes change, with the values of a new page; and that only they write
_MODEL_KEYS = {"reinforcement_count": 0, "emotion": "neutral"}
_MODEL_ENTRIES = re.compile(r"^(?:summary|sources|importance):.*\n(?:[ \t-].*\n)*", re.MULTILINE)
_EMPTY_HISTORY = re.compile(r"\n*^## History[ \t]*\n\s*\Z", re.MULTILINE)


@dataclass(slots=True)
class Raw:
    """What a new brain was made from.

    Attributes:
        pages: How many pages were taken over.
        left: How many pages were left out, as all on them was made by models.
        unreadable: Paths of pages that cannot be parsed; they were taken over as they are.
    """

    pages: int = 0
    left: int = 0
    unreadable: list[str] = field(default_factory=list)


def is_rebuilt_from(folder: Path, store: Store) -> bool:
    """Return whether a folder is a brain that was made from another one."""
    if not is_brain(folder):
        return False
    settings = load(folder / "system/config.yaml", Settings)
    journal = Journal(Tree(folder, settings.layout()), LocalPlaces.of(folder.resolve(), settings.brain_id))
    events = journal.events(kinds={BrainRebuilt})
    return any(isinstance(event.what, BrainRebuilt) and event.what.of == store.settings.brain_id for event in events)


def check_folder(folder: Path, store: Store) -> None:
    """Raise where no new brain can be made in a folder.

    Raises:
        UserError: It holds something else, or it lies in the brain, or the brain in it.
    """
    target, root = folder.resolve(), store.root.resolve()
    if target.is_relative_to(root) or root.is_relative_to(target):
        raise UserError(f"{folder} and the brain {root} must not lie in each other; name another folder")
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} holds something else already; name a new or empty folder")


def make_raw(store: Store, folder: Path) -> Raw:
    """Make the new brain, wholly or not at all: it is put together in a folder beside, which is renamed at last.

    Raises:
        UserError: No brain can be made in the folder.
    """
    check_folder(folder, store)
    draft = folder.resolve().with_name(f".{folder.resolve().name}.rebuild")
    shutil.rmtree(draft, ignore_errors=True)  # an earlier attempt that was interrupted
    draft.parent.mkdir(parents=True, exist_ok=True)
    raw = _Maker(store, draft).make()
    if folder.is_dir():
        folder.rmdir()
    os.rename(draft, folder)
    return raw


class _Maker:
    """Puts the new brain together in a folder.

    Args:
        store: The brain that it is made from.
        folder: Where.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder, self._result = store, folder, Raw()
        self._log: StatementLog = StatementLog(store)
        self._verbatim = self._log.made_by(OFFLINE)  # by (page, block id): what was kept word for word

    def make(self) -> Raw:
        """Copy and write everything."""
        # no commit of a process comes between the files and the journal
        with self._store.commit_lock():
            self._copy_system()
            create_brain(self._folder, is_shared=True, clock=self._store.clock)
            self._copy_inbox()
            self._copy_memory()
            self._write_journal()
        return self._result

    # --- files ----------------------------------------------------------------------------------------------

    def _copy_system(self) -> None:
        """Copy settings, identity, prompts, workflows and the person's own plugins; the brain gets an id of its own."""
        tree = self._store.tree
        for top in (tree.config.parent, tree.plugins):
            for path in tree.scan(top):
                self._copy(path)
        config = self._folder / tree.relative(tree.config)
        text = config.read_text("utf-8") if config.exists() else ""
        text, count = re.subn(r"^brain_id:.*$", f"brain_id: {new_id()}", text, flags=re.MULTILINE)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text if count else f"brain_id: {new_id()}\n{text}", "utf-8")

    def _copy_inbox(self) -> None:
        """Copy prompts with their answers, and notes; a prompt without an answer is the first brain's to answer."""
        tree = self._store.tree
        for path in tree.scan(tree.inbox):
            kind = tree.kind_of(path)
            is_open = kind is PathKind.PROMPT and self._is_unanswered(path)
            if kind is not PathKind.ERROR and not is_open:
                self._copy(path)

    def _is_unanswered(self, path: str) -> bool:
        """Return whether no journal has an answer to the prompt at a path."""
        rows = self._store.projection.query("SELECT 1 FROM exchanges WHERE prompt = ? LIMIT 1", path)
        return not rows

    def _copy_memory(self) -> None:
        """Copy short-term memory, pages without what models wrote, and other files; index pages are made anew."""
        tree = self._store.tree
        for path in tree.scan(tree.memory):
            kind = tree.kind_of(path)
            if kind in (PathKind.MEMORY, PathKind.ARCHIVED):
                self._copy_page(path)
            elif kind is PathKind.SHORT_TERM:
                self._copy_short_term(path)
            elif kind is not PathKind.REVIEW and os.path.basename(path) != INDEX:
                self._copy(path)

    def _copy_short_term(self, path: str) -> None:
        """Copy short-term memory without the summary that a process wrote."""
        self._copy(path)
        text = str(self._store.short_term().with_summary("", self._log.is_own_summary))
        (self._folder / path).write_bytes(text.encode("utf-8", "surrogateescape"))

    def _copy_page(self, path: str) -> None:
        """Write a page without what models made; one that holds nothing else is left out."""
        text = self._store.read_text(path) or ""
        try:
            after = self._without_model_parts(parse_memory(path, text))
        except FormatError:
            self._result.unreadable.append(path)
            after = text
        if after is None:
            self._result.left += 1
            return
        self._result.pages += 1
        self._copy(path)
        if after != text:
            (self._folder / path).write_bytes(after.encode("utf-8", "surrogateescape"))

    def _copy(self, path: str) -> None:
        """Copy a file with its times; a link is left out, since it leads elsewhere from another place."""
        source, target = self._store.root / path, self._folder / path
        if source.is_file() and not source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)

    # --- pages ----------------------------------------------------------------------------------------------

    def _without_model_parts(self, memory: Memory) -> str | None:
        """Return a page's text without what models made; None where nothing else is on it."""
        page = memory.uuid or memory.path
        is_by_hand = not self._log.knows_page(page) and not self._was_begun_by_process(memory.path)
        if is_by_hand:
            return memory.text
        body = self._log.whole_body_of(page)
        is_written_whole = body is not None and text_hash(memory.body) == body.hash
        if is_written_whole:  # by a model, or a note that was kept word for word
            return memory.text if (page, "") in self._verbatim else None
        document = MemoryDocument(memory.text, memory.path)
        by_models = _ByModels(self._log.changes_of(page))
        for statement in memory.statements:
            is_verbatim = (page, statement.block_id) in self._verbatim
            # lines that a person wrote below a statement would lose their meaning without it
            if not is_verbatim and by_models.has(statement) and not document.has_lines_below(statement.block_id):
                document = document.without_statement(statement.block_id)
        if is_bare(document.memory):
            return None
        keys = {key: value for key, value in _MODEL_KEYS.items() if memory.meta.get(key, value) != value}
        text = str(document.set_meta(**keys) if keys else document)
        return _without_entries(_EMPTY_HISTORY.sub("\n", text), memory.path)

    def _was_begun_by_process(self, path: str) -> bool:
        """Return whether a process began the file at a path, as it does the pages of days."""
        sql = "SELECT by FROM changes WHERE path = ? AND is_new ORDER BY event LIMIT 1"
        rows = self._store.projection.query(sql, path)
        return bool(rows) and rows[0][0] != "person"

    # --- the journal ----------------------------------------------------------------------------------------

    def _write_journal(self) -> None:
        """Write the events that are kept, with their ids and times, and the texts that they name."""
        store, kept_ids = self._store, set[str]()
        folder = self._folder / store.tree.relative(store.tree.journal)
        blobs = BlobStore(folder / "blobs", Disk())
        own_device = store.journal.device
        lines = {own_device: _Lines(folder / own_device)}
        for device, event in store.journal.all_events():
            reduced = self._reduced(event, kept_ids)
            if reduced is not None:
                kept_ids.add(event.id)
                self._copy_texts(reduced, blobs)
                name = device or own_device
                lines.setdefault(name, _Lines(folder / name)).append(reduced)
        what = BrainRebuilt(of=store.settings.brain_id)
        # its `seq` is given when it is appended
        event = Event(0, new_id(), iso(store.clock.now()), what.kind, "cli", data=what.to_json())
        lines[own_device].append(event)

    def _reduced(self, event: Event, kept_ids: set[str]) -> Event | None:
        """Return an event as the new brain has it: without what models made; None where it is left out.

        Args:
            event: The event.
            kept_ids: The ids of the events that the new brain has so far.
        """
        what = event.what
        is_edit = event.kind in FOUND  # by hand
        is_undoing = isinstance(what, EventUndone) and what.undone in kept_ids
        if not (isinstance(what, _KEPT) or is_edit or is_undoing):
            return None
        if isinstance(what, MemoryPromoted):
            # what models decided is decided anew; what was kept word for word is recorded, so that it is kept once
            statements = tuple(row for row in what.statements if row.model == OFFLINE)
            what = replace(what, statements=statements, refused=(), candidates={}, proposals=(), left={}, breaker=None)
            return replace(event, data=what.to_json(), changes=())
        changes = tuple(change for change in event.changes if self._is_kept(event, change))
        return replace(event, changes=changes)

    def _is_kept(self, event: Event, change: RecordedChange) -> bool:
        """Return whether the new brain keeps a version of a file: not of a log, nor of a page where a process filed."""
        kind = self._store.tree.kind_of(change.path)
        is_page = kind in (PathKind.MEMORY, PathKind.ARCHIVED)
        return change.op != "append" and kind in _PLACES and not (is_page and isinstance(event.what, _FILING))

    def _copy_texts(self, event: Event, blobs: BlobStore) -> None:
        """Copy the texts that an event names, as far as they were not purged."""
        for digest in (digest for change in event.changes for digest in (change.before, change.after) if digest):
            if digest not in blobs:
                with suppress(BlobError):
                    blobs.put(self._store.journal.blobs.get(digest))


class _ByModels:
    """Knows which statements of a page a process wrote in their present words.

    Args:
        changes: The operations on the page's statements, oldest first.
    """

    def __init__(self, changes: Sequence[StatementChange]) -> None:
        # the block id and the hash of the words of each statement, where a process wrote it last
        last = {(change.block, change.hash): change.event.kind for change in changes}
        self._present = {key for key, kind in last.items() if kind in (MemoryPromoted.kind, MemoryOrganized.kind)}
        formers = [change.former for change in changes]
        # block ids under History
        self._former = {ref.history for ref in formers if (ref.block, ref.hash) in self._present}
        self._former |= {block for block, _ in self._present}

    def has(self, statement: Statement) -> bool:
        """Return whether a process wrote a statement in its present words.

        One that a person corrected or released is the person's. Of one under History its words before that count.
        """
        if not statement.block_id:
            return False
        if statement.is_history:
            return statement.block_id in self._former
        return (statement.block_id, text_hash(statement.text)) in self._present


def _without_entries(text: str, path: str) -> str:
    """Return a page without the front matter that only models write; unchanged where other keys would change too."""
    meta, offset = split(text, path)
    after = _MODEL_ENTRIES.sub("", text[:offset]) + text[offset:]
    others = {key: value for key, value in meta.items() if key not in ("summary", "sources", "importance")}
    return after if split(after, path)[0] == others else text


class _Lines:
    """Appends to a device's journal in a folder, numbered anew without gaps."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._last = folder  # the file of the last event; a folder sorts before its files

    def append(self, event: Event) -> None:
        """Append an event to the file of its day; never to an earlier file than the event before it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._count += 1
        self._last = max(self._folder / f"{event.at[:10]}.jsonl", self._last)
        Disk().append(self._last, to_line(replace(event, seq=self._count)))


def settle(store: Store) -> None:
    """Take in the files of a new brain as they are, and make the index pages of its folders; the first time only."""
    if next(store.journal.events(kinds={TreeAdopted}), None) is not None:
        return
    # as if each page had just been written: `Folders` makes the index pages of what changes
    pages = [update(page.path, page.text, page.text) for page in store.pages().memories.values()]
    indexes = Folders(store, pages).changes()
    for change in indexes:
        store.tree.absolute(change.path).write_bytes(change.after or b"")
    store.observed.adopt(is_anew=True)
