"""Statements by the journals: who wrote each, what rests on which exchanges, what persons corrected.

A statement is ours (a process wrote it) if a readable journal has its block id with the hash of its text; all others
are a person's.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from brainiac import events
from brainiac.errors import FormatError, UserError
from brainiac.events import Change, Event, PathKind, RetireProposal, StatementRecord, StatementRef, new_id, update
from brainiac.formats.markdown import find_events
from brainiac.formats.page import (
    Memory,
    MemoryDocument,
    Statement,
    block_ids,
    new_block_id,
    parse_memory,
    readable_memory,
)
from brainiac.formats.short_term import EMPTY, Item, ShortTermDocument, StmEvent, document_of
from brainiac.storage.causes import undone_events
from brainiac.storage.external_edits import FOUND
from brainiac.storage.links import with_rooted_links
from brainiac.storage.projection import ORIGIN, Row
from brainiac.storage.store import Store

LINE = "line-"  # begins the id of an event made of a line that a person wrote
_COMMANDED = {
    events.NoteMerged.kind,
    events.NoteSaved.kind,
    events.StatementCorrected.kind,
    events.ExchangeForgotten.kind,
    events.MemoryForgotten.kind,
}
_BY_HAND = json.dumps(sorted(FOUND | _COMMANDED))  # kinds of events with changes that a person made or asked for


def text_hash(text: str) -> str:
    """Return the short hash by which the journal knows a statement's text; runs of white space count as one space."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def line_id(text: str) -> str:
    """Return the id of an event that is made of a line that a person wrote, a hash of the exact line."""
    return LINE + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def event_hash(event: StmEvent) -> str:
    """Return a hash of an event's content; another hash later means that a person edited the event."""
    at = "" if event.id.startswith(LINE) else event.at  # an event made of a line gets a new time at each reading
    return text_hash(f"{at}\n{event.user}\n{event.ai}\n{event.thoughts}\n{event.is_private}")


@dataclass(frozen=True, slots=True)
class StatementChange:
    """One recorded operation on a statement, or on the whole body of a page.

    Attributes:
        event: The event that records it, without its data.
        record: The operation.
        block: The statement's block id; "" for a whole body.
        hash: Of its text after the operation.
        since: When it was said, an ISO date.
        device: On which it was done.
    """

    event: Event
    record: StatementRecord
    block: str
    hash: str
    since: str
    device: str

    @property
    def former(self) -> StatementRef:
        """The statement that it replaced; without block id and hash where it replaced none."""
        return self.record.replaced or StatementRef()

    @property
    def retired(self) -> str:
        """The block id of another statement that it retired; "" where it retired none or reworded the same one."""
        return self.former.block if self.former.block != self.block else ""


class Made(NamedTuple):
    """When a person made a change, ISO 8601: in doubt between two moments, otherwise these are the same.

    The time of a file tells it where it lies between the last recorded change of the file and the moment at which the
    edit was found. Another was set by a program, such as a backup's, and tells nothing.
    """

    earliest: str
    latest: str

    @classmethod
    def of(cls, written: str | None, last: str | None, found: str, *, is_watched: bool) -> Made:
        """Return when an edit was made.

        Args:
            written: The time of its file; None where no file has it, as of a deletion.
            last: When the file had changed before.
            found: When the edit was found.
            is_watched: Whether it was found as it was made, where no file has its time.
        """
        if written is None and is_watched:
            return cls(found, found)
        if written and (last or "") <= written <= found:
            return cls(written, written)
        return cls(last or "", found)


@dataclass(frozen=True, slots=True)
class Correction:
    """A statement that a person changed or took out.

    Attributes:
        page: The page's uuid.
        before: The statement's text before the change.
        made: When the change was made.
    """

    page: str
    before: str
    made: Made


Edits = tuple[list[Correction], dict[tuple[str, str], Made]]


class StatementLog:
    """Queries on what readable journals say of statements; events that were undone do not count.

    Args:
        store: Whose journals are asked.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._undone = undone_events(store)  # this follows the journals
        self._stated: dict[str, dict[tuple[str, str], str]] = {}  # what `_our_statements` returned, by page
        self._edits: dict[str, Edits] = {}  # what `edits_since` returned, by moment

    # --- statements -----------------------------------------------------------------------------------------

    def is_ours(self, page: str, statement: Statement) -> bool:
        """Return whether a process wrote a statement in its present words.

        Args:
            page: The page's uuid.
            statement: Of the page as it is now.
        """
        return self.wrote(page, statement.block_id, statement.text)

    def wrote(self, page: str, block: str, text: str) -> bool:
        """Return whether a process gave the statement with a block id, on the page with a uuid, these words."""
        return (block, text_hash(text)) in self._our_statements(page)

    def evidence_of(self, page: str, block: str, text: str) -> list[events.EvidenceRecord]:
        """Return the words of exchanges on which the statement with a block id, on the page with a uuid, rests."""
        where = "page = ? AND block = ? AND hash = ?"
        rows = self._rows("statements", "data", where, page, block, text_hash(text))
        return [said for (data,) in rows for said in StatementRecord.from_json(json.loads(data)).evidence]

    def since_of(self, page: str, statement: Statement) -> str:
        """Return the ISO date on which a statement of ours was said; "" if unknown, or for a person's statement."""
        return self._our_statements(page).get((statement.block_id, text_hash(statement.text)), "")

    def days_on(self, pages: Sequence[str]) -> dict[tuple[str, str, str], str]:
        """Return when each statement on some pages was said, an ISO date, by uuid, block id and hash of its text."""
        where = "since != '' AND page IN (SELECT value FROM json_each(?))"
        rows = self._rows("statements", "page, block, hash, since", where, json.dumps(pages))
        return {(page, block, digest): since for page, block, digest, since in rows}

    def note_stated(self, page: str, block: str, text: str, since: str) -> None:
        """Treat a statement as ours from now on, before the commit that records it."""
        self._our_statements(page)[block, text_hash(text)] = since

    def _our_statements(self, page: str) -> dict[tuple[str, str], str]:
        """Return the date of each statement on a page that a process wrote, by its block id and text hash.

        The date is that on which it was said, ISO 8601; "" where it is unknown.
        """
        if page not in self._stated:
            rows = self._rows("statements", "block, hash, since", "page = ? AND is_owning AND block != ''", page)
            self._stated[page] = {(block, digest): since for block, digest, since in rows}
        return self._stated[page]

    def history_of(self, page: str) -> list[StatementChange]:
        """Return all operations on a page's statements by all devices, oldest first, those undone too."""
        rows = self._store.projection.query(
            "SELECT block, hash, since, device, data, seq, event, at, kind, by, cause FROM statements"
            " WHERE page = ? ORDER BY event, position, step",
            page,
        )
        return [
            StatementChange(Event(*header), StatementRecord.from_json(json.loads(data)), block, digest, since, device)
            for block, digest, since, device, data, *header in rows
        ]

    def changes_of(self, page: str) -> list[StatementChange]:
        """Return the operations on a page's statements that were not undone, oldest first."""
        return [change for change in self.history_of(page) if change.event.id not in self._undone]

    def made_by(self, model: str) -> dict[tuple[str, str], list[str]]:
        """Return the statements all of whose operations a model decided, with the exchanges they rest on.

        Args:
            model: Its name.

        Returns:
            Ids of exchanges, oldest first, by the page's uuid and block id; a whole page has block id "".
        """
        sources: dict[tuple[str, str], list[str]] = {}
        by_others: set[tuple[str, str]] = set()
        # step 0: the operations themselves, without the steps of how-tos
        for page, block, data in self._rows("statements", "page, block, data", "is_owning AND step = 0"):
            record = StatementRecord.from_json(json.loads(data))
            sources.setdefault((page, block), []).extend(record.sources)
            if record.model != model:
                by_others.add((page, block))
        return {place: exchanges for place, exchanges in sources.items() if place not in by_others}

    def knows_page(self, page: str) -> bool:
        """Return whether any operation on a page's statements was recorded."""
        return bool(self._store.projection.query("SELECT 1 FROM statements WHERE page = ? LIMIT 1", page))

    def whole_body_of(self, page: str) -> StatementChange | None:
        """Return the last operation that wrote the whole body of a page; None where it holds statements."""
        return next((change for change in reversed(self.changes_of(page)) if change.record.is_whole), None)

    def provenance_of(self, page: str, statement: Statement) -> list[StatementChange]:
        """Return the operations that made a statement, oldest first; none where a person wrote or reworded it."""
        block, digest = statement.block_id, text_hash(statement.text)
        if not block:
            return []
        changes = self.changes_of(page)
        # a statement that was moved to History got a new block id there: its past is recorded under the former one
        former = [change.former for change in changes if change.former.history == block != change.former.block]
        if former:
            block, digest = former[-1].block, former[-1].hash or digest
        changes = [change for change in changes if change.block == block]
        # up to the operation that gave it its present words
        last = max((number for number, change in enumerate(changes) if change.hash == digest), default=-1)
        return changes[: last + 1]

    # --- candidates -----------------------------------------------------------------------------------------

    def is_decided(self, candidate: str) -> bool:
        """Return whether a candidate, by its id, was written, proposed, or refused for good."""
        return bool(self._rows("candidates", "1", "candidate = ?", candidate))

    def analyses(self, exchanges: Iterable[str]) -> list[Event]:
        """Return this device's earlier analyses of any of these exchanges, oldest first.

        Left out are analyses of promotions that were undone, and those all of whose exchanges were consolidated since:
        an exchange that is put back into short-term memory is analyzed again.
        """
        undone_runs = self._store.projection.query(
            "SELECT run FROM promotions WHERE event IN (SELECT event FROM undone)"
        )
        is_consolidated = """EXISTS (SELECT 1 FROM filings WHERE filings.exchange = part.exchange AND is_consolidated
            AND filings.event > analysis.event AND filings.event NOT IN (SELECT event FROM undone))"""
        # a row of `analyses` is one exchange of an analysis; `part` is each of them
        rows = self._rows(
            "analyses analysis",
            "DISTINCT event",
            f"""device = ? AND exchange IN (SELECT value FROM json_each(?))
            AND (run IS NULL OR run NOT IN (SELECT value FROM json_each(?)))
            AND EXISTS (SELECT 1 FROM analyses part WHERE part.event = analysis.event AND NOT {is_consolidated})""",
            self._store.journal.device,
            json.dumps(list(exchanges)),
            json.dumps([run for (run,) in undone_runs if run]),
        )
        analyses = (self._store.journal.find(event) for (event,) in rows)
        return [event for event in analyses if event and isinstance(event.what, events.EventsAnalyzed)]

    # --- short-term memory ----------------------------------------------------------------------------------

    def sources_of_item(self, item: str) -> frozenset[str]:
        """Return the ids of the exchanges that Reflection took an item of a list from; none where a person wrote it.

        Args:
            item: Text of an item of short-term memory.
        """
        rows = self._rows("writings", "exchange", "hash = ? AND part = 'item'", text_hash(item))
        return frozenset(exchange for (exchange,) in rows)

    def are_own_thoughts(self, thoughts: str) -> bool:
        """Return whether Reflection wrote these thoughts."""
        return bool(self._rows("writings", "1", "hash = ? AND part = 'thoughts'", text_hash(thoughts)))

    def is_own_summary(self, paragraph: str, before: str = "~") -> bool:
        """Return whether Promotion wrote a paragraph of the summary, the last time before the event with an id."""
        rows = self._rows("writings", "event", "hash = ? AND part = 'summary'", text_hash(paragraph))
        return bool(rows) and rows[-1][0] < before  # ids ascend in time; `~` sorts behind them

    def prompt_of(self, exchange: str) -> str:
        """Return the path that the prompt of an exchange had when Reflection noted it; "" if unknown."""
        rows = self._rows("outcomes", "prompt", "exchange = ? AND prompt IS NOT NULL", exchange)
        return rows[-1][0] if rows else ""

    # --- what persons changed --------------------------------------------------------------------------------

    def touched_at(self, path: str) -> str:
        """Return when a person last changed a memory on this device, ISO 8601; "" for never."""
        rows = self._changes_by_hand("at", "path = ?", path)
        return rows[-1][0] if rows else ""

    def edits_since(self, moment: str) -> Edits:
        """Return what persons did to statements on this device since a moment, by comparing pages before and after.

        Args:
            moment: ISO 8601; "" for all that they ever did.

        Returns:
            What they changed or removed, oldest first, and when they wrote or reworded what, by page uuid and text
            hash.
        """
        if moment in self._edits:
            return self._edits[moment]
        corrections: list[Correction] = []
        times: dict[tuple[str, str], Made] = {}
        last = """(SELECT max(at) FROM changes former WHERE former.path = changes.path
            AND former.device = changes.device AND former.event < changes.event)"""
        rows = self._changes_by_hand(f"path, before, after, kind, written, {last}, at", "at >= ?", moment)
        for path, before_hash, after_hash, kind, *moments in rows:
            made, hashes = Made.of(*moments, is_watched=kind != events.NotesEdited.kind), (before_hash, after_hash)
            # compared with a purged text, which is not kept, every statement would seem to be edited
            is_kept = all(digest is None or self._store.kept_text(digest) is not None for digest in hashes)
            if self._store.tree.kind_of(path) is PathKind.MEMORY and is_kept:
                before, after = (_statements(self._store, path, digest) for digest in hashes)
                if (
                    kind == events.StatementCorrected.kind
                ):  # what was no statement until it was put right is in History alone
                    was, retired = (_statements(self._store, path, digest, is_history=True) for digest in hashes)
                    before |= {key: text for key, text in retired.items() if key not in was}
                # what a person reworded or took out, they hold to be wrong
                for uuid, digest in before.keys() - after.keys():
                    text = with_rooted_links(self._store, before[uuid, digest], [posixpath.dirname(path)])
                    corrections.append(Correction(uuid, text, made))
                for key in after.keys() - before.keys():
                    times[key] = made
        self._edits[moment] = corrections, times
        return corrections, times

    def _changes_by_hand(self, columns: str, where: str, value: str) -> list[Row]:
        """Return columns of the recorded changes of files that persons made on this device, oldest first.

        What a process of another device wrote and a sync brought is none of these.

        Args:
            columns: Of the table `changes`.
            where: A SQL condition with one `?`.
            value: For the `?`.
        """
        by_hand = f"kind IN (SELECT value FROM json_each(?)) AND coalesce({ORIGIN.format('is_by_hand')}, 1)"
        where = f"device = ? AND {by_hand} AND {where}"
        return self._rows("changes", columns, where, self._store.journal.device, _BY_HAND, value)

    def _rows(self, table: str, columns: str, where: str, *values: str) -> list[Row]:
        """Return rows of a table in the order of their events, without those of events that were undone."""
        sql = f"SELECT {columns} FROM {table} WHERE event NOT IN (SELECT event FROM undone) AND {where} ORDER BY event"
        return self._store.projection.query(sql, *values)


def sources_of(changes: Iterable[StatementChange]) -> frozenset[str]:
    """Return the ids of the exchanges that operations rest on."""
    return frozenset(source for change in changes for source in change.record.sources)


def rests_of(store: Store, names: Iterable[str]) -> dict[str, set[str]]:
    """Return the ids of the exchanges that statements rested on, by `page#^block` as a receipt names them."""
    store.projection.follow()
    sql = """SELECT page, statements.block, data FROM json_each(?) AS wanted CROSS JOIN statements
        ON page = json_extract(wanted.value, '$[0]') AND statements.block = json_extract(wanted.value, '$[1]')"""
    wanted, rests = [name.split("#^") for name in names if "#^" in name], dict[str, set[str]]()
    for page, block, data in store.projection.query(sql, json.dumps(wanted)):
        rests.setdefault(f"{page}#^{block}", set()).update(StatementRecord.from_json(json.loads(data)).sources)
    return rests


def _statements(store: Store, path: str, digest: str | None, *, is_history: bool = False) -> dict[tuple[str, str], str]:
    """Return the texts of the current statements in a version of a page, by the page's uuid and text hash.

    Args:
        store: Of the brain.
        path: Of the page.
        digest: The content hash of the version; None for no page, which has no statements.
        is_history: Those under History instead.
    """
    memory = readable_memory(path, store.kept_text(digest) or "")
    statements = memory.statements if memory else ()
    texts = (statement.text for statement in statements if statement.is_history == is_history)
    return {(memory.uuid, text_hash(text)): text for text in texts} if memory else {}


# --- `brainiac adopt` ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Adoption:
    """A person's statements that become ours: from then on the processes may update, move and retire them.

    Attributes:
        changes: The changes that add missing block ids and uuids.
        statements: The statements as the journal will record them.
        texts: Path of the page and text of each statement.
    """

    changes: list[Change] = field(default_factory=list)
    statements: list[StatementRecord] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)


def plan_adoption(store: Store, page_or_folder: str | None = None) -> Adoption:
    """Return the person's statements on a page, in a folder, or in all of long-term memory.

    Args:
        store: Of the brain.
        page_or_folder: Its path; None for all of long-term memory.

    Raises:
        UserError: There is no such page or folder in long-term memory.
    """
    adoption, log, tree = Adoption(), StatementLog(store), store.tree
    top = tree.confine(page_or_folder, inside=tree.memory) if page_or_folder else tree.long_term
    if not top.is_dir() and not (top.is_file() and tree.kind_of(tree.relative(top)) is PathKind.MEMORY):
        long_term = tree.relative(tree.long_term)
        raise UserError(f"{page_or_folder}: no page or folder of {long_term}/; name one, or nothing for all")
    for path in sorted(path for path in tree.scan(top) if tree.kind_of(path) is PathKind.MEMORY):
        text = store.read_text(path) or ""
        try:
            page = with_block_ids(MemoryDocument(text, path).with_missing_keys(new_id(), store.written_at(path)))
        except FormatError:
            continue  # the doctor names it
        uuid = page.memory.uuid
        count = len(adoption.statements)
        for statement in page.memory.statements:
            if not statement.is_history and not log.is_ours(uuid, statement):
                digest = text_hash(statement.text)
                adoption.statements.append(StatementRecord(page=uuid, block=statement.block_id, hash=digest, path=path))
                adoption.texts.append((path, statement.text))
        # where all statements are ours already, missing block ids and uuids are no reason to change the page
        if len(adoption.statements) > count and str(page) != text:
            adoption.changes.append(update(path, text, str(page)))
    return adoption


def adopt(store: Store, page_or_folder: str | None = None) -> tuple[Event | None, Adoption]:
    """Let the processes change and retire statements that a person wrote, which they leave alone otherwise.

    It is one commit; `plan_adoption` says what it would do.

    Args:
        store: The brain.
        page_or_folder: Only the statements there; everywhere by default.

    Returns:
        The event, None where the processes may change all of them already; and what was adopted.

    Raises:
        ConflictError: A page was saved meanwhile; nothing was changed.
    """
    adoption = plan_adoption(store, page_or_folder)
    if not adoption.statements:
        return None, adoption
    adopted = events.StatementsAdopted(statements=tuple(adoption.statements))
    return store.commit(adopted, by="person", changes=adoption.changes), adoption


def without_fact(store: Store, words: str) -> list[Change]:
    """Return the change that takes a fact with these words out of short-term memory, where it is pinned."""
    document = store.short_term()
    after = str(document.without_items(facts=[words]))
    return [update(store.tree.relative(store.tree.short_term), str(document), after)] if after != str(document) else []


def with_block_ids(page: MemoryDocument) -> MemoryDocument:
    """Return a page with a block id added to each current statement that has none."""
    text, path = page.memory.text, page.memory.path
    taken = block_ids(text)
    ids: list[tuple[int, str]] = []
    for statement in page.memory.statements:
        if not statement.block_id and not statement.is_history and statement.text:
            block = new_block_id(statement.text, taken)
            taken.add(block)
            ids.append((statement.own[1], block))
    for offset, block in reversed(ids):
        text = f"{text[:offset]} ^{block}{text[offset:]}"
    return MemoryDocument(text, path)


# --- the one question behind forgetting, late privacy, undo of an exchange, and `why` ---------------------------------


@dataclass(frozen=True, slots=True)
class Rest:
    """One unit of the tree that rests on exchanges.

    Attributes:
        path: The file.
        kind: `statement`, `item` (of a list of short-term memory), `exchange` (one of them, word for word), `entry` (a
            page that is what was said, whole), `sources` (a page whose front matter names one), `proposal`, or
            `unreadable` (a page that names one and cannot be parsed).
        name: Block id of a statement, text of an item, id of an exchange or a proposal; what is wrong with a page.
        sources: The ids of all exchanges that it rests on.
        is_alone: Whether it rests on none but the ones asked for.
        is_persons: Whether a person wrote in it: below a statement, or anywhere on an entry.
        is_said_elsewhere: Whether others gave a statement these very words too.
        former: Its wording before, where the last one comes from the exchanges asked for alone; else None.
        again: The statement under History that it replaced and that holds again without it; None for none.
    """

    path: str
    kind: str
    name: str = ""
    sources: frozenset[str] = frozenset()
    is_alone: bool = True
    is_persons: bool = False
    is_said_elsewhere: bool = False
    former: StatementRef | None = None
    again: Statement | None = None

    def without(self, page: MemoryDocument) -> MemoryDocument:
        """Return a page without the statement, and with the one that it replaced moved back from History."""
        page = page.without_statement(self.name)
        if self.again is None:
            return page
        return page.without_statement(self.again.block_id).add_statement(self.again.text, self.again.block_id)


def rests_on(store: Store, exchanges: Iterable[str], read: Callable[[str], str | None] | None = None) -> Iterator[Rest]:
    """Yield each unit of the tree that rests on some exchanges, file by file.

    Args:
        store: The brain.
        exchanges: Their ids.
        read: Returns the text of a file, such as a planned one; None for the present ones.
    """
    ids, log, read = frozenset(exchanges), StatementLog(store), read or store.read_text
    pages = store.pages(None if ids else ())
    texts = {path: page.text for path, page in pages.pages.items()}
    texts |= {path: store.read_text(path) or "" for path in pages.broken}
    for path in (path for path, text in texts.items() if any(exchange in text for exchange in ids)):
        try:
            memory = parse_memory(path, read(path) or "")  # it may have changed since all were read
        except FormatError as error:
            yield Rest(path, "unreadable", error.problem)
            continue
        if store.tree.kind_of(path) in (PathKind.MEMORY, PathKind.ARCHIVED):
            yield from _on_page(log, memory, ids)
    short_term = store.tree.relative(store.tree.short_term)
    with suppress(FormatError):  # else nobody can tell what is in it
        document = document_of(read(short_term) or EMPTY).memory
        yield from (Rest(short_term, "exchange", event.id) for event in document.events if event.id in ids)
        for item in (*document.goals, *document.facts, *document.tasks):
            sources = log.sources_of_item(item.text)
            if not sources.isdisjoint(ids):
                yield Rest(short_term, "item", item.text, sources, sources <= ids)
    sql = "SELECT id, data FROM proposals WHERE json_extract(data, '$.operation') IN ('retire', 'replace')"
    for name, data in store.projection.query(sql):
        sources = frozenset(RetireProposal.from_json(json.loads(data)).sources)
        if not sources.isdisjoint(ids):
            yield Rest(store.tree.relative(store.tree.review), "proposal", name, sources, sources <= ids)


def _on_page(log: StatementLog, memory: Memory, ids: frozenset[str]) -> Iterator[Rest]:
    """Yield what on a page rests on exchanges."""
    path, page = memory.path, MemoryDocument(memory.text, memory.path)
    note, sources = log.whole_body_of(memory.uuid), frozenset(map(str, memory.meta.get("sources") or ()))
    if note and not ids.isdisjoint(note.record.sources):
        is_persons = text_hash(memory.body) != note.hash
        yield Rest(path, "entry", "", frozenset(note.record.sources), ids.issuperset(note.record.sources), is_persons)
    if not sources.isdisjoint(ids):
        yield Rest(path, "sources", "", sources, sources <= ids)
    yield from (
        Rest(path, "exchange", placed.event.id) for placed in find_events(memory.text) if placed.event.id in ids
    )
    standing = {statement.block_id: statement for statement in memory.statements if statement.block_id}
    for statement in memory.statements:
        changes = log.provenance_of(memory.uuid, statement)
        sources = sources_of(changes)
        if sources.isdisjoint(ids):
            continue
        same_words = [change.record.sources for change in changes if change.hash == text_hash(statement.text)]
        last = changes[-1]
        is_reworded = not statement.is_history and ids.issuperset(last.record.sources)
        again = standing.get(last.retired)
        origins = sources_of(log.provenance_of(memory.uuid, again)) if again else frozenset()
        if again and (not again.is_history or (origins and origins <= ids)):
            again = None  # it is removed for itself
        yield Rest(
            path,
            "statement",
            statement.block_id,
            sources,
            sources <= ids,
            is_persons=page.has_lines_below(statement.block_id),
            is_said_elsewhere=any(others and ids.isdisjoint(others) for others in same_words),
            former=last.former if is_reworded else None,
            again=again,
        )


def without_items(document: ShortTermDocument, is_gone: Callable[[Item], bool]) -> tuple[ShortTermDocument, list[str]]:
    """Return short-term memory without some items of its lists, and the texts of these."""
    memory = document.memory
    lists = [[item.text for item in items if is_gone(item)] for items in (memory.goals, memory.facts, memory.tasks)]
    return document.without_items(*lists), [text for texts in lists for text in texts]
