"""What the journals tell a promotion: which statements are ours, what a person put right, what was analyzed already.

Ours or theirs is decided statement by statement: ours iff its block id and text stand in a readable journal.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brainiac.errors import BlobError, FormatError
from brainiac.events import (
    CandidatesRefused,
    Event,
    EventsAnalyzed,
    ExchangeReflected,
    MemoryOrganized,
    MemoryPromoted,
    NoteMerged,
    PathKind,
    PromptAnswered,
    RecordedChange,
    StatementsAdopted,
    kinds_of,
)
from brainiac.formats.memory import Memory, Statement, parse_memory
from brainiac.formats.short_term import StmEvent
from brainiac.storage.external_edits import FOUND
from brainiac.storage.following import Following
from brainiac.storage.record import undone_events
from brainiac.storage.relinking import rooted
from brainiac.storage.store import Store

LINE = "line-"  # begins the id of an event made of a line that a person wrote
_BY_HAND = FOUND | {NoteMerged.kind}
_KINDS = _BY_HAND | kinds_of(
    PromptAnswered,
    ExchangeReflected,
    EventsAnalyzed,
    CandidatesRefused,
    MemoryPromoted,
    MemoryOrganized,
    StatementsAdopted,
)


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
class Past:
    """What was done before, as far as the journals can be read.

    Attributes:
        since: Of every statement of ours, by (page uuid, block id, text hash): when it was said, an ISO date.
        corrections: What persons changed, oldest first.
        by_hand: When a person wrote a statement, by (page uuid, text hash).
        touched: When a person last changed a file, by path.
        analyses: Earlier looks at the event log, oldest first.
        done: Ids of candidates that were decided.
        noted: Hashes of the items that Reflection wrote into the lists.
        thoughts: Hashes of the thoughts that it wrote.
        summaries: Hashes of the paragraphs that Promotion wrote into the summary.
        prompts: Paths of prompts, by exchange.
        led: On which days words led an answer, by the exchange they were said in and their hash.
    """

    since: dict[tuple[str, str, str], str] = field(default_factory=dict)
    corrections: list[Correction] = field(default_factory=list)
    by_hand: dict[tuple[str, str], str] = field(default_factory=dict)
    touched: dict[str, str] = field(default_factory=dict)
    analyses: list[Event] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    noted: set[str] = field(default_factory=set)
    thoughts: set[str] = field(default_factory=set)
    summaries: set[str] = field(default_factory=set)
    prompts: dict[str, str] = field(default_factory=dict)
    led: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def is_ours(self, page: str, statement: Statement) -> bool:
        """Tell whether a statement stands as a process wrote it."""
        return (page, statement.block_id, text_hash(statement.text)) in self.since

    def since_of(self, page: str, statement: Statement) -> str:
        """Return the date a statement of ours was said on; "" if unknown."""
        return self.since.get((page, statement.block_id, text_hash(statement.text)), "")


@dataclass(slots=True)
class _Known(Past):
    """What is kept from one look at the journals to the next.

    Attributes:
        undone: Ids of events that are taken back.
        runs: Ids of the first events of promotions that are taken back.
        edits: What persons did to memories, and when.
    """

    undone: frozenset[str] = frozenset()
    runs: frozenset[str | None] = frozenset()
    edits: list[tuple[RecordedChange, str]] = field(default_factory=list)


def read_past(store: Store, oldest: str) -> Past:
    """Return what the journals tell; a run that was undone is looked at anew, as if it had never been.

    Args:
        store: The store.
        oldest: ISO 8601 moment of the oldest event to be promoted: what persons did before cannot contradict it.
    """
    known = _following.of(store)
    for change, at in known.edits:
        if at >= oldest:
            _take_correction(store, known, change, at)
    return known


def _begin(store: Store) -> _Known:
    undone = frozenset(undone_events(store))
    events = (store.journal.find(one) for one in undone)
    return _Known(
        undone=undone, runs=frozenset(each.cause for each in events if each and each.kind == MemoryPromoted.kind)
    )


def _take(store: Store, known: _Known, event: Event, is_own: bool) -> None:
    if event.kind == ExchangeReflected.kind:  # whichever device reflected it: a person did not write it
        if event.id not in known.undone:
            known.noted.update(event.data.get("items", ()))
            known.thoughts.add(str(event.data.get("thoughts")))
        known.prompts[str(event.data.get("exchange"))] = str(event.data.get("prompt") or "")
    elif event.kind == PromptAnswered.kind:
        day = store.day_of(event.at)
        for words in event.data.get("led", ()):
            key = str(words["anchor"]), str(words["hash"])
            known.led[key] = known.led.get(key, frozenset()) | {day}
    elif not is_own:
        if event.kind in (MemoryPromoted.kind, StatementsAdopted.kind, MemoryOrganized.kind):
            _take_statements(known, event.data)
    elif event.id in known.undone or (event.kind == EventsAnalyzed.kind and event.cause in known.runs):
        return
    elif event.kind in _BY_HAND:
        for change in event.changes:
            known.touched[change.path] = event.at
            if store.tree.kind_of(change.path) is PathKind.MEMORY:
                known.edits.append((change, event.at))
    elif event.kind == EventsAnalyzed.kind:
        known.analyses.append(event)
    else:
        _take_statements(known, event.data)
        gone = set(event.data.get("exchanges", ()))  # what left short-term memory is not looked for again
        known.analyses = [one for one in known.analyses if not gone.issuperset(one.data["events"])]


_following = Following(_begin, _take, _KINDS)


def _take_statements(past: Past, data: Mapping[str, Any]) -> None:
    for one in data.get("statements", ()):
        if one.get("block"):
            past.since[one["page"], one["block"], one["hash"]] = one.get("since", "")
        if one.get("candidate"):
            past.done.add(one["candidate"])
    past.done.update(one["candidate"] for one in data.get("refused", ()) if one.get("candidate"))
    past.done.update(name for name, fate in data.get("candidates", {}).items() if fate["end"] == "refused")
    past.summaries.update(data.get("summary", ()))


def _take_correction(store: Store, past: Past, change: RecordedChange, at: str) -> None:
    before, after = (_statements(store, change.path, digest) for digest in (change.before, change.after))
    for key in before.keys() - after.keys():
        text = rooted(store, before[key], [posixpath.dirname(change.path)])
        past.corrections.append(Correction(key[0], text, at))
    for page, text in after.items() - before.items():
        past.by_hand[page[0], text_hash(text)] = at


def _statements(store: Store, path: str, digest: str | None) -> dict[tuple[str, str], str]:
    """Return the texts of the statements that held on a page as it stood then, by page uuid and text hash."""
    memory = _memory(store, path, digest)
    return {(memory.uuid, text_hash(one.text)): one.text for one in _current(memory)} if memory else {}


def _current(memory: Memory) -> Iterator[Statement]:
    return (one for one in memory.statements if not one.is_history)


def _memory(store: Store, path: str, digest: str | None) -> Memory | None:
    if digest is None:
        return None
    try:
        return parse_memory(path, store.committer.text_of(digest).decode("utf-8", "surrogateescape"))
    except (BlobError, FormatError):
        return None
