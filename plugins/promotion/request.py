"""One consolidating call: the request, the model's answer, its check by evidence, and its journal entry.

The journal's `events-analyzed` is the checkpoint: events in it are not sent to a model again, however a run ends.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, TypeVar

from pydantic import ValidationError

from brainiac.brain import Brain
from brainiac.clock import iso, parse_iso
from brainiac.errors import ModelError
from brainiac.events import CandidateRecord, Event, EventsAnalyzed
from brainiac.events import Refused as RefusedCandidate
from brainiac.formats.authors import least_trusted
from brainiac.formats.markdown import one_line
from brainiac.formats.page import STEPS
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.history.exchanges import Exchanges
from brainiac.llm import schemas
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import OFFLINE, ConsolidateRequest, Existing, Operation, Refused, Said, VerifyRequest
from brainiac.storage.database import PAID
from brainiac.storage.links import LinkOrigins
from brainiac.storage.said import FiledExchanges, author_on_page, said_at
from brainiac.storage.statements import StatementLog, event_hash
from brainiac.text.dates import dates_in
from brainiac.text.tokens import likeness

from .apply import Candidate
from .checks import Problem, Sources, origin_of, problems_of
from .draft import CurrentStatement, MemoryDraft
from .filing import NAME, conversation_of
from .known import StandIns, has_only_stand_ins, is_stand_in, known_for

MAX_CHARACTERS = 40_000  # of exchanges in one call, so that a small window holds them
MAX_EXCHANGES = 40  # in one call, so that its answer is not cut off
_SAME_OPERATION = 0.4  # an answer that shares so many character trigrams with what was asked about stands for it
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_STALE = "what it rests on was edited, or taken out of the log"  # an edited event is sent to the model again


@dataclass(slots=True)
class Question:
    """A request with the meaning of its short names (`e1`, `s1`, page paths).

    Attributes:
        request: As the model gets it.
        events: Exchanges by their short ids.
        statements: Current statements by their short ids.
        pages: Path from the root of each page, by the shorter path that the model is shown.
        changed_ids: Short ids of statements that an accepted operation changes: a second one may not.
    """

    request: ConsolidateRequest
    events: dict[str, StmEvent]
    statements: dict[str, CurrentStatement]
    pages: dict[str, str]
    changed_ids: set[str] = field(default_factory=set)


Asked = TypeVar("Asked", bound=schemas.Request)


@dataclass(frozen=True, slots=True)
class Calls:
    """The model calls of a run.

    Attributes:
        brain: The brain.
        cause: The id of the run's first event.
        abandon: Returns whether somebody came back, so that no further call is made.
    """

    brain: Brain
    cause: str
    abandon: Callable[[], bool] | None

    def request(self, of: type[Asked], /, **fields: Any) -> Asked:
        """Return a request of this run."""
        return of(now=self.brain.now(), cause=self.cause, abandon=self.abandon, **fields)

    def stop_if_abandoned(self) -> None:
        """Raise `ModelError` where a person exchanges something again: their answer comes first."""
        if self.abandon and self.abandon():
            raise ModelError("somebody came back", retryable=True)

    def model_for(self, request: schemas.Request) -> str:
        """Return the name of the model that a request goes to; `OFFLINE` for none."""
        return self.brain.models.engine_for(request).name

    def admitted(self, request: Asked) -> Asked:
        """Return a request with what its model may be shown."""
        return Gate.of(self.brain, request, self.brain.models.engine_for(request)).admit(request)

    def answer(self, request: schemas.Request) -> Any:
        """Return a model's answer to a request; the same request is paid for once, until its answer is carried out.

        The answers lie in the state database, which a purge empties of them: a run that is begun again has them.

        Raises:
            ModelError: The model cannot serve now.
        """
        if (model := self.model_for(request)) == OFFLINE:
            return self.brain.models.run(request)
        # of all that the model is shown; of its time only the day counts
        day = datetime(request.now.year, request.now.month, request.now.day, tzinfo=UTC)
        content = f"{model}\n{replace(request, now=day, cause=None, abandon=None)!r}"
        key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        # an answer that another version of the program kept may not validate
        with suppress(KeyError, ValueError, ValidationError):
            return request.result.model_validate(json.loads(self.brain.database.kept(PAID)[key]))
        result = self.brain.models.run(request)
        self.brain.database.keep(PAID, key, json.dumps(result.model_dump(mode="json", warnings=False)))
        return result


class Consolidator:
    """Has a model decide how long-term memory changes after what was said.

    Args:
        calls: The model calls of the run.
        log: Statements and decisions, from the journals.
        origins: Resolves the links in an event's text.
        short_term: Short-term memory; its summary, goals and tasks are shown to the model.
        stand_ins: Statements that are not shown to the model (see `known.py`), nor pages that have no others.
        is_past: Whether it decides on exchanges of long ago, in a catch-up.
    """

    def __init__(
        self,
        calls: Calls,
        log: StatementLog,
        origins: LinkOrigins,
        short_term: ShortTermMemory,
        stand_ins: StandIns,
        *,
        is_past: bool,
    ) -> None:
        self._calls, self._brain, self._log, self._origins = calls, calls.brain, log, origins
        self._stand_ins, self._is_past, self._exchanges = stand_ins, is_past, Exchanges(calls.brain)
        # events and facts are what is decided on: each call is given its part of them as exchanges
        self._short_term = replace(short_term, events=(), facts=())
        self._origin_by_exchange: dict[str, str] = {}

    # --- what was decided before, and what is still to be decided ----------------------------------------

    def decided_before(self, events: Sequence[StmEvent]) -> list[Candidate | RefusedCandidate]:
        """Return the decisions on events that earlier runs journaled and did not carry out: they ended early."""
        by_id = {event.id: event for event in events}
        return [row for analysis in self._log.analyses(by_id) for row in self._decided(analysis, by_id)]

    def read_before(self, events: Sequence[StmEvent]) -> dict[str, str]:
        """Return the events that were sent to a model until now, with a hash of what each said then."""
        analyses = self._log.analyses(event.id for event in events)
        return {exchange: hash_ for analysis in analyses for exchange, hash_ in _analyzed(analysis).events.items()}

    def parts(self, events: Sequence[StmEvent]) -> Iterator[list[StmEvent]]:
        """Yield the events that no model has read in these words, oldest first, as many at once as one call takes."""
        hashes = self.read_before(events)
        return parts_of(event for event in sorted(events, key=said_at) if hashes.get(event.id) != event_hash(event))

    def ask(self, events: Sequence[StmEvent], draft: MemoryDraft) -> list[Candidate | RefusedCandidate]:
        """Have the model decide on events, record its decision in the journal, and return it.

        Operations that a check refuses are sent back once, each with its problems.

        Raises:
            ModelError: The model cannot serve now; nothing was recorded.
        """
        question = self.request_for(events, draft)
        model = self._calls.model_for(question.request)
        operations = self._operations(question.request)
        out_of_reach = self._reach_named(question, operations, draft)
        accepted, sent_back = self._checked(question, operations, is_last=False)
        corrected, refused = list[Operation](), list[Refused]()
        if sent_back:
            second_answer = self._operations(_only_about(question.request, sent_back))
            corrected, refused = self._checked(question, second_answer, is_last=True)
            answered = [*corrected, *(row.operation for row in refused)]
            for row in sent_back:  # what the second answer leaves out is refused too; only told, as nothing rests on it
                text, ids = row.operation.text, set(row.operation.ids)
                is_given = any(
                    ids & set(other.ids) or likeness(other.text, text) >= _SAME_OPERATION for other in answered
                )
                # of what could not be read nobody knows what it was to be
                if not is_given and (row.operation.action or not answered):
                    refused.append(row)
        analyzed = EventsAnalyzed(
            events={event.id: event_hash(event) for event in events},
            model=model,
            candidates=tuple(self._record_of(operation, question) for operation in (*accepted, *corrected)),
            refused=tuple(map(_refusal, [*refused, *out_of_reach])),
            asked=tuple(map(_refusal, sent_back)),
        )
        analysis = self._brain.record(analyzed, by=NAME, cause=self._calls.cause)
        return list(self._decided(analysis, {event.id: event for event in events}))

    def _decided(self, analysis: Event, events: Mapping[str, StmEvent]) -> Iterator[Candidate | RefusedCandidate]:
        """Yield what a journaled decision has that no run has carried out: candidates, and what a check refused.

        An operation is refused if an event that it rests on was edited or removed since.
        """
        analyzed = _analyzed(analysis)
        for number, stored in enumerate(analyzed.candidates):
            candidate_id = f"{analysis.id}#{number}"
            if self._log.is_decided(candidate_id):
                continue
            sources = [events[exchange] for exchange in stored.events if exchange in events]
            sources = [event for event in sources if event_hash(event) == analyzed.events.get(event.id)]
            if len(sources) < len(stored.events):
                yield RefusedCandidate(candidate=candidate_id, statement=stored.text, reason=_STALE)
                continue
            operation = Operation.model_validate(stored.to_json())
            ordered = tuple(sorted(sources, key=said_at))
            yield Candidate(candidate_id, operation, ordered, analyzed.model, stored.origin)
        for number, refused in enumerate(analyzed.refused):
            # `#r0`: the first refused operation, as `#0` is the first candidate
            if not self._log.is_decided(candidate_id := f"{analysis.id}#r{number}"):
                yield replace(refused, candidate=candidate_id)

    # --- what is shown -----------------------------------------------------------------------------------

    def request_for(self, events: Sequence[StmEvent], draft: MemoryDraft) -> Question:
        """Return the request for events, with the meaning of its short names."""
        is_private, by_name = events[0].is_private, dict[str, StmEvent]()
        for number, event in enumerate(events, 1):
            recorded = self._exchanges.event(event.id)
            if recorded and recorded.data.get("model") == OFFLINE:  # its answer only quotes memory
                event = replace(event, ai="")
            event = self._origins.with_rooted_links(event)
            # U+FFFD in place of bytes that are no UTF-8: a request has to be valid JSON
            user, ai, thoughts = (_SURROGATES.sub("\ufffd", text) for text in (event.user, event.ai, event.thoughts))
            by_name[f"e{number}"] = replace(event, user=user, ai=ai, thoughts=thoughts)
        memories = list(draft.memories(is_private=False))
        if is_private:  # private words change private pages; of the others they may ask to forget something
            memories = [*draft.memories(is_private=True), *memories]
        memories = [page for page in memories if not has_only_stand_ins(self._stand_ins, page)]
        statements, pages = known_for(self._brain, draft, memories, list(by_name.values()))
        shown = (row for row in statements if not is_stand_in(self._stand_ins, row.page, row.statement))
        by_id = {f"s{number}": statement for number, statement in enumerate(shown, 1)}
        top, over = draft.pages.root + "/", self._over(by_id.values())
        request = self._calls.request(
            ConsolidateRequest,
            is_private=is_private,
            said=self._said(by_name),
            short_term=self._short_term,
            existing=[as_existing(name, row, is_over=row.id in over) for name, row in by_id.items()],
            pages=pages,
            is_past=self._is_past,
        )
        # the gate is asked here too: a problem that is sent back to the model quotes statements
        request = self._calls.admitted(request)
        return Question(
            request,
            events={exchange.id: exchange.event for exchange in request.said},
            statements={statement.id: by_id[statement.id] for statement in request.existing},
            pages={page.path.removeprefix(top): page.path for page in request.pages},
        )

    def _reach_named(
        self, question: Question, operations: Sequence[Operation | Refused], draft: MemoryDraft
    ) -> list[Refused]:
        """Add to a question what a `rename` is about beyond the statements shown: the others of a page so named.

        Returns:
            What to say of statements of other pages that were not shown and have a former name: they keep it.
        """
        renames = [row for row in operations if isinstance(row, Operation) and row.action == "rename"]
        if not (names := {one_line(row.former) for row in renames} - {""}):
            return []
        request, pattern, known = question.request, _pattern_of(names), {row.id for row in question.statements.values()}
        rows = [
            row
            for is_private in {False, request.is_private}
            for memory in draft.memories(is_private=is_private)
            for row in draft.statements_of(memory)
            if row.id not in known and any(found["name"] for found in pattern.finditer(row.text))
            if not (row.is_by_hand or is_stand_in(self._stand_ins, row.page, row.statement))
        ]
        by_id = {f"r{number}": row for number, row in enumerate(rows, 1)}
        existing = [as_existing(name, row) for name, row in by_id.items()]
        unshown = self._calls.admitted(replace(request, existing=existing)).existing
        titled = {page.path: page.names[0].casefold() for page in request.pages if page.names}
        rest = [row for row in unshown if titled.get(row.path) in set(map(str.casefold, names))]
        rest = [row for row in rest if by_id[row.id].statement.section != STEPS]
        question.request = replace(request, existing=[*request.existing, *rest])
        question.statements |= {row.id: by_id[row.id] for row in rest}
        others = ", ".join(sorted({row.path for row in unshown if row not in rest}))
        return [Refused(renames[0], f"statements not shown keep the former name, on {others}")] if others else []

    def _over(self, rows: Iterable[CurrentStatement]) -> set[str]:
        """Return the ids of the statements that were plans for a day when they were said, and whose day has passed.

        A plan names its day: what has only a first day is so from then on, and may recur.
        """
        rows, today = list(rows), self._brain.day_of(iso(self._brain.clock.now()))
        changes = chain.from_iterable(self._log.changes_of(page) for page in {row.page for row in rows})
        last = {(change.record.page, change.block): change.record for change in changes if change.hash}
        over = set()
        for row in rows:
            record = last.get((row.page, row.statement.block_id))
            planned = record.valid_from if record and record.valid_until in ("", record.valid_from) else ""
            if row.since < planned < today and planned in {day.isoformat() for day, _ in dates_in(row.text)}:
                over.add(row.id)
        return over

    def _said(self, events: Mapping[str, StmEvent]) -> list[Said]:
        """Return the exchanges as the model is shown them.

        The first exchange of each conversation has the exchange that came before it there.
        """
        said: list[Said] = []
        for name, event in events.items():
            conversation, before = conversation_of(self._brain, self._log.prompt_of(event.id)), None
            if not conversation or all(conversation != earlier.thread for earlier in said):
                # what it answers to: nothing that is more than a day older, among the events, or by the offline engine
                exchange = self._exchanges.texts_of(event.id)
                turns = self._brain.conversation(exchange.prompt) if exchange else []
                since = iso(parse_iso(event.at) - timedelta(days=1))
                before = next((turn for turn in reversed(turns) if since < turn.at < event.at), None)
                is_offline = before and before.response and before.response.model == OFFLINE
                if before and (is_offline or any(before.id == shown.id for shown in events.values())):
                    before = None
            said.append(Said(name, event, conversation, before))
        return said

    # --- what the model answers --------------------------------------------------------------------------

    def _operations(self, request: ConsolidateRequest) -> list[Operation | Refused]:
        """Return the model's operations; one that does not validate is a refused one.

        They are validated again here because the engine of a plugin may not have done so.
        """
        self._calls.stop_if_abandoned()
        if not request.said:
            return []  # the gate withheld every exchange
        result: schemas.Consolidation = self._calls.answer(request)
        # these three are the program's own: a model does not set them
        own = {"marked_by": "", "tags": [], "is_doubted": False}
        rows = [operation.model_dump(warnings=False) | own for operation in result.operations]
        read = schemas.Consolidation.model_validate({"operations": rows, "unread": result.unread})
        nothing = Operation(action="new").model_copy(update={"action": ""})
        unread = [Refused(nothing.model_copy(update={"text": row.text}), row.problem) for row in read.unread]
        return [*read.operations, *unread]

    def _checked(
        self, question: Question, operations: Sequence[Operation | Refused], *, is_last: bool
    ) -> tuple[list[Operation], list[Refused]]:
        """Return the operations that pass the checks, and the refused ones with their problems.

        Args:
            question: The request; it notes which statements the accepted operations change.
            operations: As the model gave them.
            is_last: Whether refused operations are not sent back again. Soft problems are then ignored, and what is in
                doubt is for the person to decide.
        """
        accepted: list[Operation] = []
        refused: list[Refused] = []
        for operation in _renamed(operations, question):
            if isinstance(operation, Refused):
                refused.append(operation)
                continue
            operation = self._with_names(operation, question)
            is_how_to = operation.page.kind == "skill"
            if not operation.page.is_whole and is_how_to != bool(operation.steps):  # steps and how-to pages go together
                page = operation.page.model_copy(update={"kind": "concrete"})
                operation = operation.model_copy(update={"page": page, "steps": []})
            existing = {statement.id: statement for statement in question.request.existing}
            targets = [existing[name] for name in operation.ids if name in existing]
            problems = problems_of(operation, targets, self._sources(question))
            is_change = operation.action in ("replace", "end", "forget")
            if is_change and not question.changed_ids.isdisjoint(operation.ids):  # beside those accepted before it
                text = f"{', '.join(operation.ids)} is changed by another operation already"
                problems.append(Problem(text, is_hard=False))
            hard = [problem for problem in problems if problem.is_hard]
            may_wait = not hard or operation.action in ("new", "replace", "end")
            if problems and not (is_last and may_wait and all(problem.is_doubt for problem in hard)):
                brief = operation.model_copy(update={"text": operation.text[: schemas.MAX_TEXT]})
                refused.append(Refused(brief, "; ".join(map(str, hard or problems))))
                continue
            if hard:
                reasoning = "; ".join(problem.text for problem in hard)[:500]
                operation = operation.model_copy(update={"is_doubted": True, "reasoning": reasoning})
            elif is_change:
                # what another operation changes already stays as that says, and this one states its text beside it
                ids = [name for name in operation.ids if name not in question.changed_ids]
                operation = operation.model_copy(update={"ids": ids})
                question.changed_ids.update(ids)
            accepted.append(operation)
        return accepted, refused

    def _sources(self, question: Question) -> Sources:
        """Return what the operations on a request may rest on."""
        request = question.request
        reading = self._calls.request(VerifyRequest, is_private=request.is_private, claims=())
        return Sources(
            events=question.events,
            origin_of=lambda name: self.origin_of(question.events[name]),
            day_of=self._brain.day_of,
            pages={page.path: page.names for page in request.pages},
            about={page.path: page.about for page in request.pages},
            known=request.existing,
            tasks=open_tasks(request.short_term),
            is_past=self._is_past,
            is_read_again=self._calls.model_for(reading) != OFFLINE,
        )

    def _with_names(self, operation: Operation, question: Question) -> Operation:
        """Return an operation with paths from the root, without a page that was not shown."""
        page = operation.page
        # a model may name a page by the path that it was shown, or by the whole one
        paths = {**question.pages, **{path: path for path in question.pages.values()}}
        update = {"path": paths.get(page.path, ""), "merge": [paths[path] for path in page.merge if path in paths]}
        if page.path and not update["path"] and not page.title:
            update["title"] = posixpath.basename(page.path).removesuffix(".md")
        return operation.model_copy(update={"page": page.model_copy(update=update)})

    def _record_of(self, operation: Operation, question: Question) -> CandidateRecord:
        """Return the journal's record of an operation, with the lasting ids of its exchanges and statements."""
        ids = [question.statements[name].id for name in operation.ids if name in question.statements]
        quoted = [(row, question.events[row.exchange]) for row in operation.evidence]
        moments = {event.id: event.at for _, event in quoted}
        evidence = [row.model_copy(update={"exchange": event.id}) for row, event in quoted]
        lasting = operation.model_copy(update={"ids": ids, "evidence": evidence})
        return CandidateRecord.from_json(
            {
                "events": list(moments),
                "at": max(moments.values()),
                "origin": origin_of(operation, self._sources(question)),
                **lasting.model_dump(mode="json", exclude_defaults=True),
            }
        )

    def origin_of(self, event: StmEvent) -> str:
        """Return the origin of an exchange's prompt, the least trusted that log, file or page names."""
        if event.id not in self._origin_by_exchange:
            if texts := self._exchanges.texts_of(event.id):
                origin = texts.prompt.origin
            else:  # of an import only its page has the texts
                origin = author_on_page(self._brain, FiledExchanges(self._brain).page_of(event.id)).origin
            self._origin_by_exchange[event.id] = least_trusted(origin, event.origin)
        return self._origin_by_exchange[event.id]


def open_tasks(memory: ShortTermMemory) -> list[str]:
    """Return the open goals and tasks of short-term memory, as a model is shown them."""
    return [item.text for item in (*memory.goals, *memory.tasks) if not item.is_done]


def parts_of(
    events: Iterable[StmEvent], begins_part: Callable[[Sequence[StmEvent], StmEvent], bool] = lambda part, event: False
) -> Iterator[list[StmEvent]]:
    """Yield events in their order, as many at once as one call takes.

    Args:
        events: The events.
        begins_part: Returns whether an event begins a new part, given the events of the part so far.
    """
    part: list[StmEvent] = []
    size = 0
    for event in events:
        length = len(event.user) + len(event.ai)
        is_full = size + length > MAX_CHARACTERS or len(part) >= MAX_EXCHANGES
        if part and (is_full or begins_part(part, event)):
            yield part
            part, size = [], 0
        part.append(event)
        size += length
    if part:
        yield part


def _only_about(request: ConsolidateRequest, sent_back: Sequence[Refused]) -> ConsolidateRequest:
    """Return the second request: the refused operations, the exchanges they quote and the pages they are about.

    Where one quotes nothing or an unknown exchange, all exchanges are shown, and where one names an unknown statement,
    all pages: so the model finds the right one.
    """
    operations = [row.operation for row in sent_back]
    quoted_ids = {quoted.exchange for operation in operations for quoted in operation.evidence}
    exchanges, existing, pages = request.said, request.existing, request.pages
    if quoted_ids <= {exchange.id for exchange in exchanges} and all(operation.evidence for operation in operations):
        exchanges = [exchange for exchange in exchanges if exchange.id in quoted_ids]
    target_ids = {name for operation in operations for name in operation.ids}
    if target_ids <= {statement.id for statement in existing}:
        paths = {operation.page.path for operation in operations}
        paths |= {statement.path for statement in existing if statement.id in target_ids}
        existing = [statement for statement in existing if statement.path in paths]
        pages = [page for page in pages if page.path in paths]
    return replace(request, said=exchanges, existing=existing, pages=pages, refused=sent_back)


def _refusal(row: Refused) -> RefusedCandidate:
    """Return a refused operation as the journal has it."""
    return RefusedCandidate(statement=row.operation.text[:300], reason=row.problem[:300])


def _analyzed(analysis: Event) -> EventsAnalyzed:
    """Return the typed content of an `events-analyzed` event."""
    assert isinstance(analysis.what, EventsAnalyzed)
    return analysis.what


def _renamed(operations: Sequence[Operation | Refused], question: Question) -> Iterator[Operation | Refused]:
    """Yield all operations but `rename`, and for those a replacement of each statement that has one of the names.

    A page of such a name gets the new one, even where none of its statements has it. A person's own line stays, and so
    do addresses and targets of links, and what another operation words anew.
    """
    renames: dict[str, Operation] = {}
    for operation in operations:
        if isinstance(operation, Refused):
            yield operation
        elif operation.action != "rename":
            yield operation.model_copy(update={"former": ""})
        elif one_line(operation.text) and (former := one_line(operation.former)):
            renames.setdefault(former, operation)
        else:
            yield Refused(operation, "a `rename` has a `former` name and a `text`")
    pattern = _pattern_of(renames)
    titles = {page.path: page.names[0] for page in question.request.pages if page.names}
    by_title, named = {former.casefold(): former for former in renames}, set[str]()
    for row in question.request.existing if renames else ():
        names = {match["name"]: None for match in pattern.finditer(row.content) if match["name"]}
        title = by_title.get(titles.get(row.path, "").casefold(), "")
        names |= {title: None} if title else {}
        if row.is_by_hand or not names:
            continue
        named |= names.keys()
        if row.id in question.changed_ids:
            continue
        titles.pop(row.path, None)  # changed once
        page = schemas.PageRef(path=row.path, title=one_line(renames[title].text) if title else "")
        text = pattern.sub(
            lambda found: one_line(renames[found["name"]].text) if found["name"] else found[0], row.content
        )
        evidence = list(chain.from_iterable(renames[name].evidence for name in names))
        fields = {"action": "replace", "ids": [row.id], "text": text, "page": page, "evidence": evidence}
        yield renames[next(iter(names))].model_copy(update=fields)
    for former in renames.keys() - named:
        problem = f"no statement shown has the name “{former[:80]}” as a word; copy it as it stands there, or `replace`"
        yield Refused(renames[former], problem)


def _pattern_of(names: Iterable[str]) -> re.Pattern[str]:
    """Return what finds names as words, in the group `name`, and the targets of links and addresses, without it."""
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"\]\([^)\n]*\)|\w+://\S+|(?<![\w@])(?P<name>{either})(?!\w|@|\.\w)")


def as_existing(name: str, row: CurrentStatement, *, is_over: bool = False) -> Existing:
    """Return a statement as a model is shown it, under a short name."""
    return Existing(name, row.text, row.path, row.title, row.since, row.is_by_hand, is_over)
