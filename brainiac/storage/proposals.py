"""What processes asked a person, as the journals have it, and how much of it stands in `memory/review.md` at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from brainiac import events
from brainiac.clock import iso
from brainiac.events import ProposalRecord as Record
from brainiac.storage.review import kind_of, review_change, with_proposals
from brainiac.storage.store import Store

Records = tuple[Record, ...]

# the events that were undone; an undoing that was undone itself does not count
UNDONE = "(SELECT undone FROM undoings WHERE event NOT IN (SELECT undone FROM undoings))"


@dataclass(frozen=True)
class Asked:
    """A proposal as the journals have it.

    Attributes:
        data: Its record as JSON, which is read only where somebody looks at it: one may name hundreds of pages.
        by: The process that made it.
        at: When it was made, or got its line after it had waited; ISO 8601.
        how: How it was decided (see `ProposalDecided`), or `undone` with the event that made it; "" for undecided.
    """

    data: str
    by: str
    at: str
    how: str

    @cached_property
    def record(self) -> Record:
        """What is done is decided by this, not by the line in `review.md`."""
        return Record.from_json(json.loads(self.data))


def asked_before(store: Store) -> dict[str, Asked]:
    """Return every proposal that the journals of all devices have, by id, oldest first."""
    store.projection.follow()
    asked: dict[str, Asked] = {}
    # what a person decided holds, also where another device noted later that nobody did
    rows = store.projection.query(
        f"""SELECT id, at, by, data, coalesce(
            (SELECT how FROM decisions WHERE proposal = id ORDER BY how = 'lapsed', event DESC LIMIT 1),
            CASE WHEN event IN {UNDONE} THEN 'undone' ELSE '' END) FROM proposals ORDER BY event"""
    )
    for name, at, by, data, how in rows:
        by = asked[name].by if name in asked else by
        asked[name] = Asked(data, by, at, how)
    return asked


def lapses(proposal: Record) -> bool:
    """Return whether a line that nobody decides goes in time, with nothing done.

    What is hidden until a person decides stays hidden then. Another wish of theirs waits for them, and so does another
    device's version, which is nowhere else.
    """
    if isinstance(proposal, events.ForgetProposal):
        return bool(proposal.is_hiding or proposal.deleted)
    return _is_limited(proposal)


def asking(store: Store, proposals: Iterable[Record]) -> tuple[Records, list[events.Change]]:
    """Return proposals as the journal is to have them, with the change that gives each its line in `review.md`.

    Of those that no person asked for only so many get one that `review.max_new` undecided ones are new within seven
    days: first what a second reader held back, then what would destroy, then the others in their order. The rest waits.
    """
    if not (proposals := list(proposals)):
        return (), []
    asked = asked_before(store)
    limited = sorted(filter(_is_limited, proposals), key=lambda each: (not each.reason, kind_of(each) != "forget"))
    late = {each.id for each in limited[room_for(store, asked) :]}
    records = tuple(replace(each, waits=each.id in late) for each in proposals)
    shown = [each for each in records if not each.waits]
    left = {name for name, each in asked.items() if not each.how and each.record.waits} | late
    n_waiting = len(left.difference(each.id for each in shown))
    return records, review_change(store.tree, lambda text: with_proposals(text, shown, n_waiting))


def room_for(store: Store, asked: dict[str, Asked]) -> int:
    """Return how many further proposals may get their line now."""
    since = iso(store.clock.now() - timedelta(days=7))
    recent = [each.record for each in asked.values() if not each.how and each.at > since and not each.record.waits]
    return max(0, store.settings.review.max_new - len(list(filter(_is_limited, recent))))


def _is_limited(proposal: Record) -> bool:
    """Return whether a proposal may have to wait: no person asked for it, and all it is about stands elsewhere."""
    return not proposal.is_wish and not isinstance(proposal, events.CopyProposal)
