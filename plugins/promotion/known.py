"""What a consolidating call is shown of long-term memory: the statements near to what was said, and names of pages.

Nothing here decides what is kept: a statement that is not shown stays as it is. Words only rank, in any language.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from brainiac.brain import Brain
from brainiac.formats.markdown import blocks_of
from brainiac.formats.page import STEPS, Memory, Statement
from brainiac.formats.short_term import StmEvent
from brainiac.llm.schemas import PageName
from brainiac.search.documents import Hit
from brainiac.search.query import searches
from brainiac.text.tokens import trigrams, words

from .draft import USER, CurrentStatement, Draft

MAX_SHOWN = 90  # statements in one call: of a month, 84 of 84 that its news changed were among the nearest 90
MAX_RANKED = 3_000  # statements that are compared with what was said; in a larger memory a search picks the pages
MAX_PAGES = 150
MAX_BRIEF = 60  # characters of the line about a page that is not near
AI_SHARE = 0.7  # what a word of the AI's counts beside one of the person's
WEAK = 0.3  # a share of the best score: what has no more comes after everything else
_MAX_HITS = 10  # statements searched for each block of what was said, and blocks of it


@dataclass(frozen=True, slots=True)
class Known:
    """What a consolidating call is shown.

    Attributes:
        statements: Current statements, page by page, the likeliest page first.
        pages: The names of pages: those near to what was said first, the others briefly.
    """

    statements: list[CurrentStatement]
    pages: list[PageName]


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is shown or left out as one: a statement, or all steps of a how-to, which changes as a whole.

    Attributes:
        path: Its page.
        start: The offset of the statement on the page; -1 for a how-to.
        pieces: The character trigrams of its words.
    """

    path: str
    start: int
    pieces: frozenset[str]


def known_for(brain: Brain, draft: Draft, memories: Sequence[Memory], said: Sequence[StmEvent]) -> Known:
    """Return the statements and pages that exchanges may be about.

    Args:
        brain: The brain.
        draft: The pages with the changes of the run so far.
        memories: The pages that a decision may change.
        said: The exchanges.
    """
    named = _named_in(memories, [text for event in said for text in (event.user, event.ai)])
    entries = _ranked(_candidates(brain, draft, memories, said, named), said)[:MAX_SHOWN]
    starts: dict[str, set[int]] = {}
    for entry in entries:
        starts.setdefault(entry.path, set()).add(entry.start)
    by_path = {memory.path: memory for memory in memories}
    statements = [
        row
        for path, shown in starts.items()
        for row in draft.statements_of(by_path[path])
        if row.statement.start in shown and row.statement.section != STEPS
    ]
    pages = [memory for memory in memories if draft.pages.kind_of(memory.path) != "events"]  # no operation names a day
    return Known(statements, _page_names(pages, [*starts, *sorted(named - starts.keys())]))


def _candidates(
    brain: Brain, draft: Draft, memories: Sequence[Memory], said: Sequence[StmEvent], named: set[str]
) -> list[Memory]:
    """Return all pages of a memory that can be compared with what was said; of a large one those that may be near."""
    if sum(len(_current(memory)) for memory in memories) <= MAX_RANKED:
        return list(memories)
    paths = named | draft.page_drafts.keys()
    paths |= {hit.path for event in said for text in (event.user, event.ai) for hit in _hits(brain, text)}
    return [memory for memory in memories if memory.path in paths]


def _hits(brain: Brain, text: str) -> Iterator[Hit]:
    """Yield the statements that a search finds for the first blocks of a text."""
    for block in blocks_of(text)[:_MAX_HITS]:
        yield from brain.recall.search(  # `is_private`: no remote embedder is called for a search that nobody asked for
            searches(block, ())[0],
            limit=_MAX_HITS,
            kinds={"statement"},
            now=brain.now(),
            is_private=True,
        )


def _ranked(memories: Iterable[Memory], said: Sequence[StmEvent]) -> list[_Entry]:
    """Return the statements and how-tos of pages, the nearest to what was said first.

    Each exchange orders them by what they have in common with it, rare pieces of words before common ones; the first
    of every exchange come first, then the second of every one: a short message has as many near ones as a long one.
    A page's best statement and its names lift the whole page, since news about one of its statements often makes
    another untrue.
    """
    entries = {memory.path: list(_entries(memory)) for memory in memories}
    names = {memory.path: [trigrams(name) for name in (memory.title, *memory.aliases)] for memory in memories}
    counts = Counter(piece for rows in entries.values() for entry in rows for piece in entry.pieces)
    n_entries = sum(map(len, entries.values()))
    weights = {piece: math.log(1 + n_entries / (1 + count)) for piece, count in counts.items()}

    def weight(pieces: Iterable[str]) -> float:
        return sum(weights.get(piece, 0.0) for piece in pieces)

    def nearness(pieces: frozenset[str], by_person: frozenset[str], by_ai: frozenset[str]) -> float:
        common = weight(pieces & by_person) + AI_SHARE * weight((pieces & by_ai) - by_person)
        return common / math.sqrt(weight(pieces) or 1.0)  # a long statement has more in common with anything

    places: dict[_Entry, tuple[int, float]] = {}
    for event in said:
        by_person, by_ai = trigrams(event.user), trigrams(event.ai)
        scores: dict[_Entry, float] = {}
        for path, rows in entries.items():
            own = {entry: nearness(entry.pieces, by_person, by_ai) for entry in rows}
            of_page = max([*own.values(), *(nearness(name, by_person, by_ai) for name in names[path])], default=0.0)
            scores |= {entry: score + of_page for entry, score in own.items()}
        enough = WEAK * max(scores.values(), default=0.0)
        for place, entry in enumerate(sorted(scores, key=lambda entry: -scores[entry])):
            # what has next to nothing in common with a message takes no place from what is near to another one
            best = (place if scores[entry] > enough else n_entries, -scores[entry])
            places[entry] = min(places.get(entry, best), best)
    return sorted(places, key=lambda entry: places[entry])


def _entries(memory: Memory) -> Iterator[_Entry]:
    """Yield what a page may be shown by: each current statement, and the steps of a how-to together."""
    current = _current(memory)
    for statement in current:
        if statement.section != STEPS:
            yield _Entry(memory.path, statement.start, trigrams(statement.text))
    if steps := [statement.text for statement in current if statement.section == STEPS]:
        yield _Entry(memory.path, -1, trigrams("\n".join(steps)))


def _current(memory: Memory) -> list[Statement]:
    return [statement for statement in memory.statements if not statement.is_history]


def _named_in(memories: Sequence[Memory], texts: Sequence[str]) -> set[str]:
    """Return the paths of the pages whose title or alias stands in a text, whole words as they are."""
    padded = [f" {' '.join(words(text))} " for text in texts]  # with blanks, so that no part of a word matches
    paths = set()
    for memory in memories:
        names = [" ".join(words(name)) for name in (memory.title, *memory.aliases)]
        if any(name and f" {name} " in text for name in names for text in padded):
            paths.add(memory.path)
    return paths


def _page_names(memories: Sequence[Memory], near: Sequence[str]) -> list[PageName]:
    """Return the pages to show: the near ones in their order, then the user's own, then the others, briefly."""
    places = {path: place for place, path in enumerate(near)}
    pages = sorted(memories, key=lambda page: (places.get(page.path, len(places)), page.subject != USER))
    return [
        PageName(page.path, (page.title, *page.aliases), _about(page, page.path in places), page.path in places)
        for page in pages[:MAX_PAGES]
    ]


def _about(memory: Memory, is_near: bool) -> str:
    """Return the line about a page: of a near how-to its steps, else its summary or the beginning of its first line."""
    current = _current(memory)
    steps = [statement.text for statement in current if statement.section == STEPS]
    if is_near and steps:
        return " ".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    summary = str(memory.meta.get("summary") or "")
    if is_near:
        return summary
    return (summary or next((statement.text for statement in current), ""))[:MAX_BRIEF]
