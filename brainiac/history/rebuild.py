"""A new brain from another's raw exchanges: what was said and what persons wrote, without what models made of it.

It gets the exchanges as their pages have them by now, so that what was forgotten or purged is not there; the pages and
statements that a person wrote or reworded; what was kept word for word without a model; short-term memory, inbox and
system. Of the journal it gets what those rest on, and the edits by hand, by which corrections hold; with the lines of
`review.md` on what is to be forgotten, so that it stays hidden; and what today's calls cost. The first brain is only
read. In the new one every exchange waits for a model, as after a time without one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from brainiac import events
from brainiac.clock import iso
from brainiac.errors import BlobError, FormatError, UserError
from brainiac.events import Event, PathKind, new_id, update
from brainiac.formats.page import Memory, MemoryDocument, parse_memory
from brainiac.history.forget import is_bare
from brainiac.settings import Settings, load
from brainiac.skeleton import create_brain
from brainiac.storage.external_edits import FOUND
from brainiac.storage.files import Disk
from brainiac.storage.journal import BlobStore, Journal, to_line
from brainiac.storage.links import Folders
from brainiac.storage.pages import INDEX
from brainiac.storage.review import find_ticks
from brainiac.storage.statements import StatementChange, StatementLog, text_hash
from brainiac.storage.store import Store
from brainiac.storage.today import without_ours
from brainiac.tree import LocalPlaces, Tree, is_brain

OFFLINE = "offline"  # the model that statements kept without one name
# what was said and done by persons; what processes made of it is left out
_KEPT = (
    events.ExchangeEvent | events.OutcomeEvent | events.PromptMoved | events.ExchangeMadePrivate
    | events.ExchangesFiled | events.ExchangesImported | events.ImportStarted | events.InboxTidied
    | events.ExchangeForgotten | events.MemoryForgotten | events.TextsPurged
    | events.PurgeHonoured | events.NoteMerged | events.CopyMerged | events.MarkersMerged
    | events.StatementCorrected | events.StatementsAdopted | events.NoteSaved
)  # fmt: skip
# in their commits processes write pages
_FILING = events.ExchangesFiled | events.ExchangesImported | events.InboxTidied | events.OutcomeEvent
# files whose versions are kept; of short-term memory only the present one counts
_PLACES = frozenset({PathKind.PROMPT, PathKind.RESPONSE, PathKind.CAPTURE, PathKind.MEMORY, PathKind.ARCHIVED})
# front matter that processes change, with the values of a new page
_MODEL_KEYS = {"reinforcement_count": 0, "emotion": "neutral", "summary": "", "sources": [], "importance": ""}
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


def make_raw(store: Store, folder: Path) -> Raw | None:
    """Make the new brain, wholly or not at all: it is put together in a folder beside, which is renamed at last.

    Returns:
        What it was made from; None where it was made before: then that one is gone on with.

    Raises:
        UserError: The folder holds something else, or it lies in the brain, or the brain in it.
    """
    if is_made_from(store, folder):
        return None
    target = folder.resolve()
    draft = target.with_name(f".{target.name}.rebuild")
    shutil.rmtree(draft, ignore_errors=True)  # an earlier attempt that was interrupted
    draft.parent.mkdir(parents=True, exist_ok=True)
    raw = _Maker(store, draft).make()
    if folder.is_dir():
        folder.rmdir()
    os.rename(draft, folder)
    return raw


def is_made_from(store: Store, folder: Path) -> bool:
    """Return whether a folder is a brain that was made from another one; else one can be made in it.

    Raises:
        UserError: The folder holds something else, or it lies in the brain, or the brain in it.
    """
    if is_brain(folder):
        settings = load(folder / "system/config.yaml", Settings)
        journal = Journal(Tree(folder, settings.layout()), LocalPlaces.of(folder.resolve(), settings.brain_id))
        rebuilt = journal.events(kinds={events.BrainRebuilt})
        if any(event.data["of"] == store.settings.brain_id for event in rebuilt):
            return True
    target, root = folder.resolve(), store.root.resolve()
    if target.is_relative_to(root) or root.is_relative_to(target):
        raise UserError(f"{folder} and the brain {root} must not lie in each other; name another folder")
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} holds something else already; name a new or empty folder")
    return False


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
        self._wishes = set[str]()  # the ids of the proposals to forget something

    def make(self) -> Raw:
        """Copy and write everything."""
        # no commit of a process comes between the files and the journal
        with self._store.commit_lock():
            self._copy_system()
            create_brain(self._folder, is_shared=True, clock=self._store.clock)
            self._write_journal()
            tree = self._store.tree
            for path in tree.scan(tree.inbox, tree.memory):
                self._copy_or_reduce(path, tree.kind_of(path))
        return self._result

    # --- files ----------------------------------------------------------------------------------------------

    def _copy_system(self) -> None:
        """Copy settings, identity, prompts, workflows and the person's own plugins; the brain gets an id of its own."""
        tree = self._store.tree
        for path in tree.scan(tree.config.parent, tree.plugins):
            self._copy(path)
        config = self._folder / tree.relative(tree.config)
        text = config.read_text("utf-8") if config.exists() else ""
        text, count = re.subn(r"^brain_id:.*$", f"brain_id: {new_id()}", text, flags=re.MULTILINE)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text if count else f"brain_id: {new_id()}\n{text}", "utf-8")

    def _copy_or_reduce(self, path: str, kind: PathKind) -> None:
        """Take over a file of inbox or memory: a page without what models made, short-term memory without a summary.

        Left out are error files and index pages, which are made anew, a page that holds nothing else, a prompt without
        an answer, which is the first brain's to answer, all of the review but what is to be forgotten, and our
        lines of `Today.md`.
        """
        store, text, after = self._store, None, None
        if kind is PathKind.PROMPT:
            if not store.projection.query("SELECT 1 FROM exchanges WHERE prompt = ? LIMIT 1", path):
                return
        elif kind is PathKind.SHORT_TERM:
            after = str(store.short_term().with_summary("", self._log.is_own_summary))
        elif kind in (PathKind.MEMORY, PathKind.ARCHIVED):
            text = store.read_text(path) or ""
            try:
                after = self._without_model_parts(parse_memory(path, text))
            except FormatError:
                self._result.unreadable.append(path)
                after = text
            self._result.left += after is None
            self._result.pages += after is not None
        elif kind is PathKind.REVIEW:
            text = store.read_text(path) or ""
            after = "".join(text[tick.start : tick.end] for tick in find_ticks(text) if tick.id in self._wishes) or None
        elif kind is PathKind.TODAY:
            text = store.read_text(path) or ""
            after = without_ours(text) or None
        elif kind is PathKind.ERROR or os.path.basename(path) == INDEX:
            return
        if after is None and text is not None:  # nothing of it is left
            return
        self._copy(path)
        if after != text:
            (self._folder / path).write_bytes((after or "").encode("utf-8", "surrogateescape"))

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
        if not self._log.knows_page(page):
            # a process begins the pages of days, which have no statements
            sql = "SELECT by FROM changes WHERE path = ? AND is_new ORDER BY event LIMIT 1"
            rows = self._store.projection.query(sql, memory.path)
            if not rows or rows[0][0] == "person":
                return memory.text
        body = self._log.whole_body_of(page)
        is_written_whole = body is not None and text_hash(memory.body) == body.hash
        if is_written_whole:  # by a model, or a note that was kept word for word
            return memory.text if (page, "") in self._verbatim else None
        document = MemoryDocument(memory.text, memory.path)
        present, former = _places_by_models(self._log.changes_of(page))
        for statement in memory.statements:
            is_verbatim = (page, statement.block_id) in self._verbatim
            # lines that a person wrote below a statement would lose their meaning without it
            if statement.is_history:  # its words before that count
                is_by_model = bool(statement.block_id) and statement.block_id in former
            else:
                is_by_model = (statement.block_id, text_hash(statement.text)) in present
            if not is_verbatim and is_by_model and not document.has_lines_below(statement.block_id):
                document = document.without_statement(statement.block_id)
        if is_bare(document.memory):
            return None
        keys = {key: value for key, value in _MODEL_KEYS.items() if memory.meta.get(key, value) != value}
        return _EMPTY_HISTORY.sub("\n", str(document.set_meta(**keys) if keys else document))

    # --- the journal ----------------------------------------------------------------------------------------

    def _write_journal(self) -> None:
        """Write the events that are kept, with their ids and times, and the texts that they name."""
        store, kept_ids = self._store, set[str]()
        folder = self._folder / store.tree.relative(store.tree.journal)
        blobs = BlobStore(folder / "blobs", Disk())
        own_device, ends = store.journal.device, dict[str, tuple[Path, int]]()

        def append(device: str, event: Event) -> None:
            """Append an event, numbered anew, to the file of its day; never to an earlier one than the event before."""
            last, count = ends.get(device, (folder, 0))  # a folder sorts before its files
            ends[device] = max(folder / device / f"{event.at[:10]}.jsonl", last), count + 1
            ends[device][0].parent.mkdir(parents=True, exist_ok=True)
            Disk().append(ends[device][0], to_line(replace(event, seq=count + 1)))

        for device, event in store.journal.all_events():
            reduced = self._reduced(event, kept_ids)
            if reduced is not None:
                kept_ids.add(event.id)
                digests = {digest for change in reduced.changes for digest in (change.before, change.after) if digest}
                for digest in (digest for digest in digests if digest not in blobs):
                    with suppress(BlobError):
                        blobs.put(self._store.journal.blobs.get(digest))
                append(device or own_device, reduced)
        what = events.BrainRebuilt(of=store.settings.brain_id)
        append(own_device, Event(0, new_id(), iso(store.clock.now()), what.kind, "cli", data=what.to_json()))

    def _reduced(self, event: Event, kept_ids: set[str]) -> Event | None:
        """Return an event as the new brain has it: without what models made; None where it is left out.

        Args:
            event: The event.
            kept_ids: The ids of the events that the new brain has so far.
        """
        match what := event.what:
            case events.MemoryPromoted():
                # what models decided is decided anew; what was kept word for word is recorded, so that it is kept once
                statements = tuple(row for row in what.statements if row.model == OFFLINE)
                none: dict[str, Any] = {"refused": (), "candidates": {}, "proposals": (), "left": {}, "breaker": None}
                return replace(event, data=replace(what, statements=statements, **none).to_json(), changes=())
            case events.ProposalMade():
                wishes = tuple(each for each in what.proposals if isinstance(each, events.ForgetProposal))
                self._wishes |= {wish.id for wish in wishes}
                event = replace(event, data=replace(what, proposals=wishes).to_json())
                is_kept = bool(wishes)
            case events.ProposalDecided():
                is_kept = what.proposal in self._wishes
            case events.EventUndone():
                is_kept = what.undone in kept_ids
            case events.ModelCalled():  # the day's budget is the person's, whichever brain spends it
                is_kept = event.at >= iso(self._store.midnight())
            case _:
                is_kept = isinstance(what, _KEPT) or event.kind in FOUND  # by hand
        if not is_kept:
            return None
        # not of a log, nor of a page where a process filed
        kinds = _PLACES - ({PathKind.MEMORY, PathKind.ARCHIVED} if isinstance(what, _FILING) else set())
        kind_of = self._store.tree.kind_of
        changes = (change for change in event.changes if change.op != "append" and kind_of(change.path) in kinds)
        return replace(event, changes=tuple(changes))


def _places_by_models(changes: Sequence[StatementChange]) -> tuple[set[tuple[str, str]], set[str]]:
    """Return where a process wrote last on a page; a statement that a person corrected or released is the person's.

    Args:
        changes: The operations on the page's statements, oldest first.

    Returns:
        Block id and hash of the words of the statements that hold, and the block ids of those under History.
    """
    last = {(change.block, change.hash): change.event.kind for change in changes if change.block}
    by_processes = (events.MemoryPromoted.kind, events.MemoryOrganized.kind)
    present = {key for key, kind in last.items() if kind in by_processes}
    formers = [change.former for change in changes]
    former = {ref.history for ref in formers if (ref.block, ref.hash) in present}
    return present, former | {block for block, _ in present}


def settle(store: Store) -> None:
    """Take in the files of a new brain as they are, and make the index pages of its folders; the first time only."""
    if next(store.journal.events(kinds={events.TreeAdopted}), None) is not None:
        return
    # as if each page had just been written: `Folders` makes the index pages of what changes
    pages = [update(page.path, page.text, page.text) for page in store.pages().memories.values()]
    for change in Folders(store, pages).changes():
        store.tree.absolute(change.path).write_bytes(change.after or b"")
    store.observed.adopt(is_anew=True)
