"""Operations carried out on the pages in work; what each did becomes records of the run's event (docs/format.md).

By construction nothing is lost: whatever an operation says, the old wording goes to History with its dates.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.events import EvidenceRecord, StatementRecord, StatementRef, new_id
from brainiac.formats.discretion import is_private
from brainiac.formats.markdown import one_line
from brainiac.formats.page import STEPS, MemoryDocument, Statement, whole_memory, with_day
from brainiac.formats.short_term import StmEvent
from brainiac.llm.schemas import Operation, Page
from brainiac.storage.relinking import placed
from brainiac.storage.statements import sources_of, text_hash

from .draft import Draft, Known, Working, folded, free_day_page

HIGH, LOW = 0.75, 0.4
_VERBS = {"new": "NEW", "replace": "UPDATE", "end": "DELETE", "forget": "DELETE", "same": "REINFORCE"}
_IMPORTANCE = ("", "low", "medium", "high")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something worth remembering, with what becomes of it.

    Attributes:
        id: What the journal knows it by.
        operation: What is to be done; links in its texts have their paths from the root.
        events: What it rests on, oldest first.
        model: Who decided it.
        origin: Whose words it rests on, one of `ORIGINS`.
    """

    id: str
    operation: Operation
    events: tuple[StmEvent, ...]
    model: str
    origin: str = "person"

    @property
    def words(self) -> str:
        """What it states, for a person."""
        return self.operation.text or self.operation.reasoning or self.operation.subject

    @property
    def at(self) -> str:
        """When it was last said, ISO 8601."""
        return max(event.at for event in self.events)

    @property
    def is_private(self) -> bool:
        """It rests on what must not leave this machine."""
        return any(event.is_private for event in self.events)


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate's operation on a page; it can be carried out again on pages read anew.

    Attributes:
        path: Of the page.
        targets: The statements it is about; none for a new one.
        proposal: What is put before a person, since the target is theirs; "" otherwise.
    """

    candidate: Candidate
    path: str
    targets: tuple[Known, ...] = ()
    proposal: str = ""

    @property
    def operation(self) -> Operation:
        """What is to be done."""
        return self.candidate.operation

    @property
    def paths(self) -> set[str]:
        """The pages that it changes."""
        return {self.path, *(target.path for target in self.targets), *self.operation.page.merge}

    @property
    def retires(self) -> bool:
        """A statement of ours leaves the page's body, and nothing like it takes its place."""
        return self.operation.action in ("end", "forget") and not self.proposal


def importance_word(value: float | None) -> str:
    """Return how importance is kept: low below 0.4, high from 0.75 on (seeds I1); "" where nobody judged it."""
    if value is None:
        return ""
    return "high" if value >= HIGH else "low" if value < LOW else "medium"


def carry_out(draft: Draft, step: Step) -> list[StatementRecord]:
    """Carry a step out on the pages in work and return its records, the first for what it states.

    Raises:
        FormatError: It does not fit what stands there any more.
    """
    operation = step.operation
    if operation.page.is_whole and operation.action == "new":
        return [_begin_whole(draft, step)]
    step = _with_links(draft, step)
    working = draft.opened(step.path)
    _check(draft, working, step)
    _note(working, step)
    if operation.page.path == step.path:
        _rename(draft, working, operation.page.title)
    record = _record(draft, step, working)
    match operation.action:
        case "same":
            record = _again(draft, working, _standing(working, step.targets[0]), record)
        case "new" if operation.steps:
            record = _set_steps(draft, working, step, record)
        case "new":
            record = _state(draft, working, step, record)
        case "replace":
            record = _replace(draft, working, step, record)
        case "end" | "forget":
            record = _end(draft, working, step, record)
    further = [] if operation.action == "same" else step.targets[1:]
    records = [record, *(_retire_too(draft, step, target, record) for target in further)]
    return [*records, *_merge(draft, working, step, record)]


def _with_links(draft: Draft, step: Step) -> Step:
    """Return a step whose links lead from its page."""

    def moved(text: str) -> str:
        return placed(draft.brain, text, step.path)

    operation = step.operation
    texts = {"text": moved(operation.text), "steps": list(map(moved, operation.steps))}
    return replace(step, candidate=replace(step.candidate, operation=operation.model_copy(update=texts)))


def _check(draft: Draft, working: Working, step: Step) -> None:
    """Refuse what is about a statement that is gone, and what is private on a page that is not."""
    # All is looked at before anything is changed: a step is carried out whole or not at all.
    for target in step.targets:
        standing = _standing(draft.opened(target.path), target)
        if standing.text != target.statement.text and step.operation.action != "same":
            raise FormatError(target.path, "the statement it is about was changed meanwhile")
    if step.operation.text and step.candidate.is_private and not is_private(working.document.memory.meta):
        raise FormatError(step.path, "what is private cannot stand there: the page is not private any more")


def _standing(working: Working, target: Known) -> Statement:
    """Return a target as it stands by now."""
    old = target.statement
    for statement in working.current:
        if statement.block_id == old.block_id and (old.block_id or statement.text == old.text):
            return statement
    raise FormatError(target.path, "the statement it is about was changed meanwhile")


def _note(working: Working, step: Step) -> None:
    """Have the page's front matter tell what the step brought."""
    operation, candidate = step.operation, step.candidate
    working.sources.update(dict.fromkeys(event.id for event in candidate.events))
    if candidate.is_private and not is_private(working.document.memory.meta):
        return  # a request to forget: the page is not to tell what it was about
    working.tags.update(dict.fromkeys(operation.tags))
    if operation.page.path in ("", step.path):
        title = working.document.memory.title.casefold()
        names = (one_line(name) for name in operation.page.aliases)
        working.aliases.update(dict.fromkeys(name for name in names if name and name.casefold() != title))
    working.importance = max(working.importance, importance_word(operation.importance), key=_IMPORTANCE.index)


def _record(draft: Draft, step: Step, working: Working) -> StatementRecord:
    """Return what the journal keeps of a step besides what it did to the page."""
    operation, candidate, memory = step.operation, step.candidate, working.document.memory
    parts = operation.relevance.model_dump()
    evidence = [EvidenceRecord(exchange=quoted.exchange, quote=quoted.quote) for quoted in operation.evidence]
    return StatementRecord(
        candidate=candidate.id,
        operation=_VERBS[operation.action],
        path=memory.path,
        page=memory.uuid or memory.path,
        since=draft.brain.day_of(candidate.at),
        sources=tuple(event.id for event in candidate.events),
        evidence=() if operation.marked_by else tuple(evidence),
        origin=candidate.origin,
        valid_from=operation.valid_from,
        valid_until=operation.valid_until,
        importance=importance_word(operation.importance),
        relevance=operation.relevance.score,
        band="" if operation.marked_by else operation.relevance.band,
        relevance_parts={} if operation.marked_by else parts,
        reasoning=operation.reasoning,
        model=candidate.model,
        found_by=candidate.model,
        marked_by=operation.marked_by,
    )


def _ours(draft: Draft, record: StatementRecord, block: str, text: str) -> StatementRecord:
    """Return a record of a text that stands from now on, and is ours."""
    draft.log.note_stated(record.page, block, text, record.since)
    return replace(record, block=block, hash=text_hash(text))


def _again(draft: Draft, working: Working, statement: Statement, record: StatementRecord) -> StatementRecord:
    """Count a statement that was said again; it keeps its date."""
    working.reinforced += 1
    since = draft.log.since_of(record.page, statement) or record.since
    hash_ = text_hash(statement.text)
    return replace(record, operation="REINFORCE", block=statement.block_id, hash=hash_, since=since)


def _state(draft: Draft, working: Working, step: Step, record: StatementRecord) -> StatementRecord:
    """State what is new; where it stands on the page in the same words, it was said again."""
    text = one_line(step.operation.text)
    for statement in working.current:
        if folded(statement.text) == folded(text):
            return _again(draft, working, statement, record)
    # Nobody judged marked words, so that the day they were said belongs to them; a model states dates itself.
    line = _dated(draft, step) if step.operation.marked_by else text
    block = working.document.block_id_for(line)
    working.document = working.document.add_statement(line, block)
    return _ours(draft, record, block, text)


def _dated(draft: Draft, step: Step) -> str:
    """Return a person's own words with their day behind them, which links to the page of that day."""
    at = step.candidate.events[0].at
    path, _ = free_day_page(draft, at, is_private=step.candidate.is_private)
    known = draft.pages.memories.get(path)
    link = posixpath.relpath(path, posixpath.dirname(step.path))
    return with_day(step.operation.text, draft.brain.day_of(at), link, known.uuid if known else "")


def _replace(draft: Draft, working: Working, step: Step, record: StatementRecord) -> StatementRecord:
    """Put new words in place of a statement; its old wording goes to History, whatever it says."""
    old = _standing(working, step.targets[0])
    working.document = working.document.replace_statement(old.block_id, step.operation.text)
    history = _keep_past(draft, working, old, record)
    replaced = StatementRef(block=old.block_id, hash=text_hash(old.text), history=history)
    return replace(_ours(draft, record, old.block_id, one_line(step.operation.text)), replaced=replaced)


def _keep_past(draft: Draft, working: Working, old: Statement, record: StatementRecord) -> str:
    """Put a former wording under History beside what holds now; return its block id."""
    document = working.document
    block = document.block_id_for(old.text)
    document = document.add_statement(old.text, block)
    since = draft.log.since_of(record.page, old)
    working.document = document.retire(block, record.since, old.block_id, since)
    return block


def _end(draft: Draft, working: Working, step: Step, record: StatementRecord) -> StatementRecord:
    """Retire a statement, and state what holds now if anything does; a person's own is put before them."""
    verb = record.operation
    if step.operation.text:
        record = replace(_state(draft, working, step, record), operation=verb)
    old = _standing(working, step.targets[0])
    if step.proposal:
        return replace(record, proposed=StatementRef(block=old.block_id, hash=text_hash(old.text)))
    return replace(record, replaced=_retire(draft, working, old, step, record.page, record.block))


def _retire(draft: Draft, working: Working, old: Statement, step: Step, page: str, replaced_by: str) -> StatementRef:
    """Move a statement to History with its dates."""
    until = step.operation.valid_until
    until = until if _ISO_DAY.fullmatch(until) else draft.brain.day_of(step.candidate.at)
    working.document = working.document.retire(old.block_id, until, replaced_by, draft.log.since_of(page, old))
    return StatementRef(block=old.block_id, hash=text_hash(old.text), history=old.block_id)


def _retire_too(draft: Draft, step: Step, target: Known, first: StatementRecord) -> StatementRecord:
    """Retire a further statement that says the same as the first one; it may stand on another page."""
    working = draft.opened(target.path)
    replaced_by = first.block if target.page == first.page else ""
    replaced = _retire(draft, working, _standing(working, target), step, target.page, replaced_by)
    working.sources.update(dict.fromkeys(first.sources))
    return replace(_record(draft, step, working), operation="DELETE", replaced=replaced)


def _merge(draft: Draft, working: Working, step: Step, record: StatementRecord) -> Iterator[StatementRecord]:
    """Move what stands on pages about the same person or thing to this one; a person's own lines stay."""
    for path in step.operation.page.merge:
        other = draft.page(path)
        if other is None or other is working or is_private(other.document.memory.meta) != step.candidate.is_private:
            continue
        memory = other.document.memory
        working.aliases.update(dict.fromkeys([memory.title, *memory.aliases]))
        for known in draft.statements_of(memory):
            if not known.is_ours or known.statement.section == STEPS:
                continue
            # it rests on what it rested on, and was said when it was said
            sources = tuple(sorted(sources_of(draft.log.behind(known.page, known.statement))))
            moved = replace(record, operation="NEW", sources=sources, since=known.since, evidence=(), replaced=None)
            text = placed(draft.brain, known.text, step.path)
            block = working.document.block_id_for(text)
            working.document = working.document.add_statement(text, block)
            yield _ours(draft, moved, block, one_line(text))
            replaced = _retire(draft, other, known.statement, step, known.page, "")
            yield replace(_record(draft, step, other), operation="DELETE", replaced=replaced, evidence=())


# --- whole pages -----------------------------------------------------------------------------------------


def _begin_whole(draft: Draft, step: Step) -> StatementRecord:
    """Begin a page whose body is the person's note, byte for byte."""
    if draft.page(step.path) is not None:
        raise FormatError(step.path, "another page was made there meanwhile")
    page, operation = draft.begun[step.path], step.operation
    meta = {"title": page.title, **page.meta}
    now = iso(draft.brain.clock.now())
    text = whole_memory(operation.text, uuid=new_id(), now=now, tags=operation.tags, **meta)
    working = draft.add(step.path, text)
    working.sources.update(dict.fromkeys(event.id for event in step.candidate.events))
    return replace(_record(draft, step, working), hash=text_hash(operation.text), is_whole=True)


def _set_steps(draft: Draft, working: Working, step: Step, record: StatementRecord) -> StatementRecord:
    """Write a how-to's steps in order; steps that are told otherwise now go to History."""
    wanted, standing = step.operation.steps, _steps_of(working)
    if [_plain(old.text) for old in standing] == [_plain(text) for text in wanted]:
        working.reinforced += 1
        return replace(record, operation="REINFORCE")
    kept = {_plain(text) for text in wanted}
    for old, new in zip(standing, wanted, strict=False):
        if _plain(old.text) != _plain(new):
            working.document = working.document.replace_statement(old.block_id, new)
            if _plain(old.text) not in kept:
                _keep_past(draft, working, old, record)
    for text in wanted[len(standing) :]:
        working.document = working.document.add_step(text)
    for old in standing[len(wanted) :]:
        since = draft.log.since_of(record.page, old)
        working.document = working.document.retire(old.block_id, record.since, since=since)
    steps = [_ours(draft, record, new.block_id, new.text) for new in _steps_of(working)]
    refs = tuple(StatementRef(block=row.block, hash=row.hash, since=row.since) for row in steps)
    return replace(record, operation="UPDATE" if standing else record.operation, steps=refs)


def _steps_of(working: Working) -> list[Statement]:
    return [statement for statement in working.current if statement.section == STEPS]


def _plain(text: str) -> str:
    return folded(text).rstrip(".")


# --- what synthesis made of a page -------------------------------------------------------------------------


def name_and_order(draft: Draft, path: str, named: Page, blocks: Sequence[str]) -> None:
    """Have a page bear what synthesis made of it: tags, emotion and summary, its title, the order of its statements.

    Args:
        draft: The pages in work.
        path: Of the page; one on which no step was carried out is left alone.
        named: What synthesis gave.
        blocks: Block ids of its statements, in the order they are to stand.
    """
    working = draft.working.get(path)
    if working is None:
        return
    working.named = named
    working.tags.update(dict.fromkeys(named.tags))
    _rename(draft, working, named.title)
    _reorder(draft, working, blocks)


def _rename(draft: Draft, working: Working, title: str) -> None:
    """Call a page otherwise where all of its statements are ours; the former title stays as an alias."""
    memory, title = working.document.memory, one_line(title)
    heading = f"\n# {memory.title}\n"
    if not title or title == memory.title or memory.meta.get("title") or heading not in memory.text:
        return
    page = memory.uuid or memory.path
    # A page that holds a line of the person's is theirs to name.
    if working.before is not None and not all(draft.log.is_ours(page, statement) for statement in working.current):
        return
    working.document = MemoryDocument(memory.text.replace(heading, f"\n# {title}\n", 1), memory.path)
    working.aliases.pop(title, None)
    working.aliases[memory.title] = None


def _reorder(draft: Draft, working: Working, blocks: Sequence[str]) -> None:
    """Put statements of ours into another order among themselves; all else stays in its place."""
    memory = working.document.memory
    page = memory.uuid or memory.path
    ours = {
        statement.block_id: statement
        for statement in working.current
        if statement.section != STEPS and draft.log.is_ours(page, statement) and statement.block_id in blocks
    }
    wanted = [ours[block] for block in dict.fromkeys(blocks) if block in ours]
    text = memory.text
    # From the last place to the first, so that the offsets of those above stay true.
    for place, statement in reversed(list(zip(ours.values(), wanted, strict=True))):
        item = memory.text[statement.start : statement.end].rstrip("\n") + "\n"
        text = text[: place.start] + item + text[place.end :]
    working.document = MemoryDocument(text, memory.path)
