"""What was said, in the pieces that are found and quoted: a short message whole, a long one block by block (F-TXT)."""

from __future__ import annotations

import re
from collections.abc import Iterator

WHOLE_CHARACTERS = 1_000  # a message up to this length is one piece

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")


def pieces(message: str) -> tuple[str, ...]:
    """Return the pieces of a message: itself, or its blocks where it is long; each stands in it word for word."""
    if len(message) <= WHOLE_CHARACTERS:
        return (message,) if message.strip() else ()
    return tuple(markdown_blocks(message))


def markdown_blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs, fences, tables and lists of a text, each whole and as written.

    A heading goes with the block below it. A list goes on over blank lines as long as items or indented lines follow.
    """
    lines = [found[0] for found in _LINE.finditer(text)]
    place = 0
    while place < len(lines):
        end = _end_of_block(lines, place)
        if block := "".join(lines[place:end]).strip("\r\n"):
            yield block.rstrip()
        place = end


def _end_of_block(lines: list[str], start: int) -> int:
    """Return the place after the block that begins at `start`, with the blank lines and headings above it."""
    place = start
    while place < len(lines) and (not lines[place].strip() or _HEADING.match(lines[place])):
        place += 1
    if place == len(lines):
        return place
    if fence := _FENCE.match(lines[place]):
        return _end_of_fence(lines, place + 1, fence[1])
    return _end_of_list(lines, place) if _ITEM.match(lines[place]) else _end_of_paragraph(lines, place + 1)


def _end_of_fence(lines: list[str], place: int, opening: str) -> int:
    while place < len(lines):
        closing = _FENCE.match(lines[place])
        place += 1
        if closing and closing[1].startswith(opening) and not lines[place - 1].strip().strip(opening[0]):
            break
    return place


def _end_of_paragraph(lines: list[str], place: int) -> int:
    while place < len(lines) and lines[place].strip():
        if _HEADING.match(lines[place]) or _FENCE.match(lines[place]):
            break
        place += 1
    return place


def _end_of_list(lines: list[str], place: int) -> int:
    end = place
    while place < len(lines):
        line = lines[place]
        is_inside = bool(_ITEM.match(line)) or line[0] in " \t" or (end == place and not _HEADING.match(line))
        if line.strip() and not is_inside:
            break
        fence = _FENCE.match(line)
        place = _end_of_fence(lines, place + 1, fence[1]) if fence else place + 1
        if line.strip():
            end = place
    return end
