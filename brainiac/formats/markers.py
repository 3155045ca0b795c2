"""Conflict markers, which git writes into a file where it could not merge two versions of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from brainiac.errors import FormatError

CONFLICT = b"<<<<<<<"  # a text without these bytes has no conflict markers

_MARKER = re.compile(r"(<{7}|\|{7}|={7}|>{7})(?: [^\n]*)?\r?\n?")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Sides:
    """The versions that a file with conflict markers holds, each a whole file.

    Attributes:
        ours: The version of the branch that was checked out.
        theirs: The version that was merged into it.
        base: The version that both grew from; None where git was not told to write it.
    """

    ours: str
    theirs: str
    base: str | None


def has_markers(text: str) -> bool:
    """Return whether a text has at least one whole block of conflict markers outside of code fences."""
    return CONFLICT.decode() in text and split_markers(text) is not None


def check_markers(path: str, text: str) -> None:
    """Raise for a text with conflict markers: nobody can tell which of its lines hold.

    Raises:
        FormatError: It has conflict markers.
    """
    if has_markers(text):
        raise FormatError(path, "holds conflict markers of git; keep the lines that hold and remove the markers")


def split_markers(text: str) -> Sides | None:
    """Return the versions that a text with conflict markers holds; None for a text without a whole block.

    A block inside a code fence is part of the text: somebody writes about git.
    """
    lines = list(_labelled_lines(text))
    if not any(label == "ours" for label, _ in lines):
        return None
    sides = {side: "".join(line for label, line in lines if label in ("", side)) for side in ("ours", "theirs", "base")}
    has_base = any(label == "base" for label, _ in lines) or any(label == "|" for label, _ in lines)
    return Sides(sides["ours"], sides["theirs"], sides["base"] if has_base else None)


def _labelled_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line with the version it belongs to: "" for all, a marker's own first character for a marker."""
    lines = text.splitlines(keepends=True) if "\r" not in text else re.findall(r"[^\n]*\n|[^\n]+", text)
    fence, position = "", 0
    while position < len(lines):
        line = lines[position]
        block = [] if fence else _block_at(lines, position)
        if block:
            yield from block
            position += len(block)
            continue
        if opening := _FENCE.match(line):
            is_closing = opening[1].startswith(fence) and not line.strip().strip(opening[1][0])
            fence = opening[1] if not fence else "" if is_closing else fence
        yield "", line
        position += 1


def _block_at(lines: list[str], start: int) -> list[tuple[str, str]]:
    """Return the lines of the block that begins at a position, labelled; [] where none begins or it is not whole."""
    first = _MARKER.fullmatch(lines[start])
    if not first or first[1] != "<<<<<<<":
        return []
    block, side, order = [("<", lines[start])], "ours", "<"
    for line in lines[start + 1 :]:
        marker = _MARKER.fullmatch(line)
        kind = marker[1][0] if marker else ""
        if kind == "<" or (kind in ("|", "=") and kind in order) or (kind == "|" and "=" in order):
            return []
        if kind == ">":
            return [*block, (kind, line)] if "=" in order else []
        if kind:
            side, order = ("base" if kind == "|" else "theirs"), order + kind
        block.append((kind or side, line))
    return []
