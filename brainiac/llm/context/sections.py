"""What each purpose is shown between the role and the end, in the order of seeds C1 and C2."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from brainiac.clock import moment_in
from brainiac.formats.prompt import Exchange, conversation_of
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.library import Library
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.context.budget import Count
from brainiac.llm.context.fence import one_line, quoted, spoken
from brainiac.llm.context.focus import focus_blocks
from brainiac.llm.context.long_term import Places, dated, long_term_block
from brainiac.llm.context.short_term import ListsSoFar, conversation_blocks, event_text, short_term_blocks
from brainiac.llm.context.workflows import listed, started, workflows
from brainiac.llm.gate import Gate
from brainiac.llm.schemas import (
    AnalyzeRequest,
    AnswerRequest,
    Candidate,
    IntegrateRequest,
    OrganizeRequest,
    Purpose,
    QueriesRequest,
    ReflectRequest,
    Request,
    SummarizeRequest,
    SynthesizeRequest,
)

Said = TypeVar("Said", StmEvent, Exchange)

PROMPT_HEADING = "## User Prompt"
JSON_ONLY = "Answer now, with JSON only."


@dataclass(frozen=True, slots=True)
class Reader:
    """Who is shown something: a purpose and model, with what it was shown before, its budget and its gate."""

    library: Library
    name: str
    lists: ListsSoFar
    places: Places
    limit_tokens: int
    count: Count
    gate: Gate

    def short_term(self, memory: ShortTermMemory) -> list[Block]:
        """Return the blocks of short-term memory."""
        memory = replace(memory, events=tuple(self.timed(memory.events)))
        return short_term_blocks(memory, self.lists, self.name, self.limit_tokens, self.count)

    def timed(self, said: Iterable[Said]) -> list[Said]:
        """Return exchanges with the person's time, as all that is said of days."""
        return [replace(each, at=moment_in(self.library.zone, each.at)) for each in said]

    def events(self, name: str, heading: str, events: Sequence[StmEvent], place: int = Stability.SHORT_TERM) -> Block:
        """Return events that a decision rests on: with their ids, none left out."""
        longest = self.limit_tokens
        texts = [event_text(event, longest, self.count, with_id=True) for event in self.timed(events)]
        return Block(name, texts, Stability(place), heading)


def _prompt(request: Request, text: str, *, ending: str = "") -> Block:
    moment = f"(It is {request.now:%A, %Y-%m-%d %H:%M} {request.now.tzinfo}.)"
    return Block("user prompt", [moment, spoken(text), *([ending] if ending else [])], Stability.PROMPT, PROMPT_HEADING)


def _task(name: str, heading: str, parts: Iterable[str]) -> Block:
    return Block(name, [*(part for part in parts if part), JSON_ONLY], Stability.PROMPT, heading)


def _turn(reader: Reader, request: QueriesRequest | AnswerRequest) -> list[Block]:
    """What queries and answer share: short-term memory, the conversation, workflows, focus."""
    shown = {event.id for event in request.short_term.events}
    known = workflows(reader.library, reader.gate)
    blocks = [*reader.short_term(request.short_term), listed(known)]
    blocks += conversation_blocks(reader.timed(request.conversation), shown, reader.limit_tokens, reader.count)
    blocks += focus_blocks(reader.library, request.prompt, reader.limit_tokens, reader.count, reader.gate)
    return blocks + ([started(known, request.prompt.workflow)] if request.prompt.workflow else [])


def _queries(reader: Reader, request: QueriesRequest) -> list[Block]:
    return [*_turn(reader, request), _prompt(request, request.prompt.said, ending=JSON_ONLY)]


def _answer(reader: Reader, request: AnswerRequest) -> list[Block]:
    shown = {event.id for event in request.short_term.events}
    limits = (reader.library.settings.context.max_memories, reader.limit_tokens)
    conversation = f"{reader.name}:{conversation_of(request.prompt.path)}"
    found = long_term_block(
        dated(reader.library, request.hits), shown, conversation, reader.places, limits, reader.count
    )
    return [*_turn(reader, request), found, _prompt(request, request.prompt.said)]


def _reflect(reader: Reader, request: ReflectRequest) -> list[Block]:
    (exchange,) = reader.timed([request.exchange])
    said = StmEvent(exchange.id, exchange.at, exchange.prompt.text, exchange.response.text if exchange.response else "")
    earlier = replace(
        request.short_term, events=tuple(event for event in request.short_term.events if event.id != exchange.id)
    )
    new = event_text(said, reader.limit_tokens // 2, reader.count)
    return [
        *reader.short_term(earlier),
        Block("new event", [new], Stability.FOCUS, "## New Event"),
        _prompt(request, exchange.prompt.text, ending="What does the new event add? " + JSON_ONLY),
    ]


def _analyze(reader: Reader, request: AnalyzeRequest) -> list[Block]:
    titles = [f"- {one_line(subject)}" for subject in request.subjects]
    existing = Block(
        "existing pages", titles, Stability.LONG_TERM, "## Existing Long-Term Memory", share=0.2, cut_order=10
    )
    return [
        reader.events("event log", "## Short-Term Memory Event Log", request.events),
        existing,
        _task("candidates", "## Promotion Candidates", ["List what of the event log deserves long-term memory."]),
    ]


def _integrate(reader: Reader, request: IntegrateRequest) -> list[Block]:
    days = [reader.library.day_of(each.created_at) for each in request.existing]
    known = [
        quoted(f"[{one_line(each.id)}] {each.content}" + (f" ({day})" if day else ""))
        for each, day in zip(request.existing, days, strict=True)
    ]
    existing = "## Existing Long-Term Memory"
    complaint = f"A check refused the former attempt:\n{quoted(request.complaint)}" if request.complaint else ""
    return [
        Block("event", [quoted(request.message)] if request.message else [], Stability.SHORT_TERM, "## Event"),
        Block(
            "existing memory", known or ["No existing memories: only NEW is possible."], Stability.LONG_TERM, existing
        ),
        _task("candidate", "## Promotion Candidate", [_candidate(request.candidate), complaint]),
    ]


def _candidate(candidate: Candidate) -> str:
    wish = " The person asks to forget it." if candidate.is_forget else ""
    return f"Importance {candidate.importance:.1f}.{wish}\n{quoted(candidate.statement)}"


def _synthesize(reader: Reader, request: SynthesizeRequest) -> list[Block]:
    folders = [f"- `{one_line(name)}`: {one_line(about, 200)}" for name, about in sorted(request.folders.items())]
    about = f"Subject: {one_line(request.candidate.subject)}. Kind: {request.candidate.kind}."
    structure = Block("folders", folders, Stability.LONG_TERM, "## Existing Long-Term Memory", share=0.4, cut_order=10)
    return [
        reader.events("events", "## Events Behind It", request.events),
        structure,
        _task("candidate", "## Promotion Candidate", [about, _candidate(request.candidate)]),
    ]


def _summarize(reader: Reader, request: SummarizeRequest) -> list[Block]:
    archived = reader.events("archived events", "## Archived Events", request.archived)
    remaining = reader.events("remaining events", "## Remaining Events", request.remaining, Stability.EVENT_LOG)
    return [
        replace(archived, share=0.4, cut_order=10, drops="first-quarters"),
        remaining if remaining.parts else remaining.with_parts(["None."]),
        _task("task", "## Summary Wanted", ["Summarize the remaining events."]),
    ]


def _organize(reader: Reader, request: OrganizeRequest) -> list[Block]:
    patterns = [f"### {one_line(name)}\n{_rows(rows)}" for name, rows in request.patterns.items()]
    folders = [f"- {one_line(folder, 200)}: {entries}" for folder, entries in sorted(request.structure.items())]
    goals = [f"- {one_line(goal, 200)}" for goal in request.goals]
    return [
        Block("access patterns", patterns or ["None."], Stability.SHORT_TERM, "## Access Patterns"),
        Block("structure", folders, Stability.LONG_TERM, "## Long-Term Memory Structure", share=0.4, cut_order=10),
        _task("goals", "## Reorganization Goals", ["\n".join(goals)]),
    ]


def _rows(rows: Any) -> str:
    items = rows if isinstance(rows, Sequence) and not isinstance(rows, str) else [rows]
    return "\n".join(quoted("- " + json.dumps(item, ensure_ascii=False, default=str)) for item in items) or "None."


SECTIONS = cast(
    "dict[Purpose, Callable[[Reader, Request], list[Block]]]",
    {
        Purpose.QUERIES: _queries,
        Purpose.ANSWER: _answer,
        Purpose.REFLECT: _reflect,
        Purpose.ANALYZE: _analyze,
        Purpose.INTEGRATE: _integrate,
        Purpose.SYNTHESIZE: _synthesize,
        Purpose.SUMMARIZE: _summarize,
        Purpose.ORGANIZE: _organize,
    },
)
