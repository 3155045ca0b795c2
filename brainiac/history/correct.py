"""`brainiac correct`, and `undo` of one statement: replace its wording, or reverse its last change.

Each is one commit. The former wording goes to History. The new wording is the person's own: no process rewrites it, an
earlier exchange does not bring the former one back (`plugins/promotion/placing.py`), and a search result from the
exchange that it rested on names the present wording (`search/outdated.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import UserError
from brainiac.events import Event, StatementCorrected, StatementRecord, StatementRef, new_id, update
from brainiac.formats.markdown import one_line
from brainiac.formats.page import STEPS, Memory, MemoryDocument, Statement
from brainiac.history.digest import write_digest
from brainiac.history.why import StatementMatch, folded
from brainiac.storage.statements import StatementLog, text_hash, with_block_ids
from brainiac.text.tokens import coverage

MIN_COVERAGE = 0.5  # the least share of a person's words that a statement must have
MAX_TARGETS = 5


def possible_targets(brain: Brain, words: str) -> list[StatementMatch]:
    """Return the current statements that a person may mean, likeliest first.

    Args:
        brain: The brain.
        words: The statement's `path#^block`, all of its words, or some of them.

    Returns:
        Those that are named by id or by all their words; where there are none, up to `MAX_TARGETS` that have at least
        half of the words.
    """
    path, sign, block = words.strip().rpartition("#^")
    named: list[StatementMatch] = []
    similar: list[tuple[float, StatementMatch]] = []
    for page in brain.pages().memories.values():
        for statement in page.statements:
            if statement.is_history:
                continue
            target = StatementMatch(page, statement)
            has_id = sign and page.path == path and statement.block_id == block
            if has_id or folded(statement.text) == folded(words):
                named.append(target)
            elif (share := coverage(words, statement.text)) >= MIN_COVERAGE:
                similar.append((share, target))
    similar.sort(key=lambda scored: -scored[0])
    return named or [target for _, target in similar[:MAX_TARGETS]]


def correct(brain: Brain, target: StatementMatch, text: str) -> Event:
    """Replace a statement by a new wording; the former one goes to History.

    Args:
        brain: The brain.
        target: The statement, from `possible_targets`.
        text: The new wording.

    Raises:
        UserError: The text is empty or the same, or the statement was changed meanwhile.
        ConflictError: Somebody keeps writing the page.
    """
    line = one_line(text)
    if not line:
        raise UserError("there is no new wording; `brainiac forget` takes a statement out")
    if line == one_line(target.statement.text):
        raise UserError(f"“{line}” stands there in these very words")
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
    return brain.commit(
        StatementCorrected(statements=(row,)), by="person", changes=[update(path, before, str(document))]
    )


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What `take_back` did.

    Attributes:
        event: Its event.
        path: The page.
        before: What stood there; "" where nothing did.
        after: What holds again; "" where nothing does.
    """

    event: Event
    path: str
    before: str
    after: str


def take_back(brain: Brain, named: str) -> TakenBack:
    """Reverse the last change of one statement, whoever made it.

    A statement with a former wording, or one that replaced another, gives way to that. One without goes to History.
    One under History holds again.

    Args:
        brain: The brain.
        named: The statement, `path#^block`, as `brainiac digest` names it.

    Raises:
        UserError: There is no such statement, or it is a step of a how-to.
        ConflictError: Somebody keeps writing the page.
    """
    done = brain.retry(lambda: _take_back(brain, named))
    write_digest(brain)
    return done


def _take_back(brain: Brain, named: str) -> TakenBack:
    """Commit the reversal of a statement's last change, on its page as it is now."""
    memory, statement = _named_statement(brain, named)
    present, former = _present_and_former(memory, statement)
    day = brain.day_of(iso(brain.clock.now()))
    document, replaced, operation = MemoryDocument(memory.text, memory.path), None, "NEW"
    block = (present or statement).block_id
    if former:
        document = document.without_statement(former.block_id)
    if present:
        operation = "UPDATE" if former else "DELETE"
        history = document.block_id_for(present.text) if former else block
        since = StatementLog(brain).since_of(memory.uuid, present)
        if former:
            document = document.replace_statement(block, former.text).add_statement(present.text, history)
        document = document.retire(history, day, block if former else "", since)
        replaced = StatementRef(block=block, hash=text_hash(present.text), history=history)
    elif former:
        document = document.add_statement(former.text, block)
    row = StatementRecord(
        operation=operation,
        path=memory.path,
        page=memory.uuid,
        block=block if former else "",
        hash=text_hash(former.text) if former else "",
        since=(former and former.since) or day,
        origin="person",
        replaced=replaced,
    )
    changes = [update(memory.path, memory.text, str(document))]
    event = brain.commit(StatementCorrected(statements=(row,)), by="person", changes=changes)
    return TakenBack(event, memory.path, present.text if present else "", former.text if former else "")


def _present_and_former(memory: Memory, statement: Statement) -> tuple[Statement | None, Statement | None]:
    """Return the statement that goes to History and the one that comes back from there.

    None for the first where a statement under History was replaced by none, for the second where one has no former
    wording.
    """
    current = {row.block_id: row for row in memory.statements if not row.is_history}
    if statement.is_history:
        return current.get(statement.replaced_by), statement
    former = [row for row in memory.statements if row.is_history and row.replaced_by == statement.block_id]
    return statement, max(former, key=lambda row: row.until, default=None)


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
