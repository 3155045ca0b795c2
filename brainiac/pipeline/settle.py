"""Decides when a file is finished (design: formats, "Ready"), from its size, times and inode alone.

A file that arrives whole (a script, `cp`, `mv`, a first `:w`) is finished when it was unchanged for `settle_ms`. A
prompt that was finished before, or empty, and changes again is being typed: editors save while a person thinks, so it
must be unchanged for `typing_seconds`, unless its last line is `/send`. "Closed after write" events are not used:
files in new nested folders produce none.
"""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

SEND_LINE = b"/send"


class Stamp(NamedTuple):
    """What the file system says of a file: a write changes at least one of these."""

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How many seconds files must be unchanged to count as finished."""

    settle_seconds: float
    typing_seconds: float


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """Return the stamp of a regular file; None where there is none or only a symlink."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return stamp_from(status) if stat.S_ISREG(status.st_mode) else None


def stamp_from(status: os.stat_result) -> Stamp:
    """Return the stamp in a stat result."""
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)


def is_touched(former: Stamp | None, stamp: Stamp | None) -> bool:
    """Return whether a file seems unwritten: size, modification time and inode are the same.

    Its change time may differ, after git, a backup or `chmod`; a write that resets the modification time looks alike.
    """
    return former is not None and stamp is not None and former[:3] == stamp[:3]


def ends_with_send(path: str | os.PathLike[str]) -> bool:
    """Return whether the last line of a file, blank ones left out, is `/send`."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 256))
            lines = file.read().rstrip().rsplit(b"\n", 1)
    except OSError:
        return False
    return lines[-1].strip() == SEND_LINE


@dataclass(slots=True)
class _Waiting:
    """A changed file that is not finished yet.

    Attributes:
        stamp: Its stamp when it was last seen; None: it was deleted.
        due: When it will count as finished if it does not change again, monotonic seconds.
    """

    stamp: Stamp | None
    due: float


class Settler:
    """Tells finished files from those that may still be written; not thread-safe, one thread owns it.

    Args:
        pace: Returns the present settings.
        is_sent: Whether a prompt (by relative path) ends with `/send`.

    Attributes:
        settled: The stamp of every finished file, by relative path.
    """

    def __init__(self, pace: Callable[[], Pace], is_sent: Callable[[str], bool]) -> None:
        self._pace, self._is_sent = pace, is_sent
        self.settled: dict[str, Stamp] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._heap: list[tuple[float, str]] = []
        self._typed: set[int] = set()  # inodes of files that a person types into: empty ones and changing prompts

    def observe(self, path: str, stamp: Stamp | None, now: float, *, is_typed: bool) -> None:
        """Note a file's present stamp; where it differs from the last one, the file's waiting time starts anew.

        Args:
            path: Relative path.
            stamp: Its stamp; None for a deleted file.
            now: Monotonic seconds.
            is_typed: Whether people type into such files (prompts and notes).
        """
        waiting = self._waiting.get(path)
        if waiting and waiting.stamp == stamp:
            return
        if self.settled.get(path) == stamp:  # unchanged, or deleted before it was ever known
            self._waiting.pop(path, None)
            return
        due = now + self._seconds_to_wait(path, stamp, is_typed)
        self._waiting[path] = _Waiting(stamp, due)
        # a former entry stays in the heap: removing it would cost a search, and `take_due` passes it over
        heapq.heappush(self._heap, (due, path))

    def _seconds_to_wait(self, path: str, stamp: Stamp | None, is_typed: bool) -> float:
        """Return how long a changed file must stay unchanged: longer where a person is typing into it."""
        pace = self._pace()
        if not is_typed or stamp is None or is_touched(self.settled.get(path), stamp):
            return pace.settle_seconds
        # a file that arrives whole is new; by inode too, since a note may be renamed while it is typed
        is_new = path not in self.settled and stamp.inode not in self._typed
        if is_new:
            return pace.settle_seconds
        if self._is_sent(path):
            return 0.0
        self._typed.add(stamp.inode)
        return pace.typing_seconds

    def take_due(self, now: float) -> list[str]:
        """Return the paths whose waiting time is over; the caller checks each file and calls `finish` or `observe`."""
        due: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, path = heapq.heappop(self._heap)
            waiting = self._waiting.get(path)
            if waiting and waiting.due == at:  # otherwise it changed again and has a later entry
                due.append(path)
        return due

    def finish(self, path: str, stamp: Stamp | None) -> bool:
        """Mark a file as finished if it was not changed since `observe`; return whether it is finished."""
        waiting = self._waiting.get(path)
        if waiting is None or waiting.stamp != stamp:
            return False
        del self._waiting[path]
        self.prime(path, stamp)
        if stamp is not None:
            # an editor makes an empty file first: the next change of that inode is somebody typing
            (self._typed.discard if stamp.size else self._typed.add)(stamp.inode)
        return True

    def prime(self, path: str, stamp: Stamp | None) -> None:
        """Mark a file as finished without waiting; a stamp of None removes it."""
        if stamp is None:
            self.settled.pop(path, None)
        else:
            self.settled[path] = stamp

    def is_waiting(self, path: str) -> bool:
        """Return whether a file changed and is not finished yet."""
        return path in self._waiting

    @property
    def waiting_paths(self) -> list[str]:
        """The files that changed and are not finished yet; any thread may ask."""
        return list(self._waiting)

    def next_due(self) -> float | None:
        """Return when to call `take_due` again, in monotonic seconds; None when no file is waited for."""
        return self._heap[0][0] if self._waiting and self._heap else None

    def known_below(self, folder: str) -> list[str]:
        """Return the finished and waiting files below a folder, to check them when the folder was moved or deleted."""
        prefix = folder + "/"
        return [path for path in {**self.settled, **self._waiting} if path.startswith(prefix)]
