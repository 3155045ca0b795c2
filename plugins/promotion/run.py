"""Promotion from snapshot to commit: consolidate in one call, synthesize pages, write all at once.

The commit is retried on the files as they stand when somebody saved one meanwhile. Each candidate ends as written,
proposed, left or refused, in the journal and in the run's report. What cannot be decided now (somebody came back, a
model fails, a person edits the page) stays in the log: only its candidate and the events behind it.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import is_within, iso, parse_iso
from brainiac.errors import ConflictError, FormatError, ModelError, UserError
from brainiac.formats.authors import PERSON, Author, plain_name
from brainiac.formats.discretion import Audience, is_private, is_private_event
from brainiac.formats.markdown import one_line, without_link_targets
from brainiac.formats.short_term import EMPTY, Item, ShortTermDocument, ShortTermMemory, StmEvent
from brainiac.history.digest import write_digest
from brainiac.history.exchanges import Exchanges
from brainiac.history.why import folded
from brainiac.llm.catalog import count
from brainiac.llm.gate import Gate
from brainiac.llm.offline import summarize
from brainiac.llm.schemas import OFFLINE, ConsolidateRequest, SummarizeRequest, Summary
from brainiac.storage.database import PAID
from brainiac.storage.files import locked
from brainiac.storage.links import LinkOrigins, with_rooted_links
from brainiac.storage.review import Records, asking
from brainiac.storage.said import FiledExchanges, WaitingExchanges, author_on_page, waiting_events
from brainiac.storage.statements import StatementLog, event_hash, line_id, text_hash
from brainiac.text.tokens import coverage, ends_as_question, likeness, words

from . import placing
from .apply import Candidate, carry_out, name_and_order
from .candidates import REPEATED, marked_candidates, other_tellings
from .checks import TASKS, comparable
from .draft import NOWHERE, MemoryDraft
from .filing import NAME, add_exchanges
from .known import steps_to_take_out
from .request import Calls, Consolidator, open_tasks
from .verify import FOLLOWS, read_again

REST_SECONDS = 60.0
MAX_NAMED = 2  # pages, those that changed most, since each costs a call
# A candidate that shares so many character trigrams with a listed task (of the task's, of both texts') is that task.
TASK_COVERAGE, TASK_LIKENESS = 0.9, 0.5
MAX_SUMMARY = 4000  # characters
MAX_RETIRED_SHARE = 0.2  # of the memory's statements in one run
MIN_RETIRED = 5  # a young memory may change that many statements without asking
ATTEMPTS = 10
_VERDICTS = {"does not": "what was said does not say this", "cannot tell": "what was said may not say this"}
PINNED_CHARACTERS = 2_000  # of pinned facts, which every working memory has: some 500 tokens
MAX_QUOTED = 300  # characters of a text in the event or in a line of `review.md`; the whole text stands in the tree
Abandon = Callable[[], bool]  # see `promote`
NEAR = 0.55  # the cosine, by the embedder on this machine, from which on it is asked (docs/decisions/keyless-engine.md)


@dataclass(slots=True)
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

    event: events.Event | None = None
    exchanges: int = 0
    statements: dict[str, int] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    refused: list[events.Refused] = field(default_factory=list)
    candidates: dict[str, events.CandidateEnd] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    filed: list[str] = field(default_factory=list)
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
    document, filings, gate = brain.short_term(), FiledExchanges(brain), Gate(brain, Audience.HERE)
    # the latter were filed without being consolidated
    logged, waiting = gate.short_term(document.memory).events, filings.waiting
    if not logged and not waiting:
        return False
    # when the last promotion was undone; "" if it was not, or there was none
    undone_at, kinds = "", {events.MemoryPromoted, events.EventUndone}
    last = next(brain.journal.events(kinds=kinds, reverse=True), None)
    if last and isinstance(last.what, events.EventUndone):
        undone = brain.journal.find(last.what.undone)
        undone_at = last.at if undone and undone.kind == events.MemoryPromoted.kind else ""
    if max((filings.filed_at if waiting else "", *(event.at for event in logged))) <= undone_at:
        return False
    if idle_seconds >= settings.idle_seconds:
        if waiting:
            return True
        age_seconds = (brain.clock.now() - parse_iso(min(event.at for event in logged))).total_seconds()
        if len(logged) >= settings.min_events or age_seconds > settings.max_age_hours * 3600:
            return True
    text = str(document)
    # a token is a character or more: most texts need not be counted
    return len(text) > settings.max_tokens and count(text) > settings.max_tokens


def promote(brain: Brain, *, abandon: Abandon | None = None) -> Outcome:
    """Promote the exchanges that were filed without being consolidated, then the event log of short-term memory.

    Each run takes a bounded number of exchanges; runs follow each other until none waits.

    Args:
        brain: The brain.
        abandon: Called between and within model calls; when it returns true, the run ends with what is decided so far.

    Raises:
        ModelError: Nothing could be decided; nothing was changed.
        LockedError: Another process promotes this brain at this moment.
        FormatError: Short-term memory lacks a heading.
    """
    # not waited for: the other process promotes the same exchanges
    with locked(brain.places.state / "promotion.lock", wait_seconds=0):
        outcome = _promote_once(brain, abandon)
        while outcome.event is not None and not outcome.problem and FiledExchanges(brain).waiting:
            next_outcome = _promote_once(brain, abandon)
            outcome = joined(outcome, next_outcome)
            if next_outcome.event is None:
                break  # the exchanges that wait could not be decided now
    if outcome.event is not None:
        write_digest(brain)
    return outcome


def _promote_once(brain: Brain, abandon: Abandon | None) -> Outcome:
    """Do one run; return an empty outcome where there is nothing to promote."""
    filed = waiting_events(brain)
    with brain.short_term_lock():
        memory = brain.short_term().memory
        # what is hidden waits for the person; the summary is replaced, whatever of it is hidden
        shown = replace(Gate(brain, Audience.HERE).short_term(memory), summary=memory.summary)
    if not shown.events and not filed.events and not filed.removed:
        return Outcome()
    return Run(brain, shown, filed, abandon).run()


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


def empty_request(brain: Brain, *, is_private: bool) -> ConsolidateRequest:
    """Return a request without content, by which the gateway says which engine would consolidate."""
    return ConsolidateRequest(now=brain.now(), is_private=is_private, said=(), short_term=ShortTermMemory())


def readers(brain: Brain) -> dict[bool, bool]:
    """Return whether a model is set that may read exchanges: those that are private (`True`), and the others."""
    requests = {is_private: empty_request(brain, is_private=is_private) for is_private in (False, True)}
    return {is_private: brain.models.engine_for(request).name != OFFLINE for is_private, request in requests.items()}


class Run:
    """One run over a snapshot, from the model calls to the commit.

    Whoever makes one has begun it: `PromotionStarted` is recorded, the cause of its calls and of its commit.

    Args:
        brain: The brain.
        short_term: Short-term memory as it was read.
        filed: The exchanges that were filed without being consolidated. Where more wait than one run takes, short-term
            memory, which is newer, waits too.
        abandon: See `promote`.
        cause: The id of the event of the catch-up that it is a part of; None for a run of its own.
        unread: The exchanges that a catch-up has still to hand to a model, this run's among them. What was kept of them
            without a model is not shown to it (`known.py`).
    """

    def __init__(
        self,
        brain: Brain,
        short_term: ShortTermMemory,
        filed: WaitingExchanges,
        abandon: Abandon | None = None,
        cause: str | None = None,
        unread: Collection[str] = (),
    ) -> None:
        self._brain, self._short_term_now, self._filed = brain, short_term, filed
        memory = ShortTermMemory(short_term.summary) if filed.is_partial else short_term  # what is promoted of it
        now, exchanges = iso(brain.clock.now()), {event.id: event for event in (*filed.events, *memory.events)}
        self._log = StatementLog(brain)
        # A person's own lines under Key Facts are promoted like exchanges: not those that Reflection noted there from
        # an exchange, which is itself promoted, nor those that were promoted and are still pinned.
        lines, done = {line_id(item.words): item for item in memory.facts}, FiledExchanges(brain).lines
        lines = {
            name: item for name, item in lines.items() if name not in done and not self._log.sources_of_item(item.text)
        }
        line_events = {id_: StmEvent(id_, now, item.words, is_private=item.is_private) for id_, item in lines.items()}
        self._started = brain.record(events.PromotionStarted(exchanges=len(exchanges)), by=NAME, cause=cause)
        self._draft = MemoryDraft(brain, self._log)
        self._exchanges = Exchanges(brain)
        self._origins = LinkOrigins(brain, self._log.prompt_of, self._draft.pages.path_by_uuid)
        self._memory, self._said = memory, exchanges | line_events
        self._lines = {id_: item.text for id_, item in lines.items()}
        # the results by now; `Outcome` and `MemoryPromoted` say what is not said here
        self._out, self._left = (out := Outcome()), out.left
        self._steps: list[Candidate] = []  # that were carried out
        self._records: list[list[events.StatementRecord]] = []  # of each step
        self._namings: dict[str, placing.Naming] = {}  # by path of the page
        self._endings: dict[str, events.CandidateEnd] = {}  # of the candidates without a step
        self._summary: str | None = None  # None keeps the old one
        self._summarized_by: str | None = None
        self._paragraphs: tuple[str, ...] = ()
        self._doubted: list[tuple[Candidate, events.ProposalRecord]] = []  # what is held back
        self._tasks: list[Candidate] = []  # that open, tick or drop a task
        self._breaker: events.Breaker | None = None
        # statements that rest on nothing but exchanges which no model has read
        made_without_model = self._log.made_by(OFFLINE).items() if unread else ()
        self._stand_ins = {place: ids for place, ids in made_without_model if set(ids) <= set(unread)}
        self._calls = Calls(brain, self._started.id, abandon)
        self._consolidator = Consolidator(
            self._calls, self._log, self._origins, short_term, self._stand_ins, is_past=cause is not None
        )

    def run(self) -> Outcome:
        """Consolidate, summarize and commit; return what was done."""
        out = self._out
        try:
            self._consolidate()
            self._apply_breaker()
            self._summarize()
            out.event = self._finish()
            self._brain.database.keep_only(PAID, {})
        except BaseException:
            self._record_endings()
            raise
        if out.event is None:
            self._record_endings()  # else they are part of the event
        else:
            out.exchanges = len(self._archived)
            out.statements = dict(Counter(record["operation"] for record in out.event.data["statements"]))
        out.candidates = self._endings_by_now
        return out

    def _record_endings(self) -> None:
        """Journal how the candidates ended although the run commits nothing: none was written."""
        for step in self._steps:
            self._leave(step, "the run came to nothing")
        for candidate in (*(candidate for candidate, _ in self._doubted), *self._tasks):
            self._leave(candidate, "the run came to nothing")
        self._steps = []
        if self._out.refused or self._endings:
            refused = events.CandidatesRefused(refused=tuple(self._out.refused), candidates=self._endings)
            self._brain.record(refused, by=NAME, cause=self._started.id)

    # --- deciding ---------------------------------------------------------------------------------------

    def _consolidate(self) -> None:
        """Have the model decide on events, one call after the other; keep what is marked in events it may not see.

        Each call sees what the calls before it have changed.
        """
        said = list(self._said.values())
        may_see = readers(self._brain)
        for_model = [event for event in said if may_see[event.is_private]]
        consolidator = self._consolidator
        decided_before_crash = consolidator.decided_before(said)
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
            # a list, since each step is added to the steps that are looked through
            decided_ids = self._said.keys() - self._left.keys()
            for step in list(steps_to_take_out(self._stand_ins, self._draft, decided_ids, self._steps)):
                self._carry_out(step)
            read_ids = consolidator.read_before(said).keys()
            unread = [event for event in said if event not in for_model and event.id not in read_ids]
            marked = marked_candidates(self._brain, self._draft, unread, self._lines, self._origins)
            self._carry_out_all(marked)
        except ModelError as error:
            # nothing was decided, so that there is nothing to commit, and the caller has to learn why
            if not self._steps and not self._endings:
                raise
            self._out.problem = error.problem
            self._left.update({event.id: error.problem for part in parts for event in part})

    def _carry_out_decision(self, decision: Sequence[Candidate | events.Refused]) -> None:
        """Note the refused candidates of a decision for the report, and carry the others out."""
        for refused in (row for row in decision if isinstance(row, events.Refused)):
            self._refuse(refused.candidate, refused.statement, refused.reason)
        candidates = [row for row in decision if isinstance(row, Candidate)]
        for candidate in candidates:
            if candidate.operation.action in TASKS:
                self._note_task(candidate)
        self._carry_out_all([candidate for candidate in candidates if candidate.operation.action not in TASKS])

    def _founded(self, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """Yield the candidates that neither a check nor a second reader doubts; the others wait for the person.

        Raises:
            ModelError: It cannot serve now.
        """
        for candidate in (row for row in candidates if row.operation.is_doubted):
            self._hold_back(candidate, f"a check: {candidate.operation.reasoning}")
        candidates = [row for row in candidates if not row.operation.is_doubted]
        verdicts = read_again(self._calls, candidates, self._draft, self._consolidator.origin_of)
        for candidate in candidates:
            verdict, model = verdicts.get(candidate.id, (None, ""))
            if verdict is None or verdict.verdict == FOLLOWS:
                yield replace(candidate, verified_by=model)
            else:
                reason = f"a second reader ({model}): {_VERDICTS.get(verdict.verdict, verdict.verdict)}"
                self._hold_back(candidate, f"{reason}: {verdict.reason}" if verdict.reason else reason)

    def _note_task(self, candidate: Candidate) -> None:
        """Note what is to become of a task when the run commits.

        One that is listed in the same words, in whatever order, open or done, is not opened again: a likeness is not
        enough, as the same on another day is another task. What follows from a private exchange stays within it: the
        lists are open.
        """
        if candidate.is_private:
            self._refuse(candidate.id, "", "what is private opens and ends no task", candidate.model)
            return
        is_opening = candidate.operation.action == "open"
        listed = [sorted(words(without_link_targets(item.text))) for item in self._short_term_now.tasks]
        if not (is_opening and sorted(words(without_link_targets(candidate.words))) in listed):
            self._tasks.append(self._with_origin(candidate) if is_opening else candidate)
        self._end(candidate.id, candidate.words, "task", "")

    def _hold_back(self, candidate: Candidate, reason: str) -> None:
        """Have a person decide on a candidate: nothing is written, and what it would change stands as it was."""
        step = self._step_for(candidate)
        if step is None:
            return
        with self._ended_on_error(candidate):
            if step.operation.action == "same":
                raise UserError(f"it says nothing new; {reason}")
            path, begun = step.path, self._draft.new_pages.get(step.path)
            if not path:  # it is not begun: nothing of this may get onto a page
                path, begun = placing.new_page(self._draft, step, self._note_refusal)
            page = self._draft.page(path)
            title = page.memory.title if page else begun.title if begun else ""
            proposal = placing.held_back(self._draft, step, path, title, reason[:MAX_QUOTED])
            self._doubted.append((candidate, proposal))
            self._end(candidate.id, candidate.words, "proposed", reason)

    def _carry_out_all(self, candidates: Sequence[Candidate]) -> None:
        """Carry candidates out, each on the pages as those before it left them; then have much changed pages named.

        Raises:
            ModelError: The model cannot serve now, or somebody came back; the other candidates wait for the next run.
        """
        waiting, n_steps = {candidate.id: candidate for candidate in candidates}, len(self._steps)
        try:
            waiting = {candidate.id: candidate for candidate in self._founded(candidates)}
            for candidate in list(waiting.values()):
                # a model's decisions are paid for and carried out to the end; marked words can wait for the next run
                if candidate.operation.marked_by:
                    self._calls.stop_if_abandoned()
                if step := self._step_for(candidate):
                    self._carry_out(step)
                del waiting[candidate.id]
        except ModelError as error:
            for candidate in waiting.values():
                self._leave(candidate, error.problem)
            raise
        self._name_changed(self._steps[n_steps:])

    @contextmanager
    def _ended_on_error(self, candidate: Candidate) -> Iterator[None]:
        """Leave or refuse a candidate where the block raises; the others of the run go on."""
        try:
            yield
        except (FormatError, OSError) as error:  # the next run may find the files in order
            self._leave(candidate, str(error))
        except (UserError, ValueError) as error:  # no later run can do it either
            self._refuse(candidate.id, candidate.words, str(error), candidate.model)

    def _step_for(self, candidate: Candidate) -> Candidate | None:
        """Return the step that carries a candidate out, without a path where its page is new.

        None where the candidate is left or refused.
        """
        brain, statement = self._brain, without_link_targets(candidate.words)
        folders = [brain.tree.relative(folder) for folder in (brain.tree.inbox, brain.tree.memory)]
        with self._ended_on_error(candidate):
            # a task that short-term memory lists, open or done; what a person marked is kept in any case
            for item in () if candidate.operation.marked_by else self._short_term_now.tasks:
                task = without_link_targets(with_rooted_links(brain, item.text, folders))
                if coverage(task, statement) >= TASK_COVERAGE and likeness(task, statement) >= TASK_LIKENESS:
                    raise UserError("it stands in the list of tasks, and stays there until it is done")
            step = placing.checked_step(self._log, placing.step_for(self._draft, self._with_origin(candidate)))
            return step if step.path else replace(step, path=placing.page_for(self._draft, step))
        return None  # `_ended_on_error` has noted the error

    def _with_origin(self, candidate: Candidate) -> Candidate:
        """Return a candidate with its author, and a text and steps that end with it, as in `… (assistant: gpt-4o)`.

        One that rests on the person's own words stays as it is, and so do the words of a note that is kept whole.
        """
        operation = candidate.operation
        if not operation.text or candidate.origin == "person":
            return candidate
        event = next((event for event in candidate.events if event.origin == candidate.origin), candidate.events[-1])
        exchange, recorded = self._exchanges.texts_of(event.id), self._exchanges.what(event.id)
        # of an exchange that was imported there is no event: its page is the file
        path = recorded.prompt if recorded else FiledExchanges(self._brain).page_of(event.id)
        authors = [event.author, *([exchange.prompt.author] if exchange else []), author_on_page(self._brain, path)]
        by = next((author.by for author in authors if author.origin == candidate.origin and author.by), "")
        if not by and candidate.origin == "assistant":  # the answer's own words, here or in an imported conversation
            model = recorded.model if isinstance(recorded, events.PromptAnswered) else ""
            by = plain_name(model) or authors[-1].by
        elif not by:
            by = plain_name(posixpath.basename(path))
        is_linked = candidate.origin == "import" and path
        mark = Author(candidate.origin, by).mark(f"[{posixpath.basename(path)}](/{path})" if is_linked else "")
        if not operation.page.is_whole:
            candidate = candidate.of(text=operation.text + mark, steps=[step + mark for step in operation.steps])
        return replace(candidate, author=by)

    # --- on pages ---------------------------------------------------------------------------------------

    def _name_changed(self, steps: Sequence[Candidate]) -> None:
        """Have a model name the pages that these steps changed most, and order their statements.

        Where the model fails, a page keeps its name and order: that is no reason to lose the steps.
        """
        n_statements = Counter(step.path for step in steps if step.is_stating and step.path not in self._namings)
        calls = 0
        for path, _ in n_statements.most_common():
            with suppress(ModelError, UserError, ValueError, OSError):
                steps_here = [step for step in steps if step.path == path]
                records = chain.from_iterable(self._records)
                if calls < MAX_NAMED and (
                    naming := placing.naming_of(self._calls, self._draft, path, steps_here, records)
                ):
                    calls += 1
                    self._name(path, naming)

    def _name(self, path: str, naming: placing.Naming) -> None:
        """Give a page the name and order that synthesis found."""
        self._namings[path] = naming
        name_and_order(self._draft, path, *naming)

    def _carry_out(self, step: Candidate) -> None:
        """Carry a step out; leave its candidate where a page is being edited, refuse it where it cannot be done."""
        with self._ended_on_error(step):
            if not step.path:
                path, page = placing.new_page(self._draft, step, self._note_refusal)
                self._draft.new_pages[path], step = page, replace(step, path=path)
            if edited := next(filter(self._is_being_edited, step.paths), ""):
                self._leave(step, f"{edited} was edited a moment ago")
            else:
                self._do(step)

    def _is_being_edited(self, path: str) -> bool:
        """Return whether a person changed a page within the last minute."""
        touched = self._log.touched_at(path)
        if touched and is_within(REST_SECONDS, touched, self._brain.clock.now()):
            return True
        text = self._brain.read_page(path)
        if text is None or self._brain.observed.hash_of(path) in (None, events.content_hash(text.encode())):
            return False
        self._brain.observed.note_change(path)  # without a daemon nobody noted the edit: the minute begins now
        return True

    def _apply_breaker(self) -> None:
        """Where a run would retire too large a share of memory, propose the retirements to the person instead."""
        retiring = [step for step in self._steps if step.retires]
        n_statements = sum(len(page.current_statements) for page in self._draft.pages.memories.values())
        if len(retiring) <= MIN_RETIRED or len(retiring) <= MAX_RETIRED_SHARE * n_statements:
            return
        # one run that retires much is more often a model's mistake than news: the person decides
        self._breaker = events.Breaker(would_retire=len(retiring), statements=n_statements)
        # all that states something new is still done; only the retirements wait
        steps = [replace(step, proposal=placing.proposal_for(step)) if step.retires else step for step in self._steps]
        self._do_again(steps)

    def _summarize(self) -> None:
        """Have a model write the summary of short-term memory; without a model the old one stays."""
        if self._out.problem or self._filed.is_partial:  # in a partial run short-term memory waits
            return
        remaining = [event for event in self._memory.events if event.id in self._left]
        changed = (self._draft.opened(step.path).memory for step in self._steps)
        request = self._calls.request(
            SummarizeRequest,
            # the summary has no private mark, so that nothing private may get into it, nor the title of a private page
            remaining=[event for event in remaining if not event.is_private],
            archived=[event for event in self._archived if not event.is_private],
            titles=[memory.title for memory in changed if not is_private(memory.meta)],
        )
        if not request.remaining:  # there is nothing to be put into words
            self._summary, self._summarized_by = summarize(request), OFFLINE
            return
        try:
            summary = self._brain.models.run(request)
        except ModelError as error:
            self._out.problem = error.problem
            return
        assert isinstance(summary, Summary)
        self._summary = summary.text[:MAX_SUMMARY]
        self._summarized_by = self._calls.model_for(request)

    # --- results ---------------------------------------------------------------------------------------

    @property
    def _archived(self) -> list[StmEvent]:
        """The events that are decided and leave short-term memory."""
        return [event for event in self._said.values() if event.id not in self._left]

    def _do(self, step: Candidate) -> None:
        """Carry a step out on the draft, whole or not at all.

        Raises:
            FormatError: Its target or page was changed meanwhile, or `review.md` cannot take its proposal.
        """
        if step.proposal:
            # raises where no proposal can be written there
            self._brain.read_page(self._brain.tree.relative(self._brain.tree.review))
        with self._draft.step():
            self._records.append(carry_out(self._draft, step))
        self._steps.append(step)
        self._out.words[step.id] = step.words

    def _do_again(self, steps: Sequence[Candidate]) -> None:
        """Carry steps out on the pages as they are now; the candidate of one that no longer fits its page is left."""
        self._draft = MemoryDraft(self._brain, self._log, self._draft.new_pages)  # on the pages as they are now
        self._steps, self._records = [], []
        for step in steps:
            try:
                self._do(step)
            except FormatError as error:
                self._leave(step, str(error))
        for path, naming in self._namings.items():
            self._name(path, naming)

    def _leave(self, candidate: Candidate, reason: str) -> None:
        """Keep a candidate and the events it rests on for the next run."""
        self._left.update({event.id: reason for event in candidate.events if event.id in self._said})
        self._end(candidate.id, candidate.words, "left", reason)

    def _refuse(self, candidate: str, statement: str, reason: str, model: str = "") -> None:
        """Note that a candidate is refused for good; it is given by its id, with what it states."""
        self._end(candidate, statement, "refused", reason)
        self._note_refusal(statement, reason, model, candidate)

    def _note_refusal(self, statement: str, reason: str, model: str, candidate: str = "") -> None:
        """Note an operation that was not carried out, and why."""
        refused = events.Refused(candidate=candidate, statement=statement[:300], reason=reason[:300], model=model)
        self._out.refused.append(refused)

    def _end(self, candidate: str, words: str, end: str, reason: str) -> None:
        """Note how a candidate without a step ended."""
        self._out.words[candidate] = words
        self._endings[candidate] = events.CandidateEnd(end=end, reason=reason[:300])

    @property
    def _endings_by_now(self) -> dict[str, events.CandidateEnd]:
        """How every candidate ended, with those of the steps as written or proposed."""
        by_step = {step.id: "proposed" if step.proposal else "written" for step in self._steps}
        return self._endings | {candidate: events.CandidateEnd(end=end) for candidate, end in by_step.items()}

    # --- the commit ------------------------------------------------------------------------------------

    def _finish(self) -> events.Event | None:
        """Commit the results; candidates of a page that a person edits meanwhile wait for the next run.

        Returns:
            The event; None where there was nothing to commit.

        Raises:
            ConflictError: In each of `ATTEMPTS` attempts somebody saved a file of the commit.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._commit()
            except ConflictError as error:
                # somebody saved one of the files: the steps on it wait, all others are tried again at once
                for step in self._steps:
                    if not step.paths.isdisjoint(error.paths):
                        self._leave(step, f"{step.path} was edited meanwhile")
                self._do_again([step for step in self._steps if step.paths.isdisjoint(error.paths)])
        raise ConflictError([self._brain.tree.relative(self._brain.tree.short_term)])

    def _commit(self) -> events.Event | None:
        """Put the exchanges on their pages and commit all changes at once; None where there are none.

        Raises:
            ConflictError: Somebody saved a file of the commit meanwhile.
        """
        self._out.kept, self._out.filed = [], []
        filed_ids = {event.id for event in self._filed.events}
        exchanges = [event for event in self._archived if event.id not in filed_ids]
        pages = add_exchanges(self._brain, self._draft, exchanges, self._origins, self._left)
        if not self._steps and not self._archived and not self._filed.removed:
            return None
        # events for the page of the day: one for each list item that leaves, and for thoughts a person changed; an item
        # that a process worded is put down as said by the assistant
        now, leaving = iso(self._brain.clock.now()), list[StmEvent]()
        for item in self._leaving_items():
            user, ai = (item.words, "") if self._is_by_person(item) else ("", item.words)
            leaving.append(StmEvent(line_id(item.words), now, user=user, ai=ai, is_private=item.is_private))
        for event in self._archived:
            if (text := event.thoughts) and not self._log.are_own_thoughts(text):
                leaving.append(StmEvent(line_id(text), event.at, user="", ai=text, is_private=event.is_private))
        for path, ids in add_exchanges(self._brain, self._draft, leaving, self._origins, self._left).items():
            pages.setdefault(path, []).extend(ids)
        self._out.filed = [event.user or event.ai for event in leaving if event.id not in self._left]
        kept = ((step, record) for step, (record, *_) in zip(self._steps, self._records, strict=True))
        held_back = [proposal for _, proposal in self._doubted]
        asked = [*self._proposals(), *held_back, *_replacements(self._brain, self._draft, kept)]
        mentions = self._draft.finish()
        # a step's page, and a page whose title is in the step's text: index pages link them
        related = dict.fromkeys(
            (step.path, named.path)
            for step in self._steps
            if (page := self._draft.page(step.path))  # else a stand-in was all that stood on it
            for named, _ in mentions.in_text(page.memory, step.operation.text)
        )
        changes = self._draft.changes(indexes="entries", related=related)
        proposals, added = asking(self._brain, asked)
        changes += added
        # not locked before: while the models were called, Reflection had to be able to note exchanges
        with self._brain.short_term_lock():
            changes += self._short_term()
            promoted = self._event(pages, proposals, leaving)
            return self._brain.commit(promoted, by=NAME, changes=changes, cause=self._started.id)

    def _proposals(self) -> Iterator[events.ProposalRecord]:
        """Yield the proposals for `review.md`, one for each step that asks about its target or its own text."""
        for step, (record, *_) in zip(self._steps, self._records, strict=True):
            if step.proposal:
                # a step without targets asks about what it has just written
                place = step.targets[0].place if step.targets else {name: getattr(record, name) for name in NOWHERE}
                yield events.RetireProposal(
                    **placing.asked_about(self._draft, step, step.proposal, place),
                    operation="retire",
                    replaced_by=record.block if step.targets else "",
                    is_wish=step.operation.action == "forget",
                )

    def _event(
        self, pages: Mapping[str, Sequence[str]], proposals: Records, leaving: Sequence[StmEvent]
    ) -> events.MemoryPromoted:
        """Return the event of the commit; the exchanges that a person deleted from their pages end with it, too.

        Args:
            pages: The ids of the exchanges that each page got, by path.
            proposals: What the person is asked, by lines of `review.md`.
            leaving: The list items that leave short-term memory.
        """
        return events.MemoryPromoted(
            exchanges=(*(event.id for event in self._archived), *self._filed.removed),
            left=self._left,
            statements=tuple(chain.from_iterable(self._records)),
            episodes={path: tuple(ids) for path, ids in pages.items()},
            proposals=proposals,
            refused=tuple(self._out.refused),
            candidates=self._endings_by_now,
            kept=tuple(events.KeptText(text=text[:MAX_QUOTED]) for text in self._out.kept),
            filed=tuple(
                events.KeptText(exchange=event.id, text=(event.user or event.ai)[:MAX_QUOTED]) for event in leaving
            ),
            breaker=self._breaker,
            summarized_by=self._summarized_by,
            summary=self._paragraphs,
            gone=tuple(self._filed.removed),
            tasks=tuple(
                events.TaskRecord(
                    candidate=task.id,
                    action=task.operation.action,
                    hash=text_hash(one_line(task.operation.text)),
                    sources=tuple(event.id for event in task.events),
                )
                for task in self._tasks
            ),
        )

    def _short_term(self) -> list[events.Change]:
        """Return the change of short-term memory: the run's results applied to the present file.

        It notes in `_out.kept` and `_paragraphs` what this change keeps and writes.
        """
        document, log = self._brain.short_term(), self._log
        memory = document.memory
        # an event that a person edited after the snapshot has another hash, and stays
        archived_hashes = {event.id: event_hash(event) for event in self._archived if event.id not in self._lines}
        keep_events = {event.id for event in memory.events if archived_hashes.get(event.id) != event_hash(event)}
        staying = self._staying_facts()
        removed = [item for item in self._memory.facts if item.text not in staying]
        removed += [item for item in self._leaving_items() if line_id(item.words) not in self._left]
        keep_items = [item.text for item in (*memory.goals, *memory.facts, *memory.tasks) if item not in removed]
        # None leaves the summary that a person wrote meanwhile
        summary = self._summary if memory.summary == self._memory.summary else None
        after = self._with_tasks(document.reset(summary, keep_events, keep_items, log.is_own_summary))
        kept = self._out.kept
        kept += [item.remarks.lstrip("\r\n") for item in removed if item.remarks]
        kept += [event.remarks for event in memory.events if event.remarks and event.id not in keep_events]
        if summary is not None:
            kept += [paragraph for paragraph in document.paragraphs() if not log.is_own_summary(paragraph)]
            self._paragraphs = tuple(map(text_hash, document.with_summary(summary).paragraphs()))
        path = self._brain.tree.relative(self._brain.tree.short_term)
        before = None if self._brain.read_text(path) is None else str(document)
        return [events.write(path, before, str(after))] if str(after) != (before or EMPTY) else []

    def _staying_facts(self) -> set[str]:
        """Return the texts of the facts that stay: those left undecided, and the last ones that the person pinned.

        By text, as items are removed: of two with the same text none is removed while the other stays.
        """
        staying = {text for line, text in self._lines.items() if line in self._left}
        if not self._brain.settings.promotion.carry_open_items:
            return staying
        # Pinned by a line of their own or by `/remember`. Each stays as long as a statement has its words: what was
        # corrected or replaced goes, and what a model reworded.
        room, current = PINNED_CHARACTERS, set().union(*self._draft.ids_by_words())
        for item in reversed(self._memory.facts):  # the newest first: they stand below the others
            room -= len(item.text)
            if room >= 0 and folded(item.text) in current and self._is_by_person(item, "/remember "):
                staying.add(item.text)
        return staying

    def _with_tasks(self, document: ShortTermDocument) -> ShortTermDocument:
        """Return short-term memory with the tasks that the run opens, ticks and drops.

        A dropped one is taken out where a process wrote it; a person's own line is ticked.
        """
        texts_by: dict[str, list[str]] = {action: [] for action in TASKS}
        for candidate in self._tasks:
            texts_by[candidate.operation.action].append(candidate.operation.text)
        dropped = set(map(comparable, texts_by["drop"]))
        ended = dropped.union(map(comparable, texts_by["tick"]))
        texts = [text for text in open_tasks(document.memory) if comparable(text) in ended]
        taken_out = [text for text in texts if comparable(text) in dropped and self._log.sources_of_item(text)]
        document = document.without_items(goals=taken_out, tasks=taken_out).with_done(texts)
        return document.with_items(tasks=texts_by["open"])

    def _leaving_items(self) -> list[Item]:
        """Return the goals and tasks that leave short-term memory: done ones, and open ones if the settings say so.

        A done item stays while an open one with the same text stays.
        """
        is_carried = self._brain.settings.promotion.carry_open_items
        items = (*self._memory.goals, *self._memory.tasks)
        open_texts = {item.text.casefold() for item in items if is_carried and not item.is_done}
        return [item for item in items if (item.is_done or not is_carried) and item.text.casefold() not in open_texts]

    def _is_by_person(self, item: Item, command: str = "") -> bool:
        """Return whether a person wrote an item into the list, or said it in these words, behind this command."""
        sources = [self._exchanges.said(source) for source in self._log.sources_of_item(item.text)]
        return not sources or any(f"{command}{item.text}" in said.user for said in sources)


def _replacements(
    brain: Brain, draft: MemoryDraft, kept: Iterable[tuple[Candidate, events.StatementRecord]]
) -> Records:
    """Return questions whether what was kept without a model replaces an earlier telling near to it; one an exchange.

    Nothing is decided: without the person's tick both tellings stand. Private words are neither compared nor quoted.

    Args:
        brain: The brain.
        draft: The pages, with what was kept.
        kept: The steps of a run, each with its first record.
    """
    exchanges, nearest = Exchanges(brain), dict[str, tuple[float, events.ProposalRecord]]()
    for step, record in kept:
        event, words = step.events[0], step.operation.text
        is_by_person = event.origin == PERSON and not step.is_private
        if not (is_by_person and step.operation.marked_by and record.operation == "NEW" and record.block):
            continue
        told = []
        for hit in other_tellings(brain, words, event.id):
            earlier = exchanges.in_memory(hit.anchor) if hit.kind == "exchange" else None
            # a question tells nothing that could be replaced
            if earlier and earlier.at < event.at and not is_private_event(earlier) and not ends_as_question(hit.text):
                told.append(hit)
        cosines = brain.recall.nearness(words, [hit.text for hit in told])
        for cosine, hit in sorted(zip(cosines, told, strict=True), key=itemgetter(0), reverse=True)[:1]:
            # what was only said again replaces nothing
            if cosine >= nearest.get(event.id, (NEAR, None))[0] and likeness(hit.text, words) < REPEATED:
                texts = [one_line(without_link_targets(text)) for text in (words, hit.text)]
                new, old = (text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…" for text in texts)
                statement = draft.statement(draft.ids_by_words()[False].get(folded(hit.text), "#"))
                nearest[event.id] = (
                    cosine,
                    events.RetireProposal(
                        **(statement.place if statement else NOWHERE),
                        id=events.new_id(),
                        what=f"Does “{new}” ({record.since}) replace “{old}” ({brain.day_of(hit.at)})?",
                        operation="retire",
                        replaced_by=record.block,
                        on=record.since,
                        sources=(*record.sources, hit.anchor),
                        held_by=record.page,
                        words=hit.text,
                        said_in=hit.anchor,
                    ),
                )
    return tuple(proposal for _, proposal in nearest.values())
