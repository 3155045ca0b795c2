"""Short-term memory: its summary, lists and event log, and the operations on them (docs/format.md, F-STM).

Every operation works on the text as it stands now and replaces only the lines that it changes, so that a decision
made a while ago holds beside what a person or another process has written since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from brainiac.errors import FormatError
from brainiac.formats.discretion import without_private_paragraphs
from brainiac.formats.markdown import (
    EVENT_HEADING,
    PRIVATE,
    PRIVATE_MARK,
    PlacedEvent,
    StmEvent,
    end_of_content,
    find_events,
    find_line,
    id_by_hand,
    is_timestamp,
    newline_of,
    one_line,
    parse_prose,
    remarks_of,
    render_event,
    render_prose,
    splice,
    unescape,
    with_private_marks,
)

__all__ = ["EMPTY", "Item", "ShortTermDocument", "ShortTermMemory", "StmEvent", "matching", "parse_short_term"]

EMPTY = """\
# Short-Term Memory Scratchpad

## Summary

---
## Structured Data
### Goals

### Key Facts & Decisions

### Tasks

---
## Event Log
"""
TITLE = "# Short-Term Memory Scratchpad"
SUMMARY, STRUCTURED_DATA, EVENT_LOG = "## Summary", "## Structured Data", "## Event Log"
GOALS, FACTS, TASKS = "### Goals", "### Key Facts & Decisions", "### Tasks"
HEADINGS = (TITLE, SUMMARY, STRUCTURED_DATA, GOALS, FACTS, TASKS, EVENT_LOG)

_FRAME = re.compile(rf"^(?:{'|'.join(map(re.escape, HEADINGS))}|---)[ \t]*\r?$", re.MULTILINE)
_SECTION_END = re.compile(r"^(?:#{1,6} |---[ \t]*\r?$)", re.MULTILINE)
_LOG_END = re.compile(r"^#{1,2} ", re.MULTILINE)
# a list item, its box, and the indented lines below it
_ITEM = re.compile(r"^[-*+][ \t]+(?:\[([ xX])\](?:[ \t]+|(?=\r?$)))?([^\n]*(?:\n[ \t]+\S[^\n]*)*)\n?", re.MULTILINE)
# lines that Markdown takes for more of the item above them although they are not indented
_WRAPPED = re.compile(r"(?:(?![-*+][ \t]|#|---|[ \t]*\r?$)[^\n]+\n?)*", re.MULTILINE)
_PARAGRAPH = re.compile(r"^[^\S\n]*\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*", re.MULTILINE)
_MARK = re.compile(rf"[ \t]*{PRIVATE.pattern}", PRIVATE.flags)
_BOX = re.compile(r"\\*\[[ xX]\](?:\s|$)")


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list in Structured Data.

    Attributes:
        is_private: It came from a `private: true` exchange and is never shown to a remote model.
        words: Its lines as they stand, bullet and box included, the mark of what is private left out.
        remarks: The lines right below it that are not indented; they stay when it goes.
    """

    text: str
    is_done: bool = False
    is_private: bool = False
    words: str = field(default="", compare=False)
    remarks: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ShortTermMemory:
    """`memory/short_term.md`; events newest first, as in the file.

    Attributes:
        is_private: A mark stands alone where it belongs to nothing: nobody can tell what of all this it is about.
    """

    summary: str = ""
    goals: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    events: tuple[StmEvent, ...] = ()
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class _PlacedItem:
    item: Item
    start: int
    end: int
    mark: int  # where the text of the item, with its box, begins


def matching(items: Sequence[Item], words: str) -> list[Item]:
    """Return the open items that hold all the words, case aside; those that are these words alone, if there are any."""
    wanted = words.casefold().split()
    open_items = [item for item in items if not item.is_done]
    same = [item for item in open_items if item.text.casefold().split() == wanted]
    return same or [item for item in open_items if all(word in item.text.casefold() for word in wanted)]


def parse_short_term(text: str) -> ShortTermMemory:
    """Read short-term memory.

    Raises:
        FormatError: A heading is missing; it is named.
    """
    return document_of(text).memory


@lru_cache(maxsize=4)
def document_of(text: str) -> ShortTermDocument:
    """Return a text as a document; a text is parsed once, whoever asks for it in one exchange after the other.

    Raises:
        FormatError: A heading is missing; all that are missing are named.
    """
    return ShortTermDocument(text)


class ShortTermDocument:
    """Short-term memory as a text that operations change line by line; immutable, `str(document)` is the file.

    Args:
        text: The file as it stands now.

    Raises:
        FormatError: A heading is missing; all that are missing are named.
    """

    def __init__(self, text: str) -> None:
        places = {heading: find_line(text, heading) for heading in HEADINGS}
        missing = [heading for heading, place in places.items() if place is None]
        if missing:
            raise FormatError(
                "memory/short_term.md", f"missing {', '.join(f'`{heading}`' for heading in missing)}; put it back"
            )
        self._text = text
        self._content = {heading: place[1] for heading, place in places.items() if place}

    def __str__(self) -> str:
        return self._text

    @cached_property
    def memory(self) -> ShortTermMemory:
        """What stands there."""
        return ShortTermMemory(
            summary=parse_prose(self._text[slice(*self._section(SUMMARY))]),
            goals=tuple(placed.item for placed in self._items(GOALS)),
            facts=tuple(placed.item for placed in self._items(FACTS)),
            tasks=tuple(placed.item for placed in self._items(TASKS)),
            events=tuple(placed.event for placed in self.logged),
            is_private=PRIVATE.search(self._text) is not None and self._has_stray_mark(),
        )

    def _has_stray_mark(self) -> bool:
        items = (placed for heading in (GOALS, FACTS, TASKS) for placed in self._items(heading))
        document = self._without([*self.logged, *items])
        start, end = document._section(SUMMARY)
        return without_private_paragraphs(document._text[:start] + "\n" + document._text[end:]) is None

    def _section(self, heading: str) -> tuple[int, int]:
        start = self._content[heading]
        found = _SECTION_END.search(self._text, start)
        return start, found.start() if found else len(self._text)

    def _items(self, heading: str) -> list[_PlacedItem]:
        start, end = self._section(heading)
        found = (_placed_item(match) for match in _ITEM.finditer(self._text, start, end))
        return [placed for placed in found if placed.item.text]

    @cached_property
    def logged(self) -> list[PlacedEvent]:
        """The events with their places, newest first as in the file."""
        start = self._content[EVENT_LOG]
        found = _LOG_END.search(self._text, start)
        placed = find_events(self._text, start, found.start() if found else len(self._text))
        return list(_with_ids_of_their_own(each for each in placed if is_timestamp(each.event.at)))

    @property
    def remarks(self) -> str:
        """What stands there beside summary, items, events and the seven headings: lines of the person's own."""
        document = self._without([*self.logged, *self._all_items()])
        start, end = document._section(SUMMARY)
        return _FRAME.sub("", document._text[:start] + document._text[end:])

    def paragraphs(self) -> list[str]:
        """Return the paragraphs of the summary."""
        return [parse_prose(paragraph) for paragraph in _PARAGRAPH.findall(self._text, *self._section(SUMMARY))]

    def _all_items(self) -> list[_PlacedItem]:
        return [placed for heading in (GOALS, FACTS, TASKS) for placed in self._items(heading)]

    def has_event(self, event_id: str) -> bool:
        """Return whether an event with this id stands in the log."""
        return find_line(self._text, f"<!-- event: {event_id} -->") is not None

    def with_event(self, event: StmEvent) -> ShortTermDocument:
        """Add an event above all older ones; one whose id stands there already changes nothing."""
        if self.has_event(event.id):
            return self
        text, at = self._text, self._content[EVENT_LOG]
        older = EVENT_HEADING.search(text, at)
        while older and older[1] > event.at:
            older = EVENT_HEADING.search(text, older.end())
        if older and not _LOG_END.search(text, at, older.start()):
            return ShortTermDocument(splice(text, older.start(), render_event(event) + "\n"))
        end = _LOG_END.search(text, at)
        if end:
            return ShortTermDocument(splice(text, end.start(), render_event(event) + "\n"))
        gap = "\n" if text[at:].strip() else ""
        return ShortTermDocument(splice(text, len(text), gap + render_event(event)))

    def without_event(self, *event_ids: str) -> ShortTermDocument:
        """Remove events; remarks within them stay in their place. An id that is not there changes nothing."""
        return self._without(placed for placed in self.logged if placed.event.id in event_ids)

    def _without(self, places: Iterable[PlacedEvent | _PlacedItem]) -> ShortTermDocument:
        kept, at = [], 0
        for placed in sorted(places, key=lambda placed: placed.start):
            kept.append(self._text[at : placed.start])
            kept.append(remarks_of(self._text, placed) if isinstance(placed, PlacedEvent) else placed.item.remarks)
            at = placed.end
        return ShortTermDocument("".join(kept) + self._text[at:])

    def with_items(
        self,
        goals: Iterable[str] = (),
        facts: Iterable[str] = (),
        tasks: Iterable[str] = (),
        *,
        is_private: bool = False,
    ) -> ShortTermDocument:
        """Add items to the lists; a text that stands there already and is not done is not added again."""
        mark = f" {PRIVATE_MARK}" if is_private else ""
        document = self._with_list(GOALS, goals, "[ ] ", mark)._with_list(TASKS, tasks, "[ ] ", mark)
        return document._with_list(FACTS, facts, "", mark)

    def _with_list(self, heading: str, texts: Iterable[str], box: str, mark: str) -> ShortTermDocument:
        items = self._items(heading)
        known = {_key(placed.item.text) for placed in items if not placed.item.is_done}
        fresh = {_key(text): one_line(text) for text in texts if text.strip()}
        lines = [f"- {box or _guard(text)}{text}{mark}\n" for key, text in fresh.items() if key not in known]
        if not lines:
            return self
        start, end = self._section(heading)
        at = items[-1].end if items else end_of_content(self._text, start, end)
        if at == end and end < len(self._text):
            lines.append("\n")  # a rule right below a text would make a heading of it
        return ShortTermDocument(splice(self._text, at, "".join(lines)))

    def with_private_items(self, is_meant: Callable[[str], bool]) -> ShortTermDocument:
        """Mark items private by their texts."""
        text = self._text
        items = [placed for heading in (GOALS, FACTS, TASKS) for placed in self._items(heading)]
        for placed in sorted(items, key=lambda placed: placed.start, reverse=True):
            if not placed.item.is_private and is_meant(placed.item.text):
                end = text.find("\n", placed.start)
                at = len(text[: len(text) if end < 0 else end].rstrip("\r"))
                text = f"{text[:at]} {PRIVATE_MARK}{text[at:]}"
        return ShortTermDocument(text)

    def summary_span(self) -> tuple[int, int]:
        """Return where the content of the summary lies in the text."""
        return self._section(SUMMARY)

    def with_done(self, texts: Iterable[str]) -> ShortTermDocument:
        """Tick the open goals and tasks with these texts."""
        return self._with_boxes(texts, is_done=True)

    def with_open(self, texts: Iterable[str]) -> ShortTermDocument:
        """Take the tick from the done goals and tasks with these texts."""
        return self._with_boxes(texts, is_done=False)

    def _with_boxes(self, texts: Iterable[str], *, is_done: bool) -> ShortTermDocument:
        wanted = {_key(text) for text in texts}
        text, box = self._text, "[x]" if is_done else "[ ]"
        places = [*self._items(GOALS), *self._items(TASKS)]
        for placed in sorted(places, key=lambda placed: placed.start, reverse=True):
            if placed.item.is_done != is_done and _key(placed.item.text) in wanted:
                has_box = text[placed.mark : placed.mark + 3] in ("[ ]", "[x]", "[X]")
                text = text[: placed.mark] + box + ("" if has_box else " ") + text[placed.mark + 3 * has_box :]
        return ShortTermDocument(text)

    def without_items(
        self, goals: Iterable[str] = (), facts: Iterable[str] = (), tasks: Iterable[str] = ()
    ) -> ShortTermDocument:
        """Remove items from the lists by their texts; one that is not there changes nothing."""
        gone = {GOALS: goals, FACTS: facts, TASKS: tasks}
        keys = {heading: {_key(text) for text in texts} for heading, texts in gone.items()}
        return self._without(p for heading in gone for p in self._items(heading) if _key(p.item.text) in keys[heading])

    def with_summary(self, summary: str, is_ours: Callable[[str], bool] = lambda paragraph: True) -> ShortTermDocument:
        """Put a summary in place of the paragraphs that are ours; the others stay below it. Promotion alone may.

        Args:
            summary: Paragraphs.
            is_ours: Tells it of a paragraph, escapes undone.
        """
        start, end = self._section(SUMMARY)
        if parse_prose(self._text[start:end]) == summary.strip():
            return self
        written, theirs = render_prose(summary), self._theirs(is_ours)
        before = f"{written}\n\n" if written else "" if theirs else "\n"
        changed = splice(self._text, start, before, end)
        at = len(changed) - (len(self._text) - end)
        return ShortTermDocument(changed[:at] + theirs + changed[at:])

    def _theirs(self, is_ours: Callable[[str], bool]) -> str:
        """Return the paragraphs of the summary that are not ours, as they stand, with the blank lines below them."""
        start, end = self._section(SUMMARY)
        found = list(_PARAGRAPH.finditer(self._text, start, end))
        ends = [*(each.start() for each in found), end][1:]
        theirs = ((each, upto) for each, upto in zip(found, ends, strict=True) if not is_ours(parse_prose(each[0])))
        return "".join(self._text[each.start() : upto] for each, upto in theirs)

    def reset(
        self,
        summary: str | None,
        keep_events: Collection[str],
        keep_items: Collection[str],
        is_ours: Callable[[str], bool] = lambda paragraph: True,
    ) -> ShortTermDocument:
        """Remove all events and items but those to keep; whatever else a person wrote stays.

        Args:
            summary: The new summary; None leaves the one there.
            keep_events: Ids.
            keep_items: Texts.
            is_ours: Tells which paragraphs of the summary the new one replaces.
        """
        kept = {_key(text) for text in keep_items}
        items = self._all_items()
        document = self._without(
            [
                *(placed for placed in self.logged if placed.event.id not in keep_events),
                *(placed for placed in items if _key(placed.item.text) not in kept),
            ]
        )
        return document if summary is None else document.with_summary(summary, is_ours)


def _placed_item(found: re.Match[str]) -> _PlacedItem:
    text = " ".join(PRIVATE.sub(" ", found[2]).split())
    if found[1] is None and text.startswith("\\") and _BOX.match(text):
        text = text[1:]
    wrapped = _WRAPPED.match(found.string, found.end(), found.endpos)
    below = wrapped[0] if wrapped else ""
    is_private = PRIVATE.search(found[0] + below) is not None
    words = _MARK.sub("", found[0]).replace("\r\n", "\n").rstrip("\n")
    remarks = newline_of(found[0]) + (with_private_marks(below) if is_private else below) if below else ""
    item = Item(unescape(text), found[1] in ("x", "X"), is_private, words, remarks)
    mark = found.start(2) if found[1] is None else found.start(1) - 1
    return _PlacedItem(item, found.start(), found.end() + len(below), mark)


def _with_ids_of_their_own(events: Iterable[PlacedEvent]) -> Iterator[PlacedEvent]:
    """Give an event whose id stands above already, as in a copy that a person made, one of its own."""
    known: set[str] = set()
    for placed in events:
        event = placed.event
        if event.id in known:
            own = id_by_hand("\n".join((event.at, event.user, event.ai, event.thoughts)))
            placed = replace(placed, event=replace(event, id=own))
        known.add(event.id)
        yield placed


def _guard(fact: str) -> str:
    """Return the backslash that a fact needs which would look like an item with a box."""
    return "\\" if _BOX.match(fact) else ""


def _key(text: str) -> str:
    return " ".join(PRIVATE.sub(" ", text).split()).casefold()
