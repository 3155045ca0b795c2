"""Why a memory says what it says: from a statement over every change of it to the very sentence that was typed.

What the journals record of an operation is laid beside the versions of the page, so that edits by hand and by
processes that record nothing else are told too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import BlobError, FormatError
from brainiac.events import (
    Event,
    ExchangeMadePrivate,
    MemoryOrganized,
    MemoryPromoted,
    ModelCalled,
    ProposalApplied,
    RecordedChange,
    StatementsAdopted,
    kinds_of,
)
from brainiac.formats.memory import Memory, Statement, parse_memory
from brainiac.history.exchanges import Exchanges, Said
from brainiac.storage.statements import text_hash

STATING = kinds_of(MemoryPromoted, MemoryOrganized, ProposalApplied, StatementsAdopted, ExchangeMadePrivate)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened to a statement.

    Attributes:
        event: The journal's event, by id.
        at: ISO 8601 UTC.
        by: Who did it: a process, `person`, `cli`.
        operation: NEW, UPDATE, DELETE, REINFORCE; `written`, `edited`, `removed` where only the texts tell.
        before: What the statement said before; "" if it did not stand or is not known.
        after: What it said then; "" where it was taken out.
        model: Who decided the operation.
        found_by: Who found the statement in what was said.
        reasoning: What the model gave as its reason.
        run_cost_usd: What all model calls of that run cost.
        device: Where it was done; "" for this one.
        sources: The exchanges that the operation rests on.
    """

    event: str
    at: str
    kind: str
    by: str
    operation: str
    before: str = ""
    after: str = ""
    model: str = ""
    found_by: str = ""
    reasoning: str = ""
    run_cost_usd: float = 0.0
    device: str = ""
    sources: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """A statement with all that led to it, oldest first."""

    path: str
    page: str
    title: str
    block: str
    text: str
    is_history: bool = False
    steps: tuple[Step, ...] = ()


@dataclass(slots=True)
class _Recorded:
    """An event that says what it did to statements."""

    event: Event
    device: str
    statements: list[Mapping[str, Any]] = field(default_factory=list)


class Provenance:
    """What the journals tell of one page.

    Args:
        brain: The brain.
        path: The page as it stands.

    Raises:
        FormatError: The page cannot be read.
    """

    def __init__(self, brain: Brain, path: str) -> None:
        self._brain, self.path = brain, path
        self.memory = parse_memory(path, brain.read_text(path) or "")
        self._exchanges = Exchanges(brain)
        self._recorded = self._read_records()
        self._versions = self._read_versions()
        self._costs: dict[str, float] = {}

    def chains(self) -> list[Chain]:
        """Return every statement of the page with its chain."""
        return [self.chain(one) for one in self.memory.statements]

    def chain(self, statement: Statement) -> Chain:
        """Return one statement with its chain."""
        return Chain(
            self.path,
            self.memory.uuid,
            self.memory.title,
            statement.block_id,
            statement.text,
            statement.is_history,
            tuple(sorted(self._steps(statement), key=lambda step: (step.at, step.event))),
        )

    def _steps(self, statement: Statement) -> Iterator[Step]:
        told: set[str] = set()
        for block in self._blocks(statement):
            for recorded in self._recorded:
                for one in recorded.statements:
                    if block in _blocks_of(one):
                        told.add(recorded.event.id)
                        yield self._recorded_step(recorded, one, statement)
        for event, before, after in self._versions:
            old, new = _said(before, statement), _said(after, statement)
            if event.id not in told and old != new:
                operation = "edited" if old and new else "written" if new else "removed"
                device = self._device_of(event)
                yield Step(event.id, event.at, event.kind, event.by, operation, old, new, device=device)

    def _blocks(self, statement: Statement) -> list[str]:
        """Return the block ids that the statement and what it replaced, or was kept from, have had."""
        blocks = [statement.block_id] if statement.block_id else []
        for block in blocks:
            for recorded in self._recorded:
                for one in recorded.statements:
                    replaced = one.get("replaced") or {}
                    if block == one.get("block") and replaced.get("block"):
                        blocks += [replaced["block"]] if replaced["block"] not in blocks else []
                    elif block == replaced.get("history") and replaced["block"] not in blocks:
                        blocks.append(replaced["block"])
        return blocks

    def _recorded_step(self, recorded: _Recorded, one: Mapping[str, Any], statement: Statement) -> Step:
        event, replaced = recorded.event, one.get("replaced") or {}
        after = self.text_with_hash(str(one.get("hash") or ""), one)
        return Step(
            event.id,
            event.at,
            event.kind,
            event.by,
            str(one.get("operation") or "adopted"),
            self.text_with_hash(str(replaced.get("hash") or "")),
            after or (statement.text if text_hash(statement.text) == one.get("hash") else ""),
            str(one.get("model") or ""),
            str(one.get("found_by") or ""),
            str(one.get("reasoning") or ""),
            self._cost(event.cause),
            recorded.device,
            tuple(self._exchanges.said(each) for each in one.get("sources", ())),
        )

    def text_with_hash(self, digest: str, one: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Return the text of a statement by its hash: from any version of the page, else the candidate."""
        if not digest:
            return ""
        for memory in self._all_versions():
            for each in memory.statements:
                if text_hash(each.text) == digest:
                    return each.text
        analysis, _, number = str(one.get("candidate") or "").partition("#")
        event = self._brain.journal.find(analysis) if number else None
        candidates = event.data.get("candidates", []) if event else []
        if number.isdigit() and int(number) < len(candidates):
            return str(candidates[int(number)].get("statement", ""))
        return ""

    def _all_versions(self) -> Iterator[Memory]:
        yield self.memory
        for _, before, after in self._versions:
            yield from (memory for memory in (after, before) if memory)

    def _cost(self, cause: str | None) -> float:
        """Return what the model calls of a run cost, in USD."""
        if not self._costs:
            self._costs[""] = 0.0
            for event in self._brain.journal.events(kinds={ModelCalled}):
                if event.cause:
                    spent = self._costs.get(event.cause, 0.0) + float(event.data.get("cost_usd", 0))
                    self._costs[event.cause] = round(spent, 8)
        return self._costs.get(cause or "", 0.0)

    def _read_records(self) -> list[_Recorded]:
        own = (("", event) for event in self._brain.journal.events(kinds=STATING))
        found = []
        for device, event in (*own, *self._brain.journal.foreign_events()):
            if event.kind in STATING:
                mine = [one for one in event.data.get("statements", ()) if one.get("page") == self.memory.uuid]
                if mine and self.memory.uuid:
                    found.append(_Recorded(event, device, mine))
        return sorted(found, key=lambda each: each.event.id)

    def _read_versions(self) -> list[tuple[Event, Memory | None, Memory | None]]:
        """Return the events that changed the page with what it said before and after, oldest first."""
        found, path = [], self.path
        for event in self._brain.journal.events(reverse=True):
            for change in reversed(event.changes):
                if change.path == path and change.op not in ("append", "observe"):
                    found.append((event, self._memory(change, change.before), self._memory(change, change.after)))
                    path = change.source or path
        return found[::-1]

    def _memory(self, change: RecordedChange, digest: str | None) -> Memory | None:
        try:
            return parse_memory(change.path, self._brain.committer.text_of(digest).decode()) if digest else None
        except (BlobError, FormatError, UnicodeDecodeError):
            return None

    def _device_of(self, event: Event) -> str:
        """Return the device a version was synced from, by equal content; "" when it was written here."""
        if event.by != "person":
            return ""
        hashes = {change.after for change in event.changes if change.path == self.path}
        for device, foreign in self._brain.journal.foreign_events():
            if any(change.after in hashes and change.path == self.path for change in foreign.changes):
                return device
        return ""


def _blocks_of(one: Mapping[str, Any]) -> set[str]:
    """Return the block ids that a record is about."""
    return {str(one.get("block") or ""), *(str(step.get("block")) for step in one.get("steps", ()))} - {""}


def _said(memory: Memory | None, statement: Statement) -> str:
    """Return what a version of the page has under a statement's id, else whether it has its very text."""
    if memory is None:
        return ""
    for one in memory.statements:
        is_same = one.block_id == statement.block_id if statement.block_id else one.text == statement.text
        if is_same:
            return f"~~{one.text}~~" if one.is_history else one.text
    return ""
