"""Memory pages: front matter, statements, history, steps (docs/format.md, F-MEM); episodic pages hold exchanges."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Self

from brainiac.clock import iso, parse_iso
from brainiac.errors import FormatError
from brainiac.formats import markdown
from brainiac.formats.discretion import Audience, asks_for_privacy, encoded, is_private_event
from brainiac.formats.frontmatter import edit_meta, render_meta, split
from brainiac.formats.markdown import StmEvent, check_markers, parse_exchanges, render_exchange
from brainiac.formats.prompt import is_off_record

__all__ = ["Memory", "MemoryDocument", "PageDocument", "Statement", "StmEvent", "audience_of", "new_memory"]
__all__ += ["parse_exchanges", "parse_memory", "render_exchange", "shareable_text", "title_of"]

# --- statements: list items with a block id, their places in the text, and how they are written ----------------------

# A retired statement stands under `## History` as `- ~~text~~ (since – until; replaced by ^id) ^id` (F-MEM).

HISTORY, STEPS = "History", "Steps"

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*\r?\n?")
_MARKER = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_BLOCK_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*\Z")
_ANY_BLOCK_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
# a statement with its id, and an unindented line below it, which Markdown takes for more of it
_MELTING = re.compile(
    r"^(?P<above>.*[ \t]\^[A-Za-z0-9-]+[ \t]*\n)"
    r"(?P<line>(?!(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:[ \t]|$)|[>|]|```|~~~|---|<!--)\S.*)",
    re.MULTILINE,
)
_RETIRED = re.compile(
    r"~~(?P<text>.*)~~ \((?:until|(?P<since>\S+) –) (?P<until>\S+?)(?:; replaced by \^(?P<successor>[A-Za-z0-9-]+))?\)",
    re.DOTALL,
)
_DAY_LINK = re.compile(r" \(\[(?P<day>\d{4}-\d\d-\d\d)\]\(<?(?P<target>[^\s<>]*?)>?(?: \"uuid:[^\"]*\")?\)\)\Z")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class Statement:
    """A list item of a memory page.

    Attributes:
        text: Its text without marker, block id and day; lines below the first without their indentation.
        block_id: Without the `^`; "" where a person wrote the item without one.
        is_history: Whether it is below the heading `History`: it no longer holds.
        start: Offset of its first line in the text; `text[start:end]` is the item with its nested lists.
        end: Offset after its last line.
        section: The nearest heading above it.
        since: Of a retired statement: the ISO date from which it held; "" where unknown.
        until: Of a retired statement: the ISO date until which it held.
        replaced_by: Of a retired statement: the block id of the statement that replaced it; "" for none.
        own: Offsets of its own text, from after the marker to before the block id or the nested list.
        said_on: The ISO date at its end, on which it was said; "" for none.
        said_at: The target of that date's link, as written.
    """

    text: str
    block_id: str
    is_history: bool
    start: int
    end: int
    section: str = ""
    since: str = ""
    until: str = ""
    replaced_by: str = ""
    own: tuple[int, int] = (0, 0)
    said_on: str = ""
    said_at: str = ""


def find_statements(text: str, start: int = 0) -> tuple[Statement, ...]:
    """Return the statements from an offset on: top-level list items outside fences, in the order of the page."""
    lines = list(markdown.LINE.finditer(text, start))
    statements: list[Statement] = []
    section, history_level, fence, position = "", 0, "", 0
    while position < len(lines):
        line = lines[position][0]
        position += 1
        fence_line = markdown.INDENTED_FENCE.match(line)
        if fence or fence_line:
            fence = markdown.fence_after(fence, fence_line)
        elif heading := _HEADING.fullmatch(line):
            section, level = heading[2], len(heading[1])
            # the sections below History belong to it, up to a heading of its own level or above
            if not history_level or level <= history_level:
                history_level = level if section.casefold() == HISTORY.casefold() else 0
        elif marker := _MARKER.match(line):
            last = _end_of_item(lines, position)
            item = lines[position - 1 : last]
            statements.append(_statement_from(item, marker.end(), section, bool(history_level)))
            position = last
    return tuple(statements)


def _end_of_item(lines: list[re.Match[str]], position: int) -> int:
    """Return the position of the first line after a list item, nested lists and indented paragraphs included.

    Args:
        lines: Of the page.
        position: Of the line below the item's first line.
    """
    end = position
    for number in range(position, len(lines)):
        line = lines[number][0]
        if not line.strip():
            continue
        is_indented = len(line) - len(line.lstrip(" \t")) >= 2
        begins_block = _MARKER.match(line) or markdown.INDENTED_FENCE.match(line) or line.startswith(("#", "---"))
        # Markdown's lazy continuation: a line right below belongs to the item although it is not indented
        if not is_indented and (number != end or begins_block):
            break
        end = number + 1
    return end


def _statement_from(lines: list[re.Match[str]], marker: int, section: str, is_history: bool) -> Statement:
    """Return a list item as a statement.

    Args:
        lines: The item's lines, nested lists included.
        marker: Length of the bullet or number at the item's start.
        section: The nearest heading above.
        is_history: Whether the item is below the heading `History`.
    """
    own = lines[0][0]
    for line in lines[1:]:  # up to where a nested list, a code fence or a second paragraph begins
        if not line[0].strip() or _MARKER.match(line[0].lstrip(" \t")) or markdown.INDENTED_FENCE.match(line[0]):
            break
        own += line[0]
    written = own[marker:].rstrip()
    block_id = _BLOCK_ID.search(written)
    if block_id:
        written = written[: block_id.start()].rstrip()
    text = markdown.unescape("\n".join(line.strip() for line in written.split("\n")))
    retired = _RETIRED.fullmatch(text) if is_history else None
    text = retired["text"] if retired else text
    day_link = _DAY_LINK.search(text)
    start = lines[0].start() + marker
    return Statement(
        text=text[: day_link.start()] if day_link else text,
        block_id=block_id[1] if block_id else "",
        is_history=is_history,
        start=lines[0].start(),
        end=lines[-1].end(),
        section=section,
        since=(retired["since"] or "") if retired else "",
        until=retired["until"] if retired else "",
        replaced_by=(retired["successor"] or "") if retired else "",
        own=(start, start + len(written)),
        said_on=day_link["day"] if day_link else "",
        said_at=day_link["target"] if day_link else "",
    )


def set_apart(text: str, former: str) -> tuple[str, list[str]]:
    """Return a text with a blank line below each statement under which somebody wrote a line of its own, and these.

    Args:
        text: As it was edited, with `\\n` ends.
        former: As it was before; what melted into a statement there stays as it is.
    """
    had, lines = "\n" + former.replace("\r\n", "\n") + "\n", list[str]()

    def apart(match: re.Match[str]) -> str:
        if f"\n{match[0]}\n" in had:
            return match[0]
        lines.append(match["line"])
        return f"{match['above']}\n{match['line']}"

    return _MELTING.sub(apart, text), lines


def statement_line(text: str, block_id: str, marker: str = "-") -> str:
    """Return a statement as a list item on one line, with its block id.

    Raises:
        ValueError: The text is empty.
    """
    line = markdown.one_line(text)
    if not line:
        raise ValueError("a statement must not be empty")
    return f"{marker} {line} ^{block_id}\n"


def with_day_link(text: str, day: str, link: str, uuid: str = "") -> str:
    """Return a statement's text with a link to the page of the day it was said on, in brackets at its end.

    Args:
        text: Of the statement.
        day: An ISO date, which the link shows.
        link: Path of the day's page, relative to the page of the statement.
        uuid: Of the day's page; "" for none.
    """
    return f"{text} ({markdown.format_link(day, link, uuid)})"


def block_ids(text: str) -> set[str]:
    """Return all block ids (`^f3k9` at the end of a line) in a text, without the `^`."""
    return set(_ANY_BLOCK_ID.findall(text))


def new_block_id(text: str, taken: Collection[str]) -> str:
    """Return a block id for a statement: four characters from a hash of its text, or up to six on a clash.

    Args:
        text: Of the statement.
        taken: The block ids that the page has already.
    """
    attempt = 0
    while True:
        digest = hashlib.sha256(f"{attempt}:{text}".encode("utf-8", "surrogatepass")).digest()
        block_id = "".join(_ALPHABET[byte % 36] for byte in digest[: 4 + min(attempt // 8, 2)])
        if block_id not in taken:
            return block_id
        attempt += 1


# --- what a page is made of: its exchanges, its statements, and the text between -------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a text: `text[start:end]`.

    Attributes:
        start: Offset of its beginning.
        end: Offset after its last line.
        part: The exchange or the statement, with its nested lists, that it is; None for text between them.
    """

    start: int
    end: int
    part: markdown.PlacedEvent | Statement | None = None


def read_units(text: str, start: int = 0, *, only_dated: bool = False) -> Iterator[Unit]:
    """Yield the units of a text in order; they cover it without gaps, and none stands within another one.

    Args:
        text: A page or short-term memory.
        start: Where its body begins.
        only_dated: Whether a heading that begins with a day and has no time begins no exchange.
    """
    events = markdown.find_events(text, start)
    dated = (placed for placed in events if not only_dated or markdown.is_timestamp(placed.event.at))
    parts: list[markdown.PlacedEvent | Statement] = [*dated, *find_statements(text, start)]
    at = start
    for part in sorted(parts, key=lambda part: (part.start, -part.end)):
        if part.start < at:
            continue  # a list item of an exchange
        if part.start > at:
            yield Unit(at, part.start)
        yield Unit(part.start, part.end, part)
        at = part.end
    if at < len(text):
        yield Unit(at, len(text))


# --- who may see a page, and what of it ------------------------------------------------------------------------------


def audience_of(text: str) -> Audience:
    """Return who may see a note and its name; of one that is open single exchanges may be private all the same."""
    if is_off_record(encoded(text)):
        return Audience.NOBODY
    return Audience.HERE if shareable_text(text) is None else Audience.ANYONE


def shareable_text(text: str) -> str | None:
    """Return a note without its private exchanges, for a remote model.

    Returns:
        The text; None where nothing may be shown: the front matter says so, or a private mark that is in no exchange.
    """
    if asks_for_privacy(text):
        return None
    if "<!--" not in text or not markdown.PRIVATE.search(text):
        return text
    private = (placed for placed in markdown.find_events(text) if is_private_event(placed.event))
    text = markdown.edited(text, ((placed.start, placed.end, "") for placed in private))
    return None if markdown.PRIVATE.search(text) else text


# --- pages -----------------------------------------------------------------------------------------------------------

_TITLE = re.compile(r"^# +([^\r\n]*?\S)[ \t]*\r?$", re.MULTILINE)
_SECTION = re.compile(r"^## +([^\r\n]*?)[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_TOP_HEADING = re.compile(r"^#{1,2} ", re.MULTILINE)
_ANY_HEADING = re.compile(r"^ {0,3}(?:#{1,6}(?:[ \t].*)?|=+|-{2,})[ \t]*\r?$", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*(`{3,}+|~{3,}+)[^\n]*\n(?:.*?^[ \t]*\1[ \t]*\r?$|.*\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Memory:
    """A memory page; an attribute that its front matter does not have is empty.

    Attributes:
        path: Relative, posix.
        uuid: Immutable identity.
        title: Of the front matter, else of the first heading, else the file's name.
        created_at: ISO 8601 UTC; likewise `updated_at`.
        emotion: One word.
        reinforcement_count: How often it was stated again or cited.
        text: The whole file.
        offset: Where the body starts in it.
        meta: The front matter as it was read.
    """

    path: str
    uuid: str
    title: str
    created_at: str
    updated_at: str
    tags: tuple[str, ...]
    emotion: str
    reinforcement_count: int
    text: str
    offset: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> str:
        """All below the front matter."""
        return self.text[self.offset :]

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements in the order of the page, those under History included."""
        return find_statements(self.text, self.offset)

    @property
    def current_statements(self) -> list[Statement]:
        """The statements that hold now: those that are not under History."""
        return [statement for statement in self.statements if not statement.is_history]

    @cached_property
    def links(self) -> tuple[markdown.Link, ...]:
        """The links on the page in order, those in code left out."""
        return tuple(markdown.find_links(self.text))

    @property
    def subject(self) -> str:
        """Whom or what the page is about; "User" for a page about the user."""
        return scalar(self.meta, "subject")

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names, as written."""
        aliases = self.meta.get("aliases")
        return tuple(str(alias) for alias in aliases if alias) if isinstance(aliases, list) else ()

    @cached_property
    def audience(self) -> Audience:
        """Who may see it."""
        return audience_of(self.text)

    @property
    def is_private(self) -> bool:
        """Whether it must not be shown to a remote model."""
        return self.audience > Audience.ANYONE

    @property
    def is_off_record(self) -> bool:
        """Whether it is off the record: nothing of it is kept anywhere else."""
        return self.audience is Audience.NOBODY

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of a skills page, in order."""
        return tuple(item.text for item in self.current_statements if item.section == STEPS)


def parse_memory(path: str, text: str) -> Memory:
    """Read a memory page, however a person wrote it.

    Args:
        path: Relative, posix; its stem is the title of a page that has no other.
        text: The whole file.

    Raises:
        FormatError: The front matter is broken, or the page has conflict markers.
    """
    check_markers(path, text)
    return _memory_from(path, text, *split(text, path))


def readable_memory(path: str, text: str | None) -> Memory | None:
    """Return a memory page; None for no text, and for one that cannot be parsed."""
    with suppress(FormatError):
        return None if text is None else parse_memory(path, text)
    return None


def _memory_from(path: str, text: str, meta: Mapping[str, Any], offset: int) -> Memory:
    """Return a file as a memory; a front-matter value of the wrong type counts as missing."""
    count = meta.get("reinforcement_count")
    return Memory(
        path=path,
        uuid=scalar(meta, "uuid"),
        title=title_of(meta, text, offset, path),
        created_at=scalar(meta, "created_at"),
        updated_at=scalar(meta, "updated_at"),
        tags=tags_of(meta),
        emotion=scalar(meta, "emotion"),
        reinforcement_count=count if isinstance(count, int) and not isinstance(count, bool) else 0,
        text=text,
        offset=offset,
        meta=meta,
    )


def scalar(meta: Mapping[str, Any], key: str) -> str:
    """Return a front-matter value as text; "" where it is missing, a list or a mapping."""
    value = meta.get(key)
    return "" if value is None or isinstance(value, list | dict) else str(value).strip()


def tags_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags of front matter without `#`: a list, or one text with commas or spaces between tags."""
    value = meta.get("tags")
    if isinstance(value, str):
        value = re.split(r"[,\s]+", value)
    items = value if isinstance(value, list) else []
    tags = (str(item).strip().removeprefix("#") for item in items if not isinstance(item, list | dict | None))
    return tuple(tag for tag in tags if tag)


def title_of(meta: Mapping[str, Any], text: str, offset: int, path: str) -> str:
    """Return a page's title: its front matter's, else its first heading's, else its file's stem.

    Args:
        meta: Front matter.
        text: The whole file.
        offset: Where the body starts.
        path: Relative, posix.
    """
    if title := scalar(meta, "title"):
        return title
    match = _TITLE.search(text, offset)
    if match and re.search("```|~~~", text[offset : match.start()]):  # the `#` line may be a comment in code
        match = _TITLE.search(_FENCED.sub("", text[offset:]))
    return markdown.unescape(match[1]) if match else posixpath.splitext(posixpath.basename(path))[0]


# the keys under which other programs write a note's date; the day that it is about comes before that of its last change
_DATE_KEYS = ("date", "updated_at", "updated", "modified", "created_at", "created")
_CREATION_KEYS = ("created_at", "created", "date")
_DATED = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d))?(?!\d)", re.IGNORECASE
)


def own_date(meta: Mapping[str, Any], path: str, *, is_creation: bool = False) -> str:
    """Return the date that a person's note has in its front matter or its file name (`2024-05-06 Walk.md`).

    Args:
        meta: Front matter.
        path: Relative, posix.
        is_creation: Prefer the date of creation; otherwise the day that the note is about, or of its last change.

    Returns:
        An ISO 8601 day, or a moment in UTC where the date has an hour; "" where the note has no date.
    """
    keys = _CREATION_KEYS if is_creation else _DATE_KEYS
    dates = [_date_in(scalar(meta, key)) for key in keys]
    # the file's name tells the day that a note is about: after `date`, before the dates of its last change
    dates.insert(len(keys) if is_creation else 1, _date_in(posixpath.basename(path)))
    return next(filter(None, dates), "")


def _date_in(text: str) -> str:
    """Return the first ISO 8601 day or moment in a text; "" where there is none."""
    match = _DATED.search(text)
    if match is None:
        return ""
    try:
        has_hour = len(match[0]) > len("2024-05-06")
        return iso(parse_iso(match[0])) if has_hour else date.fromisoformat(match[0]).isoformat()
    except (ValueError, OverflowError):  # no such day, 2024-02-31
        return ""


class PageDocument:
    """A page as a text that operations change line by line; immutable, `str(document)` is the file.

    Args:
        text: The present file.
        path: Relative, posix.

    Raises:
        FormatError: The front matter is broken.
    """

    def __init__(self, text: str, path: str = "") -> None:
        self._text, self._path = text, path
        self._meta, self._offset = split(text, path)

    def __str__(self) -> str:
        return self._text

    def _with(self, text: str) -> Self:
        """Return a document with another text; unchanged front matter is not parsed again."""
        document = copy(self)
        for name in ("memory", "page"):  # the cached properties, which are of the former text
            document.__dict__.pop(name, None)
        document._text = text
        if not self._offset or not text.startswith(self._text[: self._offset]):
            document._meta, document._offset = split(text, self._path)
        return document

    def set_meta(self, **keys: Any) -> Self:
        """Set front-matter keys; all other entries stay byte for byte."""
        return self._with(edit_meta(self._text, **keys))

    def _section(self, name: str) -> tuple[int, int] | None:
        """Return start and end of the content of a `##` section, whose capitals do not matter; None where it is not."""
        headings = _SECTION.finditer(self._text, self._offset)
        start = next((match.end() for match in headings if match[1].casefold() == name.casefold()), None)
        return None if start is None else (start, self._section_end(start))

    def _section_end(self, start: int) -> int:
        """Return the offset of the next `#` or `##` heading; the text's end where there is none."""
        match = _TOP_HEADING.search(self._text, start)
        return match.start() if match else len(self._text)

    def _in_section(self, name: str, lines: str, before: str = "") -> Self:
        """Add whole lines at the end of a `##` section; a missing section is made, above the one named `before`."""
        if section := self._section(name):
            at = markdown.end_of_content(self._text, *section)
            gap = "\n" if at == section[1] < len(self._text) else ""
            return self._with(markdown.splice(self._text, at, lines + gap))
        headings = _SECTION.finditer(self._text, self._offset)
        end = next((match.start() for match in headings if match[1] == before), len(self._text))
        return self._with(_append(self._text, self._offset, end, f"## {name}\n{lines}"))


class MemoryDocument(PageDocument):
    """A memory page; the methods with a `block_id` raise `FormatError` where there is no such statement."""

    @cached_property
    def memory(self) -> Memory:
        """The page, parsed."""
        return _memory_from(self._path, self._text, self._meta, self._offset)

    def statement(self, block_id: str) -> Statement:
        """Return a statement by its block id."""
        for statement in self.memory.statements:
            if block_id and statement.block_id == block_id:
                return statement
        raise FormatError(self._path, f"there is no statement ^{block_id}; read the page again")

    def block_id_for(self, text: str) -> str:
        """Return the block id that `add_statement` would give a text."""
        return new_block_id(markdown.one_line(text), block_ids(self._text[self._offset :]))

    def add_statement(self, text: str, block_id: str | None = None) -> MemoryDocument:
        """Add a statement below the last current one; on a page without any, above the first `##` section."""
        return self.with_item(statement_line(text, block_id or self.block_id_for(text)))

    def with_item(self, lines: str, *, is_history: bool = False) -> MemoryDocument:
        """Add a list item as it is written: below the last current statement, or at the end of `## History`."""
        if is_history:
            return self._in_section(HISTORY, lines)
        section = _SECTION.search(self._text, self._offset)
        end = section.start() if section else len(self._text)
        current = [item for item in self.memory.current_statements if item.section != STEPS]
        with_block_id = [item for item in current if item.block_id]
        # a person's list without block ids counts only where it is above the first section
        items = with_block_id or [item for item in current if item.start < end]
        if items:
            return self._with(markdown.splice(self._text, items[-1].end, lines))
        return self._with(_append(self._text, self._offset, end, lines))

    @property
    def is_divided(self) -> bool:
        """Whether it has other headings than its title, `History` and `Steps`; what may be one counts, as in code."""
        headings = [found[0].rstrip().casefold() for found in _ANY_HEADING.finditer(self._text, self._offset)]
        is_titled = any(heading.startswith("# ") for heading in headings[:1])
        return not {"## history", "## steps"}.issuperset(headings[is_titled:])

    def with_sections(self, sections: Mapping[str, Iterable[str]]) -> MemoryDocument:
        """Move statements, byte for byte, below new `##` headings, which come last before the first `##` section.

        Args:
            sections: Block ids by heading, in order.
        """
        newline, added, moved = markdown.newline_of(self._text), "", list[Statement]()
        if not self._text.endswith("\n"):
            return self._with(self._text + newline).with_sections(sections)
        for heading, ids in sections.items():
            items = [self.statement(block_id) for block_id in ids]
            added += f"{newline}## {heading}{newline}" + "".join(self._text[item.start : item.end] for item in items)
            moved += items
        text = markdown.edited(self._text, sorted((item.start, item.end, "") for item in moved))
        first = _SECTION.search(text, self._offset)
        end = first.start() if first else len(text)
        above = text[: markdown.end_of_content(text, self._offset, end)]
        return self._with(above + added + (newline if first else "") + text[end:])

    def add_step(self, text: str) -> MemoryDocument:
        """Add a step at the end of `## Steps`, with the next number."""
        steps = [item for item in self.memory.current_statements if item.section == STEPS]
        line = statement_line(text, self.block_id_for(text), f"{len(steps) + 1}.")
        if steps:
            return self._with(markdown.splice(self._text, steps[-1].end, line))
        return self._in_section(STEPS, line, before=HISTORY)

    def replace_statement(self, block_id: str, text: str) -> MemoryDocument:
        """Replace a statement's own text; its marker, block id and nested lists stay."""
        line = markdown.one_line(text)
        if not line:
            raise ValueError("a statement must not be empty")
        start, end = self.statement(block_id).own
        return self._with(self._text[:start] + line + self._text[end:])

    def has_lines_below(self, block_id: str) -> bool:
        """Return whether a statement has further lines, such as a list that a person nested below it."""
        statement = self.statement(block_id)
        return "\n" in self._text[statement.start : statement.end].strip("\n")

    def without_statement(self, block_id: str) -> MemoryDocument:
        """Remove a statement with its nested lists; the rest of the page stays byte for byte."""
        statement = self.statement(block_id)
        return self._with(self._text[: statement.start] + self._text[statement.end :])

    def retire(self, block_id: str, on: str, replaced_by: str = "", since: str = "") -> MemoryDocument:
        """Move a statement to `## History`; one that is there already stays as it is.

        Args:
            block_id: Of the statement.
            on: ISO 8601 date until which it held.
            replaced_by: Block id of the statement that replaces it; "" for none.
            since: ISO 8601 date from which it held; "" where unknown.
        """
        statement = self.statement(block_id)
        if statement.is_history:
            return self
        start, end = statement.own
        dates = f"{since} – {on}" if since else f"until {on}"
        retired = f"~~{self._text[start:end]}~~ ({dates}{f'; replaced by ^{replaced_by}' if replaced_by else ''})"
        item = f"- {retired}{self._text[end : statement.end]}".replace("\r\n", "\n").rstrip("\n") + "\n"
        return self.without_statement(block_id).with_item(item, is_history=True)

    def with_missing_keys(self, uuid: str, written: str) -> MemoryDocument:
        """Add the front-matter keys that a person's page does not have; present keys stay.

        Args:
            uuid: A new one.
            written: ISO 8601 UTC moment of the file's last change. It becomes `created_at` too, unless the note has a
                date in its front matter or file name.
        """
        defaults = first_keys(uuid, written)
        defaults["created_at"] = own_date(self._meta, self._path, is_creation=True) or written
        missing = {key: value for key, value in defaults.items() if self._meta.get(key) is None}
        return self.set_meta(**missing) if missing else self


def _append(text: str, start: int, end: int, lines: str) -> str:
    """Return the text with lines added as a paragraph after the last line that is not blank between two offsets."""
    at = markdown.end_of_content(text, start, end)
    before = "\n" if at > start else ""
    after = "\n" if at == end and end < len(text) else ""
    return markdown.splice(text, at, before + lines + after)


def first_keys(uuid: str, now: str, tags: Iterable[str] = (), emotion: str = "neutral") -> dict[str, Any]:
    """Return the front-matter keys that every page of long-term memory has, for a new page."""
    return {
        "uuid": uuid,
        "created_at": now,
        "updated_at": now,
        "tags": list(tags),
        "emotion": emotion,
        "reinforcement_count": 0,
    }


def whole_memory(body: str, *, uuid: str, now: str, tags: Iterable[str] = (), **meta: Any) -> str:
    """Return the text of a new page that has a note, byte for byte, below its front matter.

    Args:
        body: The note.
        uuid: A new one.
        now: ISO 8601 UTC.
        tags: Keywords.
        meta: Further keys.
    """
    newline = "\r\n" if "\r\n" in body else "\n"
    keys = first_keys(uuid, now, tags) | meta
    return f"{render_meta(keys)}\n".replace("\n", newline) + body.lstrip("\r\n")


def new_memory(
    title: str,
    *,
    uuid: str,
    now: str,
    tags: Iterable[str] = (),
    emotion: str = "neutral",
    statements: Iterable[str] = (),
    steps: Iterable[str] = (),
    body: str = "",
    **meta: Any,
) -> str:
    """Return the text of a new memory page.

    Args:
        title: Becomes the heading.
        uuid: A new one.
        now: ISO 8601 UTC.
        tags: Keywords.
        emotion: One word.
        statements: Texts, in order.
        steps: Of a skill, in order.
        body: Markdown right below the heading, such as the exchanges of an episodic page.
        meta: Further keys: category, subject, subject_type, importance, canonical_key, sources, focused, …
    """
    keys = first_keys(uuid, now, tags, emotion) | meta
    body = f"\n{body.rstrip()}\n" if body.strip() else ""
    document = MemoryDocument(f"{render_meta(keys)}\n# {markdown.one_line(title)}\n{body}")
    for text in statements:
        document = document.add_statement(text)
    for text in steps:
        document = document.add_step(text)
    return str(document)
