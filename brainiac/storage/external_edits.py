"""One file looked at: is it new, a person's edit, a stale editor buffer, or what we wrote?

Recognized by content alone, never by path or time. What a person saved is recorded before anything else happens.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from brainiac.clock import Clock
from brainiac.errors import BlobError, BrainiacError, ConflictError
from brainiac.events import (
    FileChange,
    NoteDeleted,
    NoteEdited,
    NoteMerged,
    NoteMoved,
    NoteOffRecord,
    NotesDeleted,
    NotesEdited,
    PathKind,
    RecordedChange,
    content_hash,
    kinds_of,
    update,
)
from brainiac.storage.file_state import PERSONS, LastSeen, Seen, size_stamp
from brainiac.storage.files import read_bytes
from brainiac.storage.merge import common, distance, is_stale, woven
from brainiac.tree import Tree

if TYPE_CHECKING:
    from brainiac.storage.commit import Committer

MAX_BYTES = 5_000_000  # larger files are known by their stat, their texts are not kept
REST_SECONDS = 10.0  # short-term memory saved without its headings is believed after this
MOVE_SECONDS = 10.0  # a file that appears with the content of one that vanished within this was moved
TORN_NS = 200_000_000  # an empty or shortened file is believed after this rest
SIGHTS = 3  # a save that has seen what came after three versions grew from none before: merges have two parents
UNLIKE, UNLIKE_LINES = 1 / 3, 20  # of the lines of both: a save differs by more from what it did not grow from
FOUND = kinds_of(NoteEdited, NotesEdited, NoteMoved, NoteDeleted, NotesDeleted)  # by a person
_HEADINGS = (b"## Summary", b"### Goals", b"### Key Facts & Decisions", b"### Tasks", b"## Event Log")


@dataclass(frozen=True, slots=True)
class _Base:
    """A version that a save may have grown from, and what we made of it."""

    digest: str
    text: bytes
    ours: bytes


class NotRestedError(BrainiacError):
    """Short-term memory stands empty or without its headings, as an editor leaves it for a moment; look again later.

    Args:
        path: The file.
        again_in_seconds: When to look again.
    """

    def __init__(self, path: str, again_in_seconds: float) -> None:
        self.path, self.again_in_seconds = path, again_in_seconds
        super().__init__(f"{path}: without its headings; looked at again in {again_in_seconds:.0f} s")


class Noticing:
    """Looks at single files; all calls are made under the commit lock, with `seen` caught up.

    Args:
        tree: The brain's folder.
        seen: What each note was when last seen.
        clock: Measures rest.
        committer: Records what is found and puts merges in place.
    """

    def __init__(self, tree: Tree, seen: LastSeen, clock: Clock, committer: Committer) -> None:
        self._tree, self._seen, self._clock, self._committer = tree, seen, clock, committer
        self._bare: tuple[str, float] | None = None
        self._vanished: deque[tuple[float, str, str]] = deque(maxlen=1000)

    def look(self, path: str) -> FileChange | None:
        """Record what stands at a path; None when nothing is new.

        Raises:
            NotRestedError: It is short-term memory in the middle of being saved.
        """
        absolute = self._tree.absolute(path)
        try:
            found = os.lstat(absolute)
        except (FileNotFoundError, NotADirectoryError):
            return self._forget_unkept(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES or not self._tree.is_tracked(path):
            return self._look_at_stamp(path, size_stamp(found))
        content = self._read_settled(path)
        if content is None:
            return None
        if self._committer.is_unkept(path, content):
            return self._look_off_record(path, content_hash(content))
        return self._look_at_content(path, content)

    def is_recorded(self, path: str, content: bytes) -> bool:
        """Tell whether this is what was last seen there; also for what is not kept."""
        known = self._seen.get(path)
        is_kept = len(content) <= MAX_BYTES and not self._committer.is_unkept(path, content)
        return not is_kept or (known is not None and known.hash == content_hash(content))

    def looks_torn(self, path: str, content: bytes) -> bool:
        """Tell whether a file may be in the middle of being written: it is empty, or a beginning of what it held."""
        known = self._seen.get(path)
        if known is None or known.hash == content_hash(content):
            return False
        if not content:
            return True
        return any(
            text.startswith(content)
            for digest in known.versions[-4:]
            for text in self._text(digest.removeprefix(PERSONS))
        )

    def base_of(self, versions: Sequence[str], save: bytes) -> str | None:
        """Return the hash of the earlier version that a save grew from without having seen what we made of it.

        None when it was made in sight of the last version, or equals what stood here once: that is a revert.

        Args:
            versions: As `Seen.versions` has them; the last stood when the save was made.
            save: What a person saved.
        """
        bases = [base for base in self._untouched(versions, save) if is_stale(base.text, base.ours, save)]
        nearest = min(reversed(bases), key=lambda base: distance(base.text, save), default=None)
        return None if nearest is None or self._committer.has_stood(save) else nearest.digest

    def _untouched(self, versions: Sequence[str], save: bytes) -> Iterator[_Base]:
        """Yield the versions, newest first, after which we did something that still shows and that a save may lack."""
        saved, shows, in_sight = filled(save), False, 0
        for ours in self._text(versions[-1].removeprefix(PERSONS)):
            standing = following = filled(ours)
            reach = 2 * distance(ours, save)  # a version further from what stands is further from the save, too
            for digest, later in zip(reversed(versions[:-1]), reversed(versions), strict=False):
                for text in self._text(digest.removeprefix(PERSONS)):
                    lines = filled(text)
                    if not later.startswith(PERSONS):
                        shows |= bool((following - lines) & standing or (lines - following) - standing)
                    following = lines
                    is_seen = not (standing - lines).isdisjoint(saved)  # made in sight of what was added since
                    in_sight = in_sight + 1 if is_seen else 0
                    if in_sight >= SIGHTS and distance(ours, text) > reach:
                        return  # not before: many a line is like one that stood there long ago
                    if shows and not is_seen:
                        yield _Base(digest.removeprefix(PERSONS), text, ours)

    def removed(self, seen: Seen) -> RecordedChange:
        """Return the record of a note that is gone, and remember it in case it turns up elsewhere."""
        self._vanished.append((self._clock.monotonic(), seen.hash, seen.path))
        return RecordedChange("remove", seen.path, seen.hash, None)

    def recently_removed(self) -> int:
        """Return how many notes vanished in the last seconds."""
        since = self._clock.monotonic() - MOVE_SECONDS
        return sum(moment >= since for moment, _, _ in self._vanished)

    def _look_at_content(self, path: str, content: bytes) -> FileChange | None:
        digest, known = content_hash(content), self._seen.get(path)
        if known is not None and known.hash == digest:
            if known.is_held:
                self._seen.set_held([path], False)
            return None
        if self._tree.kind_of(path) is PathKind.SHORT_TERM:
            self._wait_for_rest(path, content, digest)
        self._seen.set_unkept(path, None)
        texts = {digest: content}
        if known is None:
            return self._appeared(path, digest, texts)
        if not self.merge_stale(known, content):
            change = RecordedChange("update", path, known.hash, digest)
            self._committer.record_saves(NoteEdited(), [change], texts)
        return self._change("modified", path)

    def _appeared(self, path: str, digest: str, texts: Mapping[str, bytes]) -> FileChange:
        for seen in self._seen.with_hash(digest):
            if not self._tree.absolute(seen.path).exists():
                change = RecordedChange("move", path, digest, digest, seen.path)
                self._committer.record_saves(NoteMoved(), [change], texts)
                return self._change("moved", path, seen.path)
        self._committer.record_saves(NoteEdited(), [RecordedChange("create", path, None, digest)], texts)
        since = self._clock.monotonic() - MOVE_SECONDS
        for entry in reversed(self._vanished):
            if entry[0] >= since and entry[1] == digest:
                self._vanished.remove(entry)
                return self._change("moved", path, entry[2])
        return self._change("created", path)

    def is_at_rest(self, known: Seen, content: bytes) -> bool:
        """Return whether a file that changed may be taken at its word now, or is to be looked at again.

        One that was written this very moment and lacks lines may be in the middle of being saved.
        """
        if self._tree.kind_of(known.path) is PathKind.SHORT_TERM:
            try:
                self._wait_for_rest(known.path, content, content_hash(content))
            except NotRestedError:
                return False
        return age_ns(self._tree.absolute(known.path)) > TORN_NS or not any(
            filled(text) - filled(content) for text in self._text(known.hash)
        )

    def merge_stale(self, known: Seen, save: bytes) -> bool:
        """Put back what we added, where the save was made without having seen it; return whether that was so."""
        base = self.base_of(known.versions, save)
        if base is None:
            return False
        text, ours = self._committer.text_of(base), self._committer.text_of(known.hash)
        if distance(text, save) > max(UNLIKE_LINES, UNLIKE * (text.count(b"\n") + save.count(b"\n"))):
            text = common(ours, save)  # it grew from a version that nobody knows any more: nothing is taken out
        merged = woven(text, ours, save, is_ours_first=False)
        if merged is None:
            return False
        changes = [update(known.path, save, merged[0])] if merged[0] != save else []
        with contextlib.suppress(ConflictError):  # saved once more meanwhile; that save is looked at next
            self._committer.commit_merge(NoteMerged(stale=known.hash), changes, known.path, base, save)
        return True

    def _text(self, digest: str) -> Iterator[bytes]:
        """Yield a text, or nothing where it is not kept any more."""
        with contextlib.suppress(BlobError):
            yield self._committer.text_of(digest)

    def _read_settled(self, path: str) -> bytes | None:
        """Read a file, waiting a moment where an editor seems to be writing it."""
        absolute, former, since = self._tree.absolute(path), None, time.monotonic_ns()
        while (content := read_bytes(absolute)) is not None and self.looks_torn(path, content):
            if content != former:
                former, since = content, time.monotonic_ns()
            if (
                max(age_ns(self._tree.absolute(path)), time.monotonic_ns() - since) > TORN_NS
            ):  # a file may be dated in the future
                break
            time.sleep(0.002)
        return content

    def _wait_for_rest(self, path: str, content: bytes, digest: str) -> None:
        if all(heading in content for heading in _HEADINGS):
            self._bare = None
            return
        if self._bare is None or self._bare[0] != digest:
            self._bare = (digest, self._clock.monotonic())
        rest = self._bare[1] + REST_SECONDS - self._clock.monotonic()
        if rest > 0 and age_ns(self._tree.absolute(path)) < REST_SECONDS * 1e9:
            raise NotRestedError(path, rest)

    def _look_off_record(self, path: str, digest: str) -> FileChange | None:
        if self._seen.unkept(path) == digest:
            return None
        known = self._seen.get(path)
        changes = [] if known is None else [RecordedChange("observe", path, known.hash, None)]
        is_new = known is None and self._seen.unkept(path) is None
        self._committer.record_saves(NoteOffRecord(off_record=(digest,)), changes, {})
        self._seen.set_unkept(path, digest)
        return self._change("created" if is_new else "modified", path)

    def _look_at_stamp(self, path: str, stamp: str) -> FileChange | None:
        known = self._seen.unkept(path)
        if known == stamp:
            return None
        self._seen.set_unkept(path, stamp)
        return self._change("created" if known is None else "modified", path)

    def _forget_unkept(self, path: str) -> FileChange | None:
        if self._seen.unkept(path) is None:
            return None
        self._seen.set_unkept(path, None)
        return self._change("deleted", path)

    def _change(self, action: str, path: str, old_path: str | None = None) -> FileChange:
        return FileChange(action, path, self._tree.kind_of(path), old_path)  # type: ignore[arg-type]


def age_ns(path: Path) -> int:
    """Return how long ago a file was written, by its own time."""
    try:
        return time.time_ns() - os.stat(path).st_mtime_ns  # file times are the system clock's
    except OSError:
        return 0


def filled(text: bytes) -> set[bytes]:
    """Return the lines of a text that are not blank."""
    return {line for line in text.split(b"\n") if line.strip()}
