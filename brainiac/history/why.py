"""Why a memory says what it says: from a statement over every change of it to the very sentence that was typed.

What the journals record of an operation is laid beside the versions of the page, so that edits by hand and by
processes that record nothing else are told too.
"""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError, UserError
from brainiac.events import (
    Event,
    EventsAnalyzed,
    ExchangeEvent,
    ExchangeMadePrivate,
    ModelCalled,
    OutcomeEvent,
    PathKind,
    PromptAnswered,
    RecordedChange,
)
from brainiac.formats.markdown import PRIVATE, StmEvent, find_events
from brainiac.formats.page import Memory, Statement, parse_memory, shareable_text
from brainiac.llm.gate import Gate, without_hidden
from brainiac.llm.redaction import redact
from brainiac.pipeline.dispatch import exchange_of
from brainiac.storage.filed import muted_exchanges
from brainiac.storage.statements import StatementChange, read_statements, text_hash
from brainiac.text.tokens import coverage, pieces

NEAR_SHARE = 0.6  # of the words asked for that a statement must have to be taken for what was meant
MIN_ID_PART = 6  # characters of an exchange's id that name it


# --- exchanges, by id ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """One exchange.

    Attributes:
        exchange: Its id.
        at: ISO 8601 UTC.
        user: What was typed; "" when no text of it is left.
        ai: The answer.
        prompt: Path of the prompt as it was answered; "" if unknown.
        device: Where it was answered; "" for this one.
        model: Who answered; "" for a note, or if unknown.
        cost_usd: Of the answer.
        read_from: Path of the file that the words were read from, or `journal`.
        is_private: It must not leave this machine, or it is off the record.
    """

    exchange: str
    at: str
    user: str
    ai: str = ""
    prompt: str = ""
    device: str = ""
    model: str = ""
    cost_usd: float = 0.0
    read_from: str = ""
    is_private: bool = False

    def sentence_for(self, statement: str) -> str:
        """Return the words typed that a statement rests on: all of them where it is them, else the nearest piece."""
        if statement in self.user:
            return statement
        return max(pieces(self.user), key=lambda piece: coverage(statement, piece), default=self.user)


class Exchanges:
    """The exchanges of all devices, found by id.

    Args:
        brain: The brain.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        brain.projection.follow()

    @cached_property
    def events(self) -> dict[str, tuple[str, Event]]:
        """Device ("" for this one) and event that made each exchange known, by exchange id."""
        return {event.id: (device, event) for device, event in self._brain.journal.all_events({ExchangeEvent})}

    def what(self, exchange: str) -> ExchangeEvent:
        """Return what the journal keeps of a known exchange."""
        what = self.events[exchange][1].what
        assert isinstance(what, ExchangeEvent)
        return what

    def said(self, exchange: str) -> Said:
        """Return what is known of an exchange; without words where none are left."""
        device, event = self.events.get(exchange, ("", None))
        spoken = exchange_of(self._brain, event) if event else None
        if event is None or spoken is None:
            return self._as_noted(exchange, device, event)
        prompt, response = spoken.prompt, spoken.response
        read_from = "journal" if self._brain.read(prompt.path) is None else prompt.path
        said = Said(exchange, event.at, prompt.text, prompt=prompt.path, device=device, read_from=read_from)
        said = replace(said, is_private=spoken.is_private or not prompt.remember)
        if response is None:
            return said
        return replace(said, ai=response.text, model=response.model or "", cost_usd=response.cost_usd or 0.0)

    def _as_noted(self, exchange: str, device: str, event: Event | None) -> Said:
        """Return an exchange whose texts are gone from journal and inbox, as memory still holds it."""
        path, noted = self._place_in_memory(exchange)
        said = Said(exchange, event.at if event else "", "", device=device, read_from=path)
        if event:
            what = self.what(exchange)
            said = replace(said, prompt=what.prompt, model=what.model if isinstance(what, PromptAnswered) else "")
        return replace(said, at=noted.at, user=noted.user, ai=noted.ai) if noted else said

    def shown(self, exchange: str, gate: Gate | None) -> Said | None:
        """Return what is known of an exchange as far as a reader may see it.

        Args:
            exchange: Its id.
            gate: What decides what the reader sees; None for the person, who sees all.

        Returns:
            The exchange without secrets; None where it is private, off the record, forgotten or not to be quoted.
        """
        said = self.said(exchange)
        if gate is None:
            return said
        noted = self.noted(exchange)
        is_standing = noted is not None or (bool(said.prompt) and self._brain.read(said.prompt) is not None)
        is_open = not said.is_private and (noted is None or bool(gate.events([noted])))
        if not is_standing or not is_open or gate.is_private_by_now(exchange) or exchange in self._withheld:
            return None
        ai = without_hidden(self._brain.tree, said.prompt or said.read_from, said.ai)
        return replace(said, user=redact(self._brain, said.user), ai=redact(self._brain, ai))

    @cached_property
    def _withheld(self) -> set[str]:
        """The exchanges that were made private after they were answered, or whose page was deleted by hand."""
        events = (event.what for _, event in self._brain.journal.all_events({ExchangeMadePrivate}))
        private = (what.exchanges for what in events if isinstance(what, ExchangeMadePrivate))
        return {*muted_exchanges(self._brain), *chain.from_iterable(private)}

    def noted(self, exchange: str) -> StmEvent | None:
        """Return an exchange as memory holds it: in short-term memory, or on the page of its day."""
        return self._place_in_memory(exchange)[1]

    def _place_in_memory(self, exchange: str) -> tuple[str, StmEvent | None]:
        for path in self._paths(exchange):
            text = self._brain.read_text(path) or ""
            if exchange in text:
                for placed in find_events(text):
                    if placed.event.id == exchange:
                        return path, placed.event
        return "", None

    def _paths(self, exchange: str) -> Iterator[str]:
        """Yield the files that may hold an exchange: those where it should stand come first."""
        tree = self._brain.tree
        yield tree.relative(tree.short_term)
        tops = [tree.long_term / "events", tree.archive]
        if exchange in self.events:
            day = self._brain.day_of(self.events[exchange][1].at)
            tops.insert(0, tops[0] / day.replace("-", "/"))
        for top in tops:
            yield from sorted(tree.relative(entry.path) for entry in tree.walk(top))

    def place_of(self, exchange: str) -> str:
        """Return where the prompt of an exchange stands by now, moves followed."""
        return self._brain.answered.place_of(exchange) or self.what(exchange).prompt

    def with_same_prompt(self, exchange: str) -> list[str]:
        """Return an exchange with its earlier and later revisions, oldest first."""
        prompt_id = "SELECT prompt_id FROM exchanges WHERE event = ?"
        return self._ids(f"WHERE prompt_id = ({prompt_id})", exchange) or [exchange]

    def in_folder(self, folder: str) -> list[str]:
        """Return the exchanges of a conversation."""
        return [name for name in self._ids() if self.place_of(name).startswith(folder.rstrip("/") + "/")]

    def find(self, named: str) -> str | None:
        """Return the exchange that an id, a part of one, or the path of its prompt or response names."""
        matches = self._ids("WHERE ? IN (event, prompt, response)", named)
        if moved_here := self._brain.answered.of(named):
            matches.append(moved_here.exchange)
        if matches:
            return max(matches)  # the last revision
        if len(named) < MIN_ID_PART:
            return None
        matches = [name for name in self._ids() if name.startswith(named) or name.endswith(named)]
        if len(matches) == 1:
            return matches[0]
        return named if self.noted(named) else None

    def _ids(self, where: str = "", *values: str) -> list[str]:
        rows = self._brain.projection.query(f"SELECT event FROM exchanges {where} ORDER BY event", *values)
        return [exchange for (exchange,) in rows]


# --- pages and statements, by name ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """A statement and its page.

    Attributes:
        is_exact: It was named by its id or exact words.
    """

    memory: Memory
    statement: Statement
    is_exact: bool = True


def memory_pages(brain: Brain) -> Mapping[str, Memory]:
    """Return the readable pages of long-term memory and archive by path, index pages left out."""
    kinds = (PathKind.MEMORY, PathKind.ARCHIVED)
    return {path: page for path, page in brain.pages().pages.items() if brain.tree.kind_of(path) in kinds}


def _shown_page(page: Memory, gate: Gate | None) -> Memory | None:
    """Return a page with what its reader may see of it; None where that is nothing."""
    text = page.text if gate is None else gate.note(page.path, ("memory",))
    if text is None:
        return None
    return page if text == page.text else parse_memory(page.path, text)


def find_memory(brain: Brain, named: str, gate: Gate | None = None) -> Memory | None:
    """Return the page of that path, uuid, title or file name.

    Args:
        brain: The brain.
        named: As a person or a model named it.
        gate: What decides which pages, and what of them, may be seen; None for the person, who sees all.

    Raises:
        UserError: Several pages have the title.
        FormatError: The page of that path cannot be read.
    """
    pages = memory_pages(brain)
    try:
        path = brain.tree.relative(brain.tree.confine(named))
    except ConfinementError:
        path = ""
    if path in pages:
        return _shown_page(pages[path], gate)
    if gate is None and (error := brain.pages().broken.get(path)):
        raise error
    name = _folded(named)
    named_so = (
        page for page in pages.values() if name in (page.uuid.casefold(), page.title.casefold(), _slug(page.path))
    )
    matches = [shown for page in named_so if (shown := _shown_page(page, gate))]
    if len(matches) > 1:
        places = ", ".join(page.path for page in matches)
        raise UserError(f"{len(matches)} pages are called {named!r}: {places}; name one by its path")
    return matches[0] if matches else None


def _slug(path: str) -> str:
    return posixpath.basename(path).removesuffix(".md").casefold()


def find_statement(brain: Brain, named: str, gate: Gate | None = None) -> Named | None:
    """Return the statement of that block id, `path#^id` or text, else the nearest one that has most of the words.

    Args:
        brain: The brain.
        named: As a person or a model named it.
        gate: What decides which statements may be seen; None for the person, who sees all.

    Raises:
        UserError: Several pages have it.
    """
    path, sign, block = named.strip().rpartition("#^")
    if sign:
        page = find_memory(brain, path, gate)
        statements = page.statements if page else ()
        return next((Named(page, each) for each in statements if page and each.block_id == block), None)
    wanted, block = _folded(named), named.strip().removeprefix("^")
    matches = []
    for page in memory_pages(brain).values():
        # Looking for statements costs a hundred times what this does, and few pages hold it.
        if block in page.text or wanted[:20] in _folded(page.text):
            shown = _shown_page(page, gate)
            for statement in shown.statements if shown else ():
                if statement.block_id == block or _folded(statement.text) == wanted:
                    matches.append(Named(page, statement))
    if len(matches) > 1:
        where = ", ".join(f"{match.memory.path} ^{match.statement.block_id}" for match in matches)
        raise UserError(f"{named!r} stands {len(matches)} times: {where}; name the page, or the id of one")
    return matches[0] if matches else _nearest(brain, named, gate)


def _nearest(brain: Brain, named: str, gate: Gate | None) -> Named | None:
    pages, best, likest = memory_pages(brain), None, 0.0
    hits = brain.recall.search(named, limit=20, kinds={"statement"}, is_private=True)
    for hit in gate.hits(hits) if gate else hits:
        share = coverage(named, hit.text)
        if share < NEAR_SHARE or not hit.anchor or hit.path not in pages:
            continue
        # Of several that have the words, the one that has them in the same order.
        likeness = share + difflib.SequenceMatcher(None, named.casefold(), hit.text.casefold()).ratio()
        for statement in pages[hit.path].statements:
            if statement.block_id == hit.anchor and likeness > likest:
                best, likest = Named(pages[hit.path], statement, is_exact=False), likeness
    return best


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


# --- what led to a statement ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened to a statement.

    Attributes:
        event: The journal's event, by id.
        at: ISO 8601 UTC.
        by: Who did it: a process, `person`, `cli`.
        operation: NEW, UPDATE, DELETE, REINFORCE; `written`, `edited`, `removed` where only the texts tell.
        before: What the statement said before; "" if it did not stand or is not known.
        after: What it said then; "" where it was taken out.
        model: Who decided the operation.
        found_by: Who found the statement in what was said.
        reasoning: What the model gave as its reason.
        run_cost_usd: What all model calls of that run cost.
        device: Where it was done; "" for this one.
        sources: The exchanges that the operation rests on.
    """

    event: str
    at: str
    kind: str
    by: str
    operation: str
    before: str = ""
    after: str = ""
    model: str = ""
    found_by: str = ""
    reasoning: str = ""
    run_cost_usd: float = 0.0
    device: str = ""
    sources: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """A statement with all that led to it, oldest first."""

    path: str
    page: str
    title: str
    block: str
    text: str
    is_history: bool = False
    steps: tuple[Step, ...] = ()


class Provenance:
    """What the journals tell of one page.

    Args:
        brain: The brain.
        memory: The page as it stands, or what its reader may see of it.
        gate: What decides what may be seen of its past; None for the person, who sees all.
    """

    def __init__(self, brain: Brain, memory: Memory, gate: Gate | None = None) -> None:
        self._brain, self._memory, self._gate = brain, memory, gate
        self._exchanges = Exchanges(brain)
        self._changes = read_statements(brain).history_of(memory.uuid) if memory.uuid else []

    def chain(self, statement: Statement) -> Chain:
        """Return a statement of the page with what led to it."""
        memory = self._memory
        steps = tuple(sorted(filter(self._is_shown, self._steps(statement)), key=lambda step: (step.at, step.event)))
        text, is_history = statement.text, statement.is_history
        return Chain(memory.path, memory.uuid, memory.title, statement.block_id, text, is_history, steps)

    def _steps(self, statement: Statement) -> Iterator[Step]:
        changes = [change for block in self._blocks(statement) for change in self._changes if change.block == block]
        for change in changes:
            yield self._step(change, statement)
        # What changed it without being recorded as an operation: a person's hand, mostly, or another device's sync.
        recorded = {change.event.id for change in changes}
        for event, before, after in self._versions:
            old, new = _text_in(before, statement), _text_in(after, statement)
            if event.id not in recorded and old != new:
                operation = "edited" if old and new else "written" if new else "removed"
                device = self._synced_from(event)
                yield Step(event.id, event.at, event.kind, event.by, operation, old, new, device=device)

    def _is_shown(self, step: Step) -> bool:
        """Return whether a reader may see a step: neither its words nor an exchange behind it are private."""
        words = "\n\n".join((step.before, step.after, step.reasoning))
        if self._gate is None:
            return True
        tree, path = self._brain.tree, self._memory.path
        is_open = not PRIVATE.search(words) and without_hidden(tree, path, words) == words
        return is_open and all(said.user or said.ai for said in step.sources)

    def _said(self, exchange: str) -> Said:
        """Return an exchange as the reader may see it; without any words where that is not at all."""
        return self._exchanges.shown(exchange, self._gate) or Said(exchange, "", "")

    def _blocks(self, statement: Statement) -> list[str]:
        """Return the block ids that the statement and what it replaced, or was kept from, have had."""
        blocks = [statement.block_id] if statement.block_id else []
        for block in blocks:  # grows as it is walked
            for change in self._changes:
                former = change.former
                if block in (change.block, former.history) and former.block and former.block not in blocks:
                    blocks.append(former.block)
        return blocks

    def _step(self, change: StatementChange, statement: Statement) -> Step:
        event, row = change.event, change.row
        after = self.text_with_hash(change.hash) or self._text_of_candidate(row.candidate)
        return Step(
            event.id,
            event.at,
            event.kind,
            event.by,
            row.operation or "adopted",
            before=self.text_with_hash(change.former.hash),
            after=after or (statement.text if text_hash(statement.text) == change.hash else ""),
            model=row.model,
            found_by=row.found_by,
            reasoning=row.reasoning,
            run_cost_usd=self._costs.get(event.cause or "", 0.0),
            device=self._devices.get(event.id, ""),
            sources=tuple(map(self._said, row.sources)),
        )

    def text_with_hash(self, digest: str) -> str:
        """Return the text of a statement by its hash, from any version of the page; "" where none has it."""
        return self._texts.get(digest, "")

    def _text_of_candidate(self, candidate: str) -> str:
        """Return the words of a candidate, as the analysis that found it has them; "" for none."""
        analysis, _, number = candidate.partition("#")
        event = self._brain.journal.find(analysis) if number.isdigit() else None
        candidates = event.what.candidates if event and isinstance(event.what, EventsAnalyzed) else ()
        return candidates[int(number)].statement if number.isdigit() and int(number) < len(candidates) else ""

    @cached_property
    def _texts(self) -> dict[str, str]:
        versions = [version for _, *both in self._versions for version in both if version]
        memories = (*versions, self._memory)
        return {text_hash(statement.text): statement.text for memory in memories for statement in memory.statements}

    @cached_property
    def _versions(self) -> list[tuple[Event, Memory | None, Memory | None]]:
        """The events of this device that changed the page with what it said before and after, oldest first."""
        changes = list(_changes_of(self._brain, self._memory.path))
        return [(event, self._version(change, change.before), self._version(change, change.after))
                for event, change in reversed(changes)]  # fmt: skip

    def _version(self, change: RecordedChange, digest: str | None) -> Memory | None:
        try:
            text = self._brain.kept_text(digest)
            if self._gate and text is not None:
                text = shareable_text(text)
            return None if text is None else parse_memory(change.path, text)
        except FormatError:
            return None

    def _synced_from(self, event: Event) -> str:
        """Return the device a version was synced from, by equal content; "" when it was written here."""
        if event.by != "person":
            return ""
        path = self._memory.path
        hashes = {change.after for change in event.changes if change.path == path}
        for device, foreign in self._foreign:
            if any(change.after in hashes and change.path == path for change in foreign.changes):
                return device
        return ""

    @cached_property
    def _foreign(self) -> list[tuple[str, Event]]:
        return list(self._brain.journal.foreign_events())

    @cached_property
    def _devices(self) -> dict[str, str]:
        return {event.id: device for device, event in self._foreign}

    @cached_property
    def _costs(self) -> dict[str, float]:
        """What the model calls of each run cost, in USD, by the id of its first event."""
        costs: dict[str, float] = {}
        for event in self._brain.journal.events(kinds={ModelCalled}):
            if event.cause and isinstance(event.what, ModelCalled):
                costs[event.cause] = round(costs.get(event.cause, 0.0) + event.what.cost_usd, 8)
        return costs


def _changes_of(brain: Brain, path: str) -> Iterator[tuple[Event, RecordedChange]]:
    """Yield this device's changes of a file, newest first, moves followed back."""
    for event in brain.journal.events(reverse=True):
        for change in reversed(event.changes):
            if change.path == path and change.op not in ("append", "observe"):
                yield event, change
                path = change.source or path


def _text_in(memory: Memory | None, statement: Statement) -> str:
    """Return what a version of the page has under a statement's id, else whether it has its very text."""
    for other in memory.statements if memory else ():
        is_same = other.block_id == statement.block_id if statement.block_id else other.text == statement.text
        if is_same:
            return f"~~{other.text}~~" if other.is_history else other.text
    return ""


def origin_of_item(brain: Brain, named: str, gate: Gate | None = None) -> Chain | None:
    """Return an item of the lists, or a sentence of the summary, with what wrote it; None where there is none."""
    memory, wanted = brain.short_term().memory, _folded(named)
    if gate:
        memory = gate.short_term(memory)
    items = (item.text for item in (*memory.goals, *memory.facts, *memory.tasks))
    text = next((item for item in items if _folded(item) == wanted), "")
    if not text and wanted and wanted in _folded(memory.summary):
        text = named
    if not text:
        return None
    path = brain.tree.relative(brain.tree.short_term)
    steps = list(_writers(brain, path, text))
    # What another device's process wrote reaches this one as a person's save: the process is who wrote it
    first = next((step for step in steps if step.by != "person"), steps[0] if steps else None)
    if first and gate:
        sources = tuple(Exchanges(brain).shown(said.exchange, gate) for said in first.sources)
        first = replace(first, sources=tuple(filter(None, sources)))
    return Chain(path, "", "Short-term memory", "", text, steps=(first,) if first else ())


def _writers(brain: Brain, path: str, text: str) -> Iterator[Step]:
    """Yield the changes that brought a line into short-term memory, newest first, this device's before others'."""
    own = (("", event) for event in brain.journal.events(reverse=True))
    for device, event in chain(own, reversed(list(brain.journal.foreign_events()))):
        for change in event.changes:
            if change.path == path and change.op != "append":
                before, after = (brain.kept_text(digest) or "" for digest in (change.before, change.after))
                if text in after and text not in before:
                    exchange = event.what.exchange if isinstance(event.what, OutcomeEvent) else ""
                    sources = (Exchanges(brain).said(exchange),) if exchange else ()
                    step = Step(event.id, event.at, event.kind, event.by, "written", after=text)
                    yield replace(step, device=device, sources=sources)


# --- the answer ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Why:
    """Why something stands in memory.

    Attributes:
        path: The file.
        title: Its title.
        chains: Its statements, or the one asked for.
        said: For an episodic page: the exchanges on it.
        is_exact: False where the nearest statement was taken for the one that was named.
    """

    path: str
    title: str
    chains: tuple[Chain, ...]
    said: tuple[Said, ...] = ()
    is_exact: bool = True


def why(brain: Brain, named: str, gate: Gate | None = None) -> Why:
    """Explain a memory (path, uuid, title) or a statement (block id, `path#^id`, text).

    Args:
        brain: The brain.
        named: As a person or a model named it.
        gate: What decides what may be seen; None for the person, who sees all.

    Raises:
        UserError: Nothing is called so; the nearest are named.
        FormatError: The page cannot be read.
    """
    if memory := find_memory(brain, named, gate):
        exchanges, provenance = Exchanges(brain), Provenance(brain, memory, gate)
        shown = (exchanges.shown(placed.event.id, gate) for placed in find_events(memory.text))
        said = tuple(filter(None, shown))
        return Why(memory.path, memory.title, tuple(map(provenance.chain, memory.statements)), said)
    if item := origin_of_item(brain, named, gate):
        return Why(item.path, item.title, (item,))
    if found := find_statement(brain, named, gate):
        chain = Provenance(brain, found.memory, gate).chain(found.statement)
        return Why(found.memory.path, found.memory.title, (chain,), is_exact=found.is_exact)
    hits = brain.recall.search(named, limit=3, is_private=True)
    if gate:
        hits = gate.hits(hits)
    nearest = ", ".join(f"“{hit.text}” ({hit.path})" for hit in hits)
    raise UserError(f"no memory and no statement is called {named!r}{f'; the nearest: {nearest}' if nearest else ''}")
