"""What is hidden from search, models and doors until a person has decided whether it is to be forgotten.

Proposals in `memory/review.md` that nobody has ticked or declined name it: the exchanges of a page that was deleted by
hand, and what the person asked to have forgotten or not kept. Nothing is changed by it: to decline brings it back, and
so does undoing the event that proposed it. The person's own files, `show` and `why` have it all the time.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cached_property
from typing import Any

from brainiac.errors import FormatError
from brainiac.events import ForgetProposal, PathKind
from brainiac.formats.frontmatter import edit_meta, split
from brainiac.formats.markdown import edited, find_events, without_link_targets
from brainiac.formats.page import read_units
from brainiac.formats.prompt import prompt_path_of
from brainiac.formats.short_term import Item, ShortTermDocument, ShortTermMemory
from brainiac.storage.review import DECISIONS
from brainiac.storage.statements import StatementLog, text_hash, without_items
from brainiac.storage.store import Store

_PARAGRAPH = re.compile(
    r"(?:^(?![ \t]*\r?$|#{1,6} |---[ \t]*\r?$)[^\n]+(?:\n|\Z))+|^#{1,6} [^\n]*(?:\n|\Z)", re.MULTILINE
)  # or a heading


class Withheld:
    """What is hidden in a brain, as of the moment this is made.

    Args:
        store: The brain.

    Attributes:
        exchanges: The ids of the hidden exchanges.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        found = hiding_proposals(store.present)
        proposals = [proposal for _, proposal in found]
        self._last_event = max((event for event, _ in found), default="")
        self.exchanges = frozenset(exchange for proposal in proposals for exchange in proposal.exchanges)
        self._blocks = frozenset(block for proposal in proposals if proposal.is_hiding for block in proposal.blocks)
        self._items = frozenset(item for proposal in proposals if proposal.is_hiding for item in proposal.items)
        self._rests: dict[str, str | None] = {}  # `rest_of`, folded, by path; None: nothing is hidden

    def __bool__(self) -> bool:
        return bool(self.exchanges or self._blocks or self._items)

    def hides(self, path: str, text: str, exchange: str = "") -> bool:
        """Return whether words of a file stand in what is hidden of it, and nowhere else in it.

        Args:
            path: Of the file.
            text: The words.
            exchange: The id of the exchange that they stand in; "" for none.
        """
        if not self or exchange in self.exchanges:
            return bool(self)
        if path not in self._rests:
            whole = self._store.read_text(path) or ""
            rest = self.rest_of(path, whole)
            self._rests[path] = None if rest == whole else unescaped(rest)
        rest_of_file = self._rests[path]
        return rest_of_file is not None and unescaped(text) not in rest_of_file

    def rest_of(self, path: str, text: str) -> str:
        """Return the text of a file without what is hidden in it."""
        kind = self._store.tree.kind_of(path) if self else None
        if kind is PathKind.SHORT_TERM:
            try:
                document = ShortTermDocument(text).without_event(*self.exchanges)
            except FormatError:
                return ""
            return str(without_items(document, self._hides_item)[0].with_summary("", self._hides_summary))
        if kind is PathKind.INDEX_PAGE:  # its lines may quote their pages
            pages = {page for page, _ in self._blocks}
            return "".join(line for line in text.splitlines(keepends=True) if not any(page in line for page in pages))
        if kind in (PathKind.MEMORY, PathKind.ARCHIVED):
            return self._rest_of_page(path, text)
        prompts = (path, *prompt_path_of(path)) if kind else ()
        return text if self._prompts.isdisjoint(prompts) else ""

    @cached_property
    def _prompts(self) -> frozenset[str]:
        """The paths of the prompts of the hidden exchanges."""
        sql = "SELECT prompt FROM exchanges WHERE event IN (SELECT value FROM json_each(?))"
        rows = self._store.projection.query(sql, json.dumps(sorted(self.exchanges)))
        return frozenset(prompt for (prompt,) in rows)

    def short_term(self, memory: ShortTermMemory) -> ShortTermMemory:
        """Return short-term memory without the hidden exchanges, and without the items that are or rest on such.

        Nor the summary, as far as a process wrote it before: it may repeat what is hidden.
        """
        if not self:
            return memory
        lists = (memory.goals, memory.facts, memory.tasks)
        goals, facts, tasks = (tuple(item for item in items if not self._hides_item(item)) for items in lists)
        events = tuple(event for event in memory.events if event.id not in self.exchanges)
        paragraphs = (part for part in memory.summary.split("\n\n") if not self._hides_summary(part))
        summary = "\n\n".join(paragraphs)
        return replace(memory, summary=summary, goals=goals, facts=facts, tasks=tasks, events=events)

    def _hides_summary(self, paragraph: str) -> bool:
        """Return whether a run wrote this paragraph before what is hidden was said last: it may repeat it."""
        return self._log.is_own_summary(paragraph, self._last_event)

    def _hides_item(self, item: Item) -> bool:
        sources = self._log.sources_of_item(item.text)
        return text_hash(item.text) in self._items or bool(sources and sources <= self.exchanges)

    def _rest_of_page(self, path: str, text: str) -> str:
        """Return the text of a page without its hidden exchanges and blocks, nor the summary, which may repeat them."""
        if any(name in text for name in self.exchanges):
            exchanges = (placed for placed in find_events(text) if placed.event.id in self.exchanges)
            text = edited(text, ((placed.start, placed.end, "") for placed in exchanges))
        if not self._blocks:
            return text
        try:
            meta, _ = split(text, path)
        except FormatError:
            return ""
        hashes = {digest for page, digest in self._blocks if page in (meta.get("uuid"), path)}
        if not hashes:
            return text
        text = edited(text, ((*span, "") for span in units_of(text) if block_hash(text[slice(*span)]) in hashes))
        return edit_meta(text, summary="") if meta.get("summary") else text

    @cached_property
    def _log(self) -> StatementLog:
        return StatementLog(self._store)


def hiding_proposals(store: Store) -> list[tuple[str, ForgetProposal]]:
    """Return the proposals whose exchanges are hidden, as a person has not decided yet whether to forget them.

    Each with the id of the event that made it.

    That of a deleted page that was put back is none of them.
    """
    store.projection.follow()
    rows = store.projection.query(
        f"""SELECT event, data FROM proposals WHERE is_hiding
        AND id NOT IN (SELECT proposal FROM {DECISIONS} WHERE how != 'lapsed')
        AND event NOT IN (SELECT event FROM undone)"""
    )
    proposals = [(event, ForgetProposal.from_json(json.loads(data))) for event, data in rows]
    return [row for row in proposals if not (row[1].deleted and store.tree.absolute(row[1].path).exists())]


def units_of(text: str) -> list[tuple[int, int]]:
    """Return the offsets of what is forgotten as a whole below the front matter of a file; none overlap.

    These are its exchanges, statements (with their nested lists), headings and paragraphs.
    """
    spans = list[tuple[int, int]]()
    for unit in read_units(text, split_or_all(text)[1]):
        span = unit.start, unit.end
        spans += [span] if unit.part else [match.span() for match in _PARAGRAPH.finditer(text, *span)]
    return spans


def split_or_all(text: str) -> tuple[dict[str, Any], int]:
    """Return a file's front matter and the offset below it; where it is broken, all is body."""
    try:
        return split(text)
    except FormatError:
        return {}, 0


def block_hash(text: str) -> str:
    """Return the hash by which a block of a page is known, which a link that is repaired does not change."""
    return text_hash(without_link_targets(text))


def matching_blocks(text: str, words: str) -> list[str]:
    """Return the blocks of a page that some words stand in."""
    blocks = (text[start:end] for start, end in units_of(text))
    return [block for block in blocks if unescaped(words) in unescaped(block)]


def unescaped(text: str) -> str:
    """Return a text without line breaks and Markdown escapes, to find it in a file."""
    return " ".join(text.replace("\\", "").split())
