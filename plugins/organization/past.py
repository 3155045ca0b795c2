"""What the journals tell an organization: what a person wrote or placed, what moved, how pages were used before."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.storage.projection import Projection

WINDOW_DAYS = 30  # citations count together for so long
REST_SECONDS = 60  # what a person edited within this is left out of a run

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Change:
    """What was done to a file; see the projection."""

    path: str
    source: str | None
    after: str | None
    op: str
    is_new: bool
    is_by_hand: bool
    at: str


@dataclass(slots=True)
class Past:
    """What was done before, as far as the journals can be read.

    Attributes:
        edited: When a person last wrote a page, by path.
        placed: Paths that a person chose: pages they made or moved there.
        touched: When a person last wrote or moved a file, by path.
        moved: Where a page went, by its former path.
        used: When a page was last read or cited, by uuid; as an ISO date.
        cited: How often within the window, by uuid; counted anew after it was moved up.
        together: How often two pages were cited by one answer, by their uuids; counted anew after they were linked.
        unlinked: Pairs whose link a person took back.
        asked: What the model was last asked, as a hash.
        proposals: What was ever put before a person, by id.
        order: When a page came to be, as a number, by path; a page that moves keeps its.
        decided: What became of them: the kind of the event, by id.
    """

    edited: dict[str, str] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)
    touched: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    cited: Counter[str] = field(default_factory=Counter)
    together: Counter[Pair] = field(default_factory=Counter)
    unlinked: set[Pair] = field(default_factory=set)
    asked: str = ""
    proposals: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    decided: dict[str, str] = field(default_factory=dict)

    def path_now(self, path: str) -> str:
        """Return where a page is that once stood at a path."""
        seen = {path}
        while (path := self.moved.get(path, path)) not in seen:
            seen.add(path)
        return path

    def is_resting(self, path: str, now: datetime) -> bool:
        """Return whether no person wrote a file within the last minute."""
        at = self.edited.get(path)
        return at is None or now - parse_iso(at) >= timedelta(seconds=REST_SECONDS)


def read_past(brain: Brain) -> Past:
    """Return what the journals of all devices say, as far back as they reach."""
    past, projection = Past(), brain.projection
    projection.follow()
    columns = "path, source, after, op, is_new, is_by_hand, at"
    for number, row in enumerate(projection.query(f"SELECT {columns} FROM changes ORDER BY event, position"), 1):
        _take_change(past, _Change(*row), number)
    past.used = dict(projection.query("SELECT page, max(day) FROM uses WHERE other = '' GROUP BY page"))
    _count_runs(projection, past, iso(brain.clock.now() - timedelta(days=WINDOW_DAYS)))
    for name, by, proposal in projection.query("SELECT id, by, data FROM proposals ORDER BY event"):
        past.proposals[name] = {**json.loads(proposal), "by": by}
    past.decided = dict(projection.query("SELECT proposal, kind FROM decisions ORDER BY event"))
    return past


def _take_change(past: Past, change: _Change, number: int) -> None:
    path, source = change.path, change.source
    number = number if source is None else past.order.pop(source, number)
    past.order.setdefault(path, number)
    if source is not None:
        if source in past.edited:
            past.edited[path] = past.edited.pop(source)
        past.placed.discard(source)
        past.moved[source] = path
        past.moved.pop(path, None)
    elif change.after is None:
        past.order.pop(path, None)
    elif change.is_new and not change.is_by_hand:
        past.edited.pop(path, None)
        past.placed.discard(path)
    if change.is_by_hand:
        past.touched[path] = change.at
        if source is None:
            past.edited[path] = change.at
        if change.op in ("create", "move"):
            past.placed.add(path)


def _count_runs(projection: Projection, past: Past, since: str) -> None:
    """Add up what runs counted, anew after each that did something about it; older counts are left out."""
    undone = {event for (event,) in projection.query("SELECT undone FROM undoings")}
    for run, at, asked, done in projection.query("SELECT event, at, asked, done FROM runs ORDER BY event"):
        past.asked = asked
        recent = projection.query("SELECT page, other, times FROM uses WHERE event = ?", run) if at >= since else ()
        for page, other, times in recent:
            if other:
                past.together[page, other] += times
            else:
                past.cited[page] += times
        for action, pages in json.loads(done):
            _count_anew(past, action, set(pages))
            if action == "link" and run in undone:
                past.unlinked |= set(combinations(sorted(pages), 2))


def _count_anew(past: Past, action: str, pages: set[str]) -> None:
    if action == "link":
        for pair in [pair for pair in past.together if pages.issuperset(pair)]:
            del past.together[pair]
    elif action == "move":
        for page in pages:
            past.cited.pop(page, None)
