"""`brainiac correct`: find the statement that a person means, and replace its wording in one commit.

The former wording goes to History. The statement is the person's own from then on: no process rewrites it, what was
said before states the former wording again (`plugins/promotion/placing.py`), and a hit in an exchange that it rested on
names the present wording (`search/outdated.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import UserError
from brainiac.events import Event, StatementCorrected, StatementRecord, StatementRef, new_id, update
from brainiac.formats.markdown import one_line
from brainiac.formats.page import Memory, MemoryDocument, Statement
from brainiac.history.digest import write_digest
from brainiac.storage.statements import read_statements, text_hash, with_block_ids
from brainiac.text.tokens import coverage

MIN_COVERAGE = 0.5  # the least share of a person's words that a statement must have
MAX_TARGETS = 5


@dataclass(frozen=True, slots=True)
class PossibleTarget:
    """A statement that a person may mean.

    Attributes:
        memory: Its page, as it was read.
        statement: The statement on it.
    """

    memory: Memory
    statement: Statement

    @property
    def name(self) -> str:
        """Path and block id of the statement; its words where it has no block id."""
        block = self.statement.block_id
        return f"{self.memory.path}#^{block}" if block else self.statement.text


def possible_targets(brain: Brain, words: str) -> list[PossibleTarget]:
    """Return the current statements that a person may mean, likeliest first.

    Args:
        brain: The brain.
        words: The statement's `path#^block`, all of its words, or some of them.

    Returns:
        Those that are named by id or by all their words; where there are none, up to `MAX_TARGETS` that have at least
        half of the words.
    """
    path, sign, block = words.strip().rpartition("#^")
    wanted = " ".join(words.split()).casefold()
    named: list[PossibleTarget] = []
    similar: list[tuple[float, PossibleTarget]] = []
    for page in brain.pages().memories.values():
        for statement in page.statements:
            if statement.is_history:
                continue
            target = PossibleTarget(page, statement)
            is_named = (sign and page.path == path and statement.block_id == block) or (
                " ".join(statement.text.split()).casefold() == wanted
            )
            if is_named:
                named.append(target)
            elif (share := coverage(words, statement.text)) >= MIN_COVERAGE:
                similar.append((share, target))
    similar.sort(key=lambda scored: -scored[0])
    return named or [target for _, target in similar[:MAX_TARGETS]]


def correct(brain: Brain, target: PossibleTarget, text: str) -> Event:
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


def _replace(brain: Brain, target: PossibleTarget, line: str) -> Event:
    """Commit the new wording of a statement, on its page as it stands now; return the event."""
    path = target.memory.path
    before = brain.read_page(path) or ""
    document = with_block_ids(MemoryDocument(before, path).with_missing_keys(new_id(), iso(brain.clock.now())))
    old = _present_statement(document.memory, target)
    memory, day = document.memory, brain.day_of(iso(brain.clock.now()))
    since = read_statements(brain).since_of(memory.uuid, old)
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


def _present_statement(memory: Memory, target: PossibleTarget) -> Statement:
    """Return the target as it stands on its page now.

    Raises:
        UserError: It was changed meanwhile.
    """
    for statement in memory.statements:
        is_same = not target.statement.block_id or statement.block_id == target.statement.block_id
        if is_same and not statement.is_history and statement.text == target.statement.text:
            return statement
    raise UserError(f"“{target.statement.text}” on {memory.path} was changed meanwhile; look again")
