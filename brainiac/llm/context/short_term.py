"""Short-term memory as a model reads it, so that each request begins with the text of the last one.

The file's event log is newest first; here it is oldest first, and each turn appends to it. The lists of Structured Data
stand above the log and change with nearly every turn, which would invalidate the prefix cache of the whole log. So the
lists are shown as they were when the log began, and each change of them after the event that brought it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from brainiac.formats.prompt import Exchange
from brainiac.formats.short_term import Item, ShortTermMemory, StmEvent
from brainiac.llm.context.blocks import Block, Count, Stability, preview, quoted, safe_line, shortened

HEADING = "## Short-Term Memory"
LOG = "event log"
LOG_SHARE = 0.6
CONVERSATION_SHARE = 0.15
LAST_TURNS = 4
MAX_CHANGES = 40
_TEXT = len("- [ ] ")  # the offset of an item's text in its line
CHANGES = "The lists above change here:"
# of goals, facts and tasks, in this order
_TITLES = ("Goals", "Key Facts & Decisions", "Tasks")

Lists = tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class _Epoch:
    """The lists of Structured Data as one reader was shown them.

    Attributes:
        key: The summary and the oldest event; when either changes, short-term memory was pruned.
        first: The lists that are shown above the log.
        now: The lists with all changes since.
        changes: The lines about changes, by the id of the event that they follow.
    """

    key: tuple[str, str]
    first: Lists
    now: Lists
    changes: dict[str, list[str]] = field(default_factory=dict)

    def can_continue(self, key: tuple[str, str], event_ids: Sequence[str], now: Lists) -> bool:
        """Return whether the lists may still be shown as they were first, with the changes after their events."""
        has_events = bool(event_ids) and set(event_ids) >= set(self.changes)
        return self.key == key and has_events and not _has_lost(self.now, now)


class ShownLists:
    """Remembers for each reader how the lists were first shown, and the changes since.

    The lists are shown anew when short-term memory was pruned, when an event that a change follows is gone, when a
    line is gone other than by a tick (it may be forgotten, or private by now), and after many changes. Kept in this
    process only: a restart costs one cache miss. Thread-safe.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._epochs: dict[str, _Epoch] = {}

    def for_reader(self, reader: str, memory: ShortTermMemory) -> tuple[Lists, dict[str, list[str]]]:
        """Return the lists to show above the log, and the lines about changes by the id of the event that they follow.

        Args:
            reader: The purpose, the model, and whether it is remote.
            memory: Short-term memory as it stands.
        """
        now: Lists = tuple(tuple(map(_line, items)) for items in (memory.goals, memory.facts, memory.tasks))
        ids = [event.id for event in memory.events]
        # the summary and the oldest event change when short-term memory is pruned, and at no other time
        key = (memory.summary, ids[-1] if ids else "")
        with self._mutex:
            epoch = self._epochs.get(reader)
            if epoch is None or not epoch.can_continue(key, ids, now):
                epoch = self._epochs[reader] = _Epoch(key, now, now)
            elif changes := _changes(epoch.now, now):
                epoch.changes.setdefault(ids[0], []).extend(changes)
                epoch.now = now
                if sum(map(len, epoch.changes.values())) > MAX_CHANGES:
                    epoch = self._epochs[reader] = _Epoch(key, now, now)
            return epoch.first, {event: list(lines) for event, lines in epoch.changes.items()}

    def forget(self, reader: str) -> None:
        """Have the lists shown anew next time, since an event that a change follows was cut away."""
        with self._mutex:
            self._epochs.pop(reader, None)


def _line(item: Item) -> str:
    """Return the line of an item, ticked or not."""
    return f"- [{'x' if item.is_done else ' '}] {item.text}"


def _has_lost(before: Lists, now: Lists) -> bool:
    """Return whether the text of a line is missing from its list now; a tick is no loss."""
    texts = ([{line[_TEXT:] for line in lines} for lines in lists] for lists in (before, now))
    return any(old - new for old, new in zip(*texts, strict=True))


def _changes(before: Lists, now: Lists) -> list[str]:
    """Return a line for each item that came into a list or left it."""
    changes = []
    for title, old, new in zip(_TITLES, before, now, strict=True):
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
    shown_lists, changes = lists.for_reader(reader, memory)
    head = [_section("### Summary", memory.summary)] if memory.summary.strip() else []
    if any(shown_lists):
        head.append("### Structured Data")
        head += [
            _section(f"#### {title}", "\n".join(lines))
            for title, lines in zip(_TITLES, shown_lists, strict=True)
            if lines
        ]
    if not head:
        head = ["No summary and no lists yet." if memory.events else "Empty: nothing has been said yet."]
    log = []
    # the file has the newest event first; here it comes last
    for event in memory.events[::-1]:
        log.append(event_text(event, int(limit_tokens * LOG_SHARE / 4), count))
        if event.id in changes:
            log.append(_section(CHANGES, "\n".join(changes[event.id])))
    heading = "### Event Log"
    return [
        Block("short-term memory", head, Stability.SHORT_TERM, HEADING),
        Block(LOG, log, Stability.EVENT_LOG, heading, share=LOG_SHARE, cut_order=60, drops="first-quarters"),
    ]


def has_lost_changes(blocks: Sequence[Block], fitted: Sequence[Block]) -> bool:
    """Return whether lines about a change of the lists were cut out of the log, so that the lists above are wrong."""
    return _changes_in(blocks) != _changes_in(fitted)


def _changes_in(blocks: Sequence[Block]) -> list[str]:
    """Return the parts of the event log that say how the lists changed."""
    logs = (block for block in blocks if block.name == LOG)
    return [part for log in logs for part in log.parts if part.startswith(CHANGES)]


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
    for speaker, text in (("User", event.user), ("AI", event.ai), ("Thoughts", event.thoughts)):
        if text.strip():
            # each text gets half of the room, so that a long answer leaves some for the prompt
            lines += [f"{speaker}:", quoted(shortened(text, longest_tokens // 2, count))]
    return "\n".join(lines)


def _section(heading: str, text: str) -> str:
    return f"{heading}\n{quoted(text)}"


def conversation_blocks(
    turns: Sequence[Exchange], logged_ids: Collection[str], limit_tokens: int, count: Count
) -> list[Block]:
    """Return two blocks: the conversation's earlier turns in a line each, and its last turns whole.

    Args:
        turns: The turns, oldest first.
        logged_ids: Ids of exchanges that the event log shows already; they are left out.
        limit_tokens: The whole budget.
        count: Returns the tokens of a text.
    """
    events = [event_of(turn) for turn in turns if turn.id not in logged_ids]
    longest_tokens = int(limit_tokens * CONVERSATION_SHARE / LAST_TURNS)
    lines = [
        quoted(f"{safe_line(event.at)[:16]} {preview(event.user)} → {preview(event.ai)}")
        for event in events[:-LAST_TURNS]
    ]
    whole = [event_text(event, longest_tokens, count) for event in events[-LAST_TURNS:]]
    heading = "### This conversation"
    last = Block(
        "conversation",
        whole,
        Stability.CONVERSATION,
        "" if lines else heading,  # one heading above both
        share=CONVERSATION_SHARE,
        cut_order=50,
        drops="first-quarters",
    )
    return [replace(last, name="conversation summary", parts=lines, heading=heading, cut_order=40), last]


def event_of(exchange: Exchange) -> StmEvent:
    """Return a prompt and its response as one event."""
    answer = exchange.response.text if exchange.response else ""
    return StmEvent(exchange.id, exchange.at, exchange.prompt.text, answer)
