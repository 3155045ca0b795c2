"""What rests on exchanges: the one question behind forgetting, late privacy, and hiding until a person decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from brainiac.events import PathKind, RetireProposal, StatementRecord, StatementRef
from brainiac.formats.page import Memory, MemoryDocument, Statement
from brainiac.formats.short_term import Item, ShortTermDocument
from brainiac.storage.statements import StatementLog, sources_of, text_hash
from brainiac.storage.store import Store


class Rest(NamedTuple):
    """A statement that rests on exchanges.

    Attributes:
        statement: As it stands.
        sources: The ids of all exchanges that it rests on.
        is_alone: Whether it rests on none but the ones asked for.
        is_said_elsewhere: Whether others gave it these very words too.
        former: Its wording before, where the last one comes from the exchanges asked for alone; else None.
        again: The statement under History that it replaced and that holds again without it; None for none.
    """

    statement: Statement
    sources: frozenset[str]
    is_alone: bool
    is_said_elsewhere: bool
    former: StatementRef | None
    again: Statement | None

    def without(self, page: MemoryDocument) -> MemoryDocument:
        """Return a page without the statement, and with the one that it replaced moved back from History."""
        page = page.without_statement(self.statement.block_id)
        if self.again is None:
            return page
        return page.without_statement(self.again.block_id).add_statement(self.again.text, self.again.block_id)

    def record(self, page: Memory) -> StatementRecord:
        """Return the record of the statement's words for the event that takes them out."""
        return StatementRecord(page=page.uuid, block=self.statement.block_id, hash=text_hash(self.statement.text))


class RestsOn:
    """What rests on some exchanges, in the present tree.

    Args:
        store: The brain.
        exchanges: Their ids.
    """

    def __init__(self, store: Store, exchanges: Iterable[str]) -> None:
        self._store, self.exchanges = store, frozenset(exchanges)
        self.log = StatementLog(store)

    def pages(self) -> list[Memory]:
        """Return the pages that name one of the exchanges, in their front matter or as an exchange on the page."""
        kinds, pages = (PathKind.MEMORY, PathKind.ARCHIVED), self._store.pages().pages.values()
        return [page for page in pages if self._store.tree.kind_of(page.path) in kinds and self._names(page.text)]

    def unreadable(self) -> list[str]:
        """Return a sentence for each page that names one of the exchanges but cannot be parsed."""
        broken = self._store.pages().broken.items()
        return [
            f"{path} cannot be read ({error.problem})"
            for path, error in broken
            if self._names(self._store.read_text(path) or "")
        ]

    def _names(self, text: str) -> bool:
        return any(exchange in text for exchange in self.exchanges)

    def statements(self, memory: Memory) -> Iterator[Rest]:
        """Yield the statements of a page that rest on the exchanges."""
        standing = {statement.block_id: statement for statement in memory.statements if statement.block_id}
        for statement in memory.statements:
            changes = self.log.provenance_of(memory.uuid, statement)
            sources = sources_of(changes)
            if sources.isdisjoint(self.exchanges):
                continue
            same_words = [change.record.sources for change in changes if change.hash == text_hash(statement.text)]
            last = changes[-1]
            is_reworded = not statement.is_history and self.exchanges.issuperset(last.record.sources)
            again = standing.get(last.retired)
            if again and (not again.is_history or self._is_alone(memory, again)):
                again = None  # it is removed for itself
            yield Rest(
                statement,
                sources,
                sources <= self.exchanges,
                any(others and self.exchanges.isdisjoint(others) for others in same_words),
                last.former if is_reworded else None,
                again,
            )

    def _is_alone(self, memory: Memory, statement: Statement) -> bool:
        """Return whether a statement of a process rests on the exchanges alone."""
        changes = self.log.provenance_of(memory.uuid, statement)
        return bool(changes) and sources_of(changes) <= self.exchanges

    def proposals(self) -> set[str]:
        """Return the ids of the proposals to retire a statement that rest on the exchanges; their lines quote these."""
        sql = "SELECT id, data FROM proposals WHERE json_extract(data, '$.operation') = 'retire'"
        proposals = {key: RetireProposal.from_json(json.loads(data)) for key, data in self._store.projection.query(sql)}
        return {key for key, proposal in proposals.items() if not self.exchanges.isdisjoint(proposal.sources)}


def without_items(document: ShortTermDocument, is_gone: Callable[[Item], bool]) -> tuple[ShortTermDocument, list[str]]:
    """Return short-term memory without some items of its lists, and the texts of these."""
    memory = document.memory
    lists = [[item.text for item in items if is_gone(item)] for items in (memory.goals, memory.facts, memory.tasks)]
    return document.without_items(*lists), [text for texts in lists for text in texts]
