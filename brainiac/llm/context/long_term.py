"""What was retrieved, as a model reads it: whole statements with date, title and path, as data (seeds C1, R8)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from brainiac.library import Library
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.context.budget import Count, shortened
from brainiac.llm.context.fence import one_line, quoted, reference
from brainiac.search.documents import Hit

HEADING = "## Relevant Long-Term Memory"
SHARE = 0.35
PAGE_TOKENS = 400
_CONVERSATIONS = 256


class Places:
    """Keeps memories that stay relevant in a conversation where they stood, so that the text before them lives on."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._orders: OrderedDict[str, list[str]] = OrderedDict()

    def arranged(self, conversation: str, keys: Sequence[str]) -> list[str]:
        """Return the keys, those that stood here last time first and in that order, new ones after them."""
        with self._mutex:
            before = self._orders.pop(conversation, [])
            wanted = set(keys)
            kept = [key for key in before if key in wanted]
            order = kept + [key for key in dict.fromkeys(keys) if key not in set(kept)]
            self._orders[conversation] = order
            while len(self._orders) > _CONVERSATIONS:
                self._orders.popitem(last=False)
        return order


def long_term_block(
    hits: Sequence[Hit],
    shown: Collection[str],
    conversation: str,
    places: Places,
    limits: tuple[int, int],
    count: Count,
) -> Block:
    """Return the memories that were found, one part a page.

    Args:
        hits: Best first, by their days (`dated`).
        shown: Ids of exchanges that stand in the event log already; they are not repeated.
        conversation: Whose turn it is.
        places: Where memories stood before.
        limits: At most so many pages, and the whole budget in tokens.
        count: Tokens of a text.
    """
    max_pages, limit_tokens = limits
    pages: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.kind != "exchange" or hit.anchor not in shown:
            pages.setdefault(hit.path, []).append(hit)
    chosen = _chosen(list(pages.items())[:max_pages], int(limit_tokens * SHARE), count)
    order = places.arranged(conversation, list(chosen))
    return Block("long-term memory", [chosen[path] for path in order], Stability.LONG_TERM, HEADING, cut_order=10)


def _chosen(pages: Iterable[tuple[str, list[Hit]]], room: int, count: Count) -> dict[str, str]:
    """The best pages go in first; which are left out is decided by relevance, not by where they stand."""
    chosen: dict[str, str] = {}
    for path, hits in pages:
        text = page_text(hits, count)
        room -= count(text) + 1
        if room >= 0:
            chosen[path] = text
    return chosen


def dated(library: Library, hits: Iterable[Hit]) -> list[Hit]:
    """Return hits that bear the person's day of their moment; what is none is made harmless before it is cut."""
    return [replace(hit, at=library.day_of(one_line(hit.at))) for hit in hits]


def page_text(hits: Sequence[Hit], count: Count) -> str:
    """Return what was found on one page: its link, its date, then whole statements or exchanges as data."""
    first = hits[0]
    lines = [f"### {reference(first.title, first.path, first.uuid)}{_dated(first)}"]
    seen: set[str] = set()
    for hit in hits:
        if hit.text.strip() in seen:
            continue
        seen.add(hit.text.strip())
        if hit.kind == "exchange":
            named = f", exchange {one_line(hit.anchor)}" if hit.anchor else ""
            lines.append(f"{'AI' if hit.speaker == 'ai' else 'User'}{_dated(hit)}{named}:")
        lines.append(quoted(_said(hit, count)))
    return "\n".join(lines)


def _said(hit: Hit, count: Count) -> str:
    text = shortened(hit.text, PAGE_TOKENS, count)
    is_bare = hit.kind == "statement" and not text.lstrip().startswith(("-", "*"))
    return f"- {text}" + (f" ^{one_line(hit.anchor)}" if hit.anchor else "") if is_bare else text


def _dated(hit: Hit) -> str:
    return f", {one_line(hit.at)}" if hit.at else ""
