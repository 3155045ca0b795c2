"""Notices changed files, by watchdog's events at once and by periodic scans of the tree; decides when one is finished.

An event is only a hint to look at a path; the file itself decides what happened, and a scan finds what no event told
of. So a lost, doubled or misnamed event costs time and nothing else. A scan compares only stats, so that unchanged
files are not read again: ten thousand files take a tenth of a second.

When a file is finished (design: formats, "Ready") is decided from its size, times and inode alone. A file that arrives
whole (a script, `cp`, `mv`, a first `:w`) is finished when it was unchanged for `settle_ms`. A prompt that was finished
before, or empty, and changes again is being typed: editors save while a person thinks, so it must be unchanged for
`typing_seconds`, unless its last line is `/send`. "Closed after write" events are not used: files in new nested folders
produce none.
"""

from __future__ import annotations

import heapq
import logging
import os
import stat
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch
from watchdog.observers.polling import PollingObserver

from brainiac.brain import Brain
from brainiac.settings import InboxSettings, WatchSettings
from brainiac.tree import Stamp, Tree

# --- scans of the whole tree ----------------------------------------------------------------------------------------


def scan(tree: Tree, more: Sequence[Path] = ()) -> dict[str, Stamp]:
    """Return the stamp of every watched file by relative path; `more` are folders outside of the layout."""
    return tree.scan(*_tops(tree), tree.access_log, *more)


def changed_paths(tree: Tree, former: Mapping[str, Stamp], more: Sequence[Path] = ()) -> list[str]:
    """Return the relative paths of the files that are new, changed or deleted compared with former stamps.

    In the order in which they were written, by which a conversation's prompts are answered. Files of a watched
    folder that is missing as a whole (a drive not mounted) are not reported as deleted.
    """
    stamps = scan(tree, more)
    changed = [path for path, stamp in stamps.items() if former.get(path) != stamp]
    changed.sort(key=lambda path: (stamps[path].mtime_ns, path))
    # a drive that is not mounted must not look as if the person had deleted all of it
    missing = tuple(tree.relative(top) + "/" for top in _tops(tree) if not top.is_dir())
    deleted = [path for path in list(former) if path not in stamps and not path.startswith(missing)]
    return changed + deleted


def folders_beside(brain: Brain) -> list[Path]:
    """Return the folders outside of the layout that are watched.

    They are the folders of the sources, and all folders of the person's own where a plugin of theirs hears of changes.
    """
    own_folders = brain.tree.own_folders() if brain.plugins.has_foreign("file_changed") else []
    sources = [folder for folder, is_deep in brain.tree.source_folders() if is_deep]
    others = [folder for folder in sources if not any(map(folder.is_relative_to, own_folders))]
    return [*own_folders, *others]


def _tops(tree: Tree) -> tuple[Path, ...]:
    """Return the folders of the layout that are watched with all below them."""
    return tree.inbox, tree.memory, tree.system, tree.plugins


# --- watchdog -------------------------------------------------------------------------------------------------------

_EVENTS: list[type[events.FileSystemEvent]] = [
    events.FileCreatedEvent,
    events.FileModifiedEvent,
    events.FileDeletedEvent,
    events.FileMovedEvent,
    events.DirCreatedEvent,
    events.DirDeletedEvent,
    events.DirMovedEvent,
]


@dataclass(frozen=True, slots=True)
class WatchHealth:
    """How well the tree is watched, for `status`.

    Attributes:
        mode: `events`, `polling` or `stopped`.
        reason: Why it polls, when nobody asked for it.
        missing: Watched folders that do not exist.
        overflows: How often the system dropped events; each time the whole tree was scanned.
    """

    mode: str
    reason: str = ""
    missing: tuple[str, ...] = ()
    overflows: int = 0


class Watcher(events.FileSystemEventHandler):
    """Observers over the folders of a tree; symlinks are not followed.

    Args:
        tree: What to watch.
        settings: Returns the present settings.
        on_path: Called with each absolute path to look at; a folder means all files below it.
        on_loss: Called when events were lost and the whole tree must be scanned.
        more: Returns further folders to watch.

    Attributes:
        is_polling: Whether files are looked at every few seconds, by a setting or since the system cannot watch them.
    """

    def __init__(
        self,
        tree: Tree,
        settings: Callable[[], WatchSettings],
        on_path: Callable[[str], None],
        on_loss: Callable[[], None],
        more: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        self._tree, self._settings, self._on_path, self._on_loss = tree, settings, on_path, on_loss
        self._more = more
        self._observer: BaseObserver | None = None  # None: it does not watch
        self.is_polling = False
        self._fallback_reason = ""  # why the system cannot watch, so that files are polled; "" where it can
        self._watches: dict[str, tuple[ObservedWatch, int]] = {}  # folder: its watch and inode
        self._mutex = threading.RLock()
        self._overflow_log = _OverflowLog(on_loss)

    def start(self) -> None:
        """Begin to watch; where the system cannot, `_open` polls, and `health` says so."""
        with self._mutex:
            # that the system dropped events is told in its log alone
            logging.getLogger("watchdog").addHandler(self._overflow_log)
            self._open(is_polling=self._settings().polling)

    def stop(self) -> None:
        """End all watching."""
        with self._mutex:
            logging.getLogger("watchdog").removeHandler(self._overflow_log)
            self._close()

    def check(self) -> None:
        """Watch folders again that vanished and came back, and apply a changed `watch.polling`.

        Each rescan does it. What happened in a folder that was not watched is found by another scan.
        """
        with self._mutex:
            if self._observer is None:
                return
            should_poll = self._settings().polling
            # where the system cannot watch, polling goes on whatever the setting says
            if should_poll != self.is_polling and not self._fallback_reason:
                self._close()
                self._open(is_polling=should_poll)
                return
            try:
                may_have_missed = self._watch_folders(self._observer)
            except OSError as error:
                self._fall_back(error)
                may_have_missed = True
        if may_have_missed:
            self._on_loss()

    def health(self) -> WatchHealth:
        """Return how well the tree is watched."""
        with self._mutex:
            if self._observer is None:
                return WatchHealth("stopped")
            missing = tuple(self._tree.relative(folder) for folder, _ in self._folders() if folder not in self._watches)
            mode = "polling" if self.is_polling else "events"
            return WatchHealth(mode, self._fallback_reason, missing, self._overflow_log.count)

    def dispatch(self, event: events.FileSystemEvent) -> None:
        """Pass on the paths of a watchdog event; called in watchdog's thread."""
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        if event.is_directory and (source in self._watches or os.path.dirname(source) == str(self._tree.root)):
            # a watched folder appeared, vanished or moved; in another thread, since watchdog holds its locks here
            threading.Thread(target=self.check, name="watch-check", daemon=True).start()
        for path in filter(None, (source, target)):
            self._on_path(path)

    def _folders(self) -> list[tuple[str, bool]]:
        """Return the folders to watch, each with whether its subfolders are watched too."""
        tree = self._tree
        deep = {str(top) for top in (*_tops(tree), *self._more())}
        flat = {str(tree.logs), str(tree.root)}  # without the journal below; the root, to see a folder come back
        return [(folder, True) for folder in sorted(deep)] + [(folder, False) for folder in sorted(flat - deep)]

    def _open(self, *, is_polling: bool) -> None:
        """Start an observer; poll where the system has no watches left."""
        self.is_polling, self._fallback_reason = is_polling, ""
        if is_polling:
            self._observer = PollingObserver(timeout=self._settings().polling_seconds)
            self._observer.start()
            self._watch_folders(self._observer)
            return
        try:
            self._observer = _event_observer()
            self._observer.start()
            self._watch_folders(self._observer)
            # one more watch: watchdog silently skips subfolders when the system has no watches left
            with _event_observer() as observer:
                observer.schedule(events.FileSystemEventHandler(), str(self._tree.root), event_filter=_EVENTS)
        except OSError as error:
            self._fall_back(error)

    def _fall_back(self, error: OSError) -> None:
        """Poll instead of watching, and keep the reason for `health`."""
        self._close()
        self._open(is_polling=True)
        reason = f"the system cannot watch more files ({error.strerror}); see fs.inotify in docs/settings.md"
        self._fallback_reason = reason

    def _close(self) -> None:
        """Stop the observer, and forget what it watched."""
        if self._observer is not None and self._observer.is_alive():
            self._observer.stop()
            self._observer.join(5)
        self._observer = None
        self._watches.clear()

    def _watch_folders(self, observer: BaseObserver) -> bool:
        """Watch every existing folder that is not watched yet, or was made anew; return whether there was any."""
        has_new_watch = False
        for folder, is_deep in self._folders():
            try:
                status = os.lstat(folder)
            except OSError:
                inode = None  # there is none
            else:
                inode = status.st_ino if stat.S_ISDIR(status.st_mode) else None  # or a link
            # a folder that was deleted and made anew has the same name, and the watch is on the former inode
            watch, watched_inode = self._watches.get(folder, (None, None))
            if watch and watched_inode == inode:
                continue
            if watch:
                observer.unschedule(watch)
                del self._watches[folder]
            if inode is not None:
                watch = observer.schedule(self, folder, recursive=is_deep, event_filter=_EVENTS)
                self._watches[folder] = (watch, inode)
                has_new_watch = True
        return has_new_watch


class _OverflowLog(logging.Handler):
    """Notices a queue overflow in watchdog's log, the only place where watchdog reports lost events.

    Attributes:
        count: How often the system dropped events.
    """

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._on_overflow, self.count = on_overflow, 0

    def emit(self, record: logging.LogRecord) -> None:
        """Have the whole tree scanned for what was missed."""
        if "overflowed; filesystem events were lost" in record.getMessage():
            self.count += 1
            self._on_overflow()


def _event_observer() -> BaseObserver:
    """Return the system's observer, set up to report renames at once.

    watchdog delays all events by 0.5 s after one half of a rename, to pair it with the other half. We recognize moves
    by content, and our own atomic writes are renames, so the delay would slow every answer.
    """
    # it watches a fresh nested folder twice and then prints all of its watches; the second one replaces the first
    warnings.filterwarnings("ignore", r"Callback with id", RuntimeWarning)
    try:
        from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper  # Linux only
    except ImportError:  # not Linux, or another version
        return Observer()
    InotifyMoveEventGrouper.delay = 0.0
    return Observer()


# --- when a file is finished -----------------------------------------------------------------------------------------

SEND_LINE = b"/send"


def is_unwritten(former: Stamp | None, stamp: Stamp | None) -> bool:
    """Return whether a file seems unwritten between two stamps: size, modification time and inode are the same.

    Its change time may differ, after git, a backup or `chmod`. A write that resets the modification time looks the
    same, so that only the content tells.
    """
    return former is not None and stamp is not None and former.written == stamp.written


def ends_with_send(path: str | os.PathLike[str]) -> bool:
    """Return whether the last line of a file, blank ones left out, is `/send`."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 256))
            lines = file.read().rstrip().rsplit(b"\n", 1)
    except OSError:
        return False
    return lines[-1].strip() == SEND_LINE


class Settler:
    """Tells finished files from those that may still be written; not thread-safe, one thread owns it.

    Args:
        settings: Returns the present settings: how long files must be unchanged to count as finished.
        is_sent: Whether a prompt (by relative path) ends with `/send`.

    Attributes:
        settled: The stamp of every finished file, by relative path.
    """

    def __init__(self, settings: Callable[[], InboxSettings], is_sent: Callable[[str], bool]) -> None:
        self._settings, self._is_sent = settings, is_sent
        self.settled: dict[str, Stamp] = {}
        # the changed files that are not finished: the stamp when it was last seen (None: it was deleted), and when the
        # file will count as finished if it does not change again
        self._waiting: dict[str, tuple[Stamp | None, float]] = {}
        self._heap: list[tuple[float, str]] = []  # due time and path of `_waiting`, and of former entries of it
        self._typed: set[int] = set()  # inodes of files that a person types into: empty ones and changing prompts

    def observe(self, path: str, stamp: Stamp | None, now: float, *, is_typed: bool) -> bool:
        """Note a file's present stamp; where it differs from the last one, the file's waiting time starts anew.

        Args:
            path: Relative path.
            stamp: Its stamp; None for a deleted file.
            now: Monotonic seconds.
            is_typed: Whether people type into such files (prompts and notes).

        Returns:
            Whether its waiting time starts.
        """
        if path in self._waiting and self._waiting[path][0] == stamp:
            return False
        if self.settled.get(path) == stamp:  # unchanged, or deleted before it was ever known
            self._waiting.pop(path, None)
            return False
        settings = self._settings()
        seconds = settings.settle_ms / 1000
        is_changed = is_typed and stamp is not None and not is_unwritten(self.settled.get(path), stamp)
        # what was never seen before arrives whole, unless it was renamed while a person types into it
        if is_changed and stamp and (path in self.settled or stamp.inode in self._typed):
            is_sent = self._is_sent(path)
            seconds = 0.0 if is_sent else settings.typing_seconds
            if not is_sent:
                self._typed.add(stamp.inode)
        due = now + seconds
        self._waiting[path] = stamp, due
        # the file's former entry stays in the heap: removing it would cost a search, and `take_due` passes it over
        heapq.heappush(self._heap, (due, path))
        return True

    def take_due(self, now: float) -> list[str]:
        """Return the paths whose waiting time is over; the caller checks each file and calls `finish` or `observe`."""
        due: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, path = heapq.heappop(self._heap)
            # otherwise it changed again and has a later entry
            if path in self._waiting and self._waiting[path][1] == at:
                due.append(path)
        return due

    def finish(self, path: str, stamp: Stamp | None) -> bool:
        """Mark a file as finished if it was not changed since `observe`; return whether it is finished."""
        if path not in self._waiting or self._waiting[path][0] != stamp:
            return False
        del self._waiting[path]
        self.set_settled(path, stamp)
        if stamp is not None and stamp.size:
            self._typed.discard(stamp.inode)
        elif stamp is not None:
            self._typed.add(stamp.inode)  # an editor makes an empty file first: the next change is somebody typing
        return True

    def set_settled(self, path: str, stamp: Stamp | None) -> None:
        """Mark a file as finished with this stamp, without waiting; None: there is no file."""
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
