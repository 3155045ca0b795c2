"""The one commit of a promotion: pages, index pages, review and short-term memory.

It is retried on the files as they stand when somebody saved one meanwhile. Each candidate ends as written, proposed,
left or refused, in the journal and in the run's report.
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
from brainiac.history.exchanges import Exchanges
from brainiac.history.why import folded
from brainiac.storage.links import Folders, LinkOrigins, with_links_from
from brainiac.storage.review import Proposal, proposals_change
from brainiac.storage.statements import StatementLog, event_hash, line_id, text_hash

from .apply import Candidate, Step, carry_out, name_and_order
from .draft import Draft
from .filing import NAME, add_exchanges
from .placing import Naming
from .replaced import replacements

ATTEMPTS = 10
PINNED_CHARACTERS = 2_000  # of pinned facts, which every working memory has: some 500 tokens
MAX_QUOTED = 300  # characters of a person's text in the event; the whole text stands in the tree


@dataclass(slots=True)
class Work:
    """The results of a run before its commit.

    Attributes:
        memory: Short-term memory at the snapshot.
        events: The events that the run decides on, by id; a person's own line under Key Facts is one too.
        lines: The texts of those lines, by event id.
        origins: Resolves the links in an event's text.
        steps: The steps that were carried out, in order.
        records: The statement records of each step.
        namings: The answers about names and orders, by path of the page.
        left: The reason for each event that stays for the next run, by event id.
        refused: The operations that were not carried out, with the reason.
        summary: The new summary; None keeps the old one.
        endings: How candidates without a step ended, by candidate id.
        words: The text of each candidate, by its id.
        kept: Remarks of a person beside events and items that leave short-term memory; they stay there.
        filed: List items that leave short-term memory, and thoughts that a person changed; the day's page gets them.
        breaker: What the run would have retired, where that was too large a share; None otherwise.
        summarized_by: The model that wrote the summary.
        paragraphs: Hashes of the paragraphs of the new summary.
        filed_ids: Ids of the events that are on the pages of their days already.
        removed_ids: Ids of filed exchanges that a person has taken out of their pages since.
    """

    memory: ShortTermMemory
    events: dict[str, StmEvent]
    lines: dict[str, str]
    origins: LinkOrigins
    steps: list[Step] = field(default_factory=list)
    records: list[list[StatementRecord]] = field(default_factory=list)
    namings: dict[str, Naming] = field(default_factory=dict)
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
    filed_ids: frozenset[str] = frozenset()
    removed_ids: Sequence[str] = ()

    @property
    def archived(self) -> list[StmEvent]:
        """The events that are decided and leave short-term memory."""
        return [event for event in self.events.values() if event.id not in self.left]

    def carry_out(self, brain: Brain, draft: Draft, step: Step) -> None:
        """Carry a step out on the draft, whole or not at all.

        Raises:
            FormatError: Its target or page was changed meanwhile, or `review.md` cannot take its proposal.
        """
        if step.proposal:
            brain.read_page(brain.tree.relative(brain.tree.review))  # raises where no proposal can be written there
        with draft.undone_on_error(step.paths):
            self.records.append(carry_out(draft, step))
        self.steps.append(step)
        self.words[step.candidate.id] = step.candidate.words

    def rebuild(self, brain: Brain, draft: Draft, steps: Sequence[Step]) -> None:
        """Carry steps out on a new draft; the candidate of one that no longer fits its page is left."""
        self.steps, self.records = [], []
        for step in steps:
            try:
                self.carry_out(brain, draft, step)
            except FormatError as error:
                self.leave(step.candidate, str(error))
        for path, naming in self.namings.items():
            name_and_order(draft, path, naming.answer, naming.order(chain.from_iterable(self.records)))

    def leave(self, candidate: Candidate, reason: str) -> None:
        """Keep a candidate and the events it rests on for the next run."""
        self.left |= {event.id: reason for event in candidate.events if event.id in self.events}
        self._end(candidate.id, candidate.words, "left", reason)

    def refuse(self, candidate: str, statement: str, reason: str, model: str = "") -> None:
        """Note that a candidate is refused for good; it is given by its id, with what it states."""
        self._end(candidate, statement, "refused", reason)
        self.note_refusal(statement, reason, model, candidate)

    def note_refusal(self, statement: str, reason: str, model: str, candidate: str = "") -> None:
        """Note an operation that was not carried out, and why."""
        refused = Refused(candidate=candidate, statement=statement[:300], reason=reason[:300], model=model)
        self.refused.append(refused)

    def _end(self, candidate: str, words: str, end: str, reason: str) -> None:
        """Note how a candidate without a step ended."""
        self.words[candidate] = words
        self.endings[candidate] = CandidateEnd(end=end, reason=reason[:300])

    def endings_by_now(self) -> dict[str, CandidateEnd]:
        """Return how every candidate ended, with those of the steps as written or proposed."""
        by_step = {step.candidate.id: "proposed" if step.proposal else "written" for step in self.steps}
        return self.endings | {candidate: CandidateEnd(end=end) for candidate, end in by_step.items()}


def finish(brain: Brain, work: Work, draft: Draft, cause: str) -> Event | None:
    """Commit the results of a run; candidates of a page that a person edits meanwhile wait for the next run.

    Args:
        brain: The brain.
        work: The results; candidates that are left are noted there.
        draft: The page drafts.
        cause: The id of the run's first event.

    Returns:
        The event; None where there was nothing to commit.

    Raises:
        ConflictError: In each of `ATTEMPTS` attempts somebody saved a file of the commit.
    """
    for _ in range(ATTEMPTS):
        try:
            return _commit(brain, work, draft, cause)
        except ConflictError as error:
            # somebody saved one of the files: the steps on it wait, all others are tried again at once
            _leave_steps_on(work, set(error.paths))
            draft = draft.restarted()
            work.rebuild(brain, draft, work.steps)
    raise ConflictError([brain.tree.relative(brain.tree.short_term)])


def _commit(brain: Brain, work: Work, draft: Draft, cause: str) -> Event | None:
    """Put the exchanges on their pages and commit all changes at once; None where there are none.

    Raises:
        ConflictError: Somebody saved a file of the commit meanwhile.
    """
    exchanges = [event for event in work.archived if event.id not in work.filed_ids]
    pages = add_exchanges(brain, draft, exchanges, work.origins, work.left)
    if not work.steps and not work.archived and not work.removed_ids:
        return None
    work.filed = _leaving_events(brain, work, draft.log)
    for path, ids in add_exchanges(brain, draft, work.filed, work.origins, work.left).items():
        pages.setdefault(path, []).extend(ids)
    firsts = [record for record, *_ in work.records]
    proposals = [*_proposals(brain, work), *replacements(brain, draft, zip(work.steps, firsts, strict=True))]
    changes = _changes(brain, draft, work, proposals)
    # not locked before: while the models were called, Reflection had to be able to note exchanges
    with brain.short_term_lock():
        changes += _short_term(brain, work, draft)
        return brain.commit(_event(work, pages, proposals), by=NAME, changes=changes, cause=cause)


def _leave_steps_on(work: Work, paths: set[str]) -> None:
    """Leave the candidates of steps on pages that somebody saved for the next run."""
    for step in work.steps:
        if not paths.isdisjoint(step.paths):
            work.leave(step.candidate, f"{step.path} was edited meanwhile")
    work.steps = [step for step in work.steps if paths.isdisjoint(step.paths)]


def _proposals(brain: Brain, work: Work) -> list[Proposal]:
    """Return the proposals for `review.md`, one for each step that asks: about a person's own statement, or its own."""
    proposals = []
    for step, (record, *_) in zip(work.steps, work.records, strict=True):
        if step.proposal:
            # a step without targets asks about what it has just written
            target = step.targets[0] if step.targets else None
            retire = RetireProposal(
                id=new_id(),
                what=with_links_from(brain, step.proposal, brain.tree.relative(brain.tree.review)),
                operation="retire",
                page=target.page if target else record.page,
                path=target.path if target else record.path,
                block=target.statement.block_id if target else record.block,
                hash=text_hash(target.statement.text) if target else record.hash,
                replaced_by=record.block if target else "",
                on=record.since,
                sources=record.sources,
            )
            is_private = step.candidate.is_private or (target is not None and target.is_private)
            proposals.append(Proposal(retire, is_private))
    return proposals


def _event(work: Work, pages: Mapping[str, Sequence[str]], proposals: Sequence[Proposal]) -> MemoryPromoted:
    """Return the event of the commit.

    Args:
        work: The results of the run; the exchanges that a person deleted from their pages end with it, too.
        pages: The ids of the exchanges that each page got, by path.
        proposals: The lines for `review.md`.
    """
    return MemoryPromoted(
        exchanges=(*(event.id for event in work.archived), *work.removed_ids),
        left=work.left,
        statements=tuple(chain.from_iterable(work.records)),
        episodes={path: tuple(ids) for path, ids in pages.items()},
        proposals=tuple(proposal.record for proposal in proposals),
        refused=tuple(work.refused),
        candidates=work.endings_by_now(),
        kept=tuple(KeptText(text=text[:MAX_QUOTED]) for text in work.kept),
        filed=tuple(KeptText(exchange=event.id, text=(event.user or event.ai)[:MAX_QUOTED]) for event in work.filed),
        breaker=work.breaker,
        summarized_by=work.summarized_by,
        summary=work.paragraphs,
        gone=tuple(work.removed_ids),
    )


def _changes(brain: Brain, draft: Draft, work: Work, proposals: Sequence[Proposal]) -> list[Change]:
    """Return the changes of pages, of the index pages of their folders, and of `review.md`."""
    now = iso(brain.clock.now())
    pages = draft.changes(now)
    # not whole: of the entries on the index pages only those of changed pages are made anew
    index_pages = Folders(brain, pages, _related(draft, work.steps), is_whole=False).changes()
    return [*pages, *index_pages, *proposals_change(brain.tree, proposals)]


def _related(draft: Draft, steps: Sequence[Step]) -> list[tuple[str, str]]:
    """Return pairs of paths: a step's page, and a page whose title is in the step's text; index pages link them."""
    mentions, pairs = draft.mentions(), dict[tuple[str, str], None]()
    for step in steps:
        page = draft.opened(step.path).document.memory
        pairs |= {(step.path, named.path): None for named, _ in mentions.in_text(page, step.operation.text)}
    return list(pairs)


def _short_term(brain: Brain, work: Work, draft: Draft) -> list[Change]:
    """Return the change of short-term memory: the run's results applied to the present file.

    It sets `work.kept` and `work.paragraphs` to what this change keeps and writes.
    """
    document, log = brain.short_term(), draft.log
    memory = document.memory
    # an event that a person edited after the snapshot has another hash, and stays
    archived_hashes = {event.id: event_hash(event) for event in work.archived if event.id not in work.lines}
    keep_events = {event.id for event in memory.events if archived_hashes.get(event.id) != event_hash(event)}
    removed = _removed_items(brain, work, draft)
    keep_items = [item.text for item in (*memory.goals, *memory.facts, *memory.tasks) if item not in removed]
    # None leaves the summary that a person wrote meanwhile
    summary = work.summary if memory.summary == work.memory.summary else None
    after = document.reset(summary, keep_events, keep_items, log.is_own_summary)
    work.kept = [item.remarks.lstrip("\r\n") for item in removed if item.remarks]
    work.kept += [event.remarks for event in memory.events if event.remarks and event.id not in keep_events]
    if summary is not None:
        work.kept += [paragraph for paragraph in document.paragraphs() if not log.is_own_summary(paragraph)]
        work.paragraphs = tuple(map(text_hash, document.with_summary(summary).paragraphs()))
    path = brain.tree.relative(brain.tree.short_term)
    if brain.read_text(path) is None:
        return [create(path, str(after))] if str(after) != EMPTY else []
    return [update(path, str(document), str(after))] if str(after) != str(document) else []


def _removed_items(brain: Brain, work: Work, draft: Draft) -> list[Item]:
    """Return the list items that leave short-term memory: facts that were decided on, done goals and tasks."""
    # by text, as items are removed: of two with the same text none is removed while the other stays
    staying = {text for line, text in work.lines.items() if line in work.left} | _pinned(brain, work.memory, draft)
    facts = [item for item in work.memory.facts if item.text not in staying]
    return facts + [item for item in _leaving_items(brain, work.memory) if line_id(item.words) not in work.left]


def _pinned(brain: Brain, memory: ShortTermMemory, draft: Draft) -> set[str]:
    """Return the texts of the last facts that the person pinned, by a line of their own or by `/remember`.

    Each stays as long as a statement has its words: what was corrected or replaced goes, and what a model reworded.
    """
    exchanges, pinned, room = Exchanges(brain), set[str](), PINNED_CHARACTERS
    current = draft.ids_by_words(is_private=False) | draft.ids_by_words(is_private=True)
    # the newest first: they stand below the others
    for item in reversed(memory.facts if brain.settings.promotion.carry_open_items else ()):
        room -= len(item.text)
        if room >= 0 and folded(item.text) in current and _is_by_person(exchanges, draft.log, item, "/remember "):
            pinned.add(item.text)
    return pinned


def _is_by_person(exchanges: Exchanges, log: StatementLog, item: Item, command: str = "") -> bool:
    """Return whether a person wrote an item into the list, or said it in these words, behind this command."""
    sources = [exchanges.said(source) for source in log.sources_of_item(item.text)]
    return not sources or any(f"{command}{item.text}" in said.user for said in sources)


def _leaving_items(brain: Brain, memory: ShortTermMemory) -> list[Item]:
    """Return the goals and tasks that leave short-term memory: done ones, and open ones if the settings say so.

    A done item stays while an open one with the same text stays.
    """
    is_carried = brain.settings.promotion.carry_open_items
    items = (*memory.goals, *memory.tasks)
    open_texts = {item.text.casefold() for item in items if is_carried and not item.is_done}
    return [item for item in items if (item.is_done or not is_carried) and item.text.casefold() not in open_texts]


def _leaving_events(brain: Brain, work: Work, log: StatementLog) -> list[StmEvent]:
    """Return events for the page of the day: one for each list item that leaves, and for thoughts a person changed.

    An item that a process worded is put down as said by the assistant.
    """
    now, exchanges = iso(brain.clock.now()), Exchanges(brain)
    events = []
    for item in _leaving_items(brain, work.memory):
        user, ai = (item.words, "") if _is_by_person(exchanges, log, item) else ("", item.words)
        events.append(StmEvent(line_id(item.words), now, user=user, ai=ai, is_private=item.is_private))
    for event in work.archived:
        if (thoughts := event.thoughts) and not log.are_own_thoughts(thoughts):
            events.append(StmEvent(line_id(thoughts), event.at, user="", ai=thoughts, is_private=event.is_private))
    return events
