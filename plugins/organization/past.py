"""What the journals tell an organization: what a person wrote or placed, what moved, how pages were used before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import parse_iso
from brainiac.events import Event, RecordedChange, TreeAdopted
from brainiac.storage.following import Following
from brainiac.storage.record import UNDONE
from brainiac.storage.store import Store

ORGANIZED = "memory-organized"
APPLIED, DECLINED, EXPIRED = "proposal-applied", "proposal-declined", "proposal-expired"
WINDOW_DAYS = 30  # citations count together for so long
REST_SECONDS = 60  # what a person edited within this is left out of a run

Pair = tuple[str, str]


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
        links: Pairs that a run linked, by the run's event.
        unlinked: Pairs whose link a person took back.
        asked: What the model was last asked, as a hash.
        proposals: What was ever put before a person, by id.
        order: When a page came to be, as a number, by path; a page that moves keeps its.
        count: How many changes there were.
        decided: What became of them: the kind of the event, by id.
    """

    edited: dict[str, str] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)
    touched: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    cited: Counter[str] = field(default_factory=Counter)
    together: Counter[Pair] = field(default_factory=Counter)
    links: dict[str, set[Pair]] = field(default_factory=dict)
    unlinked: set[Pair] = field(default_factory=set)
    asked: str = ""
    proposals: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    count: int = 0
    decided: dict[str, str] = field(default_factory=dict)

    def path_now(self, path: str) -> str:
        """Return where a page is that once stood at a path."""
        seen = {path}
        while (path := self.moved.get(path, path)) not in seen:
            seen.add(path)
        return path

    def is_resting(self, path: str, now: datetime) -> bool:
        """Tell whether no person wrote a file within the last minute."""
        at = self.edited.get(path)
        return at is None or now - parse_iso(at) >= timedelta(seconds=REST_SECONDS)


def read_past(brain: Brain) -> Past:
    """Return what the journals tell; those of other devices come first, as far back as they reach."""
    return _following.of(brain, key=brain.clock.now().date())  # by day: citations grow too old to count


def _take(store: Store, past: Past, event: Event, is_own: bool) -> None:
    is_by_hand = event.by == "person" and event.kind != TreeAdopted.kind
    for change in event.changes:
        is_save = event.kind == "note-merged" and change.op == "observe"
        is_put_back = event.kind == UNDONE and change.source is not None  # at a person's word, to where it was
        _take_change(past, change, event.at, is_by_hand or is_save or is_put_back)
    if event.kind == ORGANIZED:
        since = store.clock.now() - timedelta(days=WINDOW_DAYS)
        _take_run(past, event, is_recent=parse_iso(event.at) >= since)
    elif event.kind == UNDONE:
        past.unlinked |= past.links.get(event.data["undone"], set())
    for proposal in event.data.get("proposals", ()):
        past.proposals[proposal["id"]] = {**proposal, "by": event.by}
    if event.kind in (APPLIED, DECLINED, EXPIRED):
        past.decided[event.data["proposal"]] = event.kind


_following = Following(lambda store: Past(), _take)


def _take_change(past: Past, change: RecordedChange, at: str, is_by_hand: bool) -> None:
    path, source = change.path, change.source
    past.count += 1
    number = past.count if source is None else past.order.pop(source, past.count)
    past.order.setdefault(path, number)
    if source is not None:
        if source in past.edited:
            past.edited[path] = past.edited.pop(source)
        past.placed.discard(source)
        past.moved[source] = path
        past.moved.pop(path, None)
    elif change.after is None:
        past.order.pop(path, None)
    elif change.before is None and not is_by_hand:
        past.edited.pop(path, None)
        past.placed.discard(path)
    if is_by_hand:
        past.touched[path] = at
        if source is None:
            past.edited[path] = at
        if change.op in ("create", "move"):
            past.placed.add(path)


def _take_run(past: Past, event: Event, *, is_recent: bool) -> None:
    data = event.data
    past.asked = data.get("asked", "")
    for uuid, (day, times) in data.get("used", {}).items():
        past.used[uuid] = max(day, past.used.get(uuid, ""))
        past.cited[uuid] += times * is_recent
    for one, other, times in data.get("together", ()):
        past.together[one, other] += times * is_recent
    for action in data.get("done", ()):
        _count_anew(past, action["action"], action["uuids"])
        if action["action"] == "link":
            past.links.setdefault(event.id, set()).update(combinations(sorted(action["uuids"]), 2))


def _count_anew(past: Past, action: str, uuids: Iterable[str]) -> None:
    names = set(uuids)
    if action == "link":
        for pair in [pair for pair in past.together if names.issuperset(pair)]:
            del past.together[pair]
    elif action == "move":
        for uuid in names:
            past.cited.pop(uuid, None)
