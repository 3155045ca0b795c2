"""Short-term memory: its summary, lists and event log, and the operations on them (docs/format.md, F-STM).

Every operation works on the present text and replaces only the lines that it changes, so that a decision that was made
a while ago can be carried out although a person or another process has changed other lines since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from brainiac.errors import FormatError
from brainiac.formats import markdown
from brainiac.formats.discretion import Audience
from brainiac.formats.markdown import StmEvent, check_markers
from brainiac.formats.page import audience_of

__all__ = ["EMPTY", "Item", "ShortTermDocument", "ShortTermMemory", "StmEvent", "document_of", "matching"]

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
_LISTS = GOALS, FACTS, TASKS
HEADINGS = (TITLE, SUMMARY, STRUCTURED_DATA, *_LISTS, EVENT_LOG)

_FRAME = re.compile(rf"^(?:{'|'.join(map(re.escape, HEADINGS))}|---)[ \t]*\r?$", re.MULTILINE)
_SECTION_END = re.compile(r"^(?:#{1,6} |---[ \t]*\r?$)", re.MULTILINE)
_LOG_END = re.compile(r"^#{1,2} ", re.MULTILINE)
# a list item, its box, and the indented lines below it
_ITEM = re.compile(
    r"^[-*+][ \t]+(?:(?P<box>\[[ xX]\])(?:[ \t]+|(?=\r?$)))?(?P<text>[^\n]*(?:\n[ \t]+\S[^\n]*)*)\n?", re.MULTILINE
)
# lines that Markdown takes for more of the item above them although they are not indented
_WRAPPED = re.compile(r"(?:(?![-*+][ \t]|#|---|[ \t]*\r?$)[^\n]+\n?)*", re.MULTILINE)
_PARAGRAPH = re.compile(r"^[^\S\n]*\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*", re.MULTILINE)
_MARK = re.compile(rf"[ \t]*{markdown.PRIVATE.pattern}", markdown.PRIVATE.flags)
_BOX = re.compile(r"\\*\[[ xX]\](?:\s|$)")


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list in Structured Data: a goal, a fact or a task.

    Attributes:
        text: Its text on one line, without bullet, box and private mark.
        is_done: Whether its box is ticked.
        is_private: Whether it must never be shown to a remote model, as all of short-term memory.
        words: Its lines as written, bullet and box included, without the private mark.
        remarks: The unindented lines right below it; they stay when the item is removed.
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
        is_private: Whether all of it is private: a private mark stands outside of its events.
    """

    summary: str = ""
    goals: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    tasks: tuple[Item, ...] = ()
    events: tuple[StmEvent, ...] = ()
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class _PlacedItem:
    """An item and its offsets in the file, remarks included.

    Attributes:
        box: Offset of its box, or of its text where it has no box.
    """

    item: Item
    start: int
    end: int
    box: int


def matching(items: Sequence[Item], words: str) -> list[Item]:
    """Return the open items whose text equals some words; if there are none, those that contain each of the words.

    Args:
        items: The items.
        words: A person's words; capitals and extra white space do not count.
    """
    searched = words.casefold().split()
    open_items = [item for item in items if not item.is_done]
    equal = [item for item in open_items if item.text.casefold().split() == searched]
    return equal or [item for item in open_items if all(word in item.text.casefold() for word in searched)]


@lru_cache(maxsize=4)
def document_of(text: str) -> ShortTermDocument:
    """Return a text as a document; the last four are cached, since the same text is parsed repeatedly.

    Raises:
        FormatError: A heading is missing; all that are missing are named.
    """
    return ShortTermDocument(text)


class ShortTermDocument:
    """Short-term memory as a text that operations change line by line; immutable, `str(document)` is the file.

    Args:
        text: The present file.

    Raises:
        FormatError: It has conflict markers, or a heading is missing; all that are missing are named.
    """

    def __init__(self, text: str) -> None:
        check_markers("memory/short_term.md", text)
        lines = {heading: markdown.find_line(text, heading) for heading in HEADINGS}
        missing = [heading for heading, line in lines.items() if line is None]
        if missing:
            raise FormatError(
                "memory/short_term.md", f"missing {', '.join(f'`{heading}`' for heading in missing)}; put it back"
            )
        self._text = text
        self._content = {heading: line[1] for heading, line in lines.items() if line}  # offset below each heading

    def __str__(self) -> str:
        return self._text

    @cached_property
    def memory(self) -> ShortTermMemory:
        """Short-term memory, parsed."""
        summary = markdown.parse_prose(self._text[slice(*self._section(SUMMARY))])
        goals, facts, tasks = (tuple(placed.item for placed in self._items(heading)) for heading in _LISTS)
        events = tuple(placed.event for placed in self.logged)
        return ShortTermMemory(summary, goals, facts, tasks, events, self._is_private)

    @cached_property
    def _is_private(self) -> bool:
        return audience_of(self._text) > Audience.ANYONE

    def _section(self, heading: str, ending: re.Pattern[str] = _SECTION_END) -> tuple[int, int]:
        """Return start and end of a section's content; a person may have added sections below the event log."""
        start = self._content[heading]
        end = ending.search(self._text, start)
        return start, end.start() if end else len(self._text)

    def _items(self, *headings: str) -> list[_PlacedItem]:
        """Return the items of lists that have a text, each with the unindented lines below it as its remarks."""
        items = []
        for match in (match for name in headings for match in _ITEM.finditer(self._text, *self._section(name))):
            box, text = match["box"], " ".join(markdown.PRIVATE.sub(" ", match["text"]).split())
            if not text:
                continue
            if box is None and text.startswith("\\") and _BOX.match(text):
                text = text[1:]  # the backslash that `with_items` writes
            wrapped = _WRAPPED.match(self._text, match.end(), match.endpos)
            below = wrapped[0] if wrapped else ""
            # the remarks outlast the item, as a paragraph of their own
            lines = markdown.marked(below) if markdown.PRIVATE.search(match[0]) else below
            item = Item(
                text=markdown.unescape(text),
                is_done=box in ("[x]", "[X]"),
                is_private=self._is_private,
                words=_MARK.sub("", match[0]).replace("\r\n", "\n").rstrip("\n"),
                remarks=markdown.newline_of(match[0]) + lines if below else "",
            )
            box_start = match.start("text" if box is None else "box")
            items.append(_PlacedItem(item, match.start(), match.end() + len(below), box_start))
        return items

    @cached_property
    def logged(self) -> list[markdown.PlacedEvent]:
        """The events with their offsets, in the order of the file; a heading without a time begins no event.

        Where a person copied one, the lower copy gets an id made of its text.
        """
        events, seen = list[markdown.PlacedEvent](), set[str]()
        for placed in markdown.find_events(self._text, *self._section(EVENT_LOG, _LOG_END)):
            event = placed.event
            if not markdown.is_timestamp(event.at):
                continue
            if event.id in seen:
                event = replace(
                    event, id=markdown.id_by_hand("\n".join((event.at, event.user, event.ai, event.thoughts)))
                )
            seen.add(event.id)
            events.append(replace(placed, event=event))
        return events

    @property
    def remarks(self) -> str:
        """The lines that a person added outside of summary, items, events and the seven headings."""
        document = self._without([*self.logged, *self._items(*_LISTS)])
        start, end = document._section(SUMMARY)
        return _FRAME.sub("", document._text[:start] + document._text[end:])

    def paragraphs(self) -> list[str]:
        """Return the paragraphs of the summary."""
        return [
            markdown.parse_prose(paragraph) for paragraph in _PARAGRAPH.findall(self._text, *self._section(SUMMARY))
        ]

    def has_event(self, event_id: str) -> bool:
        """Return whether the log has an event with this id."""
        return markdown.find_line(self._text, f"<!-- event: {event_id} -->") is not None

    def with_event(self, event: StmEvent) -> ShortTermDocument:
        """Add an event above all older ones; one whose id the log has already changes nothing."""
        if self.has_event(event.id):
            return self
        start, end = self._section(EVENT_LOG, _LOG_END)
        headings = markdown.EVENT_HEADING.finditer(self._text, start, end)
        at = next((heading.start() for heading in headings if heading[1] <= event.at), end)
        if at < len(self._text):
            return ShortTermDocument(markdown.splice(self._text, at, markdown.render_event(event) + "\n"))
        gap = "\n" if self._text[start:].strip() else ""
        return ShortTermDocument(markdown.splice(self._text, at, gap + markdown.render_event(event)))

    def without_event(self, *event_ids: str) -> ShortTermDocument:
        """Remove events; remarks within them stay in their place. An id that is not there changes nothing."""
        return self._without(placed for placed in self.logged if placed.event.id in event_ids)

    def _without(self, places: Iterable[markdown.PlacedEvent | _PlacedItem]) -> ShortTermDocument:
        """Return the document without some events and items; a person's remarks in and below them stay."""
        edits = []
        for placed in sorted(places, key=lambda placed: placed.start):
            if isinstance(placed, markdown.PlacedEvent):
                remarks = markdown.remarks_of(self._text, placed)
            else:
                remarks = placed.item.remarks
            edits.append((placed.start, placed.end, remarks))
        return ShortTermDocument(markdown.edited(self._text, edits))

    def with_items(
        self, goals: Iterable[str] = (), facts: Iterable[str] = (), tasks: Iterable[str] = ()
    ) -> ShortTermDocument:
        """Add items to the lists; a text that is an open item of its list already is not added again."""
        document = self
        for heading, texts in ((GOALS, goals), (TASKS, tasks), (FACTS, facts)):
            items = document._items(heading)
            open_keys = {_key(placed.item.text) for placed in items if not placed.item.is_done}
            added = {_key(text): markdown.one_line(text) for text in texts if text.strip()}
            new = [text for key, text in added.items() if key not in open_keys]
            # a fact has no box, and must not be read as if it had one
            boxes = [("\\" if _BOX.match(text) else "") if heading == FACTS else "[ ] " for text in new]
            lines = [f"- {box}{text}\n" for box, text in zip(boxes, new, strict=True)]
            if not lines:
                continue
            start, end = document._section(heading)
            at = items[-1].end if items else markdown.end_of_content(document._text, start, end)
            if at == end and end < len(document._text):
                lines.append("\n")  # a rule right below a text would make a heading of it
            document = ShortTermDocument(markdown.splice(document._text, at, "".join(lines)))
        return document

    def summary_span(self) -> tuple[int, int]:
        """Return start and end of the summary in the text."""
        return self._section(SUMMARY)

    def with_done(self, texts: Iterable[str]) -> ShortTermDocument:
        """Tick the open goals and tasks with these texts; an item without a box gets one."""
        keys, edits = {_key(text) for text in texts}, []
        for placed in sorted(self._items(GOALS, TASKS), key=lambda placed: placed.start):
            if not placed.item.is_done and _key(placed.item.text) in keys:
                has_box = self._text.startswith("[ ]", placed.box)
                edits.append((placed.box, placed.box + 3, "[x]") if has_box else (placed.box, placed.box, "[x] "))
        return ShortTermDocument(markdown.edited(self._text, edits))

    def without_items(
        self, goals: Iterable[str] = (), facts: Iterable[str] = (), tasks: Iterable[str] = ()
    ) -> ShortTermDocument:
        """Remove items from the lists by their texts; one that is not there changes nothing."""
        removed: list[_PlacedItem] = []
        for heading, texts in ((GOALS, goals), (FACTS, facts), (TASKS, tasks)):
            keys = {_key(text) for text in texts}
            removed += [placed for placed in self._items(heading) if _key(placed.item.text) in keys]
        return self._without(removed)

    def with_summary(self, summary: str, is_ours: Callable[[str], bool] = lambda paragraph: True) -> ShortTermDocument:
        """Replace the paragraphs of the summary that a process wrote; those of a person stay, below the new ones.

        Args:
            summary: The new paragraphs.
            is_ours: Returns whether a process wrote a paragraph of the present summary, given without escapes.
        """
        start, end = self._section(SUMMARY)
        if markdown.parse_prose(self._text[start:end]) == summary.strip():
            return self
        found = list(_PARAGRAPH.finditer(self._text, start, end))
        ends = [*(paragraph.start() for paragraph in found), end][1:]  # with the blank lines below each
        by_person = "".join(
            self._text[paragraph.start() : paragraph_end]
            for paragraph, paragraph_end in zip(found, ends, strict=True)
            if not is_ours(markdown.parse_prose(paragraph[0]))
        )
        paragraphs = f"{markdown.render_prose(summary)}\n\n" if summary.strip() else ""
        if not paragraphs and not by_person:
            paragraphs = "\n"  # an empty summary is one blank line
        without_summary = self._text[:start] + by_person + self._text[end:]
        return ShortTermDocument(markdown.splice(without_summary, start, paragraphs))

    def reset(
        self,
        summary: str | None,
        keep_events: Collection[str],
        keep_items: Collection[str],
        is_ours: Callable[[str], bool] = lambda paragraph: True,
    ) -> ShortTermDocument:
        """Remove all events and items but those to keep; everything else that a person wrote stays.

        Args:
            summary: The new summary; None keeps the present one.
            keep_events: Ids of events.
            keep_items: Texts of items.
            is_ours: See `with_summary`.
        """
        kept_keys = {_key(text) for text in keep_items}
        events = [placed for placed in self.logged if placed.event.id not in keep_events]
        items = [placed for placed in self._items(*_LISTS) if _key(placed.item.text) not in kept_keys]
        document = self._without([*events, *items])
        return document if summary is None else document.with_summary(summary, is_ours)


def _key(text: str) -> str:
    """Return an item's text for comparison: without private mark, capitals and extra white space."""
    return " ".join(markdown.PRIVATE.sub(" ", text).split()).casefold()
