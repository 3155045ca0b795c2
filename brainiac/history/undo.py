"""Undoes a commit or the last change of one statement, and corrects a statement; each by a new commit.

A commit is undone whole. In a file that was changed since, what others wrote stays: it is a merge
(`storage/versions.py`) of the present text with the one before the event. Where both changed the same, the lines in the
way are named, with the event to take back first. Logs and manifests stay as they are.

When a statement is corrected, its former wording goes to History. The new wording is the person's own: no process
rewrites it, an earlier exchange does not bring the former one back (`plugins/promotion/placing.py`), and a search
result from the exchange that it rested on names the present wording (`search/outdated.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from brainiac import events
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BlobError, UserError
from brainiac.events import Change, Event, PathKind, StatementRef, create, move, new_id, remove, update
from brainiac.formats.authors import ORIGINS, PERSON, Author
from brainiac.formats.discretion import Audience
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.markdown import find_events, one_line
from brainiac.formats.page import STEPS, Memory, MemoryDocument, Statement, first_keys
from brainiac.formats.prompt import parse_commands
from brainiac.formats.short_term import EMPTY, document_of
from brainiac.history.digest import write_digest
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import Target, plan_forget
from brainiac.history.why import StatementMatch, find_statement, folded
from brainiac.llm.gate import Gate
from brainiac.llm.offline import NOTES
from brainiac.search.documents import Hit
from brainiac.search.outdated import with_former
from brainiac.storage.causes import catch_up_of, consequences, undone_events
from brainiac.storage.links import Edits
from brainiac.storage.review import asked_before, with_proposals, without_proposals
from brainiac.storage.said import check_gone, meant_by
from brainiac.storage.statements import StatementLog, text_hash, with_block_ids, without_fact
from brainiac.storage.versions import merge, review_change
from brainiac.text.tokens import coverage, pieces

_MAX_SHOWN, _MAX_LINES = 80, 3  # characters of a line, and lines, of those in the way of undoing


class Obstacle(NamedTuple):
    """A file because of which a commit cannot be undone; the reason, and what a person can do."""

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
        is_of_exchange: Whether the event is what was noted of an exchange that is undone with it, from wherever it is.
        is_catch_up: Whether the event is part of a catch-up. That may be long ago: what was written on its pages since
            stays, and is no obstacle.
    """

    event: Event
    changes: list[Change] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)
    later: list[Event] = field(default_factory=list)
    is_catch_up: bool = False
    is_of_exchange: bool = False


class Undone(NamedTuple):
    """What undoing one event did: the new event, and the plan that was carried out."""

    event: Event
    plan: Undoing


def undo_all(brain: Brain, commits: Sequence[Event], *, is_last: bool = False) -> list[Undone]:
    """Undo several events, each in one commit; none where a file is in the way of any.

    Args:
        brain: The brain.
        commits: Events of this device, newest first.
        is_last: Whether they are the last change, and the person named none.

    Returns:
        What was done for each, in the same order; the plans' changes of an import lack the texts of the files.

    Raises:
        UserError: An event changed nothing or is taken back already, or files stand in the way; each is named.
        ConflictError: Somebody keeps writing the files.
    """
    if len(commits) > 1 and (obstacles := [str(each) for step in plan_all(brain, commits) for each in step.obstacles]):
        raise UserError(*obstacles)
    results = []
    for event in commits:
        is_alone = len(commits) == 1
        undone = brain.retry(partial(_undo, brain, event, is_alone=is_alone, is_named=is_alone and not is_last))
        if undone is None:  # what it did is taken back with the others
            continue
        if isinstance(event.what, events.ExchangesImported):  # the texts of an import may not fit into memory
            undone.plan.changes = [replace(change, before=None, after=None) for change in undone.plan.changes]
        results.append(undone)
    write_digest(brain)
    return results


def plan_all(brain: Brain, commits: Sequence[Event]) -> list[Undoing]:
    """Return the plans for undoing several events in the present tree, without the texts of the files.

    Args:
        brain: The brain.
        commits: Events of this device, newest first.
    """
    plans: list[Undoing] = []
    reversed_before: set[str] = set()  # paths
    for event in commits:
        undoing = _plan_reversal(brain, event, is_alone=len(commits) == 1)
        # a file that a later event of them changed too is no obstacle: that event is undone first
        undoing.obstacles = [each for each in undoing.obstacles if each.path not in reversed_before]
        undoing.changes = [replace(change, before=None, after=None) for change in undoing.changes]
        reversed_before |= {change.path for change in event.changes}
        plans.append(undoing)
    return plans


def undo(brain: Brain, event: Event) -> Undone:
    """Undo an event in one commit; see `undo_all`."""
    return undo_all(brain, [event])[0]


def _undo(brain: Brain, event: Event, *, is_alone: bool, is_named: bool) -> Undone | None:
    """Commit the reversal of an event; None where it is not alone and nothing is left to do."""
    with brain.short_term_lock():
        undoing = plan(brain, event) if is_alone else _plan_reversal(brain, event, is_alone=False)
        if undoing.obstacles:
            raise UserError(*map(str, undoing.obstacles))
        if not undoing.changes:
            return None
        what = events.EventUndone(undone=event.id, kind_=event.kind, is_named=is_named)
        return Undone(brain.commit(what, by="cli", changes=undoing.changes, cause=event.id), undoing)


def plan(brain: Brain, event: Event) -> Undoing:
    """Return the plan for undoing an event in the present tree.

    Raises:
        UserError: It changed nothing, or is taken back already.
    """
    if isinstance(event.what, events.TreeAdopted):
        raise UserError(f"{event.id} ({event.kind}) is where this device's history begins; there is nothing before it")
    if by := undone_events(brain).get(event.id):
        raise UserError(f"{event.id} ({event.kind}) is taken back already; `brainiac undo {by}` brings it back")
    undoing = _plan_reversal(brain, event)
    if not isinstance(event.what, events.ExchangeEvent):  # with which all goes that rests on it
        undoing.later = consequences(brain, event)
    if not undoing.changes and not undoing.obstacles:
        raise UserError(f"{event.id} ({event.kind}) changed no file that could be taken back", *undoing.stays)
    return undoing


def _plan_reversal(brain: Brain, event: Event, *, is_alone: bool = True) -> Undoing:
    """Return the plan for undoing an event; with an exchange goes what rests on it, as where it is forgotten.

    Args:
        brain: The brain.
        event: The event.
        is_alone: Whether no other event is undone with it.
    """
    is_of_exchange = not is_alone and isinstance(event.what, events.OutcomeEvent)
    undoing = Undoing(event, is_catch_up=catch_up_of(brain, event) is not None, is_of_exchange=is_of_exchange)
    if isinstance(event.what, events.MemoryPromoted | events.ExchangesFiled):
        # the words of one that was taken back by itself would be in short-term memory again
        for exchange in undone_events(brain).keys() & set(event.what.exchanges):
            what = f"its exchange {exchange} was taken back by itself since"
            way = f"bring that back first (`brainiac undo {undone_events(brain)[exchange]}`)"
            undoing.obstacles.append(Obstacle(brain.tree.relative(brain.tree.short_term), what, way))
        if undoing.obstacles:
            return undoing
    for change in event.changes:
        try:
            reversal = _reversal_of(brain, undoing, change)
        except BlobError:
            what = "its earlier text is not kept any more (purged, or missing)"
            undoing.obstacles.append(Obstacle(change.path, what, "nothing can bring it back"))
        else:
            undoing.changes += [reversal] if reversal else []
    if isinstance(event.what, events.ProposalDecided) and event.what.how == "declined":  # it is asked again
        name = event.what.proposal
        records = [asked.record] if (asked := asked_before(brain).get(name)) else []

        def asked_again(text: str) -> str:  # a box that was ticked for several names it no longer
            return with_proposals(without_proposals(text, {name}).replace(f" {name}", ""), records)

        undoing.changes += review_change(brain.tree, asked_again)
    if isinstance(event.what, events.ExchangeEvent):
        forgetting = plan_forget(brain, Target((event.id,)), keeps_prompts=True)
        own = {change.path for change in event.changes}
        undoing.changes += [change for change in forgetting.changes() if change.path not in own]
        undoing.stays += forgetting.kept
    return undoing


def _reversal_of(brain: Brain, undoing: Undoing, change: events.RecordedChange) -> Change | None:
    """Return what reverses one change in the present tree; None where nothing does, as the plan then says.

    Raises:
        BlobError: Its earlier text is not kept any more.
    """
    path, now = change.path, brain.read(change.path)
    if change.op == "append":
        undoing.stays.append(f"{path}: the lines that were added to this log stay")
    if change.op in ("append", "observe"):  # of what it observed the event wrote nothing
        return None
    before = None if change.before is None else brain.committer.text_of(change.before)
    if change.op == "remove":
        # where somebody has put back the very same text already, nothing is left to do
        if now is None and before is not None:
            return create(path, before)
        if now != before:
            todo = "move it away, or keep it and leave the event as it is"
            undoing.obstacles.append(Obstacle(path, "stands there anew", todo))
    elif now is None and before is None and isinstance(undoing.event.what, events.ExchangeEvent):
        return None  # its answer is gone, or beside the prompt that moved
    elif now is None:
        undoing.obstacles.append(_obstacle(brain, undoing.event, path, "is gone"))
    elif events.content_hash(now) != change.after:
        return _partly_reversed(brain, undoing, change, before, now)
    elif before is None:
        return remove(path, now)
    elif change.source is None:
        return update(path, now, before)
    elif brain.read(change.source) is None:
        return move(path, change.source, now, before)
    else:
        what = f"came from {change.source}, where another file stands now"
        undoing.obstacles.append(Obstacle(path, what, "move that one away"))
    return None


def _partly_reversed(
    brain: Brain, undoing: Undoing, change: events.RecordedChange, before: bytes | None, now: bytes
) -> Change | None:
    """Return what reverses a change in a file that was changed since, if the later changes can stay; else None.

    It is a merge: the text after the event is the base, the present text one side, the text before it the other.
    """
    path, kind = change.path, brain.tree.kind_of(change.path)
    in_the_way = list[str]()
    # what is derived, or was written long ago, stands in nobody's way: what was changed since stays
    is_lenient = kind in (PathKind.REVIEW, PathKind.TODAY, PathKind.INDEX_PAGE)
    is_lenient |= kind is PathKind.MEMORY and undoing.is_catch_up
    if change.source is not None or (before is None and kind is not PathKind.REVIEW):
        if is_lenient:
            undoing.stays.append(f"{path}: stays as it is by now")
        else:
            undoing.obstacles.append(_obstacle(brain, undoing.event, path, "was changed since"))
        return None
    before, after = before or b"", brain.committer.text_of(str(change.after))
    merged = merge(kind, after, now, before, prefer="ours", keeps_other=False)
    lines = [*(difference.kept for difference in merged.differences), *merged.outlived]
    if lines and is_lenient:
        undoing.stays.append(f"{path}: lines that were changed since stay as they are")
    elif lines:
        in_the_way.append(f"{', '.join(map(_name_of, lines[:_MAX_LINES]))} was edited since")
    if kind is PathKind.SHORT_TERM and not undoing.is_of_exchange:
        was, added, standing = (
            {placed.event.id: placed.event.at for placed in find_events(text.decode("utf-8", "surrogateescape"), 0)}
            for text in (before, after, now)
        )
        gone = added.keys() - was.keys() - standing.keys()  # it went elsewhere
        in_the_way += (f"its exchange of {added[exchange]} is not there any more" for exchange in gone)
    undoing.obstacles += (_obstacle(brain, undoing.event, path, what) for what in in_the_way)
    if not merged.text.strip():
        return remove(path, now)
    return update(path, now, merged.text) if merged.text != now else None


def _obstacle(brain: Brain, event: Event, path: str, what: str) -> Obstacle:
    """Return a file that was changed since an event as an obstacle, with who changed it last."""
    undone, later = undone_events(brain), brain.journal.events(since_seq=event.seq)
    # what is taken back itself is passed over
    standing = (one for one in later if one.id not in undone and not isinstance(one.what, events.EventUndone))
    changing = (one for one in standing if any(path in (c.path, c.source) and c.op != "append" for c in one.changes))
    last = max(changing, key=lambda one: one.seq, default=None)
    if last is None:
        return Obstacle(path, what, "mend it by hand")
    by = f" by {last.by} ({last.kind}, {last.at}, event {last.id})" if what.endswith("since") else ""
    return Obstacle(path, what + by, f"take that back first (`brainiac undo {last.id}`), or mend it by hand")


def _name_of(lines: str) -> str:
    """Return the name for a person of lines that were edited."""
    exchange = next(find_events(lines, 0), None)
    return f"its exchange of {exchange.event.at}" if exchange else f"“{one_line(lines)[:_MAX_SHOWN]}”"


# --- one statement: `brainiac correct`, and `undo` of its last change ------------------------------------------------

MIN_COVERAGE = 0.5  # the least share of a person's words that a statement must have
MAX_TARGETS = 5
MAX_SAID = 20  # exchanges that are looked through for a sentence
MAX_NEAR = 50  # statements whose pages are looked through


@dataclass(frozen=True, slots=True)
class SaidMatch:
    """A sentence that the person said and that is no statement yet.

    Attributes:
        text: The sentence.
        exchanges: The exchanges in which it was said, ids.
        is_private: Whether one of them must not leave this machine.
        at: When it was first said, ISO 8601.
    """

    text: str
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
        words: The statement's `path#^block` or a receipt's id, all words of a statement or sentence, or some of them.

    Returns:
        Those that are named by id or by all their words; where there are none, up to `MAX_TARGETS` that have at least
        half of the words. A sentence only where it has more of them than any statement: what it became is corrected.
    """
    meant = meant_by(brain, words)
    exchanges = Exchanges(brain)
    exchange = exchanges.find(meant) if meant != words or exchanges.event(meant) else None
    if exchange and exchanges.shown(exchange, None):
        return list(_said_sentences(brain, words, exchange))
    if "#^" in meant and (match := find_statement(brain, meant)):
        return [] if match.statement.is_history else [match]
    named: list[StatementMatch | SaidMatch] = []
    similar: list[tuple[float, StatementMatch | SaidMatch]] = []
    hits = brain.recall.search(words, limit=MAX_NEAR, kinds={"statement", "memory"}, is_private=True)
    for page in brain.pages({hit.path for hit in hits}).memories.values():
        for statement in page.statements:
            if statement.is_history:
                continue
            target = StatementMatch(page, statement)
            if folded(statement.text) == folded(words):
                named.append(target)
            elif (share := coverage(words, statement.text)) >= MIN_COVERAGE:
                similar.append((share, target))
    if not named:
        check_gone(brain, words)
        best = max((share for share, _ in similar), default=0.0)
        said = _said_sentences(brain, words)
        named += (target for target in said if folded(target.text) == folded(words))
        similar += ((share, target) for target in said if (share := coverage(words, target.text)) > best)
    similar.sort(key=lambda scored: -scored[0])
    return named or [target for _, target in similar[:MAX_TARGETS]]


def _said_sentences(brain: Brain, words: str, exchange: str = "") -> list[SaidMatch]:
    """Return the sentences of the person in short-term memory and on the pages of days with at least half of the words.

    Each stands once, however often it was said; what was put right already is left out. Of an exchange that is named
    all of its sentences are meant.
    """
    matches, exchanges = dict[str, SaidMatch](), Exchanges(brain)
    if exchange:
        whole = exchanges.said(exchange)
        said = [Hit("exchange", whole.prompt, "", whole.user, 0.0, anchor=exchange, at=whole.at, speaker="user")]
    else:
        hits = brain.recall.search(words, limit=MAX_SAID, kinds={"exchange"}, is_private=True)
        said = [hit for hit in hits if hit.speaker == "user" and hit.anchor]
        path = brain.tree.relative(brain.tree.short_term)
        for event in brain.short_term().memory.events:  # read, since a search leaves out what stands behind a command
            said.append(Hit("exchange", path, "", event.user, 0.0, anchor=event.id, at=event.at, speaker="user"))
    for hit in sorted(with_former(brain, said, Audience.NOBODY), key=lambda hit: hit.at):
        commands, rest = parse_commands(hit.text)
        for text in (piece for part in (rest, *(command.argument for command in commands)) for piece in pieces(part)):
            key = folded(text)
            is_former = any(folded(former.words) in key or key in folded(former.words) for former in hit.former)
            if is_former or (not exchange and coverage(words, text) < MIN_COVERAGE):
                continue
            known = matches.get(key) or SaidMatch(text, (), is_private=False, at=hit.at)
            named = tuple(dict.fromkeys((*known.exchanges, hit.anchor)))
            is_open = exchanges.shown(hit.anchor, Gate(brain)) is not None  # it may leave this machine
            matches[key] = replace(known, exchanges=named, is_private=known.is_private or not is_open)
    return list(matches.values())


def correct(brain: Brain, target: StatementMatch | SaidMatch, text: str, *, was_so: bool = True) -> Event:
    """Replace a statement by a new wording; the former one goes to History.

    A sentence that was only said becomes a statement with it, on the page of notes of its month; the exchange stays as
    it was typed.

    Args:
        brain: The brain.
        target: The statement or sentence, from `possible_targets`.
        text: The new wording.
        was_so: Whether the former one held until now; else History names no day since when it did.

    Raises:
        UserError: The text is empty or the same, or the statement was changed meanwhile.
        ConflictError: Somebody keeps writing the page.
    """
    line = one_line(text)
    if not line:
        raise UserError("there is no new wording; `brainiac forget` takes a statement out")
    if line == one_line(target.text):
        raise UserError(f"“{line}” stands there in these very words")
    put_right: Callable[..., Event] = _state if isinstance(target, SaidMatch) else _replace
    event = brain.retry(partial(put_right, brain, target, line, was_so))
    write_digest(brain)
    return event


def _with_former(
    page: MemoryDocument, block: str, former: str, day: str, since: str
) -> tuple[MemoryDocument, StatementRef]:
    """Return a page with the former wording of a statement under History, and the reference to it.

    Args:
        page: The page with the new wording.
        block: The statement's block id; the former wording gets one of its own.
        former: Its former wording.
        day: Until when that held.
        since: From when; "" if unknown.
    """
    history = page.block_id_for(former)
    page = page.add_statement(former, history).retire(history, day, block, since)
    return page, StatementRef(block=block, hash=text_hash(former), history=history)


def _replace(brain: Brain, target: StatementMatch, line: str, was_so: bool) -> Event:
    """Commit the new wording of a statement, on its page as it is now; return the event."""
    path, now = target.memory.path, iso(brain.clock.now())
    before, day = brain.read_page(path) or "", brain.day_of(now)
    page = with_block_ids(MemoryDocument(before, path).with_missing_keys(new_id(), now))
    uuid, block = page.memory.uuid, target.statement.block_id
    current = (each for each in page.memory.statements if not each.is_history and each.text == target.text)
    old = next((each for each in current if block in ("", each.block_id)), None)
    if old is None:
        raise UserError(f"“{target.text}” on {path} was changed meanwhile; look again")
    since = StatementLog(brain).since_of(uuid, old) if was_so else ""
    page, replaced = _with_former(page.replace_statement(old.block_id, line), old.block_id, old.text, day, since)
    record = partial(events.StatementRecord, operation="UPDATE", path=path, page=uuid, block=old.block_id)
    row = record(hash=text_hash(line), since=day, origin=PERSON, replaced=replaced)
    changes = [update(path, before, str(page)), *without_fact(brain, old.text)]
    return brain.commit(events.StatementCorrected(statements=(row,)), by="person", changes=changes)


def _state(brain: Brain, target: SaidMatch, line: str, was_so: bool) -> Event:
    """Commit the new wording of a sentence that was said as a statement, the former one under History.

    A task or goal only gets the new wording where it stands in short-term memory.
    """
    now, old, edits = iso(brain.clock.now()), one_line(target.text), Edits(brain)
    if _put_items_right(brain, edits, old, line):
        return brain.commit(events.StatementCorrected(statements=()), by="person", changes=edits.changes())
    day, since = brain.day_of(now), brain.day_of(target.at)
    pages, folder, title = brain.pages(), f"{brain.tree.relative(brain.tree.long_term)}/concrete/{NOTES}", since[:7]
    notes = (page for page in pages.memories.values() if page.path.startswith(f"{folder}/") and page.title == title)
    audience = Audience.HERE if target.is_private else Audience.ANYONE
    known = next((page.path for page in notes if page.audience is audience), None)
    path = known or pages.free_path(folder, title)
    private = {"private": True} if target.is_private else {}
    new_page = f"{render_meta({**first_keys(new_id(), now, [NOTES]), **private})}\n# {title}\n"
    page = with_block_ids(MemoryDocument(edits.read(path) or new_page, path).with_missing_keys(new_id(), now))
    uuid, block = page.memory.uuid, page.block_id_for(line)
    # of imported words no prompt of this brain says whose they are
    texts = map(Exchanges(brain).texts_of, target.exchanges)
    authors = [each.prompt.author if each else Author("import") for each in texts]
    author = max(authors, key=lambda author: ORIGINS.index(author.origin))
    former = old + author.mark()
    page, replaced = _with_former(page.add_statement(line, block), block, former, day, since if was_so else "")
    evidence = tuple(events.EvidenceRecord(exchange=exchange, quote=target.text) for exchange in target.exchanges)
    record = partial(events.StatementRecord, path=path, page=uuid, block=block)
    words = record(operation="NEW", hash=text_hash(former), since=since, sources=target.exchanges)
    said = replace(words, evidence=evidence, origin=author.origin, author=author.by)
    corrected = record(operation="UPDATE", hash=text_hash(line), since=day, origin=PERSON, replaced=replaced)
    edits.write(path, str(page))
    return brain.commit(events.StatementCorrected(statements=(said, corrected)), by="person", changes=edits.changes())


def _put_items_right(brain: Brain, edits: Edits, old: str, line: str) -> bool:
    """Plan short-term memory where a goal, fact or task has the old words; return whether it is a goal or task.

    Goals and tasks get the new wording; a fact goes, since it stands as a statement now.
    """
    path = brain.tree.relative(brain.tree.short_term)
    text = edits.read(path)
    document = document_of(EMPTY if text is None else text)
    lists = (document.memory.goals, document.memory.facts, document.memory.tasks)
    goals, facts, tasks = (
        [item.text for item in items if folded(item.text) == folded(old) and not item.is_done] for items in lists
    )
    if goals or facts or tasks:
        document = document.without_items(goals, facts, tasks)
        edits.write(path, str(document.with_items([line] * bool(goals), (), [line] * bool(tasks))))
    return bool(goals or tasks)


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


def take_back(brain: Brain, named: str, *, was_so: bool = True) -> TakenBack:
    """Reverse the last change of one statement, whoever made it.

    A statement that replaced another, or a former wording of its own, is replaced by that; one that did not goes to
    History. A statement under History holds again.

    Args:
        brain: The brain.
        named: The statement, `path#^block`, as `brainiac digest` names it.
        was_so: As for `correct`.

    Raises:
        UserError: There is no such statement, or it is a step of a how-to.
        ConflictError: Somebody keeps writing the page.
    """
    result = brain.retry(lambda: _take_back(brain, named, was_so))
    write_digest(brain)
    return result


def _take_back(brain: Brain, named: str, was_so: bool) -> TakenBack:
    """Commit the reversal of a statement's last change, on its page as it is now."""
    memory, statement = _named_statement(brain, named)
    # what holds now, None where nothing replaced one under History; and what held before it, None where it was new
    present: Statement | None = statement
    former: Statement | None = statement
    if statement.is_history:
        current = (other for other in memory.current_statements if other.block_id == statement.replaced_by)
        present = next(current, None) if statement.replaced_by else None
    else:
        ended = (other for other in memory.statements if other.is_history and other.replaced_by == statement.block_id)
        former = max(ended, key=lambda other: other.until, default=None)
    block, day = (present or statement).block_id, brain.day_of(iso(brain.clock.now()))
    since = StatementLog(brain).since_of(memory.uuid, present) if present and was_so else ""
    page, replaced = MemoryDocument(memory.text, memory.path), None
    if present is None:
        operation = "NEW"
        page = page.without_statement(block).add_statement(statement.text, block)
    elif former is None:
        operation, replaced = "DELETE", StatementRef(block=block, hash=text_hash(present.text), history=block)
        page = page.retire(block, day, since=since)
    else:  # the two change places
        operation = "UPDATE"
        page = page.without_statement(former.block_id).replace_statement(block, former.text)
        page, replaced = _with_former(page, block, present.text, day, since)
    row = events.StatementRecord(
        operation=operation,
        path=memory.path,
        page=memory.uuid,
        block=block if former else "",
        hash=text_hash(former.text) if former else "",
        since=(former and former.since) or day,
        origin=PERSON,
        replaced=replaced,
    )
    changes = [update(memory.path, memory.text, str(page))]
    event = brain.commit(events.StatementCorrected(statements=(row,)), by="person", changes=changes)
    return TakenBack(event, memory.path, present.text if present else "", former.text if former else "")


def _named_statement(brain: Brain, named: str) -> tuple[Memory, Statement]:
    """Return the statement of a page's path, or the end of it, and a block id; also one under History.

    Raises:
        UserError: There is none or more than one, or it is a step of a how-to.
    """
    path, _, block = named.strip().rpartition("#^")
    pages = [
        page for page in brain.pages().memories.values() if page.uuid == path or f"/{page.path}".endswith(f"/{path}")
    ]
    places = [(page, statement) for page in pages for statement in page.statements if statement.block_id == block]
    if len(places) != 1:
        where = "stands nowhere" if not places else "stands on " + " and ".join(page.path for page, _ in places)
        raise UserError(f"the statement {named} {where}; `brainiac digest` names what was done lately")
    if places[0][1].section == STEPS:
        raise UserError(
            f"{named} is a step of a how-to, which changes as a whole: take back the event, or edit the page"
        )
    return places[0]
