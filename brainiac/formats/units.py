"""What a page is made of: `read` gives its exchanges, its statements, and the text between, for merge, diff and forget.

What each makes of the text between is its own: lines, paragraphs, or what differs (docs/decisions/one-reader.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from brainiac.formats.markdown import PlacedEvent, find_events, is_timestamp
from brainiac.formats.page import Statement, find_statements


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
    part: PlacedEvent | Statement | None = None


def read(text: str, start: int = 0, *, only_dated: bool = False) -> Iterator[Unit]:
    """Yield the units of a text in order; they cover it without gaps, and none stands within another one.

    Args:
        text: A page or short-term memory.
        start: Where its body begins.
        only_dated: Whether a heading that begins with a day and has no time begins no exchange.
    """
    events = (placed for placed in find_events(text, start) if not only_dated or is_timestamp(placed.event.at))
    parts: list[PlacedEvent | Statement] = [*events, *find_statements(text, start)]
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
