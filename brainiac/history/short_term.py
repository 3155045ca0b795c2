"""Changes of short-term memory by its parts, never by lines: events by id, items by text, boxes, the summary.

`without_change` reverses an earlier change and keeps later ones; `with_copy` adds what another version has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from brainiac.formats.discretion import is_private_event, mark_events_private
from brainiac.formats.short_term import Item, ShortTermDocument, ShortTermMemory


def without_change(before: str, after: str, now: str) -> tuple[str, list[str]]:
    """Return short-term memory with one earlier change reversed, and a sentence for each part where that failed.

    What the change added is removed, what it removed comes back, what it ticked is open again; all else stays.

    Args:
        before: The text before the change.
        after: The text after the change.
        now: The present text.

    Raises:
        FormatError: One of them lacks its headings.
    """
    old, new, document = ShortTermDocument(before).memory, ShortTermDocument(after).memory, ShortTermDocument(now)
    problems = _problems_of_added_events(old, new, document.memory)
    # change by change, not by putting the old text back: what was said or typed since stays
    document = document.without_event(*(event.id for event in new.events if event not in old.events))
    for event in old.events:
        if event not in new.events:
            document = document.with_event(event)
    document = document.without_items(*([item.text for item in items] for items in _missing(new, old)))
    returning = _missing(old, new)
    document = _with_items(document, returning)
    boxes = [item for items, others in zip(_lists(old), _lists(new), strict=True) for item in _ticked(items, others)]
    document = document.with_open(item.text for item in boxes if not item.is_done)
    document = document.with_done(item.text for items in (boxes, *returning) for item in items if item.is_done)
    if old.summary != new.summary:
        if document.memory.summary == new.summary:
            document = document.with_summary(old.summary)
        else:
            problems.append("its summary was written anew since")
    return str(document), problems


def _problems_of_added_events(old: ShortTermMemory, new: ShortTermMemory, now: ShortTermMemory) -> list[str]:
    """Return a sentence for each event that the change added and that was edited or removed since."""
    standing = {event.id: event for event in now.events}
    problems = []
    for event in new.events:
        if event in old.events:
            continue
        if event.id not in standing:
            problems.append(f"its exchange of {event.at} is not there any more")
        elif standing[event.id] != event:
            problems.append(f"its exchange of {event.at} was edited since")
    return problems


def with_copy(now: str, copy: str, is_removed: Callable[[str], bool]) -> tuple[str, list[str]]:
    """Return short-term memory with the parts that only a copy has, and the names of differing parts not taken over.

    Args:
        now: The present text.
        copy: The other version.
        is_removed: Whether a process removed a text before, so that it must not come back.

    Raises:
        FormatError: One of them lacks its headings.
    """
    other = ShortTermDocument(copy).memory
    # a mark that was set on either device counts: too much hidden here rather than shown elsewhere
    hidden = {event.id for event in other.events if is_private_event(event)}
    hidden_items = {item.text for items in _lists(other) for item in items if item.is_private}
    document = ShortTermDocument(mark_events_private(now, lambda placed: placed.event.id in hidden))
    document = document.with_private_items(hidden_items.__contains__)
    differs = []
    standing = {event.id: event for event in document.memory.events}
    for event in other.events:
        if standing.get(event.id, event) != event or event.remarks not in now:
            differs.append(event.id)
        # a copy made before a promotion still has what the promotion moved to pages
        if event.id not in standing and not is_removed(f"<!-- event: {event.id} -->"):
            document = document.with_event(event)
    added = _missing(other, document.memory)
    document = _with_items(document, [[item for item in items if not is_removed(item.text)] for items in added])
    document = document.with_done(item.text for item in (*other.goals, *other.tasks) if item.is_done)
    if other.summary and other.summary != document.memory.summary and not is_removed(other.summary):
        if document.memory.summary:
            differs.append("summary")
        else:
            document = document.with_summary(other.summary)
    return str(document), differs


def _lists(memory: ShortTermMemory) -> tuple[Sequence[Item], ...]:
    return memory.goals, memory.facts, memory.tasks


def _missing(memory: ShortTermMemory, other: ShortTermMemory) -> list[list[Item]]:
    """Return the items of each list whose texts the same list of another version lacks."""
    missing = []
    for items, others in zip(_lists(memory), _lists(other), strict=True):
        texts = {item.text for item in others}
        missing.append([item for item in items if item.text not in texts])
    return missing


def _ticked(items: Iterable[Item], later: Iterable[Item]) -> list[Item]:
    """Return those of the items (in their earlier state) whose box was ticked or cleared later."""
    boxes = {item.text: item.is_done for item in later}
    return [item for item in items if boxes.get(item.text, item.is_done) != item.is_done]


def _with_items(document: ShortTermDocument, lists: Sequence[Iterable[Item]]) -> ShortTermDocument:
    """Return the document with items added to its three lists, private ones with their mark."""
    for is_private in (False, True):
        texts = ([item.text for item in items if item.is_private == is_private] for items in lists)
        document = document.with_items(*texts, is_private=is_private)
    return document
