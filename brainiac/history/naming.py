"""What a person means by the words after `why` and `forget`: a page, a statement, or an exchange."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from brainiac.brain import Brain
from brainiac.errors import ConfinementError, FormatError, UserError
from brainiac.events import PathKind
from brainiac.formats.frontmatter import split
from brainiac.formats.memory import Memory, Statement, parse_memory, title_of
from brainiac.text.tokens import coverage

NEAR_SHARE = 0.6  # of the words asked for that a statement must have to be taken for what was meant
_PAGES = (PathKind.MEMORY, PathKind.ARCHIVED)


@dataclass(frozen=True, slots=True)
class Named:
    """A page, and the statement on it that is meant; None for the whole page.

    Attributes:
        is_exact: It was named by its path, title, id or exact words.
    """

    memory: Memory
    statement: Statement | None = None
    is_exact: bool = True


def find_memory(brain: Brain, named: str) -> Memory | None:
    """Return the page of that path, uuid or title.

    Raises:
        UserError: Several pages have the title.
    """
    try:
        path = brain.tree.relative(brain.tree.confine(named))
    except ConfinementError:
        path = ""
    if brain.tree.kind_of(path) in _PAGES and (text := brain.read_text(path)) is not None:
        return parse_memory(path, text)
    wanted = " ".join(named.split()).casefold()
    found = []
    for path, text in _texts(brain):
        try:
            meta, offset = split(text, path)
        except FormatError:
            continue
        if wanted in (str(meta.get("uuid", "")).casefold(), title_of(meta, text, offset, path).casefold()):
            found.append(path)
    if len(found) > 1:
        raise UserError(f"{len(found)} pages are called {named!r}: {', '.join(sorted(found))}; name one by its path")
    return parse_memory(found[0], brain.read_text(found[0]) or "") if found else None


def find_statement(brain: Brain, named: str) -> Named | None:
    """Return the statement of that block id or text, else the nearest one that has most of the words.

    Raises:
        UserError: Several pages have it.
    """
    wanted, block = " ".join(named.split()).casefold(), named.strip().removeprefix("^")
    found = []
    for path, text in _texts(brain):
        if block not in text and wanted[:20] not in " ".join(text.split()).casefold():
            continue
        for memory, one in _statements(path, text):
            if one.block_id == block or " ".join(one.text.split()).casefold() == wanted:
                found.append(Named(memory, one))
    if len(found) > 1:
        where = ", ".join(f"{each.memory.path} ^{each.statement.block_id}" for each in found if each.statement)
        raise UserError(f"{named!r} stands {len(found)} times: {where}; name the page, or the id of one")
    return found[0] if found else _nearest(brain, named)


def _nearest(brain: Brain, named: str) -> Named | None:
    best: tuple[float, Named] | None = None
    for hit in brain.recall.search(named, limit=20, kinds={"statement"}, include_archive=True, is_private=True):
        share = coverage(named, hit.text)
        if share < NEAR_SHARE or not hit.anchor:
            continue
        likeness = share + difflib.SequenceMatcher(None, named.casefold(), hit.text.casefold()).ratio()
        for memory, one in _statements(hit.path, brain.read_text(hit.path) or ""):
            if one.block_id == hit.anchor and (best is None or likeness > best[0]):
                best = likeness, Named(memory, one, is_exact=False)
    return best[1] if best else None


def nearest_texts(brain: Brain, named: str) -> list[str]:
    """Return what comes nearest to words that name nothing, for a message."""
    return [
        f"“{hit.text}” ({hit.path})"
        for hit in brain.recall.search(named, limit=3, include_archive=True, is_private=True)
    ]


def _texts(brain: Brain) -> Iterator[tuple[str, str]]:
    for entry in brain.tree.walk(brain.tree.long_term, brain.tree.archive):
        path = brain.tree.relative(entry.path)
        if brain.tree.kind_of(path) in _PAGES and (text := brain.read_text(path)) is not None:
            yield path, text


def _statements(path: str, text: str) -> Iterator[tuple[Memory, Statement]]:
    try:
        memory = parse_memory(path, text)
    except FormatError:
        return
    yield from ((memory, one) for one in memory.statements)
