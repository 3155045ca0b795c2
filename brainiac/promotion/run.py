"""Promotion from snapshot to commit (seeds S12, P5): analyze, decide each candidate, place it, write all at once.

What cannot be decided now (somebody came back, a model fails, a person edits the page) stays in the log: only its
candidate and the events behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from brainiac.clock import iso, parse_iso
from brainiac.errors import ModelError
from brainiac.events import Event, content_hash
from brainiac.kernel.locks import locked
from brainiac.llm.schemas import SummarizeRequest, Summary
from brainiac.notes.short_term import ShortTermMemory, StmEvent
from brainiac.promotion.applying import Applier, Step
from brainiac.promotion.deciding import Decider, Decision
from brainiac.promotion.draft import Catalogue, Draft
from brainiac.promotion.finding import NAME, Finder, Found, Refusal, is_listed
from brainiac.promotion.finishing import Work, finish
from brainiac.promotion.lookup import Lookup
from brainiac.promotion.past import REFUSED, Past, read_past, text_hash
from brainiac.promotion.placement import Place, Placer

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
        problem: Why it ended early; "" when it did not.
    """

    event: Event | None
    exchanges: int = 0
    statements: dict[str, int] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    refused: Sequence[Refusal] = ()
    problem: str = ""


def promote(
    brain: Brain,
    *,
    abandon: Callable[[], bool] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Promote the event log of short-term memory.

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
        with brain.short_term_lock():
            memory = brain.short_term().memory
        if not memory.events:
            return Outcome(None)
        return _Run(brain, memory, abandon, progress).run()


class _Run:
    def __init__(
        self,
        brain: Brain,
        memory: ShortTermMemory,
        abandon: Callable[[], bool] | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._brain, self._abandon, self._progress = brain, abandon, progress
        self._past = read_past(brain, min(event.at for event in memory.events))
        lines = _own_lines(memory, self._past, iso(brain.clock.now()))
        events = {event.id: event for event in (*memory.events, *lines)}
        self._work = Work(memory, events, {event.id: event.user for event in lines})
        self._started = brain.record(STARTED, by=NAME, data={"exchanges": len(memory.events)})
        self._lookup = Lookup()
        self._draft = Draft(brain, Catalogue(brain, self._lookup))
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
            self._tell_refusals()
            raise
        if event is None:
            self._tell_refusals()
            return Outcome(None, left=work.left, refused=work.refused, problem=self._problem)
        counts: dict[str, int] = {}
        for one in event.data["statements"]:
            counts[one["operation"]] = counts.get(one["operation"], 0) + 1
        return Outcome(event, len(work.archived), counts, work.left, work.refused, self._problem)

    def _tell_refusals(self) -> None:
        """Journal what was refused although the run came to nothing."""
        if self._work.refused:
            data = {"refused": [one.as_json() for one in self._work.refused]}
            self._brain.record(REFUSED, by=NAME, data=data, cause=self._started.id)

    def _find(self) -> list[Found]:
        catalogue = self._draft.catalogue
        known = {is_private: catalogue.titles(is_private=is_private) for is_private in (False, True)}
        finder = Finder(self._brain, self._past, self._started.id, known, self._abandon)
        memory = replace(self._work.memory, events=tuple(self._work.events.values()))
        found, refused = finder.find(memory)
        self._work.refused += refused
        return [one for one in found if not is_listed(one.candidate, self._work.memory)]

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
                work.left |= {event.id: self._problem for event in one.events}
        if self._progress:
            self._progress(len(found), len(found))

    def _decide_one(self, found: Found, decider: Decider, placer: Placer, applier: Applier) -> None:
        if self._abandon and self._abandon():
            self._problem = "somebody came back"
            return
        try:
            decision = _skill(found) or decider.decide(self._draft, found)
            if decision.verb == "SKIP":
                return
            target = decision.target
            page = self._draft.catalogue.by_path.get(target.path) if target else None
            kept = target if decision.verb != "NEW" else None
            place = Place(page.path, page.title, {}) if kept and page else placer.place(found)
        except ModelError as error:
            self._problem = error.problem
            return
        step = Step(decision, place)
        if self._is_being_edited(place.path):
            self._work.leave(step, f"{place.path} was edited a moment ago")
        elif applier.apply(step) is not None:
            self._work.steps.append(step)
            for text in (decision.content, decision.rest):
                if text:
                    self._lookup.add(place.path, text)

    def _is_being_edited(self, path: str) -> bool:
        """Tell whether a person changed a page within the last minute."""
        touched = self._past.touched.get(path)
        now = self._brain.clock.now()
        if touched and (now - parse_iso(touched)).total_seconds() < REST_SECONDS:
            return True
        content = self._brain.read(path)
        if content is None or self._brain.observed.hash_of(path) in (None, content_hash(content)):
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
        if self._problem:
            return
        left = [event for event in work.events.values() if event.id in work.left and event.id not in work.lines]
        request = SummarizeRequest(
            now=self._brain.now(),
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
        StmEvent(f"line-{text_hash(item.text)}", now, item.text, is_private=item.is_private)
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
    change = f"Replace “{target.statement.text}” by “{decision.content}”" if decision.content else "Forget "
    what = change if decision.content else f"{change}“{target.statement.text}”"
    return replace(decision, proposal=f"{what} on {target.title}")
