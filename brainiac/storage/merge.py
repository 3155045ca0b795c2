"""Three-way merges of what a process wrote and what a person saved, and of saves made without seeing our last writes.

A merge takes and returns text; lines are compared as bytes, so that line ends and odd encodings survive.

There are two kinds of concurrent saves, and none is overwritten. A stale save comes from an editor that loaded the file
before our last writes. A displaced save was made at the moment when our write swapped the file, or up to ten seconds
later into the old file, by an editor that still had it open. See docs/decisions/saves-and-merges.md.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import SequenceMatcher
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from merge3 import Merge3

from brainiac.clock import parse_iso
from brainiac.errors import BlobError, ConflictError
from brainiac.events import Change, NoteMerged, PathKind, content_hash, create, update
from brainiac.storage.copies import has_copy
from brainiac.storage.file_state import PERSONS, FileState, version_hash
from brainiac.storage.files import read_bytes
from brainiac.storage.transactions import Transactions
from brainiac.storage.write_ahead import Intent, Step

MAX_BYTES = 2_000_000  # comparing lines takes seconds beyond this; such files are left as the person saved them

_ID = re.compile(rb"(?<![^ \t])\^[A-Za-z0-9-]+(?=\s*$)|<!-- \w+: \S+ -->")

Lines = list[bytes]


class Merged(NamedTuple):
    """What two versions merge to.

    Attributes:
        text: The whole text.
        is_clean: Whether no change of either side was dropped.
    """

    text: bytes
    is_clean: bool


class _MergedGroup(NamedTuple):
    """What a group of lines that both sides changed merges to, and whether no change was dropped."""

    lines: Lines
    is_clean: bool


def three_way(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge two changed versions of a base.

    Where both only added lines at one place, both additions are kept, ours first, equal lines once.

    Returns:
        The text; None where both changed the same or adjacent lines, or the texts are too large to compare.
    """
    merged = _merged(base, ours, theirs, lambda *texts: None)  # give up where both changed the same lines
    return None if merged is None else merged.text


def merge_lines(base: bytes, ours: bytes, theirs: bytes, *, prefer_ours: bool) -> Merged | None:
    """Merge two changed versions of a base; where both changed the same lines, those of one side win.

    Lines that the other side added there are kept all the same: an addition is never dropped.

    Args:
        base: The common earlier version.
        ours: The one version.
        theirs: The other version.
        prefer_ours: Whether ours wins where both changed the same lines.

    Returns:
        The result; None when the texts are too large to compare.
    """
    return _merged(base, ours, theirs, partial(_with_both_changes, prefer_ours=prefer_ours))


def with_all_lines(base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """Merge two versions so that no added or changed line is lost: where both changed the same, both texts are kept.

    Args:
        base: The common earlier version; None where it is not known, then no line counts as removed.
        ours: The one version, whose lines come first.
        theirs: The other version.
    """
    base = common_lines(ours, theirs) if base is None else base
    merged = _merged(base, ours, theirs, _with_both_texts)
    return ours + theirs if merged is None else merged.text  # None: too large to compare


def is_stale(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Return whether a save was made from `base` by an editor that had not loaded our later version.

    Such a save has no line or id that we added, lacks some change of ours, and still has a line of `base`. In a save
    that has some of our lines, a person saw them: the lines it lacks were removed or changed on purpose.

    Args:
        base: A version before ours.
        ours: Our later version.
        theirs: The save.
    """
    if not base or theirs in (base, ours) or max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return False
    head, (base_part, our_part, their_part), tail = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    # blank lines are everywhere and prove nothing
    our_lines = {line for line in our_part if line.strip()} - set(base_part)
    our_ids = _ids(our_part) - _ids(base_part)  # a line that a person changed keeps its id
    has_our_line = not our_lines.isdisjoint(their_part) or not our_ids.isdisjoint(_ids(their_part))
    base_lines = {line for line in (*head, *base_part, *tail) if line.strip()}
    has_base_line = not base_lines.isdisjoint((*head, *their_part, *tail))
    if has_our_line or not has_base_line:
        return False
    groups = _groups(base_part, our_part, their_part)
    # merge3 calls a group `same` where both made the same change: then the person had seen ours
    has_our_change = any(kind == "same" for kind, _ in groups)
    return not has_our_change and any(_is_undone(kind, texts) for kind, texts in groups)


def _ids(lines: Lines) -> set[bytes]:
    """Return the block ids, and the comments that name an id, in some lines."""
    return {mark for line in lines for mark in _ID.findall(line)}


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
    """Return whether a save lacks a change of ours in a group of lines, at a place that the person did not change.

    Args:
        kind: The kind of the group, from `_groups`.
        texts: Its lines in base, ours and theirs, for a conflict.
    """
    # merge3 calls a group `a` where only the first text, ours, differs from the base
    if kind != "conflict":
        return kind == "a"
    base, ours, theirs = texts
    their_hunks = _hunks(base, theirs)
    return any(all(not _overlap(their_hunk, hunk) for their_hunk in their_hunks) for hunk in _hunks(base, ours))


def _merged(
    base: bytes, ours: bytes, theirs: bytes, resolve: Callable[[Lines, Lines, Lines], _MergedGroup | None]
) -> Merged | None:
    """Merge two changed versions of a base.

    Args:
        base: The common earlier version.
        ours: The one version.
        theirs: The other version.
        resolve: Called with the lines of a group that both changed, in base, ours and theirs; None to give up.

    Returns:
        The result; None when `resolve` gave up or the texts are too large.
    """
    if base == theirs or ours == theirs:
        return Merged(ours, is_clean=True)
    if base == ours:
        return Merged(theirs, is_clean=True)
    if max(len(base), len(ours), len(theirs)) > MAX_BYTES:
        return None
    head, parts, tail = _trimmed(_lines(base), _lines(ours), _lines(theirs))
    merged, is_clean = head, True
    for kind, texts in _groups(*parts):
        if kind != "conflict":
            merged += texts[0]
            continue
        base_lines, our_lines, their_lines = texts
        # without lines of the base, both only added theirs
        resolved = (resolve if base_lines else _with_both_texts)(base_lines, our_lines, their_lines)
        if resolved is None:
            return None
        merged += resolved.lines
        is_clean &= resolved.is_clean
    text = b"".join([*merged, *tail])
    if not _ends_with_newline(base, ours, theirs):
        text = text.removesuffix(b"\n").removesuffix(b"\r")  # `_lines` gave it to the last line
    return Merged(text, is_clean)


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


def _with_both_texts(base: Lines, ours: Lines, theirs: Lines) -> _MergedGroup:
    """Return the lines of both sides."""
    return _MergedGroup(_joined(ours, theirs), is_clean=True)


def _with_both_changes(base: Lines, ours: Lines, theirs: Lines, *, prefer_ours: bool) -> _MergedGroup:
    """Return the base with the changes of both sides.

    Where changes overlap, those of the preferred side win. Lines that the other side added there are kept behind them.
    """
    winning, losing = (_hunks(base, text) for text in ((ours, theirs) if prefer_ours else (theirs, ours)))
    kept, is_clean = [], True
    for hunk in losing:
        overlapping = [winner for winner in winning if _overlap(winner, hunk)]
        if not overlapping:
            kept.append(hunk)
        elif overlapping != [hunk]:  # an equal change of both sides loses nothing
            is_clean = False
            if hunk.has_surplus:  # it has added lines: rather twice in the text than lost
                kept.append(replace(hunk, start=overlapping[-1].end, end=overlapping[-1].end))
    # ours stand first in the text, whoever wins
    our_hunks, their_hunks = (winning, kept) if prefer_ours else (kept, winning)
    return _MergedGroup(_with_hunks(base, our_hunks, their_hunks), is_clean)


def _with_hunks(base: Lines, ours: Sequence[_Hunk], theirs: Sequence[_Hunk]) -> Lines:
    """Return the base with changes of both sides; no two may overlap, unless they replace exactly the same lines."""
    lines: Lines = []
    at = 0
    for start, end in sorted({(hunk.start, hunk.end) for hunk in (*ours, *theirs)}):
        our_lines, their_lines = (
            [line for hunk in hunks if (hunk.start, hunk.end) == (start, end) for line in hunk.lines]
            for hunks in (ours, theirs)
        )
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


def _ends_with_newline(base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Return whether a merged text ends with a newline: like the side that changed this, else like the base."""
    base_ends, ours_ends, theirs_ends = (not text or text.endswith(b"\n") for text in (base, ours, theirs))
    return ours_ends if theirs_ends == base_ends else theirs_ends


# --- concurrent saves ------------------------------------------------------------------------------------------------

REST_SECONDS = 10  # an editor may hold a file open that we replaced, and write into it, for so long
TORN_NS = 200_000_000  # an empty or shortened file counts as fully saved after this time
# A save with lines that are in none of three consecutive versions was made after them: no older base is looked for.
MAX_OLDER_VERSIONS = 3
# A save that differs from a version by more than this share of the lines of both, and more lines, was not made from it.
UNLIKE, UNLIKE_LINES = 1 / 3, 20
TORN_VERSIONS = 4  # a shortened file is compared with the beginnings of so many last versions


class _Base(NamedTuple):
    """A version that a save may have been made from."""

    digest: str
    text: bytes


class ConcurrentSaves:
    """Merges stale and displaced saves; all calls need the commit lock.

    Args:
        transactions: Carries out the merges, and has the list of swapped-out files.
        notice: Records a person's edits at (relative) paths, and returns the files' contents by path.
    """

    def __init__(
        self, transactions: Transactions, notice: Callable[[Sequence[str]], Mapping[str, bytes | None]]
    ) -> None:
        self._transactions, self._notice = transactions, notice
        self._tree, self._states = transactions.tree, transactions.file_states
        self._write_ahead = transactions.write_ahead

    def merge_stale(self, state: FileState, save: bytes) -> bool:
        """Merge a person's save with our last version if the editor had loaded an earlier one; return whether it did.

        Args:
            state: The file before the save.
            save: The file's content now.
        """
        base = self._base_of(state.versions, save)
        # where a copy lies beside the file, a sync tool put another device's version there: no editor's save
        if base is None or has_copy(self._tree, state.path, state.hash):
            return False
        base_text, ours = self._transactions.text_of(base), self._transactions.text_of(state.hash)
        if _are_unlike(base_text, save):
            base_text = common_lines(ours, save)  # the true base is not known any more: no line is removed
        merged = merge_lines(base_text, ours, save, prefer_ours=False)
        if merged is None:
            return False
        changes = [update(state.path, save, merged.text)] if merged.text != save else []
        with contextlib.suppress(ConflictError):  # the person saved once more; that save is looked at next
            event = self._transactions.run_merge(NoteMerged(stale=state.hash), changes, state.path, base, save)
            if "displaced" in event.data:  # writing the merged text displaced a still newer save
                self.check_displaced()
        return True

    def _base_of(self, versions: Sequence[str], save: bytes) -> str | None:
        """Return the hash of the earlier version that an editor had loaded when it made a save.

        None where the editor had loaded the last version, or where a person put an earlier text back (`git checkout`).

        Args:
            versions: `FileState.versions`; the last one was the file's content before the save.
            save: The content that a person saved.
        """
        ours = self.text_of(version_hash(versions[-1]))
        if ours is None:
            return None
        bases = [base for base in self._possible_bases(versions, ours, save) if is_stale(base.text, ours, save)]
        # of several equally near ones the oldest, which is the last
        nearest = min(reversed(bases), key=lambda base: line_distance(base.text, save), default=None)
        # asked last, since it searches the whole journal
        return None if nearest is None or self._is_earlier_text(save) else nearest.digest

    def _is_earlier_text(self, text: bytes) -> bool:
        """Return whether a text was the content of some file before, by this device's journal."""
        journal, digest = self._transactions.journal, content_hash(text)
        return digest in journal.blobs and journal.has_written(digest)

    def _possible_bases(self, versions: Sequence[str], ours: bytes, save: bytes) -> Iterator[_Base]:
        """Yield the versions, newest first, that an editor may have loaded before it made a save.

        Two things hold of such a version. A process changed it later, and that change is still in the present text
        (`ours`). The save has no line that was added after it; otherwise the editor had loaded a later version.
        """
        saved_lines, has_our_change = nonblank_lines(save), False
        refutations = 0  # consecutive versions that are older than the one that the editor had loaded
        present_lines = later_lines = nonblank_lines(ours)
        reach = 2 * line_distance(ours, save)  # a version further from our text is further from the save, too
        for later_version, version in pairwise(reversed(versions)):
            digest = version_hash(version)
            text = self.text_of(digest)
            if text is None:
                continue
            lines = nonblank_lines(text)
            if not later_version.startswith(PERSONS):  # a process made it: its added and removed lines are ours
                added_lines, removed_lines = later_lines - lines, lines - later_lines
                is_still_there = not added_lines.isdisjoint(present_lines) or not removed_lines <= present_lines
                has_our_change = has_our_change or is_still_there
            later_lines = lines
            has_later_line = not (present_lines - lines).isdisjoint(saved_lines)
            refutations = refutations + 1 if has_later_line else 0
            if refutations >= MAX_OLDER_VERSIONS and line_distance(ours, text) > reach:
                return  # going on would find versions that are alike by chance
            if has_our_change and not has_later_line:
                yield _Base(digest, text)

    def looks_torn(self, path: str, content: bytes) -> bool:
        """Return whether a file may be half written: it is empty, or equals the beginning of one of its last versions.

        False for a file whose content is the last seen one.
        """
        state = self._states.get(path)
        if state is None or state.hash == content_hash(content):
            return False
        # the editor may be writing a version from before our last few writes
        texts = (self.text_of(version_hash(version)) for version in state.versions[-TORN_VERSIONS:])
        return not content or any(text is not None and text.startswith(content) for text in texts)

    def check_displaced(self) -> list[str]:
        """Merge saves that were made into displaced files; remove displaced files after ten unchanged seconds.

        A displaced file with another content than our commit expected has a person's save in it. It is merged into
        the file, or put in its place where there is none any more. Where both changed the same lines,
        `memory/review.md` says so. The journal keeps all texts.

        Returns:
            Paths whose saves were merged or put back.
        """
        merged_paths = []
        for intent, step, file in self._transactions.displaced_files():
            content = read_bytes(file)
            if content is None:
                continue
            # one second more, since an event's time has no fractions
            due_at = parse_iso(intent.event.at) + timedelta(seconds=REST_SECONDS + 1)
            is_due = self._transactions.clock.now() >= due_at
            if content_hash(content) != self._write_ahead.base_of(step):
                content = self._read_when_whole(file, step, content)
                # the next check reads it again; once it is due, it is merged as it is
                if not is_due and self.looks_torn(step.path, content):
                    continue
                if not self._try_to_merge_displaced(intent, step, content):
                    continue
                merged_paths.append(step.path)
            # read once more, in case an editor has written in the meantime
            if is_due and content == read_bytes(file):
                self._transactions.disk.unlink(file)
        return merged_paths

    def _read_when_whole(self, file: Path, step: Step, content: bytes) -> bytes:
        """Return a displaced file's content; wait a moment where it lacks lines, since it may be half saved."""
        base_lines = nonblank_lines(self.text_of(self._write_ahead.base_of(step)) or b"")
        while base_lines - nonblank_lines(content) and 0 <= age_ns(file) <= TORN_NS:
            time.sleep(0.01)
            content = read_bytes(file) or content
        return content

    def _try_to_merge_displaced(self, intent: Intent, step: Step, save: bytes) -> bool:
        """Merge a displaced save into its file; return False where the file changed meanwhile: the next check retries.

        Args:
            intent: The commit that displaced the file.
            step: The step of the commit.
            save: The displaced file's content.
        """
        try:
            self._merge_displaced(intent, step, self._notice([step.path])[step.path], save)
        except ConflictError:
            return False
        self._write_ahead.note_merged(step, content_hash(save))
        return True

    def _merge_displaced(self, intent: Intent, step: Step, present: bytes | None, save: bytes) -> None:
        """Merge a displaced save into the present file, or make the file of it where there is none any more.

        Where both changed the same lines, the person's win over ours, and their later ones over their earlier ones.
        """
        path, event = step.path, NoteMerged(displaced_by=intent.event.id, save=content_hash(save))
        if present is None:
            last_base = self._write_ahead.base_of(step)
            self._transactions.run_merge(event, [create(path, save)], path, last_base, save)
            return
        base, state = self._base_of_displaced(step, save), self._states.get(path)
        # where it is not ours, the person saved twice, and the present file is the later save
        is_ours = state is not None and state.is_ours and state.hash == content_hash(present)
        merged = self._merged_with_displaced(path, self.text_of(base) or b"", present, save, prefer_save=is_ours)
        changes = [update(path, present, merged.text)] if merged.text != present else []
        if not merged.is_clean:
            event = replace(event, conflict=path)
            if self._tree.absolute(path) != self._tree.review:
                changes.append(self._review_line(intent, path, is_ours=is_ours))
        self._transactions.run_merge(event, changes, path, base, save)

    def _merged_with_displaced(
        self, path: str, base: bytes, present: bytes, save: bytes, *, prefer_save: bool
    ) -> Merged:
        """Return the present text merged with a displaced save; the preferred one where they are too large."""
        if self._tree.kind_of(path) is PathKind.ACCESS_LOG and save.startswith(base):
            return Merged(present + save[len(base) :], is_clean=True)  # the added lines, though the log may be cleared
        merged = merge_lines(base, present, save, prefer_ours=not prefer_save)
        return merged or Merged(save if prefer_save else present, is_clean=False)

    def _base_of_displaced(self, step: Step, save: bytes) -> str | None:
        """Return the hash of the version from which a displaced save was made.

        It is the version that our write swapped out, or the content that was last merged from this file. Where the
        editor had loaded an earlier version and that is more like the save, it is the earlier one.
        """
        last_base = self._write_ahead.base_of(step)
        earlier = self._base_of(step.versions, save) if step.versions else None
        if earlier is None or last_base is None:
            return last_base
        return min((last_base, earlier), key=lambda digest: line_distance(self.text_of(digest) or b"", save))

    def _review_line(self, intent: Intent, path: str, *, is_ours: bool) -> Change:
        """Return the change that adds a line to `memory/review.md` saying whose lines were not kept in the file."""
        if is_ours:
            text = f"{path}: you saved it while `{intent.event.kind}` wrote it; your lines stand, ours are kept"
        else:
            text = f"{path}: an earlier save of yours did not fit into the later one; it is kept"
        line = f"- {text} in the journal (event {intent.event.id})\n".encode("utf-8", "surrogateescape")
        review, content = self._tree.relative(self._tree.review), read_bytes(self._tree.review)
        if content is None:
            return create(review, line)
        gap = b"" if content.endswith(b"\n") or not content else b"\n"
        return update(review, content, content + gap + line)

    def text_of(self, digest: str | None) -> bytes | None:
        """Return a text by its hash; None for no hash, and for a text that is off the record or purged."""
        if digest is not None:
            with contextlib.suppress(BlobError):
                return self._transactions.text_of(digest)
        return None


def _are_unlike(version: bytes, save: bytes) -> bool:
    """Return whether a save differs from a version in so many lines that it was not made from it."""
    size = version.count(b"\n") + save.count(b"\n")
    return line_distance(version, save) > max(UNLIKE_LINES, UNLIKE * size)


def age_ns(path: Path) -> int:
    """Return how long ago a file was written, in nanoseconds, by its modification time; 0 where there is none."""
    try:
        return time.time_ns() - os.stat(path).st_mtime_ns  # file times are the system clock's
    except OSError:
        return 0


def nonblank_lines(text: bytes) -> set[bytes]:
    """Return the lines of a text that are not blank."""
    return {line for line in text.split(b"\n") if line.strip()}
