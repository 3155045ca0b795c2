"""`brainiac adopt`: a person releases statements of theirs, so that processes may update, move and retire them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import FormatError, UserError
from brainiac.events import Change, Event, PathKind, StatementsAdopted, new_id, update
from brainiac.formats.memory import MemoryDocument
from brainiac.formats.statements import block_ids, new_block_id
from brainiac.storage.statements import Past, read_past, text_hash

_NEVER = "9999"  # corrections are not asked for


@dataclass(slots=True)
class Adoption:
    """What is to be released.

    Attributes:
        changes: Block ids and a uuid where they are missing.
        statements: As the journal will name them: page, block, hash.
        texts: What they say, with the page's path.
    """

    changes: list[Change] = field(default_factory=list)
    statements: list[dict[str, Any]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)


def plan_adoption(brain: Brain, named: str | None = None) -> Adoption:
    """Return the statements on a page, below a folder, or in all of long-term memory, that are a person's.

    Raises:
        UserError: There is no such page or folder in long-term memory.
    """
    found, past = Adoption(), read_past(brain, _NEVER)
    for path in _pages(brain, named):
        text = brain.read_text(path) or ""
        try:
            page = MemoryDocument(text, path).with_missing_keys(new_id(), iso(brain.clock.now()))
        except FormatError:
            continue  # the doctor names it
        _take(found, past, page, path)
        if found.texts and found.texts[-1][0] == path and str(page := _with_block_ids(page)) != text:
            found.changes.append(update(path, text, str(page)))
    return found


def adopt(brain: Brain, named: str | None = None) -> tuple[Event | None, Adoption]:
    """Release statements in one commit; no event when all there are ours already.

    Raises:
        ConflictError: A page was saved meanwhile; nothing was changed.
    """
    found = plan_adoption(brain, named)
    if not found.statements:
        return None, found
    data = {"statements": found.statements}
    return brain.commit(StatementsAdopted.kind, by="person", changes=found.changes, data=data), found


def _take(found: Adoption, past: Past, page: MemoryDocument, path: str) -> None:
    given = _with_block_ids(page).memory
    for statement in given.statements:
        if not statement.is_history and not past.is_ours(given.uuid, statement):
            record = {"page": given.uuid, "block": statement.block_id, "hash": text_hash(statement.text), "path": path}
            found.statements.append(record)
            found.texts.append((path, statement.text))


def _with_block_ids(page: MemoryDocument) -> MemoryDocument:
    """Give each statement that holds and has none a block id, at the end of its own text."""
    text, path = page.memory.text, page.memory.path
    taken = block_ids(text)
    ids: list[tuple[int, str]] = []
    for statement in page.memory.statements:
        if not statement.block_id and not statement.is_history and statement.text:
            block = new_block_id(statement.text, taken)
            taken.add(block)
            ids.append((statement.own[1], block))
    for offset, block in reversed(ids):
        text = f"{text[:offset]} ^{block}{text[offset:]}"
    return MemoryDocument(text, path)


def _pages(brain: Brain, named: str | None) -> Iterator[str]:
    tree = brain.tree
    top = tree.confine(named, inside=tree.memory) if named else tree.long_term
    if top.is_file() and tree.kind_of(tree.relative(top)) is PathKind.MEMORY:
        yield tree.relative(top)
    elif top.is_dir():
        for entry in sorted(tree.walk(top), key=lambda entry: entry.path):
            if tree.kind_of(tree.relative(entry.path)) is PathKind.MEMORY:
                yield tree.relative(entry.path)
    else:
        raise UserError(f"{named}: no page or folder of {tree.relative(tree.long_term)}/; name one, or nothing for all")
