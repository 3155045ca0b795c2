"""The one commit of a promotion: pages, index pages, review, short-term memory last, rebased on what stands there.

Each candidate ends as written, proposed, left or refused, in the journal and in the run's report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError
from brainiac.events import (
    Breaker,
    CandidateEnd,
    Change,
    Event,
    KeptText,
    MemoryPromoted,
    Refused,
    RetireProposal,
    StatementRecord,
    create,
    new_id,
    update,
)
from brainiac.formats.short_term import EMPTY, Item, ShortTermMemory, StmEvent
from brainiac.storage.folders import Folders
from brainiac.storage.relinking import Origins, placed
from brainiac.storage.review import Proposal, review_change
from brainiac.storage.statements import StatementLog, event_hash, line_id, text_hash

from .apply import Candidate, Step, carry_out, name_and_order
from .draft import Draft
from .filing import NAME, add_exchanges
from .placing import Named

ATTEMPTS = 10
MAX_TOLD = 300  # characters of what a person wrote that the event tells; all of it stands in the tree


@dataclass(slots=True)
class Work:
    """What a run has come to before it is written.

    Attributes:
        memory: Short-term memory at the snapshot.
        events: The events looked at, a person's own lines as such too, by id.
        lines: The ids of events made from lines that a person wrote into the lists, with their texts.
        steps: What is to be done, in order.
        records: What each of them did, for the journal.
        named: What synthesis made of pages, by path.
        left: Events that stay for the next run, with the reason.
        refused: What was not done, and why.
        summary: The new summary; None leaves the one there.
        endings: How candidates ended that no step is left of, by their ids.
        words: What candidates state, by their ids.
        origins: Tells where the links of an event lead.
        kept: What a person wrote beside what leaves short-term memory; it stays there.
        filed: Lines of a person's that leave the lists, and thoughts that they changed; they go to the day's page.
        breaker: What the run would have retired, where that is too much.
        summarized_by: The model that wrote the summary.
        paragraphs: Hashes of its paragraphs.
        standing: Ids of the events that stand on the pages of their days already.
        gone: Ids of exchanges that stood there too and that a person took out.
    """

    memory: ShortTermMemory
    events: dict[str, StmEvent]
    lines: dict[str, str]
    origins: Origins
    steps: list[Step] = field(default_factory=list)
    records: list[list[StatementRecord]] = field(default_factory=list)
    named: dict[str, Named] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    summary: str | None = None
    endings: dict[str, CandidateEnd] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    filed: list[StmEvent] = field(default_factory=list)
    breaker: Breaker | None = None
    summarized_by: str | None = None
    paragraphs: tuple[str, ...] = ()
    standing: frozenset[str] = frozenset()
    gone: Sequence[str] = ()

    @property
    def archived(self) -> list[StmEvent]:
        """The events of which nothing is left to decide."""
        return [event for event in self.events.values() if event.id not in self.left]

    def carry_out(self, brain: Brain, draft: Draft, step: Step) -> None:
        """Carry a step out on the pages in work.

        Raises:
            FormatError: It does not fit what stands there; nothing of it was done.
        """
        if step.proposal:
            brain.read_page(brain.tree.relative(brain.tree.review))  # where nothing can be asked, nothing is done
        with draft.undone_on_error(step.paths):
            self.records.append(carry_out(draft, step))
        self.steps.append(step)

    def build(self, brain: Brain, draft: Draft, steps: Sequence[Step]) -> None:
        """Carry all steps out anew, on pages as they stand; what no longer fits is left."""
        self.steps, self.records = [], []
        for step in steps:
            try:
                self.carry_out(brain, draft, step)
            except FormatError as error:
                self.leave(step.candidate, str(error))
        for path, named in self.named.items():
            name_and_order(draft, path, named.page, named.order(chain.from_iterable(self.records)))

    def leave(self, candidate: Candidate, reason: str) -> None:
        """Keep a candidate and the events behind it for the next run."""
        self.left |= {event.id: reason for event in candidate.events if event.id in self.events}
        self.end(candidate, "left", reason)

    def refuse(self, candidate: Candidate, reason: str) -> None:
        """Note that a candidate is refused for good."""
        self.end(candidate, "refused", reason)
        self.note_refusal(candidate.words, reason, candidate.model, candidate.id)

    def note_refusal(self, statement: str, reason: str, model: str, candidate: str = "") -> None:
        """Note something that a model wanted and that was not done, and why."""
        refused = Refused(candidate=candidate, statement=statement[:300], reason=reason[:300], model=model)
        self.refused.append(refused)

    def end(self, candidate: Candidate, end: str, reason: str) -> None:
        """Note how a candidate ended."""
        self.words[candidate.id] = candidate.words
        self.endings[candidate.id] = CandidateEnd(end=end, reason=reason[:300])

    def endings_by_now(self) -> dict[str, CandidateEnd]:
        """Return how every candidate ended, each in one way; those of the steps too."""
        endings = dict(self.endings)
        for step in self.steps:
            self.words[step.candidate.id] = step.candidate.words
            endings[step.candidate.id] = CandidateEnd(end="proposed" if step.proposal else "written")
        return endings


def finish(brain: Brain, work: Work, draft: Draft, cause: str) -> Event | None:
    """Write a run's outcome; a page that was edited meanwhile keeps its candidates and their events for the next run.

    Args:
        brain: The brain.
        work: What is to be written; what is left is noted there.
        draft: The pages in work.
        cause: Id of the run's first event.

    Returns:
        The event; None when nothing came of the run.

    Raises:
        ConflictError: Somebody else was quicker every time.
    """
    log = draft.log
    for _ in range(ATTEMPTS):
        # what short-term memory could not hold stands on the page of its day already
        unfiled = [event for event in work.archived if event.id not in work.standing]
        pages = add_exchanges(brain, draft, unfiled, work.origins, work.left)
        if not work.steps and not work.archived and not work.gone:
            return None
        work.filed = _leaving(brain, work, log)
        for path, ids in add_exchanges(brain, draft, work.filed, work.origins, work.left).items():
            pages.setdefault(path, []).extend(ids)
        proposals = _proposals(brain, work)
        changes = _changes(brain, draft, work, proposals)
        try:
            # held for the commit alone: through the calls before it, exchanges go on being noted
            with brain.short_term_lock():
                changes += _short_term(brain, work, log)
                event = _event(work, pages, proposals)
                return brain.commit(event, by=NAME, changes=changes, cause=cause)
        except ConflictError as error:
            _put_off(work, set(error.paths))
            draft = draft.anew()
            work.build(brain, draft, work.steps)
    raise ConflictError([brain.tree.relative(brain.tree.short_term)])


def _put_off(work: Work, paths: set[str]) -> None:
    for step in work.steps:
        if not paths.isdisjoint(step.paths):
            work.leave(step.candidate, f"{step.path} was edited meanwhile")
    work.steps = [step for step in work.steps if paths.isdisjoint(step.paths)]


def _proposals(brain: Brain, work: Work) -> list[Proposal]:
    """Make a proposal of each step about a person's own statement."""
    proposals = []
    for step, (record, *_) in zip(work.steps, work.records, strict=True):
        if step.proposal:
            target = step.targets[0]
            retire = RetireProposal(
                id=new_id(),
                what=placed(brain, step.proposal, brain.tree.relative(brain.tree.review)),
                operation="retire",
                page=target.page,
                path=target.path,
                block=target.statement.block_id,
                hash=text_hash(target.statement.text),
                replaced_by=record.block,
                on=record.since,
                sources=record.sources,
            )
            proposals.append(Proposal(retire, step.candidate.is_private or target.is_private))
    return proposals


def _event(work: Work, pages: Mapping[str, Sequence[str]], proposals: Sequence[Proposal]) -> MemoryPromoted:
    return MemoryPromoted(
        exchanges=(*(event.id for event in work.archived), *work.gone),
        left=work.left,
        statements=tuple(chain.from_iterable(work.records)),
        episodes={path: tuple(ids) for path, ids in pages.items()},
        proposals=tuple(proposal.record for proposal in proposals),
        refused=tuple(work.refused),
        candidates=work.endings_by_now(),
        kept=tuple(KeptText(text=text[:MAX_TOLD]) for text in work.kept),
        filed=tuple(KeptText(exchange=event.id, text=(event.user or event.ai)[:MAX_TOLD]) for event in work.filed),
        breaker=work.breaker,
        summarized_by=work.summarized_by,
        summary=work.paragraphs,
    )


def _changes(brain: Brain, draft: Draft, work: Work, proposals: Sequence[Proposal]) -> list[Change]:
    now = iso(brain.clock.now())
    pages = draft.changes(now)
    changes = [*pages, *Folders(brain, pages, _related(draft, work.steps), is_whole=False).changes()]
    return [*changes, *review_change(brain, proposals)]


def _related(draft: Draft, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """Return which pages name which: a statement of the one holds the title of the other."""
    titles: dict[str, list[tuple[str, str]]] = {}
    known = {path: page.title for path, page in draft.pages.memories.items()}
    known |= {path: working.document.memory.title for path, working in draft.working.items()}
    for path, title in known.items():
        if draft.pages.kind_of(path) == "concrete" and title:
            titles.setdefault(title.split()[0], []).append((title, path))
    pairs = []
    for step in steps:
        words = f" {step.operation.text} "
        for first in dict.fromkeys(words.split()):
            for title, path in titles.get(first, ()):
                if path != step.path and f" {title} " in words:
                    pairs.append((step.path, path))
    return list(dict.fromkeys(pairs))


def _short_term(brain: Brain, work: Work, log: StatementLog) -> list[Change]:
    """Return the change of short-term memory, as operations on what stands there now."""
    document = brain.short_term()
    memory, before = document.memory, work.memory
    gone = {event.id: event_hash(event) for event in work.archived if event.id not in work.lines}
    keep_events = {event.id for event in memory.events if gone.get(event.id) != event_hash(event)}
    removed = _removed_items(brain, work)
    keep_items = [item.text for item in (*memory.goals, *memory.facts, *memory.tasks) if item not in removed]
    summary = work.summary if memory.summary == before.summary else None  # a person's summary wins

    def is_ours(paragraph: str) -> bool:
        return log.is_own_summary(paragraph)

    after = document.reset(summary, keep_events, keep_items, is_ours)
    work.kept = [item.remarks.lstrip("\r\n") for item in removed if item.remarks]
    work.kept += [event.remarks for event in memory.events if event.remarks and event.id not in keep_events]
    if summary is not None:
        work.kept += [paragraph for paragraph in document.paragraphs() if not is_ours(paragraph)]
        work.paragraphs = tuple(map(text_hash, document.with_summary(summary).paragraphs()))
    path = brain.tree.relative(brain.tree.short_term)
    if brain.read_text(path) is None:
        return [create(path, str(after))] if str(after) != EMPTY else []
    return [update(path, str(document), str(after))] if str(after) != str(document) else []


def _removed_items(brain: Brain, work: Work) -> list[Item]:
    """Return the items that go: facts that were looked at, what is done, and open ones unless they carry over."""
    kept_lines = {text for line, text in work.lines.items() if line in work.left}
    removed = [item for item in work.memory.facts if item.text not in kept_lines]
    return removed + [item for item in _done(brain, work.memory) if line_id(item.words) not in work.left]


def _done(brain: Brain, memory: ShortTermMemory) -> list[Item]:
    """Return the goals and tasks that go; one that stands there open too stays with it."""
    is_carried = brain.settings.promotion.carry_open_items
    items = (*memory.goals, *memory.tasks)
    staying = {item.text.casefold() for item in items if is_carried and not item.is_done}
    return [item for item in items if (item.is_done or not is_carried) and item.text.casefold() not in staying]


def _leaving(brain: Brain, work: Work, log: StatementLog) -> list[StmEvent]:
    """Return what leaves short-term memory without being an event of it, as events for the page of the day.

    Whoever ticked an item, it is filed as it stands. What a process worded is not said by the person.
    """
    now = iso(brain.clock.now())
    filed = []
    for item in _done(brain, work.memory):
        side = {"ai" if log.noted_from(item.text) else "user": item.words}
        filed.append(StmEvent(line_id(item.words), now, **{"user": "", **side}, is_private=item.is_private))
    for event in work.archived:
        if event.thoughts and not log.are_own_thoughts(event.thoughts):
            filed.append(StmEvent(line_id(event.thoughts), event.at, "", event.thoughts, is_private=event.is_private))
    return filed
