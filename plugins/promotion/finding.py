"""From the event log to candidates, each event read once (seeds R10): a resumed run takes up what is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from brainiac.brain import Brain
from brainiac.events import Event, EventsAnalyzed
from brainiac.formats.links import shown
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.llm.schemas import AnalyzeRequest, Candidate, Candidates
from brainiac.storage.relinking import Origins
from brainiac.storage.statements import StatementLog, event_hash
from brainiac.text.tokens import coverage, likeness

from .fates import NAME, Refusal
from .grounding import Heard, invented

MAX_CHARACTERS = 40_000  # of events in one look, so that a small window holds them
MAX_CANDIDATES = 400  # of one look; a model that proposes more has lost its way
LISTED, ALIKE = 0.9, 0.5  # of the runs of signs of a task, and of both
_NO_TEXT = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate with what is known of where it came from.

    Attributes:
        id: Of the candidate: the analysis' event id and its place there.
        candidate: What a model proposes; its `events` are ids of the log.
        events: The events it rests on, oldest first.
        model: Who proposed it.
    """

    id: str
    candidate: Candidate
    events: tuple[StmEvent, ...]
    model: str

    @property
    def words(self) -> str:
        """What it states, for a person."""
        return self.candidate.statement

    @property
    def is_private(self) -> bool:
        """It rests on what must not leave this machine."""
        return any(event.is_private for event in self.events)

    @property
    def at(self) -> str:
        """When it was last said, ISO 8601."""
        return max(event.at for event in self.events)

    @property
    def message(self) -> str:
        """What the person typed, the newest last."""
        return "\n\n".join(event.user for event in self.events)[-4000:]


@dataclass(slots=True)
class Finder:
    """Looks through events for what deserves long-term memory.

    Args:
        brain: The brain.
        past: What the journals tell.
        cause: Id of the run's first event.
        known: Titles of pages there are, private ones apart.
        origins: Tells where the links of an event lead.
        abandon: Asked whether somebody came back.
    """

    brain: Brain
    past: StatementLog
    cause: str
    known: Mapping[bool, Sequence[str]]
    origins: Origins
    abandon: Callable[[], bool] | None = None
    _titles: dict[bool, Heard] = field(default_factory=dict)

    def find(self, memory: ShortTermMemory) -> tuple[list[Found], list[Refusal]]:
        """Return the candidates of the log that are not decided yet, oldest first, and those that were refused.

        Raises:
            ModelError: A model cannot serve now; what was analyzed before is kept.
        """
        hashes = {event.id: event_hash(event) for event in memory.events}
        memory = replace(memory, events=tuple(_readable(self.origins.rooted(event)) for event in memory.events))
        events = {event.id: event for event in memory.events}
        analyses = list(self.past.analyses)
        read = {each for one in analyses for each, digest in one.data["events"].items() if hashes.get(each) == digest}
        for part in self._parts([event for event in memory.events if event.id not in read]):
            analyses.append(self._analyze(part, memory, hashes))
        found: list[Found] = []
        refused: list[Refusal] = []
        for analysis in analyses:
            self._take(analysis, events, hashes, found, refused)
        return sorted(found, key=lambda one: (one.at, one.id)), refused

    def _parts(self, events: Sequence[StmEvent]) -> Iterator[list[StmEvent]]:
        """Yield stretches of the log, oldest first, private ones apart."""
        for is_private in (False, True):
            part: list[StmEvent] = []
            for event in sorted((e for e in events if e.is_private == is_private), key=lambda e: (e.at, e.id)):
                if part and sum(len(one.user) + len(one.ai) for one in (*part, event)) > MAX_CHARACTERS:
                    yield part
                    part = []
                part.append(event)
            if part:
                yield part

    def _analyze(self, events: Sequence[StmEvent], memory: ShortTermMemory, hashes: Mapping[str, str]) -> Event:
        is_private = events[0].is_private
        request = AnalyzeRequest(
            now=self.brain.now(),
            is_private=is_private,
            cause=self.cause,
            abandon=self.abandon,
            events=events,
            short_term=replace(memory, events=()),
            subjects=self.known[is_private],
        )
        result = self.brain.models.run(request)
        assert isinstance(result, Candidates)
        data = {
            "events": {event.id: hashes[event.id] for event in events},
            "model": self.brain.models.engine_for(request).name,
            **_plain(result),
        }
        return self.brain.record(EventsAnalyzed.kind, by=NAME, data=data, cause=self.cause)

    def _take(
        self,
        analysis: Event,
        events: Mapping[str, StmEvent],
        hashes: Mapping[str, str],
        found: list[Found],
        refused: list[Refusal],
    ) -> None:
        """Sort an analysis' candidates into those to decide and those refused."""
        read, model = analysis.data["events"], analysis.data.get("model", "")
        standing = [events[one] for one in read if hashes.get(one) == read[one]]
        said = Heard.of(text for event in standing for text in (event.user, event.ai))
        for number, plain in enumerate(analysis.data["candidates"]):
            name = f"{analysis.id}#{number}"
            if name in self.past.done:
                continue
            candidate = Candidate.model_validate(plain)
            behind = tuple(event for event in standing if event.id in candidate.events)
            is_stale = any(one in read and one not in {event.id for event in behind} for one in candidate.events)
            problem = _STALE if is_stale else self._problem(candidate, behind, said)
            if problem:
                refused.append(Refusal(candidate.statement, problem, name, model))
            else:
                found.append(Found(name, candidate, behind, model))
        for number, one in enumerate(analysis.data.get("refused", ())):
            if (name := f"{analysis.id}#r{number}") not in self.past.done:
                refused.append(Refusal(one["statement"], one["reason"], name, model))

    def _problem(self, candidate: Candidate, behind: Sequence[StmEvent], said: Heard) -> str:
        if not candidate.statement.strip():
            return "it states nothing"
        if not behind:
            return "it names no event of the log"
        if word := invented(candidate, said, lambda: self._titles_for(behind[0].is_private)):
            return f"nobody said {word!r}"
        return ""

    def _titles_for(self, is_private: bool) -> Heard:
        if is_private not in self._titles:
            self._titles[is_private] = Heard.of(self.known[is_private], is_title=True)
        return self._titles[is_private]


def _readable(event: StmEvent) -> StmEvent:
    """Return an event that a model can be asked about: bytes that are no UTF-8 as the sign for what is unknown."""
    user, ai, thoughts = (_NO_TEXT.sub("\ufffd", text) for text in (event.user, event.ai, event.thoughts))
    return replace(event, user=user, ai=ai, thoughts=thoughts)


def _plain(result: Candidates) -> dict[str, Any]:
    """Return a result as plain values, each candidate checked once more: an engine of a plugin may check nothing."""
    kept, refused = [], []
    for number, one in enumerate(result.candidates):
        if number >= MAX_CANDIDATES:
            refused.append({"statement": str(one.statement)[:300], "reason": f"more than {MAX_CANDIDATES} at once"})
            continue
        try:
            candidate = Candidate.model_validate(one.model_dump(warnings=False))
        except ValidationError as error:
            where = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}))
            refused.append({"statement": str(one.statement)[:300], "reason": f"does not validate: {where}"})
        else:
            kept.append(candidate.model_dump(mode="json", exclude_defaults=True))
    return {"candidates": kept, "refused": refused}


def is_listed(candidate: Candidate, tasks: Sequence[str]) -> bool:
    """Return whether a candidate is a task that short-term memory lists, open or done: it stays there until then."""
    statement = shown(candidate.statement)
    return any(coverage(task, statement) >= LISTED and likeness(task, statement) >= ALIKE for task in map(shown, tasks))


_STALE = "what it rests on was edited, or taken out of the log"  # what was edited is read again
