"""The bus: waits until a changed file is finished, decides what it is, and submits it to its tier (design: pipeline).

One thread checks files and keeps the timers. Four threads answer, in order within a conversation; one records changes,
one reflects, one works while it is quiet. A slow job delays only its own tier.
"""

from __future__ import annotations

import os
import sched
import sqlite3
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from brainiac.brain import Brain
from brainiac.errors import StorageError, storage_trouble
from brainiac.events import Action, FileChange, PathKind
from brainiac.formats.access_log import AccessEntry, parse_access_log
from brainiac.formats.prompt import conversation_of, prompt_path_of
from brainiac.history.copies import find_marked, is_marked, settle_versions
from brainiac.pipeline.dispatch import HookDispatcher, KeyedExecutor
from brainiac.pipeline.inbox import TO_ANSWER, Inbox, is_free
from brainiac.pipeline.watch import (
    Pace,
    Settler,
    Stamp,
    differences,
    ends_with_send,
    folders_beside,
    is_touched,
    scan,
    stamp_from,
    stamp_of,
)
from brainiac.storage.copies import original_of, twin_of
from brainiac.storage.external_edits import NotRestedError


class AccessLogTail:
    """Reads the lines that are added to the access log; one thread at a time.

    Args:
        path: The log.
        mark: The `mark` of an earlier run, to go on where that ended; None: begin at the log's present end.
    """

    def __init__(self, path: Path, mark: dict[str, Any] | None) -> None:
        self._path = path
        self._offset, self._last = (int(mark["offset"]), str(mark["last"])) if mark else (0, "")
        if mark is None:
            self.read()

    @property
    def mark(self) -> dict[str, Any]:
        """How far the log was read: the offset, and the last line read, by which `read` finds its place again."""
        return {"offset": self._offset, "last": self._last}

    def read(self) -> Sequence[AccessEntry]:
        """Return the entries in the whole lines that were added since the last call."""
        try:
            with open(self._path, "rb") as log:
                start = self._seek_last_line(log)
                content = log.read()
        except FileNotFoundError:
            self._offset, self._last = 0, ""
            return []
        whole = content[: content.rfind(b"\n") + 1].decode("utf-8", "replace")
        self._offset = start + content.rfind(b"\n") + 1
        self._last = whole.splitlines()[-1] if whole else self._last
        return parse_access_log(whole).entries

    def _seek_last_line(self, log: BinaryIO) -> int:
        """Seek to the end of the last line read, wherever it is now, and return the offset.

        Organization removes old lines at the front. Where the last line read is gone too, all is read.
        """
        line = self._last.encode() + b"\n"
        start = self._offset
        log.seek(max(0, start - len(line)))
        if start and log.read(len(line)) != line:
            log.seek(0)
            content = log.read()
            last_line = content.rfind(line)
            start = last_line + len(line) if last_line >= 0 else 0
        return log.seek(start)


FOREGROUND_WORKERS = 4
STOP_SECONDS = 5.0
MAX_NOTICE_SECONDS = 60.0
GIT_SECONDS = 2.0  # between two looks whether git has finished
_PAGES = frozenset({PathKind.MEMORY, PathKind.ARCHIVED})
VERSIONS_SECONDS = 0.5  # a sync tool brings a copy and its original within that time
_UNSEEN = (PathKind.IGNORED, PathKind.JOURNAL, PathKind.ACCESS_LOG)


class Bus:
    """The pipeline of one running brain.

    Args:
        brain: The brain.
        tail: Reads the new lines of the access log.

    Attributes:
        marked: Paths of files that may have conflict markers; only the notice tier uses it once the bus has started.
    """

    def __init__(self, brain: Brain, tail: AccessLogTail) -> None:
        self._brain, self.tail = brain, tail
        self._changed = threading.Condition()
        self._hints: dict[str, None] = {}  # absolute paths to check, in order, each once
        self._is_looking = False
        self._is_stopping = False
        self._agenda = sched.scheduler(brain.clock.monotonic)
        self._is_log_due = self._are_versions_due = False
        self.marked: set[str] = set()
        self.settler = Settler(self._pace, lambda path: ends_with_send(brain.tree.absolute(path)))
        self.foreground = KeyedExecutor("foreground", FOREGROUND_WORKERS, self._wake, self._log_bug)
        self.notice = KeyedExecutor("notice", 1, self._wake, self._log_bug)
        self.near = KeyedExecutor("near-background", 1, self._wake, self._log_bug, first=self.foreground)
        self.far = KeyedExecutor("far-background", 1, self._wake, self._log_bug)
        self.inbox = Inbox(brain, self._again)
        self.dispatcher = HookDispatcher(brain, self.near, self.later)
        self._thread = threading.Thread(target=self._run, name="bus", daemon=True)

    def start(self) -> None:
        """Start looking."""
        self._thread.start()

    def stop(self) -> bool:
        """Stop the bus's thread, then the tiers; return whether all running jobs ended within a few seconds."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(STOP_SECONDS)
        # all are stopped, also after one that did not end
        are_ended = [tier.stop(STOP_SECONDS) for tier in self._tiers]
        return all(are_ended)

    def look(self, path: str) -> None:
        """Have a file or folder checked as soon as possible; any thread may call.

        Args:
            path: Absolute; it need not exist.
        """
        with self._changed:
            self._hints[path] = None
            self._changed.notify_all()

    def rescan(self) -> None:
        """Scan the tree and check every file that changed."""
        self.notice.submit("rescan", self._rescan)

    def later(self, seconds: float, job: Callable[[], None]) -> None:
        """Run a short job in the bus's own thread after a number of seconds."""
        self._agenda.enter(seconds, 0, job)
        with self._changed:
            self._changed.notify_all()

    def ask(self, path: str) -> None:
        """Process a prompt or note, after the earlier jobs of its conversation."""
        self.foreground.submit(self._conversation(path), lambda: self.inbox.take(path))

    @property
    def unsettled(self) -> list[str]:
        """The relative paths that are to be checked or not finished yet; any thread may ask."""
        with self._changed:
            hints = list(self._hints)
        return [*map(self._brain.tree.relative, hints), *self.settler.waiting_paths]

    @property
    def is_busy(self) -> bool:
        """Whether an exchange is being answered or reflected."""
        return bool(self.foreground.pending or self.near.pending)

    @property
    def is_idle(self) -> bool:
        """Whether no path is to be checked, no file waits to be finished, and no job runs; retries may be pending."""
        with self._changed:
            is_seen = not self._hints and not self._is_looking and not self.settler.waiting_paths
        return is_seen and not any(tier.pending for tier in self._tiers)

    def wait_idle(self) -> None:
        """Block until `is_idle`."""
        with self._changed:
            while not self.is_idle:
                self._changed.wait()

    @property
    def _tiers(self) -> tuple[KeyedExecutor, ...]:
        return self.foreground, self.notice, self.near, self.far

    def _pace(self) -> Pace:
        inbox = self._brain.settings.inbox
        return Pace(inbox.settle_ms / 1000, inbox.typing_seconds)

    def _conversation(self, path: str) -> str:
        """Return the conversation of a prompt, which is the key of its jobs."""
        return conversation_of(path, inbox=self._brain.tree.layout.inbox)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # --- the bus's own thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        """Check hinted paths, pass on finished files and run timers until the bus stops."""
        clock = self._brain.clock
        while (hints := self._next_hints()) is not None:
            for path in hints:
                self._safely(partial(self._check_path, path))
            for path in self.settler.take_due(clock.monotonic()):
                self._safely(partial(self._finish, path))
            self._safely(lambda: self._agenda.run(blocking=False))
            with self._changed:
                self._is_looking = False
                self._changed.notify_all()

    def _safely(self, step: Callable[[], object]) -> None:
        """Run a step and log any error: this thread must not end, and the rescan finds what a failed step missed."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - logged, as the tiers log what a job of theirs raises
            self._log_bug(error)

    def _next_hints(self) -> list[str] | None:
        """Wait until there are paths to check, or a timer or file is due; return the paths, None when the bus stops."""
        clock = self._brain.clock
        with self._changed:
            while not self._hints and not self._is_stopping:
                seconds = self._seconds_left(clock.monotonic())
                if seconds is not None and seconds <= 0:
                    break
                clock.wait(self._changed, seconds)
            hints, self._hints = list(self._hints), {}
            self._is_looking = True
            return None if self._is_stopping else hints

    def _seconds_left(self, now: float) -> float | None:
        """Return the seconds until the next timer or file is due; None when there is none."""
        due = [event.time for event in self._agenda.queue[:1]]
        if (settled := self.settler.next_due()) is not None:
            due.append(settled)
        return min(due) - now if due else None

    def _check_path(self, path: str) -> None:
        """Pass the present stamp of a file, or of each file in a folder, to the settler.

        A change of the access log, or a conflict copy of a sync tool, only schedules a look at these.
        """
        tree = self._brain.tree
        relative = tree.relative(path)
        kind = tree.kind_of(relative)
        if kind is PathKind.ACCESS_LOG:
            self._log_grew()
        if kind is PathKind.IGNORED and original_of(relative) is not None:
            self._versions_came()
        if kind in _UNSEEN or relative in (".", tree.layout.logs):
            return
        try:
            status = os.lstat(path)
        except OSError:
            status = None
        # a path that is gone and was no known file may have been a folder
        is_folder = not self._is_known(relative) if status is None else stat.S_ISDIR(status.st_mode)
        if is_folder:
            self._check_folder(relative)
        else:
            is_file = status is not None and stat.S_ISREG(status.st_mode)
            self._observe(relative, stamp_from(status) if status is not None and is_file else None)

    def _check_folder(self, folder: str) -> None:
        """Check all files that are or were in a folder: events in a new or moved folder get lost."""
        tree = self._brain.tree
        # known files first: a folder that was moved away brings no event for what was in it
        for path in self.settler.known_below(folder):
            self._observe(path, stamp_of(tree.absolute(path)))
        files = ((tree.relative(entry.path), stamp_of(entry.path)) for entry in tree.walk(tree.absolute(folder)))
        # by modification time, so that a conversation's prompts are answered in the order they were written
        for path, stamp in sorted(files, key=lambda file: (file[1].mtime_ns if file[1] else 0, file[0])):
            self._observe(path, stamp)

    def _is_known(self, relative: str) -> bool:
        """Return whether the settler has a file at a path."""
        return relative in self.settler.settled or self.settler.is_waiting(relative)

    def _observe(self, relative: str, stamp: Stamp | None) -> None:
        """Pass a file's stamp to the settler; None: it was deleted."""
        is_typed = self._brain.tree.kind_of(relative) in TO_ANSWER
        self.settler.observe(relative, stamp, self._brain.clock.monotonic(), is_typed=is_typed)

    def _finish(self, path: str) -> None:
        """Pass on a file whose waiting time is over, unless it changed once more."""
        stamp, former = stamp_of(self._brain.tree.absolute(path)), self.settler.settled.get(path)
        if not self.settler.finish(path, stamp):
            self._observe(path, stamp)
            return
        with ExitStack() as on_error:
            on_error.callback(self.settler.prime, path, former)  # so that the rescan finds it again
            if is_touched(former, stamp):
                self._submit_touched(path)
            else:
                self._submit_change(path, stamp, was_known=former is not None)
            on_error.pop_all()

    def _submit_change(self, path: str, stamp: Stamp | None, *, was_known: bool) -> None:
        """Submit a finished file to the tier that processes it."""
        self._brain.recall.note_change(path)  # first, so that a search by a plugin finds the new text
        action: Action = "deleted" if stamp is None else "modified" if was_known else "created"
        change = FileChange(action, path, self._brain.tree.kind_of(path))
        if change.kind in TO_ANSWER and stamp is not None:
            self.foreground.submit(self._conversation(path), lambda: self._answer(change))
        else:
            self._submit_notice(change)

    def _answer(self, change: FileChange) -> None:
        """Answer a prompt first and record its change afterwards, so that the answer does not wait."""
        try:
            self.inbox.take(change.path)
        finally:
            self._submit_notice(change)

    def _submit_touched(self, path: str) -> None:
        """Have a file hashed of which only the change time differs; plugins hear of it only if its content does."""
        if self._brain.tree.is_tracked(path):
            change = FileChange("modified", path, self._brain.tree.kind_of(path))
            self._submit_notice(change, is_touched=True)

    def _log_grew(self) -> None:
        """Schedule one read of the access log soon; unlike other files it need not rest first."""
        if not self._is_log_due:
            self._is_log_due = True
            self._agenda.enter(self._pace().settle_seconds, 0, self._read_log)

    def _read_log(self) -> None:
        """Read the new lines of the access log and submit the hook `access_log_grew`."""
        self._is_log_due = False
        log = self._brain.tree.access_log
        # before reading: a line added in between changes the stamp, and the rescan sees it
        self.settler.prime(self._brain.tree.relative(log), stamp_of(log))
        if entries := self.tail.read():
            self.far.submit("access log", partial(self.dispatcher.call, "access_log_grew", entries=entries))

    def _versions_came(self) -> None:
        """Schedule one look for conflict copies and conflict markers, for when a sync tool has finished writing."""
        if not self._are_versions_due:
            self._are_versions_due = True
            self.later(max(VERSIONS_SECONDS, self._pace().settle_seconds), self._settle_versions)

    def _settle_versions(self) -> None:
        self._are_versions_due = False
        self.notice.submit("versions", self.merge_versions)

    def merge_versions(self) -> None:
        """Merge conflict copies, moved pages and conflict markers; what has to wait is tried again later."""
        settle_versions(self._brain, sorted(self.marked))
        self.marked = set(find_marked(self._brain, self.marked))

    def _again(self, path: str, seconds: float) -> None:
        """Process a prompt after some seconds, unless it is being changed then: its change processes it."""
        self.later(seconds, lambda: None if self.settler.is_waiting(path) else self.ask(path))

    def learn_folders(self) -> None:
        """Mark the files of folders that begin to be watched as finished, since nobody changed them just now."""
        for path, stamp in scan(self._brain.tree, folders_beside(self._brain)).items():
            if not self._is_known(path) and self._brain.tree.kind_of(path) in (PathKind.OTHER, PathKind.SOURCE):
                self.settler.prime(path, stamp)

    # --- the notice tier --------------------------------------------------------------------------------

    def _submit_notice(self, change: FileChange, attempt: int = 1, *, is_touched: bool = False) -> None:
        self.notice.submit("in order", lambda: self._notice(change, attempt, is_touched=is_touched))

    def _notice(self, change: FileChange, attempt: int, *, is_touched: bool) -> None:
        """Record a person's change in the journal and pass it on; after an error try again later.

        A change that the journal has already is not passed on, with one exception: of a prompt the commit of its
        answer recorded it, and the hooks have not heard of it yet.
        """
        if self._brain.git_operation:  # what git checks out meanwhile is no edit
            self.later(GIT_SECONDS, lambda: self._submit_notice(change, is_touched=is_touched))
            return
        try:
            is_tracked = self._brain.tree.is_tracked(change.path)
            with storage_trouble():
                # None: the journal has this content already
                recorded = self._brain.observed.note_change(change.path, change.action) if is_tracked else change
        except NotRestedError as error:
            self.later(error.again_in_seconds, lambda: self._submit_notice(change, is_touched=is_touched))
            return
        except StorageError as error:
            self._brain.log.warning("file_unreadable", path=change.path, problem=error.problem)
            again = partial(self._submit_notice, change, attempt + 1, is_touched=is_touched)
            self.later(min(MAX_NOTICE_SECONDS, 2.0**attempt), again)
            return
        if is_touched:
            self._process_touched(change.path, is_new=recorded is not None)
        elif recorded is None and change.kind in TO_ANSWER:
            recorded = change  # by the commit of the answer; it is still a person's change, for the hooks
        if recorded is not None:
            self._check_versions(change.path, is_new_page=recorded.action == "created" and change.kind in _PAGES)
            self.pass_on(recorded)
        elif change.kind is PathKind.CONFIG:  # written by the command `takeover`, which recorded it
            self.retry()

    def _check_versions(self, path: str, *, is_new_page: bool) -> None:
        """Schedule a look for versions where a changed file has conflict markers or a conflict copy, or is a new page.

        A new page may be one that another device moved, or that stands again where it was moved from.
        """
        if is_marked(self._brain, path):
            self.marked.add(path)
        if is_new_page or path in self.marked or twin_of(self._brain.tree, path):
            self._versions_came()

    def _process_touched(self, path: str, *, is_new: bool) -> None:
        """Process a prompt of which only the change time differed, if its content is new or it waits to be retried."""
        if is_new:
            self._brain.recall.note_change(path)
        is_waiting = any(pending.prompt == path for pending in self.inbox.pending)
        if self._brain.tree.kind_of(path) in TO_ANSWER and (is_new or is_waiting):
            self.ask(path)

    def pass_on(self, change: FileChange) -> None:
        """Call the hooks for a recorded change, and process responses, deletions and settings."""
        self.dispatcher.changed(change)
        path, kind = change.path, change.kind
        if change.action == "deleted" and kind in TO_ANSWER:
            self.ask(path)  # removes it from the waiting prompts, and its error file
        elif kind is PathKind.RESPONSE and change.action != "deleted" and not change.is_ours:
            prompt = next(iter(prompt_path_of(path)), path)
            self.foreground.submit(self._conversation(prompt), lambda: self.inbox.take_response(path))
        elif kind is PathKind.ERROR and change.action == "deleted":
            self.retry(set(prompt_path_of(path)))
        elif kind is PathKind.CONFIG:
            self._look_at_sources()
            self.retry()
        elif kind is PathKind.OTHER and path.startswith(self._brain.tree.layout.inbox + "/"):
            self.foreground.submit(self._conversation(path), lambda: self.inbox.report_unread(path))

    def retry(self, paths: set[str] | None = None) -> None:
        """Process waiting prompts again: those at some paths, or all but a held backlog."""
        for pending in self.inbox.pending:
            is_due = not pending.is_held or is_free(self._brain)
            if pending.prompt in paths if paths is not None else is_due:
                self.ask(pending.prompt)

    def retry_waiting(self) -> None:
        """Process the prompts that wait until this device runs the processes."""
        self.retry({pending.prompt for pending in self.inbox.pending if pending.is_for_device})

    def _look_at_sources(self) -> None:
        """Search and watch the sources of today, where the settings or this machine's permission changed."""
        if self._brain.refresh_sources():
            self.learn_folders()
            self._brain.recall.rescan()

    def _rescan(self) -> None:
        """Look at each file whose stamp differs from the settled one: a change that watching missed."""
        self._brain.answered.refresh()
        self._look_at_sources()
        for path in differences(self._brain.tree, self.settler.settled, folders_beside(self._brain)):
            self.look(str(self._brain.tree.absolute(path)))

    def _log_bug(self, error: BaseException) -> None:
        """Log an unexpected error; trouble with the disk is a warning, since the work is done again later."""
        is_system = isinstance(error, OSError | sqlite3.Error)
        trouble = StorageError.of(error) if is_system else error  # type: ignore[arg-type]
        if isinstance(trouble, StorageError):
            self._brain.log.warning("job_postponed", problem=trouble.problem)
            return
        self._brain.log.error("job_failed", error=repr(error), exc_info=error)
