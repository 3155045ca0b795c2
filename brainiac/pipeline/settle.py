"""When a file is finished (design: formats, "Ready"): the bytes on disk say so, never an event's name.

A file that arrives whole (a script, `cp`, `mv`, a first `:w`) is finished once its stat has rested for `settle_ms`.
A prompt that was seen at rest before, empty or not, and changes again is being typed: an editor saves while one
thinks, so it rests for `typing_seconds`, or not at all when its last line is `/send`. "Closed after write" plays no
part: files in fresh nested folders produce no such event.
"""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

Stamp = tuple[int, int, int, int]  # size, mtime_ns, inode, ctime_ns: by which a file that was written is known

SEND_LINE = b"/send"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long files rest before they count as finished, in seconds."""

    settle_seconds: float
    typing_seconds: float


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """Return the stamp of a regular file; None where there is none, symlinks not followed."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return stamp_from(found) if stat.S_ISREG(found.st_mode) else None


def stamp_from(found: os.stat_result) -> Stamp:
    """Return the stamp in a stat result."""
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


def is_touched(former: Stamp | None, stamp: Stamp | None) -> bool:
    """Return whether only the time of change moved: by git, a backup, `chmod`, or a writer that put its time back."""
    return former is not None and stamp is not None and former[:3] == stamp[:3]


def ends_with_send(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file's last line that is not blank is `/send`."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 256))
            lines = file.read().rstrip().rsplit(b"\n", 1)
    except OSError:
        return False
    return lines[-1].strip() == SEND_LINE


@dataclass(slots=True)
class _Waiting:
    stamp: Stamp | None  # None: gone
    due: float


class Settler:
    """Which files are at rest and which are awaited; pure, not thread-safe: one thread owns it.

    Args:
        pace: Gives the present settings.
        is_sent: Tells whether a prompt (by relative path) ends with `/send`.

    Attributes:
        settled: The stamp of every file that was found finished, by relative path.
    """

    def __init__(self, pace: Callable[[], Pace], is_sent: Callable[[str], bool]) -> None:
        self._pace, self._is_sent = pace, is_sent
        self.settled: dict[str, Stamp] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._heap: list[tuple[float, str]] = []
        self._typed: set[int] = set()  # inodes of files that were seen empty or growing and did not rest since

    def saw(self, path: str, stamp: Stamp | None, now: float, *, is_typed: bool) -> None:
        """Take in how a file stands.

        Args:
            path: Relative path.
            stamp: Its stamp, or None when it is gone.
            now: Monotonic seconds.
            is_typed: Whether people type such files while they are watched (prompts and notes).
        """
        waiting = self._waiting.get(path)
        if waiting and waiting.stamp == stamp:
            return
        if self.settled.get(path) == stamp:  # unchanged, or unknown and gone
            self._waiting.pop(path, None)
            return
        due = now + self._rest(path, stamp, is_typed)
        self._waiting[path] = _Waiting(stamp, due)
        heapq.heappush(self._heap, (due, path))

    def _rest(self, path: str, stamp: Stamp | None, is_typed: bool) -> float:
        pace = self._pace()
        # a note may be renamed while it is typed: it is known by its inode then
        if (
            not is_typed
            or stamp is None
            or is_touched(self.settled.get(path), stamp)
            or (path not in self.settled and stamp[2] not in self._typed)
        ):
            return pace.settle_seconds
        if self._is_sent(path):
            return 0.0
        self._typed.add(stamp[2])
        return pace.typing_seconds

    def take_due(self, now: float) -> list[str]:
        """Return the paths whose rest is over; look at each once more and then call `finish` or `saw`."""
        due: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, path = heapq.heappop(self._heap)
            waiting = self._waiting.get(path)
            if waiting and waiting.due == at:  # otherwise it moved on and has a later entry
                due.append(path)
        return due

    def finish(self, path: str, stamp: Stamp | None) -> bool:
        """Record a file as finished if it still is as it was awaited; return whether it is."""
        waiting = self._waiting.get(path)
        if waiting is None or waiting.stamp != stamp:
            return False
        del self._waiting[path]
        self.prime(path, stamp)
        if stamp is not None:
            (self._typed.discard if stamp[0] else self._typed.add)(stamp[2])
        return True

    def prime(self, path: str, stamp: Stamp | None) -> None:
        """Record a file as known and at rest, without reporting it."""
        if stamp is None:
            self.settled.pop(path, None)
        else:
            self.settled[path] = stamp

    def is_waiting(self, path: str) -> bool:
        """Tell whether a file changed and has not come to rest since."""
        return path in self._waiting

    @property
    def waiting(self) -> int:
        """How many files are awaited."""
        return len(self._waiting)

    def next_due(self) -> float | None:
        """Return when to call `take_due` again, in monotonic seconds; None when nothing is awaited."""
        return self._heap[0][0] if self._waiting and self._heap else None

    def known_below(self, folder: str) -> list[str]:
        """List the files known or awaited below a folder, for when it moved or went as a whole."""
        prefix = folder + "/"
        return [path for path in {**self.settled, **self._waiting} if path.startswith(prefix)]
