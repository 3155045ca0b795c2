"""`brainiac correct`: from a person's words to the statement that is wrong, put right in one commit.

The former wording goes to History. The statement is the person's own from then on: no process rewrites it, what was
said before restates nothing of the former wording (`plugins/promotion/placing.py`), and whoever finds an exchange that
it rested on is told what holds (`search/outdated.py`).
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

MIN_COVERAGE = 0.5  # the share of the words that a statement must have to be offered
MAX_OFFERED = 5


@dataclass(frozen=True, slots=True)
class Offered:
    """A statement that some words may mean.

    Attributes:
        memory: Its page.
        statement: As it stands.
    """

    memory: Memory
    statement: Statement

    @property
    def name(self) -> str:
        """What it is named by: its page and block id, or its words."""
        block = self.statement.block_id
        return f"{self.memory.path}#^{block}" if block else self.statement.text


def offered(brain: Brain, words: str) -> list[Offered]:
    """Return the statements that hold and that words may mean, likeliest first; one alone where it is named exactly."""
    path, sign, block = words.strip().rpartition("#^")
    wanted, matches = " ".join(words.split()).casefold(), []
    for page in brain.pages().memories.values():
        for statement in page.statements:
            if statement.is_history:
                continue
            offer = Offered(page, statement)
            is_named = (sign and page.path == path and statement.block_id == block) or (
                " ".join(statement.text.split()).casefold() == wanted
            )
            matches.append((1.1 if is_named else coverage(words, statement.text), offer))
    matches = sorted((match for match in matches if match[0] >= MIN_COVERAGE), key=lambda match: -match[0])
    named = [offer for score, offer in matches if score > 1]
    return named or [offer for _, offer in matches[:MAX_OFFERED]]


def correct(brain: Brain, offer: Offered, text: str) -> Event:
    """Put a statement right: a new wording in its place, the former one under History.

    Args:
        brain: The brain.
        offer: The statement, as `offered` gave it.
        text: What is so.

    Raises:
        UserError: The text is empty or the same, or the statement was changed meanwhile.
        ConflictError: Somebody keeps writing the page.
    """
    line = one_line(text)
    if not line:
        raise UserError("there is no new wording; `brainiac forget` takes a statement out")
    if line == one_line(offer.statement.text):
        raise UserError(f"“{line}” stands there in these very words")
    event = brain.retry(lambda: _put_right(brain, offer, line))
    write_digest(brain)
    return event


def _put_right(brain: Brain, offer: Offered, line: str) -> Event:
    path = offer.memory.path
    before = brain.read_page(path) or ""
    document = with_block_ids(MemoryDocument(before, path).with_missing_keys(new_id(), iso(brain.clock.now())))
    old = _standing(document.memory, offer)
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


def _standing(memory: Memory, offer: Offered) -> Statement:
    """Return the statement as it stands now.

    Raises:
        UserError: It was changed meanwhile.
    """
    for statement in memory.statements:
        is_same = not offer.statement.block_id or statement.block_id == offer.statement.block_id
        if is_same and not statement.is_history and statement.text == offer.statement.text:
            return statement
    raise UserError(f"“{offer.statement.text}” on {memory.path} was changed meanwhile; look again")
