"""The statements of a memory page: list items with a block id, where each lies, and how one is written.

A retired statement stands under `## History` as `- ~~text~~ (since – until; replaced by ^id) ^id`
(docs/format.md, F-MEM).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from brainiac.formats.links import format_link
from brainiac.formats.prose import one_line, unescape

HISTORY, STEPS = "History", "Steps"

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*\r?\n?")
_MARKER = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BLOCK_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*\Z")
_ANY_BLOCK_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
_RETIRED = re.compile(r"~~(.*)~~ \((?:until|(\S+) –) (\S+?)(?:; replaced by \^([A-Za-z0-9-]+))?\)", re.DOTALL)
_SAID = re.compile(r" \(\[(\d{4}-\d\d-\d\d)\]\(<?([^\s<>]*?)>?(?: \"uuid:[^\"]*\")?\)\)\Z")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class Statement:
    """A list item of a memory page.

    Attributes:
        text: What it says, without marker and block id; lines below the first without their indentation.
        block_id: Without the `^`; empty where a person wrote the item without one.
        is_history: It no longer holds.
        start: Offset of its first line in the text; `text[start:end]` is the item with its nested lists.
        end: Offset after its last line.
        section: The nearest heading above it.
        since: For a retired statement: from when it held, if known.
        until: Until when it held.
        replaced_by: The block id of what stands in its place.
        own: Offsets of its own text, from after the marker to before the block id or the nested list.
        said_on: The day that stands behind its words, where they were said, an ISO date; "" for none.
        said_at: The link of that day, as it stands.
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


@dataclass(slots=True)
class _Line:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip(" \t"))


def find_statements(text: str, start: int = 0) -> tuple[Statement, ...]:
    """Return the statements from an offset on: top-level list items outside fences, in the order of the page."""
    return tuple(_scan(text, [_Line(found.start(), found[0]) for found in _LINE.finditer(text, start)]))


def _scan(text: str, lines: list[_Line]) -> Iterator[Statement]:
    section, history_level, fence, position = "", 0, "", 0
    while position < len(lines):
        line = lines[position]
        position += 1
        opening = _FENCE.match(line.text)
        if fence:
            if opening and opening[1].startswith(fence) and not line.text.strip().strip(fence[0]):
                fence = ""
        elif opening:
            fence = opening[1]
        elif heading := _HEADING.fullmatch(line.text):
            section, level = heading[2], len(heading[1])
            if not history_level or level <= history_level:
                history_level = level if section.casefold() == HISTORY.casefold() else 0
        elif marker := _MARKER.match(line.text):
            last = _end_of_item(lines, position)
            yield _read(lines[position - 1 : last], marker.end(), section, bool(history_level))
            position = last


def _end_of_item(lines: list[_Line], position: int) -> int:
    """Return the position after an item whose second line would be at `position`."""
    end = position
    while position < len(lines):
        line = lines[position]
        position += 1
        if line.is_blank:
            continue
        is_lazy = end == position - 1 and not (  # a paragraph goes on without indentation until something begins
            line.text.startswith(("#", "---")) or _MARKER.match(line.text) or _FENCE.match(line.text)
        )
        if line.indent < 2 and not is_lazy:
            break
        end = position
    return end


def _read(lines: list[_Line], marker: int, section: str, is_history: bool) -> Statement:
    own = lines[:1]
    for line in lines[1:]:  # its own text ends where a nested list, a fence or a second paragraph begins
        if line.is_blank or _MARKER.match(line.text.lstrip(" \t")) or _FENCE.match(line.text):
            break
        own.append(line)
    first = lines[0].start + marker
    raw = lines[0].text[marker:] + "".join(line.text for line in own[1:])
    content = raw.rstrip()
    block_id = ""
    if found := _BLOCK_ID.search(content):
        block_id, content = found[1], content[: found.start()].rstrip()
    said = unescape("\n".join(line.strip() for line in content.split("\n")))
    since = until = replaced_by = ""
    if is_history and (retired := _RETIRED.fullmatch(said)):
        said, since, until, replaced_by = retired[1], retired[2] or "", retired[3], retired[4] or ""
    day = _SAID.search(said)
    return Statement(
        text=said[: day.start()] if day else said,
        block_id=block_id,
        is_history=is_history,
        start=lines[0].start,
        end=lines[-1].end,
        section=section,
        since=since,
        until=until,
        replaced_by=replaced_by,
        own=(first, first + len(content)),
        said_on=day[1] if day else "",
        said_at=day[2] if day else "",
    )


def statement_line(text: str, block_id: str, marker: str = "-") -> str:
    """Return the line of a statement, white space folded so that it is one line.

    Raises:
        ValueError: The text is empty.
    """
    said = one_line(text)
    if not said:
        raise ValueError("a statement must not be empty")
    return f"{marker} {said} ^{block_id}\n"


def with_day(text: str, day: str, link: str, uuid: str = "") -> str:
    """Return words with the day they were said and the link to its page behind them, as a statement holds them."""
    return f"{text} ({format_link(day, link, uuid)})"


def retired_text(own: str, on: str, replaced_by: str, since: str) -> str:
    """Return what stands under History in place of a statement's own text."""
    dates = f"{since} – {on}" if since else f"until {on}"
    return f"~~{own}~~ ({dates}{f'; replaced by ^{replaced_by}' if replaced_by else ''})"


def block_ids(text: str) -> set[str]:
    """Return every block id that a text uses, of statements or of anything else."""
    return set(_ANY_BLOCK_ID.findall(text))


def new_block_id(text: str, taken: Collection[str]) -> str:
    """Return a block id for a statement: four characters drawn from its hash, others or more of them on a clash."""
    attempt = 0
    while True:
        digest = hashlib.sha256(f"{attempt}:{text}".encode("utf-8", "surrogatepass")).digest()
        block_id = "".join(_ALPHABET[byte % 36] for byte in digest[: 4 + min(attempt // 8, 2)])
        if block_id not in taken:
            return block_id
        attempt += 1
