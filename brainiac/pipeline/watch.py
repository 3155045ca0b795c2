"""Notices changed files: by watchdog's events at once, and by scans of the whole tree at start-up and periodically.

An event is only a hint to look at a path; the file itself decides what happened (`settle.py`), and a scan finds what no
event told of. So a lost, doubled or misnamed event costs time and nothing else. A scan compares only stats, so that
unchanged files are not read again: ten thousand files take a tenth of a second.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch
from watchdog.observers.polling import PollingObserver

from brainiac.brain import Brain
from brainiac.pipeline.settle import Stamp, stamp_from, stamp_of
from brainiac.settings import WatchSettings
from brainiac.tree import Tree

# --- scans of the whole tree ----------------------------------------------------------------------------------------


def scan(tree: Tree, more: Sequence[Path] = ()) -> dict[str, Stamp]:
    """Return the stamp of every watched file by relative path; `more` are folders outside of the layout."""
    stamps: dict[str, Stamp] = {}
    for entry in tree.walk(*_tops(tree), *more):
        relative = tree.relative(entry.path)
        try:
            stamps[relative] = stamp_from(entry.stat(follow_symlinks=False))
        except OSError:
            continue  # vanished between listing and looking
    log = stamp_of(tree.access_log)
    if log is not None:
        stamps[tree.relative(tree.access_log)] = log
    return stamps


def differences(tree: Tree, former: Mapping[str, Stamp], more: Sequence[Path] = ()) -> list[str]:
    """Return the relative paths of the files that are new, changed or deleted compared with former stamps.

    Files of a watched folder that is missing as a whole (a drive not mounted) are not reported as deleted.
    """
    stamps = scan(tree, more)
    changed = [path for path, stamp in stamps.items() if former.get(path) != stamp]
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
    return [*own_folders, *(folder for folder in sources if not any(map(folder.is_relative_to, own_folders)))]


def _tops(tree: Tree) -> tuple[Path, ...]:
    """Return the folders of the layout that are watched with all below them."""
    return tree.inbox, tree.memory, tree.system, tree.plugins


# --- watchdog -------------------------------------------------------------------------------------------------------

_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
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


class Watcher(FileSystemEventHandler):
    """Observers over the folders of a tree; symlinks are not followed.

    Args:
        tree: What to watch.
        settings: Returns the present settings.
        on_path: Called with each absolute path to look at; a folder means all files below it.
        on_loss: Called when events were lost and the whole tree must be scanned.
        more: Returns further folders to watch.

    Attributes:
        is_polling: Whether files are looked at every few seconds, since the system reports no changes.
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
        self._observer: BaseObserver | None = None
        self.is_polling = False
        self._reason = ""
        self._overflows = 0
        self._watches: dict[str, tuple[ObservedWatch, int]] = {}  # folder: its watch and inode
        self._mutex = threading.RLock()
        self._overflow_log = _OverflowLog(self._note_overflow)

    def start(self) -> None:
        """Begin to watch; where the system cannot, poll and say so in `health`."""
        with self._mutex:
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
            if should_poll != self.is_polling and not self._reason:
                self._close()
                self._open(is_polling=should_poll)
                return
            try:
                has_new_watch = self._watch_folders(self._observer)
            except OSError as error:
                self._fall_back(error)
                has_new_watch = True
        if has_new_watch:
            self._on_loss()

    def health(self) -> WatchHealth:
        """Return how well the tree is watched."""
        with self._mutex:
            if self._observer is None:
                return WatchHealth("stopped")
            missing = tuple(self._tree.relative(folder) for folder, _ in self._folders() if folder not in self._watches)
            return WatchHealth("polling" if self.is_polling else "events", self._reason, missing, self._overflows)

    def dispatch(self, event: FileSystemEvent) -> None:
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
        deep = {str(top) for top in (tree.inbox, tree.memory, tree.system, tree.plugins, *self._more())}
        flat = {str(tree.logs), str(tree.root)}  # without the journal below; the root, to see a folder come back
        return [(folder, True) for folder in sorted(deep)] + [(folder, False) for folder in sorted(flat - deep)]

    def _open(self, *, is_polling: bool) -> None:
        """Start an observer; poll where the system has no watches left."""
        self.is_polling, self._reason = is_polling, ""
        if is_polling:
            self._observer = PollingObserver(timeout=self._settings().polling_seconds)
            self._observer.start()
            self._watch_folders(self._observer)
            return
        try:
            self._observer = _event_observer()
            self._observer.start()
            self._watch_folders(self._observer)
            _probe(str(self._tree.root))
        except OSError as error:
            self._fall_back(error)

    def _fall_back(self, error: OSError) -> None:
        """Poll instead of watching, and keep the reason for `health`."""
        self._close()
        self._open(is_polling=True)
        self._reason = f"the system cannot watch more files ({error.strerror}); see fs.inotify in docs/settings.md"

    def _close(self) -> None:
        """Stop the observer, and forget what it watched."""
        if self._observer is not None and self._observer.is_alive():
            self._observer.stop()
            self._observer.join(5)
        self._observer = None
        self._watches.clear()

    def _watch_folders(self, observer: BaseObserver) -> bool:
        """Watch every existing folder that is not watched yet, or was made anew; return whether there was one."""
        has_new_watch = False
        for folder, is_deep in self._folders():
            inode = _inode(folder)
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

    def _note_overflow(self) -> None:
        self._overflows += 1
        self._on_loss()


class _OverflowLog(logging.Handler):
    """Notices a queue overflow in watchdog's log, the only place where watchdog reports lost events."""

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._on_overflow = on_overflow

    def emit(self, record: logging.LogRecord) -> None:
        if "overflowed; filesystem events were lost" in record.getMessage():
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


def _probe(folder: str) -> None:
    """Add and remove one more watch, since watchdog silently skips subfolders when the system has no watches left.

    Raises:
        OSError: The system has no watches left.
    """
    with _event_observer() as observer:
        observer.schedule(FileSystemEventHandler(), folder, event_filter=_EVENTS)


def _inode(folder: str) -> int | None:
    """Return the inode of a folder; None where there is none, or a link."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return status.st_ino if os.path.isdir(folder) and not os.path.islink(folder) else None
