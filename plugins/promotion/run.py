"""Promotion from snapshot to commit (seeds S12, P5): consolidate in one call, synthesize pages, write all at once.

What cannot be decided now (somebody came back, a model fails, a person edits the page) stays in the log: only its
candidate and the events behind it.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import FormatError, ModelError, UserError
from brainiac.events import (
    Breaker,
    CandidateEnd,
    CandidatesRefused,
    Event,
    EventUndone,
    MemoryPromoted,
    PromotionStarted,
    Refused,
    content_hash,
)
from brainiac.formats.discretion import is_private
from brainiac.formats.markdown import shown
from brainiac.formats.prompt import ORIGINS
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.history.why import Exchanges
from brainiac.llm.catalog import count
from brainiac.llm.schemas import OFFLINE, ConsolidateRequest, SummarizeRequest, Summary
from brainiac.storage.filed import filed, waiting_events
from brainiac.storage.files import locked
from brainiac.storage.relinking import Origins, rooted
from brainiac.storage.statements import StatementLog, line_id, read_statements
from brainiac.text.tokens import coverage, likeness

from .apply import Candidate, Step, name_and_order
from .candidates import find_marked, keyless_candidates
from .draft import Draft
from .filing import NAME
from .finish import Work, finish
from .placing import (
    Named,
    NewPlace,
    Synthesizer,
    check_corrections,
    new_places,
    page_there,
    proposal_for,
    settled,
)
from .request import Consolidator

REST_SECONDS = 60.0
LISTED, ALIKE = 0.9, 0.5  # of the runs of signs of a task, and of both
MIN_RETIRED = 5  # a young memory may change that many statements without asking


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a promotion did.

    Attributes:
        event: The commit; None when nothing came of it.
        exchanges: How many left short-term memory.
        statements: How many times each operation was done.
        left: Events that stay for the next run, with the reason.
        refused: What was not done, and why.
        candidates: How each ended, by its id.
        words: What each states.
        kept: What a person wrote beside what left short-term memory; it stays there.
        filed: Lines that left its lists for the page of the day, word for word.
        problem: Why it ended early; "" when it did not.
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
    """Return whether the event log should be promoted now; what was undone waits until something new is said.

    Args:
        brain: The brain; its settings are read anew.
        idle_seconds: How long nobody has exchanged anything.
    """
    settings = brain.settings.promotion
    document, known = brain.short_term(), filed(brain)
    events = document.memory.events
    filed_at = known.filed_at if known.waiting else ""
    if max((filed_at, *(event.at for event in events))) <= _undone_at(brain):
        return False
    if idle_seconds >= settings.idle_seconds:
        if known.waiting:
            return True
        age_seconds = (brain.clock.now() - parse_iso(min(event.at for event in events))).total_seconds()
        if len(events) >= settings.min_events or age_seconds > settings.max_age_hours * 3600:
            return True
    return _is_larger(str(document), settings.max_tokens)


def _undone_at(brain: Brain) -> str:
    """Return when the last promotion was undone, ISO 8601; "" if it stands."""
    last = next(brain.journal.events(kinds={MemoryPromoted, EventUndone}, reverse=True), None)
    if last is None or last.kind == MemoryPromoted.kind:
        return ""
    undone = brain.journal.find(str(last.data.get("undone")))
    return last.at if undone and undone.kind == MemoryPromoted.kind else ""


def _is_larger(text: str, tokens: int) -> bool:
    if len(text) <= tokens:  # a token is a character or more
        return False
    return count(text.encode("utf-8", "replace").decode("utf-8")) > tokens


def promote(
    brain: Brain,
    *,
    abandon: Callable[[], bool] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Promote what was filed unconsolidated and the event log of short-term memory, in runs of a bounded size.

    Args:
        brain: The brain.
        abandon: Asked between and within model calls; true ends the run with what is decided so far.
        progress: Called with pages done and pages in all, as far as they are known.

    Raises:
        ModelError: Nothing could be decided; nothing was changed.
        LockedError: Another process promotes this brain at this moment.
        FormatError: Short-term memory lacks a heading.
    """
    with locked(brain.places.state / "promotion.lock", wait_seconds=0):
        done = _promote_once(brain, abandon, progress)
        while done.event is not None and not done.problem and filed(brain).waiting:
            further = _promote_once(brain, abandon, progress)
            done = _joined(done, further)
            if further.event is None:
                break  # what waits could not be decided now
        return done


def _promote_once(
    brain: Brain, abandon: Callable[[], bool] | None, progress: Callable[[int, int], None] | None
) -> Outcome:
    exchanges, gone, is_partial = waiting_events(brain)
    with brain.short_term_lock():
        snapshot = Snapshot(brain.short_term().memory, exchanges, gone, is_partial)
    if not snapshot.memory.events and not exchanges and not gone:
        return Outcome(None)
    return _Run(brain, snapshot, abandon, progress).run()


def _joined(first: Outcome, second: Outcome) -> Outcome:
    """Return what two runs did, one after the other."""
    return replace(
        second,
        event=second.event or first.event,
        exchanges=first.exchanges + second.exchanges,
        statements=dict(Counter(first.statements) + Counter(second.statements)),
        refused=[*first.refused, *second.refused],
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a run looks at.

    Attributes:
        memory: Short-term memory.
        filed: Exchanges that were filed unconsolidated, oldest first.
        gone: Ids of such that a person took out since.
        is_partial: Whether more of them wait than one run takes: what was said later is decided later.
    """

    memory: ShortTermMemory
    filed: Sequence[StmEvent]
    gone: Sequence[str]
    is_partial: bool

    @property
    def promoted(self) -> ShortTermMemory:
        """What of short-term memory is looked at in this run."""
        return ShortTermMemory(self.memory.summary) if self.is_partial else self.memory


class _Run:
    def __init__(
        self,
        brain: Brain,
        snapshot: Snapshot,
        abandon: Callable[[], bool] | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._brain, self._abandon, self._progress = brain, abandon, progress
        memory, now = snapshot.promoted, iso(brain.clock.now())
        said = {event.id: event for event in (*snapshot.filed, *memory.events)}
        self._log = read_statements(brain, min((event.at for event in said.values()), default=now))
        lines = _own_lines(memory, self._log, now)
        events = said | {event.id: event for event in lines}
        self._snapshot = snapshot
        self._started = brain.record(PromotionStarted(exchanges=len(said)), by=NAME)
        self._draft = Draft(brain, self._log)
        self._exchanges = Exchanges(brain)
        origins = Origins(brain, self._log.prompt_of, self._draft.pages.place_of)
        texts = {line_id(item.words): item.text for item in memory.facts}
        self._work = Work(memory, events, {event.id: texts[event.id] for event in lines}, origins, gone=snapshot.gone)
        self._work.standing = frozenset(event.id for event in snapshot.filed)
        self._synthesizer = Synthesizer(brain, self._started.id, abandon, self._work.note_refusal)
        self._problem = ""

    def run(self) -> Outcome:
        work, cause = self._work, self._started.id
        try:
            self._consolidate()
            self._heed_breaker()
            self._summarize()
            event = finish(self._brain, work, self._draft, cause)
        except BaseException:
            self._tell_endings()
            raise
        endings = work.endings_by_now()
        if event is None:
            self._tell_endings()
            problem = self._problem
            return Outcome(
                None, left=work.left, refused=work.refused, candidates=endings, words=work.words, problem=problem
            )
        counts = Counter(record["operation"] for record in event.data["statements"])
        gone = [event.user or event.ai for event in work.filed if event.id not in work.left]
        return Outcome(
            event,
            len(work.archived),
            dict(counts),
            work.left,
            work.refused,
            endings,
            work.words,
            work.kept,
            gone,
            self._problem,
        )

    def _tell_endings(self) -> None:
        """Journal what became of the candidates although the run came to nothing: none was written."""
        work = self._work
        for step in work.steps:
            work.leave(step.candidate, "the run came to nothing")
        work.steps = []
        if work.refused or work.endings:
            refused = CandidatesRefused(refused=tuple(work.refused), candidates=work.endings)
            self._brain.record(refused, by=NAME, cause=self._started.id)

    # --- deciding ---------------------------------------------------------------------------------------

    def _consolidate(self) -> None:
        """Decide what a model judges, a call after the other, each in view of those before; then what was marked."""
        work, events = self._work, list(self._work.events.values())
        is_judged = {is_private: self._is_judged(is_private=is_private) for is_private in (False, True)}
        judged = [event for event in events if is_judged[event.is_private]]
        consolidator = Consolidator(
            self._brain,
            self._log,
            work.origins,
            self._exchanges,
            self._started.id,
            self._snapshot.memory,
            self._abandon,
        )
        earlier, refused = consolidator.decided(judged)
        unread = [
            part
            for is_private in (False, True)
            for part in consolidator.parts([event for event in judged if event.is_private == is_private])
        ]
        try:
            self._refuse(refused)
            self._settle(earlier)
            while unread:
                candidates, refused = consolidator.ask(unread[0], self._draft)
                del unread[0]
                self._refuse(refused)
                self._settle(candidates)
            self._keep_marked([event for event in events if event not in judged], is_whole=not judged)
        except ModelError as error:
            # nothing was decided, so that there is nothing to commit, and whoever called is told why
            if not work.steps and not work.endings:
                raise
            self._problem = error.problem
            work.left |= {event.id: error.problem for part in unread for event in part}

    def _is_judged(self, *, is_private: bool) -> bool:
        """Return whether a model decides: one is set, and what is private may be shown to it."""
        request = ConsolidateRequest(
            now=self._brain.now(), is_private=is_private, said=(), short_term=self._snapshot.memory
        )
        return self._brain.models.engine_for(request).name != OFFLINE

    def _refuse(self, refused: Mapping[str, tuple[str, str]]) -> None:
        """Note the candidates that were refused before they came to a page."""
        for name, (statement, reason) in refused.items():
            self._work.note_refusal(statement, reason, "", name)
            self._work.words[name] = statement
            self._work.endings[name] = CandidateEnd(end="refused", reason=reason[:300])

    def _keep_marked(self, events: Sequence[StmEvent], *, is_whole: bool) -> None:
        """Keep what the person and use have marked of events that no model judges.

        Args:
            events: Those.
            is_whole: No model judges any: earlier words count too, if use has marked them by now.
        """
        work = self._work
        marked = find_marked(self._brain, events, work.lines, self._log, self._exchanges, with_earlier=is_whole)
        self._settle(keyless_candidates(self._brain, self._draft, marked, work.origins))

    def _settle(self, candidates: Sequence[Candidate]) -> None:
        """Carry out what goes to pages there are, then what goes to new ones, page by page.

        Raises:
            ModelError: The model cannot serve now, or somebody came back; what is not carried out is left.
        """
        waiting = {candidate.id: candidate for candidate in candidates}
        steps_before = len(self._work.steps)
        new: list[Candidate] = []
        try:
            for candidate in candidates:
                if candidate.operation.marked_by:
                    self._heed_person()
                step = self._step_for(candidate)
                if step and not step.path:
                    new.append(step.candidate)
                    continue
                del waiting[candidate.id]
                if step:
                    self._carry_out(step)
            places = new_places(new)
            for done, place in enumerate(places):
                self._tell_progress(done, len(places))
                self._heed_person()
                self._begin(place)
                for candidate in place.candidates:
                    del waiting[candidate.id]
            self._tell_progress(len(places), len(places))
        except ModelError as error:
            for candidate in waiting.values():
                self._work.leave(candidate, error.problem)
            raise
        self._name_changed(self._work.steps[steps_before:])

    def _tell_progress(self, done: int, total: int) -> None:
        if self._progress:
            self._progress(done, total)

    def _heed_person(self) -> None:
        if self._abandon and self._abandon():
            raise ModelError("somebody came back", retryable=True)

    def _step_for(self, candidate: Candidate) -> Step | None:
        """Return what is to be done with a candidate; None where it ends here: it costs no other."""
        try:
            if not candidate.operation.marked_by and self._is_listed(candidate):
                raise UserError("it stands in the list of tasks, and stays there until it is done")
            step = settled(self._draft, self._with_origin(candidate))
            check_corrections(self._log, step)
            return step if step.path else replace(step, path=page_there(self._draft, step.candidate))
        except (FormatError, OSError) as error:  # it may be otherwise when this is tried again
            self._work.leave(candidate, str(error))
        except (UserError, ValueError) as error:  # it will not
            self._work.refuse(candidate, str(error))
        return None

    def _is_listed(self, candidate: Candidate) -> bool:
        """Return whether it is a task that short-term memory lists, open or done: it stays there until then."""
        brain, statement = self._brain, shown(candidate.words)
        folders = [brain.tree.relative(folder) for folder in (brain.tree.inbox, brain.tree.memory)]
        tasks = (shown(rooted(brain, item.text, folders)) for item in self._snapshot.memory.tasks)
        return any(coverage(task, statement) >= LISTED and likeness(task, statement) >= ALIKE for task in tasks)

    def _with_origin(self, candidate: Candidate) -> Candidate:
        """Return a candidate whose text says whose words it rests on where these are not the person's."""
        text, origin = candidate.operation.text, candidate.origin
        if not text or origin == ORIGINS[0]:
            return candidate
        recorded = self._exchanges.event(candidate.events[-1].id)
        data = recorded.data if recorded else {}
        prompt = str(data.get("prompt") or "")
        name = str(data.get("model") or origin) if origin == "assistant" else posixpath.basename(prompt)
        source = f"[{name}](/{prompt})" if origin == "import" and prompt else name
        operation = candidate.operation.model_copy(update={"text": f"{text} ({origin}: {source or origin})"})
        return replace(candidate, operation=operation)

    # --- on pages ---------------------------------------------------------------------------------------

    def _begin(self, place: NewPlace) -> None:
        """Have a new page named, and carry out what goes there."""
        try:
            path, named = self._synthesizer.placed(self._draft, place)
        except OSError as error:
            for candidate in place.candidates:
                self._work.leave(candidate, str(error))
            return
        except (UserError, ValueError) as error:
            for candidate in place.candidates:
                self._work.refuse(candidate, str(error))
            return
        for candidate in place.candidates:
            if named and candidate.operation.steps:
                steps = named.in_order(candidate.operation.steps)
                operation = candidate.operation.model_copy(update={"steps": steps})
                candidate = replace(candidate, operation=operation)  # the same one, its steps in order
            self._carry_out(Step(candidate, path))
        if named:
            self._name(path, named)

    def _name_changed(self, steps: Sequence[Step]) -> None:
        """Have pages that changed much named and ordered anew; where nobody can now, they stay as they are."""
        # a name is no reason to leave what was decided: without one the page stays as it is called
        for path in dict.fromkeys(step.path for step in steps if step.path not in self._work.named):
            with suppress(ModelError, UserError, ValueError, OSError):
                here = [step for step in steps if step.path == path]
                if named := self._synthesizer.renamed(self._draft, path, here):
                    self._name(path, named)

    def _name(self, path: str, named: Named) -> None:
        self._work.named[path] = named
        records = chain.from_iterable(self._work.records)
        name_and_order(self._draft, path, named.page, named.order(records))

    def _carry_out(self, step: Step) -> None:
        try:
            if edited := next((path for path in step.paths if self._is_being_edited(path)), ""):
                self._work.leave(step.candidate, f"{edited} was edited a moment ago")
                return
            self._work.carry_out(self._brain, self._draft, step)
        except (FormatError, OSError) as error:  # it may be otherwise when this is tried again
            self._work.leave(step.candidate, str(error))
        except (UserError, ValueError) as error:  # it will not
            self._work.refuse(step.candidate, str(error))

    def _is_being_edited(self, path: str) -> bool:
        """Return whether a person changed a page within the last minute."""
        touched = self._log.touched_at(path)
        now = self._brain.clock.now()
        if touched and (now - parse_iso(touched)).total_seconds() < REST_SECONDS:
            return True
        text = self._brain.read_page(path)
        if text is None or self._brain.observed.hash_of(path) in (None, content_hash(text.encode())):
            return False
        self._brain.observed.note_change(path)  # nobody watches, perhaps: its minute begins now
        return True

    def _heed_breaker(self) -> None:
        """Let a run that would retire too much retire nothing: both statements stand, and a person is asked."""
        work = self._work
        retiring = [step for step in work.steps if step.retires]
        total = self._draft.total()
        share = self._brain.settings.promotion.max_retired_share
        if len(retiring) <= MIN_RETIRED or len(retiring) <= share * total:
            return
        work.breaker = Breaker(would_retire=len(retiring), statements=total)
        steps = [replace(step, proposal=proposal_for(step)) if step.retires else step for step in work.steps]
        self._draft = self._draft.anew()
        work.build(self._brain, self._draft, steps)

    def _summarize(self) -> None:
        """Have what is left summarized; the old summary is obsolete. Without a model it stays for now."""
        work = self._work
        if self._problem or self._snapshot.is_partial:
            return
        left = [event for event in work.memory.events if event.id in work.left]
        request = SummarizeRequest(
            now=self._brain.now(),
            cause=self._started.id,
            abandon=self._abandon,
            remaining=[event for event in left if not event.is_private],  # the summary bears no mark
            archived=[event for event in work.archived if not event.is_private],
            titles=self._titles(),
        )
        try:
            summary = self._brain.models.run(request)
        except ModelError as error:
            self._problem = error.problem
            return
        assert isinstance(summary, Summary)
        work.summary = summary.text[:4000]
        work.summarized_by = self._brain.models.engine_for(request).name

    def _titles(self) -> list[str]:
        """Return the titles of the open pages that statements went to."""
        memories = (self._draft.working[step.path].document.memory for step in self._work.steps)
        return [memory.title for memory in memories if not is_private(memory.meta)]


def _own_lines(memory: ShortTermMemory, log: StatementLog, now: str) -> list[StmEvent]:
    """Return the facts that a person wrote into the list as events: they are remembered like what was said."""
    return [
        StmEvent(line_id(item.words), now, item.words, is_private=item.is_private)
        for item in memory.facts
        if not log.noted_from(item.text)
    ]
