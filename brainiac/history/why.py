"""Explains why a memory says what it says: each change of a statement, back to the sentence that a person typed.

Operations that the journals record are combined with the differences between the page's versions, so that edits by
hand are listed too.
"""

from __future__ import annotations

import difflib
import json
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, UserError
from brainiac.events import PathKind, TreeAdopted
from brainiac.formats.markdown import PRIVATE, find_events
from brainiac.formats.page import Memory, Statement, parse_memory, readable_memory, shareable_text
from brainiac.history.exchanges import Exchanges, Said
from brainiac.llm.gate import Gate
from brainiac.storage.projection import ORIGIN
from brainiac.storage.said import check_gone, meant_by
from brainiac.storage.statements import StatementChange, StatementLog, rests_on, text_hash
from brainiac.text.tokens import coverage

MAX_EXCHANGES = 10  # that are shown for words which no statement has
MIN_COVERAGE = 0.6  # the share of the given words that the nearest statement must have
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})
MARKS = {  # what marks words that are kept without a model, by `StatementRecord.marked_by`
    "command": "you wrote it behind /remember",
    "note": "it was saved as a note",
    "key-fact": "you wrote it under Key Facts",
    "tag": "it has a #tag of yours",
    "link": "it has a [[link]] of yours",
    "repetition": "you said it on two days in nearly the same words",
    "use": "answers of two days rested on it",  # in older journals
}


# --- pages and statements, by name ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatementMatch:
    """A statement that a person named, and its page.

    Attributes:
        memory: The page.
        statement: The statement.
        is_exact: Whether it was named by its id or exact words; False for the nearest statement.
    """

    memory: Memory
    statement: Statement
    is_exact: bool = True

    @property
    def text(self) -> str:
        """The statement's words."""
        return self.statement.text

    @property
    def path(self) -> str:
        """Path of its page."""
        return self.memory.path

    @property
    def name(self) -> str:
        """Path and block id of the statement; its words where it has no block id."""
        block = self.statement.block_id
        return f"{self.memory.path}#^{block}" if block else self.statement.text


def memory_pages(brain: Brain) -> Mapping[str, Memory]:
    """Return the readable pages of long-term memory and archive by path, index pages left out."""
    return {path: page for path, page in brain.pages().pages.items() if brain.tree.kind_of(path) in _PAGES}


def _shown_page(page: Memory, gate: Gate | None) -> Memory | None:
    """Return a page without the parts that its reader may not see; None where the reader may not see the page."""
    text = page.text if gate is None else gate.read_note(page.path, tops=("memory",))
    if text is None:
        return None
    return page if text == page.text else parse_memory(page.path, text)


def path_named(brain: Brain, named: str) -> str:
    """Return what a person typed as a path of the brain; "" where it leads outside of it."""
    try:
        return brain.tree.relative(brain.tree.confine(named))
    except ConfinementError:
        return ""


def find_memory(brain: Brain, named: str, gate: Gate | None = None) -> Memory | None:
    """Return the page of that path, uuid, title or file name; None where there is none, or it may not be seen.

    Args:
        brain: The brain.
        named: As a person or a model named it; a path is one from the root, or from `memory/long_term/`.
        gate: What decides which pages, and what of them, may be seen; None for the person, who sees all.

    Raises:
        UserError: Several pages have the title.
        FormatError: The page of that path cannot be read; behind a gate it counts as none.
    """
    path = path_named(brain, named)
    # most are named by their path, as receipts and the window do: then no other page is read
    paths = [f"{brain.tree.relative(brain.tree.long_term)}/{path}", path]
    at_path = brain.pages([each for each in paths if path and brain.tree.kind_of(each) in _PAGES])
    if found := next((at_path.pages[each] for each in paths if each in at_path.pages), None):
        return _shown_page(found, gate)
    if gate is None and (error := at_path.broken.get(path)):
        raise error
    matches, name = [], folded(named)
    for page in memory_pages(brain).values():
        file_name = posixpath.basename(page.path).removesuffix(".md")
        has_name = name and name in (page.uuid.casefold(), page.title.casefold(), file_name.casefold())
        if has_name and (shown_page := _shown_page(page, gate)):
            matches.append(shown_page)
    if len(matches) > 1:
        places = ", ".join(page.path for page in matches)
        raise UserError(f"{len(matches)} pages are called {named!r}: {places}; name one by its path")
    return matches[0] if matches else None


def find_statement(brain: Brain, named: str, gate: Gate | None = None) -> StatementMatch | None:
    """Return the statement of that block id, `path#^id` or text, else the nearest one that has most of the words.

    None where there is none; for a `path#^id` the nearest is not looked for.

    Args:
        brain: The brain.
        named: As a person or a model named it.
        gate: What decides which statements may be seen; None for the person, who sees all.

    Raises:
        UserError: Several pages have it.
    """
    path, sign, block = meant_by(brain, named).strip().rpartition("#^")
    if sign:
        page = find_memory(brain, path, gate)
        standing = (each for each in (page.statements if page else ()) if block and each.block_id == block)
        return next((StatementMatch(page, statement) for statement in standing if page), None)
    words, block = folded(named), named.strip().removeprefix("^")
    if not block:
        return None
    matches = []
    for page in memory_pages(brain).values():
        # a quick look, at the first characters, since parsing a page's statements costs a hundred times as much
        if block in page.text or words[:20] in folded(page.text):
            visible_page = _shown_page(page, gate)
            for statement in visible_page.statements if visible_page else ():
                if statement.block_id == block or folded(statement.text) == words:
                    matches.append(StatementMatch(page, statement))
    if len(matches) > 1:
        places = ", ".join(f"{match.memory.path} ^{match.statement.block_id}" for match in matches)
        raise UserError(f"{named!r} stands {len(matches)} times: {places}; name the page, or the id of one")
    return matches[0] if matches else _nearest_statement(brain, named, gate)


def _nearest_statement(brain: Brain, named: str, gate: Gate | None) -> StatementMatch | None:
    """Return the statement most like some words; None where none has at least `MIN_COVERAGE` of them."""
    best, best_score = None, 0.0
    hits = brain.recall.search(named, limit=20, kinds={"statement"}, is_private=True)
    hits = gate.hits(hits) if gate else hits
    pages = brain.pages([hit.path for hit in hits if brain.tree.kind_of(hit.path) in _PAGES]).pages
    for hit in hits:
        share = coverage(named, hit.text)
        if share < MIN_COVERAGE or not hit.anchor or hit.path not in pages:
            continue
        # of several that have the words, the one with the words in the same order is meant
        score = share + difflib.SequenceMatcher(None, named.casefold(), hit.text.casefold()).ratio()
        for statement in pages[hit.path].statements:
            if statement.block_id == hit.anchor and score > best_score:
                best, best_score = StatementMatch(pages[hit.path], statement, is_exact=False), score
    return best


def folded(text: str) -> str:
    """Return a text with case and white space folded, to compare texts by their words."""
    return " ".join(text.split()).casefold()


# --- the changes of a statement ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a statement.

    Attributes:
        event: Id of the journal's event.
        at: ISO 8601 UTC.
        kind: The event's kind.
        by: Who did it: a process, `person`, `cli`.
        operation: NEW, UPDATE, DELETE, REINFORCE; `written`, `edited`, `removed` where no operation is recorded and
            only the page's versions differ.
        before: The statement's text before; "" for a new one or where it is not known.
        after: Its text afterwards; "" where it was removed.
        model: The model that decided the operation.
        found_by: The model that extracted the statement from the exchange.
        verified_by: The model that said, as a second reader, that it follows from the exchange.
        reasoning: The reason that the model gave, or what marked the words that were kept without one.
        run_cost_usd: The cost of all model calls of that run.
        device: Where it was done; "" for this one.
        sources: The exchanges that the operation rests on.
        origin: Whose words it rests on, one of `ORIGINS`; "" where it is not known.
        author: Who said them, where that is not the person.
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
    verified_by: str = ""
    reasoning: str = ""
    run_cost_usd: float = 0.0
    device: str = ""
    sources: tuple[Said, ...] = ()
    origin: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """A statement with all its changes, oldest first.

    Attributes:
        path: The file that has it.
        page: The uuid of the page; "" for short-term memory.
        title: The title of the page.
        block: Its block id; "" for none.
        text: Its text.
        is_history: Whether it is under History.
        steps: Its changes.
    """

    path: str
    page: str
    title: str
    block: str
    text: str
    is_history: bool = False
    steps: tuple[Step, ...] = ()


class Provenance:
    """The history of one page's statements, from the journals.

    Args:
        brain: The brain.
        memory: The page as it stands, or what its reader may see of it.
        gate: What decides what may be seen of its past; None for the person, who sees all.
    """

    def __init__(self, brain: Brain, memory: Memory, gate: Gate | None = None) -> None:
        self._brain, self._memory, self._gate = brain, memory, gate
        self._exchanges = Exchanges(brain)
        # by content hash: a version is `after` of one change and `before` of the next, and is parsed once
        self._pages: dict[str | None, Memory | None] = {}
        self._changes = StatementLog(brain).history_of(memory.uuid) if memory.uuid else []

    def chain(self, statement: Statement) -> Chain:
        """Return a statement of the page with those of its changes that the reader may see, oldest first."""
        memory = self._memory
        steps = sorted(filter(self._is_shown, self._steps(statement)), key=lambda step: (step.at, step.event))
        place = memory.path, memory.uuid, memory.title, statement.block_id
        return Chain(*place, statement.text, statement.is_history, tuple(steps))

    def _steps(self, statement: Statement) -> Iterator[Step]:
        """Yield the recorded operations on a statement, then the changes of its text without an operation."""
        # of what only ended it the block is that of the statement as it was
        named = [(change, change.block or change.former.block) for change in self._changes]
        changes = [change for block in self._blocks(statement) for change, name in named if name == block]
        for change in changes:
            yield self._step(change, statement)
        # changes without a recorded operation: mostly a person's edit, or a version synced from another device
        recorded = {change.event.id for change in changes}
        whole = {change.event.id: change for change in self._changes if change.record.is_whole}
        for version in self._versions:
            before, after = _text_in(version.before, statement), _text_in(version.after, statement)
            # that a tree was adopted with it does not say who wrote it
            if before == after or version.event in recorded or version.kind == TreeAdopted.kind:
                continue
            if version.event in whole:  # a note that was kept whole
                yield replace(self._step(whole[version.event], statement), before=before, after=after)
            else:  # no process recorded it
                operation = ("edited" if before else "written") if after else "removed"
                step = Step(version.event, version.at, version.kind, version.by, operation, before, after)
                yield replace(step, device=version.device)

    def _is_shown(self, step: Step) -> bool:
        """Return whether the reader may see a step: its words and the exchanges that it rests on are not private."""
        if self._gate is None:
            return True
        words = "\n\n".join((step.before, step.after, step.reasoning))
        # of a private exchange the words are left out
        return not PRIVATE.search(words) and all(source.user or source.ai for source in step.sources)

    def _blocks(self, statement: Statement) -> list[str]:
        """Return the block ids of the statement and of the statements that it replaced, directly or through others."""
        blocks = [statement.block_id] if statement.block_id else []
        for block in blocks:  # the list grows during the loop
            for change in self._changes:
                former = change.former
                # it wrote this statement in place of the former one, or moved the former one to History as this one
                is_about_block = block in (change.block, former.history)
                if is_about_block and former.block and former.block not in blocks:
                    blocks.append(former.block)
        return blocks

    def _step(self, change: StatementChange, statement: Statement) -> Step:
        """Return a recorded operation as a step; its texts are found by their hashes in the page's versions."""
        event, row, own = change.event, change.record, self._brain.journal.device
        after = self.text_with_hash(change.hash)
        if not after:  # no version of the page is kept that has it
            after = statement.text if text_hash(statement.text) == change.hash else ""
        before, operation = self.text_with_hash(change.former.hash), row.operation or "adopted"
        # as the gate shows them; of one of which it shows nothing the id alone
        said = (self._exchanges.shown(id_, self._gate) or Said(id_, at="", user="") for id_ in row.sources)
        # of all model calls of the run, by the id of its first event
        sql = "SELECT total(cost_usd) FROM calls WHERE device = ? AND cause = ?"
        cost = self._brain.projection.query(sql, own, event.cause or "")[0][0]
        return replace(
            Step(event.id, event.at, event.kind, event.by, operation, before, after),
            model=row.model,
            found_by=row.found_by,
            verified_by=row.verified_by,
            reasoning=row.reasoning or MARKS.get(row.marked_by, ""),
            run_cost_usd=round(float(cost), 8),
            device=change.device if change.device != own else "",
            sources=tuple(each.on_side_of(row.origin) for each in said),
            origin=row.origin,
            author=row.author,
        )

    def text_with_hash(self, digest: str) -> str:
        """Return the text of a statement by its hash, from any version of the page; "" where none has it."""
        return self._texts.get(digest, "")

    @cached_property
    def _texts(self) -> dict[str, str]:
        """The texts of all statements of the page, now and in its recorded versions, by hash."""
        versions = [page for version in self._versions for page in (version.before, version.after) if page]
        memories = (*versions, self._memory)
        return {text_hash(statement.text): statement.text for memory in memories for statement in memory.statements}

    @cached_property
    def _versions(self) -> list[_Version]:
        """The changes of the page, oldest first, with those at the paths that it was moved from.

        Those of all devices, each as it was made: not where a sync brought its text.
        """
        versions, path, until = [], self._memory.path, ("~", 0)  # `~` is after every id
        while path:
            rows = self._brain.projection.query(
                "SELECT event, position, at, kind, by, before, after, source, device FROM changes WHERE path = ?"
                f" AND op != 'observe' AND (source IS NOT NULL OR {ORIGIN.format('event')} IS NULL)"
                " ORDER BY event DESC, position DESC",
                path,
            )
            former_path = ""
            for event, position, at, kind, by, before, after, source, device in rows:
                if (event, position) >= until:
                    continue  # another page that has had this path since
                pages = self._page_as_of(path, before), self._page_as_of(path, after)
                device = device if device != self._brain.journal.device else ""
                versions.append(_Version(event, at, kind, by, *pages, device))
                if source:  # moved here: older changes are those of the path that it was moved from
                    former_path, until = source, (event, position)
                    break
            path = former_path
        return versions[::-1]

    def _page_as_of(self, path: str, digest: str | None) -> Memory | None:
        """Return the page as it was when its file had a content hash; behind a gate only what may be shown of it.

        Returns:
            None where there was no file (no hash), where its text is purged, all private or cannot be parsed.
        """
        if digest not in self._pages:
            text = self._brain.kept_text(digest)
            if self._gate and text is not None:
                text = shareable_text(text)
            self._pages[digest] = readable_memory(path, text)
        return self._pages[digest]


@dataclass(frozen=True, slots=True)
class _Version:
    """A change of a page.

    Attributes:
        before: What it said before; None where there was no page, or it cannot be shown.
        after: What it said afterwards; None likewise.
        device: On which it was made; "" for this one.
    """

    event: str
    at: str
    kind: str
    by: str
    before: Memory | None
    after: Memory | None
    device: str


def _text_in(memory: Memory | None, statement: Statement) -> str:
    """Return a statement's text in a version of its page, struck through where it is retired there; "" for none.

    It is found by its block id; one without an id only by the same text.
    """
    for other in memory.statements if memory else ():
        is_same = other.block_id == statement.block_id if statement.block_id else other.text == statement.text
        if is_same:
            return f"~~{other.text}~~" if other.is_history else other.text
    return ""


def origin_of_item(brain: Brain, named: str, gate: Gate | None = None) -> Chain | None:
    """Return an item of short-term memory, or words of its summary, with the change that wrote it; None for neither."""
    memory = brain.short_term().memory
    if gate:
        memory = gate.short_term(memory)
    words, items = folded(named), (*memory.goals, *memory.facts, *memory.tasks)
    text = next((item.text for item in items if folded(item.text) == words), "")
    # of what the summary only quotes the exchange tells more
    if words and not text and words in folded(memory.summary) and not _exchanges_with(brain, named, gate):
        text = named
    if not text:
        return None
    path = brain.tree.relative(brain.tree.short_term)
    paragraphs = [part.strip() for part in memory.summary.split("\n\n") if text in part]
    # what a process wrote is recorded by its hash; any other words are the person's. This device's own record first:
    # another's may be of the same words written there
    rows = brain.projection.query(
        "SELECT event, at, kind, by, device, exchange FROM writings WHERE hash IN (SELECT value FROM json_each(?))"
        " ORDER BY device = ? DESC, event DESC LIMIT 1",
        json.dumps([text_hash(part) for part in (text, *paragraphs)]),
        brain.journal.device,
    )
    steps = list[Step]()
    for event, at, kind, by, device, exchange in rows:
        said = Exchanges(brain).shown(exchange, gate) if exchange else None
        device = "" if device == brain.journal.device else device
        steps.append(Step(event, at, kind, by, "written", after=text, device=device, sources=(said,) if said else ()))
    return Chain(path, page="", title="Short-term memory", block="", text=text, steps=tuple(steps))


# --- the answer ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of a memory.

    Attributes:
        path: The file.
        title: Its title.
        chains: Its statements, or the one asked for; of an exchange those that rest on it.
        said: For an episodic page: the exchanges on it.
        is_exact: False where nothing was called so and the nearest statement is explained.
        fresh: Whether the journals were read just now.
        cursor: For the next statements, where a door gets them in parts; "" at the end.
    """

    path: str
    title: str
    chains: tuple[Chain, ...]
    said: tuple[Said, ...] = ()
    is_exact: bool = True
    fresh: bool = True
    cursor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return asdict(self) | {"cursor": self.cursor or None}


def _exchanges_with(brain: Brain, named: str, gate: Gate | None) -> tuple[Said, ...]:
    """Return the exchanges, in short-term memory or on the pages of their days, in which some words were said."""
    words, exchanges = folded(named), Exchanges(brain)
    texts = [brain.read_text(brain.tree.short_term) or "", *(page.text for page in memory_pages(brain).values())]
    matches: list[Said] = []
    for text in texts:
        if words in folded(text):
            for event in [placed.event for placed in find_events(text)]:
                if words in folded(event.user) or words in folded(event.ai):
                    said = exchanges.shown(event.id, gate)
                    matches += [replace(said, is_answer=words not in folded(event.user))] if said else []
    return tuple(matches)[:MAX_EXCHANGES]


def _resting_on(brain: Brain, exchanges: set[str], gate: Gate | None) -> Iterator[Chain]:
    """Yield the statements that rest on exchanges, each with what became of it, as far as the reader may see them."""
    by_page = groupby(rests_on(brain, exchanges), key=lambda rest: rest.path)
    for path, rests in by_page:
        blocks = [rest.name for rest in rests if rest.kind == "statement"]
        if blocks and (page := _shown_page(memory_pages(brain)[path], gate)):
            provenance = Provenance(brain, page, gate)
            yield from (provenance.chain(each) for each in page.statements if each.block_id in blocks)


def why(brain: Brain, named: str, gate: Gate | None = None) -> Why:
    """Explain where something in memory comes from.

    What is tried in turn: a memory (path, uuid, title), a line of short-term memory, a statement (block id,
    `path#^id`, text), and words that stand in an exchange only.

    Args:
        brain: The brain.
        named: As a person or a model named it.
        gate: Takes out what the asker may not see; None for the person, who sees all.

    Raises:
        UserError: Nothing has that name; the nearest statements are named.
        FormatError: The page cannot be read.
    """
    meant, exchanges = meant_by(brain, named), Exchanges(brain)
    said = exchanges.shown(meant, gate) if exchanges.event(meant) else None
    if said:  # by its id: nothing else is called so
        return Why(said.read_from, "Said, and no statement yet", (), (said,))
    match = find_statement(brain, meant, gate) if "#^" in meant else None
    if match is None and (memory := find_memory(brain, meant, gate)):
        provenance = Provenance(brain, memory, gate)
        on_page = (exchanges.shown(placed.event.id, gate) for placed in find_events(memory.text))
        chains = tuple(map(provenance.chain, memory.statements))
        return Why(memory.path, memory.title, chains, tuple(filter(None, on_page)))
    match = match or find_statement(brain, named, gate)
    # an item of short-term memory may be a statement by now, which tells what marked it
    if not (match and match.is_exact) and (item := origin_of_item(brain, named, gate)):
        return Why(item.path, item.title, (item,))
    if match:
        changes = Provenance(brain, match.memory, gate).chain(match.statement)
        return Why(match.memory.path, match.memory.title, (changes,), is_exact=match.is_exact)
    exchange = exchanges.find(meant) if meant != named else None
    said = exchanges.shown(exchange, gate) if exchange else None
    if matches := (said,) if said else _exchanges_with(brain, named, gate):
        chains = tuple(_resting_on(brain, {each.exchange for each in matches}, gate))
        title = "Said, and what rests on it" if chains else "Said, and no statement yet"
        return Why(matches[0].read_from, title, chains, matches)
    if gate is None:
        check_gone(brain, named)
    hits = brain.recall.search(named, limit=3, is_private=True)  # the gate takes out what the asker may not see
    if gate:
        hits = gate.hits(hits)
    nearest = ", ".join(dict.fromkeys(f"“{hit.text}” ({hit.path})" for hit in hits))
    raise UserError(f"no memory and no statement is called {named!r}{f'; the nearest: {nearest}' if nearest else ''}")
