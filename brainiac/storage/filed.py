"""Exchanges that were filed (moved from short-term memory to the pages of their days).

Which of them wait for consolidation, and which no model has read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from brainiac.errors import FormatError
from brainiac.formats.authors import ORIGINS, Author, author_in
from brainiac.formats.discretion import is_private
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import StmEvent, find_events
from brainiac.storage.causes import undone_events
from brainiac.storage.statements import LINE
from brainiac.storage.store import Store
from brainiac.storage.withheld import Withheld

MAX_WAITING = 200  # so many are consolidated in one run, which must not take an hour
# SQL conditions; `it` is the row of an exchange in `FiledExchanges._exchanges`, and `?1` are the undone events there
_UNDONE = "(SELECT value FROM json_each(?1))"
_IS_REVISED = f"""EXISTS (SELECT 1 FROM outcomes later WHERE later.supersedes = it.exchange
    AND later.supersedes != '' AND later.event NOT IN {_UNDONE})"""
_IS_CONSOLIDATED = f"""EXISTS (SELECT 1 FROM filings done WHERE done.exchange = it.exchange
    AND done.is_consolidated AND done.event NOT IN {_UNDONE})"""
_NOT_DONE = f"NOT {_IS_CONSOLIDATED} AND NOT {_IS_REVISED}"


class FiledExchanges:
    """Queries on filed exchanges; events that were undone do not count.

    Args:
        store: Whose journals are asked.
    """

    def __init__(self, store: Store) -> None:
        self._undone = json.dumps(list(undone_events(store)))
        self._projection, self._withheld = store.projection, Withheld(store).exchanges

    @property
    def waiting(self) -> list[str]:
        """Ids of the exchanges that were filed and not consolidated, oldest first; those that are hidden wait on."""
        return [name for name in self._exchanges("filings", f"is_filed AND {_NOT_DONE}") if name not in self._withheld]

    @property
    def without_model(self) -> list[str]:
        """Ids of the exchanges that were consolidated without a model, oldest first.

        An exchange was consolidated with a model where one was asked about it and a later promotion used its answer.
        Forgotten and revised exchanges are left out.
        """
        # the promotion for which the model was asked must not be undone either
        is_read = f"""EXISTS (SELECT 1 FROM analyses asked, filings done
            WHERE asked.exchange = it.exchange AND done.exchange = it.exchange AND done.is_consolidated
            AND done.event > asked.event AND done.event NOT IN {_UNDONE} AND NOT EXISTS (
                SELECT 1 FROM promotions WHERE promotions.run = asked.run AND promotions.event IN {_UNDONE}))"""
        is_gone = f"""EXISTS (SELECT 1 FROM filings gone
            WHERE gone.exchange = it.exchange AND gone.is_gone AND gone.event NOT IN {_UNDONE})"""
        return self._exchanges("filings", f"is_consolidated AND NOT {is_read} AND NOT {is_gone} AND NOT {_IS_REVISED}")

    @property
    def withheld(self) -> frozenset[str]:
        """Ids of the exchanges that the last catch-up did not show to its model, since they are private."""
        rows = self._projection.query("SELECT withheld FROM catch_ups WHERE withheld IS NOT NULL ORDER BY event")
        return frozenset(json.loads(rows[-1][0])) if rows else frozenset()

    @property
    def unextracted(self) -> set[str]:
        """Ids of the exchanges that Reflection noted without a model, and that are not consolidated yet.

        Their goals, facts and tasks are still to be extracted.
        """
        is_extracted_later = f"""EXISTS (SELECT 1 FROM outcomes later WHERE later.exchange = it.exchange
            AND later.is_extracted AND later.event > it.event AND later.event NOT IN {_UNDONE})"""
        # 0 where it was noted without a model; NULL in the rows of other outcomes
        return set(self._exchanges("outcomes", f"is_extracted = 0 AND NOT {is_extracted_later} AND {_NOT_DONE}"))

    @property
    def lines(self) -> list[str]:
        """Ids of the lines under Key Facts that were consolidated, while they may stand there still."""
        return self._exchanges("filings", f"is_consolidated AND exchange GLOB '{LINE}*'")

    @property
    def filed_at(self) -> str:
        """When exchanges were last filed, ISO 8601; "" for never."""
        rows = self._projection.query(
            f"SELECT max(at) FROM filings WHERE is_filed AND event NOT IN {_UNDONE}", self._undone
        )
        return rows[0][0] or ""

    def page_of(self, exchange: str) -> str:
        """Return the path of the page that an exchange was put on; "" for none."""
        rows = self._projection.query(
            f"SELECT page FROM filings WHERE event NOT IN {_UNDONE} AND exchange = ? AND page IS NOT NULL"
            " ORDER BY event DESC LIMIT 1",
            self._undone,
            exchange,
        )
        return rows[0][0] if rows else ""

    def _exchanges(self, table: str, where: str) -> list[str]:
        """Return the ids of exchanges in a table, oldest first.

        Args:
            table: With the columns `exchange` and `event`.
            where: A SQL condition, in which `it` is the row and `?1` are the undone events.
        """
        # ids ascend in time
        sql = f"SELECT DISTINCT exchange FROM {table} it WHERE {where} AND event NOT IN {_UNDONE} ORDER BY exchange"
        return [exchange for (exchange,) in self._projection.query(sql, self._undone)]


class WaitingExchanges(NamedTuple):
    """The oldest exchanges that wait to be consolidated, as their pages have them now.

    Attributes:
        events: The exchanges, oldest first.
        removed: Ids of those that are on no page any more: a person removed them.
        is_partial: Whether further exchanges wait.
    """

    events: list[StmEvent]
    removed: list[str]
    is_partial: bool


def waiting_events(store: Store) -> WaitingExchanges:
    """Return the oldest exchanges that wait to be consolidated, at most `MAX_WAITING`."""
    waiting = FiledExchanges(store).waiting
    ids = waiting[:MAX_WAITING]
    events = exchanges_in_pages(store, ids)
    removed = [exchange for exchange in ids if exchange not in events]
    return WaitingExchanges(sorted(events.values(), key=said_at), removed, len(waiting) > len(ids))


def said_at(event: StmEvent) -> tuple[str, str]:
    """Return the sort key that puts exchanges into the order in which they were said."""
    return event.at, event.id


def exchanges_in_pages(store: Store, ids: Sequence[str]) -> dict[str, StmEvent]:
    """Return exchanges as their pages have them now, by id; those that are on no page any more are left out."""
    exchanges = FiledExchanges(store)
    events = _exchanges_on_pages(store, {exchanges.page_of(exchange) for exchange in ids}, ids)
    if any(exchange not in events for exchange in ids):  # a person may have moved their page
        tree = store.tree
        paths = tree.scan(tree.long_term / "events", tree.archive)
        events |= _exchanges_on_pages(store, paths, [exchange for exchange in ids if exchange not in events])
    return events


def _exchanges_on_pages(store: Store, paths: Collection[str], ids: Collection[str]) -> dict[str, StmEvent]:
    """Return the exchanges with these ids that are on these pages, by id."""
    return {event.id: event for path in paths for event in _exchanges_of(store, path) if event.id in ids}


def _exchanges_of(store: Store, path: str) -> Iterator[StmEvent]:
    """Yield the exchanges on a page; all are private where its front matter says so or cannot be parsed."""
    text = store.read_text(path) or ""
    try:
        meta, offset = split(text, path)
    except FormatError:
        meta, offset = {"private": True}, 0
    for placed in find_events(text, offset):
        yield replace(placed.event, is_private=True) if is_private(meta) else placed.event


def author_on_page(store: Store, path: str) -> Author:
    """Return the author of the exchanges on a page by its front matter; of an import this is the service.

    Args:
        store: Of the brain.
        path: Of the page; "" for none, which gives the person.
    """
    try:
        meta, _ = split(store.read_text(path) or "", path) if path else ({}, 0)
    except FormatError:
        return Author(ORIGINS[-1])  # unclear, so the least trusted
    return author_in(meta)
