"""Three-way merging of what a process wrote and what a person saved, and telling a stale editor buffer.

Text in, text out; lines are compared as bytes, so that line ends and odd encodings survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from merge3 import Merge3

_SOURCE = {"unchanged": 0, "same": 1, "a": 1, "b": 2}  # a region's kind to the text it is taken from
MAX_BYTES = 2_000_000  # comparing lines takes seconds beyond this; such files are left as the person saved them


def three_way(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge two texts that grew from one; None when both changed the same lines.

    Where both only added at the same place, both additions stand, ours first; what one holds of the other, once.
    """
    if base == theirs or ours == theirs:
        return ours
    if base == ours:
        return theirs
    if max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return None
    before, lines, behind = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    merged: list[bytes] = []
    for kind, *span in _regions(lines):
        if kind == "conflict":
            base_start, base_end, our_start, our_end, their_start, their_end = span
            if base_start != base_end:
                return None
            merged += _both(lines[1][our_start:our_end], lines[2][their_start:their_end])
        else:
            merged += lines[_SOURCE[kind]][span[0] : span[1]]
    whole = before + merged + behind
    return b"".join(_whole_lines(whole[:-1]) + whole[-1:])


def is_stale(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Tell whether a save grew from `base` without having seen what we made of it.

    It must lack every line that we added and hold every stretch that we changed just as it was in `base`; a save
    that has some of our lines was made in sight of them, and what it lacks a person removed.
    """
    if not base or theirs in (base, ours) or max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return False
    _, lines, _ = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    added = {line for line in lines[1] if line.strip()} - set(lines[0])
    if not added.isdisjoint(lines[2]):
        return False
    kinds = {"both" if kind == "conflict" and span[0] == span[1] else kind for kind, *span in _regions(lines)}
    return kinds.isdisjoint({"conflict", "same"}) and not kinds.isdisjoint({"a", "both"})


def _both(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    for whole, part in ((ours, theirs), (theirs, ours)):
        rest = iter(whole)
        if all(line in rest for line in part):  # in order
            return whole
    return _whole_lines(ours) + theirs


def _regions(lines: Sequence[Sequence[bytes]]) -> list[tuple[Any, ...]]:
    base, ours, theirs = lines
    return list(Merge3(base, ours, theirs).merge_regions())


def _trimmed(*texts: list[bytes]) -> tuple[list[bytes], list[list[bytes]], list[bytes]]:
    """Return the lines that all begin with, what is between, and the lines that all end with; comparing is slow."""
    shortest = min(len(lines) for lines in texts)
    start = next((i for i in range(shortest) if len({lines[i] for lines in texts}) > 1), shortest)
    rest = shortest - start
    end = next((i for i in range(rest) if len({lines[-1 - i] for lines in texts}) > 1), rest)
    first = texts[0]
    return first[:start], [lines[start : len(lines) - end] for lines in texts], first[len(first) - end :]


def _lines(text: bytes) -> list[bytes]:
    """Split after each newline, and nowhere else."""
    *lines, tail = text.split(b"\n")
    return [line + b"\n" for line in lines] + ([tail] if tail else [])


def _whole_lines(lines: list[bytes]) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + b"\n" for line in lines]
