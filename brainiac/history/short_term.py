"""An earlier change of short-term memory is reversed by its parts, never by lines: events, items, summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
