"""What the journals tell of statements: whose they are, what each rests on, and what persons put right.

A statement is ours iff its block id and the hash of its text stand in a readable journal; all others are a person's.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
    StatementsAdopted,
    kinds_of,
    new_id,
    update,
)
from brainiac.formats.memory import MemoryDocument, Statement, parse_memory
from brainiac.formats.short_term import StmEvent
from brainiac.formats.statements import block_ids, new_block_id
from brainiac.storage.external_edits import FOUND
from brainiac.storage.following import Following
from brainiac.storage.record import undone_events
from brainiac.storage.relinking import rooted
from brainiac.storage.store import Store

REFLECTED = ExchangeReflected.kind
LINE = "line-"  # begins the id of an event made of a line that a person wrote
# What makes a statement ours, and what changes one besides: a person applied or asked for the latter.
_OWNING = kinds_of(MemoryPromoted, MemoryOrganized, StatementsAdopted)
STATING = _OWNING | {ProposalApplied.kind, ExchangeMadePrivate.kind}
_BY_HAND = FOUND | {NoteMerged.kind}


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
        event: Id of the event that records it; `at`, `kind`, `by` and `cause` are the event's.
        page: The page's uuid, or its path where it has none.
        block: The statement's block id; "" for a whole body.
        hash: Of the text that stood then.
        operation: NEW, UPDATE, DELETE, REINFORCE; `adopted`.
        sources: Ids of the exchanges it rests on.
        candidate: What was found in them, by its id.
        former: Hash of the text it replaced; "".
        former_block: Block id of the statement that it replaced; "".
        history: Block id under which the former text stands in History; "".
        is_whole: It made the whole body of the page.
    """

    event: str
    at: str
    kind: str
    by: str
    cause: str | None
    page: str
    block: str
    hash: str
    operation: str = "adopted"
    sources: tuple[str, ...] = ()
    candidate: str = ""
    model: str = ""
    found_by: str = ""
    reasoning: str = ""
    former: str = ""
    former_block: str = ""
    history: str = ""
    is_whole: bool = False

    @property
    def retired(self) -> str:
        """The block id of another statement that it retired; "" where it reworded its own."""
        return self.former_block if self.former_block != self.block else ""


def _changes_in(event: Event) -> Iterator[StatementChange]:
    """Yield the operations that an event records; of a how-to one for each of its steps."""
    for row in event.data.get("statements", ()):
        former = row.get("replaced") or {}
        change = StatementChange(
            event.id,
            event.at,
            event.kind,
            event.by,
            event.cause,
            page=str(row.get("page") or ""),
            block=str(row.get("block") or ""),
            hash=str(row.get("hash") or ""),
            operation=str(row.get("operation") or "adopted"),
            sources=tuple(row.get("sources", ())),
            candidate=str(row.get("candidate") or ""),
            model=str(row.get("model") or ""),
            found_by=str(row.get("found_by") or ""),
            reasoning=str(row.get("reasoning") or ""),
            former=str(former.get("hash") or ""),
            former_block=str(former.get("block") or ""),
            history=str(former.get("history") or ""),
            is_whole=bool(row.get("is_whole")),
        )
        yield change
        for step in row.get("steps", ()):
            yield replace(change, block=str(step.get("block") or ""), hash=str(step.get("hash") or ""))


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
        return sorted(self.changes.get(page, ()), key=lambda change: change.event)

    def changes_of(self, page: str) -> list[StatementChange]:
        """Return the operations on a page's statements that count, oldest first."""
        return [change for change in self.history_of(page) if change.event not in self.undone]

    def whole(self, page: str) -> StatementChange | None:
        """Return what last made the whole body of a page; None where it holds statements."""
        return next((change for change in reversed(self.changes_of(page)) if change.is_whole), None)

    def behind(self, page: str, statement: Statement) -> list[StatementChange]:
        """Return the operations that led to a statement as it stands; none where a person wrote or reworded it."""
        changes = self.changes_of(page)
        block, digest = statement.block_id, text_hash(statement.text)
        # what an UPDATE put under History has a block id of its own there: its past is that of the statement
        kept = [change for change in changes if change.history == block != change.former_block] if block else []
        if kept:
            block, digest = kept[-1].former_block, kept[-1].former or digest
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
    return frozenset(source for change in changes for source in change.sources)


# --- the fold ------------------------------------------------------------------------------------------------------


def _begin(store: Store) -> StatementLog:
    undone = frozenset(undone_events(store))
    events = (store.journal.find(event) for event in undone)
    runs = frozenset(event.cause for event in events if event and event.kind == MemoryPromoted.kind)
    return StatementLog(undone=undone, undone_runs=runs)


def _take(store: Store, log: StatementLog, event: Event, is_own: bool) -> None:
    is_undone = event.id in log.undone
    if event.kind in STATING:
        for stated in _changes_in(event):
            log.changes.setdefault(stated.page, []).append(stated)
    if event.kind == REFLECTED:
        _take_reflection(log, event, is_undone=is_undone)
    elif event.kind == PromptAnswered.kind:
        _take_led(store, log, event)
    elif is_undone:
        return
    elif event.kind in STATING:
        _take_statements(log, event, is_own=is_own)
    elif not is_own:
        return  # another device's looks and edits reach this one as files; only what it stated counts
    elif event.kind in _BY_HAND:
        for change in event.changes:
            log.touched[change.path] = event.at
            if store.tree.kind_of(change.path) is PathKind.MEMORY:
                log.edits.append((change, event.at))
    elif event.kind == EventsAnalyzed.kind and event.cause not in log.undone_runs:
        log.analyses.append(event)
    elif event.kind == CandidatesRefused.kind:
        _take_decisions(log, event, is_own=True)


_following = Following(
    _begin, _take, STATING | _BY_HAND | {REFLECTED, PromptAnswered.kind, EventsAnalyzed.kind, CandidatesRefused.kind}
)


def _take_reflection(log: StatementLog, event: Event, *, is_undone: bool) -> None:
    """Take in what a reflection wrote, whichever device reflected: a person did not write it."""
    exchange = str(event.data.get("exchange"))
    log.prompts[exchange] = str(event.data.get("prompt") or "")
    if not is_undone:
        log.thoughts.add(str(event.data.get("thoughts")))
        for item in event.data.get("items", ()):
            log.noted[item] = log.noted.get(item, frozenset()) | {exchange}


def _take_led(store: Store, log: StatementLog, event: Event) -> None:
    day = store.day_of(event.at)
    for words in event.data.get("led", ()):
        key = str(words["anchor"]), str(words["hash"])
        log.led[key] = log.led.get(key, frozenset()) | {day}


def _take_statements(log: StatementLog, event: Event, *, is_own: bool) -> None:
    for proposal in event.data.get("proposals", ()):
        log.proposals[str(proposal.get("id"))] = frozenset(proposal.get("sources", ()))
    if event.kind in _OWNING:
        for row in event.data.get("statements", ()):
            if row.get("block"):
                log.since[row["page"], row["block"], row["hash"]] = row.get("since", "")
        _take_decisions(log, event, is_own=is_own)


def _take_decisions(log: StatementLog, event: Event, *, is_own: bool) -> None:
    data: Mapping[str, Any] = event.data
    for row in (*data.get("statements", ()), *data.get("refused", ())):
        if row.get("candidate"):
            log.done.add(row["candidate"])
    log.done.update(name for name, fate in data.get("candidates", {}).items() if fate["end"] == "refused")
    log.summaries.update(data.get("summary", ()))
    if is_own:  # what left short-term memory is not looked for again
        gone = set(data.get("exchanges", ()))
        log.analyses = [analysis for analysis in log.analyses if not gone.issuperset(analysis.data["events"])]


def _take_correction(store: Store, log: StatementLog, change: RecordedChange, at: str) -> None:
    before, after = (_statements(store, change.path, digest) for digest in (change.before, change.after))
    for key in before.keys() - after.keys():
        text = rooted(store, before[key], [posixpath.dirname(change.path)])
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
    statements: list[dict[str, str]] = field(default_factory=list)
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
        theirs = [one for one in page.memory.statements if not one.is_history and not log.is_ours(uuid, one)]
        for statement in theirs:
            row = {"page": uuid, "block": statement.block_id, "hash": text_hash(statement.text), "path": path}
            adoption.statements.append(row)
            adoption.texts.append((path, statement.text))
        if theirs and str(page) != text:
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
    data = {"statements": adoption.statements}
    return store.commit(StatementsAdopted.kind, by="person", changes=adoption.changes, data=data), adoption


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
