"""Promotion from snapshot to commit (seeds S12, P5): analyze, decide each candidate, place it, write all at once.

What cannot be decided now (somebody came back, a model fails, a person edits the page) stays in the log: only its
candidate and the events behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import FormatError, ModelError, UserError
from brainiac.events import Event, content_hash
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.llm.schemas import SummarizeRequest, Summary
from brainiac.storage.filed import filed, waiting_events
from brainiac.storage.files import locked
from brainiac.storage.relinking import Origins
from brainiac.storage.statements import REFUSED, Past, line_id, read_past, text_hash

from .applying import Applier, Step
from .consolidating import Desk, consolidate
from .draft import Catalogue, Draft
from .fates import NAME, Fate, Refusal
from .finishing import Work, finish
from .lookup import Lookup

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
            self._consolidate()
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
            work.leave(step, "the run came to nothing")
        work.steps = []
        if work.refused or work.fates:
            data = {
                "refused": [one.as_json() for one in work.refused],
                "candidates": {name: fate.as_json() for name, fate in work.fates.items()},
            }
            self._brain.record(REFUSED, by=NAME, data=data, cause=self._started.id)

    def _consolidate(self) -> None:
        """Carry out one operation after the other on the pages in work; what is wrong with one costs no other."""
        work = self._work
        desk = Desk(
            self._brain,
            self._past,
            self._draft,
            self._lookup,
            work,
            self._started.id,
            self._snapshot.memory.tasks,
            self._abandon,
            self._progress,
        )
        applier = Applier(self._brain, self._draft, self._past)
        try:
            for step in consolidate(desk):
                self._carry_out(step, applier)
        except ModelError as error:
            self._problem = error.problem
            if not desk.is_begun:
                raise
        for candidate in desk.undecided:
            work.leave(candidate, self._problem)

    def _carry_out(self, step: Step, applier: Applier) -> None:
        try:
            if self._is_being_edited(step.place.path):
                self._work.leave(step, f"{step.place.path} was edited a moment ago")
                return
            applier.apply(step)
        except (FormatError, OSError) as error:  # it may be otherwise when this is tried again
            self._work.leave(step, str(error))
        except (UserError, ValueError) as error:  # it will not
            self._work.end(step, "refused", str(error))
        else:
            self._work.steps.append(step)
            if step.operation.text:
                self._lookup.add(step.place.path, step.operation.text)

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
        retiring = [step for step in self._work.steps if step.retires]
        if len(retiring) <= MIN_RETIRED:
            return
        catalogue = self._draft.catalogue
        fresh = Draft(self._brain, catalogue)
        total = sum(sum(1 for _ in fresh.current(path)) for path in catalogue.by_path)
        if len(retiring) <= self._brain.settings.promotion.max_retired_share * total:
            return
        self._work.notes["breaker"] = {"would_retire": len(retiring), "statements": total}
        self._work.steps = [
            replace(step, proposal=_proposal(step)) if step.retires else step for step in self._work.steps
        ]

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
            titles=[step.place.title for step in work.steps if not step.is_private and step.place.title],
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


def _proposal(step: Step) -> str:
    target = step.target
    assert target is not None
    what = f"Replace “{target.text}” by “{step.operation.text}”" if step.operation.text else f"Forget “{target.text}”"
    return f"{what} on {target.title}"
