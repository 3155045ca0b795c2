"""Two versions of short-term memory as one: events by id, items by text, ticks of either; what was pruned stays so."""

from __future__ import annotations

from functools import cached_property

from brainiac.brain import Brain
from brainiac.errors import BlobError
from brainiac.formats.discretion import is_private_event, with_marked_events
from brainiac.formats.short_term import ShortTermDocument
from brainiac.history.rebase import texts_of, unlisted


class Removals:
    """What processes took out of a file, on any device; an outside save that lacks something took nothing out.

    Args:
        brain: The brain.
        path: The file.
    """

    def __init__(self, brain: Brain, path: str) -> None:
        self._brain, self._path = brain, path

    def __contains__(self, text: str) -> bool:
        return any(text in before and text not in after for before, after in self._pairs)

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        journal = self._brain.journal
        events = (*journal.events(), *(event for _, event in journal.foreign_events()))
        changes = (change for event in events if event.by != "person" for change in event.changes)
        return [
            (self._text(c.before), self._text(c.after)) for c in changes if c.path == self._path and c.op == "update"
        ]

    def _text(self, digest: str | None) -> str:
        try:
            return self._brain.committer.text_of(str(digest)).decode("utf-8", "surrogateescape")
        except BlobError:
            return ""


def merged(now: str, copy: str, removals: Removals) -> tuple[str, list[str]]:
    """Return short-term memory with what only the copy has, and what of the copy differs and was not taken.

    Args:
        now: As it stands.
        copy: The other version.
        removals: What must not come back.

    Raises:
        FormatError: One of them lacks its headings.
    """
    other = ShortTermDocument(copy).memory
    hidden = {event.id for event in other.events if is_private_event(event)}
    document = ShortTermDocument(with_marked_events(now, lambda placed: placed.event.id in hidden))
    kept_in = {item.text for item in (*other.goals, *other.facts, *other.tasks) if item.is_private}
    document = document.with_private_items(kept_in.__contains__)
    differs = []
    standing = {event.id: event for event in document.memory.events}
    for event in other.events:
        if standing.get(event.id, event) != event or event.remarks not in now:
            differs.append(event.id)
        if event.id not in standing and f"<!-- event: {event.id} -->" not in removals:
            document = document.with_event(event)
    document = _with_lists(document, ShortTermDocument(copy), removals)
    if other.summary and other.summary != document.memory.summary and other.summary not in removals:
        if document.memory.summary:
            differs.append("summary")
        else:
            document = document.with_summary(other.summary)
    return str(document), differs


def _with_lists(document: ShortTermDocument, copy: ShortTermDocument, removals: Removals) -> ShortTermDocument:
    now, other = document.memory, copy.memory
    names = ("goals", "facts", "tasks")
    fresh = [[i for i in unlisted(getattr(other, n), getattr(now, n)) if i.text not in removals] for n in names]
    for is_private in (False, True):
        texts = (texts_of(item for item in items if item.is_private == is_private) for items in fresh)
        document = document.with_items(*texts, is_private=is_private)
    return document.with_done(item.text for item in (*other.goals, *other.tasks) if item.is_done)
