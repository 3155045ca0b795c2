"""Promotion from snapshot to commit: consolidate in one call, synthesize pages, write all at once.

What cannot be decided now (somebody came back, a model fails, a person edits the page) stays in the log: only its
candidate and the events behind it.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from brainiac.brain import Brain
from brainiac.clock import is_within, iso, parse_iso
from brainiac.errors import FormatError, ModelError, UserError
from brainiac.events import (
    Breaker,
    CandidateEnd,
    CandidatesRefused,
    Event,
    EventUndone,
    MemoryPromoted,
    PromotionStarted,
    PromptAnswered,
    Refused,
    content_hash,
)
from brainiac.formats.authors import Author, plain_name
from brainiac.formats.discretion import is_private
from brainiac.formats.markdown import without_link_targets
from brainiac.formats.short_term import Item, ShortTermMemory, StmEvent
from brainiac.history.digest import write_digest
from brainiac.history.exchanges import Exchanges
from brainiac.llm.gate import Gate
from brainiac.llm.offline import summarize
from brainiac.llm.schemas import OFFLINE, ConsolidateRequest, SummarizeRequest, Summary
from brainiac.storage.files import locked
from brainiac.storage.links import LinkOrigins, with_rooted_links
from brainiac.storage.said import FiledExchanges, author_on_page, waiting_events
from brainiac.storage.statements import StatementLog, line_id
from brainiac.text.tokens import coverage, likeness

from .apply import Candidate, Step, name_and_order, renew_summary
from .candidates import marked_candidates
from .draft import Draft
from .filing import NAME, n_tokens
from .finish import Work, finish
from .known import StandIns, stand_ins_of
from .paid import PaidAnswers
from .placing import (
    Naming,
    NewPlace,
    Synthesizer,
    checked_step,
    existing_page,
    is_stating,
    new_places,
    proposal_for,
    step_for,
)
from .request import Consolidator, Decision

REST_SECONDS = 60.0
MAX_NAMED = 2  # pages, those that changed most, since each costs a call
# A candidate that shares so many character trigrams with a listed task (of the task's, of both texts') is that task.
TASK_COVERAGE, TASK_LIKENESS = 0.9, 0.5
MAX_SUMMARY = 4000  # characters
MIN_RETIRED = 5  # a young memory may change that many statements without asking


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a promotion did.

    Attributes:
        event: The event of its commit; None when it committed nothing.
        exchanges: The number of exchanges that left short-term memory.
        statements: The number of statements by what was done to them (`NEW`, `UPDATE`, `DELETE`, `REINFORCE`).
        left: The reason for each event that stays in short-term memory for the next run, by event id.
        refused: The operations that were not carried out, with the reason.
        candidates: How each candidate ended, by its id.
        words: The text of each candidate, by its id.
        kept: Remarks of a person beside events and items that left short-term memory; they stay there.
        filed: List items that left short-term memory for the page of the day, word for word.
        problem: Why the run ended early; "" when it did not.
    """

    event: Event | None
    exchanges: int = 0
    statements: dict[str, int] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    refused: Sequence[Refused] = ()
    candidates: Mapping[str, CandidateEnd] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    kept: Sequence[str] = ()
    filed: Sequence[str] = ()
    problem: str = ""


def is_due(brain: Brain, idle_seconds: float) -> bool:
    """Return whether a promotion should run now.

    The event log has to be old, long or large enough (`promotion` in the settings). After an undone promotion nothing
    is due until something new was said.

    Args:
        brain: The brain; its settings are read anew.
        idle_seconds: How long nobody has exchanged anything.
    """
    settings = brain.settings.promotion
    document, filings, gate = brain.short_term(), FiledExchanges(brain), Gate(brain, is_remote=False)
    # the latter were filed without being consolidated
    events, waiting = gate.short_term(document.memory).events, filings.waiting
    if not events and not waiting:
        return False
    last_at = max((filings.filed_at if waiting else "", *(event.at for event in events)))
    if last_at <= _undone_at(brain):
        return False
    if idle_seconds >= settings.idle_seconds:
        if waiting:
            return True
        age_seconds = (brain.clock.now() - parse_iso(min(event.at for event in events))).total_seconds()
        if len(events) >= settings.min_events or age_seconds > settings.max_age_hours * 3600:
            return True
    text = str(document)
    # a token is a character or more: most texts need not be counted
    return len(text) > settings.max_tokens and n_tokens(text) > settings.max_tokens


def _undone_at(brain: Brain) -> str:
    """Return when the last promotion was undone, ISO 8601; "" if it was not undone, or there was none."""
    last = next(brain.journal.events(kinds={MemoryPromoted, EventUndone}, reverse=True), None)
    if last is None or last.kind == MemoryPromoted.kind:
        return ""
    undone = brain.journal.find(str(last.data.get("undone")))
    return last.at if undone and undone.kind == MemoryPromoted.kind else ""


def promote(
    brain: Brain,
    *,
    abandon: Callable[[], bool] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Promote the exchanges that were filed without being consolidated, then the event log of short-term memory.

    Each run takes a bounded number of exchanges; runs follow each other until none waits.

    Args:
        brain: The brain.
        abandon: Called between and within model calls; when it returns true, the run ends with what is decided so far.
        progress: Called with the number of new pages that are written and of those that are to be written.

    Raises:
        ModelError: Nothing could be decided; nothing was changed.
        LockedError: Another process promotes this brain at this moment.
        FormatError: Short-term memory lacks a heading.
    """
    # not waited for: the other process promotes the same exchanges
    with locked(brain.places.state / "promotion.lock", wait_seconds=0):
        outcome = _promote_once(brain, abandon, progress)
        while outcome.event is not None and not outcome.problem and FiledExchanges(brain).waiting:
            next_outcome = _promote_once(brain, abandon, progress)
            outcome = joined(outcome, next_outcome)
            if next_outcome.event is None:
                break  # the exchanges that wait could not be decided now
    if outcome.event is not None:
        write_digest(brain)
    return outcome


def _promote_once(
    brain: Brain, abandon: Callable[[], bool] | None, progress: Callable[[int, int], None] | None
) -> Outcome:
    """Do one run; return an empty outcome where there is nothing to promote."""
    exchanges, removed_ids, is_partial = waiting_events(brain)
    with brain.short_term_lock():
        # what is hidden waits for the person
        memory = Gate(brain, is_remote=False).short_term(brain.short_term().memory)
        snapshot = Snapshot(memory, exchanges, removed_ids, is_partial)
    if not snapshot.memory.events and not exchanges and not removed_ids:
        return Outcome(event=None)
    return Run(brain, snapshot, abandon, progress).run()


def joined(first: Outcome, second: Outcome) -> Outcome:
    """Return the outcome of two runs as one.

    What is left, kept and filed is as the second run says, which began with what the first left; all else is of both.
    """
    return replace(
        second,
        event=second.event or first.event,
        exchanges=first.exchanges + second.exchanges,
        statements=dict(Counter(first.statements) + Counter(second.statements)),
        refused=[*first.refused, *second.refused],
        candidates={**first.candidates, **second.candidates},
        words={**first.words, **second.words},
    )


def has_model(brain: Brain, *, is_private: bool) -> bool:
    """Return whether a model is set that may read exchanges: private ones, or those that are not."""
    return brain.models.engine_for(empty_request(brain, is_private=is_private)).name != OFFLINE


def empty_request(brain: Brain, *, is_private: bool) -> ConsolidateRequest:
    """Return a request without content, by which the gateway says which engine would consolidate."""
    memory = ShortTermMemory()
    return ConsolidateRequest(now=brain.now(), is_private=is_private, said=(), short_term=memory)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a run reads before it decides.

    Attributes:
        memory: Short-term memory.
        filed: The exchanges that were filed without being consolidated, oldest first.
        removed_ids: The ids of filed exchanges that a person has taken out of their pages since.
        is_partial: Whether more filed exchanges wait than one run takes. Short-term memory, which is newer, then waits.
    """

    memory: ShortTermMemory
    filed: Sequence[StmEvent]
    removed_ids: Sequence[str]
    is_partial: bool

    @property
    def promoted(self) -> ShortTermMemory:
        """The part of short-term memory that this run promotes: nothing but the summary when the run is partial."""
        return ShortTermMemory(self.memory.summary) if self.is_partial else self.memory


class Run:
    """One run over a snapshot, from the model calls to the commit.

    Args:
        brain: The brain.
        snapshot: What it decides on.
        abandon: See `promote`.
        progress: See `promote`.
        cause: The id of the event of the catch-up that it is a part of; None for a run of its own.
        unread: The exchanges that a catch-up has still to hand to a model, this run's among them. What was kept of them
            without a model is not shown to it (`known.py`).
    """

    def __init__(
        self,
        brain: Brain,
        snapshot: Snapshot,
        abandon: Callable[[], bool] | None,
        progress: Callable[[int, int], None] | None,
        cause: str | None = None,
        unread: Collection[str] = (),
    ) -> None:
        self._brain, self._abandon, self._progress = brain, abandon, progress
        self._snapshot = snapshot
        memory, now = snapshot.promoted, iso(brain.clock.now())
        exchanges = {event.id: event for event in (*snapshot.filed, *memory.events)}
        self._log = StatementLog(brain, min((event.at for event in exchanges.values()), default=now))
        lines = _own_lines(memory, self._log, FiledExchanges(brain).lines)
        line_events = {id_: StmEvent(id_, now, item.words, is_private=item.is_private) for id_, item in lines.items()}
        self._started = brain.record(PromotionStarted(exchanges=len(exchanges)), by=NAME, cause=cause)
        self._draft = Draft(brain, self._log)
        self._exchanges = Exchanges(brain)
        origins = LinkOrigins(brain, self._log.prompt_of, self._draft.pages.path_by_uuid)
        self._work = Work(
            memory,
            events=exchanges | line_events,
            lines={id_: item.text for id_, item in lines.items()},
            origins=origins,
            filed_ids=frozenset(event.id for event in snapshot.filed),
            removed_ids=snapshot.removed_ids,
        )
        self._answers = PaidAnswers(brain)
        self._stand_ins = stand_ins_of(self._log, unread) if unread else StandIns({})
        self._synthesizer = Synthesizer(brain, self._started.id, abandon, self._work.note_refusal, self._answers)
        self._problem = ""

    def run(self) -> Outcome:
        """Consolidate, summarize and commit; return what was done."""
        try:
            self._consolidate()
            self._apply_breaker()
            self._summarize()
            event = finish(self._brain, self._work, self._draft, self._started.id)
            self._answers.settle()
        except BaseException:
            self._record_endings()
            raise
        if event is None:
            self._record_endings()  # else they are part of the event
        return self._outcome(event)

    def _outcome(self, event: Event | None) -> Outcome:
        """Return what the run did."""
        work = self._work
        outcome = Outcome(
            event,
            left=work.left,
            refused=work.refused,
            candidates=work.endings_by_now(),
            words=work.words,
            problem=self._problem,
        )
        if event is None:
            return outcome
        return replace(
            outcome,
            exchanges=len(work.archived),
            statements=dict(Counter(record["operation"] for record in event.data["statements"])),
            kept=work.kept,
            filed=[event.user or event.ai for event in work.filed if event.id not in work.left],
        )

    def _record_endings(self) -> None:
        """Journal how the candidates ended although the run commits nothing: none was written."""
        work = self._work
        for step in work.steps:
            work.leave(step.candidate, "the run came to nothing")
        work.steps = []
        if work.refused or work.endings:
            refused = CandidatesRefused(refused=tuple(work.refused), candidates=work.endings)
            self._brain.record(refused, by=NAME, cause=self._started.id)

    # --- deciding ---------------------------------------------------------------------------------------

    def _consolidate(self) -> None:
        """Have the model decide on events, one call after the other; keep what is marked in events it may not see.

        Each call sees what the calls before it have changed.
        """
        work, events = self._work, list(self._work.events.values())
        may_see = {is_private: has_model(self._brain, is_private=is_private) for is_private in (False, True)}
        for_model = [event for event in events if may_see[event.is_private]]
        consolidator = self._consolidator()
        decided_before_crash = consolidator.decided_before(events)
        # private exchanges are asked about apart: they may need another model, on this machine
        others, private = ([event for event in for_model if event.is_private == value] for value in (False, True))
        parts = [*consolidator.parts(others), *consolidator.parts(private)]
        try:
            # a model was paid for it: it is carried out, not asked again
            self._carry_out_decision(decided_before_crash)
            while parts:
                decision = consolidator.ask(parts[0], self._draft)
                # taken off only now: where the call fails, this part waits for the next run
                del parts[0]
                self._carry_out_decision(decision)
            self._take_out_stand_ins()
            read_ids = consolidator.read_before(events).keys()
            unread = [event for event in events if event not in for_model and event.id not in read_ids]
            marked = marked_candidates(self._brain, self._draft, unread, work.lines, self._exchanges, work.origins)
            self._carry_out_all(marked)
        except ModelError as error:
            # nothing was decided, so that there is nothing to commit, and the caller has to learn why
            if not work.steps and not work.endings:
                raise
            self._problem = error.problem
            work.left |= {event.id: error.problem for part in parts for event in part}

    def _consolidator(self) -> Consolidator:
        """Return what has the model decide in this run."""
        return Consolidator(
            self._brain,
            log=self._log,
            origins=self._work.origins,
            exchanges=self._exchanges,
            cause=self._started.id,
            short_term=self._snapshot.memory,
            abandon=self._abandon,
            answers=self._answers,
            stand_ins=self._stand_ins,
        )

    def _take_out_stand_ins(self) -> None:
        """Remove the statements that were kept without a model, where a statement of this run has their words."""
        read_ids = self._work.events.keys() - self._work.left.keys()
        # a list, since each step is added to the steps that are looked through
        for step in list(self._stand_ins.steps_to_take_out(self._draft, read_ids, self._work.steps)):
            self._carry_out(step)

    def _carry_out_decision(self, decision: Decision) -> None:
        """Note the refused candidates of a decision for the report, and carry the others out."""
        for refused in decision.refused:
            self._work.refuse(refused.candidate, refused.statement, refused.reason)
        self._carry_out_all(decision.candidates)

    def _carry_out_all(self, candidates: Sequence[Candidate]) -> None:
        """Carry out the candidates for pages that exist, then those for new pages, page by page.

        Raises:
            ModelError: The model cannot serve now, or somebody came back; the other candidates wait for the next run.
        """
        waiting, n_steps = {candidate.id: candidate for candidate in candidates}, len(self._work.steps)
        try:
            places = new_places(self._carry_out_on_pages(waiting))
            for done, place in enumerate(places):
                self._report_progress(done, len(places))
                self._stop_if_abandoned()
                self._begin(place)
                for candidate in place.candidates:
                    del waiting[candidate.id]
            self._report_progress(len(places), len(places))
        except ModelError as error:
            for candidate in waiting.values():
                self._work.leave(candidate, error.problem)
            raise
        self._name_changed(self._work.steps[n_steps:])

    def _carry_out_on_pages(self, waiting: dict[str, Candidate]) -> list[Candidate]:
        """Carry out the candidates for pages that exist, taking them out of `waiting`; return those for new pages."""
        new = []
        for candidate in list(waiting.values()):
            # a model's decisions are paid for and carried out to the end; marked words can wait for the next run
            if candidate.operation.marked_by:
                self._stop_if_abandoned()
            step = self._step_for(candidate)
            if step and not step.path:
                new.append(step.candidate)
                continue
            del waiting[candidate.id]
            if step:
                self._carry_out(step)
        return new

    def _report_progress(self, done: int, total: int) -> None:
        if self._progress:
            self._progress(done, total)

    def _stop_if_abandoned(self) -> None:
        """Raise `ModelError` where a person exchanges something again: their answer comes first."""
        if self._abandon and self._abandon():
            raise ModelError("somebody came back", retryable=True)

    @contextmanager
    def _ended_on_error(self, *candidates: Candidate) -> Iterator[None]:
        """Leave or refuse candidates where the block raises; the others of the run go on."""
        try:
            yield
        except (FormatError, OSError) as error:  # the next run may find the files in order
            for candidate in candidates:
                self._work.leave(candidate, str(error))
        except (UserError, ValueError) as error:  # no later run can do it either
            for candidate in candidates:
                self._work.refuse(candidate.id, candidate.words, str(error), candidate.model)

    def _step_for(self, candidate: Candidate) -> Step | None:
        """Return the step that carries a candidate out, without a path where its page is new.

        None where the candidate is left or refused.
        """
        with self._ended_on_error(candidate):
            # what a person marked is kept in any case
            if not candidate.operation.marked_by and self._is_listed(candidate):
                raise UserError("it stands in the list of tasks, and stays there until it is done")
            step = checked_step(self._log, step_for(self._draft, self._with_origin(candidate)))
            return step if step.path else replace(step, path=existing_page(self._draft, step.candidate))
        return None  # `_ended_on_error` has noted the error

    def _is_listed(self, candidate: Candidate) -> bool:
        """Return whether a candidate states a task that short-term memory lists, open or done."""
        brain, statement = self._brain, without_link_targets(candidate.words)
        folders = [brain.tree.relative(folder) for folder in (brain.tree.inbox, brain.tree.memory)]
        for item in self._snapshot.memory.tasks:
            task = without_link_targets(with_rooted_links(brain, item.text, folders))
            if coverage(task, statement) >= TASK_COVERAGE and likeness(task, statement) >= TASK_LIKENESS:
                return True
        return False

    def _with_origin(self, candidate: Candidate) -> Candidate:
        """Return a candidate with its author, and a text and steps that end with it, as in `… (assistant: gpt-4o)`.

        One that rests on the person's own words stays as it is, and so do the words of a note that is kept whole.
        """
        operation = candidate.operation
        if not operation.text or candidate.origin == "person":
            return candidate
        by, path = self._source_of(candidate)
        is_linked = candidate.origin == "import" and path
        mark = Author(candidate.origin, by).mark(f"[{posixpath.basename(path)}](/{path})" if is_linked else "")
        if not operation.page.is_whole:
            marked = {"text": operation.text + mark, "steps": [step + mark for step in operation.steps]}
            operation = operation.model_copy(update=marked)
        return replace(candidate, operation=operation, author=by)

    def _source_of(self, candidate: Candidate) -> tuple[str, str]:
        """Return who said a candidate's words, "" where that is unknown, and the file that has them, "" for none."""
        event = next((event for event in candidate.events if event.origin == candidate.origin), candidate.events[-1])
        exchange, recorded = self._exchanges.texts_of(event.id), self._exchanges.what(event.id)
        # of an exchange that was imported there is no event: its page is the file
        path = recorded.prompt if recorded else FiledExchanges(self._brain).page_of(event.id)
        authors = [event.author, *([exchange.prompt.author] if exchange else []), author_on_page(self._brain, path)]
        if by := next((author.by for author in authors if author.origin == candidate.origin and author.by), ""):
            return by, path
        if candidate.origin == "assistant":  # the answer's own words, here or in an imported conversation
            model = recorded.model if isinstance(recorded, PromptAnswered) else ""
            return plain_name(model) or authors[-1].by, path
        return plain_name(posixpath.basename(path)), path

    # --- on pages ---------------------------------------------------------------------------------------

    def _begin(self, place: NewPlace) -> None:
        """Have a new page named, and carry out the candidates that go there."""
        path, naming = "", None
        with self._ended_on_error(*place.candidates):
            path, naming = self._synthesizer.path_and_naming(self._draft, place)
        if not path:
            return
        for candidate in place.candidates:
            if naming and candidate.operation.steps:
                steps = naming.in_order(candidate.operation.steps)
                candidate = replace(candidate, operation=candidate.operation.model_copy(update={"steps": steps}))
            self._carry_out(Step(candidate, path))
        if naming:
            self._name(path, naming)

    def _name_changed(self, steps: Sequence[Step]) -> None:
        """Have a model name the pages that these steps changed most, and order their statements.

        Where the model fails, a page keeps its name and order: that is no reason to lose the steps.
        """
        n_statements = Counter(step.path for step in steps if is_stating(step) and step.path not in self._work.namings)
        calls = 0
        for path, _ in n_statements.most_common():
            if calls == MAX_NAMED:
                break
            with suppress(ModelError, UserError, ValueError, OSError):
                steps_here = [step for step in steps if step.path == path]
                if naming := self._synthesizer.naming_of(self._draft, path, steps_here):
                    calls += 1
                    self._name(path, naming)
        for path in n_statements:
            renew_summary(self._draft, path)

    def _name(self, path: str, naming: Naming) -> None:
        """Give a page the name and order that synthesis found."""
        self._work.namings[path] = naming
        records = chain.from_iterable(self._work.records)
        name_and_order(self._draft, path, naming.answer, naming.order(records))

    def _carry_out(self, step: Step) -> None:
        """Carry a step out; leave its candidate where a page is being edited, refuse it where it cannot be done."""
        with self._ended_on_error(step.candidate):
            if edited := next((path for path in step.paths if self._is_being_edited(path)), ""):
                self._work.leave(step.candidate, f"{edited} was edited a moment ago")
                return
            self._work.carry_out(self._brain, self._draft, step)

    def _is_being_edited(self, path: str) -> bool:
        """Return whether a person changed a page within the last minute."""
        touched = self._log.touched_at(path)
        if touched and is_within(REST_SECONDS, touched, self._brain.clock.now()):
            return True
        text = self._brain.read_page(path)
        if text is None or self._brain.observed.hash_of(path) in (None, content_hash(text.encode())):
            return False
        self._brain.observed.note_change(path)  # without a daemon nobody noted the edit: the minute begins now
        return True

    def _apply_breaker(self) -> None:
        """Where a run would retire too large a share of memory, propose the retirements to the person instead."""
        work = self._work
        retiring = [step for step in work.steps if step.retires]
        n_statements = self._draft.n_statements()
        share = self._brain.settings.promotion.max_retired_share
        if len(retiring) <= MIN_RETIRED or len(retiring) <= share * n_statements:
            return
        # one run that retires much is more often a model's mistake than news: the person decides
        work.breaker = Breaker(would_retire=len(retiring), statements=n_statements)
        # all that states something new is still done; only the retirements wait
        steps = [replace(step, proposal=proposal_for(step)) if step.retires else step for step in work.steps]
        self._draft = self._draft.restarted()
        work.rebuild(self._brain, self._draft, steps)

    def _summarize(self) -> None:
        """Have a model write the summary of short-term memory; without a model the old one stays."""
        work = self._work
        if self._problem or self._snapshot.is_partial:  # in a partial run short-term memory waits
            return
        remaining = [event for event in work.memory.events if event.id in work.left]
        request = SummarizeRequest(
            now=self._brain.now(),
            cause=self._started.id,
            abandon=self._abandon,
            # the summary has no private mark, so that nothing private may get into it
            remaining=[event for event in remaining if not event.is_private],
            archived=[event for event in work.archived if not event.is_private],
            titles=self._titles(),
        )
        if not request.remaining:  # there is nothing to be put into words
            work.summary, work.summarized_by = summarize(request), OFFLINE
            return
        try:
            summary = self._brain.models.run(request)
        except ModelError as error:
            self._problem = error.problem
            return
        assert isinstance(summary, Summary)
        work.summary = summary.text[:MAX_SUMMARY]
        work.summarized_by = self._brain.models.engine_for(request).name

    def _titles(self) -> list[str]:
        """Return the titles of the pages that this run changed, private ones excepted."""
        memories = (self._draft.page_drafts[step.path].document.memory for step in self._work.steps)
        return [memory.title for memory in memories if not is_private(memory.meta)]


def _own_lines(memory: ShortTermMemory, log: StatementLog, done: Collection[str]) -> dict[str, Item]:
    """Return the lines that a person wrote under Key Facts, by id: each is promoted like an exchange.

    Lines that Reflection noted there from an exchange are left out: the exchange itself is promoted. So are those whose
    ids are `done`: they were promoted and are still pinned.
    """
    lines = {line_id(item.words): item for item in memory.facts}
    return {name: item for name, item in lines.items() if name not in done and not log.sources_of_item(item.text)}
