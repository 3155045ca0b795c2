"""Three-way merges of what a process wrote and what a person saved, and detection of stale editor buffers.

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
    """Merge two changed versions of a base.

    Where both only added lines at one place, both additions are kept, ours first, equal lines once.

    Returns:
        The text; None where both changed the same or adjacent lines, or the texts are too large to compare.
    """
    merged = _merged(base, ours, theirs, lambda *texts: None)  # give up where both changed the same lines
    return None if merged is None else merged[0]


def merge_lines(base: bytes, ours: bytes, theirs: bytes, *, is_ours_first: bool) -> tuple[bytes, bool] | None:
    """Merge two changed versions of a base; where both changed the same lines, those of one side win.

    Lines that the other side added there are kept all the same: an addition is never dropped.

    Args:
        base: The common earlier version.
        ours: The one version.
        theirs: The other version.
        is_ours_first: Whether ours wins where both changed the same lines.

    Returns:
        The text, and whether no change was dropped; None when the texts are too large to compare.
    """
    return _merged(base, ours, theirs, partial(_with_both_changes, is_ours_first=is_ours_first))


def with_all_lines(base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """Merge two versions so that no added or changed line is lost: where both changed the same, both texts are kept.

    Args:
        base: The common earlier version; None where it is not known, then no line counts as removed.
        ours: The one version, whose lines come first.
        theirs: The other version.
    """
    base = common_lines(ours, theirs) if base is None else base
    merged = _merged(base, ours, theirs, lambda _, our_lines, their_lines: (_joined(our_lines, their_lines), True))
    return ours + theirs if merged is None else merged[0]


def is_stale(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Return whether a save was made from `base` by an editor that had not loaded our later version.

    Such a save has no line that we added, lacks some change of ours, and still has a line of `base`. In a save that has
    some of our lines, a person saw them: the lines it lacks were removed on purpose.

    Args:
        base: A version before ours.
        ours: Our later version.
        theirs: The save.
    """
    if not base or theirs in (base, ours) or max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return False
    head, lines, tail = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    # blank lines are everywhere and prove nothing
    our_lines = {line for line in lines[1] if line.strip()} - set(lines[0])
    if not our_lines.isdisjoint(lines[2]):
        return False
    base_lines = {line for line in (*head, *lines[0], *tail) if line.strip()}
    if base_lines.isdisjoint((*head, *lines[2], *tail)):
        return False  # a new text, made from no version
    groups = _groups(*lines)
    # merge3 calls a group `same` where both made the same change: then the person had seen ours
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
    """Return whether a save lacks our change in a group of lines that the person did not change.

    Args:
        kind: The kind of the group, from `_groups`.
        texts: Its lines in base, ours and theirs, for a conflict.
    """
    # merge3 calls a group `a` where only the first text, ours, differs from the base
    if kind != "conflict":
        return kind == "a"
    base, ours, theirs = texts
    their_hunks = _hunks(base, theirs)
    return any(not any(_overlap(other, hunk) for other in their_hunks) for hunk in _hunks(base, ours))


def _merged(
    base: bytes, ours: bytes, theirs: bytes, resolve: Callable[[Lines, Lines, Lines], tuple[Lines, bool] | None]
) -> tuple[bytes, bool] | None:
    """Merge two changed versions of a base.

    Args:
        base: The common earlier version.
        ours: The one version.
        theirs: The other version.
        resolve: Called with the lines of a group that both changed, in base, ours and theirs. Returns the lines to
            write, and whether no change was dropped; None to give up.

    Returns:
        The text, and whether no change was dropped; None when it gave up or the texts are too large.
    """
    if base == theirs or ours == theirs:
        return ours, True
    if base == ours:
        return theirs, True
    if max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return None
    head, lines, tail = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    merged, is_clean = head, True
    for kind, texts in _groups(*lines):
        if kind != "conflict":
            merged += texts[0]
        elif not texts[0]:  # both only added lines
            merged += _joined(*texts[1:])
        elif resolved := resolve(*texts):
            merged += resolved[0]
            is_clean &= resolved[1]
        else:
            return None
    whole = b"".join([*merged, *tail])
    return whole if _is_ended(base, ours, theirs) else whole.removesuffix(b"\n").removesuffix(b"\r"), is_clean


@dataclass(frozen=True, slots=True)
class _Hunk:
    """A change by one side: `lines` replace the lines of the base from number `start` up to `end`."""

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
    """Return the changes from the base to a text."""
    codes = SequenceMatcher(None, base, text, autojunk=False).get_opcodes()
    return [_Hunk(i, j, tuple(text[k:n])) for kind, i, j, k, n in codes if kind != "equal"]


def _overlap(hunk: _Hunk, other: _Hunk) -> bool:
    """Return whether two changes touch the same lines; an addition at the edge of a change does not."""
    if hunk.is_addition or other.is_addition:
        inner, outer = (hunk, other) if hunk.is_addition else (other, hunk)
        return outer.start < inner.start < outer.end
    return max(hunk.start, other.start) < min(hunk.end, other.end)


def _with_both_changes(base: Lines, ours: Lines, theirs: Lines, *, is_ours_first: bool) -> tuple[Lines, bool]:
    """Return the base with the changes of both sides, and whether no change was dropped.

    Where changes overlap, those of the first side win. Lines that the other side added there are kept behind them.
    """
    winning, losing = (_hunks(base, text) for text in ((ours, theirs) if is_ours_first else (theirs, ours)))
    kept, is_clean = [], True
    for hunk in losing:
        overlapping = [winner for winner in winning if _overlap(winner, hunk)]
        if not overlapping:
            kept.append(hunk)
        elif overlapping != [hunk]:  # an equal change of both sides loses nothing
            is_clean = False
            if hunk.has_surplus:  # it has added lines: rather twice in the text than lost
                kept.append(replace(hunk, start=overlapping[-1].end, end=overlapping[-1].end))
    return _with_hunks(base, *((winning, kept) if is_ours_first else (kept, winning))), is_clean


def _with_hunks(base: Lines, ours: list[_Hunk], theirs: list[_Hunk]) -> Lines:
    """Return the base with the changes of both sides; changes that overlap replace exactly the same lines."""
    lines: Lines = []
    at = 0
    for start, end in sorted({(hunk.start, hunk.end) for hunk in (*ours, *theirs)}):
        our_lines = [line for hunk in ours if (hunk.start, hunk.end) == (start, end) for line in hunk.lines]
        their_lines = [line for hunk in theirs if (hunk.start, hunk.end) == (start, end) for line in hunk.lines]
        lines += base[at:start] + _joined(our_lines, their_lines)
        at = end
    return lines + base[at:]


def _joined(ours: Lines, theirs: Lines) -> Lines:
    """Return our lines and then theirs; where one side has all lines of the other in order, that side alone."""
    for longer, shorter in ((ours, theirs), (theirs, ours)):
        remaining = iter(longer)
        if all(line in remaining for line in shorter):  # `in` consumes the iterator, so the order counts
            return longer
    return ours + theirs


def _groups(base: Lines, ours: Lines, theirs: Lines) -> list[tuple[str, list[Lines]]]:
    """Return merge3's groups of lines, each with its kind; a `conflict` has the lines of base, ours and theirs."""
    groups = Merge3(base, ours, theirs).merge_groups()
    return [(kind, [list(lines) for lines in texts]) for kind, *texts in groups]


def _trimmed(*texts: Lines) -> tuple[Lines, list[Lines], Lines]:
    """Split off the lines at the beginning and the end that all texts share, since comparing lines is slow.

    Returns:
        The shared first lines, the remaining lines of each text, and the shared last lines.
    """
    shortest = min(len(lines) for lines in texts)
    start = next((i for i in range(shortest) if len({lines[i] for lines in texts}) > 1), shortest)
    unshared = shortest - start
    end = next((i for i in range(unshared) if len({lines[-1 - i] for lines in texts}) > 1), unshared)
    first = texts[0]
    return first[:start], [lines[start : len(lines) - end] for lines in texts], first[len(first) - end :]


def _lines(text: bytes) -> Lines:
    """Return the lines of a text with their ends; a last line without one gets it, so that lines can follow it."""
    if not text:
        return []
    *lines, last = text.split(b"\n")
    end = b"\r\n" if lines and lines[-1].endswith(b"\r") else b"\n"
    return [line + b"\n" for line in lines] + ([last + end] if last else [])


def _is_ended(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Return whether a merged text ends with a newline: like the side that changed this, else like the base."""
    base_ends, ours_ends, theirs_ends = (not text or text.endswith(b"\n") for text in (base, ours, theirs))
    return ours_ends if theirs_ends == base_ends else theirs_ends
