"""Operations carried out on page drafts; each yields statement records for the run's event (docs/format.md).

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

from .draft import CurrentStatement, Draft, PageDraft, free_day_page

HIGH, LOW = 0.75, 0.4  # importance from 0 to 1
MAX_HEADINGS = 8  # of one page
_VERBS = {"new": "NEW", "replace": "UPDATE", "end": "DELETE", "forget": "DELETE", "same": "REINFORCE"}
_IMPORTANCE = ("", "low", "medium", "high")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operation that was decided, with the events it rests on.

    Attributes:
        id: Its id in the journal.
        operation: The operation; links in its texts are paths from the root.
        events: The events it rests on, oldest first.
        model: The model that decided it.
        origin: Whose words it rests on, one of `ORIGINS`.
        author: The name of who said them, where that is not the person.
        verified_by: The model that said, as a second reader, that it follows from them; "" where none was asked.
    """

    id: str
    operation: Operation
    events: tuple[StmEvent, ...]
    model: str
    origin: str = "person"
    author: str = ""
    verified_by: str = ""

    @property
    def words(self) -> str:
        """What it states, to be shown to a person."""
        return self.operation.text or self.operation.reasoning or self.operation.subject

    @property
    def at(self) -> str:
        """When the last of its events was said, ISO 8601."""
        return max(event.at for event in self.events)

    @property
    def is_private(self) -> bool:
        """Whether one of its events must not leave this machine."""
        return any(event.is_private for event in self.events)

    def of(self, **update: Any) -> Candidate:
        """Return it with other values in its operation."""
        return replace(self, operation=self.operation.model_copy(update=update))

    def without_content(self, **update: Any) -> Candidate:
        """Return it without a text, name or tag in its operation."""
        return self.of(text="", page=PageRef(), tags=[], steps=[], importance=None, **update)


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate's operation on one page; it can be carried out again on pages that were read anew.

    Attributes:
        candidate: The candidate.
        path: The page; "" while the statement has no page yet.
        targets: The current statements that are replaced, ended or repeated; none for a new one.
        proposal: What a person is asked instead, because the target is their own; "" where it is not.
        is_taking_out: Whether it only removes its target: a stand-in whose words another step has.
    """

    candidate: Candidate
    path: str
    targets: tuple[CurrentStatement, ...] = ()
    proposal: str = ""
    is_taking_out: bool = False

    @property
    def operation(self) -> Operation:
        """The candidate's operation."""
        return self.candidate.operation

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


def importance_word(value: float | None) -> str:
    """Return importance as a word: low below 0.4, high from 0.75 on; "" where no model judged it."""
    return "" if value is None else "high" if value >= HIGH else "low" if value < LOW else "medium"


def carry_out(draft: Draft, step: Step) -> list[StatementRecord]:
    """Carry a step out on the page drafts and return its records, the first one for the statement it makes.

    Raises:
        FormatError: A person has changed its target or its page since it was decided.
    """
    operation = step.operation
    if (
        step.is_taking_out
    ):  # a stand-in, a statement that was kept without a model; its words are on the page of their day
        page_draft = draft.opened(step.path)
        _check(draft, page_draft, step)
        statement = _target_now(page_draft, step.targets[0])
        page_draft.document = page_draft.document.without_statement(statement.block_id)
        page_draft.may_be_empty = True
        replaced = StatementRef(block=statement.block_id, hash=text_hash(statement.text))
        # "reworded": a model's statement has its words
        record = _record(draft, step, page_draft)
        return [replace(record, operation="REWORD", block=statement.block_id, replaced=replaced)]
    if operation.page.is_whole and operation.action == "new":  # a note that is a page of its own
        return [_begin_whole(draft, step)]
    # on its page, links are relative to the page
    text, *steps = (with_links_from(draft.brain, text, step.path) for text in (operation.text, *operation.steps))
    step = replace(step, candidate=step.candidate.of(text=text, steps=steps))
    page_draft, candidate = draft.opened(step.path), step.candidate
    _check(draft, page_draft, step)
    page_draft.sources.update(dict.fromkeys(event.id for event in candidate.events))
    # not of a private request to forget: its tags and names must not get onto an open page
    if not candidate.is_private or is_private(page_draft.document.memory.meta):
        page_draft.tags.update(dict.fromkeys(operation.tags))
        # aliases are names of the page that the model meant; the statement may have gone to another one
        if operation.page.path in ("", step.path):
            title = page_draft.document.memory.title.casefold()
            names = (one_line(name) for name in operation.page.aliases)
            page_draft.aliases.update(dict.fromkeys(name for name in names if name and name.casefold() != title))
        word = importance_word(operation.importance)
        page_draft.importance = max(page_draft.importance, word, key=_IMPORTANCE.index)
    if operation.page.path == step.path:  # else the model has not seen this page: it cannot rename or describe it
        _rename(draft, page_draft, operation.page.title)
        # no summary from other words than the person's, nor one with a number that neither page nor operation has
        summary = one_line(operation.page.summary)
        texts = [page_draft.document.memory.title, text, *steps, *(row.text for row in page_draft.current)]
        is_stated = step.candidate.origin == "person" and not numbers([summary]) - numbers(texts)
        if summary and is_stated and _is_ours(draft, page_draft):
            page_draft.summary = summary
    record = _record(draft, step, page_draft)
    match operation.action:
        case "same":
            record = _reinforce(draft, page_draft, _target_now(page_draft, step.targets[0]), record)
        case "new" | "replace" if operation.steps:  # a how-to's words above its steps may stay as they are
            if step.targets and text_hash(operation.text) != text_hash(step.targets[0].text):
                record = _replace(draft, page_draft, step, record)
            record = _set_steps(draft, page_draft, step, record)
        case "new":
            record = _add(draft, page_draft, step, record)
        case "replace":
            record = _replace(draft, page_draft, step, record)
        case "end" | "forget":
            record = _end(draft, page_draft, step, record)
    records = [record]
    # further targets, which say the same as the first; they may be on other pages
    for target in () if operation.action == "same" else step.targets[1:]:
        other, replaced_by = draft.opened(target.path), record.block if target.page == record.page else ""
        old = _target_now(other, target)
        replaced = _retire(draft, other, old, step, page=target.page, replaced_by=replaced_by)
        other.sources.update(dict.fromkeys(record.sources))
        records.append(replace(_record(draft, step, other), operation="DELETE", replaced=replaced))
    return [*records, *_merge(draft, page_draft, step, record)]


def _check(draft: Draft, page_draft: PageDraft, step: Step) -> None:
    """Raise `FormatError` where a target was changed or removed, or private words would come onto a page that is not.

    This is checked before the first change, so that a step is carried out whole or not at all.
    """
    for target in step.targets:
        statement = _target_now(draft.opened(target.path), target)
        if statement.text != target.statement.text and (step.operation.action != "same" or step.is_taking_out):
            raise FormatError(target.path, "the statement it is about was changed meanwhile")
    if step.operation.text and step.candidate.is_private and not is_private(page_draft.document.memory.meta):
        raise FormatError(step.path, "what is private cannot stand there: the page is not private any more")


def _target_now(page_draft: PageDraft, target: CurrentStatement) -> Statement:
    """Return a target as the page draft has it, found by its block id, or by its words where it has none.

    Raises:
        FormatError: It is not there any more.
    """
    old = target.statement
    for statement in page_draft.current:
        if statement.block_id == old.block_id and (old.block_id or statement.text == old.text):
            return statement
    raise FormatError(target.path, "the statement it is about was changed meanwhile")


def _record(draft: Draft, step: Step, page_draft: PageDraft) -> StatementRecord:
    """Return the record of a step without what it does to the page; the caller adds that."""
    operation, candidate, memory = step.operation, step.candidate, page_draft.document.memory
    record = StatementRecord(
        candidate=candidate.id,
        operation=_VERBS[operation.action],
        path=memory.path,
        page=memory.uuid or memory.path,
        since=draft.brain.day_of(candidate.at),
        sources=tuple(event.id for event in candidate.events),
        origin=candidate.origin,
        author=candidate.author,
        valid_from=operation.valid_from,
        valid_until=operation.valid_until,
        importance=importance_word(operation.importance),
        relevance=operation.relevance.score,
        reasoning=operation.reasoning,
        model=candidate.model,
        found_by=candidate.model,
        verified_by=candidate.verified_by,
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


def _with_statement(draft: Draft, record: StatementRecord, block: str, text: str) -> StatementRecord:
    """Return a record with the statement that was just written, and note in the log that a process wrote it."""
    draft.log.note_stated(record.page, block, text, record.since)
    return replace(record, block=block, hash=text_hash(text))


def _reinforce(draft: Draft, page_draft: PageDraft, statement: Statement, record: StatementRecord) -> StatementRecord:
    """Count a statement that was said again; it keeps its date."""
    page_draft.reinforced += 1
    since = draft.log.since_of(record.page, statement) or record.since
    hash_ = text_hash(statement.text)
    return replace(record, operation="REINFORCE", block=statement.block_id, hash=hash_, since=since)


def _add(draft: Draft, page_draft: PageDraft, step: Step, record: StatementRecord) -> StatementRecord:
    """Add a statement to a page; where the page has it in the same words, it counts as said again."""
    text = one_line(step.operation.text)
    for statement in page_draft.current:
        if folded(statement.text) == folded(text):
            return _reinforce(draft, page_draft, statement, record)
    line = text
    if step.operation.marked_by:
        # a model writes dates into its statements; marked words are kept as they are: a link to their day is added
        at = step.candidate.events[0].at
        path, _ = free_day_page(draft, at, is_private=step.candidate.is_private)
        page = draft.pages.memories.get(path)
        link = posixpath.relpath(path, posixpath.dirname(step.path))
        line = with_day_link(step.operation.text, draft.brain.day_of(at), link, page.uuid if page else "")
    block = page_draft.document.block_id_for(line)
    page_draft.document = page_draft.document.add_statement(line, block)
    return _with_statement(draft, record, block, text)


def _replace(draft: Draft, page_draft: PageDraft, step: Step, record: StatementRecord) -> StatementRecord:
    """Give a statement new words under its block id; the old ones go to History."""
    old = _target_now(page_draft, step.targets[0])
    page_draft.document = page_draft.document.replace_statement(old.block_id, step.operation.text)
    history = _add_to_history(draft, page_draft, old, record)
    replaced = StatementRef(block=old.block_id, hash=text_hash(old.text), history=history)
    if step.operation.former:  # only a name in it changed: its days stay
        former = [row.record for row in draft.log.changes_of(record.page) if row.hash == replaced.hash][-1:] or [record]
        record = replace(record, valid_from=former[0].valid_from, valid_until=former[0].valid_until)
        record = replace(record, since=draft.log.since_of(record.page, old) or record.since)
    return replace(_with_statement(draft, record, old.block_id, one_line(step.operation.text)), replaced=replaced)


def _add_to_history(draft: Draft, page_draft: PageDraft, old: Statement, record: StatementRecord) -> str:
    """Add a former wording to History and return the block id that it gets there.

    Its old block id stays with the statement that replaces it.
    """
    document = page_draft.document
    block = document.block_id_for(old.text)
    document = document.add_statement(old.text, block)
    since = draft.log.since_of(record.page, old)
    page_draft.document = document.retire(block, record.since, replaced_by=old.block_id, since=since)
    return block


def _end(draft: Draft, page_draft: PageDraft, step: Step, record: StatementRecord) -> StatementRecord:
    """Move a statement to History and add what holds instead, if the operation has a text.

    With a proposal the old statement stays: the record only notes it, and the text is a new statement beside it.
    """
    new = record
    if step.operation.text:
        new = _add(draft, page_draft, step, replace(record, operation=_VERBS["new"]))
    old = _target_now(page_draft, step.targets[0])
    if step.proposal:
        return replace(new, proposed=StatementRef(block=old.block_id, hash=text_hash(old.text)))
    replaced = _retire(draft, page_draft, old, step, page=record.page, replaced_by=new.block)
    return replace(new, operation=record.operation, replaced=replaced)


def _retire(
    draft: Draft, page_draft: PageDraft, old: Statement, step: Step, *, page: str, replaced_by: str
) -> StatementRef:
    """Move a statement to History with its dates; return the reference to it.

    Args:
        draft: All pages.
        page_draft: The statement's page.
        old: The statement.
        step: The step that ends it; it gives the day from which it no longer holds.
        page: The uuid of the page, or its path.
        replaced_by: The block id of the statement that holds instead; "" for none.
    """
    until, since = step.operation.valid_until, draft.log.since_of(page, old)
    if not _ISO_DAY.fullmatch(until):
        until = draft.brain.day_of(step.candidate.at)
    page_draft.document = page_draft.document.retire(old.block_id, until, replaced_by, since)
    return StatementRef(block=old.block_id, hash=text_hash(old.text), history=old.block_id)


def _merge(draft: Draft, page_draft: PageDraft, step: Step, record: StatementRecord) -> Iterator[StatementRecord]:
    """Move our statements from other pages about the same person or thing to this page; a person's own stay there."""
    for path in step.operation.page.merge:
        other = draft.page(path)
        if other is None or other is page_draft or is_private(other.document.memory.meta) != step.candidate.is_private:
            continue
        memory = other.document.memory
        page_draft.aliases.update(dict.fromkeys([memory.title, *memory.aliases]))
        for current in draft.statements_of(memory):
            if not current.is_ours or current.statement.section == STEPS:
                continue
            # first as new on this page, with its own sources and date: this step only moves it
            sources = tuple(sorted(sources_of(draft.log.provenance_of(current.page, current.statement))))
            record_here = replace(
                record, operation="NEW", sources=sources, since=current.since, evidence=(), replaced=None
            )
            text = with_links_from(draft.brain, current.text, step.path)
            block = page_draft.document.block_id_for(text)
            page_draft.document = page_draft.document.add_statement(text, block)
            yield _with_statement(draft, record_here, block, one_line(text))
            # then as ended on the other page
            replaced = _retire(draft, other, current.statement, step, page=current.page, replaced_by="")
            yield replace(_record(draft, step, other), operation="DELETE", replaced=replaced, evidence=())


# --- whole pages -----------------------------------------------------------------------------------------


def _begin_whole(draft: Draft, step: Step) -> StatementRecord:
    """Begin a page whose body is the person's note, byte for byte."""
    if draft.page(step.path) is not None:
        raise FormatError(step.path, "another page was made there meanwhile")
    page, operation = draft.new_pages[step.path], step.operation
    # no line of it can bear a mark, as it is kept byte for byte: its front matter says whose it is
    author = {"origin": step.candidate.origin, "by": step.candidate.author} if step.candidate.origin != "person" else {}
    meta = {"title": page.title, **page.meta, **author}
    now = iso(draft.brain.clock.now())
    text = whole_memory(operation.text, uuid=new_id(), now=now, tags=operation.tags, **meta)
    page_draft = draft.add(step.path, text)
    page_draft.sources.update(dict.fromkeys(event.id for event in step.candidate.events))
    return replace(_record(draft, step, page_draft), hash=text_hash(operation.text), is_whole=True)


def _set_steps(draft: Draft, page_draft: PageDraft, step: Step, record: StatementRecord) -> StatementRecord:
    """Give a how-to the operation's steps in their order; old steps that are not among them go to History.

    The text of a new how-to stands above its steps, unless it is the page's title.
    """
    texts, present = step.operation.steps, _steps_of(page_draft)
    is_titled = _plain(step.operation.text) == _plain(page_draft.document.memory.title)
    if not (present or step.targets or is_titled):
        record = _add(draft, page_draft, step, record)
    if [_plain(old.text) for old in present] == [_plain(text) for text in texts]:
        page_draft.reinforced += 1
        return replace(record, operation="REINFORCE")
    plain_texts = {_plain(text) for text in texts}
    # the list items keep their places and block ids, and get the texts in their new order
    for old, text in zip(present, texts, strict=False):
        if _plain(old.text) != _plain(text):
            page_draft.document = page_draft.document.replace_statement(old.block_id, text)
            if _plain(old.text) not in plain_texts:
                _add_to_history(draft, page_draft, old, record)
    for text in texts[len(present) :]:
        page_draft.document = page_draft.document.add_step(text)
    for surplus in present[len(texts) :]:
        since = draft.log.since_of(record.page, surplus)
        page_draft.document = page_draft.document.retire(surplus.block_id, record.since, since=since)
    steps = [_with_statement(draft, record, new.block_id, new.text) for new in _steps_of(page_draft)]
    refs = tuple(StatementRef(block=row.block, hash=row.hash, since=row.since) for row in steps)
    return replace(record, operation="UPDATE" if present else record.operation, steps=refs)


def _steps_of(page_draft: PageDraft) -> list[Statement]:
    return [statement for statement in page_draft.current if statement.section == STEPS]


def _plain(text: str) -> str:
    """Return a step's text for comparison, without case, white space and the last full stop."""
    return folded(text).rstrip(".")


# --- the answer of synthesis -------------------------------------------------------------------------------


def name_and_order(draft: Draft, path: str, answer: Page, blocks: Mapping[str, str]) -> None:
    """Give a page the title, tags, order and headings that a model answered, and keep the answer in its draft.

    `PageDraft.finished` takes emotion and summary from there.

    Args:
        draft: The page drafts.
        path: The page; one that no step has changed stays as it is.
        answer: The answer to a synthesize request about the page.
        blocks: Block ids of the page's statements by their short names in the answer.
    """
    page_draft = draft.page_drafts.get(path)
    if page_draft is None:
        return
    page_draft.answer = answer
    page_draft.tags.update(dict.fromkeys(answer.tags))
    _rename(draft, page_draft, answer.title)
    # our statements in the order of the answer: those below one heading share their places, and other lines stay
    memory, ours = page_draft.document.memory, _movable(draft, page_draft)
    ordered = [ours[block] for block in dict.fromkeys(map(blocks.get, answer.order)) if block in ours]
    places = sorted(ordered, key=lambda statement: statement.start)
    # a statement does not leave its heading: what it says may be clear only from there
    queues = {place.section: iter([row for row in ordered if row.section == place.section]) for place in places}
    text = memory.text
    # from the last place to the first, so that the offsets of the places above stay valid
    for place, statement in reversed([(place, next(queues[place.section])) for place in places]):
        item = memory.text[statement.start : statement.end].rstrip("\n") + "\n"
        text = text[: place.start] + item + text[place.end :]
    page_draft.document = MemoryDocument(text, memory.path)
    _divide(draft, page_draft, answer.sections, blocks)


def _rename(draft: Draft, page_draft: PageDraft, title: str) -> None:
    """Change the title of a page that is new, or whose statements are all ours; the former title becomes an alias."""
    memory, title = page_draft.document.memory, one_line(title)
    heading, title_in_front_matter = f"\n# {memory.title}\n", memory.meta.get("title")  # the latter is the person's
    if not title or title == memory.title or title_in_front_matter or heading not in memory.text:
        return
    is_new = page_draft.before is None
    if not is_new and not _is_ours(draft, page_draft):
        return
    page_draft.document = MemoryDocument(memory.text.replace(heading, f"\n# {title}\n", 1), memory.path)
    page_draft.aliases.pop(title, None)
    page_draft.aliases[memory.title] = None


def _is_ours(draft: Draft, page_draft: PageDraft) -> bool:
    """Return whether no statement of a page is the person's own."""
    memory = page_draft.document.memory
    return all(draft.log.is_ours(memory.uuid or memory.path, statement) for statement in page_draft.current)


def _movable(draft: Draft, page_draft: PageDraft) -> dict[str, Statement]:
    """Return our statements on a page by block id, in the order of the page, steps left out."""
    memory = page_draft.document.memory
    page = memory.uuid or memory.path
    return {
        statement.block_id: statement
        for statement in page_draft.current
        if statement.block_id and statement.section != STEPS and draft.log.is_ours(page, statement)
    }


def _divide(draft: Draft, page_draft: PageDraft, sections: Sequence[Section], blocks: Mapping[str, str]) -> None:
    """Move our statements below headings; one that is in none, and every other line, stays above them.

    A heading for less than two statements, and one with a number that the page does not have, is left out.
    """
    ours, headings = set(_movable(draft, page_draft)), dict[str, list[str]]()
    stated = numbers([page_draft.document.memory.title, *(statement.text for statement in page_draft.current)])
    for section in sections:
        heading = plain_name(section.heading)
        below = [block for block in dict.fromkeys(map(blocks.get, section.statements)) if block in ours]
        # a section of such a name is left out of search, or is read as steps
        is_taken = heading.casefold() in ("", *map(str.casefold, (HISTORY, STEPS, MANIFEST, RELATED, *headings)))
        if len(below) > 1 and not is_taken and not numbers([heading]) - stated and len(headings) < MAX_HEADINGS:
            headings[heading] = below
            ours -= set(below)
    if len(headings) > 1 and page_draft.wants_headings(draft.pages.kind_of(page_draft.document.memory.path)):
        page_draft.document = page_draft.document.with_sections(headings)
