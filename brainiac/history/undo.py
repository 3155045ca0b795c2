"""Undoes a commit or the last change of one statement, and corrects a statement; each by a new commit.

A commit is undone whole. In a file that was changed since, what others wrote stays: it is a merge
(`storage/versions.py`) of the present text with the one before the event. Where both changed the same, the lines in the
way are named, with the event to take back first. Logs and manifests stay as they are.

When a statement is corrected, its former wording goes to History. The new wording is the person's own: no process
rewrites it, an earlier exchange does not bring the former one back (`plugins/promotion/placing.py`), and a search
result from the exchange that it rested on names the present wording (`search/outdated.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BlobError, UserError
from brainiac.events import (
    Change,
    Event,
    EventUndone,
    EvidenceRecord,
    PathKind,
    RecordedChange,
    StatementCorrected,
    StatementRecord,
    StatementRef,
    TreeAdopted,
    content_hash,
    create,
    move,
    new_id,
    remove,
    update,
)
from brainiac.formats.authors import ORIGINS, PERSON, Author
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.markdown import find_events, one_line
from brainiac.formats.page import STEPS, Memory, MemoryDocument, Statement, first_keys
from brainiac.formats.prompt import parse_commands
from brainiac.history.digest import write_digest
from brainiac.history.exchanges import Exchanges
from brainiac.history.why import StatementMatch, folded
from brainiac.llm.gate import Gate
from brainiac.llm.offline import NOTES
from brainiac.search.documents import Hit
from brainiac.search.outdated import with_former
from brainiac.storage.causes import catch_up_of, consequences, events_changing, undone_events
from brainiac.storage.folders import Folders
from brainiac.storage.statements import StatementLog, text_hash, with_block_ids, without_fact
from brainiac.storage.versions import merge
from brainiac.text.tokens import coverage, pieces

_MAX_SHOWN, _MAX_LINES = 80, 3  # characters of a line, and lines, of those in the way of undoing


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A file because of which a commit cannot be undone, the reason, and what a person can do."""

    path: str
    what: str
    todo: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}; {self.todo}"


@dataclass(slots=True)
class Undoing:
    """The plan for undoing an event.

    Attributes:
        event: The event.
        changes: The changes of the new commit.
        obstacles: Files in the way; nothing is done while there are any.
        stays: A sentence about each thing that is not undone.
        later: Events that this one led to; they are not undone.
        is_catch_up: Whether the event is part of a catch-up. That may be long ago: what was written on its pages since
            stays, and is no obstacle.
    """

    event: Event
    changes: list[Change] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)
    later: list[Event] = field(default_factory=list)
    is_catch_up: bool = False


class Undone(NamedTuple):
    """What undoing one event did.

    Attributes:
        event: The new event.
        plan: The plan that was carried out.
    """

    event: Event
    plan: Undoing


def undo_all(brain: Brain, events: Sequence[Event]) -> list[Undone]:
    """Undo several events, each in one commit; none where a file is in the way of any.

    Args:
        brain: The brain.
        events: Of this device, newest first.

    Returns:
        What was done for each, in the same order; for several events the plans' changes lack the texts of the files.

    Raises:
        UserError: Files stand in the way, or an event is taken back already; each is named.
        ConflictError: Somebody keeps writing the files.
    """
    if len(events) > 1:
        _check_all(brain, events)
    results = []
    for event in events:
        undone = _undo(brain, event)
        if len(events) > 1:  # the texts of an import may not fit into memory
            undone.plan.changes = [replace(change, before=None, after=None) for change in undone.plan.changes]
        results.append(undone)
    write_digest(brain)
    return results


def _check_all(brain: Brain, events: Sequence[Event]) -> None:
    """Raise `UserError` where a file is in the way of undoing one of several events, newest first."""
    reversed_before: set[str] = set()  # paths
    obstacles: list[str] = []
    for event in events:
        undoing = _plan_reversal(brain, event)
        # a file that a later event of them changed too is no obstacle: that event is undone first
        obstacles += [str(obstacle) for obstacle in undoing.obstacles if obstacle.path not in reversed_before]
        reversed_before |= {change.path for change in event.changes}
    if obstacles:
        raise UserError(*obstacles)


def undo(brain: Brain, event: Event) -> Undone:
    """Undo an event in one commit.

    Args:
        brain: The brain.
        event: Of this device.

    Raises:
        UserError: It changed nothing, is taken back already, or files stand in the way; each is named.
        ConflictError: Somebody keeps writing the files.
    """
    result = _undo(brain, event)
    write_digest(brain)
    return result


def _undo(brain: Brain, event: Event) -> Undone:
    """Undo an event in one commit; the digest is written by the caller."""

    def attempt() -> Undone:
        with brain.short_term_lock():
            undoing = plan(brain, event)
            if undoing.obstacles:
                raise UserError(*map(str, undoing.obstacles))
            what = EventUndone(undone=event.id, kind_=event.kind)
            return Undone(brain.commit(what, by="cli", changes=undoing.changes, cause=event.id), undoing)

    return brain.retry(attempt)


def plan(brain: Brain, event: Event) -> Undoing:
    """Return the plan for undoing an event in the present tree.

    Raises:
        UserError: It changed nothing, or is taken back already.
    """
    if isinstance(event.what, TreeAdopted):
        raise UserError(f"{event.id} ({event.kind}) is where this device's history begins; there is nothing before it")
    if by := undone_events(brain).get(event.id):
        raise UserError(f"{event.id} ({event.kind}) is taken back already; `brainiac undo {by}` brings it back")
    undoing = _plan_reversal(brain, event)
    undoing.later = consequences(brain, event)
    if not undoing.changes and not undoing.obstacles:
        raise UserError(f"{event.id} ({event.kind}) changed no file that could be taken back", *undoing.stays)
    return undoing


def _plan_reversal(brain: Brain, event: Event) -> Undoing:
    """Return the plan for undoing an event, without what followed from it."""
    undoing = Undoing(event, is_catch_up=catch_up_of(brain, event) is not None)
    for change in event.changes:
        _Reversal(brain, undoing, change).add()
    return undoing


class _Reversal:
    """Reverses one change of an event in the present tree and adds the result to the plan."""

    def __init__(self, brain: Brain, undoing: Undoing, change: RecordedChange) -> None:
        self._brain, self._undoing, self._change, self._path = brain, undoing, change, change.path
        self._now = brain.read(change.path)

    def add(self) -> None:
        """Add what undoing this change needs: the reversed change, or an obstacle, or a sentence about what stays."""
        match self._change.op:
            case "append":
                self._undoing.stays.append(f"{self._path}: the lines that were added to this log stay")
            case "observe":
                return  # the event wrote nothing there
            case "remove":
                self._restore_removed()
            case _ if self._now is None:
                self._add_obstacle("is gone", self._todo())
            case _ if content_hash(self._now) == self._change.after:
                self._reverse(self._now)
            case _:
                self._reverse_partly(self._now)

    def _restore_removed(self) -> None:
        """Put back a file that the event removed."""
        before = self._text_or_obstacle(self._change.before)
        # where somebody has put back the very same text already, nothing is left to do
        if before is not None and self._now is None:
            self._undoing.changes.append(create(self._path, before))
        elif before is not None and self._now != before:
            self._add_obstacle("stands there anew", "move it away, or keep it and leave the event as it is")

    def _reverse(self, now: bytes) -> None:
        """Reverse a change whose file was not changed since."""
        change = self._change
        if change.op == "create" or change.before is None:
            self._undoing.changes.append(remove(self._path, now))
            return
        before = self._text_or_obstacle(change.before)
        if before is None:
            return
        if change.source is None:
            self._undoing.changes.append(update(self._path, now, before))
        elif self._brain.read(change.source) is None:
            self._undoing.changes.append(move(self._path, change.source, now, before))
        else:
            self._add_obstacle(f"came from {change.source}, where another file stands now", "move that one away")

    def _reverse_partly(self, now: bytes) -> None:
        """Reverse a change in a file that was changed since, if the later changes can stay; else add an obstacle.

        It is a merge: the text after the event is the base, the present text one side, the text before it the other.
        """
        path, change, kind = self._path, self._change, self._brain.tree.kind_of(self._path)
        # what is derived, or was written long ago, stands in nobody's way: what was changed since stays
        is_lenient = kind in (PathKind.REVIEW, PathKind.INDEX_PAGE)
        is_lenient |= kind is PathKind.MEMORY and self._undoing.is_catch_up
        if change.source is not None or (change.before is None and kind is not PathKind.REVIEW):
            if is_lenient:
                self._undoing.stays.append(f"{path}: stays as it is by now")
            else:
                self._add_obstacle(f"was changed since {self._by_whom()}".rstrip(), self._todo())
            return
        before = b"" if change.before is None else self._text_or_obstacle(change.before)
        after = None if before is None else self._text_or_obstacle(change.after)
        if before is None or after is None:
            return
        merged = merge(kind, after, now, before, prefer="ours", keeps_other=False)
        lines = [*(difference.kept for difference in merged.differences), *merged.outlived]
        if lines and is_lenient:
            self._undoing.stays.append(f"{path}: lines that were changed since stay as they are")
        elif lines:
            named = ", ".join(map(_name_of, lines[:_MAX_LINES]))
            self._add_obstacle(f"{named} was edited since {self._by_whom()}".rstrip(), self._todo())
        if kind is PathKind.SHORT_TERM:
            self._check_exchanges(*(_exchanges(text) for text in (before, after, now)))
        if not merged.text.strip():
            self._undoing.changes.append(remove(path, now))
        elif merged.text != now:
            self._undoing.changes.append(update(path, now, merged.text))

    def _check_exchanges(self, before: Mapping[str, str], after: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Add an obstacle for each exchange that the event added and that is not there any more: it went elsewhere."""
        for name in after.keys() - before.keys() - now.keys():
            self._add_obstacle(f"its exchange of {after[name]} is not there any more", self._todo())

    def _text_or_obstacle(self, digest: str | None) -> bytes | None:
        """Return a text of the journal; where it is not kept any more, add this as an obstacle and return None."""
        try:
            return self._brain.committer.text_of(str(digest))
        except BlobError:
            self._add_obstacle(
                "its earlier text is not kept any more (purged, or missing)", "nothing can bring it back"
            )
            return None

    def _add_obstacle(self, what: str, todo: str) -> None:
        """Add the file as an obstacle."""
        self._undoing.obstacles.append(Obstacle(self._path, what, todo))

    def _last_changer(self) -> Event | None:
        """Return the last event that changed the file after the one to undo; not what is taken back itself."""
        undone, later = undone_events(self._brain), events_changing(self._brain, self._path, self._undoing.event.seq)
        standing = (event for event in later if event.id not in undone and not isinstance(event.what, EventUndone))
        return max(standing, key=lambda event: event.seq, default=None)

    def _by_whom(self) -> str:
        """Return the words for who changed the file since; "" where the journal does not say."""
        later = self._last_changer()
        return f"by {later.by} ({later.kind}, {later.at}, event {later.id})" if later else ""

    def _todo(self) -> str:
        """Return what a person can do about a file that was changed since."""
        later, by_hand = self._last_changer(), "mend it by hand"
        return f"take that back first (`brainiac undo {later.id}`), or {by_hand}" if later else by_hand


def _name_of(lines: str) -> str:
    """Return the name for a person of lines that were edited."""
    exchange = next(find_events(lines, 0), None)
    return f"its exchange of {exchange.event.at}" if exchange else f"“{one_line(lines)[:_MAX_SHOWN]}”"


def _exchanges(text: bytes) -> dict[str, str]:
    """Return the times of the exchanges in a version of short-term memory, by their ids."""
    return {placed.event.id: placed.event.at for placed in find_events(text.decode("utf-8", "surrogateescape"), 0)}


# --- one statement: `brainiac correct`, and `undo` of its last change ------------------------------------------------

MIN_COVERAGE = 0.5  # the least share of a person's words that a statement must have
MAX_TARGETS = 5
MAX_SAID = 20  # exchanges that are looked through for a sentence


@dataclass(frozen=True, slots=True)
class SaidMatch:
    """A sentence that the person said and that is no statement yet.

    Attributes:
        text: The sentence.
        path: The file of memory with the exchange.
        exchanges: The exchanges in which it was said, ids.
        is_private: Whether one of them must not leave this machine.
        at: When it was first said, ISO 8601.
    """

    text: str
    path: str
    exchanges: tuple[str, ...]
    is_private: bool
    at: str

    @property
    def name(self) -> str:
        """The sentence: by all its words it is meant alone."""
        return f"“{self.text}”"


def possible_targets(brain: Brain, words: str) -> list[StatementMatch | SaidMatch]:
    """Return the current statements that a person may mean, or sentences that they said, likeliest first.

    Args:
        brain: The brain.
        words: The statement's `path#^block`, all words of a statement or sentence, or some of them.

    Returns:
        Those that are named by id or by all their words; where there are none, up to `MAX_TARGETS` that have at least
        half of the words. A sentence only where it has more of them than any statement: what it became is corrected.
    """
    path, sign, block = words.strip().rpartition("#^")
    named: list[StatementMatch | SaidMatch] = []
    similar: list[tuple[float, StatementMatch | SaidMatch]] = []
    for page in brain.pages().memories.values():
        for statement in page.statements:
            if statement.is_history:
                continue
            target = StatementMatch(page, statement)
            has_id = sign and page.path == path and statement.block_id == block
            has_all_words = folded(statement.text) == folded(words)
            if has_id or has_all_words:
                named.append(target)
            elif (share := coverage(words, statement.text)) >= MIN_COVERAGE:
                similar.append((share, target))
    if not named:
        best = max((share for share, _ in similar), default=0.0)
        said = _said_sentences(brain, words)
        named += (target for target in said if folded(target.text) == folded(words))
        similar += ((share, target) for target in said if (share := coverage(words, target.text)) > best)
    similar.sort(key=lambda scored: -scored[0])
    return named or [target for _, target in similar[:MAX_TARGETS]]


def _said_sentences(brain: Brain, words: str) -> list[SaidMatch]:
    """Return the sentences of the person in short-term memory and on the pages of days with at least half of the words.

    Each stands once, however often it was said; what was put right already is left out.
    """
    matches: dict[str, SaidMatch] = {}
    hits = brain.recall.search(words, limit=MAX_SAID, kinds={"exchange"}, is_private=True)
    said = [hit for hit in hits if hit.speaker == "user" and hit.anchor]
    path = brain.tree.relative(brain.tree.short_term)
    for event in brain.short_term().memory.events:  # read, since a search leaves out what stands behind a command
        commands, rest = parse_commands(event.user)
        for text in (rest, *(command.argument for command in commands)):
            said.append(Hit("exchange", path, "", text, 0.0, anchor=event.id, at=event.at, speaker="user"))
    for hit in sorted(with_former(brain, said, hides_private=False), key=lambda hit: hit.at):
        for text in pieces(hit.text):
            key = folded(text)
            is_former = any(folded(former.words) in key or key in folded(former.words) for former in hit.former)
            if is_former or coverage(words, text) < MIN_COVERAGE:
                continue
            known = matches.get(key) or SaidMatch(text, hit.path, (), is_private=False, at=hit.at)
            exchanges = tuple(dict.fromkeys((*known.exchanges, hit.anchor)))
            matches[key] = replace(known, exchanges=exchanges, is_private=known.is_private or not _is_open(brain, hit))
    return list(matches.values())


def _is_open(brain: Brain, hit: Hit) -> bool:
    """Return whether the exchange of a hit may leave this machine."""
    return bool(Gate(brain, is_remote=True).hits([hit]))


def correct(brain: Brain, target: StatementMatch | SaidMatch, text: str) -> Event:
    """Replace a statement by a new wording; the former one goes to History.

    A sentence that was only said becomes a statement with it, on the page of notes of its month; the exchange stays as
    it was typed.

    Args:
        brain: The brain.
        target: The statement or sentence, from `possible_targets`.
        text: The new wording.

    Raises:
        UserError: The text is empty or the same, or the statement was changed meanwhile.
        ConflictError: Somebody keeps writing the page.
    """
    line = one_line(text)
    if not line:
        raise UserError("there is no new wording; `brainiac forget` takes a statement out")
    if line == one_line(target.text):
        raise UserError(f"“{line}” stands there in these very words")
    if isinstance(target, SaidMatch):
        event = brain.retry(lambda: _state(brain, target, line))
    else:
        event = brain.retry(lambda: _replace(brain, target, line))
    write_digest(brain)
    return event


def _replace(brain: Brain, target: StatementMatch, line: str) -> Event:
    """Commit the new wording of a statement, on its page as it is now; return the event."""
    path = target.memory.path
    before = brain.read_page(path) or ""
    document = with_block_ids(MemoryDocument(before, path).with_missing_keys(new_id(), iso(brain.clock.now())))
    old = _present_statement(document.memory, target)
    memory, day = document.memory, brain.day_of(iso(brain.clock.now()))
    since = StatementLog(brain).since_of(memory.uuid, old)
    document = document.replace_statement(old.block_id, line)
    # the former wording goes to History with a block id of its own
    history = document.block_id_for(old.text)
    document = document.add_statement(old.text, history).retire(history, day, old.block_id, since)
    row = StatementRecord(
        operation="UPDATE",
        path=path,
        page=memory.uuid,
        block=old.block_id,
        hash=text_hash(line),
        since=day,
        origin="person",
        replaced=StatementRef(block=old.block_id, hash=text_hash(old.text), history=history),
    )
    changes = [update(path, before, str(document)), *without_fact(brain, old.text)]
    return brain.commit(StatementCorrected(statements=(row,)), by="person", changes=changes)


def _state(brain: Brain, target: SaidMatch, line: str) -> Event:
    """Commit the new wording of a sentence that was said as a statement, the former one under History.

    A task or goal only gets the new wording where it stands in short-term memory.
    """
    now, old = iso(brain.clock.now()), one_line(target.text)
    items, is_task = _items_put_right(brain, old, line)
    if is_task:
        return brain.commit(StatementCorrected(statements=()), by="person", changes=items)
    day, since = brain.day_of(now), brain.day_of(target.at)
    pages, folder, title = brain.pages(), f"{brain.tree.relative(brain.tree.long_term)}/concrete/{NOTES}", since[:7]
    page = next(
        (
            page
            for page in pages.memories.values()
            if page.path.startswith(f"{folder}/") and page.title == title and page.is_private == target.is_private
        ),
        None,
    )
    path = page.path if page else pages.free_path(folder, title)
    before = brain.read_page(path) if page else None
    private = {"private": True} if target.is_private else {}
    new_page = f"{render_meta({**first_keys(new_id(), now, [NOTES]), **private})}\n# {title}\n"
    document = with_block_ids(MemoryDocument(before or new_page, path).with_missing_keys(new_id(), now))
    block = document.block_id_for(line)
    document = document.add_statement(line, block)
    # of imported words no prompt of this brain says whose they are
    authors = [
        said.prompt.author if said else Author("import") for said in map(Exchanges(brain).texts_of, target.exchanges)
    ]
    author = max(authors, key=lambda author: ORIGINS.index(author.origin))
    former = old + author.mark()
    history = document.block_id_for(former)
    document = document.add_statement(former, history).retire(history, day, block, since)
    said = StatementRecord(
        operation="NEW",
        path=path,
        page=document.memory.uuid,
        block=block,
        hash=text_hash(former),
        since=since,
        sources=target.exchanges,
        evidence=tuple(EvidenceRecord(exchange=exchange, quote=target.text) for exchange in target.exchanges),
        origin=author.origin,
        author=author.by,
    )
    corrected = replace(
        said,
        operation="UPDATE",
        hash=text_hash(line),
        since=day,
        sources=(),
        evidence=(),
        origin=PERSON,
        author="",
        replaced=StatementRef(block=block, hash=text_hash(former), history=history),
    )
    text = str(document)
    changes = [create(path, text) if before is None else update(path, before, text)]
    return brain.commit(
        StatementCorrected(statements=(said, corrected)),
        by="person",
        changes=[*changes, *Folders(brain, changes).changes(), *items],
    )


def _items_put_right(brain: Brain, old: str, line: str) -> tuple[list[Change], bool]:
    """Return the change of short-term memory where a goal, fact or task has the old words, and whether it is a task.

    Goals and tasks get the new wording; a fact goes, since it stands as a statement now.
    """
    path = brain.tree.relative(brain.tree.short_term)
    document = brain.short_term()
    memory, text = document.memory, str(document)
    goals, facts, tasks = (
        [item.text for item in items if folded(item.text) == folded(old) and not item.is_done]
        for items in (memory.goals, memory.facts, memory.tasks)
    )
    after = document.without_items(goals, facts, tasks)
    after = after.with_items(goals=[line] * bool(goals), facts=(), tasks=[line] * bool(tasks))
    return [update(path, text, str(after))] if goals or facts or tasks else [], bool(goals or tasks)


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What `take_back` did.

    Attributes:
        event: The event of its commit.
        path: The page.
        before: The statement that held until now; "" for none.
        after: The statement that holds again; "" for none.
    """

    event: Event
    path: str
    before: str
    after: str


def take_back(brain: Brain, named: str) -> TakenBack:
    """Reverse the last change of one statement, whoever made it.

    A statement that replaced another, or a former wording of its own, is replaced by that; one that did not goes to
    History. A statement under History holds again.

    Args:
        brain: The brain.
        named: The statement, `path#^block`, as `brainiac digest` names it.

    Raises:
        UserError: There is no such statement, or it is a step of a how-to.
        ConflictError: Somebody keeps writing the page.
    """
    result = brain.retry(lambda: _take_back(brain, named))
    write_digest(brain)
    return result


def _take_back(brain: Brain, named: str) -> TakenBack:
    """Commit the reversal of a statement's last change, on its page as it is now."""
    memory, statement = _named_statement(brain, named)
    present, former = _present_and_former(memory, statement)
    block = (present or statement).block_id
    day = brain.day_of(iso(brain.clock.now()))
    since = StatementLog(brain).since_of(memory.uuid, present) if present else ""
    document, history = MemoryDocument(memory.text, memory.path), block
    if present is None:  # it is under History, and nothing replaced it
        operation = "NEW"
        document = document.without_statement(block).add_statement(statement.text, block)
    elif former is None:  # it replaced nothing
        operation = "DELETE"
        document = document.retire(block, day, since=since)
    else:
        operation = "UPDATE"
        document = document.without_statement(former.block_id)
        # the two change places: what held until now goes to History with a block id of its own
        history = document.block_id_for(present.text)
        document = document.replace_statement(block, former.text).add_statement(present.text, history)
        document = document.retire(history, day, block, since)
    row = StatementRecord(
        operation=operation,
        path=memory.path,
        page=memory.uuid,
        block=block if former else "",
        hash=text_hash(former.text) if former else "",
        since=(former and former.since) or day,
        origin="person",
        replaced=StatementRef(block=block, hash=text_hash(present.text), history=history) if present else None,
    )
    changes = [update(memory.path, memory.text, str(document))]
    event = brain.commit(StatementCorrected(statements=(row,)), by="person", changes=changes)
    return TakenBack(event, memory.path, present.text if present else "", former.text if former else "")


def _present_and_former(memory: Memory, statement: Statement) -> tuple[Statement | None, Statement | None]:
    """Return the statement that holds now and the one that held before it, given one of the two.

    The first is None where no statement replaced one under History, the second where a statement replaced none.
    """
    if statement.is_history:
        current = {other.block_id: other for other in memory.statements if not other.is_history}
        return current.get(statement.replaced_by), statement
    former = [other for other in memory.statements if other.is_history and other.replaced_by == statement.block_id]
    return statement, max(former, key=lambda other: other.until, default=None)


def _named_statement(brain: Brain, named: str) -> tuple[Memory, Statement]:
    """Return the statement of a page's path, or the end of it, and a block id; also one under History.

    Raises:
        UserError: There is none or more than one, or it is a step of a how-to.
    """
    path, _, block = named.strip().rpartition("#^")
    places = [
        (page, statement)
        for page in brain.pages().memories.values()
        if page.path == path or page.path.endswith("/" + path)
        for statement in page.statements
        if statement.block_id == block
    ]
    if len(places) != 1:
        where = "stands nowhere" if not places else "stands on " + " and ".join(page.path for page, _ in places)
        raise UserError(f"the statement {named} {where}; `brainiac digest` names what was done lately")
    if places[0][1].section == STEPS:
        raise UserError(
            f"{named} is a step of a how-to, which changes as a whole: take back the event, or edit the page"
        )
    return places[0]


def _present_statement(memory: Memory, target: StatementMatch) -> Statement:
    """Return the target as it is on its page now.

    Raises:
        UserError: It was changed meanwhile.
    """
    for statement in memory.statements:
        is_same = not target.statement.block_id or statement.block_id == target.statement.block_id
        if is_same and not statement.is_history and statement.text == target.statement.text:
            return statement
    raise UserError(f"“{target.statement.text}” on {memory.path} was changed meanwhile; look again")
