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
    AnswerRequest,
    ConsolidateRequest,
    Existing,
    OrganizeRequest,
    PageName,
    Purpose,
    QueriesRequest,
    ReflectRequest,
    Refused,
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


def _consolidate(reader: Reader, request: ConsolidateRequest) -> list[Block]:
    """What is open, what is known, and what was said: that is new each time, and stands at the end."""
    memory = request.short_term
    open_items = [f"- {item.text}" for item in (*memory.goals, *memory.tasks) if not item.is_done]
    log = [quoted(memory.summary)] if memory.summary.strip() else []
    log += ["Open goals and tasks:\n" + quoted("\n".join(open_items))] if open_items else []
    said = [
        event_text(event, reader.limit_tokens, reader.count, with_id=True, thread=said.thread)
        for said in request.said
        for event in reader.timed([replace(said.event, id=said.id)])
    ]
    refused = [_refused(each) for each in request.refused]
    ending = [
        "A check refused these operations of your former answer. Answer with what is to stand in their place only; "
        "what you leave out is dropped.",
        *refused,
    ]
    return [
        Block("event log", log, Stability.SHORT_TERM, "## Short-Term Memory Event Log"),
        Block(
            "existing memory",
            _known(reader, request.pages, request.existing) or ["Nothing is known yet: only `new` is possible."],
            Stability.LONG_TERM,
            "## Existing Long-Term Memory",
            share=0.6,
            cut_order=10,
        ),
        Block("new exchanges", said, Stability.FOCUS, "## New Exchanges"),
        _task("operations", "## Operations", ending if refused else ["What becomes of long-term memory?"]),
    ]


def _known(reader: Reader, pages: Sequence[PageName], existing: Sequence[Existing]) -> list[str]:
    """Return a part for each page, its near statements below it, the page with the nearest one first."""
    top = reader.library.tree.relative(reader.library.tree.long_term) + "/"
    named = {page.path: page for page in pages}
    paths = dict.fromkeys([*(statement.path for statement in existing), *named])
    lines: dict[str, list[str]] = {path: [] for path in paths}
    for statement in existing:
        lines[statement.path].append(_statement(statement))
    parts = []
    for path, statements in lines.items():
        page = named.get(path) or PageName(path, (statements[0],) if not path else ())
        names = "; ".join(map(one_line, page.names))
        about = f". {one_line(page.about)}" if page.about and not statements else ""
        parts.append(quoted("\n".join([f"{one_line(path.removeprefix(top))}: {names}{about}", *statements])))
    return parts


def _statement(statement: Existing) -> str:
    since = f" ({statement.since})" if statement.since else ""
    return f"[{one_line(statement.id)}] {statement.content}{since}"


def _refused(refused: Refused) -> str:
    operation = refused.operation
    return quoted(f"{operation.action} {', '.join(operation.ids)} “{operation.text}”: {refused.problem}")


def _synthesize(reader: Reader, request: SynthesizeRequest) -> list[Block]:
    folders = [f"- `{one_line(name)}`: {one_line(about, 200)}" for name, about in sorted(request.folders.items())]
    structure = Block("folders", folders, Stability.LONG_TERM, "## Existing Long-Term Memory", share=0.4, cut_order=10)
    standing = Block(
        "page", [quoted(_statement(each)) for each in request.standing], Stability.FOCUS, "## The Page So Far"
    )
    about = f"{request.kind}: {one_line(request.title)}"
    candidates = [quoted(_statement(candidate)) for candidate in request.candidates]
    steps = [quoted("\n".join(request.steps))] if request.steps else []
    return [
        reader.events("events", "## Events Behind It", request.events),
        structure,
        standing,
        _task("candidates", "## Promotion Candidates", [about, *candidates, *steps]),
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
        Purpose.CONSOLIDATE: _consolidate,
        Purpose.SYNTHESIZE: _synthesize,
        Purpose.SUMMARIZE: _summarize,
        Purpose.ORGANIZE: _organize,
    },
)
