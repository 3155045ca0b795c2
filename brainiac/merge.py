"""Three-way merging of what a process wrote and what a person saved, and telling a stale editor buffer.

Text in, text out; lines are compared as bytes, so that line ends and odd encodings survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from merge3 import Merge3

MAX_BYTES = 2_000_000  # comparing lines takes seconds beyond this; such files are left as the person saved them


def three_way(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge two texts that grew from one; None when both changed the same lines.

    Where both only added at the same place, both additions stand, ours first.
    """
    if base == theirs or ours == theirs:
        return ours
    if base == ours:
        return theirs
    if max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return None
    lines = [_lines(base), _lines(ours), _lines(theirs)]
    merged: list[bytes] = []
    for region in _regions(*lines):
        kind, rest = region[0], region[1:]
        if kind == "conflict":
            base_start, base_end, our_start, our_end, their_start, their_end = rest
            if base_start != base_end:
                return None
            merged += _whole_lines(lines[1][our_start:our_end])
            merged += lines[2][their_start:their_end]
        else:
            source = {"unchanged": 0, "same": 1, "a": 1, "b": 2}[kind]
            merged += lines[source][rest[0] : rest[1]]
    return b"".join(_whole_lines(merged[:-1]) + merged[-1:])


def is_stale(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Tell whether a save grew from `base` without having seen what we made of it.

    It must lack every line that we added and hold every stretch that we changed just as it was in `base`; a save
    that has some of our lines was made in sight of them, and what it lacks a person removed.
    """
    if not base or theirs in (base, ours) or max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return False
    lines = [_lines(base), _lines(ours), _lines(theirs)]
    added = {line for line in lines[1] if line.strip()} - set(lines[0])
    if not added.isdisjoint(lines[2]):
        return False
    kinds = {region[0] if region[0] != "conflict" or region[1] != region[2] else "both" for region in _regions(*lines)}
    return "conflict" not in kinds and "same" not in kinds and bool(kinds & {"a", "both"})


def _regions(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[tuple[Any, ...]]:
    return list(Merge3(base, ours, theirs).merge_regions())


def _lines(text: bytes) -> list[bytes]:
    """Split after each newline, and nowhere else."""
    *lines, tail = text.split(b"\n")
    return [line + b"\n" for line in lines] + ([tail] if tail else [])


def _whole_lines(lines: list[bytes]) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + b"\n" for line in lines]
