"""What the journals tell of statements: whose they are, what each rests on, and what persons put right.

A statement is ours iff its block id and the hash of its text stand in a readable journal; all others are a person's.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import get_args

from brainiac.clock import iso
from brainiac.errors import FormatError, UserError
from brainiac.events import (
    CandidatesRefused,
    Change,
    Event,
    EventsAnalyzed,
    ExchangeMadePrivate,
    ExchangeReflected,
    MemoryOrganized,
    MemoryPromoted,
    NoteMerged,
    PathKind,
    PromptAnswered,
    ProposalApplied,
    RecordedChange,
    RetireProposal,
    StatementRecord,
    StatementRef,
    StatementsAdopted,
    kinds_of,
    new_id,
    update,
)
from brainiac.formats.page import MemoryDocument, Statement, block_ids, new_block_id, parse_memory
from brainiac.formats.short_term import StmEvent
from brainiac.storage.external_edits import FOUND
from brainiac.storage.following import Following
from brainiac.storage.record import undone_events
from brainiac.storage.relinking import with_rooted_links
from brainiac.storage.store import Store

LINE = "line-"  # begins the id of an event made of a line that a person wrote
Stating = MemoryPromoted | MemoryOrganized | StatementsAdopted | ProposalApplied | ExchangeMadePrivate
# What a person applied or asked for makes no statement ours.
_OWNING = (MemoryPromoted, MemoryOrganized, StatementsAdopted)
_BY_HAND = FOUND | {NoteMerged.kind}
_READ = (*get_args(Stating), ExchangeReflected, PromptAnswered, EventsAnalyzed, CandidatesRefused, *_BY_HAND)


def text_hash(text: str) -> str:
    """Return a short hash of a statement's text, white space folded: its identity in the journal."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def line_id(text: str) -> str:
    """Return the id of an event that is made of a line a person wrote, every space of it counting."""
    return LINE + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def event_hash(event: StmEvent) -> str:
    """Return a hash of all that an event says, by which an edit of it is noticed; a line of a list has no time."""
    at = "" if event.id.startswith(LINE) else event.at
    return text_hash(f"{at}\n{event.user}\n{event.ai}\n{event.thoughts}\n{event.is_private}")


@dataclass(frozen=True, slots=True)
class StatementChange:
    """One recorded operation on a statement, or on the whole body of a page.

    Attributes:
        event: What records it, without its data.
        row: What it records.
        block: The statement's block id; "" for a whole body.
        hash: Of the text that stood then.
        since: When it was said, an ISO date.
    """

    event: Event
    row: StatementRecord
    block: str
    hash: str
    since: str

    @property
    def former(self) -> StatementRef:
        """The statement that it replaced; without block id and hash where it replaced none."""
        return self.row.replaced or StatementRef()

    @property
    def retired(self) -> str:
        """The block id of another statement that it retired; "" where it reworded its own."""
        return self.former.block if self.former.block != self.block else ""


def _changes_in(event: Event, rows: Iterable[StatementRecord]) -> Iterator[StatementChange]:
    """Yield the operations that an event records; of a how-to one for each of its steps."""
    # These stay in memory as long as the brain is open: what they were read from need not.
    header = replace(event, data={}, changes=())
    for row in rows:
        row = replace(row, stored=None)
        yield StatementChange(header, row, row.block, row.hash, row.since)
        yield from (StatementChange(header, row, step.block, step.hash, step.since) for step in row.steps)


@dataclass(frozen=True, slots=True)
class Correction:
    """A statement that a person changed or took out.

    Attributes:
        page: The page's uuid.
        before: What stood there.
        at: When it was noticed, ISO 8601.
    """

    page: str
    before: str
    at: str


@dataclass(slots=True)
class StatementLog:
    """What the journals tell, as far as they can be read; what is taken back does not count.

    Attributes:
        since: Of every statement of ours, by (page uuid, block id, text hash): when it was said, an ISO date.
        changes: Every operation, by page, those taken back too.
        proposals: The exchanges that each proposal rests on, by its id.
        corrections: What persons changed, oldest first.
        by_hand: When a person wrote a statement, by (page uuid, text hash).
        touched: When a person last changed a file, by path.
        analyses: Earlier looks at the event log, oldest first.
        done: Ids of candidates that were decided.
        noted: The exchanges that Reflection noted an item of the lists from, by the item's hash.
        thoughts: Hashes of the thoughts that it wrote.
        summaries: Hashes of the paragraphs that Promotion wrote into the summary.
        prompts: Paths of prompts, by exchange.
        led: On which days words led an answer, by the exchange they were said in and their hash.
        undone: Ids of events that are taken back.
        undone_runs: Ids of the first events of promotions that are taken back.
        edits: What persons did to memories, and when.
    """

    since: dict[tuple[str, str, str], str] = field(default_factory=dict)
    changes: dict[str, list[StatementChange]] = field(default_factory=dict)
    proposals: dict[str, frozenset[str]] = field(default_factory=dict)
    corrections: list[Correction] = field(default_factory=list)
    by_hand: dict[tuple[str, str], str] = field(default_factory=dict)
    touched: dict[str, str] = field(default_factory=dict)
    analyses: list[Event] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    noted: dict[str, frozenset[str]] = field(default_factory=dict)
    thoughts: set[str] = field(default_factory=set)
    summaries: set[str] = field(default_factory=set)
    prompts: dict[str, str] = field(default_factory=dict)
    led: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    undone: frozenset[str] = frozenset()
    undone_runs: frozenset[str | None] = frozenset()
    edits: list[tuple[RecordedChange, str]] = field(default_factory=list)

    def is_ours(self, page: str, statement: Statement) -> bool:
        """Return whether a statement stands as a process wrote it."""
        return (page, statement.block_id, text_hash(statement.text)) in self.since

    def since_of(self, page: str, statement: Statement) -> str:
        """Return the date a statement of ours was said on; "" if unknown."""
        return self.since.get((page, statement.block_id, text_hash(statement.text)), "")

    def history_of(self, page: str) -> list[StatementChange]:
        """Return all operations on a page's statements by all devices, oldest first, those taken back too."""
        return sorted(self.changes.get(page, ()), key=lambda change: change.event.id)

    def changes_of(self, page: str) -> list[StatementChange]:
        """Return the operations on a page's statements that count, oldest first."""
        return [change for change in self.history_of(page) if change.event.id not in self.undone]

    def whole(self, page: str) -> StatementChange | None:
        """Return what last made the whole body of a page; None where it holds statements."""
        return next((change for change in reversed(self.changes_of(page)) if change.row.is_whole), None)

    def behind(self, page: str, statement: Statement) -> list[StatementChange]:
        """Return the operations that led to a statement as it stands; none where a person wrote or reworded it."""
        changes = self.changes_of(page)
        block, digest = statement.block_id, text_hash(statement.text)
        # what an UPDATE put under History has a block id of its own there: its past is that of the statement
        kept = [change.former for change in changes if block and change.former.history == block != change.former.block]
        if kept:
            block, digest = kept[-1].block, kept[-1].hash or digest
        changes = [change for change in changes if block and change.block == block]
        last = max((number for number, change in enumerate(changes) if change.hash == digest), default=-1)
        return changes[: last + 1]


def read_statements(store: Store, corrected_since: str | None = None) -> StatementLog:
    """Return what the journals tell; a run that was undone is looked at anew, as if it had never been.

    Args:
        store: The store.
        corrected_since: ISO 8601 moment of the oldest event to be promoted: what persons did before cannot contradict
            it. None leaves out what they corrected, for which the pages' former texts are read.
    """
    log = _following.of(store)
    for change, at in log.edits:
        if corrected_since is not None and at >= corrected_since:
            _take_correction(store, log, change, at)
    return log


def sources_of(changes: Iterable[StatementChange]) -> frozenset[str]:
    """Return the exchanges that operations rest on."""
    return frozenset(source for change in changes for source in change.row.sources)


# --- the fold ------------------------------------------------------------------------------------------------------


def _begin(store: Store) -> StatementLog:
    undone = frozenset(undone_events(store))
    events = (store.journal.find(event) for event in undone)
    runs = frozenset(event.cause for event in events if event and event.kind == MemoryPromoted.kind)
    return StatementLog(undone=undone, undone_runs=runs)


def _take(store: Store, log: StatementLog, event: Event, is_own: bool) -> None:
    what = event.what
    changes = list(_changes_in(event, what.statements)) if isinstance(what, Stating) else []
    # Before what is taken back is left out: `why` tells of that too.
    for change in changes:
        log.changes.setdefault(change.row.page, []).append(change)
    if event.id in log.undone:
        return
    if isinstance(what, _OWNING):
        stated = [change for change in changes if change.block]
        log.since.update(((change.row.page, change.block, change.hash), change.since) for change in stated)
        log.done.update(change.row.candidate for change in changes)
    match what:
        case MemoryPromoted() | CandidatesRefused():
            _take_run(log, what, is_own=is_own)
        case ExchangeReflected():  # whichever device reflected it: a person did not write it
            log.prompts[what.exchange] = what.prompt
            log.thoughts.add(what.thoughts)
            for item in what.items:
                log.noted[item] = log.noted.get(item, frozenset()) | {what.exchange}
        case PromptAnswered():
            # Days, not answers: what is asked again and again on one day is one use.
            for words in what.led:
                days = log.led.get((words.anchor, words.hash), frozenset())
                log.led[words.anchor, words.hash] = days | {store.day_of(event.at)}
        case EventsAnalyzed() if is_own and event.cause not in log.undone_runs:
            log.analyses.append(event)
        case _ if is_own and event.kind in _BY_HAND:
            for edit in event.changes:
                log.touched[edit.path] = event.at
                # Kept as hashes: the texts are read only where somebody asks for corrections.
                if store.tree.kind_of(edit.path) is PathKind.MEMORY:
                    log.edits.append((edit, event.at))


_following = Following(_begin, _take, kinds_of(*_READ))


def _take_run(log: StatementLog, what: MemoryPromoted | CandidatesRefused, *, is_own: bool) -> None:
    log.done.update(refused.candidate for refused in what.refused)
    log.done.update(name for name, candidate in what.candidates.items() if candidate.end == "refused")
    if isinstance(what, MemoryPromoted):
        retiring = (proposal for proposal in what.proposals if isinstance(proposal, RetireProposal))
        log.proposals.update((proposal.id, frozenset(proposal.sources)) for proposal in retiring)
        log.summaries.update(what.summary)
    if is_own and isinstance(what, MemoryPromoted):  # what left short-term memory is not looked for again
        gone = set(what.exchanges)
        log.analyses = [analysis for analysis in log.analyses if not gone.issuperset(analysis.data["events"])]


def _take_correction(store: Store, log: StatementLog, change: RecordedChange, at: str) -> None:
    before, after = (_statements(store, change.path, digest) for digest in (change.before, change.after))
    for key in before.keys() - after.keys():
        text = with_rooted_links(store, before[key], [posixpath.dirname(change.path)])
        log.corrections.append(Correction(key[0], text, at))
    for (page, _), text in after.items() - before.items():
        log.by_hand[page, text_hash(text)] = at


def _statements(store: Store, path: str, digest: str | None) -> dict[tuple[str, str], str]:
    """Return the texts of the statements that held on a page as it stood then, by page uuid and text hash."""
    try:
        memory = parse_memory(path, store.kept_text(digest) or "")
    except FormatError:
        return {}
    held = (statement.text for statement in memory.statements if not statement.is_history)
    return {(memory.uuid, text_hash(text)): text for text in held}


# --- `brainiac adopt` ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Adoption:
    """What a person releases, so that processes may update, move and retire it.

    Attributes:
        changes: Block ids and a uuid where they are missing.
        statements: As the journal will name them: page, block, hash.
        texts: What they say, with the page's path.
    """

    changes: list[Change] = field(default_factory=list)
    statements: list[StatementRecord] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)


def plan_adoption(store: Store, named: str | None = None) -> Adoption:
    """Return the statements on a page, below a folder, or in all of long-term memory, that are a person's.

    Raises:
        UserError: There is no such page or folder in long-term memory.
    """
    adoption, log = Adoption(), read_statements(store)
    for path in _pages(store, named):
        text = store.read_text(path) or ""
        try:
            page = _with_block_ids(MemoryDocument(text, path).with_missing_keys(new_id(), iso(store.clock.now())))
        except FormatError:
            continue  # the doctor names it
        uuid = page.memory.uuid
        count = len(adoption.statements)
        for statement in page.memory.statements:
            if not statement.is_history and not log.is_ours(uuid, statement):
                digest = text_hash(statement.text)
                adoption.statements.append(StatementRecord(page=uuid, block=statement.block_id, hash=digest, path=path))
                adoption.texts.append((path, statement.text))
        # A page all of whose statements are ours is left alone, whatever else it lacks.
        if len(adoption.statements) > count and str(page) != text:
            adoption.changes.append(update(path, text, str(page)))
    return adoption


def adopt(store: Store, named: str | None = None) -> tuple[Event | None, Adoption]:
    """Release statements in one commit; no event when all there are ours already.

    Raises:
        ConflictError: A page was saved meanwhile; nothing was changed.
    """
    adoption = plan_adoption(store, named)
    if not adoption.statements:
        return None, adoption
    adopted = StatementsAdopted(statements=tuple(adoption.statements))
    return store.commit(adopted, by="person", changes=adoption.changes), adoption


def _with_block_ids(page: MemoryDocument) -> MemoryDocument:
    """Give each statement that holds and has none a block id, at the end of its own text."""
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


def _pages(store: Store, named: str | None) -> list[str]:
    tree = store.tree
    top = tree.confine(named, inside=tree.memory) if named else tree.long_term
    files = sorted(entry.path for entry in tree.walk(top)) if top.is_dir() else [str(top)] if top.is_file() else []
    paths = [path for path in map(tree.relative, files) if tree.kind_of(path) is PathKind.MEMORY]
    if not paths and not top.is_dir():
        raise UserError(f"{named}: no page or folder of {tree.relative(tree.long_term)}/; name one, or nothing for all")
    return paths
