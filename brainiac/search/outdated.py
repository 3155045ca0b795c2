"""Hits in raw exchanges whose words no longer hold, each with the statement that holds instead.

A raw exchange stays as it was typed. Where a statement that rested on it was replaced, ended or corrected since, the
hit says so: otherwise a reader would take the old words for true. Of a sentence on which another statement rests that
still holds it is not said, unless the person put that very sentence right; nor of a statement that was forgotten, which
nobody said is over. Of a how-to it is said of each step that changed, in its former words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from brainiac.events import RetireProposal, StatementRecord
from brainiac.formats.discretion import Audience
from brainiac.formats.markdown import one_line
from brainiac.formats.page import Memory, Statement
from brainiac.search.documents import Former, Hit
from brainiac.storage.causes import undone_events
from brainiac.storage.statements import text_hash
from brainiac.storage.store import Store
from brainiac.text.tokens import pieces
from brainiac.text.tokens import words as words_of


def with_former(store: Store, hits: Sequence[Hit], reader: Audience) -> list[Hit]:
    """Return hits; those in raw exchanges have in `former` the words that no longer hold.

    Args:
        store: Whose pages and journals are asked.
        hits: The hits.
        reader: Who is shown them: a statement that holds instead and is not theirs to see is left out.
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
    # `instr` is a rough filter, and `rows` below is exact; of each step of a how-to there is a row too
    stated = store.projection.query(
        "SELECT wanted.value, event, data, block, hash FROM statements, json_each(?) wanted"
        " WHERE instr(data, wanted.value) ORDER BY event",
        wanted,
    )
    records = (
        (name, event, replace(StatementRecord.from_json(json.loads(data)), block=block, hash=digest))
        for name, event, data, block, digest in stated
    )
    rows = [(name, row) for name, event, row in records if event not in undone and row.block and name in row.sources]
    hashes = json.dumps(sorted({row.hash for _, row in rows if row.hash}))
    gone = store.projection.query(
        "SELECT event, hash FROM forgotten WHERE hash != '' AND hash IN (SELECT value FROM json_each(?))", hashes
    )
    forgotten = {digest for event, digest in gone if event not in undone}
    pages = _Pages(store, (row for _, row in rows), forgotten, reader)
    # a statement that was only put into other words still holds; "" is the hash of a record that states nothing
    holding = {"", *(row.replaced.hash for _, row in rows if row.operation == "REWORD" and row.replaced)}
    holding.update(row.hash for _, row in rows if pages.holds(row))
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
        rows: The statements that rest on any of the exchanges, each with its exchange, oldest first.
        holding: Hashes of the statements that still hold, and of those that were forgotten.
        pages: Where statements that hold instead are looked up.
    """
    done, text = set(holding), _folded(hit.text)
    for proposal in ticked:
        new = StatementRecord(page=proposal.held_by, block=proposal.replaced_by)
        if hit.anchor == proposal.said_in and _folded(proposal.words) in text:
            done.add(text_hash(proposal.words))
            yield Former(one_line(proposal.words), pages.successor(new))
    own = [row for exchange, row in rows if exchange == hit.anchor]
    quotes = [[one_line(each.quote) for each in row.evidence if each.exchange == hit.anchor] for row in own]
    of_steps = [any(step.block == row.block for step in row.steps) for row in own]
    told = list(zip(own, quotes, of_steps, strict=True))
    held = [_spaced(said) for row, quoted, is_step in told if row.hash in holding and not is_step for said in quoted]
    for row, quoted, is_step in told:
        words = next((quote for quote in quoted if _folded(quote) in text), "")
        # without evidence the statement is the person's own words, which the hit may hold besides others
        if row.hash in done or (quoted and not words):
            continue
        done.add(row.hash)
        if is_step:
            words = pages.retired(row)
        elif row.candidate:  # without, the person put that very sentence right
            said = [(part, _spaced(part)) for part in pieces(words)]
            parts = [part for part, spaced in said if not any(spaced in other or other in spaced for other in held)]
            words = words if len(parts) == len(said) else " ".join(parts)
        if words or not quoted:
            yield Former(words, pages.successor(row))


class _Pages:
    """The pages of statements, as they are now."""

    def __init__(self, store: Store, rows: Iterable[StatementRecord], forgotten: set[str], reader: Audience) -> None:
        self._store, self._forgotten, self._reader = store, forgotten, reader
        self._pages = store.pages({row.path for row in rows if row.path}).pages

    def holds(self, row: StatementRecord) -> bool:
        """Return whether a statement holds as it was stated, or was forgotten and did not end."""
        ended = [statement.is_history for statement in self._stating(row)]
        return False in ended or (not ended and row.hash in self._forgotten)

    def _stating(self, row: StatementRecord) -> list[Statement]:
        """Return the statements of its page, under History too, that have its words."""
        page = self._page(row)
        return [each for each in page.statements if text_hash(each.text) == row.hash] if page else []

    def successor(self, row: StatementRecord) -> str:
        """Return the statement that holds in place of another; "" where none does, or it must not be shown."""
        page = self._page(row)
        if page is None:
            return ""
        retired = [item for item in self._stating(row) if item.is_history]
        # one that was changed in place has the same block id; a retired one names that of its successor
        block_ids = {row.block, *(item.replaced_by for item in retired)}
        now = next((new for new in page.statements if not new.is_history and new.block_id in block_ids), None)
        if now is None or page.audience > self._reader:
            return ""
        return one_line(now.text)

    def retired(self, row: StatementRecord) -> str:
        """Return the words of a statement as History has them; "" where it has not, or they must not be shown."""
        page, ended = self._page(row), [item.text for item in self._stating(row) if item.is_history]
        return one_line(ended[0]) if page and ended and page.audience <= self._reader else ""

    def _page(self, row: StatementRecord) -> Memory | None:
        """Return the page of a statement, found by its uuid where it was moved; None where it is gone."""
        # `row.page` is the page's uuid, or the path of one without
        page = self._pages.get(row.path)
        if page is None or (page.uuid or page.path) != row.page:
            whole = self._store.pages()
            page = whole.pages.get(whole.path_by_uuid.get(row.page, ""))
        return page


def _spaced(text: str) -> str:
    """Return the words of a text between spaces, to find them in another's."""
    return f" {' '.join(words_of(text))} "


def _folded(text: str) -> str:
    """Return a text without case and extra white space, for comparing."""
    return " ".join(text.split()).casefold()
