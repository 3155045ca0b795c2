"""The journals of all devices as tables of the state database; they are derived from the journals alone.

Each row has the id of the event that it was made from, and queries work out what is true now. So the tables are the
same in whatever order journals arrive, and whether they are read step by step, twice, or from the beginning. They
may be lost at any moment, as may the table of the files as last seen, which follows this device's journal alone.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from brainiac import events
from brainiac.events import Event, NoteMerged, PathKind, RecordedChange, TreeAdopted
from brainiac.storage.database import StateDatabase
from brainiac.storage.journal import Journal, from_line, to_line
from brainiac.tree import Stamp, Tree

_BATCH = 5000  # events whose rows are inserted together
VERSION = 12  # of the schema, and of what is taken from events: another one has the tables made anew
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED, PathKind.INDEX_PAGE, PathKind.REVIEW})
_SCHEMA = """
-- How far each journal was read: seq and id; of another device's file bytes and the last of them; '' has the basis.
CREATE TABLE IF NOT EXISTS positions(source TEXT PRIMARY KEY, at INTEGER, mark TEXT, size INTEGER) WITHOUT ROWID;
-- Exchanges; `response_hash` is that of the response as it was then, `is_ours` where a process wrote it, `is_kept` 0
-- where the exchange is off the record; `origin` and `author` say whose words it has.
CREATE TABLE IF NOT EXISTS exchanges(
    event TEXT PRIMARY KEY, device TEXT, at TEXT, prompt TEXT, prompt_id TEXT, sha256 TEXT, prompt_hash TEXT,
    response TEXT, response_hash TEXT, is_ours INTEGER, is_kept INTEGER, origin TEXT, author TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS exchange_prompts ON exchanges(prompt);
CREATE INDEX IF NOT EXISTS exchange_prompt_ids ON exchanges(prompt_id);
CREATE INDEX IF NOT EXISTS exchange_texts ON exchanges(sha256);
-- What answers rested on, by short id.
CREATE TABLE IF NOT EXISTS receipts(id TEXT, name TEXT, PRIMARY KEY(id, name)) WITHOUT ROWID;
-- The whole events of exchanges that nothing followed from yet, and of purges.
CREATE TABLE IF NOT EXISTS lines(event TEXT PRIMARY KEY, device TEXT, kind TEXT, line TEXT) WITHOUT ROWID;
-- What followed from an exchange; `is_extracted` is NULL where it was not noted.
CREATE TABLE IF NOT EXISTS outcomes(
    exchange TEXT, event TEXT, supersedes TEXT, is_extracted INTEGER, prompt TEXT,
    PRIMARY KEY(exchange, event)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outcomes_superseding ON outcomes(supersedes) WHERE supersedes != '';
CREATE INDEX IF NOT EXISTS outcomes_bare ON outcomes(exchange) WHERE is_extracted = 0;
CREATE TABLE IF NOT EXISTS withdrawals(exchange TEXT, event TEXT, PRIMARY KEY(exchange, event)) WITHOUT ROWID;
-- Exchanges that left short-term memory: put on a page, filed to wait there, or consolidated; and `is_gone` where none
-- of their words is left to be consolidated: they were forgotten, or a person took them out of their page.
CREATE TABLE IF NOT EXISTS filings(
    exchange TEXT, event TEXT, at TEXT, page TEXT, is_filed INTEGER, is_consolidated INTEGER, is_gone INTEGER,
    PRIMARY KEY(exchange, event)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS filings_waiting ON filings(exchange) WHERE is_filed;
CREATE TABLE IF NOT EXISTS undoings(event TEXT PRIMARY KEY, device TEXT, undone TEXT) WITHOUT ROWID;
-- What these come to: the events that are undone by now, each with the undoing that stands.
CREATE TABLE IF NOT EXISTS undone(event TEXT PRIMARY KEY, undoing TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS proposals(
    id TEXT, event TEXT, at TEXT, device TEXT, by TEXT, is_hiding INTEGER, data TEXT,
    PRIMARY KEY(id, event)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS hiding_proposals ON proposals(id) WHERE is_hiding;
CREATE TABLE IF NOT EXISTS decisions(proposal TEXT, event TEXT, device TEXT, how TEXT,
    PRIMARY KEY(proposal, event)) WITHOUT ROWID;
-- What moved, went or came back, of all files; of pages every change. `about` names the prompt that moved, or the event
-- that was undone; `written` is the time of a file that a person changed.
CREATE TABLE IF NOT EXISTS changes(
    event TEXT, position INTEGER, at TEXT, kind TEXT, op TEXT, path TEXT, source TEXT, after TEXT,
    is_new INTEGER, is_by_hand INTEGER, about TEXT, response TEXT, before TEXT, by TEXT, device TEXT,
    written TEXT, PRIMARY KEY(event, position)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS change_paths ON changes(path);
CREATE INDEX IF NOT EXISTS change_sources ON changes(source) WHERE source IS NOT NULL;
CREATE TABLE IF NOT EXISTS calls(
    at TEXT, event TEXT, device TEXT, by TEXT, purpose TEXT, model TEXT, input_tokens INTEGER, cached_tokens INTEGER,
    output_tokens INTEGER, cost_usd REAL, cause TEXT, PRIMARY KEY(at, event)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS call_causes ON calls(cause);
-- What each organization counted: of a page, or of two that one answer cited; and what it did.
CREATE TABLE IF NOT EXISTS uses(
    event TEXT, page TEXT, other TEXT, day TEXT, times INTEGER, PRIMARY KEY(event, page, other)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS use_days ON uses(page, day) WHERE other = '';
CREATE TABLE IF NOT EXISTS runs(event TEXT PRIMARY KEY, at TEXT, asked TEXT, done TEXT) WITHOUT ROWID;
-- Every operation on a statement of a page, by the event that records it; `data` is its record as the journal has it.
-- Of a how-to there is a row for each of its steps too. `is_owning` where it makes the statement a process's own.
CREATE TABLE IF NOT EXISTS statements(
    page TEXT, event TEXT, position INTEGER, step INTEGER, block TEXT, hash TEXT, since TEXT, is_owning INTEGER,
    seq INTEGER, device TEXT, at TEXT, kind TEXT, by TEXT, cause TEXT, data TEXT,
    PRIMARY KEY(page, event, position, step)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS statement_ends ON statements(json_extract(data, '$.valid_until'))
    WHERE json_extract(data, '$.valid_until') > '';
-- What was forgotten, as a receipt names it: exchanges, pages, and statements, each with the hash of its text.
CREATE TABLE IF NOT EXISTS forgotten(
    name TEXT, hash TEXT, event TEXT, at TEXT, PRIMARY KEY(name, hash, event)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS forgotten_hashes ON forgotten(hash) WHERE hash != '';
-- Candidates that were written or refused for good.
CREATE TABLE IF NOT EXISTS candidates(candidate TEXT, event TEXT, PRIMARY KEY(candidate, event)) WITHOUT ROWID;
-- What processes wrote into short-term memory, by its hash: an `item` of the lists, `thoughts`, a `summary` paragraph.
CREATE TABLE IF NOT EXISTS writings(
    hash TEXT, part TEXT, event TEXT, exchange TEXT, at TEXT, kind TEXT, by TEXT, device TEXT,
    PRIMARY KEY(hash, part, event)) WITHOUT ROWID;
-- Exchanges that a model was asked about, and the run that asked; and the runs that came to something.
CREATE TABLE IF NOT EXISTS analyses(
    exchange TEXT, event TEXT, device TEXT, run TEXT, PRIMARY KEY(exchange, event)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS analysis_events ON analyses(event);
CREATE TABLE IF NOT EXISTS promotions(event TEXT PRIMARY KEY, run TEXT) WITHOUT ROWID;
-- When a catch-up (`run`) began, and when it ended: then `withheld` has the exchanges that its model may not see.
CREATE TABLE IF NOT EXISTS catch_ups(event TEXT PRIMARY KEY, device TEXT, run TEXT, withheld TEXT) WITHOUT ROWID;
"""
_CONSOLIDATED, _GONE = (False, True, False), (False, False, True)  # the last three columns of `filings`
# Of a row of `changes` a column of where its text came from: another device's journal had that file with it before this
# one ever did, so that it arrived by a sync and nobody put it there.
ORIGIN = """(SELECT theirs.{} FROM changes theirs WHERE theirs.path = changes.path AND theirs.after = changes.after
    AND theirs.device != changes.device AND theirs.event < changes.event AND NOT EXISTS (
        SELECT 1 FROM changes ours WHERE ours.path = changes.path AND ours.after = changes.after
        AND ours.device = changes.device AND ours.event < changes.event) ORDER BY theirs.event LIMIT 1)"""
TABLES = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", _SCHEMA)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Position:
    """How far a journal was read.

    Attributes:
        at: The seq of the last event, of this device's journal; of a file of another's the offset behind it.
        mark: The id of the last event; of a file of another device's journal the bytes before `at`.
        size: Of the file, which may end in an unfinished line.
    """

    at: int = 0
    mark: str = ""
    size: int = 0


class Projection:
    """The tables; thread-safe, and followed by several processes at once.

    Args:
        database: Has the tables.
        tree: The brain's places.
        journal: What is followed.
    """

    def __init__(self, database: StateDatabase, tree: Tree, journal: Journal) -> None:
        self._tree, self._journal = tree, journal
        # all that the tables depend on besides the journals; where it differs, they are made anew
        self._basis = f"{VERSION} {journal.device} {tree.layout}"
        self._database = database
        database.add(_SCHEMA, self._follow)
        self.follow()

    def follow(self) -> None:
        """Read what other processes added to this device's journal and sync tools to those of other devices."""
        # looked up before the mutex is held: who holds the commit lock may be waiting for the mutex
        last, sizes = self._journal.last(), self._journal.foreign_sizes()

        def read_on(connection: sqlite3.Connection) -> None:
            positions = _positions(connection)
            basis, own = (positions.pop(source, _Position()) for source in ("", self._journal.device))
            is_same = basis.mark == self._basis and (own.at, own.mark) == last
            if not is_same or {source: position.size for source, position in positions.items()} != sizes:
                self._follow(connection)

        self._database.run(read_on)

    def follow_own(self) -> None:
        """Read on in this device's journal alone, to which this process has just added an event."""
        self._database.run(lambda connection: self._follow(connection, is_own=True))

    def query(self, sql: str, *values: str) -> list[Row]:
        """Return the rows of a query; call `follow` first where events by other processes and devices matter.

        A value with half a surrogate pair is in no row.
        """
        held = [value.encode("utf-8", "replace").decode() for value in values]
        return self._database.run(lambda connection: connection.execute(sql, held).fetchall())

    def value(self, sql: str, *values: str) -> Any:
        """Return the first column of the first row of a query; None where it has no rows."""
        return next(iter(self.query(sql, *values)), (None,))[0]

    def purges(self) -> list[tuple[str, Event]]:
        """Return device and event of each purge, and of each report that a device carried one out, oldest first."""
        self.follow()
        sql = "SELECT device, line FROM lines WHERE kind IN (?, ?) ORDER BY event"
        rows = self.query(sql, events.TextsPurged.kind, events.PurgeHonoured.kind)
        return [(device, from_line(line.encode())) for device, line in rows]

    # --- following ------------------------------------------------------------------------------------------

    def _follow(self, connection: sqlite3.Connection, *, is_own: bool = False) -> None:
        """Read each journal from its position on, or only this device's.

        Where one was rewritten or cut, and where the tables have another basis, read all journals anew.
        """
        connection.execute("BEGIN IMMEDIATE")  # only one process at a time may read on from a position
        positions = _positions(connection, self._journal.device if is_own else "")
        is_based = positions.get("", _Position()).mark == self._basis
        if not (is_based and self._read_on(connection, positions, is_own=is_own)):
            self._make_anew(connection)
            self._read_on(connection, {})

    def _make_anew(self, connection: sqlite3.Connection) -> None:
        """Make empty tables: those of another version may have other columns."""
        for table in TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        _set_position(connection, "", _Position(mark=self._basis))

    def _read_on(
        self, connection: sqlite3.Connection, positions: Mapping[str, _Position], *, is_own: bool = False
    ) -> bool:
        """Read each journal, or this device's, from its position on; return False where it does not continue there."""
        sizes = {} if is_own else self._journal.foreign_sizes()
        if positions.keys() - sizes.keys() - {"", self._journal.device}:  # a file is gone
            return False
        for source, size in sizes.items():
            position = positions.get(source, _Position())
            if position.size == size:
                continue
            part = self._journal.foreign_part(source, position.at, position.mark)
            if part is None:
                return False
            events_there, end, mark = part
            self._insert(connection, events_there, Path(source).parent.name)
            _set_position(connection, source, _Position(end, mark, size))
        position = positions.get(self._journal.device, _Position())
        added = self._journal.events_after(position.at, position.mark)
        if added is None:
            return False
        if position.at and any(event.kind == events.PurgeHonoured.kind for event in added):
            return False  # the purge rewrote earlier lines
        if last := self._insert(connection, added, self._journal.device):
            position = _Position(last.seq, last.id)
        _set_position(connection, self._journal.device, position)
        return True

    def _insert(self, connection: sqlite3.Connection, added: Iterable[Event], device: str) -> Event | None:
        """Insert the rows of events of a device, and return the last event; None for no events."""
        event: Event | None = None
        open_exchanges: dict[str, Event] = {}  # those without an outcome
        named = set[str]()  # those, and the ones of outcomes
        rows: dict[str, list[Row]] = defaultdict(list)
        for number, event in enumerate(added, 1):
            for table, row in _rows(event, device, self._tree):
                rows[table].append(row)
            if isinstance(event.what, events.ExchangeEvent):
                open_exchanges[event.id] = event
                named.add(event.id)
            elif isinstance(event.what, events.OutcomeEvent):
                open_exchanges.pop(event.what.exchange, None)
                named.add(event.what.exchange)
            if number % _BATCH == 0:
                _insert_rows(connection, rows)
        for exchange in open_exchanges.values():
            rows["lines"].append(_line_row(exchange, device))
        _insert_rows(connection, rows)
        # An outcome may have been read before its exchange, from another device's journal. These alone are asked about:
        # thousands may wait for one. An id with half a surrogate pair is in no row.
        sql = "DELETE FROM lines WHERE event = ?1 AND EXISTS (SELECT 1 FROM outcomes WHERE exchange = ?1)"
        connection.executemany(sql, ((each.encode("utf-8", "replace").decode(),) for each in named))
        return event


def _positions(connection: sqlite3.Connection, device: str = "") -> dict[str, _Position]:
    """Return how far each journal was read, or only this device's; "" has the basis of the tables as its mark."""
    rows = connection.execute("SELECT * FROM positions WHERE ?1 = '' OR source IN ('', ?1)", (device,))
    return {source: _Position(*position) for source, *position in rows}


def _insert_rows(connection: sqlite3.Connection, rows: dict[str, list[Row]]) -> None:
    """Insert rows by table and empty `rows`; a row that SQLite cannot hold is left out."""
    for table, inserted in rows.items():
        sql = f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(inserted[0]))})"
        try:
            connection.executemany(sql, inserted)
        # a foreign journal may have half a surrogate pair or a number of more than 64 bits: no row of ours is lost
        except (UnicodeEncodeError, OverflowError):
            for row in inserted:
                with suppress(UnicodeEncodeError, OverflowError):
                    connection.execute(sql, row)
    if "undoings" in rows:
        set_undone(connection)
    rows.clear()


def set_undone(connection: sqlite3.Connection) -> None:
    """Make the table `undone` anew from `undoings`."""
    undone: dict[str, str] = {}
    # from the last one back, as ids sort by time: one that is undone itself, by an undoing that stands, undid nothing
    for undoing, event in connection.execute("SELECT event, undone FROM undoings ORDER BY event DESC"):
        if undoing not in undone:
            undone.setdefault(event, undoing)
    connection.execute("DELETE FROM undone")
    connection.executemany("INSERT INTO undone VALUES (?, ?)", undone.items())


def _set_position(connection: sqlite3.Connection, source: str, position: _Position) -> None:
    """Record how far a journal was read."""
    row = (source, position.at, position.mark, position.size)
    connection.execute("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)", row)


def _rows(event: Event, device: str, tree: Tree) -> Iterator[tuple[str, Row]]:
    """Yield the rows of an event, each with the name of its table."""
    match event.what:
        case events.ExchangeEvent() as what:
            after = {change.path: change.after for change in event.changes}  # the texts as this event left them
            prompt_hash = after.get(what.prompt) or event.data.get("prompt_hash")
            response_hash = after.get(what.response or "") or what.response_hash or None
            prompt = what.prompt, what.prompt_id, what.prompt_sha256, prompt_hash
            response = what.response, response_hash, isinstance(what, events.PromptAnswered)
            place, author = (event.id, device, event.at), (what.origin, what.author)
            yield "exchanges", (*place, *prompt, *response, what.prompt in after, *author)
            if isinstance(what, events.PromptAnswered):
                yield from (("receipts", row) for row in what.receipts.items())
        case events.ExchangeReflected() as outcome:
            superseded = outcome.supersedes if outcome.supersedes != outcome.exchange else ""
            yield "outcomes", (outcome.exchange, event.id, superseded, outcome.is_extracted, outcome.prompt)
        case events.OutcomeEvent(exchange=exchange):
            yield "outcomes", (exchange, event.id, "", None, None)
        case events.ExchangeMadePrivate(exchanges=exchanges):
            yield from (("withdrawals", (exchange, event.id)) for exchange in exchanges)
        case events.ExchangesFiled() | events.MemoryPromoted() as filing:
            is_promotion, pages = isinstance(filing, events.MemoryPromoted), _page_by_exchange(filing.episodes)
            for exchange in {*filing.exchanges, *pages}:
                ends = exchange in filing.exchanges  # it is filed to wait, or consolidated
                is_gone = isinstance(filing, events.MemoryPromoted) and exchange in filing.gone
                flags = ends and not is_promotion, ends and is_promotion, is_gone
                yield "filings", (exchange, event.id, event.at, pages.get(exchange), *flags)
        case events.ExchangeForgotten() | events.MemoryForgotten() as gone:
            yield from (("filings", (exchange, event.id, event.at, None, *_GONE)) for exchange in gone.exchanges)
            named = gone.pages if isinstance(gone, events.ExchangeForgotten) else (gone.page or gone.path,)
            names = [(name, "") for name in (*gone.exchanges, *named, event.id)]  # the last: each has a row
            names += [(f"{record.page}#^{record.block}", record.hash) for record in gone.taken_out]
            yield from (("forgotten", (*each, event.id, event.at)) for each in names)
        case events.ExchangesImported(episodes=episodes):
            # no model has read them, and they do not wait for one: as if they were consolidated without
            for exchange, page in _page_by_exchange(episodes).items():
                yield "filings", (exchange, event.id, event.at, page, *_CONSOLIDATED)
        case events.CatchUpStarted():
            yield "catch_ups", (event.id, device, event.id, None)
        case events.CatchUpEnded(withheld=withheld):
            yield "catch_ups", (event.id, device, event.cause, json.dumps(withheld))
        case events.EventUndone(undone=undone):
            yield "undoings", (event.id, device, undone)
        case events.ProposalDecided(proposal=proposal, how=how):
            yield "decisions", (proposal, event.id, device, how)
        case events.TextsPurged() | events.PurgeHonoured():
            yield "lines", _line_row(event, device)
        case events.ModelCalled() as call:
            tokens = call.input_tokens, call.cached_tokens, call.output_tokens
            caller = event.at, event.id, device, event.by
            yield "calls", (*caller, call.purpose, call.model, *tokens, call.cost_usd, event.cause)
        case events.MemoryOrganized() as run:
            done = json.dumps([(action.action, action.uuids) for action in run.done])
            yield "runs", (event.id, event.at, run.asked, done)
            yield from (("uses", (event.id, page, "", day, times)) for page, (day, times) in run.used.items())
            yield from (("uses", (event.id, page, other, "", times)) for page, other, times in run.together)
    for proposal in getattr(event.what, "proposals", ()):
        is_hiding = isinstance(proposal, events.ForgetProposal) and bool(proposal.is_hiding or proposal.deleted)
        made = event.id, event.at, device, event.by
        yield "proposals", (proposal.id, *made, is_hiding, json.dumps(proposal.to_json()))
    yield from (("changes", row) for row in _change_rows(event, device, tree))
    yield from _memory_rows(event, device)


def _memory_rows(event: Event, device: str) -> Iterator[tuple[str, Row]]:
    """Yield the rows on what processes made of exchanges: of `statements`, `candidates`, `promotions` to `analyses`."""
    what, decided = event.what, set[str]()  # candidates that were written, proposed or refused for good
    if isinstance(what, events.StatingEvent):
        place = event.seq, device, event.at, event.kind, event.by, event.cause
        for position, record in enumerate(what.statements):
            statements: tuple[events.StatementRecord | events.StatementRef, ...] = (record, *record.steps)
            for step, each in enumerate(statements):  # 0 is the statement itself
                key = record.page, event.id, position, step
                stated = each.block, each.hash, each.since, isinstance(what, events.OwningEvent)
                yield "statements", (*key, *stated, *place, json.dumps(record.stored))
    if isinstance(what, events.OwningEvent):
        decided |= {record.candidate for record in what.statements}
    if isinstance(what, events.MemoryPromoted | events.CandidatesRefused):
        decided |= {refused.candidate for refused in what.refused}
        ended = {"refused", "proposed", "task"}
        decided |= {name for name, candidate in what.candidates.items() if candidate.end in ended}
    yield from (("candidates", (candidate, event.id)) for candidate in decided - {""})
    writer = event.at, event.kind, event.by, device
    match what:
        case events.MemoryPromoted():
            yield "promotions", (event.id, event.cause)
            yield from (("writings", (paragraph, "summary", event.id, "", *writer)) for paragraph in what.summary)
            for task in what.tasks:
                if task.action == "open":
                    exchange = task.sources[0] if task.sources else ""
                    yield "writings", (task.hash, "item", event.id, exchange, *writer)
        case events.ExchangeReflected(exchange=exchange):
            yield from (("writings", (item, "item", event.id, exchange, *writer)) for item in what.items)
            if what.thoughts:
                yield "writings", (what.thoughts, "thoughts", event.id, exchange, *writer)
        case events.EventsAnalyzed():
            run = event.id, device, event.cause
            yield from (("analyses", (exchange, *run)) for exchange in what.events)


def _page_by_exchange(episodes: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the page of each exchange, given the exchanges of each page."""
    return {exchange: page for page, exchanges in episodes.items() for exchange in exchanges}


def _change_rows(event: Event, device: str, tree: Tree) -> Iterator[Row]:
    """Yield the rows of an event's changes for the table `changes`.

    Changes that no query needs get no row: writes to short-term memory and logs, which are most of the journal. A moved
    prompt gets a further row, since the person moved its file before the event.
    """
    undone = event.what.undone if isinstance(event.what, events.EventUndone) else None
    for position, change in enumerate(event.changes):
        is_page = tree.kind_of(change.path) in _PAGES and change.op != "append"
        is_restored = undone is not None and change.op == "create"
        if change.source or change.after is None or is_restored or is_page:
            yield _change_row(event, position, change, device, about=undone)
    if isinstance(event.what, events.PromptMoved):
        moved, position = event.what, len(event.changes)
        response_hash = next((change.after for change in event.changes if change.path == moved.response), None)
        move = RecordedChange("move", moved.prompt, None, response_hash, moved.moved_from)
        yield _change_row(event, position, move, device, about=moved.prompt_id, response=moved.response)


def _change_row(
    event: Event, position: int, change: RecordedChange, device: str, about: str | None, response: str | None = None
) -> Row:
    """Return the row of a change for the table `changes`, where `about` and `response` are explained.

    It is by hand where a person made it in an editor, by a command, or by an undo that moves a file back. The text of a
    person's save that we merged counts; what is found when a whole tree is adopted does not.
    """
    place = event.id, position, event.at, event.kind, change.op
    files = change.path, change.source, change.after
    is_merged_save = event.kind == events.NoteMerged.kind and change.op == "observe"
    is_moved_back = event.kind == events.EventUndone.kind and change.source is not None
    is_by_hand = (event.by == "person" and event.kind != events.TreeAdopted.kind) or is_merged_save or is_moved_back
    is_new = change.before is None and change.op != "move"
    written = event.what.written.get(change.path) if isinstance(event.what, events.FoundEvent) else None
    return *place, *files, is_new, is_by_hand, about, response, change.before, event.by, device, written


def _line_row(event: Event, device: str) -> Row:
    """Return the row that keeps an event's whole journal line."""
    return event.id, device, event.kind, to_line(event).decode()


# --- files as last seen ----------------------------------------------------------------------------------------------

# Folded into a table so that a start is fast. It remembers the `seq` and id of the last event it applied; when the
# journal does not continue from there (a git checkout took it back), it is folded anew.

_UNKEPT = "hash-only"  # owner, in the database, of the hashes of files whose texts are not kept
# what a command or the window wrote for a person: an editor may still show what stood there before
_WRITTEN = (events.NoteSaved, events.StatementCorrected)
_TRAIL_LENGTH = 64  # an editor that is left open for days holds a version that many exchanges follow
_SEEN = """
CREATE TABLE IF NOT EXISTS seen(
    path TEXT PRIMARY KEY, hash TEXT NOT NULL, trail TEXT NOT NULL, is_ours INTEGER NOT NULL,
    is_told INTEGER NOT NULL, is_held INTEGER NOT NULL DEFAULT 0, stamp TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_hash ON seen(hash);
CREATE INDEX IF NOT EXISTS seen_held ON seen(path) WHERE is_held;
CREATE TABLE IF NOT EXISTS position(only INTEGER PRIMARY KEY CHECK (only = 0), seq INTEGER, id TEXT);
"""


@dataclass(frozen=True, slots=True)
class FileState:
    """One tracked file as it was last seen.

    Attributes:
        path: Relative.
        hash: Of its content.
        trail: Hashes of earlier versions, oldest first, from the first that a process changed: an editor may still
            show one of them.
        is_ours: Whether a process wrote this version.
        is_reported: Whether the bus got a `FileChange` for a person's last edit.
        is_held: The file vanished together with many others, and its deletion waits to be confirmed.
        stamp: The file's `Stamp` when it was hashed; "" when it must be hashed again.
    """

    path: str
    hash: str
    trail: tuple[str, ...] = ()
    is_ours: bool = False
    is_reported: bool = True
    is_held: bool = False
    stamp: str = ""

    @property
    def versions(self) -> tuple[str, ...]:
        """The trail with the present version at its end."""
        return (*self.trail, self.hash)


class FileStates:
    """The table of notes as last seen; every writer holds the commit lock.

    Args:
        database: Has the table.
        tree: Tells which paths are tracked.
        journal: What it follows.
    """

    def __init__(self, database: StateDatabase, tree: Tree, journal: Journal) -> None:
        self._database, self._tree, self._journal = database, tree, journal
        database.add(_SEEN, self._follow)

    def forget_absent(self) -> None:
        """Drop the hashes of files whose texts are not kept and that are gone."""
        for path in self.all_hash_only():
            if not os.path.lexists(self._tree.absolute(path)):
                self.set_hash_only(path, None)

    def check(self) -> None:
        """Check the table, so that a damaged file is made anew; takes ten milliseconds for ten thousand notes."""

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute("PRAGMA quick_check(seen)").fetchone() != ("ok",):
                raise ValueError("the table is damaged")

        self._database.run(work)

    def catch_up(self) -> None:
        """Apply the journal's new events; the caller holds the commit lock, which is taken before this table's."""
        self._database.run(self._follow)

    def get(self, path: str) -> FileState | None:
        """Return a file's state; None where the file is not tracked or was never seen."""
        return next(iter(self._states("WHERE path = ?", path)), None)

    def with_hash(self, digest: str) -> list[FileState]:
        """Return the files with a content, in the order of their paths."""
        return self._states("WHERE hash = ? ORDER BY path", digest)

    def all(self) -> dict[str, FileState]:
        """Return every file's state by path."""
        return {state.path: state for state in self._states("")}

    def held_deletions(self) -> list[FileState]:
        """Return the files whose deletions wait to be confirmed, in the order of their paths."""
        return self._states("WHERE is_held ORDER BY path")

    def note(self, column: Literal["stamp", "is_told", "is_held"], values: Mapping[str, Stamp | bool]) -> None:
        """Store, by path, what is known of files besides the journal.

        Args:
            column: `stamp`, of a file whose content is the recorded one; `is_told`, whether the bus got a `FileChange`
                for a person's last edit; `is_held`, whether a deletion waits to be confirmed.
            values: By path.
        """
        rows = [(str(value) if column == "stamp" else value, path) for path, value in values.items()]
        self._database.run(lambda one: one.executemany(f"UPDATE seen SET {column} = ? WHERE path = ?", rows))

    def hash_only(self, path: str) -> str | None:
        """Return the hash, or of a large file the `Stamp.written`, of a file whose text is not kept; else None."""
        return self.all_hash_only().get(path)

    def all_hash_only(self) -> dict[str, str]:
        """Return the hash, or of a large file the `Stamp.written`, of each file whose text is not kept, by path."""
        return self._database.kept(_UNKEPT)

    def set_hash_only(self, path: str, digest: str | None) -> None:
        """Store the hash or `Stamp.written` of a file whose text is not kept; None removes it."""
        if digest is None:
            self._database.drop(_UNKEPT, path)
        else:
            self._database.keep(_UNKEPT, path, digest)

    def _follow(self, connection: sqlite3.Connection) -> None:
        """Apply the journal's events after the last applied one; begin anew where that one is not there any more."""
        last = self._journal.last()
        position = connection.execute("SELECT seq, id FROM position").fetchone() or (0, "")
        if last == position:
            return
        added = self._journal.events_after(*position)
        if added is None:
            connection.execute("DELETE FROM seen")
            added = self._journal.events()
        for event in added:
            if event.kind == TreeAdopted.kind:  # it lists the whole tree, so that other files are gone
                paths = json.dumps([change.path for change in event.changes])
                connection.execute("DELETE FROM seen WHERE path NOT IN (SELECT value FROM json_each(?))", (paths,))
            for change in event.changes:
                if change.op != "append":
                    self._apply_change(connection, change, event)
        connection.execute("INSERT OR REPLACE INTO position VALUES (0, ?, ?)", last)

    def _states(self, clause: str, *values: str) -> list[FileState]:
        return self._database.run(lambda connection: _states_in(connection, clause, *values))

    def _apply_change(self, connection: sqlite3.Connection, change: RecordedChange, event: Event) -> None:
        """Replace the row of a changed file."""
        # flags and stamp belong to the version before, so the row is replaced as a whole
        source = change.source or change.path
        former = next(iter(_states_in(connection, "WHERE path = ?", source)), None)
        connection.executemany("DELETE FROM seen WHERE path = ?", [(source,), (change.path,)])
        if change.after is None or not self._tree.is_tracked(change.path):
            return
        if former is not None and former.hash == change.after:
            trail, is_ours, is_reported = former.trail, former.is_ours, former.is_reported
        else:
            is_found = event.by == "person" and not isinstance(event.what, _WRITTEN)
            is_by_person = is_found or change.op == "observe"
            # an edit of which the bus does not know yet stays so until another is recorded, which the bus gets: all but
            # a displaced save, which is merged without the bus having seen it
            is_displaced_save = isinstance(event.what, NoteMerged) and bool(event.what.displaced_by)
            is_reported = former is None or former.is_reported or (is_by_person and not is_displaced_save)
            trail = _trail(former, change, is_by_person=is_by_person)[-_TRAIL_LENGTH:]
            is_ours = not is_by_person
        row = (change.path, change.after, json.dumps(trail), is_ours, is_reported)
        connection.execute("INSERT INTO seen(path, hash, trail, is_ours, is_told) VALUES (?, ?, ?, ?, ?)", row)


def _states_in(connection: sqlite3.Connection, clause: str, *values: str) -> list[FileState]:
    """Return the states that a clause of SQL (`WHERE …`, `ORDER BY …`) selects; all for ""."""
    query = f"SELECT path, hash, trail, is_ours, is_told, is_held, stamp FROM seen {clause}"
    return [
        FileState(path, digest, versions_of(json.loads(trail)), bool(is_ours), bool(is_told), bool(is_held), stamp)
        for path, digest, trail, is_ours, is_told, is_held, stamp in connection.execute(query, values)
    ]


def versions_of(hashes: Iterable[str]) -> tuple[str, ...]:
    """Return stored hashes of versions; an earlier release put `-` before those of a person's."""
    return tuple(digest.removeprefix("-") for digest in hashes)


def _trail(former: FileState | None, change: RecordedChange, *, is_by_person: bool) -> tuple[str, ...]:
    """Return the trail of a file after a change: `A -C` after our A, a person's B and C, and our D.

    Args:
        former: The file before; None for a new one.
        change: The change.
        is_by_person: Whether a person made it.
    """
    if former is None:
        return () if is_by_person or change.before is None else (change.before,)
    # of consecutive saves by a person only the last counts: a process never wrote on top of an earlier one
    is_next_save = is_by_person and not former.is_ours and change.before in (None, former.hash)
    trail = former.trail if is_next_save else former.versions
    if change.before is None or change.before in former.versions:
        return trail
    return (*trail, change.before)  # it was not seen before: a person made it
