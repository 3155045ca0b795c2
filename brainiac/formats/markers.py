"""Conflict markers, which git writes into a file where it could not merge two versions of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from brainiac.errors import FormatError
from brainiac.formats.markdown import fence_after

CONFLICT = b"<<<<<<<"  # a text without these bytes has no conflict markers

_MARKER = re.compile(r"(<{7}|\|{7}|={7}|>{7})(?: [^\n]*)?\r?\n?")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Sides:
    """The versions in a file with conflict markers, each a whole file.

    Attributes:
        ours: The version of the branch that was checked out.
        theirs: The version that was merged into it.
        base: The version that both were made from; None where git did not write it.
    """

    ours: str
    theirs: str
    base: str | None


def has_markers(text: str) -> bool:
    """Return whether a text has at least one whole block of conflict markers outside of code fences."""
    return CONFLICT.decode() in text and split_markers(text) is not None


def check_markers(path: str, text: str) -> None:
    """Refuse a text with conflict markers, since it is unknown which of its lines count.

    Raises:
        FormatError: It has conflict markers.
    """
    if has_markers(text):
        raise FormatError(path, "holds conflict markers of git; keep the lines that hold and remove the markers")


def split_markers(text: str) -> Sides | None:
    """Return the versions in a text with conflict markers; None for a text without a whole block of them.

    A block inside a code fence is part of the text: a person writes about git.
    """
    # `splitlines` is faster, but would also split at a single carriage return
    whole = text.splitlines(keepends=True) if "\r" not in text else re.findall(r"[^\n]*\n|[^\n]+", text)
    lines: list[tuple[str, str]] = []  # each with `ours`, `theirs`, `base`, "" for all, or the character of a marker
    fence = ""
    while len(lines) < len(whole):
        line = whole[len(lines)]
        if block := [] if fence else _block_at(whole, len(lines)):
            lines += block
        else:
            fence = fence_after(fence, _FENCE.match(line))
            lines.append(("", line))
    if not any(label == "ours" for label, _ in lines):
        return None
    sides = {side: "".join(line for label, line in lines if label in ("", side)) for side in ("ours", "theirs", "base")}
    has_base = any(label == "|" for label, _ in lines)  # its marker: the base itself may be empty
    return Sides(sides["ours"], sides["theirs"], sides["base"] if has_base else None)


def _block_at(lines: list[str], start: int) -> list[tuple[str, str]]:
    """Return the block of conflict markers that begins at a line, as (label, line); [] where no whole one does."""
    first = _MARKER.fullmatch(lines[start])
    if not first or first[1] != "<<<<<<<":
        return []
    block, label, kinds = [("<", lines[start])], "ours", "<"
    for line in lines[start + 1 :]:
        marker = _MARKER.fullmatch(line)
        kind = marker[1][0] if marker else ""
        kinds += kind
        if not any(order.startswith(kinds) for order in ("<=>", "<|=>")):
            return []
        block.append((kind or label, line))
        if kind == ">":
            return block
        label = {"|": "base", "=": "theirs"}.get(kind, label)
    return []
