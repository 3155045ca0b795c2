"""One consolidating call: what a model is shown, what it answers, checked by evidence, and kept in the journal (I1-I8).

The journal's `events-analyzed` is the checkpoint: what was decided is not asked again, however a run ends (seeds R10).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pydantic import ValidationError

from brainiac.brain import Brain
from brainiac.errors import ModelError
from brainiac.events import CandidateRecord, Event, EventsAnalyzed
from brainiac.events import Refused as Refusal
from brainiac.formats.markdown import blocks_of
from brainiac.formats.page import Memory
from brainiac.formats.prompt import ORIGINS
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.history.why import Exchanges
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import (
    MAX_TEXT,
    OFFLINE,
    ConsolidateRequest,
    Consolidation,
    Existing,
    Operation,
    PageName,
    Refused,
    Said,
)
from brainiac.pipeline.dispatch import exchange_of
from brainiac.search.documents import Hit
from brainiac.search.query import searches
from brainiac.storage.relinking import Origins
from brainiac.storage.statements import StatementLog, event_hash
from brainiac.text.tokens import coverage, words

from .apply import Candidate
from .checks import Problem, Sources, origin_of, problems_of
from .draft import USER, Draft, Known, folded
from .placing import with_fitting_steps

NAME = "promotion"
MAX_CHARACTERS = 40_000  # of exchanges in one call, so that a small window holds them
MAX_EXCHANGES = 40  # in one call, so that its answer is not cut off
MAX_STATEMENTS = 150  # in one call; where memory has no more all of them are shown
MAX_PAGES = 150
_LOOKED_AT = 10  # statements that a block of what was said may be about
_NO_TEXT = re.compile(r"[\ud800-\udfff]")
_STALE = "what it rests on was edited, or taken out of the log"  # what was edited is read again

Decided = tuple[list[Candidate], dict[str, tuple[str, str]]]  # and what was refused, by id: statement and reason


@dataclass(slots=True)
class Shown:
    """What a request shows under short names.

    Attributes:
        request: As the model gets it.
        events: Exchanges by their short ids.
        statements: Statements by theirs.
        pages: Paths of pages as the model is shown them, and as they are.
        taken: Statements that an operation changes already.
    """

    request: ConsolidateRequest
    events: dict[str, StmEvent]
    statements: dict[str, Known]
    pages: dict[str, str]
    taken: set[str] = field(default_factory=set)


class Consolidator:
    """Has a model decide what becomes of memory after what was said.

    Args:
        brain: The brain.
        log: What the journals tell.
        origins: Tells where the links of an event lead.
        exchanges: What the journals tell of exchanges.
        cause: Id of the run's first event.
        short_term: As it stands.
        abandon: Asked whether somebody came back.
    """

    def __init__(
        self,
        brain: Brain,
        log: StatementLog,
        origins: Origins,
        exchanges: Exchanges,
        cause: str,
        short_term: ShortTermMemory,
        abandon: Callable[[], bool] | None,
    ) -> None:
        self._brain, self._log, self._origins, self._exchanges = brain, log, origins, exchanges
        self._cause, self._abandon = cause, abandon
        self._short_term = replace(short_term, events=(), facts=())

    # --- what was decided before, what is still to be ---------------------------------------------------

    def decided(self, events: Sequence[StmEvent]) -> Decided:
        """Return the candidates that an earlier run left undecided, and the others by id: statement and reason."""
        by_id = {event.id: event for event in events}
        candidates: list[Candidate] = []
        refused: dict[str, tuple[str, str]] = {}
        for analysis in filter(_is_readable, self._log.analyses(by_id)):
            left, gone = self._taken(analysis, by_id)
            candidates, refused = [*candidates, *left], refused | gone
        return candidates, refused

    def parts(self, events: Sequence[StmEvent]) -> Iterator[list[StmEvent]]:
        """Yield the events that no model was asked about yet, oldest first, as many at once as one call takes."""
        read = {
            said
            for analysis in filter(_is_readable, self._log.analyses(event.id for event in events))
            for said in _analyzed(analysis).events.items()
        }
        part: list[StmEvent] = []
        for event in sorted(events, key=lambda event: (event.at, event.id)):
            if (event.id, event_hash(event)) in read:
                continue
            size = sum(len(said.user) + len(said.ai) for said in (*part, event))
            if part and (size > MAX_CHARACTERS or len(part) >= MAX_EXCHANGES):
                yield part
                part = []
            part.append(event)
        if part:
            yield part

    def ask(self, events: Sequence[StmEvent], draft: Draft) -> Decided:
        """Ask about events and return candidates and what was refused, as `decided` does; both are in the journal.

        What a check refuses is asked about once more, by name, with what is wrong with it.

        Raises:
            ModelError: The model cannot serve now; nothing was recorded.
        """
        shown = self.request_for(events, draft)
        model = self._brain.models.engine_for(shown.request).name
        taken, refused = self._checked(shown, self._operations(shown.request), is_last=False)
        # once, and with all that is wrong: what insists on a soft problem is believed, on a hard one refused
        if refused:
            again = replace(shown.request, refused=refused)
            further, finally_refused = self._checked(shown, self._operations(again), is_last=True)
            taken, refused = [*taken, *further], [*refused, *finally_refused]
        analyzed = EventsAnalyzed(
            events={event.id: event_hash(event) for event in events},
            model=model,
            candidates=tuple(self._stored(operation, shown) for operation in taken),
            refused=tuple(Refusal(statement=row.operation.text[:300], reason=row.problem[:300]) for row in refused),
        )
        analysis = self._brain.record(analyzed, by=NAME, cause=self._cause)
        return self._taken(analysis, {event.id: event for event in events})

    def _taken(self, analysis: Event, events: Mapping[str, StmEvent]) -> Decided:
        """Return a checkpoint's operations that are still to be decided, and what of it is refused."""
        candidates: list[Candidate] = []
        refused: dict[str, tuple[str, str]] = {}
        analyzed = _analyzed(analysis)
        for number, stored in enumerate(analyzed.candidates):
            name = f"{analysis.id}#{number}"
            if self._log.is_decided(name):
                continue
            behind = [events[exchange] for exchange in stored.events if exchange in events]
            behind = [event for event in behind if event_hash(event) == analyzed.events.get(event.id)]
            if len(behind) < len(stored.events):
                refused[name] = stored.text, _STALE
                continue
            operation = Operation.model_validate(stored.to_json())
            ordered = tuple(sorted(behind, key=lambda event: (event.at, event.id)))
            candidates.append(Candidate(name, operation, ordered, analyzed.model, stored.origin or ORIGINS[0]))
        for number, row in enumerate(analyzed.refused):
            if not self._log.is_decided(name := f"{analysis.id}#r{number}"):
                refused[name] = row.statement, row.reason
        return candidates, refused

    # --- what is shown -----------------------------------------------------------------------------------

    def request_for(self, events: Sequence[StmEvent], draft: Draft) -> Shown:
        """Return what a model is asked about events, and what its short names stand for."""
        is_private = events[0].is_private
        said = {
            f"e{n}": _readable(self._origins.rooted(self._without_ours(event))) for n, event in enumerate(events, 1)
        }
        memories = self._memories(draft, is_private=is_private)
        texts = [event.user for event in said.values()]
        near = {f"s{n}": known for n, known in enumerate(nearest(self._brain, draft, memories, texts), 1)}
        top = draft.pages.root + "/"
        pages = _page_names(memories, near.values(), texts)
        request = ConsolidateRequest(
            now=self._brain.now(),
            is_private=is_private,
            cause=self._cause,
            abandon=self._abandon,
            said=[Said(name, event, self._thread_of(event)) for name, event in said.items()],
            short_term=self._short_term,
            existing=[Existing(name, known.text, known.path, known.title, known.since) for name, known in near.items()],
            pages=pages,
        )
        # as the model's gate admits it: what a check tells of a statement must not tell of one that was withheld
        is_remote = self._brain.models.engine_for(request).is_remote
        request = Gate(self._brain, is_remote=is_remote).admit(request)
        return Shown(
            request,
            {exchange.id: exchange.event for exchange in request.said},
            {statement.id: near[statement.id] for statement in request.existing},
            {page.path.removeprefix(top): page.path for page in request.pages},
        )

    def _memories(self, draft: Draft, *, is_private: bool) -> list[Memory]:
        """Return the pages that may matter: to what is private, for a wish to forget, the open ones too."""
        memories = list(draft.memories(is_private=False))
        return [*draft.memories(is_private=True), *memories] if is_private else memories

    def _without_ours(self, event: StmEvent) -> StmEvent:
        """Return an exchange without the keyless engine's words, which quote what memory has already."""
        recorded = self._exchanges.event(event.id)
        return replace(event, ai="") if recorded and recorded.data.get("model") == OFFLINE else event

    def _thread_of(self, event: StmEvent) -> str:
        inbox = self._brain.tree.relative(self._brain.tree.inbox)
        return posixpath.dirname(self._log.prompt_of(event.id)).removeprefix(inbox).strip("/")

    # --- what is answered --------------------------------------------------------------------------------

    def _operations(self, request: ConsolidateRequest) -> list[Operation | Refused]:
        """Return a model's operations; one that does not validate is refused: an engine of a plugin checks nothing."""
        if self._abandon and self._abandon():
            raise ModelError("somebody came back", retryable=True)
        if not request.said:
            return []  # all of it is withheld from the model
        result = self._brain.models.run(request)
        assert isinstance(result, Consolidation)
        operations: list[Operation | Refused] = []
        for operation in result.operations[:MAX_STATEMENTS]:
            given = operation.model_dump(warnings=False) | {"marked_by": "", "tags": []}
            try:
                operations.append(Operation.model_validate(given))
            except ValidationError as error:
                where = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}))
                operations.append(_unread(operation, f"does not validate: {where}"))
        return operations + [
            _unread(operation, f"more than {MAX_STATEMENTS} at once")
            for operation in result.operations[MAX_STATEMENTS:]
        ]

    def _checked(
        self, shown: Shown, operations: Sequence[Operation | Refused], *, is_last: bool
    ) -> tuple[list[Operation], list[Refused]]:
        """Return the operations that may be carried out, their exchanges resolved, and those that may not."""
        taken: list[Operation] = []
        refused: list[Refused] = []
        for operation in operations:
            if isinstance(operation, Refused):
                refused.append(operation)
                continue
            operation = with_fitting_steps(_with_paths(operation, shown))
            problems = self._problems(operation, shown)
            hard = [problem for problem in problems if problem.is_hard]
            # Its words are well founded, only what it would change is not: they are stated beside what stands.
            if is_last and hard and all(problem.is_about_change for problem in hard) and operation.text.strip():
                beside = operation.model_copy(update={"action": "new", "ids": []})
                if not any(problem.is_hard for problem in self._problems(beside, shown)):
                    operation, hard = beside, []  # in doubt both stand
            if hard or (problems and not is_last):
                brief = operation.model_copy(update={"text": operation.text[:MAX_TEXT]})
                refused.append(Refused(brief, "; ".join(problem.text for problem in hard or problems)))
                continue
            if operation.action in ("replace", "end", "forget"):
                shown.taken.update(operation.ids)
            taken.append(operation)
        return taken, refused

    def _problems(self, operation: Operation, shown: Shown) -> list[Problem]:
        existing = {statement.id: statement for statement in shown.request.existing}
        targets = [existing[name] for name in operation.ids if name in existing]
        problems = problems_of(operation, targets, self._sources(shown))
        if operation.action in ("replace", "end", "forget") and not shown.taken.isdisjoint(operation.ids):
            text = f"{', '.join(operation.ids)} is changed by another operation already"
            problems.append(Problem(text, is_about_change=True))
        return problems

    def _sources(self, shown: Shown) -> Sources:
        names = [name for page in shown.request.pages for name in page.names]
        origin = {name: self._origin_of(event.id) for name, event in shown.events.items()}
        return Sources(shown.events, origin.__getitem__, self._brain.day_of, names)

    def _stored(self, operation: Operation, shown: Shown) -> CandidateRecord:
        """Return what the journal keeps of an operation: its exchanges and statements by their lasting ids."""
        exchanges = shown.events
        ids = [shown.statements[name].id for name in operation.ids if name in shown.statements]
        evidence = [
            quoted.model_copy(update={"exchange": exchanges[quoted.exchange].id}) for quoted in operation.evidence
        ]
        behind = {exchanges[quoted.exchange].id: exchanges[quoted.exchange].at for quoted in operation.evidence}
        lasting = operation.model_copy(update={"ids": ids, "evidence": evidence})
        return CandidateRecord.from_json(
            {
                "events": list(behind),
                "at": max(behind.values()),
                "origin": origin_of(operation, self._sources(shown)),
                **lasting.model_dump(mode="json", exclude_defaults=True),
            }
        )

    def _origin_of(self, exchange: str) -> str:
        """Return whose words the prompt of an exchange holds."""
        if exchange not in self._origin:
            recorded = self._exchanges.event(exchange)
            spoken = exchange_of(self._brain, recorded) if recorded else None
            self._origin[exchange] = spoken.prompt.origin if spoken else ORIGINS[0]
        return self._origin[exchange]

    @cached_property
    def _origin(self) -> dict[str, str]:
        return {}


def nearest(brain: Brain, draft: Draft, memories: Sequence[Memory], texts: Sequence[str]) -> list[Known]:
    """Return the statements that texts may be about, nearest first; where there are few, all of them."""
    is_small = sum(len(memory.statements) for memory in memories) <= MAX_STATEMENTS
    hits = set() if is_small else {(hit.path, folded(hit.text)) for text in texts for hit in _hits(brain, text)}
    whole = set() if is_small else _named_in(memories, texts) | draft.working.keys()
    paths = whole | {path for path, _ in hits}
    statements = [
        known
        for memory in memories
        if is_small or memory.path in paths
        for known in draft.statements_of(memory)
        if known.statement.section != "Steps"  # a how-to changes as a whole
        and (is_small or memory.path in whole or (memory.path, folded(known.statement.text)) in hits)
    ]
    likest = {known.id: max((coverage(known.text, text) for text in texts), default=0.0) for known in statements}
    return sorted(statements, key=lambda known: -likest[known.id])[:MAX_STATEMENTS]


def _hits(brain: Brain, text: str) -> Iterator[Hit]:
    for block in blocks_of(text)[:_LOOKED_AT]:
        yield from brain.recall.search(  # by words alone: no embedder elsewhere is asked about what nobody asked
            searches(block, ())[0],
            limit=_LOOKED_AT,
            kinds={"statement"},
            now=brain.now(),
            is_private=True,
        )


def _named_in(memories: Sequence[Memory], texts: Sequence[str]) -> set[str]:
    """Return the pages of concrete things that texts name word for word."""
    spoken = [f" {' '.join(words(text))} " for text in texts]
    named = set()
    for memory in memories:
        names = (" ".join(words(name)) for name in (memory.title, *memory.aliases))
        if any(name and f" {name} " in text for name in names for text in spoken):
            named.add(memory.path)
    return named


def _page_names(memories: Sequence[Memory], near: Iterable[Known], texts: Sequence[str]) -> list[PageName]:
    """Return the pages that may matter: those of near statements, those named, the user's own, then the others."""
    paths = dict.fromkeys(known.path for known in near)
    named = _named_in(memories, texts)
    pages = [memory for memory in memories if "/events/" not in memory.path]
    pages.sort(key=lambda page: (page.path not in paths, page.path not in named, page.subject != USER))
    return [PageName(page.path, (page.title, *page.aliases), _about(page)) for page in pages[:MAX_PAGES]]


def _about(memory: Memory) -> str:
    summary = str(memory.meta.get("summary") or "")
    return summary or next((held.text[:120] for held in memory.statements if not held.is_history), "")


def _unread(operation: Operation, problem: str) -> Refused:
    return Refused(Operation.model_construct(action=operation.action, text=str(operation.text)[:MAX_TEXT]), problem)


def _with_paths(operation: Operation, shown: Shown) -> Operation:
    """Return an operation whose page is named by its path from the root; one that was not shown is none."""
    page = operation.page
    paths = {**shown.pages, **{path: path for path in shown.pages.values()}}
    update = {"path": paths.get(page.path, ""), "merge": [paths[path] for path in page.merge if path in paths]}
    return operation.model_copy(update={"page": page.model_copy(update=update)})


def _analyzed(analysis: Event) -> EventsAnalyzed:
    assert isinstance(analysis.what, EventsAnalyzed)
    return analysis.what


def _is_readable(analysis: Event) -> bool:
    """Return whether a checkpoint holds operations; one of the first version, which does not, is passed over."""
    return all(candidate.action for candidate in _analyzed(analysis).candidates)


def _readable(event: StmEvent) -> StmEvent:
    """Return an event that a model can be asked about: bytes that are no UTF-8 as the sign for what is unknown."""
    user, ai, thoughts = (_NO_TEXT.sub("\ufffd", text) for text in (event.user, event.ai, event.thoughts))
    return replace(event, user=user, ai=ai, thoughts=thoughts)
