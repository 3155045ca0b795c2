"""What a consolidating call is shown of long-term memory: the statements near to what was said, and names of pages.

Nothing here decides what is kept: a statement that is not shown stays as it is. Words only rank, in any language.

Stand-ins are not shown: statements that the offline engine kept of exchanges which a model reads only later. The model
then decides as if it had been there from the start. A stand-in whose words its operations have is taken out, so that
nothing is said twice; its words are still on the page of their day. Any other stand-in stays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from brainiac.brain import Brain
from brainiac.errors import FormatError
from brainiac.formats.markdown import blocks_of
from brainiac.formats.page import STEPS, Memory, Statement, parse_memory
from brainiac.formats.short_term import StmEvent
from brainiac.llm.schemas import PageName
from brainiac.search.documents import Hit, HitKind
from brainiac.search.query import searches
from brainiac.text.tokens import coverage, trigrams, words

from .apply import Candidate
from .draft import USER, CurrentStatement, MemoryDraft

MAX_SHOWN = 90  # statements in one call: of a month, 84 of 84 that its news changed were among the nearest 90
MAX_RANKED = 3_000  # statements that are compared with what was said; in a larger memory a search picks the pages
MAX_PAGES = 150
MIN_NAME, MIN_FOREIGN_NAME = 3, 2  # characters: a shorter title stands in a text by chance
MAX_BRIEF = 60  # characters of the line about a page that is not near
CARRIED = 0.7  # the share of a statement's character trigrams that a model's words and quotes must have
AI_SHARE = 0.7  # what a word of the AI's counts beside one of the person's
WEAK = 0.3  # a share of the best score: what has no more comes after everything else
ALL_STEPS = -1  # in place of an offset: all steps of a how-to
_MAX_HITS = 10  # statements searched for each block of what was said, and blocks of it


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is shown or left out together: a statement, or all steps of a how-to, which changes as a whole.

    Attributes:
        path: Its page.
        start: The offset of the statement on the page, or `ALL_STEPS`.
        pieces: The character trigrams of its words.
    """

    path: str
    start: int
    pieces: frozenset[str]


def known_for(
    brain: Brain, draft: MemoryDraft, memories: Sequence[Memory], said: Sequence[StmEvent]
) -> tuple[list[CurrentStatement], list[PageName]]:
    """Return the current statements that exchanges may be about, page by page, the likeliest page first, and pages.

    Of the pages, those near to what was said come first, and the others are described briefly.

    Args:
        brain: The brain.
        draft: The pages with the changes of the run so far.
        memories: The pages that a decision may change.
        said: The exchanges.
    """
    texts = [text for event in said for text in (event.user, event.ai)]
    named_paths, to_rank = names_in(memories, texts).keys(), memories
    # of a large memory the pages are compared that a search or a name finds
    if sum(len(memory.current_statements) for memory in memories) > MAX_RANKED:
        paths = named_paths | draft.read_pages.keys()
        for block in (block for text in texts for block in blocks_of(text)[:_MAX_HITS]):
            paths |= {hit.path for hit in near_hits(brain, block, {"statement"})}
        to_rank = [memory for memory in memories if memory.path in paths]
    entries = _ranked(to_rank, said)[:MAX_SHOWN]
    by_path = {memory.path: memory for memory in memories}
    near_paths = list(dict.fromkeys(entry.path for entry in entries))
    near = {(entry.path, entry.start) for entry in entries}
    statements = [
        current
        for path in near_paths
        for current in draft.statements_of(by_path[path])
        if (path, current.statement.start) in near and current.statement.section != STEPS
    ]
    # an operation never names the page of a day
    pages = [memory for memory in memories if draft.pages.kind_of(memory.path) != "events"]
    names = _page_names(pages, [*near_paths, *sorted(named_paths - set(near_paths))])
    return statements, [
        replace(name, is_old=_is_summary_old(brain, draft, by_path[name.path])) if name.is_near else name
        for name in names
    ]


def near_hits(brain: Brain, text: str, kinds: Collection[HitKind]) -> list[Hit]:
    """Return what of these kinds a search finds for a text, repetitions of it among them."""
    # as private: no remote embedder is called for a search that nobody asked for
    return brain.recall.search(
        searches(text, ())[0], limit=2 * _MAX_HITS, kinds=kinds, now=brain.now(), is_private=True, include_repeats=True
    )


def _ranked(memories: Iterable[Memory], said: Sequence[StmEvent]) -> list[_Entry]:
    """Return the statements and how-tos of pages, the nearest to what was said first.

    Each exchange puts them in an order, by the character trigrams that they share with it; a rare trigram counts more.
    The result begins with the first of every exchange, then come the second ones, so that a short message has as many
    near statements as a long one.
    """
    own, names = dict[str, list[_Entry]](), dict[str, list[frozenset[str]]]()  # by path; trigrams of title and aliases
    for memory in memories:
        own[memory.path] = list(_entries(memory))
        names[memory.path] = [trigrams(name) for name in (memory.title, *memory.aliases)]
    counts = Counter(piece for entries in own.values() for entry in entries for piece in entry.pieces)
    n_entries = sum(map(len, own.values()))
    weights = {piece: math.log(1 + n_entries / (1 + count)) for piece, count in counts.items()}

    def weight(pieces: Iterable[str]) -> float:
        return sum(weights.get(piece, 0.0) for piece in pieces)

    def score(pieces: frozenset[str]) -> float:
        """Return how much of some trigrams is among those of the person's text and the AI's."""
        common = weight(pieces & by_person) + AI_SHARE * weight((pieces & by_ai) - by_person)
        # a long statement has more in common with anything
        return common / math.sqrt(weight(pieces) or 1.0)

    ranks: dict[_Entry, tuple[int, float]] = {}
    for event in said:
        by_person, by_ai, scores = trigrams(event.user), trigrams(event.ai), dict[_Entry, float]()
        for path, entries in own.items():
            of_entries = {entry: score(entry.pieces) for entry in entries}
            # the best entry of a page, or its names, lift all of its entries: news about one often makes another untrue
            of_page = max([*of_entries.values(), *map(score, names[path])], default=0.0)
            scores |= {entry: near + of_page for entry, near in of_entries.items()}
        enough = WEAK * max(scores.values(), default=0.0)
        for place, entry in enumerate(sorted(scores, key=lambda entry: -scores[entry])):
            # what has next to nothing in common with a message takes no place from what is near to another one
            rank = (place if scores[entry] > enough else len(scores), -scores[entry])
            ranks[entry] = min(ranks.get(entry, rank), rank)
    return sorted(ranks, key=lambda entry: ranks[entry])


def _entries(memory: Memory) -> Iterator[_Entry]:
    """Yield what a page may be shown by: each current statement, and the steps of a how-to together."""
    for statement in memory.current_statements:
        if statement.section != STEPS:
            yield _Entry(memory.path, statement.start, trigrams(statement.text))
    if steps := [statement.text for statement in memory.current_statements if statement.section == STEPS]:
        yield _Entry(memory.path, ALL_STEPS, trigrams("\n".join(steps)))


def names_in(memories: Iterable[Memory], texts: Iterable[str]) -> dict[str, str]:
    """Return the longest name, title or alias, that stands in one of the texts, by path of each page named there."""
    padded = [f" {' '.join(words(text))} " for text in texts]  # with blanks, so that no part of a word matches
    longest: dict[str, str] = {}
    for memory in memories:
        for name in (" ".join(words(name)) for name in (memory.title, *memory.aliases)):
            # other scripts than Latin may have no spaces between words, and short names
            wanted, shortest = (f" {name} ", MIN_NAME) if name.isascii() else (name, MIN_FOREIGN_NAME)
            if len(name) >= max(shortest, len(longest.get(memory.path, ""))) and any(wanted in text for text in padded):
                longest[memory.path] = name
    return longest


def _page_names(memories: Sequence[Memory], near_paths: Sequence[str]) -> list[PageName]:
    """Return the pages to show: the near ones in their order, then the user's own, then the others, briefly."""
    places = {path: place for place, path in enumerate(near_paths)}
    pages = sorted(memories, key=lambda page: (places.get(page.path, len(places)), page.subject != USER))
    names = []
    for page in pages[:MAX_PAGES]:
        is_near, current, summary = page.path in places, page.current_statements, str(page.meta.get("summary") or "")
        steps = [statement.text for statement in current if statement.section == STEPS]
        # of a near one its steps or its summary, since its statements are shown anyway; else its beginning
        about = " ".join(f"{number}. {step}" for number, step in enumerate(steps, 1)) or summary
        if not is_near:
            about = (summary or next((statement.text for statement in current), ""))[:MAX_BRIEF]
        names.append(PageName(page.path, (page.title, *page.aliases), about, is_near))
    return names


def _is_summary_old(brain: Brain, draft: MemoryDraft, memory: Memory) -> bool:
    """Return whether a page's summary was written before its statements last changed or ended."""
    summary = memory.meta.get("summary")
    ended = [change for change in draft.log.changes_of(memory.uuid) if change.former.hash] if summary else []
    if not ended:
        return False
    sql = "SELECT before FROM changes WHERE event = ? AND path = ?"
    text = brain.kept_text(brain.projection.value(sql, ended[-1].event.id, memory.path))
    with suppress(FormatError):
        return text is not None and parse_memory(memory.path, text).meta.get("summary") == summary
    return False


# --- statements that are not shown ---------------------------------------------------------------------------------


# What was kept without a model of exchanges that no model has read: the exchanges that each statement rests on, oldest
# first, by its page (uuid or path) and block id; block id "" means a whole page.
StandIns = Mapping[tuple[str, str], Sequence[str]]


def is_stand_in(stand_ins: StandIns, page: str, statement: Statement) -> bool:
    """Return whether a statement is a stand-in; its page is given by uuid or path."""
    return (page, statement.block_id) in stand_ins or (page, "") in stand_ins


def has_only_stand_ins(stand_ins: StandIns, memory: Memory) -> bool:
    """Return whether a page has no other statements than stand-ins, or is a note that was kept whole."""
    page, current = memory.uuid or memory.path, memory.current_statements
    is_all = bool(current) and all(is_stand_in(stand_ins, page, statement) for statement in current)
    return (page, "") in stand_ins or is_all


def steps_to_take_out(
    stand_ins: StandIns, draft: MemoryDraft, exchanges: Collection[str], steps: Sequence[Candidate]
) -> Iterator[Candidate]:
    """Yield the steps that take out the stand-ins whose words a model's steps have by now.

    Args:
        stand_ins: The stand-ins.
        draft: The page drafts, with these steps carried out.
        exchanges: The exchanges that the model has read by now.
        steps: The steps of its operations.
    """
    target_ids = {target.id for step in steps for target in step.targets}
    for (page, block), sources in stand_ins.items():
        if not block:
            continue  # a note that was kept whole stays
        read_ids = set(sources).intersection(exchanges)
        successors = [
            step
            for step in steps
            if step.operation.text and not step.proposal and not step.is_taking_out
            if any(event.id in read_ids for event in step.events)
        ]
        statement = draft.statement(f"{page}#{block}") if successors else None
        if statement is None or not statement.is_ours or statement.id in target_ids:
            continue
        # lines that a person wrote below the statement would lose their meaning
        has_lines = draft.opened(statement.path).has_lines_below(block)
        operations = [step.operation for step in successors]
        texts = [text for operation in operations for text in (operation.text, *operation.steps)]
        texts += [row.quote for operation in operations for row in operation.evidence if row.exchange in read_ids]
        if not has_lines and coverage(statement.text, "\n".join(texts)) >= CARRIED:
            # `same` without a text writes nothing
            step = successors[-1].without_content(action="same", ids=[])
            yield replace(step, path=statement.path, targets=(statement,), is_taking_out=True)
