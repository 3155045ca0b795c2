"""Long-term and short-term memory as a model reads them: each a block of working memory.

Of long-term memory: pages that were found, notes in focus, most linked pages. Statements are shown whole, with date,
title and path, and quoted as data.

Short-term memory is shown so that each request begins with the text of the last one, which providers cache. The file's
event log is newest first; here it is oldest first, and each turn appends to it. The lists of Structured Data stand
above the log and change with nearly every turn, which would invalidate the cache of the whole log. So the lists are
shown as they were when the log began, and each change of them after the event that brought it.
"""

from __future__ import annotations

import math
import posixpath
import re
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, islice
from urllib.parse import unquote

from brainiac.errors import FormatError
from brainiac.events import PathKind
from brainiac.formats.authors import PERSON, Author, author_in, author_of_statement
from brainiac.formats.discretion import Audience
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import unescape
from brainiac.formats.prompt import Exchange, Prompt
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.library import Library
from brainiac.llm.context.blocks import Block, Count, Stability, preview, quoted, reference, safe_line, shortened
from brainiac.llm.gate import Gate
from brainiac.search.documents import Hit
from brainiac.search.documents import Page as LinkedPage
from brainiac.storage.statements import StatementLog
from brainiac.storage.store import Store
from brainiac.text.tokens import as_sentence, coverage

LONG_TERM_HEADING = "## Relevant Long-Term Memory"
MEMORY_HITS = 64  # of a query; 2,000 tokens hold about 50 turns of talk
FAR = math.log(500)  # what is so many times less likely to answer than the best hit is not shown
SAME = 0.9  # share of an exchange's trigrams that stand in the words a statement rests on: then they say the same
PAGE_TOKENS = 400
_PERSON = "User"
BY_HAND = "by hand"  # behind a statement that the person wrote or edited themselves
FOCUS_SHARE = 0.25
MAX_FOCUSED = 10
HUBS = 10
# more lenient than a page's links (`formats.markdown`): in a prompt people write paths with spaces in them
_LINK = re.compile(
    r"!?\[\[(?P<wiki>[^\[\]\n]{1,300})\]\]"
    r'|(?<!!)\[[^\[\]\n]{0,300}\]\(<?(?P<path>[^)<>\n"]{1,500}?)>?(?:\s+"(?P<title>[^"\n]*)")?\)'
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


# --- pages that were found -----------------------------------------------------------------------------------------


def long_term_block(store: Store, hits: Sequence[Hit], logged_ids: Collection[str], room: int, count: Count) -> Block:
    """Return the block of what is near among the hits of a search, one part for each page, within a number of tokens.

    Args:
        store: The brain, for the person's days.
        hits: The hits, best first.
        logged_ids: Ids of exchanges that the event log shows already; they are left out.
        room: How many tokens the block may have, its heading among them.
        count: Returns the tokens of a text.
    """
    hits = [hit for hit in with_hand(store, hits) if hit.kind != "exchange" or hit.anchor not in logged_ids]
    asked = {(hit.anchor, hit.score) for hit in hits if hit.speaker == "user"}
    distinct: dict[tuple[str, str], Hit] = {}  # several queries may find the same statement
    for hit in hits:
        # of a how-to that is not asked for the line that is nearest is shown
        is_line = hit.path != hits[0].path and _is_how_to(store, hit)
        key = hit.path, "" if is_line else hit.text.strip()
        is_reply = hit.speaker == "ai" and (hit.anchor, hit.score) in asked
        # a search brings the reply to each question that it finds: the best hit's is shown, tools read the others
        if is_reply and (hit.anchor, hit.score) == (hits[0].anchor, hits[0].score):
            key = (hit.path, "")
            distinct[key] = replace(hit, text=f"{distinct[key].text}\n\n{hit.text}") if key in distinct else hit
        elif not is_reply:
            distinct.setdefault(key, hit)
    pages: dict[str, list[Hit]] = {}
    room -= count(LONG_TERM_HEADING) + 1  # the heading and its line break
    worth = _worth_most(store, list(distinct.values()), room, count)
    # without the exchanges whose words are those that statements among them rest on
    log, words = StatementLog(store), dict[str, str]()
    for hit in (hit for hit in worth if hit.kind == "statement"):
        for said in log.evidence_of(hit.uuid or hit.path, hit.anchor, unescape(hit.text)):
            words[said.exchange] = f"{words.get(said.exchange, '')} {said.quote}"
    chosen = [
        hit
        for hit in worth
        if hit.kind != "exchange" or hit.former or coverage(hit.text, words.get(hit.anchor, "")) < SAME
    ]
    for hit in chosen:
        pages.setdefault(hit.path, []).append(hit)
    parts = [page_text(store, page, count) for page in pages.values()]
    keys = frozenset(hit.key for hit in chosen)
    return Block("long-term memory", parts, Stability.LONG_TERM, LONG_TERM_HEADING, cut_order=10, hits=keys)


def with_hand(store: Store, hits: Iterable[Hit]) -> list[Hit]:
    """Return hits; statements of long-term memory that the person wrote or edited themselves are marked as such."""
    log, top = StatementLog(store), f"{store.tree.relative(store.tree.long_term)}/"
    return [
        replace(hit, is_by_hand=not log.wrote(hit.uuid or hit.path, hit.anchor, unescape(hit.text)))
        if hit.kind == "statement" and hit.origin == PERSON and hit.anchor and hit.path.startswith(top)
        else hit
        for hit in hits
    ]


def _is_how_to(store: Store, hit: Hit) -> bool:
    """Return whether a hit is of a how-to."""
    return hit.path.startswith(f"{store.tree.relative(store.tree.long_term)}/skills/")


def _worth_most(store: Store, hits: Sequence[Hit], room: int, count: Count) -> list[Hit]:
    """Return the hits with the highest likelihood per token, as many as are near and fit into `room` tokens.

    A score is a log-likelihood. The tokens of a page's head count with the first hit that is chosen of it, so that a
    further hit of the same page costs less than one of another page. Where the next one would be far behind the best,
    what is left costs more or is farther; only of the best hit's page the rest of a how-to, or of a text, is taken too.
    """
    # a hit that a plugin moved forward is worth as much as those behind it
    worth = list(accumulate((hit.score for hit in reversed(hits)), max))[::-1]
    first = {hit.path: hit for hit in reversed(hits)}
    # two for the line breaks behind the head and the line `User:`
    head_tokens = {path: count(_head(store, hit)) + count(f"{_PERSON}:") + 2 for path, hit in first.items()}
    hit_tokens, whole = [], set[int]()
    for number, hit in enumerate(hits):
        lines, speaker = _lines(hit, count), _speaker(store, hit, first[hit.path])
        # the line `User:` is shown for many hits
        lines = lines if speaker in ("", _PERSON) else [f"{speaker}:", *lines]
        hit_tokens.append(sum(count(line) + 1 for line in lines))
        if hit.path == hits[0].path and (hit.kind == "memory" or _is_how_to(store, hit)):
            whole.add(number)
    chosen: list[Hit] = []
    candidates = set(range(len(hits)))
    while candidates:
        tokens = {number: hit_tokens[number] + head_tokens.get(hits[number].path, 0) for number in candidates}
        # the logarithm of likelihood / tokens; of equal ones the first
        best = max(candidates, key=lambda number: (worth[number] - math.log(tokens[number]), -number))
        if worth[best] < worth[0] - FAR and best not in whole:
            candidates &= whole
            continue
        candidates.remove(best)
        if tokens[best] <= room:
            room -= tokens[best]
            head_tokens.pop(hits[best].path, None)
            chosen.append(hits[best])
    return chosen


def page_text(store: Store, hits: Sequence[Hit], count: Count, *, has_ids: bool = False) -> str:
    """Return the hits of one page as text: its link and date, then its statements or exchanges in order, quoted.

    Args:
        store: The brain, for the person's days.
        hits: Of one page.
        count: Returns the tokens of a text.
        has_ids: Whether the ids of exchanges are shown, by which a tool reads one whole.
    """
    lines, last_speaker = [_head(store, hits[0])], ""
    for hit in sorted(hits, key=lambda hit: hit.position):
        speaker = _speaker(store, hit, hits[0])
        if has_ids and speaker and hit.anchor:
            speaker += f", exchange {safe_line(hit.anchor)}"
        if speaker and speaker != last_speaker:
            lines.append(f"{speaker}:")
        lines += _lines(hit, count)
        last_speaker = speaker
    return "\n".join(lines)


def _head(store: Store, hit: Hit) -> str:
    """Return the line above the hits of a page: its link and date."""
    day = _day_of(store, hit)
    # the path of a day's page says the day and never changes: neither a uuid nor the day is needed
    if hit.kind == "exchange" and day in hit.path.replace("/", "-"):
        return f"### {reference(hit.title, hit.path)}"
    return f"### {reference(hit.title, hit.path, hit.uuid)}" + (f", {day}" if day else "")


def _speaker(store: Store, hit: Hit, first: Hit) -> str:
    """Return who says a hit in an exchange; "" for any other hit, unless others wrote it and it does not say so itself.

    Args:
        store: The brain, for the person's days.
        hit: The hit.
        first: The first hit of the page, whose day is in the page's head; any other day is added here.
    """
    if hit.kind != "exchange":
        says_so = hit.origin == PERSON or author_of_statement(hit.text).origin != PERSON
        return "" if says_so else _said_by(hit.author)
    day = _day_of(store, hit)
    is_other_day = day not in ("", _day_of(store, first))
    return _said_by(hit.author) + (f", {day}" if is_other_day else "")


def _said_by(author: Author) -> str:
    """Return what stands above words: `User`, `AI` for the answer of a model that is not named, else its author."""
    return "AI" if author == Author("assistant") else safe_line(author.label)


def _lines(hit: Hit, count: Count) -> list[str]:
    """Return the words of a hit, and what of them no longer holds, quoted."""
    text = shortened(hit.said, PAGE_TOKENS, count)
    if hit.kind == "statement" and not text.lstrip().startswith(("-", "*")):
        text = f"- {text}" + (f" ({BY_HAND})" if hit.is_by_hand else "")
        text += f" ^{safe_line(hit.anchor)}" if hit.anchor else ""
    return [quoted(text), *(quoted(f"({as_sentence(former)})") for former in hit.former)]


def _day_of(store: Store, hit: Hit) -> str:
    """Return the person's day of a hit; "" for a hit without a date."""
    return safe_line(store.day_of(safe_line(hit.at)))


# --- the page of a link --------------------------------------------------------------------------------------------


class ShownPages:
    """Finds pages of long-term memory by the links, names and uuids that people and models write.

    Args:
        library: The memory.
        gate: Hides pages from a model; None where no model sees the result.
    """

    def __init__(self, library: Library, gate: Gate | None = None) -> None:
        self._graph, self._gate, self._tree = library.recall.links, gate, library.tree
        self._top = library.tree.relative(library.tree.long_term) + "/"

    def find(self, link: str, folder: str = "") -> list[LinkedPage]:
        """Return the page that a link means; several where it is ambiguous, none where there is no such page.

        Args:
            link: A wikilink, a Markdown link, or a bare uuid, path, file name or title.
            folder: The folder of the file with the link; a path may be relative to it.
        """
        target, uuid = _target_and_uuid(link)
        if path := self._graph.path_of(uuid.lower()) if uuid else None:
            return self._shown([path])
        if uuid and target in ("", uuid):
            return []
        # no page has the uuid, or the link has none: its path counts
        name = target.strip().strip("/")
        relative = posixpath.normpath(posixpath.join(folder, name))
        for path in (name, f"{name}.md", relative, f"{relative}.md"):
            if pages := self._shown([path]):
                return pages
        if not (folded := name.casefold().removesuffix(".md")):
            return []
        # editors write file names or ends of paths, people write titles
        all_pages = self._graph.pages
        by_path = self._shown(path for path in all_pages if f"/{path.casefold()}".endswith(f"/{folded}.md"))
        by_title = (path for path, page in all_pages.items() if page.title.casefold() == folded)
        return sorted(by_path or self._shown(by_title), key=lambda page: page.path)

    def linked_from(self, page: LinkedPage) -> list[LinkedPage]:
        """Return the existing pages that a page links to."""
        return self._shown(path for path in self._graph.forward(page.path) if path != page.path)

    def most_linked(self, limit: int) -> list[tuple[LinkedPage, int]]:
        """Return the pages with the most links and how many, ties by the latest change; no index pages."""
        return list(islice((hub for hub in self._graph.hubs() if self._is_shown(hub[0].path)), limit))

    def _shown(self, paths: Iterable[str]) -> list[LinkedPage]:
        """Return the pages at paths that exist and may be shown."""
        return [self._graph.pages[path] for path in paths if path in self._graph.pages and self._is_shown(path)]

    def _is_shown(self, path: str) -> bool:
        """Return whether a path is a page of long-term memory or of a source, and the gate lets its name through."""
        is_note = path.startswith(self._top) or self._tree.kind_of(path) is PathKind.SOURCE
        return is_note and (self._gate is None or self._gate.knows(path))


def _target_and_uuid(link: str) -> tuple[str, str]:
    """Return the target of a link without its fragment, and its uuid, "" for none; a bare uuid is returned as both.

    Args:
        link: A whole link, as people copy it, or only its target.
    """
    link = link.strip()
    match = _LINK.fullmatch(link)
    if match is None:
        target = link.removeprefix("uuid:")
    else:
        target = unquote(match["path"]) if match["path"] else match["wiki"].partition("|")[0]
    target = target.partition("#")[0].strip()
    in_title = match and _UUID.search(match["title"] or "")
    uuid = in_title or _UUID.fullmatch(target)
    return target, uuid.group() if uuid else ""


# --- notes in focus ------------------------------------------------------------------------------------------------


def focus_blocks(library: Library, prompt: Prompt, limit_tokens: int, count: Count, gate: Gate) -> list[Block]:
    """Return the blocks of the notes in focus: one with a preview of each, and one with as much of the first as fits.

    Args:
        library: The memory.
        prompt: The prompt: the notes of its `focus` come first, then those that its text links to.
        limit_tokens: The whole budget.
        count: Returns the tokens of a text.
        gate: Filters the notes.
    """
    matches = _LINK.finditer(prompt.text)
    # an address of the web is no note
    linked = [match.group() for match in matches if not _ADDRESS.match(match["path"] or match["wiki"])]
    links = list(dict.fromkeys([*prompt.focus, *linked]))[:MAX_FOCUSED]
    if not links:
        return []
    pages, folder = ShownPages(library, gate), posixpath.dirname(prompt.path)
    (primary, body), *others = [_note(gate, pages, link, folder) for link in links]
    lines = [f"Primary: {primary}", *(about for about, _ in others)]
    blocks = [Block("focused notes", lines, Stability.FOCUS, "## Focused Notes", share=FOCUS_SHARE, cut_order=35)]
    if body:
        text = quoted(shortened(body, int(limit_tokens * FOCUS_SHARE), count))
        blocks.append(Block("focused note", [text], Stability.FOCUS, "### The primary one, whole", cut_order=30))
    return blocks


def missing_focus(library: Library, prompt: Prompt) -> list[str]:
    """Return the links in a prompt's `focus` that lead to no note; private notes count as existing."""
    pages, folder, gate = ShownPages(library), posixpath.dirname(prompt.path), Gate(library, Audience.NOBODY)
    return [
        link for link in prompt.focus if not pages.find(link, folder) and _other_note(gate, link, folder)[1] is None
    ]


def _note(gate: Gate, pages: ShownPages, link: str, folder: str) -> tuple[str, str]:
    """Return a line about the note that a link means, with a preview, and its body; "" for no such note, or several."""
    matches = pages.find(link, folder)
    if len(matches) > 1:
        candidates = ", ".join(reference(page.title, page.path, page.uuid) for page in matches[:5])
        return f"`{safe_line(link)}` is ambiguous; it may mean {candidates}. Ask which one is meant.", ""
    if matches:
        (page,) = matches
        text, name = gate.read_note(page.path), reference(page.title, page.path, page.uuid)
        links = [reference(other.title, other.path, other.uuid) for other in pages.linked_from(page)[:5]]
        status = "indexed" + (f"; links to {', '.join(links)}" if links else "")
    else:
        path, text = _other_note(gate, link, folder)
        name, status = reference(posixpath.basename(path), path), "not indexed"
    if text is None:
        return f"`{safe_line(link)}`: no such note.", ""
    try:
        meta, start = split(text)
        body, author = text[start:].strip(), author_in(meta)
    except FormatError:
        body, author = text, Author()
    status += f"; words of {safe_line(author.named)}" if author.named else ""
    return f"{name} ({status})\n{quoted(preview(body))}", body


def _other_note(gate: Gate, link: str, folder: str) -> tuple[str, str | None]:
    """Return path and text of a note by its path, relative to `folder` or the root; None for no note there."""
    target, _ = _target_and_uuid(link)
    relative = posixpath.normpath(posixpath.join(folder, target))
    for path in (relative, f"{relative}.md", target, f"{target}.md"):
        if (text := gate.read_note(path)) is not None:
            return path, text
    return target, None


# --- short-term memory -----------------------------------------------------------------------------------------------

SHORT_TERM_HEADING = "## Short-Term Memory"
LOG = "event log"
LOG_SHARE = 0.6
CONVERSATION_SHARE = 0.15
LAST_TURNS = 4
MAX_CHANGES = 40
_TEXT_AT = len("- [ ] ")  # in the line of an item
CHANGES = "The lists above change here:"
# of goals, facts and tasks, in this order
TITLES = ("Goals", "Key Facts & Decisions", "Tasks")

Lists = tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class _Epoch:
    """The requests in which one reader is shown the same lists of Structured Data, with their changes in the event log.

    Attributes:
        beginning: The summary and the oldest event's id: when either changes, short-term memory was pruned.
        first: The lists that are shown above the log.
        now: The lists with all changes since.
        changes: The lines about changes, by the id of the event below which they stand.
    """

    beginning: tuple[str, str]
    first: Lists
    now: Lists
    changes: dict[str, list[str]] = field(default_factory=dict)


class ShownLists:
    """Remembers for each reader the present epoch: the lists as they were first shown, and the changes since.

    A new epoch, with the lists as they are by then, begins when short-term memory was pruned, when the event of a
    change is gone, when a line is gone other than by a tick (it may be forgotten, or private by now), and after many
    changes. Kept in this process only: a restart costs one cache miss. Thread-safe.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._epochs: dict[str, _Epoch] = {}

    def for_reader(self, reader: str, memory: ShortTermMemory) -> tuple[Lists, dict[str, list[str]]]:
        """Return the lists to show above the log, and by the id of an event the lines about changes to show below it.

        Args:
            reader: The purpose, the model, and whether it is remote.
            memory: Short-term memory as it stands.
        """
        now: Lists = tuple(
            tuple(f"- [{'x' if item.is_done else ' '}] {item.text}" for item in items)
            for items in (memory.goals, memory.facts, memory.tasks)
        )
        ids = [event.id for event in memory.events]  # newest first
        beginning = (memory.summary, ids[-1] if ids else "")
        with self._mutex:
            epoch = self._epochs.get(reader)
            # of each change the event must still be in the log, and a further one needs an event to stand below
            is_continued = epoch and epoch.beginning == beginning and ids and epoch.changes.keys() <= set(ids)
            # the text of a line is missing from its list; a tick is no loss
            has_lost = epoch is not None and any(
                {line[_TEXT_AT:] for line in before} - {line[_TEXT_AT:] for line in lines}
                for before, lines in zip(epoch.now, now, strict=True)
            )
            if epoch is None or not is_continued or has_lost:
                epoch = _Epoch(beginning, first=now, now=now)
            if changes := _changes(epoch.now, now):
                epoch.changes.setdefault(ids[0], []).extend(changes)
                epoch.now = now
                if sum(map(len, epoch.changes.values())) > MAX_CHANGES:
                    epoch = _Epoch(beginning, first=now, now=now)
            self._epochs[reader] = epoch
            return epoch.first, {event_id: list(lines) for event_id, lines in epoch.changes.items()}

    def forget(self, reader: str) -> None:
        """End a reader's epoch, since lines about changes were cut out of the log: the next request begins another."""
        with self._mutex:
            self._epochs.pop(reader, None)


def _changes(before: Lists, now: Lists) -> list[str]:
    """Return a line for each item that came into a list or left it."""
    changes = []
    for title, old, new in zip(TITLES, before, now, strict=True):
        changes += [f"- now in {title}: {line[2:]}" for line in new if line not in old]
        changes += [f"- no longer in {title}: {line[2:]}" for line in old if line not in new]
    return changes


def short_term_blocks(
    memory: ShortTermMemory, lists: ShownLists, reader: str, limit_tokens: int, count: Count
) -> list[Block]:
    """Return a block of summary and lists, and the event log as a block that is cut from its oldest end.

    Args:
        memory: Short-term memory, from which the caller has taken private events out.
        lists: The lists as they were shown before.
        reader: The purpose, the model, and whether it is remote.
        limit_tokens: The whole budget; one event gets a quarter of the log's share at most.
        count: Returns the tokens of a text.
    """
    # the lists as this reader was first shown them, and lines about changes since, by the event they stand below
    shown_lists, changes = lists.for_reader(reader, memory)
    head = [f"### Summary\n{quoted(memory.summary)}"] if memory.summary.strip() else []
    if any(shown_lists):
        head.append("### Structured Data")
        titled = zip(TITLES, shown_lists, strict=True)
        head += [f"#### {title}\n" + quoted("\n".join(lines)) for title, lines in titled if lines]
    if not head:
        head = ["No summary and no lists yet." if memory.events else "Empty: nothing has been said yet."]
    lists_block, log = Block("short-term memory", head, Stability.SHORT_TERM, SHORT_TERM_HEADING), list[str]()
    # the file has the newest event first; here it comes last
    for event in memory.events[::-1]:
        log.append(event_text(event, int(limit_tokens * LOG_SHARE / 4), count))
        if event.id in changes:
            log.append(f"{CHANGES}\n" + quoted("\n".join(changes[event.id])))
    heading = "### Event Log"
    return [
        lists_block,
        Block(LOG, log, Stability.EVENT_LOG, heading, share=LOG_SHARE, cut_order=60, drops="first-quarters"),
    ]


def changes_told(blocks: Sequence[Block]) -> list[str]:
    """Return the parts of the event log that say how the lists above it changed."""
    return [part for block in blocks if block.name == LOG for part in block.parts if part.startswith(CHANGES)]


def event_text(event: StmEvent, longest_tokens: int, count: Count, *, with_id: bool = False, thread: str = "") -> str:
    """Return one exchange as quoted text, shortened by whole sentences to a number of tokens.

    Args:
        event: The exchange.
        longest_tokens: How many tokens prompt and answer may have.
        count: Returns the tokens of a text.
        with_id: Show its id, by which the model's answer may name it.
        thread: The name of its conversation; "" for none.
    """
    identity = f" (id {safe_line(event.id)})" if with_id else ""
    lines = [f"#### {safe_line(event.at)}{identity}" + (f" in “{safe_line(thread)}”" if thread else "")]
    for speaker, text in ((safe_line(event.author.label), event.user), ("AI", event.ai), ("Thoughts", event.thoughts)):
        if text.strip():
            # each text gets half of the room, so that a long answer leaves some for the prompt
            lines += [f"{speaker}:", quoted(shortened(text, longest_tokens // 2, count))]
    return "\n".join(lines)


def conversation_blocks(
    turns: Sequence[Exchange], logged_ids: Collection[str], limit_tokens: int, count: Count
) -> list[Block]:
    """Return two blocks: the conversation's earlier turns in a line each, and its last turns whole.

    Each may take `CONVERSATION_SHARE` of the budget. Of both the oldest turns are dropped first, and where all blocks
    together are too many the one with the earlier turns is cut first.

    Args:
        turns: The turns, oldest first.
        logged_ids: Ids of exchanges that the event log shows already; they are left out.
        limit_tokens: The whole budget.
        count: Returns the tokens of a text.
    """
    events = [event_of(turn) for turn in turns if turn.id not in logged_ids]
    longest_tokens = int(limit_tokens * CONVERSATION_SHARE / LAST_TURNS)
    earlier, last = events[:-LAST_TURNS], events[-LAST_TURNS:]
    heads = [f"{safe_line(event.at)[:16]} {event.author.named}".rstrip() for event in earlier]
    texts = [f"{preview(event.user)} → {preview(event.ai)}" for event in earlier]
    lines = [quoted(f"{head} {text}") for head, text in zip(heads, texts, strict=True)]
    whole = [event_text(event, longest_tokens, count) for event in last]
    block = partial(Block, stability=Stability.CONVERSATION, share=CONVERSATION_SHARE, drops="first-quarters")
    heading = "### This conversation"  # one for both, above the first that has turns
    return [
        block("conversation summary", lines, heading=heading, cut_order=40),
        block("conversation", whole, heading="" if earlier else heading, cut_order=50),
    ]


def event_of(exchange: Exchange) -> StmEvent:
    """Return a prompt and its response as one event."""
    answer = exchange.response.text if exchange.response else ""
    author = exchange.prompt.author
    return StmEvent(exchange.id, exchange.at, exchange.prompt.text, answer, origin=author.origin, by=author.by)
