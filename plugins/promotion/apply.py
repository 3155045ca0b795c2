"""Operations carried out on the draft; each yields statement records for the run's event (docs/format.md).

No operation deletes words: the old wording goes to History with its dates.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.events import EvidenceRecord, StatementRecord, StatementRef, new_id
from brainiac.formats.authors import plain_name
from brainiac.formats.discretion import is_private
from brainiac.formats.index_page import MANIFEST, RELATED
from brainiac.formats.markdown import one_line
from brainiac.formats.page import HISTORY, STEPS, MemoryDocument, Statement, whole_memory, with_day_link
from brainiac.formats.short_term import StmEvent
from brainiac.history.why import folded
from brainiac.llm.schemas import Operation, Page, PageRef, Section
from brainiac.storage.links import with_links_from
from brainiac.storage.statements import sources_of, text_hash
from brainiac.text.tokens import numbers

from .draft import CurrentStatement, MemoryDraft, reinforced, wants_headings, with_added

HIGH, LOW = 0.75, 0.4  # importance from 0 to 1
MAX_HEADINGS = 8  # of one page
_VERBS = {"new": "NEW", "replace": "UPDATE", "end": "DELETE", "forget": "DELETE", "same": "REINFORCE"}
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operation that was decided, with the events it rests on; with a path also called a step.

    A step is one on one page; it can be carried out again on pages that were read anew.

    Attributes:
        id: Its id in the journal.
        operation: The operation; links in its texts are paths from the root.
        events: The events it rests on, oldest first.
        model: The model that decided it.
        origin: Whose words it rests on, one of `ORIGINS`.
        author: The name of who said them, where that is not the person.
        verified_by: The model that said, as a second reader, that it follows from them; "" where none was asked.
        path: The page; "" while it has none yet.
        targets: The current statements that are replaced, ended or repeated; none for a new one.
        proposal: What a person is asked instead, because the target is their own; "" where it is not.
        is_taking_out: Whether it only removes its target: a stand-in whose words another step has.
    """

    id: str
    operation: Operation
    events: tuple[StmEvent, ...]
    model: str
    origin: str = "person"
    author: str = ""
    verified_by: str = ""
    path: str = ""
    targets: tuple[CurrentStatement, ...] = ()
    proposal: str = ""
    is_taking_out: bool = False

    @property
    def words(self) -> str:
        """What it states, to be shown to a person."""
        return self.operation.text or self.operation.reasoning or self.operation.subject

    @property
    def at(self) -> str:
        """When the last of its events was said, ISO 8601."""
        return max(event.at for event in self.events)

    @property
    def sources(self) -> tuple[str, ...]:
        """The ids of its events."""
        return tuple(event.id for event in self.events)

    @property
    def is_private(self) -> bool:
        """Whether one of its events must not leave this machine."""
        return any(event.is_private for event in self.events)

    @property
    def paths(self) -> set[str]:
        """The paths of the pages that it changes."""
        return {self.path, *(target.path for target in self.targets), *self.operation.page.merge}

    @property
    def retires(self) -> bool:
        """Whether it moves a statement of ours to History without another wording in its place."""
        return self.operation.action in ("end", "forget") and not self.proposal

    @property
    def is_stating(self) -> bool:
        """Whether it puts a statement on its page, marked words excepted: no model judged those."""
        return self.operation.action in ("new", "replace", "end") and not self.operation.marked_by

    def of(self, **update: Any) -> Candidate:
        """Return it with other values in its operation."""
        return replace(self, operation=self.operation.model_copy(update=update))

    def without_content(self, **update: Any) -> Candidate:
        """Return it without a text, name or tag in its operation."""
        return self.of(text="", page=PageRef(), tags=[], steps=[], importance=None, **update)


def importance_word(value: float | None) -> str:
    """Return importance as a word: low below 0.4, high from 0.75 on; "" where no model judged it."""
    return "" if value is None else "high" if value >= HIGH else "low" if value < LOW else "medium"


def carry_out(draft: MemoryDraft, step: Candidate) -> list[StatementRecord]:
    """Carry a step out on the draft and return its records, the first one for the statement it makes.

    Raises:
        FormatError: A person has changed its target or its page since it was decided.
    """
    operation, path = step.operation, step.path
    if operation.page.is_whole and operation.action == "new":  # a note that is a page of its own
        return [_begin_whole(draft, step)]
    _check(draft, step)
    if step.is_taking_out:  # a statement that was kept without a model; its words are on the page of their day
        statement = _target_now(draft, step.targets[0])
        draft.put(draft.opened(path).without_statement(statement.block_id))
        draft.emptied.add(path)
        replaced = StatementRef(block=statement.block_id, hash=text_hash(statement.text))
        # "reworded": a model's statement has its words
        return [replace(_record(draft, step, path), operation="REWORD", block=statement.block_id, replaced=replaced)]
    # on its page, links are relative to the page
    text, *steps = (with_links_from(draft.brain, text, path) for text in (operation.text, *operation.steps))
    step = step.of(text=text, steps=steps)
    page, operation = draft.opened(path), step.operation
    draft.rest(path, step.sources)
    added, is_high = dict[str, Sequence[str]](), False
    # not of a private request to forget: its tags and names must not get onto an open page
    if not step.is_private or is_private(page.memory.meta):
        names = map(one_line, operation.page.aliases if operation.page.path in ("", path) else ())
        title = page.memory.title.casefold()
        # aliases are names of the page that the model meant; the statement may have gone to another one
        added = {"tags": operation.tags, "aliases": [name for name in names if name and name.casefold() != title]}
        is_high = importance_word(operation.importance) == "high" and not page.memory.meta.get("importance")
    # only "high" is noted: Organization asks before it archives such a page
    page = with_added(page, {"importance": "high"} if is_high else {}, **added)
    if operation.page.path == path:  # else the model has not seen this page: it cannot rename or describe it
        page = _renamed(draft, page, operation.page.title)
        # no summary from other words than the person's, nor one with a number that neither page nor operation has
        summary, current = one_line(operation.page.summary), page.memory.current_statements
        is_unstated = numbers([summary]) - numbers([page.memory.title, text, *steps, *(row.text for row in current)])
        if summary and step.origin == "person" and not is_unstated and _is_ours(draft, page):
            page = page.set_meta(summary=summary)
    draft.put(page)
    record = _record(draft, step, path)
    match operation.action:
        case "same":
            record = _reinforce(draft, path, _target_now(draft, step.targets[0]), record)
        case "new" | "replace" if operation.steps:  # a how-to's words above its steps may stay as they are
            if step.targets and text_hash(operation.text) != text_hash(step.targets[0].text):
                record = _replace(draft, step, record)
            record = _set_steps(draft, step, record)
        case "new":
            record = _add(draft, step, record)
        case "replace":
            record = _replace(draft, step, record)
        case "end" | "forget":  # what holds instead is added, if the operation has a text
            new = _add(draft, step, replace(record, operation=_VERBS["new"])) if operation.text else record
            old = _target_now(draft, step.targets[0])
            if step.proposal:  # the old statement stays: the record only notes it
                record = replace(new, proposed=StatementRef(block=old.block_id, hash=text_hash(old.text)))
            else:
                replaced = _retire(draft, path, old, step, page=record.page, replaced_by=new.block)
                record = replace(new, operation=record.operation, replaced=replaced)
    records = [record]
    # further targets, which say the same as the first; they may be on other pages
    for target in () if operation.action == "same" else step.targets[1:]:
        replaced_by = record.block if target.page == record.page else ""
        old = _target_now(draft, target)
        replaced = _retire(draft, target.path, old, step, page=target.page, replaced_by=replaced_by)
        draft.rest(target.path, record.sources)
        records.append(replace(_record(draft, step, target.path), operation="DELETE", replaced=replaced))
    return [*records, *_merge(draft, step, record)]


def _check(draft: MemoryDraft, step: Candidate) -> None:
    """Raise `FormatError` where a target was changed or removed, or private words would come onto a page that is not.

    This is checked before the first change, so that a step is carried out whole or not at all.
    """
    for target in step.targets:
        is_changed = _target_now(draft, target).text != target.statement.text
        if is_changed and (step.operation.action != "same" or step.is_taking_out):
            raise FormatError(target.path, "the statement it is about was changed meanwhile")
    is_open = not is_private(draft.opened(step.path).memory.meta)
    if step.operation.text and step.is_private and is_open:
        raise FormatError(step.path, "what is private cannot stand there: the page is not private any more")


def _target_now(draft: MemoryDraft, target: CurrentStatement) -> Statement:
    """Return a target as its page has it now, found by its block id, or by its words where it has none.

    Raises:
        FormatError: It is not there any more.
    """
    old = target.statement
    for statement in draft.opened(target.path).memory.current_statements:
        if statement.block_id == old.block_id and (old.block_id or statement.text == old.text):
            return statement
    raise FormatError(target.path, "the statement it is about was changed meanwhile")


def _record(draft: MemoryDraft, step: Candidate, path: str) -> StatementRecord:
    """Return the record of a step without what it does to a page; the caller adds that."""
    operation, memory = step.operation, draft.opened(path).memory
    record = StatementRecord(
        candidate=step.id,
        operation=_VERBS[operation.action],
        path=memory.path,
        page=memory.uuid or memory.path,
        since=draft.brain.day_of(step.at),
        sources=step.sources,
        origin=step.origin,
        author=step.author,
        valid_from=operation.valid_from,
        valid_until=operation.valid_until,
        importance=importance_word(operation.importance),
        relevance=operation.relevance.score,
        reasoning=operation.reasoning,
        model=step.model,
        found_by=step.model,
        verified_by=step.verified_by,
        marked_by=operation.marked_by,
    )
    if operation.marked_by:
        return record  # no model judged marked words
    return replace(
        record,
        evidence=tuple(EvidenceRecord(exchange=quoted.exchange, quote=quoted.quote) for quoted in operation.evidence),
        category=operation.category or "",
        subject_type=operation.subject_type,
        band=operation.relevance.band,
        relevance_parts=operation.relevance.model_dump(),
    )


def _stated(draft: MemoryDraft, record: StatementRecord, block: str, text: str) -> StatementRecord:
    """Return a record with the statement that was just written, and note in the log that a process wrote it."""
    draft.log.note_stated(record.page, block, text, record.since)
    return replace(record, block=block, hash=text_hash(text))


def _reinforce(draft: MemoryDraft, path: str, statement: Statement, record: StatementRecord) -> StatementRecord:
    """Count a statement that was said again; it keeps its date."""
    draft.put(reinforced(draft.opened(path)))
    since = draft.log.since_of(record.page, statement) or record.since
    hash_ = text_hash(statement.text)
    return replace(record, operation="REINFORCE", block=statement.block_id, hash=hash_, since=since)


def _add(draft: MemoryDraft, step: Candidate, record: StatementRecord) -> StatementRecord:
    """Add a statement to a page; where the page has it in the same words, it counts as said again."""
    page, text = draft.opened(step.path), one_line(step.operation.text)
    for statement in page.memory.current_statements:
        if folded(statement.text) == folded(text):
            return _reinforce(draft, step.path, statement, record)
    line = text
    if step.operation.marked_by:
        # a model writes dates into its statements; marked words are kept as they are: a link to their day is added
        at = step.events[0].at
        day_path = draft.day_page(at, is_private=step.is_private)
        day = draft.pages.memories.get(day_path)
        link = posixpath.relpath(day_path, posixpath.dirname(step.path))
        line = with_day_link(step.operation.text, draft.brain.day_of(at), link, day.uuid if day else "")
    block = page.block_id_for(line)
    draft.put(page.add_statement(line, block))
    return _stated(draft, record, block, text)


def _replace(draft: MemoryDraft, step: Candidate, record: StatementRecord) -> StatementRecord:
    """Give a statement new words under its block id; the old ones go to History."""
    old = _target_now(draft, step.targets[0])
    history = _reword(draft, step.path, old, step.operation.text, record)
    replaced = StatementRef(block=old.block_id, hash=text_hash(old.text), history=history)
    if step.operation.former:  # only a name in it changed: its days stay
        former = [row.record for row in draft.log.changes_of(record.page) if row.hash == replaced.hash][-1:] or [record]
        record = replace(record, valid_from=former[0].valid_from, valid_until=former[0].valid_until)
        record = replace(record, since=draft.log.since_of(record.page, old) or record.since)
    return replace(_stated(draft, record, old.block_id, one_line(step.operation.text)), replaced=replaced)


def _reword(draft: MemoryDraft, path: str, old: Statement, text: str, record: StatementRecord) -> str:
    """Give a statement a new text; return the block id that its former wording gets in History."""
    page = draft.opened(path).replace_statement(old.block_id, text)
    block = page.block_id_for(old.text)
    since = draft.log.since_of(record.page, old)
    page = page.add_statement(old.text, block).retire(block, record.since, replaced_by=old.block_id, since=since)
    draft.put(page)
    return block


def _retire(
    draft: MemoryDraft, path: str, old: Statement, step: Candidate, *, page: str, replaced_by: str
) -> StatementRef:
    """Move a statement to History with its dates; return the reference to it.

    Args:
        draft: All pages.
        path: The statement's page.
        old: The statement.
        step: The step that ends it; it gives the day from which it no longer holds.
        page: The uuid of the page, or its path.
        replaced_by: The block id of the statement that holds instead; "" for none.
    """
    until, since = step.operation.valid_until, draft.log.since_of(page, old)
    if not _ISO_DAY.fullmatch(until):
        until = draft.brain.day_of(step.at)
    draft.put(draft.opened(path).retire(old.block_id, until, replaced_by, since))
    return StatementRef(block=old.block_id, hash=text_hash(old.text), history=old.block_id)


def _merge(draft: MemoryDraft, step: Candidate, record: StatementRecord) -> Iterator[StatementRecord]:
    """Move our statements from other pages about the same person or thing to this page; a person's own stay there."""
    for path in step.operation.page.merge:
        other = draft.page(path)
        if other is None or path == step.path or is_private(other.memory.meta) != step.is_private:
            continue
        draft.put(with_added(draft.opened(step.path), aliases=[other.memory.title, *other.memory.aliases]))
        for current in draft.statements_of(other.memory):
            if not current.is_ours or current.statement.section == STEPS:
                continue
            # first as new on this page, with its own sources and date: this step only moves it
            sources = tuple(sorted(sources_of(draft.log.provenance_of(current.page, current.statement))))
            record_here = replace(
                record, operation="NEW", sources=sources, since=current.since, evidence=(), replaced=None
            )
            text, page = with_links_from(draft.brain, current.text, step.path), draft.opened(step.path)
            block = page.block_id_for(text)
            draft.put(page.add_statement(text, block))
            yield _stated(draft, record_here, block, one_line(text))
            # then as ended on the other page
            replaced = _retire(draft, path, current.statement, step, page=current.page, replaced_by="")
            yield replace(_record(draft, step, path), operation="DELETE", replaced=replaced, evidence=())


# --- whole pages -----------------------------------------------------------------------------------------


def _begin_whole(draft: MemoryDraft, step: Candidate) -> StatementRecord:
    """Begin a page whose body is the person's note, byte for byte."""
    if draft.page(step.path) is not None:
        raise FormatError(step.path, "another page was made there meanwhile")
    page, operation = draft.new_pages[step.path], step.operation
    # no line of it can bear a mark, as it is kept byte for byte: its front matter says whose it is
    author = {"origin": step.origin, "by": step.author} if step.origin != "person" else {}
    meta = {"title": page.title, **page.meta, **author}
    now = iso(draft.brain.clock.now())
    text = whole_memory(operation.text, uuid=new_id(), now=now, tags=operation.tags, **meta)
    draft.put(MemoryDocument(text, step.path))
    draft.rest(step.path, step.sources)
    return replace(_record(draft, step, step.path), hash=text_hash(operation.text), is_whole=True)


def _set_steps(draft: MemoryDraft, step: Candidate, record: StatementRecord) -> StatementRecord:
    """Give a how-to the operation's steps in their order; old steps that are not among them go to History.

    The text of a new how-to stands above its steps, unless it is the page's title.
    """
    path, texts, present = step.path, step.operation.steps, _steps_on(draft, step.path)
    is_titled = _plain(step.operation.text) == _plain(draft.opened(path).memory.title)
    if not (present or step.targets or is_titled):
        record = _add(draft, step, record)
    if [_plain(old.text) for old in present] == [_plain(text) for text in texts]:
        draft.put(reinforced(draft.opened(path)))
        return replace(record, operation="REINFORCE")
    plain_texts = {_plain(text) for text in texts}
    # the list items keep their places and block ids, and get the texts in their new order
    for old, text in zip(present, texts, strict=False):
        if _plain(old.text) in plain_texts - {_plain(text)}:
            draft.put(draft.opened(path).replace_statement(old.block_id, text))
        elif _plain(old.text) != _plain(text):
            _reword(draft, path, old, text, record)
    for text in texts[len(present) :]:
        draft.put(draft.opened(path).add_step(text))
    for surplus in present[len(texts) :]:
        since = draft.log.since_of(record.page, surplus)
        draft.put(draft.opened(path).retire(surplus.block_id, record.since, since=since))
    steps = [_stated(draft, record, new.block_id, new.text) for new in _steps_on(draft, path)]
    refs = tuple(StatementRef(block=row.block, hash=row.hash, since=row.since) for row in steps)
    return replace(record, operation="UPDATE" if present else record.operation, steps=refs)


def _steps_on(draft: MemoryDraft, path: str) -> list[Statement]:
    return [row for row in draft.opened(path).memory.current_statements if row.section == STEPS]


def _plain(text: str) -> str:
    """Return a step's text for comparison, without case, white space and the last full stop."""
    return folded(text).rstrip(".")


# --- the answer of synthesis -------------------------------------------------------------------------------


def name_and_order(draft: MemoryDraft, path: str, answer: Page, blocks: Mapping[str, str]) -> None:
    """Give a page the title, tags, emotion, summary, order and headings that a model answered.

    Args:
        draft: The draft.
        path: The page; one that no step has changed stays as it is.
        answer: The answer to a synthesize request about the page.
        blocks: Block ids of the page's statements by their short names in the answer.
    """
    if path not in draft.edited:
        return
    page, keys = draft.opened(path), dict[str, str]()
    if answer.emotion and page.memory.emotion in ("", "neutral"):  # a person's word for it is not replaced
        keys["emotion"] = answer.emotion
    if summary := one_line(answer.summary):
        keys["summary"] = summary
    page = _renamed(draft, with_added(page, keys, tags=answer.tags), answer.title)
    # our statements in the order of the answer: those below one heading share their places, and other lines stay
    memory, ours = page.memory, _movable(draft, page)
    ordered = [ours[block] for block in dict.fromkeys(map(blocks.get, answer.order)) if block in ours]
    places = sorted(ordered, key=lambda statement: statement.start)
    # a statement does not leave its heading: what it says may be clear only from there
    queues = {place.section: iter([row for row in ordered if row.section == place.section]) for place in places}
    text = memory.text
    # from the last place to the first, so that the offsets of the places above stay valid
    for place, statement in reversed([(place, next(queues[place.section])) for place in places]):
        item = memory.text[statement.start : statement.end].rstrip("\n") + "\n"
        text = text[: place.start] + item + text[place.end :]
    draft.put(_divided(draft, MemoryDocument(text, path), answer.sections, blocks))


def _renamed(draft: MemoryDraft, page: MemoryDocument, title: str) -> MemoryDocument:
    """Return a page with another title where it is new or its statements are all ours; the former becomes an alias."""
    memory, title = page.memory, one_line(title)
    heading, title_in_front_matter = f"\n# {memory.title}\n", memory.meta.get("title")  # the latter is the person's
    if not title or title == memory.title or title_in_front_matter or heading not in memory.text:
        return page
    if not draft.is_new(memory.path) and not _is_ours(draft, page):
        return page
    page = MemoryDocument(memory.text.replace(heading, f"\n# {title}\n", 1), memory.path)
    return with_added(page, aliases=[memory.title])


def _is_ours(draft: MemoryDraft, page: MemoryDocument) -> bool:
    """Return whether no statement of a page is the person's own."""
    memory = page.memory
    return all(draft.log.is_ours(memory.uuid or memory.path, row) for row in memory.current_statements)


def _movable(draft: MemoryDraft, page: MemoryDocument) -> dict[str, Statement]:
    """Return our statements on a page by block id, in the order of the page, steps left out."""
    memory = page.memory
    rows = (row for row in memory.current_statements if row.block_id and row.section != STEPS)
    return {row.block_id: row for row in rows if draft.log.is_ours(memory.uuid or memory.path, row)}


def _divided(
    draft: MemoryDraft, page: MemoryDocument, sections: Sequence[Section], blocks: Mapping[str, str]
) -> MemoryDocument:
    """Return a page with our statements below headings; one that is in none, and every other line, stays above them.

    A heading for less than two statements, and one with a number that the page does not have, is left out.
    """
    ours, headings = set(_movable(draft, page)), dict[str, list[str]]()
    stated = numbers([page.memory.title, *(statement.text for statement in page.memory.current_statements)])
    for section in sections:
        heading = plain_name(section.heading)
        below = [block for block in dict.fromkeys(map(blocks.get, section.statements)) if block in ours]
        # a section of such a name is left out of search, or is read as steps
        is_taken = heading.casefold() in ("", *map(str.casefold, (HISTORY, STEPS, MANIFEST, RELATED, *headings)))
        if len(below) > 1 and not is_taken and not numbers([heading]) - stated and len(headings) < MAX_HEADINGS:
            headings[heading] = below
            ours -= set(below)
    is_due = len(headings) > 1 and wants_headings(page, draft.pages.kind_of(page.memory.path))
    return page.with_sections(headings) if is_due else page
