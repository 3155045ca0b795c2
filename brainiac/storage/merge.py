"""Three-way merging of what a process wrote and what a person saved, and recognizing a stale editor buffer.

Text in, text out; lines are compared as bytes, so that line ends and odd encodings survive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from merge3 import Merge3

_SOURCE = {"unchanged": 0, "same": 1, "a": 1, "b": 2}  # a region's kind to the text it is taken from
MAX_BYTES = 2_000_000  # comparing lines takes seconds beyond this; such files are left as the person saved them

Lines = list[bytes]


def three_way(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge two texts that grew from one; None when both changed the same lines, or lines next to each other.

    Where both only added at the same place, both additions stand, ours first; what one holds of the other, once.
    """
    return _joined(base, ours, theirs, lambda *texts: None)


def woven(base: bytes, ours: bytes, theirs: bytes, *, is_ours_first: bool) -> tuple[bytes, bool] | None:
    """Merge two texts that grew from one, line by line; where both changed the same lines, one side's stand.

    What the other side added beside or within such lines stands all the same: an addition is never dropped.

    Returns:
        The text, and whether no change had to give way; None when the texts are too large to compare.
    """
    is_clean = True

    def settle(*texts: Lines) -> Lines:
        nonlocal is_clean
        lines, is_whole = _woven(*texts, is_ours_first=is_ours_first)
        is_clean &= is_whole
        return lines

    text = _joined(base, ours, theirs, settle)
    return None if text is None else (text, is_clean)


def is_stale(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Return whether a save grew from `base` without having seen what we made of it.

    It must lack every line that we added, undo something that we did, and still hold a line of `base`; a save that
    has some of our lines was made in sight of them, and what it lacks a person removed.
    """
    if not base or theirs in (base, ours) or max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return False
    before, lines, behind = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    added = {line for line in lines[1] if line.strip()} - set(lines[0])
    if not added.isdisjoint(lines[2]):
        return False
    kept = {line for line in (*before, *lines[0], *behind) if line.strip()}
    if kept.isdisjoint((*before, *lines[2], *behind)):
        return False  # written anew
    regions = _regions(lines)
    return all(kind != "same" for kind, *_ in regions) and any(_is_undone(lines, *region) for region in regions)


def distance(text: bytes, other: bytes) -> int:
    """Return how many lines one of two texts has and the other has not."""
    first, second = Counter(_lines(text)), Counter(_lines(other))
    return (first - second).total() + (second - first).total()


def common(text: bytes, other: bytes) -> bytes:
    """Return the lines that two texts share, in order."""
    first, second = _lines(text), _lines(other)
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return b"".join(line for block in blocks for line in first[block.a : block.a + block.size])


def _is_undone(lines: Sequence[Lines], kind: str, *span: int) -> bool:
    """Return whether a save lacks in a region what we did there, and the person did nothing to the same lines."""
    if kind != "conflict":
        return kind == "a"
    base, ours, theirs = _parts(lines, span)
    rivals = _hunks(base, theirs)
    return any(not any(_clash(rival, hunk) for rival in rivals) for hunk in _hunks(base, ours))


def _joined(base: bytes, ours: bytes, theirs: bytes, settle: Callable[..., Lines | None]) -> bytes | None:
    """Merge, with `settle` for the regions that both changed: base, ours and theirs to lines, None to give up."""
    if base == theirs or ours == theirs:
        return ours
    if base == ours:
        return theirs
    if max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return None
    before, lines, behind = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    merged: Lines = []
    for kind, *span in _regions(lines):
        if kind != "conflict":
            merged += lines[_SOURCE[kind]][span[0] : span[1]]
            continue
        texts = _parts(lines, span)
        settled = settle(*texts) if texts[0] else _both(*texts[1:])
        if settled is None:
            return None
        merged += settled
    whole = b"".join([*before, *merged, *behind])
    return whole if _is_ended(base, ours, theirs) else whole.removesuffix(b"\n").removesuffix(b"\r")


def _parts(lines: Sequence[Lines], span: Sequence[int]) -> list[Lines]:
    """Return what base, ours and theirs hold of a conflicting region."""
    return [text[start:end] for text, start, end in zip(lines, span[::2], span[1::2], strict=True)]


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines that stand in one text where the base holds those from `start` to `end`."""

    start: int
    end: int
    lines: tuple[bytes, ...]

    @property
    def is_addition(self) -> bool:
        return self.start == self.end

    @property
    def has_surplus(self) -> bool:
        return len(self.lines) > self.end - self.start


def _hunks(base: Lines, text: Lines) -> list[_Hunk]:
    codes = SequenceMatcher(None, base, text, autojunk=False).get_opcodes()
    return [_Hunk(i, j, tuple(text[k:n])) for kind, i, j, k, n in codes if kind != "equal"]


def _clash(hunk: _Hunk, other: _Hunk) -> bool:
    """Return whether two changes are of the same lines; an addition at an edge of a change is of none."""
    if hunk.is_addition or other.is_addition:
        inner, outer = (hunk, other) if hunk.is_addition else (other, hunk)
        return outer.start < inner.start < outer.end
    return max(hunk.start, other.start) < min(hunk.end, other.end)


def _woven(base: Lines, ours: Lines, theirs: Lines, *, is_ours_first: bool) -> tuple[Lines, bool]:
    """Return the base with the changes of both sides, and whether none of the second's had to give way."""
    first, second = (_hunks(base, text) for text in ((ours, theirs) if is_ours_first else (theirs, ours)))
    kept, is_clean = [], True
    for hunk in second:
        rivals = [rival for rival in first if _clash(rival, hunk)]
        if not rivals:
            kept.append(hunk)
        elif rivals != [hunk]:
            is_clean = False
            if hunk.has_surplus:  # something was added there: twice is better than not at all
                kept.append(replace(hunk, start=rivals[-1].end, end=rivals[-1].end))
    return _applied(base, *((first, kept) if is_ours_first else (kept, first))), is_clean


def _applied(base: Lines, ours: list[_Hunk], theirs: list[_Hunk]) -> Lines:
    lines: Lines = []
    at = 0
    for start, end in sorted({(hunk.start, hunk.end) for hunk in (*ours, *theirs)}):
        sides = [
            [line for h in hunks if (h.start, h.end) == (start, end) for line in h.lines] for hunks in (ours, theirs)
        ]
        lines += base[at:start] + _both(*sides)
        at = end
    return lines + base[at:]


def _both(ours: Lines, theirs: Lines) -> Lines:
    for whole, part in ((ours, theirs), (theirs, ours)):
        rest = iter(whole)
        if all(line in rest for line in part):  # in order
            return whole
    return ours + theirs


def _regions(lines: Sequence[Lines]) -> list[tuple[Any, ...]]:
    base, ours, theirs = lines
    return list(Merge3(base, ours, theirs).merge_regions())


def _trimmed(*texts: Lines) -> tuple[Lines, list[Lines], Lines]:
    """Return the lines that all begin with, what is between, and the lines that all end with; comparing is slow."""
    shortest = min(len(lines) for lines in texts)
    start = next((i for i in range(shortest) if len({lines[i] for lines in texts}) > 1), shortest)
    rest = shortest - start
    end = next((i for i in range(rest) if len({lines[-1 - i] for lines in texts}) > 1), rest)
    first = texts[0]
    return first[:start], [lines[start : len(lines) - end] for lines in texts], first[len(first) - end :]


def _lines(text: bytes) -> Lines:
    """Split after each newline, and nowhere else; the last line is ended too, so that more can follow it."""
    if not text:
        return []
    *lines, tail = text.split(b"\n")
    end = b"\r\n" if lines and lines[-1].endswith(b"\r") else b"\n"
    return [line + b"\n" for line in lines] + ([tail + end] if tail else [])


def _is_ended(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Return whether the last line of a merged text ends with a newline: as the side has it that changed that."""
    was, is_ours, is_theirs = (not text or text.endswith(b"\n") for text in (base, ours, theirs))
    return is_ours if is_theirs == was else is_theirs
