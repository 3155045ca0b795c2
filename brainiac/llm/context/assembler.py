"""The assembler: it makes working memory, all that a model sees, from a request.

A purpose has one template of instructions; the brain's `system/prompts/NAME.md` replaces it. Workflows are procedures
in `system/workflows/`, started from a prompt's front matter.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache, partial
from importlib.resources import files
from itertools import chain, takewhile
from typing import Any, TypeVar

from pydantic import BaseModel

from brainiac.clock import moment_in
from brainiac.errors import ConfinementError, FormatError, ModelError
from brainiac.formats.authors import PERSON
from brainiac.formats.frontmatter import split
from brainiac.formats.prompt import Exchange, Prompt
from brainiac.formats.short_term import Item, ShortTermMemory, StmEvent
from brainiac.library import Library
from brainiac.llm import schemas
from brainiac.llm.catalog import count as count_tokens
from brainiac.llm.context import blocks as fitting
from brainiac.llm.context import memory as recalled
from brainiac.llm.context.blocks import Block, Count, Stability, preview, quoted, reference, safe_line, spoken
from brainiac.llm.gate import Gate
from brainiac.places import MARKER, bundled_path
from brainiac.text.tokens import as_sentence, coverage

IDENTITY_HEADING, PROMPT_HEADING = "## Core Identity", "## User Prompt"
HEADINGS = (IDENTITY_HEADING, recalled.SHORT_TERM_HEADING, recalled.LONG_TERM_HEADING, PROMPT_HEADING)
EXISTING = "## Existing Long-Term Memory"
REFUSED = (
    "A check stopped these operations of your former answer; the others are carried out. Answer with what is to stand "
    "in the place of these only: put right, or repeated as it is where only a question was asked and it is right. What "
    "you leave out is dropped."
)
WHICH_TO_FORGET = (
    "Which of the existing memories does the person ask to have forgotten? Name in `forget` the ids in brackets, such "
    "as `m1`, of those only that say what they named; none where they mean this message alone. Leave all else empty."
)
OLD = "old?"  # behind the line about a page whose statements have changed since
OVER = "over?"  # behind a statement whose day has passed, where it was a plan for that day
OTHER_PAGES = "Other pages, by folder; one of them is named by its `title`:"
MAX_BEFORE, MAX_BEFORE_SHORT = 240, 120  # characters of an earlier answer
ANSWER_TOKENS = 60  # of the answer whose exchange is noted: nothing that only it says is
MAX_ABOUT = 1_200  # characters of a page's summary or of a how-to's steps
JSON_ONLY = "Answer now, with JSON only."
SHORT = frozenset({schemas.Purpose.QUERIES, schemas.Purpose.REFLECT})  # base context of two sentences
MAX_ITEMS, MAX_FACTS = 20, 6  # goals or tasks, and facts, that Reflection is shown: of more those near the exchange
SUMMARY_TOKENS = 60  # of short-term memory's summary where memory is worked on
MAX_TURNS, MAX_NEAR = 2, 8  # turns before the prompt, and titles of pages, that queries are written from
QUERY_TOKENS = 300  # of the prompt that queries are written for
PLUGIN_SHARE = 0.1
PLUGIN_CUT_ORDER = 15  # of a plugin's block that names none

Dated = TypeVar("Dated", StmEvent, Exchange)


class Assembler:
    """Assembles working memory for one brain.

    It remembers the lists that were shown, so that each request begins like the one before it. Settings and files
    are read for every request. Thread-safe.
    """

    def __init__(self, library: Library) -> None:
        self._library, self._lists = library, recalled.ShownLists()

    def assemble(
        self,
        request: schemas.Request,
        *,
        model: str,
        tools: Sequence[str] = (),
        gate: Gate | None = None,
        budget_tokens: int | None = None,
        left_out: Collection[Stability] = (),
    ) -> fitting.WorkingMemory:
        """Return the working memory for a request.

        Args:
            request: The request; the gate filters it.
            model: A litellm name, for its window, tokenizer and cache marks.
            tools: Descriptions of the tools that the model may call, one line each.
            gate: Filters all that the model is shown; None for the gate of a model that is not on this machine.
            budget_tokens: A smaller budget than that of the settings and the model's window.
            left_out: Kinds of blocks to leave out.

        Raises:
            ModelError: Identity and prompt alone do not fit the model's window, a template is broken, or the request
                is private and the model is not on this machine.
        """
        gate = gate or Gate(self._library)
        request = gate.admit(request)
        count = partial(count_tokens, model=model)
        limit = fitting.budget_tokens(self._library.settings, model)
        limit = min(limit, budget_tokens or limit)
        limit -= fitting.tool_tokens(limit) if tools else 0
        reader = f"{request.purpose}:{model}:{gate.reader.name}"
        sections = _Sections(self._library, gate, reader, self._lists, limit, count)
        common = [*self._head(request, tools, gate), *self._plugin_blocks(request, gate)]
        common = [block for block in common if block.stability not in left_out]
        for _ in range(2):
            blocks = [block for block in (*common, *sections.of(request)) if block.parts]
            if isinstance(request, schemas.AnswerRequest):
                blocks.append(sections.long_term(request, blocks))
            blocks.sort(key=lambda block: block.stability)
            fitted, cuts = fitting.fit(blocks, limit, count)
            # where the log lost a line on how the lists above it changed, all is made anew with the lists as they are
            if recalled.changes_told(blocks) == recalled.changes_told(fitted):
                break
            self._lists.forget(reader)
        return fitting.WorkingMemory(
            blocks=tuple(fitted),
            # models that take explicit cache marks
            messages=_messages(fitted, has_marks=model.startswith("anthropic/") or "claude" in model),
            budget_tokens=limit,
            cuts=tuple(cuts),
            block_tokens={block.name: fitting.tokens_of(block, count) for block in fitted},
        )

    def _head(self, request: schemas.Request, tools: Sequence[str], gate: Gate) -> list[Block]:
        """Return the blocks that stay the same from turn to turn: identity, instructions, tools, background."""
        library = self._library
        is_turn = isinstance(request, schemas.AnswerRequest)
        has_background = library.settings.context.background and is_turn
        # variables of the templates in llm/prompts, and of a person's own
        values = {
            "tools": bool(tools),
            "rounds": library.settings.context.tool_rounds,
            "background": has_background,
            "is_turn": is_turn,
            "is_short": request.purpose in SHORT,
            "is_past": isinstance(request, schemas.ConsolidateRequest) and request.is_past,
        }
        has_refused = isinstance(request, schemas.ConsolidateRequest) and bool(request.refused)
        schema = _form(form := schema_of(request.result), form.get("$defs", {}))
        base = instructions(library, gate, "base", **values)
        role = instructions(library, gate, request.purpose.value, schema=schema, complaint=has_refused, **values)
        lines = (gate.system_text(library.tree.core_identity) or "").strip().splitlines()
        # a first line that only repeats our heading is left out
        is_heading = bool(lines) and lines[0].lstrip("# ").strip().casefold() == "core identity"
        lines = lines[is_heading:]
        if not is_turn:  # in its short form: the opening, and below it what ships with no brain
            opening = list(takewhile(lambda line: not line.startswith("##"), lines))
            shipped = bundled_path(MARKER.as_posix()).read_text("utf-8").splitlines()
            lines = [*opening, *(line for line in lines[len(opening) :] if line not in shipped)]
        identity = spoken("\n".join(lines).strip()) or "(empty)"
        blocks = [
            Block("core identity", [identity], Stability.IDENTITY, IDENTITY_HEADING),
            Block("role", [spoken(base), spoken(role)], Stability.ROLE, "## Instructions"),
            Block("tools", ["\n".join(f"- {line}" for line in tools)] if tools else [], Stability.TOOLS, "## Tools"),
        ]
        if has_background:
            hubs = recalled.ShownPages(library, gate).most_linked(recalled.HUBS)
            lines = [f"- {reference(page.title, page.path, page.uuid)}: {edges} links" for page, edges in hubs]
            background = Block("background", lines, Stability.BACKGROUND, "## Background", share=0.1, cut_order=20)
            blocks.append(background)
        return blocks

    def _plugin_blocks(self, request: schemas.Request, gate: Gate) -> list[Block]:
        """Return the blocks that plugins add, within bounds.

        They stand neither before the identity nor behind the prompt, have no heading of ours and no more than
        `PLUGIN_SHARE` of the budget, and can always be cut.
        """
        blocks = []
        blocks_by_plugin = self._library.call_hook("context_blocks", brain=self._library, request=request)
        for block in chain.from_iterable(blocks_by_plugin):
            heading = "## " + safe_line(block.heading.lstrip("# ") or block.name)
            blocks.append(
                replace(
                    block,
                    heading=f"{heading} (plugin)" if heading in HEADINGS else heading,
                    stability=min(max(block.stability, Stability.ROLE), Stability.FOCUS),
                    parts=tuple(spoken(gate.cleared(part)) for part in block.parts),
                    cut_order=PLUGIN_CUT_ORDER if block.cut_order is None else block.cut_order,
                    share=min(block.share, PLUGIN_SHARE),
                    owner="plugin" if block.owner == "kernel" else block.owner,
                )
            )
        return blocks


# --- sections: the blocks of each purpose, in the order of requirements C1 and C2 (docs/requirements.md) --------------


@dataclass(frozen=True, slots=True)
class _Sections:
    """Makes the blocks of a request that depend on its purpose.

    Attributes:
        library: The memory.
        gate: Filters the files that are read.
        reader: A name for the purpose, the model, and whether it is remote; each has its own prefix cache.
        lists: The lists of short-term memory as each reader was shown them before.
        limit_tokens: The whole budget.
        count: Returns the tokens of a text.
    """

    library: Library
    gate: Gate
    reader: str
    lists: recalled.ShownLists
    limit_tokens: int
    count: Count

    def of(self, request: schemas.Request) -> list[Block]:
        """Return the sections of a request: the method with the name of its purpose makes them."""
        sections: list[Block] = getattr(self, f"_{request.purpose}")(request)
        return sections

    def _queries(self, request: schemas.QueriesRequest) -> list[Block]:
        """Return what the prompt may refer to: the last turns, notes in focus, and the titles of near pages."""
        turns = self._before(request.conversation, request.short_term.events)[:MAX_TURNS]
        focused = recalled.focus_blocks(self.library, request.prompt, self.limit_tokens, self.count, self.gate)
        titles = dict.fromkeys(safe_line(hit.title) for hit in request.hits if hit.kind != "exchange")
        near = "; ".join(list(titles)[:MAX_NEAR])
        prompt = fitting.shortened(request.prompt.said, QUERY_TOKENS, self.count)
        return [
            Block("turns", turns[::-1], Stability.CONVERSATION, recalled.SHORT_TERM_HEADING),
            Block("near pages", [near] if near else [], Stability.LONG_TERM, "## Pages That Are Near"),
            *(block for block in focused if block.name == "focused notes"),
            _prompt(request, request.prompt, JSON_ONLY, prompt),
        ]

    def _answer(self, request: schemas.AnswerRequest) -> list[Block]:
        """Return the blocks of a turn: short-term memory, workflows, the conversation, notes in focus."""
        logged_ids = {event.id for event in request.short_term.events}
        lines = [
            f"- `{safe_line(w.name)}`: {safe_line(w.description, 200)} When: {safe_line(w.trigger, 200)}"
            for w in workflows(self.library, self.gate)
        ]
        intro = "The person starts one with `workflow: NAME` in a prompt's front matter; suggest one where it fits."
        parts = [intro, "\n".join(lines)] if lines else []
        memory = replace(request.short_term, events=tuple(self._timed(request.short_term.events)))
        blocks = recalled.short_term_blocks(memory, self.lists, self.reader, self.limit_tokens, self.count)
        blocks.append(Block("workflows", parts, Stability.WORKFLOWS, "## Workflows"))
        turns = self._timed(request.conversation)
        blocks += recalled.conversation_blocks(turns, logged_ids, self.limit_tokens, self.count)
        blocks += recalled.focus_blocks(self.library, request.prompt, self.limit_tokens, self.count, self.gate)
        if request.prompt.workflow:
            workflow = workflow_named(self.library, self.gate, request.prompt.workflow)
            heading = f"## Workflow: {safe_line(workflow.name)}"
            blocks.append(Block("workflow", [spoken(workflow.steps)], Stability.FOCUS, heading))
        return [*blocks, _prompt(request, request.prompt)]

    def long_term(self, request: schemas.AnswerRequest, others: Sequence[Block]) -> Block:
        """Return the block of the hits of a search, within the setting and the tokens that all other blocks leave."""
        fitted, _ = fitting.fit(others, self.limit_tokens, self.count)
        remaining = self.limit_tokens - sum(fitting.tokens_of(block, self.count) for block in fitted)
        room = min(remaining, self.library.settings.context.memory_tokens)
        logged_ids = {event.id for event in request.short_term.events}
        return recalled.long_term_block(self.library, request.hits, logged_ids, room, self.count)

    def _reflect(self, request: schemas.ReflectRequest) -> list[Block]:
        """Return summary and lists, then the exchange below the turn that it may refer to."""
        exchange = request.exchange
        event, at = recalled.event_of(exchange), exchange.at
        earlier = tuple(other for other in request.short_term.events if other.id != event.id)
        turns = self._before(request.conversation, [other for other in earlier if other.at < at])
        ai = fitting.shortened(event.ai, ANSWER_TOKENS, self.count)
        (event,) = self._timed([replace(event, user=exchange.prompt.said, ai=ai)])
        text = recalled.event_text(replace(event, at=_with_weekday(event.at)), self.limit_tokens // 2, self.count)
        question = WHICH_TO_FORGET if request.existing else "What does the new event add?"
        existing = [quoted(_statement(row)) for row in request.existing]
        return [
            self._lists_near(request.short_term, f"{exchange.prompt.said}\n{ai}"),
            Block("existing memory", existing, Stability.LONG_TERM, EXISTING),
            Block("new event", [*turns[:1], text], Stability.FOCUS, "## New Event"),
            Block("user prompt", [f"{question} {JSON_ONLY}"], Stability.PROMPT, PROMPT_HEADING),
        ]

    def _lists_near(self, memory: ShortTermMemory, said: str) -> Block:
        """Return the summary's beginning, open goals and tasks, and facts; of many those near what was said."""

        def near(items: Sequence[Item], most: int) -> list[str]:
            lines = [item.text for item in items if not item.is_done]
            nearest = sorted(lines, key=lambda line: -coverage(line, said))[:most] if len(lines) > most else lines
            return [f"- {line}" for line in lines if line in nearest]

        goals, facts, tasks = recalled.TITLES
        lists = {goals: near(memory.goals, MAX_ITEMS), tasks: near(memory.tasks, MAX_ITEMS)}  # what changes least first
        lists[facts] = near(memory.facts, MAX_FACTS)
        parts = [f"### {title}\n" + quoted("\n".join(lines)) for title, lines in lists.items() if lines]
        parts = [*self._summary(memory), *parts] or ["Nothing is listed."]
        return Block("short-term memory", parts, Stability.SHORT_TERM, recalled.SHORT_TERM_HEADING)

    def _summary(self, memory: ShortTermMemory) -> list[str]:
        """Return the first sentences of the summary of short-term memory; [] where there is none."""
        summary = fitting.shortened(memory.summary.strip(), SUMMARY_TOKENS, self.count)
        return [quoted(summary)] if summary else []

    def _before(self, turns: Sequence[Exchange], events: Sequence[StmEvent]) -> list[str]:
        """Return in short what was said before a prompt, the last first: in its conversation, then anywhere."""
        said = {event.id: event for event in (*map(recalled.event_of, turns[::-1]), *events)}
        return [_before(event) for event in said.values()]

    def _consolidate(self, request: schemas.ConsolidateRequest) -> list[Block]:
        """Return open items and existing memory, then what differs in every call: the exchanges and the task."""
        memory, exchanges = request.short_term, []
        open_items = [f"- {item.text}" for item in (*memory.goals, *memory.tasks) if not item.is_done]
        log = self._summary(memory)
        log += ["Open goals and tasks:\n" + quoted("\n".join(open_items))] if open_items else []
        text_of = partial(recalled.event_text, longest_tokens=self.limit_tokens, count=self.count, with_id=True)
        for said in request.said:  # each under its short id, with the end of the answer before it
            (event,) = self._timed([replace(said.event, id=said.id)])
            text = text_of(replace(event, at=_with_weekday(event.at)), thread=said.thread)
            # the prompt may refer to it ("yes, that one")
            answer = said.before and said.before.response
            end = " ".join(answer.text.split())[-MAX_BEFORE:] if answer else ""
            before = f"Before that, and consolidated already, AI:\n{quoted(f'…{end}')}\n\n" if end else ""
            exchanges.append(before + text)
        task = ["What becomes of long-term memory?"]
        if request.refused:
            task = [REFUSED]
            for row in request.refused:
                what = f"{row.operation.action} {', '.join(row.operation.ids)} “{row.operation.text}”"
                page = row.operation.page.path or row.operation.page.title
                task.append(quoted(f"{what} on “{page}”: {row.problem}"))
        memories = self._memories(request.pages, request.existing) or ["Nothing is known yet: only `new` is possible."]
        return [
            Block("event log", log, Stability.SHORT_TERM, "## Short-Term Memory Event Log"),
            Block("existing memory", memories, Stability.LONG_TERM, EXISTING, share=0.6, cut_order=10),
            Block("new exchanges", exchanges, Stability.FOCUS, "## New Exchanges"),
            _task("operations", "## Operations", task),
        ]

    def _memories(self, pages: Sequence[schemas.PageName], existing: Sequence[schemas.Existing]) -> list[str]:
        """Return a part for each page with statements, then for each other near page, and one that lists all others."""
        page_at = {page.path: page for page in pages}
        lines_at: dict[str, list[str]] = {statement.path: [] for statement in existing}
        lines_at |= {page.path: [] for page in pages if page.is_near}
        for statement in existing:
            lines_at[statement.path].append(_statement(statement))
        parts = []
        for path, lines in lines_at.items():
            page = page_at.get(path) or schemas.PageName(path, names=())  # where only its statement is known
            about = f". {safe_line(page.about, MAX_ABOUT)}{f' ({OLD})' if page.is_old else ''}" if page.about else ""
            title = f"{safe_line(self._below_top(path))}: {'; '.join(map(safe_line, page.names))}{about}"
            parts.append(quoted("\n".join([title, *lines])))
        folders: dict[str, list[str]] = {}
        for page in (page for page in pages if page.path not in lines_at):
            about = f" ({safe_line(page.about, MAX_ABOUT)})" if page.about else ""
            folder = posixpath.dirname(self._below_top(page.path))
            folders.setdefault(folder, []).append(", ".join(map(safe_line, page.names)) + about)
        lines = [f"{safe_line(folder)}/: {'; '.join(names)}" for folder, names in folders.items()]
        return [*parts, *([quoted("\n".join([OTHER_PAGES, *lines]))] if lines else [])]

    def _below_top(self, path: str) -> str:
        """Return a page's path below long-term memory."""
        return path.removeprefix(self.library.tree.relative(self.library.tree.long_term) + "/")

    def _synthesize(self, request: schemas.SynthesizeRequest) -> list[Block]:
        """Return the events, the page's statements, and the new statements as the task."""
        present = [quoted(_statement(statement)) for statement in request.standing]
        task = [f"{request.kind}: {safe_line(request.title)}"]
        task += [quoted(_statement(statement)) for statement in request.candidates]
        task += [quoted("\n".join(request.steps))] if request.steps else []
        task += ["Headings are wanted."] if request.wants_headings else []
        return [
            self._events("events", "## Events Behind It", request.events),
            Block("page", present, Stability.FOCUS, "## The Page So Far"),
            _task("candidates", "## Promotion Candidates", task),
        ]

    def _summarize(self, request: schemas.SummarizeRequest) -> list[Block]:
        """Return the archived events, the remaining ones, and the task."""
        archived = self._events("archived events", "## Archived Events", request.archived)
        remaining = self._events("remaining events", "## Remaining Events", request.remaining)
        parts = remaining.parts or ["None."]
        return [
            # these need a clause in the summary at most: the oldest may be cut
            replace(archived, share=0.4, cut_order=10, drops="first-quarters"),
            replace(remaining, parts=parts, stability=Stability.EVENT_LOG),
            _task("task", "## Summary Wanted", ["Summarize the remaining events."]),
        ]

    def _timed(self, exchanges: Iterable[Dated]) -> list[Dated]:
        """Return exchanges with their moment in the person's time zone."""
        return [replace(exchange, at=moment_in(self.library.zone, exchange.at)) for exchange in exchanges]

    def _events(self, name: str, heading: str, events: Sequence[StmEvent]) -> Block:
        """Return a block of the events that a decision rests on, with their ids, which is never cut."""
        text_of = partial(recalled.event_text, longest_tokens=self.limit_tokens, count=self.count, with_id=True)
        return Block(name, list(map(text_of, self._timed(events))), Stability.SHORT_TERM, heading)

    def _verify(self, request: schemas.VerifyRequest) -> list[Block]:
        """Return what was said, each passage once, and the claims that rest on it as the task."""
        names: dict[str, str] = {}
        task = []
        for claim in request.claims:
            lines = [f"[{safe_line(claim.id)}] {claim.text}".rstrip()]
            for words in claim.quotes:
                passage = f"{words.by}, {words.day}:\n{quoted(words.passage)}"
                name = names.setdefault(passage, f"w{len(names) + 1}")
                is_most = 2 * len(words.quote) > len(words.passage)  # it is seen at once where they stand
                lines.append(f"rests on {name}" + ("" if is_most else f": “{words.quote}”"))
            for former in claim.former:
                day = f" ({former.since})" if former.since and former.since not in former.content else ""
                lines.append(f"{'ends' if claim.is_end else 'replaces'}: “{former.content}”{day}")
            task.append(quoted("\n".join(lines)))
        said = [f"[{name}] {passage}" for passage, name in names.items()]
        return [Block("words", said, Stability.FOCUS, "## What Was Said"), _task("claims", "## Statements", task)]

    def _organize(self, request: schemas.OrganizeRequest) -> list[Block]:
        """Return the statistics, the folders, and the goals as the task."""
        patterns = []
        for name, rows in request.patterns.items():
            lines = [quoted("- " + json.dumps(item, ensure_ascii=False, default=str)) for item in rows]
            patterns.append("\n".join([f"### {safe_line(name)}", *(lines or ["None."])]))
        folders = [f"- {safe_line(folder, 200)}: {entries}" for folder, entries in sorted(request.structure.items())]
        goals = "\n".join(f"- {safe_line(goal, 200)}" for goal in request.goals)
        return [
            Block("access patterns", patterns or ["None."], Stability.SHORT_TERM, "## Access Patterns"),
            Block("structure", folders, Stability.LONG_TERM, "## Long-Term Memory Structure", share=0.4, cut_order=10),
            _task("goals", "## Reorganization Goals", [goals]),
        ]


def _before(event: StmEvent) -> str:
    """Return the beginning of what was said before an exchange, and the end of its answer: "yes, that one" means it."""
    end = " ".join(event.ai.split())[-MAX_BEFORE_SHORT:]
    return f"Before it, {safe_line(event.author.label)}, then AI:\n{quoted(preview(event.user))}\n{quoted(f'…{end}')}"


def _with_weekday(at: str) -> str:
    """Return an ISO 8601 moment with its weekday in front, from which a model works out what "on Saturday" means."""
    try:
        return f"{date.fromisoformat(at[:10]):%A} {at}"
    except ValueError:
        return at


def _statement(statement: schemas.Existing) -> str:
    """Return the line of a statement: short id, text, the day it was said unless the text has it, and marks."""
    day = "" if statement.since in statement.content else statement.since
    marks = recalled.BY_HAND if statement.is_by_hand else "", OVER if statement.is_over else ""
    about = ", ".join(filter(None, [day, *marks]))
    return f"[{safe_line(statement.id)}] {statement.content}" + (f" ({about})" if about else "")


def _prompt(request: schemas.Request, prompt: Prompt, ending: str = "", text: str | None = None) -> Block:
    """Return the last block of a turn: the moment, the prompt's text, whose it is if not the person's, and `ending`."""
    moment = f"(It is {request.now:%A, %Y-%m-%d %H:%M} {request.now.tzinfo}.)"
    if prompt.origin != PERSON:
        moment += f"\n(These are words of {safe_line(prompt.author.label)}, not of the user.)"
    parts = [moment, spoken(prompt.said if text is None else text), *([ending] if ending else [])]
    return Block("user prompt", parts, Stability.PROMPT, PROMPT_HEADING)


def _task(name: str, heading: str, parts: Iterable[str]) -> Block:
    """Return the last block of a background purpose: its task, and the demand for JSON."""
    return Block(name, [*filter(None, parts), JSON_ONLY], Stability.PROMPT, heading)


# --- messages of the chat protocol ---------------------------------------------------------------------------------


def _messages(blocks: Sequence[Block], *, has_marks: bool) -> list[dict[str, Any]]:
    """Return the system and the user message; `has_marks` gives them parts with cache marks instead of one text."""
    # the system message has the blocks that stay the same from turn to turn
    system = [block for block in blocks if block.stability < Stability.SHORT_TERM]
    user = [block for block in blocks if block.stability >= Stability.SHORT_TERM]
    return [
        {"role": role, "content": _marked(part) if has_marks else "\n\n".join(block.text for block in part)}
        for role, part in (("system", system), ("user", user))
    ]


def _marked(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return a part for each piece of the blocks, with a cache mark after the last one that stays for the next request.

    Anthropic looks for a cached prefix at the ends of the last twenty parts before a mark. So each event is a part: it
    is found again when more have followed it.
    """
    parts: list[dict[str, Any]] = []
    stable = 0
    for block in blocks:
        parts += [{"type": "text", "text": piece + "\n\n"} for piece in block.pieces()]
        if block.stability <= Stability.EVENT_LOG:
            stable = len(parts)
    if stable:
        parts[stable - 1]["cache_control"] = {"type": "ephemeral"}
    return parts


# --- instructions, and the form of a result ------------------------------------------------------------------------

_VALUE = re.compile(r"\{\{\s*(.*?)\s*\}\}")  # in a template
_NOT_FOR_MODELS = ("title", "maxLength", "maxItems", "default", "description")


def instructions(library: Library, gate: Gate, name: str, **values: Any) -> str:
    """Return the instructions for a purpose.

    Args:
        library: The memory, whose `system/prompts/NAME.md` replaces the built-in template.
        gate: The gate; where it withholds the brain's own template, the built-in one is used.
        name: A purpose, or `base` for the context that all purposes share.
        values: The variables of the template: those that docs/prompts.md lists.

    Raises:
        ModelError: The brain's own template does not work.
    """
    path = library.tree.prompts / f"{name}.md"
    source = gate.system_text(path) if os.path.lexists(path) else None
    if source is None:
        return _built_in(name, tuple(sorted(values.items())))  # hashable, for its cache
    relative = library.tree.relative(path)
    try:
        text = source[split(source, relative)[1] :].strip()
        # nothing is computed: a synced template may come from anybody
        if "{%" in text:
            raise ValueError("it has a statement (`{%`); only values such as `{{ schema }}` are filled in")
        if unknown := [name for name in _VALUE.findall(text) if name not in values]:
            raise ValueError(f"there is no value `{unknown[0][:80]}`; there are {', '.join(values)}")
        return _VALUE.sub(lambda match: str(values[match[1]]), text)
    except (FormatError, ValueError) as error:
        problem = error.problem if isinstance(error, FormatError) else str(error)
        raise ModelError(
            as_sentence(f"The template {relative} does not work: {problem}"),
            advice="Mend it, or remove it to go back to the built-in one.",
        ) from error


@lru_cache(maxsize=64)
def _built_in(name: str, values: tuple[tuple[str, Any], ...]) -> str:
    """Return a built-in template with its values filled in."""
    from jinja2 import Template  # an answer of the offline engine needs no template and should not wait for it

    source = (files("brainiac.llm") / "prompts" / f"{name}.md").read_text("utf-8")
    text: str = Template(source[split(source)[1] :]).render(dict(values))
    return text.strip()


@lru_cache(maxsize=16)
def schema_of(result: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a result, or of a tool's parameters, without bounds, titles and descriptions."""
    schema: dict[str, Any] = _without_bounds(result.model_json_schema())
    return schema


def _form(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the short form of a JSON schema, with a third of its tokens: `{name: string, kind: "a"|"b"}`."""
    if name := schema.get("$ref"):
        return _form(definitions[name.rpartition("/")[2]], definitions)
    if values := schema.get("enum"):
        return "|".join(json.dumps(value) for value in values)
    if choices := schema.get("anyOf"):
        return "|".join(_form(choice, definitions) for choice in choices)
    match schema.get("type"):
        case "array":
            return f"[{_form(schema['items'], definitions)}]"
        case "object":
            fields = (f"{name}: {_form(field, definitions)}" for name, field in schema.get("properties", {}).items())
            return "{" + ", ".join(fields) + "}"
    return str(schema.get("type"))


def _without_bounds(schema: Any) -> Any:
    """Return a JSON schema, or a part of one, without the keys of `_NOT_FOR_MODELS` at any depth."""
    if isinstance(schema, list):
        return [_without_bounds(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # the keys under `properties` are names of fields, which stay: one may be called `title`
    properties = {name: _without_bounds(value) for name, value in schema.get("properties", {}).items()}
    rest = {k: _without_bounds(v) for k, v in schema.items() if k not in ("properties", *_NOT_FOR_MODELS)}
    return {**rest, **({"properties": properties} if properties else {})}


# --- workflows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Workflow:
    """A procedure of `system/workflows/`.

    Attributes:
        name: The name by which a prompt starts it.
        description: What it does, in a sentence.
        trigger: When it fits, in a sentence.
        steps: Its steps, Markdown.
    """

    name: str
    description: str
    trigger: str
    steps: str


def workflows(library: Library, gate: Gate) -> list[Workflow]:
    """Return the brain's workflows in the order of their files.

    A symbolic link out of the brain, a file that does not parse and one that the gate withholds are left out.
    """
    procedures = []
    for path in sorted(library.tree.workflows.glob("*.md")):
        try:
            text = gate.system_text(path)
            if text is None:
                continue
            meta, offset = split(text, library.tree.relative(path))
        # a broken workflow, which most prompts do not need, must not keep them from being answered
        except (ConfinementError, FormatError):
            continue
        name, description, trigger = (str(meta.get(key) or "") for key in ("name", "description", "trigger"))
        procedures.append(Workflow(name or path.stem, description, trigger, text[offset:].strip()))
    return procedures


def workflow_named(library: Library, gate: Gate, name: str) -> Workflow:
    """Return the workflow of a name, in any case of letters.

    Raises:
        ModelError: There is none, or the gate withholds it.
    """
    procedures = workflows(library, gate)
    for workflow in procedures:
        if workflow.name.casefold() == name.strip().casefold():
            return workflow
    names = ", ".join(workflow.name for workflow in procedures) or "none"
    raise ModelError(
        f"There is no workflow `{safe_line(name)}` that this model may be shown.",
        advice=f"Name one of system/workflows/ in the prompt's front matter: {names}. One that is private is for a "
        "model on this machine: add `private: true` to the prompt.",
    )
