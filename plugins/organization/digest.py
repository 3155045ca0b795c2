"""Unused days compressed into one page: what was said in a line each, linked to the originals in the archive."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from brainiac.events import new_id
from brainiac.formats.dialogue import StmEvent, find_events
from brainiac.formats.links import format_link
from brainiac.formats.memory import Memory, MemoryDocument, new_memory
from brainiac.formats.prose import one_line
from brainiac.storage.folders import title_of_folder
from brainiac.storage.statements import text_hash

from .draft import Draft

NAME, TAG = "digest.md", "digest"
_MAX_WORDS = 200  # characters of what was said that a line shows; the whole is one link away


def compress(
    draft: Draft, folder: str, pages: Iterable[Memory], now: str, day_of: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Write the digest of pages that were put into the archive, or add to the one there is; return its statements.

    Args:
        draft: Knows where the originals will stand.
        folder: Of the digest.
        pages: Episodic memories, as they stand.
        now: ISO 8601 UTC.
        day_of: Returns the person's day of a stamp.
    """
    path = f"{folder}/{NAME}"
    if draft.text(path) is None:
        title = f"{title_of_folder(folder)} in brief"
        draft.make(path, new_memory(title, uuid=new_id(), now=now, tags=[TAG], subject_type="concept"))
    document = MemoryDocument(draft.text(path) or "", path)
    records = []
    for page in sorted(pages, key=_when):
        link = format_link(page.title, posixpath.relpath(draft.place(page.path), folder), page.uuid)
        for line in _lines(page, day_of):
            text = f"{line} ({link})"
            block = document.block_id_for(text)
            document = document.add_statement(text, block)
            records.append(
                {"page": document.memory.uuid, "block": block, "hash": text_hash(text), "since": day_of(_when(page))}
            )
    draft.edit(path, lambda _: str(document))
    return records


def _when(page: Memory) -> str:
    first = next(find_events(page.text), None)
    return first.event.at if first else page.created_at


def _lines(page: Memory, day_of: Callable[[str], str]) -> Iterator[str]:
    events = [placed.event for placed in find_events(page.text)]
    statements = [each.text for each in page.statements if not each.is_history]
    yield from (f"{day_of(event.at)}: {_said(event)}" for event in events)
    if not events:
        yield f"{day_of(page.created_at)}: {_cut(' '.join(statements) or page.title)}"


def _said(event: StmEvent) -> str:
    return f"“{_cut(event.user)}”" if event.user.strip() else _cut(event.ai)


def _cut(text: str) -> str:
    text = one_line(text).replace("[", "(").replace("]", ")")
    return text if len(text) <= _MAX_WORDS else text[: _MAX_WORDS - 1].rsplit(" ", 1)[0] + "…"
