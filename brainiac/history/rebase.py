"""Taking back a change of short-term memory after which others came: by item, never by text.

What the change added goes, what it pruned comes back, what it ticked is open again; all else stays as it is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from brainiac.formats.short_term import Item, ShortTermDocument, ShortTermMemory, StmEvent


def rebased(before: str, after: str, now: str) -> tuple[str, list[str]]:
    """Return short-term memory without one earlier change, and what stands in the way.

    Args:
        before: As it stood before the change.
        after: As the change left it.
        now: As it stands.

    Raises:
        FormatError: One of them lacks its headings.
    """
    old, new, document = ShortTermDocument(before).memory, ShortTermDocument(after).memory, ShortTermDocument(now)
    problems = _edited(old, new, document.memory)
    for event in _missing(new.events, old.events):
        document = document.without_event(event.id)
    for event in _missing(old.events, new.events):
        document = document.with_event(event)
    document = _with_lists(document, old, new)
    if old.summary != new.summary:
        if document.memory.summary == new.summary:
            document = document.with_summary(old.summary)
        else:
            problems.append("its summary was written anew since")
    return str(document), problems


def _edited(old: ShortTermMemory, new: ShortTermMemory, now: ShortTermMemory) -> list[str]:
    """Name the events that were added and do not stand as they were any more."""
    standing = {event.id: event for event in now.events}
    kept = {event.id: event for event in old.events}
    problems = []
    for event in new.events:
        if kept.get(event.id) == event:
            continue
        if event.id not in standing:
            problems.append(f"its exchange of {event.at} is not there any more")
        elif standing[event.id] != event:
            problems.append(f"its exchange of {event.at} was edited since")
    return problems


def _with_lists(document: ShortTermDocument, old: ShortTermMemory, new: ShortTermMemory) -> ShortTermDocument:
    lists = [(getattr(old, name), getattr(new, name)) for name in ("goals", "facts", "tasks")]
    document = document.without_items(*(texts_of(unlisted(after, before)) for before, after in lists))
    back = [unlisted(before, after) for before, after in lists]
    for is_private in (False, True):
        texts = (texts_of(item for item in items if item.is_private == is_private) for items in back)
        document = document.with_items(*texts, is_private=is_private)
    boxes = [item for before, after in lists for item in _changed_boxes(before, after)]
    document = document.with_open(item.text for item in boxes if not item.is_done)
    return document.with_done(item.text for items in (boxes, *back) for item in items if item.is_done)


def _missing(events: Sequence[StmEvent], among: Sequence[StmEvent]) -> list[StmEvent]:
    return [event for event in events if event not in among]


def unlisted(items: Sequence[Item], among: Sequence[Item]) -> list[Item]:
    """Return the items whose texts are not among others."""
    known = {item.text for item in among}
    return [item for item in items if item.text not in known]


def texts_of(items: Iterable[Item]) -> list[str]:
    """Return the texts of items."""
    return [item.text for item in items]


def _changed_boxes(before: Sequence[Item], after: Sequence[Item]) -> list[Item]:
    """Return the items as they were, of those whose box the change ticked or opened."""
    boxes = {item.text: item.is_done for item in after}
    return [item for item in before if boxes.get(item.text, item.is_done) != item.is_done]
