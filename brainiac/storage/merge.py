"""Three-way merging of what a process wrote and what a person saved, and recognizing a stale editor buffer.

Text in, text out; lines are compared as bytes, so that line ends and odd encodings survive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial

from merge3 import Merge3

MAX_BYTES = 2_000_000  # comparing lines takes seconds beyond this; such files are left as the person saved them

Lines = list[bytes]


def three_way(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge two texts that grew from one; None when both changed the same lines, or lines next to each other.

    Where both only added at the same place, both additions stand, ours first; what one holds of the other, once.
    """
    merged = _merged(base, ours, theirs, lambda *texts: None)
    return None if merged is None else merged[0]


def merge_lines(base: bytes, ours: bytes, theirs: bytes, *, is_ours_first: bool) -> tuple[bytes, bool] | None:
    """Merge two texts that grew from one, line by line; where both changed the same lines, one side's stand.

    What the other side added beside or within such lines stands all the same: an addition is never dropped.

    Returns:
        The text, and whether no change had to give way; None when the texts are too large to compare.
    """
    return _merged(base, ours, theirs, partial(_woven, is_ours_first=is_ours_first))


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
    groups = _groups(*lines)
    # where both did the same, the person had seen ours
    return all(kind != "same" for kind, _ in groups) and any(_is_undone(kind, texts) for kind, texts in groups)


def line_distance(text: bytes, other: bytes) -> int:
    """Return how many lines one of two texts has and the other has not."""
    first, second = Counter(_lines(text)), Counter(_lines(other))
    return (first - second).total() + (second - first).total()


def common_lines(text: bytes, other: bytes) -> bytes:
    """Return the lines that two texts share, in order."""
    first, second = _lines(text), _lines(other)
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return b"".join(line for block in blocks for line in first[block.a : block.a + block.size])


def _is_undone(kind: str, texts: list[Lines]) -> bool:
    """Return whether a save lacks in a group what we did there, and the person did nothing to the same lines."""
    if kind != "conflict":
        return kind == "a"
    base, ours, theirs = texts
    rivals = _hunks(base, theirs)
    return any(not any(_clash(rival, hunk) for rival in rivals) for hunk in _hunks(base, ours))


def _merged(
    base: bytes, ours: bytes, theirs: bytes, settle: Callable[[Lines, Lines, Lines], tuple[Lines, bool] | None]
) -> tuple[bytes, bool] | None:
    """Merge two texts.

    Args:
        base: What both grew from.
        ours: The one.
        theirs: The other.
        settle: Gives lines for those that both changed, and whether no change had to give way; None to give up.
    """
    if base == theirs or ours == theirs:
        return ours, True
    if base == ours:
        return theirs, True
    if max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return None
    before, lines, behind = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    merged, is_clean = before, True
    for kind, texts in _groups(*lines):
        if kind != "conflict":
            merged += texts[0]
        elif not texts[0]:  # both only added something
            merged += _both(*texts[1:])
        elif settled := settle(*texts):
            merged += settled[0]
            is_clean &= settled[1]
        else:
            return None
    whole = b"".join([*merged, *behind])
    return whole if _is_ended(base, ours, theirs) else whole.removesuffix(b"\n").removesuffix(b"\r"), is_clean


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


def _groups(base: Lines, ours: Lines, theirs: Lines) -> list[tuple[str, list[Lines]]]:
    """Return the lines in groups: kind and lines; of a conflict those of all three."""
    groups = Merge3(base, ours, theirs).merge_groups()
    return [(kind, [list(lines) for lines in texts]) for kind, *texts in groups]


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
