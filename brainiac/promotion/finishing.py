"""The one commit of a promotion: pages, index pages, review, short-term memory last, rebased on what stands there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from brainiac.clock import iso
from brainiac.errors import ConflictError
from brainiac.events import Change, Event, create, new_id, update
from brainiac.notes.short_term import EMPTY, ShortTermMemory, StmEvent
from brainiac.promotion.applying import Applier, Step
from brainiac.promotion.draft import Draft
from brainiac.promotion.episodes import add_exchanges
from brainiac.promotion.finding import NAME, Refusal
from brainiac.promotion.folders import Folders
from brainiac.promotion.past import PROMOTED, Past, event_hash, text_hash
from brainiac.review import Proposal, with_proposals

if TYPE_CHECKING:
    from brainiac.brain import Brain

ATTEMPTS = 10


@dataclass(slots=True)
class Work:
    """What a run has come to before it is written.

    Attributes:
        memory: Short-term memory at the snapshot.
        events: The events looked at, a person's own lines as such too, by id.
        lines: The ids of events made from lines that a person wrote into the lists, with their texts.
        steps: What is to be done, in order.
        left: Events that stay for the next run, with the reason.
        refused: What was not done, and why.
        summary: The new summary; None leaves the one there.
        notes: Further data of the event.
    """

    memory: ShortTermMemory
    events: dict[str, StmEvent]
    lines: dict[str, str]
    steps: list[Step] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    summary: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def archived(self) -> list[StmEvent]:
        """The events of which nothing is left to decide."""
        return [event for event in self.events.values() if event.id not in self.left]

    def leave(self, step: Step, reason: str) -> None:
        """Keep the events behind a step for the next run."""
        self.left |= {event.id: reason for event in step.decision.found.events}


def finish(brain: Brain, work: Work, decided: Draft, past: Past, cause: str) -> Event | None:
    """Write a run's outcome; a page that was edited meanwhile keeps its candidates and their events for the next run.

    Args:
        brain: The brain.
        work: What is to be written; what is left is noted there.
        decided: The pages as they were decided on.
        past: What the journals tell.
        cause: Id of the run's first event.

    Returns:
        The event; None when nothing came of the run.

    Raises:
        ConflictError: Somebody else was quicker every time.
    """
    for _ in range(ATTEMPTS):
        paths = {step.place.path for step in work.steps} & decided.pages.keys()
        _put_off(work, {path for path in paths if brain.read_text(path) != decided.pages[path].before})
        draft = Draft(brain, decided.catalogue)
        records = _carried_out(brain, work, draft, past)
        pages = add_exchanges(brain, draft, work.archived)
        if not records and not pages:
            return None
        proposals = _proposals(brain, work.steps, records)
        data = _data(work, list(chain.from_iterable(records)), pages, proposals)
        changes = _changes(brain, draft, work, proposals)
        try:
            with brain.short_term_lock():
                return brain.commit(
                    PROMOTED, by=NAME, changes=[*changes, *_short_term(brain, work)], data=data, cause=cause
                )
        except ConflictError as error:
            _put_off(work, set(error.paths))
    raise ConflictError([brain.tree.relative(brain.tree.short_term)])


def _carried_out(brain: Brain, work: Work, draft: Draft, past: Past) -> list[list[dict[str, Any]]]:
    """Carry the steps out on pages as they stand, and return the records of each; what no longer fits is left."""
    applier = Applier(brain, draft, past)
    records: list[list[dict[str, Any]]] = []
    kept: list[Step] = []
    for step in work.steps:
        done = applier.apply(step)
        if done is None:
            work.leave(step, "the statement it is about was changed meanwhile")
        else:
            records.append(done)
            kept.append(step)
    work.steps = kept
    return records


def _put_off(work: Work, paths: set[str]) -> None:
    for step in work.steps:
        if step.place.path in paths:
            work.leave(step, f"{step.place.path} was edited meanwhile")
    work.steps = [step for step in work.steps if step.place.path not in paths]


def _proposals(brain: Brain, steps: Sequence[Step], records: Sequence[Sequence[Mapping[str, Any]]]) -> list[Proposal]:
    """Make a proposal of each step about a person's own statement."""
    proposals = []
    for step, (record, *_) in zip(steps, records, strict=True):
        decision = step.decision
        if decision.proposal and decision.target:
            data = {
                "operation": "retire",
                "page": decision.target.page,
                "path": decision.target.path,
                "block": decision.target.statement.block_id,
                "hash": text_hash(decision.target.statement.text),
                "replaced_by": record.get("block", ""),
                "on": brain.shown_day(decision.found.at),
                "sources": record["sources"],
            }
            is_private = decision.found.is_private or decision.target.is_private
            proposals.append(Proposal(new_id(), decision.proposal, data, is_private))
    return proposals


def _data(
    work: Work,
    records: Sequence[Mapping[str, Any]],
    pages: Mapping[str, Sequence[str]],
    proposals: Sequence[Proposal],
) -> dict[str, Any]:
    return {
        "exchanges": [event.id for event in work.archived],
        "left": work.left,
        "statements": list(records),
        "episodes": {path: list(ids) for path, ids in pages.items()},
        "proposals": [proposal.as_json() for proposal in proposals],
        "refused": [refusal.as_json() for refusal in work.refused],
        **work.notes,
    }


def _changes(brain: Brain, draft: Draft, work: Work, proposals: Sequence[Proposal]) -> list[Change]:
    now = iso(brain.clock.now())
    pages = draft.changes(now)
    changes = [*pages, *Folders(brain, pages, _related(draft, work.steps), is_whole=False).changes()]
    if proposals:
        path = brain.tree.relative(brain.tree.review)
        before = brain.read_text(path)
        text = with_proposals(before, proposals)
        changes.append(create(path, text) if before is None else update(path, before, text))
    return changes


def _related(draft: Draft, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """Return which pages name which: a statement of the one holds the title of the other."""
    titles: dict[str, list[tuple[str, str]]] = {}
    for page in draft.catalogue.by_path.values():
        if page.kind == "concrete" and page.title[:1].isupper():
            titles.setdefault(page.title.split()[0], []).append((page.title, page.path))
    found = []
    for step in steps:
        words = f" {step.decision.content} "
        for first in dict.fromkeys(words.split()):
            for title, path in titles.get(first, ()):
                if path != step.place.path and f" {title} " in words:
                    found.append((step.place.path, path))
    return list(dict.fromkeys(found))


def _short_term(brain: Brain, work: Work) -> list[Change]:
    """Return the change of short-term memory, as operations on what stands there now."""
    document = brain.short_term()
    memory, before = document.memory, work.memory
    gone = {event.id: event_hash(event) for event in work.archived if event.id not in work.lines}
    keep_events = {event.id for event in memory.events if gone.get(event.id) != event_hash(event)}
    removed = _removed_items(brain, work)
    keep_items = [item.text for item in (*memory.goals, *memory.facts, *memory.tasks) if item not in removed]
    summary = work.summary if memory.summary == before.summary else None  # a person's summary wins
    after = document.reset(summary, keep_events, keep_items)
    path = brain.tree.relative(brain.tree.short_term)
    if brain.read_text(path) is None:
        return [create(path, str(after))] if str(after) != EMPTY else []
    return [update(path, str(document), str(after))] if str(after) != str(document) else []


def _removed_items(brain: Brain, work: Work) -> list[object]:
    """Return the items that go: facts that were looked at, what is done, and open ones unless they carry over."""
    memory = work.memory
    kept_lines = {text for one, text in work.lines.items() if one in work.left}
    removed: list[object] = [item for item in memory.facts if item.text not in kept_lines]
    is_carried = brain.settings.promotion.carry_open_items
    removed += [item for item in (*memory.goals, *memory.tasks) if item.is_done or not is_carried]
    return removed
