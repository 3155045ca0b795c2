"""Exchanges that were moved to the pages of their days: which of them wait for consolidation, which are not quoted."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from brainiac.errors import FormatError
from brainiac.formats.discretion import is_private
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import StmEvent, find_events
from brainiac.formats.prompt import ORIGINS, origin_in
from brainiac.storage.causes import undone_events
from brainiac.storage.store import Store

MAX_WAITING = 200  # so many are consolidated in one run, which must not take an hour
# An exchange needs nothing more once it was consolidated, or once Reflection noted a revision of it.
_NOT_DONE = """
NOT EXISTS (SELECT 1 FROM filings done WHERE done.exchange = it.exchange AND is_consolidated
            AND event NOT IN (SELECT value FROM json_each(?1)))
AND NOT EXISTS (SELECT 1 FROM outcomes later WHERE later.supersedes = it.exchange AND later.supersedes != ''
                AND event NOT IN (SELECT value FROM json_each(?1)))"""


class Filed:
    """Queries on filed exchanges; events that were undone do not count.

    Args:
        store: Whose journals are asked.
    """

    def __init__(self, store: Store) -> None:
        self._undone = json.dumps(list(undone_events(store)))
        self._projection = store.projection

    @property
    def waiting(self) -> list[str]:
        """Exchanges that were filed and not consolidated, oldest first."""
        return self._exchanges("filings", f"is_filed AND {_NOT_DONE}")

    @property
    def unread(self) -> list[str]:
        """Exchanges that were consolidated without a model, oldest first.

        A model has consolidated an exchange where it was asked about it and a later promotion carried that out.
        """
        undone = "SELECT value FROM json_each(?1)"
        is_read = f"""EXISTS (SELECT 1 FROM analyses look, filings done
            WHERE look.exchange = it.exchange AND done.exchange = it.exchange AND done.is_consolidated
            AND done.event > look.event AND done.event NOT IN ({undone}) AND NOT EXISTS (
                SELECT 1 FROM promotions WHERE promotions.run = look.run AND promotions.event IN ({undone})))"""
        is_gone = f"""EXISTS (SELECT 1 FROM filings gone
            WHERE gone.exchange = it.exchange AND gone.is_gone AND gone.event NOT IN ({undone}))"""
        is_revised = f"""EXISTS (SELECT 1 FROM outcomes later WHERE later.supersedes = it.exchange
            AND later.supersedes != '' AND event NOT IN ({undone}))"""
        return self._exchanges("filings", f"is_consolidated AND NOT {is_read} AND NOT {is_gone} AND NOT {is_revised}")

    @property
    def withheld(self) -> frozenset[str]:
        """Exchanges that the model of the last catch-up might not see."""
        rows = self._projection.query("SELECT withheld FROM catch_ups WHERE withheld IS NOT NULL ORDER BY event")
        return frozenset(json.loads(rows[-1][0])) if rows else frozenset()

    @property
    def unextracted(self) -> set[str]:
        """Exchanges that Reflection noted without a model: goals, facts and tasks in them were not extracted yet."""
        later = """NOT EXISTS (SELECT 1 FROM outcomes later WHERE later.exchange = it.exchange AND later.is_extracted
                   AND later.event > it.event AND later.event NOT IN (SELECT value FROM json_each(?1)))"""
        return set(self._exchanges("outcomes", f"is_extracted = 0 AND {later} AND {_NOT_DONE}"))

    @property
    def filed_at(self) -> str:
        """When exchanges were last filed into long-term memory, ISO 8601; "" for never; undone filings do not count."""
        rows = self._projection.query(
            "SELECT max(at) FROM filings WHERE is_filed AND event NOT IN (SELECT value FROM json_each(?))", self._undone
        )
        return rows[0][0] or ""

    def page_of(self, exchange: str) -> str:
        """Return the page that an exchange was put on; "" for none."""
        rows = self._projection.query(
            "SELECT page FROM filings WHERE exchange = ? AND page IS NOT NULL"
            " AND event NOT IN (SELECT value FROM json_each(?)) ORDER BY event DESC LIMIT 1",
            exchange,
            self._undone,
        )
        return rows[0][0] if rows else ""

    def _exchanges(self, table: str, where: str) -> list[str]:
        """Return the exchanges of a table for which a SQL condition on its rows `it` holds, oldest first."""
        sql = f"SELECT DISTINCT exchange FROM {table} it WHERE {where}"
        sql += " AND event NOT IN (SELECT value FROM json_each(?1)) ORDER BY exchange"  # ids ascend in time
        return [exchange for (exchange,) in self._projection.query(sql, self._undone)]


def waiting_events(store: Store) -> tuple[list[StmEvent], list[str], bool]:
    """Return the oldest exchanges that wait to be consolidated, as their pages have them by now.

    Returns:
        The exchanges, oldest first; the ids of those that are on no page any more (a person removed them); whether
        more than these wait.
    """
    waiting = Filed(store).waiting
    ids = waiting[:MAX_WAITING]
    events = exchanges_in_pages(store, ids)
    return sorted(events.values(), key=said_at), [name for name in ids if name not in events], len(waiting) > len(ids)


def said_at(event: StmEvent) -> tuple[str, str]:
    """Return by what exchanges are put into the order in which they were said."""
    return event.at, event.id


def exchanges_in_pages(store: Store, ids: Sequence[str]) -> dict[str, StmEvent]:
    """Return exchanges as their pages have them by now, by id; without those that are on no page any more."""
    exchanges = Filed(store)
    events = _exchanges_on_pages(store, {exchanges.page_of(exchange) for exchange in ids}, ids)
    if any(exchange not in events for exchange in ids):  # a person may have moved their page
        tree = store.tree
        paths = {tree.relative(entry.path) for entry in tree.walk(tree.long_term / "events", tree.archive)}
        events |= _exchanges_on_pages(store, paths, [exchange for exchange in ids if exchange not in events])
    return events


def _exchanges_on_pages(store: Store, paths: Collection[str], wanted: Collection[str]) -> dict[str, StmEvent]:
    """Return the wanted exchanges that are on these pages, by id."""
    return {event.id: event for path in paths for event in _exchanges_of(store, path) if event.id in wanted}


def _exchanges_of(store: Store, path: str) -> Iterator[StmEvent]:
    """Yield the exchanges on a page; all are private where its front matter says so or cannot be parsed."""
    text = store.read_text(path) or ""
    try:
        meta, offset = split(text, path)
    except FormatError:
        meta, offset = {"private": True}, 0  # it may say `private`, so it counts as private
    for placed in find_events(text, offset):
        yield replace(placed.event, is_private=True) if is_private(meta) else placed.event


def undecided_deletions(store: Store) -> dict[str, tuple[str, ...]]:
    """Return, by deleted page, the exchanges it rested on, while a person has not decided whether to forget them."""
    store.projection.follow()
    rows = store.projection.query(
        "SELECT deleted, data FROM proposals WHERE deleted != '' AND id NOT IN (SELECT proposal FROM decisions)"
    )
    proposals = {page: json.loads(data) for page, data in rows}
    return {
        page: tuple(proposal["exchanges"])
        for page, proposal in proposals.items()
        if not store.tree.absolute(proposal["path"]).exists()  # it may be put back
    }


def muted_exchanges(store: Store) -> frozenset[str]:
    """Return the exchanges that must not be quoted until a person decides what the deletion of their page means."""
    return frozenset(exchange for exchanges in undecided_deletions(store).values() for exchange in exchanges)


def origin_on_page(store: Store, path: str) -> str:
    """Return whose words the exchanges of a page are, one of `ORIGINS`, by its front matter.

    Args:
        store: The store.
        path: Of the page; "" for none.
    """
    try:
        meta, _ = split(store.read_text(path) or "", path) if path else ({}, 0)
    except FormatError:
        return ORIGINS[-1]  # nobody can tell
    return origin_in(meta)
