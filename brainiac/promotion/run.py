"""Promotion from snapshot to commit (seeds S12, P5): analyze, decide each candidate, place it, write all at once.

What cannot be decided now (somebody came back, a model fails, a person edits the page) stays in the log: only its
candidate and the events behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from brainiac.clock import iso, parse_iso
from brainiac.errors import FormatError, ModelError, UserError
from brainiac.events import Event, content_hash
from brainiac.kernel.locks import locked
from brainiac.llm.schemas import SummarizeRequest, Summary
from brainiac.notes.short_term import ShortTermMemory, StmEvent
from brainiac.promotion.applying import Applier, Step
from brainiac.promotion.deciding import Decider, Decision
from brainiac.promotion.draft import Catalogue, Draft
from brainiac.promotion.filed import filed, waiting_events
from brainiac.promotion.finding import NAME, Fate, Finder, Found, Refusal, is_listed
from brainiac.promotion.finishing import Work, finish
from brainiac.promotion.lookup import Lookup
from brainiac.promotion.past import REFUSED, Past, line_id, read_past, text_hash
from brainiac.promotion.placement import Place, Placer
from brainiac.promotion.relinking import Origins, rooted

if TYPE_CHECKING:
    from brainiac.brain import Brain

STARTED = "promotion-started"
REST_SECONDS = 60.0
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
        fates: How each candidate ended, by its id.
        kept: What a person wrote beside what left short-term memory; it stays there.
        filed: Lines that left its lists for the page of the day, word for word.
        problem: Why it ended early; "" when it did not.
    """

    event: Event | None
    exchanges: int = 0
    statements: dict[str, int] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    refused: Sequence[Refusal] = ()
    fates: Mapping[str, Fate] = field(default_factory=dict)
    kept: Sequence[str] = ()
    filed: Sequence[str] = ()
    problem: str = ""


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
        progress: Called with candidates decided and candidates in all.

    Raises:
        ModelError: The log could not be analyzed; nothing was changed.
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


def _joined(one: Outcome, other: Outcome) -> Outcome:
    """Return what two runs did, one after the other."""
    statements = Counter(one.statements) + Counter(other.statements)
    return replace(
        other,
        event=other.event or one.event,
        exchanges=one.exchanges + other.exchanges,
        statements=dict(statements),
        refused=[*one.refused, *other.refused],
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
        self._past = read_past(brain, min((event.at for event in said.values()), default=now))
        lines = _own_lines(memory, self._past, now)
        events = said | {event.id: event for event in lines}
        self._snapshot = snapshot
        self._started = brain.record(STARTED, by=NAME, data={"exchanges": len(said)})
        self._lookup = Lookup()
        self._draft = Draft(brain, Catalogue(brain, self._lookup))
        origins = Origins(brain, self._past.prompts, self._draft.catalogue.places)
        texts = {line_id(item.words): item.text for item in memory.facts}
        self._work = Work(memory, events, {event.id: texts[event.id] for event in lines}, origins, gone=snapshot.gone)
        self._work.standing = frozenset(event.id for event in snapshot.filed)
        self._problem = ""

    def run(self) -> Outcome:
        work, cause = self._work, self._started.id
        try:
            found = self._find()
            self._decide(found)
            self._heed_breaker()
            self._summarize()
            event = finish(self._brain, work, self._draft, self._past, cause)
        except BaseException:
            self._tell_fates()
            raise
        fates = work.fates_by_now()
        if event is None:
            self._tell_fates()
            return Outcome(None, left=work.left, refused=work.refused, fates=fates, problem=self._problem)
        counts = Counter(one["operation"] for one in event.data["statements"])
        filed = [each.user or each.ai for each in work.filed if each.id not in work.left]
        return Outcome(
            event, len(work.archived), dict(counts), work.left, work.refused, fates, work.kept, filed, self._problem
        )

    def _tell_fates(self) -> None:
        """Journal what became of the candidates although the run came to nothing: none was written."""
        work = self._work
        for step in work.steps:
            work.leave(step.decision.found, "the run came to nothing")
        work.steps = []
        if work.refused or work.fates:
            data = {
                "refused": [one.as_json() for one in work.refused],
                "candidates": {name: fate.as_json() for name, fate in work.fates.items()},
            }
            self._brain.record(REFUSED, by=NAME, data=data, cause=self._started.id)

    def _find(self) -> list[Found]:
        catalogue = self._draft.catalogue
        known = {is_private: catalogue.titles(is_private=is_private) for is_private in (False, True)}
        brain, work = self._brain, self._work
        finder = Finder(brain, self._past, self._started.id, known, work.origins, self._abandon)
        found, refused = finder.find(replace(work.memory, events=tuple(work.events.values())))
        work.refused += refused
        work.fates |= {one.candidate: Fate(one.statement, "refused", one.reason) for one in refused}
        folders = [brain.tree.relative(folder) for folder in (brain.tree.inbox, brain.tree.memory)]
        tasks = [rooted(brain, item.text, folders) for item in self._snapshot.memory.tasks]
        listed = [one for one in found if is_listed(one.candidate, tasks)]
        for one in listed:
            work.end(one, "refused", "it stands in the list of tasks, and stays there until it is done")
        return [one for one in found if one not in listed]

    def _decide(self, found: Sequence[Found]) -> None:
        brain, work = self._brain, self._work
        decider = Decider(brain, self._past, self._lookup, self._started.id, self._abandon, work.refused)
        placer = Placer(brain, self._draft.catalogue, self._started.id, self._abandon)
        placer.refused = work.refused
        applier = Applier(brain, self._draft, self._past)
        for number, one in enumerate(found):
            if self._progress:
                self._progress(number, len(found))
            if not self._problem:
                self._decide_one(one, decider, placer, applier)
            if self._problem:
                work.leave(one, self._problem)
        if self._progress:
            self._progress(len(found), len(found))

    def _decide_one(self, found: Found, decider: Decider, placer: Placer, applier: Applier) -> None:
        """Decide a candidate and carry it out on the pages in work; what is wrong with it costs no other."""
        if self._abandon and self._abandon():
            self._problem = "somebody came back"
            return
        try:
            step = self._step(found, decider, placer)
            if step is not None:
                applier.apply(step)
        except ModelError as error:
            self._problem = error.problem
        except (FormatError, OSError) as error:  # it may be otherwise when this is tried again
            self._work.leave(found, str(error))
        except (UserError, ValueError) as error:  # it will not
            self._work.end(found, "refused", str(error))
        else:
            if step is not None:
                self._work.steps.append(step)
                for text in filter(None, (step.decision.content, step.decision.rest)):
                    self._lookup.add(step.place.path, text)

    def _step(self, found: Found, decider: Decider, placer: Placer) -> Step | None:
        """Return what is to be done with a candidate; None where it ends here."""
        decision = _skill(found) or decider.decide(self._draft, found)
        if decision.verb == "SKIP":
            self._work.end(found, "refused", decision.reasoning)
            return None
        page = self._draft.catalogue.by_path.get(decision.target.path) if decision.target else None
        place = Place(page.path, page.title, {}) if page else placer.place(found)
        if self._is_being_edited(place.path):
            self._work.leave(found, f"{place.path} was edited a moment ago")
            return None
        return Step(decision, place)

    def _is_being_edited(self, path: str) -> bool:
        """Tell whether a person changed a page within the last minute."""
        touched = self._past.touched.get(path)
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
        retiring = [step for step in self._work.steps if step.decision.retires]
        if len(retiring) <= MIN_RETIRED:
            return
        catalogue = self._draft.catalogue
        fresh = Draft(self._brain, catalogue)
        total = sum(sum(1 for _ in fresh.current(path)) for path in catalogue.by_path)
        if len(retiring) <= self._brain.settings.promotion.max_retired_share * total:
            return
        self._work.notes["breaker"] = {"would_retire": len(retiring), "statements": total}
        self._work.steps = [
            replace(step, decision=_proposed(step.decision)) if step.decision.retires else step
            for step in self._work.steps
        ]

    def _summarize(self) -> None:
        """Have what is left summarized; the old summary is obsolete. Without a model it stays for now."""
        work = self._work
        if self._problem or self._snapshot.is_partial:
            return
        left = [event for event in work.memory.events if event.id in work.left]
        request = SummarizeRequest(
            now=self._brain.clock.now(),
            cause=self._started.id,
            abandon=self._abandon,
            remaining=[event for event in left if not event.is_private],  # the summary bears no mark
            archived=[event for event in work.archived if not event.is_private],
        )
        try:
            summary = self._brain.models.run(request)
        except ModelError as error:
            self._problem = error.problem
            return
        assert isinstance(summary, Summary)
        work.summary = summary.text[:4000]
        work.notes["summarized_by"] = self._brain.models.engine_for(request).name


def _own_lines(memory: ShortTermMemory, past: Past, now: str) -> list[StmEvent]:
    """Return the facts that a person wrote into the list as events: they are remembered like what was said."""
    return [
        StmEvent(line_id(item.words), now, item.words, is_private=item.is_private)
        for item in memory.facts
        if text_hash(item.text) not in past.noted
    ]


def _skill(found: Found) -> Decision | None:
    """Return the decision for a how-to: its page holds its steps, so that there is nothing to merge."""
    candidate = found.candidate
    if candidate.kind != "skill" or not candidate.steps:
        return None
    return Decision(found, "NEW", candidate.statement, importance=candidate.importance, model=found.model)


def _proposed(decision: Decision) -> Decision:
    target = decision.target
    assert target is not None
    change = f"Replace “{target.text}” by “{decision.content}”" if decision.content else "Forget "
    what = change if decision.content else f"{change}“{target.text}”"
    return replace(decision, proposal=f"{what} on {target.title}")
