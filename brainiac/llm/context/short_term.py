"""Short-term memory as a model reads it, so that each request begins with the one before it (seeds C1, C4, S10).

The file's event log is newest first; here it is oldest first, and a turn appends. The lists of Structured Data
stand above the log and change with nearly every turn, which would cost the cache of everything below them: so
they stay as they were when the log began, and each change is told once, after the event that brought it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from brainiac.formats.prompt import Exchange
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.llm.context.blocks import Block, Stability
from brainiac.llm.context.budget import Count, shortened
from brainiac.llm.context.fence import one_line, preview, quoted

HEADING = "## Short-Term Memory"
LOG = "event log"
LOG_SHARE = 0.6
CONVERSATION_SHARE = 0.15
LAST_TURNS = 4
MAX_CHANGES = 40
_TEXT = len("- [ ] ")  # where the text of a line begins
CHANGES = "The lists above change here:"
_LISTS = (("Goals", "goals"), ("Key Facts & Decisions", "facts"), ("Tasks", "tasks"))

Lists = tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class _Epoch:
    """Structured Data as one reader was first shown it, and the changes told since, by the event they follow."""

    key: tuple[str, str]
    first: Lists
    now: Lists
    changes: dict[str, list[str]] = field(default_factory=dict)


class ListsSoFar:
    """Remembers how the lists were first shown, per reader; forgotten with the process, at the price of one miss.

    An epoch ends when short-term memory is pruned, when an event that a change follows is gone, when a line is gone
    other than by a tick (it may be forgotten, or private by now), or when there are many changes: then the lists are
    shown anew. Thread-safe.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._epochs: dict[str, _Epoch] = {}

    def told(self, reader: str, memory: ShortTermMemory) -> tuple[Lists, dict[str, list[str]]]:
        """Return the lists to show above the log, and the changes to tell after its events.

        Args:
            reader: Who is shown them: a purpose and model, here or elsewhere.
            memory: As it stands.
        """
        now: Lists = tuple(tuple(_line(item) for item in getattr(memory, name)) for _, name in _LISTS)
        ids = [event.id for event in memory.events]
        key = (memory.summary, ids[-1] if ids else "")
        with self._mutex:
            epoch = self._epochs.get(reader)
            is_over = epoch is None or epoch.key != key or not ids or not set(ids) >= set(epoch.changes)
            if epoch is None or is_over or _has_lost(epoch.now, now):
                epoch = self._epochs[reader] = _Epoch(key, now, now)
            elif changes := _changes(epoch.now, now):
                epoch.changes.setdefault(ids[0], []).extend(changes)
                epoch.now = now
            if sum(map(len, epoch.changes.values())) > MAX_CHANGES:
                epoch = self._epochs[reader] = _Epoch(key, now, now)
            return epoch.first, {event: list(lines) for event, lines in epoch.changes.items()}

    def forget(self, reader: str) -> None:
        """Show the lists anew next time: an event that a change follows was cut away."""
        with self._mutex:
            self._epochs.pop(reader, None)


def _line(item: object) -> str:
    text, is_done = getattr(item, "text", str(item)), getattr(item, "is_done", False)
    return f"- [{'x' if is_done else ' '}] {text}"


def _has_lost(before: Lists, now: Lists) -> bool:
    """Tell whether a line is gone whose text does not stand in its list any more, ticked or not."""
    texts = ([{line[_TEXT:] for line in lines} for lines in lists] for lists in (before, now))
    return any(old - new for old, new in zip(*texts, strict=True))


def _changes(before: Lists, now: Lists) -> list[str]:
    found = []
    for (title, _), old, new in zip(_LISTS, before, now, strict=True):
        found += [f"- now in {title}: {line[2:]}" for line in new if line not in old]
        found += [f"- no longer in {title}: {line[2:]}" for line in old if line not in new]
    return found


def short_term_blocks(
    memory: ShortTermMemory, lists: ListsSoFar, reader: str, limit_tokens: int, count: Count
) -> list[Block]:
    """Return summary and lists, then the event log, oldest first.

    Args:
        memory: As it stands; private events are the caller's to leave out.
        lists: How the lists were shown before.
        reader: Who is shown them.
        limit_tokens: The whole budget; one event gets a quarter of the log's share at most.
        count: Tokens of a text.
    """
    shown, changes = lists.told(reader, memory)
    head = [_section("### Summary", memory.summary)] if memory.summary.strip() else []
    named = [(title, lines) for (title, _), lines in zip(_LISTS, shown, strict=True) if lines]
    if named:
        head.append("### Structured Data")
        head += [_section(f"#### {title}", "\n".join(lines)) for title, lines in named]
    if not head:
        head = ["No summary and no lists yet." if memory.events else "Empty: nothing has been said yet."]
    short_term = Block("short-term memory", head, Stability.SHORT_TERM, HEADING)
    return [short_term, event_log(memory.events[::-1], changes, limit_tokens, count)]


def event_log(events: Sequence[StmEvent], changes: dict[str, list[str]], limit_tokens: int, count: Count) -> Block:
    """Return the block of events, given oldest first; its oldest quarters go first when there is no room."""
    longest = int(limit_tokens * LOG_SHARE / 4)
    parts = []
    for event in events:
        parts.append(event_text(event, longest, count))
        if event.id in changes:
            parts.append(_section(CHANGES, "\n".join(changes[event.id])))
    heading = "### Event Log"
    return Block(LOG, parts, Stability.EVENT_LOG, heading, share=LOG_SHARE, cut_order=60, drops="first-quarters")


def has_lost_changes(blocks: Sequence[Block], fitted: Sequence[Block]) -> bool:
    """Tell whether cutting took away a change of the lists, which would leave the lists above it wrong."""
    told, kept = (
        [part for block in some if block.name == LOG for part in block.parts if part.startswith(CHANGES)]
        for some in (blocks, fitted)
    )
    return told != kept


def event_text(event: StmEvent, longest_tokens: int, count: Count, *, with_id: bool = False, thread: str = "") -> str:
    """Return one exchange as data, its texts by whole sentences where it is very long."""
    said = [("User", event.user), ("AI", event.ai), ("Thoughts", event.thoughts)]
    named = f" (id {one_line(event.id)})" if with_id else ""
    lines = [f"#### {one_line(event.at)}{named}" + (f" in “{one_line(thread)}”" if thread else "")]
    for speaker, text in said:
        if text.strip():
            lines += [f"{speaker}:", quoted(shortened(text, longest_tokens // 2, count))]
    return "\n".join(lines)


def _section(heading: str, text: str) -> str:
    return f"{heading}\n{quoted(text)}"


def conversation_blocks(
    turns: Sequence[Exchange], shown: Collection[str], limit_tokens: int, count: Count
) -> list[Block]:
    """Return this conversation's earlier turns in a line each, and its last ones whole.

    Args:
        turns: Oldest first.
        shown: Ids of the exchanges that stand in the event log already; they are not repeated.
        limit_tokens: The whole budget.
        count: Tokens of a text.
    """
    fresh = [turn for turn in turns if turn.id not in shown]
    earlier, last = fresh[:-LAST_TURNS], fresh[-LAST_TURNS:]
    longest = int(limit_tokens * CONVERSATION_SHARE / LAST_TURNS)
    common = {"stability": Stability.CONVERSATION, "share": CONVERSATION_SHARE}
    gist = [
        quoted(f"{one_line(turn.at)[:16]} {preview(turn.prompt.text)} → {preview(_answer(turn))}") for turn in earlier
    ]
    heading = "### This conversation"
    blocks = [Block("conversation summary", gist, heading=heading, cut_order=40, drops="first-quarters", **common)]  # type: ignore[arg-type]
    whole = [event_text(StmEvent(t.id, t.at, t.prompt.text, _answer(t)), longest, count) for t in last]
    blocks.append(
        Block("conversation", whole, heading="" if gist else heading, cut_order=50, drops="first-quarters", **common)  # type: ignore[arg-type]
    )
    return [block for block in blocks if block.parts]


def _answer(turn: Exchange) -> str:
    return turn.response.text if turn.response else ""
