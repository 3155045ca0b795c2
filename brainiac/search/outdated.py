"""Hits in raw exchanges whose words no longer hold, each with the statement that holds instead.

A raw exchange stays as it was typed. Where a statement that rested on it was replaced, ended or corrected since, the
hit says so: otherwise a reader would take the old words for true.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from brainiac.errors import FormatError
from brainiac.events import RetireProposal, StatementRecord
from brainiac.formats.markdown import one_line
from brainiac.formats.page import Memory, parse_memory
from brainiac.search.documents import Former, Hit
from brainiac.storage.causes import undone_events
from brainiac.storage.statements import text_hash
from brainiac.storage.store import Store


def with_former(store: Store, hits: Sequence[Hit], *, hides_private: bool) -> list[Hit]:
    """Return hits; those in raw exchanges have in `former` the words that no longer hold.

    Args:
        store: Whose pages and journals are asked.
        hits: The hits.
        hides_private: Whether a private statement that holds instead is left out.
    """
    exchanges = {hit.anchor for hit in hits if hit.kind == "exchange" and hit.anchor}
    if not exchanges:
        return list(hits)
    undone, wanted = undone_events(store), json.dumps(sorted(exchanges))  # it brings the projection up to date
    decided = store.projection.query(
        "SELECT decisions.event, data FROM proposals, decisions WHERE proposals.id = proposal AND how = 'applied'"
        " AND json_extract(data, '$.said_in') IN (SELECT value FROM json_each(?)) ORDER BY decisions.event DESC",
        wanted,
    )
    # by which a person ticked that words are replaced, newest first
    ticked = [RetireProposal.from_json(json.loads(data)) for event, data in decided if event not in undone]
    # step 0: the statement itself; `instr` is a rough filter, and `rows` below is exact
    stated = store.projection.query(
        "SELECT wanted.value, event, data FROM statements, json_each(?) wanted"
        " WHERE step = 0 AND instr(data, wanted.value) ORDER BY event",
        wanted,
    )
    records = [
        (name, StatementRecord.from_json(json.loads(data))) for name, event, data in stated if event not in undone
    ]
    rows = [(name, row) for name, row in records if row.block and name in row.sources]
    pages = _Pages(store, hides_private=hides_private)
    # a statement that was only put into other words still holds; "" is the hash of a record that states nothing
    reworded = {row.replaced.hash for _, row in rows if row.operation == "REWORD" and row.replaced}
    holding = {"", *reworded, *(row.hash for _, row in rows if pages.holds(row))}
    return [replace(hit, former=tuple(_former(hit, ticked, rows, holding, pages))) for hit in hits]


def _former(
    hit: Hit,
    ticked: Iterable[RetireProposal],
    rows: Sequence[tuple[str, StatementRecord]],
    holding: set[str],
    pages: _Pages,
) -> Iterable[Former]:
    """Yield the words of a hit that no longer hold, each once.

    Args:
        hit: The hit.
        ticked: What a person said is replaced.
        rows: The records of statements that rest on any of the exchanges, each with its exchange, oldest first.
        holding: Hashes of the statements that still hold.
        pages: Where statements that hold instead are looked up.
    """
    done, text = set(holding), _folded(hit.text)
    for proposal in ticked:
        new = StatementRecord(page=proposal.held_by, block=proposal.replaced_by)
        if hit.anchor == proposal.said_in and _folded(proposal.words) in text:
            done.add(text_hash(proposal.words))
            yield Former(one_line(proposal.words), pages.successor(new))
    for exchange, row in rows:
        if exchange != hit.anchor or row.hash in done:
            continue
        quotes = [one_line(quoted.quote) for quoted in row.evidence if quoted.exchange == exchange]
        words = next((quote for quote in quotes if _folded(quote) in text), "")
        # without evidence the statement is the person's own words, which the hit may hold besides others
        if words or not quotes:
            done.add(row.hash)
            yield Former(words, pages.successor(row))


class _Pages:
    """The pages of statements, each read once for a search."""

    def __init__(self, store: Store, *, hides_private: bool) -> None:
        self._store, self._hides_private = store, hides_private
        self._read: dict[str, Memory | None] = {}

    def holds(self, row: StatementRecord) -> bool:
        """Return whether a statement holds as it was stated."""
        page = self._page(row)
        return page is not None and any(
            not statement.is_history and text_hash(statement.text) == row.hash for statement in page.statements
        )

    def successor(self, row: StatementRecord) -> str:
        """Return the statement that holds in place of another; "" where none does, or it must not be shown."""
        page = self._page(row)
        if page is None:
            return ""
        retired = [item for item in page.statements if item.is_history and text_hash(item.text) == row.hash]
        # one that was changed in place has the same block id; a retired one names that of its successor
        block_ids = {row.block, *(item.replaced_by for item in retired)}
        now = next((new for new in page.statements if not new.is_history and new.block_id in block_ids), None)
        if now is None or (self._hides_private and page.is_private):
            return ""
        return one_line(now.text)

    def _page(self, row: StatementRecord) -> Memory | None:
        """Return the page of a statement, found by its uuid where it was moved; None where it is gone."""
        # `row.page` is the page's uuid, or the path of one without
        if row.page not in self._read:
            memory = self._parsed(row.path)
            if memory is None or (memory.uuid or memory.path) != row.page:
                memory = self._parsed(self._store.pages().path_by_uuid.get(row.page, ""))  # it was moved
            self._read[row.page] = memory
        return self._read[row.page]

    def _parsed(self, path: str) -> Memory | None:
        """Return the page at a path; None where there is none or it cannot be parsed."""
        try:
            text = self._store.read_page(path) if path else None
            return None if text is None else parse_memory(path, text)
        except FormatError:
            return None


def _folded(text: str) -> str:
    """Return a text without case and extra white space, for comparing."""
    return " ".join(text.split()).casefold()
